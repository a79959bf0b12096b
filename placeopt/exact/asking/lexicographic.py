"""One point by priorities and weights: lexicographic, hierarchical, or a weighted sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Unpack

import pyomo.environ as pyo

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, names_of
from placeopt.exact.asking.desk import Desk, How, answered
from placeopt.exact.goals import Goal, goals_of

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
        least = desk.least(objective, limits, None if last is None else last.payload)
        if least.found is None:
            return
        last = least.found
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
            _require(name, names, "order")
            if not _is_positive(weight):
                raise UsageError(f"the weight of {name!r} is {weight!r}; give a positive number")
        levels.append([(name, float(weight)) for name, weight in weights.items()])
    named = [name for level in levels for name, _ in level]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise UsageError(f"order names goal {twice!r} twice; keep one of the two")
    return [*levels, *([(name, 1.0)] for name in names if name not in named)]


def _shares(tolerance: float | Mapping[str, float], names: list[str]) -> dict[str, float]:
    shares = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(names, tolerance)
    for name, share in shares.items():
        _require(name, names, "tolerance")
        if share != 0 and not _is_positive(share):
            raise UsageError(f"tolerance of {name!r} is {share!r}; give a number of at least 0")
    return {name: float(share) for name, share in shares.items()}


def _require(name: object, names: list[str], what: str) -> None:
    if name not in names:
        raise UsageError(f"{what} names no goal: {name!r}; {did_you_mean(str(name), names)}")


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf  # type: ignore[operator]
