"""The tree of calls with prices: its least sum by the number of moves, compiled.

Services are numbered callees first, as in ``ReschedulingArrays.order``; the last is the gateway.
The ways to place a service are rows; rows of all services stand one after another. A table has a
column for every number of moves that may be spent on a service and all that is below it in the
tree, up to its width.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import kernel
from placeopt.core.numbers import begins
from placeopt.rescheduling.bounds.relaxation import NodeClasses

# -- priced trees ----------------------------------------------------------------------------------

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
        first=begins(sizes),
        moves=np.concatenate([relaxed.moves[i] for i in order]).astype(np.int64),
        own=np.concatenate([relaxed.own_time(i) for i in order]),
        counts=np.concatenate([relaxed.counts[i] for i in order]).astype(np.int64),
        demand=arrays.demand[order].astype(np.int64),
        capacity=relaxed.capacity.astype(np.int64),
        call_first=begins([sum(call[0] == i for call in calls) for i in order]),
        callee=np.array([place[call[1]] for call in calls], dtype=np.int64),
        group=np.array([call[2] for call in calls], dtype=np.int64),
        group_first=begins([len(relaxed.groups[i]) for i in order]),
        in_tree=in_tree,
        network_first=begins(rows.prod(axis=1)),
        network=np.concatenate([[], *(relaxed.network(i, j).ravel() for i, j, _, _ in calls)]),
        entered_first=begins(np.where(in_tree, rows[:, 0], 0)),
        split_first=begins(np.where(in_tree, 0, rows[:, 1])),
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


# -- ascents ---------------------------------------------------------------------------------------

#: How fast shares of groups follow the slowest one, and the least share of a group.
_FOLLOW, _LEAST = 4.0, 1e-5
#: Steps without progress until the step is halved.
_PATIENCE = 4
#: The least part of the latency that a step aims at.
_AIM = 1e-3
#: What the last choice counts in the mean of all.
_LATEST = 0.1


@kernel
def _step(tree, now, tables, missing):
    """Change the multipliers against what the choice breaks; `missing` is the way to go, ms."""
    size = 0.0
    for resource in range(2):
        mean = 0.0
        for n in range(tree.capacity.shape[0]):
            mean += tree.capacity[n, resource] / tree.capacity.shape[0]
        for n in range(tree.capacity.shape[0]):
            tables.lack[n, resource] /= max(1.0, mean)
            if tables.lack[n, resource] < 0 and now.prices[n, resource] <= 0:
                tables.lack[n, resource] = 0.0
            size += tables.lack[n, resource] ** 2
            tables.lack[n, resource] /= max(1.0, mean)
    size += 2.0 * _torn(tree, now, tables, 0.0)
    if size > 0:
        for n in range(tree.capacity.shape[0]):
            for resource in range(2):
                raised = now.prices[n, resource] + missing / size * tables.lack[n, resource]
                now.prices[n, resource] = max(0.0, raised)
        _torn(tree, now, tables, missing / size)
    _follow_slowest(tree, now, tables, missing)


@kernel
def _torn(tree, now, tables, change):
    """Count calls whose callee stands elsewhere than its caller takes it; change their b."""
    count = 0
    for i in range(tables.size.size):
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            if tree.in_tree[c]:
                continue
            j = tree.callee[c]
            first, size = tree.first[j], tree.first[j + 1] - tree.first[j]
            at = tree.network_first[c] + (tables.chosen[i] - tree.first[i]) * size
            rows, split = (
                tables.rows[first : first + tables.size[j]],
                now.split[tree.split_first[c] :],
            )
            weight = tables.call_weight[c]
            other = apart(rows, first, weight, tree.network[at:], split)[1]
            if other != tables.chosen[j]:
                count += 1
                split[tables.chosen[j] - first] += change
                split[other - first] -= change
    return count


@kernel
def _group_time(tree, tables, i, g):
    """Return the time of a group of a service where services stand as chosen."""
    total = 0.0
    for c in range(tree.call_first[i], tree.call_first[i + 1]):
        if tree.group[c] == g:
            j = tree.callee[c]
            at = (tables.chosen[i] - tree.first[i]) * (tree.first[j + 1] - tree.first[j])
            way = tree.network[tree.network_first[c] + at + tables.chosen[j] - tree.first[j]]
            total += way + tables.times[j]
    return total


@kernel
def _follow_slowest(tree, now, tables, missing):
    """Give more of the mean to the groups that are slow where services stand as chosen."""
    for i in range(tables.size.size):
        slowest = 0.0
        for g in range(tree.group_first[i], tree.group_first[i + 1]):
            slowest = max(slowest, _group_time(tree, tables, i, g))
        tables.times[i] = tree.own[tables.chosen[i]] + slowest
        if tree.group_first[i + 1] - tree.group_first[i] < 2 or not 0 < slowest < np.inf:
            continue
        haste = _FOLLOW * min(1.0, 10 * missing / slowest)
        total, floored = 0.0, 0.0
        for g in range(tree.group_first[i], tree.group_first[i + 1]):
            time = _group_time(tree, tables, i, g)
            now.shares[g] *= np.exp(haste * (time / slowest - 1))
            total += now.shares[g]
        for g in range(tree.group_first[i], tree.group_first[i + 1]):
            now.shares[g] = max(_LEAST, now.shares[g] / total)
            floored += now.shares[g]
        for g in range(tree.group_first[i], tree.group_first[i + 1]):
            now.shares[g] /= floored


@kernel
def keep(now, kept):
    """Copy multipliers."""
    for n in range(now.prices.shape[0]):
        copy_row(now.prices[n], kept.prices[n])
    copy_row(now.shares, kept.shares)
    copy_row(now.split, kept.split)


@kernel
def ascend(tree, now, kept, tables, most, latency, enough, best, steps):
    """Raise the bound of `most` moves above `best`, that of `kept`; return it.

    The multipliers of the best bound are written in `kept`. It ends at `enough`; `latency` is what
    the steps aim at. ``pace[:2]`` is 1 and 0 at first, and goes on from call to call.
    """
    pace = tables.pace
    for _ in range(steps):
        value = bound(tree, now, tables, most)
        pace[1] += 1
        if value > best:
            best, pace[1] = value, 0
            keep(now, kept)
        if best >= enough:
            break
        if pace[1] == _PATIENCE:
            pace[0], pace[1] = pace[0] / 2, 0
            keep(kept, now)
            value = bound(tree, now, tables, most)
        choose(tree, now, tables, most)
        for row in range(tables.mean.size):
            tables.mean[row] *= 1 - _LATEST
        for i in range(tables.size.size):
            tables.mean[tables.chosen[i]] += _LATEST
        _step(tree, now, tables, pace[0] * max(latency - value, _AIM * latency))
    return best


@kernel
def measure_rows(tree, now, tables, most):
    """Write in `through` a bound on the plans with each row that is left; call `bound` first."""
    last, earned = tables.size.size - 1, earned_by_room(tree, now)
    for k in range(tree.first[last], tree.first[last] + tables.size[last]):
        tables.outside[tables.rows[k], : tables.width[last] + 1] = 0.0
    for i in range(last, -1, -1):
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            row, least = tables.rows[k], np.inf
            for m in range(tables.width[i] + 1):
                least = min(least, tables.outside[row, m] + tables.table[row, m])
            tables.through[row] = safe(least, earned)
        for c in range(tree.call_first[i], tree.call_first[i + 1]):
            if tree.in_tree[c]:
                _outside(tree, tables, most, i, c)


@kernel
def _outside(tree, tables, most, i, call):
    """Write the least of all that is not below a callee, by its row and the moves below it."""
    j = tree.callee[call]
    first, size, width = tree.first[j], tree.first[j + 1] - tree.first[j], tables.width[j]
    rows, weight = tables.rows[first : first + tables.size[j]], tables.call_weight[call]
    for other in rows:
        tables.outside[other, : width + 1] = np.inf
    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
        row = tables.rows[k]
        around = tables.sums[2]
        _around(tree, tables, most, i, call, row, around)
        network = tree.network[tree.network_first[call] + (row - tree.first[i]) * size :]
        for other in rows:
            way = weight * network[other - first]
            if way < np.inf:
                result = tables.outside[other]
                for m in range(width + 1):
                    if way + around[m] < result[m]:
                        result[m] = way + around[m]


@kernel
def _around(tree, tables, most, i, call, row, around):
    """Write the least of all but a call and what is below it, by its moves, for a caller's row."""
    now, wide = 0, 0
    tables.sums[0, 0] = 0.0
    for c in range(tree.call_first[i], tree.call_first[i + 1]):
        if tree.in_tree[c] and c != call:
            entering = tables.entered[tree.entered_first[c] + row - tree.first[i]]
            width = tables.width[tree.callee[c]]
            wide = share(tables.sums[now], wide, entering, width, most, tables.sums[1 - now])
            now = 1 - now
    others, outside = tables.sums[now], tables.outside[row]
    for m in range(tables.width[tree.callee[call]] + 1):
        least, used = np.inf, tree.moves[row] + m
        for k in range(min(wide, tables.width[i] - used) + 1):
            least = min(least, others[k] + outside[used + k])
        around[m] = least + tables.cost[row]


