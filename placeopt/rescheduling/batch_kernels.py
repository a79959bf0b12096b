"""Compiled episodes of rescheduling: a move of one replica or idle, again and again, in many environments at once.

``r`` is `placeopt.rescheduling.batch_state.Rules`, ``s`` its `State`, ``e`` an environment, ``a`` its application throughout.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel

#: Rewards are given in this many ms.
_SPAN_MS = 100.0


@kernel
def _draw(s, e):
    """Return the next 64 random bits of an environment (splitmix64)."""
    s.random[e] += np.uint64(0x9E3779B97F4A7C15)
    x = s.random[e]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _below(s, e, n):
    return int((_draw(s, e) >> np.uint64(11)) * (1.0 / 9007199254740992.0) * n)


# -- latency ---------------------------------------------------------------------------------------------------------


@kernel
def _refresh(r, s, e, a, i):
    """Bring execution and calls of a service up to date."""
    nodes, gateway = r.user.shape[1], r.order[a, r.reached[a] - 1]
    total = 0.0
    for u in range(nodes):
        if s.counts[e, i, u]:
            total += s.counts[e, i, u] * (
                r.execution[a, i, u] + (r.user[a, u] if i == gateway else 0.0)
            )
    s.te[e, i] = total / s.replicas[e, i]
    for c in range(r.calls[a]):
        p, q = r.owner[a, c], r.member[a, c]
        if p == i or q == i:
            total = 0.0
            for u in range(nodes):
                if s.counts[e, p, u]:
                    for v in range(nodes):
                        total += s.counts[e, p, u] * s.counts[e, q, v] * r.delay[a, u, v]
            s.ds[e, c] = total / (s.replicas[e, p] * s.replicas[e, q])


@kernel
def _fold(order, group_first, member_first, member, te, ds, took):
    """Return the latency from executions and calls, equations (5) to (9)."""
    for k in range(order.size):
        i = order[k]
        longest = 0.0
        for g in range(group_first[i], group_first[i + 1]):
            group = 0.0
            for c in range(member_first[g], member_first[g + 1]):
                group += ds[c] + took[member[c]]
            longest = max(longest, group)
        took[i] = te[i] + longest
    return took[order[order.size - 1]]


@kernel
def _total(r, s, e, a):
    """Return the latency of an environment."""
    return _fold(
        r.order[a, : r.reached[a]],
        r.group_first[a],
        r.member_first[a],
        r.member[a],
        s.te[e],
        s.ds[e],
        s.took,
    )


@kernel
def _critical(r, s, e, a):
    """Write how often every service and call is on the critical path; `_total` comes before."""
    s.weight[:] = 0.0
    s.crit[:] = 0.0
    s.weight[r.order[a, r.reached[a] - 1]] = 1.0
    for k in range(r.reached[a] - 1, -1, -1):
        i = r.order[a, k]
        slowest, longest = -1, -1.0
        for g in range(r.group_first[a, i], r.group_first[a, i + 1]):
            group = 0.0
            for c in range(r.member_first[a, g], r.member_first[a, g + 1]):
                group += s.ds[e, c] + s.took[r.member[a, c]]
            if group > longest:
                slowest, longest = g, group
        if slowest >= 0 and s.weight[i] > 0.0:
            for c in range(r.member_first[a, slowest], r.member_first[a, slowest + 1]):
                s.weight[r.member[a, c]] += s.weight[i]
                s.crit[c] = s.weight[i]


@kernel
def _survey(r, s, e, a):
    """Write the mean latency of every call from and to every node, and from each node to the partners of each service."""
    nodes = r.user.shape[1]
    s.reach[:] = 0.0
    s.partners[:] = 0
    for c in range(r.calls[a]):
        p, q = r.owner[a, c], r.member[a, c]
        s.partners[p] += 1
        s.partners[q] += 1
        s.ahead[c] = 0.0
        s.back[c] = 0.0
        for x in range(nodes):
            there, here = s.counts[e, q, x] / s.replicas[e, q], s.counts[e, p, x] / s.replicas[e, p]
            for u in range(nodes if there + here > 0.0 else 0):
                s.ahead[c, u] += there * r.delay[a, u, x]
                s.back[c, u] += here * r.delay[a, x, u]
        s.reach[p] += s.ahead[c]
        s.reach[q] += s.back[c]


@kernel
def _changes(r, s, e, a, now):
    """Write which nodes have room for each service, and what a move of a replica does to the latency; `_survey` comes before."""
    services, nodes, calls = r.services[a], r.user.shape[1], r.calls[a]
    order, group_first, member_first = (
        r.order[a, : r.reached[a]],
        r.group_first[a],
        r.member_first[a],
    )
    member, owner, te, ds, took, saved = r.member[a], r.owner[a], s.te[e], s.ds[e], s.took, s.saved
    counts, replicas, room, change, ahead, back = (
        s.counts[e],
        s.replicas[e],
        s.room,
        s.change,
        s.ahead,
        s.back,
    )
    execution, user, free, demand = r.execution[a], r.user[a], s.free[e], r.demand[a]
    for i in range(services):
        kept, few, gateway = te[i], replicas[i], i == order[order.size - 1]
        for v in range(nodes):
            room[i, v] = free[v, 0] >= demand[i, 0] and free[v, 1] >= demand[i, 1]
        for u in range(nodes):
            for v in range(nodes if counts[i, u] else 0):
                if v == u or not room[i, v]:
                    continue
                te[i] = (
                    kept
                    + (execution[i, v] - execution[i, u] + (user[v] - user[u] if gateway else 0.0))
                    / few
                )
                for c in range(calls):
                    saved[c] = ds[c]
                    if owner[c] == i:
                        ds[c] += (ahead[c, v] - ahead[c, u]) / few
                    elif member[c] == i:
                        ds[c] += (back[c, v] - back[c, u]) / few
                change[i, u, v] = (
                    _fold(order, group_first, member_first, member, te, ds, took) - now
                )
                ds[:calls] = saved[:calls]
        te[i] = kept


@kernel
def _blocks(r, s, e, a, now):
    """Write what a move would bring if all of a service came to a node, or all on the critical path, shared among those far away."""
    services, nodes, calls, te, ds, saved = (
        r.services[a],
        r.user.shape[1],
        r.calls[a],
        s.te[e],
        s.ds[e],
        s.saved,
    )
    order, gateway = r.order[a, : r.reached[a]], r.order[a, r.reached[a] - 1]
    s.every[:] = 0.0
    for i in range(services):
        kept = te[i]
        for v in range(nodes):
            far = 0
            for u in range(nodes):
                far += s.counts[e, i, u] if 2 * r.delay[a, u, v] > r.most[a, 2] else 0
            s.every[v] += far if s.weight[i] > 0.0 else 0
            s.whole[i, v] = 0.0
            if far:
                te[i] = r.execution[a, i, v] + (r.user[a, v] if i == gateway else 0.0)
                for c in range(calls):
                    saved[c] = ds[c]
                    if r.owner[a, c] == i:
                        ds[c] = s.ahead[c, v]
                    elif r.member[a, c] == i:
                        ds[c] = s.back[c, v]
                after = _fold(
                    order, r.group_first[a], r.member_first[a], r.member[a], te, ds, s.took
                )
                s.whole[i, v] = ((now - after) / far - r.penalty) / _SPAN_MS
                ds[:calls] = saved[:calls]
        te[i] = kept
    for v in range(nodes):
        if s.every[v] > 0.0:
            s.every[v] = ((now - r.together[a, v]) / s.every[v] - r.penalty) / _SPAN_MS


# -- what is seen ----------------------------------------------------------------------------------------------------


@kernel
def _shares(r, s, e, a):
    """Write the free shares of nodes."""
    for u in range(r.user.shape[1]):
        for k in range(2):
            s.share[u, k] = s.free[e, u, k] / r.capacity[a, u, k] if r.capacity[a, u, k] else 0.0


@kernel
def _rows(r, s, e, a, observations, masks):
    """Describe the moves of every replica that have room."""
    nodes, place, room, share, change, reach = (
        r.user.shape[1],
        s.place[e],
        s.room,
        s.share,
        s.change,
        s.reach,
    )
    counts, execution, user, most, demand = (
        s.counts[e],
        r.execution[a],
        r.user[a],
        r.most[a],
        r.demand[a],
    )
    for k in range(place.size):
        u, i = place[k], k // r.slots
        if u < 0:
            continue
        gateway, few = 1.0 if i == r.order[a, r.reached[a] - 1] else 0.0, s.replicas[e, i]
        cpu, memory, weight = (
            demand[i, 0] / r.largest[a, 0],
            demand[i, 1] / r.largest[a, 1],
            min(1.0, s.weight[i]),
        )
        far = max(1, s.partners[i]) * most[2]
        for v in range(nodes):
            if v == u or not room[i, v]:
                continue
            x = k * nodes + v
            masks[x] = True
            observations[x, 0], observations[x, 1], observations[x, 2], observations[x, 3] = (
                share[v, 0],
                share[v, 1],
                share[u, 0],
                share[u, 1],
            )
            observations[x, 4], observations[x, 5] = cpu, memory
            observations[x, 6], observations[x, 7] = (
                execution[i, u] / most[0],
                execution[i, v] / most[0],
            )
            observations[x, 8], observations[x, 9], observations[x, 10] = (
                user[u] / most[1],
                user[v] / most[1],
                gateway,
            )
            observations[x, 11], observations[x, 12] = reach[i, u] / far, reach[i, v] / far
            observations[x, 13], observations[x, 14], observations[x, 15] = (
                counts[i, u] / few,
                counts[i, v] / few,
                weight,
            )
            observations[x, 16] = min(1.0, max(-1.0, (-change[i, u, v] - r.penalty) / _SPAN_MS))
            observations[x, 17], observations[x, 18] = (
                min(1.0, max(-1.0, s.whole[i, v])),
                min(1.0, max(-1.0, s.every[v])),
            )


@kernel
def _look(r, s, e, observations, masks):
    """Write what is legal in an environment, and what is known of it."""
    a = s.app[e]
    observations[:] = 0.0
    masks[:] = False
    now = _total(r, s, e, a)
    _critical(r, s, e, a)
    _survey(r, s, e, a)
    _changes(r, s, e, a, now)
    _blocks(r, s, e, a, now)
    _shares(r, s, e, a)
    _rows(r, s, e, a, observations, masks)
    masks[-1] = True
    observations[-1, 0] = min(1.0, now / (10 * _SPAN_MS))
    observations[-1, 1] = 1.0 - s.taken[e] / r.steps
    observations[-1, 19] = 1.0


# -- episodes --------------------------------------------------------------------------------------------------------


@kernel
def _empty(r, s, e, a, background):
    """Free all nodes but for what others use."""
    s.counts[e] = 0
    s.place[e] = -1
    for u in range(r.user.shape[1]):
        for k in range(2):
            used = (_draw(s, e) >> np.uint64(11)) * (1.0 / 9007199254740992.0) * background
            s.free[e, u, k] = r.capacity[a, u, k] - int(used * r.capacity[a, u, k])


@kernel
def _fits(r, s, e, a, i, v):
    return s.free[e, v, 0] >= r.demand[a, i, 0] and s.free[e, v, 1] >= r.demand[a, i, 1]


@kernel
def _put(r, s, e, a, i, k, v):
    s.place[e, i * r.slots + k] = v
    s.counts[e, i, v] += 1
    for x in range(2):
        s.free[e, v, x] -= r.demand[a, i, x]


@kernel
def _scatter(r, s, e, a):
    """Put replicas of every service on random nodes with room, large services first; return whether there was room."""
    nodes = r.user.shape[1]
    for i in range(r.services[a]):
        s.replicas[e, i] = (
            r.fewest + _below(s, e, r.slots - r.fewest + 1) if r.fewest else r.home[a, i].sum()
        )
    for z in range(r.services[a]):
        i = r.size[a, z]
        for k in range(s.replicas[e, i]):
            room = 0
            for v in range(nodes):
                room += _fits(r, s, e, a, i, v)
            if room == 0:
                return False
            chosen = _below(s, e, room)
            for v in range(nodes):
                if _fits(r, s, e, a, i, v):
                    if chosen == 0:
                        _put(r, s, e, a, i, k, v)
                        break
                    chosen -= 1
    return True


@kernel
def _at_home(r, s, e, a):
    _empty(r, s, e, a, 0.0)
    for i in range(r.services[a]):
        s.replicas[e, i] = r.home[a, i].sum()
        k = 0
        for v in range(r.user.shape[1]):
            for _ in range(r.home[a, i, v]):
                _put(r, s, e, a, i, k, v)
                k += 1


@kernel
def reset(r, s, which, observations, masks):
    """Begin episodes; ten random starts that have no room give way to the application's own."""
    for e in range(s.app.size):
        if not which[e]:
            continue
        a = _below(s, e, r.services.size)
        s.app[e] = a
        found = False
        for attempt in range(0 if r.given else 10):
            _empty(r, s, e, a, r.background if attempt < 5 else 0.0)
            if _scatter(r, s, e, a):
                found = True
                break
        if not found:
            _at_home(r, s, e, a)
        for i in range(r.services[a]):
            _refresh(r, s, e, a, i)
        s.latency[e] = _total(r, s, e, a)
        s.taken[e] = 0
        s.ended[e] = False
        _look(r, s, e, observations[e], masks[e])


