"""What is particular to each solver: how a program is handed over, stopped, and its answer read.

Used through `solvers` only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from placeopt.exact.program import Program


@dataclass(frozen=True)
class Settings:
    """How one run of a solver is set; `options` are the solver's own, by its names.

    `tolerance` is the largest violation of a row or of integrality; None: the solver's own.
    """

    seconds: float
    presolve: bool
    seed: int
    relative_gap: float
    absolute_gap: float
    want_duals: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float | None = None


@dataclass(frozen=True, eq=False)
class Basis:
    """Which columns and rows of a vertex are basic, that is not at a bound."""

    columns: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Reply:
    """What a solver says.

    `status` is ``optimal``, ``feasible``, ``infeasible``, ``unbounded``, ``endless`` (infeasible or
    unbounded), ``unknown`` or ``error``.
    """

    status: str
    x: np.ndarray | None = None
    bound: float = -math.inf
    message: str = ""
    row_duals: np.ndarray | None = None
    reduced_costs: np.ndarray | None = None
    basis: Basis | None = None


class Engine(ABC):
    """One solver holding one program."""

    @abstractmethod
    def run(self) -> None:
        """Solve; blocks, and is called in a thread of its own."""

    @abstractmethod
    def stop(self) -> None:
        """Ask `run` to end soon; called from another thread."""

    @abstractmethod
    def reply(self) -> Reply:
        """Return the answer, once `run` has ended."""

    def partial_reply(self) -> Reply:
        """Return what is known while `run` does not end: nothing, of most solvers."""
        return Reply("unknown")

    def disable_callbacks(self) -> None:  # noqa: B027 (not every solver has any)
        """Let a run that nobody waits for touch Python no more; most solvers never do."""


# -- HiGHS -----------------------------------------------------------------------------------------

#: Rules that presolve leaves out, a bit each: rule 16 enumerates the solutions of single rows. Then
#: version 1.15.1 may lose a row ``sum == 1`` and call a feasible program infeasible (HiGHS issue
#: 3216; `benchmarks/enumeration` counts it).
_PRESOLVE_RULES_OFF = 1 << 16


def new_highs() -> Any:
    """Return a HiGHS without a program.

    highspy keeps the class for itself. The public `highspy.Highs` is that class with a layer for
    models in Python, which is not used here; it serves where highspy has none other.
    """
    import highspy

    try:
        return highspy._Highs()  # type: ignore[attr-defined]
    except AttributeError:
        return highspy.Highs()


@dataclass
class _Heard:
    """What a run has called back, and what it is told."""

    stopped: bool = False
    best: tuple[float, np.ndarray] | None = None
    bound: float = -math.inf


class HighsEngine(Engine):
    """HiGHS through highspy, by arrays."""

    def __init__(self, program: Program, settings: Settings, start: np.ndarray | None = None):
        import highspy

        self._api = highspy
        self.highs = new_highs()
        self._heard = _Heard()
        self._option("output_flag", False)
        self._option("presolve_rule_off", _PRESOLVE_RULES_OFF)
        for name, value in settings.options.items():
            self._option(name, value)
        self._option("threads", 1)
        self._pass(program)
        self._listen()
        self.reset_for_rerun(settings, start)

    def _option(self, name: str, value: Any) -> None:
        if self.highs.setOptionValue(name, value) == self._api.HighsStatus.kError:
            raise ValueError(f"HiGHS refuses the option {name} = {value}")

    def _pass(self, program: Program) -> None:
        rows, columns = program.shape
        self._integer = bool(program.integrality.any())
        self._refused = (
            self.highs.passModel(
                columns,
                rows,
                program.A.nnz,
                int(self._api.MatrixFormat.kColwise),
                int(self._api.ObjSense.kMinimize),
                program.offset,
                program.c,
                program.col_lower,
                program.col_upper,
                program.row_lower,
                program.row_upper,
                program.A.indptr.astype(np.int32),
                program.A.indices.astype(np.int32),
                program.A.data,
                program.integrality.astype(np.int32),
            )
            == self._api.HighsStatus.kError
        )

    def _listen(self) -> None:
        """Have the solver call back.

        What it calls must not reach this engine: HiGHS would own itself then, through C++, where no
        garbage collector looks.
        """
        kinds, heard = self._api.cb.HighsCallbackType, self._heard
        self._kinds = (
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
            kinds.kCallbackMipImprovingSolution,
        )

        def on_event(kind: Any, message: str, said: Any, answer: Any, data: Any) -> None:
            if kind == kinds.kCallbackMipImprovingSolution:
                x = np.array(said.mip_solution, dtype=float)
                heard.best = (said.objective_function_value, x)
                return
            if kind == kinds.kCallbackMipInterrupt:
                heard.bound = max(heard.bound, said.mip_dual_bound)
            if heard.stopped:
                answer.user_interrupt = True

        self.highs.setCallback(on_event, None)
        for kind in self._kinds:
            self.highs.startCallback(kind)

    def reset_for_rerun(self, settings: Settings, start: np.ndarray | None) -> None:
        """Prepare another run."""
        self._settings, heard = settings, self._heard
        heard.stopped, heard.best, heard.bound = False, None, -math.inf
        self._option("presolve", "choose" if settings.presolve else "off")
        self._option("random_seed", settings.seed % 2**31)
        self._option("mip_rel_gap", settings.relative_gap)
        self._option("mip_abs_gap", settings.absolute_gap)
        if settings.tolerance is not None:
            for kind in ("primal", "dual", "mip"):
                self._option(f"{kind}_feasibility_tolerance", settings.tolerance)
        limit = (
            self.highs.getRunTime() + settings.seconds
        )  # its clock runs on from one solve to the next
        self._option("time_limit", limit if math.isfinite(limit) else self._api.kHighsInf)
        if start is not None and self._integer:
            self.highs.setSolution(
                len(start), np.arange(len(start), dtype=np.int32), np.asarray(start, dtype=float)
            )

    def change(self, old: Program, program: Program, names: Iterable[str]) -> None:
        """Take over the named arrays of a program of the same shape."""
        columns = program.shape[1]
        names = set(names)
        if "c" in names:
            self.highs.changeColsCost(columns, np.arange(columns, dtype=np.int32), program.c)
        if names & {"row_lower", "row_upper"}:
            for row in np.flatnonzero(
                (old.row_lower != program.row_lower) | (old.row_upper != program.row_upper)
            ).tolist():
                self.highs.changeRowBounds(row, program.row_lower[row], program.row_upper[row])
        if names & {"col_lower", "col_upper"}:
            self.highs.changeColsBounds(
                columns, np.arange(columns, dtype=np.int32), program.col_lower, program.col_upper
            )

    def add_columns(self, more: Program) -> None:
        """Add the real columns of another program with the same rows."""
        A = more.A
        starts, indices = A.indptr[:-1].astype(np.int32), A.indices.astype(np.int32)
        self.highs.addCols(
            A.shape[1], more.c, more.col_lower, more.col_upper, A.nnz, starts, indices, A.data
        )

    def run(self) -> None:
        """Solve."""
        if not self._refused:
            self.highs.run()

    def stop(self) -> None:
        """Ask the run to end."""
        self._heard.stopped = True

    def disable_callbacks(self) -> None:
        """Call back no more."""
        for kind in self._kinds:
            self.highs.stopCallback(kind)

    def partial_reply(self) -> Reply:
        """Return the best that the callbacks have brought."""
        heard = self._heard
        x = None if heard.best is None else heard.best[1]
        bound = heard.bound if self._integer else -math.inf
        return Reply("unknown" if x is None else "feasible", x, bound)

    def reply(self) -> Reply:
        """Return the answer."""
        if self._refused:
            return Reply("error", message="HiGHS refuses the program")
        api, status = self._api.HighsModelStatus, self.highs.getModelStatus()
        limits = [api.kTimeLimit, api.kInterrupt, api.kIterationLimit]
        limits += [api.kSolutionLimit, api.kMemoryLimit]
        if status == api.kInfeasible:
            return Reply("infeasible")
        if status == api.kUnbounded and not self._integer:
            return Reply("unbounded")
        if status in (api.kUnbounded, api.kUnboundedOrInfeasible):
            return Reply("endless")
        if status in (api.kOptimal, api.kModelEmpty):
            return self._solution("optimal")
        if status in limits:
            return self._solution("feasible")
        return Reply(
            "error", message=f"HiGHS ended with {self.highs.modelStatusToString(status)!r}"
        )

    def _solution(self, status: str) -> Reply:
        info, solution = self.highs.getInfo(), self.highs.getSolution()
        feasible = info.primal_solution_status == self._api.SolutionStatus.kSolutionStatusFeasible
        x = np.array(solution.col_value, dtype=float) if feasible else None
        if x is None and self._heard.best is not None:
            x = self._heard.best[1]
        if status == "feasible" and x is None:
            status = "unknown"
        bound = (
            info.mip_dual_bound
            if self._integer
            else (info.objective_function_value if status == "optimal" else -math.inf)
        )
        bound = bound if bound < math.inf else -math.inf
        if not self._settings.want_duals or self._integer or status != "optimal":
            return Reply(status, x, bound)
        return Reply(
            status,
            x,
            bound,
            row_duals=np.array(solution.row_dual, dtype=float),
            reduced_costs=np.array(solution.col_dual, dtype=float),
            basis=self._basis(),
        )

    def _basis(self) -> Basis | None:
        basis, basic = self.highs.getBasis(), self._api.HighsBasisStatus.kBasic
        if not basis.valid:
            return None
        columns, rows = ([s == basic for s in of] for of in (basis.col_status, basis.row_status))
        return Basis(np.array(columns, dtype=bool), np.array(rows, dtype=bool))


# -- SCIP ------------------------------------------------------------------------------------------

_SCIP_LIMITS = {
    "timelimit",
    "userinterrupt",
    "nodelimit",
    "totalnodelimit",
    "stallnodelimit",
    "memlimit",
    "sollimit",
    "bestsollimit",
    "restartlimit",
}


class ScipEngine(Engine):
    """SCIP through pyscipopt."""

    def __init__(self, program: Program, settings: Settings, start: np.ndarray | None = None):
        import pyscipopt

        self.model = model = pyscipopt.Model()
        model.hideOutput()
        model.setParams(dict(settings.options))
        columns = zip(
            program.c.tolist(),
            _open(program.col_lower),
            _open(program.col_upper),
            program.integrality.tolist(),
            strict=True,
        )
        self.variables = [
            model.addVar(lb=lower, ub=upper, obj=cost, vtype="I" if whole else "C")
            for cost, lower, upper, whole in columns
        ]
        model.addObjoffset(program.offset)
        self._add_rows(program, pyscipopt)
        model.setParams(
            {
                "limits/time": min(settings.seconds, 1e20),
                "limits/gap": settings.relative_gap,
                "limits/absgap": settings.absolute_gap,
                "randomization/randomseedshift": settings.seed % 2**31,
                "misc/catchctrlc": False,
                "parallel/maxnthreads": 1,
                "timing/clocktype": 2,
            }
        )
        if settings.tolerance is not None:
            tolerance = {
                f"numerics/{kind}": settings.tolerance for kind in ("feastol", "sumepsilon")
            }
            model.setParams(tolerance)
        if not settings.presolve:
            model.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
        if start is not None:
            self._offer(start)

    def _offer(self, start: np.ndarray) -> None:
        solution = self.model.createSol()
        for variable, value in zip(self.variables, map(float, start), strict=True):
            self.model.setSolVal(solution, variable, value)
        self.model.addSol(solution)

    def _add_rows(self, program: Program, api: Any) -> None:
        A = program.A.tocsr()
        lower, upper = _open(program.row_lower), _open(program.row_upper)
        keys = [
            next(iter((1.0 * variable).terms)) for variable in self.variables
        ]  # a row is a mapping from these to its coefficients
        indices, data, ends = A.indices.tolist(), A.data.tolist(), A.indptr.tolist()
        for row in range(A.shape[0]):
            own = slice(ends[row], ends[row + 1])
            if lower[row] is None and upper[row] is None:
                continue
            expression = api.Expr(
                {keys[j]: value for j, value in zip(indices[own], data[own], strict=True)}
            )
            self.model.addCons(api.ExprCons(expression, lower[row], upper[row]))

    def run(self) -> None:
        """Solve."""
        self.model.optimizeNogil()

    def stop(self) -> None:
        """Ask the run to end."""
        self.model.interruptSolve()

    def reply(self) -> Reply:
        """Return the answer."""
        status = self.model.getStatus()
        if status in ("infeasible", "unbounded"):
            return Reply(status)
        if status == "inforunbd":
            return Reply("endless")
        if status not in ("optimal", "gaplimit", *_SCIP_LIMITS):
            return Reply("error", message=f"SCIP ended with {status!r}")
        x = None
        if self.model.getNSols() > 0:
            best = self.model.getBestSol()
            x = np.array(
                [self.model.getSolVal(best, variable) for variable in self.variables], dtype=float
            )
        bound = self.model.getDualbound()
        bound = bound if abs(bound) < self.model.infinity() else -math.inf
        if status in ("optimal", "gaplimit"):
            return Reply("optimal", x, bound)
        return Reply("unknown" if x is None else "feasible", x, bound)


def _open(bounds: np.ndarray) -> list[float | None]:
    """Return bounds with None for the infinite ones."""
    return [value if math.isfinite(value) else None for value in bounds.tolist()]
