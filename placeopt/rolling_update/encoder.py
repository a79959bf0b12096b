"""Rolling updates as integer vectors: the node of every microservice that may move; the order is found, not encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder
from placeopt.rolling_update import order, variation
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.reach import reach

#: Choices of all genes together that are still held in memory.
_MOST_CHOICES = 50_000_000


class RollingUpdateEncoder(Encoder):
    """A gene per reschedulable microservice; see `placeopt.encoders.Encoder` for the contract.

    A gene is an index into the nodes that are large enough, ranked by cluster, then price. The moves are made in the first order
    that comes: safe moves, then what fits, then hops, then stops.

    Raises
    ------
    UnsupportedError
        Too many microservices and nodes for vectors; the compiled heuristics have no such limit.
    """

    problem: RollingUpdate

    def __init__(self, problem: RollingUpdate, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        a = problem.arrays
        self._genes = np.flatnonzero(a.movable)
        if len(self._genes) * len(a.price) > _MOST_CHOICES:
            raise UnsupportedError(
                f"{len(self._genes)} microservices on {len(a.price)} nodes are too many for vectors; use method 'repack'"
            )
        self._by_rank = np.lexsort((np.arange(len(a.price)), a.price, a.cluster))
        self.tables = self._tables()
        choices = np.diff(self.tables.legal_first)
        self.upper = np.maximum(choices, 1) - 1 if len(choices) else np.zeros(1, dtype=np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)
        self.num_constraints = 2
        self._flows = np.array([a.flows[k][:2] for k in a.tight_flows], dtype=np.int64).reshape(
            -1, 2
        )
        self._limits = np.array([a.flows[k][2] for k in a.tight_flows], dtype=float)

    def _tables(self) -> variation.Tables:
        a, ranks = self.problem.arrays, self._by_rank
        rank_of = np.argsort(ranks)
        legal, home = [], []
        for m in self._genes:
            fits = (a.new[m] <= a.capacity[ranks]).all(axis=1) & ~a.drain[ranks]
            if a.pinned[m]:
                fits &= ranks == a.home[m]
            mine = np.flatnonzero(fits) if fits.any() else rank_of[[a.home[m]]]
            legal.append(mine)
            here = np.flatnonzero(mine == rank_of[a.home[m]])
            home.append(int(here[0]) if len(here) else -1)
        first = np.concatenate(([0], np.cumsum([len(x) for x in legal]))).astype(np.int64)
        flat = np.concatenate(legal).astype(np.int64) if legal else np.empty(0, dtype=np.int64)
        names = [a.names[m][0] for m in self._genes]
        application = np.unique(names, return_inverse=True)[1].astype(np.int64)
        base = a.fixed_load[ranks]
        return variation.Tables(
            first,
            flat,
            a.new[self._genes],
            application,
            np.array(home, dtype=np.int64),
            base,
            a.capacity[ranks],
        )

    def targets(self, X: np.ndarray) -> np.ndarray:
        """Return the node of every microservice, shape (n, M)."""
        found = np.repeat(self.problem.arrays.home[None], len(X), axis=0)
        if len(self._genes):
            found[:, self._genes] = self._by_rank[
                self.tables.legal[self.tables.legal_first[:-1] + X]
            ]
        return found

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 2): overload and drained nodes at the end, latencies at the end."""
        a = self.problem.arrays
        target = self.targets(np.asarray(X, dtype=np.int64))
        n, nodes = len(target), len(a.price)
        flat = (target + nodes * np.arange(n)[:, None]).ravel()
        load = np.stack(
            [
                np.bincount(flat, np.tile(a.new[:, r], n), n * nodes).reshape(n, nodes)
                for r in range(2)
            ],
            axis=2,
        )
        used = np.bincount(flat, minlength=n * nodes).reshape(n, nodes) > 0
        every = np.zeros((n, 3))
        every[:, 0] = (used @ a.price) / a.price_scale
        if set(self._columns) & {1, 2}:
            size = (
                a.capacity,
                ~a.drain,
                a.home,
                a.old,
                a.new,
                a.pinned,
                a.mandatory,
                a.initial_load,
            )
            every[:, 1:] = order.count_all(target, *size)
        overload = (np.maximum(0, load - a.capacity) / np.maximum(1, a.capacity)).sum(
            axis=(1, 2)
        ) + a.drain[target].sum(axis=1)
        return every[:, self._columns], np.stack((overload, self._latency_excess(target)), axis=1)

    def _latency_excess(self, target: np.ndarray) -> np.ndarray:
        a = self.problem.arrays
        between = a.latency[
            a.cluster[target[:, self._flows[:, 0]]], a.cluster[target[:, self._flows[:, 1]]]
        ]
        with np.errstate(invalid="ignore"):
            excess = np.minimum(
                1.0, np.maximum(0.0, between - self._limits) / np.maximum(self._limits, 1.0)
            )
        return excess.sum(axis=1)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; where the target cannot hold, what fits nowhere is started all the same."""
        target = self.targets(np.asarray(genes, dtype=np.int64)[None])[0]
        found = reach(self.problem, target, states=0)
        steps = list(found.steps)
        if not found.complete:
            last = dict(steps)
            todo = np.flatnonzero(
                self.problem.arrays.mandatory | (target != self.problem.arrays.home)
            ).tolist()
            steps += [(m, int(target[m])) for m in todo if last.get(m) != int(target[m])]
        return self.problem.plan(steps)

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the vector of the deployment that a plan ends in; what the encoding cannot say becomes gene 0."""
        end = self.problem.arrays.home.copy()
        for m, n in self.problem.steps(plan):
            end[m] = n
        return self.encode_target(end)

    def encode_target(self, target: np.ndarray) -> np.ndarray:
        """Return the vector of a deployment, int array (M,) of nodes."""
        t, genes = self.tables, np.zeros(self.num_genes, dtype=np.int64)
        rank_of = np.argsort(self._by_rank)
        for k, m in enumerate(self._genes):
            mine = t.legal[t.legal_first[k] : t.legal_first[k + 1]]
            here = (
                np.flatnonzero(mine == rank_of[target[m]])
                if target[m] >= 0
                else np.empty(0, dtype=int)
            )
            genes[k] = here[0] if len(here) else 0
        return genes

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors, half of them uniform, half near the running deployment."""
        X = rng.integers(0, self.upper + 1, size=(count, self.num_genes))
        if len(self._genes):
            stay = (
                (rng.random((count, 1)) < 0.5)
                & (rng.random(X.shape) < rng.random((count, 1)))
                & (self.tables.home >= 0)
            )
            X = np.where(stay, self.tables.home, X)
        return X

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by application or node crossover and one to three changes."""
        return (
            variation.vary(rng, mothers, fathers, self.tables)
            if len(self._genes)
            else np.array(mothers, dtype=np.int64)
        )

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X with one to three changes."""
        return self.vary(rng, X, X)


def build(problem: RollingUpdate, objectives: Sequence[Objective]) -> RollingUpdateEncoder:
    """Return the encoder of a rolling-update instance."""
    return RollingUpdateEncoder(problem, objectives)
