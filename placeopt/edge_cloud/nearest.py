"""The nearest node with room, for vectors that are decoded.

Nodes are in groups of like size, which fill up at about the same time. Each node knows the others
group by group, nearest first, and how near and how far those of a group are: many flows are within
their limit to all nodes of a group, or to none, and need no look at the nodes. While a vector is
decoded room only shrinks, so that a node without room for any microservice stays full; a search
passes over the full ones that come first, and looks at the open ones alone where they are few.

Delays are compared by their codes, their places among all delays there are: two bytes instead of
eight are in the processor's cache more often, which is what searches of large instances wait for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import inlined_kernel, kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays

#: Nodes of a group hold as many mean microservices to a factor of this.
GROUP_FACTOR = 32


class NearNodes(NamedTuple):
    """The nodes as searches see them; `small` is uint16, or int32 where that is too short."""

    group: np.ndarray  # (nodes,)
    first: np.ndarray  # (groups + 1,) where a group begins in a row of `near`
    near: np.ndarray  # (nodes, nodes) small; row v: nodes by group, then by their delay from v
    code: np.ndarray  # (nodes, nodes) small; which of `delays` is between two nodes
    delays: np.ndarray  # all delays there are, ms, rising; inf at the end where some are unknown
    last: int  # the code of the largest delay that is known
    nearest: np.ndarray  # (nodes, groups) the least code to another node of a group
    farthest: np.ndarray  # (nodes, groups) the largest code to a node of a group
    flow_limit: np.ndarray  # (2 flows,) the largest code within the limit of a flow
    least: np.ndarray  # (2,) the least demand of any microservice, each resource by itself
    too_small: np.ndarray  # (nodes,) bool: has no room for any


class OpenNodes(NamedTuple):
    """Which nodes are not full; scratch."""

    is_full: np.ndarray  # (nodes,)
    left: np.ndarray  # (groups,) open nodes
    most: np.ndarray  # (groups,) open nodes while nothing is placed
    nodes: np.ndarray  # (nodes,) nodes group by group, in each first the open ones
    place: np.ndarray  # (nodes,) where a node stands in `nodes`
    head: np.ndarray  # (nodes, groups) how many nodes of a group, nearest first, are full
    ends: np.ndarray  # (most flows of a microservice + 1, 2) a node, and the largest code from it


def near_nodes(instance: EdgeCloudArrays) -> NearNodes:
    """Return the nodes of an instance by group and delay."""
    group = _groups(instance)
    first = np.cumsum([0, *np.bincount(group)])
    near = narrow(instance.near, len(group))
    for row in near:
        row[:] = row[np.argsort(group[row], kind="stable")]
    delays = np.unique(instance.delay)
    code = narrow(np.searchsorted(delays, instance.delay), len(delays) + 1)
    last = int(np.isfinite(delays).sum()) - 1
    others = code.copy()
    np.fill_diagonal(others, len(delays))
    columns = [np.flatnonzero(group == g) for g in range(len(first) - 1)]
    least = instance.demand.min(axis=0)
    within = np.searchsorted(delays, instance.flow_limit, side="right") - 1
    return NearNodes(
        group=group,
        first=first,
        near=near,
        code=code,
        delays=delays,
        last=last,
        nearest=np.stack([others[:, c].min(axis=1) for c in columns], axis=1).astype(np.int64),
        farthest=np.stack([code[:, c].max(axis=1) for c in columns], axis=1).astype(np.int64),
        flow_limit=np.minimum(within, last),
        least=least,
        too_small=np.any(instance.capacity < least, axis=1),
    )


def narrow(numbers: np.ndarray, count: int) -> np.ndarray:
    """Return whole numbers below a count in the type of `NearNodes`."""
    return numbers.astype(np.uint16 if count <= 2**16 else np.int32)


def _groups(instance: EdgeCloudArrays) -> np.ndarray:
    """Return the group of each node, (nodes,), small nodes first; no group is empty."""
    mean = np.maximum(instance.demand.mean(axis=0), 1e-9)
    held = np.maximum((instance.capacity / mean).min(axis=1), 1.0)
    return np.unique(np.log(held) // np.log(GROUP_FACTOR), return_inverse=True)[1].ravel()


def open_nodes(instance: EdgeCloudArrays, near: NearNodes) -> OpenNodes:
    """Return scratch for `nearest_fit`; call `reopen` before the first search."""
    count, groups = len(near.group), len(near.first) - 1
    nodes = np.lexsort((near.too_small, near.group))
    return OpenNodes(
        is_full=near.too_small.copy(),
        left=np.zeros(groups, dtype=np.int64),
        most=np.bincount(near.group[~near.too_small], minlength=groups),
        nodes=nodes,
        place=np.argsort(nodes),
        head=np.zeros((count, groups), dtype=np.int64),
        ends=np.zeros((int(np.diff(instance.flow_first).max()) + 1, 2), dtype=np.int64),
    )


@kernel
def reopen(near, free):
    """Open all nodes again; changes `free`."""
    free.head[:] = 0
    for group in range(len(free.left)):
        free.left[group] = free.most[group]
    for node in range(len(free.is_full)):
        free.is_full[node] = near.too_small[node]


@inlined_kernel
def note(near, free, room, node):
    """Take a node off the open ones where it is full for good; changes `free`."""
    if free.is_full[node] or (room[node, 0] >= near.least[0] and room[node, 1] >= near.least[1]):
        return
    group = near.group[node]
    free.is_full[node] = True
    free.left[group] -= 1
    here, there = free.place[node], near.first[group] + free.left[group]
    other = free.nodes[there]
    free.nodes[here], free.nodes[there] = other, node
    free.place[other], free.place[node] = here, there


@inlined_kernel
def _holds(instance, near, placement, service, node):
    """Return whether a node that has a delay from the source can take a microservice."""
    if (
        instance.demand[service, 0] > placement.room[node, 0]
        or instance.demand[service, 1] > placement.room[node, 1]
    ):
        return False
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        end, limit = placement.hosts[instance.flow_other[flow]], near.flow_limit[flow]
        if end >= 0 and near.code[end, node] > limit:
            return False
    return True


@inlined_kernel
def _limits(instance, near, free, placement, service, group):
    """Write to `free.ends` what nodes of a group can be too far from.

    Returns how many ends there are, and the only node that is near enough to one of them: -1 where
    there may be more.
    """
    count, only = 0, -1
    source = instance.source[instance.application_of[service]]
    if near.farthest[source, group] > near.last:
        free.ends[0, 0], free.ends[0, 1], count = source, near.last, 1
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        end, limit = placement.hosts[instance.flow_other[flow]], near.flow_limit[flow]
        if end >= 0 and near.farthest[end, group] > limit:
            free.ends[count, 0], free.ends[count, 1] = end, limit
            count += 1
            if near.nearest[end, group] > limit:
                only = end
    return count, only


@inlined_kernel
def _within(code, ends, count, node):
    """Return whether a node is near enough to all ends."""
    for k in range(count):  # noqa: SIM110
        if code[ends[k, 0], node] > ends[k, 1]:
            return False
    return True


@inlined_kernel
def nearest_fit(instance, near, free, placement, service, wanted):
    """Return the node nearest to the wanted one where a microservice fits, -1 for none.

    The wanted node has a delay from the source; -1 stays -1. Changes what `free` knows.
    """
    if wanted < 0 or _holds(instance, near, placement, service, wanted):
        return wanted
    room, row, far = placement.room, near.near[wanted], near.code[wanted]
    cpu, memory = instance.demand[service, 0], instance.demand[service, 1]
    best, least = np.int64(-1), np.int64(near.last + 1)
    for group in range(len(free.left)):
        if free.left[group] == 0 or near.nearest[wanted, group] > least:
            continue
        count, only = _limits(instance, near, free, placement, service, group)
        first, end, listed = near.first[group], near.first[group + 1], free.left[group]
        if only < 0 and listed * listed > end - first:
            rank = first + free.head[wanted, group]
            while free.is_full[row[rank]]:
                rank += 1
            free.head[wanted, group] = rank - first
            while rank < end:
                node = np.int64(row[rank])
                rank += 1
                if cpu <= room[node, 0] and memory <= room[node, 1]:
                    delay = np.int64(far[node])
                    if delay > least or (delay == least and node > best):
                        break
                    if _within(near.code, free.ends, count, node):
                        best, least = node, delay
                        break
            continue
        if only >= 0:
            listed = 1 if near.group[only] == group else 0
        for k in range(first, first + listed):
            node = free.nodes[k] if only < 0 else only
            if cpu <= room[node, 0] and memory <= room[node, 1]:
                delay = np.int64(far[node])
                nearer = delay < least or (delay == least and node < best)
                if nearer and _within(near.code, free.ends, count, node):
                    best, least = node, delay
    return best
