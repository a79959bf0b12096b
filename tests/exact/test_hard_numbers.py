"""Numbers that are tiny, huge, or nearly something: the answer is right all the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest

import placeopt
from placeopt.core.errors import UsageError
from placeopt.core.fronts.dominance import minimal

SOLVERS = ("highs", "scip")


def answer(model: pyo.ConcreteModel, solver: str = "highs", **options) -> list[list[float]]:
    """Return the points of a front that is complete."""
    front = placeopt.enumerate(model, solver=solver, **options)
    assert front.runs[0].parameters["status"] == "complete"
    assert {point.status for point in front} <= {"optimal"}
    return front.values.tolist()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e5, 2e6, 1e7, 1e9])
def test_small_extras_of_a_large_goal_count(solver, size):
    model = pyo.ConcreteModel()
    model.extra = pyo.Var(range(6), domain=pyo.Binary)
    model.rest = pyo.Var(bounds=(0, 0.5))
    model.site = pyo.Var(domain=pyo.Binary)
    extras = sum(model.extra.values())
    model.profit = pyo.Objective(expr=size * model.site + extras + model.rest, sense=pyo.maximize)
    model.heads = pyo.Objective(expr=extras)
    assert answer(model, solver) == [[size + k + 0.5, k] for k in range(7)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [10**6, 10**9, 10**12])
def test_rows_of_large_numbers_are_exact(solver, size):
    """Two items fit only if the last unit counts."""
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(4), domain=pyo.Binary)
    weights = [size + 3, size + 1, size - 2, size - 5]
    model.fits = pyo.Constraint(
        expr=sum(w * model.take[j] for j, w in enumerate(weights)) <= 2 * size - 2
    )
    model.value = pyo.Objective(
        expr=sum((j + 1) * model.take[j] for j in range(4)), sense=pyo.maximize
    )
    model.weight = pyo.Objective(expr=sum(w * model.take[j] for j, w in enumerate(weights)))
    assert answer(model, solver) == [[0, 0], [4, size - 5], [7, 2 * size - 7]]
    model.exact = pyo.Constraint(
        expr=sum(w * model.take[j] for j, w in enumerate(weights)) == 2 * size - 2
    )
    assert answer(model, solver) == [[5, 2 * size - 2]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_decimals_mean_what_is_written(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.sum = pyo.Constraint(expr=0.1 * model.x[0] + 0.2 * model.x[1] <= 0.3)
    model.dear = pyo.Objective(
        expr=123456.654321 * model.x[0] + 123456.654320 * model.x[1] - 0.000001 * model.x[2],
        sense=pyo.maximize,
    )
    model.other = pyo.Objective(expr=2 * model.x[0] + model.x[1])
    assert answer(model, solver) == [
        [0, 0],
        [123456.65432, 1],
        [123456.654321, 2],
        [246913.308641, 3],
    ]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_row_of_tiny_numbers_is_kept(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.one = pyo.Constraint(expr=sum(1e-10 * x for x in model.x.values()) <= 1.5e-10)
    model.f = pyo.Objective(expr=-sum((j + 1) * model.x[j] for j in range(3)))
    model.g = pyo.Objective(expr=model.x[2])
    assert answer(model, solver) == [[-3, 1], [-2, 0]]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e-7, 1e-9])
def test_goals_and_variables_of_tiny_ranges(solver, scale):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 10 * scale))
    model.more = pyo.Constraint(expr=model.y >= sum(3 * scale * x for x in model.x.values()))
    model.f = pyo.Objective(expr=model.y)
    model.g = pyo.Objective(expr=-sum((j + 1) * model.x[j] for j in range(3)))
    values = answer(model, solver)
    assert [g for _, g in values] == [0, -3, -5, -6]
    assert [f / scale for f, _ in values] == pytest.approx([0, 3, 6, 9])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_real_goal_of_a_huge_range_keeps_its_cost(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 1e10))
    total = sum(1e9 * x for x in model.x.values())
    model.more = pyo.Constraint(expr=model.y >= total + 0.5 * model.x[0])
    model.f = pyo.Objective(expr=model.y)
    model.g = pyo.Objective(expr=-sum((j + 1) * model.x[j] for j in range(3)))
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == [[0, 0], [1e9, -3], [2e9, -5], [3000000000.5, -6]]
    facts = front.runs[0].parameters
    assert facts["status"] == "resolution"
    assert "differ by less than" in facts["reason"]
    assert "in f may be missing" in facts["reason"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_row_that_is_broken_by_a_hair_is_broken(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 9))
    model.more = pyo.Constraint(expr=model.y >= 1 + model.x[0])
    model.less = pyo.Constraint(expr=model.y <= 1.9999999)
    model.whole = pyo.Constraint(expr=2 * model.x[0] + 2 * model.x[1] <= 3.9999999)
    model.f = pyo.Objective(expr=model.y - 3 * model.x[1])
    model.g = pyo.Objective(expr=-model.x[0])
    assert answer(model, solver) == [[-2, 0]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_factor_that_is_far_too_large_lets_nothing_through(solver):
    model = pyo.ConcreteModel()
    model.z = pyo.Var(range(3), domain=pyo.Binary)
    model.y = pyo.Var(range(3), bounds=(0, None))
    model.open = pyo.Constraint(range(3), rule=lambda m, j: m.y[j] <= 1e8 * m.z[j])
    model.most = pyo.Constraint(range(3), rule=lambda m, j: m.y[j] <= 2 + j)
    model.sum = pyo.Constraint(expr=sum(model.y.values()) >= 3.5)
    model.f = pyo.Objective(expr=sum((j + 1) * model.y[j] for j in range(3)))
    model.g = pyo.Objective(expr=sum(model.z.values()))
    assert answer(model, solver) == [[5, 2], [10.5, 1]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_trivial_models(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary)
    model.idle = pyo.Var(domain=pyo.Integers, bounds=(2, 5))
    model.three = pyo.Objective(expr=3)
    assert answer(model, solver) == [[3]]
    model.also = pyo.Objective(expr=0.5 + 0 * model.x[0], sense=pyo.maximize)
    assert answer(model, solver) == [[3, 0.5]]
    model.count = pyo.Objective(expr=model.x[0] + model.x[1])
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == [[3, 0.5, 0]]
    assert front.points[0].plan == {"idle": 2}
    model.x.fix(1)
    assert answer(model, solver) == [[3, 0.5, 2]]
    model.never = pyo.Constraint(expr=model.x[0] + model.x[1] <= 1)
    assert placeopt.enumerate(model, solver=solver).runs[0].parameters["status"] == "infeasible"


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, v: m.f.set_value(v * m.x[0] + m.x[1]), "goal 'f' has the coefficient {}"),
        (lambda m, v: m.f.set_value(m.x[1] + v), "goal 'f' has the coefficient {}"),
        (
            lambda m, v: m.c.set_value(v * m.x[0] + m.x[1] <= 1),
            "constraint 'c' has the coefficient {}",
        ),
    ],
)
def test_what_is_no_number_is_named(value, change, message):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary)
    model.f = pyo.Objective(expr=model.x[0])
    model.c = pyo.Constraint(expr=model.x[0] + model.x[1] <= 1)
    change(model, value)
    with pytest.raises(UsageError, match=message.format(value) + "; give a finite number"):
        placeopt.enumerate(model)


@pytest.mark.parametrize("solver", SOLVERS)
def test_goals_of_any_floats_need_no_gap_where_variables_are_whole(solver):
    rng = np.random.default_rng(1)
    table = rng.normal(0, 3, (3, 6))
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(6), domain=pyo.Binary)
    model.three = pyo.Constraint(expr=sum(model.x.values()) == 3)
    for k, row in enumerate(table.tolist()):
        body = sum(c * model.x[j] for j, c in enumerate(row))
        model.add_component(f"f{k}", pyo.Objective(expr=body))
    chosen = [list(c) for c in itertools.combinations(range(6), 3)]
    truth = minimal([table[:, columns].sum(axis=1) for columns in chosen])
    front = placeopt.enumerate(model, solver=solver)
    assert answer(model, solver) == pytest.approx(truth, abs=1e-11)
    assert [goal.step for goal in front.objectives] == [None] * 3
    assert calls_of(placeopt.enumerate(model, solver=solver, start=front)) <= 2


def calls_of(front: placeopt.Front) -> int:
    return front.runs[0].solver_calls
