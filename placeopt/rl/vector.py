"""Gymnasium environments over a `Batch` of episodes: N at once as a VectorEnv, one alone as an Env.

An observation has a row for every action: the batch's features and, where `append` asks for them, the weights of the reward's
parts and whether the action is legal. ``info["action_mask"]`` says the latter too, ``info["reward_vector"]`` has the parts of the
reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import Batch
from placeopt.rl.preferences import Preferences

#: Features beyond are cut off; they are scaled to about [-1, 1].
LIMIT = 10.0
#: What may be appended to the rows of an observation.
APPENDED = ("weights", "legal")

Weights = Sequence[float] | np.ndarray | str | None


class Episodes:
    """A batch with weights: observations to give away, scalar rewards, and what an episode came to.

    Parameters
    ----------
    batch : Batch
    weights : sequence of float, ndarray of shape (N, K), "drawn" or None
        As of `placeopt.rl.preferences.Preferences`.
    append : tuple of {"weights", "legal"}, optional
        By default the weights if they are drawn, and nothing else.
    """

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        self.batch = batch
        self.preferences = Preferences(len(batch.rewards), batch.num_envs, weights)
        self.append = (
            (("weights",) if self.preferences.drawn else ()) if append is None else tuple(append)
        )
        if not set(self.append) <= set(APPENDED):
            raise UsageError(f"append is {append!r}; legal: {', '.join(APPENDED)}")
        extra = len(batch.rewards) * ("weights" in self.append) + ("legal" in self.append)
        self.shape = (batch.num_actions, batch.num_features + extra)
        self.returns = np.zeros(batch.num_envs)
        self.lengths = np.zeros(batch.num_envs, dtype=np.int64)

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes; arguments as of `Batch.reset`."""
        self.preferences.reset(seeds, which)
        self.batch.reset(seeds, which)
        again = slice(None) if which is None else which
        self.returns[again] = 0
        self.lengths[again] = 0

    def observe(self) -> np.ndarray:
        """Return what is seen now, float32 of shape (N, A, columns); the caller may keep it."""
        batch, features = self.batch, self.batch.num_features
        rows = np.empty((batch.num_envs, *self.shape), dtype=np.float32)
        np.clip(batch.observations, -LIMIT, LIMIT, out=rows[:, :, :features])
        if "weights" in self.append:
            rows[:, :, features : features + len(batch.rewards)] = self.preferences.rows[:, None, :]
        if "legal" in self.append:
            rows[:, :, -1] = batch.masks
        return rows

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the scalar rewards (N,), the parts (N, K) and which episodes ended (N,)."""
        parts, ended = self.batch.step(np.ascontiguousarray(actions, dtype=np.int64))
        rewards = np.einsum("nk,nk->n", parts, self.preferences.rows)
        self.returns += rewards
        self.lengths += 1
        return rewards, parts, ended

    def facts(self) -> dict[str, np.ndarray]:
        """Return what the running episodes came to so far, arrays of length N."""
        own = {"episode_return": self.returns.copy(), "episode_length": self.lengths.copy()}
        return {key: np.array(value) for key, value in self.batch.info().items()} | own


def observation_space(shape: tuple[int, ...]) -> gymnasium.spaces.Box:
    """Return the space of observations of this shape."""
    return gymnasium.spaces.Box(-LIMIT, LIMIT, shape, np.float32)


class BatchVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """N environments that step together; ended ones begin anew in the same step.

    ``reset(seed=s)`` seeds environment i with s + i: it then plays what `BatchEnv` plays after ``reset(seed=s + i)``. Of an episode
    that ended, ``info["final_obs"]`` has the last observation and ``info["final_info"]`` the facts: its return, its length and
    what the batch says of it.

    Parameters
    ----------
    batch : Batch
    weights, append
        As of `Episodes`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (as the base class declares it)

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        self.episodes = Episodes(batch, weights, append)
        self.batch, self.num_envs = batch, batch.num_envs
        self.single_observation_space = observation_space(self.episodes.shape)
        self.observation_space = observation_space((batch.num_envs, *self.episodes.shape))
        self.single_action_space = gymnasium.spaces.Discrete(batch.num_actions)
        self.action_space = gymnasium.spaces.MultiDiscrete(
            np.full(batch.num_envs, batch.num_actions)
        )
        self._all = np.ones(batch.num_envs, dtype=bool)
        self._begun = False

    @property
    def weights(self) -> np.ndarray:
        """Weights of the parts of the reward, float64 of shape (N, K)."""
        return self.episodes.preferences.rows

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool of shape (N, A)."""
        return self.batch.masks

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin all episodes anew."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = None
        if seed is not None:
            seeds = (
                np.arange(self.num_envs, dtype=np.uint64) + np.uint64(seed)
                if isinstance(seed, int)
                else np.asarray(seed, dtype=np.uint64)
            )
        elif not self._begun:
            seeds = self.np_random.integers(2**63, size=self.num_envs, dtype=np.uint64)
        self._begun = True
        self.episodes.reset(seeds)
        return self.episodes.observe(), self._info(
            np.zeros((self.num_envs, len(self.batch.rewards)))
        )

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action in every environment."""
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        rewards, parts, ended = self.episodes.step(actions)
        ended = ended.copy()
        final: dict[str, Any] = {}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            seen, facts = self.episodes.observe(), self.episodes.facts()
            for i in np.flatnonzero(ended):
                last[i] = seen[i]
            final = {"final_obs": last, "_final_obs": ended, "_final_info": ended}
            final["final_info"] = {
                key: value
                for name, fact in facts.items()
                for key, value in ((name, fact), (f"_{name}", ended))
            }
            self.episodes.reset(None, ended)
        return (
            self.episodes.observe(),
            rewards,
            ended,
            np.zeros(self.num_envs, dtype=bool),
            self._info(parts) | final,
        )

    def _info(self, parts: np.ndarray) -> dict[str, Any]:
        known = {
            "action_mask": self.batch.masks.copy(),
            "reward_vector": parts.copy(),
            "weights": self.weights.copy(),
        }
        return known | {f"_{key}": self._all for key in known}


class BatchEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One environment over a batch of one.

    ``action_masks()`` and ``info["action_mask"]`` say what is legal; ``info`` has the parts of the reward and the facts of the episode.

    Parameters
    ----------
    batch : Batch
        With one environment.
    weights, append
        As of `Episodes`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as the base class declares it)

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        if batch.num_envs != 1:
            raise UsageError(f"the batch has {batch.num_envs} environments; give one of 1")
        self.episodes = Episodes(batch, weights, append)
        self.batch = batch
        self.observation_space = observation_space(self.episodes.shape)
        self.action_space = gymnasium.spaces.Discrete(batch.num_actions)
        self._running = self._begun = False

    @property
    def weights(self) -> np.ndarray:
        """Weights of the parts of the reward, float64 of shape (K,)."""
        return self.episodes.preferences.rows[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        seeds = None
        if seed is not None:
            seeds = np.array([seed], dtype=np.uint64)
        elif not self._begun:
            seeds = self.np_random.integers(2**63, size=1, dtype=np.uint64)
        self._running = self._begun = True
        self.episodes.reset(seeds)
        return self.episodes.observe()[0], self._info(np.zeros(len(self.batch.rewards)))

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if not self._running:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        rewards, parts, ended = self.episodes.step(np.array([action]))
        self._running = not ended[0]
        return (
            self.episodes.observe()[0],
            float(rewards[0]),
            bool(ended[0]),
            False,
            self._info(parts[0]),
        )

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool of shape (A,): what sb3-contrib's maskable algorithms ask for."""
        return self.batch.masks[0]

    def _info(self, parts: np.ndarray) -> dict[str, Any]:
        facts = {key: value[0].item() for key, value in self.episodes.facts().items()}
        return {
            "action_mask": self.batch.masks[0].copy(),
            "reward_vector": parts.copy(),
            "weights": self.weights.copy(),
        } | facts
