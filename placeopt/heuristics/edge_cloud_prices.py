"""Prices of scarce nodes, and the lower bounds that they prove.

With a price for every unit of capacity, equation (1) splits into its applications; the sum of their optima less the value of all
capacities is a lower bound whatever the prices. The prices climb to a good one along normalised subgradients with momentum (Adam;
D. Kingma and J. Ba, 2015), which needs neither a guess of the optimum nor a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.front import Objective
from placeopt.heuristics import edge_cloud_kernels as kernels
from placeopt.heuristics import edge_cloud_state as states
from placeopt.heuristics.shares import Share
from placeopt.problems.edge_cloud import EdgeCloud
from placeopt.sequential.edge_cloud import EdgeCloudSequence

#: First and last step of the prices, in parts of what a node makes a difference to a microservice.
FIRST_STEP, LAST_STEP = 0.08, 0.0025
#: Price of a mean demand on nodes that a greedy plan fills, in the same parts.
BEGIN = 0.3
#: Nodes of the search for one application after which only its proven part counts.
SEARCH_LIMIT = 500


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


class Relaxation:
    """The problem without the capacities that applications share."""

    def __init__(self, problem: EdgeCloud):
        self.problem, self.table = problem, problem.arrays
        self.near = np.argsort(self.table.delay, axis=1, kind="stable")
        self.work = states.work(self.table)
        self.hosts = np.full(len(self.table.demand), -1)
        self._unit = np.maximum(self.table.demand.mean(axis=0), 1e-9)
        self._floors: dict[float, np.ndarray] = {}
        self._face = EdgeCloudSequence(problem, problem.objectives)

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
        typical = np.median(distance[np.isfinite(distance) & (distance > 0)]) if (np.isfinite(distance) & (distance > 0)).any() else 0.0
        spread = np.ptp(table.operating + table.network * table.data.mean())
        return float(weight * spread + (1 - weight) * typical) or 1.0

    def bound(self, weight: float, price: np.ndarray) -> float:
        """Return the lower bound that prices prove, inf where an application has no place; the placements are left in `hosts`."""
        proven = kernels.relax(self.table, weight, self.near, self.floor(weight), price, self.work, self.hosts, SEARCH_LIMIT)
        if proven >= kernels.BIG / 2:
            return np.inf
        return proven - 1e-11 * (abs(proven) + 2 * float((price * self.table.capacity).sum()))  # what rounding may have added

    def excess(self) -> np.ndarray:
        """Return by how much the placements in `hosts` overload each node, shape (nodes, 2), in mean demands."""
        load = np.zeros_like(self.table.capacity)
        np.add.at(load, self.hosts, self.table.demand)
        return (load - self.table.capacity) / self._unit

    def greedy(self, weight: float) -> np.ndarray:
        """Return the greedy plan, -1 where an application has no place."""
        state = self._face.reset()
        self._face.play_greedy(state, np.array([weight, 1 - weight]), self._face.decisions)
        return state.hosts

    def _begin(self, weight: float) -> tuple[np.ndarray, float]:
        """Return prices to begin with, in mean demands, and the scale of the steps: what a greedy plan says of scarcity."""
        hosts, table = self.greedy(weight), self.table
        load = np.zeros_like(table.capacity)
        np.add.at(load, hosts[hosts >= 0], table.demand[hosts >= 0])
        placed = [a for a in range(len(table.source)) if hosts[table.first[a]] >= 0]
        above = sum(kernels.value(table, weight, hosts, a) for a in placed) / max(1, len(placed)) - self.floor(weight).sum() / len(table.source)
        return np.where(load > 0.9 * table.capacity, BEGIN * self.scale(weight), 0.0), max(self.scale(weight), 0.9 * above)

    def ascend(self, weight: float, share: Share, steps: int = 200, start: np.ndarray | None = None) -> Prices:
        """Return good prices for a weight of the cost, in at most `steps` and a share of a budget; every step is an evaluation."""
        scaled, scale = self._begin(weight)
        if start is not None:
            scaled = start * self._unit
        mean, square = np.zeros_like(scaled), np.zeros_like(scaled)
        best = Prices(weight, scaled / self._unit, -np.inf)
        first, last = scale * FIRST_STEP, scale * LAST_STEP
        for step in range(steps):
            proven = self.bound(weight, scaled / self._unit)
            share.spend(1)
            if proven > best.bound:
                best = Prices(weight, scaled / self._unit, proven)
            if share.exhausted or (self.hosts < 0).any():  # an application has no place even alone
                break
            slope = self.excess()
            if ((slope <= 0) & ((slope == 0) | (scaled == 0))).all():
                break  # the placements fit and pay for no room that they leave: they are optimal
            mean = 0.85 * mean + 0.15 * slope
            square = 0.95 * square + 0.05 * slope**2
            length = first * (last / first) ** max(step / steps, share.progress)
            move = mean / (1 - 0.85 ** (step + 1)) / (np.sqrt(square / (1 - 0.95 ** (step + 1))) + 1e-12)
            scaled = np.maximum(0.0, scaled + length * move)
        return best


def staircase(proofs: Iterable[Prices], problem: EdgeCloud, objectives: Sequence[Objective], cells: int = 200) -> list[list[float]]:
    """Return a lower-bound set of the selected objectives from proofs for several weights.

    Each proof says that no plan lies below a line. The costs are cut into cells; in each, the corner of its least cost and of the
    least latency that all lines allow bounds every plan.
    """
    table = problem.arrays
    lines = np.array([(p.weight, p.bound) for p in proofs if np.isfinite(p.bound)]).reshape(-1, 2)
    weight, bound = lines.T
    least_cost = max([float((table.operating + np.outer(table.data, table.network)).min(axis=1).sum()) * (1 - 1e-9), *bound[weight == 1]])
    least_latency = max([0.0, *bound[weight == 0]])
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
    costs = ((bound[use] - np.outer(levels, 1 - weight[use])) / weight[use]).max(axis=1, initial=least_cost)
    edges = np.unique(np.concatenate((np.linspace(least_cost, costs.max(), cells // 2), np.maximum(costs, least_cost))))
    heights = np.append(latency(edges[1:]), least_latency)
    corners = {"cost": edges, "latency_ms": heights}
    return np.stack([corners[name] for name in names], axis=1).tolist()
