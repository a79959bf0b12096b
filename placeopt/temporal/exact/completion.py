"""The least cost of placing the replicas that are left, under weights on the three objectives.

The bound of a set is exact but for one relaxation: a request pays the mean latency of its replicas
instead of the largest. So every weight vector gives a linear inequality that all plans satisfy, and
a completion bound for every partial plan.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel
from placeopt.temporal.exact.numbers import NEVER
from placeopt.temporal.exact.patterns import Patterns
from placeopt.temporal.exact.sets import all_counts, next_part, write_counts

#: Weights of latency and of interruption against cost, as multiples of the ratio of their ranges.
RATIOS = (0.0, 0.03, 0.08, 0.17, 0.3, 0.5, 0.8, 1.3, 2.5, 6.0)
_IMPOSSIBLE = 1e30


class Completion:
    """Completion bounds under K weight vectors.

    Attributes
    ----------
    weights : ndarray, shape (K, 3)
    tables : ndarray, shape (K, sets)
        Least weighted sum of hosting a set, latency taken as the mean.
    corners : ndarray, shape (k, 3)
        Whole-number vectors of plans that attain the tables, with the true, largest latency: points
        of the relaxed problem.
    spread : ndarray, shape (3,)
        Ranges of the objectives over the extreme points, at least 1.
    """

    def __init__(self, patterns: Patterns):
        numbers = patterns.numbers
        self.patterns, self._counts = patterns, all_counts(numbers.replicas).astype(float)
        classes = patterns.machines[: len(patterns.best)]
        per_replica = numbers.latency / numbers.replicas[:, None]
        self._latency = np.stack(
            [self._counts @ np.maximum(per_replica[:, m.place], 0) for m in classes]
        )
        frequency = np.array([m.frequency for m in classes], dtype=float)
        self._interruption = frequency[:, None] * (self._counts @ numbers.share)[None, :]
        self._possible = patterns.best < NEVER
        self._cost = np.where(self._possible, patterns.best, 0).astype(float)
        solved = [self._solve(np.array(weights)) for weights in self._lexicographic()]
        ends = np.array([corner for _, corner in solved])
        self.spread = np.maximum(ends.max(axis=0) - ends.min(axis=0), 1)
        scale = self.spread[1] / self.spread
        fan = [(scale[0] * a, 1.0, scale[2] * b) for a in RATIOS for b in RATIOS]
        self.weights = np.array([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0), *fan])
        solved = [self._solve(weights) for weights in self.weights]
        self.tables = np.stack([table for table, _ in solved])
        corners = np.concatenate([ends, [corner for _, corner in solved]])
        self.corners = np.unique(corners, axis=0).astype(np.int64)

    @property
    def cuts(self) -> np.ndarray:
        """Cuts that all plans satisfy, shape (k, 3); see `placeopt.temporal.exact.staircase`."""
        linear = self.weights[:, 1] == 1
        return np.column_stack(
            (self.tables[linear, -1], self.weights[linear, 0], self.weights[linear, 2])
        )

    @property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Least latency and interruption there are, and greatest of interest, shapes (2,)."""
        low = np.floor(self.tables[:2, -1] * (1 + 1e-12) + 0.5).astype(np.int64)
        return low, np.maximum(self.corners[:, [0, 2]].max(axis=0), low)

    def _lexicographic(self) -> list[tuple[float, float, float]]:
        """Return weights under which one objective comes first, and others break its ties."""
        numbers = self.patterns.numbers
        singles = np.cumprod([1, *numbers.replicas[:-1] + 1])
        dearest = np.where(self._possible[:, singles], self._cost[:, singles], 0).max(axis=0)
        cost = float((dearest * numbers.replicas).sum()) + 1
        latency = cost * (float(numbers.max_latency) + 1)
        interruption = cost * (float(numbers.max_interruption) + 1)
        return [
            (latency, 1.0, cost),
            (cost, 1.0, 1 / interruption),
            (1 / latency, 1.0, interruption),
            (1 / latency, 1.0, 1 / interruption),
        ]

    def _solve(self, weights: np.ndarray) -> tuple[np.ndarray, tuple[int, int, int]]:
        """Return the table of one weight vector, and the vector of a plan that attains it."""
        numbers, machines = self.patterns.numbers, self.patterns.machines
        sums = np.where(
            self._possible,
            weights[0] * self._latency + weights[1] * self._cost + weights[2] * self._interruption,
            _IMPOSSIBLE,
        )
        host, least = sums.argmin(axis=0), sums.min(axis=0)
        table = _table(least, numbers.replicas)
        latency, cost, interruption = np.zeros(len(numbers.replicas), dtype=np.int64), 0, 0.0
        for code in _trace(least, table, numbers.replicas):
            c, members = host[code], self._counts[code] > 0
            cost += int(self.patterns.best[c, code])
            interruption += self._interruption[c, code]
            there = numbers.latency[members, machines[c].place]
            latency[members] = np.maximum(latency[members], there)
        return table, (int(latency.sum()), cost, round(interruption))


@allocating_kernel
def _table(least, replicas):
    """Return the least sum of `least` over all partitions of every set, shape (sets,).

    `least`, (sets,), is the sum of a set that stays whole.
    """
    table = np.full(len(least), 1e30)
    table[0] = 0.0
    counts = np.zeros(len(replicas), np.int64)
    for code in range(1, len(least)):
        table[code] = _best_part(code, least, table, replicas, counts)[0]
    return table


@allocating_kernel
def _best_part(code, least, table, replicas, counts):
    """Return the least sum for a set, and the code of the part with its lowest request.

    One part is cut off at a time, the part of the lowest request first. Overwrites `counts`,
    (requests,).
    """
    write_counts(code, replicas, counts)
    low, stride = 0, 1
    while counts[low] == 0:
        stride *= replicas[low] + 1
        low += 1
    part = np.zeros(len(replicas), np.int64)
    best, choice = 1e30, -1
    for count in range(1, counts[low] + 1):
        part[:] = 0
        piece = count * stride
        while piece >= 0:
            value = least[piece] + table[code - piece]
            if value < best:
                best, choice = value, piece
            piece = next_part(part, piece, counts, replicas, low + 1, stride * (replicas[low] + 1))
    return best, choice


@allocating_kernel
def _trace(least, table, replicas):
    """Return the codes of the parts of a best partition of the full set, shape (parts,)."""
    counts = np.zeros(len(replicas), np.int64)
    parts, code = [np.int64(0)], len(least) - 1
    while code > 0:
        part = _best_part(code, least, table, replicas, counts)[1]
        parts.append(np.int64(part))
        code -= part
    return np.array(parts)[1:]
