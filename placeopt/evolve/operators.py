"""Textbook operators instead of an encoder's own: simulated binary crossover, polynomial mutation.

K. Deb, R. B. Agrawal, "Simulated binary crossover for continuous search space", Complex Systems 9,
1995; K. Deb, M. Goyal, "A combined genetic adaptive search (GeneAS) for engineering design", 1996;
both bounded, their results rounded to integers. They take neighbouring integers for similar, which
most genes of placements are not: they are here to run papers as they were.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import Encoder, Parts

#: Probability and distribution index of the CNSM 2024 paper's code: crossover of a pair, mutation
#: of a gene, and mutation of a gene in the elitist learning of its swarms.
CROSSOVER, MUTATION, LEARNING = (0.6, 15.0), (0.6, 30.0), (0.9, 20.0)


class SimulatedBinary(Encoder):
    """An encoder with textbook operators in place of its own.

    Parameters
    ----------
    encoder : Encoder
    mutation : (float, float)
        Probability, of a gene, and distribution index.
    """

    def __init__(
        self,
        encoder: Encoder,
        mutation: tuple[float, float] = MUTATION,
    ):
        self._encoder, self._mutation = encoder, mutation
        self.problem, self.objectives = encoder.problem, encoder.objectives
        self.lower, self.upper = encoder.lower, encoder.upper
        self.num_genes, self.num_constraints = encoder.num_genes, encoder.num_constraints
        self.trusted = encoder.trusted

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F and G of the encoder."""
        return self._encoder.evaluate(X)

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector."""
        return self._encoder.decode(genes)

    def encode(self, plan: Plan) -> np.ndarray | None:
        """Return the vector of a plan; None where the encoder cannot."""
        return self._encoder.encode(plan)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random vectors, shape (count, num_genes)."""
        return self._encoder.sample(rng, count)

    def parts(self, X: np.ndarray) -> Parts | None:
        """Return the parts of vectors; None where there are none."""
        return self._encoder.parts(X)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return one child of each pair of rows: crossover, then mutation."""
        return self.mutate(rng, self._crossed(rng, *self.checked_pairs(mothers, fathers)))

    def _crossed(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return one of the two children that simulated binary crossover makes of each pair."""
        probability, index = CROSSOVER
        low, high = np.minimum(mothers, fathers), np.maximum(mothers, fathers)
        apart = np.maximum(high - low, 1)
        crossed = (rng.random(len(mothers)) < probability)[:, None] & (
            rng.random(mothers.shape) < 0.5
        )
        drawn, upper_child = rng.random(mothers.shape), rng.random(mothers.shape) < 0.5
        room = np.where(upper_child, self.upper - high, low - self.lower)
        alpha = 2.0 - (1.0 + 2.0 * room / apart) ** -(index + 1.0)
        inside = drawn * alpha
        spread = np.where(inside <= 1.0, inside, 1.0 / (2.0 - inside)) ** (1.0 / (index + 1.0))
        child = (low + high + np.where(upper_child, 1, -1) * spread * apart) / 2
        child = np.clip(np.rint(child), self.lower, self.upper).astype(np.int64)
        return np.where(crossed & (high > low), child, mothers)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return a copy of X with every gene mutated with the probability of mutation."""
        X = self.checked(X)
        probability, index = self._mutation
        span = np.maximum(self.upper - self.lower, 1)
        drawn = rng.random(X.shape)
        below = (X - self.lower) / span
        falls = drawn < 0.5
        u = np.where(falls, 2 * drawn, 2 * (1 - drawn))
        kept = (1 - np.where(falls, below, 1 - below)) ** (index + 1)
        step = 1 - (u + (1 - u) * kept) ** (1 / (index + 1))
        moved = np.rint(X + np.where(falls, -step, step) * span)
        moved = np.clip(moved, self.lower, self.upper).astype(np.int64)
        return np.where(rng.random(X.shape) < probability, moved, X)
