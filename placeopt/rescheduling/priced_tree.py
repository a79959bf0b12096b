"""The tree of calls with prices: its least sum by the number of moves, compiled.

Services are numbered callees first, as in ``ReschedulingArrays.order``; the last is the gateway.
The ways to place a service are rows; rows of all services stand one after another. A table has a
column for every number of moves that may be spent on a service and all that is below it in the
tree, up to its width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.rescheduling.arrays import starts
from placeopt.rescheduling.relaxation import NodeClasses

#: Part of all sums that rounding may take off a bound.
_ROUNDING = 1e-11


class PricedTree(NamedTuple):
    """What stays as it is while prices change.

    Service i has the rows ``first[i]`` to ``first[i + 1]``, and the calls ``call_first[i]`` to
    ``call_first[i + 1]``. Call c has the latency ``network[network_first[c] + r * rows + s]``, with
    r and s the rows within caller and callee.
    """

    first: np.ndarray  # int64 (S + 1,)
    moves: np.ndarray  # int64 (rows,)
    own: np.ndarray  # (rows,) ms
    counts: np.ndarray  # int64 (rows, classes)
    demand: np.ndarray  # int64 (S, 2)
    capacity: np.ndarray  # int64 (classes, 2)
    call_first: np.ndarray  # int64 (S + 1,)
    callee: np.ndarray  # int64 (calls,)
    group: np.ndarray  # int64 (calls,) among all groups
    group_first: np.ndarray  # int64 (S + 1,)
    in_tree: np.ndarray  # bool (calls,)
    network_first: np.ndarray  # int64 (calls,)
    network: np.ndarray  # ms
    entered_first: np.ndarray  # int64 (calls,) first row of the call in `Tables.entered`
    split_first: np.ndarray  # int64 (calls,) where b of a call that is not in the tree begins


class Multipliers(NamedTuple):
    """What an ascent chooses."""

    prices: np.ndarray  # (classes, 2)
    shares: np.ndarray  # (groups,)
    split: np.ndarray  # b, by call and row of the callee


class Tables(NamedTuple):
    """What the kernels write; `rows` and `size` are the rows that are left, by service."""

    rows: np.ndarray  # int64 (rows,)
    size: np.ndarray  # int64 (S,)
    weight: np.ndarray  # (S,)
    call_weight: np.ndarray  # (calls,)
    cost: np.ndarray  # (rows,)
    width: np.ndarray  # int64 (S,)
    table: np.ndarray  # (rows, columns)
    entered: np.ndarray  # (rows of callers, columns)
    outside: np.ndarray  # (rows, columns)
    least: np.ndarray  # (columns,) bounds by the number of moves
    sums: np.ndarray  # (calls of a service + 2, columns)
    chosen: np.ndarray  # int64 (S,) rows
    column: np.ndarray  # int64 (S,)
    times: np.ndarray  # (S,)
    lack: np.ndarray  # (classes, 2)
    mean: np.ndarray  # (rows,) how often a row is chosen
    through: np.ndarray  # (rows,) the bound of plans with a row
    pace: np.ndarray  # (3,) part of a step that is made, steps without progress, bounds made


def build(relaxed: NodeClasses) -> PricedTree:
    """Return the tree of a relaxation; of the calls into a service the first is in it."""
    arrays = relaxed.arrays
    order = arrays.order.tolist()
    place, sizes = {i: k for k, i in enumerate(order)}, [len(relaxed.counts[i]) for i in order]
    groups = [(i, g, members) for i in order for g, members in enumerate(relaxed.groups[i])]
    owners = relaxed.owners()
    calls = [
        (i, j, number, (i, g, position) in owners)
        for number, (i, g, members) in enumerate(groups)
        for position, j in enumerate(members)
    ]
    in_tree = np.array([call[3] for call in calls], dtype=bool)
    rows = np.array([(sizes[place[i]], sizes[place[j]]) for i, j, _, _ in calls], dtype=np.int64)
    rows = rows.reshape(len(calls), 2)
    return PricedTree(
        first=starts(sizes),
        moves=np.concatenate([relaxed.moves[i] for i in order]).astype(np.int64),
        own=np.concatenate([relaxed.own_time(i) for i in order]),
        counts=np.concatenate([relaxed.counts[i] for i in order]).astype(np.int64),
        demand=arrays.demand[order].astype(np.int64),
        capacity=relaxed.capacity.astype(np.int64),
        call_first=starts([sum(call[0] == i for call in calls) for i in order]),
        callee=np.array([place[call[1]] for call in calls], dtype=np.int64),
        group=np.array([call[2] for call in calls], dtype=np.int64),
        group_first=starts([len(relaxed.groups[i]) for i in order]),
        in_tree=in_tree,
        network_first=starts(rows.prod(axis=1)),
        network=np.concatenate([[], *(relaxed.network(i, j).ravel() for i, j, _, _ in calls)]),
        entered_first=starts(np.where(in_tree, rows[:, 0], 0)),
        split_first=starts(np.where(in_tree, 0, rows[:, 1])),
    )


def even(tree: PricedTree) -> Multipliers:
    """Return multipliers to begin with: no prices, even shares."""
    sizes = np.diff(tree.group_first)
    shares = np.repeat(1.0 / np.maximum(1, sizes), sizes)
    return Multipliers(np.zeros(tree.capacity.shape), shares, np.zeros(tree.split_first[-1]))


def empty_tables(tree: PricedTree, most: int) -> Tables:
    """Return tables with all rows, for at most so many moves."""
    rows, services, columns = len(tree.moves), len(tree.demand), most + 1
    fan = int(np.diff(tree.call_first).max())
    return Tables(
        rows=np.arange(rows),
        size=np.diff(tree.first),
        weight=np.zeros(services),
        call_weight=np.zeros(len(tree.callee)),
        cost=np.zeros(rows),
        width=np.zeros(services, dtype=np.int64),
        table=np.zeros((rows, columns)),
        entered=np.zeros((int(tree.entered_first[-1]), columns)),
        outside=np.zeros((rows, columns)),
        least=np.zeros(columns),
        sums=np.zeros((max(3, fan + 1), columns)),
        chosen=np.zeros(services, dtype=np.int64),
        column=np.zeros(services, dtype=np.int64),
        times=np.zeros(services),
        lack=np.zeros(tree.capacity.shape),
        mean=np.zeros(rows),
        through=np.zeros(rows),
        pace=np.zeros(3),
    )


@kernel
def _weigh(tree, now, tables):
    """Write how often a mean request is at every service, and makes every call."""
    last = tables.weight.size - 1
    tables.weight[:] = 0.0
    tables.weight[last] = 1.0
    for i in range(last, -1, -1):
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            tables.call_weight[c] = tables.weight[i] * now.shares[tree.group[c]]
            tables.weight[tree.callee[c]] += tables.call_weight[c]


@kernel
def apart(rows, first, weight, network, split):
    """Return what a call that is not in the tree costs one row of its caller, and its callee's row.

    `rows` are the rows of the callee that are left; `network` and `split` begin at its `first`.
    """
    least, best = np.inf, -1
    for row in rows:
        cost = weight * network[row - first] - split[row - first]
        if cost < least or best < 0:
            least, best = cost, row
    return least, best


@kernel
def _charge(tree, now, tables):
    """Write what each row costs by itself."""
    for i in range(tables.size.size):
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            row = tables.rows[k]
            cost = tables.weight[i] * tree.own[row]
            for n in range(tree.capacity.shape[0]):
                if tree.counts[row, n]:
                    for resource in range(2):
                        price = now.prices[n, resource] * tree.demand[i, resource]
                        cost += tree.counts[row, n] * price
            tables.cost[row] = cost
    for i in range(tables.size.size):
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            if not tree.in_tree[c]:
                _charge_apart(tree, now, tables, c, i)


@kernel
def _charge_apart(tree, now, tables, c, i):
    """Add what a call that is not in the tree costs the rows of its caller and of its callee."""
    j = tree.callee[c]
    first, size = tree.first[j], tree.first[j + 1] - tree.first[j]
    split, rows = now.split[tree.split_first[c] :], tables.rows[first : first + tables.size[j]]
    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
        row = tables.rows[k]
        network = tree.network[tree.network_first[c] + (row - tree.first[i]) * size :]
        tables.cost[row] += apart(rows, first, tables.call_weight[c], network, split)[0]
    for row in rows:
        tables.cost[row] += split[row - first]


@kernel
def _enter(tree, tables, c, i):
    """Write the least of a call and of all below it, by moves, for the rows of the caller."""
    j = tree.callee[c]
    width, first, size = tables.width[j], tree.first[j], tree.first[j + 1] - tree.first[j]
    rows = tables.rows[first : first + tables.size[j]]
    calls_on = False
    for d in range(tree.call_first[j], tree.call_first[j + 1]):
        calls_on |= tree.in_tree[d]
    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
        at = tables.rows[k] - tree.first[i]
        network = tree.network[tree.network_first[c] + at * size :]
        result = tables.entered[tree.entered_first[c] + at]
        for m in range(width + 1):
            result[m] = np.inf
        for row in rows:
            way = tables.call_weight[c] * network[row - first]
            own = tree.moves[row]
            if not calls_on:
                if own <= width and way + tables.cost[row] < result[own]:
                    result[own] = way + tables.cost[row]
            elif way < np.inf:
                below = tables.table[row]
                for m in range(own, width + 1):
                    if way + below[m] < result[m]:
                        result[m] = way + below[m]
        for m in range(1, width + 1):
            result[m] = min(result[m], result[m - 1])


@kernel
def share(one, wide, other, width, most, result):
    """Write the least sum of two tables of one row by the moves that they share; its width."""
    total = min(most, wide + width)
    result[: total + 1] = np.inf
    for k in range(wide + 1):
        here = one[k]
        for m in range(min(width, total - k) + 1):
            if here + other[m] < result[k + m]:
                result[k + m] = here + other[m]
    return total


@kernel
def bound(tree, now, tables, most):
    """Write ``least[:most + 1]``, bounds in ms by the number of moves; return the last."""
    tables.pace[2] += 1
    _weigh(tree, now, tables)
    _charge(tree, now, tables)
    last = tables.size.size - 1
    for i in range(last + 1):
        furthest, below = 0, 0
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            furthest = max(furthest, tree.moves[tables.rows[k]])
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            if tree.in_tree[c]:
                below += tables.width[tree.callee[c]]
        tables.width[i] = min(most, furthest + below)
        _fill(tree, tables, most, i)
    earned = earned_by_room(tree, now)
    for m in range(most + 1):
        least = np.inf
        for k in range(tree.first[last], tree.first[last] + tables.size[last]):
            least = min(least, tables.table[tables.rows[k], min(m, tables.width[last])])
        tables.least[m] = safe(least, earned)
    return tables.least[most]


@kernel
def earned_by_room(tree, now):
    """Return what all room earns."""
    earned = 0.0
    for n in range(tree.capacity.shape[0]):
        earned += now.prices[n, 0] * tree.capacity[n, 0] + now.prices[n, 1] * tree.capacity[n, 1]
    return earned


@kernel
def safe(least, earned):
    """Return a bound from the least sum, less than what rounding may have added."""
    return least - earned - _ROUNDING * (abs(least) + earned) if least < np.inf else np.inf


@kernel
def _fill(tree, tables, most, i):
    """Write the tables of the rows of a service; those below it are written."""
    for c in range(tree.call_first[i], tree.call_first[i + 1]):
        if tree.in_tree[c]:
            _enter(tree, tables, c, i)
    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
        row = tables.rows[k]
        now, wide, own, cost = 0, 0, tree.moves[row], tables.cost[row]
        tables.sums[0, 0] = 0.0
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            if tree.in_tree[c]:
                entering = tables.entered[tree.entered_first[c] + row - tree.first[i]]
                width = tables.width[tree.callee[c]]
                wide = share(tables.sums[now], wide, entering, width, most, tables.sums[1 - now])
                now = 1 - now
        table, total = tables.table[row], tables.sums[now]
        for m in range(tables.width[i] + 1):
            table[m] = np.inf if m < own else total[min(m - own, wide)] + cost


@kernel
def choose(tree, now, tables, most):
    """Write the best choice: ``chosen``, and in ``lack`` what it uses beyond each capacity."""
    last, best = tables.size.size - 1, np.inf
    for k in range(tree.first[last], tree.first[last] + tables.size[last]):
        row = tables.rows[k]
        if tables.table[row, tables.width[last]] < best:
            best, tables.chosen[last] = tables.table[row, tables.width[last]], row
    tables.column[last] = tables.width[last]
    for i in range(last, -1, -1):
        _follow_calls(tree, tables, most, i)
    for n in range(tree.capacity.shape[0]):
        for resource in range(2):
            used = -tree.capacity[n, resource]
            for i in range(last + 1):
                used += tree.counts[tables.chosen[i], n] * tree.demand[i, resource]
            tables.lack[n, resource] = used


@kernel
def _follow_calls(tree, tables, most, i):
    """Choose the rows and columns of those that a service calls in the tree."""
    row, wide, k = tables.chosen[i], 0, 0
    tables.sums[0, 0] = 0.0
    for c in range(tree.call_first[i], tree.call_first[i + 1]):
        if tree.in_tree[c]:
            entering = tables.entered[tree.entered_first[c] + row - tree.first[i]]
            width = tables.width[tree.callee[c]]
            wide = share(tables.sums[k], wide, entering, width, most, tables.sums[k + 1])
            k += 1
    left = min(wide, tables.column[i] - tree.moves[row])
    for c in range(tree.call_first[i + 1] - 1, tree.call_first[i] - 1, -1):
        if not tree.in_tree[c]:
            continue
        j, k = tree.callee[c], k - 1
        width = tables.width[j]
        wide = min(most, _widths(tree, tables, i, c))
        entering = tables.entered[tree.entered_first[c] + row - tree.first[i]]
        best, mine = np.inf, 0
        for m in range(max(0, left - wide), min(width, left) + 1):
            if entering[m] + tables.sums[k, left - m] < best:
                best, mine = entering[m] + tables.sums[k, left - m], m
        left -= mine
        at = tree.network_first[c] + (row - tree.first[i]) * (tree.first[j + 1] - tree.first[j])
        best = np.inf
        for s in range(tree.first[j], tree.first[j] + tables.size[j]):
            r = tables.rows[s]
            way = tables.call_weight[c] * tree.network[at + r - tree.first[j]]
            if way + tables.table[r, mine] < best:
                best, tables.chosen[j] = way + tables.table[r, mine], r
        tables.column[j] = mine


@kernel
def _widths(tree, tables, i, before):
    """Return the widths of what a service calls in the tree before a call."""
    total = 0
    for c in range(tree.call_first[i], before):
        if tree.in_tree[c]:
            total += tables.width[tree.callee[c]]
    return total
