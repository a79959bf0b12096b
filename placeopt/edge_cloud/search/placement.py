"""The best placement of one application under prices, compiled, and what is built on it.

A price, shape (nodes, 2), is charged for every unit of a node's resources on top of the weighted
sum (1). `weight` is that of the cost. `limit` bounds the nodes of one depth-first search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import below, copy_row, link, most_worse, uniform, unlink
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud import arrays as kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays, Placement, cost, fits, latency, put, take

# -- shapes ----------------------------------------------------------------------------------------

#: Microservices of an application, beyond which its sets are too many.
MOST_SERVICES = 6
#: Loads of a node, beyond which it is not filled exactly: a large node can be filled nearly full.
MOST_LOADS = 8192


class Shapes(NamedTuple):
    """The shapes of an instance; resources are in the greatest unit that all demands share."""

    of: np.ndarray  # int64 (applications, masks) the shape of a set, counted through all
    first: np.ndarray  # int64 (applications + 1,) first shape of an application
    demand: np.ndarray  # int64 (shapes, 2)
    capacity: np.ndarray  # int64 (nodes, 2)
    small: np.ndarray  # int64, the nodes that are filled exactly
    large: np.ndarray  # int64, the others
    unit: np.ndarray  # int64 (2,)


def shapes(instance: EdgeCloudArrays) -> Shapes | None:
    """Return the shapes of an instance; None where an application has too many microservices."""
    counts = np.diff(instance.first)
    if counts.max() > MOST_SERVICES:
        return None
    unit = np.maximum(np.gcd.reduce(instance.demand), 1)
    masks = np.arange(1 << counts.max())
    bits = masks[:, None] >> np.arange(counts.max()) & 1
    of, first, demands = np.zeros((len(counts), len(masks)), dtype=np.int64), [0], []
    for application, count in enumerate(counts):
        begin = instance.first[application]
        own = instance.demand[begin : begin + count] // unit
        sums = bits[1 : 1 << count, :count] @ own
        demand, index = np.unique(sums, axis=0, return_inverse=True)
        of[application, 1 : 1 << count] = first[-1] + index.ravel()
        demands.append(demand)
        first.append(first[-1] + len(demand))
    capacity = instance.capacity // unit
    small = (capacity + 1.0).prod(axis=1) <= MOST_LOADS  # floats: whole numbers overflow
    nodes = np.flatnonzero(small), np.flatnonzero(~small)
    return Shapes(of, np.array(first), np.concatenate(demands), capacity, *nodes, unit)


# -- one application -------------------------------------------------------------------------------

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

    `charge` is paid for being at home: see `placeopt.edge_cloud.search.prices`.

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


# -- neighbourhoods --------------------------------------------------------------------------------

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
    link(state.head, state.before, state.after, service, node)


@kernel
def _take(instance, state, service):
    """Take a microservice off its node, in place; return the node, -1 if there is none."""
    node = state.hosts[service]
    if node >= 0:
        kernels.take(instance, state, service)
        unlink(state.head, state.before, state.after, service, node)
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
