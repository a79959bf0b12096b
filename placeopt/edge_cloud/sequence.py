"""The edge-cloud problem, one microservice at a time: each decision is a node.

Applications come one after another, small ones first unless told otherwise, and the microservices of each in their own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError
from placeopt.core.front import Objective
from placeopt.core.interfaces import DecisionSequence
from placeopt.edge_cloud import sequence_kernels as kernels
from placeopt.edge_cloud.arrays import order_of
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.sequence_kernels import DEPTH, POSITION, Rules, State


class EdgeCloudSequence(DecisionSequence):
    """Microservice after microservice, application after application; action v is node v.

    Parameters
    ----------
    order : {"small-first", "given"}
        The order of the applications: it decides more than any look-ahead.
    """

    problem: EdgeCloud
    compiled = True

    #: Columns of `features`: of the node: free cpu and memory over the demand (at most 10, in tenths), free shares; increments of
    #: cost and latency, delay from the source; smallest slack of a flow; of the microservice: cpu, memory, data, share of its
    #: application that is placed; of the episode: share still to do.
    num_features = 13
    costs_never_fall = True

    def __init__(
        self, problem: EdgeCloud, objectives: Sequence[Objective], order: str = "small-first"
    ):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        table = problem.arrays
        self.rules = Rules(
            table, np.argsort(table.delay, axis=1, kind="stable"), order_of(table, order)
        )
        self.num_actions, self.decisions = len(table.capacity), len(table.demand)
        self._done_before = np.concatenate(([0], np.cumsum(np.diff(table.first)[self.rules.order])))
        known = table.delay[np.isfinite(table.delay)]
        self._longest = float(known.max(initial=0)) or 1.0
        self._dearest = float((table.operating + table.network * table.data.max()).max()) or 1.0

    def reset(self, rng: np.random.Generator | None = None) -> State:
        """Return the state before the first decision; episodes are not random."""
        table = self.rules.table
        return State(
            np.zeros(2, dtype=np.int64),
            np.full(len(table.demand), -1),
            table.capacity.copy(),
            np.zeros(1),
        )

    def copy(self, state: State) -> State:
        """Return a state that steps on its own."""
        return State(*(part.copy() for part in state))

    def remaining(self, state: State) -> int:
        """Return how many microservices are still to be placed."""
        return self.decisions - int(self._done_before[state.now[POSITION]] + state.now[DEPTH])

    def stage(self, state: State) -> int:
        """Return how many applications are placed."""
        return int(state.now[POSITION])

    def mask(self, state: State) -> np.ndarray:
        """Return the nodes that leave a place for the rest of the application."""
        answer = np.empty(self.num_actions, dtype=np.bool_)
        kernels.mask(self.rules, state, answer)
        return answer

    def _present(self, state: State) -> tuple[int, int, int]:
        """Return application, microservice and the end of the application."""
        application = int(self.rules.order[state.now[POSITION]])
        first, last = self.rules.table.first[application : application + 2].tolist()
        return application, first + int(state.now[DEPTH]), last

    def step(self, state: State, action: int) -> np.ndarray:
        """Place the next microservice; the cost is the increment of each objective."""
        if self.remaining(state) and 0 <= action < self.num_actions:
            application, i, last = self._present(state)
            if kernels.legal(
                self.rules, state, i, last, int(self.rules.table.source[application]), int(action)
            ):
                cost = np.zeros(2)
                kernels.advance(self.rules, state, int(action), cost)
                return cost[self._columns]
        raise UsageError(f"action {action} is not legal here; ask mask(state)")

    def _increments(self, state: State) -> np.ndarray:
        """Return cost and latency that every node would add, legal or not."""
        table = self.rules.table
        application, i, _ = self._present(state)
        cost = table.operating + table.network * table.data[i]
        return np.stack(
            [cost, np.maximum(0.0, table.delay[table.source[application]] - state.farthest[0])],
            axis=1,
        )

    def costs(self, state: State) -> np.ndarray:
        """Return the increments that each node would have; inf where illegal."""
        mask = self.mask(state)
        if not mask.any():
            return np.full((self.num_actions, len(self.objectives)), np.inf)
        return np.where(mask[:, None], self._increments(state)[:, self._columns], np.inf)

    def features(self, state: State) -> np.ndarray:
        """Return what is known of every node; see `num_features`."""
        features = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        mask = self.mask(state)
        if not mask.any():
            return features
        table, (application, i, last) = self.rules.table, self._present(state)
        demand, increments = np.maximum(table.demand[i], 1e-9), self._increments(state)
        with np.errstate(invalid="ignore"):
            features[:, 0:2] = np.minimum(state.room / demand, 10) / 10
            features[:, 2:4] = state.room / np.maximum(table.capacity, 1)
            features[:, 4] = increments[:, 0] / self._dearest
            features[:, 5] = increments[:, 1] / self._longest
            features[:, 6] = table.delay[table.source[application]] / self._longest
            features[:, 7] = self._slack(state, i) / self._longest
        largest = np.maximum(table.demand.max(axis=0), 1)
        features[:, 8:10] = table.demand[i] / largest
        features[:, 10] = table.data[i] / max(float(table.data.max()), 1e-9)
        features[:, 11] = state.now[DEPTH] / (last - table.first[application])
        features[:, 12] = self.remaining(state) / self.decisions
        features[~mask] = 0
        return np.clip(features, -1, 1)

    def _slack(self, state: State, i: int) -> np.ndarray:
        """Return by how much the tightest flow to a microservice that is placed is kept on each node."""
        table, slack = self.rules.table, np.full(self.num_actions, self._longest)
        for e in range(table.flow_first[i], table.flow_first[i + 1]):
            host = int(state.hosts[table.flow_other[e]])
            if host >= 0:
                slack = np.minimum(slack, table.flow_limit[e] - table.delay[host])
        return slack

    def plan(self, state: State) -> dict[str, Any]:
        """Return the placements so far in the instance's own names."""
        return self.problem.plan(state.hosts)

    # -- what the rollout and the greedy heuristic use instead of one step at a time ---------------------------------

    def _weights(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of (cost, latency) from weights of the objectives."""
        full = np.zeros(2)
        full[self._columns] = weights
        return full

    def play_greedy(self, state: State, weights: np.ndarray, most: int) -> int:
        """Take up to `most` decisions of the greedy policy, in place; return how many."""
        full, floor = self._weights(weights), np.empty(self.decisions)
        kernels.floors(self.rules.table, full, floor)
        return int(kernels.play_greedy(self.rules, state, full, floor, np.zeros(2), most))

    def play_rollout(
        self, state: State, weights: np.ndarray, beta: float, gamma: float, horizon: int, most: int
    ) -> int:
        """Take up to `most` decisions of rollout over the greedy policy, in place; return how many."""
        full, floor, rest = (
            self._weights(weights),
            np.empty(self.decisions),
            np.zeros(self.decisions),
        )
        kernels.floors(self.rules.table, full, floor)
        for first, last in zip(
            self.rules.table.first[:-1].tolist(), self.rules.table.first[1:].tolist(), strict=True
        ):
            rest[first:last] = floor[first:last][::-1].cumsum()[::-1] - floor[first:last]
        rest *= 1 - 1e-12  # rounding must not prune a tie
        return int(
            kernels.play_rollout(
                self.rules, state, full, floor, rest, beta, gamma, horizon, np.zeros(2), most
            )
        )


def build(
    problem: EdgeCloud, objectives: Sequence[Objective], *, order: str = "small-first"
) -> EdgeCloudSequence:
    """Return the edge-cloud problem as a sequence of decisions."""
    return EdgeCloudSequence(problem, objectives, order)
