"""Diving: what prices decide is fixed, the rest gets new prices; the plans are legal."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from edge_cloud_instances import random_instance

import placeopt
from placeopt.core.budget import Budget
from placeopt.edge_cloud.arrays import Placement
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.lns import PlanBuilder, dive, fix
from placeopt.edge_cloud.search.prices import Relaxation, no_columns, remember
from placeopt.warm_up import EVALUATIONS

#: The package has a function of the same name.
diving = importlib.import_module("placeopt.edge_cloud.search.lns")

WEIGHT = 0.01


def test_the_most_decided_applications_are_fixed_where_they_fit() -> None:
    """Of three on one node with room for one, the first in order is placed."""
    instance = EdgeCloud.generate(1, applications=3).arrays
    most = instance.demand.sum(axis=0)
    instance = instance._replace(capacity=np.tile(most, (len(instance.capacity), 1)))
    known = no_columns(instance)
    remember(instance, WEIGHT, np.zeros(len(instance.demand), dtype=int), np.arange(3), known)
    known.share[:, 0] = 0.5, 1.0, 0.9
    order = np.argsort(-known.share, axis=None, kind="stable")
    hosts, room = np.full(len(instance.demand), -1), instance.capacity.copy()
    room[0] = instance.demand[instance.first[1] : instance.first[2]].sum(axis=0)
    fixed = np.zeros(3, dtype=np.bool_)
    fix(instance, Placement(hosts, room), known, order, 0.999, 3, fixed)
    assert fixed.tolist() == [False, True, False] and not room[0].any()
    assert (hosts[instance.first[1] : instance.first[2]] == 0).all() and (hosts == 0).sum() > 0
    hosts, fixed = np.full(len(instance.demand), -1), np.zeros(3, dtype=np.bool_)
    fix(instance, Placement(hosts, most + 0 * room), known, order, 0.999, 2, fixed)
    assert fixed.tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(8))
def test_a_dive_breaks_no_rule(seed: int) -> None:
    """On crowded random instances; what found no place is left out whole."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    relaxation = Relaxation(problem)
    prices = relaxation.ascend(WEIGHT, Budget(evaluations=40).share())
    hosts = dive(relaxation, prices, Budget())
    broken = {v.kind for v in problem.evaluate(problem.plan(hosts)).violations}
    assert broken <= {"not-placed"}
    first = problem.arrays.first
    for a in range(len(first) - 1):
        assert len(set(hosts[first[a] : first[a + 1]] < 0)) == 1
    assert np.array_equal(hosts, dive(relaxation, prices, Budget()))


def test_a_dive_is_better_than_a_plan_built_in_one_go() -> None:
    """At 200 applications, for the same prices; the budget ends it early."""
    problem = EdgeCloud.generate(3, applications=200)
    relaxation = Relaxation(problem)
    prices = relaxation.ascend(WEIGHT, Budget(evaluations=150).share())
    make, budget = PlanBuilder(relaxation, np.random.default_rng(0)), Budget()
    found = dive(relaxation, prices, budget)
    assert (found >= 0).all()
    built = make.value(WEIGHT, make.build(prices))
    assert prices.bound <= make.value(WEIGHT, found) < built
    short = dive(relaxation, prices, Budget(evaluations=3 * len(diving.STEPS)))
    assert 0 < (short >= 0).sum() < len(short)
    assert budget.evaluations > 3 * len(diving.STEPS)


def test_lns_begins_with_a_dive_where_enough_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many evaluations on, and with time for it."""
    problem, dives = EdgeCloud.generate(3, applications=30), []
    monkeypatch.setattr(diving, "dive", lambda *given: dives.append(dive(*given)) or dives[-1])

    def solve(**limits: float) -> placeopt.Front:
        return placeopt.solve(problem, "lns", weight=WEIGHT, seed=1, **limits)

    solve(evaluations=60)
    with monkeypatch.context() as slower:  # as if a dive took hours, on any machine
        slower.setattr(diving, "_DIVE_STEPS", 10**9)
        solve(seconds=0.05)
    assert not dives
    front = solve(evaluations=2500)
    assert len(dives) == 1 and front.runs[0].evaluations <= 2500
    assert all(problem.evaluate(p.plan).values == p.values for p in front.points)


def test_warming_up_compiles_a_dive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small budget is enough for one, so that no user waits for it later."""
    dives = []
    monkeypatch.setattr(diving, "dive", lambda *given: dives.append(dive(*given)) or dives[-1])
    placeopt.solve(EdgeCloud.generate(1, applications=50), "lns", evaluations=EVALUATIONS)
    assert dives