@kernel
def leave(tree, tables, stays):
    """Leave out the rows that are not marked in `stays`; return whether all services have rows."""
    all_have = True
    for i in range(tables.size.size):
        size = 0
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            row = tables.rows[k]
            if stays[row]:
                tables.rows[tree.first[i] + size] = row
                size += 1
        tables.size[i] = size
        all_have &= size > 0
    return all_have


@kernel
def drop_crowding(tree, tables):
    """Leave out the rows that have no room beside what all others use at least.

    Return whether all services have rows.
    """
    changed = True
    while changed:
        changed = False
        for n in range(tree.capacity.shape[0]):
            for resource in range(2):
                left = tree.capacity[n, resource]
                for i in range(tables.size.size):
                    left -= _least_use(tree, tables, i, n, resource)
                if left < 0:
                    return False
                for i in range(tables.size.size):
                    room, size = left + _least_use(tree, tables, i, n, resource), 0
                    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
                        row = tables.rows[k]
                        if tree.counts[row, n] * tree.demand[i, resource] <= room:
                            tables.rows[tree.first[i] + size] = row
                            size += 1
                    changed |= size < tables.size[i]
                    tables.size[i] = size
    return True


@kernel
def _least_use(tree, tables, i, n, resource):
    """Return what a service takes of a class at least."""
    least = np.inf
    for k in range(tree.first[i], tree.first[i] + tables.size[i]):
        least = min(least, tree.counts[tables.rows[k], n])
    return int(least) * tree.demand[i, resource]


