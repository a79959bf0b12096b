"""All plans that have one vector of values, up to a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pyomo.environ as pyo

from placeopt.core.errors import SolverError, UnsupportedError, UsageError
from placeopt.core.fronts.values import Point, Run
from placeopt.exact.asking.desk import Desk, How, UnansweredError, answered, numbers
from placeopt.exact.extreme import least_vertex
from placeopt.exact.memory import STATUSES, Found
from placeopt.exact.oracles import Solution
from placeopt.exact.program import Growth, Program
from placeopt.exact.solvers import solve

#: A wished value is a multiple of the goal's step if it is this near, in steps.
_NEAR = 1e-6
#: A solver's tolerance where its usual one hides differences.
_SMALL_TOLERANCE = 1e-9


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
        self.room = np.where(whole, 0.5, np.maximum(room, _SMALL_TOLERANCE))
        self.excluded: list[np.ndarray] = []
        self.seen: set[frozenset[tuple[str, Any]]] = set()

    def next(self) -> Point | None:
        """Return a plan that was not there yet, None where there is none."""
        while self._is_possible:
            x = self._solution()
            if x is None:
                return None
            point = self._point(x)
            if point is None:
                continue
            self.excluded.append(x)
            self._is_possible = bool(self._decisions.any())  # else it is the only one
            key = frozenset(point.plan.items())
            if key not in self.seen:
                self.seen.add(key)
                return point
        return None

    @property
    def _decisions(self) -> np.ndarray:
        """Which columns make a plan another one."""
        decides = self.desk.compiled.integrality.copy()
        decides[self.desk.compiled.own_columns :] = False
        return decides

    def _solution(self) -> np.ndarray | None:
        """Return a solution that is not excluded, None where there is none."""
        desk, program = self.desk, self._program()
        for tolerance in (None, _SMALL_TOLERANCE):
            desk.count_call()
            try:
                outcome = solve(
                    program,
                    desk.solver,
                    budget=desk.budget,
                    options=desk.oracle.options,
                    tolerance=tolerance,
                )
            except SolverError as error:
                raise UnansweredError from error
            if outcome.status == "infeasible":
                return None
            if outcome.x is None:
                raise UnansweredError
            x = self._polished(program, outcome.x)[: desk.compiled.program.shape[1]]
            apart = np.abs(np.array(desk.compiled.values(x)) - self.units)
            if desk.compiled.keeps_rows(x) and (apart <= self.room).all():
                return x
        raise UnansweredError

    def _polished(self, program: Program, x: np.ndarray) -> np.ndarray:
        """Return a solution with its real columns at a vertex."""
        if not self.desk.compiled.has_real_columns:
            return x
        whole = program.integrality
        fixed = replace(
            program,
            col_lower=np.where(whole, x, program.col_lower),
            col_upper=np.where(whole, x, program.col_upper),
            integrality=np.zeros(len(x), dtype=bool),
        )
        vertex = least_vertex(fixed, [], self.desk.budget)
        return x if vertex is None else vertex

    def _point(self, x: np.ndarray) -> Point | None:
        """Return a solution as a point; None where it is no plan, and rows were added."""
        desk = self.desk
        if desk.oracle.is_cut_off(x):
            return None
        return desk.point(Found(tuple(self.units.tolist()), Solution.of(x)), "heuristic")

    def _program(self) -> Program:
        """Return the program of all solutions of the vector that are not excluded."""
        compiled = self.desk.compiled
        limits = np.where(self.desk.precision.whole, self.units, self.units + self.room)
        program = compiled.within(0, limits.tolist())
        growth = Growth(replace(program, c=np.zeros(program.shape[1]), offset=0.0))
        for cost, value, room in zip(compiled.costs, self.units, self.room, strict=True):
            columns = np.flatnonzero(cost).tolist()
            growth.row({k: float(cost[k]) for k in columns}, value + room, value - room)
        for x in self.excluded:
            self._exclude(growth, program, x)
        return growth.program()

    def _exclude(self, growth: Growth, program: Program, x: np.ndarray) -> None:
        """Add rows that a solution breaks, and all with other whole numbers keep."""
        terms: dict[int, float] = {}
        least = 1.0
        for k in np.flatnonzero(self._decisions).tolist():
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
