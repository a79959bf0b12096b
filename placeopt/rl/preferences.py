"""Weights of the parts of a reward: fixed, or drawn anew for every episode.

A policy that sees drawn weights learns to serve every preference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.goals import read_weights

#: What to give for weights that are drawn for every episode.
DRAWN: Final = "drawn"


Weights = Sequence[float] | np.ndarray | str | None


def normalised(given: Any, count: int) -> np.ndarray:
    """Return weights as float64 of shape (count,) that sum to 1; equal ones for None.

    `given` and errors are as of `placeopt.core.goals.read_weights`.
    """
    if given is None:
        return np.full(count, 1 / count)
    row = read_weights(given, count)
    return row / row.sum()


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return random weights of shape (count,).

    A random number of parts has positive weights, by a flat Dirichlet distribution. So corners and
    edges of the simplex have positive probability: people ask for single goals first.
    """
    weights = np.zeros(count)
    chosen = rng.permutation(count)[: rng.integers(1, count + 1)]
    weights[chosen] = rng.dirichlet(np.ones(len(chosen)))
    return weights


class Preferences:
    """The weights of N environments.

    Parameters
    ----------
    count : int
        Parts of a reward, K.
    num_envs : int
    weights : sequence of float, ndarray of shape (N, K), "drawn" or None
        The same for all; a row for each environment; drawn for every episode; or equal ones.

    Attributes
    ----------
    rows : ndarray
        float64 of shape (N, K); every row sums to 1.
    """

    def __init__(self, count: int, num_envs: int, weights: Weights = None):
        self.drawn = isinstance(weights, str) and weights == DRAWN
        self._rngs: list[np.random.Generator] = []
        if self.drawn:
            self.rows = np.full((num_envs, count), 1 / count)
        elif isinstance(weights, np.ndarray) and weights.ndim == 2:
            if len(weights) != num_envs:
                raise UsageError(
                    f"{len(weights)} rows of weights for {num_envs} environments; "
                    "give one row for each"
                )
            self.rows = np.array([normalised(row, count) for row in weights])
        else:
            self.rows = np.tile(normalised(weights, count), (num_envs, 1))

    def reset(self, seeds: np.ndarray | None, which: np.ndarray | None) -> None:
        """Draw new weights where episodes begin anew; arguments as of `Batch.reset`."""
        if not self.drawn:
            return
        if seeds is not None:
            self._rngs = [np.random.default_rng([int(seed), 1]) for seed in seeds]
        for i in range(len(self.rows)) if which is None else np.flatnonzero(which):
            self.rows[i] = draw(self._rngs[i], self.rows.shape[1])
