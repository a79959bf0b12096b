"""Which solvers there are, what each needs, and which one serves a model by itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.core.errors import MissingExtraError, UnsupportedError, require_known
from placeopt.exact import pyomo_solvers
from placeopt.exact.cp_sat import CpSatEngine, WholeProgram
from placeopt.exact.engines import Engine, HighsEngine, ScipEngine
from placeopt.exact.highs import new_highs
from placeopt.exact.program import Program

#: The distribution that each solver comes in.
LIBRARIES = {
    "highs": "highspy",
    "scip": "pyscipopt",
    "cp-sat": "ortools",
    **dict.fromkeys(pyomo_solvers.INTERFACES, "pyomo"),
}
#: Solvers by name.
ENGINES: dict[str, Callable[..., Engine]] = {
    "highs": HighsEngine,
    "scip": ScipEngine,
    "cp-sat": CpSatEngine,
    **pyomo_solvers.ENGINES,
}

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
    if name in pyomo_solvers.INTERFACES and pyomo_solvers.found(name) is None:
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
    """Raise a ValueError that names the first option which a solver refuses."""
    for name, value in options.items():
        try:
            accepted = _accepts(solver, name, value)
        except Exception:  # the interfaces of solvers raise errors of several kinds
            accepted = False
        if not accepted:
            raise ValueError(f"{solver} refuses the option {name!r} with the value {value!r}")


def _accepts(solver: str, name: str, value: Any) -> bool:
    if solver == "scip":
        import pyscipopt

        pyscipopt.Model().setParam(name, value)
        return True
    if solver in pyomo_solvers.INTERFACES:
        return True  # found out when the solver runs
    if solver == "cp-sat":
        from ortools.sat.python import cp_model

        setattr(cp_model.CpSolver().parameters, name, value)
        return True
    import highspy

    highs = new_highs()
    highs.setOptionValue("output_flag", False)
    return bool(highs.setOptionValue(name, value) == highspy.HighsStatus.kOk)
