"""`placeopt.ask`: every question equal to brute force, honest where time or the model ends it."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import placeopt
from placeopt import ask
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.exact import oracles

SOLVERS = [
    "highs",
    "scip",
    pytest.param(
        "cp-sat",
        marks=pytest.mark.skipif(not importlib.util.find_spec("ortools"), reason="no ortools here"),
    ),
]


@dataclass
class Case:
    """A model and all its solutions: whole numbers x, and the goals' values, minimised."""

    model: pyo.ConcreteModel
    x: np.ndarray
    values: np.ndarray
    signs: np.ndarray

    @property
    def efficient(self) -> list[tuple[float, ...]]:
        vectors = np.unique(self.values, axis=0)
        return [
            tuple(v)
            for v in vectors.tolist()
            if not ((vectors <= v).all(axis=1) & (vectors != v).any(axis=1)).any()
        ]

    def shown(self, values) -> list[float]:
        return (np.array(values) * self.signs).tolist()


@st.composite
def cases(draw, goals=(1, 3)):
    seed, count = draw(st.integers(0, 10**6)), draw(st.integers(*goals))
    rng = np.random.default_rng(seed)
    size, most = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    unit = float(rng.choice([1.0, 0.25, 0.1]))
    weights, least = rng.integers(1, 9, size), int(rng.integers(0, 3))
    costs = rng.integers(-9, 10, (count, size))
    signs = rng.choice([-1, 1], count)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(size), domain=pyo.Integers, bounds=(0, most))
    room = int(rng.integers(weights.sum() // 2, 2 * weights.sum()))
    model.fits = pyo.Constraint(
        expr=sum(int(w) * model.x[j] for j, w in enumerate(weights)) <= room
    )
    model.some = pyo.Constraint(expr=sum(model.x.values()) >= least)
    for k, (row, sign) in enumerate(zip(costs, signs, strict=True)):
        body = sum(int(c) * unit * model.x[j] for j, c in enumerate(row)) + k + 0 * model.x[0]
        sense = pyo.minimize if sign > 0 else pyo.maximize
        model.add_component(f"g{k}", pyo.Objective(expr=body, sense=sense))
    x = np.array(list(itertools.product(range(most + 1), repeat=size)))
    x = x[(x @ weights <= room) & (x.sum(axis=1) >= least)]
    values = np.round((x @ costs.T * unit + np.arange(count)) * signs, 9)
    return Case(model, x, values, signs)


def status(front) -> str:
    return front.runs[0].parameters["status"]


def supported_vectors(vectors, *, extreme: bool) -> list[tuple[float, ...]]:
    """Those that are least for some positive weights; extreme: and no sum of others."""
    vectors, found = np.unique(vectors, axis=0), []
    for k, v in enumerate(vectors):
        size = len(v)
        rows = [[*(v - u), 0.0] for u in vectors]
        rows += [[*(-np.eye(size)[j]), 1.0] for j in range(size)]
        weighted = linprog(
            [*[0.0] * size, -1.0],
            A_ub=rows,
            b_ub=np.zeros(len(rows)),
            A_eq=[[*[1.0] * size, 0.0]],
            b_eq=[1.0],
            bounds=[(0, 1)] * size + [(None, 1)],
        )
        if weighted.status or -weighted.fun <= 1e-9:
            continue
        others = np.delete(vectors, k, axis=0)
        if extreme and len(others):
            ones = np.ones((1, len(others)))
            mixed = linprog(np.zeros(len(others)), A_ub=others.T, b_ub=v, A_eq=ones, b_eq=[1.0])
            if mixed.status == 0:
                continue
        found.append(tuple(v.tolist()))
    return found


# -- supported points ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_supported_points_are_those_of_brute_force(solver):
    @given(cases())
    def run(case):
        front = ask.supported(case.model, solver=solver)
        expected = supported_vectors(case.values, extreme=case.values.shape[1] != 2)
        assert sorted(case.shown(p.values) for p in front) == [list(v) for v in sorted(expected)]
        assert status(front) == ("complete" if len(case.x) else "infeasible")
        assert {point.status for point in front} <= {"optimal"}

    run()


def test_points_on_a_line_between_two_others_are_supported():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(5), domain=pyo.Binary)
    model.one = pyo.Constraint(expr=sum(model.x.values()) == 1)
    points = [(0, 8), (2, 6), (5, 5), (6, 2), (8, 0)]
    for k in (0, 1):
        expr = sum(p[k] * model.x[j] for j, p in enumerate(points))
        model.add_component(f"g{k}", pyo.Objective(expr=expr))
    front = ask.supported(model)
    assert front.values.tolist() == [[0, 8], [2, 6], [6, 2], [8, 0]]  # not (5, 5)
    assert front.runs[0].solver_calls <= 2 * len(front) + 1


@given(cases(goals=(2, 3)), st.sampled_from([0.02, 0.1, 0.3]))
def test_a_sandwich_is_as_near_as_the_tolerance(case, tolerance):
    front = ask.supported(case.model, tolerance=tolerance)
    if not len(case.x):
        assert status(front) == "infeasible"
        return
    found = np.array([case.shown(point.values) for point in front])
    everything = supported_vectors(case.values, extreme=True)
    assert {tuple(v) for v in found.round(9).tolist()} <= set(everything)
    ends = [min(case.efficient, key=lambda v, k=k: v[k]) for k in range(found.shape[1])]
    assert front.runs[0].parameters["reached"] <= 1
    ranges = np.ptp(np.array(case.efficient), axis=0) if ends else 1.0
    for v in case.efficient:  # a mix of points is as good, but for the share of the ranges
        ones = np.ones((1, len(found)))
        room = np.array(v) + tolerance * ranges + 1e-9
        mixed = linprog(np.zeros(len(found)), A_ub=found.T, b_ub=room, A_eq=ones, b_eq=[1.0])
        assert mixed.status == 0


def test_a_sandwich_asks_less():
    rng = np.random.default_rng(1)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(60), domain=pyo.Binary)
    weights = rng.integers(1, 50, 60)
    model.fits = pyo.Constraint(expr=sum(int(w) * model.x[j] for j, w in enumerate(weights)) <= 700)
    for k in (0, 1):
        costs = rng.integers(1, 50, 60)
        expr = sum(int(c) * model.x[j] for j, c in enumerate(costs))
        model.add_component(f"g{k}", pyo.Objective(expr=expr, sense=pyo.maximize))
    every, near = ask.supported(model), ask.supported(model, tolerance=0.05)
    assert near.runs[0].solver_calls < every.runs[0].solver_calls / 2
    assert len(near) < len(every)
    units = ask.supported(model, tolerance={"g0": 1e-3, "g1": 1e-3})
    assert len(near) < len(units) <= len(every)


