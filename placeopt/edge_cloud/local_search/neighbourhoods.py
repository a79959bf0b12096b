"""Large neighbourhood search for one weight of the cost, compiled.

A step takes a few related applications out and puts them back one by one, each placed best under
prices of random strength. Simulated annealing accepts or refuses the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.annealing import most_worse
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import below, uniform
from placeopt.core.kernels.rows import copy_row
from placeopt.edge_cloud import kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.exact_placement import BIG, paid, place_best, weighted_sum

#: The first application taken out has the largest regret of a random number of them, up to this;
#: ``models/edge_cloud/README.md`` says why.
_MAX_DRAWS = 32
#: Odds that the others have the source of the first, and odds of that or of sharing a node with it;
#: else they use a node near to its source, one of so many.
_SAME_SOURCE, _SAME_NODE, _NEAR_NODES = 0.4, 0.7, 12
#: Microservices of a node among which the others are drawn.
_MAX_LISTED = 256
#: Factors of a node's prices are drawn from this range.
_NOISE = (0.5, 1.5)
#: Factors that are drawn beforehand, beyond the number of nodes.
_NOISE_LENGTH = 4096


class LnsTask(NamedTuple):
    """What a search is given."""

    instance: EdgeCloudArrays
    weight: float
    price: np.ndarray  # (nodes, 2)
    alone: np.ndarray  # (applications,) cost in empty nodes, prices included
    unplaced: float  # value of an application without a place, above that of any other
    by_source: np.ndarray  # (applications,) sorted by source
    source_first: np.ndarray  # (nodes + 1,) into `by_source`
    noise: np.ndarray  # factors of prices
    max_removed: int
    strength: float  # largest share of the prices


class LnsState(NamedTuple):
    """The state of a search; the microservices on a node are a doubly linked list."""

    hosts: np.ndarray  # (microservices,) -1 throughout an application without a place
    best: np.ndarray  # (microservices,) the best plan so far
    room: np.ndarray  # (nodes, 2)
    values: np.ndarray  # (applications,)
    totals: np.ndarray  # (2,) value of `hosts` and of `best`
    head: np.ndarray  # (nodes,) a microservice on the node, -1 for none
    after: np.ndarray  # (microservices,)
    before: np.ndarray  # (microservices,)
    random: np.ndarray  # (1,) uint64


def lns_task(
    instance: EdgeCloudArrays,
    rng: np.random.Generator,
    *,
    weight: float,
    price: np.ndarray,
    alone: np.ndarray,
    unplaced: float,
    max_removed: int,
    strength: float,
) -> LnsTask:
    """Return the task of a search; the arguments are fields of `LnsTask`."""
    by_source = np.argsort(instance.source, kind="stable")
    nodes = len(instance.capacity)
    return LnsTask(
        instance=instance,
        weight=weight,
        price=price,
        alone=alone,
        unplaced=unplaced,
        by_source=by_source,
        source_first=np.searchsorted(instance.source[by_source], np.arange(nodes + 1)),
        noise=rng.uniform(*_NOISE, nodes + _NOISE_LENGTH),
        max_removed=max_removed,
        strength=strength,
    )


def lns_state(task: LnsTask, hosts: np.ndarray, rng: np.random.Generator) -> LnsState:
    """Return the state of a search that begins with a plan."""
    instance = task.instance
    nodes, services = len(instance.capacity), len(instance.demand)
    state = LnsState(
        hosts=np.full(services, -1),
        best=hosts.copy(),
        room=instance.capacity.copy(),
        values=np.zeros(len(instance.source)),
        totals=np.zeros(2),
        head=np.full(nodes, -1),
        after=np.zeros(services, dtype=np.int64),
        before=np.zeros(services, dtype=np.int64),
        random=rng.integers(0, 2**64, size=1, dtype=np.uint64),
    )
    _enter(task, state)
    return state


@kernel
def _put(instance, state, service, node):
    """Place a microservice and list it at its node, in place; node -1 leaves it out."""
    if node < 0:
        return
    kernels.put(instance, state, service, node)
    head = state.head[node]
    state.before[service], state.after[service] = -1, head
    if head >= 0:
        state.before[head] = service
    state.head[node] = service


@kernel
def _take(instance, state, service):
    """Take a microservice off its node, in place; return the node, -1 if there is none."""
    node = state.hosts[service]
    if node < 0:
        return node
    kernels.take(instance, state, service)
    before, after = state.before[service], state.after[service]
    if before >= 0:
        state.after[before] = after
    else:
        state.head[node] = after
    if after >= 0:
        state.before[after] = before
    return node


@kernel
def _value(task, state, application):
    """Return equation (1) of an application in the present plan."""
    if state.hosts[task.instance.first[application]] < 0:
        return task.unplaced
    return weighted_sum(task.instance, task.weight, state.hosts, application)


@kernel
def _enter(task, state):
    """Make the plan `state.best` the present one, in place."""
    for service in range(len(state.hosts)):
        _put(task.instance, state, service, state.best[service])
    for application in range(len(state.values)):
        state.values[application] = _value(task, state, application)
        state.totals[0] += state.values[application]
    state.totals[1] = state.totals[0]


@kernel
def _regret(task, state, application):
    """Return what an application costs, prices included, above its cost in empty nodes."""
    if state.hosts[task.instance.first[application]] < 0:
        return task.unplaced
    charged = paid(task.instance, task.price, state.hosts, application)
    return state.values[application] + charged - task.alone[application]


@kernel
def _choose_first(task, state):
    """Return the application of largest regret of a random number of them; advances the state."""
    random, applications = state.random, len(state.values)
    first = below(random, applications)
    largest = _regret(task, state, first)
    for _ in range(below(random, _MAX_DRAWS)):
        other = below(random, applications)
        regret = _regret(task, state, other)
        if regret > largest:
            first, largest = other, regret
    return first


@kernel
def _add(removed, count, application):
    """Add an application to the first `count` of `removed` if it is new; return the new count."""
    for k in range(count):
        if removed[k] == application:
            return count
    removed[count] = application
    return count + 1


@kernel
def _choose(task, state, removed):
    """Write related applications into `removed`, (max_removed,), and return how many.

    They have one source, share a node, or use a node near the source of the first.
    """
    instance, random = task.instance, state.random
    first = _choose_first(task, state)
    removed[0] = first
    count, wanted, kind = 1, 1 + below(random, task.max_removed), uniform(random)
    source = instance.source[first]
    if kind < _SAME_SOURCE:
        low, high = task.source_first[source], task.source_first[source + 1]
        for _ in range(wanted - 1):
            other = task.by_source[low + below(random, high - low)]
            count = _add(removed, count, other)
        return count
    low, high = instance.first[first], instance.first[first + 1]
    node = state.hosts[low + below(random, high - low)]
    if kind >= _SAME_NODE or node < 0:
        nearest = min(len(instance.operating), _NEAR_NODES)
        node = instance.near[source, int(uniform(random) ** 2 * nearest)]
    length, service = 0, state.head[node]
    while service >= 0 and length < _MAX_LISTED:
        length += 1
        service = state.after[service]
    for _ in range(wanted - 1 if length > 0 else 0):
        service = state.head[node]
        for _ in range(below(random, length)):
            service = state.after[service]
        count = _add(removed, count, instance.application_of[service])
    return count


@kernel
def _remove(task, state, removed, old):
    """Shuffle the applications in `removed` and take them off their nodes, in place.

    Writes their nodes into `old`, (microservices,); returns their value.
    """
    value = 0.0
    for k in range(len(removed)):
        other = k + below(state.random, len(removed) - k)
        removed[k], removed[other] = removed[other], removed[k]
        application = removed[k]
        value += state.values[application]
        for service in range(
            task.instance.first[application], task.instance.first[application + 1]
        ):
            old[service] = _take(task.instance, state, service)
    return value


@kernel
def _draw_prices(task, state, price):
    """Write prices of random strength, noisy by node, into `price`, (nodes, 2)."""
    offset = below(state.random, len(task.noise) - len(price))
    factor = task.strength * uniform(state.random)
    for node in range(len(price)):
        price[node, 0] = task.price[node, 0] * factor * task.noise[offset + node]
        price[node, 1] = task.price[node, 1] * factor * task.noise[offset + node]


@kernel
def _rebuild(task, state, search, price, removed, gate, limit):
    """Put the removed applications back one by one, each best under prices, in place.

    Returns their value, `BIG` once it is above `gate`.
    """
    instance, value = task.instance, 0.0
    for application in removed:
        best, _ = place_best(
            instance, task.weight, price, 0.0, state.room, search, application, BIG, limit
        )
        first = instance.first[application]
        if best < BIG:
            for service in range(first, instance.first[application + 1]):
                _put(instance, state, service, search.found[service - first])
        value += _value(task, state, application)
        if value > gate:
            return BIG
    return value


@kernel
def _accept(task, state, removed, change):
    """Update the values after a step, and the best plan, in place."""
    for application in removed:
        state.values[application] = _value(task, state, application)
    state.totals[0] += change
    if state.totals[0] < state.totals[1] - 1e-9:
        state.totals[1] = state.totals[0]
        copy_row(state.hosts, state.best)


@kernel
def _restore(instance, state, removed, old):
    """Put the removed applications back to their nodes in `old`, in place."""
    for application in removed:
        for service in range(instance.first[application], instance.first[application + 1]):
            _take(instance, state, service)
    for application in removed:
        for service in range(instance.first[application], instance.first[application + 1]):
            _put(instance, state, service, old[service])


@allocating_kernel
def improve(task, state, search, rounds, temperature, limit):
    """Take `rounds` steps, in place; a step that adds the temperature is accepted with odds 1/e.

    `search` is scratch; `limit` bounds the nodes of the search for one application.
    """
    chosen, old = np.empty(task.max_removed, dtype=np.int64), np.empty_like(state.hosts)
    price = np.empty_like(task.price)
    for _ in range(rounds):
        removed = chosen[: _choose(task, state, chosen)]
        before = _remove(task, state, removed, old)
        _draw_prices(task, state, price)
        gate = before + most_worse(temperature, state.random)
        after = _rebuild(task, state, search, price, removed, gate, limit)
        if after <= gate:
            _accept(task, state, removed, after - before)
        else:
            _restore(task.instance, state, removed, old)
