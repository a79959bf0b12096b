"""The observation of an episode: a row of 31 columns for every action.

0 to 4
    Whether the action is a cluster, FFD, FFI, BF1B1, or the refusal.
5 to 7
    The reward parts that it would earn.
8
    Its reward where it does not place the request.
9, 10
    Free shares of cpu and memory of the clusters that it would use; here and to column 17 means
    over the replicas.
11, 12
    The same afterwards.
13, 14
    Capacities.
15
    Latency.
16, 17
    Share of the load, and load over the mean load.
18
    Share of the clusters that it would use.
19
    Of the request, the same for every action: replicas.
20, 21
    Demand of cpu and memory.
22, 23, 24
    Latency threshold, duration, increase of the latency.
25
    Of the episode: share still to come.
26, 27
    Free shares of cpu and memory.
28, 29, 30
    Gini coefficient, rate of arrivals so far, reward of refusing.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.multi_cluster.simulator.state import LAST_GINI, MAX_MS, REFUSAL

#: Columns of a row; from `SHARED` on they are the same for every action.
FEATURES, SHARED = 31, 19


@kernel
def _clip(x):
    return min(max(x, -1.0), 1.0)


@kernel
def _describe_clusters(capacity, used, latency, load, unit, table):
    """Write a line for every cluster into `table` (C, 9).

    Columns 9, 10 and 13 to 17 of a row, then the share of a unit of cpu and of memory.
    """
    clusters, total = len(load), 0
    for c in range(clusters):
        total += load[c]
    for c in range(clusters):
        for r in range(2):
            table[c, r] = (capacity[c, r] - used[c, r]) / capacity[c, r]
            table[c, 7 + r] = 1.0 / capacity[c, r]
        table[c, 2] = _clip(capacity[c, 0] * unit[0] / 8.0)
        table[c, 3] = _clip(capacity[c, 1] * unit[1] / 32.0)
        table[c, 4] = latency[c] / MAX_MS
        table[c, 5] = load[c] / total if total > 0 else 0.0
        table[c, 6] = 0.25 * clusters * table[c, 5]


@kernel
def _add_cluster(row, cluster, weight, replicas, demand, clusters):
    """Add a cluster's line of the table, times its share of the replicas, to a row (31,)."""
    for r in range(2):
        row[9 + r] += weight * cluster[r]
        row[11 + r] += weight * (cluster[r] - replicas * demand[r] * cluster[7 + r])
    for k in range(2, 7):
        row[11 + k] += weight * cluster[k]
    row[18] += 1.0 / clusters


@kernel
def _describe_request(traces, state, outcomes, i, max_replicas, row):
    """Write the columns from `SHARED` on into `row` (31,)."""
    t = state.now[i]
    wanted, capacity, used = traces.replicas[i, t], traces.capacity[i], state.used[i]
    arrival, time_unit = traces.arrival[i, t], traces.unit[2]
    row[19] = wanted / max_replicas
    row[20] = wanted * traces.demand[i, t, 0] * traces.unit[0] / 4.0
    row[21] = wanted * traces.demand[i, t, 1] * traces.unit[1] / 8.0
    row[22] = traces.threshold[i, t] / MAX_MS
    duration = (traces.departure[i, t] - arrival) * time_unit
    row[23] = duration / (1.0 + duration)
    row[24] = traces.increase[i, t] * 5.0
    row[25] = 1.0 - t / traces.replicas.shape[1]
    for r in range(2):
        free, total = 0, 0
        for c in range(len(capacity)):
            free += capacity[c, r] - used[c, r]
            total += capacity[c, r]
        row[26 + r] = free / total
    row[28] = state.sums[i, LAST_GINI]
    rate = (t + 1.0) / max(arrival * time_unit, 1e-9)
    row[29] = rate / (rate + 20.0)
    row[30] = outcomes.refusal[i]
    for k in range(SHARED, FEATURES):
        row[k] = _clip(row[k])


@kernel
def _describe_action(action, accepts, parts, refusal, split, asked, demand, table, row):
    """Write the columns before `SHARED` of one action into `row` (31,)."""
    clusters = len(table)
    row[:SHARED] = 0.0
    row[max(action - clusters + 1, 0)] = 1.0
    if not accepts[action]:
        row[8] = refusal
        return
    copy_row(parts[action], row[5:8])
    if action < clusters:
        _add_cluster(row, table[action], 1.0, asked, demand, clusters)
    else:
        for c in range(clusters):
            here = split[action - clusters, c]
            if here > 0:
                _add_cluster(row, table[c], here / asked, here, demand, clusters)


@allocating_kernel
def write_observations(traces, state, outcomes, which, max_replicas, observations):
    """Refresh `observations` (N, A, 31) of the environments of `which`, in place.

    Rows of illegal actions are 0; so are all rows after the end of an episode.
    """
    clusters = state.load.shape[1]
    row, table = np.zeros(FEATURES), np.zeros((clusters, 9))
    for i in which:
        t, seen = state.now[i], observations[i]
        if t == traces.replicas.shape[1]:
            seen[:] = 0.0
            continue
        _describe_request(traces, state, outcomes, i, max_replicas, row)
        _describe_clusters(
            traces.capacity[i], state.used[i], state.latency[i], state.load[i], traces.unit, table
        )
        accepts, parts, refusal = outcomes.accepts[i], outcomes.parts[i], outcomes.refusal[i]
        split, wanted, demand = outcomes.split[i], traces.replicas[i, t], traces.demand[i, t]
        for a in range(clusters + REFUSAL + 1):
            if outcomes.masks[i, a]:
                _describe_action(a, accepts, parts, refusal, split, wanted, demand, table, row)
                for k in range(FEATURES):
                    seen[a, k] = _clip(row[k])
            else:
                seen[a, :] = 0.0
