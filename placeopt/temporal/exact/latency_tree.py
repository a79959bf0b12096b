"""Branch and bound on the latency that every request pays, at fixed exchange rates.

A request pays the largest latency of its replicas. A linear program lets a part of them be near and
charges a part of the latency. Here the plans are split: in one part a request pays no more than
some latency, so that no replica is farther; in the other it pays at least the next larger one,
wherever its replicas are. Every part has its bound by the program over machines
(`placeopt.temporal.exact.machine_program`), and the least of them bounds all plans.
"""

from __future__ import annotations

import heapq

import numpy as np

from placeopt.core.budget import Budget
from placeopt.temporal.exact.machine_program import MachineProgram, ProvenSum

#: Shares of a request's replicas nearer to 0 or 1 than this are whole.
_WHOLE = 1e-4


class _Part:
    """Plans in which each request pays latencies within limits.

    Attributes
    ----------
    levels : ndarray, shape (requests, 2)
        Least and largest latency.
    priced : ProvenSum
    bound : float
        At least that of the plans it was split from.
    """

    def __init__(self, levels: np.ndarray, priced: ProvenSum, bound: float):
        self.levels, self.priced, self.bound = levels, priced, bound


class LatencyTree:
    """Parts of all plans, the one of the least bound first.

    Parameters
    ----------
    program : MachineProgram
    per_latency, per_interruption : float
        What a unit of each is worth in cost.

    Attributes
    ----------
    bound : float
        Cost and what latency and interruption are worth are at least this, for every plan.
    finished : bool
        No part can be split further.
    """

    def __init__(self, program: MachineProgram, per_latency: float, per_interruption: float):
        self._program, self._rates = program, (per_latency, per_interruption)
        self._places = np.array([kind.place for kind in program.kinds])
        self._latency = program.numbers.latency
        self._usable = self._hosting_places()
        self._parts: list[tuple[float, int, _Part]] = []
        self._made, self.finished = 0, False

    @property
    def bound(self) -> float:
        """The least bound of a part."""
        return self._parts[0][0] if self._parts else -np.inf

    def _hosting_places(self) -> np.ndarray:
        """Return whether a place has a machine for a request, (requests, places)."""
        program, usable = self._program, np.zeros(self._latency.shape, dtype=bool)
        for k, kind in enumerate(program.kinds):
            usable[:, kind.place] |= program.hosts(k)
        return usable

    def grow(self, parts: int, budget: Budget) -> None:
        """Split until there are so many parts."""
        if not self._parts:
            largest = np.where(self._usable, self._latency, -1).max(axis=1)
            least = np.where(self._usable, self._latency, largest[:, None]).min(axis=1)
            self._solve(np.stack((least, largest), axis=1), -np.inf, frozenset(), budget)
        while len(self._parts) < parts and not self.finished and not budget.out_of_time:
            part = self._parts[0][2]
            split = self._split(part)
            if split is None:
                self.finished = True
                return
            request, below, above = split
            heapq.heappop(self._parts)
            for column, value in ((1, below), (0, above)):
                levels = part.levels.copy()
                levels[request, column] = value
                self._solve(levels, part.bound, part.priced.coarse, budget)

    def _solve(
        self, levels: np.ndarray, least: float, coarse: frozenset[int], budget: Budget
    ) -> None:
        """Add a part whose plans are known to cost `least`."""
        priced = self._program.solve(self._tolls(levels), budget, coarse)
        bound = max(least, priced.bound + self._rates[0] * float(levels[:, 0].sum()))
        self._made += 1
        heapq.heappush(self._parts, (bound, self._made, _Part(levels, priced, bound)))

    def _tolls(self, levels: np.ndarray) -> np.ndarray:
        """Return what a replica pays on each kind of machine, beyond the least latency."""
        numbers = self._program.numbers
        latency = self._latency[:, self._places]
        frequency = np.array([kind.frequency for kind in self._program.kinds], dtype=float)
        beyond = np.maximum(latency - levels[:, :1], 0) / numbers.replicas[:, None]
        tolls = self._rates[0] * beyond + self._rates[1] * frequency * numbers.share[:, None]
        return np.where((latency < 0) | (latency > levels[:, 1:]), np.inf, tolls)

    def _split(self, part: _Part) -> tuple[int, int, int] | None:
        """Return a request and two neighbouring latencies between which to split, or None.

        The request is the one that saves most by being partly near, of the smaller part.
        """
        best, found = 0.0, None
        for i, (least, largest) in enumerate(part.levels):
            row = self._latency[i]
            inside = self._usable[i] & (row > least) & (row <= largest)
            below = least
            for level in np.unique(row[inside]):
                far = float(part.priced.shares[i, self._usable[i] & (row >= level)].sum())
                saved = min(far, 1 - far) * self._rates[0] * (level - least)
                if _WHOLE < far < 1 - _WHOLE and saved > best:
                    best, found = saved, (i, int(below), int(level))
                below = level
        return found
