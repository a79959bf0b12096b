"""The multi-swarm particle swarm optimisation of the CNSM 2024 paper, over any encoder.

N. Di Cicco et al., CNSM 2024, section IV-B, after Z.-H. Zhan et al., "Multiple populations for
multiple objectives", IEEE Transactions on Cybernetics 43(2), 2013. There is one swarm for each
objective. A particle is pulled to its own best, to its swarm's best and to a member of a shared
archive of 100. Every member of that archive is mutated in each iteration (elitist learning). Every
evaluation counts, those of the elitist learning too.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from placeopt.core.fronts.dominance import nondominated
from placeopt.core.fronts.front import Front
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.evolve.operators import LEARNING
from placeopt.evolve.search import Encoding, Operators, Seeded, Variant, VectorSearch

INERTIA = (0.1, 0.3)
ACCELERATION = 4.0 / 3.0
#: Largest random factors of the pulls to a particle's own best, its swarm's best and the archive.
PULLS = (1.0, 1.0, 0.1)


class _Leaders:
    """The shared archive: non-dominated vectors, without the most crowded beyond its size."""

    def __init__(self, size: int):
        self.size = size
        self.X = self.F = np.empty((0, 0))
        self.excess = np.empty(0)

    def add(self, X: np.ndarray, F: np.ndarray, G: np.ndarray) -> None:
        """Offer vectors; infeasible ones are kept only until one is feasible."""
        excess = G.sum(axis=1)
        if len(self.X):
            X, F = np.concatenate((self.X, X)), np.concatenate((self.F, F))
            excess = np.concatenate((self.excess, excess))
        best = excess <= max(0.0, excess.min())
        X, F, excess = X[best], F[best], excess[best]
        keep = np.flatnonzero(nondominated(F))
        if len(keep) > self.size:
            keep = keep[np.sort(np.argsort(-crowding(F[keep]), kind="stable")[: self.size])]
        self.X, self.F, self.excess = X[keep], F[keep], excess[keep]


def crowding(F: np.ndarray) -> np.ndarray:
    """Return the crowding distance of each row (Deb et al., 2002), shape (n,)."""
    distance = np.zeros(len(F))
    for column in F.T:
        order = np.argsort(column, kind="stable")
        spread = column[order[-1]] - column[order[0]]
        distance[order[[0, -1]]] = np.inf
        if spread > 0:
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / spread
    return distance


class _Swarms:
    """Positions, velocities and memories of all swarms, shape (objectives, particles, ...)."""

    def __init__(self, search: VectorSearch, particles: int, leaders: _Leaders):
        self.search, self.leaders = search, leaders
        swarms = len(search.objectives)
        X, F, G = search.evaluate(search.first(swarms * particles))
        leaders.add(X, F, G)
        chosen = self._initial(F, G.sum(axis=1), swarms, particles)
        self.X = X[chosen]
        self.speed = np.zeros_like(self.X)
        self.best, self.best_F = self.X.copy(), self._key(F[chosen], G[chosen])

    @staticmethod
    def _initial(F: np.ndarray, excess: np.ndarray, swarms: int, particles: int) -> np.ndarray:
        """Return the vectors that each swarm starts from, shape (swarms, particles).

        They are spread over the ranking by the swarm's own objective.
        """
        ranks = [np.lexsort((F[:, m], excess)) for m in range(swarms)]
        return np.stack([r[np.linspace(0, len(r) - 1, particles).astype(int)] for r in ranks])

    @staticmethod
    def _key(F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the value of each particle in its swarm's objective, shape (swarms, particles).

        Infeasible ones have a large penalty.
        """
        swarms = np.arange(len(F))
        return F[swarms, :, swarms] + 1e12 * G.sum(axis=2)

    def fly(self) -> None:
        """Move every particle once and update the memories."""
        rng, encoder = self.search.rng, self.search.encoder
        swarms, particles, genes = self.X.shape
        inertia = rng.uniform(*INERTIA, size=(swarms, particles, 1))
        factors = [
            ACCELERATION * rng.uniform(0, pull, size=(swarms, particles, 1)) for pull in PULLS
        ]
        swarm_best = self.best[np.arange(swarms), self.best_F.argmin(axis=1)][:, None]
        leader = self.leaders.X[rng.integers(0, len(self.leaders.X), size=(swarms, particles))]
        pulls = sum(
            factor * (target - self.X)
            for factor, target in zip(factors, (self.best, swarm_best, leader), strict=True)
        )
        self.speed = np.rint(inertia * self.speed + pulls).astype(np.int64)
        moved = self.X + self.speed
        self.X = np.clip(moved, encoder.lower, encoder.upper)
        self.speed[moved != self.X] *= -1
        X, F, G = self.search.evaluate(self.X.reshape(-1, genes))
        self.leaders.add(X, F, G)
        if len(X) == swarms * particles:
            key = self._key(F.reshape(swarms, particles, -1), G.reshape(swarms, particles, -1))
            better = key < self.best_F
            self.best[better], self.best_F[better] = self.X[better], key[better]


def run(
    task: Task[Problem],
    *,
    particles: Annotated[
        int, Field(ge=1, le=1000, description="Particles of a swarm; each objective has one.")
    ] = 10,
    leaders: Annotated[
        int, Field(ge=1, le=10_000, description="Size of the shared archive.")
    ] = 100,
    encoding: Encoding = "own",
    operators: Operators = "own",
    seeded: Seeded = True,
) -> Front:
    """Run the multi-swarm PSO."""
    search = VectorSearch(task, Variant(encoding, operators, seeded, LEARNING))
    archive = _Leaders(leaders)
    swarms = _Swarms(search, particles, archive)
    while not search.finished:
        swarms.fly()
        if search.finished:
            break
        archive.add(*search.evaluate(search.encoder.mutate(search.rng, archive.X)))
    return search.conclude("mspso", {"particles": particles, "leaders": leaders})
