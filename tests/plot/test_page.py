"""The page of a front in a real browser: sliders, brushing, clicks, telephones, nothing loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly")

from browser import Page, browser, needs_chromium

import placeopt
from placeopt.core.front import Front, InstanceName, Objective, Point
from placeopt.core.problem import Problem
from placeopt.plot import plot_front
from placeopt.plot.html import MAX_PLANS, page

GOALS = (
    Objective("latency_ms", "ms"),
    Objective("cost_usd", "USD"),
    Objective("served", "requests", sense="max"),
)
HOSTILE = "</script><script>throw 'owned'</script><img src=x onerror=\"throw 'owned'\">"
DIMMED = "rgba(150,150,150,0.12)"


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


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def shown(chromium: Page, front: Front, file: Path, width: int = 1200, **options: object) -> Front:
    """Open the page of a front; return the front."""
    plot_front(front, file, **options)
    chromium.errors.clear()
    chromium.open(file, width)
    chromium.wait("document.getElementById('kept').textContent.startsWith('all')")
    return front


def slide(chromium: Page, goal: int, position: int) -> None:
    """Move a slider, 0 to 1000, as a hand does."""
    chromium.run(
        f"(slider => {{slider.value = {position};"
        " slider.dispatchEvent(new Event('input', {bubbles: true}))})"
        f"(document.getElementById('limit-{goal}'))"
    )


def bright(chromium: Page, kind: str) -> list[list[int]]:
    """Return the numbers of the points that are not dimmed, for each chart of a kind."""
    found = chromium.run(
        "JSON.stringify([...document.querySelectorAll('.js-plotly-plot')].map(plot => plot.data"
        f".filter(trace => trace.customdata && trace.type.startsWith('{kind}'))"
        ".flatMap(trace => trace.customdata.filter((_, k) => "
        f"trace.marker.color[k] !== '{DIMMED}'))))"
    )
    return [sorted(numbers) for numbers in json.loads(found) if numbers]


def settled(chromium: Page, count: int, total: int) -> None:
    text = f"all {total} points" if count == total else f"{count} of {total} points"
    chromium.wait(f"document.getElementById('kept').textContent === '{text}'")


def ranges(chromium: Page) -> list[list[float] | None]:
    """Return the brushed interval of each axis of the parallel coordinates."""
    found = chromium.run(
        "JSON.stringify([...document.querySelectorAll('.js-plotly-plot')]"
        ".find(plot => plot.data[0].type === 'parcoords').data[0]"
        ".dimensions.map(d => d.constraintrange || null))"
    )
    return json.loads(found)


def type_limit(chromium: Page, goal: int, text: object) -> None:
    """Write a limit into the field beside a slider."""
    chromium.run(
        f"(field => {{field.value = '{text}'; field.dispatchEvent(new Event('change'))}})"
        f"(document.querySelector('.limit[data-goal=\"{goal}\"] [type=number]'))"
    )


def at_slider(front: Front, goal: int, limit: float) -> float:
    """Return the position, 0 to 1000, at which a slider shows a limit."""
    best, worst = front.ideal[goal], front.nadir[goal]
    return 1000 * (limit - best) / (worst - best)


@needs_chromium
def test_limits_filter_the_points_of_all_charts(chromium: Page, tmp_path: Path) -> None:
    """By slider, typed, and by brushing an axis; of goals to minimise and to maximise."""
    front = shown(chromium, drawn(60), tmp_path / "p.html")
    values, best, worst = front.values, front.ideal, front.nadir

    limits = best + np.array([0.5, 1.0, 0.7]) * (worst - best)
    slide(chromium, 0, 500)
    slide(chromium, 2, 700)
    expected = np.flatnonzero((values[:, 0] <= limits[0]) & (values[:, 2] >= limits[2])).tolist()
    assert 0 < len(expected) < 60
    settled(chromium, len(expected), 60)
    assert bright(chromium, "scatter3d") == [expected]
    assert bright(chromium, "scatter") == [expected] * 4  # in space and three planes
    brushed = ranges(chromium)
    assert brushed[0] == pytest.approx([best[0], limits[0]]) and brushed[1] is None
    assert brushed[2] == pytest.approx([limits[2], best[2]])
    chromium.run("document.getElementById('reset').click()")
    settled(chromium, 60, 60)
    assert bright(chromium, "scatter3d") == [list(range(60))]

    middle = float(np.median(values[:, 1]))
    type_limit(chromium, 1, middle)
    settled(chromium, int((values[:, 1] <= middle).sum()), 60)
    slider = int(chromium.run("document.getElementById('limit-1').value"))
    assert slider == pytest.approx(at_slider(front, 1, middle), abs=1)
    type_limit(chromium, 1, -5)  # beyond the best value, which stays
    settled(chromium, 1, 60)
    type_limit(chromium, 1, "")
    settled(chromium, 60, 60)

    drag_along_first_axis(chromium)
    chromium.wait("document.getElementById('kept').textContent.includes(' of 60')")
    low, high = ranges(chromium)[0]
    within = (values[:, 0] >= low - 1e-9) & (values[:, 0] <= high + 1e-9)
    assert bright(chromium, "scatter3d") == [np.flatnonzero(within).tolist()]
    slider = int(chromium.run("document.getElementById('limit-0').value"))
    assert slider == pytest.approx(at_slider(front, 0, high), abs=1)
    assert chromium.errors == [] and chromium.requests == []


def drag_along_first_axis(chromium: Page) -> None:
    x, top, height = json.loads(
        chromium.run(
            "(axis => {axis.scrollIntoView({block: 'center'});"
            " const b = axis.getBoundingClientRect();"
            " return JSON.stringify([b.x + b.width / 2, b.y, b.height])})"
            "(document.querySelector('.axis-brush .background'))"
        )
    )
    chromium.press(x, top + 0.95 * height)
    for share in (0.9, 0.7, 0.5):
        chromium.move(x, top + share * height)
    chromium.release(x, top + 0.5 * height)


@needs_chromium
def test_a_click_on_a_telephone_shows_the_plan(chromium: Page, tmp_path: Path) -> None:
    """With its values, its facts and the whole plan; at 420 pixels nothing sticks out."""
    problem: Problem = placeopt.load("toy")
    front = placeopt.solve(problem, "moead", evaluations=600)
    shown(chromium, front, tmp_path / "p.html", 420, problem=problem)
    require_fitting(chromium, goals=3)
    x, y, clicked = json.loads(
        chromium.run(
            "(plot => {plot.scrollIntoView({block: 'center'});"
            " const b = plot.querySelector('.nsewdrag').getBoundingClientRect(),"
            " l = plot._fullLayout, d = plot.data[0];"
            " return JSON.stringify([b.x + l.xaxis.d2p(d.x[3]), b.y + l.yaxis.d2p(d.y[3]),"
            " d.customdata[3]])})"
            "([...document.querySelectorAll('.js-plotly-plot')]"
            ".find(plot => plot.data[0].type === 'scatter'))"
        )
    )
    assert chromium.run("document.getElementById('plan').hidden")
    chromium.click(x, y)
    chromium.wait("!document.getElementById('plan').hidden")
    require_fitting(chromium, goals=3)
    text = chromium.run("document.getElementById('plan').innerText")
    number = int(re.search(r"Point (\d+)", text)[1])  # several may lie at one place of a plane
    assert front[number].values[:2] == pytest.approx(front[clicked].values[:2])
    plan = json.loads(chromium.run("document.querySelector('#plan pre').textContent"))
    assert plan == front[number].plan
    for name, fact in problem.describe(front[number].plan).items():
        assert name in text and fact.split(",")[0] in text
    rings = "[...document.querySelectorAll('.js-plotly-plot')].filter(p => p.ring !== undefined)"
    assert chromium.run(f"{rings}.length") == 4
    chromium.run("document.getElementById('close').click()")
    assert chromium.run("document.getElementById('plan').hidden")
    assert chromium.errors == [] and chromium.requests == []


def require_fitting(chromium: Page, goals: int) -> None:
    """Raise unless all but the charts' inner parts fits into 420 pixels and can be used."""
    parts = "h1, p, .wide, form, form *, .grid > div, aside, aside *"
    boxes = f"[...document.querySelectorAll('{parts}')].map(e => e.getBoundingClientRect())"
    ends = f"{boxes}.filter(b => b.width)"
    assert chromium.run(f"Math.max(...{ends}.map(b => b.right))") <= 420
    assert chromium.run(f"Math.min(...{ends}.map(b => b.left))") >= 0
    assert chromium.run("document.documentElement.scrollWidth") <= 420
    for goal in range(goals):
        slider = f"document.getElementById('limit-{goal}').getBoundingClientRect()"
        assert chromium.run(f"{slider}.width") >= 150


