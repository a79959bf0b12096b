"""What is known of an instance where few shapes are charged: placements, payers and patterns.

A placement is what an application was given before, as sets of microservices with their nodes. A
payer is a shape on a small node that some placement uses. A pattern is a set of payers that a node
takes together. See `placeopt.edge_cloud.local_search.sparse_charging`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.exact_placement import BIG
from placeopt.edge_cloud.local_search.patterns import Fill, new_fill
from placeopt.edge_cloud.local_search.shapes import Shapes

#: Placements of an application that are known at once, and payers for each application on average.
_KEPT, _PAYING = 96, 64
#: Patterns of a node that are known at once, and shapes of a pattern.
_PATTERNS, _WIDTH = 64, 32


class Placements(NamedTuple):
    """The known placements of each application; m is the most microservices of one."""

    number: np.ndarray  # int64 (applications,)
    nodes: np.ndarray  # int64 (applications, _KEPT, m) node of each set, -1 for none
    masks: np.ndarray  # int64 (applications, _KEPT, m) the sets of microservices
    payer: np.ndarray  # int64 (applications, _KEPT, m) place in `Payers`, -1 without extra charge
    plain: np.ndarray  # (applications, _KEPT) weighted sum
    chosen: np.ndarray  # int64 (applications, _KEPT) round that chose it last


class Payers(NamedTuple):
    """The shapes on small nodes that may pay an extra charge."""

    number: np.ndarray  # int64 (1,) how many there are
    node: np.ndarray  # int64 (room,)
    shape: np.ndarray  # int64 (room,)
    application: np.ndarray  # int64 (room,)
    before: np.ndarray  # int64 (room,) the payer before of the same application, -1 for none
    last: np.ndarray  # int64 (applications,) the last payer of each, -1 for none


class NodePatterns(NamedTuple):
    """The patterns that are known of each node, and scratch for the best one."""

    number: np.ndarray  # int64 (nodes,)
    payer: np.ndarray  # int64 (nodes, _PATTERNS, _WIDTH) -1 after the last
    chosen: np.ndarray  # int64 (nodes, _PATTERNS) step that chose it last
    charge: np.ndarray  # (shapes,) of one node; 0 between searches
    slope: np.ndarray  # (shapes,) likewise
    applications: np.ndarray  # int64 (applications,) that pay at a node


class Catalogue(NamedTuple):
    """What is known, and what does not change."""

    known: Shapes
    is_small: np.ndarray  # bool (nodes,)
    unit: np.ndarray  # (2,) mean demand, in units of the shapes
    placements: Placements
    payers: Payers
    patterns: NodePatterns
    fill: Fill


def new_catalogue(instance: EdgeCloudArrays, known: Shapes) -> Catalogue:
    """Return a catalogue that knows nothing yet."""
    applications, nodes = len(instance.source), len(instance.capacity)
    size = applications, _KEPT, int(np.diff(instance.first).max())
    is_small = np.zeros(nodes, dtype=np.bool_)
    is_small[known.small] = True
    nothing = np.zeros(_PAYING * applications, dtype=np.int64)
    return Catalogue(
        known,
        is_small,
        np.maximum((instance.demand / known.unit).mean(axis=0), 1e-9),
        Placements(
            np.zeros(applications, dtype=np.int64),
            np.full(size, -1),
            np.zeros(size, dtype=np.int64),
            np.full(size, -1),
            np.zeros(size[:2]),
            np.zeros(size[:2], dtype=np.int64),
        ),
        Payers(
            np.zeros(1, dtype=np.int64),
            nothing,
            nothing.copy(),
            nothing.copy(),
            nothing.copy(),
            np.full(applications, -1),
        ),
        NodePatterns(
            np.zeros(nodes, dtype=np.int64),
            np.full((nodes, _PATTERNS, _WIDTH), -1),
            np.zeros((nodes, _PATTERNS), dtype=np.int64),
            np.zeros(len(known.demand)),
            np.zeros(len(known.demand)),
            np.zeros(applications, dtype=np.int64),
        ),
        new_fill(known),
    )


@kernel
def payer_of(catalogue, application, node, mask):
    """Return the payer of a set of microservices on a node; a new one if need be.

    It is -1 where the node is not small, or no more payers have room.
    """
    payers, shape = catalogue.payers, catalogue.known.of[application, mask]
    if not catalogue.is_small[node]:
        return -1
    at = payers.last[application]
    while at >= 0:
        if payers.node[at] == node and payers.shape[at] == shape:
            return at
        at = payers.before[at]
    at = payers.number[0]
    if at == len(payers.node):
        return -1
    payers.number[0] = at + 1
    payers.node[at], payers.shape[at], payers.application[at] = node, shape, application
    payers.before[at] = payers.last[application]
    payers.last[application] = at
    return at


@kernel
def _is_known(placements, application, k, nodes, masks):
    """Return whether a known placement has these sets, in any order."""
    for j in range(len(nodes)):
        found = nodes[j] < 0 and placements.nodes[application, k, j] < 0
        for i in range(len(nodes) if nodes[j] >= 0 else 0):
            same = placements.nodes[application, k, i] == nodes[j]
            found = found or (same and placements.masks[application, k, i] == masks[j])
        if not found:
            return False
    return True


@kernel
def learn(catalogue, application, nodes, masks, plain, now):
    """Make a placement known, in round `now`.

    Where an application has no room for more, it replaces the one that was chosen longest ago.
    """
    placements, oldest = catalogue.placements, 0
    count = placements.number[application]
    for k in range(count):
        if _is_known(placements, application, k, nodes, masks):
            placements.chosen[application, k] = now
            return
        if placements.chosen[application, k] < placements.chosen[application, oldest]:
            oldest = k
    k = count if count < placements.plain.shape[1] else oldest
    placements.number[application] = max(count, k + 1)
    placements.plain[application, k] = plain
    placements.chosen[application, k] = now
    for j in range(len(nodes)):
        placements.nodes[application, k, j] = nodes[j]
        placements.masks[application, k, j] = masks[j]
        placements.payer[application, k, j] = -1
        if nodes[j] >= 0:
            placements.payer[application, k, j] = payer_of(
                catalogue, application, nodes[j], masks[j]
            )


@allocating_kernel
def take_over(instance, catalogue, columns):
    """Make the placements of `columns` known: each is cut into sets, one for each of its nodes."""
    width = catalogue.placements.nodes.shape[2]
    nodes, masks = np.empty(width, np.int64), np.empty(width, np.int64)
    for application in range(len(instance.source)):
        services = instance.first[application + 1] - instance.first[application]
        for k in range(columns.nodes.shape[1]):
            if columns.chosen[application, k] == 0 or columns.value[application, k] >= BIG:
                continue
            nodes[:], masks[:] = -1, 0
            for j in range(services):
                at = 0
                while nodes[at] >= 0 and nodes[at] != columns.nodes[application, k, j]:
                    at += 1
                nodes[at] = columns.nodes[application, k, j]
                masks[at] |= 1 << j
            learn(catalogue, application, nodes, masks, columns.value[application, k], 0)
