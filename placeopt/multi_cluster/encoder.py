"""A trace of requests as integer vectors: an action per request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.numbers import checked_count
from placeopt.multi_cluster.episodes.state import EXTRA, FFD
from placeopt.multi_cluster.episodes.stream import EpisodeBatch
from placeopt.multi_cluster.problem import MultiCluster

#: Vectors that play the trace together.
_CHUNK = 256


class MultiClusterEncoder(Encoder):
    """A gene per request: a cluster, a spread, or the refusal.

    Where an action would not place its request, that one is taken which does and has the highest
    sum of reward parts; where none does, the request is refused. So every vector is a feasible
    plan.
    """

    problem: MultiCluster

    def __init__(self, problem: MultiCluster, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.num_genes, self.num_constraints = len(problem.requests), 1
        self._refusal = len(problem.clusters) + EXTRA - 1
        self.lower = np.zeros(self.num_genes, dtype=np.int64)
        self.upper = np.full(self.num_genes, self._refusal)
        self._start = EpisodeBatch.of(problem)

    def _begun(self, count: int = 1) -> EpisodeBatch:
        """Return `count` episodes before the first request."""
        return self._start.silent(np.zeros(count, dtype=np.int64))

    def _play(self, X: np.ndarray) -> EpisodeBatch:
        """Return the episodes of vectors (n, num_genes) at their ends."""
        batch = self._begun(len(X))
        batch.play(X)
        return batch

    def placed(self, X: np.ndarray) -> np.ndarray:
        """Return the replicas of every request on every cluster, shape (n, T, C)."""
        return self._play(self.checked(X)).state.placed

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1), which is 0."""
        X = self.checked(X)
        F = np.empty((len(X), 4))
        for first in range(0, len(X), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            F[chunk] = self._play(X[chunk]).values(self.problem.referee.worst)
        return F[:, self._columns], np.zeros((len(X), 1))

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        return self._play(self.checked_one(genes)[None]).plan(0)

    def encode(self, plan: Plan) -> np.ndarray:
        """Return a vector of a plan: the same plan where its decisions are actions, else FFD."""
        batch = self._begun()
        clusters, genes = batch.clusters, np.empty(self.num_genes, dtype=np.int64)
        for t, decision in enumerate(self.problem.decisions(plan)):
            placed = np.array([decision.get(c, 0) for c in range(clusters)])
            if not decision:
                genes[t] = self._refusal
            elif (placed > 0).sum() == 1:
                genes[t] = placed.argmax()
            else:
                outcomes = batch.outcomes
                same = outcomes.accepts[0, clusters : self._refusal]
                same = same & (outcomes.split[0] == placed).all(axis=1)
                genes[t] = clusters + (same.argmax() if same.any() else FFD)
            batch.step(genes[t : t + 1])
        return genes

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, each with its own odds of refusals, spreads and clusters."""
        count = checked_count(count)
        odds = rng.dirichlet(np.full(self._refusal + 1, 0.5), size=count)
        odds[:, -1] *= rng.random(count) < 0.3
        edges = np.cumsum(odds, axis=1) / np.maximum(odds.sum(axis=1, keepdims=True), 1e-12)
        drawn = rng.random((count, self.num_genes))
        return np.minimum((drawn[:, :, None] > edges[:, None, :]).sum(axis=2), self._refusal)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children that take a stretch of the trace from the father, then mutated."""
        mothers, fathers = self.checked_pairs(mothers, fathers)
        cuts = np.sort(rng.integers(0, self.num_genes + 1, size=(len(mothers), 2)), axis=1)
        at = np.arange(self.num_genes)
        from_father = (at >= cuts[:, :1]) & (at < cuts[:, 1:])
        return self.mutate(rng, np.where(from_father, fathers, mothers))

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which about two decisions are drawn anew."""
        X = self.checked(X)
        drawn = rng.integers(0, self._refusal + 1, size=X.shape)
        return np.where(rng.random(X.shape) < 2 / self.num_genes, drawn, X)
