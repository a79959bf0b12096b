"""Lower bounds of rescheduling in milliseconds: the least latency that m moves allow, for every m.

Two things are relaxed. Nodes that are alike form a class: each of its nodes counts as fast and as
near as the best of them. Of the capacity only what a class holds of a service, or of a caller and
its callee, is kept. What is left is solved exactly from the callees to the callers: the least
latency of a service and of all that it calls, by its replicas in each class and by the moves that
may be spent there. A service with several callers may stand elsewhere for each of them; its moves
count once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, prod

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.gap import graded
from placeopt.core.fronts.values import Run
from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.call_graph import Groups
from placeopt.rescheduling.instance import Rescheduling

#: Largest number of cells of all calls: replicas of caller and of callee by class, moves.
_MAX_CELLS = 10_000_000
#: Moves that are looked at one by one, and the sum of them over all calls; plans of more moves
#: share one bound.
_MAX_MOVES, _MAX_COLUMNS = 256, 20_000


def certify(problem: Rescheduling, front: Front, budget: Budget) -> Front:
    """Return the front with a lower-bound set; every point carries the gap that the set proves.

    The bound is computed in one pass without a search. It takes milliseconds for any budget.
    """
    began = budget.seconds
    latency = least_latencies(problem)
    bounds = np.column_stack((latency, np.arange(len(latency))))
    proof = Front(
        front.instance,
        front.objectives,
        bounds=tuple(map(tuple, bounds[:, problem.columns(front.objectives)].tolist())),
        runs=(Run("bound", None, budget.seconds - began),),
    )
    return graded(merge([front, proof]), "latency_ms")


def least_latencies(problem: Rescheduling) -> np.ndarray:
    """Return lower bounds on the latency in ms by the number of moves.

    Returns
    -------
    ndarray, shape (k,)
        Entry m is a latency that no plan of at most m moves beats. The last entry holds for any
        number of moves. The entries never increase.
    """
    arrays, graph = problem.arrays, problem.graph
    replicas = arrays.replicas[arrays.order]
    affordable = max(1, _MAX_COLUMNS // max(1, len(arrays.caller)))
    most = min(_MAX_MOVES, affordable, int(replicas.sum()))
    least = _Relaxation(arrays, graph.groups, most).solve()
    if graph.step is None:  # sums of floats, rounded to the safe side
        least = least * (1 - 1e-12)
    else:  # latencies are whole numbers of parts
        least = np.ceil(least * graph.parts * (1 - 1e-12) - 1e-3) / graph.parts
    least[0] = problem.initial_latency
    return np.asarray(np.minimum.accumulate(least))


class _Relaxation:
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

    def solve(self) -> np.ndarray:
        """Return the least latency by the number of moves, shape (most + 2,)."""
        order = self.arrays.order.tolist()
        tables: dict[int, np.ndarray] = {}
        spent = self._owners()
        for i in order:
            tables[i] = self._with_own(i, self._groups(i, tables, spent))
        return np.asarray(tables[order[-1]].min(axis=0))

    def _owners(self) -> set[tuple[int, int, int]]:
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
                total = _shared(total, self._call(i, j, callee), np.add)
            slowest = _shared(slowest, total, np.maximum)
        return slowest

    def _call(self, i: int, j: int, callee: np.ndarray) -> np.ndarray:
        """Return the least time of a call and its callee, by the replicas of the caller."""
        here, there, demand = self.counts[i], self.counts[j], self.arrays.demand
        pairs = here.sum(axis=1)[:, None] * there.sum(axis=1)
        network = here @ self.delay @ there.T / pairs
        for k, capacity in enumerate(self.capacity):
            load = here[:, k, None, None] * demand[i] + there[:, k, None] * demand[j]
            network[(load > capacity).any(axis=2)] = np.inf
        columns = [(network + column).min(axis=1) for column in callee.T]
        return np.stack(columns, axis=1)

    def _with_own(self, i: int, slowest: np.ndarray) -> np.ndarray:
        """Add a service's own time and moves to the time of its groups."""
        counts = self.counts[i]
        moves = np.maximum(counts - self.home[i], 0).sum(axis=1)
        table = np.full_like(slowest, np.inf)
        for row, m in enumerate(moves.tolist()):
            if m <= self.most:
                table[row, m:-1] = slowest[row, : self.most + 1 - m]
        table[:, -1] = slowest[:, -1]
        return np.asarray(table + (counts @ self.own[i] / counts.sum(axis=1))[:, None])

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


def _shared(
    one: np.ndarray, other: np.ndarray, joined: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the best way to share moves between two tables whose times are `joined`."""
    result = joined(one, other)
    moves = one.shape[1] - 1
    for m in range(moves):
        result[:, m] = joined(one[:, : m + 1], other[:, m::-1]).min(axis=1)
    return result


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
