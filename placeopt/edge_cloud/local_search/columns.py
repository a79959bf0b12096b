"""Placements that applications were given before, and prices that ascend among those alone.

To place an application best takes some hundred times as long as to compare the placements that are
known of it. So each step that places all of them anew is followed by hundreds that choose among the
known placements. The field calls a known placement a column, and what the steps solve the
restricted master (column generation).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.edge_cloud import kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.exact_placement import BIG, at_home, weighted_sum
from placeopt.edge_cloud.local_search.homes import Homes, fill, no_homes

#: Columns of an application; the one that was chosen longest ago makes room for another.
KEPT = 16
#: Decay of a column's share from step to step.
_SHARE_DECAY = 0.98
#: Decay of the mean slope and of its mean square.
_MEAN_DECAY, _SQUARE_DECAY = 0.85, 0.95
#: The last step of a climb, in lengths of its first.
_LAST_STEP = 0.1
#: Steps of a climb, at least, and for each node: the time to place all applications anew grows with
#: the nodes.
_STEPS, _STEPS_OF_NODE = 64, 0.33
#: First step of the first climb, in typical differences; it grows after a climb that proves half of
#: what it promised, and shrinks after one that proves nothing or promises next to nothing, which is
#: this part of the bound. Prices are final where a climb would begin with the least.
_LENGTH, _LONGER, _SHORTER, _LITTLE, _LEAST = 0.01, 1.5, 0.5, 1e-5, 0.0005


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


class Ascent(NamedTuple):
    """Prices that ascend along slopes by Adam (D. Kingma and J. Ba, 2015), kept at 0 or above."""

    price: np.ndarray  # (nodes, 2) of a mean demand, or (applications, 1)
    mean: np.ndarray  # the same shape; of the slopes
    square: np.ndarray  # mean of their squares
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


def new_ascent(price: np.ndarray) -> Ascent:
    """Return an ascent that begins at a price."""
    zero = np.zeros_like(price)
    return Ascent(price.copy(), zero, zero.copy(), np.zeros(1, dtype=np.int64))


@kernel
def ascend(ascent, slope, length):
    """Move each price by about `length` where its slope keeps its sign, in place."""
    ascent.step[0] += 1
    known_mean = 1 - _MEAN_DECAY ** ascent.step[0]
    known_square = 1 - _SQUARE_DECAY ** ascent.step[0]
    for node in range(len(slope)):
        for k in range(slope.shape[1]):
            mean = _MEAN_DECAY * ascent.mean[node, k] + (1 - _MEAN_DECAY) * slope[node, k]
            square = _SQUARE_DECAY * ascent.square[node, k]
            square += (1 - _SQUARE_DECAY) * slope[node, k] ** 2
            ascent.mean[node, k], ascent.square[node, k] = mean, square
            change = mean / known_mean / (np.sqrt(square / known_square) + 1e-12)
            ascent.price[node, k] = max(0.0, ascent.price[node, k] + length * change)


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
def _choose(instance, price, charge, applications, columns, load, homed):
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


@allocating_kernel
def climb(instance, unit, applications, columns, homes, prices, charges, steps, length):
    """Take steps of prices and charges that choose among columns of some applications, in place.

    `prices` and `charges` are ascents, the former of `unit`, (2,). The first step has the given
    length, the last a tenth of it. Returns the highest value of the relaxed problem on the way, its
    prices and its charges.
    """
    price, best, highest = np.empty_like(prices.price), prices.price.copy(), -np.inf
    slope, homed, best_charge = np.empty_like(price), charges.price.copy(), charges.price.copy()
    for step in range(steps):
        value = 0.0
        for node in range(len(price)):
            for k in range(2):
                price[node, k] = prices.price[node, k] / unit[k]
                value -= price[node, k] * instance.capacity[node, k]
                slope[node, k] = 0.0
        homed[:] = 0.0
        value += _choose(instance, price, charges.price, applications, columns, slope, homed)
        value -= fill(homes, charges.price, homed)
        if value > highest:
            highest = value
            best[:], best_charge[:] = prices.price, charges.price
        for node in range(len(price)):
            for k in range(2):
                slope[node, k] = (slope[node, k] - instance.capacity[node, k]) / unit[k]
        now = length * _LAST_STEP ** (step / steps)
        ascend(prices, slope, now)
        if len(homes.member) > 0:
            ascend(charges, homed, now)
    return highest, best, best_charge


class Climbs:
    """Climbs among the columns of one weight, each as long as the one before deserves.

    Parameters
    ----------
    unit : ndarray, shape (2,)
        The mean demand.
    difference : float
        What the choice of a node typically changes a weighted sum by.
    """

    def __init__(
        self, instance: EdgeCloudArrays, weight: float, unit: np.ndarray, difference: float
    ):
        self._instance, self._weight, self._unit = instance, weight, unit
        self._columns, self._everyone = no_columns(instance), np.arange(len(instance.source))
        self._steps = max(_STEPS, int(_STEPS_OF_NODE * len(instance.capacity)))
        self._difference, self._length = difference, _LENGTH
        self._promised = np.nan  # of the last climb, above the bound from where it began
        self._homes = no_homes()

    def charge(self, homes: Homes, bound: float) -> None:
        """Charge applications for being at home from now on, by climbs of the first length.

        `bound` is the best one so far.
        """
        self._homes, self._length, self._promised = homes, _LENGTH, -bound

    def remember(self, hosts: np.ndarray) -> None:
        """Make columns of the placements in `hosts`, (microservices,)."""
        remember(self._instance, self._weight, hosts, self._everyone, self._columns)

    def go_on(self, gain: float, bound: float) -> bool:
        """Learn what the last climb gained; return whether another may gain something.

        `bound` is the best one so far.
        """
        if gain > self._promised / 2:
            self._length *= _LONGER
        elif gain <= 0 or self._promised <= _LITTLE * abs(bound):
            self._length *= _SHORTER
        self._promised = -bound
        return self._length >= _LEAST

    def climb(
        self, price: np.ndarray, charge: np.ndarray, hosts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return better prices, (nodes, 2), and charges, (applications, 1), than those given.

        Prices are of a mean demand. Writes the best columns into `hosts`, where the next search
        begins.
        """
        known, length = (self._everyone, self._columns), self._difference * self._length
        highest, price, charge = climb(
            self._instance,
            self._unit,
            *known,
            self._homes,
            new_ascent(price),
            new_ascent(charge),
            self._steps,
            length,
        )
        self._promised += highest
        place(self._instance, price / self._unit, charge, *known, hosts)
        return price, charge
