"""Diving: what prices decide is fixed, the rest gets new prices; the plans are legal."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from edge_cloud_instances import random_instance

import placeopt
from placeopt.core.budget import Budget
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.lns import PlanBuilder, dive
from placeopt.edge_cloud.search.prices import Relaxation
from placeopt.warm_up import EVALUATIONS

#: The package has a function of the same name.
diving = importlib.import_module("placeopt.edge_cloud.search.lns")

WEIGHT = 0.01


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


def test_warming_up_compiles_a_dive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small budget is enough for one, so that no user waits for it later."""
    dives = []
    monkeypatch.setattr(diving, "dive", lambda *given: dives.append(dive(*given)) or dives[-1])
    placeopt.solve(EdgeCloud.generate(1, applications=50), "lns", evaluations=EVALUATIONS)
    assert dives
