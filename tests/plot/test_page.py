"""The page of a front in a real browser: limits, weights, keys, comparison, phones, no network."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Page, needs_chromium

import placeopt
from placeopt.cli import main
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.problem import Problem
from placeopt.plot import in_notebook, plot_front
from placeopt.plot.front_page import MAX_PLANS, front_data, page, plan_numbers

GOALS = (
    Objective("latency_ms", "ms"),
    Objective("cost_usd", "USD"),
    Objective("served", "requests", sense="max"),
)
HOSTILE = "</script><script>throw 'owned'</script><img src=x onerror=\"throw 'owned'\">"


def drawn(count: int, goals: tuple[Objective, ...] = GOALS) -> Front:
    """Points that no other beats, with plans that hold hostile text."""
    rng = np.random.default_rng(2)
    values = np.sqrt(rng.dirichlet(np.ones(len(goals)), size=count)) * 50
    values = np.array([-1.0 if o.sense == "max" else 1.0 for o in goals]) * (60 - values)
    points = tuple(
        Point(tuple(v), {"name": HOSTILE, "number": k}, method=HOSTILE, seed=k)
        for k, v in enumerate(values.tolist())
    )
    return Front(InstanceName("temporal", HOSTILE, "0"), goals, points)


def shown(chromium: Page, front: Front, target: Path, width: int = 1200, **options: Any) -> Front:
    """Open the page of a front; return the front."""
    plot_front(front, target, **options)
    chromium.errors.clear()
    chromium.open(target, width)
    chromium.wait("document.getElementById('kept').textContent.startsWith('all')")
    return front


def text_of(chromium: Page, name: str) -> str:
    return str(chromium.run(f"document.getElementById('{name}').innerText"))


def set_input(chromium: Page, name: str, value: object, event: str = "input") -> None:
    """Give a slider or a field a value, as a hand does."""
    chromium.run(
        f"(one => {{one.value = '{value}'; one.dispatchEvent(new Event('{event}'))}})({name})"
    )


def slide(chromium: Page, goal: int, position: int) -> None:
    set_input(chromium, f"document.getElementById('limit-{goal}')", position)


def weigh(chromium: Page, goal: int, weight: float) -> None:
    set_input(chromium, f"document.getElementById('weight-{goal}')", weight)


def type_limit(chromium: Page, goal: int, text: object) -> None:
    """Write a limit into the field beside a slider."""
    field = f"document.getElementById('limit-{goal}').nextElementSibling"
    set_input(chromium, field, text, "change")


def chosen(chromium: Page) -> int:
    """Return the number of the plan that is shown, once what was asked has been drawn."""
    frame = "new Promise(requestAnimationFrame)"
    chromium.run(f"{frame}.then(() => {frame}).then(() => 0)")
    return int(re.search(r"Plan (\d+)", text_of(chromium, "plan-h"))[1])


def settled(chromium: Page, count: int, total: int) -> None:
    text = f"all {total:,} plans" if count == total else f"{count:,} of {total:,} plans"
    chromium.wait(f"document.getElementById('kept').textContent === '{text}'")


def kept_marks(chromium: Page) -> list[int]:
    """Return how many marks of every plane are not dimmed: knee and chosen are rings, not marks."""
    return chromium.run(
        "[...document.querySelectorAll('.plane svg')].map(s => [...s.querySelectorAll("
        "'path[class^=shade-], path[class^=by-]')]"
        ".reduce((sum, p) => sum + p.getAttribute('d').split('M').length - 1, 0))"
    )


@needs_chromium
def test_limits_filter_the_plans_of_all_charts(chromium: Page, tmp_path: Path) -> None:
    """By slider and typed; of goals to minimise and to maximise; one press leaves out one plan."""
    front = shown(chromium, drawn(60), tmp_path / "p.html")
    values = front.values
    latency, served = np.sort(values[:, 0]), np.sort(values[:, 2])[::-1]
    slide(chromium, 0, 30)
    slide(chromium, 2, 40)
    expected = int(((values[:, 0] <= latency[30]) & (values[:, 2] >= served[40])).sum())
    assert 0 < expected < 60
    settled(chromium, expected, 60)
    assert kept_marks(chromium) == [expected] * 4
    chromium.run("document.getElementById('reset').click()")
    settled(chromium, 60, 60)
    chromium.run("document.getElementById('limit-1').focus()")
    chromium.key("ArrowLeft")
    settled(chromium, 59, 60)

    middle = float(np.median(values[:, 1]))
    type_limit(chromium, 1, middle)
    settled(chromium, int((values[:, 1] <= middle).sum()), 60)
    type_limit(chromium, 1, -5)  # beyond the best value, which stays
    settled(chromium, 1, 60)
    type_limit(chromium, 1, "")
    settled(chromium, 60, 60)
    assert chromium.errors == [] and chromium.requests == []


@needs_chromium
def test_limits_that_leave_no_plan_give_way(chromium: Page, tmp_path: Path) -> None:
    """The one that was moved last stays, so that a plan is always shown."""
    front = shown(chromium, drawn(40), tmp_path / "p.html")
    slide(chromium, 0, 0)
    settled(chromium, 1, 40)
    slide(chromium, 1, 0)
    assert front[chosen(chromium)].values[1] == front.ideal[1]


@needs_chromium
def test_limits_and_weights_choose_as_the_command_line_does(
    chromium: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command on the page picks the plan that is shown: the knee, by weights, an extreme."""
    front = drawn(80)
    front = replace(front, instance=InstanceName("temporal", "x", "0"))
    front.write(tmp_path / "front.json")
    shown(chromium, front, tmp_path / "p.html", file=str(tmp_path / "front.json"))
    rng = np.random.default_rng(5)
    assert front[chosen(chromium)] is front.pick()
    for turn in range(12):
        chromium.run("document.getElementById('reset').click()")
        if turn % 2:
            slide(chromium, int(rng.integers(3)), int(rng.integers(20, 80)))
        if turn % 3 == 1:
            weigh(chromium, int(rng.integers(3)), float(rng.integers(0, 11)) / 2)
        if turn % 3 == 2:
            shortcut = f"document.querySelectorAll('#shortcuts button')[{1 + turn % 2}]"
            chromium.run(f"{shortcut}.click()")
        number = chosen(chromium)
        command = chromium.run("document.querySelector('.command code').textContent")
        arguments = shlex.split(command.replace("-o plan.json", ""))[1:]
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert not end.value.code
        assert json.loads(capsys.readouterr().out)["index"] == number, command
    assert chromium.errors == []


