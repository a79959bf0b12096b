"""Shapes: what sets of an application's microservices demand together, and what they are charged.

A set of microservices of one application on one node is a bit mask; sets of the same demand have
the same shape. What a shape is charged on a node is one number, ``charge[node, shape]``: all that
is charged for a placement is the sum over the nodes that it uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.edge_cloud.arrays import EdgeCloudArrays

#: Microservices of an application, beyond which its sets are too many.
MOST_SERVICES = 6
#: Loads of a node, beyond which it is not filled exactly: a large node can be filled nearly full.
MOST_LOADS = 8192


class Shapes(NamedTuple):
    """The shapes of an instance; resources are in the greatest unit that all demands share."""

    of: np.ndarray  # int64 (applications, masks) the shape of a set, counted through all
    first: np.ndarray  # int64 (applications + 1,) first shape of an application
    demand: np.ndarray  # int64 (shapes, 2)
    capacity: np.ndarray  # int64 (nodes, 2)
    small: np.ndarray  # int64, the nodes that are filled exactly
    large: np.ndarray  # int64, the others
    unit: np.ndarray  # int64 (2,)


def shapes(instance: EdgeCloudArrays) -> Shapes | None:
    """Return the shapes of an instance; None where an application has too many microservices."""
    counts = np.diff(instance.first)
    if counts.max() > MOST_SERVICES:
        return None
    unit = np.maximum(np.gcd.reduce(instance.demand), 1)
    masks = np.arange(1 << counts.max())
    bits = masks[:, None] >> np.arange(counts.max()) & 1
    of, first, demands = np.zeros((len(counts), len(masks)), dtype=np.int64), [0], []
    for application, count in enumerate(counts):
        begin = instance.first[application]
        own = instance.demand[begin : begin + count] // unit
        sums = bits[1 : 1 << count, :count] @ own
        demand, index = np.unique(sums, axis=0, return_inverse=True)
        of[application, 1 : 1 << count] = first[-1] + index.ravel()
        demands.append(demand)
        first.append(first[-1] + len(demand))
    capacity = instance.capacity // unit
    small = (capacity + 1.0).prod(axis=1) <= MOST_LOADS  # floats: whole numbers overflow
    nodes = np.flatnonzero(small), np.flatnonzero(~small)
    return Shapes(of, np.array(first), np.concatenate(demands), capacity, *nodes, unit)
