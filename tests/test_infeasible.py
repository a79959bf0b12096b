"""Instances and models without a plan, and models that leave plans out: the front says so."""

from __future__ import annotations

import json
from pathlib import Path

import pyomo.environ as pyo
import pytest
from hard_instances import (
    CHEAPER_WITH_A_STOP,
    FIVE_POINTS,
    ONE_STOP,
    TOO_LARGE,
    problem,
    temporal_without_a_place,
)
from typer.testing import CliRunner

import placeopt
from placeopt import registry
from placeopt.cli import app
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.exact.epsilon_constraint import solve_model
from placeopt.temporal import model as temporal


def methods(kind: str, *without: str) -> list[str]:
    return [
        m.name
        for m in registry.methods().values()
        if kind in m.problems and m.installed and m.name not in without
    ]


def is_an_infeasible_answer(front: Front) -> None:
    """Check for a front without points that carries the least-violating plan and reasons."""
    assert not front.points
    assert front.reasons
    assert front.rejected is not None
    assert front.rejected.violations
    json.loads(front.to_json())


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("method", methods("edge-cloud", "policy"))
def test_an_infeasible_edge_cloud_instance(method: str, certify: bool) -> None:
    front = placeopt.solve(problem(TOO_LARGE), method, evaluations=60, certify=certify)
    is_an_infeasible_answer(front)
    assert "600 cores" in " ".join(front.reasons)


@pytest.mark.parametrize("method", methods("temporal", "policy"))
def test_an_infeasible_temporal_instance_certified(method: str) -> None:
    asked = problem(temporal_without_a_place())
    front = placeopt.solve(asked, method, evaluations=60, certify=True)
    is_an_infeasible_answer(front)
    assert "web" in " ".join(front.reasons)


@pytest.mark.parametrize("document", [TOO_LARGE, temporal_without_a_place()])
def test_the_command_line_writes_the_front_and_exits_with_3(document: dict, tmp_path: Path) -> None:
    instance, output = tmp_path / "instance.json", tmp_path / "front.json"
    instance.write_text(json.dumps(document))
    arguments = ["solve", str(instance), "--certify", "--evaluations", "60", "-o", str(output)]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 3
    is_an_infeasible_answer(Front.read(output))


# -- changed models, models that leave plans out --------------------------------------------------


def solve_changed(limit: float, seconds: float = 60) -> Front:
    """Solve a temporal model with a limit on the cost that its user added."""
    asked = problem(FIVE_POINTS)
    model = temporal.build(asked)
    model.mine = pyo.Constraint(expr=model.cost_usd <= limit)
    return solve_model(Task(asked, budget=Budget(seconds=seconds)), model)


def test_a_changed_model_without_a_solution_gives_no_plans_that_break_it() -> None:
    front = solve_changed(0.01)
    assert not front.points
    assert front.reasons == ("the model has no solution",)
    assert front.runs[0].completed


def test_a_changed_model_gives_plans_that_keep_it() -> None:
    front = solve_changed(1.0)
    assert front.points
    assert max(p.values[1] for p in front.points) <= 1.0


def test_a_changed_model_without_time_says_so() -> None:
    front = solve_changed(1.0, seconds=1e-6)
    assert not front.points
    assert front.reasons == ("no plan was found in time",)


def test_epsilon_constraint_does_not_call_an_instance_that_needs_a_stop_infeasible() -> None:
    asked = problem(ONE_STOP)
    front = placeopt.solve(asked, "epsilon-constraint", seconds=30)
    assert [p.method for p in front.points] == ["repack"]
    assert all(asked.evaluate(p.plan).feasible for p in front.points)
    assert not front.runs[0].completed
    assert "stops or hops" in front.runs[0].parameters["note"]


def test_epsilon_constraint_is_not_complete_where_a_stop_would_help() -> None:
    asked = problem(CHEAPER_WITH_A_STOP)
    front = placeopt.solve(asked, "epsilon-constraint", seconds=30)
    better = placeopt.solve(asked, "decomposition", evaluations=500)
    assert (2.5, 2.0, 1.0) in {p.values for p in better.points} - {p.values for p in front.points}
    assert front.points
    assert not front.runs[0].completed
    assert {p.status for p in front.points} == {"heuristic"}
    assert "stops or hops" in front.runs[0].parameters["note"]


def test_the_command_line_says_what_was_not_searched(tmp_path: Path) -> None:
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(CHEAPER_WITH_A_STOP))
    arguments = ["solve", str(instance), "--method", "epsilon-constraint", "-o"]
    run = CliRunner().invoke(app, [*arguments, str(tmp_path / "front.json")])
    assert run.exit_code == 0
    assert "the model leaves out plans with stops or hops" in " ".join(run.stderr.split())
    assert "time limit" not in run.stderr


@pytest.mark.parametrize("kind", ["temporal", "edge-cloud", "rolling-update", "rescheduling"])
def test_a_run_that_is_cancelled_at_once_still_gives_a_plan(kind: str) -> None:
    """Before its method has found anything: the quickest method's plans, judged."""
    case = registry.problem_class(kind).generate(1)
    budget = Budget(evaluations=100_000)
    budget.cancel()
    front = placeopt.solve(case, "ensemble", budget=budget)
    assert front.points or front.rejected is not None
    assert all(case.evaluate(point.plan).feasible for point in front.points)
