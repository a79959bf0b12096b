"""Kernels of the published rules: what the paper's environment does, number for number.

Each placement is removed before the next request. The rules are in
``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.multi_cluster.episodes.outcomes import (
    first_fit,
    most_at_once,
    replicas_that_fit,
    sort_by_free_cpu,
    take_by_weight,
    write_rewards,
)
from placeopt.multi_cluster.episodes.state import BF1B1, CPU, FFD, FFI, MAX_MS, REFUSAL
from placeopt.multi_cluster.episodes.transition import clear, decide

#: Lowest latency between clusters, ms.
MIN_MS = 1.0
#: Masks fill clusters up to this many percent.
FILL = 95
#: Factors of latencies on arrival: of a request on one cluster, of a spread.
ONE_CLUSTER, SPREAD = 1.15, 1.05
#: Divisor of latencies when a spread departs.
SPREAD_DEPARTS = 1.10

# -- outcomes --------------------------------------------------------------------------------------


@kernel
def _has_room(free, demand, c, replicas):
    return replicas * demand[0] < free[c, 0] and replicas * demand[1] < free[c, 1]


@kernel
def _first_fit(free, demand, asked, order, split):
    """Write FFD into `split` (C,): one pass, then one replica per cluster.

    The second pass does not see what the first has placed.
    """
    left, threshold = asked, asked - 1
    for c in range(len(split)):
        split[c] = 0
        for r in range(2):
            threshold = min(threshold, -(-free[c, r] // demand[r]))
    for c in order:
        if left > 0:
            take = 0
            if threshold < left and _has_room(free, demand, c, threshold):
                take = threshold
            elif _has_room(free, demand, c, 1):
                take = 1
            split[c] += take
            left -= take
    for c in range(len(split)):
        if left > 0 and _has_room(free, demand, c, 1):
            split[c] += 1
            left -= 1


@kernel
def _best_fit(free, unit, demand, asked, split):
    """Write BF1B1 into `split` (C,): each replica where the least cores plus GiB remain free."""
    split[:] = 0
    for _ in range(asked):
        best, least, cores = -1, np.inf, np.inf
        for c in range(len(split)):
            memory = free[c, 1] - (split[c] + 1) * demand[1]
            if (split[c] + 1) * demand[0] <= free[c, 0] and memory >= 0:
                here = (free[c, 0] - split[c] * demand[0]) * unit[0]
                space = here - demand[0] * unit[0] + memory * unit[1]
                if space < least or (space == least and here < cores):
                    best, least, cores = c, space, here
        if best >= 0:
            split[best] += 1


@kernel
def _fits(used, capacity, demand, c, replicas):
    """Return whether a cluster has room for replicas; the masks fill it to 95 %."""
    cpu, memory = used[c, 0] + replicas * demand[0], used[c, 1] + replicas * demand[1]
    return cpu <= capacity[c, 0] * FILL // 100 and memory <= capacity[c, 1] * FILL // 100


@kernel
def _spread(free, used, capacity, unit, demand, asked, order, split, accepts):
    """Write the spreads, of which FFI is FFD, and whether what they place fits.

    A spread may place fewer replicas than asked for.
    """
    clusters = len(free)
    sort_by_free_cpu(free, True, order)
    _first_fit(free, demand, asked, order, split[FFD])
    copy_row(split[FFD], split[FFI])
    _best_fit(free, unit, demand, asked, split[BF1B1])
    for s in range(3):
        fits = True
        for c in range(clusters):
            fits &= _fits(used, capacity, demand, c, split[s, c])
        accepts[clusters + s] = fits


@kernel
def _scaled(ms, factor):
    return max(min(ms * factor, MAX_MS), MIN_MS)


@kernel
def _write_latencies(matrix, asked, split, accepts, outcome):
    """Write the mean latency over replicas after every accepting action; outcome (A, 3).

    A request on one cluster sees its latencies once they have grown. A spread sees those of a
    cluster when only the clusters before it have grown.
    """
    clusters = len(matrix)
    for c in range(clusters):
        if accepts[c]:
            total = 0.0
            for b in range(clusters):
                if b != c:
                    total += _scaled(matrix[c, b], ONE_CLUSTER)
            outcome[c, 0] = total / clusters
    for s in range(3):
        if accepts[clusters + s]:
            outcome[clusters + s, 0] = _spread_latency(matrix, split[s], asked)


@kernel
def _spread_latency(matrix, split, asked):
    total = 0.0
    for c in range(len(matrix)):
        if split[c] > 0:
            here = 0.0
            for b in range(len(matrix)):
                if b < c:
                    here += _scaled(matrix[b, c], SPREAD)
                elif b > c:
                    here += matrix[c, b]
            total += here / len(matrix) * split[c]
    return total / asked


@allocating_kernel
def refresh_all(traces, state, outcomes, which):
    """Refresh `outcomes` of the environments of `which`, whole numbers, in place.

    Spreads are always legal, even those that place nothing. After the end of an episode only the
    refusal is legal.
    """
    clusters = state.load.shape[1]
    order = np.zeros(clusters, np.int64)
    for i in which:
        t, mask = state.now[i], outcomes.masks[i]
        mask[:] = False
        mask[clusters + REFUSAL] = True
        if t == traces.replicas.shape[1]:
            continue
        demand, wanted = traces.demand[i, t], traces.replicas[i, t]
        used, capacity = state.used[i], traces.capacity[i]
        split, accepts, outcome = outcomes.split[i], outcomes.accepts[i], outcomes.outcome[i]
        accepts[:] = False
        mask[clusters:] = True
        refusal = 1.0
        for c in range(clusters):
            accepts[c] = mask[c] = _fits(used, capacity, demand, c, wanted)
            if accepts[c]:
                refusal = -1.0
        if wanted > 1:
            _spread(
                state.free[i], used, capacity, traces.unit, demand, wanted, order, split, accepts
            )
        _write_latencies(state.matrix[i], wanted, split, accepts, outcome)
        write_rewards(i, wanted, refusal, traces, state, outcomes)


@allocating_kernel
def divide_all(traces, state, outcomes, actions):
    """Write Karmada's division into the place of FFD in `outcomes`, and its `actions` (N,).

    A cluster takes replicas until it is as full as masks allow.
    """
    clusters = state.load.shape[1]
    weights, room = np.zeros(clusters, np.int64), np.zeros(2, np.int64)
    for i in range(len(actions)):
        t = min(state.now[i], traces.replicas.shape[1] - 1)
        wanted, split = traces.replicas[i, t], outcomes.split[i]
        for c in range(clusters):
            for r in range(2):
                room[r] = traces.capacity[i, c, r] * FILL // 100 - state.used[i, c, r]
            weights[c] = replicas_that_fit(room, traces.demand[i, t])
        actions[i] = take_by_weight(weights, wanted, split[FFD])
        outcomes.accepts[i, clusters + FFD] = actions[i] == clusters + FFD
        _write_latencies(state.matrix[i], wanted, split, outcomes.accepts[i], outcomes.outcome[i])
        write_rewards(i, wanted, outcomes.refusal[i], traces, state, outcomes)


@allocating_kernel
def repeat_all(traces, state, outcomes, actions):
    """Write algorithm 1 as printed into the place of FFD in `outcomes`, and its `actions` (N,).

    Its loop is repeated until nothing is left; it ends as well where nothing more fits, and sees
    what it has placed, which the printed one does not. Clusters are filled as far as masks allow.
    """
    clusters = state.load.shape[1]
    order, room = np.zeros(clusters, np.int64), np.zeros((clusters, 2), np.int64)
    for i in range(len(actions)):
        t = min(state.now[i], traces.replicas.shape[1] - 1)
        wanted, split, demand = traces.replicas[i, t], outcomes.split[i], traces.demand[i, t]
        for c in range(clusters):
            for r in range(2):
                used = traces.capacity[i, c, r] * FILL // 100 - state.used[i, c, r]
                room[c, r] = max(used, 0)
        sort_by_free_cpu(state.free[i], True, order)
        threshold = most_at_once(room, demand, wanted)
        fits = wanted > 1 and first_fit(room, demand, wanted, order, threshold, split[FFD])
        actions[i] = clusters + (FFD if fits else REFUSAL)
        outcomes.accepts[i, clusters + FFD] = fits
        _write_latencies(state.matrix[i], wanted, split, outcomes.accepts[i], outcomes.outcome[i])
        write_rewards(i, wanted, outcomes.refusal[i], traces, state, outcomes)


# -- steps -----------------------------------------------------------------------------------------


@kernel
def _scale_latencies(matrix, c, factor, divide):
    """Scale the latencies from cluster c, in place, within bounds; those to it become the same."""
    for b in range(len(matrix)):
        if b != c:
            ms = matrix[c, b] / factor if divide else matrix[c, b] * factor
            matrix[c, b] = matrix[b, c] = max(min(ms, MAX_MS), MIN_MS)


@kernel
def _mean_latencies(matrix, latency):
    """Write the latency of every cluster (C,): the mean of its row, its own 0 included."""
    for c in range(len(matrix)):
        latency[c] = matrix[c].sum() / len(matrix)


@kernel
def _place(matrix, load, used, free, capacity, placed, alone):
    """Place a request and remove it: the latencies, the load ever placed, and `free` change."""
    for c in range(len(load)):
        if not alone or placed[c] > 0:
            _scale_latencies(matrix, c, ONE_CLUSTER if alone else SPREAD, False)
            load[c] += placed[c]
            for r in range(2):
                free[c, r] = capacity[c, r] - used[c, r]
    for c in range(len(load)):
        if placed[c] > 0:
            _scale_latencies(matrix, c, ONE_CLUSTER if alone else SPREAD_DEPARTS, True)


@kernel
def _cpu_usage(used, capacity, placed, cpu, asked, alone):
    """Return the cpu use in percent; of a spread, the sum over all clusters by replicas."""
    total = 0.0
    for c in range(len(placed)):
        share = 100.0 * (used[c, 0] + placed[c] * cpu) / capacity[c, 0]
        if not alone:
            total += share / asked
        elif placed[c] > 0:
            total += share
    return total


@kernel
def begin_all(traces, state, which):
    """Begin the episodes of the environments of `which`, in place."""
    for i in which:
        clear(traces, state, i)
        _mean_latencies(state.matrix[i], state.latency[i])


@kernel
def step_all(traces, state, outcomes, actions, rewards):
    """Take an action in every environment, in place, and write the reward parts, rewards (N, 3).

    Environments whose episode is over stand still and earn 0. A refused BF1B1 leaves `free` too
    small for the spreads to come.
    """
    clusters = state.load.shape[1]
    for i in range(len(actions)):
        t, action = state.now[i], actions[i]
        rewards[i, :] = 0.0
        if t == traces.replicas.shape[1]:
            continue
        demand, wanted, alone = traces.demand[i, t], traces.replicas[i, t], action < clusters
        used, free, capacity = state.used[i], state.free[i], traces.capacity[i]
        if decide(traces, state, outcomes, i, action, rewards):
            placed, matrix = state.placed[i, t], state.matrix[i]
            state.sums[i, CPU] += _cpu_usage(used, capacity, placed, demand[0], wanted, alone)
            _place(matrix, state.load[i], used, free, capacity, placed, alone)
            _mean_latencies(matrix, state.latency[i])
        elif action == clusters + BF1B1 and wanted > 1:
            for c in range(clusters):
                for r in range(2):
                    free[c, r] -= outcomes.split[i, BF1B1, c] * demand[r]