@needs_chromium
def test_the_arrow_keys_move_from_plan_to_plan(chromium: Page, tmp_path: Path) -> None:
    """Along an axis, to its ends, and only within the limits."""
    front = shown(chromium, drawn(50), tmp_path / "p.html")
    order = np.argsort(front.values[:, 0], kind="stable").tolist()
    chromium.run("document.querySelector('#plane .plane').focus()")
    chromium.key("Home")
    chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {order[0]}'")
    for place in (1, 2):
        chromium.key("ArrowRight")
        chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {order[place]}'")
    chromium.key("End")
    chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {order[-1]}'")
    said = chromium.run("document.querySelector('#plane .unseen').textContent")
    assert f"plan {order[-1]}" in said and "latency" in said
    slide(chromium, 0, 10)
    settled(chromium, 11, 50)
    chromium.run("document.querySelector('#plane .plane').focus()")
    chromium.key("End")
    chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {order[10]}'")
    assert chromium.errors == []


@needs_chromium
def test_a_click_on_a_telephone_shows_the_plan(chromium: Page, tmp_path: Path) -> None:
    """With its values, its facts and the whole plan; at 420 pixels nothing sticks out."""
    problem: Problem = placeopt.load("toy")
    front = placeopt.solve(problem, "moead", evaluations=600)
    shown(chromium, front, tmp_path / "p.html", 420, problem=problem)
    require_fitting(chromium)
    mark = (
        "(plane => {plane.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const b = plane.querySelector('.chosen').getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]})(document.querySelector('#plane .plane'))"
    )
    other = 3 if front.points.index(front.pick()) != 3 else 4
    set_input(chromium, "document.getElementById('point')", other, "change")
    chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {other}'")
    x, y = chromium.run(mark)
    chromium.run("document.getElementById('reset').click()")
    chromium.wait(f"document.getElementById('plan-h').textContent !== 'Plan {other}'")
    chromium.click(x, y)
    chromium.wait("document.getElementById('plan-why').textContent === 'You chose this plan.'")
    number = chosen(chromium)  # several may lie at one place of a plane
    assert front[number].values[:2] == pytest.approx(front[other].values[:2])
    chromium.wait("!!document.querySelector('#plan-facts pre')")
    require_fitting(chromium)
    plan = json.loads(chromium.run("document.querySelector('#plan-facts pre').textContent"))
    assert plan == front[number].plan
    text = text_of(chromium, "plan")
    for name, fact in problem.describe(front[number].plan).items():
        assert name in text and fact.split(",")[0] in text
    assert chromium.run("document.querySelectorAll('.plane .chosen').length") == 4
    assert chromium.errors == [] and chromium.requests == []


