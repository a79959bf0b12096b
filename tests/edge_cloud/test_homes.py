"""Charges for being at home: the sets that fit, what they pay, and that bounds stay bounds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import placeopt
from placeopt.core.budget import Budget
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.prices import Homes, Relaxation, homes, max_source_revenue

WEIGHT = 0.2


def sets_that_fit(instance: EdgeCloudArrays, source: int) -> list[set[int]]:
    """Return all sets of a source's applications that fit there together."""
    member = np.flatnonzero(instance.source == source)
    demand = [
        instance.demand[instance.first[a] : instance.first[a + 1]].sum(axis=0) for a in member
    ]
    return [
        {int(member[k]) for k in chosen}
        for size in range(len(member) + 1)
        for chosen in combinations(range(len(member)), size)
        if (sum((demand[k] for k in chosen), np.zeros(2)) <= instance.capacity[source]).all()
    ]


def groups(known: Homes) -> list[tuple[list[int], list[set[int]]]]:
    """Return the members of each source, and its sets."""
    found = []
    for k in range(len(known.first) - 1):
        member = known.member[known.first[k] : known.first[k + 1]].tolist()
        codes = known.sets[known.set_first[k] : known.set_first[k + 1]].tolist()
        found.append((member, [{a for j, a in enumerate(member) if c >> j & 1} for c in codes]))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_sets_are_the_largest_that_fit(seed: int) -> None:
    """Of every source where not all fit together; others, and roomy ones, are free."""
    instance = EdgeCloud.generate(seed, applications=40, near=12, load=0.8).arrays
    known = homes(instance, most=7)
    charged = {}
    for member, sets in groups(known):
        source = int(instance.source[member[0]])
        fitting = sets_that_fit(instance, source)
        largest = [one for one in fitting if not any(one < other for other in fitting)]
        assert sorted(map(sorted, sets)) == sorted(map(sorted, largest))
        charged[source] = member
    for source in np.unique(instance.source):
        fitting = sets_that_fit(instance, int(source))
        all_fit = set().union(*fitting) in fitting
        assert (int(source) in charged) == (len(fitting) <= 7 and not all_fit)
    rest = set(range(40)) - {a for member in charged.values() for a in member}
    assert set(known.free.tolist()) == rest
    assert charged and rest


@pytest.mark.parametrize(("applications", "charged"), [(63, 63), (64, 0)])
def test_a_set_has_64_bits(applications: int, charged: int) -> None:
    """Where one application fits at a time each is a set; where there are too many all are free."""
    given = EdgeCloud.generate(1, applications=applications, near=1).arrays
    demand = 1 / np.diff(given.first)[given.application_of, None].repeat(2, axis=1)
    known = homes(given._replace(demand=demand, capacity=np.ones_like(given.capacity)))
    assert len(known.member) == len(known.sets) == charged


@pytest.mark.parametrize("seed", range(6))
def test_what_is_paid_is_the_most_of_any_set(seed: int) -> None:
    """And the slope falls for those that pay; it is 0 for those that are not charged."""
    instance, rng = EdgeCloud.generate(seed, applications=40).arrays, np.random.default_rng(seed)
    known = homes(instance)
    charge, slope = rng.random((40, 1)), np.ones((40, 1))
    most = sum(max(charge[sorted(one), 0].sum() for one in sets) for _, sets in groups(known))
    assert max_source_revenue(known, charge, slope) == pytest.approx(most)
    assert charge[slope[:, 0] == 0].sum() == pytest.approx(most + charge[known.free].sum())


@pytest.mark.parametrize("seed", range(12))
def test_charged_bounds_are_below_every_plan(seed: int) -> None:
    """Near the best prices, and whatever the charges."""
    problem, rng = (
        EdgeCloud.generate(seed, applications=10, near=4, load=0.6),
        np.random.default_rng(seed),
    )
    plans = placeopt.solve(problem, "lns", weight=WEIGHT, evaluations=2000, seed=1)
    least = (plans.values @ [WEIGHT, 1 - WEIGHT]).min()
    relaxation = Relaxation(problem)
    assert len(relaxation.homes.member)
    good = relaxation.ascend(WEIGHT, Budget(evaluations=10**6), 100)
    assert 0.5 * least < good.bound <= least + 1e-9
    for _ in range(60):
        charge = rng.choice([0.3, 3.0]) * rng.random((10, 1)) * rng.integers(2, size=(10, 1))
        charge[relaxation.homes.free] = 0
        price = good.price * rng.uniform(0.8, 1.2, good.price.shape)
        assert relaxation.bound(WEIGHT, price, charge) <= least + 1e-9


def test_small_crowded_sources_are_bounded_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 50 applications a tenth of the gap closes at least, of some instances much more."""
    for seed in (1, 2, 3):
        problem = EdgeCloud.generate(seed, applications=50)
        charged = Relaxation(problem).ascend(0.01, Budget(evaluations=10**6), 300)
        with monkeypatch.context() as without:
            without.setattr(
                "placeopt.edge_cloud.search.prices.homes", lambda given: homes(given, 0)
            )
            plain = Relaxation(problem).ascend(0.01, Budget(evaluations=10**6), 300)
        assert charged.bound > 1.02 * plain.bound
        assert np.array_equal(charged.price, plain.price)
