"""The point that is nearest to a reference point, by a weighted Tchebycheff distance.

The largest weighted deviation is made as small as can be, and then the sum of the weighted
deviations within it (R. Steuer, E.-U. Choo, "An interactive weighted Tchebycheff procedure",
Mathematical Programming 26, 1983): so the point is efficient, also where the reference point is
attainable, and without the usual small factor of an augmentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.core.expr.numvalue import as_numeric

from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective
from placeopt.exact.asking.desk import Desk, How, answered, numbers
from placeopt.exact.asking.lexicographic import lexicographic
from placeopt.exact.goals import Goal, goals_of
from placeopt.exact.model_front import budget_of, check_request


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
    ends: list[Front] = []
    if weights is not None:
        own = numbers("weights", weights, names)
    else:
        for goal in goals:
            ends.append(lexicographic(model, [goal.name], **how))
            if not ends[-1].points:
                return ends[-1]
        own = _one_over_ranges(np.array([end.points[0].values for end in ends]))
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
        desk.calls += sum(front.runs[0].solver_calls for front in ends)
        desk.hidden = {v.name for v in block.component_data_objects(pyo.Var)}
        zeros = -np.array(desk.compiled.constants) / desk.compiled.units
        desk.free[desk.count + 1 :] = zeros[desk.count + 1 :]
        _answer(desk, signed, np.array(own))
        return "no solution is nearer, and none beats the point"

    parameters = {"point": wished, "weights": own}
    try:
        return answered(model, "reference_point", parameters, how, answer, more)
    finally:
        if block.parent_block() is not None:
            model.del_component(block)


def _answer(desk: Desk, wished: np.ndarray, weights: np.ndarray) -> None:
    """Find the nearest point and its distance."""
    near = desk.least(desk.count, desk.free).found
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
    best = desk.least_sum((scaled / scaled.max()).tolist(), limits, near.payload).found
    desk.keep(best or near)
    values = np.array((best or near).values[:count]) * units + constants
    desk.facts["distance"] = float((weights * (values - wished)).max())


def _one_over_ranges(values: np.ndarray) -> list[float]:
    """Return one over the range of each goal in rows of values; 1 where it has none."""
    ranges = np.ptp(values, axis=0)
    return (1.0 / np.where(ranges > 0, ranges, 1.0)).tolist()
