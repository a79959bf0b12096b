"""Which solvers there are, what each needs, and which one serves a model by itself.

Solvers that are installed beside placeopt are asked through ``pyomo.contrib.appsi``.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from placeopt.core.errors import MissingExtraError, UnsupportedError, UsageError, require_known
from placeopt.exact.cp_sat import CpSatEngine, WholeProgram
from placeopt.exact.engines import Engine, HighsEngine, Reply, ScipEngine, Settings
from placeopt.exact.program import Program


@dataclass(frozen=True)
class Interface:
    """A solver: its class in appsi, and what its options are called.

    `tolerances` are for the largest violation of rows and of integrality.
    """

    name: str
    relative_gap: str
    absolute_gap: str
    tolerances: tuple[str, ...]
    threads: str = ""


INTERFACES = {
    "cbc": Interface("Cbc", "ratio", "allow", ("primalT", "integerT")),
    "cplex": Interface(
        "Cplex",
        "mip_tolerances_mipgap",
        "mip_tolerances_absmipgap",
        ("simplex_tolerances_feasibility", "mip_tolerances_integrality"),
        "threads",
    ),
    "gurobi": Interface(
        "Gurobi", "MIPGap", "MIPGapAbs", ("FeasibilityTol", "IntFeasTol"), "Threads"
    ),
}

#: Pyomo captures the process's output while a solver runs: one at a time.
_ONE_AT_A_TIME = threading.Lock()
#: Longest run that is not told a limit, seconds: a program in the background must end some day.
_LONGEST = 7 * 86_400.0


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


def _interface(name: str) -> Any:
    from pyomo.contrib.appsi import solvers

    return getattr(solvers, INTERFACES[name].name)()


@cache
def is_installed(name: str) -> bool:
    """Whether appsi finds a solver."""
    with _quietly():
        return bool(_interface(name).available())


class AppsiEngine(Engine):
    """A solver of `INTERFACES`; it cannot be stopped before its time limit, nor asked meanwhile."""

    name = ""

    def __init__(self, program: Program, settings: Settings, start: np.ndarray | None = None):
        self._program, self._settings, self._stopped = program, settings, False
        self._model, self._empty_row = _model_of(program)
        self._results: Any = None
        with _ONE_AT_A_TIME, _quietly():
            self._solver = _interface(self.name)
        self._solver.config.load_solution = False
        self._solver.config.time_limit = max(1e-3, min(settings.seconds, _LONGEST))
        setattr(self._solver, f"{self.name}_options", self._options())

    def _options(self) -> dict[str, Any]:
        settings, kind = self._settings, INTERFACES[self.name]
        options = {
            **settings.options,
            kind.relative_gap: settings.relative_gap,
            kind.absolute_gap: settings.absolute_gap,
        }
        if kind.threads:
            options[kind.threads] = 1
        if settings.tolerance is not None:
            options |= dict.fromkeys(kind.tolerances, settings.tolerance)
        return options

    def run(self) -> None:
        """Solve."""
        with _ONE_AT_A_TIME, _quietly():
            if not self._stopped and not self._empty_row:
                self._results = self._solver.solve(self._model)

    def stop(self) -> None:
        """Leave a run behind."""
        self._stopped = True

    def reply(self) -> Reply:
        """Return the answer."""
        if self._empty_row:
            return Reply("infeasible")
        if self._results is None:
            return Reply("unknown")
        ended = self._results.termination_condition.name
        if ended in ("infeasible", "unbounded"):
            return Reply(ended)
        if ended == "infeasibleOrUnbounded":
            return Reply("endless")
        if ended in ("optimal", "maxTimeLimit", "maxIterations", "interrupted"):
            return self._solution("optimal" if ended == "optimal" else "feasible")
        return Reply("error", message=f"the solver ended with {ended!r}")

    def _solution(self, status: str) -> Reply:
        program, settings = self._program, self._settings
        told = self._results.best_objective_bound
        bound = -math.inf if told is None or abs(told) >= 1e30 else float(told)
        if self._results.best_feasible_objective is None:
            return Reply("unknown", bound=bound + program.offset)
        values = self._results.solution_loader.get_primals()
        # Columns that the solver was not told of are nearest to zero.
        x = np.clip(0.0, program.col_lower, program.col_upper)
        for k, variable in self._model.x.items():
            x[k] = values.get(variable, x[k])
        value = float(program.c @ x)
        if status == "optimal" and not math.isfinite(bound):
            bound = value - max(settings.absolute_gap, settings.relative_gap * abs(value))
        return Reply(status, x, bound + program.offset)


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


#: Engines of `INTERFACES`, by name.
_APPSI: dict[str, type[AppsiEngine]] = {
    name: type(f"{kind.name}Engine", (AppsiEngine,), {"name": name})
    for name, kind in INTERFACES.items()
}


#: The distribution that each solver comes in.
LIBRARIES = {
    "highs": "highspy",
    "scip": "pyscipopt",
    "cp-sat": "ortools",
    **dict.fromkeys(INTERFACES, "pyomo"),
}
#: Solvers by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    "highs": HighsEngine,
    "scip": ScipEngine,
    "cp-sat": CpSatEngine,
    **_APPSI,
}

#: The solver that comes with placeopt.
DEFAULT = "highs"
#: Models with fewer columns are over before CP-SAT is imported; of models with more coefficients,
#: those of the goals included, HiGHS solves as many in a second.
_FEW_COLUMNS, _MANY_COEFFICIENTS = 20, 3000


def require_solver(name: str) -> None:
    """Raise unless a solver is known and installed.

    Raises
    ------
    UsageError
        There is no such solver.
    UnsupportedError
        It is not installed.
    """
    require_known("solver", name, ENGINES)
    if name in INTERFACES and not is_installed(name):
        raise UnsupportedError(
            f"solver {name!r} is not installed: Pyomo finds neither its program nor its Python "
            "module; install it, or take solver='highs', which comes with placeopt"
        )
    if name == "cp-sat" and not _has_cp_sat():
        raise MissingExtraError("solver 'cp-sat'", "cp-sat")


def _has_cp_sat() -> bool:
    return importlib.util.find_spec("ortools") is not None


def require_fit(solver: str, program: Program, names: Sequence[str] | None = None) -> None:
    """Raise unless a solver can take a program; `names` are those of its first columns.

    Raises
    ------
    UnsupportedError
        Says what it cannot take.
    """
    if solver == "cp-sat":
        WholeProgram.of(_all_limited(program), names)


def _all_limited(program: Program) -> Program:
    """Return a program in which every row is limited, as those of goals are in questions."""
    open_ = np.isinf(program.row_lower) & np.isinf(program.row_upper)
    return replace(program, row_upper=np.where(open_, 0.0, program.row_upper))


def choose(program: Program) -> str:
    """Return the solver that serves a program by itself; `benchmarks/enumeration` has the measure.

    CP-SAT where it is installed and takes the program, which must be of some size, but not large,
    and no network, such as an assignment: of these HiGHS's linear programs are whole by themselves.
    """
    if (
        not _has_cp_sat()
        or program.shape[1] < _FEW_COLUMNS
        or program.A.nnz > _MANY_COEFFICIENTS
        or _is_network(program)
    ):
        return "highs"
    try:
        require_fit("cp-sat", program)
    except UnsupportedError:
        return "highs"
    return "cp-sat"


def _is_network(program: Program) -> bool:
    """Whether the limited rows have ones only, and every column stands in at most two of them."""
    limited = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
    A = program.A.tocsr()[limited].tocsc()
    return bool((np.abs(A.data) == 1).all() and np.diff(A.indptr).max(initial=0) <= 2)


def check_options(solver: str, options: Mapping[str, Any]) -> None:
    """Raise a UsageError that names the first option which a solver refuses; some tell on a run."""
    for name, value in options.items():
        zero, one = np.zeros(1), np.ones(1)
        try:
            program = Program(one, one[None], zero, one, zero, one, one)
            ENGINES[solver](program, Settings(1.0, True, 0, 0.0, 0.0, False, {name: value}))
        except Exception:  # the interfaces of solvers raise errors of several kinds
            raise UsageError(
                f"{solver} refuses the option {name!r} with the value {value!r}; see the list of "
                "options of the solver"
            ) from None
