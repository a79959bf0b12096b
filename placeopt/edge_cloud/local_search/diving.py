"""A plan from what prices decide: applications are fixed some at a time, where they mostly are.

While prices move about their best, most applications are always placed alike; others go back and
forth between a few placements. The shares of the steps come near to the best mixture of placements
that fits all nodes (the volume algorithm; F. Barahona and R. Anbil, 2000). What is decided is
fixed, and some of the rest; the others get new prices for the room that is left, again and again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud import kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays, node_loads
from placeopt.edge_cloud.kernels import Placement
from placeopt.edge_cloud.local_search.exact_placement import relax
from placeopt.edge_cloud.local_search.prices import Ascent, Prices, Relaxation, typical_difference

#: Steps of the prices before applications are fixed; the first and the last step's length, in units
#: of `typical_difference`.
STEPS, _FIRST_STEP, _LAST_STEP = 60, 0.02, 0.0025
#: Decay of a placement's share from step to step.
_DECAY = 0.98
#: Placements of an application that are kept.
_KEPT = 16
#: Nodes of the search for the best placement of one application.
_SEARCH_LIMIT = 300
#: Share of the applications that is fixed at a time, at least, and what counts as decided.
_FIXED, _DECIDED = 0.15, 0.999


class Mixture(NamedTuple):
    """Placements of each application, and how much each counts; n is the most microservices."""

    nodes: np.ndarray  # int64 (applications, _KEPT, n)
    share: np.ndarray  # (applications, _KEPT)


@allocating_kernel
def count_in(instance, hosts, chosen, mixture):
    """Let the placements in `hosts` of the chosen applications count for one step, in place.

    Where the room for placements is used up, the one of the least share is forgotten.
    """
    for application in chosen:
        first, last = instance.first[application], instance.first[application + 1]
        nodes, share = mixture.nodes[application, :, : last - first], mixture.share[application]
        share *= _DECAY
        if hosts[first] < 0:
            continue
        known = share.argmin()
        for k in range(_KEPT):
            if share[k] > 0 and (nodes[k] == hosts[first:last]).all():
                known = k
                break
        else:
            nodes[known] = hosts[first:last]
            share[known] = 0.0
        share[known] += 1 - _DECAY


@kernel
def put_all(instance, placement, application, nodes):
    """Place an application on nodes (n,), in place, if that fits; return whether it does."""
    first, last = instance.first[application], instance.first[application + 1]
    for service in range(first, last):
        if not kernels.fits(instance, placement, service, nodes[service - first]):
            for placed in range(first, service):
                kernels.take(instance, placement, placed)
            return False
        kernels.put(instance, placement, service, nodes[service - first])
    return True


@kernel
def fix(instance, placement, mixture, order, decided, wanted, fixed):
    """Place applications where they still fit, in place; mark them in `fixed`, (applications,).

    `order` are indices into all placements by decreasing share. Those of `decided` or more are
    tried, and others until the number `wanted` is fixed.
    """
    count = 0
    for index in order:
        application, k = index // _KEPT, index % _KEPT
        share = mixture.share[application, k]
        if share <= 0 or (share < decided and count >= wanted):
            return
        if not fixed[application] and put_all(
            instance, placement, application, mixture.nodes[application, k]
        ):
            fixed[application] = True
            count += 1


def dive(relaxation: Relaxation, prices: Prices, budget: Budget) -> np.ndarray:
    """Return the hosts of a plan, -1 throughout an application without a place.

    Every step of the prices counts as an evaluation. Nothing is random.
    """
    instance = relaxation.instance
    placement = Placement(np.full(len(instance.demand), -1), instance.capacity.copy())
    waiting, price = np.arange(len(instance.source)), prices.price
    while len(waiting) and not budget.exhausted:
        left = instance._replace(capacity=placement.room.copy())
        mixture, price = _mixed(relaxation, left, prices.weight, price, waiting, budget)
        fixed = np.zeros(len(instance.source), dtype=np.bool_)
        order = np.argsort(-mixture.share, axis=None, kind="stable")
        whole = mixture.share.sum(axis=1).max()  # below 1, as shares begin at 0
        wanted = int(_FIXED * len(waiting)) + 1
        fix(instance, placement, mixture, order, _DECIDED * whole, wanted, fixed)
        if not fixed.any():
            break
        waiting = waiting[~fixed[waiting]]
    return placement.hosts


def _mixed(
    relaxation: Relaxation,
    left: EdgeCloudArrays,
    weight: float,
    price: np.ndarray,
    waiting: np.ndarray,
    budget: Budget,
) -> tuple[Mixture, np.ndarray]:
    """Return how often steps of the prices place the waiting applications where; the last prices.

    `left` has the room that is left.
    """
    scale, unit = typical_difference(left, weight), relaxation.unit
    hosts, values = np.full(len(left.demand), -1), np.zeros(len(left.source))
    services = int(np.diff(left.first).max())
    mixture = Mixture(
        np.full((len(left.source), _KEPT, services), -1), np.zeros((len(left.source), _KEPT))
    )
    ascent = Ascent(price * unit)
    for step in range(STEPS):
        arrays = left, weight, ascent.price / unit, relaxation.search, hosts, waiting, values
        relax(*arrays, _SEARCH_LIMIT)
        count_in(left, hosts, waiting, mixture)
        budget.spend(1)
        if budget.exhausted:
            break
        slope = (node_loads(left, hosts) - left.capacity) / unit
        ascent.step(slope, scale * _FIRST_STEP * (_LAST_STEP / _FIRST_STEP) ** (step / STEPS))
    return mixture, ascent.price / unit
