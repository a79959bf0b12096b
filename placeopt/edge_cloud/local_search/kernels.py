"""Compiled parts of the edge-cloud heuristics: the best placement of one application, and what is built on it.

A price is charged for every unit of a resource of a node, on top of the weighted sum (1): 0 for plain construction, the
multipliers of the capacity rows for bounds and for price-guided construction, noisy ones for the large neighbourhood search.
`work` and `search` are those of ``edge_cloud_state``.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel

BIG = 1e300
#: Applications of which the search takes out the one that most is wrong with: a random number up to this.
DRAWS = 32


@kernel
def _allowed(table, room, work, base, depth, node):
    """Whether the next microservice of the search may go to a node: flows to those placed, and room beside them."""
    i = base + work.sequence[depth]
    for e in range(table.flow_first[i], table.flow_first[i + 1]):
        other = table.flow_other[e] - base
        for q in range(depth):
            if (
                work.sequence[q] == other
                and table.delay[work.chosen[other], node] > table.flow_limit[e]
            ):
                return False
    cpu, memory = table.demand[i, 0], table.demand[i, 1]
    for q in range(depth):
        if work.chosen[work.sequence[q]] == node:
            cpu += table.demand[base + work.sequence[q], 0]
            memory += table.demand[base + work.sequence[q], 1]
    return cpu <= room[node, 0] and memory <= room[node, 1]


@kernel
def _candidates(work, j, k, slack):
    """Sort the positions up to k that cost microservice j less than `slack` above its least."""
    count, most = 0, work.least[j, k] + slack
    for p in range(k + 1):
        cost = work.cost[j, p]
        if cost < most:
            at = count
            while at > 0 and work.cost[j, work.order[j, at - 1]] > cost:
                work.order[j, at] = work.order[j, at - 1]
                at -= 1
            work.order[j, at] = p
            count += 1
    work.candidates[j] = count


@kernel
def _prepare(work, count, k, best):
    """Fill in what is left to pay at each depth, and the candidates of all but the microservice placed first."""
    work.rest[count] = 0.0
    for d in range(count - 1, 0, -1):
        work.rest[d] = work.rest[d + 1] + work.least[work.sequence[d], k]
    for d in range(1, count):
        _candidates(work, work.sequence[d], k, best - work.value[1] - work.rest[1])
    work.pointer[1] = 0


@kernel
def _search(table, room, nodes, work, base, count, k, forced, best, limit):
    """Place an application on the nodes up to position k, microservice `forced` on that very node; depth first, cheapest first.

    Returns the least cost below `best`, then in `work.found`, and the number of nodes of the search.
    """
    work.sequence[:count] = work.sequences[base + forced, :count]
    if not _allowed(table, room, work, base, 0, nodes[k]):
        return best, 0
    work.chosen[forced] = nodes[k]
    work.value[1] = work.cost[forced, k]
    if count == 1:
        if work.value[1] < best:
            best = work.value[1]
            work.found[0] = nodes[k]
        return best, 0
    _prepare(work, count, k, best)
    depth, used = 1, 0
    while depth > 0:
        j = work.sequence[depth]
        at = work.pointer[depth]
        if (
            at == work.candidates[j]
            or work.value[depth] + work.cost[j, work.order[j, at]] + work.rest[depth + 1] >= best
        ):
            depth -= 1
            continue
        work.pointer[depth] = at + 1
        position = work.order[j, at]
        if not _allowed(table, room, work, base, depth, nodes[position]):
            continue
        used += 1
        if used > limit:
            return best, used
        work.chosen[j] = nodes[position]
        if depth == count - 1:
            best = work.value[depth] + work.cost[j, position]
            for q in range(count):
                work.found[q] = work.chosen[q]
        else:
            work.value[depth + 1] = work.value[depth] + work.cost[j, position]
            depth += 1
            work.pointer[depth] = 0
    return best, used


@kernel
def _open(table, near, room, work, application):
    """Write the nodes with room for the smallest microservice, by their delay from the source; returns how many."""
    source, base, count = table.source[application], table.first[application], 0
    cpu, memory = table.demand[base, 0], table.demand[base, 1]
    for i in range(base + 1, table.first[application + 1]):
        cpu, memory = min(cpu, table.demand[i, 0]), min(memory, table.demand[i, 1])
    for k in range(len(table.operating)):
        node = near[source, k]
        if cpu <= room[node, 0] and memory <= room[node, 1]:
            work.nodes[count] = node
            count += 1
    return count


@kernel
def _best_placement(table, weight, nodes, floor, price, room, work, application, best, limit):
    """Place one application best, with prices, in the room there is; nodes of a value below `best` are left in `work.found`.

    Nodes are admitted in order of their delay from the source. A placement that is better than those before must use the
    node admitted last, which makes the bound sharp. Returns the value, `best` if there is none below, and what is proven of it.
    """
    base, source = table.first[application], table.source[application]
    count = table.first[application + 1] - base
    least_cost, proven = 0.0, BIG
    for j in range(count):
        least_cost += floor[base + j]
    for k in range(len(nodes)):
        node = nodes[k]
        latency = (1 - weight) * table.delay[source, node]
        if latency + least_cost >= best or table.delay[source, node] == np.inf:
            break
        total = latency
        for j in range(count):
            i = base + j
            cost = BIG
            if table.demand[i, 0] <= room[node, 0] and table.demand[i, 1] <= room[node, 1]:
                cost = weight * (table.operating[node] + table.network[node] * table.data[i])
                cost += price[node, 0] * table.demand[i, 0] + price[node, 1] * table.demand[i, 1]
            work.cost[j, k] = cost
            work.least[j, k] = cost if k == 0 else min(cost, work.least[j, k - 1])
            total += work.least[j, k]
        for j in range(count):
            lower = total - work.least[j, k] + work.cost[j, k]
            if lower < best and work.cost[j, k] < BIG:
                cost, used = _search(
                    table, room, nodes, work, base, count, k, j, best - latency, limit
                )
                if used > limit:
                    proven = min(proven, lower)
                best = min(best, cost + latency)
    return best, min(best, proven)


@kernel
def floors(table, weight, floor):
    """Least cost of each microservice on any node, without prices."""
    for i in range(len(floor)):
        least = BIG
        for v in range(len(table.operating)):
            least = min(least, table.operating[v] + table.network[v] * table.data[i])
        floor[i] = weight * least


@kernel
def value(table, weight, hosts, application):
    """Equation (1) of one application."""
    cost, farthest = 0.0, 0.0
    for i in range(table.first[application], table.first[application + 1]):
        cost += table.operating[hosts[i]] + table.network[hosts[i]] * table.data[i]
        farthest = max(farthest, table.delay[table.source[application], hosts[i]])
    return weight * cost + (1 - weight) * farthest


@kernel
def _paid(table, price, hosts, application):
    """What the nodes of one application charge it."""
    total = 0.0
    for i in range(table.first[application], table.first[application + 1]):
        total += price[hosts[i], 0] * table.demand[i, 0] + price[hosts[i], 1] * table.demand[i, 1]
    return total


@kernel
def relax(table, weight, near, floor, price, work, hosts, chosen, worth, limit):
    """Place each chosen application alone under prices, from placements in `hosts`; returns what is proven of their sum.

    `worth` is what each application costs in its placement, prices included.
    """
    total = 0.0
    for a in chosen:
        before = BIG
        if hosts[table.first[a]] >= 0:
            before = value(table, weight, hosts, a) + _paid(table, price, hosts, a)
        worth[a], proven = _best_placement(
            table,
            weight,
            near[table.source[a]],
            floor,
            price,
            table.capacity,
            work,
            a,
            before,
            limit,
        )
        total += proven
        if worth[a] < before:
            for j in range(table.first[a + 1] - table.first[a]):
                hosts[table.first[a] + j] = work.found[j]
    return total


@kernel
def construct(table, weight, near, floor, price, work, order, room, hosts, limit):
    """Place applications one by one, each best in the room that is left; returns how many found no place."""
    failed = 0
    for a in order:
        best, _ = _best_placement(
            table,
            weight,
            work.nodes[: _open(table, near, room, work, a)],
            floor,
            price,
            room,
            work,
            a,
            BIG,
            limit,
        )
        failed += best >= BIG
        for i in range(table.first[a], table.first[a + 1]):
            v = work.found[i - table.first[a]] if best < BIG else -1
            hosts[i] = v
            if v >= 0:
                room[v, 0] -= table.demand[i, 0]
                room[v, 1] -= table.demand[i, 1]
    return failed


# -- large neighbourhood search ------------------------------------------------------------------------------------


@kernel
def _uniform(random):
    """xorshift64*: uniform in [0, 1)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _put(table, search, i, node):
    search.hosts[i] = node
    if node < 0:
        return
    search.room[node, 0] -= table.demand[i, 0]
    search.room[node, 1] -= table.demand[i, 1]
    head = search.head[node]
    search.before[i], search.after[i] = -1, head
    if head >= 0:
        search.before[head] = i
    search.head[node] = i


@kernel
def _take(table, search, i):
    node = search.hosts[i]
    if node < 0:
        return node
    search.room[node, 0] += table.demand[i, 0]
    search.room[node, 1] += table.demand[i, 1]
    before, after = search.before[i], search.after[i]
    if before >= 0:
        search.after[before] = after
    else:
        search.head[node] = after
    if after >= 0:
        search.before[after] = before
    return node


@kernel
def _worth(table, weight, search, application):
    if search.hosts[table.first[application]] < 0:
        return search.totals[2]
    return value(table, weight, search.hosts, application)


@kernel
def enter(table, weight, search):
    """Put the plan in `search.hosts` into the lists and rooms."""
    search.head[:] = -1
    search.room[:] = table.capacity
    search.totals[0] = 0.0
    for i in range(len(search.hosts)):
        _put(table, search, i, search.hosts[i])
    for a in range(len(search.values)):
        search.values[a] = _worth(table, weight, search, a)
        search.totals[0] += search.values[a]
    search.totals[1] = search.totals[0]
    search.best[:] = search.hosts


@kernel
def _add(search, count, application):
    for k in range(count):
        if search.removed[k] == application:
            return count
    search.removed[count] = application
    return count + 1


@kernel
def _regret(table, price, search, application):
    """What an application costs under prices above what it would if all nodes were empty: the gap is mostly made of these."""
    if search.hosts[table.first[application]] < 0:
        return search.totals[2]
    return (
        search.values[application]
        + _paid(table, price, search.hosts, application)
        - search.target[application]
    )


