"""A front as a collection: iterate, index, slice, filter, show."""

from __future__ import annotations

import xml.dom.minidom
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import placeopt
from placeopt.core.errors import UsageError
from placeopt.core.fronts import words
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.report import html

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
    shown = "<Front <toy>: 4 points, latency_ms 1 to 9, cost_usd 1 to 9; heuristic; gap "
    assert repr(FRONT).startswith(shown)
    assert "secret" not in repr(FRONT) + repr(FRONT[0]) + FRONT._repr_html_()
    assert "&lt;toy&gt;" in FRONT._repr_html_() and "<toy>" not in FRONT._repr_html_()
    assert repr(FRONT.where(cost_usd=0)) == "<Front <toy>: no points>"


def test_the_default_reference_is_a_tenth_beyond_the_nadir() -> None:
    assert FRONT.hypervolume() == FRONT.hypervolume([9.9, 9.9]) > 0


def test_problems_and_points_are_shown_in_one_line() -> None:
    assert repr(placeopt.load("toy")) == "<temporal instance toy: 3 offers, 3 requests>"
    point = Point((1.5, 2.0), {"secret": 1}, "bounded", 0.015, "lns", 7)
    assert repr(point) == "<Point (1.5, 2): bounded (gap 1.50%), lns seed 7>"
    assert repr(FRONT[:1]).endswith("; heuristic; gap 89.89%>")
    both = replace(FRONT, points=(*FRONT.points[:3], replace(FRONT[3], status="optimal")))
    assert "; 1 optimal, 3 heuristic; " in repr(both)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_notebook_sees_a_picture_of_every_width(width: int) -> None:
    """Well-formed, escaped, with all points and the knee."""
    goals = tuple(Objective(f"<goal{k}>", "ms") for k in range(width))
    values = np.random.default_rng(width).dirichlet(np.ones(width), size=30) * 9
    front = Front(NAME, goals, tuple(Point(tuple(v), {}) for v in values.tolist()))
    page = front._repr_html_()
    assert "<goal0>" not in page and "&lt;goal0&gt;" in page
    if width == 1:
        return
    drawn = xml.dom.minidom.parseString(page[page.index("<svg") : page.index("</svg>") + 6])
    panels = width * (width - 1) // 2
    circles = drawn.getElementsByTagName("circle")
    knees = [one for one in circles if one.getAttribute("r") == "7"]
    assert len(circles) - len(knees) >= panels * len(front) and len(knees) >= panels
    assert f"{len(front) - 20} more points" in page


def test_a_front_without_points_says_why_in_a_notebook() -> None:
    page = Front(NAME, GOALS, reasons=("too <small>",))._repr_html_()
    assert "too &lt;small&gt;" in page and "no points" in page


def test_it_draws_itself(tmp_path: Path) -> None:
    assert "<iframe" in FRONT.plot()._repr_html_()
    FRONT.plot(tmp_path / "front.svg")
    assert (tmp_path / "front.svg").read_text().startswith("<svg")
    with pytest.raises(UsageError, match="no points to draw"):
        FRONT.where(cost_usd=0).plot()


# -- measures --------------------------------------------------------------------------------------


def test_indicators_are_moocores_in_scaled_values() -> None:
    """0 against itself; by hand for the front without its second point."""
    part = replace(FRONT, points=(FRONT[0], *FRONT.points[2:]))
    assert FRONT.igd_plus(FRONT) == FRONT.epsilon(FRONT) == FRONT.igd_plus(part) == 0
    behind = [(v[0] - 2 if v[0] > 2 else 0, v[1] - 4 if v[1] > 4 else 0) for v in VALUES]
    least = min(np.hypot(*b) / 8 for b in behind[:1] + behind[2:])
    assert part.igd_plus(FRONT) == pytest.approx(least / 4)
    assert part.epsilon(FRONT) == pytest.approx(3 / 8)


def test_indicators_and_rules_keep_the_sense_of_goals() -> None:
    """A maximised goal is the minimised one with the sign changed."""
    turned = Front(
        NAME,
        (GOALS[0], Objective("cost_usd", "USD", sense="max")),
        tuple(Point((a, -b), {}) for a, b in VALUES),
    )
    plain = replace(FRONT, bounds=())
    assert turned[:2].igd_plus(turned) == pytest.approx(plain[:2].igd_plus(plain))
    assert turned[1:].epsilon(turned) == pytest.approx(plain[1:].epsilon(plain))
    rules = (
        {"reference": {"latency_ms": 4}},
        {"pseudo_weights": {"latency_ms": 1, "cost_usd": 3}},
        {"topsis": {"cost_usd": 9}},
        {"lexicographic": ["cost_usd"]},
        {},
    )
    for rule in rules:
        assert turned.pick(**rule).values[0] == plain.pick(**rule).values[0], rule
    assert turned.pick(reference={"cost_usd": -1, "latency_ms": 9}).values == (9, -1)


def test_other_objectives_cannot_be_compared() -> None:
    other = replace(FRONT, objectives=GOALS[::-1], bounds=())
    with pytest.raises(UsageError, match="different objectives"):
        FRONT.igd_plus(other)
    with pytest.raises(UsageError, match="no points"):
        FRONT.epsilon(FRONT.where(cost_usd=0))


