"""Rescheduling with less capacity kept: nodes in classes, solved from the callees to the callers.

Two things are relaxed. Nodes that are alike form a class: each of its nodes counts as fast and as
near as the best of them. Of the capacity only what a class holds of a service, or of a caller and
its callee, is kept. What is left is solved exactly from the callees to the callers: the least
latency of a service and of all that it calls, by its replicas in each class and by the moves that
may be spent there. A service with several callers may stand elsewhere for each of them; its moves
count once.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, prod

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel
from placeopt.rescheduling.arrays import Groups, ReschedulingArrays

# -- tables ----------------------------------------------------------------------------------------


@allocating_kernel
def entered(network, table):
    """Return the least of ``network[r, s] + table[s, m]`` over s, shape (rows, columns).

    Parameters
    ----------
    network : (rows, rows of the callee)
    table : (rows of the callee, columns)
    """
    rows, columns = network.shape[0], table.shape[1]
    result = np.full((rows, columns), np.inf)
    for r in range(rows):
        for s in range(table.shape[0]):
            way = network[r, s]
            if way < np.inf:
                for m in range(columns):
                    result[r, m] = min(result[r, m], way + table[s, m])
    return result


@allocating_kernel
def shared(one, other, parallel):
    """Return two tables as one for the best way to share moves, shape of both.

    Their times are added; in `parallel` the larger one counts.
    """
    result = np.maximum(one, other) if parallel else one + other
    for r in range(one.shape[0]):
        for m in range(one.shape[1] - 1):
            least = np.inf
            for k in range(m + 1):
                here, there = one[r, k], other[r, m - k]
                least = min(least, max(here, there) if parallel else here + there)
            result[r, m] = least
    return result


# -- the relaxation --------------------------------------------------------------------------------

#: Largest number of cells of all calls: replicas of caller and of callee by class, moves.
_MAX_CELLS = 10_000_000


class NodeClasses:
    """An instance whose nodes form classes, solved from the callees to the callers.

    Tables by replicas per class have a column for every number of moves from 0 to `most`, and a
    last one for any number.
    """

    def __init__(self, arrays: ReschedulingArrays, groups: Groups, most: int):
        self.arrays, self.groups, self.most = arrays, groups, most
        labels = _classes(arrays, self._num_classes())
        members = [np.flatnonzero(labels == k) for k in range(labels.max() + 1)]
        self.capacity = np.stack([arrays.capacity[nodes].sum(axis=0) for nodes in members])
        self.own = np.stack([arrays.own[:, nodes].min(axis=1) for nodes in members], axis=1)
        self.home = np.stack([arrays.home[:, nodes].sum(axis=1) for nodes in members], axis=1)
        self.delay = np.array(
            [[arrays.delay[np.ix_(a, b)].min() for b in members] for a in members]
        )
        self.counts = {i: self._placements(i, members) for i in arrays.order.tolist()}
        self.moves = {
            i: np.maximum(rows - self.home[i], 0).sum(axis=1) for i, rows in self.counts.items()
        }
        self._networks: dict[tuple[int, int], np.ndarray] = {}
        calls = [(i, j) for i in self.counts for group in groups[i] for j in group]
        #: Sums that one pass over all tables takes.
        self.cells = (most + 2) * sum(len(self.counts[i]) * len(self.counts[j]) for i, j in calls)

    def solve(self) -> np.ndarray:
        """Return the least latency by the number of moves, shape (most + 2,)."""
        order = self.arrays.order.tolist()
        tables: dict[int, np.ndarray] = {}
        spent = self.owners()
        for i in order:
            tables[i] = self._with_own(i, self._groups(i, tables, spent))
        return np.asarray(tables[order[-1]].min(axis=0))

    def owners(self) -> set[tuple[int, int, int]]:
        """Return the calls (caller, group, position) that pay for the moves of the callee."""
        first: dict[int, tuple[int, int, int]] = {}
        for i in self.arrays.order.tolist():
            for g, group in enumerate(self.groups[i]):
                for position, j in enumerate(group):
                    first.setdefault(j, (i, g, position))
        return set(first.values())

    def _groups(
        self, i: int, tables: dict[int, np.ndarray], spent: set[tuple[int, int, int]]
    ) -> np.ndarray:
        """Return the least time of the slowest group of a service."""
        slowest = np.zeros((len(self.counts[i]), self.most + 2))
        for g, group in enumerate(self.groups[i]):
            total = np.zeros_like(slowest)
            for position, j in enumerate(group):
                callee = tables[j]
                if (i, g, position) not in spent:
                    callee = np.repeat(callee[:, -1:], self.most + 2, axis=1)
                total = shared(total, entered(self.network(i, j), callee), False)
            slowest = shared(slowest, total, True)
        return slowest

    def network(self, i: int, j: int) -> np.ndarray:
        """Return the mean latency of a call, ms, by the rows of caller and callee.

        It is infinite where a class has no room for both.
        """
        if (i, j) not in self._networks:
            here, there, demand = self.counts[i], self.counts[j], self.arrays.demand
            pairs = here.sum(axis=1)[:, None] * there.sum(axis=1)
            network = here @ self.delay @ there.T / pairs
            for k, capacity in enumerate(self.capacity):
                load = here[:, k, None, None] * demand[i] + there[:, k, None] * demand[j]
                network[(load > capacity).any(axis=2)] = np.inf
            self._networks[i, j] = network
        return self._networks[i, j]

    def own_time(self, i: int) -> np.ndarray:
        """Return the mean execution of a service, for the gateway with the way to users, by row."""
        return np.asarray(self.counts[i] @ self.own[i] / self.counts[i].sum(axis=1))

    def spend(self, i: int, slowest: np.ndarray) -> np.ndarray:
        """Return times by row and by moves once the moves of the service itself are spent."""
        table = np.full_like(slowest, np.inf)
        for row, m in enumerate(self.moves[i].tolist()):
            if m <= self.most:
                table[row, m:-1] = slowest[row, : self.most + 1 - m]
        table[:, -1] = slowest[:, -1]
        return table

    def _with_own(self, i: int, slowest: np.ndarray) -> np.ndarray:
        """Add a service's own time and moves to the time of its groups."""
        return np.asarray(self.spend(i, slowest) + self.own_time(i)[:, None])

    def _placements(self, i: int, members: list[np.ndarray]) -> np.ndarray:
        """Return the ways to spread a service over the classes that hold it, shape (k, classes)."""
        replicas, demand = int(self.arrays.replicas[i]), self.arrays.demand[i]
        asks = demand > 0
        fit = self.arrays.capacity[:, asks] // demand[asks]
        holds = np.minimum(fit.min(axis=1, initial=replicas), replicas)
        room = np.array([holds[nodes].sum() for nodes in members])
        # Bars between stars: where k - 1 bars stand says how many stars lie in each class.
        places = replicas + len(members) - 1
        chosen = list(combinations(range(places), len(members) - 1))
        bars = np.array(chosen, dtype=np.int64).reshape(len(chosen), len(members) - 1)
        ends = np.pad(bars, ((0, 0), (1, 1)), constant_values=-1)
        ends[:, -1] = places
        counts = np.diff(ends, axis=1) - 1
        return np.asarray(counts[(counts <= room).all(axis=1)])

    def _num_classes(self) -> int:
        """Return the largest number of classes whose tables stay small."""
        replicas = self.arrays.replicas
        calls = [(i, j) for i in self.arrays.order.tolist() for g in self.groups[i] for j in g]
        ends = calls or [(int(self.arrays.order[-1]),) * 2]
        classes = 1
        while classes < len(self.arrays.user):
            cells = sum(prod(comb(int(replicas[i]) + classes, classes) for i in c) for c in ends)
            if cells * (self.most + 2) > _MAX_CELLS:
                break
            classes += 1
        return classes


def _classes(arrays: ReschedulingArrays, count: int) -> np.ndarray:
    """Return the class of every node, at most `count` of them: those most unlike, then the nearest.

    Nodes are alike whose times and latencies are.
    """
    profile = np.concatenate((arrays.own.T, arrays.delay, arrays.delay.T), axis=1)
    labels = np.zeros(len(profile), dtype=np.int64)
    distance = np.abs(profile - profile[0]).max(axis=1)
    for k in range(1, count):
        centre = int(distance.argmax())
        if distance[centre] == 0:
            break
        to_centre = np.abs(profile - profile[centre]).max(axis=1)
        nearer = to_centre < distance
        labels[nearer], distance[nearer] = k, to_centre[nearer]
    return labels
