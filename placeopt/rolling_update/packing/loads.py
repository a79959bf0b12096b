"""Kernels on the load of nodes.

They take the arrays that they need, ``load`` and ``capacity`` of shape (N, R): a tuple would cost a
reference count for each of its arrays at every call. CPU and memory are the first two resources,
written out, as most instances have no others.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def fits(capacity, load, size, i, n):
    """Return whether ``size[i]`` fits node n beside its load; size (items, R)."""
    if load[n, 0] + size[i, 0] > capacity[n, 0] or load[n, 1] + size[i, 1] > capacity[n, 1]:
        return False
    for r in range(2, capacity.shape[1]):
        if size[i, r] > 0 and load[n, r] + size[i, r] > capacity[n, r]:
            return False
    return True


@kernel
def overloaded(capacity, load, n):
    """Return whether the load of node n is over its capacity."""
    if load[n, 0] > capacity[n, 0] or load[n, 1] > capacity[n, 1]:
        return True
    over = False
    for r in range(2, capacity.shape[1]):
        over = over or load[n, r] > capacity[n, r]
    return over


@kernel
def excess(capacity, n, r, amount):
    """Return by what share of its capacity an amount of resource r overloads node n."""
    return max(0, amount - capacity[n, r]) / max(1, capacity[n, r])


@kernel
def overflow(capacity, load, n):
    """Return by what share of its capacity node n is overloaded."""
    over = excess(capacity, n, 0, load[n, 0]) + excess(capacity, n, 1, load[n, 1])
    for r in range(2, capacity.shape[1]):
        over += excess(capacity, n, r, load[n, r])
    return over


@kernel
def overflow_with(capacity, load, size, n, i):
    """Return the overflow of node n after item i arrives."""
    over = excess(capacity, n, 0, load[n, 0] + size[i, 0])
    over += excess(capacity, n, 1, load[n, 1] + size[i, 1])
    if capacity.shape[1] > 2:
        for r in range(2, capacity.shape[1]):
            over += excess(capacity, n, r, load[n, r] + size[i, r])
    return over


@kernel
def overflow_without(capacity, load, size, n, j):
    """Return the overflow of node n after item j leaves."""
    over = excess(capacity, n, 0, load[n, 0] - size[j, 0])
    over += excess(capacity, n, 1, load[n, 1] - size[j, 1])
    if capacity.shape[1] > 2:
        for r in range(2, capacity.shape[1]):
            over += excess(capacity, n, r, load[n, r] - size[j, r])
    return over


@kernel
def overflow_swapped(capacity, load, size, n, i, j):
    """Return the overflow of node n after item i arrives and item j leaves."""
    over = excess(capacity, n, 0, load[n, 0] + size[i, 0] - size[j, 0])
    over += excess(capacity, n, 1, load[n, 1] + size[i, 1] - size[j, 1])
    if capacity.shape[1] > 2:
        for r in range(2, capacity.shape[1]):
            over += excess(capacity, n, r, load[n, r] + size[i, r] - size[j, r])
    return over


@kernel
def share(capacity, n, amounts):
    """Return the share of node n that amounts (R,) take, of the scarcest resource."""
    most = max(amounts[0] / max(1, capacity[n, 0]), amounts[1] / max(1, capacity[n, 1]))
    for r in range(2, capacity.shape[1]):
        most = max(most, amounts[r] / max(1, capacity[n, r]))
    return most


@kernel
def share_with(capacity, load, size, n, i):
    """Return the share of node n that is taken after item i arrives, of the scarcest resource."""
    most = max(
        (load[n, 0] + size[i, 0]) / max(1, capacity[n, 0]),
        (load[n, 1] + size[i, 1]) / max(1, capacity[n, 1]),
    )
    for r in range(2, capacity.shape[1]):
        most = max(most, (load[n, r] + size[i, r]) / max(1, capacity[n, r]))
    return most
