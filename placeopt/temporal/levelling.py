"""Starts that level the load of pools over time, compiled.

A reserved machine is paid for the whole horizon. It pays off where requests follow each other on
it: where the load of its pool is level. Requests are taken by decreasing duration; each starts
where the load of its pools is least.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.temporal.pools import PoolArrays, pool_of, served


@kernel
def _shares(genes, instance, request, shares):
    """Write into `shares`, (P,), how many machines of each pool a request fills.

    Returns whether machines of all of its pools are cheaper reserved than on demand for all slots.
    """
    shares[:] = 0.0
    cpu, memory = instance.demand[request, 0], instance.demand[request, 1]
    for replica in range(instance.first[request], instance.first[request + 1]):
        pool = pool_of(instance, genes, replica)
        if instance.price[pool, 1] >= instance.price[pool, 0] * instance.horizon:
            return False
        capacity = instance.capacity[pool]
        shares[pool] += max(cpu / max(capacity[0], 1), memory / max(capacity[1], 1))
    return True


@kernel
def _least_loaded(load, shares, duration):
    """Return the start whose largest load is least, of equal ones the one of least total load.

    `load`, (P, T), is that of the pools; those with `shares`, (P,), above 0 count.
    """
    horizon = load.shape[1]
    best, best_start = np.inf, 0
    for start in range(horizon - duration + 1):
        score = 0.0
        for pool in range(len(shares)):
            if shares[pool] > 0:
                peak = total = 0.0
                for slot in range(start, start + duration):
                    peak = max(peak, load[pool, slot])
                    total += load[pool, slot]
                score += shares[pool] * (peak + 1e-3 * total / duration)
        if score < best - 1e-12:
            best, best_start = score, start
    return best_start


@kernel
def _level(genes, instance, order, load, shares):
    """Choose starts in one vector, (n + R,), in place; overwrites `load` (P, T), `shares` (P,)."""
    load[:] = 0.0
    for request in order:
        if served(instance, request) and _shares(genes, instance, request, shares):
            start = _least_loaded(load, shares, instance.duration[request])
            genes[request] = start
            for pool in range(len(shares)):
                if shares[pool] > 0:
                    for slot in range(start, start + instance.duration[request]):
                        load[pool, slot] += shares[pool]


@kernel
def _level_all(X, instance, order, load, shares):
    """Choose starts in vectors, (k, n + R), in place."""
    for k in range(len(X)):
        _level(X[k], instance, order, load, shares)


def levelled(X: np.ndarray, instance: PoolArrays) -> np.ndarray:
    """Return copies of vectors, shape (k, n + R), with starts that level the load of pools.

    Requests keep their start where a pool of theirs is not cheaper reserved.
    """
    levelled = X.copy()
    order = np.argsort(-instance.duration, kind="stable")
    pools = len(instance.offer)
    load, shares = np.zeros((pools, instance.horizon)), np.zeros(pools)
    _level_all(levelled, instance, order, load, shares)
    return levelled
