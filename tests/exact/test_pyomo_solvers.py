"""Solvers through appsi, those of them that are installed here."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from hands import within

import placeopt
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.exact import solver_registry
from placeopt.exact.program import Program
from placeopt.exact.solvers import solve

pytestmark = pytest.mark.filterwarnings("ignore")  # of the solvers about their licences


@pytest.fixture(params=sorted(solver_registry.INTERFACES))
def solver(request):
    if not solver_registry.is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    return request.param


def programs(count: int, *, seed: int = 0):
    """Draw small programs: whole and real columns, ranges, equations, empty rows and columns."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rows, columns = rng.integers(0, 4), rng.integers(1, 6)
        A = rng.integers(-3, 5, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
        upper = rng.integers(-2, 9, rows).astype(float)
        lower = np.where(rng.random(rows) < 0.5, -math.inf, upper - rng.integers(0, 3, rows))
        low = rng.integers(-2, 2, columns).astype(float)
        high = low + np.where(rng.random(columns) < 0.1, math.inf, rng.integers(0, 5, columns))
        whole = rng.random(columns) < 0.6
        c = rng.integers(-4, 5, columns) / 2
        yield Program(c, sp.csc_matrix(A, dtype=float), lower, upper, low, high, whole, 2.5)


def test_programs_are_solved_as_by_highs(solver):
    seen = set()
    for program in programs(25):
        ours, theirs = solve(program, solver), solve(program)
        assert ours.status == theirs.status
        seen.add(ours.status)
        if ours.x is not None:
            assert ours.objective == pytest.approx(theirs.objective, abs=1e-5)
            assert ours.bound == pytest.approx(theirs.objective, abs=1e-5)
    assert {"optimal", "infeasible"} <= seen


def knapsack() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(5), domain=pyo.Binary)
    model.part = pyo.Var(bounds=(0, 1))
    take, weights = model.take, (4, 3, 5, 2, 6)
    model.fits = pyo.Constraint(expr=sum(w * take[k] for k, w in enumerate(weights)) <= 10)
    model.profit = pyo.Objective(
        expr=sum((k + 2) * take[k] for k in take) + 0.5 * model.part, sense=pyo.maximize
    )
    model.risk = pyo.Objective(expr=sum((7 * k) % 4 * take[k] for k in take))
    return model


def test_the_front_is_that_of_highs(solver):
    front = placeopt.enumerate(knapsack(), solver=solver)
    expected = placeopt.enumerate(knapsack())
    assert front.values == pytest.approx(expected.values)
    assert front.runs[0].parameters["status"] == "complete"
    assert front.runs[0].parameters["solver"] == solver


def test_a_time_limit_is_kept(solver):
    rng = np.random.default_rng(0)
    A = sp.csc_matrix(rng.integers(1, 100, (20, 60)))
    c = -rng.integers(1, 100, 60).astype(float)
    program = Program(c, A, -math.inf, A.sum(axis=1).A1 // 2, 0.0, 1.0, True)
    with within(1, 3):
        outcome = solve(program, solver, seconds=1)
    assert outcome.status in ("optimal", "feasible", "unknown")
    if outcome.x is not None:
        assert outcome.bound <= outcome.objective


def test_a_solver_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(solver_registry, "is_installed", lambda name: False)
    with pytest.raises(UnsupportedError, match=r"'cbc' is not installed.*solver='highs'"):
        placeopt.enumerate(knapsack(), solver="cbc")
    with pytest.raises(UsageError, match="legal: highs, scip, cp-sat, cbc, cplex, gurobi"):
        placeopt.enumerate(knapsack(), solver="cdc")
