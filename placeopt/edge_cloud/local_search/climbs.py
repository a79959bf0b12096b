"""Climbs: prices ascend while applications choose among their columns alone.

A climb of a hundred steps takes about as long as one step that places all applications anew. One
follows the other. A climb solves the restricted master of column generation; the length of its
steps is a trust region.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel
from placeopt.core.kernels.rows import copy_rows
from placeopt.edge_cloud.arrays import EdgeCloudArrays
from placeopt.edge_cloud.local_search.ascent import ascend, new_ascent
from placeopt.edge_cloud.local_search.columns import choose, no_columns, place, remember
from placeopt.edge_cloud.local_search.homes import Homes, max_source_revenue, no_homes

#: The last step of a climb, in lengths of its first.
_LAST_STEP = 0.1
#: Steps of a climb, at least, and for each node: the time to place all applications anew grows with
#: the nodes.
_STEPS, _STEPS_OF_NODE = 64, 0.33
#: First step of the first climb, in typical differences; it grows after a climb that proves half of
#: what it promised, and shrinks after one that proves nothing or promises next to nothing, which is
#: this part of the bound. Prices are final where a climb would begin with the least.
_LENGTH, _LONGER, _SHORTER, _LITTLE, _LEAST = 0.01, 1.5, 0.5, 1e-5, 0.0005


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
        value += choose(instance, price, charges.price, applications, columns, slope, homed)
        value -= max_source_revenue(homes, charges.price, homed)
        if value > highest:
            highest = value
            copy_rows(prices.price, best)
            copy_rows(charges.price, best_charge)
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

    Attributes
    ----------
    columns : Columns
        The placements that applications were given.
    """

    def __init__(
        self, instance: EdgeCloudArrays, weight: float, unit: np.ndarray, difference: float
    ):
        self._instance, self._weight, self._unit = instance, weight, unit
        self.columns, self._everyone = no_columns(instance), np.arange(len(instance.source))
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
        remember(self._instance, self._weight, hosts, self._everyone, self.columns)

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
        known, length = (self._everyone, self.columns), self._difference * self._length
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
