"""Patterns: which shapes a small node takes together; the most charged of any is found exactly.

A node takes at most one shape of each application. Dynamic programming over its loads, which are
whole units, gives the most that a set of shapes which fits is charged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud.local_search.exact_placement import BIG
from placeopt.edge_cloud.local_search.shapes import Shapes


class Fill(NamedTuple):
    """Scratch of the programs of nodes."""

    layer: np.ndarray  # (applications + 1, loads) most charged within a load, of the first so many
    after: np.ndarray  # (2, loads) the same of those that come later
    everyone: np.ndarray  # int64 (applications,) all of them
    payer: np.ndarray  # int64 (applications,) those that are charged anything
    useful: np.ndarray  # bool (shapes,) not more than another of the application for no more charge


def loads(known: Shapes) -> int:
    """Return the most loads that a small node of an instance can have."""
    return int((known.capacity[known.small] + 1).prod(axis=1).max(initial=1))


def new_fill(known: Shapes) -> Fill:
    """Return scratch for the small nodes of an instance."""
    most, applications = loads(known), len(known.of)
    return Fill(
        layer=np.zeros((applications + 1, most)),
        after=np.zeros((2, most)),
        everyone=np.arange(applications),
        payer=np.zeros(applications, dtype=np.int64),
        useful=np.zeros(len(known.demand), dtype=np.bool_),
    )


@kernel
def _add(known, fill, node, charge, application, before, now):
    """Write the most charged when an application's shapes come to `before` into `now`, (loads,)."""
    cpu, memory = known.capacity[node, 0], known.capacity[node, 1]
    width = memory + 1
    for load in range((cpu + 1) * width):
        now[load] = before[load]
    for shape in range(known.first[application], known.first[application + 1]):
        if not fill.useful[shape]:
            continue
        paid, more = charge[shape], known.demand[shape, 1]
        for c in range(known.demand[shape, 0], cpu + 1):
            at, come_from = c * width, (c - known.demand[shape, 0]) * width - more
            for m in range(more, width):
                now[at + m] = max(now[at + m], before[come_from + m] + paid)


@kernel
def _mark(known, fill, node, charge, applications):
    """Write which of some applications pay anything at a node, and their useful shapes; count them.

    What a node charges is (shapes,).
    """
    count = 0
    for application in applications:
        pays = False
        first, last = known.first[application], known.first[application + 1]
        for shape in range(first, last):
            useful = charge[shape] > 0.0
            for k in range(2):
                useful = useful and known.demand[shape, k] <= known.capacity[node, k]
            for other in range(first, last):
                if not useful:
                    break
                less = charge[other] >= charge[shape] and other != shape
                for k in range(2):
                    less = less and known.demand[other, k] <= known.demand[shape, k]
                useful = not less
            fill.useful[shape] = useful
            pays = pays or useful
        if pays:
            fill.payer[count] = application
            count += 1
    return count


@kernel
def _forward(known, fill, node, charge, applications):
    """Write the layers of a node; return how many of some applications pay anything there."""
    count = _mark(known, fill, node, charge, applications)
    loads = (known.capacity[node, 0] + 1) * (known.capacity[node, 1] + 1)
    for load in range(loads):
        fill.layer[0, load] = 0.0
    for k in range(count):
        _add(known, fill, node, charge, fill.payer[k], fill.layer[k], fill.layer[k + 1])
    return count


@kernel
def most_charged(known, fill, node, charge, applications, slope):
    """Return the most that a pattern of a node is charged; take 1 from the `slope` of its shapes.

    The pattern has shapes of some applications. What the node charges, and `slope`, are (shapes,).
    """
    count = _forward(known, fill, node, charge, applications)
    cpu, memory = known.capacity[node, 0], known.capacity[node, 1]
    width = memory + 1
    most = fill.layer[count, cpu * width + memory]
    for k in range(count - 1, -1, -1):
        load = cpu * width + memory
        here = fill.layer[k + 1, load]
        if here == fill.layer[k, load]:
            continue
        for shape in range(known.first[fill.payer[k]], known.first[fill.payer[k] + 1]):
            less, lower = cpu - known.demand[shape, 0], memory - known.demand[shape, 1]
            if not fill.useful[shape] or less < 0 or lower < 0:
                continue
            if fill.layer[k, less * width + lower] + charge[shape] == here:
                slope[shape] -= 1
                cpu, memory = less, lower
                break
    return most


@kernel
def _most_beside(known, fill, node, before, after, shape):
    """Return the most charged beside a shape, of the groups with layers `before` and `after`."""
    width, most = known.capacity[node, 1] + 1, -BIG
    cpu = known.capacity[node, 0] - known.demand[shape, 0]
    memory = known.capacity[node, 1] - known.demand[shape, 1]
    if cpu < 0 or memory < 0:
        return most
    for c in range(cpu + 1):
        for m in range(memory + 1):
            most = max(most, before[c * width + m] + after[(cpu - c) * width + memory - m])
    return most


@kernel
def forgone(known, fill, node, charge, row):
    """Write what a node's patterns forgo for each shape into `row`, (shapes,).

    The node charges `charge`, (shapes,). What it forgoes is the most charged of any pattern less
    the most charged beside the shape, by applications other than its own: a plan that places the
    shape there pays at least as much. It is `BIG` where the shape does not fit.
    """
    count = _forward(known, fill, node, charge, fill.everyone)
    loads = (known.capacity[node, 0] + 1) * (known.capacity[node, 1] + 1)
    most, last, now = fill.layer[count, loads - 1], count - 1, 0
    for load in range(loads):
        fill.after[0, load] = 0.0
    for application in range(len(known.of) - 1, -1, -1):
        pays = last >= 0 and fill.payer[last] == application
        before = fill.layer[last] if pays else fill.layer[last + 1]
        for shape in range(known.first[application], known.first[application + 1]):
            beside = _most_beside(known, fill, node, before, fill.after[now], shape)
            row[shape] = most - beside if beside > -BIG else BIG
        if pays:
            _add(known, fill, node, charge, application, fill.after[now], fill.after[1 - now])
            now, last = 1 - now, last - 1


@kernel
def complete(known, charge):
    """Raise the charge of each shape on small nodes to that of any of its application within it.

    In place; no pattern is then charged more than the most before.
    """
    for node in known.small:
        for application in range(len(known.of)):
            first, last = known.first[application], known.first[application + 1]
            for shape in range(first, last):
                for other in range(first, last):
                    within = True
                    for k in range(2):
                        within = within and known.demand[other, k] <= known.demand[shape, k]
                    if within:
                        charge[node, shape] = max(charge[node, shape], charge[node, other])


@allocating_kernel
def forgone_everywhere(known, fill, charge):
    """Return what each node forgoes for each shape, (nodes, shapes).

    A large node, where prices alone are charged, forgoes these.
    """
    answer = charge.copy()
    for node in known.small:
        forgone(known, fill, node, charge[node], answer[node])
    return answer
