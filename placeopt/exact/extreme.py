"""The extreme points of a convex front: those that a weighted sum of the objectives can single out.

The front of a linear program lies between its extreme points. They are found from outside: the
facets below the points so far are weights, and the least weighted sum is a new point, or the facet
bounds the front (A. Przybylski, K. Klamroth, R. Lacour, "A simple and efficient dichotomic search
algorithm for multi-objective mixed integer linear programs", arXiv 1911.08937, 2019). With two
objectives that is the dichotomic search of Y. P. Aneja and K. P. K. Nair, Management Science 25,
1979.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.exact.memory import Found

#: Weights are compared by so many decimals; those below the last one are zero.
_DECIMALS = 9
#: How far below a facet a point is new, as a share of the ranges of the objectives.
_BELOW = 1e-9
#: Length of the ways on which values only get worse, in ranges of the objectives.
_FAR = 4.0


@dataclass
class ExtremePoints:
    """Extreme points and the facets between them.

    Attributes
    ----------
    points : list of Found
    facets : list of list of int
        The points of each facet that bounds the front from below.
    asked : int
        Weighted sums that were minimised.
    complete : bool
        False where the search was stopped.
    reached : float
        Where a tolerance ends the search: how much of it the largest distance between the points'
        hull and what is proven takes, at most 1.
    """

    points: list[Found] = field(default_factory=list)
    facets: list[list[int]] = field(default_factory=list)
    asked: int = 0
    complete: bool = False
    reached: float = 0.0

    @property
    def bounds(self) -> np.ndarray:
        """Every feasible vector is weakly dominated by a row; shape (facets, objectives)."""
        values = np.array([point.values for point in self.points])
        return np.array([values[facet].min(axis=0) for facet in self.facets])


def extreme_points(
    least: Callable[[np.ndarray], Found | None],
    size: int,
    enough: np.ndarray | float | None = None,
) -> ExtremePoints:
    """Find all extreme points of a front that no objective improves without end, or enough of them.

    Parameters
    ----------
    least : callable
        From weights of at least 0, shape (size,), to an efficient point of least weighted sum; None
        to stop.
    size : int
        Number of objectives.
    enough : ndarray of shape (size,), or float, optional
        Distances of each objective, or a share of their ranges: stop when no vector is better than
        the hull of the points by more. The facet that may be farthest off is asked about next.
    """
    result = ExtremePoints()
    for unit in np.eye(size):
        if (point := _ask(result, least, unit)) is None:
            return result
        _add(result, point)
    values = np.array([point.values for point in result.points])
    low, spread = values.min(axis=0), np.ptp(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    bounding = {tuple(unit) for unit in np.eye(size).tolist()}  # weights that no point lies below
    outer = Outer(low, spread, enough)
    while True:
        facets = _facets((np.array([point.values for point in result.points]) - low) / spread)
        open_ = [weights for weights in facets if weights not in bounding]
        if enough is not None:
            open_, result.reached = outer.farthest(open_, facets, result.points)
        if not open_:
            result.facets, result.complete = list(facets.values()), True
            return result
        for weights in open_:
            slope = np.array(weights) / spread
            below = min(float(slope @ result.points[k].values) for k in facets[weights]) - _BELOW
            if (point := _ask(result, least, slope)) is None:
                return result
            outer.prove(slope, float(slope @ point.values))
            if float(slope @ point.values) >= below or not _add(result, point):
                bounding.add(weights)


def corners(values: np.ndarray) -> np.ndarray:
    """Return which vectors some weighted sum singles out; others lie between these, or above.

    Parameters
    ----------
    values : ndarray, shape (points, size)
        Of equal vectors one is singled out.
    """
    from scipy.optimize import linprog

    spread = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    count, size = scaled.shape
    single = np.ones(count, dtype=bool)
    for k in range(count if count > 1 else 0):
        # Weights w and the least distance t of all others: w @ (other - own) >= t.
        others = single & (np.arange(count) != k)  # what was left out counts no more
        own = scaled[k] - scaled[others]
        answer = linprog(
            np.append(np.zeros(size), -1.0),
            A_ub=np.column_stack((own, np.ones(len(own)))),
            b_ub=np.zeros(len(own)),
            A_eq=np.append(np.ones(size), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, 1)] * size + [(None, 1)],
            options={"primal_feasibility_tolerance": _BELOW / 2},
        )
        single[k] = answer.status != 0 or -answer.fun > _BELOW
    return single


class Outer:
    """What weighted sums prove: all vectors lie above some planes.

    Parameters
    ----------
    low, spread : ndarray, shape (size,)
        Least values and ranges of the objectives.
    enough : ndarray or float or None
        As of `extreme_points`.
    """

    def __init__(self, low: np.ndarray, spread: np.ndarray, enough: np.ndarray | float | None):
        self._low, self._spread = low, spread
        share = 0.0 if enough is None else np.asarray(enough, dtype=float)
        self._enough = np.broadcast_to(share * (spread if np.ndim(share) == 0 else 1.0), low.shape)
        self._slopes: list[np.ndarray] = []
        self._least: list[float] = []

    def prove(self, slope: np.ndarray, least: float) -> None:
        """Remember the least weighted sum of a slope."""
        self._slopes.append(slope)
        self._least.append(least)

    def farthest(
        self,
        weights: Sequence[tuple[float, ...]],
        facets: Mapping[tuple[float, ...], Sequence[int]],
        points: Sequence[Found],
    ) -> tuple[list[tuple[float, ...]], float]:
        """Return the facet that a vector may lie farthest below, if that is too far, and how far.

        Distances are shares of what is enough.
        """
        far = 0.0
        chosen: list[tuple[float, ...]] = []
        for each in weights:
            slope = np.array(each) / self._spread
            facet = min(float(slope @ points[k].values) for k in facets[each])
            distance = (facet - self._below(slope)) / float(slope @ self._enough)
            if distance > far:
                far, chosen = distance, [each]
        return (chosen if far > 1 else []), far

    def _below(self, slope: np.ndarray) -> float:
        """Return the least weighted sum that the planes leave."""
        from scipy.optimize import linprog

        if not self._slopes:
            return float(slope @ self._low)
        planes = -np.array(self._slopes) * self._spread
        room = -(np.array(self._least) - np.array(self._slopes) @ self._low)
        answer = linprog(slope * self._spread, A_ub=planes, b_ub=room, bounds=(0, None))
        return float(slope @ self._low) + (float(answer.fun) if answer.status == 0 else 0.0)


def _ask(
    found: ExtremePoints, least: Callable[[np.ndarray], Found | None], weights: np.ndarray
) -> Found | None:
    point = least(weights)
    if point is not None:
        found.asked += 1
    return point


def _add(found: ExtremePoints, point: Found) -> bool:
    """Add a point that is not there yet."""
    values = np.array(point.values)
    for other in found.points:
        if (np.abs(values - other.values) <= 1e-9 * (1 + np.abs(values))).all():
            return False
    found.points.append(point)
    return True


def _facets(values: np.ndarray) -> dict[tuple[float, ...], list[int]]:
    """Return the facets of all that is no better than points: the points of each by its weights."""
    from scipy.spatial import ConvexHull

    count, size = values.shape
    if size == 1:
        return {(1.0,): [int(values.argmin())]}
    worse = [values + _FAR * unit for unit in np.eye(size)]
    hull = ConvexHull(np.concatenate([values, *worse]))
    facets: dict[tuple[float, ...], set[int]] = {}
    for equation, corners in zip(hull.equations, hull.simplices, strict=True):
        weights = np.round(-equation[:-1] / np.abs(equation[:-1]).sum(), _DECIMALS) + 0.0
        if (weights >= 0).all():
            own = {int(k) % count for k in corners}  # a worse point stands for its origin
            facets.setdefault(tuple(weights.tolist()), set()).update(own)
    return {weights: sorted(own) for weights, own in facets.items()}
