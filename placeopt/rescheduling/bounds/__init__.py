"""Lower bounds of rescheduling: the least latency that m moves allow, for every m.

A relaxation bounds all numbers of moves in milliseconds
(`placeopt.rescheduling.bounds.relaxation`). Where a certificate leaves time, prices of room raise
the bounds of those numbers that a front has plans of (`placeopt.rescheduling.bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front
from placeopt.rescheduling.bounds.relaxation import NodeClasses
from placeopt.rescheduling.bounds.tree import LatencyQuestion, Workspace
from placeopt.rescheduling.problem import Rescheduling

# -- prices ----------------------------------------------------------------------------------------

#: Gaps, as parts of the latency, to which all numbers of moves are brought one after another.
_STAGES = (0.02, 0.005, 1e-4)
#: Bounds that a question may take in its first turn; each later turn has twice as many.
_TURN = 200
#: Sums of rows that a run without a time limit makes in all: some seconds.
_WORK = 3e9


def sharpened(
    relaxation: NodeClasses, least: np.ndarray, targets: dict[int, float], budget: Budget
) -> np.ndarray:
    """Return bounds (most + 2,) that are nowhere below `least`, raised within a budget.

    Parameters
    ----------
    relaxation : NodeClasses
    least : ndarray, shape (most + 2,)
        Bounds in ms by the number of moves.
    targets : dict of int to float
        Latency in ms of the best plan by its number of moves, or the last column: where the bound
        is to be raised. It is left as it is where it comes near.
    """
    if budget.exhausted or not targets:
        return least
    space, least = Workspace(relaxation), least.copy()
    timed = budget.seconds_limit is not None
    affordable = np.inf if timed else _WORK / max(1, relaxation.cells)
    _raise_all(space, least, targets, budget, affordable)
    return least


def _raise_all(
    space: Workspace,
    least: np.ndarray,
    targets: dict[int, float],
    budget: Budget,
    affordable: float,
) -> None:
    """Raise the bounds `least` in place: each number of moves has a turn, then all a longer one.

    A number of moves whose gap is below the first stage has half of a turn: those that never get
    there would take all of the time.
    """
    stages = dict.fromkeys(sorted(targets, reverse=True), 0)
    questions: dict[int, LatencyQuestion] = {}
    turn = _TURN
    while stages:
        for m, stage in tuple(stages.items()):
            while stage < len(_STAGES) and least[m] >= (1 - _STAGES[stage]) * targets[m]:
                stage += 1
            if stage == len(_STAGES):
                del stages[m]
                continue
            if m not in questions or stage > stages[m]:
                near = min(questions, key=lambda k: abs(k - m), default=None)
                start = None if near is None else questions[near].start
                enough = (1 - _STAGES[stage]) * targets[m]
                questions[m] = LatencyQuestion(space, m, targets[m], enough, start)
            stages[m], question = stage, questions[m]
            end = space.evaluations + (turn // 2 if stage else turn)
            while not question.ended and space.evaluations < end:
                if budget.exhausted or space.evaluations >= affordable:
                    return
                question.go_on()
                least[: m + 1] = np.maximum(least[: m + 1], question.bound)
            if question.ended and least[m] < question.enough:
                del stages[m]
        turn *= 2


# -- bounds ----------------------------------------------------------------------------------------

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
