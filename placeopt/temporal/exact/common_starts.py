"""Common starts: whether the machines of a partition can agree on when every request starts.

A machine that is paid by the slot and busy for no longer than w slots keeps its replicas within a
window of length w. Two replicas that do not fit together must follow each other. Both are
difference constraints on the starts. The search keeps the longest paths between starts, takes the
earliest start of every request, looks for an overload, and branches on which request of a minimal
overload ends before which other one starts. That is complete: requests that overlap in pairs
overlap at once.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.rows import copy_row

#: Branchings on one path of the search, and search nodes.
MAX_DEPTH, MAX_NODES = 300, 20_000
#: No path.
_NONE = -(2**40)
#: Answers of a search.
IMPOSSIBLE, FOUND, UNKNOWN = 0, 1, -1


@allocating_kernel
def common_starts(counts, demands, durations, capacity, window, horizon):
    """Search for common starts.

    `counts`, (machines, requests), are the replicas of each request on each machine; `demands` is
    (requests, 2), `durations` (requests,), `capacity` (machines, 2). `window`, (machines,), is how
    long a machine may be busy, idle slots in between included. Returns FOUND and starts,
    (requests,); IMPOSSIBLE; or UNKNOWN where the nodes were not enough.
    """
    n = len(durations)
    path = np.full((MAX_DEPTH, n + 1, n + 1), _NONE, np.int64)
    members, option = np.zeros((MAX_DEPTH, n), np.int64), np.full(MAX_DEPTH, -1, np.int64)
    size = np.zeros(MAX_DEPTH, np.int64)
    starts = np.zeros(n, np.int64)
    if not _begin(path[0], counts, durations, window, horizon):
        return IMPOSSIBLE, starts
    depth, visited = 0, 0
    while depth >= 0:
        if option[depth] < 0:  # a new node
            visited += 1
            if visited > MAX_NODES or depth + 1 == MAX_DEPTH:
                return UNKNOWN, starts
            copy_row(path[depth, n, :n], starts)
            size[depth] = _overload(counts, demands, durations, capacity, starts, members[depth])
            if size[depth] == 0:
                return FOUND, starts
            option[depth] = 0
        if option[depth] == size[depth] * size[depth]:
            option[depth] = -1
            depth -= 1
            continue
        first = members[depth, option[depth] // size[depth]]
        second = members[depth, option[depth] % size[depth]]
        option[depth] += 1
        if first == second:
            continue
        path[depth + 1] = path[depth]
        if _require(path[depth + 1], first, second, durations[first]):
            depth += 1
            option[depth] = -1
    return IMPOSSIBLE, starts


@kernel
def _begin(path, counts, durations, window, horizon):
    """Write windows and horizon as longest paths, `path` (n + 1, n + 1); node n is slot 0.

    Returns False where they contradict each other.
    """
    n = len(durations)
    for i in range(n + 1):
        path[i, i] = 0
    for i in range(n):
        path[n, i] = 0
        path[i, n] = durations[i] - horizon
    for b in range(len(counts)):
        for i in range(n):
            for j in range(n):
                if i != j and counts[b, i] > 0 and counts[b, j] > 0:
                    path[i, j] = max(path[i, j], durations[i] - window[b])
    for k in range(n + 1):
        for i in range(n + 1):
            for j in range(n + 1):
                if path[i, k] > _NONE and path[k, j] > _NONE:
                    path[i, j] = max(path[i, j], path[i, k] + path[k, j])
    good = True
    for i in range(n + 1):
        good = good and path[i, i] <= 0
    return good


@kernel
def _require(path, i, j, gap):
    """Require start j >= start i + gap, in place in `path`; False where that is impossible.

    It is impossible where it closes a positive cycle.
    """
    n = len(path)
    if path[j, i] > _NONE and gap + path[j, i] > 0:
        return False
    if path[i, j] >= gap:
        return True
    for a in range(n):
        if path[a, i] > _NONE:
            for b in range(n):
                if path[j, b] > _NONE:
                    path[a, b] = max(path[a, b], path[a, i] + gap + path[j, b])
    return True


@allocating_kernel
def _overload(counts, demands, durations, capacity, starts, members):
    """Write a smallest set of requests that together overload a machine to `members`, (n,).

    Returns its size, 0 where there is no overload.
    """
    n, best = len(durations), 0
    chosen = np.zeros(n, np.int64)
    for b in range(len(counts)):
        for i in range(n):
            if counts[b, i] == 0:
                continue
            size, load = 0, np.zeros(2, np.int64)
            for j in range(n):
                if counts[b, j] > 0 and starts[j] <= starts[i] < starts[j] + durations[j]:
                    chosen[size] = j
                    size += 1
                    load += counts[b, j] * demands[j]
            if load[0] <= capacity[b, 0] and load[1] <= capacity[b, 1]:
                continue
            q = 0
            while q < size:  # drop requests that the overload does not need
                less = load - counts[b, chosen[q]] * demands[chosen[q]]
                if less[0] > capacity[b, 0] or less[1] > capacity[b, 1]:
                    load = less
                    copy_row(chosen[q + 1 : size], chosen[q : size - 1])
                    size -= 1
                else:
                    q += 1
            if best == 0 or size < best:
                best = size
                copy_row(chosen[:size], members)
    return best
