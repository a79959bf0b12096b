"""Prices of demands and the bounds they prove, against brute force and exact fronts."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporal_instances import tiny

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.temporal.exact import bin_plans
from placeopt.temporal.exact.bounds import CoveringProgram, price_cuts
from placeopt.temporal.exact.tables import numbers
from placeopt.temporal.pools import pool_arrays
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import prices as prices_module
from placeopt.temporal.search.prices import DemandPrices

#: The module; the package gives a function of its name.
bounds = importlib.import_module("placeopt.temporal.exact.bounds")


def priced(problem: Temporal, learnt: bool = True) -> DemandPrices:
    """Return the prices of an instance, those learnt at one pair of rates among them."""
    prices = DemandPrices(pool_arrays(problem))
    load = prices.solve(1.0, 100.0, 20).load
    for size in range(len(prices.sizes) if learnt else 0):
        program = CoveringProgram(prices, size)
        program.learn(load[prices.size_of == size].sum(axis=0), Budget(seconds=60))
    return prices


@pytest.mark.parametrize("seed", [1, 2])
def test_no_pattern_that_fits_is_worth_more_than_its_machine(seed):
    """All combinations of up to four replicas that fit together are tried on every size."""
    problem = Temporal.generate(seed, requests=8)
    prices, capacity = priced(problem), pool_arrays(problem).capacity
    tried = 0
    for size, legal in enumerate(prices.legal_prices):
        room = capacity[prices.size_of == size][0]
        for count in range(1, 5):
            for pattern in itertools.combinations_with_replacement(range(len(legal[0])), count):
                if (prices.demands[list(pattern)].sum(axis=0) <= room).all():
                    tried += 1
                    assert legal[:, list(pattern)].sum(axis=1).max() <= 1 + 1e-12
    assert tried > 20


@given(st.integers(0, 10_000), st.floats(0, 3), st.floats(0, 300), st.sampled_from([2, 200]))
def test_the_bound_is_below_the_exact_front(seed, per_ms, per_interruption, kept):
    """No exact point has a lower weighted sum, even if demands are rounded down to two."""
    problem = tiny(seed, requests=4)
    front = bin_plans(Task(problem, problem.objectives, Budget(seconds=30), 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prices_module, "MAX_DEMANDS", kept)
        prices = priced(problem)
    least = (front.values @ np.array([per_ms, 1.0, per_interruption])).min()
    for rounds in (1, 20):
        bound = prices.solve(per_ms, per_interruption, rounds).bound
        assert 0 <= bound <= least * (1 + 1e-9)


@pytest.mark.parametrize("objectives", [None, ["cost_usd"], ["cost_usd", "interruption"]])
def test_cuts_hold_for_every_exact_point_and_bind_somewhere(objectives, monkeypatch):
    """The staircase of the price cuts alone lies below all exact points, and is not empty talk."""
    monkeypatch.setattr(bounds, "_MAX_PROGRAM", 0)
    closest = []
    for seed in range(3):
        problem = tiny(seed, requests=4)
        goals = problem.select(objectives)
        exact = bin_plans(Task(problem, goals, Budget(seconds=30), 1)).values
        data = numbers(problem, goals)
        found = data.values(bounds.lower_bounds(data, Budget(seconds=30), 10, 32)[0])
        assert (found[None] <= exact[:, None] + 1e-12).all(axis=2).any(axis=1).all()
        cost = [o.name for o in goals].index("cost_usd")
        closest.append(found[:, cost].max() / exact[:, cost].max())
    assert max(closest) > 0.6


def test_cuts_end_with_the_time():
    """Without time there is one cut, and it holds."""
    problem = Temporal.generate(1, requests=50)
    data = numbers(problem, problem.objectives)
    budget = Budget(seconds=60)
    budget.cancel()
    cuts, high, _ = price_cuts(data, budget)
    assert len(cuts) == 1 and cuts[0, 0] > 0 and (high > 0).all()
