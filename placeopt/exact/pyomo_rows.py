"""A Pyomo model as a program: rows, domains of columns, and rows of costs of its goals in units.

A domain is an interval, whole or real, or 0 or an interval; special ordered sets become rows with
binary variables. The unit of an objective is its step, so that its values are whole numbers. One
without a step has a unit near its smallest term: the tolerances of solvers are absolute, and see
all of its terms then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Number, Real
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.common.modeling import unique_component_name
from pyomo.core.expr.numvalue import as_numeric
from pyomo.gdp import Disjunction
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError, UsageError
from placeopt.core.fronts.values import Objective
from placeopt.exact.program import Growth, Program, Quadratic, Square, add_squares, quadratic
from placeopt.exact.whole_rows import common_step, fraction

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
    places, bounds = max(1, places), program.implied_bounds()
    chosen = [growth.column(0, 1, whole=True) for _ in range(places)]
    growth.row(dict.fromkeys(chosen, 1.0), 1.0)
    for k, variable in enumerate(members):
        covers = chosen[max(0, k - ordered_set.level + 1) : k + 1]
        if variable.fixed:
            if variable.value:
                growth.row(dict.fromkeys(covers, 1.0), math.inf, 1.0)
            continue
        column = column_of[id(variable)]
        lower, upper = float(bounds[0][column]), float(bounds[1][column])
        if not (math.isfinite(lower) and math.isfinite(upper)):
            raise UnsupportedError(
                f"variable {variable.name} of the ordered set {ordered_set.name!r} has no bounds; "
                "give it bounds: the set becomes binary variables"
            )
        growth.row({column: 1.0, **dict.fromkeys(covers, -max(0.0, upper))}, 0.0)
        growth.row({column: 1.0, **dict.fromkeys(covers, -min(0.0, lower))}, math.inf, 0.0)


_APPLY = "write it as rows first: pyo.TransformationFactory({!r}).apply_to(model)"
#: Logic that is no rows, and what to do.
_NO_ROWS = {
    pyo.LogicalConstraint: _APPLY.format("core.logical_to_linear"),
    Disjunction: _APPLY.format("gdp.bigm"),
}


@dataclass(frozen=True, eq=False)
class ModelRows:
    """A model's constraints and expressions.

    Attributes
    ----------
    columns : list of pyomo variables
        The program's first columns. Further ones encode domains and ordered sets.
    program : Program
        Without costs.
    costs : scipy.sparse.csr_matrix, shape (expressions, columns)
    constants : list of float
        What is to be added to the costs.
    squares : list of Square
        Of expressions that are quadratic; see `placeopt.exact.program`.
    """

    columns: list[Any]
    program: Program
    costs: sp.csr_matrix
    constants: list[float]
    squares: list[Square]


def read_rows(
    model: pyo.ConcreteModel, expressions: Sequence[Any], names: Sequence[str]
) -> ModelRows:
    """Read a model; its own Objectives, and epsilon bounds that are infinite, are put aside.

    Raises
    ------
    UnsupportedError
        A constraint is not linear, an expression neither that nor convex and quadratic, or a domain
        is no set of numbers.
    UsageError
        A coefficient, a limit or a bound is not a number.
    InfeasibleInstanceError
        A constraint without variables does not hold, or a domain is empty.
    """
    ordered_sets = [
        data
        for data in model.component_data_objects(pyo.SOSConstraint, active=True, descend_into=True)
        if data.get_items()
    ]
    curved = {k: q for k, e in enumerate(expressions) if (q := _quadratic(e)) is not None}
    straight = [curved[k].straight if k in curved else e for k, e in enumerate(expressions)]
    compiled = _compile(model, straight, names)
    columns = list(compiled.columns)
    column_of = {id(variable): k for k, variable in enumerate(columns)}
    of_sets = [v for one in ordered_sets for v in one.get_variables() if not v.fixed]
    for variable in (*of_sets, *(v for goal in curved.values() for v in goal.variables)):
        if id(variable) not in column_of:
            column_of[id(variable)] = len(columns)
            columns.append(variable)
    domains = list(map(domain_of, columns))
    _check_numbers(compiled, names, columns, domains)
    program = _program(compiled, domains)
    growth = Growth(program)
    for k, domain in enumerate(domains):
        if domain.or_zero:
            add_gap(growth, k, domain)
    for ordered_set in ordered_sets:
        encode_set(growth, program, ordered_set, column_of)
    squares = [
        (k, *square)
        for k, goal in curved.items()
        for square in add_squares(growth, goal, [column_of[id(v)] for v in goal.variables])
    ]
    grown = growth.program()
    costs = sp.lil_matrix((len(expressions), grown.shape[1]))
    costs[:, : len(compiled.columns)] = compiled.c
    for k, square, weight in squares:
        costs[k, square.square] = weight
    costs = sp.csr_matrix(costs)
    costs.eliminate_zeros()
    return ModelRows(
        columns,
        grown,
        costs,
        list(map(float, compiled.c_offset)),
        [square for _, square, _ in squares],
    )


def _quadratic(expression: Any) -> Quadratic | None:
    """Return a quadratic expression that is convex; what is linear or refused is None."""
    return quadratic(expression) if as_numeric(expression).polynomial_degree() == 2 else None


def _program(compiled: Any, domains: Sequence[Domain]) -> Program:
    """Return the rows as a program over variables."""
    bounds = np.array([domain.span for domain in domains], dtype=float).reshape(-1, 2)
    senses = np.array([sense for _, sense in compiled.rows], dtype=int)  # 1 <=, -1 >=, 0 ==
    rhs = np.asarray(compiled.rhs, dtype=float)
    more = sp.csc_matrix((len(rhs), len(domains) - len(compiled.columns)))
    return Program(
        np.zeros(len(domains)),
        sp.hstack([sp.csc_matrix(compiled.A), more], format="csc"),
        np.where(senses > 0, -math.inf, rhs),
        np.where(senses < 0, math.inf, rhs),
        bounds[:, 0],
        bounds[:, 1],
        np.array([domain.is_whole for domain in domains], dtype=bool),
    )


def _compile(model: pyo.ConcreteModel, expressions: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the model's rows, and one row of costs for every expression."""
    with _only_constraints(model):
        costs = pyo.Objective(range(len(expressions)), rule=lambda _, k: expressions[k])
        name = unique_component_name(model, "compiled_objectives")
        model.add_component(name, costs)
        try:
            return LinearStandardFormCompiler().write(model, mixed_form=True)
        except InfeasibleConstraintException as error:
            raise InfeasibleInstanceError([f"a constraint cannot hold: {error}"]) from error
        except Exception as error:
            raise UnsupportedError(_why_not_linear(model, error)) from error
        finally:
            model.del_component(costs)


