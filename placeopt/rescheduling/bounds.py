"""Lower bounds of rescheduling: the least latency that m moves allow, for every m.

A relaxation bounds all numbers of moves in milliseconds (`placeopt.rescheduling.relaxation`). Where
a certificate leaves time, prices of room raise the bounds of those numbers that a front has plans
of (`placeopt.rescheduling.pricing`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.pricing import sharpened
from placeopt.rescheduling.relaxation import NodeClasses

#: Moves that are looked at one by one, and the sum of them over all calls; plans of more moves
#: share one bound.
_MAX_MOVES, _MAX_COLUMNS = 256, 20_000


def bounds(problem: Rescheduling, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the bounds of the relaxation, which takes milliseconds, then those by prices.

    Prices take what the budget leaves, and end by themselves.
    """
    relaxation, columns = _relaxation(problem), problem.columns(front.objectives)
    least = relaxation.solve()
    yield _in_values(problem, least, columns)
    targets = _targets(problem, front, len(least) - 1)
    yield _in_values(problem, sharpened(relaxation, least, targets, budget), columns)


def _in_values(problem: Rescheduling, least: np.ndarray, columns: list[int]) -> Bounds:
    latency = _rounded(problem, least)
    return Bounds(np.column_stack((latency, np.arange(len(latency))))[:, columns])


def least_latencies(problem: Rescheduling) -> np.ndarray:
    """Return lower bounds on the latency in ms by the number of moves.

    Returns
    -------
    ndarray, shape (k,)
        Entry m is a latency that no plan of at most m moves beats. The last entry holds for any
        number of moves. The entries never increase.
    """
    return _rounded(problem, _relaxation(problem).solve())


def _relaxation(problem: Rescheduling) -> NodeClasses:
    arrays = problem.arrays
    affordable = max(1, _MAX_COLUMNS // max(1, len(arrays.caller)))
    most = min(_MAX_MOVES, affordable, int(arrays.replicas[arrays.order].sum()))
    return NodeClasses(arrays, problem.graph.groups, most)


def _targets(problem: Rescheduling, front: Front, last: int) -> dict[int, float]:
    """Return the latency of the best plan by its number of moves, as columns of the tables."""
    goals = [o.name for o in front.objectives]
    if "latency_ms" not in goals:
        return {}
    latency = goals.index("latency_ms")
    best: dict[int, float] = {}
    for point in front.points:
        moves = int(point.values[goals.index("moves")]) if "moves" in goals else last
        m = min(moves, last)
        best[m] = min(point.values[latency], best.get(m, np.inf))
    best.pop(0, None)  # no moves: the bound is the latency now
    return best


def _rounded(problem: Rescheduling, least: np.ndarray) -> np.ndarray:
    """Return bounds in whole steps of the latency, safe against rounding, that never increase."""
    graph = problem.graph
    if graph.step is None:  # sums of floats, rounded to the safe side
        least = least * (1 - 1e-12)
    else:  # latencies are whole numbers of parts
        least = np.ceil(least * graph.parts * (1 - 1e-12) - 1e-3) / graph.parts
    least[0] = problem.initial_latency
    return np.asarray(np.minimum.accumulate(least))
