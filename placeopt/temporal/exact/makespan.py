"""Makespan tables: how long a set of replicas keeps one machine busy at the least, over all start times.

The least busy time of a machine that hosts the set S equals the minimum makespan g(S) of S on two cumulative resources
(``models/temporal/bin_plans.md``). The replicas of one request that share a machine start together: they are one item.

A set is a vector of counts n with 0 <= n_i <= r_i; its code is sum n_i * stride_i with stride_0 = 1, stride_i+1 = stride_i (r_i + 1).
A part of a set has a smaller code than the set.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel


def strides(replicas: np.ndarray) -> np.ndarray:
    """Return the stride of each request in the code of a set, and last the number of sets, shape (requests + 1,)."""
    return np.concatenate(([1], np.cumprod(replicas.astype(object) + 1))).astype(object)


def makespans(
    replicas: np.ndarray,
    demands: np.ndarray,
    durations: np.ndarray,
    capacity: np.ndarray,
    horizon: int,
    nodes: int = 200_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Return least makespans of all sets on one machine size, as proven intervals [low, high].

    Parameters
    ----------
    capacity : ndarray, shape (2,)
    nodes : int
        Search nodes per set; a set that needs more keeps low < high.

    Returns
    -------
    low, high : ndarray of int64, shape (sets,)
        ``horizon + 1`` where the set does not fit, or is not done within the horizon.
    """
    return _table(replicas, demands, durations, capacity, horizon, nodes)


@kernel
def _counts(code: int, replicas: np.ndarray, n: np.ndarray) -> None:
    for i in range(len(replicas)):
        n[i] = code % (replicas[i] + 1)
        code //= replicas[i] + 1


@kernel
def _table(replicas, demands, durations, capacity, horizon, nodes):
    """Fill the table by growing code: a set is cut in two in all ways first, then searched for something shorter."""
    k = len(replicas)
    total = 1
    for i in range(k):
        total *= replicas[i] + 1
    low, high = np.zeros(total, np.int64), np.zeros(total, np.int64)
    n, items = np.zeros(k, np.int64), np.zeros((k, 3), np.int64)
    for code in range(1, total):
        _counts(code, replicas, n)
        count, fits = 0, True
        for i in range(k):
            if n[i] > 0:
                items[count, 0], items[count, 1], items[count, 2] = (
                    n[i] * demands[i, 0],
                    n[i] * demands[i, 1],
                    durations[i],
                )
                fits = (
                    fits
                    and items[count, 0] <= capacity[0]
                    and items[count, 1] <= capacity[1]
                    and durations[i] <= horizon
                )
                count += 1
        floor = _floor(items[:count], capacity) if fits else horizon + 1
        if floor > horizon:
            low[code] = high[code] = horizon + 1
            continue
        target = min(_split(code, replicas, n, high), horizon + 1)
        if floor >= target:  # floor <= makespan <= target: the parts one after the other are best
            low[code] = high[code] = target
            continue
        proven, best = _search(items[:count], capacity, floor, target, nodes)
        high[code] = best
        low[code] = best if proven else floor
    return low, high


@kernel
def _split(code, replicas, n, high):
    """Return the least sum of makespans over all ways to cut a set in two."""
    k = len(replicas)
    part = np.zeros(k, np.int64)
    best = np.int64(2**40)
    piece = 0
    while True:
        i, stride = 0, 1
        while i < k and part[i] == n[i]:  # the next part: count up in mixed radix
            piece -= part[i] * stride
            part[i] = 0
            stride *= replicas[i] + 1
            i += 1
        if i == k:
            return best
        part[i] += 1
        piece += stride
        if 2 * piece <= code:
            best = min(best, high[piece] + high[code - piece])


@kernel
def _floor(items, capacity):
    """A lower bound on the makespan: work, the longest item, and items that pairwise exclude each other."""
    bound = 0
    for i in range(len(items)):
        bound = max(bound, items[i, 2])
    for resource in range(2):
        work = 0
        for i in range(len(items)):
            work += items[i, resource] * items[i, 2]
        bound = max(bound, -(-work // capacity[resource]))
        for j in range(len(items)):  # items above C - t exclude all that are not below t
            limit = items[j, resource]
            if 2 * limit > capacity[resource]:
                continue
            work = 0
            for i in range(len(items)):
                if items[i, resource] > capacity[resource] - limit:
                    work += capacity[resource] * items[i, 2]
                elif items[i, resource] >= limit:
                    work += items[i, resource] * items[i, 2]
            bound = max(bound, -(-work // capacity[resource]))
    for j in range(len(items)):
        bound = max(bound, _chain(items, j, capacity))
    return bound


@kernel
def _chain(items, first, capacity):
    """The total length of items that exclude each other in pairs, gathered greedily around one of them, longest first."""
    taken = np.zeros(len(items), np.int64)
    taken[0], count, length = first, 1, items[first, 2]
    for i in np.argsort(-items[:, 2]):
        joins = i != first
        for t in range(count):
            a = taken[t]
            if (
                items[a, 0] + items[i, 0] <= capacity[0]
                and items[a, 1] + items[i, 1] <= capacity[1]
            ):
                joins = False
        if joins:
            taken[count] = i
            count += 1
            length += items[i, 2]
    return length


@kernel
def _search(items, capacity, floor, target, nodes):
    """Search for a makespan below target, over start orders: in order, every item starts as early as it can.

    Left-shifted schedules suffice: keeping the order of the starts and moving every item to the first slot, not before its
    predecessor's start, where it fits beside the items before it moves none of them right.

    Returns
    -------
    (bool, int)
        Whether the search was complete, and the least makespan, at most target.
    """
    k = len(items)
    start, chosen, option = (
        np.zeros(k + 1, np.int64),
        np.zeros(k + 1, np.int64),
        np.zeros(k + 1, np.int64),
    )
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
    """The first slot, not before `after`, at which item j fits: later than `after` the load only falls."""
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
    """Whether the work that is left may be done before `best`, nothing more starting before `now`."""
    cpu, memory, room = 0, 0, best - 1 - now
    for i in range(len(items)):
        left = items[i, 2] if not used[i] else max(0, finish[i] - now)
        if left > room:
            return False
        cpu += left * items[i, 0]
        memory += left * items[i, 1]
    return cpu <= capacity[0] * room and memory <= capacity[1] * room
