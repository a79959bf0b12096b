"""What an enumeration remembers: the points it has met, the corners it has refuted, and the bounds that these prove.

All values are in units of the objectives' steps, as in `placeopt.exact.enumeration`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.front import minimal

#: Relative precision of solvers for values that are real numbers.
TOLERANCE = 1e-6
#: Stands for "no limit" where infinities cannot be computed with.
_HUGE = 1e300


@dataclass(frozen=True)
class Found:
    """A feasible point: the referee's values in units, and what the oracle remembers of it."""

    values: tuple[float, ...]
    payload: Any = None


class Rows:
    """Vectors that keep coming."""

    def __init__(self, size: int):
        self._rows, self._count = np.empty((64, size)), 0

    @property
    def all(self) -> np.ndarray:
        return self._rows[: self._count]

    def add(self, row: np.ndarray) -> None:
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.empty_like(self._rows)))
        self._rows[self._count] = row
        self._count += 1


class Memory:
    """The points met, and the corners that solves have refuted."""

    def __init__(self, whole: np.ndarray, known: Sequence[Found]):
        self.whole, self.size = whole, len(whole)
        self.points: list[Found] = []
        self.values = Rows(self.size)
        self.open = Rows(self.size)  # no feasible vector lies strictly below one of these
        self._inclusive = Rows(self.size)  # the same corners, as limits that are themselves refuted
        for point in known:
            self.meet(point)

    def meet(self, point: Found) -> None:
        """Remember a feasible point."""
        self.points.append(point)
        self.values.add(np.array(point.values, dtype=float))

    def refute(self, objective: int, limits: np.ndarray, lower: float) -> None:
        """Remember that nothing within the limits has less of the objective than `lower`."""
        if lower == -math.inf:
            return
        inclusive, open_ = limits.copy(), np.where(self.whole, limits + 1, limits)
        open_[objective] = lower
        inclusive[objective] = (
            lower - 1 if self.whole[objective] else np.nextafter(lower, -math.inf)
        )
        self._inclusive.add(inclusive)
        self.open.add(open_)

    def lower(self, objective: int, limits: np.ndarray) -> float:
        """Return the proven lower bound of an objective within limits."""
        others = np.arange(self.size) != objective
        covers = (self._inclusive.all[:, others] >= limits[others]).all(axis=1)
        return float(self.open.all[covers, objective].max(initial=-math.inf))

    def best(self, objective: int, limits: np.ndarray) -> Found | None:
        """Return the known point of least value within limits; of equals the one of least sum."""
        slack = np.where(
            self.whole | np.isinf(limits), 0.0, TOLERANCE * np.maximum(1.0, np.abs(limits))
        )
        inside = np.flatnonzero((self.values.all <= limits + slack).all(axis=1))
        if not len(inside):
            return None
        values = self.values.all[inside]
        return self.points[inside[np.lexsort((values.sum(axis=1), values[:, objective]))[0]]]

    def bounds(self, floors: Sequence[float]) -> np.ndarray:
        """Return the minimal vectors that lie strictly below no corner."""
        bounds = np.array([floors], dtype=float)
        corners = np.minimum(self.open.all, _HUGE)
        corners = -minimal(-corners)
        for corner in corners[np.argsort(-np.minimum(corners, 1e30).sum(axis=1), kind="stable")]:
            hit = (bounds < corner).all(axis=1)
            if not hit.any():
                continue
            raised = [bounds[~hit]]
            for k in np.flatnonzero(corner < _HUGE):
                moved = bounds[hit]
                moved[:, k] = corner[k]
                raised.append(moved)
            bounds = minimal(np.concatenate(raised))
        return bounds