@kernel
def mark(tree, tables, left):
    """Mark the rows that are left."""
    for row in range(left.size):
        left[row] = False
    for i in range(tables.size.size):
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            left[tables.rows[k]] = True


@kernel
def measure_halves(tree, tables, feature, limits, scores):
    """Write where each service is best cut in two by a feature, and how much its mean is torn.

    The score is the variance of the feature over the mean of all choices, times the root of how
    often a mean request is at the service: a group with a small share may be the slowest after a
    cut. It is -1 where all rows are alike.
    """
    for i in range(tables.size.size):
        total, mean, square = 0.0, 0.0, 0.0
        least, most = np.iinfo(np.int64).max, -1
        for k in range(tree.first[i], tree.first[i] + tables.size[i]):
            row = tables.rows[k]
            part, value = tables.mean[row] + 1e-6, feature[row]
            total += part
            mean += part * value
            square += part * value * value
            least, most = min(least, value), max(most, value)
        if least == most:
            limits[i], scores[i] = least, -1.0
        else:
            mean /= total
            limits[i] = max(least, min(most - 1, int(mean + 1e-9)))
            often = np.sqrt(tables.weight[i])
            scores[i] = often * max(0.0, square / total - mean * mean)


# -- plans in parts --------------------------------------------------------------------------------

#: Steps of the first part between two looks at its rows, how often, and steps of other parts.
_FIRST_STEPS, _FIRST_LOOKS, _STEPS = 10, 12, 20
#: A look that gains less than this part of the latency is the last one.
_STALLED = 1e-5
#: Cuts that are tried, the steps for each, and the least gain that counts, of the latency.
_TRIED, _TRY_STEPS, _GAIN = 8, 4, 1e-4
#: What the number of replicas in one class counts beside that in classes near to each other.
_ONE_CLASS = 0.01
#: Parts that are kept.
_MOST_PARTS = 5000


