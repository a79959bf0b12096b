"""Objectives as rows of costs in units.

The unit of an objective is its step, so that its values are whole numbers. One without a step has a
unit near its smallest term: the tolerances of solvers are absolute, and see all of its terms then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from placeopt.core.fronts.values import Objective
from placeopt.exact.program import Program
from placeopt.exact.steps import common_step, fraction

#: Coefficients this near to a whole number, relatively, are that number; of larger ones that would
#: hide several units, so that they are compared exactly.
_NEARLY_WHOLE, _SURELY_WHOLE = 1e-9, 1e6
#: Above so many units in one coefficient, an objective of a placeopt problem counts as real-valued:
#: it stays in one part.
_MAX_UNITS = 5e6
#: Values of a user's objective have at most so many units, because floats have no more digits.
_MAX_EXACT_UNITS = 2.0**52
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
    offset : float
        In units.
    unit : float
    rounding : float
        By how many units values are off at most, where the step is one to which they are rounded;
        else 0.
    """

    objective: Objective
    cost: sp.csr_matrix
    offset: float
    unit: float
    rounding: float = 0.0


def own_rows(
    objectives: Sequence[Objective],
    costs: sp.csr_matrix,
    constants: Sequence[float],
    program: Program,
) -> list[UnitRow]:
    """Return the rows of a placeopt problem; real values are in their own unit."""
    rows = []
    for k, objective in enumerate(objectives):
        cost = costs[k]
        known = _with_step(objective, cost, program, constants[k])
        largest = abs(cost.data).max(initial=0.0)
        if known.step is not None and largest > _MAX_UNITS * known.step:
            known = replace(known, step=None)
        rows.append(_row(known, cost, constants[k], known.step or 1.0))
    return rows


def user_rows(
    objectives: Sequence[Objective],
    costs: sp.csr_matrix,
    program: Program,
    rounded: Collection[int] = (),
) -> list[UnitRow]:
    """Return the rows of a user's goals, without constants.

    Parameters
    ----------
    rounded : collection of int
        Objectives that may be rounded to many parts where they have no step: those of whole
        columns, which take finitely many values. One stays as it is where no other is real-valued.
    """
    existing = []
    for k, objective in enumerate(objectives):
        candidate = _with_step(objective, costs[k], program)
        most = _most_units(costs[k], program, candidate.step or 1.0)
        existing.append(candidate if most < _MAX_EXACT_UNITS else replace(candidate, step=None))
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
            rows.append(_row(objective, costs[k], 0.0, unit))
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
    return UnitRow(replace(objective, step=unit), rounded, 0.0, unit, max(1.0, most))


def _with_step(
    objective: Objective, cost: sp.csr_matrix, program: Program, constant: float = 0.0
) -> Objective:
    """Return an objective with the step that its coefficients and constant show, if it has none."""
    if objective.step is not None or not program.integrality[cost.indices].all():
        return objective
    return replace(objective, step=common_step(np.append(cost.data, constant)))


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


def _row(objective: Objective, cost: sp.csr_matrix, constant: float, unit: float) -> UnitRow:
    """Return a cost row and its offset in units.

    Coefficients of an objective with a step that are whole but for rounding are made whole.
    """
    cost = sp.csr_matrix(cost, copy=True)
    if objective.step is None:
        cost.data = cost.data / unit
        return UnitRow(objective, cost, constant / unit, unit)
    cost.data = _cleaned(cost.data, unit)
    return UnitRow(objective, cost, float(_cleaned(np.array([constant]), unit)[0]), unit)


def _cleaned(values: np.ndarray, unit: float) -> np.ndarray:
    scaled = values / unit
    whole = np.round(scaled)
    near = np.abs(scaled - whole) <= _NEARLY_WHOLE * np.maximum(1.0, np.abs(scaled))
    for k in np.flatnonzero(near & (np.abs(scaled) > _SURELY_WHOLE)).tolist():
        exact, step = fraction(float(values[k])), fraction(unit)
        near[k] = exact is not None and step is not None and (exact / step).denominator == 1
    return np.where(near, whole, scaled)
