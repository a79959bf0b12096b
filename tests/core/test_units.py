"""Runs that are killed in the middle: the same call takes up what is done, and ends the same."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

import placeopt
from placeopt import registry
from placeopt.core import run_directory
from placeopt.core.budget import Budget
from placeopt.core.run_directory import Checkpoint
from placeopt.core.task import Task
from placeopt.core.units import Units
from placeopt.temporal.exact import price_cuts

#: Kind of problem, method, sizes of the generator, what `solve` is told.
CASES: list[tuple[str, str, dict[str, int], dict[str, Any]]] = [
    ("rolling-update", "repack", {"microservices": 12, "nodes": 5}, {"restarts": 3}),
    ("rolling-update", "decomposition", {"microservices": 8, "nodes": 4}, {"restarts": 2}),
    ("rescheduling", "block-search", {}, {"evaluations": 10**6}),
    ("rescheduling", "block-search", {"services": 7}, {"evaluations": 10**6}),
    ("temporal", "bin-plans", {"requests": 3}, {}),
    ("temporal", "bound", {"requests": 3}, {"cells": 5}),
    ("multi-cluster", "rollout", {"requests": 12}, {"parts": 2}),
    ("multi-cluster", "hindsight", {"requests": 8}, {"states": 200}),
    (
        "multi-cluster",
        "policy",
        {"requests": 8},
        {"policy": "multi-cluster-published", "samples": 3},
    ),
]


class KilledError(BaseException):
    """Nothing handles it: files are then as `kill -9` leaves them."""


def instance(kind: str, sizes: dict[str, int]) -> placeopt.Problem:
    return registry.problem_class(kind).generate(5, **sizes)


def told(front: placeopt.Front) -> Any:
    run = front.runs[0]
    points = [(p.values, p.plan, p.status, p.gap, p.method) for p in front.points]
    return points, front.bounds, run.evaluations, run.solver_calls, run.completed


@pytest.fixture(autouse=True)
def few_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the bound of a whole lattice of exchange rates is long."""
    monkeypatch.setattr(price_cuts, "PARTS", {1: 1, 2: 5, 3: 5})


def keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write after every unit, not every ten seconds."""
    monkeypatch.setattr(run_directory, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(run_directory, "CHECKPOINT_SHARE", 1e12)


def count_units(
    monkeypatch: pytest.MonkeyPatch, last: float = float("inf"), of: Container[str] | None = None
) -> list[str]:
    """Count the units that are worked on, those of some names alone; killed after the last."""
    worked: list[str] = []
    do = Units.do

    def counted(units: Units, name: str, work: Any, read: Any = None) -> Any:
        known = name in units._done
        result = do(units, name, work, read)
        if not known and (of is None or name in of):
            worked.append(name)
        if len(worked) == last:
            raise KilledError
        return result

    monkeypatch.setattr(Units, "do", counted)
    return worked


@pytest.mark.parametrize(("kind", "method", "sizes", "asked"), CASES)
def test_a_killed_run_ends_with_the_front_of_one_that_was_not(
    kind: str,
    method: str,
    sizes: dict[str, int],
    asked: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No unit is worked on twice, and the front is the same to the last bit."""
    problem = instance(kind, sizes)
    asked = {"evaluations": 400, **asked}
    with monkeypatch.context() as patch:
        units = count_units(patch)
        whole = placeopt.solve(problem, method, **asked)
    assert len(units) == len(set(units)) >= 3
    half = len(units) // 2
    with monkeypatch.context() as patch:
        keep_all(patch)
        count_units(patch, half)
        with pytest.raises(KilledError):
            placeopt.solve(problem, method, run_dir=tmp_path, **asked)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    again = count_units(monkeypatch)
    assert told(placeopt.solve(problem, method, run_dir=tmp_path, **asked)) == told(whole)
    assert again == units[half:]
    assert not list(tmp_path.glob("*checkpoint*"))


def kill_after(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """End the process when it has kept what it found so many times."""
    keep, kept = Task.keep, list[int]()

    def counted(task: Task[Any], content: Any) -> None:
        keep(task, content)
        kept.append(0)
        if len(kept) == last:
            raise KilledError

    monkeypatch.setattr(Task, "keep", counted)


@pytest.mark.parametrize(
    ("kind", "method", "sizes", "last"),
    [
        ("edge-cloud", "lns", {"applications": 4}, 2),
        ("edge-cloud", "price-guided", {"applications": 4}, 3),
        ("edge-cloud", "bound", {"applications": 4}, 3),
        ("rolling-update", "decomposition", {"microservices": 2, "nodes": 8}, 3),
    ],
)
def test_what_was_found_and_proven_is_taken_up(
    kind: str,
    method: str,
    sizes: dict[str, int],
    last: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Weights and questions that are done are not done again; the front is the same."""
    problem = instance(kind, sizes)
    whole = placeopt.solve(problem, method, evaluations=600)
    with monkeypatch.context() as patch:
        keep_all(patch)
        kill_after(patch, last)
        with pytest.raises(KilledError):
            placeopt.solve(problem, method, evaluations=600, run_dir=tmp_path)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    again = placeopt.solve(problem, method, evaluations=600, run_dir=tmp_path)
    points = sorted(tuple(p.values) for p in whole)
    assert sorted(tuple(p.values) for p in again) == points
    assert again.bounds == whole.bounds
    assert [p.status for p in again] == [p.status for p in whole]
    assert again.runs[0].evaluations == whole.runs[0].evaluations


def test_auto_does_not_repeat_a_method_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two of its methods."""
    problem = instance("edge-cloud", {"applications": 4})
    names = [name for name, _ in registry.auto(problem)]
    whole = placeopt.solve(problem, evaluations=900)
    with monkeypatch.context() as patch:
        keep_all(patch)
        count_units(patch, 2, names)
        with pytest.raises(KilledError):
            placeopt.solve(problem, evaluations=900, run_dir=tmp_path)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    worked = count_units(monkeypatch, of=names)
    again = placeopt.solve(problem, evaluations=900, run_dir=tmp_path)
    assert len(names) > 2 and worked == names[2:]
    assert told(again)[0] == told(whole)[0]
    assert [run.method for run in again.runs] == [run.method for run in whole.runs]


def test_a_search_is_not_lost_with_its_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it proves."""
    problem = instance("edge-cloud", {"applications": 4})
    asked: dict[str, Any] = {"evaluations": 300, "run_dir": tmp_path, "certify": True}

    def killed(*_: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        keep_all(patch)
        patch.setattr(registry, "certifier", lambda kind: killed)
        with pytest.raises(KilledError):
            placeopt.solve(problem, "nsga2", **asked)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    worked = count_units(monkeypatch)
    front = placeopt.solve(problem, "nsga2", **asked)
    assert worked == [] and front.bounds and front.runs[0].evaluations == 300


def test_a_unit_that_was_cut_short_is_not_kept(tmp_path: Path) -> None:
    budget = Budget(10)
    units = Units(budget, Checkpoint(tmp_path / "x"))
    assert units.do("one", lambda: budget.spend(3) or [1, 2.5]) == [1, 2.5]
    assert units.do("two", lambda: budget.cancel() or "half") == "half"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_directory, "_SESSION", "another process")
        rest = Budget(10)
        again = Units(rest, Checkpoint(tmp_path / "x"))
        assert again.do("one", lambda: pytest.fail("done twice")) == [1, 2.5]
        assert rest.evaluations == 3 and again.do("two", lambda: "whole") == "whole"
