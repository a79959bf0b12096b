"""Lower bounds of multi-cluster plans: what any choice of k requests costs at least, for every k.

A *cut* says of every plan that accepts k requests: ``weights @ (latency, cost, inequality)`` is at
least so much, the three being means over the accepted requests. First cuts are closed: each request
alone on its best cluster, and the k cheapest requests. Then requests share the clusters while they
run (`placeopt.multi_cluster.bounds.sharing`): prices of what is shared prove more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front
from placeopt.core.goals import simplex
from placeopt.multi_cluster.bounds.prices import ROUNDING
from placeopt.multi_cluster.bounds.sharing import Requests, Sharing
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.multi_cluster.referee import MAX_MS

#: Parts of the lattice of weights of latency, cost and inequality, and where only two matter.
_PARTS, _PARTS_OF_TWO = 6, 20
#: Programs for all weights together, numbers of accepted requests for which there are some at
#: least, and how often the sum of latencies leans to a solution before, for each number.
_PROGRAMS, _LEAST_NUMBERS, _LEANS = 300, 10, 3
#: Parts of requests on clusters, for all weights whose programs are solved together, at most.
_TOGETHER = 4000
#: Share of the time for the largest number of requests that can be accepted.
_MOST_SHARE = 0.5
#: Largest number of pairs of requests on a cluster for which prices are looked for.
_MAX_PAIRS = 640_000
#: Numbers of accepted requests that have bounds of their own, and cells of latency and inequality.
_BLOCKS, _CELLS = 50, 28


def bounds(problem: MultiCluster, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the bounds of requests that are alone, then those of requests that share clusters."""
    columns = problem.columns(front.objectives)
    for vectors, solves in lower_bounds(problem, budget, [c for c in columns if c < 3] or range(3)):
        yield Bounds(vectors[:, columns], solves)


def lower_bounds(
    problem: MultiCluster, budget: Budget, goals: Sequence[int] = range(3)
) -> Iterator[tuple[np.ndarray, int]]:
    """Yield vectors that every plan is dominated by one of, and the programs solved; then better.

    Parameters
    ----------
    problem : MultiCluster
    budget : Budget
    goals : sequence of int
        Which of latency, cost and inequality matter: sums that hold others are left out.

    Yields
    ------
    ndarray, shape (k, 4)
        Latency in ms, cost, inequality, share of rejected requests.
    int
    """
    table = Requests(problem)
    accepted = np.arange(max(1, table.fewest), int(table.acceptable.sum()) + 1)
    if len(accepted) == 0:
        yield np.array([problem.referee.worst]), 0
        return
    weights = simplex(_PARTS_OF_TWO if len(goals) == 2 else _PARTS, 3) / table.scale
    weights = weights[(np.delete(weights, list(goals), axis=1) == 0).all(axis=1)]
    cuts = _Cuts(weights, accepted, np.stack([table.alone(w)[accepted - 1] for w in weights]))
    yield _with_nothing(cuts.vectors(table), table, problem), 0
    if not budget.out_of_time and len(table.room) * table.room.size <= _MAX_PAIRS:
        solves = _by_prices(Sharing(table, cuts.weights), cuts, budget)
        yield _with_nothing(cuts.vectors(table), table, problem), solves


def _with_nothing(vectors: np.ndarray, table: Requests, problem: MultiCluster) -> np.ndarray:
    """Return bounds with the vector of a plan that accepts nothing, where that is legal."""
    if table.fewest > 0 and len(vectors):
        return vectors
    return np.concatenate((vectors, np.array([problem.referee.worst])))


def _by_prices(sharing: Sharing, cuts: _Cuts, budget: Budget) -> int:
    """Raise the cuts by prices of what requests share; return how many programs were solved."""
    solves = 1
    cuts.drop(sharing.most_accepted(budget, _MOST_SHARE * budget.seconds_left))
    if len(cuts.accepted) == 0:
        return solves
    together = max(1, _TOGETHER // sharing.share.size)
    for share, rows, leans in _visits(cuts.weights):
        accepted = max(int(cuts.accepted[0]), round(share * int(cuts.accepted[-1])))
        for k in range(0, len(rows), together):
            if budget.out_of_time:
                return solves
            some = rows[k : k + together]
            solves += len(some)
            budget.report(note=f"bound: program {solves}")
            proven = sharing.proven(some, accepted, cuts.accepted)
            cuts.values[some] = np.maximum(cuts.values[some], proven)
        if leans:
            sharing.lean(rows[0])
    return solves


def _visits(weights: np.ndarray) -> Iterator[tuple[float, list[int], bool]]:
    """Yield shares of the requests, rows of weights, and whether latencies lean to solutions.

    They do where latency counts most, then come all rows.
    """
    rows = np.arange(len(weights)).tolist()
    first = int(weights[:, 0].argmax())
    shares = np.arange(1, 0, -1 / max(_LEAST_NUMBERS, _PROGRAMS // len(rows)))
    for share in np.concatenate([shares[begin::3] for begin in range(3)]).tolist():
        if weights[first, 0] > 0:
            for _ in range(_LEANS):
                yield share, [first], True
        yield share, rows, False


@dataclass
class _Cuts:
    """Lower bounds `values` (rows, k) on sums by weights (rows, 3) of k accepted requests."""

    weights: np.ndarray
    accepted: np.ndarray
    values: np.ndarray

    def drop(self, most: int) -> None:
        """Keep the numbers of accepted requests up to `most`."""
        keep = self.accepted <= most
        self.accepted, self.values = self.accepted[keep], self.values[:, keep]

    def vectors(self, table: Requests) -> np.ndarray:
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

    def _corners(self, least: np.ndarray, table: Requests) -> np.ndarray:
        """Return corners of cells of latency and inequality, with the least cost there; (k, 3)."""
        one = (self.weights > 0).sum(axis=1) == 1
        rows = [one & (w > 0) for w in self.weights.T]
        low = [float((least[k] / self.weights[k, c]).max(initial=0.0)) for c, k in enumerate(rows)]
        high = [float(table.latency.max()), 0.0, 1 - 1 / len(table.arrays.price)]
        high[0] = MAX_MS if high[0] < low[0] else max(high[0], low[0])
        # A goal that has no weight has one cell; the other has more.
        matter = [bool((w > 0).any()) for w in self.weights.T]
        counts = [1 if not matter[k] else _CELLS if matter[2 - k] else _CELLS**2 for k in (0, 2)]
        latency = np.linspace(low[0], high[0], counts[0] + 1)
        gini = np.linspace(low[2], max(low[2], high[2]), counts[1] + 1)
        # The last cell has no upper end: others raise latencies beyond what a request does alone.
        ends = np.append(latency[1:-1], MAX_MS)[:, None], np.append(gini[1:-1], 1.0)[None, :]
        cost = np.full(counts, low[1])
        for (a, b, c), value in zip(self.weights, least, strict=True):
            if b > 0:
                cost = np.maximum(cost, (value - a * ends[0] - c * ends[1]) / b)
        # A cell that no plan can be in: latency and inequality alone are too small together.
        empty = np.zeros_like(cost, dtype=bool)
        for (a, b, c), value in zip(self.weights, least, strict=True):
            if b == 0:
                empty |= a * ends[0] + c * ends[1] < value
        empty |= cost > table.arrays.price.max() * (1 + ROUNDING)
        grid = np.broadcast_arrays(latency[:-1, None], cost, gini[None, :-1])
        return np.stack([part[~empty] for part in grid], axis=1)
