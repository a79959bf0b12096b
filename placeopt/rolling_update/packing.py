"""Pack microservices on fewer nodes: close a node, then shift and swap until nothing overflows; compiled.

Latency limits are never broken on the way: a microservice with tight flows changes its cluster only where all its peers allow it,
or together with the whole group that its tight flows connect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel


class Room(NamedTuple):
    """Q microservices that may move, N nodes, R clusters."""

    size: np.ndarray  # (Q, 2) at the end
    home: np.ndarray  # (Q,)
    old: np.ndarray  # (Q, 2) of the running copy
    now: np.ndarray  # (N, 2) load before the first move
    home_first: np.ndarray  # (N + 1,) into home_members
    home_members: np.ndarray  # (Q,) microservices by home
    rests: np.ndarray  # (Q,) costs no start where it stays at home
    base: np.ndarray  # (N, 2) load of what cannot move, at the end
    capacity: np.ndarray  # (N, 2)
    cluster: np.ndarray  # (N,)
    first: np.ndarray  # (Q + 1,) into peer
    peer: (
        np.ndarray
    )  # microservice at the other end of a tight flow, or -1 - cluster of one that cannot move
    legal: np.ndarray  # (flows, R, R) own cluster, cluster of the peer
    group: np.ndarray  # (Q,) of microservices that tight flows connect
    group_first: np.ndarray
    group_members: np.ndarray


class State(NamedTuple):
    """Where everything is."""

    node: np.ndarray  # (Q,)
    load: np.ndarray  # (N, 2)
    open: np.ndarray  # (N,)
    choice: np.ndarray  # (N,) the open nodes, cluster by cluster
    bounds: np.ndarray  # (R + 1,) where each cluster begins in choice
    head: np.ndarray  # (N,) first microservice of a node, -1 none
    after: np.ndarray  # (Q,)
    before: np.ndarray  # (Q,)
    hot: np.ndarray  # (N,) the overloaded nodes
    hot_at: np.ndarray  # (N,) place in hot, -1 none
    tally: np.ndarray  # (1,) of hot
    random: np.ndarray  # (1,) uint64


@kernel
def _uniform(random):
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _over(capacity, n, cpu, memory):
    """Return by what share of its capacity a load would be too much for node n.

    It takes the one array that it needs: a tuple of arrays costs a count of references for each of them at every call.
    """
    total = 0.0
    if cpu > capacity[n, 0]:
        total += (cpu - capacity[n, 0]) / max(1, capacity[n, 0])
    if memory > capacity[n, 1]:
        total += (memory - capacity[n, 1]) / max(1, capacity[n, 1])
    return total


@kernel
def _heat(room, s, n):
    """Keep the list of overloaded nodes right for node n."""
    over = s.load[n, 0] > room.capacity[n, 0] or s.load[n, 1] > room.capacity[n, 1]
    at = s.hot_at[n]
    if over and at < 0:
        s.hot_at[n] = s.tally[0]
        s.hot[s.tally[0]] = n
        s.tally[0] += 1
    elif not over and at >= 0:
        s.tally[0] -= 1
        last = s.hot[s.tally[0]]
        s.hot[at] = last
        s.hot_at[last] = at
        s.hot_at[n] = -1


@kernel
def _put(room, s, i, n):
    """Move microservice i to node n."""
    m = s.node[i]
    if s.before[i] >= 0:
        s.after[s.before[i]] = s.after[i]
    else:
        s.head[m] = s.after[i]
    if s.after[i] >= 0:
        s.before[s.after[i]] = s.before[i]
    s.after[i], s.before[i] = s.head[n], -1
    if s.head[n] >= 0:
        s.before[s.head[n]] = i
    s.head[n] = i
    s.node[i] = n
    for r in range(2):
        s.load[m, r] -= room.size[i, r]
        s.load[n, r] += room.size[i, r]
    _heat(room, s, m)
    _heat(room, s, n)


@kernel
def _legal(room, s, i, cluster):
    """Whether microservice i may be in `cluster`, its peers being where they are."""
    for e in range(room.first[i], room.first[i + 1]):
        p = room.peer[e]
        other = -1 - p if p < 0 else room.cluster[s.node[p]]
        if not room.legal[e, cluster, other]:
            return False
    return True


@kernel
def start(room, node, is_open, seed):
    """Return the state in which microservice i is on ``node[i]``."""
    num, nodes = len(node), len(room.capacity)
    s = State(
        node.copy(),
        room.base.copy(),
        is_open.copy(),
        np.empty(nodes, np.int64),
        np.zeros(room.legal.shape[1] + 1, np.int64),
        np.full(nodes, -1),
        np.full(num, -1),
        np.full(num, -1),
        np.empty(nodes, np.int64),
        np.full(nodes, -1),
        np.zeros(1, np.int64),
        np.full(1, np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1), np.uint64),
    )
    for i in range(num):
        n = node[i]
        s.after[i] = s.head[n]
        if s.head[n] >= 0:
            s.before[s.head[n]] = i
        s.head[n] = i
        for r in range(2):
            s.load[n, r] += room.size[i, r]
    for n in range(nodes):
        _heat(room, s, n)
    list_open(room, s)
    return s


@kernel
def list_open(room, s):
    """Write the list of open nodes anew."""
    count = 0
    for c in range(len(s.bounds) - 1):
        s.bounds[c] = count
        for n in range(len(s.open)):
            if s.open[n] and room.cluster[n] == c:
                s.choice[count] = n
                count += 1
    s.bounds[len(s.bounds) - 1] = count


@kernel
def _pick(s, low, high):
    """Return a random open node of choice[low:high]."""
    return s.choice[low + np.int64(_uniform(s.random) * (high - low))]


@kernel
def _member(s, n):
    """Return a random microservice of node n, -1 where it has none."""
    count, i = 0, s.head[n]
    while i >= 0:
        count += 1
        i = s.after[i]
    if count == 0:
        return i
    i = s.head[n]
    for _ in range(np.int64(_uniform(s.random) * count)):
        i = s.after[i]
    return i


@kernel
def _best_fit(room, s, i, low, high):
    """Return the open node of choice[low:high] that microservice i fills best; where it fits none, the one that it overloads least."""
    best, best_n = np.inf, s.choice[low]
    for k in range(low, high):
        n = s.choice[k]
        if n == s.node[i]:
            continue
        cpu, memory = s.load[n, 0] + room.size[i, 0], s.load[n, 1] + room.size[i, 1]
        over = _over(room.capacity, n, cpu, memory) - _over(
            room.capacity, n, s.load[n, 0], s.load[n, 1]
        )
        if over > 0:
            score = 10.0 + over
        else:
            score = 1.0 - max(
                cpu / max(1, room.capacity[n, 0]), memory / max(1, room.capacity[n, 1])
            )
        if score < best and _legal(room, s, i, room.cluster[n]):
            best, best_n = score, n
    return best_n, best


@kernel
def evacuate(room, s, n):
    """Empty node n, which is no longer open: the largest first, each where it fits best."""
    while s.head[n] >= 0:
        largest, share, i = s.head[n], -1.0, s.head[n]
        while i >= 0:
            here = max(
                room.size[i, 0] / max(1, room.capacity[n, 0]),
                room.size[i, 1] / max(1, room.capacity[n, 1]),
            )
            if here > share:
                largest, share = i, here
            i = s.after[i]
        to, score = _best_fit(room, s, largest, 0, s.bounds[-1])
        if score < np.inf:
            _put(room, s, largest, to)
            continue
        moved = False  # no open node is legal for it alone: its whole group goes
        for c in range(len(s.bounds) - 1):
            moved = moved or _move_group(room, s, largest, c, np.inf)
        if not moved:
            return False
    return True


@kernel
def _total(room, s):
    total = 0.0
    for k in range(s.tally[0]):
        n = s.hot[k]
        total += _over(room.capacity, n, s.load[n, 0], s.load[n, 1])
    return total


@kernel
def _move_group(room, s, i, c, most):
    """Move the group of microservice i to cluster c if overflow grows by less than `most`; return whether it did."""
    low, high = s.bounds[c], s.bounds[c + 1]
    g = room.group[i]
    members = room.group_members[room.group_first[g] : room.group_first[g + 1]]
    if low == high:
        return False
    before, was = _total(room, s), np.empty(len(members), np.int64)
    for k in range(
        len(members)
    ):  # anywhere in the cluster first, so that they are legal for each other
        was[k] = s.node[members[k]]
        _put(room, s, members[k], _pick(s, low, high))
    fine = True
    for k in range(len(members)):
        fine = fine and _legal(room, s, members[k], c)
    if fine:
        for k in range(len(members)):
            to, score = _best_fit(room, s, members[k], low, high)
            if score < 10.0 or s.hot_at[s.node[members[k]]] >= 0:
                _put(room, s, members[k], to)
    if fine and _total(room, s) - before < most:
        return True
    for k in range(len(members)):
        _put(room, s, members[k], was[k])
    return False


@kernel
def _swap_legal(room, s, i, j):
    a, b = room.cluster[s.node[i]], room.cluster[s.node[j]]
    if a == b:
        return True
    return room.group[i] != room.group[j] and _legal(room, s, i, b) and _legal(room, s, j, a)


@kernel
def _try(room, s, i, n, limit):
    """Shift microservice i to node n, or swap it with the one there for which overflow changes least, if by at most `limit`."""
    o = s.node[i]
    here = _over(room.capacity, o, s.load[o, 0], s.load[o, 1]) + _over(
        room.capacity, n, s.load[n, 0], s.load[n, 1]
    )
    best, best_j = np.inf, np.int64(-2)
    if _legal(room, s, i, room.cluster[n]):
        best_j = np.int64(-1)
        best = _over(
            room.capacity, o, s.load[o, 0] - room.size[i, 0], s.load[o, 1] - room.size[i, 1]
        )
        best += _over(
            room.capacity, n, s.load[n, 0] + room.size[i, 0], s.load[n, 1] + room.size[i, 1]
        )
    j = s.head[n]
    while j >= 0:
        cpu, memory = room.size[i, 0] - room.size[j, 0], room.size[i, 1] - room.size[j, 1]
        over = _over(room.capacity, o, s.load[o, 0] - cpu, s.load[o, 1] - memory) + _over(
            room.capacity, n, s.load[n, 0] + cpu, s.load[n, 1] + memory
        )
        over += 1e-4 * _uniform(s.random)
        if over < best and _swap_legal(room, s, i, j):
            best, best_j = over, j
        j = s.after[j]
    if best_j == -2 or best - here > limit:
        return False
    _put(room, s, i, n)
    if best_j >= 0:
        _put(room, s, best_j, o)
    return True


@kernel
def repair(room, s, rounds, hottest, coldest):
    """Shift and swap out of overloaded nodes, annealed between two temperatures; return whether nothing overflows."""
    nodes = s.bounds[-1]
    if nodes == 0:
        return s.tally[0] == 0
    temperature, cooling = hottest, (coldest / hottest) ** (1.0 / max(1, rounds))
    for _ in range(rounds):
        if s.tally[0] == 0:
            return True
        o = s.hot[np.int64(_uniform(s.random) * s.tally[0])]
        i = _member(s, o)
        if i < 0:
            return False  # what cannot move is too much for the node
        limit = -temperature * np.log(1.0 - _uniform(s.random))
        if _uniform(s.random) < 0.02:
            c = np.int64(_uniform(s.random) * (len(s.bounds) - 1))
            if room.cluster[o] != c:
                _move_group(room, s, i, c, limit)
        else:
            c = room.cluster[o]
            near = (
                room.first[i] < room.first[i + 1]
                and _uniform(s.random) < 0.7
                and s.bounds[c] < s.bounds[c + 1]
            )
            n = _pick(s, s.bounds[c], s.bounds[c + 1]) if near else _pick(s, np.int64(0), nodes)
            if n != o:
                _try(room, s, i, n, limit)
        temperature *= cooling
    return s.tally[0] == 0


@kernel
def mend(room, s):
    """Bring groups whose tight flows are broken at the start together; return whether all flows are legal now."""
    fine = True
    for i in range(len(s.node)):
        if not _legal(room, s, i, room.cluster[s.node[i]]):
            mended = False
            for c in range(len(s.bounds) - 1):
                mended = mended or _move_group(room, s, i, c, np.inf)
            fine = fine and mended
    return fine


@kernel
def settle(room, s):
    """Bring microservices that could rest back home, by shifts and swaps that overload nothing and move nothing else away."""
    again = True
    while again:
        again = False
        for i in range(len(s.node)):
            h = room.home[i]
            if not room.rests[i] or s.node[i] == h or not s.open[h]:
                continue
            if (
                _legal(room, s, i, room.cluster[h])
                and _over(
                    room.capacity, h, s.load[h, 0] + room.size[i, 0], s.load[h, 1] + room.size[i, 1]
                )
                == 0
            ):
                _put(room, s, i, h)
                again = True
                continue
            j, o = s.head[h], s.node[i]
            while j >= 0:
                free = not room.rests[j] or room.home[j] != h
                cpu, memory = room.size[i, 0] - room.size[j, 0], room.size[i, 1] - room.size[j, 1]
                over = _over(room.capacity, o, s.load[o, 0] - cpu, s.load[o, 1] - memory)
                over += _over(room.capacity, h, s.load[h, 0] + cpu, s.load[h, 1] + memory)
                if free and over == 0 and _swap_legal(room, s, i, j):
                    _put(room, s, i, h)
                    _put(room, s, j, o)
                    again = True
                    break
                j = s.after[j]


@kernel
def ease(room, s):
    """Move away what cannot restart in place: where too little leaves its node for the new copy to fit beside the old one."""
    for i in range(len(s.node)):
        h = room.home[i]
        if room.rests[i] or s.node[i] != h:
            continue
        cpu, memory = room.now[h, 0] + room.size[i, 0], room.now[h, 1] + room.size[i, 1]
        for k in range(room.home_first[h], room.home_first[h + 1]):
            j = room.home_members[k]
            if j != i:
                stays = s.node[j] == h
                cpu -= room.old[j, 0] - (min(room.old[j, 0], room.size[j, 0]) if stays else 0)
                memory -= room.old[j, 1] - (min(room.old[j, 1], room.size[j, 1]) if stays else 0)
        if _over(room.capacity, h, cpu, memory) == 0:
            continue
        best, best_n = np.inf, h
        for k in range(s.bounds[-1]):
            n = s.choice[k]
            if _over(
                room.capacity, n, s.load[n, 0] + room.size[i, 0], s.load[n, 1] + room.size[i, 1]
            ) == 0 and _legal(room, s, i, room.cluster[n]):
                score = _over(
                    room.capacity,
                    n,
                    room.now[n, 0] + room.size[i, 0],
                    room.now[n, 1] + room.size[i, 1],
                )
                if n != h and score < best:
                    best, best_n = score, n
        _put(room, s, i, best_n)
