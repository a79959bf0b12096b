"""One environment for every problem: an episode of its sequential face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.core.problem import Problem
from placeopt.registry import problem_class
from placeopt.rollout.rollout import scales


class SequentialEnv(gymnasium.Env[np.ndarray, np.int64]):
    """A sequential face as a Gymnasium environment.

    The observation has a row of features for every action, float32 of shape (num_actions, num_features) in [-1, 1]; rows of
    illegal actions are 0. The reward is minus the weighted cost of the step, so that the undiscounted return of a complete episode
    is minus the weighted values that the referee gives for its plan. An illegal action ends the episode, as a dead end does;
    both cost `penalty` times the share of decisions that are left. ``action_masks()`` and ``info["action_mask"]`` say what is legal.

    Parameters
    ----------
    problem : Problem or str
        An instance, or the name of a problem of which one is generated.
    objectives : sequence of str, optional
        All of the problem's by default.
    weights : sequence of float, optional
        One per objective; equal ones by default.
    scaled : bool
        Divide every objective by the spread of its values over greedy plans, so that weights compare.
    penalty : float
        Cost of a plan that was not begun.
    seed : int
        Of the generated instance.
    sizes : dict, optional
        Of the generated instance, as of ``placeopt generate``.
    **options
        Of the sequential face, such as ``order``.

    Examples
    --------
    >>> env = SequentialEnv("edge-cloud", sizes={"applications": 2})
    >>> observation, info = env.reset()
    >>> observation, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as the base class declares it)

    def __init__(
        self,
        problem: Problem | str,
        objectives: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
        *,
        scaled: bool = True,
        penalty: float = 10.0,
        seed: int = 0,
        sizes: dict[str, Any] | None = None,
        **options: Any,
    ):
        instance = (
            problem
            if isinstance(problem, Problem)
            else problem_class(problem).generate(seed, **(sizes or {}))
        )
        self.face = build_sequence(instance, instance.select(objectives), **options)
        self.problem = instance
        count = len(self.face.objectives)
        given = np.full(count, 1 / count) if weights is None else np.asarray(weights, dtype=float)
        if given.shape != (count,) or not (np.isfinite(given).all() and (given >= 0).all()):
            raise UsageError(f"weights is {weights!r}; give {count} numbers of at least 0")
        self.weights = given / scales(self.face) if scaled else given
        self.penalty = penalty
        self.observation_space = gymnasium.spaces.Box(
            -1.0, 1.0, (self.face.num_actions, self.face.num_features), np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.face.num_actions)
        self._state: Any = None
        self._mask = np.zeros(self.face.num_actions, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._state = self.face.reset(self.np_random)
        return self._look(), self._info()

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make a decision."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        legal = bool(self._mask[int(action)])
        reward = -float(self.face.step(self._state, int(action)) @ self.weights) if legal else 0.0
        observation = self._look()
        ended = not legal or not self._mask.any()
        if ended:
            reward -= self.penalty * self.face.remaining(self._state) / self.face.decisions
        info = self._info()
        if ended:
            plan = self.face.plan(self._state)
            verdict = self.problem.evaluate(plan)
            info |= {"plan": plan, "values": verdict.values, "feasible": verdict.feasible}
        return observation, reward, ended, False, info

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool of shape (num_actions,): what sb3-contrib's maskable algorithms ask for."""
        return self._mask

    def _look(self) -> np.ndarray:
        self._mask = self.face.mask(self._state)
        return self.face.features(self._state)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask.copy(), "remaining": self.face.remaining(self._state)}
