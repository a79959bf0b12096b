"""What requests cost at least: alone, and where they share clusters while they run.

Requests in parts share clusters, whose loads have a Gini coefficient. What they add to each other's
latency is a convex function: part p of request u on cluster c has latency ``base * exp(y)`` there,
or `MAX_MS`, where y is at least the sum of ``log(1 + u_s) p_s`` over the requests s that run. A
line in y lies below that. The sum over all requests is then quadratic: parts of pairs that run
together are multiplied. As parts are at most 1, ``p * p <= p``: enough of ``d (p * p - p)`` is
added to make it convex. The least sum of d is a semidefinite program; its dual is solved in
vectors, row after row (Burer and Monteiro). What d takes off at parts p is ``d (p - p * p)``: so d
counts more where solutions have halves.

First-order steps look for prices of what is shared (`placeopt.multi_cluster.bounds.prices`); any
prices prove bounds, so that nothing depends on how near to the best they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import combinations

import numpy as np
import scipy.sparse as sp

from placeopt.core.budget import Budget
from placeopt.core.kernels.compile import kernel
from placeopt.exact.program import Program
from placeopt.exact.solvers import solve
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.bounds.prices import (
    ROUNDING,
    Shared,
    State,
    improve,
    nothing,
)
from placeopt.multi_cluster.episodes.state import MAX_MS
from placeopt.multi_cluster.problem import MultiCluster

# -- requests alone --------------------------------------------------------------------------------


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


# -- shared latency --------------------------------------------------------------------------------

#: Where the line touches, as a share of the most y; it is shrunk until it is below `MAX_MS`.
_TOUCH, _SHRINK, _LEAST_TOUCH = 0.3, 0.8, 1e-3
#: Length of the vectors, and how often each is made the best for the others.
_RANK, _SWEEPS = 20, 60
#: Weight of an entry of d at first, the least that is added to any, and the share by which weights
#: go towards those of a solution; by all of it the solutions, and d, swing from side to side.
_LOST, _LEAST_WEIGHT, _LEAN = 0.15, 0.02, 0.4
#: What rounding may lack to a matrix that is convex, as a share of its largest entry.
_ROUNDING = 1e-9


class SharedLatency:
    """A bound ``linear @ p + p @ quadratic @ p`` on the sum of latencies in ms, for each cluster.

    Parameters
    ----------
    arrays : MultiClusterArrays
    share : ndarray, shape (T, C)
        The largest part of each request on each cluster.
    running : ndarray of bool, shape (T, T)
        Whether request s may run when t has arrived.

    Attributes
    ----------
    linear : ndarray, shape (T, C)
    quadratic : ndarray, shape (C, T, T)
        Positive semidefinite.
    """

    def __init__(self, arrays: MultiClusterArrays, share: np.ndarray, running: np.ndarray):
        grows = np.log1p(arrays.increase)
        self._lines = np.empty(share.shape)
        self._matrices = np.empty((share.shape[1], *running.shape))
        for c, base in enumerate(arrays.base.tolist()):
            most = [_most_growth(arrays, share[:, c], row, grows, c) for row in running]
            lines = np.array([_line_below(base, y) for y in most])
            pairs = running * lines[:, 1, None] * grows[None, :]
            self._lines[:, c], self._matrices[c] = lines[:, 0], (pairs + pairs.T) / 2
        self._weights = np.full(share.shape, _LOST)
        self._make_convex()

    def _make_convex(self) -> None:
        """Take the least diagonals by the present weights."""
        self.linear, self.quadratic = self._lines.copy(), self._matrices.copy()
        rows = np.arange(len(self.linear))
        for c, matrix in enumerate(self._matrices):
            root = np.sqrt(self._weights[:, c] + _LEAST_WEIGHT)
            diagonal = _least_diagonal(matrix * np.outer(root, root)) / root**2
            self.linear[:, c] -= diagonal
            self.quadratic[c, rows, rows] += diagonal

    def lean(self, parts: np.ndarray) -> None:
        """Make the sum tighter near a solution, its parts (T, C), and looser elsewhere.

        It stays a lower bound everywhere.
        """
        lost = parts * (1 - parts)
        self._weights += _LEAN * (lost - self._weights)
        self._make_convex()

    def curved(self, parts: np.ndarray) -> float:
        """Return the quadratic part at parts (T, C)."""
        return float(np.einsum("sc,cst,tc->", parts, self.quadratic, parts))


def _most_growth(
    arrays: MultiClusterArrays, share: np.ndarray, running: np.ndarray, grows: np.ndarray, c: int
) -> float:
    """Return the most that y can be on a cluster: parts of requests that fit, by each resource."""
    free = (arrays.capacity - arrays.used)[c]
    worth = (grows * share)[running]
    most = float(worth.sum())
    for r in range(2):
        size = (arrays.replicas * arrays.demand[:, r] * share)[running]
        order = np.argsort(-worth / np.maximum(size, 1e-9), kind="stable")
        before = size[order].cumsum() - size[order]
        part = np.clip((free[r] - before) / np.maximum(size[order], 1e-9), 0.0, 1.0)
        most = min(most, float(worth[order] @ part))
    return most * (1 + _ROUNDING)


def _line_below(base: float, most: float) -> tuple[float, float]:
    """Return a and b: ``a + b y <= min(MAX_MS, base * exp(y))`` for y from 0 to `most`."""
    touch = _TOUCH * most
    while touch > _LEAST_TOUCH:
        slope = base * np.exp(touch)
        if slope * (1 - touch + most) <= MAX_MS:
            return float(slope * (1 - touch)), float(slope)
        touch *= _SHRINK
    least = min(base, MAX_MS)
    end = min(MAX_MS, base * (1 + most))  # exp(y) is at least 1 + y
    return least, (end - least) / most if most > 0 else 0.0


def _least_diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return non-negative numbers of a small sum that make a matrix positive semidefinite."""
    size = len(matrix)
    vectors = np.random.default_rng(0).normal(size=(size, _RANK))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    _turn(matrix, vectors, np.empty(_RANK), _SWEEPS)
    diagonal = np.maximum(0.0, -(matrix * (vectors @ vectors.T)).sum(axis=1))
    least = np.linalg.eigvalsh(matrix + np.diag(diagonal))[0]
    largest = float(np.abs(matrix).max(initial=0.0)) + float(diagonal.max(initial=0.0))
    return np.asarray(diagonal + max(0.0, -least) + _ROUNDING * size * largest)


