"""Kernels of a bound: an ascent chooses the prices, then rows that cannot matter are left out."""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.rescheduling.priced_tree import apart, bound, choose, earned_by_room, safe, share

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
