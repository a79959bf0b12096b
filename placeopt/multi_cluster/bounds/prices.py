"""Kernels that look for prices of what requests share: a convex program, by first-order steps.

Requests in parts (T, C) share clusters while they run, and pay for latency, cost and inequality.
What they share has prices. Parts go down and prices go up in turn (Chambolle and Pock, 2011;
Condat, 2013), with a step for each by the sums of rows and columns (Pock and Chambolle, 2011); now
and then both go to the mean since the last time (Applegate et al., 2021). Any prices prove a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel

#: What rounding can add to a sum, as a share of the sum of the sizes.
ROUNDING = 1e-9


class Shared(NamedTuple):
    """What requests share, for T requests, C clusters and P pairs of these."""

    last: np.ndarray  # (T,) the last request at whose arrival this one runs
    size: np.ndarray  # (2, T, C) cpu and memory of a request, as a share of what is free
    replicas: np.ndarray  # (T,) floats
    share: np.ndarray  # (T, C) the largest part of a request on a cluster
    most: np.ndarray  # (T,) replicas that run after a request at most
    without: np.ndarray  # (T,) inequality after a request that its refusal takes off
    least: np.ndarray  # (T,) the least inequality of whole replicas
    price: np.ndarray  # (C,)
    linear: np.ndarray  # (T, C) of the sum of latencies
    quadratic: np.ndarray  # (pairs that run together, C)
    starts: np.ndarray  # (T + 1,) where the pairs of a request begin
    others: np.ndarray  # the other request of a pair


class State(NamedTuple):
    """Parts, and prices of what they share."""

    parts: np.ndarray  # (T, C)
    room: np.ndarray  # (2, T, C)
    differences: np.ndarray  # (T, P) of clusters' loads; at most `unequal` either way
    unequal: np.ndarray  # (T, 2) of inequality by differences, and by whole replicas
    accepted: np.ndarray  # (1,) of a request that is accepted


@kernel
def pulls(differences, t, result):
    """Write what differences make of a replica on each cluster to `result` (C,)."""
    C = len(result)
    for c in range(C):
        result[c] = 0.0
    pair = 0
    for a in range(C):
        for b in range(a + 1, C):
            result[a] += differences[t, pair]
            result[b] -= differences[t, pair]
            pair += 1


@kernel
def bent(s, parts, result):
    """Write the quadratic form of latencies times parts to `result` (T, C)."""
    T, C = parts.shape
    for t in range(T):
        for c in range(C):
            result[t, c] = 0.0
        for k in range(s.starts[t], s.starts[t + 1]):
            for c in range(C):
                result[t, c] += s.quadratic[k, c] * parts[s.others[k], c]


@kernel
def taken(s, state, sums, pull, room, gini):
    """Write what requests pay for room and for inequality to `room` and `gini` (T, C).

    `sums` (3, C, T + 1) and `pull` (C,) are room to work in.
    """
    T, C = room.shape
    for t in range(T):
        pulls(state.differences, t, pull)
        for c in range(C):
            sums[0, c, t + 1] = sums[0, c, t] + state.room[0, t, c]
            sums[1, c, t + 1] = sums[1, c, t] + state.room[1, t, c]
            sums[2, c, t + 1] = sums[2, c, t] + pull[c] / (C * s.most[t])
    for t in range(T):
        end = s.last[t] + 1
        whole = state.unequal[t, 0] * s.without[t] + state.unequal[t, 1] * s.least[t]
        for c in range(C):
            room[t, c] = s.size[0, t, c] * (sums[0, c, end] - sums[0, c, t])
            room[t, c] += s.size[1, t, c] * (sums[1, c, end] - sums[1, c, t])
            gini[t, c] = s.replicas[t] * (sums[2, c, end] - sums[2, c, t]) + whole


@kernel
def least_cost(cost, share, t):
    """Return the least cost of a request in parts, cheapest clusters first; all of it is placed."""
    C, rest, total, before = cost.shape[1], 1.0, 0.0, -1
    for _ in range(C):
        best = -1
        for c in range(C):
            after = before < 0 or cost[t, c] > cost[t, before]
            after = after or (cost[t, c] == cost[t, before] and c > before)
            if after and (best < 0 or cost[t, c] < cost[t, best]):
                best = c
        part = min(rest, share[t, best])
        total += part * cost[t, best]
        rest -= part
        before = best
        if rest <= 0.0:
            break
    return total if rest <= 1e-9 else np.inf


@kernel
def onto_simplex(parts, share, t, step, cost):
    """Move a request's parts down its cost, to the nearest parts that sum to 1 at most."""
    C, low, high, total = parts.shape[1], 0.0, 0.0, 0.0
    for c in range(C):
        wanted = parts[t, c] - step[t, c] * cost[t, c]
        total += min(share[t, c], max(0.0, wanted))
        high = max(high, wanted / step[t, c])
    shift = 0.0
    if total > 1.0:
        for _ in range(25):
            shift = 0.5 * (low + high)
            total = 0.0
            for c in range(C):
                wanted = parts[t, c] - step[t, c] * (cost[t, c] + shift)
                total += min(share[t, c], max(0.0, wanted))
            if total > 1.0:
                low = shift
            else:
                high = shift
        shift = high
    for c in range(C):
        wanted = parts[t, c] - step[t, c] * (cost[t, c] + shift)
        parts[t, c] = min(share[t, c], max(0.0, wanted))


