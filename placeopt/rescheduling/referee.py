"""The referee of rescheduling: it makes a plan's moves one after another, in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.values import Evaluation, Violation
from placeopt.rescheduling.arrays import CallGraph, ReschedulingArrays

RESOURCES = ("cpu", "memory")


class ReschedulingReferee:
    """Judges the plans of one instance.

    Parameters
    ----------
    arrays : ReschedulingArrays
    graph : CallGraph
    services, nodes : sequence of str
        Names, for the messages of violations.
    """

    def __init__(
        self,
        arrays: ReschedulingArrays,
        graph: CallGraph,
        services: Sequence[str],
        nodes: Sequence[str],
    ):
        self._graph, self._services, self._nodes = graph, services, nodes
        self._demand, self._capacity = arrays.demand.tolist(), arrays.capacity.tolist()
        self._counts = arrays.home.tolist()
        self._load = np.tensordot(arrays.home, arrays.demand, axes=(0, 0)).tolist()

    def judge(self, moves: Sequence[tuple[int, int, int]]) -> Evaluation:
        """Return latency at the end and number of moves, (service, from, to) each, and violations.

        A move of a replica that is not there is a violation and is not made.
        """
        counts, load = [list(row) for row in self._counts], [list(row) for row in self._load]
        violations: list[Violation] = []
        for position, (i, source, target) in enumerate(moves):
            if counts[i][source] == 0:
                place = f"no replica of {self._services[i]!r} runs on {self._nodes[source]!r}"
                violations.append(Violation("not-there", 1.0, f"moves[{position}]: {place}"))
                continue
            # The new copy starts before the old one ends: equation (1) holds with both.
            for r, name in enumerate(RESOURCES):
                load[target][r] += self._demand[i][r]
                amount, capacity = load[target][r], self._capacity[target][r]
                if amount > capacity:
                    message = (
                        f"moves[{position}] starts {self._services[i]!r} on "
                        f"{self._nodes[target]!r}, which has too little {name} free"
                    )
                    excess = amount / capacity - 1 if capacity else 1.0
                    violations.append(Violation(f"{name}-capacity", excess, message))
                load[source][r] -= self._demand[i][r]
            counts[i][target] += 1
            counts[i][source] -= 1
        return Evaluation((self._graph.latency_ms(counts), float(len(moves))), tuple(violations))
