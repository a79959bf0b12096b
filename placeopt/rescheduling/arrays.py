"""A rescheduling instance as arrays: S services, N nodes, by number in document order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.numbers import begins, decimals, grouped, scaled_up, unit_digits

# -- calls -----------------------------------------------------------------------------------------

#: With more parts of a millisecond than these, the latency has no step.
_MAX_PARTS = 10**7

Groups = Sequence[Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Hop:
    """A service on the critical path, with what it adds to the latency.

    Attributes
    ----------
    service : int
    network_ms, execution_ms : float
        Getting there (4), (8), and the mean execution (2).
    """

    service: int
    network_ms: float
    execution_ms: float


def call_order(names: Sequence[str], groups: Groups, gateway: int) -> list[int]:
    """Return the services that the gateway reaches, each after those that it calls.

    Raises
    ------
    DocumentError
        Services call each other in a circle, reached or not.
    """
    callees = {i: [j for group in of_service for j in group] for i, of_service in enumerate(groups)}
    try:
        order = list(TopologicalSorter(callees).static_order())
    except CycleError as error:
        circle = error.args[1][:0:-1]  # graphlib lists callees first, and one service twice
        first = circle.index(min(circle))
        circle = [*circle[first:], *circle[:first]]
        raise DocumentError(
            "services call each other in a circle: "
            + " -> ".join(names[i] for i in (*circle, circle[0])),
            path=f"services[{circle[-1]}].calls",
            remedy="leave one of these calls out",
        ) from None
    reached, todo = {gateway}, [gateway]
    while todo:
        result = set(callees[todo.pop()]) - reached
        reached |= result
        todo += result
    return [i for i in order if i in reached]


class CallGraph:
    """The latency of a deployment in whole parts of a millisecond.

    A deployment is the number of replicas by service and node, ``counts[i][u]``.

    Parameters
    ----------
    names : sequence of str
        Names of the services, for messages.
    groups : sequence
        The callees of every group of every service.
    gateway : int
    replicas : sequence of int
    execution : sequence of sequences of float
        ms by service and node.
    user : sequence of float
        ms between the users and every node.
    delay : sequence of sequences of float
        ms from every node to every node.

    Attributes
    ----------
    order : list of int
        Services that the gateway reaches, callees first.
    parts : int
        Parts of a millisecond, so many that every mean over replicas and their pairs is whole.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        groups: Groups,
        gateway: int,
        replicas: Sequence[int],
        execution: Sequence[Sequence[float]],
        user: Sequence[float],
        delay: Sequence[Sequence[float]],
    ):
        self.gateway, self.groups, self.replicas = gateway, groups, replicas
        self.order = call_order(names, groups, gateway)
        times = [*user, *(ms for rows in (delay, execution) for row in rows for ms in row)]
        digits = unit_digits(times)
        self._exact = digits == decimals(times)
        self._delay = [scaled_up(row, digits).tolist() for row in delay]
        self._execution = [scaled_up(row, digits).tolist() for row in execution]
        self._user = scaled_up(user, digits).tolist()
        pairs = [
            replicas[i] * replicas[j] for i in self.order for group in groups[i] for j in group
        ]
        self._common = math.lcm(*pairs, *(replicas[i] for i in self.order))
        self.parts = 10**digits * self._common

    @property
    def step(self) -> float | None:
        """The smallest difference of two latencies in ms; None where it is too fine for use."""
        return 1 / self.parts if self._exact and self.parts <= _MAX_PARTS else None

    def mean_execution(self, counts: Sequence[Sequence[int]], i: int) -> int:
        """Return the mean execution time of a service over its replicas: (2), in parts."""
        return self._mean(self._execution[i], counts, i)

    def mean_user(self, counts: Sequence[Sequence[int]]) -> int:
        """Return the mean latency between users and the gateway's replicas: (8), in parts."""
        return self._mean(self._user, counts, self.gateway)

    def _mean(self, times: Sequence[int], counts: Sequence[Sequence[int]], i: int) -> int:
        total = sum(n * ms for n, ms in zip(counts[i], times, strict=True) if n)
        return total * (self._common // self.replicas[i])

    def mean_delay(self, counts: Sequence[Sequence[int]], i: int, j: int) -> int:
        """Return the mean latency between replicas of two services: (3) and (4), in parts."""
        there = [(v, n) for v, n in enumerate(counts[j]) if n]
        total = sum(
            n * m * self._delay[u][v] for u, n in enumerate(counts[i]) if n for v, m in there
        )
        return total * (self._common // (self.replicas[i] * self.replicas[j]))

    def processing(self, counts: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        """Return the processing time and the slowest group of every service: (5) to (7).

        Times are in parts. The slowest group of a service that calls nothing is -1.
        """
        times, slowest = [0] * len(self.groups), [-1] * len(self.groups)
        for i in self.order:
            groups = [
                sum(self.mean_delay(counts, i, j) + times[j] for j in group)
                for group in self.groups[i]
            ]
            if groups:
                slowest[i] = max(range(len(groups)), key=groups.__getitem__)
            times[i] = self.mean_execution(counts, i) + max(groups, default=0)
        return times, slowest

    def latency(self, counts: Sequence[Sequence[int]]) -> int:
        """Return the end-to-end latency: (9), in parts."""
        return self.mean_user(counts) + self.processing(counts)[0][self.gateway]

    def latency_ms(self, counts: Sequence[Sequence[int]]) -> float:
        """Return the end-to-end latency: (9), in ms."""
        return self.latency(counts) / self.parts

    def critical_path(self, counts: Sequence[Sequence[int]]) -> list[Hop]:
        """Return the services on the critical path in the order of the calls.

        What they add sums to the latency.
        """
        slowest = self.processing(counts)[1]
        results: list[Hop] = []
        todo = [(self.gateway, self.mean_user(counts))]
        while todo:
            i, network = todo.pop()
            execution = self.mean_execution(counts, i)
            results.append(Hop(i, network / self.parts, execution / self.parts))
            if slowest[i] >= 0:
                callees = reversed(self.groups[i][slowest[i]])
                todo += [(j, self.mean_delay(counts, i, j)) for j in callees]
        return results


# -- arrays ----------------------------------------------------------------------------------------


class ReschedulingArrays(NamedTuple):
    """What encoder, sequence, simulator and search read of an instance; times are in ms.

    Service i has the groups ``group_first[i]`` to ``group_first[i + 1]``. Group g has the calls
    ``call_first[g]`` to ``call_first[g + 1]``. Call c goes from ``caller[c]`` to ``callee[c]``.
    """

    demand: np.ndarray  # int64 (S, 2) cpu and memory of a replica, whole units
    capacity: np.ndarray  # int64 (N, 2)
    home: np.ndarray  # int64 (S, N) replicas per service and node now
    replicas: np.ndarray  # int64 (S,)
    execution: np.ndarray  # (S, N)
    user: np.ndarray  # (N,) latency to the users
    delay: np.ndarray  # (N, N) latency from node to node
    own: np.ndarray  # (S, N) execution, and for the gateway the latency to the users as well
    order: np.ndarray  # int64 (reached,) services that the gateway reaches, callees first
    group_first: np.ndarray  # int64 (S + 1,)
    call_first: np.ndarray  # int64 (groups + 1,)
    caller: np.ndarray  # int64 (calls,)
    callee: np.ndarray  # int64 (calls,)
    touch_first: np.ndarray  # int64 (S + 1,) service i makes or receives the calls
    touch: np.ndarray  # int64 (2 calls,) touch[touch_first[i]] to touch[touch_first[i + 1]]


def build(
    *,
    demand: np.ndarray,
    capacity: np.ndarray,
    homes: Sequence[Sequence[int]],
    execution: Sequence[Sequence[float]],
    user: Sequence[float],
    delay: Sequence[Sequence[float]],
    groups: Sequence[Sequence[Sequence[int]]],
    order: Sequence[int],
) -> ReschedulingArrays:
    """Return the arrays of an instance.

    Parameters
    ----------
    homes : sequence of sequences of int
        The node of every replica of every service.
    groups : sequence of sequences of sequences of int
        The callees of every group of every service.
    order : sequence of int
        Services that the gateway reaches, callees first; the gateway is the last.
    """
    num_services, num_nodes = len(homes), len(user)
    times, to_users = np.array(execution, dtype=float), np.array(user, dtype=float)
    own = times.copy()
    own[order[-1]] += to_users
    calls = [(i, j) for i, of_service in enumerate(groups) for group in of_service for j in group]
    caller, callee = np.array(calls, dtype=np.int64).reshape(-1, 2).T.copy()
    touch_first, touch = grouped(np.concatenate((caller, callee)), num_services)
    sizes = [len(group) for of_service in groups for group in of_service]
    return ReschedulingArrays(
        demand=demand,
        capacity=capacity,
        home=np.array([np.bincount(nodes, minlength=num_nodes) for nodes in homes], dtype=np.int64),
        replicas=np.array([len(nodes) for nodes in homes], dtype=np.int64),
        execution=times,
        user=to_users,
        delay=np.array(delay, dtype=float),
        own=own,
        order=np.array(order, dtype=np.int64),
        group_first=begins([len(of_service) for of_service in groups]),
        call_first=begins(sizes),
        caller=caller,
        callee=callee,
        touch_first=touch_first,
        touch=touch % max(1, len(calls)),
    )
