"""The independent parts of temporal vectors, compiled.

Replicas meet in machines of one location, and the replicas of a request start together. So what some locations serve is
independent of all else in a plan, if no request has replicas both there and elsewhere: the smallest such groups are the parts.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel


@kernel
def _root(joined, place):
    while joined[place] != place:
        place = joined[place]
    return place


@kernel
def _join(genes, t, joined):
    """Join the locations over which a request is spread: each location leads to another of its part, or is its root."""
    first, legal_first, legal, where = t.first, t.legal_first, t.legal, t.place
    n = len(t.duration)
    for place in range(len(joined)):
        joined[place] = place
    for i in range(n):
        low, gene, last = legal_first[i], genes[n + first[i]], -1
        for r in range(n + first[i] + 1, n + first[i + 1]):
            if genes[r] != gene and genes[r] != last:
                last = genes[r]
                joined[_root(joined, where[legal[low + last]])] = _root(
                    joined, where[legal[low + gene]]
                )


@kernel
def _name(i):
    """Return a random-looking number for request i: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    z = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _add(genes, t, i, joined, label, key, values):
    """Add request i to its part: its name, and its shares of (6) and (8)."""
    legal, latency, frequency = t.legal, t.latency, t.frequency
    n, low, high, shift = len(t.duration), t.first[i], t.first[i + 1], t.legal_first[i]
    part = _root(joined, t.place[legal[shift + genes[n + low]]])
    label[i] = part
    key[part] += _name(i)
    worst = spot = 0.0
    gene, p = -1, 0
    for r in range(n + low, n + high):
        label[r] = part
        if genes[r] != gene:
            gene = genes[r]
            p = legal[shift + gene]
            worst = max(worst, latency[i, p])
        spot += frequency[p]
    values[part, 0] += worst / n
    values[part, 2] += spot / ((high - low) * n)


@kernel
def find(X, costs, t):
    """Return labels of genes (k, num_genes), keys (k, places) and values of (6), (7), (8) (k, places, 3) of the parts of k vectors.

    A part has the number of one of its locations. `costs` are those of each location, shape (k, places).
    """
    label = np.full(X.shape, -1, dtype=np.int16)
    key = np.zeros(costs.shape, dtype=np.uint64)
    values = np.zeros((*costs.shape, 3))
    joined = np.empty(costs.shape[1], dtype=np.int64)
    for k in range(len(X)):
        _join(X[k], t, joined)
        for i in range(len(t.duration)):
            if t.legal_first[i + 1] > t.legal_first[i]:
                _add(X[k], t, i, joined, label[k], key[k], values[k])
        for place in range(len(joined)):
            values[k, _root(joined, place), 1] += costs[k, place]
    return label, key, values
