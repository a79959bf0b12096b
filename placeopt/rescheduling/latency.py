"""How long a request takes: equations (2) to (9) in whole numbers, and the path that takes longest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.problem import decimals, scaled_up, unit_digits

if TYPE_CHECKING:
    from placeopt.rescheduling.instance import Rescheduling, Service

#: Up to so many parts of a millisecond the latency has a step.
_FINEST = 10**7


@dataclass(frozen=True)
class Hop:
    """A service on the critical path, with what it adds to the latency.

    Attributes
    ----------
    service : int
    depth : int
        Calls between the gateway and the service.
    network_ms, execution_ms : float
        Getting there (4), (8), and the mean execution (2).
    """

    service: int
    depth: int
    network_ms: float
    execution_ms: float


def call_order(services: Sequence[Service], numbers: dict[str, int], gateway: int) -> list[int]:
    """Return the services that the gateway reaches, every one after those that it calls.

    Raises
    ------
    DocumentError
        Services call each other in a circle, reached or not.
    """
    state = [0] * len(services)  # 0 unseen, 1 on the present path, 2 done
    order: list[int] = []
    reached = 0
    for root in (gateway, *range(len(services))):
        if state[root] == 0:
            _visit(services, numbers, root, state, order)
        reached = reached or len(order)  # what the gateway reaches is done first
    return order[:reached]


def _visit(
    services: Sequence[Service],
    numbers: dict[str, int],
    root: int,
    state: list[int],
    order: list[int],
) -> None:
    """Add what `root` reaches to the order, depth first, without recursion: graphs may be deep."""
    path, todo = [root], [_called(services, numbers, root)]
    state[root] = 1
    while path:
        if not todo[-1]:
            state[path[-1]] = 2
            order.append(path.pop())
            todo.pop()
            continue
        other = todo[-1].pop()
        if state[other] == 1:
            circle = [services[k].name for k in (*path[path.index(other) :], other)]
            where = f"services[{path[-1]}].calls"
            raise DocumentError(
                f"services call each other in a circle: {' -> '.join(circle)}",
                path=where,
                remedy="leave one of these calls out",
            )
        if state[other] == 0:
            state[other] = 1
            path.append(other)
            todo.append(_called(services, numbers, other))


def _called(services: Sequence[Service], numbers: dict[str, int], service: int) -> list[int]:
    return [
        numbers[name] for group in reversed(services[service].calls) for name in reversed(group)
    ]


class CallGraph:
    """The latency of a deployment, exactly: in whole parts of a millisecond.

    Attributes
    ----------
    parts : int
        Parts of a millisecond, so many that every mean over replicas and pairs of replicas is whole.
    """

    def __init__(self, problem: Rescheduling):
        services, nodes = problem.services, problem.nodes
        numbers = problem.service_numbers
        self.gateway = numbers[problem.gateway]
        self.order = call_order(services, numbers, self.gateway)
        self.groups = [
            [[numbers[name] for name in group] for group in service.calls] for service in services
        ]
        self.replicas = [len(service.replicas) for service in services]
        delays, kinds = problem.delays(), [n.kind for n in nodes]
        execution = [[s.execution_ms.get(kind, 0.0) for kind in kinds] for s in services]
        user = [n.user_latency_ms for n in nodes]
        times = [*user, *(x for row in [*delays, *execution] for x in row)]
        digits = unit_digits(times)
        self.delay = [scaled_up(row, digits).tolist() for row in delays]
        self.execution = [scaled_up(row, digits).tolist() for row in execution]
        self.user = scaled_up(user, digits).tolist()
        pairs = [
            self.replicas[i] * self.replicas[j]
            for i in self.order
            for group in self.groups[i]
            for j in group
        ]
        self._common = math.lcm(*pairs, *(self.replicas[i] for i in self.order))
        self.parts = 10**digits * self._common
        self._exact = digits == decimals(times)

    @property
    def step(self) -> float | None:
        """The smallest difference of two latencies in ms; None where it is too fine to be of use."""
        return 1 / self.parts if self._exact and self.parts <= _FINEST else None

    def mean_execution(self, counts: Sequence[Sequence[int]], i: int) -> int:
        """Mean execution time of service `i` over its replicas: equation (2), in parts."""
        return sum(n * self.execution[i][u] for u, n in enumerate(counts[i]) if n) * (
            self._common // self.replicas[i]
        )

    def mean_delay(self, counts: Sequence[Sequence[int]], i: int, j: int) -> int:
        """Mean latency between the replicas of two services: equations (3) and (4), in parts."""
        there = [(v, n) for v, n in enumerate(counts[j]) if n]
        total = sum(
            n * m * self.delay[u][v] for u, n in enumerate(counts[i]) if n for v, m in there
        )
        return total * (self._common // (self.replicas[i] * self.replicas[j]))

    def mean_user(self, counts: Sequence[Sequence[int]]) -> int:
        """Mean latency between users and the replicas of the gateway: equation (8), in parts."""
        g = self.gateway
        return sum(n * self.user[u] for u, n in enumerate(counts[g]) if n) * (
            self._common // self.replicas[g]
        )

    def processing(self, counts: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        """Return the processing time of every service, (5) to (7), in parts, and its slowest group (-1: it calls nothing)."""
        took, slowest = [0] * len(self.groups), [-1] * len(self.groups)
        for i in self.order:
            groups = [
                sum(self.mean_delay(counts, i, j) + took[j] for j in group)
                for group in self.groups[i]
            ]
            if groups:
                slowest[i] = max(range(len(groups)), key=groups.__getitem__)
            took[i] = self.mean_execution(counts, i) + max(groups, default=0)
        return took, slowest

    def latency(self, counts: Sequence[Sequence[int]]) -> int:
        """Return the end-to-end latency of replicas per (service, node): equation (9), in parts."""
        return self.mean_user(counts) + self.processing(counts)[0][self.gateway]

    def critical_path(self, counts: Sequence[Sequence[int]]) -> list[Hop]:
        """Return the services on the critical path in the order of the calls; what they add sums to the latency."""
        slowest = self.processing(counts)[1]
        found: list[Hop] = []
        todo = [(self.gateway, 0, self.mean_user(counts))]
        while todo:
            i, depth, network = todo.pop()
            found.append(
                Hop(i, depth, network / self.parts, self.mean_execution(counts, i) / self.parts)
            )
            if slowest[i] >= 0:
                todo += [
                    (j, depth + 1, self.mean_delay(counts, i, j))
                    for j in reversed(self.groups[i][slowest[i]])
                ]
        return found


def counts_of(homes: Sequence[Sequence[int]], num_nodes: int) -> np.ndarray:
    """Return the replicas per (service, node) of the nodes of every service's replicas."""
    return np.array([np.bincount(nodes, minlength=num_nodes) for nodes in homes], dtype=np.int64)
