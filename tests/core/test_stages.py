"""Runs that are killed between two stages: the same call resumes, and ends the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import placeopt
from placeopt import registry
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.runs import run_directory
from placeopt.core.runs.run_directory import Checkpoint
from placeopt.core.task import Stages


class KilledError(BaseException):
    """Nothing handles it: files are then as `kill -9` leaves them."""


def instance() -> placeopt.Problem:
    return registry.problem_class("edge-cloud").generate(5, applications=4)


def points(front: Front) -> Any:
    return [(p.values, p.plan, p.status, p.gap, p.method) for p in front.points]


def count_stages(monkeypatch: pytest.MonkeyPatch, last: float = float("inf")) -> list[str]:
    """Count the stages that are worked on; the process is killed after the last."""
    worked: list[str] = []
    do = Stages.do

    def counted(stages: Stages, name: str, work: Any) -> Front:
        known = name in stages._done
        front = do(stages, name, work)
        if not known:
            worked.append(name)
        if len(worked) == last:
            raise KilledError
        return front

    monkeypatch.setattr(Stages, "do", counted)
    return worked


def test_auto_does_not_repeat_a_method_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two of its methods."""
    problem = instance()
    names = [name for name, _ in registry.auto(problem)]
    whole = placeopt.solve(problem, evaluations=900)
    with monkeypatch.context() as patch:
        count_stages(patch, 2)
        with pytest.raises(KilledError):
            placeopt.solve(problem, evaluations=900, run_dir=tmp_path)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    worked = count_stages(monkeypatch)
    again = placeopt.solve(problem, evaluations=900, run_dir=tmp_path)
    assert len(names) > 2 and worked == names[2:]
    assert points(again) == points(whole)
    assert [run.method for run in again.runs] == [run.method for run in whole.runs]


def test_a_search_is_not_lost_with_its_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it proves."""
    problem = instance()
    asked: dict[str, Any] = {"evaluations": 300, "run_dir": tmp_path, "certify": True}

    def killed(*_: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(registry, "certifier", lambda kind: killed)
        with pytest.raises(KilledError):
            placeopt.solve(problem, "nsga2", **asked)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    worked = count_stages(monkeypatch)
    front = placeopt.solve(problem, "nsga2", **asked)
    assert worked == [] and front.bounds and front.runs[0].evaluations == 300


def test_a_stage_that_was_cut_short_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = placeopt.solve(instance(), "greedy")
    half = front[:1]

    def make(spent: int, made: Front, stop: bool = False) -> Front:
        budget.spend(spent)
        if stop:
            budget.cancel()
        return made

    budget = Budget(10)
    stages = Stages(budget, Checkpoint(tmp_path / "x"))
    assert stages.do("one", lambda: make(3, front)) == front
    assert stages.do("two", lambda: make(1, half, stop=True)) == half
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    rest = Budget(10)
    again = Stages(rest, Checkpoint(tmp_path / "x"))
    assert points(again.do("one", lambda: pytest.fail("done twice"))) == points(front)
    assert rest.evaluations == 3 and again.do("two", lambda: front) == front
