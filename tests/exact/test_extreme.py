"""Fronts of linear programs: extreme points, exactly and once, with and without a gap."""

from __future__ import annotations

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest

import placeopt
from placeopt.exact.extreme import corners, extreme_points
from placeopt.exact.memory import Found

SOLVERS = ("highs", "scip")


def status(front: placeopt.Front) -> str:
    return front.runs[0].parameters["status"]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_extreme_points_bound_everything(size, count):
    vectors = np.random.default_rng(count).integers(0, 50, (count, size)).astype(float)

    def least(weights: np.ndarray) -> Found:
        sums = np.round(vectors @ weights, 9)
        return Found(tuple(vectors[np.lexsort((vectors.sum(axis=1), sums))[0]].tolist()))

    found = extreme_points(least, size)
    assert found.complete
    assert len({point.values for point in found.points}) == len(found.points)
    assert all((found.bounds <= v + 1e-9).all(axis=1).any() for v in vectors)
    for weights in np.random.default_rng(0).dirichlet(np.ones(size), 200):
        assert min(np.dot(weights, p.values) for p in found.points) == pytest.approx(
            (vectors @ weights).min()
        )


def test_corners_are_singled_out_by_some_weights():
    """Not what lies between others or on a face of them; of equal vectors one."""
    line = np.array([[0, 4], [1, 3], [2, 2], [4, 0], [3, 3], [0, 4]])
    assert sorted(line[corners(line)].tolist()) == [[0, 4], [4, 0]]
    face = np.array([[0, 0, 3], [0, 3, 0], [3, 0, 0], [1, 1, 1], [1, 2, 0], [1, 1, 0.9]])
    assert np.flatnonzero(corners(face)).tolist() == [0, 1, 2, 5]
    assert corners(np.array([[3.0], [4.0], [3.0]])).tolist() == [False, False, True]
    assert corners(np.array([[1.0, 2.0]])).tolist() == [True]


def polygon() -> pyo.ConcreteModel:
    """Four corners: (-3, 9), (4, 8), (8, 4), (10, -2)."""
    rows = [((-4, -8), -8), ((3, -6), 6), ((4, -2), 14), ((1, 0), 6), ((-1, 3), 15)]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.NonNegativeReals)
    model.rows = pyo.ConstraintList()
    for (a, b), most in [*rows, ((-2, 4), 18), ((-6, 3), 9)]:
        model.rows.add(a * model.x[0] + b * model.x[1] <= most)
    model.f = pyo.Objective(expr=3 * model.x[0] - 2 * model.x[1], sense=pyo.maximize)
    model.g = pyo.Objective(expr=-model.x[0] + 2 * model.x[1], sense=pyo.maximize)
    return model


CORNERS = [[-3, 9], [4, 8], [8, 4], [10, -2]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_linear_program_without_a_gap_has_its_extreme_points(solver):
    front = placeopt.enumerate(polygon(), solver=solver)
    assert front.values.tolist() == CORNERS
    assert status(front) == "extreme"
    assert {p.status for p in front} == {"optimal"}
    assert front.runs[0].completed
    for one, other in itertools.pairwise(np.array(CORNERS, dtype=float)):
        middle = (one + other) / 2
        assert any((np.array(bound) >= middle).all() for bound in front.bounds)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("gap", [{"f": 2}, {"g": 0.3}, 1])
def test_a_linear_program_with_a_gap_has_them_too_and_keeps_the_gap(solver, gap):
    front = placeopt.enumerate(polygon(), solver=solver, gap=gap)
    assert status(front) == "grid"
    values = front.values.tolist()
    assert all(corner in values for corner in CORNERS)
    reach = np.array([gap.get("f", 0), gap.get("g", 0)] if isinstance(gap, dict) else [gap, gap])
    for one, other in itertools.pairwise(np.array(CORNERS, dtype=float)):
        for share in np.linspace(0, 1, 21):
            vector = share * one + (1 - share) * other
            assert (front.values >= vector - reach - 1e-9).all(axis=1).any()
    apart = np.abs(front.values[:, None] - front.values).max(axis=2)
    assert (apart + 9 * np.eye(len(front)) > 1e-6).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_three_goals(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(0, 1))
    model.sum = pyo.Constraint(expr=sum(model.x.values()) == 1.5)
    for k in range(3):
        model.add_component(f"g{k}", pyo.Objective(expr=model.x[k]))
    front = placeopt.enumerate(model, solver=solver)
    assert front.values.tolist() == sorted(map(list, itertools.permutations([0, 0.5, 1])))


def test_a_single_point_is_the_front_and_no_gap_is_asked_for():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), bounds=(1, 4))
    model.z = pyo.Var(domain=pyo.Binary)
    model.f = pyo.Objective(expr=model.x[0] + model.z)
    model.g = pyo.Objective(expr=model.x[0] + 2 * model.x[1])
    front = placeopt.enumerate(model)
    assert (front.values.tolist(), status(front)) == ([[1, 3]], "complete")
    model.never = pyo.Constraint(expr=model.x[0] >= 5)
    assert status(placeopt.enumerate(model)) == "infeasible"
