"""Runs that are kept: the same call takes up what is there, whole results and parts of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt
from placeopt import portfolio
from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.arrays import Arrays
from placeopt.core.runs import run_directory
from placeopt.core.runs.run_directory import Checkpoint, RunDirectory
from placeopt.core.runs.workers import Call, Workers
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.exact import enumeration, epsilon_constraint

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "instances" / "temporal" / "toy.json"
BASIC = ROOT / "instances" / "temporal" / "aws-50.json"


def told(front: placeopt.Front) -> list[Any]:
    return [(p.values, p.method, p.plan) for p in front.points]


def refuse(*_: object) -> None:
    pytest.fail("it ran")


def add(budget: Budget, vectors: np.ndarray) -> Arrays:
    return Arrays({"sum": int(vectors.sum())}, {"vectors": vectors + 1})


def test_the_same_call_takes_up_the_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And another call does not: the key is instance, goals, method, parameters, seed, limits."""
    asked: dict[str, Any] = {"evaluations": 300, "run_dir": tmp_path}
    first = placeopt.solve(TOY, "moead", **asked)
    with monkeypatch.context() as patch:
        patch.setattr(portfolio, "run_method", refuse)
        again = placeopt.solve(TOY, "moead", **asked)
    assert told(again) == told(first) and again.runs == first.runs
    for change in (
        {"seed": 2},
        {"evaluations": 301},
        {"objectives": ["cost_usd", "latency_ms"]},
        {"neighbours": 10},
        {"start": first},
        {"certify": True},
    ):
        placeopt.solve(TOY, "moead", **(asked | change))
    assert len(list(tmp_path.glob("*.front.json"))) == 7
    assert not list(tmp_path.glob("*checkpoint*"))


def test_members_of_an_ensemble_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a run that was stopped are taken up by any number of jobs."""
    asked: dict[str, Any] = {"methods": "nsga2,moead,mspso", "seed": 4, "run_dir": tmp_path}
    budget, made = Budget(900), []
    write = RunDirectory.write

    def stop_after_two(kept: RunDirectory, key: dict[str, Any], result: Any) -> None:
        write(kept, key, result)
        made.append(key["method"])
        if len(made) == 2:
            budget.cancel()

    monkeypatch.setattr(RunDirectory, "write", stop_after_two)
    stopped = placeopt.solve(TOY, "ensemble", budget=budget, **asked)
    assert made == ["nsga2", "moead"] and not stopped.runs[0].completed
    whole = placeopt.solve(TOY, "ensemble", evaluations=900, jobs=2, **asked)
    assert made == ["nsga2", "moead", "mspso", "ensemble"]
    assert told(whole) == told(placeopt.solve(TOY, "ensemble", evaluations=900, **asked))
    fresh = asked | {"run_dir": tmp_path / "fresh"}
    assert told(whole) == told(placeopt.solve(TOY, "ensemble", evaluations=900, **fresh))


@pytest.mark.parametrize("method", ["moead", "nsga2", "mspso"])
def test_a_search_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """By another process: nothing that was found is lost, no evaluation is made twice."""
    budget = Budget(3000)

    def stop(progress: Progress) -> None:
        if progress.evaluations >= 1500:
            budget.cancel()

    budget.on_progress = stop
    monkeypatch.setattr(Budget, "report", lambda self, *_, **__: stop(self))  # at every look
    asked: dict[str, Any] = {"run_dir": tmp_path, "seed": 7}
    problem = placeopt.load(TOY)
    part = placeopt.solve(problem, method, budget=budget, **asked)
    assert 1500 <= part.runs[0].evaluations < 3000 and not part.runs[0].completed
    monkeypatch.undo()
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    counted: list[int] = []
    resume = Budget.resume
    monkeypatch.setattr(Budget, "resume", lambda *a: (counted.append(a[1]), resume(*a)))
    whole = placeopt.solve(problem, method, evaluations=3000, **asked)
    assert whole.runs[0].evaluations == 3000 and counted == [part.runs[0].evaluations]
    for values in part.values:
        assert (whole.values <= values + 1e-9).all(axis=1).any(), "a point was lost"
    assert not list(tmp_path.glob("*checkpoint*"))


def test_an_exact_search_that_was_stopped_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered is not asked again; the front is that of one run."""
    problem = EdgeCloud.generate(2, applications=1)
    asked: dict[str, Any] = {"seconds": 60.0, "run_dir": tmp_path}
    whole = placeopt.solve(problem, "epsilon-constraint", seconds=60.0)
    keep = epsilon_constraint._Before.keep

    def stop(before: Any, memory: Any, solves: int) -> None:
        if solves >= 8:
            before.task.budget.cancel()
        keep(before, memory, solves)

    with monkeypatch.context() as patch:
        patch.setattr(epsilon_constraint._Before, "keep", stop)
        patch.setattr(enumeration, "WINDOW", 2)
        budget = Budget(seconds=60)
        part = placeopt.solve(
            problem, "epsilon-constraint", budget=budget, **asked | {"seconds": None}
        )
    assert not part.runs[0].completed and len(part) < len(whole)
    monkeypatch.setattr(run_directory, "_SESSION", "another process")
    again = placeopt.solve(problem, "epsilon-constraint", **asked)
    assert again.runs[0].completed
    assert again.values.tolist() == whole.values.tolist()
    assert [p.status for p in again] == [p.status for p in whole]
    assert 8 <= part.runs[0].solver_calls < again.runs[0].solver_calls
    assert again.runs[0].solver_calls <= whole.runs[0].solver_calls + 2
    assert not list(tmp_path.glob("*checkpoint*"))


