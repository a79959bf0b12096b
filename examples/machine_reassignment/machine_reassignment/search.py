"""Shifts, swaps and exchanges in simulated annealing: one compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from machine_reassignment.kernels import (
    at_home,
    change_of,
    dependencies_kept,
    fits,
    move,
    move_cost,
    row_costs,
    rules_kept,
    spread_kept,
)
from placeopt.plugins import below, kernel, most_worse, uniform

#: Ranks by size within which processes count as alike.
NEAR = 32
#: Processes that leave a machine in an exchange, at most.
MOST = 5


class Fixed(NamedTuple):
    """What a search does not change, and scratch."""

    weights: np.ndarray  # (3,) of load, balance and moves
    order: np.ndarray  # (P,) processes by size
    rank: np.ndarray  # (P,) the place of each process in that order
    places: np.ndarray  # machines that each process could be on, one list after another
    places_at: np.ndarray  # (P + 1,) where the list of a process begins; an empty one is all
    bias: np.ndarray  # (P,) what it counts, in temperatures, that a process is away from home
    alike: np.ndarray  # (P,) processes by service
    alike_at: np.ndarray  # (S + 1,) where those of a service begin
    odds: np.ndarray  # (5,), as in annealing.py
    change: np.ndarray  # (3,) scratch
    trail: np.ndarray  # (2, MOST) scratch: processes that leave a machine, and where they go
    stops: np.ndarray  # (MOST + 3,) scratch: machines of an exchange; the last is how many
    rooms: np.ndarray  # (MOST + 2, 2, R) scratch: what is used and held there


@kernel
def cost(a, s, weights):
    """Return the weighted sum of load, balance and moves."""
    moves = s.costs[2] + s.costs[3] * a.service_weight[0]
    return weights[0] * s.costs[0] + weights[1] * s.costs[1] + weights[2] * moves


@kernel
def _accepted(f, away, temperature, rng):
    """Return whether annealing takes ``f.change``, which takes `away` from home."""
    change = f.change
    worse = f.weights[0] * change[0] + f.weights[1] * change[1] + f.weights[2] * change[2]
    worse += away * temperature
    return worse <= 0 or worse <= most_worse(temperature, rng)


@kernel
def _try_move(a, s, f, p, m, q, temperature, rng):
    """Move p to m, and q, which is on m, to p's machine; -1 for none.

    Return whether the rules and the temperature let them.
    """
    one, k, other = a.service[p], s.machine[p], np.int64(-1)
    if m == k:
        return False
    if q >= 0 and a.service[q] != one:
        other = a.service[q]
        if s.there[other, k]:
            return False
    # Where a service is does not change if two of its processes change places.
    alike = q >= 0 and other < 0
    if (not alike and s.there[one, m]) or not fits(a, s, p, m, q):
        return False
    if q >= 0 and not fits(a, s, q, k, p):
        return False
    change_of(a, s, p, m, q, f.change)
    away = at_home(a, p, k, m) * f.bias[p]
    if q >= 0:
        away += at_home(a, q, m, k) * f.bias[q]
    if not _accepted(f, away, temperature, rng):
        return False
    kept = alike or spread_kept(a, s, one, k, m)
    kept = kept and (other < 0 or spread_kept(a, s, other, m, k))
    kept = kept and (alike or dependencies_kept(a, s, one, k, m, other))
    if kept:
        move(a, s, p, m)
        if q >= 0:
            move(a, s, q, k)
    return kept


@kernel
def _drawn(a, f, p, rng):
    """Return a machine that process p could be on."""
    first, count = f.places_at[p], f.places_at[p + 1] - f.places_at[p]
    return np.int64(f.places[first + below(rng, count)]) if count else below(rng, len(a.location))


@kernel
def _add(a, room, m, p, sign):
    """Add process p to what is used and held on machine m, `room` (2, R), or take it away."""
    for r in range(a.capacity.shape[1]):
        need = sign * a.requirement[p, r]
        room[0, r] += need
        if not (a.transient[r] and a.home[p] == m):
            room[1, r] += need


@kernel
def _has_room(a, room, m, p):
    """Return whether machine m has room for what it holds, `room` (2, R), and process p; or -1."""
    for r in range(a.capacity.shape[1]):
        arrives = p >= 0 and not (a.transient[r] and a.home[p] == m)
        if room[1, r] + arrives * a.requirement[p, r] > a.capacity[m, r]:
            return False
    return True


@kernel
def _relieves(a, room, m, q):
    """Return whether machine m, in want of room, would want less without process q."""
    for r in range(a.capacity.shape[1]):
        stays = a.transient[r] and a.home[q] == m
        if room[1, r] > a.capacity[m, r] and a.requirement[q, r] > 0 and not stays:
            return True
    return False


@kernel
def _open(s, f, i, m):
    """Let machine m be the i-th place of an exchange."""
    f.stops[i] = m
    for r in range(s.used.shape[1]):
        f.rooms[i, 0, r], f.rooms[i, 1, r] = s.used[m, r], s.held[m, r]


@kernel
def _leaves(a, s, f, p, q, gone, rng):
    """Let q leave the first place of an exchange for p's, the second, or another one.

    Return how many have left; `gone` had before. A process that is away may go home, one that is at
    home to a machine drawn.
    """
    count, service = f.stops[MOST + 2], a.service[q]
    last = a.home[q] if a.home[q] != f.stops[0] else _drawn(a, f, q, rng)
    for i in range(count):
        if f.stops[i] == last:
            last = -1
    if last >= 0:
        _open(s, f, count, last)
    for i in range(1, count + (last >= 0)):
        others = s.there[service, f.stops[i]] - (i == 1 and service == a.service[p])
        if others == 0 and _has_room(a, f.rooms[i], f.stops[i], q):
            _add(a, f.rooms[i], f.stops[i], q, 1)
            _add(a, f.rooms[0], f.stops[0], q, -1)
            f.trail[0, gone], f.trail[1, gone] = q, f.stops[i]
            f.stops[MOST + 2] += i == count
            return gone + 1
    return gone


@kernel
def _counterpart(a, s, p, m):
    """Return the process of p's service on machine m; -1 if there is none."""
    for i in range(s.count[m] if s.there[a.service[p], m] else 0):
        if a.service[s.members[m, i]] == a.service[p]:
            return np.int64(s.members[m, i])
    return np.int64(-1)


