"""A Dask cluster of two workers: the results of one process, whoever works and whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dying_tasks import die_once
from effort import tries

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError, UsageError
from placeopt.core.runs import workers as engine
from placeopt.core.runs.workers import Call, Workers
from placeopt.edge_cloud.problem import EdgeCloud

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "instances" / "temporal" / "toy.json"
PLAN: dict[str, Any] = {
    "instances": [{"problem": "temporal", "seed": 1, "requests": 3}],
    "methods": ["greedy", "moead", {"name": "moead", "neighbours": 10}],
    "seeds": [1, 2],
    "evaluations": [200, 400],
}
SUPPORT = ROOT / "tests" / "support"
PATHS = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(SUPPORT)!r}]"


def square(budget: Budget, number: int) -> int:
    return number**2


def wait(budget: Budget, seconds: float, mark: str = "") -> str:
    """Wait until the budget ends; say why it did, in a file as well."""
    if mark:
        Path(mark).write_text("waits")
    end = time.monotonic() + seconds
    while not budget.exhausted and time.monotonic() < end:
        time.sleep(0.02)
    if mark:
        Path(mark).write_text("stopped" if budget.cancelled else "ended")
    return "stopped" if budget.cancelled else "ended"


def die(budget: Budget) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, preload=[PATHS]
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def told(found: Any) -> list[Any]:
    """Return the points of a front, or of the fronts of a sweep."""
    fronts = found.fronts if isinstance(found, placeopt.sweeps.SweepResult) else [found]
    return [[(p.values, p.method, p.plan) for p in front.points] for front in fronts]


def kill_one(client: Any) -> None:
    """Kill a worker's process."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_a_task_whose_worker_dies_is_run_again(cluster: Any, tmp_path: Path) -> None:
    calls = [Call(die_once, (str(tmp_path / "mark"), 3)), *(Call(square, (k,)) for k in range(4))]
    assert Workers(scheduler=cluster).run(calls, Budget()) == [9, 0, 1, 4, 9]


def test_a_task_that_ends_every_worker_is_given_up(cluster: Any) -> None:
    with pytest.raises(PlaceoptError, match="ended several workers"):
        Workers(scheduler=cluster).run([Call(die, ())], Budget())


def test_a_sweep_is_the_same_everywhere(cluster: Any) -> None:
    """For 1, 2 and 4 workers, and on a cluster where a worker is killed in the middle."""
    alone = told(placeopt.sweep(PLAN))
    assert len(alone) == 12 and all(alone)
    for jobs in (2, 4)[: tries(1, 2)]:
        assert told(placeopt.sweep(PLAN, jobs=jobs)) == alone

    def kill_after_three(done: int, total: int) -> None:
        if done == 3:
            kill_one(cluster)

    assert told(placeopt.sweep(PLAN, scheduler=cluster, on_cell=kill_after_three)) == alone


@pytest.mark.thorough
def test_an_ensemble_is_the_same_everywhere(cluster: Any) -> None:
    """One process, two, and a cluster by its address."""
    places: tuple[dict[str, Any], ...] = ({}, {"jobs": 2}, {"scheduler": cluster.scheduler.address})
    asked: dict[str, Any] = {"methods": "moead,mspso", "evaluations": 400, "seed": 3}
    fronts = [told(placeopt.solve(TOY, "ensemble", **asked, **where)) for where in places]
    assert fronts[0] == fronts[1] == fronts[2] and fronts[0][0]


@pytest.mark.thorough
def test_epsilon_cells_are_the_same_everywhere(cluster: Any) -> None:
    """One thread, two, and a cluster."""
    problem = EdgeCloud.generate(2, applications=1)
    places: tuple[dict[str, Any], ...] = ({}, {"jobs": 2}, {"scheduler": cluster})
    fronts = [placeopt.solve(problem, "epsilon-constraint", seconds=60, **w) for w in places]
    assert all(front.runs[0].completed for front in fronts)
    assert len({str((f.values.tolist(), f.bounds)) for f in fronts}) == 1 and len(fronts[0]) > 3


def test_deadlines_and_cancelling_reach_workers(cluster: Any) -> None:
    """Tasks that were not begun by then have no result."""
    Workers(scheduler=cluster).run([Call(wait, (0.3,))] * 4, Budget())  # both are awake
    found = Workers(scheduler=cluster).run([Call(wait, (600,))] * 3, Budget(seconds=2))
    assert set(found) == {"stopped", None}
    budget = Budget()
    calls = [Call(square, (2,)), Call(wait, (600,))]
    found = Workers(scheduler=cluster).run(calls, budget, lambda k, result: budget.cancel())
    assert found == [4, "stopped"]


def test_a_task_whose_asker_is_gone_stops(cluster: Any, tmp_path: Path) -> None:
    """Such as one that was killed."""
    mark = tmp_path / "mark"
    script = (
        f"{PATHS}\nimport tests.test_cluster as t\n"
        f"w = t.Workers(scheduler={cluster.scheduler.address!r})\n"
        f"w.run([t.Call(t.wait, (60, {str(mark)!r}))], t.Budget())"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        assert within(mark.exists)
        process.kill()
    assert within(lambda: mark.read_text() == "stopped")


def within(true: Any) -> bool:
    """Return whether something becomes true before a patient person gives up."""
    for _ in range(6000):
        if true():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.thorough
def test_a_killed_sweep_on_a_cluster_loses_what_was_in_flight(cluster: Any, tmp_path: Path) -> None:
    """SIGKILL of the command; the same command again runs only what is missing."""
    (tmp_path / "plan.toml").write_text(
        'methods = ["moead"]\nseeds = [1, 2, 3, 4, 5, 6]\nevaluations = [1500, 1600]\n'
        'instances = [{problem = "temporal", seed = 1, requests = 8}]\n'
    )
    command = [sys.executable, "-m", "placeopt", "sweep", "plan.toml", "--run-dir", "out"]
    command += ["--scheduler", cluster.scheduler.address]
    where: dict[str, Any] = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    runs = tmp_path / "out" / "runs"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **where) as process:
        within(lambda: len(list(runs.glob("*.front.json"))) >= 2 or process.poll() is not None)
        process.kill()
    kept = {path: path.read_bytes() for path in runs.glob("*.front.json")}
    assert 2 <= len(kept) < 12
    done = subprocess.run(command, capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stderr
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert len(list(runs.glob("*.front.json"))) == 12


def test_a_cluster_without_workers_ends_in_time() -> None:
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as local:
        address = local.scheduler_address
        assert Workers(scheduler=address).run([Call(square, (2,))], Budget(seconds=1)) == [None]


def test_what_is_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody at the address; another placeopt on the worker; a task that its machine lacks."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_CONNECT_SECONDS", 0.5)
        with pytest.raises(UsageError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
            placeopt.solve(TOY, "ensemble", scheduler="tcp://127.0.0.1:1")
    with monkeypatch.context() as patch:
        patch.setattr(engine, "versions", lambda: {"placeopt": "0.0.1"})
        with pytest.raises(UsageError, match=r"this is 0\.0\.1; install the same"):
            Workers(scheduler=cluster).run([Call(square, (2,))], Budget())
