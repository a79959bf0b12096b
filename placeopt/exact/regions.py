"""Where points may lie that are not found yet: local upper bounds, the most promising first.

A region is the set of vectors within a local upper bound: limits on every objective but the main
one. The regions of a search cover what its answers have not settled, and none lies inside another
(K. Klamroth, R. Lacour, D. Vanderpooten, "On the representation of the search region in
multi-objective optimization", EJOR 245, 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Box:
    """The ranges of the objectives that the payoff table shows, in units; nan where unknown."""

    ideal: np.ndarray
    nadir: np.ndarray
    whole: np.ndarray
    main: int

    @property
    def spread(self) -> np.ndarray:
        """Range of each objective, 1 where it is unknown or nothing; shape (objectives,)."""
        spread = np.nan_to_num(self.nadir - self.ideal, nan=1.0, posinf=1.0, neginf=1.0)
        return np.where(spread > 0, spread, 1.0)

    @property
    def limits(self) -> float:
        """How many limits on the other objectives differ; inf where one is a real value."""
        others = self.others
        return float(self.spread[others].prod()) if self.whole[others].all() else math.inf

    @property
    def others(self) -> np.ndarray:
        """The objectives but the main one."""
        return np.flatnonzero(np.arange(len(self.whole)) != self.main)


class SearchRegion:
    """Local upper bounds, none inside another.

    Attributes
    ----------
    upper_bounds : ndarray, shape (regions, objectives)
        Inclusive limits in units; inf for the main objective.
    """

    def __init__(self, box: Box):
        self.box = box
        self.upper_bounds = np.empty((0, len(box.whole)))
        self._lower = np.empty(0)  # proven bound of the main objective in each region
        self._best = np.empty(0)  # least known value of the main objective in each region

    def __len__(self) -> int:
        return len(self.upper_bounds)

    def covers(self, upper_bound: np.ndarray) -> bool:
        """Whether a region holds all that lies within `upper_bound`."""
        return bool((upper_bound <= self.upper_bounds).all(axis=1).any())

    def add(self, upper_bound: np.ndarray, lower: float, best: float) -> None:
        """Add a region and drop those inside it."""
        kept = ~(self.upper_bounds <= upper_bound).all(axis=1)
        self.upper_bounds = np.concatenate((self.upper_bounds[kept], upper_bound[None]))
        self._lower = np.append(self._lower[kept], lower)
        self._best = np.append(self._best[kept], best)

    def add_point(self, values: np.ndarray) -> None:
        """Take note of a feasible point."""
        inside = (values <= self.upper_bounds).all(axis=1)
        self._best[inside] = np.minimum(self._best[inside], values[self.box.main])

    def pop(self) -> np.ndarray:
        """Remove and return the region of largest potential."""
        chosen = int(np.argmax(self._potentials()))
        upper_bound = self.upper_bounds[chosen]
        self.upper_bounds = np.delete(self.upper_bounds, chosen, axis=0)
        self._lower = np.delete(self._lower, chosen)
        self._best = np.delete(self._best, chosen)
        return upper_bound

    def _potentials(self) -> np.ndarray:
        """Return the share of the box that each region may add to the hypervolume, at most."""
        box, main = self.box, self.box.main
        reach = np.fmin(self.upper_bounds, box.nadir) - box.ideal + box.whole
        shares = np.clip(np.nan_to_num(reach / box.spread, nan=1.0, posinf=1.0), 0.0, None)
        height = (np.fmin(self._best, box.nadir[main] + 1) - self._lower) / box.spread[main]
        height = np.clip(np.nan_to_num(height, nan=1.0, posinf=1.0), 1e-6, 1.0)
        return shares[:, box.others].prod(axis=1) * height