@kernel
def _makes_room(a, s, f, p, m, rng):
    """Return how many processes leave machine m for p, to the places of the exchange; or -1."""
    like, f.stops[MOST + 2] = _counterpart(a, s, p, m), 2
    _open(s, f, 0, m)
    _open(s, f, 1, s.machine[p])
    _add(a, f.rooms[0], m, p, 1)
    _add(a, f.rooms[1], s.machine[p], p, -1)
    count, start = s.count[m], below(rng, max(1, s.count[m]))
    gone = _leaves(a, s, f, p, like, 0, rng) if like >= 0 else 0
    if like >= 0 and gone == 0:
        return -1
    for i in range(count):
        if _has_room(a, f.rooms[0], m, -1):
            return gone
        if gone == MOST:
            return -1
        q = np.int64(s.members[m, (start + i) % count])
        if q != like and _relieves(a, f.rooms[0], m, q):
            gone = _leaves(a, s, f, p, q, gone, rng)
    return gone if _has_room(a, f.rooms[0], m, -1) else -1


@kernel
def _worse_by(a, s, f, p, m, gone, temperature):
    """Return by how much an exchange is worse, but for the most moves of a service."""
    k = s.machine[p]
    load, balance = 0, 0
    for i in range(f.stops[MOST + 2]):
        one, other = row_costs(a, f.stops[i], f.rooms[i, 0])
        load += one - s.load[f.stops[i]]
        balance += other - s.balance[f.stops[i]]
    moves, away = move_cost(a, p, m) - move_cost(a, p, k), at_home(a, p, k, m) * f.bias[p]
    for i in range(gone):
        q, to = f.trail[0, i], f.trail[1, i]
        moves += move_cost(a, q, to) - move_cost(a, q, m)
        away += at_home(a, q, m, to) * f.bias[q]
    return f.weights[0] * load + f.weights[1] * balance + f.weights[2] * moves + away * temperature


@kernel
def _try_exchange(a, s, f, p, m, temperature, rng):
    """Move p to m, and what leaves no room for it elsewhere; return whether."""
    k = s.machine[p]
    gone = _makes_room(a, s, f, p, m, rng) if m != k else -1
    if gone < 0:
        return False
    worse, limit = _worse_by(a, s, f, p, m, gone, temperature), most_worse(temperature, rng)
    most, each = s.costs[3], f.weights[2] * a.service_weight[0]
    if worse - each * (gone + 1) > limit:
        return False
    move(a, s, p, m)
    for i in range(gone):
        move(a, s, f.trail[0, i], f.trail[1, i])
    kept = worse + each * (s.costs[3] - most) <= limit and rules_kept(a, s, p, k)
    for i in range(gone):
        kept = kept and rules_kept(a, s, f.trail[0, i], m)
    if not kept:
        for i in range(gone):
            move(a, s, f.trail[0, i], m)
        move(a, s, p, k)
    return kept


@kernel
def _exchange(a, s, f, temperature, rng):
    """Try to make room for a process of an overloaded machine, or for a large one."""
    p, q = below(rng, len(a.home)), below(rng, len(a.home))
    if uniform(rng) < 0.5:
        k = below(rng, len(a.location))
        for _ in range(2):
            i = below(rng, len(a.location))
            if s.load[i] > s.load[k]:
                k = i
        if s.count[k] == 0:
            return False
        p, q = s.members[k, below(rng, s.count[k])], s.members[k, below(rng, s.count[k])]
    if f.rank[q] > f.rank[p]:
        p = q
    m = a.home[p] if uniform(rng) < f.odds[3] else _drawn(a, f, p, rng)
    return _try_exchange(a, s, f, p, m, temperature, rng)


@kernel
def anneal(a, s, f, temperature, steps, rng):
    """Try `steps` moves at a temperature; return how many were taken."""
    processes, taken = len(a.home), 0
    for _ in range(steps):
        p, q, drawn = below(rng, processes), np.int64(-1), uniform(rng)
        if drawn < f.odds[0]:
            m = a.home[p] if uniform(rng) < f.odds[3] else _drawn(a, f, p, rng)
            taken += _try_move(a, s, f, p, m, q, temperature, rng)
        elif drawn < f.odds[1]:
            k = _drawn(a, f, p, rng)
            if s.count[k] > 0:
                q = np.int64(s.members[k, below(rng, s.count[k])])
        elif drawn < f.odds[2]:
            far = 1 + below(rng, NEAR)
            near = f.rank[p] + (far if rng[0] & 1 else -far)
            q = f.order[min(processes - 1, max(0, near))]
        elif drawn < f.odds[4]:
            first, end = f.alike_at[a.service[p]], f.alike_at[a.service[p] + 1]
            q = f.alike[first + below(rng, end - first)]
        else:
            taken += _exchange(a, s, f, temperature, rng)
        if q >= 0:
            taken += _try_move(a, s, f, p, s.machine[q], q, temperature, rng)
    return taken
