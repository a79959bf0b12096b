"""`placeopt.enumerate`: any Pyomo model, equal to brute force; messages say what to do."""

from __future__ import annotations

import importlib.util
import itertools
import math
import threading

import numpy as np
import pyomo.environ as pyo
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from pyomo.gdp import Disjunction

import placeopt
from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.edge_cloud import model as edge_cloud
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.exact import engines, solvers
from placeopt.exact.whole_rows import common_step
from placeopt.temporal import model as temporal
from placeopt.temporal.problem import Temporal

# -- random models against brute force -------------------------------------------------------------

QUARTERS = st.integers(-8, 8).map(lambda k: k / 4)


@st.composite
def random_models(draw):
    """Goals (coefficients, constant, sense), rows (coefficients, kind, limit), upper bounds."""
    size = draw(st.integers(2, 5))
    row = st.lists(QUARTERS, min_size=size, max_size=size)
    goals = draw(
        st.lists(st.tuples(row, QUARTERS, st.sampled_from(["min", "max"])), min_size=1, max_size=3)
    )
    kinds = st.sampled_from(["<=", "==", "range"])
    rows = draw(
        st.lists(st.tuples(row, kinds, st.integers(-4, 8).map(lambda k: k / 2)), max_size=2)
    )
    uppers = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
    return goals, rows, uppers, draw(st.integers(0, 9)) == 0


def holds(total: float, kind: str, limit: float) -> bool:
    if kind == "==":
        return total == limit
    return total <= limit and (kind == "<=" or total >= limit - 2)


def built(goals, rows, uppers, endless) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(uppers)), domain=pyo.Integers, bounds=lambda m, j: (0, uppers[j]))
    model.y = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, None if endless else 0))
    model.rows = pyo.ConstraintList()
    for coefficients, kind, limit in rows:
        body = sum(c * model.x[j] for j, c in enumerate(coefficients))
        if not any(coefficients):
            if not holds(0.0, kind, limit):
                model.rows.add(model.x[0] >= 9)  # no solution
        elif kind == "range":
            model.rows.add((limit - 2, body, limit))
        else:
            model.rows.add(body == limit if kind == "==" else body <= limit)
    model.goals = pyo.ConstraintList()
    for k, (coefficients, constant, sense) in enumerate(goals):
        body = sum(c * model.x[j] for j, c in enumerate(coefficients)) + constant
        body += (1 if sense == "max" else -1) * model.y if endless and k == 0 else 0
        kind = pyo.maximize if sense == "max" else pyo.minimize
        model.add_component(f"goal{k}", pyo.Objective(expr=body + 0 * model.x[0], sense=kind))
    return model


def brute_force(goals, rows, uppers) -> list[tuple[float, ...]]:
    """The non-dominated vectors, by trying every assignment."""
    signs = [1 if sense == "min" else -1 for _, _, sense in goals]
    vectors = set()
    for x in itertools.product(*(range(u + 1) for u in uppers)):
        totals = [sum(c * v for c, v in zip(row, x, strict=True)) for row, _, _ in rows]
        if all(holds(t, kind, limit) for t, (_, kind, limit) in zip(totals, rows, strict=True)):
            vectors.add(
                tuple(
                    sum(c * v for c, v in zip(row, x, strict=True)) + constant
                    for row, constant, _ in goals
                )
            )
    return sorted(v for v in vectors if not any(beats(w, v, signs) for w in vectors))


def beats(w, v, signs) -> bool:
    return w != v and all(s * a <= s * b for a, b, s in zip(w, v, signs, strict=True))


CP_SAT = pytest.param(
    "cp-sat",
    marks=pytest.mark.skipif(not importlib.util.find_spec("ortools"), reason="no ortools here"),
)


