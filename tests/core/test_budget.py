"""Budgets: what a run may spend, when it must stop, what it says meanwhile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hands import Hand

from placeopt.core.budget import DEFAULT_EVALUATIONS, Budget, Progress
from placeopt.core.errors import UsageError
from placeopt.core.fronts.trace import RunSnapshot
from placeopt.core.runs.compiling import Clock


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
    hand = Hand()
    hand.passes(7)
    budget = Budget(seconds=5, clock=Clock(hand))
    assert (budget.seconds, budget.seconds_left, budget.progress) == (0, 5, 0)
    assert budget.evaluations_left == math.inf and budget.allow(10**9) == 10**9
    hand.passes(4)
    assert not (budget.exhausted or budget.out_of_time)
    assert (budget.seconds_left, budget.progress) == (1, 0.8)
    hand.passes(1)
    assert budget.exhausted and budget.out_of_time and budget.seconds_left == 0
    hand.passes(9)
    assert (budget.seconds, budget.seconds_left, budget.progress) == (14, 0, 1)


@pytest.mark.parametrize("part", [0.25, 1.0])
def test_a_share_is_a_part_of_what_is_left(part: float) -> None:
    """Of both limits; it ends with the whole, too."""
    hand = Hand()
    whole = Budget(evaluations=100, seconds=20, clock=Clock(hand))
    hand.passes(4)
    whole.spend(20)
    share = whole.share(part)
    assert (share.seconds, share.seconds_limit) == (0, 16 * part)
    assert (share.evaluations_limit, share.allow(1000)) == (80 * part, 80 * part)
    hand.passes(2)
    share.spend(4)
    assert (share.seconds, whole.evaluations_left) == (2, 76)
    assert share.progress == pytest.approx(2 / (16 * part))
    assert not share.exhausted
    hand.passes(16 * part - 2)
    assert share.out_of_time and share.exhausted and whole.out_of_time == (part == 1)
    other = whole.share(seconds=None, evaluations=7)
    assert other.allow(1000) == 7 and other.exhausted == whole.out_of_time
    whole.spend(76)
    assert other.exhausted and other.allow(5) == 0
    assert whole.share(0.5).evaluations_limit == 1.0


def test_a_share_has_seconds_of_its_own_where_the_whole_has_none() -> None:
    hand = Hand()
    whole = Budget(evaluations=100, clock=Clock(hand))
    assert whole.share(0.5).seconds_limit is None
    own = whole.share(seconds=3)
    hand.passes(3)
    assert own.out_of_time and own.exhausted and not whole.exhausted
    timed = Budget(seconds=8, clock=Clock(hand)).share(0.5, seconds=100)
    assert (timed.seconds_limit, timed.evaluations_limit) == (4, None)
    assert Budget(seconds=8, clock=Clock(hand)).share(0.0).seconds_limit == 1e-9


def test_whoever_may_stop_a_run_is_asked_now_and_then() -> None:
    """Every twentieth of a second, whatever the number of looks; once stopped is stopped."""
    hand, asked = Hand(), []
    budget = Budget(evaluations=9, stop=lambda: bool(asked.append(hand.now)), clock=Clock(hand))
    for _ in range(9):
        assert not budget.cancelled
        hand.passes(1 / 32)
    assert asked == [0, 0.0625, 0.125, 0.1875, 0.25]
    stopped = iter([True, False])
    budget = Budget(evaluations=9, stop=lambda: next(stopped), clock=Clock(hand))
    assert budget.cancelled and budget.exhausted and budget.out_of_time
    hand.passes(1)
    assert budget.cancelled


@pytest.mark.parametrize(
    ("limits", "share"), [({"evaluations": 10}, 0.5), ({"seconds": 10}, 0.1), ({}, 0.0001)]
)
def test_progress_is_a_share_of_the_limit(limits: dict[str, float], share: float) -> None:
    hand, told = Hand(), list[Progress]()
    budget = Budget(**limits, on_progress=told.append, clock=Clock(hand))
    budget.spend(5)
    hand.passes(1)
    budget.report()
    assert [one.share for one in told] == [pytest.approx(share)]
    whole = Budget(evaluations=5, on_progress=told.append, clock=Clock(hand))
    whole.evaluations_limit = None  # as of a share that counts nothing
    whole.report()
    assert math.isnan(told[-1].share)


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
    [
        (0, None),
        (-5, None),
        (math.inf, None),
        (1.5, None),
        (None, 0),
        (None, -1.0),
        (None, math.inf),
        (None, math.nan),
        (True, None),
        ("5", None),
        (None, True),
        (None, "5"),
    ],
)
def test_limits_that_are_none_are_refused(evaluations: int | None, seconds: float | None) -> None:
    """With what is legal."""
    with pytest.raises(UsageError, match="give a"):
        Budget(evaluations, seconds)


def test_progress_is_told_at_most_ten_times_a_second() -> None:
    """With the share of the scarcer limit."""
    told: list[Progress] = []
    found = np.array([[1.0, 5.0]] * 6 + [[3.0, 2.0]])
    hand = Hand()
    budget = Budget(evaluations=100, seconds=1000, on_progress=told.append, clock=Clock(hand))
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
    hand.passes(0.1)
    budget.spend(1000)
    budget.report()
    assert len(told) == 2 and told[1].share == 1.0
    assert (told[1].points, told[1].best) == (0, ())


def test_what_an_earlier_process_spent_counts() -> None:
    """Of a share for the whole, too."""
    hand = Hand()
    whole = Budget(evaluations=100, seconds=20, clock=Clock(hand))
    whole.share().resume(30, 5.0)
    assert (whole.evaluations, whole.seconds, whole.seconds_left) == (30, 5.0, 15.0)
    share = whole.share()
    assert (share.evaluations_limit, share.seconds_limit) == (70, 15.0)


def test_a_recorder_sees_what_is_found() -> None:
    """Nothing where nothing is; a budget without one goes on."""
    seen: list[object] = []

    class Sees:
        def see(self, seconds: float, evaluations: int, found: object) -> None:
            seen.append((evaluations, found))

    budget, found = Budget(evaluations=9), object()
    budget.report("", found)  # type: ignore[arg-type]
    budget.recorder = Sees()  # type: ignore[assignment]
    budget.spend(2)
    budget.report("")
    budget.report("", found)  # type: ignore[arg-type]
    assert seen == [(2, found)]
