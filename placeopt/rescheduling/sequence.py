"""Rescheduling one replica at a time: each decision is the node that a replica moves to, at once, or its own, where it stays.

A move is legal if the new copy fits beside all that runs, so that every episode is a plan that breaks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.front import Objective
from placeopt.core.interfaces import DecisionSequence
from placeopt.rescheduling.instance import Rescheduling

#: Orders of the services: the gateway first, along the calls; or as given.
ORDERS = ("calls", "given")


class State(NamedTuple):
    """How far an episode is."""

    now: np.ndarray  # (1,) decisions taken
    choice: np.ndarray  # (pods,) nodes decided on, -1 not yet
    counts: np.ndarray  # (S, N) what runs
    free: np.ndarray  # (N, 2)
    latency: np.ndarray  # (1,) of what runs


class ReschedulingSequence(DecisionSequence):
    """Replica after replica; action n is node n. The first decision carries the latency of the running deployment.

    Parameters
    ----------
    order : {"calls", "given"}
        The order of the services.
    """

    problem: Rescheduling

    #: Columns of `features`. Of the node: free shares of cpu and memory, execution time there, latency to users, whether it is home.
    #: Change of the latency. Of the replica: cpu and memory. Of the episode: the share still to do.
    num_features = 9

    def __init__(
        self, problem: Rescheduling, objectives: Sequence[Objective], order: str = "calls"
    ):
        if order not in ORDERS:
            raise UsageError(f"order is {order!r}; {did_you_mean(str(order), ORDERS)}")
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        self._arrays = t = problem.arrays
        reached = problem.graph.order[::-1]
        services = (
            [*reached, *(i for i in range(len(t.replicas)) if i not in set(reached))]
            if order == "calls"
            else range(len(t.replicas))
        )
        self.pods = [
            (i, problem.node_numbers[name])
            for i in services
            for name in problem.services[i].replicas
        ]
        self.num_actions, self.decisions = len(t.user), len(self.pods)

    def reset(self, rng: np.random.Generator | None = None) -> State:
        """Return the state before the first decision; episodes are not random."""
        t = self._arrays
        free = t.capacity - np.tensordot(t.home, t.demand, axes=(0, 0))
        return State(
            np.zeros(1, dtype=np.int64),
            np.full(self.decisions, -1),
            t.home.copy(),
            free,
            np.array([self.problem.initial_latency]),
        )

    def copy(self, state: State) -> State:
        """Return a state that steps on its own."""
        return State(*(part.copy() for part in state))

    def remaining(self, state: State) -> int:
        """Return how many replicas are still to be decided."""
        return self.decisions - int(state.now[0])

    def mask(self, state: State) -> np.ndarray:
        """Return the nodes that have room for the next replica, and its own."""
        if self.remaining(state) == 0:
            return np.zeros(self.num_actions, dtype=bool)
        i, home = self.pods[int(state.now[0])]
        legal = (state.free >= self._arrays.demand[i]).all(axis=1)
        legal[home] = True
        return legal

    def _latency(self, counts: np.ndarray) -> float:
        graph = self.problem.graph
        return graph.latency(counts.tolist()) / graph.parts

    def _after(self, state: State, i: int, home: int, targets: np.ndarray) -> np.ndarray:
        """Return the latency for every node that the next replica may go to, shape (targets,): (2) to (9) for all of them at once."""
        t, graph = self._arrays, self.problem.graph
        counts = np.repeat(state.counts[None], len(targets), axis=0)
        counts[:, i, home] -= 1
        counts[np.arange(len(targets)), i, targets] += 1
        share = counts / t.replicas[:, None]
        took: dict[int, np.ndarray] = {}
        for k in graph.order:
            reach = share[:, k] @ t.delay if graph.groups[k] else None
            groups = [
                sum((reach * share[:, j]).sum(axis=1) + took[j] for j in group)
                for group in graph.groups[k]
            ]
            took[k] = share[:, k] @ t.execution[k] + (np.max(groups, axis=0) if groups else 0.0)
        latency: np.ndarray = share[:, graph.gateway] @ t.user + took[graph.gateway]
        return latency

    def step(self, state: State, action: int) -> np.ndarray:
        """Move the next replica, or leave it; the cost is the change of the latency and 1 for a move."""
        if not (
            self.remaining(state) and 0 <= action < self.num_actions and self.mask(state)[action]
        ):
            raise UsageError(f"action {action} is not legal here; ask mask(state)")
        now, target = int(state.now[0]), int(action)
        i, home = self.pods[now]
        before = 0.0 if now == 0 else float(state.latency[0])
        state.now[0] += 1
        state.choice[now] = target
        if target != home:
            demand = self._arrays.demand[i]
            state.counts[i, home] -= 1
            state.counts[i, target] += 1
            state.free[home] += demand
            state.free[target] -= demand
            state.latency[0] = self._latency(state.counts)
        return np.array([state.latency[0] - before, float(target != home)])[self._columns]

    def costs(self, state: State) -> np.ndarray:
        """Return the cost vector that each node would have, shape (num_actions, objectives); inf where illegal."""
        found = np.full((self.num_actions, 2), np.inf)
        legal = np.flatnonzero(self.mask(state))
        if len(legal):
            now = int(state.now[0])
            i, home = self.pods[now]
            found[legal, 0] = self._after(state, i, home, legal) - (
                0.0 if now == 0 else state.latency[0]
            )
            found[legal, 1] = legal != home
            found[home, 0] = state.latency[0] if now == 0 else 0.0
        return found[:, self._columns]

    def plan(self, state: State) -> dict[str, Any]:
        """Return the moves so far, in the order of the decisions."""
        decided = zip(self.pods, state.choice.tolist(), strict=True)
        return self.problem.plan(
            [(i, home, target) for (i, home), target in decided if target >= 0 and target != home]
        )

    def features(self, state: State) -> np.ndarray:
        """Return what is known of every node; see `num_features`."""
        features = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        if self.remaining(state) == 0:
            return features
        t, mask = self._arrays, self.mask(state)
        i, home = self.pods[int(state.now[0])]
        features[:, 0:2] = state.free / np.maximum(t.capacity, 1)
        features[:, 2] = t.execution[i] / max(float(t.execution.max()), 1e-9)
        features[:, 3] = t.user / max(float(t.user.max()), 1e-9)
        features[home, 4] = 1
        legal = np.flatnonzero(mask)
        features[legal, 5] = (self._after(state, i, home, legal) - state.latency[0]) / max(
            self.problem.initial_latency, 1e-9
        )
        features[:, 6:8] = t.demand[i] / np.maximum(t.demand.max(axis=0), 1)
        features[:, 8] = self.remaining(state) / self.decisions
        features[~mask] = 0
        return np.clip(features, -1, 1)


def build(
    problem: Rescheduling, objectives: Sequence[Objective], *, order: str = "calls"
) -> ReschedulingSequence:
    """Return the rescheduling problem as a sequence of decisions."""
    return ReschedulingSequence(problem, objectives, order)
