"""Starts that level the load of pools over time, compiled.

A reserved machine is paid for the whole horizon. It pays off where requests follow each other on
it: where the load of its pool is level. Requests are taken by decreasing duration; each starts
where the load of its pools is least. Short slots are looked at in cells of several, so that the
work does not depend on the length of a slot.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.temporal.pools import PoolArrays, pool_of, served

#: Cells of a horizon, at most; a horizon of fewer slots has one for each.
MAX_CELLS = 128


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
    """Return the cell whose largest load is least, of equal ones the one of least total load.

    `load`, (P, cells), is that of the pools; those with `shares`, (P,), above 0 count. `duration`
    is in cells.
    """
    best, best_cell = np.inf, 0
    for start in range(load.shape[1] - duration + 1):
        score = 0.0
        for pool in range(len(shares)):
            if shares[pool] > 0:
                peak = total = 0.0
                for cell in range(start, start + duration):
                    peak = max(peak, load[pool, cell])
                    total += load[pool, cell]
                score += shares[pool] * (peak + 1e-3 * total / duration)
        if score < best - 1e-12:
            best, best_cell = score, start
    return best_cell


@kernel
def _level(genes, instance, order, width, load, shares):
    """Choose starts in one vector, (n + R,), in place; overwrites `load` (P, C), `shares` (P,).

    A cell has `width` slots. The last one may reach beyond the horizon: a request that would end
    there starts earlier.
    """
    load[:] = 0.0
    for request in order:
        if served(instance, request) and _shares(genes, instance, request, shares):
            duration = -(-instance.duration[request] // width)
            cell = _least_loaded(load, shares, duration)
            genes[request] = min(cell * width, instance.horizon - instance.duration[request])
            for pool in range(len(shares)):
                if shares[pool] > 0:
                    for k in range(cell, cell + duration):
                        load[pool, k] += shares[pool]


@kernel
def _level_all(X, instance, order, width, load, shares):
    """Choose starts in vectors, (k, n + R), in place."""
    for k in range(len(X)):
        _level(X[k], instance, order, width, load, shares)


def levelled(X: np.ndarray, instance: PoolArrays) -> np.ndarray:
    """Return copies of vectors, shape (k, n + R), with starts that level the load of pools.

    Requests keep their start where a pool of theirs is not cheaper reserved.
    """
    levelled = X.copy()
    order = np.argsort(-instance.duration, kind="stable")
    width = -(-instance.horizon // MAX_CELLS)
    pools, cells = len(instance.offer), -(-instance.horizon // width)
    load, shares = np.zeros((pools, cells)), np.zeros(pools)
    _level_all(levelled, instance, order, width, load, shares)
    return levelled
