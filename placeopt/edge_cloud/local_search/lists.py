"""Lists of the placements that a better plan may have, and the program that chooses among them."""

from __future__ import annotations

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.charging import Lists
from placeopt.edge_cloud.local_search.exact_placement import weighted_sum
from placeopt.edge_cloud.local_search.listing import ROUNDING, Listing, list_placements
from placeopt.edge_cloud.local_search.patterns import Fill, most_charged
from placeopt.edge_cloud.local_search.shapes import Shapes
from placeopt.exact.program import Program

#: Placements of one application, beyond which they are not compared with each other.
_COMPARED = 4000
#: A list is refused before its needless placements are dropped where it has so many times the
#: placements that are allowed.
_REPEATED = 12
#: Steps of the search for the placements of one application.
_MOST_STEPS = 10**6


def no_lists(listing: Listing) -> Lists:
    """Return empty lists."""
    none = np.zeros((0, listing.nodes.shape[1]), dtype=np.int64)
    return Lists(np.zeros(0, dtype=np.int64), np.zeros(0), none, none, none)


def list_all(
    instance: EdgeCloudArrays,
    known: Shapes,
    weight: float,
    charge: np.ndarray,
    listing: Listing,
    limits: np.ndarray,
    most: int,
    budget: Budget,
) -> Lists | None:
    """Return each application's placements of at most its limit.

    Returns None if they are more than `most`, or time is over.

    Parameters
    ----------
    charge : ndarray, shape (nodes, shapes)
    limits : ndarray, shape (applications,)
        Of the weighted sums, charged.
    most : int
        A list is refused as well where it would be many times as long before the needless go.
    """
    rows: list[tuple[np.ndarray, ...]] = []
    first, arguments, total = [0], (instance, known, weight, charge, 0, listing), 0
    for application, limit in enumerate(limits):  # to count takes a tenth of the time
        count = list_placements(*arguments, application, limit, False, _MOST_STEPS)
        total += count
        if count < 0 or total > _REPEATED * most or budget.out_of_time:
            return None
    for application, limit in enumerate(limits):
        count = list_placements(*arguments, application, limit, False, _MOST_STEPS)
        kept = _needed(known, application, listing, count)
        rows.append(kept)
        first.append(first[-1] + len(kept[0]))
        if first[-1] > most or budget.out_of_time:
            return None
    return Lists(np.array(first), *map(np.concatenate, zip(*rows, strict=True)))


def _needed(
    known: Shapes, application: int, listing: Listing, count: int
) -> tuple[np.ndarray, ...]:
    """Return what `Lists` says of the placements of an application, without needless ones."""
    order = np.argsort(listing.plain[:count], kind="stable")
    nodes, masks, plain = listing.nodes[order], listing.masks[order], listing.plain[order]
    shapes = np.where(nodes >= 0, known.of[application][masks], 0)
    _, once = np.unique(_keys(known, nodes, shapes), axis=0, return_index=True)
    once.sort()
    plain, nodes, masks, shapes = plain[once], nodes[once], masks[once], shapes[once]
    if len(plain) <= _COMPARED:
        kept = np.ones(len(plain), dtype=np.bool_)
        _drop_needless(known, plain, nodes, shapes, kept)
        plain, nodes, masks, shapes = plain[kept], nodes[kept], masks[kept], shapes[kept]
    return plain, nodes, masks, shapes


