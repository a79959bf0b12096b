"""Rescheduling as a decision sequence: the node of one replica after another.

A replica moves to its node at once, or stays. A move is legal if the new copy fits beside all that
runs, so that every episode is a plan that breaks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placeopt.core.errors import require_known
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rescheduling.latency import latencies

#: Orders of the services: the gateway first, along the calls; or as given.
ORDERS = ("calls", "given")


class ReschedulingSequenceState(NamedTuple):
    """How far an episode is; S services, N nodes."""

    taken: np.ndarray  # (1,) decisions taken
    choices: np.ndarray  # (replicas,) nodes decided on, -1 for not yet
    counts: np.ndarray  # (S, N) replicas that run
    free: np.ndarray  # (N, 2)
    latency: np.ndarray  # (1,) ms of the replicas that run


class ReschedulingSequence(DecisionSequence):
    """Replica after replica; action n is node n.

    The cost of the first decision includes the latency of the running deployment.

    Parameters
    ----------
    order : {"calls", "given"}
        The order of the services.
    """

    problem: Rescheduling

    #: Columns of `features`. Of the node: free shares of cpu and memory, execution time there,
    #: latency to users, whether the replica runs there. Then the change of the latency; of the
    #: replica cpu and memory; of the episode the share that is left.
    num_features = 9

    def __init__(
        self, problem: Rescheduling, objectives: Sequence[Objective], *, order: str = "calls"
    ):
        require_known("order", order, ORDERS)
        super().__init__(problem, objectives)
        self._instance = instance = problem.arrays
        services = list(range(len(instance.replicas)))
        if order == "calls":
            rank = {i: k for k, i in enumerate(reversed(problem.graph.order))}
            services.sort(key=lambda i: rank.get(i, len(rank)))
        self.replicas = [
            (i, problem.node_numbers[name])
            for i in services
            for name in problem.services[i].replicas
        ]
        self.num_actions, self.decisions = len(instance.user), len(self.replicas)

    def reset(self, rng: np.random.Generator | None = None) -> ReschedulingSequenceState:
        """Return the state before the first decision; episodes are not random."""
        instance = self._instance
        return ReschedulingSequenceState(
            taken=np.zeros(1, dtype=np.int64),
            choices=np.full(self.decisions, -1),
            counts=instance.home.copy(),
            free=instance.capacity - instance.home.T @ instance.demand,
            latency=np.array([self.problem.initial_latency]),
        )

    def remaining(self, state: ReschedulingSequenceState) -> int:
        """Return how many replicas are still to be decided."""
        return self.decisions - int(state.taken[0])

    def mask(self, state: ReschedulingSequenceState) -> np.ndarray:
        """Return the nodes that have room for the next replica, and its own."""
        if self.remaining(state) == 0:
            return np.zeros(self.num_actions, dtype=bool)
        service, home = self.replicas[int(state.taken[0])]
        legal = (state.free >= self._instance.demand[service]).all(axis=1)
        legal[home] = True
        return legal

    def _latencies(self, state: ReschedulingSequenceState, targets: np.ndarray) -> np.ndarray:
        """Return the latency in ms for each node that the next replica may go to."""
        service, home = self.replicas[int(state.taken[0])]
        counts = np.repeat(state.counts[None], len(targets), axis=0)
        counts[:, service, home] -= 1
        counts[np.arange(len(targets)), service, targets] += 1
        return latencies(self._instance, counts)

    def step(self, state: ReschedulingSequenceState, action: int) -> np.ndarray:
        """Move the next replica, or leave it.

        The cost is the change of the latency in ms, and 1 for a move.
        """
        action = self.legal_action(state, action)
        position, target = int(state.taken[0]), action
        service, home = self.replicas[position]
        before = 0.0 if position == 0 else float(state.latency[0])
        if target != home:
            demand = self._instance.demand[service]
            state.latency[:] = self._latencies(state, np.array([target]))
            state.counts[service, home] -= 1
            state.counts[service, target] += 1
            state.free[home] += demand
            state.free[target] -= demand
        state.taken[0] += 1
        state.choices[position] = target
        return np.array([state.latency[0] - before, float(target != home)])[self._columns]

    def costs(self, state: ReschedulingSequenceState) -> np.ndarray:
        """Return the cost of every node, shape (num_actions, objectives); inf where illegal."""
        result = np.full((self.num_actions, 2), np.inf)
        legal = np.flatnonzero(self.mask(state))
        if len(legal):
            position = int(state.taken[0])
            _, home = self.replicas[position]
            before = 0.0 if position == 0 else state.latency[0]
            result[legal, 0] = self._latencies(state, legal) - before
            result[legal, 1] = legal != home
            result[home, 0] = state.latency[0] - before
        return result[:, self._columns]

    def plan(self, state: ReschedulingSequenceState) -> Plan:
        """Return the moves so far, in the order of the decisions."""
        decided = zip(self.replicas, state.choices.tolist(), strict=True)
        return self.problem.plan(
            [(i, home, target) for (i, home), target in decided if target not in (-1, home)]
        )

    def features(self, state: ReschedulingSequenceState) -> np.ndarray:
        """Return what is known of every node; see `num_features`."""
        features = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        if self.remaining(state) == 0:
            return features
        instance, mask = self._instance, self.mask(state)
        service, home = self.replicas[int(state.taken[0])]
        legal = np.flatnonzero(mask)
        change = self._latencies(state, legal) - state.latency[0]
        features[:, 0:2] = state.free / np.maximum(instance.capacity, 1)
        features[:, 2] = instance.execution[service] / max(float(instance.execution.max()), 1e-9)
        features[:, 3] = instance.user / max(float(instance.user.max()), 1e-9)
        features[home, 4] = 1
        features[legal, 5] = change / max(self.problem.initial_latency, 1e-9)
        features[:, 6:8] = instance.demand[service] / np.maximum(instance.demand.max(axis=0), 1)
        features[:, 8] = self.remaining(state) / self.decisions
        features[~mask] = 0
        return np.clip(features, -1, 1)
