"""CP-SAT as a solver: exact whole numbers, clear refusals, and when it is taken by itself."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

import placeopt
from placeopt.core.errors import MissingExtraError, UnsupportedError, UsageError
from placeopt.exact import solver_registry
from placeopt.exact.cp_sat import WholeProgram
from placeopt.exact.program import Program
from placeopt.exact.solvers import solve


@pytest.fixture
def ortools():
    return pytest.importorskip("ortools")


def knapsack(items: int, unit: float = 1.0, seed: int = 0) -> pyo.ConcreteModel:
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 100, (4, items))
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(items), domain=pyo.Binary)
    total = [sum(int(c) * unit * model.take[j] for j, c in enumerate(row)) for row in table]
    model.fits = pyo.Constraint(expr=total[0] <= unit * int(table[0].sum() // 2))
    for k in range(3):
        model.add_component(f"g{k}", pyo.Objective(expr=total[k + 1], sense=pyo.maximize))
    return model


def solver_of(front: placeopt.Front) -> str:
    return front.runs[0].parameters["solver"]


# -- programs --------------------------------------------------------------------------------------


def whole_programs():
    size = st.shared(st.integers(1, 5), key="size")
    numbers = st.integers(-20, 20).map(lambda k: k / 4)
    row = size.flatmap(lambda n: st.lists(numbers, min_size=n, max_size=n))
    limits = st.tuples(st.none() | numbers, st.none() | numbers)
    bounds = size.flatmap(
        lambda n: st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=n, max_size=n)
    )
    odd = size.flatmap(lambda n: st.lists(st.floats(-9, 9), min_size=n, max_size=n))
    return st.tuples(row | odd, st.lists(st.tuples(row, limits), max_size=3), bounds, numbers)


@given(whole_programs())
@example(([0.9403916129160841], [], [(0, 0)], 0.0))
def test_programs_are_solved_as_by_highs(case):
    pytest.importorskip("ortools")
    c, rows, bounds, offset = case
    program = Program(
        np.array(c),
        sp.csc_matrix(np.array([r for r, _ in rows] or [[0.0] * len(c)])),
        np.array([-math.inf if low is None else low for _, (low, _) in rows] or [0.0]),
        np.array([math.inf if up is None else up for _, (_, up) in rows] or [0.0]),
        np.array([float(low) for low, _ in bounds]),
        np.array([float(low + width) for low, width in bounds]),
        np.ones(len(c), dtype=bool),
        offset,
    )
    ours, theirs = solve(program, "cp-sat"), solve(program, "highs")
    assert ours.status == theirs.status
    if ours.x is not None:
        assert ours.objective == pytest.approx(theirs.objective, abs=1e-5)
        assert program.broken(ours.x) <= 1e-9
        assert ours.bound <= ours.objective + 1e-9


def test_bounds_that_are_missing_come_from_the_rows():
    # 2 x + 3 y <= 12, z - x <= 1: only z waits for another variable's bound
    A = sp.csc_matrix([[2.0, 3.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    limits = np.array([12.0, 1.0, math.inf])
    program = Program(np.zeros(3), A, -math.inf, limits, 0.0, math.inf, True)
    whole = WholeProgram.of(program)
    assert whole.upper.tolist() == [6, 4, 7] and whole.lower.tolist() == [0, 0, 0]


def test_a_cost_without_a_common_step_has_a_bound_that_holds():
    rng = np.random.default_rng(3)
    program = Program(
        rng.normal(size=8),
        sp.csc_matrix(rng.integers(1, 9, (1, 8))),
        -math.inf,
        15.0,
        0.0,
        2.0,
        True,
    )
    whole = WholeProgram.of(program)
    for x in rng.integers(0, 3, (200, 8)):
        assert abs(whole.unit * (whole.cost @ x) - program.c @ x) <= whole.error + 1e-15
    assert whole.error < 1e-9


@pytest.mark.parametrize("seconds", [0.02, 0.3])
def test_a_bound_of_a_stopped_run_holds(ortools, seconds):
    """CP-SAT says 0 where it knows no bound yet, which is not below a negative optimum."""
    rng = np.random.default_rng(0)
    A = sp.csc_matrix(rng.integers(1, 100, (40, 300)))
    c = -rng.integers(1, 100, 300).astype(float)
    program = Program(c, A, 7000.0, 7050.0, 0.0, 1.0, True)
    outcome = solve(program, "cp-sat", seconds=seconds)
    assert outcome.status in ("unknown", "feasible") and outcome.bound <= -5000


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_the_front_is_that_of_highs(ortools, unit):
    fronts = [placeopt.enumerate(knapsack(14, unit), solver=s) for s in ("highs", "cp-sat")]
    assert fronts[0].values.tolist() == fronts[1].values.tolist()
    assert [solver_of(f) for f in fronts] == ["highs", "cp-sat"]
    assert fronts[1].runs[0].parameters["status"] == "complete"
    assert "ortools" in fronts[1].runs[0].versions
    limited = placeopt.enumerate(knapsack(14, unit), solver="cp-sat", seconds=100, jobs=2)
    assert limited.values.tolist() == fronts[0].values.tolist()  # asks for weighted sums too


def test_it_is_taken_by_itself_where_it_pays(ortools, monkeypatch):
    assert solver_of(placeopt.enumerate(knapsack(20), max_points=1)) == "cp-sat"
    assert solver_of(placeopt.enumerate(knapsack(8), max_points=1)) == "highs"  # over at once
    with_options = placeopt.enumerate(knapsack(20), max_points=1, options={"mip_rel_gap": 0.0})
    assert solver_of(with_options) == "highs"
    mixed = knapsack(20)
    mixed.y = pyo.Var(bounds=(0, 1))
    mixed.g1.expr += mixed.y
    assert solver_of(placeopt.enumerate(mixed, max_points=1)) == "highs"
    monkeypatch.setattr(solver_registry, "_has_cp_sat", lambda: False)
    assert solver_of(placeopt.enumerate(knapsack(20), max_points=1)) == "highs"
    with pytest.raises(MissingExtraError, match=r"pip install 'placeopt\[cp-sat\]'"):
        placeopt.enumerate(knapsack(4), solver="cp-sat")


def test_an_assignment_is_left_to_highs(ortools):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(5), range(5), domain=pyo.Binary)
    model.agent = pyo.Constraint(range(5), rule=lambda m, i: sum(m.x[i, :]) == 1)
    model.task = pyo.Constraint(range(5), rule=lambda m, j: sum(m.x[:, j]) == 1)
    model.goal = pyo.Objective(expr=sum((3 * i + j) % 7 * model.x[i, j] for i, j in model.x))
    assert solver_of(placeopt.enumerate(model)) == "highs"


def test_what_it_cannot_take_is_refused_by_name(ortools):
    model = knapsack(4)
    model.part = pyo.Var(bounds=(0, 1))
    model.g0.expr += model.part
    with pytest.raises(UnsupportedError, match=r"whole numbers only, and 'part'.*solver='highs'"):
        placeopt.enumerate(model, solver="cp-sat")
    model = knapsack(4)
    model.many = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.g0.expr += model.many
    with pytest.raises(UnsupportedError, match="needs bounds, and 'many'"):
        placeopt.enumerate(model, solver="cp-sat")
    model = knapsack(4)
    model.row = pyo.Constraint(expr=math.pi * model.take[0] + model.take[1] <= 3)
    with pytest.raises(UnsupportedError, match=r"no multiples of one number: 3\.14159, 1"):
        placeopt.enumerate(model, solver="cp-sat")
    with pytest.raises(UsageError, match="refuses the option 'nonsense'"):
        placeopt.enumerate(knapsack(4), solver="cp-sat", options={"nonsense": 1})
