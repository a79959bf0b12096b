"""CP-SAT of OR-Tools as a solver: programs of whole numbers only, in whole-number arithmetic.

Rows and costs become whole numbers first. A row that cannot is refused; costs that cannot, such as
those of a weighted sum, are rounded, and what that may change is taken off the proven bound.

Used through `solvers` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.exact.engines import Engine, Reply, Settings
from placeopt.exact.whole_rows import WholeRows, common_step

if TYPE_CHECKING:
    from placeopt.exact.program import Program

#: Sums of a row stay below this in size, so that CP-SAT's 64 bits hold them; and those of the
#: costs below the other, so that a float holds their value exactly.
_MAX_ACTIVITY, _MAX_COST = 2.0**62, 2.0**53
#: Passes over the rows that look for bounds of variables without one.
_PASSES = 10


#: Columns, whole coefficients, and limits, whole or infinite.
Row = tuple[np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, eq=False)
class WholeProgram:
    """A program in whole numbers: minimise ``cost @ x`` within rows ``lower <= ints @ x <= upper``.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (columns,)
    rows : list of Row
    cost : ndarray of int64, shape (columns,)
    unit : float
        The value of one unit of cost.
    error : float
        How far the value of a solution may be from that of its cost.
    """

    lower: np.ndarray
    upper: np.ndarray
    rows: list[Row]
    cost: np.ndarray
    unit: float
    error: float

    @classmethod
    def of(cls, program: Program, names: Sequence[str] | None = None) -> WholeProgram:
        """Return a program in whole numbers.

        Raises
        ------
        UnsupportedError
            Says which of `names`, or which column, is not whole or has no bound; or which row has
            coefficients that are no multiples of one number.
        """
        lower, upper = _bounds(program, names)
        size = np.maximum(np.abs(lower), np.abs(upper))
        rows = list(_whole_rows(program, size))
        cost, unit, error = _whole_cost(program.c, size)
        return cls(lower.astype(np.int64), upper.astype(np.int64), rows, cost, unit, error)


def _bounds(program: Program, names: Sequence[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return finite whole bounds of all columns, those that are missing from the rows."""
    remedy = "or take solver='highs'"
    if not program.integrality.all():
        which = _named(np.flatnonzero(~program.integrality), names)
        raise UnsupportedError(f"cp-sat takes whole numbers only, and {which} is none; {remedy}")
    lower, upper = np.ceil(program.col_lower - 1e-6), np.floor(program.col_upper + 1e-6)
    for _ in range(_PASSES):
        if np.isfinite(lower).all() and np.isfinite(upper).all():
            break
        low, high = replace(program, col_lower=lower, col_upper=upper).implied_bounds()
        lower, upper = np.ceil(low - 1e-6), np.floor(high + 1e-6)
    endless = np.flatnonzero(~(np.isfinite(lower) & np.isfinite(upper)))
    if len(endless):
        which = _named(endless, names)
        raise UnsupportedError(f"cp-sat needs bounds, and {which} has none; give them, {remedy}")
    return lower, upper


def _named(columns: np.ndarray, names: Sequence[str] | None) -> str:
    first = int(columns[0])
    return f"column {first}" if names is None or first >= len(names) else repr(names[first])


def _whole_rows(program: Program, size: np.ndarray) -> Iterator[Row]:
    """Yield the rows that limit something, in whole numbers."""
    A, whole = program.A.tocsr(), WholeRows.of(program)
    limited = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
    limited[whole.which[abs(whole.matrix) @ size < _MAX_ACTIVITY]] = False
    for row in np.flatnonzero(limited).tolist():
        some = ", ".join(f"{value:g}" for value in A.data[A.indptr[row] : A.indptr[row + 1]][:3])
        raise UnsupportedError(
            f"coefficients of a row or goal are too large, or no multiples of one number: {some}, "
            "...; cp-sat computes with whole numbers; take solver='highs'"
        )
    values, columns, ends = (
        whole.matrix.data.astype(np.int64),
        whole.matrix.indices,
        whole.matrix.indptr,
    )
    for k, (low, high) in enumerate(zip(whole.lower.tolist(), whole.upper.tolist(), strict=True)):
        if math.isfinite(low) or math.isfinite(high):
            own = slice(ends[k], ends[k + 1])
            yield columns[own], values[own], low, high


