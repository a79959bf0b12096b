"""The rows of a Pyomo model as a program, and rows of costs of linear expressions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
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
from placeopt.exact.curves import Quadratic, Square, add_squares, quadratic
from placeopt.exact.domains import encode, encode_set, is_plain, span
from placeopt.exact.program import Growth, Program

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
        Of expressions that are quadratic; see `placeopt.exact.curves`.
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
    _check_numbers(compiled, names)
    columns = list(compiled.columns)
    column_of = {id(variable): k for k, variable in enumerate(columns)}
    of_sets = [v for one in ordered_sets for v in one.get_variables() if not v.fixed]
    for variable in (*of_sets, *(v for goal in curved.values() for v in goal.variables)):
        if id(variable) not in column_of:
            column_of[id(variable)] = len(columns)
            columns.append(variable)
    program = _program(compiled, columns)
    growth = Growth(program)
    definitions = [
        encode(growth, k, variable) for k, variable in enumerate(columns) if not is_plain(variable)
    ]
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
    constants = np.array(compiled.c_offset, dtype=float)
    for definition in filter(None, definitions):  # of whole columns: their steps show then
        used = costs[:, definition.column].toarray().ravel()
        constants += used * definition.constant
        for column, coefficient in definition.terms.items():
            costs[:, column] += sp.lil_matrix((used * coefficient)[:, None])
        costs[:, definition.column] = 0.0
    for k, square, weight in squares:
        costs[k, square.square] = weight
    costs = sp.csr_matrix(costs)
    costs.eliminate_zeros()
    return ModelRows(
        columns, grown, costs, constants.tolist(), [square for _, square, _ in squares]
    )


def _quadratic(expression: Any) -> Quadratic | None:
    """Return a quadratic expression that is convex; what is linear or refused is None."""
    return quadratic(expression) if as_numeric(expression).polynomial_degree() == 2 else None


def _program(compiled: Any, columns: Sequence[Any]) -> Program:
    """Return the rows as a program over variables."""
    bounds = np.array([span(variable) for variable in columns], dtype=float).reshape(-1, 2)
    senses = np.array([sense for _, sense in compiled.rows], dtype=int)  # 1 <=, -1 >=, 0 ==
    rhs = np.asarray(compiled.rhs, dtype=float)
    more = sp.csc_matrix((len(rhs), len(columns) - len(compiled.columns)))
    return Program(
        np.zeros(len(columns)),
        sp.hstack([sp.csc_matrix(compiled.A), more], format="csc"),
        np.where(senses > 0, -math.inf, rhs),
        np.where(senses < 0, math.inf, rhs),
        bounds[:, 0],
        bounds[:, 1],
        np.array([is_plain(v) and not v.is_continuous() for v in columns], dtype=bool),
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


def _check_numbers(compiled: Any, names: Sequence[str]) -> None:
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
    for variable in compiled.columns:
        for bound in span(variable):
            if math.isnan(bound):
                raise UsageError(f"variable {variable.name} has the bound {bound}; {remedy}")
