"""A batch of episodes as a vector environment of stable-baselines3.

There are no worker processes, and no loop over environments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from placeopt.core.interfaces import Batch
from placeopt.rl.environment import observation_space
from placeopt.rl.episodes import WeightedEpisodes, Weights


class BatchVecEnv(VecEnv):
    """What the algorithms of stable-baselines3 and sb3-contrib train on.

    ``seed(s)`` seeds environment i with s + i at the next reset. When an episode ends, its
    environment begins anew. The info of that step has ``terminal_observation`` and ``episode``:
    return ``r``, length ``l`` and the facts of the batch.

    Parameters
    ----------
    batch : Batch
    weights, append
        As of `placeopt.rl.episodes.WeightedEpisodes`; by default both weights and legality are
        appended, as the policies of `placeopt.rl.deepsets` read them.
    scale : float
        The learner sees rewards times this; the facts of episodes keep the true ones.
    """

    render_mode = None

    def __init__(
        self,
        batch: Batch,
        weights: Weights = None,
        append: Sequence[str] = ("weights", "legal"),
        scale: float = 1.0,
    ):
        self.episodes = WeightedEpisodes(batch, weights, append)
        self.batch, self.scale = batch, scale
        self._actions = np.zeros(batch.num_envs, dtype=np.int64)
        super().__init__(
            batch.num_envs,
            observation_space(self.episodes.shape),
            gymnasium.spaces.Discrete(batch.num_actions),
        )

    def reset(self) -> np.ndarray:
        """Begin all episodes anew."""
        seeds = None
        if self._seeds[0] is not None:
            seeds = np.array(self._seeds, dtype=np.uint64)
        self._reset_seeds()
        return self.episodes.begin(seeds, np.random.default_rng())

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take the actions."""
        rewards, _, ended = self.episodes.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if ended.any():
            seen, facts = self.episodes.observe(), self.episodes.facts()
            for i in np.flatnonzero(ended).tolist():
                own = {key: value[i].item() for key, value in facts.items()}
                own |= {"r": own.pop("episode_return"), "l": own.pop("episode_length"), "t": 0.0}
                infos[i] = {
                    "terminal_observation": seen[i],
                    "episode": own,
                    "TimeLimit.truncated": False,
                }
            self.episodes.reset(None, ended)
        scaled = rewards.astype(np.float32) * np.float32(self.scale)
        return self.episodes.observe(), scaled, ended, infos

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool of shape (N, A); MaskablePPO asks for this name."""
        return self.batch.masks

    def close(self) -> None:
        """Nothing to release."""

    def _chosen(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, once for every environment asked for."""
        return [getattr(self, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all environments: they are one object."""
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method that answers for all environments; its answers for those asked for."""
        answers = getattr(self, method_name)(*method_args, **method_kwargs)
        return [answers[i] for i in self._chosen(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper], indices: Any = None
    ) -> list[bool]:
        """Return False for every environment."""
        return [False] * len(self._chosen(indices))
