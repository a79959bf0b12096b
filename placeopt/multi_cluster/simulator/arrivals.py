"""Compiled: random clusters and requests from a random state per environment (splitmix64), so that an episode depends on its seed alone."""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.kernels.compile import kernel


@kernel
def _uniform(rng, i):
    """Return a number in [0, 1) and go on."""
    rng[i] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[i]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _below(rng, i, n):
    """Return a whole number in [0, n)."""
    return np.int64(_uniform(rng, i) * n)


@kernel
def _exponential(rng, i, mean):
    return -math.log(1.0 - _uniform(rng, i)) * mean


@kernel
def _draw_clusters(w, i, types, background, fill):
    """Draw latencies of 1 to 999 ms, both ways apart, types, and what is taken beforehand."""
    n = w.price.shape[1]
    for a in range(n):
        for b in range(n):
            w.matrix[i, a, b] = 1.0 + _below(w.rng, i, 999) if a != b else 0.0
        w.base[i, a] = w.matrix[i, a].sum() / max(n - 1, 1)
    for c in range(n):
        kind = _below(w.rng, i, len(types))
        w.price[i, c] = types[kind, 2]
        for r in range(2):
            w.capacity[i, c, r] = types[kind, r]
            w.limit[i, c, r] = types[kind, r] * fill // 100
            w.used[i, c, r] = _below(w.rng, i, background + 1)


@kernel
def _draw_requests(w, i, first, deployments, flow, fewest, most):
    """Draw the requests from number `first` on; `flow` is rate, mean duration and largest increase of the latency."""
    for t in range(first, w.replicas.shape[1]):
        kind = _below(w.rng, i, len(deployments))
        w.demand[i, t, 0], w.demand[i, t, 1] = (
            np.int64(deployments[kind, 0]),
            np.int64(deployments[kind, 1]),
        )
        w.threshold[i, t] = deployments[kind, 2]
        w.replicas[i, t] = fewest + _below(w.rng, i, most - fewest + 1)
        before = w.arrival[i, t - 1] if t else 0.0
        w.arrival[i, t] = before + _exponential(w.rng, i, 1.0 / flow[0])
        w.departure[i, t] = w.arrival[i, t] + _exponential(w.rng, i, flow[1])
        w.increase[i, t] = _uniform(w.rng, i) * flow[2]


@kernel
def draw_all(w, which, types, background, fill, deployments, flow, fewest, most):
    """Draw whole episodes of the environments of `which`."""
    for i in which:
        _draw_clusters(w, i, types, background, fill)
        _draw_requests(w, i, 0, deployments, flow, fewest, most)


@kernel
def draw_futures(w, deployments, flow, fewest, most):
    """Draw anew every request after the one at hand."""
    for i in range(len(w.now)):
        _draw_requests(w, i, w.now[i] + 1, deployments, flow, fewest, most)
