"""What each request of a multi-cluster stream costs at least, whatever the others do."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.prices import ROUNDING
from placeopt.multi_cluster.referee import MAX_MS


class Requests:
    """What each request costs at least on each cluster, by the fixed rules."""

    def __init__(self, problem: MultiCluster):
        arrays = problem.arrays
        self.arrays = arrays
        requests = len(arrays.replicas)
        refused = requests * min(1.0, problem.goal_limits.get("rejected", 1.0))
        #: How many requests a plan within limits accepts at least.
        self.fewest = max(0, requests - int(refused + 1e-6))
        free = arrays.capacity - arrays.used
        fit = np.full((len(arrays.replicas), len(free), 2), 2**40)
        np.floor_divide(free, arrays.demand[:, None], out=fit, where=arrays.demand[:, None] > 0)
        # (T, C) replicas of a request that an empty cluster holds
        self.room = np.minimum(fit.min(axis=2), arrays.replicas[:, None])
        self.acceptable = self.room.sum(axis=1) >= arrays.replicas
        # Where any replica is, one at least raises the latency.
        factor = 1 + arrays.increase / arrays.replicas
        self.latency = np.minimum(MAX_MS, arrays.base * factor[:, None])
        self.scale = np.array([max(self.latency.max(), 1e-9), max(arrays.price.max(), 1e-9), 1.0])
        self.most_running, self.least_running = self._running()

    def _running(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how many replicas run after each request that is accepted, at most and least.

        Both are of shape (T,).
        """
        arrays, ends = self.arrays, list[tuple[float, int]]()
        result, replicas = np.empty((2, len(arrays.replicas)), dtype=np.int64), 0
        refused = len(arrays.replicas) - self.fewest
        for t, wanted in enumerate(arrays.replicas.tolist()):
            while ends and ends[0][0] <= arrays.arrival[t]:
                replicas -= heappop(ends)[1]
            others = sorted(count for _, count in ends)
            least = wanted + sum(others[: max(0, len(others) - refused)])
            # A request without duration runs at its own arrival, and is gone at the next.
            heappush(ends, (arrays.departure[t], wanted))
            replicas += wanted
            result[:, t] = replicas, least
        return result[0], result[1]

    def costs(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted latency and cost of a request on a cluster, shape (T, C)."""
        return np.asarray(weights[0] * self.latency + weights[1] * self.arrays.price)

    def alone(self, weights: np.ndarray) -> np.ndarray:
        """Return a lower bound on the sum of the k cheapest requests for every k, shape (k,)."""
        cost = np.where(self.room > 0, self.costs(weights), np.inf).min(axis=1)
        cost = cost + weights[2] * self.least_gini()
        return np.sort(cost[self.acceptable]).cumsum() * (1 - ROUNDING)

    def least_gini(self) -> np.ndarray:
        """Return the least Gini coefficient of any loads after each request, shape (T,).

        From the least to the most replicas run; n of them on C clusters are nearly equal.
        """
        clusters, fewest = len(self.arrays.price), self.least_running
        least = np.ones(len(fewest))
        for more in range(min(clusters, int((self.most_running - fewest).max()) + 1)):
            n = fewest + more
            gini = n % clusters * (clusters - n % clusters) / (n * clusters)
            least = np.where(n <= self.most_running, np.minimum(least, gini), least)
        return least
