"""Face 3, one decision at a time: what greedy policies, the rollout and the Gymnasium environments share.

A face turns a problem into an episode: a fixed number of decisions, each a whole number, each with a cost vector. The costs
of an episode add up to what the referee says of its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from placeopt.front import Objective
from placeopt.problems import row
from placeopt.problems.base import Problem


class Sequential(Protocol):
    """A problem as a sequence of decisions.

    A state is whatever the face makes of it; only the methods below look inside. Faces inherit from this class for `costs`.

    Attributes
    ----------
    problem : Problem
    objectives : tuple of Objective
        The columns of a cost vector.
    num_actions : int
        Actions are 0 to ``num_actions - 1``.
    num_features : int
        Columns of `features`.
    decisions : int
        Steps of a complete episode.
    costs_never_fall : bool
        No step has a negative cost: what a partial plan costs is a lower bound of what it will cost.
    """

    problem: Problem
    objectives: tuple[Objective, ...]
    num_actions: int
    num_features: int
    decisions: int
    costs_never_fall: bool = False

    def reset(self, rng: np.random.Generator | None = None) -> Any:
        """Return the state before the first decision; `rng` serves faces whose episodes are random."""

    def copy(self, state: Any) -> Any:
        """Return a state that steps on its own; cheap."""

    def remaining(self, state: Any) -> int:
        """Return how many decisions are still to be made; 0 when the plan is complete."""
        raise NotImplementedError

    def stage(self, state: Any) -> int:
        """Return how many groups of decisions (requests, applications) are complete; a look-ahead counts in these."""
        return self.decisions - self.remaining(state)

    def mask(self, state: Any) -> np.ndarray:
        """Return which actions are legal, bool of shape (num_actions,); none is at a dead end and after the last decision."""
        raise NotImplementedError

    def step(self, state: Any, action: int) -> np.ndarray:
        """Take a legal action, in place, and return its cost, shape (objectives,).

        The costs of an episode that completes its plan sum to ``problem.evaluate(plan(state)).values``.
        """
        raise NotImplementedError

    def done(self, state: Any) -> bool:
        """Return whether the episode is over: the plan is complete, or no action is legal."""
        return self.remaining(state) == 0 or not self.mask(state).any()

    def plan(self, state: Any) -> dict[str, Any]:
        """Return the plan so far; what a dead end left out the referee reports as a violation."""
        raise NotImplementedError

    def features(self, state: Any) -> np.ndarray:
        """Return what is known of every action, float32 of shape (num_actions, num_features), scaled to about [-1, 1].

        Rows of illegal actions are 0.
        """
        raise NotImplementedError

    def costs(self, state: Any) -> np.ndarray:
        """Return the cost vector that each action would have, shape (num_actions, objectives); inf where illegal.

        Faces override this where they know a way quicker than trying.
        """
        found = np.full((self.num_actions, len(self.objectives)), np.inf)
        for action in np.flatnonzero(self.mask(state)):
            found[action] = self.step(self.copy(state), int(action))
        return found


def build(
    problem: Problem, objectives: Sequence[Objective] | None = None, **options: Any
) -> Sequential:
    """Return the sequential face of a problem; options are those of the problem's own ``build``.

    Raises
    ------
    UnsupportedError
        The problem has none.
    """
    return row(__name__, problem).build(problem, tuple(objectives or problem.objectives), **options)
