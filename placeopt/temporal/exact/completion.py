"""What it costs at the least to place the replicas that are left, under weights on the three objectives.

The bound of a set is exact but for one relaxation: a request pays the mean latency of its replicas instead of the largest. So
every weight vector gives a linear inequality that all plans satisfy, and a completion bound for every partial plan.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.temporal.exact.columns import Columns, all_counts
from placeopt.temporal.exact.numbers import NEVER

#: Weights of latency and of interruption against cost, as multiples of the ratio of their ranges.
RATIOS = (0.0, 0.03, 0.08, 0.17, 0.3, 0.5, 0.8, 1.3, 2.5, 6.0)
_IMPOSSIBLE = 1e30


class Completion:
    """Completion bounds under many weight vectors.

    Attributes
    ----------
    weights : ndarray, shape (K, 3)
    tables : ndarray, shape (K, sets)
        Least weighted sum of hosting a set, latency taken as the mean.
    corners : ndarray, shape (k, 3)
        Whole-number vectors of the plans that attain the tables (with the true, largest latency): points of the relaxed problem.
    spread : ndarray, shape (3,)
        Ranges of the objectives over the extreme points, at least 1.
    """

    def __init__(self, columns: Columns, ratios: tuple[float, ...] = RATIOS):
        numbers = columns.numbers
        self.columns, self._counts = columns, all_counts(numbers).astype(float)
        per_replica = numbers.latency / numbers.replicas[:, None]
        self._latency = np.stack(
            [
                self._counts @ np.maximum(per_replica[:, m.place], 0)
                for m in columns.machines[: len(columns.best)]
            ]
        )
        frequency = np.array(
            [m.frequency for m in columns.machines[: len(columns.best)]], dtype=float
        )
        self._interruption = frequency[:, None] * (self._counts @ numbers.share)[None, :]
        self._possible = columns.best < NEVER
        self._cost = np.where(self._possible, columns.best, 0).astype(float)
        greatest = np.array([*self._greatest()])
        first, second = greatest[1] + 1, (greatest[1] + 1) * (greatest + 1)
        extremes = [
            (second[0], 1.0, first),
            (first, 1.0, 1 / second[2]),
            (1 / second[0], 1.0, second[2]),
            (1 / second[0], 1.0, 1 / second[2]),
        ]
        solved = [self._solve(np.array(weights)) for weights in extremes]
        ends = np.array([corner for _, corner in solved])
        self.spread = np.maximum(ends.max(axis=0) - ends.min(axis=0), 1)
        scale = self.spread[1] / self.spread
        fan = [(scale[0] * a, 1.0, scale[2] * b) for a in ratios for b in ratios]
        self.weights = np.array([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0), *fan])
        solved = [self._solve(weights) for weights in self.weights]
        self.tables = np.stack([table for table, _ in solved])
        self.corners = np.unique(
            np.concatenate([ends, [corner for _, corner in solved]]), axis=0
        ).astype(np.int64)

    @property
    def cuts(self) -> np.ndarray:
        """Inequalities that all plans satisfy, as `placeopt.temporal.exact.staircase` wants them, shape (k, 3)."""
        linear = self.weights[:, 1] == 1
        return np.column_stack(
            (self.tables[linear, -1], self.weights[linear, 0], self.weights[linear, 2])
        )

    @property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Least latency and interruption there are, and greatest of any interest, shapes (2,)."""
        low = np.floor(self.tables[:2, -1] * (1 + 1e-12) + 0.5).astype(np.int64)
        return low, np.maximum(self.corners[:, [0, 2]].max(axis=0), low)

    def _greatest(self) -> tuple[float, float, float]:
        numbers = self.columns.numbers
        singles = np.cumprod(np.concatenate(([1], numbers.replicas[:-1] + 1)))
        dearest = np.where(self._possible[:, singles], self._cost[:, singles], 0).max(axis=0)
        return (
            float(numbers.latency.max(axis=1).sum()),
            float((dearest * numbers.replicas).sum()),
            float(
                (numbers.share * numbers.replicas).sum()
                * max(m.frequency for m in self.columns.machines)
            ),
        )

    def _solve(self, weights: np.ndarray) -> tuple[np.ndarray, tuple[int, int, int]]:
        """Return the table of one weight vector, and the vector of a plan that attains it."""
        numbers, replicas = self.columns.numbers, self.columns.numbers.replicas
        sums = np.where(
            self._possible,
            weights[0] * self._latency + weights[1] * self._cost + weights[2] * self._interruption,
            _IMPOSSIBLE,
        )
        host, least = sums.argmin(axis=0), sums.min(axis=0)
        table = _table(least, replicas)
        worst, cost, interruption = np.zeros(len(replicas), dtype=np.int64), 0, 0.0
        for code in _trace(least, table, replicas):
            c, members = host[code], self._counts[code] > 0
            cost += int(self.columns.best[c, code])
            interruption += self._interruption[c, code]
            worst[members] = np.maximum(
                worst[members], numbers.latency[members, self.columns.machines[c].place]
            )
        return table, (int(worst.sum()), cost, round(interruption))


@kernel
def _table(least, replicas):
    """Return the least sum of `least` over all partitions of every set: one part at a time, the part of the lowest request first."""
    k, total = len(replicas), len(least)
    table = np.full(total, 1e30)
    table[0] = 0.0
    n = np.zeros(k, np.int64)
    for code in range(1, total):
        table[code] = _best_part(code, least, table, replicas, n)[0]
    return table


@kernel
def _best_part(code, least, table, replicas, n):
    """Return the least sum for a set, and the part with its lowest request in one such partition."""
    k, rest, low, low_stride, stride = len(replicas), code, -1, 1, 1
    for i in range(k):
        n[i] = rest % (replicas[i] + 1)
        rest //= replicas[i] + 1
        if low < 0 and n[i] > 0:
            low, low_stride = i, stride
        stride *= replicas[i] + 1
    part = np.zeros(k, np.int64)
    best, choice = 1e30, -1
    for count in range(1, n[low] + 1):
        part[:] = 0
        piece = count * low_stride
        while True:
            value = least[piece] + table[code - piece]
            if value < best:
                best, choice = value, piece
            i, stride = low + 1, low_stride * (replicas[low] + 1)
            while i < k and part[i] == n[i]:
                piece -= part[i] * stride
                part[i] = 0
                stride *= replicas[i] + 1
                i += 1
            if i >= k:
                break
            part[i] += 1
            piece += stride
    return best, choice


@kernel
def _trace(least, table, replicas):
    """Return the parts of a best partition of the full set."""
    n = np.zeros(len(replicas), np.int64)
    parts, code = [np.int64(0)], len(least) - 1
    while code > 0:
        part = _best_part(code, least, table, replicas, n)[1]
        parts.append(np.int64(part))
        code -= part
    return np.array(parts)[1:]
