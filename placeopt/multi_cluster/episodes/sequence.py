"""The multi-cluster problem, one request of a trace at a time.

An action is a cluster, a spread, or the refusal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence
from placeopt.multi_cluster.episodes.state import ACCEPTED, EXTRA, LATENCY
from placeopt.multi_cluster.episodes.stream import FEATURES, EpisodeBatch, MultiClusterBatch
from placeopt.multi_cluster.problem import MultiCluster


class MultiClusterSequence(DecisionSequence):
    """Request after request; a state is a `MultiClusterBatch` of one environment.

    The cost of a step is the change of the objectives' values over the requests so far; the first
    decision carries them whole.
    """

    problem: MultiCluster
    compiled = True
    num_features = FEATURES

    def __init__(self, problem: MultiCluster, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.decisions = len(problem.requests)
        self.num_actions = len(problem.clusters) + EXTRA
        self._start = MultiClusterBatch.of(problem)

    def reset(self, rng: np.random.Generator | None = None) -> MultiClusterBatch:
        """Return the state before the first request; episodes are not random."""
        return self._start.fork([0])

    def copy(self, state: MultiClusterBatch) -> MultiClusterBatch:
        """Return a state that steps on its own."""
        return state.fork([0])

    def remaining(self, state: MultiClusterBatch) -> int:
        """Return how many requests are still to come."""
        return self.decisions - int(state.state.now[0])

    def mask(self, state: MultiClusterBatch) -> np.ndarray:
        """Return which actions are legal, bool (num_actions,); to refuse always is."""
        return state.masks[0] & (self.remaining(state) > 0)

    def _values(self, stream: EpisodeBatch, refused: int = 0) -> np.ndarray:
        return stream.values(self.problem.referee.worst, refused)

    def _costs(self, stream: EpisodeBatch) -> np.ndarray:
        """Return the cost vector of every action, shape (N, A, objectives).

        It is inf where the action is illegal, and after the end.
        """
        outcomes, before = stream.outcomes, self._values(stream)
        sums = stream.state.sums[:, None]
        count = sums[:, :, ACCEPTED, None]
        means = (sums[:, :, LATENCY : LATENCY + 3] + outcomes.outcome) / (count + 1)
        change = np.zeros((*outcomes.accepts.shape, 4))
        change[:, :, :3] = means - before[:, None, :3]
        refused = (self._values(stream, 1) - before)[:, None, :]
        result = np.where(outcomes.accepts[:, :, None], change, refused)
        result[~stream.masks | stream.ended[:, None]] = np.inf
        return result[:, :, self._columns]

    def step(self, state: MultiClusterBatch, action: int) -> np.ndarray:
        """Decide on the request at hand; return the cost vector."""
        action = self.legal_action(state, action)
        before = self._values(state)
        state.step(np.array([action]))
        return (self._values(state) - before)[0, self._columns]

    def costs(self, state: MultiClusterBatch) -> np.ndarray:
        """Return the cost vector of every action, shape (num_actions, objectives)."""
        return self._costs(state)[0]

    def plan(self, state: MultiClusterBatch) -> Plan:
        """Return the decisions so far, and refusals of all that is still to come."""
        return state.plan(0)

    def features(self, state: MultiClusterBatch) -> np.ndarray:
        """Return the observation, shape (num_actions, num_features)."""
        return state.observations[0].copy()

    # -- many decisions at once --------------------------------------------------------------------

    def _greedy_actions(
        self, stream: EpisodeBatch, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions of least weighted cost, of equals the first, and their costs; (N,)."""
        costs = self._costs(stream)
        finite = np.isfinite(costs)
        weighted = np.where(finite[:, :, 0], np.where(finite, costs, 0.0) @ weights, np.inf)
        return weighted.argmin(axis=1), weighted.min(axis=1)

    def play_greedy(self, state: MultiClusterBatch, weights: np.ndarray, most: int) -> int:
        """Take at most `most` decisions of the greedy policy, in place; return how many."""
        count = min(most, self.remaining(state))
        for _ in range(count):
            state.step(self._greedy_actions(state, weights)[0])
        return count

    def play_rollout(
        self,
        state: MultiClusterBatch,
        weights: np.ndarray,
        beta: float,
        gamma: float,
        horizon: int,
        most: int,
    ) -> int:
        """Take at most `most` decisions of rollout over the greedy policy, in place.

        All actions of a decision are rolled out together. Return how many decisions were taken.
        """
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
                    actions, spent = self._greedy_actions(twins, weights)
                    value = value + gamma * spent
                    twins.step(actions)
            state.step(legal[order[[value.argmin()]]])
        return count
