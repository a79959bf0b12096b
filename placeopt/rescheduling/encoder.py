"""Rescheduling as integer vectors: the node of every replica.

The order of the moves is found, not encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.compile import kernel
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.latency import latencies
from placeopt.rescheduling.move_order import MAX_HOPS, arrange


@kernel
def _count_moves(instance, targets, moves, found):
    """Write the number of moves to each of `targets` (n, S, N), and how many find no room.

    Into `found` (n, 2); `moves` (k, 3) is overwritten.
    """
    for k in range(len(targets)):
        found[k, 0], found[k, 1] = arrange(instance, targets[k], moves)


class ReschedulingEncoder(Encoder):
    """A gene per replica: an index into the nodes that are large enough for it."""

    problem: Rescheduling

    def __init__(self, problem: Rescheduling, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
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
        self._moves = np.zeros((self.num_genes + MAX_HOPS, 3), dtype=np.int32)
        self.home = self.encode_counts(instance.home)

    def counts(self, X: np.ndarray) -> np.ndarray:
        """Return the replicas per service and node, shape (n, S, N)."""
        X = self.checked(X)
        result = np.zeros((len(X), *self._nodes.shape), dtype=np.int64)
        nodes = self._nodes[self._service, X]
        np.add.at(result, (np.arange(len(X))[:, None], self._service, nodes), 1)
        return result

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1): moves that find no room."""
        targets = self.counts(X)
        result = np.zeros((len(targets), 2), dtype=np.int64)
        _count_moves(self._instance, targets, self._moves, result)
        every = np.stack((latencies(self._instance, targets), result[:, 0]), axis=1)
        return every[:, self._columns], result[:, 1:].astype(float)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; moves that find no room come last."""
        target = self.counts(self.checked_one(genes)[None])[0]
        count, _ = arrange(self._instance, target, self._moves)
        return self.problem.plan(self._moves[:count].tolist())

    def encode(self, plan: Plan) -> np.ndarray:
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

    def start(self) -> np.ndarray:
        """Return the running deployment."""
        return self.home.copy()

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, half of them uniform, half near the running deployment."""
        X = super().sample(rng, count)
        count = len(X)
        stay = (rng.random((count, 1)) < 0.5) & (rng.random(X.shape) < rng.random((count, 1)))
        return np.where(stay, self.home, X)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children that have whole services of either parent, and mutations."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        from_mother = rng.random((len(mothers), len(self._nodes))) < 0.5
        return self.mutate(rng, np.where(from_mother[:, self._service], mothers, fathers))

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which about one and a half replicas go elsewhere or home."""
        X = self.checked(X)
        to_home = rng.random(X.shape) < 0.3
        drawn = np.where(to_home, self.home, super().sample(rng, len(X)))
        return np.where(rng.random(X.shape) < 1.5 / self.num_genes, drawn, X)