def test_a_search_that_was_killed_goes_on(tmp_path: Path) -> None:
    """SIGKILL; the same command again makes the evaluations that are missing."""
    script = (
        "import sys, placeopt.core.runs.run_directory as d; d.CHECKPOINT_SECONDS = 0.05\n"
        "from placeopt.cli import main; main(sys.argv[1:])"
    )
    out = tmp_path / "f.json"
    options = ("--method", "moead", "--evaluations", "10000", "-o", out, "--run-dir", tmp_path)
    command = [sys.executable, "-c", script, "solve", str(BASIC), *map(str, options)]
    where: dict[str, Any] = {"env": os.environ | {"PYTHONPATH": str(ROOT)}}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **where) as process:
        for _ in range(2400):
            if list(tmp_path.glob("*.moead.npz")) or process.poll() is not None:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    done = subprocess.run(command, capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stderr
    run = placeopt.Front.read(out).runs[0]
    assert run.evaluations == 10000 and 0 < run.parameters["resumed_at"] < 10000


def test_arrays_are_kept(tmp_path: Path) -> None:
    """Results that are arrays: of parts of an instance, say."""
    key = {"part": 3, "seed": 1}
    calls = [Call(add, (np.arange(4),), key=key), Call(add, (np.arange(3),))]
    workers = Workers(kept=RunDirectory(tmp_path))
    assert [r.header["sum"] for r in workers.run(calls, Budget())] == [6, 3]
    begun: list[int] = []
    again = workers.run(calls, Budget(), on_begin=begun.extend)
    assert begun == [0] and again[0].arrays["vectors"].tolist() == [1, 2, 3, 4]
    next(tmp_path.glob("*.npz")).write_bytes(b"damaged")
    workers.run(calls, Budget(), on_begin=begun.extend)
    assert begun == [0], "the damaged one is run again"


def test_tasks_that_were_stopped_are_not_kept(tmp_path: Path) -> None:
    budget = Budget()
    budget.cancel()
    calls = [Call(add, (np.arange(2),), key={"k": k}) for k in range(2)]
    results = Workers(kept=RunDirectory(tmp_path)).run(calls, budget)
    assert results[0].header["sum"] == 1 and results[1] is None
    assert not list(tmp_path.iterdir())


def test_checkpoints_of_this_process_are_its_own(tmp_path: Path) -> None:
    """A part of a run does not take up what the part before it left."""
    checkpoint = Checkpoint(tmp_path / "x.checkpoint").of("moead")
    checkpoint.save(lambda: pytest.fail("too early"))
    checkpoint.save(lambda: Arrays({}, {"a": np.ones(2)}), now=True)
    assert checkpoint.read() is None and len(list(tmp_path.iterdir())) == 1


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DocumentError, match="not a folder"):
        placeopt.solve(TOY, "moead", run_dir=tmp_path / "file")
    with pytest.raises(UsageError, match="parameter 'neighbours' is a dict"):
        placeopt.solve(TOY, "moead", run_dir=tmp_path, neighbours={})


def test_a_parameter_that_names_a_file_stands_for_its_content(tmp_path: Path) -> None:
    problem, file = placeopt.load(TOY), tmp_path / "policy.npz"
    keys = []
    for content in ("one", "two", "one"):
        file.write_text(content)
        keys.append(run_directory.task_key(problem, (), "policy", {"policy": str(file)}, 1))
    assert keys[0] == keys[2] != keys[1]