@kernel
def within(differences, unequal, t, weight):
    """Make prices of inequality legal: they sum to the weight at most, and limit differences."""
    P = differences.shape[1]
    level = unequal[t, 0]
    # The nearest level that differences are cut off at: they lift it in turn, the largest first.
    for _ in range(P):
        total, count = unequal[t, 0], 1
        for k in range(P):
            size = abs(differences[t, k])
            if size > level:
                total += size
                count += 1
        lifted = total / count
        if lifted <= level + 1e-15:
            break
        level = lifted
    level, whole = max(0.0, level), max(0.0, unequal[t, 1])
    excess = level + whole - weight
    if excess > 0.0:
        off = min(whole, 0.5 * excess)
        off = max(off, excess - level)
        whole -= off
        level -= excess - off
    level, whole = max(0.0, level), max(0.0, whole)  # rounding may leave them below
    unequal[t, 0], unequal[t, 1] = level, whole
    for k in range(P):
        differences[t, k] = min(level, max(-level, differences[t, k]))


@kernel
def loads(s, parts, result):
    """Write the use of cpu and memory, and replicas, at each arrival to `result` (3, T, C)."""
    T, C = parts.shape
    for k in range(3):
        for t in range(T):
            for c in range(C):
                result[k, t, c] = 0.0
    for t in range(T):
        end = s.last[t] + 1
        for c in range(C):
            cpu, memory = parts[t, c] * s.size[0, t, c], parts[t, c] * s.size[1, t, c]
            count = parts[t, c] * s.replicas[t]
            result[0, t, c] += cpu
            result[1, t, c] += memory
            result[2, t, c] += count
            if end < T:
                result[0, end, c] -= cpu
                result[1, end, c] -= memory
                result[2, end, c] -= count
    for k in range(3):
        for t in range(1, T):
            for c in range(C):
                result[k, t, c] += result[k, t - 1, c]


@kernel
def raised(s, state, parts, use, weight, accepted, up, step):
    """Move prices up by what parts lack; `step` holds the steps of each kind of price."""
    T, C = parts.shape
    everything = 0.0
    loads(s, parts, use)
    for t in range(T):
        all_parts = 0.0
        for c in range(C):
            all_parts += parts[t, c]
            for k in range(2):
                price = state.room[k, t, c] + up * step.room[k, t, c] * (use[k, t, c] - 1.0)
                state.room[k, t, c] = max(0.0, price)
        everything += all_parts
        if weight > 0.0:
            pair = 0
            for a in range(C):
                for b in range(a + 1, C):
                    apart = (use[2, t, a] - use[2, t, b]) / (C * s.most[t])
                    state.differences[t, pair] += up * step.differences[t, pair] * apart
                    pair += 1
            lacks = s.without[t] * (all_parts - 1.0)
            state.unequal[t, 0] += up * step.unequal[t, 0] * lacks
            state.unequal[t, 1] += up * step.unequal[t, 1] * s.least[t] * all_parts
            within(state.differences, state.unequal, t, weight)
    price = state.accepted[0] + up * step.accepted[0] * (accepted - everything)
    state.accepted[0] = max(0.0, price)


@allocating_kernel
def bounds_of(s, state, weights, result):
    """Write bounds on the least cost of 1, 2, ... T requests to `result` (T,).

    Each request is a question of its own where prices are paid; k of them cost what the k cheapest
    do at least. What rounding can add is taken off.
    """
    T, C = state.parts.shape
    room, gini, curved = np.empty((T, C)), np.empty((T, C)), np.empty((T, C))
    taken(s, state, np.zeros((3, C, T + 1)), np.empty(C), room, gini)
    bent(s, state.parts, curved)
    total, size = 0.0, 0.0
    for t in range(T):
        total -= state.unequal[t, 0] * s.without[t]
        for c in range(C):
            total -= state.room[0, t, c] + state.room[1, t, c]
            total -= weights[0] * state.parts[t, c] * curved[t, c]
            room[t, c] += gini[t, c] + weights[1] * s.price[c]
            room[t, c] += weights[0] * (s.linear[t, c] + 2 * curved[t, c])
        result[t] = least_cost(room, s.share, t)
        size += 0.0 if np.isinf(result[t]) else abs(result[t])
    size += abs(total)
    result.sort()
    for t in range(T):
        total += result[t]
        result[t] = total - ROUNDING * size


