"""Multi-cluster with a known trace: replicas by request and cluster, differences of loads.

With nothing refused, cost and inequality are linear. Where some requests may be refused the loads
have a sum that varies: the inequality of an arrival is then a quotient of whole numbers in parts.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved

#: Parts in which a Gini coefficient is a whole number, where requests may be refused.
PARTS = 10_000
#: Parts of the larger of two weights, there.
WEIGHT_PARTS = 100_000


def best(instance: Any, weights: Any, refused_cap: float | None, limits: Any, seed: int) -> Any:
    """Return plans of least ``weights @ (cost, inequality)`` that refuse at most a share."""
    peer = _Model(instance, 1.0 if refused_cap is None else refused_cap)
    peer.minimise(*map(float, weights))

    def plan(solution: Any) -> Any:
        counts = [[solution.value(n) for n in row] for row in peer.x]
        return instance.plan([{c: n for c, n in enumerate(row) if n} for row in counts])

    return solved(peer.model, limits, seed, plan)


class _Model:
    """Variables and rows of an instance; at most a share of the requests is refused."""

    def __init__(self, instance: Any, cap: float):
        self.a, self.model = instance.arrays, cp_model.CpModel()
        a, model = self.a, self.model
        self.T, self.C = len(a.replicas), len(a.price)
        self.most_refused = int(np.floor(cap * self.T + 1e-9))
        self.ends = np.searchsorted(a.arrival, a.departure)
        self.room = np.minimum(
            ((a.capacity - a.used)[None] // np.maximum(a.demand[:, None], 1)).min(axis=2),
            a.replicas[:, None],
        )
        self.accept = [model.new_bool_var("") for _ in range(self.T)]
        self.x = [[model.new_int_var(0, int(n), "") for n in row] for row in self.room]
        for t in range(self.T):
            model.add(sum(self.x[t]) == int(a.replicas[t]) * self.accept[t])
        model.add(sum(self.accept) >= self.T - self.most_refused)
        self.running = [[s for s in range(t + 1) if self.ends[s] > t] for t in range(self.T)]
        self._add_capacities()

    def _add_capacities(self) -> None:
        """What runs on a cluster after an arrival fits."""
        a = self.a
        for running in self.running:
            for c in range(self.C):
                for r in range(2):
                    free = int(a.capacity[c, r] - a.used[c, r])
                    if sum(int(self.room[s, c] * a.demand[s, r]) for s in running) > free:
                        load = sum(int(a.demand[s, r]) * self.x[s][c] for s in running)
                        self.model.add(load <= free)

    def _apart(self, t: int) -> Any:
        """Return the sum of the differences between the clusters' replicas after an arrival."""
        terms, most = [], int(self.a.replicas[self.running[t]].sum())
        loads = [sum(self.x[s][c] for s in self.running[t]) for c in range(self.C)]
        for one, other in combinations(loads, 2):
            apart = self.model.new_int_var(0, most, "")
            self.model.add(apart >= one - other)
            self.model.add(apart >= other - one)
            terms.append(apart)
        return sum(terms)

    def minimise(self, cost: float, inequality: float) -> None:
        """Minimise the weighted sum of the means over the accepted requests."""
        a, model = self.a, self.model
        prices = [
            sum(float(p / n) * x for p, x in zip(a.price, row, strict=True))
            for n, row in zip(a.replicas, self.x, strict=True)
        ]
        if self.most_refused == 0:
            parts = [1 / (self.C * int(a.replicas[run].sum())) for run in self.running]
            apart = sum(share * self._apart(t) for t, share in enumerate(parts) if inequality)
            model.minimize((cost * sum(prices) + inequality * apart) * (1 / self.T))
            return
        ginis = [self._gini(t) for t in range(self.T)] if inequality else [0]
        self._minimise_mean(cost, inequality, sum(ginis))

    def _gini(self, t: int) -> Any:
        """Return the inequality after an arrival in parts, rounded up; 0 for a refused request."""
        model, most = self.model, int(self.a.replicas[self.running[t]].sum())
        total, gini = model.new_int_var(0, most, ""), model.new_int_var(0, PARTS, "")
        model.add(total == sum(int(self.a.replicas[s]) * self.accept[s] for s in self.running[t]))
        product = model.new_int_var(0, PARTS * most, "")
        model.add_multiplication_equality(product, [gini, total])
        model.add(self.C * product >= PARTS * self._apart(t)).only_enforce_if(self.accept[t])
        return gini

    def _minimise_mean(self, cost: float, inequality: float, ginis: Any) -> None:
        """Minimise a sum over accepted requests, divided by their number."""
        a, model = self.a, self.model
        # Costs of requests in whole parts, rounded up, as the Gini coefficients are.
        unit = max(float(a.price.max()), 1e-9) / PARTS
        costs = sum(
            round(float(p / n) / unit) * x
            for n, row in zip(a.replicas, self.x, strict=True)
            for p, x in zip(a.price, row, strict=True)
        )
        scale = max(cost * unit, inequality / PARTS)
        u, v = (round(WEIGHT_PARTS * w / scale) for w in (cost * unit, inequality / PARTS))
        mean = model.new_int_var(0, 4 * PARTS * WEIGHT_PARTS, "")
        accepted = sum(self.accept)
        for k in range(max(1, self.T - self.most_refused), self.T + 1):
            exactly = model.new_bool_var("")
            model.add(accepted != k).only_enforce_if(~exactly)
            model.add(k * mean >= u * costs + v * ginis).only_enforce_if(exactly)
        model.minimize(mean)
