"""Compiled steps of the multi-cluster problem, both semantics; what an action leads to stands in the world already.

The page is ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel

#: As in `placeopt.multi_cluster.simulator.state`.
BF1B1 = 2
ACCEPTED, LATENCY, CPU, LAST_GINI, SPREADS = 0, 1, 4, 5, 6
LARGEST = 1000.0


@kernel
def _move(load, used, free, capacity, placed, cpu, memory, sign):
    """Put replicas on clusters, or with sign -1 take them away."""
    for c in range(len(load)):
        replicas = sign * placed[c]
        if replicas != 0:
            load[c] += replicas
            used[c, 0] += replicas * cpu
            used[c, 1] += replicas * memory
            free[c, 0] = capacity[c, 0] - used[c, 0]
            free[c, 1] = capacity[c, 1] - used[c, 1]


@kernel
def _grow(raw, placed, increase, asked):
    """Multiply the latencies of the clusters that hold a request."""
    for c in range(len(raw)):
        if placed[c] > 0:
            raw[c] *= 1.0 + increase * (placed[c] / asked)


@kernel
def _arrive(w, i):
    """Let go what ends by the arrival of the request at hand, and work out the latencies of what runs on."""
    time, keep = w.arrival[i, w.now[i]], 0
    running, departure, placed, demand = w.running[i], w.departure[i], w.placed[i], w.demand[i]
    replicas, increase, raw, latency, base = (
        w.replicas[i],
        w.increase[i],
        w.raw[i],
        w.latency[i],
        w.base[i],
    )
    load, used, free, capacity = w.load[i], w.used[i], w.free[i], w.capacity[i]
    raw[:] = base
    for k in range(w.active[i]):
        t = running[k]
        if departure[t] <= time:
            _move(load, used, free, capacity, placed[t], demand[t, 0], demand[t, 1], -1)
        else:
            running[keep] = t
            keep += 1
            _grow(raw, placed[t], increase[t], replicas[t])
    w.active[i] = keep
    for c in range(len(raw)):
        latency[c] = min(LARGEST, raw[c])


@kernel
def _stretch(matrix, c, factor):
    """Multiply the latencies from cluster c, within 1 to 1000 ms; those to it become the same."""
    for b in range(len(matrix)):
        if b != c:
            matrix[c, b] = matrix[b, c] = max(min(matrix[c, b] * factor, LARGEST), 1.0)


@kernel
def _shrink(matrix, c, factor):
    for b in range(len(matrix)):
        if b != c:
            matrix[c, b] = matrix[b, c] = max(min(matrix[c, b] / factor, LARGEST), 1.0)


@kernel
def _mean_latencies(matrix, latency):
    """Write the published latency of every cluster: the mean of its row, its own 0 included."""
    for c in range(len(matrix)):
        latency[c] = matrix[c].sum() / len(matrix)


@kernel
def _place_published(matrix, load, used, free, capacity, placed, alone):
    """Place and, before the next request, let go: the published class never sets a time of departure."""
    for c in range(len(load)):
        if not alone or placed[c] > 0:
            _stretch(matrix, c, 1.15 if alone else 1.05)
            load[c] += placed[c]
            for r in range(2):
                free[c, r] = capacity[c, r] - used[c, r]
    for c in range(len(load)):
        if placed[c] > 0:
            _shrink(matrix, c, 1.15 if alone else 1.10)


@kernel
def _usage(used, capacity, placed, asked):
    """Return the cpu use in percent after a placement, averaged over its replicas."""
    total = 0.0
    for c in range(len(placed)):
        if placed[c] > 0:
            total += 100.0 * used[c, 0] / capacity[c, 0] * placed[c]
    return total / asked


@kernel
def _published_usage(used, capacity, placed, cpu, asked, alone):
    """Return the published cpu use in percent: of a spread, the sum over every cluster divided by the replicas."""
    total = 0.0
    for c in range(len(placed)):
        share = 100.0 * (used[c, 0] + placed[c] * cpu) / capacity[c, 0]
        if alone:
            total += share if placed[c] > 0 else 0.0
        else:
            total += share / asked
    return total


@kernel
def _place(w, i, t, a, published):
    """Take an accepting action."""
    load, used, free, capacity, placed = (
        w.load[i],
        w.used[i],
        w.free[i],
        w.capacity[i],
        w.placed[i, t],
    )
    cpu, asked, alone = w.demand[i, t, 0], w.replicas[i, t], a < len(load)
    if alone:
        placed[:] = 0
        placed[a] = asked
    else:
        placed[:] = w.split[i, a - len(load)]
    sums = w.sums[i]
    if published:
        sums[CPU] += _published_usage(used, capacity, placed, cpu, asked, alone)
        _place_published(w.matrix[i], load, used, free, capacity, placed, alone)
        _mean_latencies(w.matrix[i], w.latency[i])
    else:
        _move(load, used, free, capacity, placed, cpu, w.demand[i, t, 1], 1)
        w.running[i, w.active[i]] = t
        w.active[i] += 1
        sums[CPU] += _usage(used, capacity, placed, asked)
    sums[ACCEPTED] += 1.0
    sums[SPREADS] += 0.0 if alone else 1.0
    for k in range(3):
        sums[LATENCY + k] += w.outcome[i, a, k]
    sums[LAST_GINI] = w.outcome[i, a, 2]


@kernel
def step_all(w, actions, rewards, published):
    """Take an action in every environment that has a request at hand, write the reward parts, go on to the next request.

    An action that does not place the request refuses it; a refused BF1B1 leaves the published spreads a wrong idea of what is free.
    """
    steps, clusters = w.replicas.shape[1], w.load.shape[1]
    for i in range(len(actions)):
        t, a = w.now[i], actions[i]
        rewards[i, :] = 0.0
        if t == steps:
            continue
        rewards[i] = w.parts[i, a]
        w.action[i, t] = a if w.accepts[i, a] else -1
        if w.accepts[i, a]:
            _place(w, i, t, a, published)
        else:
            w.placed[i, t, :] = 0
            if published and a == clusters + BF1B1 and w.replicas[i, t] > 1:
                for c in range(clusters):
                    for r in range(2):
                        w.free[i, c, r] -= w.split[i, BF1B1, c] * w.demand[i, t, r]
        w.now[i] += 1
        if w.now[i] < steps and not published:
            _arrive(w, i)


@kernel
def begin_all(w, which, published):
    """Stand before the first request of a trace that has been written into the world, `used` being the background."""
    for i in which:
        w.now[i], w.active[i] = 0, 0
        w.free[i] = w.capacity[i] - w.used[i]
        w.load[i, :] = 0
        w.placed[i, :, :] = 0
        w.sums[i, :] = 0.0
        if published:
            _mean_latencies(w.matrix[i], w.latency[i])
        else:
            _arrive(w, i)
