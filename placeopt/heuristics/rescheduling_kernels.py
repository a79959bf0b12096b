"""Compiled search for rescheduling: deployments as replicas per (service, node), moves with room, the best plan of every length.

``t`` is `placeopt.problems.rescheduling.Arrays` throughout. A move of one replica changes the critical path by a difference of two
potentials; what the rest of the graph adds can only make it worse, so that potentials bound every move from below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.compiled import kernel

#: Differences below this many ms are rounding.
_TINY = 1e-9


class Work(NamedTuple):
    """A deployment and what is known of it.

    Attributes
    ----------
    counts : int64 (S, N)
    free : int64 (N, 2)
    ds, crit, saved : float (calls,)
        Mean latency of every call; how often it is paid on the critical path; a place to keep the first meanwhile.
    te, took, weight : float (S,)
        Mean execution (with the users' latency, for the gateway), processing time, times on the critical path.
    pot : float (S, N)
        What a replica adds to the critical path.
    owner : int64 (calls,)
        The caller of every call.
    """

    counts: np.ndarray
    free: np.ndarray
    ds: np.ndarray
    crit: np.ndarray
    saved: np.ndarray
    te: np.ndarray
    took: np.ndarray
    weight: np.ndarray
    pot: np.ndarray
    owner: np.ndarray


class Archive(NamedTuple):
    """The best plan of every number of moves.

    Attributes
    ----------
    latency : float (K + 1,)
    moves : int32 (K + 1, K, 3)
        (service, from, to) in order.
    tries : int64 (1,)
        Deployments looked at.
    """

    latency: np.ndarray
    moves: np.ndarray
    tries: np.ndarray


@kernel
def _refresh(t, w, i):
    """Bring execution and calls of service `i` up to date with its counts."""
    n, r = t.user.size, t.replicas
    gateway = t.order[-1]
    w.te[i] = 0.0
    for u in range(n):
        if w.counts[i, u]:
            w.te[i] += w.counts[i, u] * (t.execution[i, u] + (t.user[u] if i == gateway else 0.0)) / r[i]
    for e in range(t.member.size):
        a, b = w.owner[e], t.member[e]
        if a == i or b == i:
            total = 0.0
            for u in range(n):
                if w.counts[a, u]:
                    for v in range(n):
                        total += w.counts[a, u] * w.counts[b, v] * t.delay[u, v]
            w.ds[e] = total / (r[a] * r[b])


@kernel
def load(t, w, counts):
    """Take up a deployment."""
    w.counts[:] = counts
    w.free[:] = t.capacity
    for i in range(t.replicas.size):
        for u in range(t.user.size):
            for r in range(2):
                w.free[u, r] -= counts[i, u] * t.demand[i, r]
    for i in range(t.replicas.size):
        _refresh(t, w, i)


@kernel
def total(t, w):
    """Return the latency from calls and executions: (5) to (9)."""
    for k in range(t.order.size):
        i = t.order[k]
        longest = 0.0
        for g in range(t.group_first[i], t.group_first[i + 1]):
            group = 0.0
            for e in range(t.member_first[g], t.member_first[g + 1]):
                group += w.ds[e] + w.took[t.member[e]]
            longest = max(longest, group)
        w.took[i] = w.te[i] + longest
    return w.took[t.order[-1]]


@kernel
def _potentials(t, w):
    """Find the critical path, and what a replica of each service adds to it on every node; `total` comes before."""
    w.weight[:] = 0.0
    w.crit[:] = 0.0
    w.pot[:] = 0.0
    gateway = t.order[-1]
    w.weight[gateway] = 1.0
    for k in range(t.order.size - 1, -1, -1):
        i = t.order[k]
        if w.weight[i] == 0.0:
            continue
        for u in range(t.user.size):
            w.pot[i, u] += w.weight[i] * (t.execution[i, u] + (t.user[u] if i == gateway else 0.0)) / t.replicas[i]
        slowest, longest = -1, -1.0
        for g in range(t.group_first[i], t.group_first[i + 1]):
            group = 0.0
            for e in range(t.member_first[g], t.member_first[g + 1]):
                group += w.ds[e] + w.took[t.member[e]]
            if group > longest:
                slowest, longest = g, group
        if slowest >= 0:
            for e in range(t.member_first[slowest], t.member_first[slowest + 1]):
                w.weight[t.member[e]] += w.weight[i]
                w.crit[e] = w.weight[i]
    for e in range(t.member.size):
        if w.crit[e] > 0.0:
            a, b = w.owner[e], t.member[e]
            share = w.crit[e] / (t.replicas[a] * t.replicas[b])
            for u in range(t.user.size):
                here, there = share * w.counts[a, u], share * w.counts[b, u]
                for v in range(t.user.size if here + there > 0.0 else 0):
                    w.pot[a, v] += there * t.delay[v, u]
                    w.pot[b, v] += here * t.delay[u, v]


@kernel
def _trial(t, w, i, u, v):
    """Return the latency if a replica of `i` went from `u` to `v`; nothing changes."""
    te = w.te[i]
    user = t.user[v] - t.user[u] if i == t.order[-1] else 0.0
    w.te[i] += (t.execution[i, v] - t.execution[i, u] + user) / t.replicas[i]
    for e in range(t.member.size):
        a, b = w.owner[e], t.member[e]
        w.saved[e] = w.ds[e]
        if a == i or b == i:
            change = 0.0
            for x in range(t.user.size):
                if a == i:
                    change += w.counts[b, x] * (t.delay[v, x] - t.delay[u, x])
                else:
                    change += w.counts[a, x] * (t.delay[x, v] - t.delay[x, u])
            w.ds[e] += change / (t.replicas[a] * t.replicas[b])
    value = total(t, w)
    w.te[i] = te
    for e in range(t.member.size):
        w.ds[e] = w.saved[e]
    return value


@kernel
def _fits(t, w, i, v):
    return w.free[v, 0] >= t.demand[i, 0] and w.free[v, 1] >= t.demand[i, 1]


@kernel
def _shift(t, w, i, u, v):
    """Move a replica; `_refresh` is left to the caller."""
    w.counts[i, u] -= 1
    w.counts[i, v] += 1
    for r in range(2):
        w.free[u, r] += t.demand[i, r]
        w.free[v, r] -= t.demand[i, r]


@kernel
def _change(t, w, i, u, v, now, linear):
    """Return what a move does to the latency; without parallel groups the potentials say it all."""
    return w.pot[i, v] - w.pot[i, u] if linear else _trial(t, w, i, u, v) - now


@kernel
def _is_linear(t):
    """Whether no service has two groups: then there is one path only."""
    return np.diff(t.group_first).max() <= 1


@kernel
def descend(t, w, home, archive, offering):
    """Make the best move until none makes requests faster; return the latency."""
    now, linear = total(t, w), _is_linear(t)
    while True:
        _potentials(t, w)
        least, best_i, best_u, best_v = -1e-6, -1, -1, -1
        for i in range(t.replicas.size):
            if w.weight[i] == 0.0:
                continue
            for u in range(t.user.size):
                if w.counts[i, u] == 0:
                    continue
                for v in range(t.user.size):
                    if v != u and w.pot[i, v] - w.pot[i, u] < least - _TINY and _fits(t, w, i, v):
                        archive.tries[0] += 1
                        change = _change(t, w, i, u, v, now, linear)
                        if change < least - _TINY:
                            least, best_i, best_u, best_v = change, i, u, v
        if best_i < 0:
            return total(t, w)
        _shift(t, w, best_i, best_u, best_v)
        _refresh(t, w, best_i)
        now = total(t, w)
        if offering:
            offer(t, w, home, archive, now)


@kernel
def block(t, w, i, zone_of, zone, score):
    """Move all replicas of a service to a zone, as far as there is room, each to the node of least score."""
    for u in range(t.user.size):
        while w.counts[i, u] > 0 and zone_of[u] != zone:
            best = -1
            for v in range(t.user.size):
                if zone_of[v] == zone and _fits(t, w, i, v) and (best < 0 or score[i, v] < score[i, best]):
                    best = v
            if best < 0:
                break
            _shift(t, w, i, u, best)
    _refresh(t, w, i)


# -- from deployments to plans ---------------------------------------------------------------------------------------


@kernel
def _one_move(t, now, target, free):
    """Return a move towards `target` that there is room for, the one that leaves most room, as (i, u, v); i is -1 if there is none."""
    found, room = (-1, -1, -1), -1
    for i in range(t.replicas.size):
        for v in range(t.user.size):
            if target[i, v] <= now[i, v] or free[v, 0] < t.demand[i, 0] or free[v, 1] < t.demand[i, 1]:
                continue
            for u in range(t.user.size):
                if now[i, u] > target[i, u] and (found[0] < 0 or free[v, 0] - t.demand[i, 0] > room):
                    found, room = (i, u, v), free[v, 0] - t.demand[i, 0]
    return found


@kernel
def _hop(t, now, target, free):
    """Return a move aside, to a node that is no target, of a replica that must leave; i is -1 if there is none."""
    for i in range(t.replicas.size):
        for u in range(t.user.size):
            if now[i, u] > target[i, u]:
                for v in range(t.user.size):
                    if v != u and free[v, 0] >= t.demand[i, 0] and free[v, 1] >= t.demand[i, 1]:
                        return i, u, v
    return -1, -1, -1


@kernel
def arrange(t, home, target, moves):
    """Write moves from one deployment to another, each with room when it is made; return their number, -1 where none is found."""
    now, free, hops, count = home.copy(), t.capacity.copy(), 0, 0
    for i in range(t.replicas.size):
        for u in range(t.user.size):
            free[u] -= now[i, u] * t.demand[i]
    while True:
        i, u, v = _one_move(t, now, target, free)
        if i < 0:
            if (now == target).all():
                return count
            i, u, v = _hop(t, now, target, free)
            hops += 1
            if i < 0 or hops > 4:
                return -1
        if count == moves.shape[0]:
            return -1
        moves[count, 0], moves[count, 1], moves[count, 2] = i, u, v
        count += 1
        now[i, u] -= 1
        now[i, v] += 1
        free[u] += t.demand[i]
        free[v] -= t.demand[i]


@kernel
def offer(t, w, home, archive, latency):
    """Keep the present deployment if it is the best of its number of moves and can be reached."""
    count = 0
    for i in range(t.replicas.size):
        for u in range(t.user.size):
            count += max(0, w.counts[i, u] - home[i, u])
    archive.tries[0] += 1
    if count >= archive.latency.size or archive.latency[: count + 1].min() <= latency + _TINY:
        return
    moves = np.empty((archive.moves.shape[1], 3), np.int32)
    found = arrange(t, home, w.counts, moves)
    if found >= 0 and archive.latency[: found + 1].min() > latency + _TINY:
        archive.latency[found] = latency
        archive.moves[found, :found] = moves[:found]


@kernel
def shorten(t, w, home, archive):
    """Take moves back one by one, always the one that is missed least, and offer every deployment on the way."""
    linear = _is_linear(t)
    while True:
        now = total(t, w)
        _potentials(t, w)
        least, best_i, best_u, best_v = np.inf, -1, -1, -1
        for i in range(t.replicas.size):
            for u in range(t.user.size):
                if w.counts[i, u] <= home[i, u]:
                    continue
                for v in range(t.user.size):
                    if w.counts[i, v] < home[i, v] and w.pot[i, v] - w.pot[i, u] < least - _TINY and _fits(t, w, i, v):
                        archive.tries[0] += 1
                        change = _change(t, w, i, u, v, now, linear)
                        if change < least - _TINY:
                            least, best_i, best_u, best_v = change, i, u, v
        if best_i < 0:
            return
        _shift(t, w, best_i, best_u, best_v)
        _refresh(t, w, best_i)
        offer(t, w, home, archive, total(t, w))


# -- searches --------------------------------------------------------------------------------------------------------


@kernel
def every_block(t, w, home, zone_of, score, archive, first, last, seen, ends):
    """Descend from the block vectors numbered `first` to `last`: every service stays, goes to zone 0 or to zone 1.

    `seen` and `ends`, int64 (3**S,), are for the fingerprints of where descents began and ended: what is met again is left alone.
    """
    for code in range(first, last):
        load(t, w, home)
        rest = code
        for k in range(t.order.size - 1, -1, -1):
            if rest % 3:
                block(t, w, t.order[k], zone_of, rest % 3 - 1, score)
            rest //= 3
        seen[code] = _fingerprint(w.counts)
        if (seen[:code] == seen[code]).any():
            continue
        latency = descend(t, w, home, archive, code == 0)
        offer(t, w, home, archive, latency)
        mark = _fingerprint(w.counts)
        if not (ends[:code] == mark).any():
            ends[code] = mark
            shorten(t, w, home, archive)


@kernel
def _fingerprint(counts):
    mark = 1469598103934665603
    for i in range(counts.shape[0]):
        for u in range(counts.shape[1]):
            mark = (mark ^ (counts[i, u] + 7)) * 1099511628211
    return mark


@kernel
def one_block(t, w, home, zone_of, score, archive, best):
    """Try to move one service, a caller with what it calls, or all that a service reaches, to a zone; keep the best in `best`.

    Returns
    -------
    float
        The latency of `best`, after a descent where a block was moved.
    """
    load(t, w, best)
    start = least = total(t, w)
    _potentials(t, w)
    critical = w.weight > 0
    base, found = best.copy(), best.copy()
    chosen = np.zeros(t.replicas.size, np.bool_)
    for i in t.order:
        if not critical[i]:
            continue
        for kind in range(3):
            _choose(t, i, kind, chosen)
            for zone in range(2):
                load(t, w, base)
                for k in range(t.order.size - 1, -1, -1):
                    if chosen[t.order[k]]:
                        block(t, w, t.order[k], zone_of, zone, score)
                archive.tries[0] += 1
                latency = total(t, w)
                if latency < least - 1e-6:
                    least = latency
                    found[:] = w.counts
    load(t, w, found)
    if least < start:
        least = descend(t, w, home, archive, False)
    best[:] = w.counts
    offer(t, w, home, archive, least)
    return least


@kernel
def _choose(t, i, kind, chosen):
    """Mark a service (0), with what it calls (1), with all that it reaches (2)."""
    chosen[:] = False
    chosen[i] = True
    for k in range(t.order.size - 1, -1, -1):
        a = t.order[k]
        if chosen[a] and (kind == 2 or (kind == 1 and a == i)):
            for e in range(t.member_first[t.group_first[a]], t.member_first[t.group_first[a + 1]]):
                chosen[t.member[e]] = True
