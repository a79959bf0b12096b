"""All plans that have one vector of values, up to a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
import pyomo.environ as pyo

from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.values import Point, Run
from placeopt.exact.asking.desk import Desk, How, UnansweredError, answered, numbers
from placeopt.exact.memory import STATUSES, Found
from placeopt.exact.program import Growth

#: A wished value is a multiple of the goal's step if it is this near, in steps.
_NEAR = 1e-6
#: How far real values may be from wished ones, in units, where nearer ones could be told apart.
_ROOM = 1e-9


@dataclass(frozen=True)
class Plans:
    """Plans of one vector of values.

    Attributes
    ----------
    points : tuple of Point
        In the order in which they were found.
    run : Run
        Its ``parameters`` have ``status`` and ``reason``.
    """

    points: tuple[Point, ...]
    run: Run

    @property
    def complete(self) -> bool:
        """Whether these are all plans of the vector."""
        return self.run.completed

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __getitem__(self, which: int) -> Point:
        return self.points[which]


def plans(
    model: pyo.ConcreteModel,
    values: Point | Mapping[str, float] | Sequence[float],
    *,
    most: int = 100,
    **how: Unpack[How],
) -> Plans:
    """Return all plans that have one vector of values, up to a number.

    Two plans differ if a variable of whole numbers has another value: plans that differ in real
    variables alone count once.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
    values : Point, mapping of goal to number, or sequence in the order of the goals
        The vector, such as a point of `placeopt.enumerate`; efficient or not.
    most : int
        Stop at so many plans.
    **how
        See `placeopt.ask.How`.

    Returns
    -------
    Plans
        ``complete`` where there are no more. No plans, and the status ``infeasible``, where no
        solution has these values.

    Raises
    ------
    UsageError
        No goals, unknown names, values that are no numbers.
    UnsupportedError
        A goal or a constraint is not linear; a variable of whole numbers has no bounds.

    Examples
    --------
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var([0, 1, 2], domain=pyo.Binary)
    >>> model.count = pyo.Objective(expr=sum(model.x.values()))
    >>> sorted(list(point.plan) for point in plans(model, [2]))
    [['x[0]', 'x[1]'], ['x[0]', 'x[2]'], ['x[1]', 'x[2]']]
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise UsageError(f"most is {most!r}; give a whole number of at least 1")
    wished = values.values if isinstance(values, Point) else values
    results: list[Point] = []

    def answer(desk: Desk) -> str:
        if curved := desk.curved:
            raise UnsupportedError(
                f"goal {curved[0]!r} is quadratic: plans of one vector are listed of linear goals"
            )
        search = _Search(desk, numbers("values", wished, [goal.name for goal in desk.goals]))
        while len(results) < most:
            point = search.next()
            if point is None:
                return "these are all plans of the vector" if results else STATUSES["infeasible"]
            results.append(point)
            desk.points = results
        desk.facts["limited"] = True
        return "the largest number of plans was reached"

    front = answered(model, "plans", {"values": wished, "most": most}, how, answer)
    run = front.runs[0]
    if run.parameters.pop("limited", False):
        facts = {**run.parameters, "status": "solution-limit"}
        run = replace(run, completed=False, parameters=facts)
    return Plans(tuple(replace(point, method="plans") for point in results), run)


class _Search:
    """Solutions of one vector, one after the other."""

    def __init__(self, desk: Desk, values: Sequence[float]):
        self.desk, compiled = desk, desk.compiled
        signs = np.array([goal.sign for goal in desk.goals])
        units = (np.array(values) * signs - desk.search.constants) / compiled.units
        whole = desk.precision.whole
        self._is_possible = bool((np.abs(units - np.round(units)) <= _NEAR)[whole].all())
        self.units = np.where(whole, np.round(units), units)
        room = desk.precision.accepted * desk.precision.of(self.units)
        self.room = np.where(whole, 0.5, np.maximum(room, _ROOM))
        self.seen: set[frozenset[tuple[str, Any]]] = set()
        inner = np.where(whole, self.room, self.room / 2)  # real columns are moved to the ends
        compiled.add_rows(
            ({k: float(cost[k]) for k in np.flatnonzero(cost).tolist()}, value + room, value - room)
            for cost, value, room in zip(compiled.costs, self.units, inner, strict=True)
        )

    def next(self) -> Point | None:
        """Return a plan that was not there yet, None where there is none."""
        desk, compiled = self.desk, self.desk.compiled
        limits = np.where(desk.precision.whole, self.units, self.units + self.room)
        while self._is_possible:
            found = desk.least_sum([0.0] * desk.count, limits)  # any solution
            if found is None:
                return None
            if (np.abs(np.array(found.values) - self.units) > self.room).any():
                raise UnansweredError
            point = desk.point(Found(tuple(self.units.tolist()), found.payload), "heuristic")
            decides = np.flatnonzero(compiled.integrality[: compiled.own_columns]).tolist()
            self._is_possible = bool(decides)  # else it is the only one
            compiled.grow(partial(self._exclude, found.payload.x, decides))
            key = frozenset(point.plan.items())
            if key not in self.seen:
                self.seen.add(key)
                return point
        return None

    def _exclude(self, x: np.ndarray, decides: Sequence[int], growth: Growth) -> None:
        """Add rows that a solution breaks, and all with other whole numbers keep."""
        program, terms, least = self.desk.compiled.program, dict[int, float](), 1.0
        for k in decides:
            value, low, high = float(x[k]), float(program.col_lower[k]), float(program.col_upper[k])
            if low == high:
                continue
            if value == low:
                terms[k], least = 1.0, least + low
            elif value == high:
                terms[k], least = -1.0, least - high
            else:
                if not (math.isfinite(low) and math.isfinite(high)):
                    raise UnsupportedError(
                        f"variable {self._name(k)} has no bounds, which it needs so that a plan "
                        "can be excluded; give it bounds"
                    )
                below, above = (growth.column(0, 1, whole=True) for _ in range(2))
                growth.row({k: 1.0, below: high - value + 1}, high)
                growth.row({k: 1.0, above: -(value + 1 - low)}, math.inf, low)
                terms[below] = terms[above] = 1.0
        growth.row(terms, math.inf, least)

    def _name(self, column: int) -> str:
        names = self.desk.search.names
        return repr(names[column]) if column < len(names) else "of a domain"
