"""Tasks on processes and on a Dask cluster: the same results, whoever works and whoever dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import MissingExtraError, UsageError
from placeopt.core.workers import Call, Workers

TOY = Path(__file__).resolve().parents[2] / "instances" / "temporal" / "toy.json"


def square(budget: Budget, number: int) -> int:
    budget.spend(1)
    return number**2


def wait(budget: Budget, seconds: float) -> str:
    """Wait until the budget ends; say why it did."""
    began = time.perf_counter()
    while not budget.exhausted and time.perf_counter() - began < seconds:
        time.sleep(0.02)
    return "stopped" if budget.cancelled else "ended" if budget.exhausted else "waited"


def die_once(budget: Budget, mark: str, number: int) -> int:
    """Kill the worker the first time; leave a mark, so that the second time it works."""
    try:
        open(mark, "x").close()
    except FileExistsError:
        return number**2
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    sys.path.insert(0, str(Path(__file__).parent))
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            preload=[f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"],
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_results_stand_in_order_for_any_number_of_processes(jobs: int) -> None:
    seen = []
    calls = [Call(square, (k,), evaluations=5) for k in range(6)]
    found = Workers(jobs).run(calls, Budget(), lambda k, result: seen.append((k, result)))
    assert found == [0, 1, 4, 9, 16, 25]
    assert sorted(seen) == list(enumerate(found))


def test_a_process_that_dies_has_its_task_run_again(tmp_path: Path) -> None:
    calls = [Call(die_once, (str(tmp_path / "mark"), 3)), *(Call(square, (k,)) for k in range(4))]
    assert Workers(2).run(calls, Budget()) == [9, 0, 1, 4, 9]


def test_limits_and_cancelling_reach_processes() -> None:
    """A task's own seconds, those of the whole, and cancelling."""
    assert Workers(2).run([Call(wait, (9,), seconds=0.2)] * 2, Budget()) == ["ended"] * 2
    began = time.perf_counter()
    found = Workers(2).run([Call(wait, (9,))] * 4, Budget(seconds=1.0))
    assert set(found) <= {"stopped", None} and time.perf_counter() - began < 6
    budget = Budget()
    found = Workers(2).run(
        [Call(square, (2,)), Call(wait, (9,))], budget, lambda k, result: budget.cancel()
    )
    assert found == [4, "stopped"]


def test_one_process_stops_when_the_whole_does() -> None:
    assert Workers().run([Call(wait, (9,))] * 3, Budget(seconds=0.2)) == ["stopped", None, None]


def test_jobs_are_at_least_one() -> None:
    with pytest.raises(UsageError, match="jobs is 0"):
        Workers(0)


def test_a_cluster_gives_the_same_results(cluster: object, tmp_path: Path) -> None:
    """Also where a worker is killed in the middle."""
    calls = [Call(square, (k,)) for k in range(6)]
    assert Workers(scheduler=cluster).run(calls, Budget()) == [k**2 for k in range(6)]
    calls = [Call(die_once, (str(tmp_path / "mark"), 3)), *(Call(square, (k,)) for k in range(4))]
    assert Workers(scheduler=cluster).run(calls, Budget()) == [9, 0, 1, 4, 9]


def test_cancelling_and_deadlines_reach_a_cluster(cluster: object) -> None:
    Workers(scheduler=cluster).run([Call(square, (k,)) for k in range(4)], Budget())  # imports
    began = time.perf_counter()
    found = Workers(scheduler=cluster).run([Call(wait, (60,))] * 2, Budget(seconds=6))
    assert found == ["stopped"] * 2 and time.perf_counter() - began < 40


def test_an_ensemble_is_the_same_everywhere(cluster: object) -> None:
    """One process, two, and a cluster by its address."""
    fronts = [
        placeopt.solve(TOY, "ensemble", evaluations=800, seed=3, **where)
        for where in (
            {},
            {"jobs": 2},
            {"scheduler": cluster.scheduler.address},  # type: ignore[attr-defined]
        )
    ]
    told = [[(p.values, p.method, p.plan) for p in front.points] for front in fronts]
    assert told[0] == told[1] == told[2] and told[0]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"placeopt\[dask\]"):
        Workers(scheduler="tcp://127.0.0.1:1").run([Call(square, (1,))], Budget())
