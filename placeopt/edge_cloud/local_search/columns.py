"""Columns: the placements that applications were given before.

To place an application best takes some hundred times as long as to compare the placements that are
known of it. The field calls a known placement a column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud import kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.exact_placement import BIG, at_home, weighted_sum

#: Columns of an application; the one that was chosen longest ago makes room for another.
KEPT = 16
#: Decay of a column's share from step to step.
_SHARE_DECAY = 0.98


class Columns(NamedTuple):
    """What is known of each application; n is the most microservices of one.

    The columns of an application come first, then those that are not in use.
    """

    nodes: np.ndarray  # int32 (applications, KEPT, n)
    value: np.ndarray  # (applications, KEPT) weighted sum, `BIG` where it does not fit
    home: np.ndarray  # bool (applications, KEPT) whether it is at home: see `homes`
    share: np.ndarray  # (applications, KEPT) how often it was chosen of late
    chosen: np.ndarray  # int64 (applications, KEPT) step that chose it last, 0 where not in use
    step: np.ndarray  # int64 (1,) steps so far


def no_columns(instance: EdgeCloudArrays) -> Columns:
    """Return room for the columns of an instance."""
    shape = len(instance.source), KEPT
    return Columns(
        nodes=np.zeros((*shape, int(np.diff(instance.first).max())), dtype=np.int32),
        value=np.full(shape, BIG),
        home=np.zeros(shape, dtype=np.bool_),
        share=np.zeros(shape),
        chosen=np.zeros(shape, dtype=np.int64),
        step=np.zeros(1, dtype=np.int64),
    )


@kernel
def _find(columns, application, nodes):
    """Return the column of an application with these nodes (m,), or the one to be overwritten."""
    oldest = 0
    for k in range(KEPT):
        if columns.chosen[application, k] == 0:
            return k
        same = True
        for j in range(len(nodes)):
            same = same and columns.nodes[application, k, j] == nodes[j]
        if same:
            return k
        if columns.chosen[application, k] < columns.chosen[application, oldest]:
            oldest = k
    return oldest


@kernel
def remember(instance, weight, hosts, applications, columns):
    """Make columns of the placements in `hosts` of some applications, in place."""
    columns.step[0] += 1
    for application in applications:
        first, last = instance.first[application], instance.first[application + 1]
        if hosts[first] < 0:
            continue
        k = _find(columns, application, hosts[first:last])
        for service in range(first, last):
            columns.nodes[application, k, service - first] = hosts[service]
        columns.value[application, k] = weighted_sum(instance, weight, hosts, application)
        columns.home[application, k] = at_home(instance, hosts, application)
        columns.chosen[application, k] = columns.step[0]


@kernel
def put_all(instance, placement, application, nodes):
    """Place an application on nodes (m,), in place, if that fits; return whether it does."""
    first, last = instance.first[application], instance.first[application + 1]
    for service in range(first, last):
        if not kernels.fits(instance, placement, service, nodes[service - first]):
            for placed in range(first, service):
                kernels.take(instance, placement, placed)
            return False
        kernels.put(instance, placement, service, nodes[service - first])
    return True


@kernel
def discard(instance, placement, applications, columns):
    """Let no column of some applications, which are not placed, be chosen where it does not fit."""
    for application in applications:
        for k in range(KEPT):
            if columns.chosen[application, k] == 0:
                break
            if put_all(instance, placement, application, columns.nodes[application, k]):
                for service in range(instance.first[application], instance.first[application + 1]):
                    kernels.take(instance, placement, service)
            else:
                columns.value[application, k] = BIG


@kernel
def _best(instance, price, charge, columns, application):
    """Return the best column of an application under prices, -1 for none, and its value."""
    first = instance.first[application]
    services = instance.first[application + 1] - first
    best, least = -1, BIG / 2
    for k in range(KEPT):
        if columns.chosen[application, k] == 0:
            break
        value = columns.value[application, k]
        if columns.home[application, k]:
            value += charge[application, 0]
        for j in range(services):
            node = columns.nodes[application, k, j]
            value += price[node, 0] * instance.demand[first + j, 0]
            value += price[node, 1] * instance.demand[first + j, 1]
        if value < least:
            best, least = k, value
    return best, least


@kernel
def place(instance, price, charge, applications, columns, hosts):
    """Write the best column under prices of each of some applications into `hosts`, in place.

    Where none fits the nodes of an application are -1.
    """
    for application in applications:
        best, _ = _best(instance, price, charge, columns, application)
        first = instance.first[application]
        for service in range(first, instance.first[application + 1]):
            hosts[service] = columns.nodes[application, best, service - first] if best >= 0 else -1


@kernel
def choose(instance, price, charge, applications, columns, load, homed):
    """Let the best column under prices count for one step, for each of some applications, in place.

    Adds what they demand to `load`, (nodes, 2), and 1 for each that is at home to `homed`,
    (applications, 1). Returns the sum of their values, prices and charges included.
    """
    columns.step[0] += 1
    total = 0.0
    for application in applications:
        best, least = _best(instance, price, charge, columns, application)
        for k in range(KEPT):
            columns.share[application, k] *= _SHARE_DECAY
        if best < 0:
            continue
        total += least
        columns.chosen[application, best] = columns.step[0]
        columns.share[application, best] += 1 - _SHARE_DECAY
        homed[application, 0] += columns.home[application, best]
        first = instance.first[application]
        for service in range(first, instance.first[application + 1]):
            node = columns.nodes[application, best, service - first]
            load[node, 0] += instance.demand[service, 0]
            load[node, 1] += instance.demand[service, 1]
    return total
