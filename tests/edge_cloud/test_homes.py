"""Charges for being at home: the sets that fit, what they pay, and that bounds stay bounds."""

from __future__ import annotations

import numpy as np
import pytest

import placeopt
from placeopt.core.budget import Budget
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.prices import Relaxation, homes

WEIGHT = 0.2


@pytest.mark.parametrize(("applications", "charged"), [(63, 63), (64, 0)])
def test_a_set_has_64_bits(applications: int, charged: int) -> None:
    """Where one application fits at a time each is a set; where there are too many all are free."""
    given = EdgeCloud.generate(1, applications=applications, near=1).arrays
    demand = 1 / np.diff(given.first)[given.application_of, None].repeat(2, axis=1)
    known = homes(given._replace(demand=demand, capacity=np.ones_like(given.capacity)))
    assert len(known.member) == len(known.sets) == charged


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