def _keys(known: Shapes, nodes: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """Return for each placement, (k, m), numbers that are equal where the same shapes share nodes.

    They do not depend on the order of the nodes.
    """
    return np.sort(np.where(nodes >= 0, nodes * len(known.demand) + shapes, -1), axis=1)


@kernel
def _demands_less(known, nodes, shapes, one, other):
    """Return whether a placement demands no more of any node than another."""
    for k in range(nodes.shape[1]):
        if nodes[one, k] < 0:
            break
        result = False
        for j in range(nodes.shape[1]):
            if nodes[other, j] == nodes[one, k]:
                result = True
                for r in range(2):
                    less = known.demand[shapes[one, k], r] <= known.demand[shapes[other, j], r]
                    result = result and less
        if not result:
            return False
    return True


@kernel
def _drop_needless(known, plain, nodes, shapes, kept):
    """Keep no placement that costs no less, and demands no less of each node, than another.

    They are in the order of their costs; changes `kept`.
    """
    for one in range(len(plain)):
        if not kept[one]:
            continue
        for other in range(one + 1, len(plain)):
            if kept[other] and plain[one] <= plain[other] + ROUNDING:
                kept[other] = not _demands_less(known, nodes, shapes, one, other)


def with_plan(
    instance: EdgeCloudArrays, known: Shapes, weight: float, lists: Lists, hosts: np.ndarray
) -> tuple[Lists, np.ndarray]:
    """Return lists with the placements of a plan, and 1 for each that the plan chooses, else 0.

    A listed placement of the same shapes stands for the plan's own: it costs no more.
    """
    rows, first, chosen = [], [0], []
    for application in range(len(instance.source)):
        low, high = lists.first[application : application + 2]
        own = tuple(part[low:high] for part in lists[1:])
        row = _row_of(instance, known, weight, application, hosts, lists.nodes.shape[1])
        alike = _keys(known, own[1], own[3]) == _keys(known, row[1], row[3])
        same = np.flatnonzero(alike.all(axis=1))
        chosen.append(first[-1] + (int(same[0]) if len(same) else len(own[0])))
        if not len(same):
            own = tuple(map(np.concatenate, zip(own, row, strict=True)))
        rows.append(own)
        first.append(first[-1] + len(own[0]))
    x = np.zeros(first[-1])
    x[chosen] = 1
    return Lists(np.array(first), *map(np.concatenate, zip(*rows, strict=True))), x


def _row_of(
    instance: EdgeCloudArrays,
    known: Shapes,
    weight: float,
    application: int,
    hosts: np.ndarray,
    width: int,
) -> tuple[np.ndarray, ...]:
    """Return a list of one placement: that of an application in a plan."""
    begin, end = instance.first[application : application + 2]
    masks: dict[int, int] = {}
    for j, node in enumerate(hosts[begin:end].tolist()):
        masks[node] = masks.get(node, 0) | 1 << j
    nodes = np.full((1, width), -1)
    sets = np.zeros((1, width), dtype=np.int64)
    nodes[0, : len(masks)], sets[0, : len(masks)] = [*masks], [*masks.values()]
    shapes = np.where(nodes >= 0, known.of[application][sets], 0)
    return np.array([weighted_sum(instance, weight, hosts, application)]), nodes, sets, shapes


def hosts_of(instance: EdgeCloudArrays, lists: Lists, chosen: np.ndarray) -> np.ndarray:
    """Return the nodes of the microservices, (microservices,), of one placement for each."""
    hosts = np.full(len(instance.demand), -1)
    for begin, k in zip(instance.first, chosen, strict=False):
        for node, mask in zip(lists.nodes[k].tolist(), lists.masks[k].tolist(), strict=True):
            for j in range(mask.bit_length() if node >= 0 else 0):
                if mask >> j & 1:
                    hosts[begin + j] = node
    return hosts


def program(known: Shapes, fill: Fill, charge: np.ndarray, lists: Lists) -> Program:
    """Return the choice of a placement for each application, within nodes and what patterns pay.

    No pattern of a small node is charged more than the most of any. These rows hold what the
    charges prove, so that the relaxation begins there.
    """
    import scipy.sparse as sp

    k, j = np.nonzero(lists.nodes >= 0)
    node, shape, count = lists.nodes[k, j], lists.shapes[k, j], len(lists.plain)
    nodes, applications = len(known.capacity), len(lists.first) - 1
    of, slope = np.repeat(np.arange(applications), np.diff(lists.first)), np.zeros(charge.shape[1])

    def by_node(worth: np.ndarray) -> sp.csr_matrix:
        return sp.csr_matrix((worth.astype(float), (node, k)), (nodes, count))

    once = sp.csr_matrix((np.ones(count), (of, np.arange(count))))
    loads = [by_node(known.demand[shape, resource]) for resource in range(2)]
    paid = by_node(charge[node, shape])[known.small]
    most = np.array(
        [most_charged(known, fill, v, charge[v], fill.everyone, slope) for v in known.small]
    )
    ones = np.ones(applications)
    upper = np.concatenate((ones, *known.capacity.T, most * (1 + 1e-9) + 1e-9))
    lower = np.concatenate((ones, np.full(len(upper) - applications, -np.inf)))
    rows = sp.vstack((once, *loads, paid))
    free = np.zeros(count), np.ones(count), np.ones(count, dtype=np.bool_)
    return Program(lists.plain, rows, lower, upper, *free)
