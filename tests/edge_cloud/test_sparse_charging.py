"""Charges of the patterns of small nodes of large instances, against HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from edge_cloud_instances import optimum, tiny

from placeopt.core.budget import Budget
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search import catalogue, sparse_charging
from placeopt.edge_cloud.local_search.ascent import new_ascent
from placeopt.edge_cloud.local_search.climbs import Climbs
from placeopt.edge_cloud.local_search.listing import new_listing
from placeopt.edge_cloud.local_search.prices import Relaxation
from placeopt.edge_cloud.local_search.shapes import shapes

WEIGHT = 0.1


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_is_below_the_bound(seed: int) -> None:
    """HiGHS finds none; patterns prove no less than prices and homes."""
    problem = tiny(seed)
    relaxation = Relaxation(problem)
    plain = relaxation.ascend(WEIGHT, Budget(2000), 200)
    better = relaxation.ascend(WEIGHT, Budget(2000), 200, patterns=True)
    assert plain.bound <= better.bound <= optimum(problem, WEIGHT) * (1 + 1e-7)
    assert (plain.price == better.price).all()


def test_patterns_raise_the_bound() -> None:
    """Where small nodes are contended: here by more than a hundredth, without a clock."""
    relaxation = Relaxation(EdgeCloud.generate(4, applications=50, load=0.4))
    plain = relaxation.ascend(0.01, Budget(2000), 200)
    better = relaxation.ascend(0.01, Budget(2000), 200, patterns=True)
    assert better.bound > 1.01 * plain.bound


@pytest.mark.parametrize("seed", range(6))
def test_any_charges_prove_a_bound(seed: int) -> None:
    """Random prices and extra charges; what is proven anew, from what is known now, is the same."""
    problem, rng = tiny(seed), np.random.default_rng(seed)
    instance, known = problem.arrays, shapes(problem.arrays)
    assert known is not None and len(known.small)
    known_so_far = catalogue.new_catalogue(instance, known)
    relaxation = Relaxation(problem)
    climbs = Climbs(instance, WEIGHT, relaxation.unit, 1.0)
    for _ in range(5):
        relaxation.bound(WEIGHT, rng.random(instance.capacity.shape))
        climbs.remember(relaxation.hosts)
    catalogue.take_over(instance, known_so_far, climbs.columns)
    count = int(known_so_far.payers.number[0])
    extra = rng.random((count, 1)) * rng.integers(2, size=(count, 1))
    price = new_ascent(rng.random(instance.capacity.shape) * rng.choice([0.01, 0.1, 1.0]))
    ascents = sparse_charging._with(known_so_far, price, new_ascent(extra))
    masks = 1 << int(np.diff(instance.first).max())
    scratch = np.zeros((len(instance.capacity), masks))
    fixed = new_listing(instance, 1), scratch
    proven = sparse_charging.prove(instance, WEIGHT, known_so_far, ascents, *fixed, 1)
    assert proven <= optimum(problem, WEIGHT) + 1e-7
    again = sparse_charging._with(known_so_far, ascents.price, ascents.extra)
    assert sparse_charging.prove(instance, WEIGHT, known_so_far, again, *fixed, 2) == pytest.approx(
        proven
    )


def test_what_is_too_large_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is then that of the prices."""
    relaxation = Relaxation(EdgeCloud.generate(2, applications=50, load=0.4))
    plain = relaxation.ascend(0.01, Budget(2000), 200)
    monkeypatch.setattr(sparse_charging, "_MOST", 100)
    assert relaxation.ascend(0.01, Budget(2000), 200, patterns=True).bound == plain.bound


def test_the_same_budget_proves_the_same() -> None:
    """Nothing is random."""
    problem = EdgeCloud.generate(3, applications=30, load=0.4)
    found = [
        Relaxation(problem).ascend(0.01, Budget(150), 100, patterns=True).bound for _ in range(2)
    ]
    assert found[0] == found[1]