@contextmanager
def _only_constraints(model: pyo.ConcreteModel) -> Iterator[None]:
    """Put aside the model's Objectives, ordered sets and infinite epsilon bounds."""
    kinds = (pyo.Objective, pyo.SOSConstraint)
    aside = list(model.component_data_objects(kinds, active=True, descend_into=True))
    bounds = model.component("within_epsilon")
    if bounds is not None:
        aside += [
            row
            for name, row in bounds.items()
            if row.active and pyo.value(model.epsilon[name]) == math.inf
        ]
    for component in aside:
        component.deactivate()
    try:
        yield
    finally:
        for component in aside:
            component.activate()


def _why_not_linear(model: pyo.ConcreteModel, error: Exception) -> str:
    """Return a sentence that names the first constraint which is not linear, if there is one."""
    for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
        if row.body.polynomial_degree() not in (0, 1):
            return (
                f"constraint {row.name!r} is not linear: {row.expr}; "
                "write it with linear rows and binary variables"
            )
    for component in model.component_objects(active=True, descend_into=True):
        if component.ctype in _NO_ROWS:
            remedy = _NO_ROWS[component.ctype]
            return f"{component.name!r} is a {component.ctype.__name__}, not linear rows; {remedy}"
    return f"the model cannot be written as linear rows: {error}"


def _check_numbers(
    compiled: Any, names: Sequence[str], columns: Sequence[Any], domains: Sequence[Domain]
) -> None:
    """Refuse coefficients, limits and bounds that are not numbers, by the component's name."""
    remedy = "give a finite number"
    costs, rows = sp.csr_matrix(compiled.c), sp.csr_matrix(compiled.A)
    for k, name in enumerate(names):
        constant = compiled.c_offset[k]
        if not isinstance(constant, Number):  # Pyomo's object for what is none
            constant = math.nan
        data = [*costs[k].data.tolist(), constant]
        for value in data:
            if not math.isfinite(value):
                raise UsageError(f"goal {name!r} has the coefficient {value}; {remedy}")
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        where = compiled.rows[row].constraint.name
        raise UsageError(f"constraint {where!r} has the coefficient {rows.data[bad[0]]}; {remedy}")
    for row, limit in enumerate(compiled.rhs):
        if math.isnan(limit):
            where = compiled.rows[row].constraint.name
            raise UsageError(f"constraint {where!r} has the limit {limit}; {remedy}")
    for variable, domain in zip(columns, domains, strict=True):
        for bound in domain.span:
            if math.isnan(bound):
                raise UsageError(f"variable {variable.name} has the bound {bound}; {remedy}")


#: Coefficients this near to a whole number, relatively, are that number; of larger ones that would
#: hide several units, so that they are compared exactly.
_NEARLY_WHOLE, _SURELY_WHOLE = 1e-9, 1e6
#: Values of an objective have at most so many units, because floats have no more digits.
MAX_UNITS = 2.0**52
#: Largest ratio of the coefficients of real columns to the unit of an objective.
_WIDEST = 2.0**20
#: Values of an objective of whole columns that has no step are rounded to so many parts.
_ROUNDED_PARTS = 2.0**43


