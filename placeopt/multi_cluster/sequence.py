"""The multi-cluster problem, one request of a trace at a time; an action is a cluster, a spread, or the refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.front import Objective
from placeopt.core.interfaces import DecisionSequence
from placeopt.multi_cluster import batch as batches
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.simulator.state import ACCEPTED, EXTRA, LATENCY
from placeopt.multi_cluster.simulator.stream import Stream


class MultiClusterSequence(DecisionSequence):
    """Request after request; actions and columns of `features` are those of `placeopt.multi_cluster.batch.MultiCluster`.

    The cost of a step is the change of the objectives' values over the requests so far; the first decision carries them whole.
    """

    problem: MultiCluster
    compiled = True

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
        return (
            state.masks[0].copy()
            if self.remaining(state)
            else np.zeros(self.num_actions, dtype=bool)
        )

    def _values(self, stream: Stream, more: int = 0) -> np.ndarray:
        """Return the four values over the requests so far, `more` of them refused besides, shape (N, 4); 0 before the first."""
        sums, decided = stream.world.sums, stream.world.now + more
        count = sums[:, ACCEPTED, None]
        means = np.where(
            count > 0,
            sums[:, LATENCY : LATENCY + 3] / np.maximum(count, 1),
            self._worst * (decided > 0)[:, None],
        )
        return np.column_stack((means, (decided - count[:, 0]) / self.decisions))

    def _costs(self, stream: Stream) -> np.ndarray:
        """Return the change of the values that each action would make, shape (N, A, 4); inf where illegal, and after the end."""
        w, before = stream.world, self._values(stream)
        count, sums = w.sums[:, None, None, ACCEPTED], w.sums[:, None, LATENCY : LATENCY + 3]
        placed = np.concatenate(
            (
                (sums + w.outcome) / (count + 1) - before[:, None, :3],
                np.zeros((*w.accepts.shape, 1)),
            ),
            axis=2,
        )
        found = np.where(
            w.accepts[:, :, None], placed, (self._values(stream, 1) - before)[:, None, :]
        )
        found[~stream.masks | (w.now == self.decisions)[:, None]] = np.inf
        return found[:, :, self._columns]

    def step(self, state: batches.MultiCluster, action: int) -> np.ndarray:
        """Decide on the request at hand."""
        if not (
            self.remaining(state) and 0 <= action < self.num_actions and state.masks[0, action]
        ):
            raise UsageError(f"action {action} is not legal here; ask mask(state)")
        before = self._values(state)
        state.step(np.array([action]))
        return (self._values(state) - before)[0, self._columns]

    def costs(self, state: batches.MultiCluster) -> np.ndarray:
        """Return the change of the values that each action would make; inf where illegal."""
        return self._costs(state)[0]

    def plan(self, state: batches.MultiCluster) -> dict[str, Any]:
        """Return the decisions so far, and refusals of all that is still to come."""
        placed = state.placements(0)
        return self.problem.plan([*placed, *({} for _ in range(self.decisions - len(placed)))])

    def features(self, state: batches.MultiCluster) -> np.ndarray:
        """Return the rows of the actions; those of illegal ones are 0."""
        return state.observations[0].copy()

    # -- what the rollout uses instead of one action at a time -------------------------------------------------------

    def _choices(self, stream: Stream, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions of least weighted cost, of equals the first, and their costs; (N,) each."""
        costs = self._costs(stream)
        worth = np.where(
            np.isfinite(costs[:, :, 0]), np.where(np.isfinite(costs), costs, 0.0) @ weights, np.inf
        )
        best = worth.argmin(axis=1)
        return best, worth[np.arange(len(best)), best]

    def play_greedy(self, state: batches.MultiCluster, weights: np.ndarray, most: int) -> int:
        """Take up to `most` decisions of the greedy policy, in place; return how many."""
        count = min(most, self.remaining(state))
        for _ in range(count):
            state.step(self._choices(state, weights)[0])
        return count

    def play_rollout(
        self,
        state: batches.MultiCluster,
        weights: np.ndarray,
        beta: float,
        gamma: float,
        horizon: int,
        most: int,
    ) -> int:
        """Take up to `most` decisions of rollout over the greedy policy, in place, all actions of a decision at once; return how many."""
        count = min(most, self.remaining(state))
        for _ in range(count):
            costs = self.costs(state)
            legal = np.flatnonzero(np.isfinite(costs).all(axis=1))
            own = costs[legal] @ weights
            order = np.argsort(own, kind="stable")[: max(1, math.ceil(beta * len(legal)))]
            value = own[order]
            if gamma > 0 and horizon > 0:
                twins = state.silent(np.zeros(len(order), dtype=np.int64))
                twins.step(legal[order])
                for _ in range(min(horizon, self.remaining(state) - 1)):
                    actions, spent = self._choices(twins, weights)
                    value = value + gamma * spent
                    twins.step(actions)
            state.step(legal[order[[value.argmin()]]])
        return count


def build(problem: MultiCluster, objectives: Sequence[Objective]) -> MultiClusterSequence:
    """Return the multi-cluster problem as a sequence of decisions."""
    return MultiClusterSequence(problem, objectives)
