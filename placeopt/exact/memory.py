"""What passes between a search and its oracle, what the search remembers, where points may lie that
are not found yet, and what the search returns.

A region is the set of vectors within a local upper bound: limits on every objective but the main
one. The regions of a search cover what its answers have not settled, and none lies inside another
(K. Klamroth, R. Lacour, D. Vanderpooten, "On the representation of the search region in
multi-objective optimization", EJOR 245, 2015).

A vector is unknown as long as no point dominates it and no answer refutes it. A box of limits that
holds much of the unknown part is worth a question: its answer is a point in the middle of what is
missing, or the proof that nothing is there. Samples show both what is unknown and which box holds
most of it, for any number of objectives.

All values are in units of the objectives' steps, as in `placeopt.exact.enumeration`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.fronts.dominance import minimal
from placeopt.core.goals import simplex


@dataclass(frozen=True)
class Precision:
    """What a solver can tell apart, in units; nothing is lost of whole numbers.

    Attributes
    ----------
    whole : ndarray of bool, shape (objectives,)
        Which objectives take whole numbers of units.
    absolute, relative : ndarray or float
        Smallest difference of real values, and the same as a share of the value; the larger counts.
    asked : float
        Limits on real values are asked for with so many differences more, so that rounding does not
        cut off a point that lies on the limit.
    proven : float
        Of these, how many an answer is taken to be valid for.
    accepted : float
        So many differences above a proven bound a value still counts as least.
    merged : float
        A point that is better than another by so many differences at most is the same.
    wanted : float
        Where only larger differences than this can be told, points may be missing.
    """

    whole: np.ndarray
    absolute: np.ndarray | float = 1e-9
    relative: np.ndarray | float = 1e-9
    asked: float = 8.0
    proven: float = 4.0
    accepted: float = 1000.0
    merged: float = 1.0
    wanted: float = 1e-3

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the smallest difference at each value; 0 at whole and infinite ones."""
        real = ~self.whole & np.isfinite(values)
        size = np.abs(np.where(real, values, 0.0))
        return np.where(real, np.maximum(self.absolute, self.relative * size), 0.0)


#: Stands for "no limit" where infinities cannot be computed with.
_HUGE = 1e300


@dataclass(frozen=True)
class Found:
    """A feasible point: its values in units, and what the oracle remembers of it."""

    values: tuple[float, ...]
    payload: Any = None


class Rows:
    """A matrix of `size` columns that grows row by row."""

    def __init__(self, size: int):
        self._rows, self._count = np.empty((64, size)), 0

    @property
    def all(self) -> np.ndarray:
        """The rows so far, shape (rows, size); a view."""
        return self._rows[: self._count]

    def add(self, row: np.ndarray) -> None:
        """Append a row."""
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.empty_like(self._rows)))
        self._rows[self._count] = row
        self._count += 1


class LowerBounds:
    """The minimal vectors that lie strictly below no refuted corner, kept up to date.

    Parameters
    ----------
    floors : sequence of float
        Trivial lower bounds of the objectives.
    """

    def __init__(self, floors: Sequence[float]):
        self._floors = np.array([floors], dtype=float)
        self.all = self._floors

    def forget(self) -> None:
        """Return to the trivial bounds."""
        self.all = self._floors

    def exclude_below(self, corner: np.ndarray) -> None:
        """Raise the bounds: no feasible vector lies strictly below `corner`."""
        hit = (self.all < corner).all(axis=1)
        if not hit.any():
            return
        kept, below = self.all[~hit], self.all[hit]
        raised = []
        for k in np.flatnonzero(corner < _HUGE):
            moved = below.copy()
            moved[:, k] = corner[k]
            raised.append(moved)
        if not raised:
            self.all = kept
            return
        # Only a moved vector can become redundant: the others were minimal before.
        moved = minimal(np.concatenate(raised))
        needed = [not (kept <= vector).all(axis=1).any() for vector in moved]
        self.all = np.concatenate((kept, moved[needed]))


