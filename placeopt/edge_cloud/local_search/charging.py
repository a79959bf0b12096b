"""Charges of patterns ascend: applications and nodes disagree less, and the bound rises.

Every shape on every small node has a charge. An application is placed where it costs least with
what it is charged; each small node returns the most that any of its patterns is charged, each large
one the price of its capacity. The sum is a lower bound, whatever the charges (Lagrangian
decomposition; M. Guignard and S. Kim, 1987).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.rows import copy_row, copy_rows
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.ascent import Ascent, ascend, new_ascent
from placeopt.edge_cloud.local_search.exact_placement import BIG
from placeopt.edge_cloud.local_search.listing import ROUNDING, list_placements
from placeopt.edge_cloud.local_search.patterns import most_charged
from placeopt.edge_cloud.local_search.shapes import Shapes

#: Steps of the search for one placement, after which nothing is proven.
_MOST_STEPS = 10**6
#: Share of all that is added up that covers rounding.
_COVER = 1e-11


class Lists(NamedTuple):
    """Placements of all applications, one after another; m is the most microservices of one."""

    first: np.ndarray  # int64 (applications + 1,)
    plain: np.ndarray  # (placements,) weighted sum
    nodes: np.ndarray  # int64 (placements, m) node of each set of microservices, -1 for none
    masks: np.ndarray  # int64 (placements, m) the sets
    shapes: np.ndarray  # int64 (placements, m) of the sets


class Charging(NamedTuple):
    """Charges that ascend, and the best so far."""

    charge: Ascent  # (nodes, shapes); of large nodes it follows from the prices
    price: Ascent  # (nodes, 2) of a mean demand; of small nodes it is 0
    unit: np.ndarray  # (2,) the mean demand
    slope: np.ndarray  # (nodes, shapes) scratch
    price_slope: np.ndarray  # (nodes, 2) scratch
    alone: np.ndarray  # (applications,) least cost of each, charged
    best: np.ndarray  # (1,) the highest bound
    best_charge: np.ndarray  # (nodes, shapes) its charges
    best_price: np.ndarray  # (nodes, 2) its prices
    best_alone: np.ndarray  # (applications,) its least costs


def new_charging(
    instance: EdgeCloudArrays, known: Shapes, charge: np.ndarray, price: np.ndarray
) -> Charging:
    """Return charges to begin with: `charge` on small nodes, `price`, (nodes, 2), on large ones.

    Prices are of a unit of the shapes.
    """
    unit = np.maximum((instance.demand / known.unit).mean(axis=0), 1e-9)
    price = price * unit
    price[known.small] = 0
    applications = len(instance.source)
    return Charging(
        charge=new_ascent(charge),
        price=new_ascent(price),
        unit=unit,
        slope=np.zeros_like(charge),
        price_slope=np.zeros_like(price),
        alone=np.zeros(applications),
        best=np.full(1, -np.inf),
        best_charge=charge.copy(),
        best_price=price.copy(),
        best_alone=np.zeros(applications),
    )


@kernel
def _spread(known, charging):
    """Charge shapes on large nodes the price of their demand; clear the slopes."""
    charging.slope[:] = 0.0
    for node in known.large:
        cpu = charging.price.price[node, 0] / charging.unit[0]
        memory = charging.price.price[node, 1] / charging.unit[1]
        for shape in range(len(known.demand)):
            worth = cpu * known.demand[shape, 0] + memory * known.demand[shape, 1]
            charging.charge.price[node, shape] = worth


@kernel
def _choose(lists, charging):
    """Give each application its best listed placement; return the sum, charged."""
    total, charge = 0.0, charging.charge.price
    for application in range(len(charging.alone)):
        best, least = -1, BIG
        for k in range(lists.first[application], lists.first[application + 1]):
            value = lists.plain[k]
            for j in range(lists.nodes.shape[1]):
                if lists.nodes[k, j] < 0:
                    break
                value += charge[lists.nodes[k, j], lists.shapes[k, j]]
            if value < least:
                best, least = k, value
        charging.alone[application] = least
        total += least
        if best < 0:
            continue
        for j in range(lists.nodes.shape[1]):
            if lists.nodes[best, j] < 0:
                break
            charging.slope[lists.nodes[best, j], lists.shapes[best, j]] += 1
    return total


@kernel
def _place(instance, known, weight, listing, charging):
    """Place each application best; return the sum, charged, or -inf where that is not proven."""
    total, everything = 0.0, (weight, charging.charge.price, 0, listing)
    for application in range(len(charging.alone)):
        result = list_placements(
            instance, known, *everything, application, BIG / 10, True, _MOST_STEPS
        )
        if result < 1:
            return -np.inf
        charging.alone[application] = listing.value[0] - ROUNDING
        total += charging.alone[application]
        for j in range(listing.nodes.shape[1]):
            if listing.nodes[0, j] < 0:
                break
            shape = known.of[application, listing.masks[0, j]]
            charging.slope[listing.nodes[0, j], shape] += 1
    return total


@kernel
def _returned(known, fill, charging):
    """Return what the nodes return; lower the slopes by what they take."""
    total, slope = 0.0, charging.slope
    for node in known.small:
        paid = charging.charge.price[node]
        total += most_charged(known, fill, node, paid, fill.everyone, slope[node])
    for node in known.large:
        for k in range(2):
            taken = -float(known.capacity[node, k])
            for shape in range(len(known.demand)):
                taken += known.demand[shape, k] * slope[node, shape]
            charging.price_slope[node, k] = taken / charging.unit[k]
            price = charging.price.price[node, k] / charging.unit[k]
            total += price * known.capacity[node, k]
        slope[node] = 0.0
    return total


@allocating_kernel
def climb(instance, known, weight, lists, listing, fill, charging, lengths):
    """Let charges and prices ascend by steps of these lengths, in place.

    Applications choose among `lists`; where these are empty, among all placements. Only then is the
    bound one of the problem.
    """
    for length in lengths:
        _spread(known, charging)
        if len(lists.plain) > 0:
            placed = _choose(lists, charging)
        else:
            placed = _place(instance, known, weight, listing, charging)
        returned = _returned(known, fill, charging)
        bound = placed - returned - _COVER * (abs(placed) + 3 * returned)
        if bound > charging.best[0]:
            charging.best[0] = bound
            copy_rows(charging.charge.price, charging.best_charge)
            copy_rows(charging.price.price, charging.best_price)
            copy_row(charging.alone, charging.best_alone)
        ascend(charging.charge, charging.slope, length)
        ascend(charging.price, charging.price_slope, length)
