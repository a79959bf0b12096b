"""Solver back ends: the same answers from both, honest statuses, errors that are retried, and a
clock that is kept.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hands import within

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError, UsageError
from placeopt.exact import engines, solvers
from placeopt.exact.engines import Reply
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session, solve

SOLVERS = ("highs", "scip")
#: Seed of a `random_program` that has a solution.
FEASIBLE = 1


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    rows, columns = 4, 5
    A = rng.integers(-2, 7, (rows, columns)).astype(float)
    lower = np.where(rng.random(rows) < 0.3, 3.0, -np.inf)
    return Program(
        rng.integers(-9, 9, columns),
        sp.csc_matrix(A),
        lower,
        rng.integers(2, 15, rows),
        0,
        2,
        True,
        offset=0.5,
    )


def by_enumeration(program: Program) -> float:
    best = np.inf
    for x in itertools.product(range(3), repeat=program.shape[1]):
        if program.broken(np.array(x, dtype=float)) == 0:
            best = min(best, program.value(np.array(x, dtype=float)))
    return best


def hard_program() -> Program:
    rng = np.random.default_rng(1)
    A = sp.random(1500, 2500, 0.02, format="csc", random_state=1)
    A.data = np.ceil(A.data * 20)
    return Program(
        -np.ceil(rng.random(2500) * 30),
        A,
        -np.inf,
        np.asarray(A.sum(axis=1)).ravel() // 3,
        0,
        1,
        True,
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_equals_enumeration(solver):
    statuses = set()
    for seed in range(25):
        program = random_program(seed)
        outcome, best = solve(program, solver, absolute_gap=0.99), by_enumeration(program)
        assert outcome.status == ("infeasible" if best == np.inf else "optimal")
        statuses.add(outcome.status)
        assert outcome.objective == best
        assert outcome.bound > best - 1 if best < np.inf else outcome.bound == np.inf
        if outcome.x is not None:
            assert program.broken(outcome.x) == 0
            assert (outcome.x == outcome.x.round()).all()
    assert statuses == {"optimal", "infeasible"}


@pytest.mark.parametrize("solver", SOLVERS)
def test_statuses(solver):
    row = sp.csc_matrix([[1.0, -1.0]])
    assert solve(Program([-1, 0], row, 0, 0, 0, np.inf, True), solver).status == "unbounded"
    assert solve(Program([-1, 0], row, 0, 0, 0, np.inf, False), solver).status == "unbounded"
    assert solve(Program([-1, 0], row, 0.5, 0.5, 0, 9, True), solver).status == "infeasible"
    assert solve(Program([-1, 0], row, 2, 1, 0, 9, True), solver).status == "infeasible"
    empty = solve(Program([1, 1], sp.csc_matrix((0, 2)), 0, 0, 2, 9, True), solver)
    assert (empty.status, empty.objective) == ("optimal", 4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_twice(solver):
    first, second = (solve(random_program(FEASIBLE), solver, seed=5) for _ in range(2))
    assert (first.x == second.x).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_start_is_used_and_a_wrong_one_ignored(solver):
    program = random_program(FEASIBLE)
    best = solve(program, solver)
    assert solve(program, solver, start=best.x).objective == best.objective
    assert solve(program, solver, start=np.full(5, 77.0)).objective == best.objective
    assert solve(program, solver, start=np.full(3, 1.0)).objective == best.objective


@pytest.mark.parametrize("solver", SOLVERS)
def test_clock(solver):
    with within(0.5, 2):
        outcome = solve(hard_program(), solver, seconds=0.5)
    assert outcome.status in ("feasible", "unknown")
    assert outcome.bound <= outcome.objective


def test_cancelling_stops_the_solver():
    budget = Budget(seconds=1000)
    timer = threading.Timer(0.3, budget.cancel)
    timer.start()
    with within(0.3, 2.2):
        outcome = solve(hard_program(), budget=budget)
    assert outcome.status in ("feasible", "unknown")
    assert solve(hard_program(), budget=budget).status == "unknown"


class Faulty:
    """A HiGHS that fails in a given way the first times it is asked."""

    def __init__(self, failures, reply):
        self.failures, self.reply, self.asked = failures, reply, []

    def __call__(self, program, settings, start):
        self.asked.append(settings)
        engine = engines.HighsEngine(program, settings, start)
        if len(self.asked) <= self.failures:
            engine.reply = lambda: self.reply
        return engine


@pytest.mark.parametrize(
    "wrong",
    [
        Reply("error", message="Solve error"),
        Reply("optimal", np.full(5, 50.0), 0.0),
        Reply("optimal", np.full(5, 0.5), 0.0),
        Reply("optimal", np.full(5, np.nan), 0.0),
        Reply("optimal"),
    ],
)
def test_a_solver_that_fails_is_asked_again(monkeypatch, wrong):
    program = random_program(FEASIBLE)
    faulty = Faulty(2, wrong)
    monkeypatch.setitem(solvers.ENGINES, "highs", faulty)
    outcome = solve(program)
    assert (outcome.status, outcome.attempts, outcome.objective) == (
        "optimal",
        3,
        by_enumeration(program),
    )
    assert [s.presolve for s in faulty.asked] == [True, False, True]


@pytest.mark.parametrize("off", [-1.0, 1.0])
def test_what_is_optimal_is_proven(monkeypatch, off):
    """HiGHS 1.16.0 calls a start optimal where its presolve loses an offset."""
    program = random_program(FEASIBLE)
    best = solve(program)
    faulty = Faulty(1, Reply("optimal", best.x, best.objective + off))
    monkeypatch.setitem(solvers.ENGINES, "highs", faulty)
    outcome = solve(program, start=best.x)
    assert (outcome.status, outcome.attempts, outcome.bound) == ("optimal", 2, best.objective)


def test_a_solver_that_keeps_failing_is_an_error(monkeypatch):
    monkeypatch.setitem(solvers.ENGINES, "highs", Faulty(99, Reply("error", message="Solve error")))
    with pytest.raises(SolverError, match="Solve error"):
        solve(random_program(FEASIBLE))

    def broken(*_):
        raise RuntimeError("no licence")

    monkeypatch.setitem(solvers.ENGINES, "highs", broken)
    with pytest.raises(SolverError, match="no licence"):
        solve(random_program(FEASIBLE))


def test_a_run_that_does_not_end_is_left_behind(monkeypatch):
    released, ended = threading.Event(), []

    class Deaf(engines.HighsEngine):
        def run(self):
            released.wait(600)
            ended.append(True)

    monkeypatch.setitem(solvers.ENGINES, "highs", Deaf)
    assert solve(random_program(FEASIBLE), seconds=0.2).status == "unknown"
    assert not ended
    released.set()


def test_duals_and_session():
    A = sp.csc_matrix([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    program = Program([1, 1, 1], A, [4, 3], np.inf, 0, np.inf, False)
    outcome = solve(program, want_duals=True)
    assert outcome.objective == pytest.approx(3)
    assert program.c - A.T @ outcome.row_duals == pytest.approx(outcome.reduced_costs)
    assert outcome.row_duals @ [4, 3] == pytest.approx(outcome.objective)
    session = Session(program)
    assert session.solve().objective == pytest.approx(3)
    session.change(row_lower=np.array([4.0, 5.0]))
    assert session.solve().objective == pytest.approx(5)
    session.add_columns([0.5], sp.csc_matrix([[0.0], [1.0]]))
    changed = session.solve()
    assert (
        changed.objective == pytest.approx(solve(session.program).objective) == pytest.approx(3.5)
    )
    assert changed.row_duals @ [4, 5] == pytest.approx(3.5)
    session.change(c=np.array([1.0, 1.0, 1.0, 5.0]), col_upper=np.array([9.0, 9.0, 0.5, 9.0]))
    assert session.solve().objective == pytest.approx(solve(session.program).objective)
    with pytest.raises(UsageError, match="integrality"):
        session.change(integrality=np.ones(4))


def test_a_session_survives_an_error(monkeypatch):
    session = Session(random_program(FEASIBLE))
    monkeypatch.setattr(
        engines.HighsEngine, "reply", lambda self: Reply("error", message="Solve error")
    )
    with pytest.raises(SolverError):
        session.solve()
    monkeypatch.undo()
    assert session.solve().objective == by_enumeration(session.program)


def test_bad_arguments():
    with pytest.raises(UsageError, match="did you mean 'highs'"):
        solve(random_program(FEASIBLE), "high")
    with pytest.raises(UsageError, match="duals"):
        solve(random_program(FEASIBLE), "scip", want_duals=True)
    with pytest.raises(ValueError, match="row_upper"):
        Program([1], sp.csc_matrix([[1.0]]), 0, np.nan, 0, 1, True)
    with pytest.raises(ValueError, match="finite"):
        Program([np.inf], sp.csc_matrix([[1.0]]), 0, 1, 0, 1, True)


def test_needs_no_pyomo_and_says_nothing():
    code = "import sys, placeopt.exact.solvers as s, numpy as np, scipy.sparse as sp\n"
    code += "program = s.Program([1, 2], sp.csc_matrix([[1., 1.]]), 1, 3, 0, 2, True)\n"
    code += "for name in ('highs', 'scip'): s.solve(program, name)\n"
    code += "assert 'pyomo' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_presolve_keeps_the_rows_of_an_assignment():
    """A program that HiGHS 1.15.1 calls infeasible unless its presolve leaves out a rule."""
    costs = [
        [1, 2, 6, 7, 8, 10, 5, 19, 13, 6, 11, 14, 2, 15, 5, 18, 2, 18, 9, 19, 6, 4, 1, 19, 2],
        [8, 9, 9, 20, 17, 13, 17, 12, 4, 19, 10, 9, 10, 13, 11, 13, 15, 7, 1, 4, 20, 14, 11, 4, 11],
        [8, 14, 3, 12, 2, 17, 10, 13, 3, 6, 4, 2, 7, 16, 19, 15, 17, 15, 18, 9, 14, 5, 17, 19, 9],
    ]
    agents, tasks = sp.kron(sp.eye(5), np.ones((1, 5))), sp.kron(np.ones((1, 5)), sp.eye(5))
    rows = sp.vstack([agents, tasks, sp.csr_matrix(costs)], format="csc")
    lower = np.array([1.0] * 10 + [-np.inf] * 3)
    upper = np.array([1.0] * 10 + [np.inf, 43.5, 46.5])
    program = Program(np.array(costs[0]), rows, lower, upper, 0, 1, True)
    assert solve(program).objective == solve(program, "scip").objective == 39
    if importlib.metadata.version("highspy") == "1.15.1":
        assert solve(program, options={"presolve_rule_off": 0}).status == "infeasible"
