"""Shifts, swaps, chains and rearrangements in simulated annealing: one compiled loop."""

from __future__ import annotations

import math

from machine_reassignment.kernels import (
    at_home,
    dependencies_kept,
    fits,
    move,
    shift_change,
    shift_kept,
    spread_kept,
    swap_change,
)
from placeopt.core.kernels.annealing import most_worse
from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import below, uniform

#: Ranks by size within which processes count as alike.
NEAR = 32
#: Processes that leave a machine in a rearrangement, at most, and machines that each is tried on.
LEAVE, PLACES = 20, 24


@kernel
def cost(a, s, weights):
    """Return the weighted sum of load, balance and moves."""
    moves = s.costs[2] + s.costs[3] * a.service_weight[0]
    return weights[0] * s.costs[0] + weights[1] * s.costs[1] + weights[2] * moves


@kernel
def _accepted(change, away, weights, temperature, rng):
    """Return whether annealing takes a change (3,) that takes `away` from home."""
    worse = weights[0] * change[0] + weights[1] * change[1] + weights[2] * change[2]
    worse += away * temperature
    return worse <= 0 or worse <= most_worse(temperature, rng)


@kernel
def _try_shift(a, s, p, m, bias, weights, temperature, rng, change):
    """Move p to m if the rules and the temperature let it; return whether."""
    service, before = a.service[p], s.machine[p]
    if s.there[service, m] or not fits(a, s, p, m, -1):
        return False
    shift_change(a, s, p, m, change)
    away = at_home(a, p, before, m) * bias[p]
    if not _accepted(change, away, weights, temperature, rng):
        return False
    if not spread_kept(a, s, service, before, m):
        return False
    if not dependencies_kept(a, s, service, before, m, -1):
        return False
    move(a, s, p, m)
    return True


@kernel
def _try_swap(a, s, p, q, bias, weights, temperature, rng, change):
    """Let p and q change places if the rules and the temperature let them; return whether."""
    one, other, m, k = a.service[p], a.service[q], s.machine[p], s.machine[q]
    if m == k or one == other or s.there[one, k] or s.there[other, m]:
        return False
    if not (fits(a, s, p, k, q) and fits(a, s, q, m, p)):
        return False
    swap_change(a, s, p, q, change)
    away = at_home(a, p, m, k) * bias[p] + at_home(a, q, k, m) * bias[q]
    if not _accepted(change, away, weights, temperature, rng):
        return False
    if not (spread_kept(a, s, one, m, k) and spread_kept(a, s, other, k, m)):
        return False
    if not dependencies_kept(a, s, one, m, k, other):
        return False
    move(a, s, p, k)
    move(a, s, q, m)
    return True


@kernel
def _try_chain(a, s, p, q, m, bias, weights, temperature, rng, change):
    """Move q to m, then p to where q was, if the rules and the temperature let them."""
    k, before = s.machine[q], s.machine[p]
    if before == k or m in (before, k) or not fits(a, s, p, k, q):
        return False
    if a.service[p] != a.service[q] and s.there[a.service[p], k]:
        return False
    if not shift_kept(a, s, q, m):
        return False
    old = cost(a, s, weights)
    move(a, s, q, m)
    if shift_kept(a, s, p, k):
        move(a, s, p, k)
        away = at_home(a, p, before, k) * bias[p] + at_home(a, q, k, m) * bias[q]
        worse = cost(a, s, weights) - old + away * temperature
        if worse <= 0 or worse <= most_worse(temperature, rng):
            return True
        move(a, s, p, before)
    move(a, s, q, k)
    return False


@kernel
def _overload(a, s, m):
    """Return by how much machine m is above its safety in the worst resource, and that resource."""
    worst, resource = 0.0, 0
    for r in range(a.capacity.shape[1]):
        over = (s.used[m, r] - a.safety[m, r]) / max(1, a.capacity[m, r])
        if over > worst:
            worst, resource = over, r
    return worst, resource


@kernel
def _best_place(a, s, q, empty, weights, rng, change):
    """Return where process q costs least, `empty` or another machine that is tried; -1 for none."""
    best, least = -1, math.inf
    for k in range(PLACES):
        m = empty
        if k > 0:
            m = a.home[q] if k == 1 else below(rng, len(a.location))
        if m != s.machine[q] and shift_kept(a, s, q, m):
            shift_change(a, s, q, m, change)
            worse = weights[0] * change[0] + weights[1] * change[1] + weights[2] * change[2]
            if worse < least:
                best, least = m, worse
    return best


