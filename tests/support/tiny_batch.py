"""A batch of episodes that can be checked by hand: cards with two values, of which one is to be
picked, five times.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.interfaces import Batch


class Cards(Batch):
    """Every step shows `num_actions` cards, some face down; picking one earns its two values, one
    for each part of the reward.

    Features: the two values, the share of the episode that is left.
    """

    rewards = ("red", "blue")
    num_features = 3
    steps = 5

    def __init__(self, num_envs: int = 1, num_actions: int = 4):
        self.num_envs, self.num_actions = num_envs, num_actions
        self.observations = np.zeros((num_envs, num_actions, 3), dtype=np.float32)
        self.masks = np.zeros((num_envs, num_actions), dtype=bool)
        self.time = np.zeros(num_envs, dtype=np.int64)
        self._rngs = [np.random.default_rng(i) for i in range(num_envs)]

    def _deal(self, i: int) -> None:
        self.masks[i] = self._rngs[i].random(self.num_actions) < 0.7
        self.masks[i, self._rngs[i].integers(self.num_actions)] = True
        self.observations[i, :, :2] = self._rngs[i].random((self.num_actions, 2))
        self.observations[i, :, 2] = 1 - self.time[i] / self.steps
        self.observations[i, ~self.masks[i]] = 0

    def reset(self, seeds=None, which=None):
        """Begin new episodes."""
        if seeds is not None:
            self._rngs = [np.random.default_rng(int(s)) for s in seeds]
        for i in range(self.num_envs) if which is None else np.flatnonzero(which):
            self.time[i] = 0
            self._deal(i)

    def step(self, actions):
        """Pick cards; a card face down costs 1."""
        rewards = np.where(
            self.masks[np.arange(self.num_envs), actions, None],
            self.observations[np.arange(self.num_envs), actions, :2],
            -1.0,
        )
        self.time += 1
        for i in range(self.num_envs):
            self._deal(i)
        return rewards.astype(float), self.time >= self.steps

    def info(self):
        """Return how far the episodes are."""
        return {"time": self.time.copy()}
