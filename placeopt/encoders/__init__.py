"""Face 2, one vector: a plan as integers within bounds, for every search that moves vectors about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from placeopt.front import Objective
from placeopt.problems import row
from placeopt.problems.base import Problem


class Encoder(Protocol):
    """What a search may ask of an encoding.

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

    def vary(self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray) -> np.ndarray:
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