def require_fitting(chromium: Page) -> None:
    """Raise unless the page fits into 420 pixels; tables scroll inside."""
    ends = (
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .unseen, pre'))"
        ".map(e => e.getBoundingClientRect()).filter(b => b.width)"
    )
    assert chromium.run(f"Math.max(...{ends}.map(b => b.right))") <= 420
    assert chromium.run(f"Math.min(...{ends}.map(b => b.left))") >= 0
    assert chromium.run("document.documentElement.scrollWidth") <= 420
    slider = "document.getElementById('limit-0').getBoundingClientRect()"
    assert chromium.run(f"{slider}.width") >= 120


THREE = Front(
    InstanceName("temporal", "x", "0"),
    (Objective("latency_ms", "ms"), Objective("cost_usd", "USD"), Objective("lost", "share")),
    (
        Point((10.0, 50.0, 0.1), {"at": {"a": "n1", "b": "n2"}, "buy": ["m", "m"]}),
        Point((12.0, 40.0, 0.1), {"at": {"a": "n1", "b": "n3"}, "buy": ["m", "s"]}),
        Point((20.0, 30.0, 0.3), {"at": {"a": "n2", "b": "n3"}, "buy": []}),
    ),
)


@needs_chromium
def test_two_plans_side_by_side(chromium: Page, tmp_path: Path) -> None:
    """What one gives for what, per unit, and which parts of the plans differ: worked by hand."""
    shown(chromium, THREE, tmp_path / "p.html")
    assert chromium.run("document.getElementById('compare').hidden")
    for number, name in ((0, "pin-a"), (1, "pin-b")):
        set_input(chromium, "document.getElementById('point')", number, "change")
        chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {number}'")
        chromium.run(f"document.getElementById('{name}').click()")
    chromium.wait("!document.getElementById('compare').hidden")
    assert text_of(chromium, "exchange") == (
        "Plan 1 instead of plan 0 gives 10 USD less cost, in exchange for 2 ms more latency. "
        "Each 1 USD of cost costs 0.2 ms of latency."
    )
    chromium.wait("!!document.querySelector('#compare-plans table')")
    rows = chromium.run(
        "[...document.querySelectorAll('#compare-plans tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert rows == [["at of b", "n2", "n3"], ["buy", "1 × m", "–"], ["buy", "–", "1 × s"]]
    values = text_of(chromium, "compare-values")
    assert "+2 ms (+20%)" in values and "−10 USD (−20%)" in values and "the same" in values
    chromium.run("document.getElementById('unpin').click()")
    assert chromium.run("document.getElementById('compare').hidden")
    assert chromium.errors == []


@needs_chromium
def test_the_price_of_one_more_unit(chromium: Page, tmp_path: Path) -> None:
    """Of every goal that can get better from here, by the plan that asks least for it."""
    shown(chromium, THREE, tmp_path / "p.html")
    set_input(chromium, "document.getElementById('point')", 1, "change")
    chromium.wait("document.getElementById('plan-h').textContent === 'Plan 1'")
    rows = chromium.run(
        "[...document.querySelectorAll('#plan-price tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert rows == [
        ["1 ms less latency", "", "+5 USD", "the same", "plan 0"],
        ["1 USD less cost", "+0.8 ms", "", "+2\u00a0%\u2011points", "plan 2"],
    ]
    chromium.run("document.querySelector('#plan-price button').click()")
    chromium.wait("document.getElementById('plan-h').textContent === 'Plan 0'")


@needs_chromium
def test_one_goal_has_a_page_too(chromium: Page, tmp_path: Path) -> None:
    """Hostile text stays text, in the plan as well."""
    shown(chromium, drawn(30, GOALS[:1]), tmp_path / "p.html", 420)
    require_fitting(chromium)
    chromium.wait("!!document.querySelector('#plan-facts pre')")
    assert HOSTILE in chromium.run("document.querySelector('#plan').textContent")
    assert chromium.errors == []


@needs_chromium
def test_a_large_front_stays_usable(chromium: Page, tmp_path: Path) -> None:
    """The plans of a spread subset are inside; of the others the page says how to see them."""
    front = shown(chromium, drawn(4000, GOALS[:2]), tmp_path / "p.html")
    assert (tmp_path / "p.html").stat().st_size < 900_000
    inside = set(plan_numbers(front))
    assert len(inside) == MAX_PLANS
    missing = next(n for n in range(len(front)) if n not in inside)
    set_input(chromium, "document.getElementById('point')", missing, "change")
    chromium.wait(f"document.getElementById('plan-h').textContent === 'Plan {missing}'")
    chromium.wait("document.getElementById('plan-facts').textContent.includes('This page has')")
    text = text_of(chromium, "plan-facts")
    assert f"the plans of {MAX_PLANS:,} of {len(front):,} points" in text
    assert f"placeopt plot FRONT --point {missing}" in text
    began = chromium.run("performance.now()")
    slide(chromium, 0, 1999)
    chromium.wait("document.getElementById('kept').textContent.includes(' of 4,000')")
    assert chromium.run("performance.now()") - began < 5000
    assert chromium.errors == []


@needs_chromium
def test_a_browser_that_cannot_unpack_says_so(chromium: Page, tmp_path: Path) -> None:
    """Values, limits and charts work; in the place of facts stands what to do."""
    script = "delete window.DecompressionStream"
    old = chromium.send("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    try:
        shown(chromium, THREE, tmp_path / "p.html")
        chromium.wait("document.getElementById('plan-facts').textContent.includes('too old')")
        assert "placeopt plot FRONT --point" in text_of(chromium, "plan-facts")
        assert "Values of plan" in text_of(chromium, "plan") and chromium.errors == []
    finally:
        chromium.send("Page.removeScriptToEvaluateOnNewDocument", identifier=old)


def test_a_page_is_small_and_self_contained() -> None:
    """The best front of aws-50 with all plans: well below the 2.5 MB that a mail carries."""
    file = placeopt.core.files.shipped.best_known("aws-50")
    front = Front.read(file)
    text = page(front, placeopt.load("aws-50"))
    assert len(plan_numbers(front)) == len(front) and len(text) < 400_000
    assert "connect-src 'none'" in text and "unsafe-eval" not in text
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)


def test_the_page_embeds_plans_up_to_a_size() -> None:
    """Few of large plans; all of small ones; hostile text stays text."""
    front = drawn(30)
    assert plan_numbers(front) == list(range(30)) and HOSTILE not in page(front)
    big = {"list": ["x" * 1000] * 7000}
    large = replace(front, points=tuple(replace(p, plan=big) for p in front.points))
    assert len(plan_numbers(large)) == 2


def test_maximised_goals_say_so() -> None:
    """In labels; their best value is the greatest."""
    goal = front_data(drawn(9))["goals"][2]
    assert goal["label"] == "served (requests), maximised" and goal["best"] > goal["worst"]


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    """Names stay text there, too."""
    shown = in_notebook(drawn(5))._repr_html_()
    assert shown.startswith("<iframe") and "<script" not in shown
