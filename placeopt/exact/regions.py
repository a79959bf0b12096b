"""Where points may lie that are not found yet: local upper bounds, and boxes amid what is unknown.

A region is the set of vectors within a local upper bound: limits on every objective but the main
one. The regions of a search cover what its answers have not settled, and none lies inside another
(K. Klamroth, R. Lacour, D. Vanderpooten, "On the representation of the search region in
multi-objective optimization", EJOR 245, 2015).

A vector is unknown as long as no point dominates it and no answer refutes it. A box of limits that
holds much of the unknown part is worth a question: its answer is a point in the middle of what is
missing, or the proof that nothing is there. Samples show both what is unknown and which box holds
most of it, for any number of objectives. All values are in units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.weights import simplex
from placeopt.exact.memory import SearchHistory


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


#: Vectors drawn at once; unknown ones that are kept; of these, corners that are tried.
_DRAWN, _KEPT, _TRIED = 8192, 1024, 64
#: Parts of the lattice of weights, more than objectives: 4, 10 and 20 weights inside of it for 2, 3
#: and 4 objectives.
_MORE_PARTS = 3


def first_weights(size: int) -> list[np.ndarray]:
    """Return weights of objectives that spread evenly, the most balanced first, without the ends.

    Weighted sums are the cheapest questions that there are: mostly their linear relaxation is
    tight.
    """
    lattice = simplex(size + _MORE_PARTS, size)
    inner = lattice[lattice.min(axis=1) > 0]
    return list(inner[np.argsort(-inner.min(axis=1), kind="stable")])


class Unknown:
    """The unknown part of a box between ideal and nadir.

    Parameters
    ----------
    box : Box
    memory : SearchHistory
        Its points and refuted limits decide what is known.

    Attributes
    ----------
    share : float
        Share of the box that was unknown at the last draw.
    """

    def __init__(self, box: Box, memory: SearchHistory):
        self._box, self._memory = box, memory
        self._rng = np.random.default_rng(0)
        self._samples = np.empty((0, len(box.whole)))
        self._points = self._refuted = 0  # how many of them the samples have been compared with
        self._barren: list[np.ndarray] = []
        self._ends = not bool(np.isfinite(box.ideal).all() and np.isfinite(box.nadir).all())
        self.share = 0.0 if self._ends else 1.0

    def give_up(self, limits: np.ndarray) -> None:
        """Leave out a box: a question about it told nothing."""
        self._barren.append(limits)

    def largest_box(self, asked: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return the limits of a box that holds much of the unknown part; None where it is small.

        Parameters
        ----------
        asked : sequence of ndarray
            Limits of boxes whose answers are still to come: they count as known.
        """
        self._compare()
        if len(self._samples) < _KEPT // 2 and not self._ends:
            self._draw()
        samples = _outside(self._samples, asked)
        if not len(samples):
            return None
        corners = self._rng.permutation(samples)[:_TRIED]
        held = (samples[:, None, :] <= corners).all(axis=2).sum(axis=0)
        return corners[int(held.argmax())]

    def _draw(self) -> None:
        """Add samples; the last ones where few of them are unknown."""
        low, high, whole = self._box.ideal, self._box.nadir, self._box.whole
        drawn = self._rng.uniform(low, high + whole, (_DRAWN, len(low)))
        drawn = np.where(whole, np.floor(drawn), drawn)
        self._points = self._refuted = 0
        unknown = self._unknown(drawn)
        self.share, self._ends = len(unknown) / _DRAWN, len(unknown) < _KEPT // 2
        self._samples = np.concatenate((self._samples, unknown))[:_KEPT]

    def _compare(self) -> None:
        self._samples = self._unknown(self._samples)

    def _unknown(self, samples: np.ndarray) -> np.ndarray:
        """Return the samples that nothing decides which they have not been compared with."""
        points, limits = self._memory.values.all, self._memory.refuted_limits
        for point in points[self._points :]:
            samples = samples[~(samples >= point).all(axis=1)]
        samples = _outside(samples, [*limits[self._refuted :], *self._barren])
        self._points, self._refuted = len(points), len(limits)
        return samples


def _outside(samples: np.ndarray, boxes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the samples that lie in none of the boxes."""
    for limits in boxes:
        samples = samples[~(samples <= limits).all(axis=1)]
    return samples
