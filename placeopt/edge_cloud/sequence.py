"""The edge-cloud problem as a sequence of decisions: each takes a node for one microservice.

Applications come one after another, small ones first unless told otherwise, and the microservices
of each in their own order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence, illegal_action
from placeopt.core.numbers import checked_action
from placeopt.edge_cloud import sequence_kernels as kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays, application_order
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.sequence_kernels import DecisionOrder, EdgeCloudState


def decision_order(instance: EdgeCloudArrays, order: str) -> DecisionOrder:
    """Return the order of the decisions for one of `ORDERS`."""
    applications = application_order(instance, order)
    services = [np.arange(*instance.first[a : a + 2]) for a in applications]
    return DecisionOrder(
        applications=applications,
        position=np.argsort(applications),
        services=np.concatenate(services),
        starts=np.cumsum([0, *map(len, services)]),
    )


class EdgeCloudSequence(DecisionSequence):
    """Microservice after microservice, application after application; action v is node v.

    Parameters
    ----------
    order : {"small-first", "given"}
        The order of the applications.
    """

    problem: EdgeCloud
    compiled = True
    num_features = 13
    costs_never_fall = True

    def __init__(
        self, problem: EdgeCloud, objectives: Sequence[Objective], order: str = "small-first"
    ):
        super().__init__(problem, objectives)
        self.instance = instance = problem.arrays
        self.order = decision_order(instance, order)
        self.num_actions, self.decisions = len(instance.capacity), len(instance.demand)
        known = instance.delay[np.isfinite(instance.delay)]
        self._max_delay = float(known.max(initial=0)) or 1.0
        dearest = instance.operating + instance.network * instance.data.max()
        self._max_cost = float(dearest.max()) or 1.0

    def reset(self, rng: np.random.Generator | None = None) -> EdgeCloudState:
        """Return the state before the first decision; episodes are not random."""
        return EdgeCloudState(
            decided=np.zeros(1, dtype=np.int64),
            hosts=np.full(self.decisions, -1),
            room=self.instance.capacity.copy(),
            farthest=np.zeros(1),
        )

    def remaining(self, state: EdgeCloudState) -> int:
        """Return how many microservices are still to be placed."""
        return self.decisions - int(state.decided[0])

    def stage(self, state: EdgeCloudState) -> int:
        """Return how many applications are placed."""
        return int(np.searchsorted(self.order.starts, state.decided[0], side="right")) - 1

    def mask(self, state: EdgeCloudState) -> np.ndarray:
        """Return the nodes that leave a place for the rest of the application."""
        return kernels.mask(self.instance, self.order, state)

    def step(self, state: EdgeCloudState, action: int) -> np.ndarray:
        """Place the next microservice; the cost is the increment of each objective."""
        action = checked_action(action, self.num_actions)
        service = kernels.next_service(self.order, state)
        if service < 0 or not kernels.legal(self.instance, state, service, action):
            raise illegal_action(action)
        cost = kernels.advance(self.instance, self.order, state, action)
        return np.array(cost)[self._columns]

    def _delay_from_source(self, service: int) -> np.ndarray:
        """Return the delay of every node from the source of a microservice, ms."""
        source = self.instance.source[self.instance.application_of[service]]
        return self.instance.delay[source]

    def _increments(self, state: EdgeCloudState, service: int) -> np.ndarray:
        """Return what every node would add to cost and latency, legal or not, (nodes, 2)."""
        instance = self.instance
        cost = instance.operating + instance.network * instance.data[service]
        later = np.maximum(0.0, self._delay_from_source(service) - state.farthest[0])
        return np.stack([cost, later], axis=1)

    def costs(self, state: EdgeCloudState) -> np.ndarray:
        """Return the increments that each node would have; inf where illegal."""
        mask = self.mask(state)
        increments = self._increments(state, kernels.next_service(self.order, state))
        return np.where(mask[:, None], increments[:, self._columns], np.inf)

    def features(self, state: EdgeCloudState) -> np.ndarray:
        """Return the features of every node.

        Columns 0 to 3 are the node's free cpu and memory, over the demand (at most 10, in tenths)
        and over its capacity. Columns 4 to 7 are the increments of cost and latency, the delay
        from the source, and the smallest slack of a flow. Columns 8 to 12 are the same for all
        nodes: cpu, memory and data of the microservice, the share of its application that is
        placed, and the share of decisions to be made.
        """
        features = np.zeros((self.num_actions, self.num_features), dtype=np.float32)
        mask = self.mask(state)
        if not mask.any():
            return features
        instance, service = self.instance, kernels.next_service(self.order, state)
        increments = self._increments(state, service)
        demand = np.maximum(instance.demand[service], 1e-9)
        application = instance.application_of[service]
        first, last = instance.first[application : application + 2]
        with np.errstate(invalid="ignore"):
            features[:, 0:2] = np.minimum(state.room / demand, 10) / 10
            features[:, 2:4] = state.room / np.maximum(instance.capacity, 1)
            features[:, 4] = increments[:, 0] / self._max_cost
            features[:, 5] = increments[:, 1] / self._max_delay
            features[:, 6] = self._delay_from_source(service) / self._max_delay
            features[:, 7] = self._slack(state, service) / self._max_delay
        features[:, 8:10] = instance.demand[service] / np.maximum(instance.demand.max(axis=0), 1)
        features[:, 10] = instance.data[service] / max(float(instance.data.max()), 1e-9)
        features[:, 11] = (service - first) / (last - first)
        features[:, 12] = self.remaining(state) / self.decisions
        features[~mask] = 0
        return np.clip(features, -1, 1)

    def _slack(self, state: EdgeCloudState, service: int) -> np.ndarray:
        """Return the smallest slack of the flows to what is placed, for every node, ms."""
        instance, slack = self.instance, np.full(self.num_actions, self._max_delay)
        for flow in range(*instance.flow_first[service : service + 2]):
            host = int(state.hosts[instance.flow_other[flow]])
            if host >= 0:
                slack = np.minimum(slack, instance.flow_limit[flow] - instance.delay[host])
        return slack

    def plan(self, state: EdgeCloudState) -> Plan:
        """Return the placements so far in the instance's own names."""
        return self.problem.plan(state.hosts)

    def _weights(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of (cost, latency) from weights of the objectives."""
        full = np.zeros(2)
        full[self._columns] = weights
        return full

    def play_greedy(self, state: EdgeCloudState, weights: np.ndarray, most: int) -> int:
        """Take up to `most` decisions of the greedy policy, in place; return how many."""
        weights = self._weights(weights)
        return int(kernels.play_greedy(self.instance, self.order, state, weights, most))

    def play_rollout(
        self,
        state: EdgeCloudState,
        weights: np.ndarray,
        beta: float,
        gamma: float,
        horizon: int,
        most: int,
    ) -> int:
        """Take up to `most` decisions of rollout over greedy, in place; return how many."""
        settings = (self._weights(weights), beta, gamma, horizon, most)
        return int(kernels.play_rollout(self.instance, self.order, state, *settings))


def build(
    problem: EdgeCloud, objectives: Sequence[Objective], *, order: str = "small-first"
) -> EdgeCloudSequence:
    """Return the edge-cloud problem as a sequence of decisions."""
    return EdgeCloudSequence(problem, objectives, order)
