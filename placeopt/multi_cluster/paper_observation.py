"""The observation of the HephaestusForge paper: the ten columns of its Table 3.

0 to 4
    Of the cluster: cpu in use, cpu, memory in use, memory, latency; -1 for spreads and the refusal.
5 to 9
    Of the request: replicas, cpu, memory, latency threshold, time since the request before.
"""

from __future__ import annotations

import numpy as np

from placeopt.multi_cluster.simulator.state import MAX_MS, EnvironmentState, EpisodeData

#: Columns of a row; cores and GiB of the largest cluster, which scale them.
PAPER_FEATURES, LARGEST = 10, (8.0, 32.0)


def paper_rows(
    traces: EpisodeData, state: EnvironmentState, actions: int, max_replicas: int, rate: float
) -> np.ndarray:
    """Return the observation of the paper's Table 3, float32 of shape (N, `actions`, 10).

    Each column is divided by a constant so that networks can read it: cores and GiB by those of
    the largest cluster, ms by 1000, replicas by `max_replicas`, times by the mean one, 1 / `rate`.
    All rows are 0 after the end of an episode.
    """
    clusters, steps = state.load.shape[1], traces.replicas.shape[1]
    now = np.minimum(state.now, steps - 1)
    everyone = np.arange(len(now))
    before = np.where(now > 0, traces.arrival[everyone, now - 1], 0.0)
    demand = traces.demand[everyone, now] * traces.unit[:2]
    request = np.column_stack(
        (
            traces.replicas[everyone, now] / max_replicas,
            demand,
            traces.threshold[everyone, now] / MAX_MS,
            (traces.arrival[everyone, now] - before) * traces.unit[2] * rate,
        )
    )
    rows = np.full((len(now), actions, PAPER_FEATURES), -1.0, dtype=np.float32)
    scale = traces.unit[:2] / np.array(LARGEST)
    rows[:, :clusters, 0:4:2] = state.used * scale
    rows[:, :clusters, 1:4:2] = traces.capacity * scale
    rows[:, :clusters, 4] = state.latency / MAX_MS
    rows[:, :, 5:] = request[:, None]
    rows[state.now == steps] = 0.0
    return rows
