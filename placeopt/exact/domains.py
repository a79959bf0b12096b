"""Domains that are neither an interval nor whole numbers, and special ordered sets, as rows.

A domain may be any union of numbers, steps and intervals: ``{2, 5, 7}``, ``0, 2, 4, ...``, or 0 and
2 to 5. Binary variables choose the part that a variable lies in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.exact.program import Growth, Program

#: Two numbers of a domain that differ by less, relatively, are one.
_SAME = 1e-9


@dataclass(frozen=True)
class Part:
    """``anchor + step * k`` from `first` to `last`; with step 0 all that lies between."""

    first: float
    last: float
    step: float = 0.0
    anchor: float = 0.0

    def steps_to(self, number: float) -> float:
        """How many steps lead from the anchor to a number, which may be infinite."""
        return round((number - self.anchor) / self.step) if math.isfinite(number) else number

    def nearest_to_zero(self) -> float:
        """Return the number of this part that is nearest to zero."""
        nearest = min(max(0.0, self.first), self.last)
        return self.anchor + self.step * self.steps_to(nearest) if self.step else nearest

    @property
    def is_finite(self) -> bool:
        """Whether both ends are."""
        return math.isfinite(self.first) and math.isfinite(self.last)


@dataclass(frozen=True)
class Definition:
    """A column as ``constant + sum of coefficient * column`` of whole columns."""

    column: int
    constant: float
    terms: dict[int, float]


def is_plain(variable: Any) -> bool:
    """Whether a variable takes all numbers, or all whole numbers, between its bounds."""
    if variable.is_continuous():
        return True
    first, last, step = variable.domain.get_interval()
    ends = [end for end in (first, last) if end is not None]
    return bool(step == 1 and all(float(end).is_integer() for end in ends))


def encode(growth: Growth, column: int, variable: Any) -> Definition | None:
    """Add rows that keep a column within the domain of its variable.

    Returns
    -------
    Definition or None
        What the column is made of, where that is whole columns alone.

    Raises
    ------
    UnsupportedError
        The domain has something else than numbers, or parts without end.
    InfeasibleInstanceError
        No number of the domain lies within the variable's bounds.
    """
    parts = _parts(variable)
    if len(parts) == 1:
        return _encode_one(growth, column, parts[0])
    if not all(part.is_finite for part in parts):
        raise UnsupportedError(
            f"variable {variable.name} has the domain {variable.domain}, which has several parts "
            "and no end; give the variable bounds"
        )
    chosen: list[int] = []
    terms: dict[int, float] = {}
    for part in parts:
        chosen.append(growth.column(0, 1, whole=True))
        terms[chosen[-1]] = part.first
        if part.first < part.last:
            most = (
                round((part.last - part.first) / part.step) if part.step else part.last - part.first
            )
            distance = growth.column(0, most, whole=part.step > 0)
            terms[distance] = part.step or 1.0
            growth.row({distance: 1.0, chosen[-1]: -most}, 0.0)
    growth.row(dict.fromkeys(chosen, 1.0), 1, 1)
    growth.row({column: -1.0, **terms}, 0.0, 0.0)
    whole = all(part.step or part.first == part.last for part in parts)
    return Definition(column, 0.0, terms) if whole else None


def span(variable: Any) -> tuple[float, float]:
    """Return the least and the largest number that a variable can have."""
    if is_plain(variable):
        ends = [(-math.inf, variable.lb), (math.inf, variable.ub)]
        lower, upper = (other if end is None else float(end) for other, end in ends)
        return lower, upper
    parts = _parts(variable)
    return min(part.first for part in parts), max(part.last for part in parts)


def legal_value(variable: Any) -> float:
    """Return the number in the domain and bounds of a variable that is nearest to zero."""
    if is_plain(variable):
        lower, upper = span(variable)
        if not variable.is_continuous():
            lower, upper = np.ceil(lower - _SAME), np.floor(upper + _SAME)
        if lower > upper:
            raise InfeasibleInstanceError([f"no value lies within the bounds of {variable.name}"])
        return float(min(max(0.0, lower), upper))
    return min((part.nearest_to_zero() for part in _parts(variable)), key=abs)


def _encode_one(growth: Growth, column: int, part: Part) -> Definition | None:
    """Keep a column within one part."""
    if not part.step or part.first == part.last:
        growth.row({column: 1.0}, part.last, part.first)
        return None
    steps = growth.column(part.steps_to(part.first), part.steps_to(part.last), whole=True)
    growth.row({column: -1.0, steps: part.step}, -part.anchor, -part.anchor)
    return Definition(column, part.anchor, {steps: part.step})


def _parts(variable: Any) -> list[Part]:
    """Return the parts of a domain within the bounds of the variable, numbers once."""
    parts = []
    try:
        lower = -math.inf if variable.lb is None else float(variable.lb)
        upper = math.inf if variable.ub is None else float(variable.ub)
        first, last, step = variable.domain.get_interval()
        ranges = list(variable.domain.ranges())
        if step and isinstance(first, int | float):
            whole = [(first, math.inf if last is None else last, step)]
        else:
            whole = [(float(r.start), float(r.end), float(r.step)) for r in ranges]
    except (AttributeError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"variable {variable.name} has the domain {variable.domain}, which is no set of "
            "numbers; give it one of numbers, such as pyo.Reals, pyo.Binary or pyo.Set"
        ) from error
    for start, end, step in whole:
        if (part := _clipped(start, end, step, lower, upper)) is not None:
            parts.append(part)
    parts = _once(parts)
    if not parts:
        within = f"its bounds {lower:g} and {upper:g}"
        raise InfeasibleInstanceError(
            [f"no value in the domain {variable.domain} of {variable.name} lies within {within}"]
        )
    return parts


def _clipped(start: float, end: float, step: float, lower: float, upper: float) -> Part | None:
    """Return the part of ``start, start + step, ..., end`` within bounds, None where it is empty.

    `step` may be negative, with `end` below `start`; 0 stands for all numbers between.
    """
    if step == 0 or start == end:
        first, last = max(start, lower), min(end, upper)
        return Part(first, last) if first <= last else None
    low, high = max(min(start, end), lower), min(max(start, end), upper)
    part = Part(low, high, abs(step), start)
    first = (
        start + part.step * math.ceil((low - start) / part.step - _SAME)
        if math.isfinite(low)
        else low
    )
    last = (
        start + part.step * math.floor((high - start) / part.step + _SAME)
        if math.isfinite(high)
        else high
    )
    return replace(part, first=first, last=last) if first <= last else None


def _once(parts: Sequence[Part]) -> list[Part]:
    """Return parts without single numbers that another part has."""
    kept: list[Part] = []
    for part in sorted(parts, key=lambda p: (p.first == p.last, p.first)):
        if part.first < part.last or not any(_has(other, part.first) for other in kept):
            kept.append(part)
    return kept


def _has(part: Part, number: float) -> bool:
    near = _SAME * max(1.0, abs(number))
    if not part.first - near <= number <= part.last + near:
        return False
    off = math.remainder(number - part.anchor, part.step) if part.step else 0.0
    return abs(off) <= near


# -- special ordered sets --------------------------------------------------------------------------


def encode_set(
    growth: Growth, program: Program, ordered_set: Any, column_of: dict[int, int]
) -> None:
    """Add binary variables that keep a special ordered set.

    At most one variable of a set of type 1 is not zero; of type 2 at most two neighbours.

    Parameters
    ----------
    program : Program
        Rows from which bounds follow that the variables do not have themselves.
    ordered_set : pyomo SOSConstraint data
    column_of : dict
        Column by the id of a variable; fixed variables have none.

    Raises
    ------
    UnsupportedError
        A variable of the set has no bounds.
    """
    members = [
        variable for variable, _ in sorted(ordered_set.get_items(), key=lambda item: item[1])
    ]
    places = len(members) - ordered_set.level + 1  # a place covers `level` neighbours
    places = max(1, places)
    chosen = [growth.column(0, 1, whole=True) for _ in range(places)]
    growth.row(dict.fromkeys(chosen, 1.0), 1.0)
    for k, variable in enumerate(members):
        covers = chosen[max(0, k - ordered_set.level + 1) : k + 1]
        if variable.fixed:
            if variable.value:
                growth.row(dict.fromkeys(covers, 1.0), math.inf, 1.0)
            continue
        column = column_of[id(variable)]
        lower, upper = implied_bounds(program, column)
        if not (math.isfinite(lower) and math.isfinite(upper)):
            raise UnsupportedError(
                f"variable {variable.name} of the ordered set {ordered_set.name!r} has no bounds; "
                "give it bounds: the set becomes binary variables"
            )
        growth.row({column: 1.0, **dict.fromkeys(covers, -max(0.0, upper))}, 0.0)
        growth.row({column: 1.0, **dict.fromkeys(covers, -min(0.0, lower))}, math.inf, 0.0)


def implied_bounds(program: Program, column: int) -> tuple[float, float]:
    """Return bounds of a column, from its own and from the rows that it stands in."""
    lower, upper = float(program.col_lower[column]), float(program.col_upper[column])
    if math.isfinite(lower) and math.isfinite(upper):
        return lower, upper
    rows = program.A.tocsr()
    for row in program.A[:, column].indices.tolist():
        own_part = slice(rows.indptr[row], rows.indptr[row + 1])
        others = rows.indices[own_part] != column
        columns, values = rows.indices[own_part][others], rows.data[own_part][others]
        ends = np.where(values > 0, (program.col_lower[columns], program.col_upper[columns]), 0.0)
        ends += np.where(values > 0, 0.0, (program.col_upper[columns], program.col_lower[columns]))
        least, most = (float((values * end).sum()) for end in ends)
        own = float(rows.data[own_part][~others][0])
        limits = [(program.row_lower[row] - most) / own, (program.row_upper[row] - least) / own]
        low, high = limits if own > 0 else limits[::-1]
        lower, upper = max(lower, low), min(upper, high)
    return lower, upper
