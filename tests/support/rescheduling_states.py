"""The exact front of a rescheduling instance by a search over its deployments."""

from __future__ import annotations

import math

import numpy as np

from placeopt.rescheduling.problem import Rescheduling


def state_search(problem: Rescheduling) -> list[tuple[float, float]]:
    """The exact front: breadth first over the deployments that single moves with room reach."""
    t, best, front = problem.arrays, math.inf, []
    home = tuple(map(tuple, t.home.tolist()))
    seen, level, moves = {home}, [home], 0
    while level:
        least = min(problem.graph.latency(state) for state in level) / problem.graph.parts
        if least < best:
            best = least
            front.append((least, float(moves)))
        found = []
        for state in level:
            free = (t.capacity - np.array(state).T @ t.demand).tolist()
            for i, row in enumerate(state):
                for u in range(len(row)):
                    for v in range(len(row)):
                        if (
                            row[u]
                            and u != v
                            and all(free[v][r] >= t.demand[i, r] for r in range(2))
                        ):
                            after = [list(x) for x in state]
                            after[i][u] -= 1
                            after[i][v] += 1
                            key = tuple(map(tuple, after))
                            if key not in seen:
                                seen.add(key)
                                found.append(key)
        level, moves = found, moves + 1
    return sorted(front)
