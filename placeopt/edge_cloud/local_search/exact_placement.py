"""The best placement of one application under prices, compiled, and what is built on it.

A price, shape (nodes, 2), is charged for every unit of a node's resources on top of the weighted
sum (1). `weight` is that of the cost. `limit` bounds the nodes of one depth-first search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.kernels import (
    Placement,
    cost,
    fits,
    latency,
    put,
    take,
)

BIG = 1e300


class PlacementSearch(NamedTuple):
    """The search for the best placement of one application; all but `sequences` is scratch.

    Microservices are counted within the application, m is the largest number of them. Positions
    count the nodes that have been admitted, by their delay from the source.
    """

    sequences: np.ndarray  # (microservices, m) an application in an order along its flows from each
    nodes: np.ndarray  # (nodes,) by position
    cost: np.ndarray  # (m, nodes) by position, prices included
    least: np.ndarray  # (m, nodes) least cost up to a position
    order: np.ndarray  # (m, nodes) positions worth trying, sorted by cost
    candidates: np.ndarray  # (m,) how many are worth trying
    pointer: np.ndarray  # (m + 1,) next candidate at each depth
    value: np.ndarray  # (m + 1,) cost of what is placed at each depth
    rest: np.ndarray  # (m + 1,) least cost of what is placed from each depth on
    hosts: np.ndarray  # (microservices,) -1 between searches
    found: np.ndarray  # (m,) nodes of the best placement so far


def placement_search(instance: EdgeCloudArrays) -> PlacementSearch:
    """Return the search of an instance."""
    services, nodes = int(np.diff(instance.first).max()), len(instance.capacity)
    return PlacementSearch(
        sequences=_sequences(instance, services),
        nodes=np.zeros(nodes, dtype=np.int64),
        cost=np.zeros((services, nodes)),
        least=np.zeros((services, nodes)),
        order=np.zeros((services, nodes), dtype=np.int64),
        candidates=np.zeros(services, dtype=np.int64),
        pointer=np.zeros(services + 1, dtype=np.int64),
        value=np.zeros(services + 1),
        rest=np.zeros(services + 1),
        hosts=np.full(len(instance.demand), -1),
        found=np.zeros(services, dtype=np.int64),
    )


@allocating_kernel
def _sequences(instance, max_services):
    """Return the breadth-first order of each microservice's application from that microservice.

    The shape is (microservices, max_services); microservices are counted within the application.
    """
    sequences = np.zeros((len(instance.demand), max_services), dtype=np.int64)
    for start in range(len(instance.demand)):
        application = instance.application_of[start]
        base = instance.first[application]
        count = instance.first[application + 1] - base
        sequence, known = sequences[start], np.zeros(count, dtype=np.bool_)
        sequence[0], known[start - base] = start - base, True
        placed, head = 1, 0
        while placed < count:
            if head == placed:  # no flow leads to the others
                sequence[placed] = np.argmin(known)
                known[sequence[placed]] = True
                placed += 1
            service = base + sequence[head]
            head += 1
            for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
                other = instance.flow_other[flow] - base
                if not known[other]:
                    sequence[placed], known[other] = other, True
                    placed += 1
    return sequences


@kernel
def _sort_candidates(search, j, last, slack):
    """Sort the positions up to `last` where microservice j costs below its least plus `slack`.

    Writes ``search.order[j]`` and ``search.candidates[j]``.
    """
    count, limit = 0, search.least[j, last] + slack
    for position in range(last + 1):
        value = search.cost[j, position]
        if value < limit:
            at = count
            while at > 0 and search.cost[j, search.order[j, at - 1]] > value:
                search.order[j, at] = search.order[j, at - 1]
                at -= 1
            search.order[j, at] = position
            count += 1
    search.candidates[j] = count


@kernel
def _prepare(search, sequence, last, best):
    """Write the least cost from each depth on, and the candidates of all but the first placed."""
    count = len(sequence)
    search.rest[count] = 0.0
    for depth in range(count - 1, 0, -1):
        search.rest[depth] = search.rest[depth + 1] + search.least[sequence[depth], last]
    for depth in range(1, count):
        slack = best - search.value[1] - search.rest[1]
        _sort_candidates(search, sequence[depth], last, slack)
    search.pointer[1] = 0


@kernel
def _search(instance, room, search, application, last, forced, best, limit):
    """Place an application on the nodes up to position `last`, microservice `forced` on that node.

    Depth first, cheapest first. Returns the least cost, or `best` if there is none below, and the
    number of nodes of the search; writes the best placement into `search.found`. Leaves `room` and
    `search.hosts` as they were.
    """
    base, hosts = instance.first[application], search.hosts
    placement = Placement(hosts, room)
    count, node = instance.first[application + 1] - base, search.nodes[last]
    sequence = search.sequences[base + forced, :count]
    search.value[1] = search.cost[forced, last]
    if not fits(instance, placement, base + forced, node):
        return best, 0
    if count == 1:
        if search.value[1] < best:
            best = search.value[1]
            search.found[0] = node
        return best, 0
    put(instance, placement, base + forced, node)
    _prepare(search, sequence, last, best)
    depth, used = 1, 0
    while depth > 0:
        j, at = sequence[depth], search.pointer[depth]
        if (
            at == search.candidates[j]
            or search.value[depth] + search.cost[j, search.order[j, at]] + search.rest[depth + 1]
            >= best
        ):
            depth -= 1
            take(instance, placement, base + sequence[depth])
            continue
        search.pointer[depth] = at + 1
        position = search.order[j, at]
        if not fits(instance, placement, base + j, search.nodes[position]):
            continue
        used += 1
        if used > limit:
            for placed in sequence[:depth]:
                take(instance, placement, base + placed)
            break
        put(instance, placement, base + j, search.nodes[position])
        value = search.value[depth] + search.cost[j, position]
        if depth == count - 1:
            best = value
            copy_row(hosts[base : base + count], search.found)
            take(instance, placement, base + j)
        else:
            depth += 1
            search.value[depth], search.pointer[depth] = value, 0
    return best, used


@kernel
def _smallest(instance, application):
    """Return the least cpu and the least memory of a microservice of an application."""
    first, last = instance.first[application], instance.first[application + 1]
    cpu, memory = instance.demand[first, 0], instance.demand[first, 1]
    for service in range(first + 1, last):
        cpu = min(cpu, instance.demand[service, 0])
        memory = min(memory, instance.demand[service, 1])
    return cpu, memory


@kernel
def place_best(instance, weight, price, charge, room, search, application, best, limit):
    """Place an application best, prices included, in the room there is.

    `charge` is paid for being at home: see `placeopt.edge_cloud.local_search.homes`.

    Nodes are admitted in the order of their delay from the source. A placement that is better than
    those before must use the node admitted last, which makes the bound sharp. Returns the value, or
    `best` if there is none below, and what is proven of it; writes the nodes of a better placement
    into `search.found`.

    The innermost loop does what `cost` does, and asks for room: calls that hand on the instance, a
    record of many arrays, make it seven times slower.
    """
    base, source = instance.first[application], instance.source[application]
    services = range(instance.first[application + 1] - base)
    demand, data = instance.demand, instance.data
    operating, network = instance.operating, instance.network
    cpu, memory = _smallest(instance, application)
    least_cost, proven, last = 0.0, BIG, -1
    for j in services:
        least_cost += weight * instance.least_cost[base + j]
    for node in instance.near[source]:
        late = (1 - weight) * instance.delay[source, node]
        if late + least_cost >= best or instance.delay[source, node] == np.inf:
            break
        if room[node, 0] < cpu or room[node, 1] < memory:
            continue
        last += 1
        search.nodes[last] = node
        total = late
        for j in services:
            i, value = base + j, BIG
            if demand[i, 0] <= room[node, 0] and demand[i, 1] <= room[node, 1]:
                value = weight * (operating[node] + network[node] * data[i])
                value += price[node, 0] * demand[i, 0] + price[node, 1] * demand[i, 1]
            search.cost[j, last] = value
            search.least[j, last] = min(value, search.least[j, last - 1]) if last > 0 else value
            total += search.least[j, last]
        for j in services:
            lower = total - search.least[j, last] + search.cost[j, last]
            if lower < best and search.cost[j, last] < BIG:
                allowed = best - late
                value, used = _search(instance, room, search, application, last, j, allowed, limit)
                if used > limit:
                    proven = min(proven, lower)
                if value < allowed:  # else `value + late` might be below `best` by rounding
                    # Only the source is admitted so far: the application is at home.
                    home = charge if last == 0 and node == source else 0.0
                    best = min(best, value + late + home)
    return best, min(best, proven)


@kernel
def weighted_sum(instance, weight, hosts, application):
    """Return equation (1) of one application."""
    total = 0.0
    for service in range(instance.first[application], instance.first[application + 1]):
        total += cost(instance, service, hosts[service])
    return weight * total + (1 - weight) * latency(instance, hosts, application)


@kernel
def plan_value(instance, weight, hosts, unplaced):
    """Return equation (1) of a plan; an application without a place counts `unplaced`."""
    total, missing = 0.0, 0
    for application in range(len(instance.source)):
        if hosts[instance.first[application]] >= 0:
            total += weighted_sum(instance, weight, hosts, application)
        else:
            missing += 1
    return total + missing * unplaced


@kernel
def paid(instance, price, hosts, application):
    """Return the prices that an application pays for its nodes."""
    total = 0.0
    for service in range(instance.first[application], instance.first[application + 1]):
        cpu, memory = instance.demand[service, 0], instance.demand[service, 1]
        total += price[hosts[service], 0] * cpu + price[hosts[service], 1] * memory
    return total


@kernel
def at_home(instance, hosts, application):
    """Return whether an application runs wholly at its source."""
    home = True
    for service in range(instance.first[application], instance.first[application + 1]):
        home = home and hosts[service] == instance.source[application]
    return home


@allocating_kernel
def relax(instance, weight, price, charge, search, hosts, chosen, values, limit):
    """Place each chosen application as if it were alone; return what is proven of the sum.

    `charge`, (applications, 1), is paid for being at home.

    Starts from the placements in `hosts` and writes better ones there. Writes the value of each
    application, prices included, into `values`, (applications,).
    """
    total, room = 0.0, instance.capacity.copy()
    for application in chosen:
        first, last, before = instance.first[application], instance.first[application + 1], BIG
        if hosts[first] >= 0:
            before = weighted_sum(instance, weight, hosts, application)
            before += paid(instance, price, hosts, application)
            before += charge[application, 0] * at_home(instance, hosts, application)
        values[application], proven = place_best(
            instance,
            weight,
            price,
            charge[application, 0],
            room,
            search,
            application,
            before,
            limit,
        )
        total += proven
        if values[application] < before:
            copy_row(search.found[: last - first], hosts[first:last])
    return total


@allocating_kernel
def construct(instance, weight, price, search, order, limit):
    """Place applications one by one, each best in the room that is left; return their nodes.

    The answer is (microservices,), -1 throughout an application without a place.
    """
    room, hosts = instance.capacity.copy(), np.full(len(instance.demand), -1)
    placement = Placement(hosts, room)
    for application in order:
        best, _ = place_best(instance, weight, price, 0.0, room, search, application, BIG, limit)
        if best < BIG:
            first = instance.first[application]
            for service in range(first, instance.first[application + 1]):
                put(instance, placement, service, search.found[service - first])
    return hosts
