"""The independent parts of temporal vectors, compiled.

Replicas meet in machines of one location, and the replicas of a request start together. So what
some locations serve is independent of all else in a plan, if no request has replicas both there and
elsewhere. The smallest such groups of locations are the parts.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import mix
from placeopt.core.kernels.union_find import join, root
from placeopt.temporal.pools import pool_of, served


@kernel
def _join_places(genes, instance, parent):
    """Make `parent`, shape (places,), the sets of locations that requests are spread over."""
    n = len(instance.duration)
    for place in range(len(parent)):
        parent[place] = place
    for request in range(n):
        begin = instance.first[request]
        last = -1
        for replica in range(begin + 1, instance.first[request + 1]):
            gene = genes[n + replica]
            if gene != genes[n + begin] and gene != last:
                last = gene
                join(
                    parent,
                    instance.place[pool_of(instance, genes, replica)],
                    instance.place[pool_of(instance, genes, begin)],
                )


@kernel
def _add(genes, instance, request, parent, label, key, values):
    """Add a request to its part, in place: its hash to `key`, its terms of (6), (8) to `values`."""
    n, begin, end = len(instance.duration), instance.first[request], instance.first[request + 1]
    part = root(parent, instance.place[pool_of(instance, genes, begin)])
    label[request] = part
    key[part] += mix(np.uint64(request + 1) * np.uint64(0x9E3779B97F4A7C15))
    latency = interruption = 0.0
    gene, pool = -1, 0
    for replica in range(begin, end):
        label[n + replica] = part
        if genes[n + replica] != gene:
            gene = genes[n + replica]
            pool = pool_of(instance, genes, replica)
            latency = max(latency, instance.latency[request, pool])
        interruption += instance.frequency[pool]
    values[part, 0] += latency / n
    values[part, 2] += interruption / ((end - begin) * n)


@allocating_kernel
def find(X, costs, instance):
    """Return the parts of k vectors X, shape (k, num_genes).

    `costs`, shape (k, places), is what each location costs. A part has the number of one of its
    locations. Returns the part of each gene, (k, num_genes), the key of each part, (k, places), and
    its values (6), (7), (8), (k, places, 3).
    """
    label = np.full(X.shape, -1, dtype=np.int16)
    key = np.zeros(costs.shape, dtype=np.uint64)
    values = np.zeros((*costs.shape, 3))
    parent = np.empty(costs.shape[1], dtype=np.int64)
    for k in range(len(X)):
        _join_places(X[k], instance, parent)
        for request in range(len(instance.duration)):
            if served(instance, request):
                _add(X[k], instance, request, parent, label[k], key[k], values[k])
        for place in range(len(parent)):
            values[k, root(parent, place), 1] += costs[k, place]
    return label, key, values
