"""Processes that end while a solver still works: with their own exit code, and not by a signal."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from effort import tries

#: A program that takes a solver long, and an interpreter that takes long to take itself apart.
HARD = """
import sys, threading, time
import numpy as np, scipy.sparse as sp
from placeopt.exact import cp_sat, engines, solver_registry, solvers
from placeopt.exact.program import Program


class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.8)


slow = Slow()
rng = np.random.default_rng(1)
rows, columns = 300, 600
A = sp.random(rows, columns, 0.1, random_state=rng, format="csc")
A.data = rng.integers(1, 50, A.nnz).astype(float)
free = np.full(rows, -np.inf)
ones, half = np.ones(columns), np.asarray(A.sum(axis=1)).ravel() / 4
program = Program(-rng.integers(1, 100, columns), A, free, half, 0 * ones, ones, ones == 1)
"""
#: A solver that is told to stop in vain and ends while the interpreter ends.
DEAF = (
    HARD
    + """
solvers._GRACE_SECONDS = solvers._SLACK_SECONDS = 0.0


class Highs(engines.HighsEngine):
    def stop(self):
        pass

    def reset_for_rerun(self, settings, start):
        super().reset_for_rerun(settings, start)
        self._option("time_limit", 1.0)


class Scip(engines.ScipEngine):
    def __init__(self, program, settings, start=None):
        super().__init__(program, settings, start)
        self.model.setParam("limits/time", 1.0)

    def stop(self):
        pass


class CpSat(cp_sat.CpSatEngine):
    def __init__(self, program, settings, start=None):
        super().__init__(program, settings, start)
        self.solver.parameters.max_time_in_seconds = 1.0

    def stop(self):
        pass


solver_registry.ENGINES |= {"highs": Highs, "scip": Scip, "cp-sat": CpSat}
print(solvers.solve(program, sys.argv[1], seconds=0.5).status, flush=True)
print("the last line", end="")
"""
)
#: Runs in a thread that nobody waits for: one after another, and the next one would begin.
BACKGROUND = (
    HARD
    + """
def work():
    while True:
        solvers.solve(program, sys.argv[1], seconds=0.7)

threading.Thread(target=work, daemon=True).start()
time.sleep(1.0)
print("the last line", end="")
"""
)


SOLVERS = (
    "highs",
    "scip",
    pytest.param(
        "cp-sat",
        marks=pytest.mark.skipif(find_spec("ortools") is None, reason="OR-Tools is not installed"),
    ),
)


def ends(code: str, *arguments: str) -> tuple[int, str, str]:
    """Return how a script ends: its code, its last line, and its errors."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines()[-1], done.stderr


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("last", "code"),
    [("sys.exit(3)", 3), ("raise ValueError('own')", 1), ("", 0), ("raise SystemExit(4)", 4)][
        : tries(1, 4)
    ],
)
def test_a_solver_that_does_not_stop(solver: str, last: str, code: int) -> None:
    """The process ends with the exit code of the script, and all that it printed is there."""
    found, line, errors = ends(DEAF + "\n" + last, solver)
    assert (found, line) == (code, "the last line"), errors
    assert "terminate" not in errors and ("ValueError: own" in errors) == (code == 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_runs_in_the_background(solver: str) -> None:
    """They are stopped too, and no other one begins."""
    assert ends(BACKGROUND, solver) == (0, "the last line", "")
