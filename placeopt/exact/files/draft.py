"""A linear model while a file of it is read, and the same as a Pyomo model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from placeopt.core.errors import DocumentError, did_you_mean

#: LP and MPS files write limits of this size for none.
_NO_LIMIT = 1e20
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)", re.I)


def number(text: str, line: int) -> float:
    """Return a number of an LP or MPS file, infinite where it is as large as that.

    Raises
    ------
    DocumentError
        It is none.
    """
    if not _NUMBER.fullmatch(text):
        raise DocumentError(f"{text!r} is no number, in line {line}")
    value = float(text)
    return value if abs(value) < _NO_LIMIT else math.copysign(math.inf, value)


def finite(text: str, line: int) -> float:
    """Return a number that must be finite."""
    value = number(text, line)
    if math.isinf(value):
        raise DocumentError(f"{text!r} is not finite, in line {line}")
    return value


@dataclass
class Column:
    """A variable.

    Attributes
    ----------
    lower, upper : float or None
        None where the file says nothing.
    may_be_zero : bool
        It is 0 or within the limits: semicontinuous.
    """

    lower: float | None = None
    upper: float | None = None
    is_whole: bool = False
    is_binary: bool = False
    may_be_zero: bool = False

    def limit(self, line: int, lower: float | None = None, upper: float | None = None) -> None:
        """Set limits; a second one that differs is refused: readers disagree on which counts."""
        if lower == math.inf or upper == -math.inf:
            raise DocumentError(f"a bound leaves no number, in line {line}")
        for side, value in (("lower", lower), ("upper", upper)):
            if value is None:
                continue
            old = getattr(self, side)
            if old not in (None, value):
                raise DocumentError(
                    f"a second {side} bound, {value:g} beside {old:g}, in line {line}",
                    remedy="keep one of the two",
                )
            setattr(self, side, value)

    def with_defaults(self, name: str) -> None:
        """Set what an LP or MPS file leaves out."""
        if self.lower is None and self.upper is not None and self.upper < 0:
            raise DocumentError(
                f"variable {name!r} has the upper bound {self.upper:g} and no lower one, which is "
                "0 for some readers and -infinity for others",
                remedy="write it down",
            )
        self.lower = 0.0 if self.lower is None else self.lower
        self.upper = math.inf if self.upper is None else self.upper

    def ends(self) -> tuple[float, float]:
        """Return the limits, whole where the variable is."""
        lower = -math.inf if self.lower is None else self.lower
        upper = math.inf if self.upper is None else self.upper
        if self.is_binary:
            lower, upper = max(0.0, lower), min(1.0, upper)
        if self.is_whole or self.is_binary:
            lower = math.ceil(lower) if math.isfinite(lower) else lower
            upper = math.floor(upper) if math.isfinite(upper) else upper
        return lower, upper


@dataclass
class Row:
    """A linear function of columns, by their names, and its limits."""

    terms: dict[str, float] = field(default_factory=dict)
    lower: float = -math.inf
    upper: float = math.inf
    constant: float = 0.0

    @property
    def is_free(self) -> bool:
        """Whether it limits nothing."""
        return self.lower == -math.inf and self.upper == math.inf


class Draft:
    """A linear model as a file has it.

    Attributes
    ----------
    columns, rows : dict
        By name.
    goals : dict
        Sense, ``min`` or ``max``, and function by name; names of rows are another name space.
    sense : str
        Of rows that become goals, unless told otherwise.
    sets : dict
        Special ordered sets: their type, and weights of columns.
    """

    def __init__(self, name: str):
        self.name, self.sense = name, "min"
        self.columns: dict[str, Column] = {}
        self.rows: dict[str, Row] = {}
        self._numbered: set[str] = set()
        self.goals: dict[str, tuple[str, Row]] = {}
        self.sets: dict[str, tuple[int, dict[str, float]]] = {}

    def column(self, name: str) -> Column:
        """Return a column, a new one where there is none of this name."""
        return self.columns.setdefault(name, Column())

    def add_row(self, name: str, row: Row, line: int | None = None) -> None:
        """Add a row; one without a name is called c1, c2, ..., as far as others are not."""
        if name in self._numbered:  # the row that has it so far gets another number
            self._numbered.discard(name)
            self.rows[name], row, name = row, self.rows[name], ""
        if not name:
            name = next(n for k in count(len(self.rows) + 1) if (n := f"c{k}") not in self.rows)
            self._numbered.add(name)
        elif name in self.rows:
            where = "" if line is None else f", in line {line}"
            raise DocumentError(f"two rows are called {name!r}{where}", remedy="rename one of them")
        self.rows[name] = row

    def add_goal(self, name: str, sense: str, row: Row) -> None:
        """Add a goal."""
        if name in self.goals:
            raise DocumentError(f"two goals are called {name!r}", remedy="rename one of them")
        self.goals[name] = sense, row

    def drop_empty_goal(self, name: str) -> None:
        """Take an objective of nothing away if there are other goals: it stands for none."""
        if len(self.goals) > 1 and not self.goals[name][1].terms:
            del self.goals[name]

    def model(self, wanted: Sequence[str] | None) -> Any:
        """Return a Pyomo model: ``model.x[name]``, ``model.row[name]`` and ``model.goal[name]``.

        Parameters
        ----------
        wanted : sequence of str, optional
            Goals as the file names them, or rows; ``min:`` or ``max:`` before the name sets the
            sense. By default all goals.

        Raises
        ------
        DocumentError
            The file has no such goal, or none at all.
        """
        import pyomo.environ as pyo

        if not self.columns:
            raise DocumentError("the file has no variables", remedy="give one with a model in it")
        goals = dict(map(self._goal, wanted)) if wanted else self.goals
        if not goals:
            raise DocumentError(
                "the file has no objective", remedy="name rows as goals, as in --goal min:cost"
            )
        model = pyo.ConcreteModel(name=self.name)
        domains = {name: _domain(column) for name, column in self.columns.items()}
        model.x = pyo.Var(
            list(self.columns),
            domain=lambda m, name: domains[name][0],
            bounds=lambda m, name: domains[name][1],
        )
        limited = {name: row for name, row in self.rows.items() if not row.is_free}
        model.row = pyo.Constraint(
            list(limited), rule=lambda m, name: _constraint(limited[name], m.x)
        )
        model.goal = pyo.Objective(
            list(goals),
            rule=lambda m, name: _linear(goals[name][1], m.x),
            sense=lambda m, name: pyo.maximize if goals[name][0] == "max" else pyo.minimize,
        )
        for name, sos in self._sets(model.x):
            model.add_component(name, sos)
        return model

    def _sets(self, x: Any) -> Iterator[tuple[str, Any]]:
        import pyomo.environ as pyo

        for kind in {kind for kind, _ in self.sets.values()}:
            own = {name: weights for name, (k, weights) in self.sets.items() if k == kind}

            def members(m: Any, name: str, own: Any = own) -> tuple[list[Any], list[float]]:
                return [x[one] for one in own[name]], list(own[name].values())

            yield f"ordered{kind}", pyo.SOSConstraint(list(own), rule=members, sos=kind)

    def _goal(self, text: str) -> tuple[str, tuple[str, Row]]:
        known = {**{name: (self.sense, row) for name, row in self.rows.items()}, **self.goals}
        sense, _, name = text.partition(":")
        if text in known or sense not in ("min", "max"):
            sense, name = "", text
        if name not in known:
            legal = [*self.goals, *(one for one in self.rows if one not in self.goals)]
            shown = did_you_mean(name, legal[:20]) + (", ..." if len(legal) > 20 else "")
            raise DocumentError(f"the file has no goal or row {name!r}", remedy=shown)
        own, row = known[name]
        return name, (sense or own, row)


def _domain(column: Column) -> tuple[Any, tuple[float | None, float | None]]:
    """Return the domain and the bounds of a variable."""
    import pyomo.environ as pyo
    from pyomo.core.base.range import NumericRange

    lower, upper = column.ends()
    is_whole = column.is_whole or column.is_binary
    if not column.may_be_zero or lower <= 0 <= upper:
        return pyo.Integers if is_whole else pyo.Reals, (_open(lower), _open(upper))
    parts = [NumericRange(0, 0, 0)]
    if lower <= upper:
        ends = (_open(lower), _open(upper))
        parts.append(NumericRange(*ends, (1 if lower < upper else 0) if is_whole else 0))
    return pyo.RangeSet(ranges=parts), (_open(min(0.0, lower)), _open(max(0.0, upper)))


def _open(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None


def _linear(row: Row, x: Mapping[str, Any]) -> Any:
    from pyomo.core.expr.numeric_expr import LinearExpression

    if not row.terms:
        return row.constant
    return LinearExpression(
        constant=row.constant,
        linear_coefs=list(row.terms.values()),
        linear_vars=[x[name] for name in row.terms],
    )


def _constraint(row: Row, x: Mapping[str, Any]) -> Any:
    import pyomo.environ as pyo

    is_constant = not any(row.terms.values())
    if row.lower > row.upper or (is_constant and not row.lower <= row.constant <= row.upper):
        return pyo.Constraint.Infeasible
    if is_constant:
        return pyo.Constraint.Feasible
    body = _linear(row, x)
    if row.lower == row.upper:
        return body == row.lower
    return (_open(row.lower), body, _open(row.upper))
