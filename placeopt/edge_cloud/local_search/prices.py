"""Prices of scarce nodes, and the lower bounds that they prove.

With a price for every unit of capacity, equation (1) splits into its applications; the sum of their optima less the value of all
capacities is a lower bound whatever the prices. The prices climb to a good one along normalised subgradients with momentum (Adam;
D. Kingma and J. Ba, 2015), which needs neither a guess of the optimum nor a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import Objective
from placeopt.edge_cloud.instance import EdgeCloud
from placeopt.edge_cloud.local_search import kernels
from placeopt.edge_cloud.local_search import state as states

#: First and last step of the prices, in parts of what a node makes a difference to a microservice.
FIRST_STEP, LAST_STEP = 0.08, 0.0025
#: The same of the prices by layer that these begin with, how many steps, and the applications that they look at.
FIRST_LAYER_STEP, LAST_LAYER_STEP, LAYER_STEPS, SAMPLE = 0.5, 0.03, 40, 128
#: Memory of the mean slope and of its square; steps over which their length grows, since the first slopes say little of each node.
MEAN, SQUARE, RAMP = 0.85, 0.95, 8
#: Nodes of the search for one application after which only its proven part counts; fewer for the sample, which proves nothing.
SEARCH_LIMIT, SAMPLE_LIMIT = 500, 30


@dataclass(frozen=True)
class Prices:
    """Prices of one weight of the cost, and what they prove.

    Attributes
    ----------
    price : ndarray, shape (nodes, 2)
        Per unit of cpu and memory.
    bound : float
        Nothing feasible has a smaller weighted sum.
    """

    weight: float
    price: np.ndarray
    bound: float


class _Climb:
    """Prices that climb along slopes, each with a step of its own: Adam, kept above 0."""

    def __init__(self, start: np.ndarray):
        self.price, self.count = start, 0
        self._mean, self._square = np.zeros_like(start), np.zeros_like(start)

    def step(self, slope: np.ndarray, length: float) -> None:
        """Move by about `length` in each direction that the slope keeps."""
        self.count += 1
        self._mean = MEAN * self._mean + (1 - MEAN) * slope
        self._square = SQUARE * self._square + (1 - SQUARE) * slope**2
        mean, square = self._mean / (1 - MEAN**self.count), self._square / (1 - SQUARE**self.count)
        self.price = np.maximum(0.0, self.price + length * mean / (np.sqrt(square) + 1e-12))


class Relaxation:
    """The problem without the capacities that applications share."""

    def __init__(self, problem: EdgeCloud):
        self.problem, self.table = problem, problem.arrays
        self.near = np.argsort(self.table.delay, axis=1, kind="stable")
        self.work = states.work(self.table)
        self.hosts = np.full(len(self.table.demand), -1)
        self._worth = np.zeros(len(self.table.source))
        self._all = np.arange(len(self.table.source))
        self._unit = np.maximum(self.table.demand.mean(axis=0), 1e-9)
        self._floors: dict[float, np.ndarray] = {}

    def floor(self, weight: float) -> np.ndarray:
        """Return the least weighted cost of each microservice, shape (microservices,)."""
        if weight not in self._floors:
            self._floors[weight] = np.empty(len(self.table.demand))
            kernels.floors(self.table, weight, self._floors[weight])
        return self._floors[weight]

    def scale(self, weight: float) -> float:
        """Return how much difference a node typically makes to a microservice."""
        table = self.table
        distance = table.delay[table.source]
        typical = (
            np.median(distance[np.isfinite(distance) & (distance > 0)])
            if (np.isfinite(distance) & (distance > 0)).any()
            else 0.0
        )
        spread = np.ptp(table.operating + table.network * table.data.mean())
        return float(weight * spread + (1 - weight) * typical) or 1.0

    def _relax(
        self, weight: float, price: np.ndarray, chosen: np.ndarray, limit: int = SEARCH_LIMIT
    ) -> float:
        """Place applications alone under prices, in `hosts`; return what is proven of the sum of their costs."""
        args = (
            self.table,
            weight,
            self.near,
            self.floor(weight),
            price,
            self.work,
            self.hosts,
            chosen,
            self._worth,
            limit,
        )
        return float(kernels.relax(*args))

    def bound(self, weight: float, price: np.ndarray) -> float:
        """Return the lower bound that prices prove, inf where an application has no place; the placements are left in `hosts`."""
        proven, capacity = (
            self._relax(weight, price, self._all),
            float((price * self.table.capacity).sum()),
        )
        if proven >= kernels.BIG / 2:
            return np.inf
        return (
            proven - capacity - 1e-11 * (abs(proven) + 3 * capacity)
        )  # what rounding may have added

    def target(self, weight: float, price: np.ndarray) -> np.ndarray:
        """Return what each application costs under prices if it is alone, shape (applications,)."""
        self.bound(weight, price)
        return self._worth.copy()

    def excess(self) -> np.ndarray:
        """Return by how much the placements in `hosts` overload each node, shape (nodes, 2), in mean demands."""
        return (self._load() - self.table.capacity) / self._unit

    def _load(self) -> np.ndarray:
        load, placed = np.zeros_like(self.table.capacity), self.hosts >= 0
        np.add.at(load, self.hosts[placed], self.table.demand[placed])
        return load

    def _begin(self, weight: float, share: Budget, scale: float) -> np.ndarray:
        """Return prices to begin with, in mean demands: one for each layer, found on a sample of the applications."""
        layers = self.problem.layers
        member = np.array([node.layer for node in self.problem.nodes])[:, None] == np.array(
            layers
        )  # (nodes, layers)
        chosen = np.arange(0, len(self._all), max(1, len(self._all) // SAMPLE))
        part = len(chosen) / len(self._all)
        capacity = member.T @ self.table.capacity
        climb, best, proven = (
            _Climb(np.zeros((len(layers), 2))),
            np.zeros((len(layers), 2)),
            -np.inf,
        )
        self.hosts[:] = -1
        for step in range(LAYER_STEPS):
            price = member @ climb.price / self._unit
            bound = self._relax(weight, price, chosen, SAMPLE_LIMIT) / part - float(
                (price * self.table.capacity).sum()
            )
            if bound > proven:
                best, proven = climb.price, bound
            if int((step + 1) * part) > int(step * part):
                share.spend(1)
            if share.progress > 0.3:
                break
            slope = (member.T @ self._load() / part - capacity) / self._unit
            climb.step(
                slope,
                scale
                * FIRST_LAYER_STEP
                * (LAST_LAYER_STEP / FIRST_LAYER_STEP) ** (step / LAYER_STEPS),
            )
        return member @ best

    def ascend(
        self, weight: float, share: Budget, steps: int = 200, start: np.ndarray | None = None
    ) -> Prices:
        """Return good prices for a weight of the cost, in at most `steps` and a share of a budget; every step is an evaluation."""
        scale = self.scale(weight)
        climb = _Climb(self._begin(weight, share, scale) if start is None else start * self._unit)
        best = Prices(weight, climb.price / self._unit, -np.inf)
        first, last = scale * FIRST_STEP, scale * LAST_STEP
        for step in range(steps):
            proven = self.bound(weight, climb.price / self._unit)
            share.spend(1)
            if proven > best.bound:
                best = Prices(weight, climb.price / self._unit, proven)
            if share.exhausted or (self.hosts < 0).any():  # an application has no place even alone
                break
            slope = self.excess()
            if ((slope <= 0) & ((slope == 0) | (climb.price == 0))).all():
                break  # the placements fit and pay for no room that they leave: they are optimal
            climb.step(
                slope,
                min(1.0, (step + 1) / (RAMP + 1))
                * first
                * (last / first) ** max(step / steps, share.progress),
            )
        return best


def staircase(
    proofs: Iterable[Prices], problem: EdgeCloud, objectives: Sequence[Objective], cells: int = 200
) -> list[list[float]]:
    """Return a lower-bound set of the selected objectives from proofs for several weights.

    Each proof says that no plan lies below a line. The costs are cut into cells; in each, the corner of its least cost and of the
    least latency that all lines allow bounds every plan.
    """
    table = problem.arrays
    lines = np.array([(p.weight, p.bound) for p in proofs if np.isfinite(p.bound)]).reshape(-1, 2)
    weight, bound = lines.T
    least_cost = max(
        [
            float((table.operating + np.outer(table.data, table.network)).min(axis=1).sum())
            * (1 - 1e-9),
            *bound[weight == 1],
        ]
    )
    # No plan costs more than the dearest, so every line bounds the latency of all plans.
    dearest = float((table.operating + np.outer(table.data, table.network)).max(axis=1).sum())
    use = weight < 1
    ends = bound[use] - dearest * (1 + 1e-9) * weight[use]
    least_latency = max([0.0, *(ends / (1 - weight[use]))])
    names = [o.name for o in objectives]
    if len(names) == 1:
        return [[least_cost if names[0] == "cost" else least_latency]]

    def latency(cost: np.ndarray) -> np.ndarray:
        """Least latency of plans of at most this cost."""
        use = weight < 1
        heights = (bound[use] - np.outer(cost, weight[use])) / (1 - weight[use])
        return np.maximum(least_latency, heights.max(axis=1, initial=least_latency))

    use = weight > 0
    levels = np.linspace(least_latency, float(latency(np.array([least_cost]))[0]), cells // 2)
    costs = ((bound[use] - np.outer(levels, 1 - weight[use])) / weight[use]).max(
        axis=1, initial=least_cost
    )
    edges = np.unique(
        np.concatenate(
            (np.linspace(least_cost, costs.max(), cells // 2), np.maximum(costs, least_cost))
        )
    )
    heights = np.append(latency(edges[1:]), least_latency)
    corners = {"cost": edges, "latency_ms": heights}
    return np.stack([corners[name] for name in names], axis=1).tolist()
