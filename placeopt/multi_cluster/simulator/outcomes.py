"""Compiled: which actions place the request at hand, what the spreads would place where, and what every action leads to.

Resources are whole units, so that capacity is exact. The kernels take the few arrays that they need: to hand on a whole world costs
more than they do. The page is ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel

#: As in `placeopt.multi_cluster.simulator.state`.
FFD, BF1B1, REJECT = 0, 2, 3
LARGEST = 1000.0


# -- spreads -----------------------------------------------------------------------------------------------------------


@kernel
def _by_free_cpu(free, decreasing, order):
    """Write the clusters in the order of their free cpu; of equals the first comes first."""
    for k in range(len(order)):
        at = k
        while at > 0 and (
            free[order[at - 1], 0] < free[k, 0]
            if decreasing
            else free[order[at - 1], 0] > free[k, 0]
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@kernel
def _threshold(free, cpu, memory, asked):
    """Return how many replicas the fullest cluster takes, at most all but one and at least one."""
    most = asked - 1
    for c in range(len(free)):
        if free[c, 0] < most * cpu:
            most = free[c, 0] // cpu
        if free[c, 1] < most * memory:
            most = free[c, 1] // memory
    return max(most, 1)


@kernel
def _first_fit(free, cpu, memory, asked, order, most, split):
    """Write algorithm 1 of the paper over the clusters in an order; return whether all replicas find a place on two or more."""
    left, before, wide = asked, -1, 0
    split[:] = 0
    while left > 0 and left != before:
        before = left
        for c in order:
            take = most if most <= left else 1
            if (
                left > 0
                and take > 1
                and (
                    (split[c] + take) * cpu > free[c, 0] or (split[c] + take) * memory > free[c, 1]
                )
            ):
                take = 1
            if (
                left > 0
                and (split[c] + take) * cpu <= free[c, 0]
                and (split[c] + take) * memory <= free[c, 1]
            ):
                wide += split[c] == 0
                split[c] += take
                left -= take
    return left == 0 and wide > 1


@kernel
def _best_fit(free, capacity, cpu, memory, asked, remain, split):
    """Write where replicas go one by one, each where the least share of cpu remains, then of memory; return as `_first_fit`."""
    wide = 0
    for c in range(len(split)):
        split[c] = 0
        remain[c] = (free[c, 0] - cpu) / capacity[c, 0]
    for _ in range(asked):
        best, least = -1, np.inf
        for c in range(len(split)):
            room = (split[c] + 1) * cpu <= free[c, 0] and (split[c] + 1) * memory <= free[c, 1]
            if room and (
                remain[c] < least
                or (
                    remain[c] == least
                    and _leaves_less_memory(free, capacity, memory, split, c, best)
                )
            ):
                best, least = c, remain[c]
        if best < 0:
            return False
        wide += split[best] == 0
        split[best] += 1
        remain[best] = (free[best, 0] - (split[best] + 1) * cpu) / capacity[best, 0]
    return wide > 1


@kernel
def _leaves_less_memory(free, capacity, memory, split, c, other):
    left = (free[c, 1] - (split[c] + 1) * memory) / capacity[c, 1]
    return left < (free[other, 1] - (split[other] + 1) * memory) / capacity[other, 1]


@kernel
def _published_first_fit(free, cpu, memory, asked, order, split):
    """Write the published spread: one pass, then one replica per cluster, and no look at what the first pass took."""
    left, most = asked, asked - 1
    for c in range(len(split)):
        split[c] = 0
        most = min(most, -(-free[c, 0] // cpu), -(-free[c, 1] // memory))
    for c in order:
        if left > 0:
            take = 1
            if most < left and most * cpu < free[c, 0] and most * memory < free[c, 1]:
                take = most
            elif cpu >= free[c, 0] or memory >= free[c, 1]:
                take = 0
            split[c] += take
            left -= take
    for c in range(len(split)):
        if left > 0 and cpu < free[c, 0] and memory < free[c, 1]:
            split[c] += 1
            left -= 1


@kernel
def _published_best_fit(free, unit, cpu, memory, asked, split):
    """Write the published BF1B1: each replica where the sum of free cores and GiB that remains is least."""
    split[:] = 0
    for _ in range(asked):
        best, least, cores = -1, np.inf, np.inf
        for c in range(len(split)):
            if (split[c] + 1) * cpu <= free[c, 0] and (split[c] + 1) * memory <= free[c, 1]:
                here = (free[c, 0] - split[c] * cpu) * unit[0]
                space = here - cpu * unit[0] + (free[c, 1] - (split[c] + 1) * memory) * unit[1]
                if space < least or (space == least and here < cores):
                    best, least, cores = c, space, here
        if best >= 0:
            split[best] += 1


@kernel
def _fits(used, limit, cpu, memory, c, replicas):
    return (
        used[c, 0] + replicas * cpu <= limit[c, 0] and used[c, 1] + replicas * memory <= limit[c, 1]
    )


@kernel
def _spread(free, capacity, cpu, memory, asked, order, remain, split, accepts):
    """Write the three spreads and whether they place the request."""
    clusters = len(free)
    most = _threshold(free, cpu, memory, asked)
    for s in range(2):
        _by_free_cpu(free, s == FFD, order)
        accepts[clusters + s] = _first_fit(free, cpu, memory, asked, order, most, split[s])
    accepts[clusters + BF1B1] = _best_fit(free, capacity, cpu, memory, asked, remain, split[BF1B1])


@kernel
def _published_spread(free, used, limit, unit, cpu, memory, asked, order, split, accepts):
    """Write the published spreads, of which FFI is FFD; no matter whether all replicas find a place."""
    clusters = len(free)
    _by_free_cpu(free, True, order)
    _published_first_fit(free, cpu, memory, asked, order, split[0])
    split[1] = split[0]
    _published_best_fit(free, unit, cpu, memory, asked, split[BF1B1])
    for s in range(3):
        fits = True
        for c in range(clusters):
            fits &= _fits(used, limit, cpu, memory, c, split[s, c])
        accepts[clusters + s] = fits


# -- what every action leads to ----------------------------------------------------------------------------------------


@kernel
def _single(load, apart, total, c, more):
    """Return the Gini coefficient with `more` replicas on cluster c; `apart` is the sum of differences of pairs without."""
    own = load[c]
    for b in range(len(load)):
        if b != c:
            apart += abs(own + more - load[b]) - abs(own - load[b])
    return apart / (len(load) * (total + more))


@kernel
def _several(load, split):
    """Return the Gini coefficient, equation (10) of the paper, of a load with a spread."""
    total, apart = 0, 0
    for a in range(len(load)):
        total += load[a] + split[a]
        for b in range(a):
            apart += abs(load[a] + split[a] - load[b] - split[b])
    return apart / (len(load) * total) if total > 0 else 0.0


@kernel
def _published_single_latency(matrix, c):
    """Return the mean of the row of cluster c once it has grown."""
    total = 0.0
    for b in range(len(matrix)):
        if b != c:
            total += max(min(matrix[c, b] * 1.15, LARGEST), 1.0)
    return total / len(matrix)


@kernel
def _published_spread_latency(matrix, split, asked):
    """Return the mean latency over replicas, cluster after cluster while all their latencies grow."""
    total = 0.0
    for c in range(len(matrix)):
        if split[c] > 0:
            here = 0.0
            for b in range(len(matrix)):
                if b < c:
                    here += max(min(matrix[b, c] * 1.05, LARGEST), 1.0)
                elif b > c:
                    here += matrix[c, b]
            total += here / len(matrix) * split[c]
    return total / asked


@kernel
def _spread_latency(raw, increase, split, asked):
    """Return the mean latency over replicas after the placement."""
    total = 0.0
    for c in range(len(raw)):
        if split[c] > 0:
            total += min(LARGEST, raw[c] * (1.0 + increase * (split[c] / asked))) * split[c]
    return total / asked


@kernel
def _spread_cost(price, split, asked):
    total = 0.0
    for c in range(len(price)):
        total += price[c] * split[c]
    return total / asked


@kernel
def _outcomes(load, price, raw, matrix, increase, asked, split, accepts, published, outcome):
    """Write latency, cost and Gini coefficient of every accepting action."""
    clusters = len(load)
    apart, total = 0, 0
    for a in range(clusters):
        total += load[a]
        for b in range(a):
            apart += abs(load[a] - load[b])
    for c in range(clusters):
        if accepts[c]:
            outcome[c, 0] = (
                _published_single_latency(matrix, c)
                if published
                else min(LARGEST, raw[c] * (1.0 + increase))
            )
            outcome[c, 1] = price[c]
            outcome[c, 2] = _single(load, apart, total, c, asked)
    for s in range(3):
        a = clusters + s
        if accepts[a]:
            if published:
                outcome[a, 0] = _published_spread_latency(matrix, split[s], asked)
            else:
                outcome[a, 0] = _spread_latency(raw, increase, split[s], asked)
            outcome[a, 1] = _spread_cost(price, split[s], asked)
            outcome[a, 2] = _several(load, split[s])


@kernel
def _rewards(outcome, accepts, scale, refusal, parts):
    """Write the reward parts of every action: equations (5) to (7)."""
    for a in range(len(accepts)):
        if accepts[a]:
            parts[a, 0] = 1.0 - (outcome[a, 0] - 1.0) / 999.0
            parts[a, 1] = 1.0 - (outcome[a, 1] - scale[0]) / (scale[1] - scale[0])
            parts[a, 2] = 1.0 - outcome[a, 2]
        else:
            parts[a, 0] = parts[a, 1] = parts[a, 2] = refusal


@kernel
def look_all(w, which, published, masks):
    """Look in the environments of `which`, whole numbers, that have a request at hand, and refresh their masks.

    The published masks let spreads pass that place nothing. After the end only the refusal is legal.
    """
    clusters = w.load.shape[1]
    order, remain = np.zeros(clusters, np.int64), np.zeros(clusters)
    for i in which:
        t, mask = w.now[i], masks[i]
        mask[:] = False
        mask[clusters + REJECT] = True
        if t == w.replicas.shape[1]:
            continue
        cpu, memory, asked = w.demand[i, t, 0], w.demand[i, t, 1], w.replicas[i, t]
        used, limit, free, split, accepts = (
            w.used[i],
            w.limit[i],
            w.free[i],
            w.split[i],
            w.accepts[i],
        )
        single, any_spread = False, False
        for c in range(clusters):
            accepts[c] = _fits(used, limit, cpu, memory, c, asked)
            single |= accepts[c]
        accepts[clusters:] = False
        if asked > 1 and published:
            _published_spread(free, used, limit, w.unit, cpu, memory, asked, order, split, accepts)
        elif asked > 1:
            _spread(free, w.capacity[i], cpu, memory, asked, order, remain, split, accepts)
            any_spread = accepts[clusters] or accepts[clusters + 1] or accepts[clusters + BF1B1]
        if published:
            w.refusal[i] = -1.0 if single else 1.0
        else:
            w.refusal[i] = -1.0 if single or any_spread else 0.0
        _outcomes(
            w.load[i],
            w.price[i],
            w.raw[i],
            w.matrix[i],
            w.increase[i, t],
            asked,
            split,
            accepts,
            published,
            w.outcome[i],
        )
        _rewards(w.outcome[i], accepts, w.scale, w.refusal[i], w.parts[i])
        for a in range(clusters + REJECT):
            mask[a] = accepts[a] or (published and a >= clusters)
