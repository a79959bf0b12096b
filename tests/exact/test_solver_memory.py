"""Engines are freed when they are used up: nothing that solvers call back may own them."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from effort import tries

from placeopt.exact import engines, solver_registry, solvers
from placeopt.exact.program import Program

SOLVERS = ("highs", "scip", "cp-sat")
#: Megabytes that 200 calls of a solver may add.
MOST = 5.0
GROWTH = """
import sys
import numpy as np, scipy.sparse as sp
from placeopt.exact import solvers
from placeopt.exact.program import Program

rng = np.random.default_rng(0)


def solve():
    A = sp.csc_matrix(rng.integers(1, 14, (2, 40)).astype(float))
    costs = -rng.integers(1, 20, 40).astype(float)
    program = Program(costs, A, -np.inf, 60.0, 0.0, 1.0, True)
    assert solvers.solve(program, sys.argv[1]).x is not None


def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6


for _ in range(20):
    solve()
before = megabytes()
for _ in range(200):
    solve()
print(megabytes() - before)
"""


def program(whole: bool = True, limit: float = 9.0) -> Program:
    A = sp.csc_matrix(np.array([[2.0, 3.0, 5.0], [1.0, 1.0, 1.0]]))
    return Program([-2.0, -3.0, -4.0], A, -np.inf, [limit, 9.0], 0.0, 3.0, whole)


@contextmanager
def freed(monkeypatch, solver: str) -> Iterator[list[weakref.ref]]:
    """Check that all engines which are made inside are gone, without a look for garbage."""
    if solver == "cp-sat":
        pytest.importorskip("ortools")
    made: list[weakref.ref] = []
    kind = solver_registry.ENGINES[solver]

    def make(*arguments, **more):
        engine = kind(*arguments, **more)
        made.append(weakref.ref(engine))
        if hasattr(engine, "highs"):
            made.append(weakref.ref(engine.highs))
        return engine

    monkeypatch.setitem(solver_registry.ENGINES, solver, make)
    monkeypatch.setattr(solvers, "HighsEngine", make)
    gc.disable()
    try:
        yield made
    finally:
        gc.enable()
    solvers.solve(program(), solver)  # the last run is remembered until the next one begins
    assert made and sum(one() is not None for one in made[:-1]) <= 1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "one",
    [program(), program(limit=0.5), Program([-1.0], sp.csc_matrix((0, 1)), 0, 0, 0.0, 1.0, True)],
    ids=["knapsack", "only zero", "no rows"],
)
def test_an_engine_is_freed(monkeypatch, solver, one):
    with freed(monkeypatch, solver):
        assert solvers.solve(one, solver).status == "optimal"


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_engine_that_found_no_solution_is_freed(monkeypatch, solver):
    A = sp.csc_matrix(np.array([[2.0, 2.0]]))
    none = Program([1.0, 1.0], A, 3.0, 3.0, 0.0, 1.0, True)
    with freed(monkeypatch, solver):
        assert solvers.solve(none, solver).status == "infeasible"


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_engine_that_was_stopped_is_freed(monkeypatch, solver):
    with freed(monkeypatch, solver) as made:
        solvers.solve(program(), solver, seconds=1e-3)
        assert made


def test_an_engine_with_duals_is_freed(monkeypatch):
    with freed(monkeypatch, "highs"):
        assert solvers.solve(program(whole=False), want_duals=True).row_duals is not None


def test_an_engine_of_an_unbounded_program_is_freed(monkeypatch):
    endless = Program([-1.0], sp.csc_matrix((0, 1)), 0, 0, 0.0, np.inf, False)
    with freed(monkeypatch, "highs"):
        assert solvers.solve(endless).status == "unbounded"


def test_a_session_is_freed_with_its_engine(monkeypatch):
    with freed(monkeypatch, "highs"):
        session = solvers.Session(program(whole=False))
        for limit in (9.0, 8.0, 7.0):
            session.change(row_upper=np.array([limit, 9.0]))
            assert session.solve().status == "optimal"
        del session


def test_what_highs_calls_does_not_reach_its_engine(monkeypatch):
    engine = engines.HighsEngine(program(), engines.Settings(9.0, True, 0, 0.0, 0.0, False))
    gone = weakref.ref(engine)
    gc.disable()
    try:
        del engine
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("solver", SOLVERS[: tries(1, 3)])
def test_200_calls_of_an_engine(solver):
    if not sys.platform.startswith("linux"):
        pytest.skip("the memory of a process is read from /proc")
    if solver == "cp-sat":
        pytest.importorskip("ortools")
    done = subprocess.run([sys.executable, "-c", GROWTH, solver], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST
