"""Lagrangian prices of the nodes' capacities, and the lower bounds that they prove.

With a price for every unit of capacity, equation (1) splits into its applications. The sum of their
optima less the price of all capacities is a lower bound, whatever the prices. Prices ascend by
steps that place all applications anew, then by climbs among their columns; when they are final,
applications are charged for being at home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.values import Objective, names_of
from placeopt.core.kernels.common import copy_rows
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.numbers import ragged
from placeopt.edge_cloud import arrays as kernels
from placeopt.edge_cloud.arrays import EdgeCloudArrays, node_loads
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.search.placement import (
    BIG,
    Shapes,
    at_home,
    placement_search,
    relax,
    shapes,
    weighted_sum,
)

# -- ascents ---------------------------------------------------------------------------------------

#: Decay of the mean slope and of its mean square.
_MEAN_DECAY, _SQUARE_DECAY = 0.85, 0.95


class Ascent(NamedTuple):
    """Prices that ascend, kept at 0 or above."""

    price: np.ndarray  # (nodes, 2) of a mean demand, or (applications, 1)
    mean: np.ndarray  # the same shape; of the slopes
    square: np.ndarray  # mean of their squares
    step: np.ndarray  # int64 (1,) steps so far


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


# -- homes -----------------------------------------------------------------------------------------

#: Sets of a source's applications that fit there, beyond which nothing is charged: where so many
#: fit, one application more or less matters little.
MOST = 4096
#: Bits of a set, with its sign.
_BITS = 64


class Homes(NamedTuple):
    """Which applications may be at home together, for each source where not all of them may."""

    first: np.ndarray  # (sources + 1,) into `member`
    member: np.ndarray  # applications
    set_first: np.ndarray  # (sources + 1,) into `sets`
    sets: np.ndarray  # int64; bit k of a set is the k-th member; no set is within another
    free: np.ndarray  # applications that are no members: they are not charged


def homes(instance: EdgeCloudArrays, most: int = MOST) -> Homes:
    """Return the homes of an instance; sources where more than `most` sets fit are left out."""
    demand = np.add.reduceat(instance.demand, instance.first[:-1])
    members: list[np.ndarray] = []
    sets: list[np.ndarray] = []
    for source in np.unique(instance.source):
        member = np.flatnonzero(instance.source == source)
        largest = _largest_sets(demand[member], instance.capacity[source], most)
        if len(largest) > 1:  # else all applications that fit at all fit together
            members.append(member)
            sets.append(largest)
    first, member = ragged(members)
    return Homes(first, member, *ragged(sets), np.setdiff1d(np.arange(len(demand)), member))


def no_homes() -> Homes:
    """Return that nobody is charged."""
    return Homes(*ragged([]), *ragged([]), np.zeros(0, dtype=np.int64))


def _largest_sets(demand: np.ndarray, capacity: np.ndarray, most: int) -> np.ndarray:
    """Return the sets of rows of `demand` that fit, as bits, but for those within another.

    Returns none where more than `most` fit, or rows are more than bits.
    """
    sets, load = np.zeros(1, dtype=np.int64), np.zeros((1, 2))
    if len(demand) >= _BITS:
        return sets[:0]
    capacity = capacity * (1 + 1e-9)  # the order of a sum must not decide
    for k, more in enumerate(demand):
        fits = (load + more <= capacity).all(axis=1)
        sets = np.concatenate((sets, sets[fits] | 1 << k))
        load = np.concatenate((load, load[fits] + more))
        if len(sets) > most:
            return sets[:0]
    absent = sets[:, None] >> np.arange(len(demand)) & 1 == 0
    grows = absent & (load[:, None] + demand <= capacity).all(axis=2)
    return sets[~grows.any(axis=1)]


@kernel
def max_source_revenue(known, charge, slope):
    """Return the most that applications which may be at home together pay, over all sources.

    `known` are `Homes`; `charge` is (applications, 1). Takes 1 from the `slope`, (applications, 1),
    of each that is at home then; that of applications which are not charged becomes 0.
    """
    total = 0.0
    for application in known.free:
        slope[application, 0] = 0.0
    for source in range(len(known.first) - 1):
        low, high = known.first[source], known.first[source + 1]
        best, most = 0, -1.0
        for k in range(known.set_first[source], known.set_first[source + 1]):
            paid = 0.0
            for j in range(high - low):
                if known.sets[k] >> j & 1:
                    paid += charge[known.member[low + j], 0]
            if paid > most:
                best, most = known.sets[k], paid
        total += most
        for j in range(high - low):
            if best >> j & 1:
                slope[known.member[low + j], 0] -= 1
    return total


# -- columns ---------------------------------------------------------------------------------------

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


# -- climbs ----------------------------------------------------------------------------------------

#: The last step of a climb, in lengths of its first.
_LAST_STEP_OF_CHARGES = 0.1
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
        now = length * _LAST_STEP_OF_CHARGES ** (step / steps)
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


# -- prices ----------------------------------------------------------------------------------------

# ``models/edge_cloud/README.md`` says what was measured of the layers, the sample and the ramp.
#: First and last step of the prices of nodes, in units of `Relaxation.typical_difference`.
_FIRST_STEP, _LAST_STEP = 0.08, 0.0025
#: The same of the prices of layers, and how many steps these take.
_FIRST_LAYER_STEP, _LAST_LAYER_STEP, _LAYER_STEPS = 0.5, 0.03, 40
#: Applications, about, on which the prices of layers are found.
_SAMPLE = 128
#: The first so many steps are shorter, since the first slopes say little of each node.
_RAMP = 8
#: Steps that place all applications anew, before the first climb among columns.
_WHOLE_STEPS = 20
#: Nodes of the search for one application, after which only the part that is proven counts; fewer
#: for the sample, which proves nothing.
_SEARCH_LIMIT, _SAMPLE_LIMIT = 500, 30


@dataclass(frozen=True)
class Prices:
    """Prices of the nodes' capacities, and a lower bound.

    The bound is proven by these prices, or by prices and charges that an ascent found from them.

    Attributes
    ----------
    weight : float
        Of the cost.
    price : ndarray, shape (nodes, 2)
        Per unit of cpu and memory, without charges; plans are built under these.
    bound : float
        Nothing feasible has a smaller weighted sum.
    charged : (ndarray, ndarray) or None
        Prices, (nodes, 2), and charges for being at home, (applications, 1), that prove the bound
        together, where an ascent found some.
    """

    weight: float
    price: np.ndarray
    bound: float
    charged: tuple[np.ndarray, np.ndarray] | None = None


def typical_differences(instance: EdgeCloudArrays) -> tuple[float, float]:
    """Return how much the choice of a node typically changes cost and latency by."""
    delays = instance.delay[instance.source]
    delays = delays[np.isfinite(delays) & (delays > 0)]
    latency = float(np.median(delays)) if delays.size else 0.0
    return float(np.ptp(instance.operating + instance.network * instance.data.mean())), latency


class Relaxation:
    """The problem without the capacities that applications share.

    Attributes
    ----------
    instance : EdgeCloudArrays
    search : PlacementSearch
        Scratch of the search for the best placement of one application.
    hosts : ndarray of int64, shape (microservices,)
        The placements of the last bound; the next begins with them.
    """

    def __init__(self, problem: EdgeCloud):
        self.instance = instance = problem.arrays
        self.search = placement_search(instance)
        self.hosts = np.full(len(instance.demand), -1)
        self._values = np.zeros(len(instance.source))
        self.unit = np.maximum(instance.demand.mean(axis=0), 1e-9)
        layers = np.array([problem.layers.index(node.layer) for node in problem.nodes])
        self._member = layers[:, None] == np.arange(len(problem.layers))  # (nodes, layers)

        self._differences = typical_differences(instance)
        self._no_charge = np.zeros((len(instance.source), 1))

    @cached_property
    def shapes(self) -> Shapes | None:
        """What sets of an application's microservices demand; None where they are too many."""
        return shapes(self.instance)

    @cached_property
    def homes(self) -> Homes:
        """Which applications may run wholly at their source together."""
        return homes(self.instance)

    def typical_difference(self, weight: float) -> float:
        """Return how much the choice of a node typically changes a weighted sum by."""
        cost, latency = self._differences
        return weight * cost + (1 - weight) * latency or 1.0

    def _relax(
        self,
        weight: float,
        price: np.ndarray,
        charge: np.ndarray,
        chosen: np.ndarray,
        limit: int = _SEARCH_LIMIT,
    ) -> float:
        """Place applications alone under prices, in `hosts`; return what is proven of the sum."""
        arrays = self.search, self.hosts, chosen, self._values
        return float(relax(self.instance, weight, price, charge, *arrays, limit))

    def bound(self, weight: float, price: np.ndarray, charge: np.ndarray | None = None) -> float:
        """Return the lower bound that prices prove; inf where an application has no place.

        `charge`, shape (applications, 1), is what applications pay for being at home: see
        `placeopt.edge_cloud.search.prices`.
        """
        at_home = no_homes() if charge is None else self.homes
        charge = self._no_charge if charge is None else charge
        returned = float((price * self.instance.capacity).sum())
        returned += max_source_revenue(at_home, charge, np.zeros_like(charge))
        proven = self._relax(weight, price, charge, np.arange(len(self._values)))
        if proven >= BIG / 2:
            return np.inf
        return proven - returned - 1e-11 * (abs(proven) + 3 * returned)  # covers rounding

    def costs_alone(self, weight: float, price: np.ndarray) -> np.ndarray:
        """Return the cost of each application alone, prices included, shape (applications,)."""
        self.bound(weight, price)
        return self._values.copy()

    def _layer_prices(self, weight: float, share: Budget, scale: float) -> np.ndarray:
        """Return prices to begin with, in mean demands, shape (nodes, 2).

        The nodes of a layer have one price, which is found on a sample of the applications.
        """
        instance, member = self.instance, self._member
        applications = len(instance.source)
        chosen = np.arange(0, applications, max(1, applications // _SAMPLE))
        part = len(chosen) / applications
        capacity = member.T @ instance.capacity
        ascent = new_ascent(np.zeros(capacity.shape))
        best, proven = ascent.price.copy(), -np.inf
        self.hosts[:] = -1
        for step in range(_LAYER_STEPS):
            price = member @ ascent.price / self.unit
            bound = self._relax(weight, price, self._no_charge, chosen, _SAMPLE_LIMIT) / part
            bound -= float((price * instance.capacity).sum())
            if bound > proven:
                best, proven = ascent.price.copy(), bound
            if int((step + 1) * part) > int(step * part):
                share.spend(1)
            if share.progress > 0.3 or share.out_of_time:
                break
            slope = (member.T @ node_loads(instance, self.hosts) / part - capacity) / self.unit
            decay = (_LAST_LAYER_STEP / _FIRST_LAYER_STEP) ** (step / _LAYER_STEPS)
            ascend(ascent, slope, scale * _FIRST_LAYER_STEP * decay)
        return member @ best

    def ascend(
        self,
        weight: float,
        share: Budget,
        steps: int = 200,
        start: np.ndarray | None = None,
    ) -> Prices:
        """Return good prices for a weight of the cost; every step is an evaluation.

        Parameters
        ----------
        share : Budget
            Ends the ascent before `steps`.
        start : ndarray, optional
            Prices to begin with, shape (nodes, 2); prices of layers by default.
        """
        scale = self.typical_difference(weight)
        climbs = Climbs(self.instance, weight, self.unit, scale)
        begin = self._layer_prices(weight, share, scale) if start is None else start * self.unit
        whole, ascent = _WHOLE_STEPS if start is None else 0, new_ascent(begin)
        best, plain = Prices(weight, begin / self.unit, -np.inf), None
        charge = best_charge = self._no_charge
        for step in range(steps):
            price = ascent.price / self.unit
            proven = self.bound(weight, price, charge if plain else None)
            share.spend(1)
            gain = proven - best.bound
            if gain > 0:
                best, best_charge = Prices(weight, price, proven), charge
            if share.exhausted or (not plain and self._final(price)):
                break
            climbs.remember(self.hosts)
            if step < whole:
                length = min(1.0, (step + 1) / (_RAMP + 1)) * scale * _FIRST_STEP
                decay = (_LAST_STEP / _FIRST_STEP) ** (step / whole)
                ascend(ascent, self._overload() / self.unit, length * decay)
                continue
            if not climbs.go_on(gain, best.bound):
                if plain or not len(self.homes.member):
                    break
                plain = best
                climbs.charge(self.homes, best.bound)
            price, charge = climbs.climb(best.price * self.unit, best_charge, self.hosts)
            ascent = new_ascent(price)
        charged = best.price, best_charge
        if plain:
            best = replace(plain, bound=best.bound, charged=charged)
        return best

    def _overload(self) -> np.ndarray:
        """Return what the placements in `hosts` demand of each node above its capacity."""
        return node_loads(self.instance, self.hosts) - self.instance.capacity

    def _final(self, price: np.ndarray) -> bool:
        """Return whether no prices prove more, or an application has no place even alone.

        Placements that fit and pay for no room that they leave are optimal.
        """
        if (self.hosts < 0).any():
            return True
        overload = self._overload()
        return bool(((overload <= 0) & ((overload == 0) | (price == 0))).all())

    def ascents(
        self,
        weights: Sequence[float],
        budget: Budget,
        steps: tuple[int, int],
        part: float = 1.0,
        start: np.ndarray | None = None,
    ) -> Iterator[tuple[Prices, Budget]]:
        """Yield good prices for one weight after another, each from the prices before.

        The first weight is served whatever is left of the budget.

        Parameters
        ----------
        steps : (int, int)
            Steps for the first weight, and for each that follows.
        part : float
            Part of a weight's share of the budget that the prices may use; what is left of the
            share is yielded too.
        start : ndarray, optional
            Prices to begin with, shape (nodes, 2).
        """
        for k, weight in enumerate(weights):
            if k and budget.exhausted:
                return
            share = budget.share(1 / (len(weights) - k))
            own = share.share(part)
            prices = self.ascend(weight, own, steps[k > 0], start)
            yield prices, share
            start = prices.price


def lower_bounds(
    proofs: Iterable[Prices], problem: EdgeCloud, objectives: Sequence[Objective], cells: int = 200
) -> list[list[float]]:
    """Return a lower-bound set of the selected objectives from proofs for several weights.

    Each proof says that no plan lies below a line. The costs are cut into cells. In each, the least
    cost of the cell and the least latency that all lines allow there bound every plan. No plan
    costs more than the dearest node of every microservice, where the lines bound all latencies.
    """
    instance = problem.arrays
    lines = np.array([(p.weight, p.bound) for p in proofs if np.isfinite(p.bound)]).reshape(-1, 2)
    weight, bound = lines.T
    falling, rising = weight < 1, weight > 0  # lines that bound the latency, and the cost

    def latency(cost: np.ndarray) -> np.ndarray:
        """Return the least latency of plans of at most this cost."""
        heights = bound[falling] - np.outer(cost, weight[falling])
        return (heights / (1 - weight[falling])).max(axis=1, initial=0.0)

    dearest = np.sum([(instance.operating + instance.network * x).max() for x in instance.data])
    least_cost = max([instance.least_cost.sum() * (1 - 1e-9), *bound[weight == 1]])
    least_latency = latency(dearest[None] * (1 + 1e-9))[0]
    names = names_of(objectives)
    if len(names) == 1:
        return [[float(least_cost if names[0] == "cost" else least_latency)]]
    levels = np.linspace(least_latency, latency(np.array([least_cost]))[0], cells // 2)
    costs = (bound[rising] - np.outer(levels, 1 - weight[rising])) / weight[rising]
    costs = costs.max(axis=1, initial=least_cost)
    edges = np.unique([*np.linspace(least_cost, costs.max(), cells // 2), *costs])
    heights = np.append(np.maximum(latency(edges[1:]), least_latency), least_latency)
    corners = np.column_stack((edges, heights))
    return corners[:, problem.columns(objectives)].tolist()
