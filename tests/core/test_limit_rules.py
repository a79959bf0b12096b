"""Limits on goals: how they are rounded, exceeded and told; `test_limits` has the methods."""

from __future__ import annotations

import math

import numpy as np
import pytest

from placeopt.core.errors import UsageError
from placeopt.core.fronts.values import Evaluation, Objective, Violation
from placeopt.core.goals import (
    excess,
    fewest,
    judged,
    nothing_inside,
    read_limits,
    upper_limits,
    window,
)

GOALS = (Objective("a", "ms", 0.5), Objective("b", "USD"))


def test_limits_are_read() -> None:
    assert read_limits(["b=3", "a <= 1.3"], GOALS) == {"a": 1.3, "b": 3.0}
    assert list(read_limits(["b=3", "a<=1"], GOALS)) == ["a", "b"]
    assert read_limits("a<=2", GOALS) == {"a": 2.0}
    assert read_limits({"b": 1}, GOALS) == {"b": 1.0}
    assert read_limits(None, GOALS) == {}


@pytest.mark.parametrize(
    "wrong", ["a<3", "a", "c<=1", "a<=x", "a<=nan", "a<=inf", {"a": None}, {"a": True}, [3]]
)
def test_wrong_limits_are_refused(wrong: object) -> None:
    with pytest.raises(UsageError):
        read_limits(wrong, GOALS)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="twice"):
        read_limits(["a<=1", "a<=2"], GOALS)


def test_what_has_no_limit_is_endless() -> None:
    assert upper_limits({"b": 2.0}, GOALS).tolist() == [math.inf, 2.0]


def test_excess_is_a_share_of_limits_above_one() -> None:
    values, most = np.array([[5.0, 0.5], [1.0, 0.75]]), np.array([4.0, 0.5])
    assert excess(values, most).tolist() == [[0.25, 0.0], [0.0, 0.25]]
    assert excess(np.array([[-1.0]]), np.array([-2.0])).tolist() == [[0.5]]


def test_a_verdict_has_what_is_above_its_limit() -> None:
    """A limit may be reached; what else is broken stays."""
    other = Violation("other", 1.0, "x")
    verdict = Evaluation((5.0, 0.75), (other,))
    assert judged(verdict, {"a": 5.0, "b": 0.75}, GOALS) is verdict
    found = judged(verdict, {"a": 4.0, "b": 0.5}, GOALS)
    assert found.values == verdict.values and found.violations[0] is other
    assert [(one.kind, one.amount) for one in found.violations[1:]] == [
        ("limit", 0.25),
        ("limit", 0.25),
    ]
    assert found.violations[1].message == "a is 5, above the limit of 4"
    near = judged(Evaluation((5.0, 1 + 1e-15), ()), {"b": 1.0}, GOALS)
    assert near.violations[0].amount == 1e-12


def test_the_fewer_of_two_that_mean_the_same() -> None:
    assert (fewest(None, None), fewest(3, None), fewest(None, 2.5)) == (None, 3, 2)
    assert (fewest(3, 2.5), fewest(2, 3.5), fewest(None, -1.0)) == (2, 2, 0)


def test_what_is_nearest_is_said() -> None:
    said = nothing_inside({"b": 2.0}, GOALS, (3.0, 2.5))
    assert said == "no plan within b <= 2 was found; the nearest one has b 2.5"


def test_the_window_of_a_sweep() -> None:
    """From one weight before the first plan inside to one after the last."""
    values = np.array([[5.0, 0], [4, 1], [3, 2], [2, 3], [1, 4]])
    assert window(values, np.array([3.5, 3.5])) == (0.25, 1.0)
    assert window(values, np.array([3.5, 2.5])) == (0.25, 0.75)
    assert window(values, np.array([0.5, 9])) == (0.75, 1.0)
    assert window(values, np.array([9.0, 9.0])) == (0.0, 1.0)
    assert window(values[:1], np.array([9.0, 9.0])) == (0.0, 1.0)
