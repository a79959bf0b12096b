"""The edge-cloud problem as a sequence of decisions: each takes a node for one microservice.

Applications come one after another, small ones first unless told otherwise, and the microservices
of each in their own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import DecisionSequence, illegal_action
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.numbers import checked_action, ragged
from placeopt.edge_cloud.arrays import EdgeCloudArrays, application_order, cost, fits, put, take
from placeopt.edge_cloud.problem import EdgeCloud

# -- kernels ---------------------------------------------------------------------------------------

BIG = 1e300
#: Nodes that the search for the rest of an application tries before it gives up.
_MAX_TRIES = 300
#: Sums of lower bounds are scaled by this, so that rounding does not prune a tie.
_ROUNDED_DOWN = 1 - 1e-12


class DecisionOrder(NamedTuple):
    """The order of the decisions; the microservices of an application follow one another."""

    applications: np.ndarray  # (applications,)
    position: np.ndarray  # (applications,) where an application stands in `applications`
    services: np.ndarray  # (microservices,)
    starts: np.ndarray  # (applications + 1,) decisions before the application at each position


class EdgeCloudState(NamedTuple):
    """What has been decided."""

    decided: np.ndarray  # (1,) number of decisions
    hosts: np.ndarray  # (microservices,) -1: not yet
    room: np.ndarray  # (nodes, 2)
    farthest: np.ndarray  # (1,) latency of the application in progress so far, ms


@kernel
def next_service(order, state):
    """Return the microservice to be placed next, -1 after the last."""
    decided = state.decided[0]
    return order.services[decided] if decided < len(order.services) else -1


@kernel
def _anchor(instance, state, service):
    """Return the node to look around for a place, and the largest delay from it.

    It is the node at the other end of the tightest flow, else the source.
    """
    node, reach = instance.source[instance.application_of[service]], np.inf
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        other = state.hosts[instance.flow_other[flow]]
        if other >= 0 and instance.flow_limit[flow] < reach:
            node, reach = other, instance.flow_limit[flow]
    return node, reach


@allocating_kernel
def _can_complete(instance, state, first):
    """Return whether a search places an application from microservice `first` on.

    Leaves the state as it was.
    """
    nodes, tries, service = len(instance.operating), 0, first
    last = instance.first[instance.application_of[first] + 1]
    tried = np.zeros(last - first + 1, dtype=np.int64)
    while service < last:
        anchor, reach = _anchor(instance, state, service)
        result = -1
        while tried[service - first] < nodes:
            node = instance.near[anchor, tried[service - first]]
            tried[service - first] += 1
            if instance.delay[anchor, node] > reach:
                break
            if fits(instance, state, service, node):
                result = node
                break
        tries += 1
        if result >= 0 and tries <= _MAX_TRIES:
            put(instance, state, service, result)
            service += 1
            tried[service - first] = 0
        elif tries > _MAX_TRIES or service == first:
            break
        else:
            service -= 1
            take(instance, state, service)
    for placed in range(first, service):
        take(instance, state, placed)
    return service == last


@kernel
def legal(instance, state, service, node):
    """Return whether a microservice may go to a node and leaves places for its application."""
    fitting = fits(instance, state, service, node)
    return fitting and _leaves_places(instance, state, service, node)


@kernel
def _leaves_places(instance, state, service, node):
    """Return whether the rest of an application has places once a fitting node is taken."""
    if service + 1 == instance.first[instance.application_of[service] + 1]:
        return True
    put(instance, state, service, node)
    answer = _can_complete(instance, state, service + 1)
    take(instance, state, service)
    return answer


@allocating_kernel
def mask(instance, order, state):
    """Return which nodes are legal for the next microservice, (nodes,) bool."""
    answer = np.zeros(len(instance.operating), dtype=np.bool_)
    service = next_service(order, state)
    if service >= 0:
        for node in range(len(answer)):
            answer[node] = legal(instance, state, service, node)
    return answer


@kernel
def advance(instance, order, state, node):
    """Place the next microservice, in place; return the increments of cost (6) and latency (7)."""
    service = next_service(order, state)
    application = instance.application_of[service]
    delay = instance.delay[instance.source[application], node]
    later = max(0.0, delay - state.farthest[0])
    put(instance, state, service, node)
    state.decided[0] += 1
    ended = service + 1 == instance.first[application + 1]
    state.farthest[0] = 0.0 if ended else max(state.farthest[0], delay)
    return cost(instance, service, node), later


@kernel
def _next_node(instance, state, weights, service, farthest, value, rank):
    """Return weighted increment and rank of the node that fits and follows (`value`, `rank`).

    Nodes are ordered by weighted increment, then by rank, their position by delay from the source.
    The rank is -1 after the last. `farthest` is the latency of the application so far.
    """
    source = instance.source[instance.application_of[service]]
    floor = weights[0] * instance.least_cost[service]
    best, result = BIG, -1
    for k in range(len(instance.operating)):
        node = instance.near[source, k]
        late = weights[1] * max(0.0, instance.delay[source, node] - farthest)
        if late + floor >= best or instance.delay[source, node] == np.inf:
            break
        price = instance.operating[node] + instance.network[node] * instance.data[service]
        increment = late + weights[0] * price  # `cost`, but a call here costs much
        if (
            increment < best
            and (increment > value or (increment == value and k > rank))
            and fits(instance, state, service, node)
        ):
            best, result = increment, k
    return best, result


@kernel
def _greedy_node(instance, state, weights, service, farthest):
    """Return the legal node of least weighted increment, -1 for none, and that increment."""
    source = instance.source[instance.application_of[service]]
    value, rank = -1.0, -1
    while True:
        value, rank = _next_node(instance, state, weights, service, farthest, value, rank)
        if rank < 0:
            return -1, BIG
        node = instance.near[source, rank]
        if _leaves_places(instance, state, service, node):
            return node, value


@kernel
def play_greedy(instance, order, state, weights, most):
    """Take up to `most` greedy decisions, in place; return how many were taken."""
    for taken in range(most):
        service = next_service(order, state)
        if service < 0:
            return taken
        node, _ = _greedy_node(instance, state, weights, service, state.farthest[0])
        if node < 0:
            return taken
        advance(instance, order, state, node)
    return most


@kernel
def _bound_rest(instance, order, state, weights, position, end, least):
    """Write lower bounds of what is still to come, weighted.

    ``least[k]`` bounds the applications from `position` + k to before `end`, in the present room,
    which can only shrink.
    """
    least[end - position] = 0.0
    for p in range(end - 1, position - 1, -1):
        application = order.applications[p]
        source, floor, latency = instance.source[application], 0.0, 0.0
        for service in range(instance.first[application], instance.first[application + 1]):
            floor += weights[0] * instance.least_cost[service]
            for k in range(len(instance.operating)):
                node = instance.near[source, k]
                if (  # not a call: to hand on `instance` here made rollout 2 to 6 times slower
                    instance.demand[service, 0] <= state.room[node, 0]
                    and instance.demand[service, 1] <= state.room[node, 1]
                ):
                    latency = max(latency, instance.delay[source, node])
                    break
        bound = (floor + weights[1] * latency) * _ROUNDED_DOWN
        least[p - position] = least[p - position + 1] + bound


@kernel
def _simulate(instance, order, state, weights, farthest, end, least, limit):
    """Return the weighted cost of greedy decisions after the next microservice is placed.

    They end before the application at position `end`. The answer is `BIG` at a dead end, or where
    the cost reaches `limit`. ``least[k]`` bounds the applications from the k-th after the one in
    progress. Leaves the state as it was.
    """
    begin = state.decided[0] + 1
    present = order.position[instance.application_of[order.services[begin - 1]]]
    total, at, stop = 0.0, begin, order.starts[end]
    while at < stop:
        service = order.services[at]
        application = instance.application_of[service]
        ahead = order.position[application] - present
        if service == instance.first[application]:
            farthest = 0.0
            ahead -= 1
        if total + least[ahead] >= limit:
            break
        node, increment = _greedy_node(instance, state, weights, service, farthest)
        if node < 0:
            break
        total += increment
        farthest = max(farthest, instance.delay[instance.source[application], node])
        put(instance, state, service, node)
        at += 1
    for k in range(begin, at):
        take(instance, state, order.services[k])
    return total if at == stop and total < limit else BIG


@allocating_kernel
def _rollout_node(instance, order, state, weights, beta, gamma, horizon):
    """Return the node that rollout takes next, -1 for none; leaves the state as it was.

    Nodes are tried in the order of their own increment, so that the greedy one comes first and
    keeps ties. A node whose increment and a lower bound of what follows are no less than the best
    so far cannot win.
    """
    service = next_service(order, state)
    application = instance.application_of[service]
    source, position = instance.source[application], order.position[application]
    allowed = len(instance.operating)
    if beta < 1:
        count = 0
        for node in range(len(instance.operating)):
            count += fits(instance, state, service, node)
        allowed = max(1, int(np.ceil(beta * count)))
    end = min(len(order.applications), position + 1 + horizon)
    least = np.zeros(end - position)
    if gamma > 0:
        _bound_rest(instance, order, state, weights, position + 1, end, least)
    rest = 0.0
    for other in range(instance.first[application + 1] - 1, service, -1):
        rest += weights[0] * instance.least_cost[other]
    rest = least[0] + rest * _ROUNDED_DOWN
    best, chosen, tried, value, rank = BIG, -1, 0, -1.0, -1
    while tried < allowed:
        value, rank = _next_node(instance, state, weights, service, state.farthest[0], value, rank)
        if rank < 0 or value + gamma * rest >= best:
            break
        node = instance.near[source, rank]
        if not _leaves_places(instance, state, service, node):
            continue
        tried += 1
        chosen = node if chosen < 0 else chosen
        future = 0.0
        if gamma > 0:
            put(instance, state, service, node)
            farthest = max(state.farthest[0], instance.delay[source, node])
            limit = (best - value) / gamma if best < BIG else BIG
            future = _simulate(instance, order, state, weights, farthest, end, least, limit)
            take(instance, state, service)
        if future < BIG and value + gamma * future < best:
            best, chosen = value + gamma * future, node
    return chosen


@kernel
def play_rollout(instance, order, state, weights, beta, gamma, horizon, most):
    """Take up to `most` decisions of rollout over greedy, in place; return how many were taken."""
    for taken in range(most):
        if next_service(order, state) < 0:
            return taken
        node = _rollout_node(instance, order, state, weights, beta, gamma, horizon)
        if node < 0:
            return taken
        advance(instance, order, state, node)
    return most


# -- decisions -------------------------------------------------------------------------------------


def decision_order(instance: EdgeCloudArrays, order: str) -> DecisionOrder:
    """Return the order of the decisions for one of `ORDERS`."""
    applications = application_order(instance, order)
    starts, services = ragged([np.arange(*instance.first[a : a + 2]) for a in applications])
    return DecisionOrder(
        applications=applications,
        position=np.argsort(applications),
        services=services,
        starts=starts,
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
        return mask(self.instance, self.order, state)

    def step(self, state: EdgeCloudState, action: int) -> np.ndarray:
        """Place the next microservice; the cost is the increment of each objective."""
        action = checked_action(action, self.num_actions)
        service = next_service(self.order, state)
        if service < 0 or not legal(self.instance, state, service, action):
            raise illegal_action(action)
        cost = advance(self.instance, self.order, state, action)
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
        increments = self._increments(state, next_service(self.order, state))
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
        instance, service = self.instance, next_service(self.order, state)
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
        return int(play_greedy(self.instance, self.order, state, weights, most))

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
        return int(play_rollout(self.instance, self.order, state, *settings))


def build(
    problem: EdgeCloud, objectives: Sequence[Objective], *, order: str = "small-first"
) -> EdgeCloudSequence:
    """Return the edge-cloud problem as a sequence of decisions."""
    return EdgeCloudSequence(problem, objectives, order)
