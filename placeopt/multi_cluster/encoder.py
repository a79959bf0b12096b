"""A trace of requests as integer vectors: an action per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.simulator.state import EXTRA
from placeopt.multi_cluster.simulator.stream import Stream

#: Vectors that live through the trace together.
_CHUNK = 256


class MultiClusterEncoder(Encoder):
    """A gene per request: a cluster, a spread, or the refusal; see `placeopt.encoders.Encoder` for the contract.

    An action that would not place its request gives way to the one that does and earns most now, latency, cost and inequality alike;
    where none does, the request is refused. So every vector is a feasible plan.
    """

    problem: MultiCluster

    def __init__(self, problem: MultiCluster, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        self.num_genes, self.num_constraints = len(problem.requests), 1
        self._refusal = len(problem.clusters) + EXTRA - 1
        self.lower = np.zeros(self.num_genes, dtype=np.int64)
        self.upper = np.full(self.num_genes, self._refusal)
        self._worst = np.array(problem.referee.judge([{}] * self.num_genes).values)

    def _live(self, X: np.ndarray) -> Stream:
        """Return the episodes of vectors at their ends."""
        batch = Stream.of(self.problem, len(X))
        batch.reset()
        rows = np.arange(len(X))
        accepts = batch.world.accepts
        for genes in np.asarray(X, dtype=np.int64).T:
            worth = np.where(accepts, batch.parts.sum(axis=2), -np.inf)
            worth[:, -1] = -1e9
            wanted = accepts[rows, genes] | (genes == self._refusal)
            batch.step(np.where(wanted, genes, worth.argmax(axis=1)))
        return batch

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1), which is 0."""
        F = np.empty((len(X), 4))
        for first in range(0, len(X), _CHUNK):
            facts = self._live(X[first : first + _CHUNK]).info()
            means = np.stack([facts[name] for name in ("latency_ms", "cost", "inequality")], axis=1)
            F[first : first + _CHUNK, :3] = np.where(np.isnan(means), self._worst[:3], means)
            F[first : first + _CHUNK, 3] = 1 - facts["acceptance"]
        return F[:, self._columns], np.zeros((len(X), 1))

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        return self.problem.plan(self._live(np.asarray(genes)[None]).placements(0))

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return a vector for a plan: the same plan, where each of its decisions is an action; FFD for other splits."""
        batch = Stream.of(self.problem, 1)
        batch.reset()
        clusters, genes = batch.clusters, np.empty(self.num_genes, dtype=np.int64)
        for t, decision in enumerate(self.problem.decisions(plan)):
            placed = np.array([decision.get(c, 0) for c in range(clusters)])
            if not decision:
                genes[t] = self._refusal
            elif (placed > 0).sum() == 1 and (len(decision) == 1 or not batch.published):
                genes[t] = placed.argmax()
            else:
                same = [
                    s
                    for s in range(3)
                    if batch.world.accepts[0, clusters + s]
                    and (batch.world.split[0, s] == placed).all()
                ]
                genes[t] = clusters + (same[0] if same else 0)
            batch.step(genes[t : t + 1])
        return genes

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, each with its own share of refusals, spreads and preferred clusters."""
        actions = self._refusal + 1
        liking = rng.dirichlet(np.full(actions, 0.5), size=count)
        liking[:, -1] *= rng.random(count) < 0.3
        edges = np.cumsum(liking, axis=1) / np.maximum(liking.sum(axis=1, keepdims=True), 1e-12)
        drawn = rng.random((count, self.num_genes))
        return np.minimum((drawn[:, :, None] > edges[:, None, :]).sum(axis=2), self._refusal)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children that take a stretch of the trace from the father, and mutations."""
        cuts = np.sort(rng.integers(0, self.num_genes + 1, size=(len(mothers), 2)), axis=1)
        at = np.arange(self.num_genes)
        return self.mutate(
            rng, np.where((at >= cuts[:, :1]) & (at < cuts[:, 1:]), fathers, mothers)
        )

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X in which about two decisions are others."""
        drawn = rng.integers(0, self._refusal + 1, size=np.shape(X))
        return np.where(rng.random(np.shape(X)) < 2 / self.num_genes, drawn, X)


def build(problem: MultiCluster, objectives: Sequence[Objective]) -> MultiClusterEncoder:
    """Return the encoder of a multi-cluster instance."""
    return MultiClusterEncoder(problem, objectives)
