"""Cuts by whole replicas and machines: below every plan, above those of the program they raise."""

from __future__ import annotations

import numpy as np
import pytest
from temporal_instances import tiny

from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.temporal.exact import bin_plans
from placeopt.temporal.exact.bounds import least_values
from placeopt.temporal.exact.configuration_lp import ConfigurationLP, CostCut
from placeopt.temporal.exact.numbers import Numbers, numbers
from placeopt.temporal.exact.whole_machines import WholeMachines, _spread, _WorkCover, raised
from placeopt.temporal.instance import Temporal
from placeopt.temporal.knapsack import Knapsack


def pairs(data: Numbers, parts: int) -> list[tuple[CostCut, CostCut]]:
    """Return cuts of the configuration program, each with the one that whole numbers prove."""
    program, budget = ConfigurationLP(data), Budget()
    whole = WholeMachines(program)
    low, high = least_values(data), (data.max_latency, data.max_interruption)
    per_latency, per_interruption = (
        (program.solve(*high, budget) or 1.0) / max(most - least, 1)
        for most, least in zip(high, low[[0, 2]], strict=True)
    )
    result = []
    for a, c in np.ndindex(parts, parts):
        rates = 0.1 * 5.0**a * per_latency, 0.1 * 5.0**c * per_interruption
        program.solve_at(*rates, budget)
        known = CostCut(program.cuts[-1].constant, *rates)
        result.append((known, whole.cut(known, program.rates[-1], budget)))
    return result


def above(cuts: list[CostCut], whole: np.ndarray) -> float:
    """Return how far cuts are above plans at most, as a share of their cost."""
    return max(
        (cut.at(float(plan[0]), float(plan[2])) - plan[1]) / max(plan[1], 1)
        for cut in cuts
        for plan in whole
    )


def test_no_plan_of_an_exact_front_is_below_a_cut() -> None:
    """Cuts hold for all optimal plans and are no lower than those that they raise; some rise."""
    rises, nearest = [], []
    for seed in (0, 1):
        problem = (
            Temporal.generate(seed=seed, requests=4, max_replicas=2)
            if seed % 2
            else tiny(seed, requests=3, replicas=3, horizon=4)
        )
        data = numbers(problem, problem.objectives)
        front = bin_plans(Task(problem, problem.objectives, Budget(), 1))
        plans = data.all_whole(point.plan for point in front.points)
        found = pairs(data, 2)
        nearest.append(above([whole for _, whole in found], plans))
        rises += [whole.constant / known.constant - 1 for known, whole in found if known.constant]
    assert max(nearest) <= 1e-9
    assert min(rises) >= 0 and max(rises) > 0.02
    assert max(nearest) > -0.01  # one proves an optimum


def test_limits_on_machines_raise_cuts() -> None:
    """Fewer machines of an offer cost no less, and plenty of them changes nothing."""
    problem = Temporal.generate(seed=3, requests=4, max_replicas=2)
    document = problem.to_document()

    def constants(most: int) -> np.ndarray:
        offers = [offer | {"max_instances": most} for offer in document["offers"]]
        limited = Temporal.from_document(document | {"offers": offers})
        found = pairs(numbers(limited, limited.objectives), 2)
        return np.array([whole.constant for _, whole in found])

    free = np.array([whole.constant for _, whole in pairs(numbers(problem, problem.objectives), 2)])
    assert np.allclose(constants(50), free, rtol=5e-3)
    assert (constants(1) >= free * (1 - 5e-3)).all()


@pytest.mark.parametrize("horizon", [None, 6])
def test_rates_hold_for_all_patterns(horizon: int | None) -> None:
    """The amount that rates say is never above that which a machine is paid for."""
    rng = np.random.default_rng(5)
    durations, replicas = np.array([2, 3, 5, 4]), np.array([2, 1, 2, 3])
    knapsack = Knapsack(rng.integers(1, 5, size=(4, 2)), replicas, np.array([7, 8]))
    cover = _WorkCover(knapsack, durations, horizon)
    rates = cover.rates(replicas.astype(float), Budget())
    assert (rates >= 0).all() and rates.any()
    # Side by side at once for as long as the shortest of them lasts, then the others go on.
    for _ in range(200):
        worth = rng.random(4) * rates
        counts = knapsack.best(worth, np.zeros(4))[1]
        slots = durations[counts > 0].max(initial=0)
        assert rates @ counts <= (slots if horizon is None else 1) + 1e-9


def test_raised_cuts_end_with_the_time() -> None:
    """Without time no cut is added; the rates of more cuts differ and come from coarse to fine."""
    problem = Temporal.generate(seed=1, requests=5, max_replicas=2)
    data = numbers(problem, problem.objectives)
    program, ends = ConfigurationLP(data), np.array([[0, 0], [10**6, 10**6]])
    latency, _, interruption = least_values(data)
    program.solve(latency, interruption, Budget())
    cuts = np.array(program.cuts)
    assert len(raised(program, cuts, ends, Budget(seconds=1e-9))) == len(cuts)
    rates = list(_spread(cuts, ends))
    assert len(set(rates)) == len(rates) >= 300
