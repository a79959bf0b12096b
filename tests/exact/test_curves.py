"""Quadratic goals: equal to brute force and to closed forms; what is not convex is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries

import placeopt
from placeopt import ask
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.exact.program import quadratic


def form(model: pyo.ConcreteModel, matrix: np.ndarray) -> object:
    """Return x' matrix x."""
    indices = range(len(matrix))
    return sum(float(matrix[i, j]) * model.x[i] * model.x[j] for i in indices for j in indices)


def efficient(vectors: np.ndarray) -> list[tuple[float, ...]]:
    vectors = np.unique(vectors, axis=0)
    beaten = [((vectors <= v).all(axis=1) & (vectors != v).any(axis=1)).any() for v in vectors]
    return [
        tuple(v) for v, is_beaten in zip(vectors.tolist(), beaten, strict=True) if not is_beaten
    ]


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("seed", range(6))
def test_whole_numbers_have_the_front_of_brute_force(solver, seed):
    rng = np.random.default_rng(seed)
    size, is_twice = int(rng.integers(2, 5)), seed % 2
    A, B = rng.integers(-2, 3, (size, size)), rng.integers(-1, 2, (1, size))
    c, d, weights = rng.integers(-5, 6, size), rng.integers(-4, 5, size), rng.integers(1, 5, size)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(size), domain=pyo.Integers, bounds=(-2, 3))
    x = list(model.x.values())
    model.fits = pyo.Constraint(expr=sum(map(lambda w, v: int(w) * v, weights, x)) <= 4)
    model.f = pyo.Objective(
        expr=form(model, A.T @ A) + sum(int(w) * v for w, v in zip(c, x, strict=True)) + 3
    )
    other = sum(int(w) * v for w, v in zip(d, x, strict=True))
    other = other + form(model, B.T @ B) if is_twice else other
    model.g = pyo.Objective(expr=-other, sense=pyo.maximize)

    every = np.array(list(itertools.product(range(-2, 4), repeat=size)))
    every = every[every @ weights <= 4]
    squares = [((every @ M.T) ** 2).sum(axis=1) for M in (A, B)]
    vectors = np.stack([squares[0] + every @ c + 3, every @ d + is_twice * squares[1]], axis=1)
    front = placeopt.enumerate(model, gap={"g": 0.5} if is_twice else None, solver=solver)
    assert front.runs[0].parameters["status"] == ("grid" if is_twice else "complete")
    assert sorted(map(tuple, (front.values * (1, -1)).round(6).tolist())) == efficient(vectors)
    for point in front:
        point.load(model)
        assert (pyo.value(model.f), pyo.value(model.g)) == pytest.approx(point.values)
        assert set(point.plan) <= {variable.name for variable in x}


def two_distances(bounds=(-1e4, 1e4)) -> pyo.ConcreteModel:
    """Squared distances of a plane's point from (0, 0) and from (3, 4): f and (5 - sqrt(f))²."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), bounds=bounds)
    model.f = pyo.Objective(expr=model.x[0] ** 2 + model.x[1] ** 2)
    model.g = pyo.Objective(expr=(model.x[0] - 3) ** 2 + (model.x[1] - 4) ** 2)
    return model


@pytest.mark.parametrize("bounds", [(None, None), (-1e4, 1e4)][: tries(1, 2)])
def test_points_lie_on_the_curve_and_keep_the_gap(bounds):
    front = placeopt.enumerate(two_distances(bounds), gap={"g": 2.0})
    f, g = front.values.T
    assert front.runs[0].parameters["status"] == "grid"
    assert g == pytest.approx((5 - np.sqrt(f)) ** 2, abs=1e-3)
    every = np.linspace(0, 25, 500)
    curve = np.stack([every, (5 - np.sqrt(every)) ** 2], axis=1)
    for vector in curve:
        assert (front.values <= vector + np.array([1e-3, 2.001])).all(axis=1).any()
        assert (np.array(front.bounds) <= vector + 1e-4).all(axis=1).any()


def test_questions_of_quadratic_goals():
    model = two_distances()
    front = ask.supported(model, tolerance=0.01)
    ends = front.values[[0, -1]].tolist()
    assert ends == [pytest.approx([0, 25], abs=1e-3), pytest.approx([25, 0], abs=1e-3)]
    assert front.runs[0].parameters["reached"] <= 1
    middle = ask.reference_point(model, [0, 0], weights=[1, 1])
    assert middle[0].values == pytest.approx((6.25, 6.25), abs=1e-3)
    assert middle.runs[0].parameters["distance"] == pytest.approx(6.25, abs=1e-3)
    assert set(middle[0].plan) == {"x[0]", "x[1]"}
    near = ask.lexicographic(model, [{"f": 4, "g": 1}])
    assert near[0].values == pytest.approx((1, 16), abs=1e-2)
    room = ask.lexicographic(model, ["g", "f"])
    assert room[0].values == pytest.approx((25, 0), abs=1e-2)
    with pytest.raises(UsageError, match=r"'f' is quadratic.*give a tolerance"):
        ask.supported(model)
    with pytest.raises(UnsupportedError, match="'f' is quadratic: plans of one vector"):
        ask.plans(model, [1, 16])


def test_searches_stop_and_go_on():
    whole = placeopt.enumerate(two_distances(), gap={"g": 5.0})
    some = placeopt.enumerate(two_distances(), gap={"g": 5.0}, max_points=2)
    more = placeopt.enumerate(two_distances(), gap={"g": 5.0}, start=some, jobs=2)
    assert len(some) < len(whole) - 1 <= len(more)
    again = placeopt.enumerate(two_distances(), gap={"g": 5.0}, start=whole)
    assert again.runs[0].solver_calls <= 2
    assert len(placeopt.enumerate(two_distances(), gap={"g": 5.0}, seconds=0)) == 0


def test_one_goal_of_a_regression_is_the_least_squares():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    model = pyo.ConcreteModel()
    model.b = pyo.Var(range(6), bounds=(-10, 10))
    fitted = [sum(float(v) * model.b[j] for j, v in enumerate(row)) for row in X]
    model.loss = pyo.Objective(
        expr=sum((float(v) - f) ** 2 for v, f in zip(y, fitted, strict=True))
    )
    front = placeopt.enumerate(model)
    least = np.linalg.lstsq(X, y, rcond=None)[1]
    assert front.values.ravel() == pytest.approx(least, rel=1e-6)


def test_what_is_not_convex_is_refused():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), bounds=(0, 1))
    square = model.x[0] ** 2 - model.x[0] * model.x[1]
    for goal, message in (
        (square, "'goal' is not linear: .* not convex as what is minimised must be"),
        ((model.x[0] ** 2, "max"), "not concave as what is maximised must be"),
        (model.x[0] ** 3, "'goal' is not linear"),
        (model.x[0] * math.inf * model.x[0], "'goal' is not linear"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            placeopt.enumerate(model, {"goal": goal})
    with pytest.raises(UnsupportedError, match="'goal' is quadratic: its squares are real"):
        placeopt.enumerate(model, {"goal": model.x[0] ** 2}, solver="cp-sat")
    found = quadratic((model.x[0] - model.x[1]) ** 2 + 4 * model.x[1] + 1)
    assert len(found.weights) == 1 and found.sides.tolist() == [[1, -1]]
