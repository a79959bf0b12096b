"""A proof that cannot be computed costs the proof: the front is written, and the reason said.

And `auto` answers every legal instance, whatever its exact method takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import Hand
from typer.testing import CliRunner

import placeopt
from placeopt import registry
from placeopt.cli import app
from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, SolverError, UnsupportedError
from placeopt.core.fronts import words
from placeopt.core.fronts.certificate import OWN_SECONDS, Bounds, certified
from placeopt.core.fronts.front import Front
from placeopt.core.problem import Problem
from placeopt.core.runs.compiling import Clock

SHIPPED = {
    "temporal": "toy",
    "edge-cloud": "corner-5",
    "rolling-update": "repack-10x5",
    "multi-cluster": "stream-4x100",
    "rescheduling": "chain-12",
}


def minutes(requests: int, slots: int = 10080, **changes: Any) -> dict[str, Any]:
    """A week in slots of a minute: sums of cores and slots pass 52 bits."""
    offer = {"location": "eu", "size": "gpu", "cpu_cores": 96, "memory_gib": 1152}
    return {
        "problem": "temporal",
        "name": "minutes",
        "horizon_slots": slots,
        "slot_hours": 1 / 60,
        "latency_ms": {"eu": {"eu": 3.0, "us": 90.0}},
        "offers": [
            {
                **offer,
                "on_demand_usd_per_hour": 32.77,
                "spot_usd_per_hour": 11.5,
                "spot_interruption": 0.1,
            },
            {**offer, "location": "us", "on_demand_usd_per_hour": 21.97},
        ],
        "requests": [
            {
                "name": f"r{k}",
                "cpu_cores": 30 + k,
                "memory_gib": 200,
                "duration_slots": 1440,
                "replicas": 2,
                "origin": "eu",
            }
            for k in range(requests)
        ],
        **changes,
    }


#: Numbers that exact sums refuse, of several kinds.
WIDE = {
    "short slots": minutes(5),
    "one request": minutes(1),
    "few, and long": minutes(3, slots=1_000_000),
    "thirds of dollars": minutes(2, slot_hours=1 / 3600),
    "no cost in the sum": minutes(4, slot_hours=1e-7 / 3),
}


@pytest.mark.parametrize("name", WIDE)
def test_auto_answers_whatever_its_exact_method_takes(name: str) -> None:
    problem = registry.from_document(WIDE[name])
    front = placeopt.solve(problem, evaluations=400, certify=True)
    assert front.points and front.bounds
    for point in front.points:
        judged = problem.evaluate(point.plan)
        assert judged.feasible and judged.values == point.values
        assert any(all(np.array(b) <= np.array(point.values) + 1e-9) for b in front.bounds)


@pytest.mark.parametrize("requests", [5, 15])
def test_the_command_line_writes_the_front_and_says_why(requests: int, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(minutes(requests)))
    asked = ["solve", str(tmp_path / "a.json"), "--method", "moead", "--evaluations", "300"]
    done = CliRunner().invoke(app, [*asked, "--certify", "-o", str(tmp_path / "front.json")])
    assert done.exit_code == 0, done.output
    written = Front.read(tmp_path / "front.json")
    assert written.points and written.bounds
    assert "too wide" in done.stderr and "Traceback" not in done.stderr
    assert any("too wide" in sentence for sentence in words.certificate(written))


def test_an_exact_method_that_is_asked_for_still_refuses() -> None:
    problem = registry.from_document(WIDE["short slots"])
    with pytest.raises(UnsupportedError, match="too wide"):
        placeopt.solve(problem, "bin-plans")
    with pytest.raises(UnsupportedError, match="too wide"):
        placeopt.solve(problem, "auto", effort=1.0)  # only bin-plans knows it


@pytest.mark.parametrize("error", [MemoryError(), SolverError("it gave up"), ValueError("odd")])
@pytest.mark.parametrize("kind", SHIPPED)
def test_whatever_fails_in_a_proof_leaves_the_front(
    kind: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> Iterator[Bounds]:
        raise error
        yield

    problem = placeopt.load(SHIPPED[kind])
    spec = replace(registry.spec_of(kind), bounds=fails)
    monkeypatch.setattr(registry, "spec_of", lambda wanted: spec)
    front = placeopt.solve(problem, registry.quick(problem), evaluations=50, certify=True)
    assert front.points
    note = next(r.parameters["note"] for r in front.runs if r.method == "certify")
    assert type(error).__name__ in note or str(error) in note


def quick_front() -> tuple[Problem, Front]:
    problem = placeopt.load("chain-12")
    return problem, placeopt.solve(problem, "greedy", evaluations=50)


def test_the_quick_bound_stays_where_the_deep_one_fails() -> None:
    problem, front = quick_front()
    least = front.values.min(axis=0)[None] - 1

    def quick_then_fails(*given: Any) -> Iterator[Bounds]:
        yield Bounds(least, solves=3)
        raise OverflowError("too wide")

    proven = certified(problem, front, Budget(seconds=5), quick_then_fails, None)
    assert proven.points == front.points and len(proven.bounds) == 1
    run = proven.runs[-1]
    assert run.solver_calls == 3 and not run.completed and "OverflowError" in run.parameters["note"]


def test_bounds_of_the_wrong_shape_leave_the_front() -> None:
    problem, front = quick_front()

    def wrong(*given: Any) -> Iterator[Bounds]:
        yield Bounds(np.zeros((1, 7)))

    proven = certified(problem, front, Budget(seconds=5), wrong, "latency_ms")
    assert proven.points == front.points and "note" in proven.runs[-1].parameters


def test_no_plan_at_all_is_said_by_the_proof() -> None:
    problem, front = quick_front()

    def none(*given: Any) -> Iterator[Bounds]:
        raise InfeasibleInstanceError(["nothing fits"])
        yield

    with pytest.raises(InfeasibleInstanceError, match="nothing fits"):
        certified(problem, front, Budget(seconds=5), none, None)


def test_a_certificate_has_time_of_its_own() -> None:
    """Evaluations that are used up do not end it, a time limit does."""
    problem, front = quick_front()
    seen: list[float | None] = []

    def looks(problem: Problem, front: Front, budget: Budget) -> Iterator[Bounds]:
        seen.append(budget.seconds_limit)
        yield Bounds(np.empty((0, 2)))

    used = Budget(evaluations=1)
    used.spend(1)
    for budget in (used, Budget(seconds=3)):
        certified(problem, front, budget, looks, None)
    assert seen[0] == OWN_SECONDS and seen[1] is not None and 0 < seen[1] <= 3


@pytest.mark.parametrize(("passed", "left"), [(0.0, 3.0), (2.5, 0.5), (4.0, -1.0)])
def test_a_certificate_says_its_own_seconds(passed: float, left: float) -> None:
    """Those before it do not count, and it has no more than the run has left."""
    problem, front = quick_front()
    hand = Hand()
    budget = Budget(seconds=3, clock=Clock(hand))
    hand.passes(passed)
    seen: list[float] = []

    def looks(problem: Problem, front: Front, budget: Budget) -> Iterator[Bounds]:
        seen.append(budget.seconds_left)
        hand.passes(0.25)
        yield Bounds(np.empty((0, 2)))

    run = certified(problem, front, budget, looks, None).runs[-1]
    assert run.seconds == 0.25 and seen == [max(left, 0.0)]
