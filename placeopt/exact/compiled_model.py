"""A Pyomo model as arrays, compiled once; its objectives as rows in units of their steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.common.errors import InfeasibleConstraintException
from pyomo.common.modeling import unique_component_name
from pyomo.gdp import Disjunction
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.core.front import Objective
from placeopt.exact.program import Program

#: Coefficients this near to a whole number, relatively, are that number.
_NEARLY_WHOLE = 1e-9
#: Above so many units in one coefficient, a unit is lost in a solver's rounding: the objective then
#: counts as real-valued.
_MAX_UNITS = 5e6
#: A step is inferred from coefficients that are fractions with at most this denominator, up to
#: the rounding of floating point.
_MAX_DENOMINATOR, _ROUNDING = 10**6, 1e-14


_APPLY = "write it as rows first: pyo.TransformationFactory({!r}).apply_to(model)"
#: Logic that is no rows, and what to do.
_NO_ROWS = {
    pyo.LogicalConstraint: _APPLY.format("core.logical_to_linear"),
    Disjunction: _APPLY.format("gdp.bigm"),
    pyo.SOSConstraint: "write it with binary variables and rows",
}


@dataclass(frozen=True)
class Cut:
    """A linear row over variables of a model: ``sum of coefficient * variable <= upper``.

    `terms` maps variables to coefficients; variables do not hash, so it is a
    ``pyomo.environ.ComponentMap``.
    """

    terms: Mapping[Any, float]
    upper: float


class CompiledModel:
    """Arrays of a Pyomo model with linear objectives.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Its own Objectives, and epsilon bounds that are infinite, are put aside.
    objectives : sequence of Objective
        All minimised.
    expressions : sequence, optional
        One for each objective; by default the named Expressions ``model.<name>``.
    infer_steps : bool
        Give objectives without a step the one that their coefficients show, if their variables are
        all whole numbers. Values then exclude the constants of the expressions, see `constants`.

    Attributes
    ----------
    objectives : tuple of Objective
        As given, but without a step where that is too fine for a solver.
    floors : list of float
        Lower bounds of the objectives that the variables' bounds alone give, in units.
    constants : list of float
        What is to be added to the values of the objectives; zeros unless `infer_steps`.

    Raises
    ------
    UnsupportedError
        An objective or a constraint is not linear.
    InfeasibleInstanceError
        A constraint without variables does not hold.
    """

    def __init__(
        self,
        model: pyo.ConcreteModel,
        objectives: Sequence[Objective],
        expressions: Sequence[Any] | None = None,
        *,
        infer_steps: bool = False,
    ):
        self.model = model
        if expressions is None:
            expressions = [getattr(model, o.name) for o in objectives]
        rows = _compile(model, expressions)
        self.columns = list(rows.columns)
        self._column = {id(variable): k for k, variable in enumerate(self.columns)}
        self.integrality = np.array([not v.is_continuous() for v in self.columns], dtype=bool)
        costs, constants = sp.csr_matrix(rows.c), np.array(rows.c_offset, dtype=float).tolist()
        self.constants = constants if infer_steps else [0.0] * len(objectives)
        if infer_steps:
            constants = [0.0] * len(objectives)
            objectives = [self._with_step(o, costs[k]) for k, o in enumerate(objectives)]
        self.objectives = tuple(_resolvable(o, costs[k]) for k, o in enumerate(objectives))
        scaled = [
            _in_units(costs[k], constants[k], o.step or 1.0) for k, o in enumerate(self.objectives)
        ]
        self.offsets = [offset for _, offset in scaled]
        self.costs = [row.toarray().ravel() for row, _ in scaled]
        self.program = self._program(rows, [row for row, _ in scaled])
        self._first = len(rows.rhs)  # the objectives' rows come after the model's
        lower, upper = self.program.col_lower, self.program.col_upper
        self.floors = [
            _floor(cost, lower, upper) + offset
            for cost, offset in zip(self.costs, self.offsets, strict=True)
        ]

    def _program(self, rows: Any, objective_rows: Sequence[sp.csr_matrix]) -> Program:
        """Return the model's rows, and a free row for every objective, as a program."""
        lower = [-math.inf if (bound := v.lb) is None else bound for v in self.columns]
        upper = [math.inf if (bound := v.ub) is None else bound for v in self.columns]
        senses = np.array([sense for _, sense in rows.rows], dtype=int)  # 1 <=, -1 >=, 0 ==
        rhs, free = np.asarray(rows.rhs, dtype=float), np.full(len(objective_rows), math.inf)
        return Program(
            np.zeros(len(self.columns)),
            sp.vstack([sp.csr_matrix(rows.A), *objective_rows], format="csc"),
            np.concatenate((np.where(senses > 0, -math.inf, rhs), -free)),
            np.concatenate((np.where(senses < 0, math.inf, rhs), free)),
            np.array(lower, dtype=float),
            np.array(upper, dtype=float),
            self.integrality,
        )

    def _with_step(self, objective: Objective, cost: sp.csr_matrix) -> Objective:
        """Return an objective with the step that its coefficients show, if it has none."""
        if objective.step is not None or not self.integrality[cost.indices].all():
            return objective
        return replace(objective, step=common_step(cost.data))

    def within(self, objective: int, limits: Sequence[float]) -> Program:
        """Return the program that minimises one objective within limits on all, in units."""
        cost, offset = self.costs[objective], self.offsets[objective]
        return replace(self.program, c=cost, offset=offset, row_upper=self._limited(limits))

    def within_sum(self, weights: Sequence[float], limits: Sequence[float]) -> Program:
        """Return the program that minimises a weighted sum of the objectives within limits."""
        cost = np.asarray(weights) @ np.array(self.costs)
        offset = float(np.dot(weights, self.offsets))
        return replace(self.program, c=cost, offset=offset, row_upper=self._limited(limits))

    def _limited(self, limits: Sequence[float]) -> np.ndarray:
        """Return the upper bounds of all rows, those of the objectives at their limits."""
        upper = self.program.row_upper.copy()
        each = zip(limits, self.offsets, self.objectives, strict=True)
        for k, (limit, offset, what) in enumerate(each):
            # Half a unit more is the same to whole numbers, and no rounding cuts a point off.
            slack = 0.5 if what.step is not None else 1e-7 * max(1.0, abs(limit))
            upper[self._first + k] = limit - offset + slack if limit < math.inf else math.inf
        return upper

    def tightened(self, x: np.ndarray) -> Program:
        """Return the linear program that lowers the objectives of a solution, whole numbers fixed.

        Its cost is the sum of all objectives; none may rise.
        """
        whole, upper = self.integrality, self.program.row_upper.copy()
        for k, (cost, value) in enumerate(zip(self.costs, self.values(x), strict=True)):
            upper[self._first + k] = value - self.offsets[k] + 1e-7 * (1.0 + abs(cost) @ abs(x))
        return replace(
            self.program,
            c=np.sum(self.costs, axis=0),
            row_upper=upper,
            col_lower=np.where(whole, x, self.program.col_lower),
            col_upper=np.where(whole, x, self.program.col_upper),
            integrality=np.zeros(len(x), dtype=bool),
        )

    @property
    def has_real_terms(self) -> bool:
        """Whether an objective depends on a variable that is not a whole number."""
        return any((cost[~self.integrality] != 0).any() for cost in self.costs)

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        """Return the objectives of a solution as the model sees them, in units."""
        return tuple(
            float(cost @ x) + offset for cost, offset in zip(self.costs, self.offsets, strict=True)
        )

    def load(self, x: np.ndarray) -> None:
        """Give the model's variables the values of a solution."""
        for variable, value in zip(self.columns, x.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)

    def read(self) -> np.ndarray:
        """Return the values of the model's variables as a solution."""
        return np.array([variable.value or 0.0 for variable in self.columns], dtype=float)

    def add(self, cuts: Sequence[Cut]) -> None:
        """Add rows that every plan of interest satisfies."""
        matrix = sp.lil_matrix((len(cuts), len(self.columns)))
        for row, cut in enumerate(cuts):
            for variable, coefficient in cut.terms.items():
                matrix[row, self._column[id(variable)]] += coefficient
        old = self.program
        self.program = replace(
            old,
            A=sp.vstack([old.A, matrix], format="csc"),
            row_lower=np.concatenate((old.row_lower, np.full(len(cuts), -math.inf))),
            row_upper=np.concatenate((old.row_upper, [cut.upper for cut in cuts])),
        )