@dataclass(frozen=True, eq=False)
class UnitRow:
    """An objective as a row.

    Attributes
    ----------
    objective : Objective
        Without a step where that is too fine.
    cost : scipy.sparse.csr_matrix, shape (1, columns)
        In units.
    unit : float
    rounding : float
        By how many units values are off at most, where the step is one to which they are rounded;
        else 0.
    """

    objective: Objective
    cost: sp.csr_matrix
    unit: float
    rounding: float = 0.0


def unit_rows(
    objectives: Sequence[Objective],
    costs: sp.csr_matrix,
    program: Program,
    rounded: Collection[int] = (),
    most_units: float = MAX_UNITS,
) -> list[UnitRow]:
    """Return objectives as rows, without constants.

    Parameters
    ----------
    rounded : collection of int
        Objectives that may be rounded to many parts where they have no step: those of whole
        columns, which take finitely many values. One stays as it is where no other is real-valued.
    most_units : float
        An objective whose values may have more units of its step counts as real-valued.
    """
    existing = []
    for k, objective in enumerate(objectives):
        candidate = _with_step(objective, costs[k], program)
        most = _most_units(costs[k], program, candidate.step or 1.0)
        existing.append(candidate if most < most_units else replace(candidate, step=None))
    real = [k for k, objective in enumerate(existing) if objective.step is None]
    finite = [
        k
        for k in real
        if k in rounded
        and program.integrality[costs[k].indices].all()
        and _is_bounded(costs[k], program)
    ]
    if set(finite) >= set(rounded) & set(real):
        finite = finite[1:]
    rows = []
    for k, objective in enumerate(existing):
        if k in finite:
            rows.append(_rounded_row(objective, costs[k], program))
        else:
            unit = objective.step or _smallest_term(costs[k], program)
            rows.append(_row(objective, costs[k], unit))
    return rows


def _rounded_row(objective: Objective, cost: sp.csr_matrix, program: Program) -> UnitRow:
    """Return a row with coefficients rounded to a step of which the values have many."""
    unit = 2.0 ** math.ceil(math.log2(_most_units(cost, program, 1.0) / _ROUNDED_PARTS))
    rounded = sp.csr_matrix(cost, copy=True)
    rounded.data = np.round(rounded.data / unit)
    off = sp.csr_matrix(
        (np.abs(rounded.data - cost.data / unit), cost.indices, cost.indptr), cost.shape
    )
    most = math.ceil(_most_units(off, program, 1.0))
    return UnitRow(replace(objective, step=unit), rounded, unit, max(1.0, most))


def _with_step(objective: Objective, cost: sp.csr_matrix, program: Program) -> Objective:
    """Return an objective with the step that its coefficients show, if it has none."""
    if objective.step is not None or not program.integrality[cost.indices].all():
        return objective
    return replace(objective, step=common_step(cost.data))


def _is_bounded(cost: sp.csr_matrix, program: Program) -> bool:
    ends = program.col_upper[cost.indices] - program.col_lower[cost.indices]
    return bool(np.isfinite(ends).all())


def _most_units(cost: sp.csr_matrix, program: Program, unit: float) -> float:
    """Return how large the terms of an objective are together, in units.

    Of unbounded columns the coefficients count.
    """
    ends = np.abs((program.col_lower[cost.indices], program.col_upper[cost.indices]))
    ends = ends.max(axis=0, initial=0.0)
    return float((np.abs(cost.data) * np.where(np.isfinite(ends), ends, 1.0)).sum()) / unit


def _smallest_term(cost: sp.csr_matrix, program: Program) -> float:
    """Return a power of two near the smallest term of a real-valued objective."""
    columns, values = cost.indices, abs(cost.data)
    if not len(values):
        return 1.0
    whole = program.integrality[columns]
    ranges = program.col_upper[columns] - program.col_lower[columns]
    terms = values * np.where(whole | (ranges == 0), 1.0, np.minimum(ranges, 1.0))
    smallest = max(terms.min(), values[~whole].max(initial=0.0) / _WIDEST)
    return float(2.0 ** math.floor(math.log2(smallest)))


def _row(objective: Objective, cost: sp.csr_matrix, unit: float) -> UnitRow:
    """Return a cost row in units.

    Coefficients of an objective with a step that are whole but for rounding are made whole.
    """
    cost = sp.csr_matrix(cost, copy=True)
    cost.data = cost.data / unit if objective.step is None else _cleaned(cost.data, unit)
    return UnitRow(objective, cost, unit)


def _cleaned(values: np.ndarray, unit: float) -> np.ndarray:
    scaled = values / unit
    whole = np.round(scaled)
    near = np.abs(scaled - whole) <= _NEARLY_WHOLE * np.maximum(1.0, np.abs(scaled))
    for k in np.flatnonzero(near & (np.abs(scaled) > _SURELY_WHOLE)).tolist():
        exact, step = fraction(float(values[k])), fraction(unit)
        near[k] = exact is not None and step is not None and (exact / step).denominator == 1
    return np.where(near, whole, scaled)
