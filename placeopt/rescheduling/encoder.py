"""Rescheduling as integer vectors: the node of every replica.

The order of the moves is found, not encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.compile import kernel
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.latency import latencies


@kernel
def _move(now, target, i, u, v, move):
    """Move a replica of service i to node v from the first node, u or after, that has one too many; return that node."""
    while now[i, u] <= target[i, u]:
        u += 1
    move[0], move[1], move[2] = i, u, v
    now[i, u] -= 1
    now[i, v] += 1
    return u


@kernel
def _order(home, target, demand, capacity, moves):
    """Write moves from a deployment to another while there is room for one; return how many, and how many are left.

    Of the moves that have room the first is made: service, then node. There are no hops.
    """
    services, nodes = home.shape
    now, free, count = home.copy(), capacity.copy(), 0
    for i in range(services):
        for u in range(nodes):
            for r in range(2):
                free[u, r] -= now[i, u] * demand[i, r]
    going = True
    while going:
        going = False
        for i in range(services):
            for v in range(nodes):
                u = 0
                while (
                    now[i, v] < target[i, v]
                    and free[v, 0] >= demand[i, 0]
                    and free[v, 1] >= demand[i, 1]
                ):
                    u = _move(now, target, i, u, v, moves[count])
                    count += 1
                    for r in range(2):
                        free[u, r] += demand[i, r]
                        free[v, r] -= demand[i, r]
                    going = True
    left = 0
    for i in range(services):
        for v in range(nodes):
            left += max(0, target[i, v] - now[i, v])
    for i in range(services):  # what has no room is written all the same, for the referee to name
        u = 0
        for v in range(nodes):
            while now[i, v] < target[i, v]:
                u = _move(now, target, i, u, v, moves[count])
                count += 1
    return count, left


@kernel
def _count_all(home, targets, demand, capacity, moves, answer):
    """Write the number of moves, and how many of them find no room, of every target."""
    for k in range(len(targets)):
        answer[k, 0], answer[k, 1] = _order(home, targets[k], demand, capacity, moves)


class ReschedulingEncoder(Encoder):
    """A gene per replica: an index into the nodes that are large enough for it."""

    problem: Rescheduling

    def __init__(self, problem: Rescheduling, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        self._instance = instance = problem.arrays
        self._service = np.repeat(np.arange(len(instance.replicas)), instance.replicas)
        large = [
            np.flatnonzero((instance.capacity >= size).all(axis=1)) for size in instance.demand
        ]
        self.upper = np.array([len(large[i]) - 1 for i in self._service], dtype=np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), 1
        self._large = large
        self._nodes = np.zeros_like(instance.home)  # by service and gene
        for i, nodes in enumerate(large):
            self._nodes[i, : len(nodes)] = nodes
        self._moves = np.zeros((self.num_genes, 3), dtype=np.int64)
        self.home = self.encode_counts(instance.home)

    def counts(self, X: np.ndarray) -> np.ndarray:
        """Return the replicas per service and node, shape (n, S, N)."""
        found = np.zeros((len(X), *self._nodes.shape), dtype=np.int64)
        nodes = self._nodes[self._service, np.asarray(X, dtype=np.int64)]
        np.add.at(found, (np.arange(len(X))[:, None], self._service, nodes), 1)
        return found

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1): moves that find no room."""
        t, targets = self._instance, self.counts(X)
        found = np.zeros((len(targets), 2), dtype=np.int64)
        _count_all(t.home, targets, t.demand, t.capacity, self._moves, found)
        every = np.stack((latencies(t, targets), found[:, 0]), axis=1)
        return every[:, self._columns], found[:, 1:].astype(float)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; moves that find no room come last."""
        t = self._instance
        count, _ = _order(
            t.home, self.counts(np.asarray(genes)[None])[0], t.demand, t.capacity, self._moves
        )
        return self.problem.plan(self._moves[:count].tolist())

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the vector of the deployment that a plan ends in."""
        return self.encode_counts(self.problem.final_counts(plan))

    def encode_counts(self, counts: np.ndarray) -> np.ndarray:
        """Return the vector of a deployment (S, N) within capacity, shape (num_genes,)."""
        nodes = np.arange(counts.shape[1])
        genes = [
            np.searchsorted(large, np.repeat(nodes, row))
            for large, row in zip(self._large, counts, strict=True)
        ]
        return np.concatenate(genes).astype(np.int64)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, half of them uniform, half near the running deployment."""
        X = super().sample(rng, count)
        stay = (rng.random((count, 1)) < 0.5) & (rng.random(X.shape) < rng.random((count, 1)))
        return np.where(stay, self.home, X)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children that have whole services of either parent, and mutations."""
        from_mother = rng.random((len(mothers), len(self._nodes))) < 0.5
        return self.mutate(rng, np.where(from_mother[:, self._service], mothers, fathers))

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which about one and a half replicas go elsewhere or home."""
        to_home = rng.random(X.shape) < 0.3
        drawn = np.where(to_home, self.home, super().sample(rng, len(X)))
        return np.where(rng.random(X.shape) < 1.5 / self.num_genes, drawn, X)


def build(problem: Rescheduling, objectives: Sequence[Objective]) -> ReschedulingEncoder:
    """Return the encoder of a rescheduling instance."""
    return ReschedulingEncoder(problem, objectives)
