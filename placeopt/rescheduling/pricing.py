"""Prices that sharpen the lower bounds of rescheduling: a Lagrangian over the tree of calls.

The relaxation of `placeopt.rescheduling.relaxation` forgets that services share nodes, and lets a
service with several callers stand elsewhere for each of them. Here every service stands once:

* A replica pays a price for the room that it takes; what all room earns is taken off.
* The slowest of parallel groups is at least any weighted mean of all groups. With these shares
  fixed, a service and a call count as often as they are on the way of a mean request.
* Each service keeps one call that leads to it. Of any other call c, from i to j, remains
  ``a(n_i) + b(n_j)``, with b free and ``a(n) = min over n' of (network(n, n') - b(n'))``.

What is left is a sum over a tree, which tables from the callees to the callers minimise exactly for
all numbers of moves at once (`placeopt.rescheduling.priced_tree`); every choice of prices, shares
and b gives bounds. A subgradient ascent with Polyak's step chooses them (Held, Wolfe, Crowder,
Mathematical Programming 6, 1974; `placeopt.rescheduling.ascent`). Where they come to their end,
plans are looked at in parts (`placeopt.rescheduling.branching`).
"""

from __future__ import annotations

import numpy as np

from placeopt.core.budget import Budget
from placeopt.rescheduling.branching import LatencyQuestion, Workspace
from placeopt.rescheduling.relaxation import NodeClasses

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
