"""Makespan tables: the least busy time of one machine that hosts a set, over all start times.

It equals the minimum makespan of the set on two cumulative resources
(``models/temporal/bin_plans.md``). The replicas of one request that share a machine start together:
they are one item. Sets have codes: see `placeopt.temporal.exact.sets`.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.temporal.exact.sets import next_part, write_counts

#: Search nodes per set; a set that needs more keeps low < high.
MAX_NODES = 200_000


@allocating_kernel
def makespans(replicas, demands, durations, capacity, horizon):
    """Return least makespans of all sets on one machine size, as proven intervals [low, high].

    Sets are taken by growing code: a set is cut in two in all ways first, then searched for
    something shorter. Both parts of a cut may have replicas of one request, which then do not start
    together: that is the busy time of two machines, and a lower bound of the makespan on one.
    `replicas` and `durations` have shape (requests,), `demands` (requests, 2),
    `capacity` (2,). Returns `low` and `high`, (sets,): ``horizon + 1`` where the set does not fit,
    or is not done within the horizon.
    """
    k = len(replicas)
    sets = 1
    for i in range(k):
        sets *= replicas[i] + 1
    low, high = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    counts, items = np.zeros(k, np.int64), np.zeros((k, 3), np.int64)
    for code in range(1, sets):
        write_counts(code, replicas, counts)
        count, fits = 0, True
        for i in range(k):
            if counts[i] > 0:
                items[count, 0] = counts[i] * demands[i, 0]
                items[count, 1] = counts[i] * demands[i, 1]
                items[count, 2] = durations[i]
                fits = fits and items[count, 0] <= capacity[0] and items[count, 1] <= capacity[1]
                fits = fits and durations[i] <= horizon
                count += 1
        floor = _floor(items[:count], capacity) if fits else horizon + 1
        if floor > horizon:
            low[code] = high[code] = horizon + 1
            continue
        target = min(_split(code, replicas, counts, high), horizon + 1)
        if floor >= target:  # floor <= makespan <= target: the parts one after the other are best
            low[code] = high[code] = target
            continue
        proven, best = _search(items[:count], capacity, floor, target, MAX_NODES)
        high[code] = best
        low[code] = best if proven else floor
    return low, high


@allocating_kernel
def _split(code, replicas, counts, high):
    """Return the least sum of makespans, `high`, over all ways to cut a set in two."""
    part = np.zeros(len(replicas), np.int64)
    best = np.int64(2**40)
    piece = next_part(part, 0, counts, replicas, 0, 1)
    while piece >= 0:
        if 2 * piece <= code:
            best = min(best, high[piece] + high[code - piece])
        piece = next_part(part, piece, counts, replicas, 0, 1)
    return best


@kernel
def _floor(items, capacity):
    """Return a lower bound on the makespan of items, shape (k, 3): vCPU, memory, length.

    It is the largest of: the longest item, the work over the capacity, the work with weights by
    dual feasible functions, and the total length of items that pairwise exclude each other.
    """
    bound = 0
    for i in range(len(items)):
        bound = max(bound, items[i, 2], _chain(items, i, capacity))
    for resource in range(2):
        bound = max(bound, _work(items, resource, 0, capacity[resource]))
        for j in range(len(items)):
            if 2 * items[j, resource] <= capacity[resource]:
                bound = max(bound, _work(items, resource, items[j, resource], capacity[resource]))
    return bound


@kernel
def _work(items, resource, limit, capacity):
    """Return a lower bound on the makespan by the work on one resource.

    Items above ``capacity - limit`` exclude all that are not below `limit`: they count as if they
    took the whole capacity, and items below `limit` count nothing.
    """
    work = 0
    for i in range(len(items)):
        demand = items[i, resource]
        if demand > capacity - limit:
            work += capacity * items[i, 2]
        elif demand >= limit:
            work += demand * items[i, 2]
    return -(-work // capacity)


@allocating_kernel
def _chain(items, first, capacity):
    """Return the total length of items that exclude each other in pairs.

    They are gathered greedily around item `first`, the longest first.
    """
    taken = np.zeros(len(items), np.int64)
    taken[0], count, length = first, 1, items[first, 2]
    for i in np.argsort(-items[:, 2]):
        joins = i != first
        for t in range(count):
            a = taken[t]
            cpu, memory = items[a, 0] + items[i, 0], items[a, 1] + items[i, 1]
            if cpu <= capacity[0] and memory <= capacity[1]:
                joins = False
        if joins:
            taken[count] = i
            count += 1
            length += items[i, 2]
    return length


@allocating_kernel
def _search(items, capacity, floor, target, nodes):
    """Search for a makespan below `target`: in every order, each item starts as early as it can.

    Left-shifted schedules suffice: keep the order of the starts, and move every item to the first
    slot, not before its predecessor's start, where it fits beside the items before it. No item
    moves right. Returns whether the search was complete within so many nodes, and the least
    makespan, at most `target`.
    """
    k = len(items)
    start, chosen = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    option = np.zeros(k + 1, np.int64)
    used = np.zeros(k, np.bool_)
    finish = np.zeros(k, np.int64)
    best, depth, visited = target, 0, 0
    while depth >= 0:
        if option[depth] == 0 and visited >= nodes:
            return False, best
        j = option[depth]
        if j == k:  # all options of this depth are tried: step back
            depth -= 1
            if depth >= 0:
                used[chosen[depth]] = False
            continue
        option[depth] += 1
        if used[j]:
            continue
        visited += 1
        begin = _earliest(items, capacity, used, finish, start[depth], j)
        if depth > 0 and begin == start[depth] and j < chosen[depth - 1]:
            continue  # items that start together stand in their order
        if begin + items[j, 2] >= best:
            continue
        used[j], chosen[depth], finish[j] = True, j, begin + items[j, 2]
        if depth == k - 1:
            best = 0
            for i in range(k):
                best = max(best, finish[i])
            if best == floor:
                return True, best
            used[j] = False
        elif _can_beat(items, capacity, used, finish, begin, best):
            depth += 1
            start[depth], option[depth] = begin, 0
        else:
            used[j] = False
    return True, best


@kernel
def _earliest(items, capacity, used, finish, after, j):
    """Return the first slot, not before `after`, at which item j fits.

    No used item starts after `after`, so that the load only falls from then on.
    """
    time = after
    while True:
        cpu, memory, free = items[j, 0], items[j, 1], np.int64(2**40)
        for i in range(len(items)):
            if used[i] and finish[i] > time:
                cpu += items[i, 0]
                memory += items[i, 1]
                free = min(free, finish[i])
        if cpu <= capacity[0] and memory <= capacity[1]:
            return time
        time = free


@kernel
def _can_beat(items, capacity, used, finish, now, best):
    """Return whether the work that is left may be done before `best`.

    Nothing more starts before `now`.
    """
    cpu, memory, room = 0, 0, best - 1 - now
    for i in range(len(items)):
        left = items[i, 2] if not used[i] else max(0, finish[i] - now)
        if left > room:
            return False
        cpu += left * items[i, 0]
        memory += left * items[i, 1]
    return cpu <= capacity[0] * room and memory <= capacity[1] * room
