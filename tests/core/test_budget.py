"""Budgets: what a run may spend, when it must stop, what it says meanwhile."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from placeopt.core.budget import DEFAULT_EVALUATIONS, Budget, Progress
from placeopt.core.errors import UsageError
from placeopt.core.fronts.trace import RunSnapshot


def test_evaluations_run_out() -> None:
    """Counted by whoever spends them; never less than none left."""
    budget = Budget(evaluations=100)
    budget.spend(60)
    assert (budget.evaluations_left, budget.allow(500), budget.exhausted) == (40, 40, False)
    budget.spend(60)
    assert (budget.evaluations, budget.evaluations_left, budget.allow(5), budget.exhausted) == (
        120,
        0,
        0,
        True,
    )
    assert not budget.out_of_time, "exact methods count no evaluations and do not stop for them"
    assert budget.seconds_left == math.inf


def test_seconds_run_out() -> None:
    """From the creation of the budget on."""
    budget = Budget(seconds=0.05)
    assert not budget.exhausted and 0 < budget.seconds_left <= 0.05
    assert budget.evaluations_left == math.inf and budget.allow(10**9) == 10**9
    time.sleep(0.06)
    assert (
        budget.exhausted
        and budget.out_of_time
        and budget.seconds_left == 0
        and budget.seconds >= 0.05
    )


def test_without_limits_the_default_evaluations_hold() -> None:
    """A run ends by itself."""
    assert Budget().evaluations_left == DEFAULT_EVALUATIONS
    assert Budget(seconds=5).evaluations_left == math.inf


def test_cancelling_stops_every_kind_of_run() -> None:
    """Whatever is left."""
    budget = Budget(evaluations=100, seconds=100)
    budget.cancel()
    assert budget.cancelled and budget.exhausted and budget.out_of_time


@pytest.mark.parametrize(
    ("evaluations", "seconds"),
    [(0, None), (-5, None), (None, 0), (None, -1.0), (None, math.inf), (None, math.nan)],
)
def test_limits_that_are_none_are_refused(evaluations: int | None, seconds: float | None) -> None:
    """With what is legal."""
    with pytest.raises(UsageError, match="give a"):
        Budget(evaluations, seconds)


def test_progress_is_told_at_most_ten_times_a_second() -> None:
    """With the share of the scarcer limit."""
    told: list[Progress] = []
    found = np.array([[1.0, 5.0]] * 6 + [[3.0, 2.0]])
    budget = Budget(evaluations=100, seconds=1000, on_progress=told.append)
    budget.spend(25)
    for _ in range(1000):
        budget.report("searching", RunSnapshot(values=lambda: found))
    assert len(told) == 1
    assert (told[0].share, told[0].evaluations, told[0].best, told[0].points, told[0].note) == (
        0.25,
        25,
        (1.0, 2.0),
        7,
        "searching",
    )
    time.sleep(0.11)
    budget.spend(1000)
    budget.report()
    assert len(told) == 2 and told[1].share == 1.0
