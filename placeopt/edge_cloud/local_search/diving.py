"""A plan from what prices decide: applications are fixed some at a time, where they mostly are.

While prices move about their best, most applications are always placed alike; others go back and
forth between a few placements. The shares of the steps come near to the best mixture of placements
that fits all nodes (the volume algorithm; F. Barahona and R. Anbil, 2000). What is decided is
fixed, and some of the rest; the others get new prices for the room that is left, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.kernels import Placement
from placeopt.edge_cloud.local_search import columns
from placeopt.edge_cloud.local_search.ascent import new_ascent
from placeopt.edge_cloud.local_search.climbs import climb
from placeopt.edge_cloud.local_search.columns import KEPT, Columns, put_all
from placeopt.edge_cloud.local_search.exact_placement import relax
from placeopt.edge_cloud.local_search.homes import no_homes
from placeopt.edge_cloud.local_search.prices import Prices, Relaxation

#: Before applications are fixed, those that wait are placed anew, and steps of the prices choose
#: among their columns; this is done so often, each time with more steps: while few columns are
#: known, many steps only lead prices astray.
STEPS = (13, 32, 80, 200)
#: The first of these steps, in units of `Relaxation.typical_difference`.
_LENGTH = 0.01
#: Nodes of the search for the best placement of one application.
_SEARCH_LIMIT = 300
#: Share of the applications that is fixed at a time, at least, and what counts as decided.
_FIXED, _DECIDED = 0.15, 0.999


@kernel
def fix(instance, placement, known, order, decided, wanted, fixed):
    """Place applications where they still fit, in place; mark them in `fixed`, (applications,).

    `order` are indices into all columns by decreasing share. Those of `decided` or more are tried,
    and others until the number `wanted` is fixed.
    """
    count = 0
    for index in order:
        application, k = index // KEPT, index % KEPT
        share = known.share[application, k]
        if share <= 0 or (share < decided and count >= wanted):
            return
        if not fixed[application] and put_all(
            instance, placement, application, known.nodes[application, k]
        ):
            fixed[application] = True
            count += 1


def dive(relaxation: Relaxation, prices: Prices, budget: Budget) -> np.ndarray:
    """Return the hosts of a plan, -1 throughout an application without a place.

    Every time the waiting applications are placed anew counts as an evaluation. Nothing is random.
    """
    instance, known = relaxation.instance, columns.no_columns(relaxation.instance)
    placement = Placement(np.full(len(instance.demand), -1), instance.capacity.copy())
    waiting, price = np.arange(len(instance.source)), prices.price
    steps: Sequence[int] = 2 * STEPS
    while len(waiting) and not budget.exhausted:
        left = instance._replace(capacity=placement.room.copy())
        columns.discard(instance, placement, waiting, known)
        price = _mix(relaxation, left, replace(prices, price=price), waiting, known, steps, budget)
        steps = STEPS
        fixed = np.zeros(len(instance.source), dtype=np.bool_)
        order = np.argsort(-known.share, axis=None, kind="stable")
        whole = known.share.sum(axis=1).max()  # below 1, as shares begin at 0
        wanted = int(_FIXED * len(waiting)) + 1
        fix(instance, placement, known, order, _DECIDED * whole, wanted, fixed)
        if not fixed.any():
            break
        waiting = waiting[~fixed[waiting]]
    return placement.hosts


def _mix(
    relaxation: Relaxation,
    left: EdgeCloudArrays,
    prices: Prices,
    waiting: np.ndarray,
    known: Columns,
    steps: Sequence[int],
    budget: Budget,
) -> np.ndarray:
    """Let steps of the prices choose among the columns of the waiting applications, in place.

    `left` has the room that is left. Returns the prices of the last step.
    """
    weight, price, unit = prices.weight, prices.price, relaxation.unit
    length = _LENGTH * relaxation.typical_difference(weight)
    hosts, values = np.full(len(left.demand), -1), np.zeros(len(left.source))
    charge = np.zeros((len(left.source), 1))
    for count in steps:
        columns.place(left, price, charge, waiting, known, hosts)
        relax(left, weight, price, charge, relaxation.search, hosts, waiting, values, _SEARCH_LIMIT)
        columns.remember(left, weight, hosts, waiting, known)
        budget.spend(1)
        if budget.out_of_time:
            break
        known.share[:] = 0
        ascents = new_ascent(price * unit), new_ascent(charge)
        climb(left, unit, waiting, known, no_homes(), *ascents, count, length)
        price = ascents[0].price / unit
    return price