@kernel
def _first(table, price, search):
    """Choose an application: of a random number of them the one of most regret."""
    random = search.random
    first = int(_uniform(random) * len(search.values))
    most = _regret(table, price, search, first)
    for _ in range(int(_uniform(random) * DRAWS)):
        other = int(_uniform(random) * len(search.values))
        regret = _regret(table, price, search, other)
        if regret > most:
            first, most = other, regret
    return first


@kernel
def _choose(table, near, price, search, most):
    """Choose related applications: that have one source, share a node, or use a node near the source of the first."""
    random, first = search.random, _first(table, price, search)
    search.removed[0] = first
    count, wanted, kind = 1, 1 + int(_uniform(random) * most), _uniform(random)
    source = table.source[first]
    if kind < 0.4:
        low, high = search.source_first[source], search.source_first[source + 1]
        for _ in range(wanted - 1):
            count = _add(
                search, count, search.by_source[low + int(_uniform(random) * (high - low))]
            )
        return count
    node = search.hosts[
        table.first[first] + int(_uniform(random) * (table.first[first + 1] - table.first[first]))
    ]
    if kind >= 0.7 or node < 0:
        node = near[source, int(_uniform(random) ** 2 * min(len(table.operating), 12))]
    length, i = 0, search.head[node]
    while i >= 0 and length < 256:
        length += 1
        i = search.after[i]
    for _ in range(wanted - 1 if length > 0 else 0):
        i = search.head[node]
        for _ in range(int(_uniform(random) * length)):
            i = search.after[i]
        count = _add(search, count, search.owner[i])
    return count


@kernel
def _rebuild(table, weight, near, floor, search, work, count, gate, limit):
    """Put the removed applications back, each best under noisy prices; how many, and their value, `BIG` once above the gate."""
    total = 0.0
    for k in range(count):
        a = search.removed[k]
        nodes = work.nodes[: _open(table, near, search.room, work, a)]
        best, _ = _best_placement(
            table, weight, nodes, floor, search.price, search.room, work, a, BIG, limit
        )
        for i in range(table.first[a], table.first[a + 1]):
            _put(table, search, i, work.found[i - table.first[a]] if best < BIG else -1)
        total += _worth(table, weight, search, a)
        if total > gate:
            return k + 1, BIG
    return count, total


@kernel
def improve(
    table, weight, near, floor, price, search, work, rounds, hot, cold, most, strength, limit
):
    """Take out related applications and rebuild them, `rounds` times, accepting by annealing from `hot` to `cold`."""
    for step in range(rounds):
        count = _choose(table, near, price, search, most)
        before = 0.0
        for k in range(count):
            other = k + int(_uniform(search.random) * (count - k))
            search.removed[k], search.removed[other] = search.removed[other], search.removed[k]
            a = search.removed[k]
            before += search.values[a]
            for i in range(table.first[a], table.first[a + 1]):
                search.old[k, i - table.first[a]] = _take(table, search, i)
        offset, factor = (
            int(_uniform(search.random) * (len(search.noise) - len(price))),
            strength * _uniform(search.random),
        )
        for v in range(len(price)):
            search.price[v, 0] = price[v, 0] * factor * search.noise[offset + v]
            search.price[v, 1] = price[v, 1] * factor * search.noise[offset + v]
        gate = before - hot * (cold / hot) ** (step / rounds) * np.log(
            max(1e-300, _uniform(search.random))
        )
        placed, after = _rebuild(table, weight, near, floor, search, work, count, gate, limit)
        if after <= gate:
            for k in range(count):
                search.values[search.removed[k]] = _worth(table, weight, search, search.removed[k])
            search.totals[0] += after - before
            if search.totals[0] < search.totals[1] - 1e-9:
                search.totals[1] = search.totals[0]
                search.best[:] = search.hosts
            continue
        for k in range(placed):
            for i in range(table.first[search.removed[k]], table.first[search.removed[k] + 1]):
                _take(table, search, i)
        for k in range(count):
            a = search.removed[k]
            for i in range(table.first[a], table.first[a + 1]):
                _put(table, search, i, search.old[k, i - table.first[a]])
