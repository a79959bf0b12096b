"""The fewest moves from one deployment to another, each with room when it is made."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placeopt.rescheduling.instance import Rescheduling

State = tuple[tuple[int, ...], ...]


def shortest(
    problem: Rescheduling, target: np.ndarray, most_states: int = 20_000
) -> tuple[list[tuple[int, int, int]] | None, bool]:
    """Search all deployments on the way, nearest to the target first (A*; the replicas out of place are the bound).

    Parameters
    ----------
    target : ndarray of int, shape (services, nodes)
    most_states : int
        Deployments looked at before the search gives up.

    Returns
    -------
    moves : list of (service, from, to) or None
        None where no order was found.
    proven : bool
        Whether there is none, or none that is shorter.
    """
    goal: State = tuple(map(tuple, target.tolist()))
    home: State = tuple(map(tuple, problem.arrays.home.tolist()))
    came: dict[State, tuple[State, tuple[int, int, int]] | None] = {home: None}
    cost = {home: 0}
    queue = [(_misplaced(home, goal), 0, home)]
    while queue:
        _, negative, state = heapq.heappop(queue)
        if state == goal:
            return _trace(came, state), True
        if -negative > cost[state]:
            continue
        if len(came) > most_states:
            return None, False
        for move, after in _neighbours(problem, state):
            if cost[state] + 1 < cost.get(after, 1 << 60):
                cost[after] = cost[state] + 1
                came[after] = (state, move)
                heapq.heappush(queue, (cost[after] + _misplaced(after, goal), -cost[after], after))
    return None, True


def _misplaced(state: State, goal: State) -> int:
    return sum(
        max(0, n - m)
        for row, other in zip(state, goal, strict=True)
        for n, m in zip(row, other, strict=True)
    )


def _neighbours(problem: Rescheduling, state: State) -> list[tuple[tuple[int, int, int], State]]:
    t, counts = problem.arrays, np.array(state)
    free = t.capacity - np.tensordot(counts, t.demand, axes=(0, 0))
    found = []
    for i, row in enumerate(state):
        fits = np.flatnonzero((free >= t.demand[i]).all(axis=1)).tolist()
        for u, n in enumerate(row):
            for v in fits if n else ():
                if v != u:
                    after = list(row)
                    after[u] -= 1
                    after[v] += 1
                    found.append(((i, u, v), (*state[:i], tuple(after), *state[i + 1 :])))
    return found


def _trace(
    came: dict[State, tuple[State, tuple[int, int, int]] | None], state: State
) -> list[tuple[int, int, int]]:
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]
