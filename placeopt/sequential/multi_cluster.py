"""The multi-cluster problem, one request of a trace at a time; an action is a cluster, a spread, or the refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.front import Objective
from placeopt.problems.multi_cluster import MultiCluster
from placeopt.problems.multi_cluster_world import ACCEPTED, EXTRA, LATENCY
from placeopt.sequential import Sequential
from placeopt.sequential import multi_cluster_batch as batches


class MultiClusterSequence(Sequential):
    """Request after request; actions and columns of `features` are those of `placeopt.sequential.multi_cluster_batch.MultiCluster`.

    The cost of a step is the change of the objectives' values over the requests so far; the first decision carries them whole.
    """

    num_features = batches.MultiCluster.num_features

    def __init__(self, problem: MultiCluster, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        self.decisions = len(problem.requests)
        self.num_actions = len(problem.clusters) + EXTRA
        self._worst = np.array(problem.referee.judge([{}] * self.decisions).values[:3])
        self._start = batches.MultiCluster.of(problem)
        self._start.reset()

    def reset(self, rng: np.random.Generator | None = None) -> batches.MultiCluster:
        """Return the state before the first request: a batch of one; episodes are not random."""
        return self._start.fork([0])

    def copy(self, state: batches.MultiCluster) -> batches.MultiCluster:
        """Return a state that steps on its own."""
        return state.fork([0])

    def remaining(self, state: batches.MultiCluster) -> int:
        """Return how many requests are still to come."""
        return self.decisions - int(state.world.now[0])

    def mask(self, state: batches.MultiCluster) -> np.ndarray:
        """Return which actions are legal; to refuse always is."""
        return state.masks[0].copy() if self.remaining(state) else np.zeros(self.num_actions, dtype=bool)

    def _values(self, count: float, sums: np.ndarray, decided: float) -> np.ndarray:
        """Return the four values over the requests so far; 0 before the first."""
        means = sums / count if count else self._worst * (decided > 0)
        return np.array([*means, (decided - count) / self.decisions])

    def _now(self, state: batches.MultiCluster) -> tuple[float, np.ndarray, int]:
        sums = state.world.sums[0]
        return float(sums[ACCEPTED]), sums[LATENCY : LATENCY + 3].copy(), int(state.world.now[0])

    def step(self, state: batches.MultiCluster, action: int) -> np.ndarray:
        """Decide on the request at hand."""
        if not (self.remaining(state) and 0 <= action < self.num_actions and state.masks[0, action]):
            raise UsageError(f"action {action} is not legal here; ask mask(state)")
        before = self._values(*self._now(state))
        state.step(np.array([action]))
        return (self._values(*self._now(state)) - before)[self._columns]

    def costs(self, state: batches.MultiCluster) -> np.ndarray:
        """Return the change of the values that each action would make; inf where illegal."""
        found = np.full((self.num_actions, 4), np.inf)
        if self.remaining(state):
            count, sums, decided = self._now(state)
            before = self._values(count, sums, decided)
            accepts = state.world.accepts[0]
            found[state.masks[0]] = self._values(count, sums, decided + 1) - before
            found[accepts, :3] = (sums + state.outcome[0, accepts]) / (count + 1) - before[:3]
            found[accepts, 3] = 0.0
        return found[:, self._columns]

    def plan(self, state: batches.MultiCluster) -> dict[str, Any]:
        """Return the decisions so far, and refusals of all that is still to come."""
        placed = state.placements(0)
        return self.problem.plan([*placed, *({} for _ in range(self.decisions - len(placed)))])

    def features(self, state: batches.MultiCluster) -> np.ndarray:
        """Return the rows of the actions; those of illegal ones are 0."""
        return state.observations[0].copy()


def build(problem: MultiCluster, objectives: Sequence[Objective], **options: Any) -> MultiClusterSequence:
    """Return the multi-cluster problem as a sequence of decisions."""
    return MultiClusterSequence(problem, objectives, **options)
