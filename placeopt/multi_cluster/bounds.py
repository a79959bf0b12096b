"""Lower bounds of multi-cluster plans: what any choice of k requests costs at least, for every k.

A *cut* says of every plan that accepts k requests: ``weights @ (latency, cost, inequality)`` is at
least so much, the three being means over the accepted requests. First cuts are closed: each request
alone on its best cluster, and the k cheapest requests. A linear program then lets the requests
share the clusters while they run, and knows the loads that make the Gini coefficient. What they add
to each other's latency is a convex function (`placeopt.multi_cluster.shared_latency`), of which the
program has a plane that touches it; planes move towards the least value (Frank and Wolfe). Bounds
are computed from dual values in our own sums, so that rounding by the solver proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations, pairwise, product

import numpy as np
import scipy.sparse as sp

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.gap import graded
from placeopt.core.fronts.values import Run
from placeopt.core.weights import simplex
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.multi_cluster.instance import MultiCluster
from placeopt.multi_cluster.referee import MAX_MS
from placeopt.multi_cluster.shared_latency import SharedLatency

#: Seconds of a certificate where the budget is used up.
_OWN_SECONDS = 10.0
#: Parts of the lattice of weights of latency, cost and inequality.
_PARTS = 6
#: Shares of the requests at whose number the linear program is solved, in this order: for several
#: goals, and for one alone, which takes less time.
_SHARES = (1.0, 0.8, 0.6, 0.4)
_SHARES_ALONE = (1.0, 0.8, 0.6, 0.9, 0.7, 0.5, 0.4, 0.2)
#: Planes for weights and a number of accepted requests: first few, then more while there is time.
_PLANES = (2, 3, 6)
#: Shares of the requests for whose solutions the sum of latencies leans, and planes before each.
_LEANS, _LEAN_PLANES = (1.0, 0.6, 1.0, 0.6), 8
#: Planes are no longer moved where the bound can gain at most this share.
_CLOSE = 2e-3
#: Largest number of pairs of requests on a cluster for which the linear program is solved.
_MAX_PAIRS = 640_000
#: Numbers of accepted requests that have bounds of their own, and cells of latency and inequality.
_BLOCKS, _CELLS = 50, 28
#: What rounding can add to a sum, as a share of it.
_ROUNDING = 1e-9


def certify(problem: MultiCluster, front: Front, budget: Budget) -> Front:
    """Return a front with a lower-bound set, and what it proves of every point.

    Takes what is left of a time limit, or some seconds where there is none and evaluations are
    used up. Of the published rules, whose spreads may place nothing, only zeros are proven.
    """
    own = budget
    if budget.exhausted and not budget.out_of_time:
        own = budget.beside(seconds=_OWN_SECONDS)
    began = own.seconds
    columns = problem.columns(front.objectives)
    vectors, solves = lower_bounds(problem, own, [c for c in columns if c < 3] or range(3))
    proof = Front(
        front.instance,
        front.objectives,
        bounds=tuple(map(tuple, vectors[:, columns].tolist())),
        runs=(Run("bound", None, own.seconds - began, solver_calls=solves),),
    )
    return graded(merge([front, proof]), "cost")


def lower_bounds(
    problem: MultiCluster, budget: Budget, goals: Sequence[int] = range(3)
) -> tuple[np.ndarray, int]:
    """Return vectors that every plan is dominated by one of, and the linear programs solved.

    Parameters
    ----------
    problem : MultiCluster
    budget : Budget
    goals : sequence of int
        Which of latency, cost and inequality matter: sums that hold others are left out.

    Returns
    -------
    ndarray, shape (k, 4)
        Latency in ms, cost, inequality, share of rejected requests.
    int
    """
    if problem.semantics == "published":
        return np.zeros((1, 4)), 0
    nothing = np.array([problem.referee.worst])
    table = _Requests(problem)
    accepted = np.arange(max(1, table.fewest), int(table.acceptable.sum()) + 1)
    if len(accepted) == 0:
        return nothing, 0
    weights = simplex(_PARTS, 3) / table.scale
    weights = weights[(np.delete(weights, list(goals), axis=1) == 0).all(axis=1)]
    cuts = _Cuts(weights, accepted, np.stack([table.alone(w)[accepted - 1] for w in weights]))
    solves = 0
    if not budget.out_of_time and _Sharing.pairs_of(table) <= _MAX_PAIRS:
        sharing = _Sharing(table)
        for solves, (row, values) in enumerate(sharing.solutions(cuts, budget), start=1):
            budget.report(note=f"bound: linear program {solves}")
            if row is None:
                cuts.drop(values)
            else:
                cuts.values[row] = np.maximum(cuts.values[row], values)
    vectors = cuts.vectors(table)
    if table.fewest == 0 or len(vectors) == 0:
        vectors = np.concatenate((vectors, nothing))
    return vectors, solves


class _Requests:
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
        self.most_running, self.most_requests, self.least_running = self._running()

    def _running(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what runs after each request that is accepted, (T,) each.

        The replicas at most, the requests at most, and the replicas at least.
        """
        arrays, ends = self.arrays, list[tuple[float, int]]()
        result, replicas = np.empty((3, len(arrays.replicas)), dtype=np.int64), 0
        refused = len(arrays.replicas) - self.fewest
        for t, wanted in enumerate(arrays.replicas.tolist()):
            while ends and ends[0][0] <= arrays.arrival[t]:
                replicas -= heappop(ends)[1]
            others = sorted(count for _, count in ends)
            least = wanted + sum(others[: max(0, len(others) - refused)])
            # A request without duration runs at its own arrival, and is gone at the next.
            heappush(ends, (arrays.departure[t], wanted))
            replicas += wanted
            result[:, t] = replicas, len(ends), least
        return result[0], result[1], result[2]

    def costs(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted latency and cost of a request on a cluster, shape (T, C)."""
        return np.asarray(weights[0] * self.latency + weights[1] * self.arrays.price)

    def alone(self, weights: np.ndarray) -> np.ndarray:
        """Return a lower bound on the sum of the k cheapest requests for every k, shape (k,)."""
        cost = np.where(self.room > 0, self.costs(weights), np.inf).min(axis=1)
        cost = cost + weights[2] * self.least_gini()
        return np.sort(cost[self.acceptable]).cumsum() * (1 - _ROUNDING)

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


@dataclass
class _Cuts:
    """Lower bounds `values` (rows, k) on sums by weights (rows, 3) of k accepted requests."""

    weights: np.ndarray
    accepted: np.ndarray
    values: np.ndarray

    def drop(self, most: np.ndarray) -> None:
        """Keep the numbers of accepted requests up to `most`, shape (1,)."""
        keep = self.accepted <= most[0]
        self.accepted, self.values = self.accepted[keep], self.values[:, keep]

    def vectors(self, table: _Requests) -> np.ndarray:
        """Return the bound set that the cuts prove, shape (k, 4)."""
        total, means = len(table.room), self.values / self.accepted
        ends = np.unique(np.linspace(0, len(self.accepted), _BLOCKS + 1).astype(int))
        results = []
        for first, last in pairwise(ends):
            corners = self._corners(means[:, first:last].min(axis=1), table)
            # Divided as the referee divides: 1 - 2/3 is above 1/3.
            rejected = (total - self.accepted[last - 1]) / total
            results.append(np.column_stack((corners, np.full(len(corners), rejected))))
        return np.concatenate(results) if results else np.empty((0, 4))

    def _corners(self, least: np.ndarray, table: _Requests) -> np.ndarray:
        """Return corners of cells of latency and inequality, with the least cost there; (k, 3)."""
        one = (self.weights > 0).sum(axis=1) == 1
        rows = [one & (w > 0) for w in self.weights.T]
        low = [float((least[k] / self.weights[k, c]).max(initial=0.0)) for c, k in enumerate(rows)]
        high = [float(table.latency.max()), 0.0, 1 - 1 / len(table.arrays.price)]
        high[0] = MAX_MS if high[0] < low[0] else max(high[0], low[0])
        latency = np.linspace(low[0], high[0], _CELLS + 1)
        gini = np.linspace(low[2], max(low[2], high[2]), _CELLS + 1)
        # The last cell has no upper end: others raise latencies beyond what a request does alone.
        ends = np.append(latency[1:-1], MAX_MS)[:, None], np.append(gini[1:-1], 1.0)[None, :]
        cost = np.full((_CELLS, _CELLS), low[1])
        for (a, b, c), value in zip(self.weights, least, strict=True):
            if b > 0:
                cost = np.maximum(cost, (value - a * ends[0] - c * ends[1]) / b)
        # A cell that no plan can be in: latency and inequality alone are too small together.
        empty = np.zeros_like(cost, dtype=bool)
        for (a, b, c), value in zip(self.weights, least, strict=True):
            if b == 0:
                empty |= a * ends[0] + c * ends[1] < value
        empty |= cost > table.arrays.price.max() * (1 + _ROUNDING)
        grid = np.broadcast_arrays(latency[:-1, None], cost, gini[None, :-1])
        return np.stack([part[~empty] for part in grid], axis=1)


def _visits(weights: np.ndarray) -> Iterator[tuple[int, tuple[float, ...], list[int]]]:
    """Yield numbers of planes, shares of the requests and rows of weights, in order.

    First few planes, then more while there is time. Each goal alone comes first, then all goals.
    Inequality alone costs nothing where some requests are refused.
    """
    zeros, alone = (weights == 0).sum(axis=1), (weights[:, :2] == 0).all(axis=1)
    for planes in _PLANES:
        yield planes, (1.0,), np.flatnonzero(alone).tolist()
        yield planes, _SHARES_ALONE, np.flatnonzero((zeros == 2) & ~alone).tolist()
        for count in (0, 1):
            yield planes, _SHARES, np.flatnonzero(zeros == count).tolist()


class _Sharing:
    """The linear program: requests in parts share clusters, whose loads have a Gini coefficient.

    Columns: parts p (T, C) of each request on each cluster; what is in use when a request has
    arrived, of cpu and memory as a share of what is free, and in replicas (3, T, C); the loads'
    differences (T, pairs); the inequality that counts (T,). That after a refused request does not
    count: it is taken off.
    """

    def __init__(self, table: _Requests):
        self.table = table
        arrays, (T, C) = table.arrays, table.room.shape
        self.pairs = list(combinations(range(C), 2))
        # running[t, j]: request j still runs, if it was accepted, when t has arrived.
        earlier = np.tri(T, k=-1, dtype=bool)
        self.running = earlier & (arrays.departure > arrays.arrival[:, None]) | np.eye(
            T, dtype=bool
        )
        self.columns = T * C, 3 * T * C, T * len(self.pairs), T
        parts = [
            self._counts(),
            *self._uses(),
            *self._differences(),
            self._inequalities(),
            self._whole_replicas(),
        ]
        matrix = sp.vstack([rows for rows, _, _ in parts]).tocsc()
        lower = np.concatenate([low for _, low, _ in parts])
        upper = np.concatenate([high for _, _, high in parts])
        self.share = np.minimum(1.0, table.room / arrays.replicas[:, None])
        self.share[~table.acceptable] = 0.0
        running = table.most_running
        most = np.concatenate(
            (
                self.share.ravel(),
                np.ones(2 * T * C),
                np.repeat(running, C),
                np.repeat(running, len(self.pairs)),
                np.ones(T),
            )
        )
        zero = np.zeros(sum(self.columns))
        self.program = Program(zero, matrix, lower, upper, zero, most, np.zeros(len(zero), bool))
        self.session = Session(self.program)
        self.shared = SharedLatency(arrays, self.share, self.running)
        self._center: np.ndarray | None = None
        self._gain, self._close = 0.0, set[tuple[int, int]]()

    @staticmethod
    def pairs_of(table: _Requests) -> int:
        """Return how many pairs of requests there are, on each cluster."""
        T, C = table.room.shape
        return T * T * C

    def solutions(self, cuts: _Cuts, budget: Budget) -> Iterator[tuple[int | None, np.ndarray]]:
        """Yield (row of the weights, its bound for every k); first (None, the most accepted)."""
        T, C = self.table.room.shape
        cost = np.zeros(sum(self.columns))
        cost[: T * C] = -1.0
        answer = self._solved(cost, 0, cuts.accepted, budget)
        if answer is None:
            return
        possible = answer[0] <= -cuts.accepted + 1e-6
        most = int(cuts.accepted[possible].max(initial=0))
        yield None, np.array([most])
        fewest = max(1, self.table.fewest)
        if most < fewest:
            return
        yield from self._leaning(cuts, [max(fewest, round(x * most)) for x in _LEANS], budget)
        for planes, shares, rows in _visits(cuts.weights):
            for row, share in product(rows, shares):
                accepted = max(fewest, round(share * most))
                if budget.out_of_time:
                    return
                if (accepted, row) in self._close:
                    continue
                yield from self._bounds(cuts, row, accepted, planes, budget)
                if self._gain <= _CLOSE:
                    self._close.add((accepted, row))

    def _leaning(
        self, cuts: _Cuts, numbers: list[int], budget: Budget
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield bounds on the latency alone, after each of which its sum leans to the solution."""
        T, C = self.table.room.shape
        for row in np.flatnonzero(
            (cuts.weights[:, 0] > 0) & (cuts.weights[:, 1:] == 0).all(axis=1)
        ):
            for accepted in numbers:
                if budget.out_of_time:
                    return
                yield from self._bounds(cuts, int(row), accepted, _LEAN_PLANES, budget)
                if self._center is not None:
                    self.shared.lean(self._center[: T * C].reshape(T, C))

    def _bounds(
        self, cuts: _Cuts, row: int, accepted: int, planes: int, budget: Budget
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (row of the weights, bounds for every k).

        With latency they are several, one for each plane that touches its sum.
        """
        T, C = self.table.room.shape
        weights, shared = cuts.weights[row], self.shared
        cost = np.zeros(sum(self.columns))
        cost[-T:] = weights[2]
        if weights[0] == 0 or self._center is None:
            cost[: T * C] = self.table.costs(weights).ravel()
            answer = self._solved(cost, accepted, cuts.accepted, budget)
            if answer is None:
                return
            yield row, answer[0]
            if weights[0] == 0:
                self._gain = 0.0
                return
            self._center = answer[1]
        straight = cost.copy()
        straight[: T * C] = (
            weights[0] * shared.linear + weights[1] * self.table.arrays.price
        ).ravel()
        for _ in range(planes):
            parts = self._center[: T * C].reshape(T, C)
            cost = straight.copy()
            cost[: T * C] += weights[0] * shared.slope(parts).ravel()
            answer = self._solved(cost, accepted, cuts.accepted, budget)
            if answer is None:
                return
            curved = weights[0] * shared.curved(parts)
            yield row, answer[0] - curved - _ROUNDING * abs(curved)
            # The best point between the last one and the new one, by the bound's own sum.
            way = answer[1] - self._center
            self._gain = -float(cost @ way) / max(1e-9, float(straight @ answer[1]))
            bend = weights[0] * shared.curved(way[: T * C].reshape(T, C))
            step = min(1.0, max(0.0, -(cost @ way) / (2 * bend))) if bend > 0 else 1.0
            self._center = self._center + step * way
            if 0.0 <= self._gain <= _CLOSE:
                return

    def _solved(
        self, cost: np.ndarray, accepted: int, numbers: np.ndarray, budget: Budget
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return bounds on the least cost of each of `numbers` requests, and a solution."""
        row_lower = np.append(float(accepted), self.program.row_lower[1:])
        self.session.change(c=cost, row_lower=row_lower)
        outcome = self.session.solve(budget=budget)
        if outcome.status != "optimal" or outcome.row_duals is None or outcome.x is None:
            return None
        return self._proven(cost, outcome.row_duals, numbers), outcome.x

    def _proven(self, cost: np.ndarray, duals: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return bounds on the least cost of each of `numbers` requests.

        Dual values are prices of what requests share. Each request is then a question of its own,
        and any k requests cost at least what the k cheapest do.
        """
        T, C = self.table.room.shape
        program, dual = self.program, duals.copy()
        dual[: T + 1] = 0.0
        # Any dual values prove a bound, but not at a row's end that is infinite.
        dual[(dual > 0) & np.isinf(program.row_lower)] = 0.0
        dual[(dual < 0) & np.isinf(program.row_upper)] = 0.0
        ends = np.where(dual > 0, program.row_lower, np.where(dual < 0, program.row_upper, 0.0))
        reduced = cost - program.A.T @ dual
        rest = np.minimum(reduced[T * C :], 0.0) @ program.col_upper[T * C :]
        each = np.where(self.table.acceptable, self._cheapest(reduced[: T * C]), np.inf)
        shared, own = float(dual @ ends + rest), np.sort(each).cumsum()[numbers - 1]
        return np.asarray(shared + own - _ROUNDING * (abs(shared) + np.abs(own)))

    def _cheapest(self, reduced: np.ndarray) -> np.ndarray:
        """Return the least cost of each request, (T,): the cheapest clusters are filled first."""
        cost = reduced.reshape(self.share.shape)
        order = np.argsort(cost, axis=1)
        cost, share = (np.take_along_axis(a, order, axis=1) for a in (cost, self.share))
        parts = np.clip(1.0 - (share.cumsum(axis=1) - share), 0.0, share)
        return np.asarray((parts * cost).sum(axis=1))

    # -- rows, each as (matrix, lower, upper) ------------------------------------------------------

    def _rows(self, *blocks: sp.spmatrix | None) -> sp.csr_matrix:
        """Return rows over all columns, a block for each kind; None stands for zeros."""
        height = next(block.shape[0] for block in blocks if block is not None)
        filled = [
            sp.csr_matrix((height, width)) if block is None else block
            for block, width in zip(blocks, self.columns, strict=True)
        ]
        return sp.hstack(filled).tocsr()

    def _counts(self) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
        """At least so many requests are accepted; none more than once."""
        T, C = self.table.room.shape
        each = sp.kron(sp.eye(T), np.ones((1, C)))
        rows = self._rows(sp.vstack([np.ones((1, T * C)), each]), None, None, None)
        return rows, np.zeros(T + 1), np.append(np.inf, np.ones(T))

    def _uses(self) -> Iterator[tuple[sp.csr_matrix, np.ndarray, np.ndarray]]:
        """What is in use is what was, and what has come, without what has gone."""
        arrays, (T, C) = self.table.arrays, self.table.room.shape
        steps = np.diff(self.running.astype(float), axis=0, prepend=0.0) * arrays.replicas
        free = np.maximum(arrays.capacity - arrays.used, 1)
        sizes = [arrays.demand[:, r, None] / free[:, r] for r in range(2)]
        before = sp.kron(sp.eye(T) - sp.eye(T, k=-1), sp.eye(C))
        for k, size in enumerate([*sizes, np.ones((T, C))]):
            come = sp.kron(sp.csr_matrix(steps), sp.eye(C)) @ sp.diags(size.ravel())
            use = sp.hstack([before if j == k else sp.csr_matrix(before.shape) for j in range(3)])
            yield self._rows(-come, use, None, None), np.zeros(T * C), np.zeros(T * C)

    def _differences(self) -> Iterator[tuple[sp.csr_matrix, np.ndarray, np.ndarray]]:
        """A difference of two clusters' replicas is at least either way's."""
        T, C = self.table.room.shape
        ways = np.zeros((len(self.pairs), C))
        for k, (a, b) in enumerate(self.pairs):
            ways[k, a], ways[k, b] = 1.0, -1.0
        others = sp.csr_matrix((T * len(self.pairs), 2 * T * C))
        for sign in (1.0, -1.0):
            loads = sp.hstack([others, sp.kron(sp.eye(T), sign * ways)])
            rows = self._rows(None, loads, sp.eye(T * len(self.pairs)), None)
            yield rows, np.zeros(rows.shape[0]), np.full(rows.shape[0], np.inf)

    def _inequalities(self) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
        """The inequality after an accepted request: differences over C and all that may run."""
        table, (T, C) = self.table, self.table.room.shape
        most = table.most_running.astype(float)
        without = (1 - 1 / C) * (most - table.arrays.replicas) / most
        parts = sp.kron(sp.diags(-without), np.ones((1, C)))
        differences = sp.kron(sp.diags(-1 / (C * most)), np.ones((1, len(self.pairs))))
        return self._rows(parts, None, differences, sp.eye(T)), -without, np.full(T, np.inf)

    def _whole_replicas(self) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
        """Whole replicas are seldom equal on all clusters: the inequality is at least so much."""
        T, C = self.table.room.shape
        parts = sp.kron(sp.diags(-self.table.least_gini()), np.ones((1, C)))
        return self._rows(parts, None, None, sp.eye(T)), np.zeros(T), np.full(T, np.inf)