@pytest.mark.parametrize("solver", ["highs", CP_SAT, "scip"][: tries(2, 3)])
def test_random_models_equal_brute_force(solver):
    endless_seen = infeasible_seen = 0

    @given(random_models())
    def check(case):
        nonlocal endless_seen, infeasible_seen
        goals, rows, uppers, endless = case
        truth, model = brute_force(goals, rows, uppers), built(*case)
        if endless and (truth or solver == "cp-sat"):
            endless_seen += 1
            words = "cp-sat needs bounds, and 'y'" if solver == "cp-sat" else "is unbounded.*y"
            with pytest.raises((UsageError, UnsupportedError), match=words):
                placeopt.enumerate(model, solver=solver)
            return
        front = placeopt.enumerate(model, solver=solver)
        assert [p.values for p in front.points] == truth
        assert {p.status for p in front.points} <= {"optimal"}
        assert sorted(front.bounds) == truth
        status = front.runs[0].parameters["status"]
        assert status == ("complete" if truth else "infeasible")
        infeasible_seen += not truth
        assert bool(front.reasons) == (not truth)

    check()
    assert endless_seen and infeasible_seen


# -- a model of one's own --------------------------------------------------------------------------


def knapsack(items: int = 9, goals: int = 3, seed: int = 0) -> pyo.ConcreteModel:
    """Two profits to maximise, other goals to minimise, all decimal; a range on the weight."""
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 40, (goals + 1, items)) / 10
    model = pyo.ConcreteModel(name="knapsack")
    model.half = pyo.Param(mutable=True, initialize=0.5)
    model.take = pyo.Var(range(items), domain=pyo.Binary)
    total = [sum(float(c) * model.take[j] for j, c in enumerate(row)) for row in table]
    model.fits = pyo.Constraint(expr=pyo.inequality(1, total[0], model.half * table[0].sum()))
    for k in range(goals):
        sense = pyo.maximize if k < 2 else pyo.minimize
        model.add_component(f"g{k}", pyo.Objective(expr=total[k + 1], sense=sense))
    return model


def test_points_hold_variables_and_values_in_their_own_senses():
    model = knapsack()
    front = placeopt.enumerate(model)
    assert [(o.name, o.sense, o.step) for o in front.objectives] == [
        ("g0", "max", 0.1),
        ("g1", "max", 0.1),
        ("g2", "min", 0.1),
    ]
    for point in front.points:
        for j in model.take:
            model.take[j].set_value(point.plan.get(f"take[{j}]", 0))
        values = [pyo.value(model.component(f"g{k}").expr) for k in range(3)]
        assert point.values == pytest.approx(values, abs=1e-9)
        assert pyo.value(model.fits.body) <= pyo.value(model.fits.upper) + 1e-9
    assert front.ideal[0] == front.values[:, 0].max()
    assert front.nadir[2] == front.values[:, 2].max()
    assert 0 < front.hypervolume(front.reference()) and front.gap() == 0
    best = front.pick(lexicographic=["g1"])
    assert best.values[1] == front.values[:, 1].max()
    assert front.pick(budget={"g0": best.values[0]}).values[0] >= best.values[0]


def test_a_front_of_maximised_goals_is_written_and_read(tmp_path):
    front = placeopt.enumerate(knapsack(6))
    front.write(tmp_path / "front.json")
    assert Front.read(tmp_path / "front.json") == front
    assert placeopt.merge([front, front]).points == front.points
    assert placeopt.merge([front, front]).bounds == front.bounds


def test_the_points_are_the_same_for_any_number_of_jobs():
    fronts = [placeopt.enumerate(knapsack(), jobs=jobs) for jobs in (1, 2)]
    assert fronts[0].points == fronts[1].points
    assert fronts[0].runs[0].solver_calls == fronts[1].runs[0].solver_calls
    limited = placeopt.enumerate(knapsack(), jobs=2, seconds=100)  # its clock asks for more
    assert fronts[0].values.tolist() == limited.values.tolist()


