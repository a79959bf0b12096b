"""All placements of an application that cost at most so much with what they are charged.

An application is cut into sets of microservices, one for each node that it uses. Sets and their
nodes are tried depth first: nodes are admitted in order of their delay from the source, and one set
is on the node that was admitted last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.exact_placement import BIG

#: Costs that differ by less are equal.
ROUNDING = 1e-9


class Listing(NamedTuple):
    """Placements of one application at a time, and the scratch of their search.

    m is the most microservices of an application; positions count nodes by their delay.
    """

    nodes: np.ndarray  # int64 (room, m) node of each set, -1 for none
    masks: np.ndarray  # int64 (room, m) the sets
    plain: np.ndarray  # (room,) weighted sum
    value: np.ndarray  # (room,) with what is charged
    worth: np.ndarray  # (masks, nodes) of a set by position, charged
    cost: np.ndarray  # (masks, nodes) the same without charges
    least: np.ndarray  # (masks,) least worth at the positions before
    rest: np.ndarray  # (masks,) least worth of sets that make up a mask
    hosts: np.ndarray  # int64 (microservices,) -1 between searches
    used: np.ndarray  # bool (nodes,) by position; False between searches
    node_at: np.ndarray  # int64 (nodes,)
    left: np.ndarray  # int64 (m + 1,) mask that is not placed, at each depth
    others: np.ndarray  # int64 (m + 1,) what joins the first of it, at each depth
    position: np.ndarray  # int64 (m + 1,)
    sums: np.ndarray  # (m + 1, 2) plain and charged sum of what is placed


def new_listing(instance: EdgeCloudArrays, room: int) -> Listing:
    """Return an empty listing of at most `room` placements."""
    m, nodes = int(np.diff(instance.first).max()), len(instance.capacity)
    return Listing(
        nodes=np.full((room, m), -1),
        masks=np.zeros((room, m), dtype=np.int64),
        plain=np.zeros(room),
        value=np.zeros(room),
        worth=np.zeros((1 << m, nodes)),
        cost=np.zeros((1 << m, nodes)),
        least=np.zeros(1 << m),
        rest=np.zeros(1 << m),
        hosts=np.full(len(instance.demand), -1),
        used=np.zeros(nodes, dtype=np.bool_),
        node_at=np.zeros(nodes, dtype=np.int64),
        left=np.zeros(m + 1, dtype=np.int64),
        others=np.zeros(m + 1, dtype=np.int64),
        position=np.zeros(m + 1, dtype=np.int64),
        sums=np.zeros((m + 1, 2)),
    )


@kernel
def _weigh(instance, known, weight, charge, begin, listing, application, node, position):
    """Write what each set costs on a node, with and without charges; see `list_placements`."""
    first = instance.first[application]
    count = instance.first[application + 1] - first
    listing.node_at[position] = node
    listing.cost[0, position] = 0.0
    for mask in range(1, 1 << count):
        lowest, j = mask & -mask, 0
        while lowest >> j != 1:
            j += 1
        cost = instance.operating[node] + instance.network[node] * instance.data[first + j]
        cost = weight * cost + listing.cost[mask ^ lowest, position]
        listing.cost[mask, position] = cost
        shape = known.of[application, mask]
        worth = cost + charge[node, shape - begin]
        for k in range(2):
            if known.demand[shape, k] > known.capacity[node, k]:
                worth = BIG
        listing.worth[mask, position] = worth


@kernel
def _cover(listing, full):
    """Write the least worth of sets that make up each mask."""
    listing.rest[0] = 0.0
    for mask in range(1, full + 1):
        lowest = mask & -mask
        others, best = mask ^ lowest, BIG
        joined = others
        while True:
            best = min(best, listing.least[joined | lowest] + listing.rest[others ^ joined])
            if joined == 0:
                break
            joined = (joined - 1) & others
        listing.rest[mask] = best


@kernel
def _put(instance, listing, application, mask, position):
    """Place a set, unless a flow is too long; return whether it is placed."""
    first, node = instance.first[application], listing.node_at[position]
    for i in range(first, instance.first[application + 1]):
        if not mask >> (i - first) & 1:
            continue
        for flow in range(instance.flow_first[i], instance.flow_first[i + 1]):
            host = listing.hosts[instance.flow_other[flow]]
            if host >= 0 and instance.delay[host, node] > instance.flow_limit[flow]:
                return False
    for i in range(first, instance.first[application + 1]):
        if mask >> (i - first) & 1:
            listing.hosts[i] = node
    listing.used[position] = True
    return True


@kernel
def _take(instance, listing, application, mask, position):
    """Take a set off its node."""
    first = instance.first[application]
    for i in range(first, instance.first[application + 1]):
        if mask >> (i - first) & 1:
            listing.hosts[i] = -1
    listing.used[position] = False


@kernel
def _begin(listing, depth, left):
    """Begin with the first set of a mask that is left at a depth: all of it, before any node."""
    listing.left[depth], listing.others[depth] = left, left ^ (left & -left)
    listing.position[depth] = -1


@kernel
def _set_at(listing, depth):
    """Return the set that is tried at a depth: the first that is left, and what joins it."""
    return listing.others[depth] | (listing.left[depth] & -listing.left[depth])


@kernel
def _write(listing, depth, forced, last, late, row):
    """Write what is placed, up to a depth, as a placement."""
    for k in range(listing.nodes.shape[1]):
        listing.nodes[row, k] = -1
    listing.nodes[row, 0], listing.masks[row, 0] = listing.node_at[last], forced
    for k in range(depth):
        listing.masks[row, k + 1] = _set_at(listing, k)
        listing.nodes[row, k + 1] = listing.node_at[listing.position[k]]
    listing.plain[row] = listing.sums[depth, 0] + late
    listing.value[row] = listing.sums[depth, 1] + late


@kernel
def _next(listing, depth, last, allowed):
    """Move to the next set and node at a depth; return whether there is one."""
    left = listing.left[depth]
    lowest = left & -left
    others = left ^ lowest
    while True:
        joined = listing.others[depth]
        mask = joined | lowest
        rest = listing.sums[depth, 1] + listing.rest[others ^ joined]
        if listing.least[mask] + rest <= allowed:
            for position in range(listing.position[depth] + 1, last):
                if not listing.used[position] and listing.worth[mask, position] + rest <= allowed:
                    listing.position[depth] = position
                    return True
        if joined == 0:
            return False
        listing.others[depth] = (joined - 1) & others
        listing.position[depth] = -1


@kernel
def _search(instance, listing, application, forced, last, late, limit, count, only_best, most):
    """List the placements with a set `forced` on the node admitted last.

    Returns three numbers: the limit, the count of placements that are listed now, and the steps
    that were taken. With `only_best` each placement lowers the limit to its own value. The search
    stops where there is no room for more, or after `most` steps.
    """
    full = (1 << (instance.first[application + 1] - instance.first[application])) - 1
    depth, steps = 0, 0
    _begin(listing, 0, full ^ forced)
    if full == forced:
        row = 0 if only_best else count
        _write(listing, 0, forced, last, late, row)
        if only_best:
            limit = listing.value[row] - ROUNDING
        return limit, row + 1, most if row + 1 == len(listing.plain) and not only_best else 1
    while depth >= 0 and steps < most:
        steps += 1
        if not _next(listing, depth, last, limit - late):
            depth -= 1
            if depth >= 0:
                done = _set_at(listing, depth), listing.position[depth]
                _take(instance, listing, application, *done)
            continue
        position, mask = listing.position[depth], _set_at(listing, depth)
        if not _put(instance, listing, application, mask, position):
            continue
        listing.sums[depth + 1, 0] = listing.sums[depth, 0] + listing.cost[mask, position]
        listing.sums[depth + 1, 1] = listing.sums[depth, 1] + listing.worth[mask, position]
        if listing.left[depth] ^ mask:
            depth += 1
            _begin(listing, depth, listing.left[depth - 1] ^ mask)
            continue
        row = 0 if only_best else count
        _write(listing, depth + 1, forced, last, late, row)
        _take(instance, listing, application, mask, position)
        count = row + 1
        if only_best:
            limit = listing.value[row] - ROUNDING
        elif count == len(listing.plain):
            steps = most
    for k in range(depth):
        _take(instance, listing, application, _set_at(listing, k), listing.position[k])
    return limit, count, steps


@kernel
def list_placements(
    instance, known, weight, charge, begin, listing, application, limit, only_best, most
):
    """List the placements of an application of at most `limit`, charged; return how many.

    The columns of `charge`, (nodes, any), are the shapes from `begin` on.

    Where `only_best`, the list has the best one alone. Returns -1 where there are more than room,
    or the search takes more than `most` steps.
    """
    source, count, last = instance.source[application], 0, -1
    full = (1 << (instance.first[application + 1] - instance.first[application])) - 1
    for mask in range(full + 1):
        listing.least[mask] = BIG
    for node in instance.near[source]:
        late = (1 - weight) * instance.delay[source, node]
        if late > limit or instance.delay[source, node] == np.inf:
            break
        last += 1
        _weigh(instance, known, weight, charge, begin, listing, application, node, last)
        _cover(listing, full)
        for forced in range(full, 0, -1):
            worth = listing.worth[forced, last]
            if late + worth + listing.rest[full ^ forced] > limit:
                continue
            _put(instance, listing, application, forced, last)
            listing.sums[0, 0], listing.sums[0, 1] = listing.cost[forced, last], worth
            limit, count, steps = _search(
                instance, listing, application, forced, last, late, limit, count, only_best, most
            )
            _take(instance, listing, application, forced, last)
            most -= steps
            if most <= 0:
                return -1
        for mask in range(1, full + 1):
            listing.least[mask] = min(listing.least[mask], listing.worth[mask, last])
    return count
