"""A `Batch` of any problem: N episodes of its sequential face in a plain loop.

Compiled batches are quicker by orders of magnitude; this one serves every problem that has a sequential face. To the features of the
face it adds what each action earns at once, a column for each part of the reward: what a greedy policy goes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core.interfaces import Batch, build_sequence
from placeopt.core.problem import Problem
from placeopt.registry import problem_class
from placeopt.rollout.rollout import scales


class SequentialBatch(Batch):
    """Episodes of sequential faces, one after another; see `placeopt.core.interfaces.Batch` for the attributes.

    The parts of the reward are minus the costs of a step, each over the spread of its objective among greedy plans. An illegal action
    ends the episode, as a dead end does; both cost `penalty` times the share of decisions that are left.

    Parameters
    ----------
    problem : Problem or str
        An instance; or the name of a problem, of which environment i has the instance generated from ``seed + i``. Actions that an
        instance does not have are illegal.
    num_envs : int
    seed : int
        Of the first generated instance.
    sizes : dict, optional
        Of generated instances, as of ``placeopt generate``.
    objectives : sequence of str, optional
        All of the problem's by default.
    penalty : float
    **options
        Of the sequential face, such as ``order``.
    """

    compiled = False

    def __init__(
        self,
        problem: Problem | str,
        num_envs: int = 1,
        *,
        seed: int = 0,
        sizes: dict[str, Any] | None = None,
        objectives: Sequence[str] | None = None,
        penalty: float = 10.0,
        **options: Any,
    ):
        if isinstance(problem, Problem):
            face = build_sequence(problem, problem.select(objectives), **options)
            self.faces = [face] * num_envs
            self._scales = [scales(face)] * num_envs
        else:
            instances = [
                problem_class(problem).generate(seed + i, **(sizes or {})) for i in range(num_envs)
            ]
            self.faces = [
                build_sequence(one, one.select(objectives), **options) for one in instances
            ]
            self._scales = [scales(face) for face in self.faces]
        self.num_envs, self.penalty = num_envs, penalty
        self.num_actions = max(face.num_actions for face in self.faces)
        self.rewards = tuple(o.name for o in self.faces[0].objectives)
        known = self.faces[0].num_features
        self.num_features = known + len(self.rewards)
        self.score = tuple(range(known, self.num_features))
        self.observations = np.zeros(
            (num_envs, self.num_actions, self.num_features), dtype=np.float32
        )
        self.masks = np.zeros((num_envs, self.num_actions), dtype=bool)
        self.states: list[Any] = [None] * num_envs
        self._rngs = [np.random.default_rng([seed, i]) for i in range(num_envs)]

    def reset(self, seeds: np.ndarray | None = None, which: np.ndarray | None = None) -> None:
        """Begin new episodes."""
        if seeds is not None:
            self._rngs = [np.random.default_rng(int(one)) for one in seeds]
        for i in range(self.num_envs) if which is None else np.flatnonzero(which).tolist():
            self.states[i] = self.faces[i].reset(self._rngs[i])
            self._look(i)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take one action in every environment."""
        rewards = np.zeros((self.num_envs, len(self.rewards)))
        ended = np.zeros(self.num_envs, dtype=bool)
        for i, action in enumerate(actions):
            face, state = self.faces[i], self.states[i]
            legal = bool(self.masks[i, action])
            if legal:
                rewards[i] = -face.step(state, int(action)) / self._scales[i]
                self._look(i)
            ended[i] = not legal or not self.masks[i].any()
            if ended[i]:
                rewards[i] -= self.penalty * face.remaining(state) / face.decisions
        return rewards, ended

    def info(self) -> dict[str, np.ndarray]:
        """Return the share of decisions made, which is 1 for a complete plan."""
        done = [
            1 - face.remaining(state) / face.decisions
            for face, state in zip(self.faces, self.states, strict=True)
        ]
        return {"decided": np.array(done)}

    def plan(self, env: int) -> dict[str, Any]:
        """Return the plan of an episode so far."""
        return self.faces[env].plan(self.states[env])

    def _look(self, i: int) -> None:
        face, state = self.faces[i], self.states[i]
        self.masks[i] = False
        self.masks[i, : face.num_actions] = face.mask(state)
        self.observations[i] = 0
        if self.masks[i].any():
            legal = self.masks[i, : face.num_actions, None]
            at_once = np.where(legal, -face.costs(state) / self._scales[i], 0)
            self.observations[i, : face.num_actions] = np.concatenate(
                [face.features(state), at_once], axis=1
            )