def test_parameters_fixed_variables_blocks_and_deactivated_rows_count_as_they_stand():
    model = knapsack(8, goals=2)
    whole = placeopt.enumerate(model)
    model.half = 0.3
    assert placeopt.enumerate(model).ideal[0] < whole.ideal[0]
    model.fits.deactivate()
    model.inner = pyo.Block()
    model.inner.y = pyo.Var(domain=pyo.Integers, bounds=(0, 2))
    model.inner.few = pyo.Constraint(expr=sum(model.take.values()) + model.inner.y <= 2)
    model.take[0].fix(1)
    front = placeopt.enumerate(model)
    assert all(p.plan["take[0]"] == 1 for p in front.points)
    assert all(sum(p.plan.values()) <= 2 for p in front.points)
    model.take[1].fix(1)
    model.take[2].fix(1)
    model.inner.y.fix(0)
    assert placeopt.enumerate(model).runs[0].parameters["status"] == "infeasible"


def test_the_model_is_left_as_it_was():
    model = knapsack(6)
    model.g1.deactivate()
    model.several = pyo.Objective(["a", "b"], rule=lambda m, name: m.take[0] + 1)
    model.several["a"].deactivate()
    front = placeopt.enumerate(model)
    assert [o.name for o in front.objectives] == ["g0", "g1", "g2", "a", "b"]
    kinds = (pyo.Objective, pyo.Var, pyo.Constraint)
    active = {c.name: c.active for c in model.component_data_objects(kinds) if hasattr(c, "active")}
    assert not active["g1"] and active["g0"] and active["several[b]"]
    assert not active["several[a]"]
    assert len(list(model.component_objects(pyo.Objective))) == 4


def test_goals_may_be_given():
    model = knapsack(8)
    model.count = pyo.Expression(expr=sum(model.take.values()))
    front = placeopt.enumerate(model, {"count": (model.count, "max"), "dear": model.g2})
    assert [(o.name, o.sense) for o in front.objectives] == [("count", "max"), ("dear", "min")]
    again = placeopt.enumerate(model, ["g2", model.g0])
    assert [(o.name, o.sense) for o in again.objectives] == [("g2", "min"), ("g0", "max")]
    assert len(placeopt.enumerate(model, ["g0"])) == 1


def test_a_start_front_saves_nothing_of_the_truth():
    model = knapsack()
    first = placeopt.enumerate(model, max_points=5)
    assert first.runs[0].parameters["status"] == "solution-limit"
    again = placeopt.enumerate(model, start=first)
    assert again.values.tolist() == placeopt.enumerate(model).values.tolist()


def test_progress_and_points_are_told():
    points, progress = [], []
    front = placeopt.enumerate(knapsack(), on_point=points.append, on_progress=progress.append)
    assert {p.values for p in front.points} <= {p.values for p in points}
    assert progress[-1].best[0] <= front.ideal[0] + 1e-9


def test_a_time_limit_leaves_valid_bounds():
    truth = placeopt.enumerate(knapsack(10)).values * [-1, -1, 1]
    front = placeopt.enumerate(knapsack(10), seconds=0.15)
    if front.runs[0].parameters["status"] == "time-limit":
        assert not front.runs[0].completed
    bounds = np.array(front.bounds).reshape(-1, 3) * [-1, -1, 1]
    assert all((bounds <= v + 1e-9).all(axis=1).any() for v in truth) or not len(bounds)


def test_solver_options_are_handed_on():
    whole = placeopt.enumerate(knapsack())
    quick = placeopt.enumerate(knapsack(), options={"mip_heuristic_effort": 0.0})
    assert quick.values.tolist() == whole.values.tolist()
    assert quick.runs[0].parameters["options"] == {"mip_heuristic_effort": 0.0}


# -- continuous goals ------------------------------------------------------------------------------


def mixture(second: bool = False) -> pyo.ConcreteModel:
    """Whole crates cost money and bring time; some time may be bought by the minute."""
    model = pyo.ConcreteModel()
    model.crates = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    model.minutes = pyo.Var(bounds=(0, 10))
    model.time = pyo.Objective(expr=20 - 3 * model.crates - model.minutes)
    model.cost = pyo.Objective(expr=5 * model.crates + (0.7 * model.minutes if second else 0))
    model.served = pyo.Constraint(expr=model.minutes <= 2 + 0.5 * model.crates)
    return model


