"""One way to call a solver: arrays in, an honest outcome out.

`solve` minimises a `Program` by HiGHS or SCIP on one thread with a fixed seed. A solver's error is
retried with other settings and never read as an answer; every solution is checked against the rows
before it is believed; the clock is ours, because solvers overrun theirs. `Session` keeps a HiGHS
model between solves, for linear programs that grow.

A solver may take seconds to notice that it is to stop, and its thread cannot be ended from outside.
Where the interpreter ends first, such a thread must neither call back into Python nor come back to
it: CPython before 3.14 then ends the thread by unwinding its stack, which C++ code that may not
throw answers with ``std::terminate``, the end of the process by SIGABRT. Nor may the C library
destroy the static objects of the solver while it works with them.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError, UsageError, require_known
from placeopt.exact.engines import Engine, HighsEngine, Reply, Settings
from placeopt.exact.program import Program
from placeopt.exact.solver_registry import ENGINES

if TYPE_CHECKING:
    import scipy.sparse as sp


#: How often the calling thread looks at the clock, the budget and pending signals.
_POLL_SECONDS = 0.05
#: How long a solver may take to notice its own time limit before it is told to stop, and then to
#: stop before it is left behind.
_SLACK_SECONDS, _GRACE_SECONDS = 0.1, 0.5
#: Largest violation of a row, relative to the size of its terms, and of integrality that is still
#: rounding.
_ROW_TOLERANCE, _INTEGER_TOLERANCE = 2e-6, 1e-5
#: How far a proven bound may be from the value of an optimal solution, beside the gap asked for, as
#: a share of the value: rounding, more of it where variables become whole.
_VALUE_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Outcome(Reply):
    """What is known after a solve: a `Reply` that was checked.

    Attributes
    ----------
    status : str
        ``optimal`` (within the gap asked for), ``feasible`` (a solution, not proven),
        ``infeasible``, ``unbounded``, or ``unknown`` (stopped without a solution).
    x : ndarray or None
        The solution, whole where it must be whole.
    bound : float
        Proven lower bound; inf where infeasible.
    row_duals, reduced_costs : ndarray or None
        Of a linear program, when asked for: a dual is the change of the optimum per unit of the
        row's right-hand side.
    basis : Basis or None
        With the duals.
    objective : float
        Value of `x`; inf without one.
    seconds : float
    attempts : int
        Solver calls made, retries included.
    """

    objective: float = math.inf
    seconds: float = 0.0
    attempts: int = 1


def solve(
    program: Program,
    solver: str = "highs",
    *,
    seconds: float = math.inf,
    budget: Budget | None = None,
    start: np.ndarray | None = None,
    relative_gap: float = 0.0,
    absolute_gap: float = 1e-6,
    want_duals: bool = False,
    seed: int = 0,
    careful: bool = False,
    options: Mapping[str, Any] | None = None,
    tolerance: float | None = None,
) -> Outcome:
    """Minimise a program.

    Parameters
    ----------
    seconds : float
        Time limit of this call; the rest of `budget` counts as well.
    budget : Budget, optional
        Its cancellation stops the solver within half a second, from a signal handler too.
    start : ndarray, optional
        A solution to start from; one that is not feasible is ignored.
    relative_gap, absolute_gap : float
        When an integer program counts as solved. For whole-number objectives give an
        `absolute_gap` just below 1.
    want_duals : bool
        Return row duals and reduced costs (linear programs, HiGHS).
    careful : bool
        Begin without presolve: for a second opinion.
    options : mapping, optional
        The solver's own options, by its names; the limits and gaps above come first.
    tolerance : float, optional
        The largest violation of a row or of integrality; by default the solver's own, which is a
        millionth or less.

    Raises
    ------
    SolverError
        The solver failed, and failed again without presolve and with another seed.
    UsageError
        There is no such solver, or it gives no duals.
    """
    require_known("solver", solver, ENGINES)
    if want_duals and solver != "highs":
        raise UsageError("duals are given by the solver 'highs' only")
    gaps, own = (relative_gap, absolute_gap), options or {}
    settings = Settings(seconds, True, seed, *gaps, want_duals, own, tolerance)
    return _solve_with_retries(program, solver, settings, budget, start, careful)


def _solve_with_retries(
    program: Program,
    solver: str,
    settings: Settings,
    budget: Budget | None,
    start: np.ndarray | None,
    careful: bool,
) -> Outcome:
    """Attempt a program with one setting after another until an answer can be believed."""
    begun = time.perf_counter()
    if (program.row_lower > program.row_upper).any() or (
        program.col_lower > program.col_upper
    ).any():
        return Outcome("infeasible", bound=math.inf, attempts=0)
    if start is not None and not _is_solution(program, start):
        start = None
    message = ""
    plans = [(True, 0), (False, 0), (True, 1), (False, 2)][int(careful) :]
    for attempt, (presolve, other) in enumerate(plans, start=1):
        left = _seconds_left(begun, settings.seconds, budget)
        if left <= 0:
            return Outcome("unknown", seconds=time.perf_counter() - begun, attempts=attempt - 1)
        setting = replace(settings, seconds=left, presolve=presolve, seed=settings.seed + other)
        reply = _attempt(solver, program, setting, start, budget)
        if reply.status == "endless":
            left = max(1e-3, _seconds_left(begun, settings.seconds, budget))
            reply = _told_apart(solver, program, replace(setting, seconds=left), budget)
        outcome, message = _verified_outcome(program, reply, setting)
        if outcome is not None:
            return replace(outcome, seconds=time.perf_counter() - begun, attempts=attempt)
    raise SolverError(
        f"{solver} failed {len(plans)} times, with and without presolve; the last time: {message}"
    )


def _seconds_left(begun: float, seconds: float, budget: Budget | None) -> float:
    left = seconds - (time.perf_counter() - begun)
    if budget is not None:
        left = 0.0 if budget.out_of_time else min(left, budget.seconds_left)
    return left


def _attempt(
    solver: str,
    program: Program,
    settings: Settings,
    start: np.ndarray | None,
    budget: Budget | None,
) -> Reply:
    try:
        engine = ENGINES[solver](program, settings, start)
    except (
        Exception
    ) as error:  # whatever a solver's own interface raises is a failure of this attempt
        return Reply("error", message=f"{type(error).__name__}: {error}")
    return _run(engine, settings.seconds, budget)


def _told_apart(solver: str, program: Program, settings: Settings, budget: Budget | None) -> Reply:
    """Return whether a program is infeasible or unbounded: without costs nothing is unbounded."""
    free = replace(program, c=np.zeros_like(program.c))
    status = _attempt(solver, free, settings, None, budget).status
    if status in ("optimal", "feasible"):
        return Reply("unbounded")
    if status in ("infeasible", "unknown"):
        return Reply(status)
    return Reply("error", message=f"{solver} cannot tell unbounded from infeasible")


def _run(engine: Engine, seconds: float, budget: Budget | None) -> Reply:
    """Run an engine in a thread of its own, so that the clock and signals are looked at."""
    done = threading.Event()
    failures: list[str] = []

    def work() -> None:
        try:
            engine.run()
        except Exception as error:
            failures.append(str(error) or type(error).__name__)
        finally:
            done.set()

    deadline = time.perf_counter() + seconds + _SLACK_SECONDS
    watch(engine, done)
    threading.Thread(target=work, name="placeopt-solver", daemon=True).start()
    try:
        while not done.wait(_POLL_SECONDS):
            if time.perf_counter() >= deadline or (budget is not None and budget.cancelled):
                break
    finally:  # also where a signal handler raises
        if not done.is_set():
            engine.stop()
            done.wait(_GRACE_SECONDS)
    if failures:
        return Reply("error", message=failures[0])
    return engine.reply() if done.is_set() else engine.partial_reply()


def _verified_outcome(
    program: Program, reply: Reply, settings: Settings
) -> tuple[Outcome | None, str]:
    """Check what a solver says; None and why where it cannot be believed.

    HiGHS 1.16.0 may lose the offset that its presolve finds where it is given a start: it takes a
    part of the value for the whole, and calls the start optimal.
    """
    if reply.status in ("error", "endless"):
        return None, reply.message
    if reply.status == "infeasible":
        return Outcome("infeasible", bound=math.inf), ""
    if reply.status == "unbounded":
        return Outcome("unbounded"), ""
    x = reply.x if reply.x is None else _whole(program, reply.x)
    if x is not None and program.broken(x) > _ROW_TOLERANCE:
        if reply.status == "optimal":
            return None, "the solution breaks a row of the program"
        x = None
    if x is None:
        return (
            (None, "optimal without a solution")
            if reply.status == "optimal"
            else (Outcome("unknown", bound=reply.bound), "")
        )
    objective = program.value(x)
    apart = abs(objective - reply.bound)
    if reply.status == "optimal" and _allowed(objective, settings) < apart < math.inf:
        return None, f"optimal at {objective:.9g}, but proven is {reply.bound:.9g}"
    known = vars(reply) | {"x": x, "bound": min(reply.bound, objective)}
    return Outcome(**known, objective=objective), ""


def _allowed(objective: float, settings: Settings) -> float:
    """Return how far the bound of an optimal solution may be from its objective."""
    gap = max(settings.absolute_gap, settings.relative_gap * abs(objective))
    return gap + _VALUE_TOLERANCE * (1 + abs(objective))


def _whole(program: Program, x: np.ndarray) -> np.ndarray | None:
    """Return `x` rounded where it must be whole, None where that would change it."""
    if x.shape != program.c.shape or not np.isfinite(x).all():
        return None
    rounded = np.where(program.integrality, np.round(x), x)
    return rounded if np.abs(rounded - x).max(initial=0.0) <= _INTEGER_TOLERANCE else None


def _is_solution(program: Program, x: np.ndarray) -> bool:
    whole = _whole(program, np.asarray(x, dtype=float))
    return whole is not None and program.broken(whole) <= _ROW_TOLERANCE


class Session:
    """A program that changes between solves.

    HiGHS keeps it, and a linear one continues from its last basis.

    Parameters
    ----------
    program : Program

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> session = Session(Program([1.0], sp.csc_matrix([[1.0]]), 2.0, np.inf, 0.0, np.inf, False))
    >>> session.solve().objective
    2.0
    >>> session.add_columns([0.5], sp.csc_matrix([[1.0]]))
    >>> session.solve().objective
    1.0
    """

    def __init__(self, program: Program):
        self.program = program
        self._engine: HighsEngine | None = None

    def change(self, **arrays: np.ndarray) -> None:
        """Replace arrays of the program by name: ``c`` and the bounds of rows and columns."""
        if unknown := arrays.keys() - {"c", "row_lower", "row_upper", "col_lower", "col_upper"}:
            raise UsageError(f"a session cannot change {', '.join(sorted(unknown))}")
        old, changes = self.program, dict[str, Any](arrays)
        self.program = replace(old, **changes)
        if self._engine is not None:
            self._engine.change(old, self.program, arrays.keys())

    def add_columns(self, c: np.ndarray, A: sp.csc_matrix) -> None:
        """Add real columns of at least 0 with costs `c` and coefficients `A`.

        `A` is of shape (rows, new columns).
        """
        import scipy.sparse as sp

        free, zero = np.full(A.shape[0], math.inf), np.zeros(A.shape[1])
        more = Program(c, A, -free, free, zero, zero + math.inf, zero)
        old = self.program
        columns: dict[str, Any] = {
            name: np.concatenate((getattr(old, name), getattr(more, name)))
            for name in ("c", "col_lower", "col_upper", "integrality")
        }
        self.program = replace(old, A=sp.hstack((old.A, more.A), format="csc"), **columns)
        if self._engine is not None:
            self._engine.add_columns(more)

    def solve(
        self,
        *,
        seconds: float = math.inf,
        budget: Budget | None = None,
        start: np.ndarray | None = None,
        relative_gap: float = 0.0,
        absolute_gap: float = 1e-6,
        tolerance: float | None = None,
    ) -> Outcome:
        """Minimise the program as it stands now, with duals if it is linear.

        Arguments and result as of `placeopt.exact.solvers.solve`.
        """
        begun = time.perf_counter()
        left = _seconds_left(begun, seconds, budget)
        duals = not self.program.integrality.any()
        if left > 0:
            gaps = (relative_gap, absolute_gap)
            settings = Settings(left, True, 0, *gaps, duals, tolerance=tolerance)
            if self._engine is None:
                self._engine = HighsEngine(self.program, settings, start)
            else:
                self._engine.reset_for_rerun(settings, start)
            engine = self._engine
            reply = _run(engine, left, budget)
            outcome, _ = _verified_outcome(self.program, reply, settings)
            if outcome is None or outcome.status in ("feasible", "unknown"):
                self._engine = None  # it may be in a bad state, or still running
            if outcome is not None:
                return replace(outcome, seconds=time.perf_counter() - begun)
        return solve(
            self.program,
            seconds=seconds - (time.perf_counter() - begun),
            budget=budget,
            start=start,
            relative_gap=relative_gap,
            absolute_gap=absolute_gap,
            want_duals=duals,
            careful=True,
            tolerance=tolerance,
        )


#: How long the end of the interpreter waits for runs that were told to stop.
_LAST_SECONDS = 0.2

#: Runs that may not have ended, by the event that says so.
_RUNS: dict[threading.Event, Engine] = {}
_leaving = threading.Event()


def watch(engine: Engine, done: threading.Event) -> None:
    """Remember a run that is about to begin; `done` is set where it ends.

    While the interpreter ends, a thread in the background begins none any more: it ends here.
    """
    for ended in [other for other in list(_RUNS) if other.is_set()]:
        _RUNS.pop(ended, None)
    _RUNS[done] = engine
    if _leaving.is_set() and threading.current_thread() is not threading.main_thread():
        raise SystemExit


def _leave() -> None:
    """Stop what runs; where that takes too long, let the process end beside it."""
    _leaving.set()
    left = {done: engine for done, engine in list(_RUNS.items()) if not done.is_set()}
    for engine in left.values():
        engine.stop()
        engine.disable_callbacks()
    deadline = time.perf_counter() + _LAST_SECONDS
    if not all(done.wait(max(0.0, deadline - time.perf_counter())) for done in left):
        with suppress(OSError, AttributeError):  # other C libraries do not unwind such threads
            _end_beside()


def _end_beside() -> None:
    """Let threads sleep that would end the process; end it before static objects are destroyed.

    The exit code remains: the C library hands it to ``_exit``.
    """
    libc, runtime = ctypes.CDLL(None), ctypes.CDLL("libstdc++.so.6")
    pointer = ctypes.c_void_p
    runtime._ZSt13set_terminatePFvvE.argtypes = [pointer]  # std::set_terminate
    runtime._ZSt13set_terminatePFvvE(ctypes.cast(libc.pause, pointer))
    libc.fflush(None)
    libc.on_exit.argtypes = [pointer, pointer]
    libc.on_exit(ctypes.cast(libc._exit, pointer), None)


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RUNS.clear)  # threads do not follow into a child
