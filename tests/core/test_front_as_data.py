"""A front as a collection: iterate, index, slice, filter, show."""

from __future__ import annotations

import pytest

from placeopt.core.errors import UsageError
from placeopt.core.front import Front, InstanceName, Objective, Point

GOALS = (Objective("latency_ms", "ms"), Objective("cost_usd", "USD"))
NAME = InstanceName("temporal", "<toy>", "0")
VALUES = ((1.0, 9.0), (2.0, 4.0), (5.0, 3.0), (9.0, 1.0))
FRONT = Front(NAME, GOALS, tuple(Point(v, {"secret": 1}, method="m") for v in VALUES), ((1, 1),))


def test_points_in_their_order() -> None:
    assert [p.values for p in FRONT] == list(VALUES)
    assert FRONT[1].values == VALUES[1] and FRONT[-1].values == VALUES[-1]
    with pytest.raises(IndexError):
        FRONT[4]


def test_parts_are_fronts_whose_gap_counts_what_is_left_out() -> None:
    part = FRONT[1:3]
    assert [p.values for p in part] == list(VALUES[1:3])
    assert part.gap() > FRONT.gap()
    cheap = FRONT.where(cost_usd=4)
    assert [p.values for p in cheap] == list(VALUES[1:]) and cheap.gap() > FRONT.gap()
    assert len(FRONT.where(lambda p: p.values[0] > 3, cost_usd=2)) == 1
    assert len(FRONT.where(cost_usd=0.5)) == 0
    with pytest.raises(UsageError, match="cost_usd"):
        FRONT.where(cost=4)


def test_maximised_goals_have_least_values_allowed() -> None:
    goals = (GOALS[0], Objective("served", "requests", sense="max"))
    front = Front(NAME, goals, tuple(Point(v, {}) for v in ((1.0, 1.0), (2.0, 4.0))))
    assert [p.values for p in front.where(served=3)] == [(2.0, 4.0)]


def test_it_is_shown_without_plans() -> None:
    assert repr(FRONT).startswith("<Front <toy>: 4 points, latency_ms 1 to 9, cost_usd 1 to 9; gap")
    assert "secret" not in repr(FRONT) + repr(FRONT[0]) + FRONT._repr_html_()
    assert "&lt;toy&gt;" in FRONT._repr_html_() and "<toy>" not in FRONT._repr_html_()
    assert repr(FRONT.where(cost_usd=0)) == "<Front <toy>: no points>"


def test_the_default_reference_is_a_tenth_beyond_the_nadir() -> None:
    assert FRONT.hypervolume() == FRONT.hypervolume([9.9, 9.9]) > 0