@needs_chromium
def test_one_goal_has_a_page_too(chromium: Page, tmp_path: Path) -> None:
    """Hostile text stays text, in the plan as well."""
    shown(chromium, drawn(30, GOALS[:1]), tmp_path / "p.html", 420)
    require_fitting(chromium, goals=1)
    chromium.run(
        "(f => {f.value = 0; f.dispatchEvent(new Event('change'))})"
        "(document.getElementById('point'))"
    )
    require_fitting(chromium, goals=1)
    assert HOSTILE in chromium.run("document.querySelector('#plan').innerText")
    assert chromium.errors == []


@needs_chromium
def test_a_large_front_stays_usable(chromium: Page, tmp_path: Path) -> None:
    """The plans of a spread subset are inside; of the others the page says how to see them."""
    front = shown(chromium, drawn(4000, GOALS[:2]), tmp_path / "p.html")
    assert (tmp_path / "p.html").stat().st_size < 7_000_000
    missing = chromium.run(
        "(() => {const f = JSON.parse(document.getElementById('front-data').textContent);"
        " return [Object.keys(f.plans).length, f.values.findIndex((_, k) => !f.plans[k])]})()"
    )
    assert missing[0] == MAX_PLANS
    chromium.run(
        f"(f => {{f.value = {missing[1]}; f.dispatchEvent(new Event('change'))}})"
        "(document.getElementById('point'))"
    )
    text = chromium.run("document.getElementById('plan').innerText")
    assert f"the plans of 500 of {len(front):,} points" in text
    assert f"placeopt plot FRONT --point {missing[1]}" in text
    began = chromium.run("performance.now()")
    slide(chromium, 0, 500)
    chromium.wait("document.getElementById('kept').textContent.includes(' of 4,000')")
    assert chromium.run("performance.now()") - began < 5000
    assert chromium.errors == []


def test_the_page_embeds_plans_up_to_a_size(tmp_path: Path) -> None:
    """Few of large plans; all of small ones; hostile text stays text."""
    text = page(drawn(30))
    inside = re.search(r'id="front-data">(.*?)</script>', text, re.DOTALL)[1]
    assert len(json.loads(inside)["plans"]) == 30 and "<" not in inside
    big = {"list": ["x" * 1000] * 1000}
    front = drawn(30)
    front = replace(front, points=tuple(replace(p, plan=big) for p in front.points))
    inside = re.search(r'id="front-data">(.*?)</script>', page(front), re.DOTALL)[1]
    assert len(json.loads(inside)["plans"]) == 3
