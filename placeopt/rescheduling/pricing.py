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
    for stage in _STAGES:
        _raise_all(space, least, _enough(least, targets, stage), targets, budget, affordable)
    return least


def _enough(least: np.ndarray, targets: dict[int, float], stage: float) -> dict[int, float]:
    """Return the numbers of moves that a stage looks at, and the bounds that are enough there."""
    return {
        m: (1 - stage) * targets[m]
        for m in sorted(targets, reverse=True)
        if least[m] < (1 - stage) * targets[m]
    }


def _raise_all(
    space: Workspace,
    least: np.ndarray,
    enough: dict[int, float],
    targets: dict[int, float],
    budget: Budget,
    affordable: float,
) -> None:
    """Bring bounds to what is enough, in turns that grow; `least` changes."""
    questions: dict[int, LatencyQuestion] = {}
    turn, open_ones = _TURN, list(enough)
    while open_ones:
        for m in tuple(open_ones):
            if least[m] >= enough[m]:
                open_ones.remove(m)
                continue
            if m not in questions:
                near = min(questions, key=lambda k: abs(k - m), default=None)
                start = None if near is None else questions[near].start
                questions[m] = LatencyQuestion(space, m, targets[m], enough[m], start)
            before, question = space.evaluations, questions[m]
            while not question.ended and space.evaluations - before < turn:
                if budget.exhausted or space.evaluations >= affordable:
                    return
                question.go_on()
                least[: m + 1] = np.maximum(least[: m + 1], question.bound)
            if question.ended:
                open_ones.remove(m)
        turn *= 2