def test_one_continuous_goal_is_exact():
    front = placeopt.enumerate(mixture())
    assert front.values.tolist() == [[4, 20], [7.5, 15], [11, 10], [14.5, 5], [18, 0]]
    assert {p.status for p in front.points} == {"optimal"}
    assert front.runs[0].parameters["status"] == "complete"


def test_two_continuous_goals_need_a_gap_and_keep_it():
    front = placeopt.enumerate(mixture(second=True), gap={"time": 0.5})
    facts = front.runs[0].parameters
    assert (facts["status"], facts["reason"]) == (
        "grid",
        "complete but for the given tolerances: time 0.5",
    )
    for crates, minutes in itertools.product(range(5), np.linspace(0, 4, 81)):
        if minutes <= 2 + 0.5 * crates:
            vector = np.array([20 - 3 * crates - minutes, 5 * crates + 0.7 * minutes])
            assert (front.values <= vector + np.array([0.5 + 1e-5, 1e-4])).all(axis=1).any()


def test_a_largest_value_is_as_low_as_its_terms_allow():
    """A variable that is at least every term floats in an answer for another goal."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.worst = pyo.Var(bounds=(0, 100))
    model.covers = pyo.Constraint(range(4), rule=lambda m, j: m.worst >= (j + 1) * m.x[j])
    model.two = pyo.Constraint(expr=sum(model.x.values()) == 2)
    model.latency = pyo.Objective(expr=model.worst)
    model.cost = pyo.Objective(expr=sum((4 - j) * model.x[j] for j in range(4)))
    for steps in (None, {"latency": 1}):
        front = placeopt.enumerate(model, steps=steps)
        assert front.values.tolist() == [[2, 7], [3, 5], [4, 3]]


# -- what people get wrong first -------------------------------------------------------------------


def empty() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=pyo.Binary)
    model.z = pyo.Var(bounds=(0, 1))
    return model


def with_goals(*expressions, model=None) -> pyo.ConcreteModel:
    model = model or empty()
    for k, expression in enumerate(expressions):
        model.add_component(f"g{k}", pyo.Objective(expr=expression(model)))
    return model


@pytest.mark.parametrize(
    ("build", "options", "error", "message"),
    [
        (empty, {}, UsageError, "no goals; add a pyo.Objective for each.*placeopt.enumerate"),
        (
            lambda: with_goals(lambda m: m.x[0] * m.x[1], lambda m: m.x[0]),
            {},
            UnsupportedError,
            "goal 'g0' is not linear: .*replace products of binary variables by",
        ),
        (
            lambda: with_goals(lambda m: m.z - m.x[0], lambda m: m.x[0] - 2 * m.z),
            {},
            UsageError,
            "goals 'g0', 'g1' take continuous values.*gap={'g1': 0.5}.*steps",
        ),
        (pyo.AbstractModel, {}, UsageError, "type AbstractModel.*ConcreteModel.*create_instance"),
        (lambda: with_goals(lambda m: m.x[0]), {"start": "x"}, UsageError, "start is 'x'; give"),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"objectives": ["g9"]},
            UsageError,
            "no goal 'g9'; legal: g0",
        ),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"steps": {"g1": 1}},
            UsageError,
            "names no goal: 'g1'; legal: g0",
        ),
        (
            lambda: with_goals(lambda m: 0.25 * m.x[0] + m.x[1]),
            {"steps": {"g0": 1}},
            UsageError,
            "step of goal 'g0' is 1, but it changes by 0.25 with x.0.; leave the step out",
        ),
        (
            lambda: with_goals(lambda m: m.x[0] - 0.3 * m.z),
            {"steps": {"g0": 1}},
            UsageError,
            "step of goal 'g0' is 1, but a solution lies 0.3 between.*a smaller step, or a gap",
        ),
        (lambda: with_goals(lambda m: m.x[0]), {"gap": -1}, UsageError, "give a positive number"),
        (lambda: with_goals(lambda m: m.x[0]), {"jobs": 0}, UsageError, "jobs is 0"),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"solver": "hihgs"},
            UsageError,
            "did you mean .highs",
        ),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"options": {"mip_heuristics": 0}},
            UsageError,
            "refuses the option 'mip_heuristics'",
        ),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"objectives": {"a": ("g0", "up")}},
            UsageError,
            "sense of goal 'a' is 'up'; legal",
        ),
        (
            lambda: with_goals(lambda m: m.x[0]),
            {"objectives": [empty().x[0] + 1]},
            UsageError,
            "has no name; give expressions by name",
        ),
    ],
)
def test_messages_say_what_to_do(build, options, error, message):
    with pytest.raises(error, match=message):
        placeopt.enumerate(build(), **options)


def test_a_nonlinear_constraint_is_named():
    model = with_goals(lambda m: m.x[0])
    model.bad = pyo.Constraint(expr=model.z * model.z <= 1)
    with pytest.raises(UnsupportedError, match="constraint 'bad' is not linear"):
        placeopt.enumerate(model)


def test_logic_says_how_it_becomes_rows_and_then_counts():
    model = with_goals(lambda m: m.x[0] - m.x[1], lambda m: -m.x[0])
    model.chosen = pyo.BooleanVar(range(2))
    for k in range(2):
        model.chosen[k].associate_binary_var(model.x[k])
    model.implied = pyo.LogicalConstraint(expr=pyo.implies(model.chosen[1], model.chosen[0]))
    with pytest.raises(UnsupportedError, match=r"'implied' is a LogicalConstraint.*logical_to_lin"):
        placeopt.enumerate(model)
    pyo.TransformationFactory("core.logical_to_linear").apply_to(model)
    assert placeopt.enumerate(model).values.tolist() == [[0, -1]]
    model.either = Disjunction(expr=[[model.x[0] <= 0], [model.x[1] <= 0]])
    with pytest.raises(UnsupportedError, match=r"'either' is a Disjunction.*gdp.bigm"):
        placeopt.enumerate(model)
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    assert placeopt.enumerate(model).values.tolist() == [[0, 0], [1, -1]]


def test_a_fixed_variable_without_a_value_is_named():
    model = with_goals(lambda m: m.x[0])
    model.x[1].fixed = True
    with pytest.raises(UsageError, match=r"variable x.1. is fixed and has no value"):
        placeopt.enumerate(model)


@pytest.mark.parametrize(
    ("coefficients", "step"),
    [([0.1, 0.25], 0.05), ([1 / 3, 0.5], 1 / 6), ([12, -18], 6), ([math.pi], None), ([], 1.0)],
)
def test_common_step(coefficients, step):
    assert common_step(np.array(coefficients, dtype=float)) == pytest.approx(step)


# -- models that placeopt built --------------------------------------------------------------------


def small_temporal() -> Temporal:
    prices = {"on_demand_usd_per_hour": 0.4, "reserved_usd_per_hour": 0.2}
    offers = [
        {"location": place, "size": "m", "cpu_cores": 4, "memory_gib": 8.0, **prices}
        | {"spot_usd_per_hour": spot, "spot_interruption": 0.1}
        for place, spot in (("a", 0.1), ("b", 0.05))
    ]
    requests = [
        {"name": name, "cpu_cores": 2, "memory_gib": 2.0, "duration_slots": 1}
        | {"replicas": 1, "origin": "a"}
        for name in ("r1", "r2")
    ]
    latency = {"a": {"a": 1.0, "b": 9.0}, "b": {"a": 9.0, "b": 1.0}}
    return Temporal.from_document(
        {"problem": "temporal", "name": "small", "horizon_slots": 2, "slot_hours": 1.0}
        | {"latency_ms": latency, "offers": offers, "requests": requests}
    )


def test_a_changed_model_gives_plans_that_the_referee_judges():
    problem = small_temporal()
    model = temporal.build(problem)
    whole = placeopt.enumerate(model)
    exact = placeopt.solve(problem, "epsilon-constraint", seconds=60)
    assert whole.values.tolist() == exact.values.tolist()
    assert placeopt.solve(problem, "epsilon-constraint", jobs=2).points == exact.points
    model.no_spot = pyo.Constraint(expr=sum(model.spot.values()) == 0)
    front = placeopt.enumerate(model)
    assert 0 < len(front) < len(whole)
    assert front.instance.sha256 != whole.instance.sha256
    for point, verdict in zip(front.points, placeopt.evaluate(problem, front), strict=True):
        assert verdict.feasible and verdict.values == point.values
        assert all(i["pricing"] != "spot" for i in point.plan["instances"])
    model.cheap = pyo.Constraint(expr=model.cost_usd <= 0.001)
    none = placeopt.enumerate(model)
    assert len(none) == 0 and none.reasons


def test_epsilon_bounds_of_a_built_model_count():
    model = temporal.build(small_temporal())
    whole = placeopt.enumerate(model)
    model.epsilon["latency_ms"] = float(whole.ideal[0])
    front = placeopt.enumerate(model)
    assert {v[0] for v in front.values.tolist()} == {whole.ideal[0]}


def test_a_relaxed_model_keeps_its_own_values():
    """Where a solution is no plan any more, its variables are the answer."""
    model = temporal.build(small_temporal())
    model.all_placed.deactivate()
    model.one_start.deactivate()
    front = placeopt.enumerate(model)
    assert len(front) > 0
    assert front.values[:, 1].min() == 0
    assert all("instances" not in p.plan for p in front.points if p.values[1] == 0)


def test_a_goal_that_is_added_to_a_built_model():
    problem = EdgeCloud.generate(seed=1, applications=2, near=3, far=1, cloud=1)
    model = edge_cloud.build(problem)
    grams = {v: 10 + 7 * v for v in model.NODES}
    model.carbon = pyo.Objective(
        expr=sum(grams[v] * model.place[i, v] for i, v in model.PLACEMENTS)
    )
    front = placeopt.enumerate(model, gap={"latency_ms": 0.5})
    assert [o.name for o in front.objectives] == ["cost", "latency_ms", "carbon"]
    for point, verdict in zip(front.points, placeopt.evaluate(problem, front), strict=True):
        assert verdict.feasible
        assert verdict.values == point.values[:2]


# -- limits ---------------------------------------------------------------------------------------


class Hanging(engines.HighsEngine):
    """A HiGHS that hears no interrupt from its third run on."""

    runs, ended = 0, 0
    released = threading.Event()
    hangs = staticmethod(lambda: None)

    def run(self) -> None:
        """Solve, or hang."""
        Hanging.runs += 1
        if Hanging.runs > 2:
            released = Hanging.released
            Hanging.hangs()
            released.wait(600)
            Hanging.ended += released is Hanging.released  # not one of an earlier test
        super().run()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("cancel", [False, True])
def test_limits_and_cancellation_hold_while_the_solver_hangs(monkeypatch, jobs, cancel):
    monkeypatch.setattr(Hanging, "runs", 0)
    monkeypatch.setattr(Hanging, "ended", 0)
    monkeypatch.setattr(Hanging, "released", threading.Event())
    monkeypatch.setitem(solvers.ENGINES, "highs", Hanging)
    budget = placeopt.Budget(seconds=600 if cancel else 5)
    if cancel:
        monkeypatch.setattr(Hanging, "hangs", staticmethod(budget.cancel))
    front = placeopt.enumerate(knapsack(6), budget=budget, jobs=jobs)
    hung = Hanging.runs > 2 and not Hanging.ended
    Hanging.released.set()
    assert hung
    assert front.runs[0].parameters["status"] in ("time-limit", "cancelled")
    assert not front.runs[0].completed


# -- going on, and back into the model -------------------------------------------------------------


def calls(front: Front) -> int:
    return front.runs[0].solver_calls


def test_a_front_proves_what_need_not_be_asked_again():
    whole = placeopt.enumerate(knapsack(12))
    again = placeopt.enumerate(knapsack(12), start=whole)
    assert (calls(again), again.points, again.bounds) == (0, whole.points, whole.bounds)
    for share in (0.3, 0.8)[: tries(1, 2)]:
        part = placeopt.enumerate(knapsack(12), max_points=int(share * len(whole)))
        more = placeopt.enumerate(knapsack(12), start=part)
        assert more.values.tolist() == whole.values.tolist()
        assert more.runs[0].parameters["status"] == "complete"
        assert {p.status for p in more} == {"optimal"}
        assert calls(part) + calls(more) < 1.25 * calls(whole)


def test_a_front_on_a_grid_is_gone_on_with():
    whole = placeopt.enumerate(mixture(second=True), gap={"time": 0.5})
    again = placeopt.enumerate(mixture(second=True), gap={"time": 0.5}, start=whole)
    assert again.values.tolist() == whole.values.tolist()
    assert calls(again) <= 0.1 * calls(whole)
    finer = placeopt.enumerate(mixture(second=True), gap={"time": 0.25}, start=whole)
    assert finer.runs[0].parameters["status"] == "grid"
    assert len(finer) > len(whole)


def test_proofs_of_another_model_do_not_count():
    model = knapsack()
    first = placeopt.enumerate(model)
    model.half = 0.6
    again = placeopt.enumerate(model, start=first)
    assert again.points == placeopt.enumerate(model).points
    moved = knapsack()
    moved.g0.expr = moved.g0.expr + 5
    assert placeopt.enumerate(moved, start=first).ideal[0] == pytest.approx(first.ideal[0] + 5)


def test_a_front_of_plans_is_gone_on_with():
    model = temporal.build(small_temporal())
    whole = placeopt.enumerate(model)
    again = placeopt.enumerate(model, start=whole)
    assert again.points == whole.points
    assert calls(again) == 0


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_no_time_gives_nothing_and_says_so(solver):
    front = placeopt.enumerate(knapsack(), seconds=0, solver=solver)
    facts = front.runs[0]
    assert (len(front), facts.solver_calls, facts.completed) == (0, 0, False)
    assert facts.parameters["status"] == "time-limit"
    with pytest.raises(UsageError, match="time limit is -1 s; give a positive number"):
        placeopt.enumerate(knapsack(), seconds=-1)


def test_a_point_is_given_to_the_model():
    model = knapsack()
    model.idle = pyo.Var(domain=pyo.Integers, bounds=(2, 9))
    model.take[0].fix(1)
    front = placeopt.enumerate(model)
    for point in front:
        point.load(model)
        values = [pyo.value(model.component(f"g{k}").expr) for k in range(3)]
        assert values == pytest.approx(point.values)
        assert model.take[0].value == 1
        assert model.idle.value == point.plan["idle"] == 2
    with pytest.raises(UsageError, match=r"has no variable 'idle', which the plan names"):
        front.points[0].load(knapsack(3))


def test_a_plan_is_given_to_the_model_that_it_was_made_from():
    problem = small_temporal()
    model = temporal.build(problem)
    point = placeopt.enumerate(model).points[0]
    point.load(model)
    assert temporal.extract(model) == point.plan
    with pytest.raises(UsageError, match="has no variable 'instances'"):
        point.load(knapsack())


def test_a_solution_that_time_left_rough_is_not_the_callers_mistake(monkeypatch) -> None:
    """Its real columns lie where the solver left them, between two multiples of a right step."""

    def too_late(program, costs, budget):
        budget.cancel()

    monkeypatch.setattr("placeopt.exact.oracles.least_vertex", too_late)
    front = placeopt.enumerate(with_goals(lambda m: m.x[0] - 0.3 * m.z), steps={"g0": 1})
    assert not front.points and front.runs[0].parameters["status"] != "complete"
