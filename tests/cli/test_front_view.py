"""Fronts for people: any front, on any terminal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import placeopt
from placeopt.cli.front_view import (
    example_limit,
    next_commands,
    plan_in_words,
    points_table,
    view,
)
from placeopt.cli.screen import room
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.fronts.words import quality, sentences

NAME = InstanceName("temporal", "drawn", "0" * 64)
VALUES = st.one_of(st.integers(0, 5).map(float), st.floats(1e-9, 1e12), st.just(1e12))


@st.composite
def fronts(draw: Any) -> Front:
    width = draw(st.integers(1, 9))
    names = [f"{'a_long_name_of_goal_' * draw(st.integers(0, 1))}{k}" for k in range(width)]
    units = draw(st.lists(st.sampled_from(["ms", "USD/h", "share", ""]), min_size=width))
    goals = tuple(Objective(n, u) for n, u in zip(names, units, strict=False))
    vectors = draw(st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=30))
    statuses = st.sampled_from(["optimal", "bounded", "heuristic"])
    points = tuple(
        Point(v, {}, draw(statuses), method=draw(st.sampled_from("ab"))) for v in vectors
    )
    return Front(NAME, goals, points)


@given(fronts(), st.sampled_from([30, 80, 200]))
def test_any_front_fits_any_terminal(front: Front, width: int) -> None:
    """Its table has the knee, and at most ten plans; a word may be longer than a narrow screen."""
    text = view(front, None, width)
    assert width < 80 or max(map(room, text.splitlines())) <= width
    knee = front.points.index(front.pick())
    table = points_table(front, knee, 80)
    rows = [line for line in table.splitlines()[2:] if " between these" not in line]
    assert any(line.split()[:2] == [str(knee), "knee"] for line in rows)
    for sentence in sentences(front, front):
        assert sentence.endswith(".")
    example_limit(front)


def test_the_plan_is_told_as_its_problem_tells_it() -> None:
    problem = placeopt.load("toy")
    front = placeopt.solve(problem, "greedy", evaluations=50)
    told = plan_in_words(front, 0, problem, 80)
    assert told.startswith("Plan 0: latency ") and "\n  fleet " in told
    assert "knee" in plan_in_words(front, front.points.index(front.pick()), None, 80)


def test_a_limit_to_paste_is_legal() -> None:
    """It leaves some plans out and others in."""
    front = placeopt.solve("toy", "greedy", evaluations=50)
    name, value = example_limit(front).split("=")
    assert 0 < len(front.where(**{name: float(value)})) < len(front)


def test_long_commands_stand_below_what_they_are_for() -> None:
    commands = [("a page", "placeopt report a-very-long-name-of-a-front.json --point 17")]
    assert max(map(len, next_commands(commands, 60).splitlines())) > 60
    assert next_commands(commands, 60).splitlines()[1] == "  a page:"
    assert next_commands(commands, 120).count("\n") == 1


def test_quality_names_the_reference_point() -> None:
    front = Front(NAME, (Objective("cost", "EUR"),), (Point((2.0,), {}),))
    assert quality(front) == (
        "Quality (hypervolume): 1.0000 of the box from the best values up to cost 2.2."
    )