@kernel
def _leaves(a, s, m, stays, resource, rng):
    """Return the process of machine m, other than `stays`, that is to leave; -1 for none.

    It is the one with most of a resource of three that are drawn.
    """
    chosen = -1
    for _ in range(3):
        q = s.members[m, below(rng, s.count[m])]
        if q != stays and (
            chosen < 0 or a.requirement[q, resource] > a.requirement[chosen, resource]
        ):
            chosen = q
    return chosen


@kernel
def _try_rearrangement(a, s, p, m, bias, weights, temperature, rng, change, trail):
    """Move process p to machine m, and what no longer fits there to others; return whether.

    All of it is undone where a process finds no place or annealing rejects the sum. `trail`
    (2, `LEAVE`) is scratch: processes that left m, and where they went.
    """
    service, before = a.service[p], s.machine[p]
    if m == before or s.there[service, m]:
        return False
    if not spread_kept(a, s, service, before, m):
        return False
    if not dependencies_kept(a, s, service, before, m, -1):
        return False
    old, gone = cost(a, s, weights), 0
    away = at_home(a, p, before, m) * bias[p]
    move(a, s, p, m)
    over, resource = _overload(a, s, m)
    while over > 0 and gone < LEAVE:
        q = _leaves(a, s, m, p, resource, rng)
        place = _best_place(a, s, q, before, weights, rng, change) if q >= 0 else -1
        if place < 0:
            break
        away += at_home(a, q, m, place) * bias[q]
        move(a, s, q, place)
        trail[0, gone], trail[1, gone] = q, place
        gone += 1
        over, resource = _overload(a, s, m)
    kept = True
    for r in range(a.capacity.shape[1]):
        kept = kept and s.held[m, r] <= a.capacity[m, r]
    worse = cost(a, s, weights) - old + away * temperature
    if kept and (worse <= 0 or worse <= most_worse(temperature, rng)):
        return True
    while gone > 0:
        gone -= 1
        move(a, s, trail[0, gone], m)
    move(a, s, p, before)
    return False


@kernel
def _rearrange(a, s, bias, weights, temperature, rng, change, trail):
    """Try to give the largest process of an overloaded machine another one; return whether."""
    for _ in range(8):
        k = below(rng, len(a.location))
        over, resource = _overload(a, s, k)
        if over > 0:
            break
    else:
        return False
    p = s.members[k, 0]
    for i in range(1, s.count[k]):
        if a.requirement[s.members[k, i], resource] > a.requirement[p, resource]:
            p = s.members[k, i]
    m = below(rng, len(a.location))
    for r in range(a.capacity.shape[1]):
        if a.requirement[p, r] > a.safety[m, r]:
            return False
    return _try_rearrangement(a, s, p, m, bias, weights, temperature, rng, change, trail)


@kernel
def anneal(a, s, order, rank, bias, odds, weights, temperature, steps, rng, change, trail):
    """Try `steps` moves at a temperature; return how many were taken.

    Parameters
    ----------
    order, rank : processes by size, and the place of each process in that order, (P,) each.
    odds : (5,) cumulative: a shift, a swap, a swap of like sizes; the rest are chains. Then odds
        that a shift is one home, and that a chain is a rearrangement.
    bias : what it counts that a process is away from home, in temperatures, (P,).
    change, trail : (3,) and (2, `LEAVE`) scratch.
    """
    processes, machines, taken = len(a.home), len(a.location), 0
    for _ in range(steps):
        p, drawn = below(rng, processes), uniform(rng)
        if drawn < odds[0]:
            m = a.home[p] if uniform(rng) < odds[3] else below(rng, machines)
            if m != s.machine[p]:
                taken += _try_shift(a, s, p, m, bias, weights, temperature, rng, change)
        elif drawn < odds[2]:
            if drawn < odds[1]:
                q = below(rng, processes)
            else:
                far = 1 + below(rng, NEAR)
                q = order[min(processes - 1, max(0, rank[p] + (far if rng[0] & 1 else -far)))]
            taken += _try_swap(a, s, p, q, bias, weights, temperature, rng, change)
        elif uniform(rng) < odds[4]:
            taken += _rearrange(a, s, bias, weights, temperature, rng, change, trail)
        else:
            k, m = below(rng, machines), below(rng, machines)
            if s.count[k] > 0:
                q = s.members[k, below(rng, s.count[k])]
                taken += _try_chain(a, s, p, q, m, bias, weights, temperature, rng, change)
    return taken
