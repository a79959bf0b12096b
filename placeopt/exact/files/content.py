"""What a file of a linear model says, and the same as a Pyomo model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from placeopt.core.errors import DocumentError, did_you_mean


@dataclass(frozen=True)
class Column:
    """A variable.

    Attributes
    ----------
    kind : str
        ``real`` or ``whole``; ``semi-real`` and ``semi-whole`` may be 0 too.
    """

    name: str
    lower: float = 0.0
    upper: float = math.inf
    kind: str = "real"


@dataclass(frozen=True)
class Row:
    """A linear function of columns, by their indices, and its limits."""

    name: str
    terms: Mapping[int, float]
    lower: float = -math.inf
    upper: float = math.inf
    constant: float = 0.0

    @property
    def is_free(self) -> bool:
        """Whether it limits nothing."""
        return self.lower == -math.inf and self.upper == math.inf


@dataclass(frozen=True)
class OrderedSet:
    """At most one column of a set of type 1 is not zero; of type 2 at most two neighbours."""

    name: str
    kind: int
    columns: Sequence[int]
    weights: Sequence[float]


@dataclass(frozen=True)
class Content:
    """A linear model as a file has it.

    Attributes
    ----------
    goals : tuple of (str, Row)
        ``min`` or ``max``, and what.
    sense : str
        Of rows that become goals, unless told otherwise.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    goals: tuple[tuple[str, Row], ...]
    sense: str = "min"
    sets: Sequence[OrderedSet] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        for what, names in (
            ("variables", [column.name for column in self.columns]),
            ("rows", [row.name for row in self.rows]),
            ("goals", [row.name for _, row in self.goals]),
        ):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise DocumentError(f"two {what} are called {twice!r}", remedy="rename one of them")

    def with_goals(self, wanted: Sequence[str] | None) -> Content:
        """Return the content with the goals that are wanted, by default all.

        A goal is named as the file names it, or is a row; ``min:`` or ``max:`` before the name
        sets its sense.

        Raises
        ------
        DocumentError
            The file has no such goal, or none at all.
        """
        if not wanted:
            if not self.goals:
                raise DocumentError(
                    "the file has no objective", remedy="name rows as goals, as in --goal min:cost"
                )
            return self
        return replace(self, goals=tuple(self._goal(text) for text in wanted))

    def _goal(self, text: str) -> tuple[str, Row]:
        existing = {row.name: (sense, row) for sense, row in self.goals}
        rows = {row.name: (self.sense, row) for row in self.rows}
        sense, _, name = text.partition(":")
        if text in existing or text in rows or sense not in ("min", "max"):
            sense, name = "", text
        if name not in existing and name not in rows:
            legal = [*existing, *(n for n in rows if n not in existing)]
            shown = did_you_mean(name, legal[:20]) + (", ..." if len(legal) > 20 else "")
            raise DocumentError(f"the file has no goal or row {name!r}", remedy=shown)
        own, row = existing.get(name) or rows[name]
        return sense or own, row

    def model(self) -> Any:
        """Return a Pyomo model: ``model.x[name]``, ``model.row[name]`` and ``model.goal[name]``."""
        import pyomo.environ as pyo

        model = pyo.ConcreteModel(name=self.name)
        columns = {column.name: column for column in self.columns}
        model.x = pyo.Var(
            list(columns),
            domain=lambda m, name: _domain(columns[name]),
            bounds=lambda m, name: _bounds(columns[name]),
        )
        each = [model.x[name] for name in columns]
        limited = {row.name: row for row in self.rows if not row.is_free}
        model.row = pyo.Constraint(
            list(limited), rule=lambda m, name: _constraint(limited[name], each)
        )
        goals = {row.name: (sense, row) for sense, row in self.goals}
        model.goal = pyo.Objective(
            list(goals),
            rule=lambda m, name: _linear(goals[name][1], each),
            sense=lambda m, name: pyo.maximize if goals[name][0] == "max" else pyo.minimize,
        )
        for kind in {one.kind for one in self.sets}:
            sets = {one.name: one for one in self.sets if one.kind == kind}
            rule = partial(_members, sets, each)
            ordered = pyo.SOSConstraint(list(sets), rule=rule, sos=kind)
            model.add_component(f"ordered{kind}", ordered)
        return model


def _members(
    sets: Mapping[str, OrderedSet], columns: Sequence[Any], _: Any, name: str
) -> tuple[list[Any], list[float]]:
    return [columns[k] for k in sets[name].columns], list(sets[name].weights)


def _domain(column: Column) -> Any:
    import pyomo.environ as pyo
    from pyomo.core.base.range import NumericRange

    if column.kind in ("real", "whole"):
        return pyo.Integers if column.kind == "whole" else pyo.Reals
    step = 1 if column.kind == "semi-whole" else 0
    ends = NumericRange(column.lower, column.upper, step)
    return pyo.RangeSet(ranges=(NumericRange(0, 0, 0), ends))


def _bounds(column: Column) -> tuple[float | None, float | None]:
    lower, upper = column.lower, column.upper
    if column.kind.startswith("semi-"):
        lower, upper = min(0.0, lower), max(0.0, upper)
    return _open(lower), _open(upper)


def _open(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None


def _linear(row: Row, columns: Sequence[Any]) -> Any:
    from pyomo.core.expr.numeric_expr import LinearExpression

    if not row.terms:
        return row.constant
    return LinearExpression(
        constant=row.constant,
        linear_coefs=list(row.terms.values()),
        linear_vars=[columns[k] for k in row.terms],
    )


def _constraint(row: Row, columns: Sequence[Any]) -> Any:
    import pyomo.environ as pyo

    if not row.terms:
        holds = row.lower <= row.constant <= row.upper
        return pyo.Constraint.Feasible if holds else pyo.Constraint.Infeasible
    body = _linear(row, columns)
    if row.lower == row.upper:
        return body == row.lower
    return (_open(row.lower), body, _open(row.upper))
