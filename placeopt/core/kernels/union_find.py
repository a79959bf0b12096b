"""Disjoint sets in an array: each member leads to another of its set, or to itself, the root.

>>> import numpy as np
>>> parent = np.arange(4)
>>> join(parent, 0, 3)
True
>>> join(parent, 3, 0), root(parent, 0) == root(parent, 3), root(parent, 1)
(False, True, 1)
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel


@kernel
def root(parent, member):
    """Return the root of a member's set; shortens the path in `parent`, shape (members,)."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@kernel
def join(parent, one, other):
    """Make one set of two, in place; return whether they were two."""
    one, other = root(parent, one), root(parent, other)
    parent[one] = other
    return one != other