def _whole_cost(c: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return whole costs, the value of a unit of them, and how far a value may be off."""
    largest = float(np.abs(c) @ size)
    if not largest:  # columns that cost something are fixed at 0
        return np.zeros(len(c), dtype=np.int64), 1.0, 0.0
    step = 1.0 if (c == np.round(c)).all() else common_step(c)
    if step is not None and largest / step < _MAX_COST:
        return np.round(c / step).astype(np.int64), step, 0.0
    unit = largest / (_MAX_COST / 4)
    whole = np.round(c / unit)
    return whole.astype(np.int64), unit, float(np.abs(whole * unit - c) @ size)


class CpSatEngine(Engine):
    """CP-SAT through ortools, on one thread."""

    def __init__(self, program: Program, settings: Settings, start: np.ndarray | None = None):
        from ortools.sat.python import cp_model

        self._api, self._offset, self._stopped = cp_model, program.offset, False
        self._status: Any = None  # None: was stopped before it began
        self._whole = whole = WholeProgram.of(program)
        self.model = model = cp_model.CpModel()
        bounds = zip(whole.lower.tolist(), whole.upper.tolist(), strict=True)
        self.variables = [model.new_int_var(low, high, "") for low, high in bounds]
        for columns, values, low, high in whole.rows:
            terms = [self.variables[k] for k in columns.tolist()]
            expression = cp_model.LinearExpr.weighted_sum(terms, values.tolist())
            model.add_linear_constraint(expression, _at_least(low), _at_most(high))
        model.minimize(cp_model.LinearExpr.weighted_sum(self.variables, whole.cost.tolist()))
        if start is not None:
            for variable, value in zip(self.variables, np.round(start).tolist(), strict=True):
                model.add_hint(variable, int(value))
        self._set(settings)

    def _set(self, settings: Settings) -> None:
        self.solver = self._api.CpSolver()
        parameters = self.solver.parameters
        # Questions are small and many: presolve costs more than it saves. It is the second opinion.
        parameters.cp_model_presolve = not settings.presolve
        for name, value in settings.options.items():
            setattr(parameters, name, value)
        parameters.num_workers = 1
        parameters.random_seed = settings.seed % 2**31
        parameters.max_time_in_seconds = min(settings.seconds, 1e9)
        parameters.relative_gap_limit = settings.relative_gap
        parameters.absolute_gap_limit = settings.absolute_gap / self._whole.unit

    def run(self) -> None:
        """Solve."""
        if not self._stopped:
            self._status = self.solver.solve(self.model)

    def stop(self) -> None:
        """Ask the run to end."""
        self._stopped = True
        self.solver.stop_search()

    def reply(self) -> Reply:
        """Return the answer."""
        api, status = self._api, self._status
        if status == api.INFEASIBLE:
            return Reply("infeasible")
        if status == api.MODEL_INVALID:
            return Reply("error", message=f"CP-SAT refuses the program: {self.model.validate()}")
        if self._status is None:
            return Reply("unknown")
        if status == api.UNKNOWN:
            return Reply("unknown", bound=self._bound())
        x = np.array([self.solver.value(v) for v in self.variables], dtype=float)
        return Reply("optimal" if status == api.OPTIMAL else "feasible", x, self._bound())

    def _bound(self) -> float:
        """Return the proven bound; CP-SAT says 0 where it has none yet."""
        whole, bound = self._whole, self.solver.best_objective_bound
        if self._status != self._api.OPTIMAL and bound == 0.0:
            ends = np.where(whole.cost > 0, whole.lower, whole.upper)
            bound = float(whole.cost @ ends)
        return bound * whole.unit - whole.error + self._offset


def _at_least(low: float) -> int:
    return math.ceil(low) if math.isfinite(low) else -int(_MAX_ACTIVITY)


def _at_most(high: float) -> int:
    return math.floor(high) if math.isfinite(high) else int(_MAX_ACTIVITY)
