"""Tasks on processes: the same results, whoever works and whoever dies."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from dying_tasks import die_once

from placeopt.core.budget import Budget
from placeopt.core.errors import MissingExtraError, UsageError
from placeopt.core.runs.workers import Call, Workers


def square(budget: Budget, number: int) -> int:
    budget.spend(1)
    return number**2


def wait(budget: Budget, seconds: float) -> str:
    """Wait until the budget ends; say why it did."""
    end = time.monotonic() + seconds
    while not budget.exhausted and time.monotonic() < end:
        time.sleep(0.02)
    return "stopped" if budget.cancelled else "ended" if budget.exhausted else "waited"


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
    assert Workers(2).run([Call(wait, (600,), seconds=0.2)] * 2, Budget()) == ["ended"] * 2
    found = Workers(2).run([Call(wait, (600,))] * 4, Budget(seconds=1.0))
    assert set(found) <= {"stopped", None}
    budget = Budget()
    found = Workers(2).run(
        [Call(square, (2,)), Call(wait, (600,))], budget, lambda k, result: budget.cancel()
    )
    assert found == [4, "stopped"]


def test_one_process_stops_when_the_whole_does() -> None:
    assert Workers().run([Call(wait, (600,))] * 3, Budget(seconds=0.2)) == ["stopped", None, None]


def test_jobs_are_at_least_one() -> None:
    with pytest.raises(UsageError, match="jobs is 0"):
        Workers(0)


def refuse(budget: Budget) -> None:
    raise MissingExtraError("this", "that")


def test_errors_come_back_as_they_are() -> None:
    """Whatever their constructors take."""
    with pytest.raises(MissingExtraError, match=r"this needs .* placeopt\[that\]"):
        Workers(2).run([Call(refuse, ())] * 2, Budget())


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"placeopt\[dask\]"):
        Workers(scheduler="tcp://127.0.0.1:1").run([Call(square, (1,))], Budget())
