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

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.values import Objective, names_of
from placeopt.edge_cloud.arrays import EdgeCloudArrays, node_loads
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search.ascent import ascend, new_ascent
from placeopt.edge_cloud.local_search.climbs import Climbs
from placeopt.edge_cloud.local_search.exact_placement import BIG, placement_search, relax
from placeopt.edge_cloud.local_search.homes import Homes, homes, max_source_revenue, no_homes
from placeopt.edge_cloud.local_search.shapes import Shapes, shapes

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
        `placeopt.edge_cloud.local_search.homes`.
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
