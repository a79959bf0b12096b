"""Random clusters and requests; an environment draws from its own generator, ``state.rng[i]``."""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import uniform


@kernel
def _integer(rng, i, bound):
    """Return a random integer of [0, bound)."""
    return np.int64(uniform(rng, i) * bound)


@kernel
def _exponential(rng, i, mean):
    return -math.log(1.0 - uniform(rng, i)) * mean


@kernel
def _draw_clusters(traces, state, i, types, background):
    """Draw latencies of 1 to 999 ms, both ways apart, types, and what is allocated beforehand."""
    clusters, rng = traces.price.shape[1], state.rng
    for a in range(clusters):
        for b in range(clusters):
            state.matrix[i, a, b] = 1.0 + _integer(rng, i, 999) if a != b else 0.0
        traces.base[i, a] = state.matrix[i, a].sum() / (clusters - 1)
    for c in range(clusters):
        kind = _integer(rng, i, len(types))
        traces.price[i, c] = types[kind, 2]
        for r in range(2):
            traces.capacity[i, c, r] = types[kind, r]
            state.used[i, c, r] = _integer(rng, i, background + 1)


@kernel
def _draw_requests(traces, rng, i, deployments, flow, replicas):
    for t in range(traces.replicas.shape[1]):
        kind = _integer(rng, i, len(deployments))
        for r in range(2):
            traces.demand[i, t, r] = np.int64(deployments[kind, r])
        traces.threshold[i, t] = deployments[kind, 2]
        traces.replicas[i, t] = replicas[0] + _integer(rng, i, replicas[1] - replicas[0] + 1)
        before = traces.arrival[i, t - 1] if t else 0.0
        traces.arrival[i, t] = before + _exponential(rng, i, 1.0 / flow[0])
        traces.departure[i, t] = traces.arrival[i, t] + _exponential(rng, i, flow[1])
        traces.increase[i, t] = uniform(rng, i) * flow[2]


@kernel
def draw_all(traces, state, which, types, background, deployments, flow, replicas):
    """Draw whole episodes of the environments of `which`, in place.

    `types` (k, 3) holds cpu, memory and cost; `background` is the highest allocation beforehand;
    `deployments` (k, 3) holds cpu, memory and latency threshold; `flow` (3,) is the rate, the mean
    duration and the highest increase of the latency; `replicas` is a pair, least and greatest.
    """
    for i in which:
        _draw_clusters(traces, state, i, types, background)
        _draw_requests(traces, state.rng, i, deployments, flow, replicas)
