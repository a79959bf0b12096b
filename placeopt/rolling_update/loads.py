"""Kernels on the load of nodes.

They take the arrays that they need, ``load`` and ``capacity`` of shape (N, 2): a tuple would cost a
reference count for each of its arrays at every call.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def fits(capacity, load, size, i, n):
    """Return whether ``size[i]`` fits node n beside its load; size (items, 2)."""
    return load[n, 0] + size[i, 0] <= capacity[n, 0] and load[n, 1] + size[i, 1] <= capacity[n, 1]


@kernel
def overloaded(capacity, load, n):
    """Return whether the load of node n is over its capacity."""
    return load[n, 0] > capacity[n, 0] or load[n, 1] > capacity[n, 1]


@kernel
def overflow(capacity, load, n, cpu, memory):
    """Return by what share of its capacity node n is overloaded after a change of its load."""
    cpu, memory = cpu + load[n, 0] - capacity[n, 0], memory + load[n, 1] - capacity[n, 1]
    return max(0, cpu) / max(1, capacity[n, 0]) + max(0, memory) / max(1, capacity[n, 1])


@kernel
def share(capacity, n, cpu, memory):
    """Return the share of node n that an amount takes, of the scarcer resource."""
    return max(cpu / max(1, capacity[n, 0]), memory / max(1, capacity[n, 1]))
