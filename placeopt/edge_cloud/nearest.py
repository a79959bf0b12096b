"""The nearest node with room, without a second look at nodes that are full for good.

While a vector is decoded room only shrinks, so that a node without room for any microservice stays
full. Each search from a node remembers how many full ones come next to each other in its order. A
microservice that is taken back, which is rare, makes all searches forget that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.kernels import fits


class FullNodes(NamedTuple):
    """What is full, and what searches know of that; scratch."""

    least: np.ndarray  # (2,) the least demand of any microservice, each resource by itself
    is_full: np.ndarray  # (nodes,)
    skip: np.ndarray  # (nodes, nodes) int32: from a rank in ``near[v]`` on, the next to look at
    age: np.ndarray  # (nodes,) the age in which a row of `skip` was written
    now: np.ndarray  # (1,) the present age


def no_full_nodes(instance: EdgeCloudArrays) -> FullNodes:
    """Return scratch for `nearest_fit`; call `forget` before the first search."""
    count = len(instance.capacity)
    return FullNodes(
        least=instance.demand.min(axis=0),
        is_full=np.zeros(count, dtype=bool),
        skip=np.zeros((count, count), dtype=np.int32),
        age=np.zeros(count, dtype=np.int64),
        now=np.zeros(1, dtype=np.int64),
    )


@kernel
def note(full, room, node):
    """Write whether a node is full; room (nodes, 2). Changes `full`."""
    full.is_full[node] = room[node, 0] < full.least[0] or room[node, 1] < full.least[1]


@kernel
def forget(full, room):
    """Write anew which nodes are full, and forget all else; room (nodes, 2). Changes `full`."""
    full.now[0] += 1
    for node in range(len(room)):
        note(full, room, node)


@kernel
def nearest_fit(instance, full, placement, service, wanted):
    """Return the node nearest to the wanted one where a microservice fits, -1 for none.

    Changes what `full` knows.
    """
    if wanted < 0 or fits(instance, placement, service, wanted):
        return wanted
    near, skip, is_full = instance.near[wanted], full.skip[wanted], full.is_full
    if full.age[wanted] != full.now[0]:
        full.age[wanted] = full.now[0]
        for rank in range(len(skip)):
            skip[rank] = rank
    rank = 0
    while rank < len(near):
        first, rank = rank, skip[rank]
        while rank < len(near) and is_full[near[rank]]:
            rank = skip[rank + 1] if rank + 1 < len(near) else rank + 1
        skip[first] = rank
        if rank == len(near) or instance.delay[wanted, near[rank]] == np.inf:
            return -1
        if fits(instance, placement, service, near[rank]):
            return near[rank]
        rank += 1
    return -1
