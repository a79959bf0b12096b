"""Solvers that are installed beside placeopt, through Pyomo's interfaces to them.

Used through `solvers` only.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.exact.engines import Engine, Reply, Settings

if TYPE_CHECKING:
    from placeopt.exact.program import Program


@dataclass(frozen=True)
class Interface:
    """A solver as Pyomo has it.

    Attributes
    ----------
    names : tuple of str
        Pyomo's names for it, the best first.
    relative_gap, absolute_gap : str
        Its options; empty where it has none.
    tolerances : tuple of str
        Options for the largest violation of rows and of integrality.
    others : mapping
        Options that are always set.
    whole_seconds : bool
        Its time limit is a whole number.
    """

    names: tuple[str, ...]
    relative_gap: str
    absolute_gap: str = ""
    tolerances: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)
    whole_seconds: bool = False


INTERFACES = {
    "cbc": Interface(("cbc",), "ratio", "allow", ("primalT", "integerT")),
    "cplex": Interface(
        ("cplex_direct", "cplex"),
        "mip_tolerances_mipgap",
        "mip_tolerances_absmipgap",
        ("simplex_tolerances_feasibility", "mip_tolerances_integrality"),
        {"threads": 1},
    ),
    "glpk": Interface(("glpk",), "mipgap", whole_seconds=True),
    "gurobi": Interface(
        ("gurobi",), "MIPGap", "MIPGapAbs", ("FeasibilityTol", "IntFeasTol"), {"Threads": 1}
    ),
    "xpress": Interface(
        ("xpress_direct", "xpress"),
        "miprelstop",
        "mipabsstop",
        ("feastol", "miptol"),
        {"threads": 1},
    ),
}

#: Pyomo captures the process's output while a solver runs: one at a time.
_ONE_AT_A_TIME = threading.Lock()
#: Longest run that is not told a limit, seconds: a program in the background must end some day.
_LONGEST = 7 * 86_400.0


@cache
def found(name: str) -> str | None:
    """Return Pyomo's name of a solver that is installed, None where it is not."""
    import pyomo.environ as pyo

    for one in INTERFACES[name].names:
        with _quietly():
            if pyo.SolverFactory(one).available(exception_flag=False):
                return one
    return None


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep Pyomo from logging what its results say as well."""
    logger = logging.getLogger("pyomo")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


class PyomoEngine:
    """A solver of `INTERFACES`."""

    def __init__(
        self,
        program: Program,
        settings: Settings,
        start: np.ndarray | None = None,
        *,
        name: str,
    ):
        import pyomo.environ as pyo

        self._program, self._settings, self._kind = program, settings, INTERFACES[name]
        with _ONE_AT_A_TIME, _quietly():
            self._interface = pyo.SolverFactory(found(name) or name)
        self._model, self._empty_row = _model_of(program)
        self._stopped = False
        self._results: Any = None

    def _options(self) -> dict[str, Any]:
        settings, kind = self._settings, self._kind
        options = {**settings.options, **kind.others, kind.relative_gap: settings.relative_gap}
        if kind.absolute_gap:
            options[kind.absolute_gap] = settings.absolute_gap
        if settings.tolerance is not None:
            options |= dict.fromkeys(kind.tolerances, settings.tolerance)
        return options

    def _seconds(self) -> float:
        seconds = max(1e-3, min(self._settings.seconds, _LONGEST))
        return math.ceil(seconds) if self._kind.whole_seconds else seconds

    def run(self) -> None:
        """Solve."""
        with _ONE_AT_A_TIME, _quietly():
            if not self._stopped and not self._empty_row:
                self._results = self._interface.solve(
                    self._model,
                    load_solutions=False,
                    timelimit=self._seconds(),
                    options=self._options(),
                )

    def stop(self) -> None:
        """Leave a run behind: Pyomo cannot end it before its time limit."""
        self._stopped = True

    def disable_callbacks(self) -> None:
        """Nothing to do: no solver calls back."""

    def partial_reply(self) -> Reply:
        """Return nothing: a running solver cannot be asked."""
        return Reply("unknown")

    def reply(self) -> Reply:
        """Return the answer."""
        if self._empty_row:
            return Reply("infeasible")
        if self._results is None:
            return Reply("unknown")
        condition = str(self._results.solver.termination_condition)
        if condition in ("infeasible", "unbounded"):
            return Reply(condition)
        if condition == "infeasibleOrUnbounded":
            return self._unbounded_or_infeasible()
        if condition in ("optimal", "globallyOptimal", "locallyOptimal"):
            return self._solution("optimal")
        if condition in ("maxTimeLimit", "maxIterations", "maxEvaluations", "feasible", "other"):
            return self._solution("feasible")
        return Reply("error", message=f"the solver ended with {condition!r}")

    def _unbounded_or_infeasible(self) -> Reply:
        """Find out which: without costs nothing is unbounded."""
        self._model.cost.expr = 0.0 * self._model.x[0]
        self.run()
        condition = str(self._results.solver.termination_condition)
        if condition in ("infeasible", "optimal"):
            return Reply("infeasible" if condition == "infeasible" else "unbounded")
        return Reply("error", message="the solver cannot tell unbounded from infeasible")

    def _solution(self, status: str) -> Reply:
        program, results = self._program, self._results
        bound = _number(results.problem.lower_bound)
        x = self._values()
        if x is None:
            return Reply("unknown", bound=bound + program.offset)
        value = float(program.c @ x)
        if status == "optimal" and not math.isfinite(bound):
            settings = self._settings
            bound = value - max(settings.absolute_gap, settings.relative_gap * abs(value))
        return Reply(status, x, bound + program.offset)

    def _values(self) -> np.ndarray | None:
        """Return the solution; columns that the solver was not told of are nearest to zero."""
        if not len(self._results.solution):
            return None
        with _quietly():
            self._model.solutions.load_from(self._results)
        values = [variable.value for variable in self._model.x.values()]
        away = np.clip(0.0, self._program.col_lower, self._program.col_upper).tolist()
        pairs = zip(values, away, strict=True)
        return np.array([other if value is None else value for value, other in pairs], dtype=float)


def _number(bound: Any) -> float:
    """Return a reported bound as a number, -inf where it says nothing."""
    try:
        value = float(bound)
    except (TypeError, ValueError):
        return -math.inf
    return value if abs(value) < 1e30 else -math.inf


def _model_of(program: Program) -> tuple[Any, bool]:
    """Return a program as a Pyomo model, and whether a row without columns cannot hold."""
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    model = pyo.ConcreteModel()
    whole, low, high = program.integrality, program.col_lower.tolist(), program.col_upper.tolist()
    model.x = pyo.Var(
        range(len(whole)),
        domain=lambda m, k: pyo.Integers if whole[k] else pyo.Reals,
        bounds=lambda m, k: (_open(low[k]), _open(high[k])),
    )
    columns = list(model.x.values())
    model.rows = pyo.ConstraintList()
    A = program.A.tocsr()
    for row, (lower, upper) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
        own = slice(A.indptr[row], A.indptr[row + 1])
        chosen = [columns[k] for k in A.indices[own].tolist()]
        if not chosen and not lower <= 0 <= upper:
            return model, True
        if chosen and (math.isfinite(lower) or math.isfinite(upper)):
            body = LinearExpression(linear_coefs=A.data[own].tolist(), linear_vars=chosen)
            model.rows.add((_open(lower), body, _open(upper)))
    costs = [(c, columns[k]) for k, c in enumerate(program.c.tolist()) if c]
    body = LinearExpression(
        linear_coefs=[c for c, _ in costs], linear_vars=[variable for _, variable in costs]
    )
    model.cost = pyo.Objective(expr=body if costs else 0.0 * columns[0] if columns else 0.0)
    return model, False


def _open(bound: float) -> float | None:
    """Return a bound, None where it is infinite."""
    return float(bound) if math.isfinite(bound) else None


#: The solvers as engines, by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    name: partial(PyomoEngine, name=name) for name in INTERFACES
}