class PlansPart(NamedTuple):
    """Some of the plans; parts compare by their bounds."""

    bound: float
    number: int
    left: np.ndarray  # bool (rows,)
    multipliers: Multipliers
    mean: np.ndarray  # (rows,)
    pace: tuple[float, float]


class _Cut(NamedTuple):
    """A service in two: rows whose feature is above a limit, and the others."""

    service: int
    feature: int
    limit: int


class Workspace:
    """What the questions of one instance share; `evaluations` counts the bounds."""

    def __init__(self, relaxed: NodeClasses):
        self.most = relaxed.most
        self.tree = build(relaxed)
        self.now, self.kept = even(self.tree), even(self.tree)
        self.tables = empty_tables(self.tree, relaxed.most)
        self.features, self.factors = _features(relaxed.delay, self.tree.counts)

    @property
    def evaluations(self) -> int:
        """The number of bounds that were computed."""
        return int(self.tables.pace[2])

    def set(self, part: PlansPart) -> bool:
        """Take over a part; return whether all services have rows."""
        for multipliers in (self.now, self.kept):
            for mine, other in zip(multipliers, part.multipliers, strict=True):
                mine[:] = other
        self.tables.mean[:] = part.mean
        self.tables.pace[:2] = part.pace
        self.tables.rows[:] = np.arange(len(part.left))
        self.tables.size[:] = np.diff(self.tree.first)
        return bool(leave(self.tree, self.tables, part.left))


