"""Weights of the parts of a reward: fixed, or drawn anew for every episode so that one policy learns every preference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError

#: What to give for weights that are drawn for every episode.
DRAWN = "drawn"


def read_weights(given: Any, count: int) -> np.ndarray:
    """Return weights as float64 of shape (count,) that sum to 1.

    Parameters
    ----------
    given : sequence of float, text such as ``"0.5,0.5"``, or None
        Equal weights for None.

    Raises
    ------
    UsageError
        Not `count` finite numbers of at least 0, or all of them 0.
    """
    if given is None:
        return np.full(count, 1 / count)
    try:
        row = np.array(given.split(",") if isinstance(given, str) else given, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (count,) or not (np.isfinite(row).all() and (row >= 0).all() and row.any()):
        raise UsageError(
            f"weights is {given!r}; give {count} numbers of at least 0, not all 0, such as {','.join(['1'] * count)}"
        )
    return row / row.sum()


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return random weights, shape (count,): a random number of parts matters, these by a flat Dirichlet distribution.

    Corners and edges of the simplex have positive probability, since single goals are what people ask for first.
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
        The same for all, one row for each environment, drawn for every episode, or equal ones.

    Attributes
    ----------
    rows : ndarray
        float64 of shape (N, K); every row sums to 1.
    """

    def __init__(
        self, count: int, num_envs: int, weights: Sequence[float] | np.ndarray | str | None = None
    ):
        self.drawn = isinstance(weights, str) and weights == DRAWN
        self._rngs: list[np.random.Generator] = []
        if self.drawn:
            self.rows = np.full((num_envs, count), 1 / count)
        elif isinstance(weights, np.ndarray) and weights.ndim == 2:
            if len(weights) != num_envs:
                raise UsageError(
                    f"{len(weights)} rows of weights for {num_envs} environments; give one row for each"
                )
            self.rows = np.array([read_weights(row, count) for row in weights])
        else:
            self.rows = np.tile(read_weights(weights, count), (num_envs, 1))

    def reset(self, seeds: np.ndarray | None, which: np.ndarray | None) -> None:
        """Draw new weights for the environments `which` begin anew; seeds are uint64 of shape (N,), or None to go on."""
        if not self.drawn:
            return
        if seeds is not None:
            self._rngs = [np.random.default_rng([int(seed), 1]) for seed in seeds]
        for i in range(len(self.rows)) if which is None else np.flatnonzero(which):
            self.rows[i] = draw(self._rngs[i], self.rows.shape[1])
