"""What `auto` runs on temporal instances, by their size."""

from __future__ import annotations

from pathlib import Path

import pytest
from hands import Hand

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs.compiling import Clock
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search.division import FEW_REPLICAS, method_for


@pytest.mark.parametrize(
    ("requests", "first"),
    [
        (3, "bin-plans"),
        (19, "moead"),
        (60, "sharded"),
        (100, "sharded"),
        (499, "sharded"),
        (500, "sharded"),
    ],
)
def test_the_method_follows_the_size(requests: int, first: str) -> None:
    stages = method_for(Temporal.generate(1, requests=requests, max_replicas=3))
    assert (stages if isinstance(stages, str) else stages[0][0]) == first
    assert isinstance(stages, str) == (requests not in (60, 100, 499))


@pytest.mark.parametrize(
    ("seconds", "methods"),
    [
        (None, "moead"),
        (0.5, "moead"),
        (5.0, ("moead", "retime")),
        (20.0, ("moead", "moead", "retime")),
        (60.0, ("moead", "bin-plans", "moead", "retime")),
    ],
)
def test_the_exact_method_runs_where_it_ends_in_time(
    seconds: float | None, methods: str | tuple[str, ...]
) -> None:
    chosen = method_for(Temporal.generate(3, requests=10, max_replicas=2), seconds=seconds)
    assert (chosen if isinstance(chosen, str) else tuple(name for name, _ in chosen)) == methods


def test_a_front_that_is_proven_ends_the_run(tmp_path: Path) -> None:
    problem = Temporal.generate(1, requests=10, max_replicas=2)
    assert sum(request.replicas for request in problem.requests) > FEW_REPLICAS
    hand = Hand(tick=1e-5)
    budget = Budget(seconds=20, clock=Clock(hand))
    front = placeopt.solve(problem, budget=budget, run_dir=tmp_path)
    assert {point.status for point in front} == {"optimal"}
    assert [run.method for run in front.runs if run.method == "bin-plans"]
    assert hand.now < 19


def test_a_stage_that_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = (("moead", 0.2), ("bin-plans", 0.2), ("moead", 1.0))
    monkeypatch.setattr("placeopt.temporal.search.division.method_for", lambda problem: stages)
    problem = Temporal.generate(1, requests=30, max_replicas=6)
    front = placeopt.solve(problem, evaluations=3000)
    assert front.runs[0].parameters["methods"] == ["moead", "moead"]
    assert front.runs[0].evaluations <= 3000


def test_bin_plans_have_points_whenever_time_ends() -> None:
    problem = Temporal.generate(3, requests=10, max_replicas=2)
    front = placeopt.solve(problem, "bin-plans", seconds=4)
    assert len(front.points) > 10
    assert front.bounds


def test_both_searches_give_points() -> None:
    """MOEA/D starts from the plans of the parts; neither is lost."""
    front = placeopt.solve(Temporal.generate(3, requests=100), evaluations=3000)
    assert {run.method for run in front.runs} >= {"auto", "sharded", "moead"}
    assert {point.method for point in front} == {"sharded", "moead"}