class SearchHistory:
    """The points found, and the corners that solves have refuted.

    Parameters
    ----------
    precision : Precision
    floors : sequence of float
        Trivial lower bounds of the objectives.
    """

    def __init__(self, precision: Precision, floors: Sequence[float]):
        self.precision, self.whole = precision, precision.whole
        self.size = len(self.whole)
        self.points: list[Found] = []
        self.values = Rows(self.size)
        self.lower_bounds = LowerBounds(floors)
        self._refuted = Rows(self.size)  # no feasible vector lies strictly below one of these
        self._inclusive = Rows(self.size)  # the same corners, as limits that are themselves refuted

    def add_point(self, point: Found) -> bool:
        """Remember a feasible point; False where a known one is as good in everything."""
        values = np.array(point.values, dtype=float)
        same = values + self.precision.merged * self.precision.of(values)
        if (self.values.all <= same).all(axis=1).any():
            return False
        self.points.append(point)
        self.values.add(values)
        return True

    def exclude_below(self, objective: int, limits: np.ndarray, lower: float) -> None:
        """Remember that nothing within `limits` has less of the objective than `lower`."""
        if lower == -math.inf:
            return
        inclusive = limits + self.precision.proven * self.precision.of(limits)
        corner = np.where(self.whole, limits + 1, inclusive)
        corner[objective] = lower
        inclusive[objective] = (
            lower - 1 if self.whole[objective] else np.nextafter(lower, -math.inf)
        )
        self._inclusive.add(inclusive)
        self._refuted.add(corner)
        self.lower_bounds.exclude_below(corner)

    def forget_proofs(self) -> None:
        """Drop everything that was proven; the points stay."""
        self._refuted, self._inclusive = Rows(self.size), Rows(self.size)
        self.lower_bounds.forget()

    @property
    def refuted_limits(self) -> np.ndarray:
        """Limits within which no feasible vector lies, shape (k, objectives)."""
        return self._inclusive.all

    @property
    def proofs(self) -> dict[str, np.ndarray]:
        """What was refuted, as arrays: for `take_up`, in another process."""
        return {"corners": self._refuted.all, "limits": self._inclusive.all}

    def take_up(self, proofs: Mapping[str, np.ndarray]) -> None:
        """Remember what a search of the same objectives refuted."""
        for corner, limits in zip(proofs["corners"], proofs["limits"], strict=True):
            self._refuted.add(corner)
            self._inclusive.add(limits)
            self.lower_bounds.exclude_below(corner)

    def take_up_bounds(self, bounds: np.ndarray) -> None:
        """Remember what a bound set of the same objectives proves: what lies below none is refuted.

        Parameters
        ----------
        bounds : ndarray, shape (k, objectives)
        """
        above = LowerBounds([-math.inf] * self.size)
        for bound in bounds:
            above.exclude_below(-bound)
        corners = -above.all
        corners = corners - self.precision.of(corners)
        limits = np.where(self.whole, corners - 1, np.nextafter(corners, -math.inf))
        self.take_up({"corners": corners, "limits": limits})

    def lower(self, objective: int, limits: np.ndarray) -> float:
        """Return the proven lower bound of an objective within limits, -inf where there is none."""
        others = np.arange(self.size) != objective
        covers = (self._inclusive.all[:, others] >= limits[others]).all(axis=1)
        return float(self._refuted.all[covers, objective].max(initial=-math.inf))

    def best(self, objective: int, limits: np.ndarray) -> Found | None:
        """Return the known point of least value within limits; of equals the one of least sum."""
        slack = max(1.0, self.precision.asked) * self.precision.of(limits)
        inside = np.flatnonzero((self.values.all <= limits + slack).all(axis=1))
        if not len(inside):
            return None
        values = self.values.all[inside]
        return self.points[inside[np.lexsort((values.sum(axis=1), values[:, objective]))[0]]]


#: How a search may end, and why.
STATUSES = {
    "complete": "every point of the front is found and proven",
    "extreme": "every extreme point of the front is found and proven; the front lies between them",
    "resolution": "points that differ by less than a solver can tell may be missing",
    "grid": "limits were tried on a grid: between two of them points may be missing",
    "infeasible": "no solution satisfies all constraints",
    "time-limit": "the time limit ended the search",
    "solution-limit": "the largest number of points was reached",
    "cancelled": "the search was cancelled",
    "numerical": "the solver could not answer some questions",
}


@dataclass(frozen=True)
class Answer:
    """What an oracle says of one question.

    Attributes
    ----------
    status : str
        ``optimal``, ``feasible`` (a point, not proven least), ``infeasible`` or ``unknown``.
    bound : float
        No feasible vector within the limits has less of the objective; units.
    values : tuple of float or None
        The referee's values of the plan found, in units; None without a feasible plan.
    claimed : tuple of float or None
        What the solver says of its solution, in units.
    payload : object
        Whatever the oracle wants to remember of the plan.
    """

    status: str
    bound: float = -math.inf
    values: tuple[float, ...] | None = None
    claimed: tuple[float, ...] | None = None
    payload: Any = None


@dataclass
class Enumeration:
    """What a search has found and proven.

    Attributes
    ----------
    points : list of Found
        The feasible points met, some dominated ones too.
    bounds : ndarray, shape (k, objectives)
        Every feasible vector is weakly dominated by a row; no rows where the problem is infeasible.
    status : str
        One of `STATUSES`, or ``payoff``: each objective was minimised, and no more was asked.
    main : int
        The objective that was minimised.
    solves : int
        Questions put to the oracle.
    failures : int
        Of these, how many the solver could not answer at all.
    unresolved : ndarray or None, shape (objectives,)
        Points that differ by less may be missing; units.
    """

    points: list[Found]
    bounds: np.ndarray
    status: str
    main: int
    solves: int = 0
    failures: int = 0
    unresolved: np.ndarray | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing was left unexplored."""
        return self.status in ("complete", "infeasible")

    def gap(self, values: Sequence[float], precision: Precision) -> float | None:
        """Return None if a point is proven efficient, else what of its main value might be saved.

        As a share of the value, with the other values no worse; 0 where only another value might
        be improved.
        """
        z = np.asarray(values, dtype=float)
        slack = precision.accepted * precision.of(z)
        under = self.bounds[(self.bounds <= z + slack).all(axis=1)]
        if len(under) and (under >= z - slack).all():
            return None
        others = np.arange(len(z)) != self.main
        below = self.bounds[(self.bounds[:, others] <= (z + slack)[others]).all(axis=1)]
        least = below[:, self.main].min(initial=z[self.main])
        value = abs(z[self.main])
        return 0.0 if value == 0 else float(max(0.0, z[self.main] - least) / value)


@dataclass(eq=False)
class Question:
    """One objective to minimise within limits, by the clock's share `parts`.

    Where it has `weights` it is about the weighted sum of all objectives.
    """

    objective: int
    limits: np.ndarray
    parts: float
    start: Found | None
    is_region: bool = True
    weights: np.ndarray | None = None
    job: Future[None] | None = None  # of the worker that asks
    answer: Answer | None = None  # None: not asked, the time was up
    failed: bool = False
    slow: bool = False  # took most of its time slice


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