@kernel
def step(r, s, actions, observations, masks, rewards, ended):
    """Take an action in every environment; those that are over stay as they are and are paid nothing."""
    nodes = r.user.shape[1]
    for e in range(s.app.size):
        rewards[e, 0] = 0.0
        action = actions[e]
        if not s.ended[e]:
            if action < 0 or action >= masks.shape[1] or not masks[e, action]:
                rewards[e, 0] = r.invalid
                s.ended[e] = True
            elif action == masks.shape[1] - 1:
                s.ended[e] = True
            else:
                rewards[e, 0] = _move(r, s, e, s.app[e], action // nodes, action % nodes)
                s.ended[e] = s.taken[e] == r.steps
                _look(r, s, e, observations[e], masks[e])
        ended[e] = s.ended[e]


@kernel
def _move(r, s, e, a, k, v):
    """Move a replica, the new copy first; return the drop of the latency less what a move costs."""
    i, u = k // r.slots, s.place[e, k]
    s.place[e, k] = v
    s.counts[e, i, u] -= 1
    s.counts[e, i, v] += 1
    for x in range(2):
        s.free[e, u, x] += r.demand[a, i, x]
        s.free[e, v, x] -= r.demand[a, i, x]
    n = s.taken[e]
    s.made[e, n, 0], s.made[e, n, 1], s.made[e, n, 2] = i, u, v
    s.taken[e] = n + 1
    _refresh(r, s, e, a, i)
    before = s.latency[e, 1]
    s.latency[e, 1] = _total(r, s, e, a)
    return before - s.latency[e, 1] - r.penalty
