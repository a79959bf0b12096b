"""Compiled steps of the edge-cloud problem: legal nodes, the greedy policy, and rollout over it.

Weights are (of the cost, of the latency). A node is legal if the microservice fits, is near enough to those it talks to, and a
depth-first search finds places for the rest of its application. What was found stays within reach after each decision, so an
episode ends early only between applications, where the next one has no place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import Arrays

#: Entries of `State.now`.
POSITION, DEPTH = range(2)
BIG = 1e300
#: Nodes that the look-ahead tries before it takes a completion for impossible.
_PATIENCE = 300


class Rules(NamedTuple):
    """What does not change."""

    table: Arrays
    near: np.ndarray  # (nodes, nodes) nodes by their delay from each node
    order: np.ndarray  # (applications,) in the order of decision


class State(NamedTuple):
    """What has been decided; within an application microservices are placed in the order of the instance."""

    now: np.ndarray  # position of the application in the order, microservices of it placed
    hosts: np.ndarray  # (microservices,) -1: not yet
    room: np.ndarray  # (nodes, 2)
    farthest: np.ndarray  # (1,) latency of the present application so far


@kernel
def fits(rules, state, i, source, node):
    """Whether a microservice may go to a node, as far as those placed are concerned."""
    table = rules.table
    if (
        table.demand[i, 0] > state.room[node, 0]
        or table.demand[i, 1] > state.room[node, 1]
        or table.delay[source, node] == np.inf
    ):
        return False
    for e in range(table.flow_first[i], table.flow_first[i + 1]):
        other = state.hosts[table.flow_other[e]]
        if other >= 0 and table.delay[other, node] > table.flow_limit[e]:
            return False
    return True


@kernel
def _put(table, state, i, node):
    state.hosts[i] = node
    state.room[node, 0] -= table.demand[i, 0]
    state.room[node, 1] -= table.demand[i, 1]


@kernel
def _take(table, state, i):
    node = state.hosts[i]
    state.hosts[i] = -1
    state.room[node, 0] += table.demand[i, 0]
    state.room[node, 1] += table.demand[i, 1]


@kernel
def _anchor(table, state, i, source):
    """The node to look around for a place: that of the nearest-bound neighbour, else the source; and how far."""
    node, reach = source, np.inf
    for e in range(table.flow_first[i], table.flow_first[i + 1]):
        other = state.hosts[table.flow_other[e]]
        if other >= 0 and table.flow_limit[e] < reach:
            node, reach = other, table.flow_limit[e]
    return node, reach


@kernel
def completable(rules, state, i, last, source):
    """Whether a search finds places for microservices i to `last` - 1 beside those placed; leaves the state as it was."""
    table, first, tries = rules.table, i, 0
    pointer = np.zeros(last - i + 1, dtype=np.int64)
    while True:
        if i == last:
            break
        node, reach = _anchor(table, state, i, source)
        found = -1
        while pointer[i - first] < len(table.operating):
            candidate = rules.near[node, pointer[i - first]]
            pointer[i - first] += 1
            if table.delay[node, candidate] > reach:
                break
            if fits(rules, state, i, source, candidate):
                found = candidate
                break
        tries += 1
        if found >= 0 and tries <= _PATIENCE:
            _put(table, state, i, found)
            i += 1
            pointer[i - first] = 0
        elif tries > _PATIENCE or i == first:
            break
        else:
            i -= 1
            _take(table, state, i)
    answer = i == last
    for j in range(first, i):
        _take(table, state, j)
    return answer


@kernel
def legal(rules, state, i, last, source, node):
    """Whether microservice i may go to a node with room for the rest, up to `last` - 1."""
    if not fits(rules, state, i, source, node):
        return False
    if i + 1 == last:
        return True
    _put(rules.table, state, i, node)
    answer = completable(rules, state, i + 1, last, source)
    _take(rules.table, state, i)
    return answer


@kernel
def _price(table, weights, i, node):
    return weights[0] * (table.operating[node] + table.network[node] * table.data[i])


@kernel
def floors(table, weights, floor):
    """Least weighted cost of each microservice on any node."""
    for i in range(len(floor)):
        floor[i] = BIG
        for node in range(len(table.operating)):
            floor[i] = min(floor[i], _price(table, weights, i, node))


@kernel
def _following(rules, state, weights, floor, i, source, farthest, value, rank):
    """The node that fits and whose (weighted increment, rank by delay) comes next after (`value`, `rank`); rank -1: none."""
    table = rules.table
    best, found = BIG, -1
    for k in range(len(table.operating)):
        node = rules.near[source, k]
        late = weights[1] * max(0.0, table.delay[source, node] - farthest)
        if late + floor[i] >= best or table.delay[source, node] == np.inf:
            break
        increment = late + _price(table, weights, i, node)
        if (
            increment < best
            and (increment > value or (increment == value and k > rank))
            and fits(rules, state, i, source, node)
        ):
            best, found = increment, k
    return best, found


@kernel
def greedy(rules, state, weights, floor, i, last, source, farthest):
    """The legal node of least weighted increment, and that increment; -1: none."""
    value, rank = -1.0, -1
    while True:
        value, rank = _following(rules, state, weights, floor, i, source, farthest, value, rank)
        if rank < 0:
            return -1, BIG
        node = rules.near[source, rank]
        if i + 1 == last or legal(rules, state, i, last, source, node):
            return node, value


@kernel
def _least_ahead(rules, state, weights, floor, position, end, least):
    """Write the least that the applications from `position` + k to `end` can cost in the room there is now, which only shrinks."""
    table = rules.table
    least[end - position] = 0.0
    for p in range(end - 1, position - 1, -1):
        a = rules.order[p]
        source, cost, latency = table.source[a], 0.0, 0.0
        for i in range(table.first[a], table.first[a + 1]):
            cost += floor[i]
            for k in range(len(table.operating)):
                node = rules.near[source, k]
                if (
                    table.demand[i, 0] <= state.room[node, 0]
                    and table.demand[i, 1] <= state.room[node, 1]
                ):
                    latency = max(latency, table.delay[source, node])
                    break
        least[p - position] = least[p - position + 1] + (cost + weights[1] * latency) * (1 - 1e-12)


@kernel
def _simulate(rules, state, weights, floor, position, depth, farthest, end, least, most):
    """Place greedily up to the application at position `end`, and undo it; returns the cost, `BIG` at a dead end or if >= `most`."""
    table, total, count = rules.table, 0.0, 0
    start, begun = position, depth
    while position < end and total + least[position - start + (depth > 0)] < most:
        a = rules.order[position]
        last, i, source = table.first[a + 1], table.first[a] + depth, table.source[a]
        if i == last:
            position, depth, farthest = position + 1, 0, 0.0
            continue
        node, increment = greedy(rules, state, weights, floor, i, last, source, farthest)
        if node < 0:
            break
        total += increment
        farthest = max(farthest, table.delay[source, node])
        _put(table, state, i, node)
        depth += 1
        count += 1
    done = position == end
    position, depth = start, begun
    for _ in range(count):
        while table.first[rules.order[position]] + depth == table.first[rules.order[position] + 1]:
            position, depth = position + 1, 0
        _take(table, state, table.first[rules.order[position]] + depth)
        depth += 1
    return total if done and total < most else BIG


@kernel
def _chosen(rules, state, weights, floor, rest, least, beta, gamma, horizon):
    """The node that rollout takes next, -1: none.

    Nodes are tried in the order of their own cost, so that the greedy one comes first and keeps ties; what costs no less alone,
    with the least that can follow, than the best so far with all that follows cannot win.
    """
    table, position = rules.table, state.now[POSITION]
    a = rules.order[position]
    i, last, source = table.first[a] + state.now[DEPTH], table.first[a + 1], table.source[a]
    allowed = len(table.operating)
    if beta < 1:
        count = 0
        for node in range(len(table.operating)):
            count += fits(rules, state, i, source, node)
        allowed = max(1, int(np.ceil(beta * count)))
    end = min(len(rules.order), position + 1 + horizon)
    least[0] = 0.0
    if gamma > 0:
        _least_ahead(rules, state, weights, floor, position + 1, end, least[1:])
    least[0] = least[1] + rest[i]
    best, chosen, tried, value, rank = BIG, -1, 0, -1.0, -1
    while tried < allowed:
        value, rank = _following(
            rules, state, weights, floor, i, source, state.farthest[0], value, rank
        )
        if rank < 0 or value + gamma * least[0] >= best:
            break
        node = rules.near[source, rank]
        if not legal(rules, state, i, last, source, node):
            continue
        tried += 1
        chosen = node if chosen < 0 else chosen
        _put(table, state, i, node)
        future = 0.0
        if gamma > 0:
            farthest = max(state.farthest[0], table.delay[source, node])
            most = (best - value) / gamma if best < BIG else BIG
            future = _simulate(
                rules,
                state,
                weights,
                floor,
                position,
                state.now[DEPTH] + 1,
                farthest,
                end,
                least,
                most,
            )
        _take(table, state, i)
        if future < BIG and value + gamma * future < best:
            best, chosen = value + gamma * future, node
    return chosen


@kernel
def advance(rules, state, node, cost):
    """Place the next microservice, and write the increments of cost (6) and latency (7)."""
    table = rules.table
    a = rules.order[state.now[POSITION]]
    i, source = table.first[a] + state.now[DEPTH], table.source[a]
    cost[0] = table.operating[node] + table.network[node] * table.data[i]
    cost[1] = max(0.0, table.delay[source, node] - state.farthest[0])
    state.farthest[0] = max(state.farthest[0], table.delay[source, node])
    _put(table, state, i, node)
    state.now[DEPTH] += 1
    if i + 1 == table.first[a + 1]:
        state.now[POSITION], state.now[DEPTH], state.farthest[0] = state.now[POSITION] + 1, 0, 0.0


@kernel
def mask(rules, state, answer):
    """Write which nodes are legal for the next microservice."""
    table = rules.table
    answer[:] = False
    if state.now[POSITION] < len(rules.order):
        a = rules.order[state.now[POSITION]]
        i = table.first[a] + state.now[DEPTH]
        for node in range(len(answer)):
            answer[node] = legal(rules, state, i, table.first[a + 1], table.source[a], node)


@kernel
def play_greedy(rules, state, weights, floor, total, most):
    """Take up to `most` greedy decisions; adds to `total` and returns how many were taken."""
    table, cost = rules.table, np.zeros(2)
    for taken in range(most):
        if state.now[POSITION] == len(rules.order):
            return taken
        a = rules.order[state.now[POSITION]]
        i = table.first[a] + state.now[DEPTH]
        node, _ = greedy(
            rules, state, weights, floor, i, table.first[a + 1], table.source[a], state.farthest[0]
        )
        if node < 0:
            return taken
        advance(rules, state, node, cost)
        total += cost
    return most


@kernel
def play_rollout(rules, state, weights, floor, rest, beta, gamma, horizon, total, most):
    """Take up to `most` decisions of rollout over the greedy policy; adds to `total` and returns how many were taken."""
    cost, least = np.zeros(2), np.zeros(min(horizon, len(rules.order)) + 3)
    for taken in range(most):
        if state.now[POSITION] == len(rules.order):
            return taken
        node = _chosen(rules, state, weights, floor, rest, least, beta, gamma, horizon)
        if node < 0:
            return taken
        advance(rules, state, node, cost)
        total += cost
    return most