class LatencyQuestion:
    """A lower bound on the latency of plans of at most `moves` moves, which `go_on` raises.

    Parameters
    ----------
    workspace : Workspace
    moves : int
        More than ``workspace.most`` stands for any number.
    latency : float
        Latency of the best plan, ms.
    enough : float
        The search stops at this bound, ms.
    start : Multipliers or None
        The first multipliers; without them prices are 0 and groups count alike.

    Attributes
    ----------
    parts : int
        The number of parts that were looked at, besides the first.
    """

    def __init__(
        self,
        workspace: Workspace,
        moves: int,
        latency: float,
        enough: float,
        start: Multipliers | None,
    ):
        self.space, self.latency, self.enough = workspace, latency, enough
        self.tree, self.most = workspace.tree, moves
        if moves > workspace.most:
            self.tree = self.tree._replace(moves=np.zeros_like(self.tree.moves))
            self.most = 0
        rows = len(self.tree.moves)
        first = _copied(start or even(self.tree))
        self._first: PlansPart | None = PlansPart(
            -np.inf, 0, np.ones(rows, dtype=bool), first, np.zeros(rows), (1.0, 0.0)
        )
        self.start = first
        self.parts = self._looks = self._number = 0
        self._open: list[PlansPart] = []
        self._settled = enough

    @property
    def bound(self) -> float:
        """The lower bound so far, ms; at most `enough`."""
        least = self._first or (self._open[0] if self._open else None)
        return min(self._settled, least.bound if least else np.inf)

    @property
    def ended(self) -> bool:
        """Whether the bound will not rise any more."""
        no_more = self._first is None and not self._open
        return no_more or self._settled <= self.bound or len(self._open) > _MOST_PARTS

    def go_on(self) -> None:
        """Raise the first part, or cut the part with the least bound."""
        if self._first is None:
            self._cut(heapq.heappop(self._open))
            return
        before, self._looks = self._first.bound, self._looks + 1
        self._first = self._raised(self._first, _FIRST_STEPS)
        if self._first is None:
            return
        self.start = self._first.multipliers
        stalled = self._looks > 3 and self._first.bound - before < _STALLED * self.latency
        if self._looks == _FIRST_LOOKS or stalled:
            heapq.heappush(self._open, self._first)
            self._first = None

    def _raised(self, part: PlansPart, steps: int) -> PlansPart | None:
        """Return a part with a higher bound and fewer rows; None where none is needed."""
        space, tree, tables = self.space, self.tree, self.space.tables
        if not space.set(part) or not drop_crowding(tree, tables):
            return None
        value = self._ascend(part.bound, steps)
        if value >= self.enough:
            return None
        pace = (float(tables.pace[0]), float(tables.pace[1]))
        keep(space.kept, space.now)
        bound(tree, space.now, tables, self.most)
        measure_rows(tree, space.now, tables, self.most)
        if not leave(tree, tables, tables.through < self.enough):
            return None
        if not drop_crowding(tree, tables):
            return None
        left = np.zeros(len(part.left), dtype=bool)
        mark(tree, tables, left)
        self._number += 1
        kept = _copied(space.kept)
        return PlansPart(value, self._number, left, kept, tables.mean * left, pace)

    def _ascend(self, best: float, steps: int) -> float:
        space = self.space
        return float(
            ascend(
                self.tree,
                space.now,
                space.kept,
                space.tables,
                self.most,
                self.latency,
                self.enough,
                best,
                steps,
            )
        )

    def _cut(self, part: PlansPart) -> None:
        """Put the two sides of the best cut in the place of a part."""
        part = part._replace(pace=(1.0, 0.0))
        cuts = self._cuts(part)
        if not cuts:  # one deployment
            self._settled = min(self._settled, part.bound)
            return
        best = max(cuts, key=lambda cut: self._gain(part, cut)) if len(cuts) > 1 else cuts[0]
        for upper in (False, True):
            if self._halved(part, best, upper):
                left = np.zeros(len(part.left), dtype=bool)
                mark(self.tree, self.space.tables, left)
                self.parts += 1
                raised = self._raised(part._replace(left=left), _STEPS)
                if raised is not None:
                    heapq.heappush(self._open, raised)

    def _cuts(self, part: PlansPart) -> list[_Cut]:
        """Return cuts of a part, those first whose service and feature are torn most."""
        space = self.space
        space.set(part)
        bound(self.tree, space.now, space.tables, self.most)  # for how often services count
        limits = np.zeros((len(space.features), len(space.tables.size)), dtype=np.int64)
        scores = np.zeros(limits.shape)
        for k, feature in enumerate(space.features):
            measure_halves(self.tree, space.tables, feature, limits[k], scores[k])
            scores[k] *= space.factors[k]
        order = np.argsort(-scores, axis=None, kind="stable")[:_TRIED]
        places = zip(*np.unravel_index(order, scores.shape), strict=True)
        return [_Cut(int(i), int(k), int(limits[k, i])) for k, i in places if scores[k, i] >= 0]

    def _halved(self, part: PlansPart, cut: _Cut, upper: bool) -> bool:
        """Take over one side of a part; return whether it may have a plan."""
        stays, tree = part.left.copy(), self.tree
        own = slice(tree.first[cut.service], tree.first[cut.service + 1])
        stays[own] &= (self.space.features[cut.feature][own] > cut.limit) == upper
        if not self.space.set(part._replace(left=stays)):
            return False
        return bool(drop_crowding(tree, self.space.tables))

    def _gain(self, part: PlansPart, cut: _Cut) -> float:
        """Return how much a cut raises both sides, the product of both gains."""
        product = 1.0
        for upper in (False, True):
            value = self.enough
            if self._halved(part, cut, upper):
                value = min(value, self._ascend(part.bound, _TRY_STEPS))
            product *= max(value - part.bound, _GAIN * self.latency)
        return product


def _copied(multipliers: Multipliers) -> Multipliers:
    return Multipliers(*(array.copy() for array in multipliers))


def _features(delay: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what cuts look at, (features, rows), and what each counts.

    These are the replicas in classes that are near to each other, and in single classes.
    """
    near, groups = (delay + delay.T) / 2 < delay.mean(), []
    for k in range(len(delay)):
        group = {k}
        while (wider := {int(j) for i in group for j in np.flatnonzero(near[i])} | group) != group:
            group = wider
        if sorted(group) not in groups:
            groups.append(sorted(group))
    wide = [group for group in groups if len(group) > 1]
    features = [counts[:, group].sum(axis=1) for group in wide[: max(1, len(groups) - 1)]]
    factors = np.array([1.0] * len(features) + [_ONE_CLASS] * counts.shape[1])
    return np.stack([*features, *counts.T]), factors
