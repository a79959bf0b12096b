"""Where to solve the configuration program: limits at which the bound is still loose.

The limits are on latency and interruption.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from placeopt.core.budget import Budget
from placeopt.temporal.exact.configuration_lp import ConfigurationLP

#: Refinement ends where no rectangle can miss more than this share of the volume below the bound.
_FINE = 2e-4


class Grid:
    """Rectangles of limits, split where the program may be far above what is proven.

    The value of the program is convex in the limits. Over a rectangle it lies between the cuts and
    the mean of its corners. So the difference of these in the middle, times the area, says how much
    volume the bound may miss.

    Parameters
    ----------
    program : ConfigurationLP
    low : ndarray, shape (2,)
        Least latency and interruption.
    budget : Budget

    Attributes
    ----------
    low, high : ndarray of int64, shape (2,)
        Range of the limits.
    """

    def __init__(self, program: ConfigurationLP, low: np.ndarray, budget: Budget):
        self._program, self._budget = program, budget
        self._value: dict[tuple[int, int], float] = {}
        numbers = program.numbers
        self.low = np.asarray(low, dtype=np.int64)
        self.high = np.maximum((numbers.max_latency, numbers.max_interruption), self.low)
        self._heap: list[tuple[float, tuple[int, int, int, int]]] = []
        if self._solve(*self.high) is not None:
            # Beyond what the cheapest solution needs nothing changes.
            self.high = np.clip(np.ceil(program.used), self.low, self.high).astype(np.int64)
            self._push(self.low[0], self.high[0], self.low[1], self.high[1])

    def refine(self, cells: int) -> None:
        """Solve the program at no more than about `cells` more limits."""
        limit = len(self._value) + cells
        while self._heap and len(self._value) < limit and not self._budget.out_of_time:
            score, (a, b, c, d) = heapq.heappop(self._heap)
            stake = self._stake(a, b, c, d)
            if stake <= 0:  # by rounding: nothing can be missed here, and asking would not end
                continue
            if stake < -0.7 * score:  # cuts that were found meanwhile hold here
                heapq.heappush(self._heap, (-stake, (a, b, c, d)))
                continue
            if stake <= _FINE * self._volume():
                return
            self._budget.report(f"bound: {len(self._value)} limits")
            across = self._bend((a, c), (b, c), (a, d), (b, d)) if b - a > 1 else -math.inf
            along = self._bend((a, c), (a, d), (b, c), (b, d)) if d - c > 1 else -math.inf
            middle = ((a + b) // 2, (c + d) // 2)
            halves = (
                ((a, middle[0], c, d), (middle[0], b, c, d))
                if across >= along
                else ((a, b, c, middle[1]), (a, b, middle[1], d))
            )
            for half in halves:
                self._push(*half)

    def _volume(self) -> float:
        return float(np.prod(np.maximum(self.high - self.low, 1).astype(float))) * max(
            *self._value.values(), 1.0
        )

    def _solve(self, latency: int, interruption: int) -> float | None:
        """Return the value of the program, None where it has none."""
        key = (int(latency), int(interruption))
        if key not in self._value:
            value = self._program.solve(*key, self._budget)
            if value is None:
                return None
            self._value[key] = value
        return self._value[key]

    def _push(self, a: int, b: int, c: int, d: int) -> None:
        """Keep a rectangle [a, b] x [c, d] that can be split and whose corners have values."""
        corners = [self._solve(x, y) for x in (a, b) for y in (c, d)]
        if None not in corners and (b - a > 1 or d - c > 1):
            heapq.heappush(self._heap, (-self._stake(a, b, c, d), (int(a), int(b), int(c), int(d))))

    def _proven(self, latency: float, interruption: float) -> float:
        return max((cut.at(latency, interruption) for cut in self._program.cuts), default=0.0)

    def _stake(self, a: int, b: int, c: int, d: int) -> float:
        """Return the volume that the bound may miss in a rectangle."""
        mean = sum(self._value[x, y] for x in (a, b) for y in (c, d)) / 4
        return (mean - self._proven((a + b) / 2, (c + d) / 2)) * max(b - a, 1) * max(d - c, 1)

    def _bend(self, *ends: tuple[int, int]) -> float:
        """Return how far the cuts lie below the middles of two edges, given by their ends."""
        total = 0.0
        for (a, c), (b, d) in (ends[:2], ends[2:]):
            total += (self._value[a, c] + self._value[b, d]) / 2 - self._proven(
                (a + b) / 2, (c + d) / 2
            )
        return total