def _compile(model: pyo.ConcreteModel, expressions: Sequence[Any]) -> Any:
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
    """Put aside the model's Objectives and its infinite epsilon bounds."""
    aside = list(model.component_data_objects(pyo.Objective, active=True, descend_into=True))
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


def common_step(coefficients: np.ndarray) -> float | None:
    """Return the largest number that all coefficients are whole multiples of, if there is one.

    Examples
    --------
    >>> common_step(np.array([0.5, 0.75])), common_step(np.array([6.0, -4.0]))
    (0.25, 2.0)
    """
    numerator, denominator = 0, 1
    for value in np.unique(np.abs(coefficients)).tolist():
        exact = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
        if abs(float(exact) - value) > _ROUNDING * value:
            return None
        numerator = math.gcd(numerator * exact.denominator, exact.numerator * denominator)
        denominator *= exact.denominator
        shared = math.gcd(numerator, denominator)
        numerator, denominator = numerator // shared, denominator // shared
        if denominator > _MAX_DENOMINATOR:
            return None
    return numerator / denominator if numerator else 1.0


def _resolvable(objective: Objective, row: sp.csr_matrix) -> Objective:
    too_fine = (
        objective.step is not None and abs(row.data).max(initial=0.0) > _MAX_UNITS * objective.step
    )
    return replace(objective, step=None) if too_fine else objective


def _in_units(row: sp.csr_matrix, offset: float, step: float) -> tuple[sp.csr_matrix, float]:
    """Return a cost row and its offset in units of a step.

    Coefficients that are whole but for rounding are made whole.
    """
    row = sp.csr_matrix(row, copy=True)
    row.data = _cleaned(row.data / step)
    return row, float(_cleaned(np.array([offset / step]))[0])


def _cleaned(values: np.ndarray) -> np.ndarray:
    whole = np.round(values)
    near = np.abs(values - whole) <= _NEARLY_WHOLE * np.maximum(1.0, np.abs(values))
    return np.where(near, whole, values)


def _floor(cost: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    used = cost != 0
    ends = np.where(cost[used] > 0, lower[used], upper[used])
    return float(cost[used] @ ends) if used.any() else 0.0
