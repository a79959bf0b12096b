"""A Pyomo model as arrays, compiled once; its objectives as rows in units of their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from placeopt.core.errors import UnsupportedError
from placeopt.core.front import Objective
from placeopt.exact.solvers import Program

#: Coefficients this near to a whole number, relatively, are that number.
_NEARLY_WHOLE = 1e-9
#: Above so many units in one coefficient, a unit is lost in a solver's rounding: the objective then counts as real-valued.
_MOST_UNITS = 5e6


@dataclass(frozen=True)
class Cut:
    """A linear row over variables of a model: ``sum of coefficient * variable <= upper``.

    `terms` maps variables to coefficients; variables do not hash, so it is a ``pyomo.environ.ComponentMap``.
    """

    terms: Mapping[Any, float]
    upper: float


class CompiledModel:
    """Arrays of a Pyomo model whose objectives are linear named Expressions.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        With an Expression ``model.<name>`` for every objective; its own Objectives and epsilon bounds are put aside.
    objectives : sequence of Objective

    Attributes
    ----------
    objectives : tuple of Objective
        As given, but without a step where that is too fine for a solver.
    floors : list of float
        Lower bounds of the objectives that the variables' bounds alone give, in units.

    Raises
    ------
    UnsupportedError
        An objective is not linear.
    """

    def __init__(self, model: pyo.ConcreteModel, objectives: Sequence[Objective]):
        self.model = model
        rows = _compile(model, [o.name for o in objectives])
        self.columns = list(rows.columns)
        self._column = {id(variable): k for k, variable in enumerate(self.columns)}
        lower = np.array(
            [-math.inf if (b := v.lb) is None else b for v in self.columns], dtype=float
        )
        upper = np.array(
            [math.inf if (b := v.ub) is None else b for v in self.columns], dtype=float
        )
        senses = np.array(
            [sense for _, sense in rows.rows], dtype=int
        )  # 1 at most, -1 at least, 0 equal
        rhs = np.asarray(rows.rhs, dtype=float)
        costs = sp.csr_matrix(rows.c)
        objectives = tuple(_resolvable(o, costs[k]) for k, o in enumerate(objectives))
        scaled = [
            _in_units(costs[k], float(rows.c_offset[k]), o.step or 1.0)
            for k, o in enumerate(objectives)
        ]
        self.offsets = [offset for _, offset in scaled]
        self.objectives = objectives
        self.costs = [row.toarray().ravel() for row, _ in scaled]
        self.floors = [
            _floor(cost, lower, upper) + offset
            for cost, offset in zip(self.costs, self.offsets, strict=True)
        ]
        self._first = len(rhs)  # the objectives' rows come after the model's
        self.program = Program(
            np.zeros(len(self.columns)),
            sp.vstack([sp.csr_matrix(rows.A), *(row for row, _ in scaled)], format="csc"),
            np.concatenate(
                (np.where(senses > 0, -math.inf, rhs), np.full(len(objectives), -math.inf))
            ),
            np.concatenate(
                (np.where(senses < 0, math.inf, rhs), np.full(len(objectives), math.inf))
            ),
            lower,
            upper,
            np.array([not v.is_continuous() for v in self.columns], dtype=bool),
        )

    def within(self, objective: int, limits: Sequence[float]) -> Program:
        """Return the program that minimises one objective within limits on the others, all in units, inclusive."""
        upper = self.program.row_upper.copy()
        for k, (limit, offset, what) in enumerate(
            zip(limits, self.offsets, self.objectives, strict=True)
        ):
            # Half a unit more is the same to whole numbers, and keeps rounding from cutting a point off.
            slack = 0.5 if what.step is not None else 1e-7 * max(1.0, abs(limit))
            upper[self._first + k] = limit - offset + slack if limit < math.inf else math.inf
        return replace(
            self.program, c=self.costs[objective], offset=self.offsets[objective], row_upper=upper
        )

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


def _compile(model: pyo.ConcreteModel, names: Sequence[str]) -> Any:
    """Return the model's rows, and one row of costs for every objective."""
    aside = list(model.component_objects(pyo.Objective, active=True, descend_into=True))
    epsilon = model.component("within_epsilon")
    if epsilon is not None:
        epsilon.deactivate()
    for component in aside:
        component.deactivate()
    model.add_component(
        "compiled_objectives",
        costs := pyo.Objective(range(len(names)), rule=lambda _, k: getattr(model, names[k])),
    )
    try:
        return LinearStandardFormCompiler().write(model, mixed_form=True)
    except Exception as error:
        raise UnsupportedError(f"the model cannot be written as linear rows: {error}") from error
    finally:
        model.del_component(costs)
        for component in aside:
            component.activate()
        if epsilon is not None:
            epsilon.activate()


def _resolvable(objective: Objective, row: sp.csr_matrix) -> Objective:
    too_fine = (
        objective.step is not None and abs(row.data).max(initial=0.0) > _MOST_UNITS * objective.step
    )
    return replace(objective, step=None) if too_fine else objective


def _in_units(row: sp.csr_matrix, offset: float, step: float) -> tuple[sp.csr_matrix, float]:
    """Return a cost row and its offset in units of a step; coefficients that are whole but for rounding are made whole."""
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
