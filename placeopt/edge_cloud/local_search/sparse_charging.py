"""Bounds of large instances: patterns of small nodes are charged for the shapes that matter.

Each application pays a charge for what it places on a small node, a shape. Each small node returns
the most that a pattern, a set of shapes that fits there, is charged; what is left is a lower bound,
as in `placeopt.edge_cloud.local_search.charging`. Here a charge is the price of the demand plus an
extra charge, and only shapes of known placements have one. Charges ascend while applications choose
among known placements. Then each application is placed exactly, which proves a bound and makes more
placements known (column generation).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.ascent import Ascent, ascend, new_ascent
from placeopt.edge_cloud.local_search.catalogue import (
    Catalogue,
    learn,
    new_catalogue,
    payer_of,
    take_over,
)
from placeopt.edge_cloud.local_search.columns import Columns
from placeopt.edge_cloud.local_search.exact_placement import BIG
from placeopt.edge_cloud.local_search.listing import ROUNDING, list_placements, new_listing
from placeopt.edge_cloud.local_search.patterns import loads, most_charged
from placeopt.edge_cloud.local_search.shapes import Shapes

#: Applications times nodes, beyond which to place all anew takes too long; and times the loads of a
#: node, beyond which the programs of nodes take too much memory.
_MOST, _MOST_LAYERS = 500_000, 20_000_000
#: Steps between two times that all are placed anew, and between two times that the best pattern of
#: a node is sought. ``models/edge_cloud/README.md`` says what was measured of these and the next.
_STEPS, _SEEK = 8, 4
#: First and last step, in typical differences.
_FIRST, _LAST = 0.008, 0.0002
#: Rounds, each of which places all anew: without a clock, and at most.
_ROUNDS, _MOST_ROUNDS = 12, 200
#: Steps of the search for one placement, after which nothing is proven.
_MOST_STEPS = 10**6
#: Share of all that is added up that covers rounding.
_COVER = 1e-11


class Ascents(NamedTuple):
    """What ascends, and the order of the payers by node."""

    price: Ascent  # (nodes, 2) of a mean demand
    extra: Ascent  # (payers, 1)
    order: np.ndarray  # int64 (payers,) by node, then application
    first: np.ndarray  # int64 (nodes + 1,) into `order`


def raised(
    instance: EdgeCloudArrays,
    known: Shapes | None,
    weight: float,
    charged: tuple[np.ndarray, np.ndarray],
    columns: Columns,
    scale: float,
    budget: Budget,
) -> float:
    """Return the best lower bound that extra charges prove.

    It is -inf where the instance has no small nodes, or is too large.

    Parameters
    ----------
    charged : (ndarray, ndarray)
        Prices, (nodes, 2), and charges for being at home, (applications, 1), to begin with.
    columns : Columns
        Placements to begin with.
    scale : float
        What the choice of a node typically changes a weighted sum by.
    budget : Budget
        Every time that all are placed anew is an evaluation.
    """
    if known is None or not len(known.small) or np.diagonal(instance.delay).any():
        return -np.inf
    applications, nodes = len(instance.source), len(instance.capacity)
    if applications * nodes > _MOST or applications * loads(known) > _MOST_LAYERS:
        return -np.inf
    (price, homes), catalogue = charged, new_catalogue(instance, known)
    take_over(instance, catalogue, columns)
    extra = np.zeros((len(catalogue.payers.node), 1))
    _charge_homes(instance, catalogue, homes, extra)
    extra = extra[: catalogue.payers.number[0]]
    return _ascend(instance, weight, catalogue, price * known.unit, extra, scale, budget)


@kernel
def _charge_homes(instance, catalogue, homes, extra):
    """Write what applications are charged for being at home into `extra`, (payers, 1)."""
    for application in range(len(instance.source)):
        if homes[application, 0] > 0:
            services = instance.first[application + 1] - instance.first[application]
            all_of_it, source = (1 << services) - 1, instance.source[application]
            payer = payer_of(catalogue, application, source, all_of_it)
            if payer >= 0:
                extra[payer, 0] = homes[application, 0]


def _ascend(
    instance: EdgeCloudArrays,
    weight: float,
    catalogue: Catalogue,
    price: np.ndarray,
    extra: np.ndarray,
    scale: float,
    budget: Budget,
) -> float:
    """Let prices and extra charges ascend, as long as the budget allows; return the best bound."""
    listing, begun, best = new_listing(instance, 1), budget.seconds, -np.inf
    masks = 1 << int(np.diff(instance.first).max())
    scratch = np.zeros((len(instance.capacity), masks))
    ascents = _with(catalogue, new_ascent(price * catalogue.unit), new_ascent(extra))
    rounds, done = _ROUNDS, 0
    while not budget.exhausted:
        best = max(best, prove(instance, weight, catalogue, ascents, listing, scratch, done + 1))
        budget.spend(1)
        if done == rounds or not np.isfinite(best):
            break
        if done == 1 and budget.seconds_limit is not None:
            pace = budget.seconds - begun  # of two proofs and the steps between them
            rounds = min(_MOST_ROUNDS, int(budget.seconds_left / max(pace, 1e-9)))
        ascents = _with(catalogue, ascents.price, ascents.extra)
        climb(catalogue, ascents, scale * _lengths(done, rounds), done * _STEPS)
        done += 1
    return best


def _lengths(done: int, rounds: int) -> np.ndarray:
    """Return the lengths of the steps of a round, in typical differences."""
    at = (done * _STEPS + np.arange(_STEPS)) / max(1, rounds * _STEPS)
    return np.asarray(_FIRST * (_LAST / _FIRST) ** np.minimum(at, 1))


def _with(catalogue: Catalogue, price: Ascent, extra: Ascent) -> Ascents:
    """Return the ascents of all payers: those that are new begin with an extra charge of 0."""
    count = catalogue.payers.number[0]
    new = np.zeros((count - len(extra.price), 1))
    price_of, mean, square = (np.concatenate((part, new)) for part in extra[:3])
    node = catalogue.payers.node[:count]
    order = np.lexsort((catalogue.payers.application[:count], node))
    first = np.searchsorted(node[order], np.arange(len(catalogue.is_small) + 1))
    return Ascents(price, Ascent(price_of, mean, square, extra.step), order, first)


@kernel
def _value(catalogue, ascents, application, k):
    """Return what a known placement costs, charged."""
    known, placements, price = catalogue.known, catalogue.placements, ascents.price.price
    value = placements.plain[application, k]
    for j in range(placements.nodes.shape[2]):
        node = placements.nodes[application, k, j]
        if node < 0:
            break
        shape = known.of[application, placements.masks[application, k, j]]
        value += price[node, 0] * known.demand[shape, 0] / catalogue.unit[0]
        value += price[node, 1] * known.demand[shape, 1] / catalogue.unit[1]
        if placements.payer[application, k, j] >= 0:
            value += ascents.extra.price[placements.payer[application, k, j], 0]
    return value


@kernel
def _best(catalogue, ascents, application):
    """Return the known placement of least cost, -1 for none, and that cost."""
    best, least = -1, BIG / 10
    for k in range(catalogue.placements.number[application]):
        value = _value(catalogue, ascents, application, k)
        if value < least:
            best, least = k, value
    return best, least


@kernel
def _charge_all(catalogue, ascents, application, scratch):
    """Write what each shape of an application is charged on each node, (nodes, masks)."""
    known, payers, price = catalogue.known, catalogue.payers, ascents.price.price
    begin = known.first[application]
    for node in range(len(scratch)):
        cpu, memory = price[node, 0] / catalogue.unit[0], price[node, 1] / catalogue.unit[1]
        for shape in range(begin, known.first[application + 1]):
            worth = cpu * known.demand[shape, 0] + memory * known.demand[shape, 1]
            scratch[node, shape - begin] = worth
    at = payers.last[application]
    while at >= 0:
        if at < len(ascents.extra.price):
            scratch[payers.node[at], payers.shape[at] - begin] += ascents.extra.price[at, 0]
        at = payers.before[at]


@kernel
def _seek(catalogue, ascents, node):
    """Return the most that any pattern of a node is charged beyond prices.

    The shapes of the best pattern have -1 in ``patterns.slope``: `_forget` clears it.
    """
    patterns, payers, count = catalogue.patterns, catalogue.payers, 0
    for k in range(ascents.first[node], ascents.first[node + 1]):
        at = ascents.order[k]
        patterns.charge[payers.shape[at]] = ascents.extra.price[at, 0]
        application = payers.application[at]
        if count == 0 or patterns.applications[count - 1] != application:
            patterns.applications[count] = application
            count += 1
    chosen = patterns.applications[:count]
    return most_charged(
        catalogue.known, catalogue.fill, node, patterns.charge, chosen, patterns.slope
    )


@kernel
def _forget(catalogue, ascents, node):
    """Clear what `_seek` wrote."""
    for k in range(ascents.first[node], ascents.first[node + 1]):
        shape = catalogue.payers.shape[ascents.order[k]]
        catalogue.patterns.charge[shape] = catalogue.patterns.slope[shape] = 0.0


@kernel
def _remember(catalogue, ascents, node):
    """Make the pattern that `_seek` found a known one; return its place."""
    patterns, k = catalogue.patterns, catalogue.patterns.number[node]
    if k == patterns.chosen.shape[1]:
        k = 0
        for other in range(patterns.chosen.shape[1]):
            if patterns.chosen[node, other] < patterns.chosen[node, k]:
                k = other
    else:
        patterns.number[node] = k + 1
    j = 0
    for i in range(ascents.first[node], ascents.first[node + 1]):
        at = ascents.order[i]
        if patterns.slope[catalogue.payers.shape[at]] < 0 and j < patterns.payer.shape[2]:
            patterns.payer[node, k, j] = at
            j += 1
    if j < patterns.payer.shape[2]:
        patterns.payer[node, k, j] = -1
    return k


@kernel
def _known_pattern(catalogue, ascents, node):
    """Return the known pattern of a node that is charged most, -1 for none, and its charge."""
    patterns, best, most = catalogue.patterns, -1, 0.0
    for k in range(patterns.number[node]):
        paid = 0.0
        for j in range(patterns.payer.shape[2]):
            at = patterns.payer[node, k, j]
            if at < 0:
                break
            paid += ascents.extra.price[at, 0]
        if paid > most:
            best, most = k, paid
    return best, most


@kernel
def _take(catalogue, ascents, node, step, slope):
    """Lower the slopes, (payers, 1), of the pattern that a node takes."""
    patterns = catalogue.patterns
    best, most = _known_pattern(catalogue, ascents, node)
    if (node + step) % _SEEK == 0:
        if _seek(catalogue, ascents, node) > most + ROUNDING:
            best = _remember(catalogue, ascents, node)
        _forget(catalogue, ascents, node)
    if best < 0:
        return
    patterns.chosen[node, best] = step + 1
    for j in range(patterns.payer.shape[2]):
        if patterns.payer[node, best, j] < 0:
            break
        slope[patterns.payer[node, best, j], 0] -= 1


@kernel
def _choose(catalogue, ascents, price_slope, slope):
    """Give each application its best known placement: add what it demands to the slopes."""
    known, placements = catalogue.known, catalogue.placements
    for application in range(len(placements.number)):
        best, _ = _best(catalogue, ascents, application)
        for j in range(placements.nodes.shape[2] if best >= 0 else 0):
            node = placements.nodes[application, best, j]
            if node < 0:
                break
            shape = known.of[application, placements.masks[application, best, j]]
            for r in range(2):
                price_slope[node, r] += known.demand[shape, r] / catalogue.unit[r]
            if placements.payer[application, best, j] >= 0:
                slope[placements.payer[application, best, j], 0] += 1


@allocating_kernel
def climb(catalogue, ascents, lengths, begin):
    """Let prices and extra charges ascend among what is known, by steps of these lengths, in place.

    `begin` is the number of steps before.
    """
    known, slope = catalogue.known, np.zeros_like(ascents.extra.price)
    price_slope = np.zeros_like(ascents.price.price)
    for k in range(len(lengths)):
        slope[:] = 0.0
        for node in range(len(price_slope)):
            for r in range(2):
                price_slope[node, r] = -known.capacity[node, r] / catalogue.unit[r]
        _choose(catalogue, ascents, price_slope, slope)
        for node in known.small:
            _take(catalogue, ascents, node, begin + k, slope)
        ascend(ascents.price, price_slope, lengths[k])
        ascend(ascents.extra, slope, lengths[k])


@kernel
def prove(instance, weight, catalogue, ascents, listing, scratch, now):
    """Place all applications anew and learn their placements; return the bound that is proven.

    It is -inf where a placement is not proven to be the best. `scratch` is (nodes, masks).
    """
    known, placed, returned = catalogue.known, 0.0, 0.0
    for application in range(len(instance.source)):
        _charge_all(catalogue, ascents, application, scratch)
        _, least = _best(catalogue, ascents, application)
        begin, limit = known.first[application], least - ROUNDING
        fixed = weight, scratch, begin, listing, application
        found = list_placements(instance, known, *fixed, limit, True, _MOST_STEPS)
        if found < 0:
            return -np.inf
        if found > 0:
            least = listing.value[0]
            row = listing.nodes[0], listing.masks[0], listing.plain[0]
            learn(catalogue, application, *row, now)
        placed += least - ROUNDING
    for node in range(len(known.capacity)):
        for r in range(2):
            returned += ascents.price.price[node, r] / catalogue.unit[r] * known.capacity[node, r]
        if catalogue.is_small[node]:
            returned += _seek(catalogue, ascents, node)
            _forget(catalogue, ascents, node)
    return placed - returned - _COVER * (abs(placed) + 3 * returned)
