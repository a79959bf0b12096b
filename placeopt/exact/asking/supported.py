"""Supported points: those that some weighted sum of the goals singles out, or all of these within
a tolerance.

Two goals of whole numbers are searched between neighbours (Y. P. Aneja, K. P. K. Nair,
"Bicriteria transportation problem", Management Science 25, 1979): the least weighted sum strictly
between two supported points, whose weights are those of the line through them, is a supported
point, or shows that there is none. Asked within these limits, points on the line are found as well.
Any other goals have the corners of their convex hull; see `placeopt.exact.extreme`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Unpack

import numpy as np
import pyomo.environ as pyo

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.fronts.front import Front
from placeopt.exact.asking.desk import Desk, How, answered
from placeopt.exact.extreme import corners, extreme_points
from placeopt.exact.memory import Found

#: Of weights that are no whole numbers: the share of a goal's range that no longer counts.
_SHARE = 1e-9


def supported(
    model: pyo.ConcreteModel,
    *,
    tolerance: float | Mapping[str, float] | None = None,
    **how: Unpack[How],
) -> Front:
    """Return the supported points of a front.

    A point is supported if it has the least weighted sum of the goals for some positive weights.
    Of two goals that take whole numbers, or multiples of a number, these are all supported points.
    Else they are the extreme ones, the corners of the front's convex hull: all points of a linear
    program's front lie between them.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
    tolerance : float or mapping of goal to number, optional
        Stop when no solution is better than the hull of the points by more: a share of each goal's
        range, or a number for each goal in its own unit (a sandwich algorithm). The points are then
        some of the extreme ones, and ``runs[0].parameters["reached"]`` is the share of the
        tolerance that is left, at most 1.
    **how
        See `placeopt.ask.How`.

    Returns
    -------
    Front
        All points are proven efficient.

    Raises
    ------
    UsageError
        No goals, a tolerance that is not positive, or none for a quadratic goal; an unbounded
        goal.
    UnsupportedError
        A constraint is not linear, or a goal neither that nor convex and quadratic.

    Examples
    --------
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var([0, 1, 2], domain=pyo.Binary)
    >>> model.one = pyo.Constraint(expr=sum(model.x.values()) == 1)
    >>> model.f = pyo.Objective(expr=9 * model.x[0] + 6 * model.x[1] + 1 * model.x[2])
    >>> model.g = pyo.Objective(expr=1 * model.x[0] + 6 * model.x[1] + 9 * model.x[2])
    >>> [point.values for point in supported(model)]
    [(1.0, 9.0), (9.0, 1.0)]
    """

    def answer(desk: Desk) -> str:
        if tolerance is None and desk.count == 2 and desk.precision.whole.all():
            _all_of_two(desk)
            return "every supported point is found and proven"
        if tolerance is None and (curved := desk.curved):
            raise UsageError(
                f"goal {curved[0]!r} is quadratic, so that every point may be an extreme one; give "
                "a tolerance, such as tolerance=0.01 of all ranges"
            )
        enough = None if tolerance is None else _enough(tolerance, desk)
        _extreme(desk, enough)
        if enough is None:
            return "every extreme point is found and proven"
        return "no solution is better than the hull of the points by more than the tolerance"

    return answered(model, "supported", {"tolerance": tolerance}, how, answer)


# -- two goals of whole numbers --------------------------------------------------------------------


def _all_of_two(desk: Desk) -> None:
    """Find all supported points of two goals that take whole numbers of units."""
    ends = [_best(desk, first) for first in (0, 1)]
    if ends[0] is None or ends[1] is None:
        return
    desk.keep(ends[0])
    if ends[0].values == ends[1].values:
        return
    desk.keep(ends[1])
    open_ = [(ends[0], ends[1])]
    while open_:
        left, right = open_.pop()
        between = _between(desk, left, right)
        if between is not None:
            desk.keep(between)
            open_ += [(between, right), (left, between)]


def _best(desk: Desk, first: int) -> Found | None:
    """Return the point that is best in one goal, and of these in the other."""
    limits = desk.free.copy()
    best = desk.least(first, limits).found
    if best is None:
        return None
    limits[first] = best.values[first]
    return desk.least(1 - first, limits, best.payload).found or best


def _between(desk: Desk, left: Found, right: Found) -> Found | None:
    """Return a supported point strictly between two, None where there is none."""
    across, down = right.values[0] - left.values[0], left.values[1] - right.values[1]
    if across < 2 or down < 2:
        return None
    shared = math.gcd(int(across), int(down))
    weights = (int(down) // shared, int(across) // shared)
    limits = desk.free.copy()
    limits[:2] = right.values[0] - 1, left.values[1] - 1
    result = desk.least_sum(weights, limits).found
    if result is None or _sum(weights, result) > _sum(weights, left):
        return None
    return result


def _sum(weights: tuple[int, int], found: Found) -> int:
    """Return a weighted sum of whole numbers, exactly however large they are."""
    return weights[0] * int(found.values[0]) + weights[1] * int(found.values[1])


# -- any goals -------------------------------------------------------------------------------------


def _extreme(desk: Desk, enough: np.ndarray | float | None) -> None:
    """Find the extreme points, or enough of them."""
    met: list[Found] = []

    def least(weights: np.ndarray) -> Found | None:
        scaled = weights / weights.max()
        values = np.array([point.values for point in met] or [(0.0,) * desk.count])
        apart = _SHARE * float(scaled @ np.maximum(1.0, np.ptp(values, axis=0)))
        result = desk.least_sum(scaled.tolist(), apart=apart).found
        if result is None:
            return None
        if (weights == 0).any():
            result = desk.efficient(result)
        met.append(Found(result.values[: desk.count], result.payload))
        desk.keep(met[-1])
        return met[-1]

    extreme = extreme_points(least, desk.count, enough)
    if not extreme.complete:
        return
    desk.points.clear()
    values = np.array([point.values for point in extreme.points])
    for point, is_corner in zip(extreme.points, corners(values), strict=True):
        if is_corner:
            desk.keep(point)
    if enough is not None:
        desk.facts["reached"] = extreme.reached


def _enough(tolerance: float | Mapping[str, float], desk: Desk) -> np.ndarray | float:
    """Return the tolerance: a share of all ranges, or units of each goal."""
    names = [goal.name for goal in desk.goals]
    if not isinstance(tolerance, Mapping):
        return _positive(tolerance, "tolerance")
    for name in tolerance:
        if name not in names:
            raise UsageError(f"tolerance names no goal: {name!r}; {did_you_mean(name, names)}")
    missing = [name for name in names if name not in tolerance]
    if missing:
        raise UsageError(f"tolerance has no number for goal {missing[0]!r}; give one for each")
    own = [_positive(tolerance[name], f"tolerance[{name!r}]") for name in names]
    return np.array(own) / desk.compiled.units[: desk.count]


def _positive(value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"{what} is {value!r}; give a positive number")
    return float(value)
