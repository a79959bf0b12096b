"""Plans for one weight: built under prices, then improved by a large neighbourhood search."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placeopt.core.budget import Budget
from placeopt.edge_cloud.arrays import ORDERS, order_of
from placeopt.edge_cloud.local_search import kernels
from placeopt.edge_cloud.local_search import state as states
from placeopt.edge_cloud.local_search.prices import Prices, Relaxation

#: Nodes of the search for the best placement of one application.
SEARCH_LIMIT = 300
#: Temperatures of the annealing at its beginning and end, in parts of the mean value of an application.
HOT, COLD = 0.1, 0.004
#: Rebuilds between two looks at the clock.
_CHUNK = 200


class Builder:
    """Builds and improves plans of one instance; a plan is the node of every microservice, -1 where it has none.

    Parameters
    ----------
    most : int
        Most applications that are taken out at once.
    strength : float
        Largest share of the prices that rebuilding pays.
    """

    def __init__(
        self, relaxation: Relaxation, rng: np.random.Generator, most: int = 6, strength: float = 0.8
    ):
        self.relaxation, self.table, self.rng = relaxation, relaxation.table, rng
        self.most, self.strength = most, strength
        self._orders = [order_of(relaxation.table, name) for name in ORDERS]
        table = relaxation.table
        farthest = table.delay[np.isfinite(table.delay)].max(initial=0.0)
        dearest = (table.operating.max() + table.network.max() * table.data.max()) * np.diff(
            table.first
        ).max()
        self._unplaced = 10.0 * (1 + farthest + dearest)

    def value(self, weight: float, hosts: np.ndarray) -> float:
        """Return equation (1) of a plan; an application without a place counts more than any other could."""
        placed = [a for a in range(len(self.table.source)) if hosts[self.table.first[a]] >= 0]
        missing = len(self.table.source) - len(placed)
        return (
            sum(kernels.value(self.table, weight, hosts, a) for a in placed)
            + missing * self._unplaced
        )

    def least(self, weight: float, plans: list[np.ndarray]) -> np.ndarray:
        """Return the plan of least value."""
        return min(plans, key=lambda hosts: self.value(weight, hosts))

    def build(self, prices: Prices, shares: Iterable[float] = (1.0, 0.8)) -> np.ndarray:
        """Return the best plan of those built in every order at these shares of the prices."""
        table, weight, found = self.table, prices.weight, []
        for share in shares:
            for order in self._orders:
                hosts, room = np.empty(len(table.demand), dtype=np.int64), table.capacity.copy()
                kernels.construct(
                    table,
                    weight,
                    self.relaxation.near,
                    self.relaxation.floor(weight),
                    share * prices.price,
                    self.relaxation.work,
                    order,
                    room,
                    hosts,
                    SEARCH_LIMIT,
                )
                found.append(hosts)
        return self.least(weight, found)

    def improve(self, prices: Prices, hosts: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the best plan met in a large neighbourhood search that uses up a share of a budget; every rebuild is an evaluation."""
        table, weight = self.table, prices.weight
        state = states.search(
            table, hosts, self.rng, self.relaxation.target(weight, prices.price), self._unplaced
        )
        kernels.enter(table, weight, state)
        scale = prices.bound / len(table.source)
        scale = max(scale, 0.1 * state.totals[0] / len(table.source), 1e-9)
        left = budget.share()
        while not budget.exhausted:
            rounds = max(1, budget.allow(_CHUNK))
            heat = scale * HOT * (COLD / HOT) ** left.progress
            kernels.improve(
                table,
                weight,
                self.relaxation.near,
                self.relaxation.floor(weight),
                prices.price,
                state,
                self.relaxation.work,
                rounds,
                heat,
                heat,
                self.most,
                self.strength,
                SEARCH_LIMIT,
            )
            budget.spend(rounds)
        return state.best.copy()