@kernel
def _turn(matrix, vectors, pull, sweeps):
    """Turn each vector (size, rank) in turn to where its products with the others are least."""
    size, rank = vectors.shape
    for _ in range(sweeps):
        for k in range(size):
            pull[:] = 0.0
            for j in range(size):
                if j != k and matrix[k, j] != 0.0:
                    for r in range(rank):
                        pull[r] += matrix[k, j] * vectors[j, r]
            length = 0.0
            for r in range(rank):
                length += pull[r] * pull[r]
            if length > 0.0:
                length = np.sqrt(length)
                for r in range(rank):
                    vectors[k, r] = -pull[r] / length


# -- the convex program ----------------------------------------------------------------------------

#: How large steps of prices are beside those of parts. They are larger where latency, whose steps
#: are small, has no weight.
_RATIO, _RATIO_STRAIGHT = 0.3, 3.0


class Sharing:
    """The convex program: requests in parts on clusters, and what they share.

    The inequality after a refused request does not count: it is taken off.
    """

    def __init__(self, table: Requests, weights: np.ndarray):
        self.table, self.weights = table, weights
        arrays, (T, C) = table.arrays, table.room.shape
        # running[t, j]: request j still runs, if it was accepted, when t has arrived.
        earlier = np.tri(T, k=-1, dtype=bool)
        self.running = earlier & (arrays.departure > arrays.arrival[:, None]) | np.eye(
            T, dtype=bool
        )
        self.share = np.minimum(1.0, table.room / arrays.replicas[:, None])
        self.share[~table.acceptable] = 0.0
        self.shared = SharedLatency(arrays, self.share, self.running)
        free = np.maximum(arrays.capacity - arrays.used, 1)
        most = table.most_running.astype(float)
        pairs = list(combinations(range(C), 2))
        self.terms = Shared(
            running=self.running.astype(float),
            size=arrays.replicas[:, None] * arrays.demand.T[:, :, None] / free.T[:, None, :],
            replicas=arrays.replicas.astype(float),
            share=self.share,
            most=most,
            whole=np.stack(
                ((1 - 1 / C) * (most - arrays.replicas) / most, table.least_gini()), axis=1
            ),
            price=arrays.price,
            ways=np.array(
                [[float(c == a) - float(c == b) for c in range(C)] for a, b in pairs]
            ).reshape(len(pairs), C),
            linear=self.shared.linear,
            quadratic=self.shared.quadratic,
        )
        self._state = nothing(self.terms, len(weights))

    def proven(self, rows: Sequence[int], accepted: int, numbers: np.ndarray) -> np.ndarray:
        """Return bounds on the least cost of each of `numbers` requests by rows of weights.

        Prices are for `accepted` requests, from those that were best for these rows before.
        """
        state = State(*(a[rows] for a in self._state))
        weights = self.weights[rows]
        ratio = _RATIO if (weights[:, 0] > 0).any() else _RATIO_STRAIGHT
        state, result = improve(self.terms, state, weights, accepted, ratio)
        for known, found in zip(self._state, state, strict=True):
            known[rows] = found
        return result[:, numbers - 1]

    def lean(self, row: int) -> None:
        """Make the sum of latencies tighter near the solution of a row."""
        self.shared.lean(self._state.parts[row])
        self.terms = self.terms._replace(linear=self.shared.linear, quadratic=self.shared.quadratic)

    def most_accepted(self, budget: Budget, seconds: float) -> int:
        """Return a number of requests that no plan accepts more of: a whole-number program."""
        table, arrays, (T, C) = self.table, self.table.arrays, self.share.shape
        free = arrays.capacity - arrays.used
        # Where the next request arrives before any departs, more runs after that one.
        full = [t for t in range(T) if t + 1 == T or (self.running[t] & ~self.running[t + 1]).any()]
        rows = [sp.hstack([sp.kron(sp.eye(T), np.ones((1, C))), -sp.diags(arrays.replicas * 1.0)])]
        for r in range(2):
            size = sp.csr_matrix(self.running[full] * arrays.demand[:, r].astype(float))
            rows.append(sp.hstack([sp.kron(size, sp.eye(C)), sp.csr_matrix((len(full) * C, T))]))
        high = np.concatenate([np.zeros(T), *(np.tile(free[:, r], len(full)) for r in range(2))])
        program = Program(
            np.append(np.zeros(T * C), -np.ones(T)),
            sp.vstack(rows),
            np.where(np.arange(len(high)) < T, 0.0, -np.inf),
            high,
            np.zeros(T * C + T),
            np.append(table.room.ravel(), table.acceptable),
            np.ones(T * C + T, bool),
        )
        bound = solve(program, seconds=seconds, budget=budget, absolute_gap=0.5).bound
        most = int(table.acceptable.sum())
        return most if math.isinf(bound) else min(most, math.floor(1e-6 - bound))
