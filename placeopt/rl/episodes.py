"""Episodes of a batch under weights: observations to keep, scalar rewards, and returns.

The weights of the parts of a reward are fixed, or drawn anew for every episode. A policy that sees
drawn weights learns to serve every preference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.errors import UsageError
from placeopt.core.goals import read_weights
from placeopt.core.interfaces import Batch

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


#: Observations are clipped to this; features are scaled to about [-1, 1].
LIMIT = 10.0
#: Columns that an observation may have beside the features.
APPENDED = ("weights", "legal")


class WeightedEpisodes:
    """A batch and the weights of its reward's parts.

    Parameters
    ----------
    batch : Batch
    weights
        As of `placeopt.rl.episodes.Preferences`.
    append : tuple of {"weights", "legal"}, optional
        Columns beside the features: the weights of the reward's parts, whether the action is legal.
        By default the weights if they are drawn, and nothing else.

    Attributes
    ----------
    shape : (int, int)
        Actions and columns of an observation.
    """

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        self.batch = batch
        self.preferences = Preferences(len(batch.rewards), batch.num_envs, weights)
        if append is None:
            append = ("weights",) if self.preferences.drawn else ()
        if not set(append) <= set(APPENDED):
            raise UsageError(f"append is {append!r}; legal: {', '.join(APPENDED)}")
        self.append = tuple(append)
        extra = len(batch.rewards) * ("weights" in self.append) + ("legal" in self.append)
        self.shape = (batch.num_actions, batch.num_features + extra)
        self.returns = np.zeros(batch.num_envs)
        self.lengths = np.zeros(batch.num_envs, dtype=np.int64)
        self.begun = False

    def begin(self, seeds: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        """Begin all episodes; return the observations. Without seeds, draw the first ones."""
        if seeds is None and not self.begun:
            seeds = rng.integers(2**63, size=self.batch.num_envs, dtype=np.uint64)
        self.begun = True
        self.reset(seeds)
        return self.observe()

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; arguments as of `Batch.reset`."""
        self.preferences.reset(seeds, which)
        self.batch.reset(seeds, which)
        again = slice(None) if which is None else which
        self.returns[again] = 0
        self.lengths[again] = 0

    def observe(self) -> np.ndarray:
        """Return a new array of observations, float32 of shape (N, A, columns)."""
        batch, features = self.batch, self.batch.num_features
        rows = np.empty((batch.num_envs, *self.shape), dtype=np.float32)
        np.clip(batch.observations, -LIMIT, LIMIT, out=rows[:, :, :features])
        if "weights" in self.append:
            rows[:, :, features : features + len(batch.rewards)] = self.preferences.rows[:, None, :]
        if "legal" in self.append:
            rows[:, :, -1] = batch.masks
        return rows

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the scalar rewards (N,), their parts (N, K) and which episodes ended (N,)."""
        parts, ended = self.batch.step(actions)
        rewards = np.einsum("nk,nk->n", parts, self.preferences.rows)
        self.returns += rewards
        self.lengths += 1
        return rewards, parts, ended.copy()

    def facts(self) -> dict[str, np.ndarray]:
        """Return what the batch says of its episodes, and their return and length; (N,) each."""
        own = {"episode_return": self.returns.copy(), "episode_length": self.lengths.copy()}
        return {key: np.array(value) for key, value in self.batch.info().items()} | own
