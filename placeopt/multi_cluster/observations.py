"""Compiled: the rows that a policy sees, one per action."""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel

#: As in `placeopt.multi_cluster.simulator.state`.
REJECT = 3
#: Columns of a row; see `placeopt.multi_cluster.batch.MultiCluster`. From `SHARED` on they are the same in every row.
FEATURES, SHARED = 31, 19
LARGEST = 1000.0


@kernel
def _clip(x):
    return min(max(x, -1.0), 1.0)


@kernel
def _of_clusters(capacity, used, latency, load, unit, table):
    """Write what is known of every cluster: columns 9, 10 and 13 to 17 of a row, then free shares per resource unit."""
    clusters, total = len(load), 0
    for c in range(clusters):
        total += load[c]
    for c in range(clusters):
        for r in range(2):
            table[c, r] = (capacity[c, r] - used[c, r]) / capacity[c, r]
            table[c, 7 + r] = 1.0 / capacity[c, r]
        table[c, 2] = _clip(capacity[c, 0] * unit[0] / 8.0)
        table[c, 3] = _clip(capacity[c, 1] * unit[1] / 32.0)
        table[c, 4] = latency[c] / LARGEST
        table[c, 5] = load[c] / total if total > 0 else 0.0
        table[c, 6] = 0.25 * clusters * table[c, 5]


@kernel
def _add_cluster(row, table, c, weight, cpu, memory, wide):
    """Add cluster c to a row, `weight` being its share of the replicas, which ask it for cpu and memory."""
    row[9] += weight * table[c, 0]
    row[10] += weight * table[c, 1]
    row[11] += weight * (table[c, 0] - cpu * table[c, 7])
    row[12] += weight * (table[c, 1] - memory * table[c, 8])
    for k in range(2, 7):
        row[11 + k] += weight * table[c, k]
    row[18] += wide


@kernel
def _of_request(w, i, t, most, row):
    """Write what is the same for every action: the request at hand, and the episode."""
    asked = w.replicas[i, t]
    row[19] = asked / most
    row[20] = asked * w.demand[i, t, 0] * w.unit[0] / 4.0
    row[21] = asked * w.demand[i, t, 1] * w.unit[1] / 8.0
    row[22] = w.threshold[i, t] / LARGEST
    lasts = (w.departure[i, t] - w.arrival[i, t]) * w.unit[2]
    row[23] = lasts / (1.0 + lasts)
    row[24] = w.increase[i, t] * 5.0
    row[25] = 1.0 - t / w.replicas.shape[1]
    for r in range(2):
        free, capacity = 0, 0
        for c in range(w.price.shape[1]):
            free += w.capacity[i, c, r] - w.used[i, c, r]
            capacity += w.capacity[i, c, r]
        row[26 + r] = free / capacity
    row[28] = w.sums[i, 5]
    rate = (t + 1.0) / max(w.arrival[i, t] * w.unit[2], 1e-9)
    row[29] = rate / (rate + 20.0)
    row[30] = w.refusal[i]
    for k in range(SHARED, FEATURES):
        row[k] = _clip(row[k])


@kernel
def _row(a, accepts, parts, refusal, split, asked, cpu, memory, table, row):
    """Write the columns of one action; the shared ones stand already."""
    clusters = len(table)
    row[:SHARED] = 0.0
    row[max(a - clusters + 1, 0)] = 1.0
    if not accepts[a]:
        row[8] = refusal
        return
    row[5:8] = parts[a]
    if a < clusters:
        _add_cluster(row, table, a, 1.0, asked * cpu, asked * memory, 1.0 / clusters)
    else:
        for c in range(clusters):
            here = split[a - clusters, c]
            if here > 0:
                _add_cluster(row, table, c, here / asked, here * cpu, here * memory, 1.0 / clusters)


@kernel
def show_all(w, which, most, published, masks, observations):
    """Refresh the observations of the environments of `which`; rows of illegal actions are 0, and all are after the end."""
    clusters = w.price.shape[1]
    row, table = np.zeros(FEATURES), np.zeros((clusters, 9))
    for i in which:
        t = w.now[i]
        accepts, mask, seen = w.accepts[i], masks[i], observations[i]
        if t == w.replicas.shape[1]:
            seen[:] = 0.0
            continue
        _of_request(w, i, t, most, row)
        _of_clusters(w.capacity[i], w.used[i], w.latency[i], w.load[i], w.unit, table)
        for a in range(clusters + REJECT + 1):
            if mask[a]:
                _row(
                    a,
                    accepts,
                    w.parts[i],
                    w.refusal[i],
                    w.split[i],
                    w.replicas[i, t],
                    w.demand[i, t, 0],
                    w.demand[i, t, 1],
                    table,
                    row,
                )
                for k in range(SHARED):
                    seen[a, k] = _clip(row[k])
                for k in range(SHARED, FEATURES):
                    seen[a, k] = row[k]
            else:
                seen[a, :] = 0.0
