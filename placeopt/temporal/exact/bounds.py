"""The methods `bound` and `certify`: proven lower-bound sets for instances of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import Front, Objective, Point, Run, merge
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task, versions
from placeopt.temporal.exact.columns import bin_columns, count_sets
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.configuration_lp import ConfigurationLP
from placeopt.temporal.exact.dp import relaxed_front, states_fit
from placeopt.temporal.exact.grid import Grid
from placeopt.temporal.exact.numbers import Numbers, numbers
from placeopt.temporal.exact.staircase import staircase
from placeopt.temporal.heuristics import plans_at
from placeopt.temporal.instance import Temporal

#: Sets of replicas up to which a certificate tries bin plans before the configuration program.
_FEW_SETS = 3_000
#: Seconds that a certificate takes where the budget is used up.
_OWN_SECONDS = 10.0


def lower_bounds(
    numbers: Numbers, budget: Budget, cells: int, lines: int
) -> tuple[np.ndarray, ConfigurationLP | None]:
    """Return a lower-bound set in whole numbers, shape (k, 3), from the configuration program; and the program, None where cost is no goal."""
    low = least_values(numbers)
    if all(lease.price == 0 for lease in numbers.leases):
        return low[None, :], None
    program = ConfigurationLP(numbers)
    grid = Grid(program, low[[0, 2]], budget)
    grid.refine(cells)
    cuts = np.array(
        [(cut.constant, cut.latency, cut.interruption) for cut in program.cuts]
    ).reshape(-1, 3)
    bounds = staircase(cuts, grid.low, grid.high, lines)
    return np.maximum(bounds, low), program


def least_values(numbers: Numbers) -> np.ndarray:
    """Return the least latency and interruption of each request alone, added up, and cost 0: closed forms, shape (3,)."""
    usable = numbers.problem.arrays.usable
    places = np.array([numbers.places.index(offer.location) for offer in numbers.problem.offers])
    latency = np.where(usable, numbers.latency[:, places], 2**60).min(axis=1).sum()
    frequency = np.full(usable.shape, 2**60)
    for lease in numbers.leases:
        frequency[:, lease.offer] = np.minimum(frequency[:, lease.offer], lease.frequency)
    interruption = (
        np.where(usable, frequency, 2**60).min(axis=1) * numbers.share * numbers.replicas
    ).sum()
    return np.array([latency, 0, interruption], dtype=np.int64)


def bound(
    task: Task[Temporal],
    *,
    cells: int = 120,
    lines: int = 48,
) -> Front:
    """Return a proven lower-bound set, and plans built greedily at the dual prices of latency and interruption that prove it.

    As `start` of a search these plans gain little: benchmarks/temporal_search/dual_seeds.md.

    Parameters
    ----------
    seed : int
        Not used: nothing is left to chance.
    start : Front, optional
        Not used.
    cells : int
        Limits on latency and interruption at which the configuration program is solved at most; they are chosen where the bound is
        loose.
    lines : int
        Lines of the bound set in each of these two directions: it has about ``lines ** 2`` vectors.

    Raises
    ------
    UnsupportedError
        Not a temporal instance, or numbers too wide for exact sums.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    data = numbers(task.problem, task.objectives)
    found, program = lower_bounds(data, task.budget, cells, lines)
    completed = not task.budget.out_of_time
    bounds = data.values(found)
    prices = np.array(
        [(cut.latency, cut.interruption) for cut in program.cuts] if program else []
    ).reshape(-1, 2)
    prices *= np.array([data.units[0], data.units[2]]) / data.units[1]
    front = task.front(
        _until(
            plans_at(data.problem, task.objectives, prices if completed else prices[:2]),
            task.budget,
        ),
        method="bound",
        bounds=bounds.tolist(),
        solver_calls=program.solves if program else 0,
        completed=completed,
        parameters={"cells": cells, "lines": lines},
        libraries=["highspy"],
    )
    return replace(front, points=tuple(grade(front.objectives, front.points, bounds)))


def _until(candidates: Iterator[Candidate], budget: Budget) -> Iterator[Candidate]:
    """Hand on candidates until the time is over, three in any case: the extremes."""
    for count, candidate in enumerate(candidates):
        if count >= 3 and budget.out_of_time:
            return
        yield candidate


def certify(problem: Problem, front: Front, budget: Budget) -> Front:
    """Return the front with a lower-bound set, the status of every point, and how much of the hypervolume may be missing.

    Takes what is left of the budget, or some seconds if nothing is. Where the instance is small the bounds are the exact front of the
    relaxed problem (bin plans), otherwise those of the configuration program. The run that is added says under ``parameters`` the
    hypervolume gap to the proven bound.

    Raises
    ------
    UnsupportedError
        Not a temporal instance, or numbers too wide for exact sums.
    """
    data = numbers(problem, front.objectives)
    own = Budget(seconds=_OWN_SECONDS) if budget.exhausted and not budget.cancelled else budget
    bounds, method, solves = None, "bin-plans", 0
    if not data.limited and count_sets(data) <= _FEW_SETS:
        bounds = _relaxed_values(data, front, own)
    if bounds is None:
        method = "bound"
        bounds, program = lower_bounds(data, own, 120, 48)
        solves = program.solves if program else 0
    proven = Front(
        front.instance, front.objectives, bounds=tuple(map(tuple, data.values(bounds).tolist()))
    )
    merged = replace(merge([front, proven]), rejected=front.rejected, reasons=front.reasons)
    graded = replace(
        merged, points=tuple(grade(front.objectives, merged.points, np.array(merged.bounds)))
    )
    facts: dict[str, Any] = {"bounds": method}
    if (gap := graded.gap()) is not None:
        facts["hypervolume_gap"] = gap
    run = Run(
        "certify", None, own.seconds, 0, solves, not own.out_of_time, facts, versions(["highspy"])
    )
    return replace(graded, runs=(*graded.runs, run))


def _relaxed_values(data: Numbers, front: Front, budget: Budget) -> np.ndarray | None:
    """Return the front of the relaxed problem, None where it is out of reach."""
    columns = bin_columns(data)
    if not states_fit(columns):
        return None
    known = np.array([data.whole(p.plan) for p in front.points], dtype=np.int64).reshape(-1, 3)
    relaxed = relaxed_front(columns, Completion(columns), budget, known)
    return relaxed.values if relaxed.complete else None


def grade(
    objectives: tuple[Objective, ...], points: tuple[Point, ...], bounds: np.ndarray
) -> list[Point]:
    """Return the points with what a lower-bound set proves of them.

    A point that no bound vector dominates is non-dominated. Of another one the gap says by which share its cost could fall at
    most, the other objectives being no worse.
    """
    names = [o.name for o in objectives]
    cost = names.index("cost_usd") if "cost_usd" in names else None
    others = [k for k in range(len(names)) if k != cost]
    graded = []
    for point in points:
        values = np.array(point.values)
        below = bounds[(bounds <= values).all(axis=1)]
        if not (below < values).any():
            graded.append(replace(point, status="optimal", gap=None))
            continue
        gap = None
        if cost is not None:
            least = below[(below[:, others] <= values[others]).all(axis=1), cost].min()
            gap = float(1 - least / values[cost]) if values[cost] > 0 else 0.0
        graded.append(replace(point, status="bounded", gap=gap))
    return graded
