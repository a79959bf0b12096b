"""Points of a front by priorities, by weights, nearest to a wish, and the supported ones.

The nearest point: the largest weighted deviation is made as small as can be, and then the sum of
the weighted deviations within it (R. Steuer, E.-U. Choo, "An interactive weighted Tchebycheff
procedure", Mathematical Programming 26, 1983): so the point is efficient, also where the reference
point is attainable, and without the usual small factor of an augmentation.

Supported points are those that some weighted sum of the goals singles out. Two goals of whole
numbers are searched between neighbours (Y. P. Aneja, K. P. K. Nair, "Bicriteria transportation
problem", Management Science 25, 1979): the least weighted sum strictly between two supported
points, whose weights are those of the line through them, is a supported point, or shows that there
is none. Asked within these limits, points on the line are found as well. Any other goals have the
corners of their convex hull; see `placeopt.exact.extreme`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.core.expr.numvalue import as_numeric

from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, names_of
from placeopt.exact.asking.desk import Desk, How, answered, numbers
from placeopt.exact.extreme import corners, extreme_points
from placeopt.exact.goals import Goal, goals_of, positive, require_goal
from placeopt.exact.memory import Found
from placeopt.exact.model_front import budget_of, check_request

#: One goal, or several with weights that are minimised as one.
Level = str | Mapping[str, float]
#: The same, checked: names and weights.
Weighted = Sequence[tuple[str, float]]


def lexicographic(
    model: pyo.ConcreteModel,
    order: Sequence[Level] | None = None,
    *,
    tolerance: float | Mapping[str, float] = 0.0,
    **how: Unpack[How],
) -> Front:
    """Return the point that is best in the first goal, of these the best in the second, and so on.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
    order : sequence of str or mapping, optional
        Goals, the most important first. A mapping of goals to positive weights counts as one: their
        weighted sum, each goal in its own unit, and the better the smaller or larger as its sense
        has it. So ``[{"cost": 1, "delay": 20}]`` is a weighted sum. Goals that are not named come
        last, in their own order. By default the goals in their own order.
    tolerance : float or mapping of goal to float
        How much worse than its best value a level may become for the sake of those after it, as a
        share of that value; of a level with several goals the mapping's largest.
    **how
        See `placeopt.ask.How`.

    Returns
    -------
    Front
        With one point, which no solution beats; without points where there is no solution, or the
        time was too short for any.

    Raises
    ------
    UsageError
        No goals, unknown names, weights or tolerances that are not positive; an unbounded goal.
    UnsupportedError
        A constraint is not linear, or a goal neither that nor convex and quadratic.
    """
    goals = {goal.name: goal for goal in goals_of(model, how.get("objectives"), None, None)}
    levels, shares = _levels(order, list(goals)), _shares(tolerance, list(goals))
    sums = [_sum(level, goals) for level in levels if len(level) > 1]

    def answer(desk: Desk) -> str:
        _answer(desk, levels, shares)
        return "the point is the best by these priorities, and none beats it"

    parameters = {"order": order, "tolerance": tolerance}
    more = None if not sums else lambda _: sums
    return answered(model, "lexicographic", parameters, how, answer, more)


def _answer(
    desk: Desk, levels: Sequence[Sequence[tuple[str, float]]], shares: Mapping[str, float]
) -> None:
    names = names_of(goal.objective for goal in desk.search.goals)
    limits, last = desk.free.copy(), None
    sums = iter(range(desk.count, len(names)))
    for level in levels:
        objective = next(sums) if len(level) > 1 else names.index(level[0][0])
        last = desk.least(objective, limits, None if last is None else last.payload)
        if last is None:
            return
        share = max(shares.get(name, 0.0) for name, _ in level)
        limits[objective] = _limit(desk, objective, last.values[objective], share)
    assert last is not None
    desk.keep(desk.efficient(last))


def _limit(desk: Desk, objective: int, value: float, share: float) -> float:
    """Return the value in units that a level may have at most."""
    if not share:
        return value
    unit, constant = float(desk.compiled.units[objective]), desk.compiled.constants[objective]
    limit = value + share * abs(value * unit + constant) / unit
    return math.floor(limit + 1e-9) if desk.precision.whole[objective] else limit


def _sum(level: Weighted, goals: Mapping[str, Goal]) -> Goal:
    name = " + ".join(f"{weight:g} {name}" for name, weight in level)
    return Goal(Objective(name, ""), sum(weight * goals[name].minimised for name, weight in level))


# -- what is legal ---------------------------------------------------------------------------------


def _levels(order: Sequence[Level] | None, names: list[str]) -> list[Weighted]:
    """Return the levels as goals and weights, with those that are not named at the end."""
    if isinstance(order, str | Mapping):
        order = [order]
    levels: list[Weighted] = []
    for level in order or ():
        weights = {level: 1.0} if isinstance(level, str) else level
        if not isinstance(weights, Mapping) or not weights:
            raise UsageError(f"order has {level!r}; give names of goals, or goals with weights")
        for name, weight in weights.items():
            require_goal(name, names, "order")
            positive(weight, f"the weight of {name!r}")
        levels.append([(name, float(weight)) for name, weight in weights.items()])
    named = [name for level in levels for name, _ in level]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise UsageError(f"order names goal {twice!r} twice; keep one of the two")
    return [*levels, *([(name, 1.0)] for name in names if name not in named)]


def _shares(tolerance: float | Mapping[str, float], names: list[str]) -> dict[str, float]:
    shares = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(names, tolerance)
    for name, share in shares.items():
        require_goal(name, names, "tolerance")
        if share != 0:
            positive(share, f"tolerance of {name!r}")
    return {name: float(share) for name, share in shares.items()}


def reference_point(
    model: pyo.ConcreteModel,
    point: Mapping[str, float] | Sequence[float],
    *,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    **how: Unpack[How],
) -> Front:
    """Return the efficient point that is nearest to a reference point.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
    point : mapping of goal to number, or sequence in the order of the goals
        The values wished for, attainable or not.
    weights : mapping or sequence, optional
        Positive; a deviation counts by its weight. By default one over the range of the goal, from
        its best value to the worst of the points that are best in one goal: two questions more for
        each goal.
    **how
        See `placeopt.ask.How`.

    Returns
    -------
    Front
        With one point, which no solution beats; ``runs[0].parameters`` has ``distance``, its
        largest weighted deviation, negative where it is better than wished for in everything.

    Raises
    ------
    UsageError
        No goals, unknown names, numbers that are not legal; an unbounded goal.
    UnsupportedError
        A constraint is not linear, or a goal neither that nor convex and quadratic.
    """
    check_request(model, how.get("solver"), how.get("options"))
    goals = goals_of(model, how.get("objectives"), None, None)
    names = [goal.name for goal in goals]
    wished = numbers("point", point, names)
    how = {**how, "budget": how.get("budget") or budget_of(how.get("seconds"))}
    calls = 0
    if weights is not None:
        own = numbers("weights", weights, names)
    else:

        def ends(desk: Desk) -> str:
            for name in names:
                _answer(desk, _levels(name, names), {})
            return "the best point of each goal is found"

        best = answered(model, "lexicographic", {"order": names}, how, ends)
        if not (best.points and best.runs[0].completed):
            return replace(best, points=())
        own, calls = _one_over_ranges(best.values), best.runs[0].solver_calls
    if not all(weight > 0 for weight in own):
        raise UsageError(f"weights are {own}; give positive numbers")
    signed = np.array(wished) * [goal.sign for goal in goals]
    block = pyo.Block()

    def more(_: Sequence[Goal]) -> list[Goal]:
        model.add_component(unique_component_name(model, "reference_point"), block)
        block.distance = pyo.Var()
        block.above = pyo.Var(range(len(goals)))
        block.rows = pyo.ConstraintList()
        curved = []
        for k, (goal, wish, weight) in enumerate(zip(goals, signed.tolist(), own, strict=True)):
            value = goal.minimised
            if as_numeric(value).polynomial_degree() == 2:  # no row: a variable that lies above it
                curved.append(Goal(Objective(f"above {goal.name}", ""), value - block.above[k]))
                value = block.above[k]
            block.rows.add(weight * (value - wish) <= block.distance)
        return [Goal(Objective("distance", ""), block.distance), *curved]

    def answer(desk: Desk) -> str:
        desk.calls += calls
        desk.hidden = {v.name for v in block.component_data_objects(pyo.Var)}
        zeros = -np.array(desk.compiled.constants) / desk.compiled.units
        desk.free[desk.count + 1 :] = zeros[desk.count + 1 :]
        _find_nearest(desk, signed, np.array(own))
        return "no solution is nearer, and none beats the point"

    parameters = {"point": wished, "weights": own}
    try:
        return answered(model, "reference_point", parameters, how, answer, more)
    finally:
        if block.parent_block() is not None:
            model.del_component(block)


def _find_nearest(desk: Desk, wished: np.ndarray, weights: np.ndarray) -> None:
    """Find the nearest point and its distance."""
    near = desk.least(desk.count, desk.free)
    if near is None:
        return
    compiled, count = desk.compiled, desk.count
    units, constants = compiled.units[:count], np.array(compiled.constants[:count])
    reached = near.values[count] * float(compiled.units[count]) + compiled.constants[count]
    limits = desk.free.copy()
    # Where rounding makes the limits a little smaller than what was found, that counts.
    limits[:count] = np.maximum(
        (wished + reached / weights - constants) / units, near.values[:count]
    )
    whole = desk.precision.whole[:count]
    limits[:count] = np.where(whole, np.floor(limits[:count] + 1e-9), limits[:count])
    scaled = weights * units
    best = desk.least_sum((scaled / scaled.max()).tolist(), limits, near.payload)
    desk.keep(best or near)
    values = np.array((best or near).values[:count]) * units + constants
    desk.facts["distance"] = float((weights * (values - wished)).max())


def _one_over_ranges(values: np.ndarray) -> list[float]:
    """Return one over the range of each goal in rows of values; 1 where it has none."""
    ranges = np.ptp(values, axis=0)
    return (1.0 / np.where(ranges > 0, ranges, 1.0)).tolist()


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
    best = desk.least(first, limits)
    if best is None:
        return None
    limits[first] = best.values[first]
    return desk.least(1 - first, limits, best.payload) or best


def _between(desk: Desk, left: Found, right: Found) -> Found | None:
    """Return a supported point strictly between two, None where there is none."""
    across, down = right.values[0] - left.values[0], left.values[1] - right.values[1]
    if across < 2 or down < 2:
        return None
    shared = math.gcd(int(across), int(down))
    weights = (int(down) // shared, int(across) // shared)
    limits = desk.free.copy()
    limits[:2] = right.values[0] - 1, left.values[1] - 1
    result = desk.least_sum(weights, limits)
    if result is None or _weighted(weights, result) > _weighted(weights, left):
        return None
    return result


def _weighted(weights: tuple[int, int], found: Found) -> int:
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
        result = desk.least_sum(scaled.tolist(), apart=apart)
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
        return positive(tolerance, "tolerance")
    for name in tolerance:
        positive(tolerance[name], f"tolerance[{name!r}]")
    own = numbers("tolerance", tolerance, names)
    return np.array(own) / desk.compiled.units[: desk.count]
