"""Compiled search for rescheduling: deployments as replicas per (service, node), moves with room, the best plan of every length.

``t`` is `placeopt.rescheduling.instance.Arrays`, ``w`` is `Work`, throughout. A move of one replica changes the critical path by a
difference of two potentials; what the rest of the graph adds can only make it worse, so that potentials bound every move from below.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel

#: Differences below this many ms are rounding; a move must gain more than the second.
_TINY, _GAIN = 1e-9, 1e-6


@kernel
def _refresh(t, w, i):
    """Bring execution and calls of service `i` up to date with its counts."""
    counts, delay, replicas, n = w.counts, t.delay, t.replicas, t.user.size
    total, gateway = 0.0, i == t.order[-1]
    for u in range(n):
        if counts[i, u]:
            total += counts[i, u] * (t.execution[i, u] + (t.user[u] if gateway else 0.0))
    w.te[i] = total / replicas[i]
    for k in range(w.touch_first[i], w.touch_first[i + 1]):
        e = w.touch[k]
        a, b = w.owner[e], t.member[e]
        total = 0.0
        for u in range(n):
            if counts[a, u]:
                for v in range(n):
                    total += counts[a, u] * counts[b, v] * delay[u, v]
        w.ds[e] = total / (replicas[a] * replicas[b])


@kernel
def load(t, w, counts):
    """Take up a deployment; what does not change is not computed again. In a new `Work` all is marked as changed."""
    for i in range(t.replicas.size):
        for u in range(t.user.size):
            if w.counts[i, u] != counts[i, u]:
                for r in range(2):
                    w.free[u, r] += (w.counts[i, u] - counts[i, u]) * t.demand[i, r]
                w.counts[i, u] = counts[i, u]
                w.dirty[i] = True
    for i in range(t.replicas.size):
        if w.dirty[i]:
            w.dirty[i] = False
            _refresh(t, w, i)


@kernel
def _slowest(group_first, member_first, member, ds, took, i):
    """Return the slowest group of a service, -1 if it has none, and how long it takes."""
    slowest, longest = -1, 0.0
    for g in range(group_first[i], group_first[i + 1]):
        group = 0.0
        for e in range(member_first[g], member_first[g + 1]):
            group += ds[e] + took[member[e]]
        if slowest < 0 or group > longest:
            slowest, longest = g, group
    return slowest, longest


@kernel
def total(t, w):
    """Return the latency from calls and executions: (5) to (9)."""
    group_first, member_first, member, ds, took, te = (
        t.group_first,
        t.member_first,
        t.member,
        w.ds,
        w.took,
        w.te,
    )
    for i in t.order:
        took[i] = te[i] + _slowest(group_first, member_first, member, ds, took, i)[1]
    return took[t.order[-1]]


@kernel
def _potentials(t, w):
    """Find the critical path, and what a replica of each service adds to it on every node; `total` comes before."""
    weight, crit, pot, n = w.weight, w.crit, w.pot, t.user.size
    weight[:] = 0.0
    crit[:] = 0.0
    gateway = t.order[-1]
    weight[gateway] = 1.0
    for k in range(t.order.size - 1, -1, -1):
        i = t.order[k]
        if weight[i] > 0.0:
            slowest = _slowest(t.group_first, t.member_first, t.member, w.ds, w.took, i)[0]
            if slowest >= 0:
                for e in range(t.member_first[slowest], t.member_first[slowest + 1]):
                    weight[t.member[e]] += weight[i]
                    crit[e] = weight[i]
    for i in range(t.replicas.size):
        for u in range(n):
            pot[i, u] = (
                weight[i]
                * (t.execution[i, u] + (t.user[u] if i == gateway else 0.0))
                / t.replicas[i]
            )
    for e in range(t.member.size):
        if crit[e] > 0.0:
            a, b = w.owner[e], t.member[e]
            share = crit[e] / (t.replicas[a] * t.replicas[b])
            for u in range(n):
                here, there = share * w.counts[a, u], share * w.counts[b, u]
                if here > 0.0:
                    for v in range(n):
                        pot[b, v] += here * t.delay[u, v]
                if there > 0.0:
                    for v in range(n):
                        pot[a, v] += there * t.delay[v, u]


@kernel
def _trial(t, w, i, u, v):
    """Return the latency if a replica of `i` went from `u` to `v`; nothing changes. `total` comes before."""
    te, ds, took, member, owner, dirty = w.te[i], w.ds, w.took, t.member, w.owner, w.dirty
    step = (
        t.execution[i, v] - t.execution[i, u] + (t.user[v] - t.user[u] if i == t.order[-1] else 0.0)
    )
    w.te[i] += step / t.replicas[i]
    for k in range(w.touch_first[i], w.touch_first[i + 1]):
        e = w.touch[k]
        a, b, change = owner[e], member[e], 0.0
        for x in range(t.user.size):
            if a == i:
                change += w.counts[b, x] * (t.delay[v, x] - t.delay[u, x])
            else:
                change += w.counts[a, x] * (t.delay[x, v] - t.delay[x, u])
        w.saved[e] = ds[e]
        ds[e] += change / (t.replicas[a] * t.replicas[b])
        dirty[a] = True
    dirty[i] = True
    w.kept[:] = took
    for j in t.order:  # callees first: what changed is passed on to the callers
        if dirty[j]:
            dirty[j] = False
            took[j] = w.te[j] + _slowest(t.group_first, t.member_first, member, ds, took, j)[1]
            if took[j] != w.kept[j]:
                for k in range(w.touch_first[j], w.touch_first[j + 1]):
                    if member[w.touch[k]] == j:
                        dirty[owner[w.touch[k]]] = True
    value = took[t.order[-1]]
    took[:] = w.kept
    w.te[i] = te
    for k in range(w.touch_first[i], w.touch_first[i + 1]):
        ds[w.touch[k]] = w.saved[w.touch[k]]
    dirty[:] = False
    return value


@kernel
def _shift(t, w, i, u, v):
    """Move a replica; `_refresh` is left to the caller."""
    w.counts[i, u] -= 1
    w.counts[i, v] += 1
    for r in range(2):
        w.free[u, r] += t.demand[i, r]
        w.free[v, r] -= t.demand[i, r]


@kernel
def move(t, w, i, u, v):
    """Move a replica; return the latency."""
    _shift(t, w, i, u, v)
    _refresh(t, w, i)
    return total(t, w)


@kernel
def _best(t, w, home, archive, now, most, back):
    """Return the move with room that changes the latency least, if by less than `most`: the change, service, from, to (-1: none).

    Moves that cannot, as the potentials have it, are not tried; with `back`, moves only undo what differs from `home`.
    """
    _potentials(t, w)
    counts, free, demand, pot, n, services = (
        w.counts,
        w.free,
        t.demand,
        w.pot,
        t.user.size,
        t.replicas.size,
    )
    least, best = most, (-1, -1, -1)
    for sweep in range(
        1 if w.linear else 2
    ):  # the second begins with the service of the best bound: then few others are tried
        begin = max(0, best[0])
        least, best = most, (-1, -1, -1)
        for k in range(services):
            i = begin + k if begin + k < services else begin + k - services
            for u in range(n if w.weight[i] > 0.0 or back else 0):
                if counts[i, u] == 0 or (back and counts[i, u] <= home[i, u]):
                    continue
                for v in range(n):
                    change = pot[i, v] - pot[i, u]
                    if change >= least - _TINY or v == u or (back and counts[i, v] >= home[i, v]):
                        continue
                    if free[v, 0] < demand[i, 0] or free[v, 1] < demand[i, 1]:
                        continue
                    archive.tries[0] += 1
                    if sweep == 1:
                        change = _trial(t, w, i, u, v) - now
                    if change < least - _TINY:
                        least, best = change, (i, u, v)
        if best[0] < 0:
            break
    return least, best[0], best[1], best[2]


@kernel
def descend(t, w, home, archive, offering, back):
    """Make the best move until none makes requests faster; return the latency.

    With `back`, take moves back one by one, always the one that is missed least. Deployments on the way are offered if wanted, the
    last always.
    """
    now = total(t, w)
    while True:
        _, i, u, v = _best(t, w, home, archive, now, np.inf if back else -_GAIN, back)
        if i >= 0:
            now = move(t, w, i, u, v)
        if offering or i < 0:
            offer(t, w, home, archive, now)
        if i < 0:
            return now


@kernel
def block(t, w, i, zone_of, zone, score):
    """Move all replicas of a service to a zone, as far as there is room, each to the node of least score."""
    for u in range(t.user.size):
        while w.counts[i, u] > 0 and zone_of[u] != zone:
            best = -1
            for v in range(t.user.size):
                fits = w.free[v, 0] >= t.demand[i, 0] and w.free[v, 1] >= t.demand[i, 1]
                if zone_of[v] == zone and fits and (best < 0 or score[i, v] < score[i, best]):
                    best = v
            if best < 0:
                break
            _shift(t, w, i, u, best)
    _refresh(t, w, i)


# -- from deployments to plans ---------------------------------------------------------------------------------------


@kernel
def arrange(t, home, target, moves):
    """Write moves from one deployment to another, each with room when it is made; return their number, -1 where none is found.

    Of the moves that there is room for the one is made that leaves most cpu; where there is none, a replica that must leave steps aside.
    """
    free, pods, services, nodes = t.capacity.copy(), t.replicas.sum(), t.replicas.size, t.user.size
    leave, come, owner = (
        np.empty(pods, np.int64),
        np.empty(pods, np.int64),
        np.empty(pods, np.int64),
    )
    left, pending, hops, count = np.zeros(services, np.int64), 0, 0, 0
    for i in range(services):
        left[i], gone = pending, pending
        for u in range(nodes):
            for r in range(2):
                free[u, r] -= home[i, u] * t.demand[i, r]
            for _ in range(home[i, u] - target[i, u]):
                leave[gone] = u
                gone += 1
            for _ in range(target[i, u] - home[i, u]):
                come[pending], owner[pending] = u, i
                pending += 1
    end, done = pending, np.zeros(max(1, pending), np.bool_)
    while pending:
        k = _roomiest(t.demand, free, come, owner, done, end)
        i = owner[k] if k >= 0 else -1
        if k >= 0:
            u, v = leave[left[i]], come[k]
            left[i] += 1
            done[k] = True
            pending -= 1
        else:
            hops += 1
            i, u, v = (
                _aside(t.demand, free, leave, left, owner, done, end) if hops <= 4 else (-1, -1, -1)
            )
        if i < 0 or count == moves.shape[0]:
            return -1
        moves[count, 0], moves[count, 1], moves[count, 2] = i, u, v
        count += 1
        for r in range(2):
            free[u, r] += t.demand[i, r]
            free[v, r] -= t.demand[i, r]
    return count


@kernel
def _roomiest(demand, free, come, owner, done, end):
    """Return the pending move with room that leaves most cpu on its node, -1 if there is none."""
    found, room = -1, -1
    for k in range(end):
        i, v = owner[k], come[k]
        if not done[k] and free[v, 0] - demand[i, 0] > room and free[v, 1] >= demand[i, 1]:
            found, room = k, free[v, 0] - demand[i, 0]
    return found


@kernel
def _aside(demand, free, leave, left, owner, done, end):
    """Take a replica that must leave to any node with room, from which it still has to leave; i is -1 if there is none."""
    for k in range(end):
        i = owner[k]
        if not done[k]:
            u = leave[left[i]]
            for v in range(free.shape[0]):
                if v != u and free[v, 0] >= demand[i, 0] and free[v, 1] >= demand[i, 1]:
                    leave[left[i]] = v
                    return i, u, v
    return -1, -1, -1


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
        for back in (False, True):
            if back:
                mark = _fingerprint(w.counts)
                if (ends[:code] == mark).any():
                    break
                ends[code] = mark
            descend(t, w, home, archive, back or code == 0, back)


@kernel
def _fingerprint(counts):
    mark = 1469598103934665603
    for i in range(counts.shape[0]):
        for u in range(counts.shape[1]):
            mark = (mark ^ (counts[i, u] + 7)) * 1099511628211
    return mark


@kernel
def couples(t, w, home, archive, k, triples, back):
    """Try every move from the archived plan of `k` moves, or with `back` every move that undoes one, each with the best that follows.

    With `triples`, every two moves and the best that follows.
    """
    counts, n = home.copy(), t.user.size
    for m in range(k):
        i, u, v = archive.moves[k, m]
        counts[i, u] -= 1
        counts[i, v] += 1
    load(t, w, counts)
    for cell in range(-1, home.size if triples else 0):
        i, u = max(0, cell) // n, max(0, cell) % n
        for v in range(1 if cell < 0 else n if w.counts[i, u] else 0):
            if cell >= 0:
                if v == u or w.free[v, 0] < t.demand[i, 0] or w.free[v, 1] < t.demand[i, 1]:
                    continue
                _shift(t, w, i, u, v)
                _refresh(t, w, i)
            _couple(t, w, home, archive, back, max(0, cell))
            if cell >= 0:
                _shift(t, w, i, v, u)
                _refresh(t, w, i)


@kernel
def _couple(t, w, home, archive, back, first):
    n = t.user.size
    for cell in range(first, home.size):
        i, u = cell // n, cell % n
        if w.counts[i, u] == 0 or (back and w.counts[i, u] <= home[i, u]):
            continue
        for v in range(n):
            if (
                v == u
                or (back and w.counts[i, v] >= home[i, v])
                or w.free[v, 0] < t.demand[i, 0]
                or w.free[v, 1] < t.demand[i, 1]
            ):
                continue
            now = move(t, w, i, u, v)
            change, j, x, y = _best(t, w, home, archive, now, np.inf, False)
            if j >= 0:
                _shift(t, w, j, x, y)
                offer(t, w, home, archive, now + change)
                _shift(t, w, j, y, x)
            _shift(t, w, i, v, u)
            _refresh(t, w, i)
