"""Face 2, one vector: a plan as integers within bounds, for every search that moves vectors about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from placeopt.front import Objective
from placeopt.problems import row
from placeopt.problems.base import Problem


class Parts(NamedTuple):
    """What the plans of vectors fall into: parts that share nothing, so that the goals of a plan are sums over its parts.

    Parts with equal keys serve the same, so that either can stand in for the other.
    """

    label: np.ndarray  # (n, num_genes) the part that a gene belongs to, -1 for none
    key: (
        np.ndarray
    )  # (n, parts) uint64, a hash of what a part serves, 0 where a vector has no such part
    values: np.ndarray  # (n, parts, objectives)


class Encoder(Protocol):
    """What a search may ask of an encoding.

    An encoder may also have ``encode(plan)``, the vector of a plan, and ``parts(X)``, the `Parts` of vectors that were evaluated before.

    Attributes
    ----------
    problem : Problem
    objectives : tuple of Objective
        The columns of F.
    lower, upper : ndarray of int64, shape (num_genes,)
        Inclusive bounds; only choices that can be feasible.
    num_genes, num_constraints : int
        Columns of X and of G.
    """

    problem: Problem
    objectives: tuple[Objective, ...]
    lower: np.ndarray
    upper: np.ndarray
    num_genes: int
    num_constraints: int

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, num_constraints) of X (n, num_genes); G is 0 where feasible, else the excess."""

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; the referee's values of it are those of `evaluate`."""

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random vectors, shape (count, num_genes)."""

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return one child of each pair of rows by the problem's own crossover and mutation, same shape as `mothers`."""

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return a mutated copy of X by the problem's own mutation."""


def build(problem: Problem, objectives: Sequence[Objective] | None = None) -> Encoder:
    """Return the encoder of a problem.

    Raises
    ------
    UnsupportedError
        The problem has no encoder.
    """
    return row(__name__, problem).build(problem, tuple(objectives or problem.objectives))
