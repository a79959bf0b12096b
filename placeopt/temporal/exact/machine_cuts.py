"""Raise cuts on cost by the program over machines, where they bound most of the volume.

A cut says that cost is worth at least its constant less what latency and interruption are worth at
its exchange rates. At the same rates `placeopt.temporal.exact.latency_tree` proves more. Rates are
taken by the volume below their cut where it is the best one: first all that count with one part
each, then again with more and more parts.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.budget import Budget
from placeopt.temporal.exact.latency_tree import LatencyTree
from placeopt.temporal.exact.machine_program import MachineProgram
from placeopt.temporal.exact.numbers import Numbers

#: Parts of the plans at each exchange rate, pass by pass; the last pass has as many as wanted.
PASSES = (1, 8, 32, 128)
#: A pass ends when less than this share of the volume is below cuts that it has not raised.
_REST = 0.01
#: Lines of the grid on which cuts are compared.
_LINES = 64


class RaisedCuts:
    """Cuts, and trees that raise them.

    Parameters
    ----------
    numbers : Numbers
    cuts : ndarray, shape (k, 3)
        As of `placeopt.temporal.exact.staircase`.
    low, high : ndarray, shape (2,)
        Ranges of latency and interruption.

    Attributes
    ----------
    cuts : ndarray, shape (k, 3)
    solves : int
        Linear programs solved.
    """

    def __init__(self, numbers: Numbers, cuts: np.ndarray, low: np.ndarray, high: np.ndarray):
        self.cuts = cuts.copy()
        self._program = MachineProgram(numbers)
        self._trees: dict[int, LatencyTree] = {}
        # Lines are denser where the cost falls faster, and a cell counts by its size.
        ends = [low[a] + np.linspace(0, 1, _LINES) ** 2 * (high[a] - low[a]) for a in range(2)]
        sizes = [np.gradient(line) if line[-1] > line[0] else np.ones(_LINES) for line in ends]
        self._size = np.outer(*sizes).ravel() / np.outer(*sizes).sum()
        points = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 2)
        self._fall = cuts[:, 1:] @ points.T

    @property
    def solves(self) -> int:
        """Linear programs solved."""
        return self._program.solves

    def raise_all(self, parts: int, budget: Budget) -> None:
        """Raise cuts in passes of up to so many parts until the time is over."""
        for limit in (*(few for few in PASSES if few < parts), parts):
            done = np.zeros(len(self.cuts), dtype=bool)
            while not budget.out_of_time:
                share = self._shares_of_volume()
                share[done] = 0.0
                if share.sum() < _REST:
                    break
                k = int(share.argmax())
                budget.report(note=f"bound: {limit} parts, exchange rate {int(done.sum()) + 1}")
                self.cuts[k, 0] = self._raised(k, limit, budget)
                done[k] = True

    def _shares_of_volume(self) -> np.ndarray:
        """Return which share of the volume lies below each cut where it is best, shape (k,)."""
        costs = self.cuts[:, :1] - self._fall
        best = costs.argmax(axis=0)
        volume = self._size * np.maximum(costs[best, np.arange(len(best))], 0.0)
        shares = np.bincount(best, weights=volume, minlength=len(self.cuts))
        return shares / max(shares.sum(), 1e-300)

    def _raised(self, k: int, parts: int, budget: Budget) -> float:
        """Return the constant of a cut that a tree of so many parts proves."""
        if k not in self._trees:
            self._trees[k] = LatencyTree(self._program, *self.cuts[k, 1:].tolist())
        self._trees[k].grow(parts, budget)
        return max(float(self.cuts[k, 0]), float(self._trees[k].bound))