@allocating_kernel
def proven(s, state, weights, accepted):
    """Return the bound for a number of requests."""
    result = np.empty(len(state.parts))
    bounds_of(s, state, weights, result)
    return result[accepted - 1]


@allocating_kernel
def steps(s, weights):
    """Return a state with the step of each part and price."""
    T, C = s.share.shape
    P = C * (C - 1) // 2
    parts, room = np.full((T, C), 1.0), np.full((2, T, C), 1e-9)
    differences, unequal = np.full((T, P), 1e-9), np.empty((T, 2))
    for t in range(T):
        unequal[t, 0], unequal[t, 1] = 1e-9 + C * s.without[t], 1e-9 + C * s.least[t]
        for u in range(t, s.last[t] + 1):
            for c in range(C):
                parts[t, c] += s.size[0, t, c] + s.size[1, t, c]
                room[0, u, c] += s.size[0, t, c]
                room[1, u, c] += s.size[1, t, c]
                if weights[2] > 0:
                    parts[t, c] += s.replicas[t] * (C - 1) / (C * s.most[u])
            for k in range(P):
                differences[u, k] += 2 * s.replicas[t] / (C * s.most[u])
        if weights[2] > 0:
            for c in range(C):
                parts[t, c] += s.without[t] + s.least[t]
    for t in range(T):  # one step for all, as they are made legal together
        largest = max(unequal[t, 0], unequal[t, 1])
        for k in range(P):
            largest = max(largest, differences[t, k])
        unequal[t, 0] = unequal[t, 1] = largest
        for k in range(P):
            differences[t, k] = largest
    bend = np.zeros((T, C))
    for t in range(T):
        for k in range(s.starts[t], s.starts[t + 1]):
            for c in range(C):
                bend[t, c] += 2 * weights[0] * abs(s.quadratic[k, c])
    return State(parts, 1 / room, 1 / differences, 1 / unequal, np.full(1, 1.0 / (T * C))), bend


@allocating_kernel
def copied(state):
    """Return a copy of a state."""
    return State(
        state.parts.copy(),
        state.room.copy(),
        state.differences.copy(),
        state.unequal.copy(),
        state.accepted.copy(),
    )


@kernel
def mixed(state, other, share):
    """Move a state towards another by a share."""
    for mine, its in (
        (state.parts, other.parts),
        (state.differences, other.differences),
        (state.unequal, other.unequal),
    ):
        for t in range(mine.shape[0]):
            for c in range(mine.shape[1]):
                mine[t, c] += share * (its[t, c] - mine[t, c])
    for k in range(2):
        for t in range(state.room.shape[1]):
            for c in range(state.room.shape[2]):
                state.room[k, t, c] += share * (other.room[k, t, c] - state.room[k, t, c])
    state.accepted[0] += share * (other.accepted[0] - state.accepted[0])


@allocating_kernel
def improve(s, state, weights, accepted, rounds, length, ratio):
    """Return the state of the best bound after so many rounds of steps, and the bound."""
    T, C = state.parts.shape
    step, bend = steps(s, weights)
    down = 1.0 / (bend + ratio * step.parts)
    state = copied(state)
    best, value = copied(state), proven(s, state, weights, accepted)
    sums, pull, use = np.zeros((3, C, T + 1)), np.empty(C), np.empty((3, T, C))
    cost, gini, curved, before = (
        np.empty((T, C)),
        np.empty((T, C)),
        np.empty((T, C)),
        np.empty((T, C)),
    )
    for _ in range(rounds):
        mean = copied(state)
        for k in range(length):
            taken(s, state, sums, pull, cost, gini)
            bent(s, state.parts, curved)
            for t in range(T):
                for c in range(C):
                    before[t, c] = state.parts[t, c]
                    cost[t, c] += gini[t, c] + weights[1] * s.price[c] - state.accepted[0]
                    cost[t, c] += weights[0] * (s.linear[t, c] + 2 * curved[t, c])
                onto_simplex(state.parts, s.share, t, down, cost)
                for c in range(C):
                    before[t, c] = 2 * state.parts[t, c] - before[t, c]
            raised(s, state, before, use, weights[2], accepted, ratio, step)
            mixed(mean, state, 1.0 / (k + 1))
        here, there = proven(s, state, weights, accepted), proven(s, mean, weights, accepted)
        if there > here:
            state, here = mean, there
        if here > value:
            best, value = copied(state), here
    return best, value
