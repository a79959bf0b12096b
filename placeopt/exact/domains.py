"""What numbers a variable can have: an interval, whole or real, or 0 or an interval; and special
ordered sets, as rows with binary variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.exact.program import Growth, Program

#: A bound that is so near to a whole number is that number.
_SAME = 1e-9


@dataclass(frozen=True)
class Domain:
    """All numbers, or all whole numbers, from `lower` to `upper`, and perhaps 0 beside them."""

    lower: float
    upper: float
    is_whole: bool = False
    or_zero: bool = False

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest number."""
        if self.or_zero:
            return min(0.0, self.lower), max(0.0, self.upper)
        return self.lower, self.upper


def domain_of(variable: Any) -> Domain:
    """Return what numbers a variable can have, within its bounds.

    Raises
    ------
    UnsupportedError
        Its domain is none of these.
    InfeasibleInstanceError
        No number of the domain lies within the bounds.
    """
    low, high, is_real = variable.lb, variable.ub, variable.is_continuous()
    lower = float(low) if isinstance(low, Real) else -math.inf
    upper = float(high) if isinstance(high, Real) else math.inf
    if is_real or _is_integers(*variable.domain.get_interval()):
        return Domain(lower, upper, not is_real)
    first, last, is_whole, or_zero = _interval(variable)
    first, last = max(first, lower), min(last, upper)
    if is_whole:
        first, last = _ceil(first), _floor(last)
    or_zero &= lower <= 0 <= upper and not first <= 0 <= last
    if first > last:
        if not or_zero:
            within = f"its bounds {lower:g} and {upper:g}"
            text = f"no value in the domain {variable.domain} of {variable.name} lies within "
            raise InfeasibleInstanceError([text + within])
        return Domain(0.0, 0.0, is_whole)
    if or_zero and not (math.isfinite(first) and math.isfinite(last)):
        raise UnsupportedError(
            f"variable {variable.name} is 0 or within an interval that has no end; give it bounds"
        )
    return Domain(first, last, is_whole, or_zero)


def _is_integers(first: float | None, last: float | None, step: float | None) -> bool:
    return step == 1 and all(end is None or float(end).is_integer() for end in (first, last))


def _interval(variable: Any) -> tuple[float, float, bool, bool]:
    """Return the ends of a domain's interval, whether it is whole, and whether 0 lies beside it."""
    try:
        ranges = [(float(r.start), float(r.end), r.step) for r in variable.domain.ranges()]
    except (AttributeError, TypeError, ValueError):
        ranges = []
    pieces = sorted(((min(r[:2]), max(r[:2]), r[2]) for r in ranges), key=lambda piece: piece[:2])
    others = [piece for piece in pieces if piece[:2] != (0.0, 0.0)]
    if len(others) == 1:
        (first, last, step) = others[0]
        is_point, is_whole = first == last, abs(step) == 1 and float(others[0][0]).is_integer()
        if step == 0 or is_point or is_whole:
            whole = first.is_integer() if is_point else is_whole
            return first, last, whole, len(others) < len(pieces)
    elif len(pieces) > 0 and all(a == b and a.is_integer() for a, b, _ in pieces):
        numbers = [a for a, _, _ in others] or [0.0]
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return numbers[0], numbers[-1], True, len(others) < len(pieces)
    raise UnsupportedError(
        f"variable {variable.name} has the domain {variable.domain}; placeopt takes intervals of "
        "real or of whole numbers, and 0 beside one of these: write any other choice of numbers "
        "as a sum of number * binary variable"
    )


def _ceil(value: float) -> float:
    return math.ceil(value - _SAME) if math.isfinite(value) else value


def _floor(value: float) -> float:
    return math.floor(value + _SAME) if math.isfinite(value) else value


def add_gap(growth: Growth, column: int, domain: Domain) -> None:
    """Add rows that keep a column at 0 or within an interval."""
    chosen = growth.column(0, 1, whole=True)
    growth.row({column: 1.0, chosen: -domain.upper}, 0.0)
    growth.row({column: 1.0, chosen: -domain.lower}, math.inf, 0.0)


def legal_value(variable: Any) -> float:
    """Return the number in the domain and bounds of a variable that is nearest to zero."""
    domain = domain_of(variable)
    if domain.or_zero:
        return 0.0
    lower, upper = domain.lower, domain.upper
    if domain.is_whole:
        lower, upper = _ceil(lower), _floor(upper)
    if lower > upper:
        raise InfeasibleInstanceError([f"no value lies within the bounds of {variable.name}"])
    return float(min(max(0.0, lower), upper))


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