def test_real_values_have_the_extreme_points_of_all_choices():
    """With y at an end of its range, all points of the hull are there."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 1.5))
    model.fits = pyo.Constraint(expr=3 * model.x[0] + 4 * model.x[1] + 2 * model.x[2] <= 6)
    model.f = pyo.Objective(
        expr=-5 * model.x[0] - 4 * model.x[1] - 3 * model.x[2] + 2 * model.x[3] + 1.5 * model.y
    )
    model.g = pyo.Objective(expr=3 * model.x[0] + 2 * model.x[1] + model.x[2] - 2.5 * model.y)
    vectors = []
    for *x, y in itertools.product((0, 1), (0, 1), (0, 1), (0, 1), (0.0, 1.5)):
        if 3 * x[0] + 4 * x[1] + 2 * x[2] <= 6:
            f = -5 * x[0] - 4 * x[1] - 3 * x[2] + 2 * x[3] + 1.5 * y
            vectors.append((f, 3 * x[0] + 2 * x[1] + x[2] - 2.5 * y))
    front = ask.supported(model)
    expected = supported_vectors(np.array(vectors), extreme=True)
    assert front.values == pytest.approx(np.array(sorted(expected)))


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_linear_program_has_its_extreme_points(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, None))
    model.y = pyo.Var(bounds=(0.25, None))
    model.a = pyo.Constraint(expr=model.x + model.y >= 1)
    model.b = pyo.Constraint(expr=0.5 * model.x + model.y >= 0.75)
    model.f = pyo.Objective(expr=2 * model.x + model.y + 1)
    model.g = pyo.Objective(expr=model.x + 3 * model.y)
    front = ask.supported(model, solver=solver)
    assert front.values.tolist() == [[2.0, 3.0], [2.5, 2.0], [3.25, 1.75]]
    assert [p.plan for p in front] == [{"y": 1}, {"x": 0.5, "y": 0.5}, {"x": 1, "y": 0.25}]


# -- priorities and weights ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS[: tries(1, 3)])
def test_lexicographic_points_are_those_of_brute_force(solver):
    @given(cases(), st.randoms(use_true_random=False))
    def run(case, random):
        names = [f"g{k}" for k in range(case.values.shape[1])]
        order = random.sample(names, random.randint(1, len(names)))
        columns = [int(name[1:]) for name in (*order, *(n for n in names if n not in order))]
        front = ask.lexicographic(case.model, order, solver=solver)
        if not len(case.x):
            assert status(front) == "infeasible" and not len(front)
            return
        best = min(case.efficient, key=lambda v: [v[k] for k in columns])
        assert case.shown(front[0].values) == list(best)
        assert (len(front), status(front), front[0].status) == (1, "complete", "optimal")

    run()


@given(cases(goals=(2, 3)), st.sampled_from([0.0, 0.1, 0.5]), st.integers(1, 3))
def test_levels_with_weights_and_a_tolerance(case, tolerance, weight):
    order = [{"g0": 1, "g1": weight}]
    front = ask.lexicographic(case.model, order, tolerance=tolerance)
    if not len(case.x):
        return
    vectors = np.array(case.efficient)
    sums = np.round(vectors[:, 0] + weight * vectors[:, 1], 9)
    allowed = sums <= sums.min() + tolerance * abs(sums.min()) + 1e-9
    value = np.array(case.shown(front[0].values))
    assert tuple(value.tolist()) in case.efficient
    assert value[0] + weight * value[1] <= sums[allowed].max() + 1e-9
    if vectors.shape[1] == 3:
        assert value[2] == vectors[allowed, 2].min()
    elif not tolerance:
        assert value[0] + weight * value[1] == pytest.approx(sums.min())


def test_a_tolerance_gives_room_to_later_goals():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.one = pyo.Constraint(expr=sum(model.x.values()) == 1)
    model.cost = pyo.Objective(expr=100 * model.x[0] + 104 * model.x[1] + 111 * model.x[2])
    model.use = pyo.Objective(expr=model.x[0] + 5 * model.x[1] + 9 * model.x[2], sense=pyo.maximize)
    chosen = [ask.lexicographic(model, tolerance=t)[0].values for t in (0, 0.05, 0.2)]
    assert chosen == [(100, 1), (104, 5), (111, 9)]
    assert ask.lexicographic(model, tolerance={"cost": 0.05})[0].values == (104, 5)
    assert ask.lexicographic(model, ["use"])[0].values == (111, 9)
    weighted = [ask.lexicographic(model, [{"cost": 1, "use": w}])[0].values for w in (0.5, 2)]
    assert weighted == [(100, 1), (111, 9)]


# -- reference points ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["highs", "scip"][: tries(1, 2)])
def test_the_nearest_point_is_that_of_brute_force(solver):
    @given(cases(), st.integers(0, 99))
    def run(case, seed):
        rng, size = np.random.default_rng(seed), case.values.shape[1]
        wished = rng.integers(-20, 20, size).astype(float)
        weights = rng.integers(1, 5, size) / 4
        front = ask.reference_point(
            case.model, case.shown(wished), weights=weights.tolist(), solver=solver
        )
        if not len(case.x):
            assert status(front) == "infeasible"
            return

        def apart(v) -> tuple[float, float]:
            off = weights * (np.array(v) - wished)
            return round(float(off.max()), 6), round(float(off.sum()), 6)

        value = case.shown(front[0].values)
        assert apart(value) == min(map(apart, case.efficient))
        assert tuple(value) in case.efficient and front[0].status == "optimal"
        distance = front.runs[0].parameters["distance"]
        assert distance == pytest.approx(apart(value)[0], abs=1e-6)

    run()


def test_weights_of_a_reference_point_are_one_over_ranges_by_default():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.one = pyo.Constraint(expr=sum(model.x.values()) == 1)
    model.f = pyo.Objective(expr=0 * model.x[0] + 40 * model.x[1] + 100 * model.x[2])
    model.g = pyo.Objective(expr=5 * model.x[0] + 3 * model.x[1] + 0 * model.x[2])
    before = [component.name for component in model.component_objects()]
    front = ask.reference_point(model, {"f": 0, "g": 0})
    assert front[0].values == (40, 3)  # deviations .4 and .6, instead of 1
    assert front.runs[0].parameters["weights"] == [0.01, 0.2]
    assert front[0].plan == {"x[1]": 1}
    assert [component.name for component in model.component_objects()] == before
    assert front.instance == placeopt.enumerate(model).instance


# -- all plans of a vector -------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS[: tries(1, 3)])
def test_all_plans_are_those_of_brute_force(solver):
    @given(cases(goals=(1, 2)), st.integers(0, 99))
    def run(case, seed):
        if not len(case.x):
            return
        values = case.values[seed % len(case.x)]
        same = case.x[(case.values == values).all(axis=1)]
        found = ask.plans(case.model, case.shown(values), solver=solver)
        plans = [tuple(point.plan.get(f"x[{j}]", 0) for j in case.model.x) for point in found]
        assert sorted(plans) == sorted(map(tuple, same.tolist()))
        assert found.complete and found.run.parameters["status"] == "complete"
        assert all(point.values == pytest.approx(case.shown(values)) for point in found)

    run()


def test_plans_stop_at_a_number_and_know_vectors_without_any():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 1))
    model.few = pyo.Constraint(expr=model.y <= sum(model.x.values()))
    model.count = pyo.Objective(expr=sum(model.x.values()))
    (least, *_, most) = placeopt.enumerate(model, {"count": (model.count, "max")}).points * 2
    assert least.values == most.values == (4,)
    some = ask.plans(model, [2], most=3)
    assert len(some) == 3 and not some.complete
    assert some.run.parameters["status"] == "solution-limit"
    assert len(ask.plans(model, {"count": 2})) == 6
    for value in (5, 0.5):
        none = ask.plans(model, [value])
        assert len(none) == 0 and none.run.parameters["status"] == "infeasible"
    assert len(ask.plans(model, most)) == 1


# -- what all have in common -----------------------------------------------------------------------


def shop(weight: int = 8) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.fits = pyo.Constraint(expr=sum((k + 2) * model.x[k] for k in range(4)) <= weight)
    model.profit = pyo.Objective(
        expr=sum((k + 3) * model.x[k] for k in range(4)), sense=pyo.maximize
    )
    model.risk = pyo.Objective(expr=sum((k * k + 1) % 5 * model.x[k] for k in range(4)))
    return model


QUESTIONS = {
    "supported": lambda model, **how: ask.supported(model, **how),
    "sandwich": lambda model, **how: ask.supported(model, tolerance=0.1, **how),
    "lexicographic": lambda model, **how: ask.lexicographic(model, ["risk"], **how),
    "reference_point": lambda model, **how: ask.reference_point(model, [9, 0], **how),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_points_go_into_the_model_and_fronts_into_files(question, tmp_path):
    model = shop()
    front = QUESTIONS[question](model)
    for point in front:
        point.load(model)
        assert (pyo.value(model.profit), pyo.value(model.risk)) == point.values
        assert pyo.value(model.fits.body) <= 8
    front.write(tmp_path / "front.json")
    assert placeopt.Front.read(tmp_path / "front.json").values.tolist() == front.values.tolist()
    assert {point.method for point in front} == {front.runs[0].method}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_time_and_no_solution_are_said(question):
    asked = QUESTIONS[question]
    late = asked(shop(), seconds=0)
    assert (len(late), status(late)) == (0, "time-limit") and not late.runs[0].completed
    budget = placeopt.Budget(seconds=60)
    budget.cancel()
    assert status(asked(shop(), budget=budget)) == "cancelled"
    model = shop()
    model.never = pyo.Constraint(expr=sum(model.x.values()) >= 5)
    none = asked(model)
    assert (len(none), status(none)) == (0, "infeasible") and none.reasons
    model.never.deactivate()
    model.endless = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.risk.expr -= model.endless
    with pytest.raises(UsageError, match=r"'risk' is unbounded.*endless"):
        asked(model, solver="highs")


@pytest.mark.parametrize(
    ("ask_it", "message"),
    [
        (lambda m: ask.lexicographic(m, ["profitt"]), "order names no goal: 'profitt'; did you"),
        (lambda m: ask.lexicographic(m, ["risk", "risk"]), "names goal 'risk' twice"),
        (lambda m: ask.lexicographic(m, [{"risk": 0}]), "weight of 'risk' is 0; give a positive"),
        (lambda m: ask.lexicographic(m, [3]), "order has 3; give names of goals"),
        (lambda m: ask.lexicographic(m, tolerance=-1), "tolerance of 'profit' is -1"),
        (lambda m: ask.reference_point(m, [1]), "a finite number for each of 2 goals"),
        (lambda m: ask.reference_point(m, {"profit": 1}), "no number for goal 'risk'"),
        (lambda m: ask.reference_point(m, [1, 2], weights=[1, 0]), "give positive numbers"),
        (lambda m: ask.reference_point(m, [1, float("nan")]), "a finite number"),
        (lambda m: ask.supported(m, tolerance=0), "tolerance is 0; give a positive number"),
        (lambda m: ask.supported(m, tolerance={"risk": 1}), "no number for goal 'profit'"),
        (lambda m: ask.supported(m, secs=1), "unknown argument 'secs'; legal: objectives, seconds"),
        (lambda m: ask.supported(m, solver="hihgs"), "did you mean 'highs'"),
        (lambda m: ask.plans(m, [1, 2], most=0), "most is 0; give a whole number"),
        (lambda m: ask.plans(m, "x"), "values is 'x'; give a number for each goal"),
        (lambda m: ask.supported(m, objectives=["costs"]), "no goal 'costs'"),
        (lambda m: ask.supported("m"), "type str; give a pyomo ConcreteModel"),
    ],
)
def test_messages_say_what_to_do(ask_it, message):
    with pytest.raises(UsageError, match=message):
        ask_it(shop())


@pytest.mark.parametrize("question", QUESTIONS)
def test_solvers_are_given_the_time_that_is_left(question, monkeypatch):
    given_seconds, solve = [], oracles.solve

    def noted(program, solver, **settings):
        given_seconds.append(settings["seconds"])
        return solve(program, solver, **settings)

    monkeypatch.setattr(oracles, "solve", noted)
    QUESTIONS[question](shop(), seconds=30)
    assert given_seconds and max(given_seconds) <= 30


def test_goals_that_are_not_linear_are_refused():
    model = shop()
    model.risk.expr = model.x[0] * model.x[1]
    with pytest.raises(UnsupportedError, match="goal 'risk' is not linear"):
        ask.supported(model)


def test_plans_of_a_problem_are_judged_by_its_referee():
    problem = placeopt.load("corner-5")
    model = placeopt.models.edge_cloud.build(problem)
    names = [o.name for o in problem.objectives]
    front = ask.lexicographic(model, names[:1], seconds=60)
    assert problem.evaluate(front[0].plan).feasible
    assert [o.name for o in front.objectives] == names