# -- choosing --------------------------------------------------------------------------------------


def test_pick_by_reference_point() -> None:
    """The worst shortfall is least; of what is not asked for the best is wanted."""
    assert FRONT.pick(reference={"latency_ms": 5, "cost_usd": 3}).values == (5, 3)
    assert FRONT.pick(reference={"latency_ms": 1.0, "cost_usd": 8.9}).values == (1, 9)
    assert FRONT.pick(reference={"cost_usd": 3}).values == (2, 4)
    assert FRONT.pick(reference={"cost_usd": 1, "latency_ms": 9}).values == (9, 1)
    assert FRONT.pick(reference={"latency_ms": 0}, budget={"cost_usd": 3}).values == (5, 3)


def test_pick_by_weights_as_pymoo_does() -> None:
    """Pseudo-weights are those of pymoo, on random fronts of three objectives."""
    mcdm = pytest.importorskip("pymoo.mcdm.pseudo_weights")
    goals = (*GOALS, Objective("moves", "pods"))
    rng = np.random.default_rng(8)
    for _ in range(20):
        values = rng.dirichlet(np.ones(3), size=25) * (1, 50, 7)
        front = Front(NAME, goals, tuple(Point(tuple(v), {}) for v in values.tolist()))
        weights = rng.dirichlet(np.ones(3))
        theirs = front[int(mcdm.PseudoWeights(weights).do(front.values))]
        names = [o.name for o in goals]
        mine = front.pick(pseudo_weights=dict(zip(names, weights.tolist(), strict=True)))
        assert mine == theirs


def test_pick_by_topsis() -> None:
    """By hand: closeness with equal weights, and the end that a weight asks for."""
    scaled = FRONT.normalised()
    best, worst = np.hypot(*scaled.T), np.hypot(*(1 - scaled).T)
    assert FRONT.pick(topsis={}) == FRONT[int((worst / (best + worst)).argmax())]
    assert FRONT.pick(topsis={"latency_ms": 100}).values == (1, 9)
    assert FRONT.pick(topsis={"latency_ms": 100}, budget={"cost_usd": 3}).values == (5, 3)


def test_a_goal_that_never_varies_changes_no_choice() -> None:
    goals = (*GOALS, Objective("moves", "pods"))
    flat = Front(NAME, goals, tuple(Point((*v, 3.0), {}) for v in VALUES))
    for rule in ({"topsis": {}}, {"pseudo_weights": {"latency_ms": 1, "cost_usd": 2}}):
        assert flat.pick(**rule).values[:2] == FRONT.pick(**rule).values
    aims = {"latency_ms": 1, "cost_usd": 8.9}
    assert flat.pick(reference=aims | {"moves": 1}).values[:2] == VALUES[0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"topsis": {"latency_ms": -1}}, "the weight of latency_ms is -1"),
        ({"pseudo_weights": {}}, "all weights are 0"),
        ({"pseudo_weights": {"cost": 1}}, "did you mean 'cost_usd'"),
        ({"reference": {"cost_usd": float("nan")}}, "cost_usd is wanted to be nan"),
        ({"topsis": {}, "lexicographic": ["cost_usd"]}, "lexicographic and topsis are two rules"),
        ({"topsis": {}, "budget": {"cost_usd": 0}}, "the least on this front is 1"),
    ],
)
def test_illegal_rules_are_one_message(rule: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        FRONT.pick(**rule)


def test_limits_hold_for_every_rule() -> None:
    """Lexicographic choices too."""
    assert FRONT.pick(lexicographic=["latency_ms"], budget={"cost_usd": 3}).values == (5, 3)


# -- tables ----------------------------------------------------------------------------------------


def test_tables_may_have_plans() -> None:
    pytest.importorskip("pandas")
    assert "plan" not in FRONT.to_pandas()
    assert FRONT.to_pandas(plans=True)["plan"][0] == {"secret": 1}
    problem = placeopt.load("toy")
    front = placeopt.solve(problem, "greedy")
    table = front.to_pandas(problem=problem)
    facts = problem.describe(front[0].plan)
    assert facts and table.loc[0, list(facts)].to_dict() == facts
    assert list(FRONT.where(cost_usd=0).to_pandas()) == list(FRONT.to_pandas())


def test_no_gap_is_understated_wherever_it_is_shown() -> None:
    """Of a point, of a front, in sentences and in a report: rounded up, and never nothing."""
    goals = (Objective("a", "s"), Objective("b", "s"))
    point = Point((1.0, 1.0), {}, "bounded", 1.23e-4, "lns", 7)
    front = Front(InstanceName("x", "x", ""), goals, (point,), ((1.0, 1.0 - 1e-9),))
    assert "gap 0.02%" in repr(point) and repr(front).endswith("gap 0.01%>")
    assert "The gaps of the bounded plans are 0.02% to 0.02%." in words.certificate(front)
    assert "bounded, gap 0.02%" in html(front)
    assert repr(replace(front, bounds=((1.0, 1.0),))).endswith("; complete>")
