"""Gymnasium environments over a `Batch` of episodes: N at once as a VectorEnv, one as an Env.

An observation has a row for every action: the batch's features and, where `append` asks for them,
the weights of the reward's parts and whether the action is legal. ``info["action_mask"]`` says
which actions are legal, ``info["reward_vector"]`` has the parts of the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import Batch
from placeopt.core.numbers import checked_seed
from placeopt.rl.episodes import LIMIT, WeightedEpisodes, Weights


def observation_space(shape: tuple[int, ...]) -> gymnasium.spaces.Box:
    """Return the space of observations of this shape."""
    return gymnasium.spaces.Box(-LIMIT, LIMIT, shape, np.float32)


class BatchVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """N environments that step together; ended ones begin anew in the same step.

    ``reset(seed=s)`` seeds environment i with s + i: it then plays what `BatchEnv` plays after
    ``reset(seed=s + i)``. When an episode ends, ``info["final_obs"]`` has its last observation and
    ``info["final_info"]`` its return, its length and what the batch says of it.

    Parameters
    ----------
    batch : Batch
    weights, append
        As of `placeopt.rl.episodes.WeightedEpisodes`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (as the base class declares it)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        self.episodes = WeightedEpisodes(batch, weights, append)
        self.batch, self.num_envs = batch, batch.num_envs
        self.single_observation_space = observation_space(self.episodes.shape)
        self.observation_space = observation_space((batch.num_envs, *self.episodes.shape))
        self.single_action_space = gymnasium.spaces.Discrete(batch.num_actions)
        self.action_space = gymnasium.spaces.MultiDiscrete(
            np.full(batch.num_envs, batch.num_actions)
        )
        self._all = np.ones(batch.num_envs, dtype=bool)

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
        seeds = None
        if isinstance(seed, (list, tuple)) or (isinstance(seed, np.ndarray) and seed.ndim):
            if len(seed) != self.num_envs:
                raise UsageError(f"{len(seed)} seeds for {self.num_envs} environments; give each")
            seeds = np.array([checked_seed(one) for one in seed], dtype=np.uint64)
        elif seed is not None:
            seed = checked_seed(seed)
            seeds = np.arange(self.num_envs, dtype=np.uint64) + np.uint64(seed)
        super().reset(seed=seed if isinstance(seed, int) else None)
        seen = self.episodes.begin(seeds, self.np_random)
        return seen, self._info(np.zeros((self.num_envs, len(self.batch.rewards))))

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action in every environment."""
        if not self.episodes.begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        rewards, parts, ended = self.episodes.step(actions)
        final: dict[str, Any] = {}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            seen, facts = self.episodes.observe(), self.episodes.facts()
            for i in np.flatnonzero(ended):
                last[i] = seen[i]
            final = {"final_obs": last, "_final_obs": ended, "_final_info": ended}
            final["final_info"] = facts | {f"_{name}": ended for name in facts}
            self.episodes.reset(None, ended)
        cut = np.zeros(self.num_envs, dtype=bool)
        return self.episodes.observe(), rewards, ended, cut, self._info(parts) | final

    def _info(self, parts: np.ndarray) -> dict[str, Any]:
        facts = {
            "action_mask": self.batch.masks.copy(),
            "reward_vector": parts.copy(),
            "weights": self.weights.copy(),
        }
        return facts | {f"_{key}": self._all for key in facts}


class BatchEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One environment over a batch of one.

    ``action_masks()`` and ``info["action_mask"]`` say what is legal. ``info`` has the parts of the
    reward and the facts of the episode. At the end of an episode of an instance it also has the
    `plan`, and of the referee its `values` and whether it is `feasible`.

    Parameters
    ----------
    batch : Batch
        With one environment.
    weights, append
        As of `placeopt.rl.episodes.WeightedEpisodes`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as the base class declares it)

    def __init__(self, batch: Batch, weights: Weights = None, append: Sequence[str] | None = None):
        if batch.num_envs != 1:
            raise UsageError(f"the batch has {batch.num_envs} environments; give one of 1")
        self.episodes = WeightedEpisodes(batch, weights, append)
        self.batch = batch
        self.observation_space = observation_space(self.episodes.shape)
        self.action_space = gymnasium.spaces.Discrete(batch.num_actions)
        self._running = False

    @property
    def weights(self) -> np.ndarray:
        """Weights of the parts of the reward, float64 of shape (K,)."""
        return self.episodes.preferences.rows[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode."""
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        seeds = None if seed is None else np.array([seed], dtype=np.uint64)
        self._running = True
        seen = self.episodes.begin(seeds, self.np_random)
        return seen[0], self._info(np.zeros(len(self.batch.rewards)))

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if not self._running:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        alone: Any = [action]
        rewards, parts, ended = self.episodes.step(alone)
        self._running = not ended[0]
        info = self._info(parts[0])
        if ended[0] and self.batch.problem is not None:
            plan = self.batch.plan(0)
            verdict = self.batch.problem.evaluate(plan)
            info |= {"plan": plan, "values": verdict.values, "feasible": verdict.feasible}
        return self.episodes.observe()[0], float(rewards[0]), bool(ended[0]), False, info

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool of shape (A,); sb3-contrib asks for this name."""
        return self.batch.masks[0]

    def _info(self, parts: np.ndarray) -> dict[str, Any]:
        facts = {key: value[0].item() for key, value in self.episodes.facts().items()}
        return {
            "action_mask": self.batch.masks[0].copy(),
            "reward_vector": parts.copy(),
            "weights": self.weights.copy(),
        } | facts
