"""Reports: right in words and numbers, for every problem, safe with any name, in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from browser import Page, needs_chromium

import placeopt
from placeopt import report
from placeopt.core.errors import UsageError
from placeopt.core.fronts import words
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point, Rejected, Run, Violation
from placeopt.core.fronts.words import number
from placeopt.core.problem import Problem
from placeopt.plot.markup import Bar, clean, table
from placeopt.registry import problem_class, specs
from placeopt.temporal.problem import Temporal
from placeopt.temporal.views import sums

SIZES = {
    "temporal": {"requests": 5, "horizon": 12},
    "edge-cloud": {"applications": 4},
    "rolling-update": {"applications": 3},
    "rescheduling": {},
    "multi-cluster": {"requests": 30},
}
METHODS = {
    "multi-cluster": "greedy",
    "rescheduling": "greedy",
    "rolling-update": "repack",
    "edge-cloud": "greedy",
}  # milliseconds
HOSTILE = (
    '<script>alert("1")</script>&amp;\u202e\u0007 <img src=x onerror=alert(2)> ünï✓ \U0001f600 '
    "</style></title>"
)
VOID = {"meta", "input", "img", "br", "hr", "link"}


class Outline(HTMLParser):
    """The tags of a page, and whether they close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.shown += data


def answered(kind: str) -> tuple[Problem, Front]:
    problem = problem_class(kind).generate(2, **SIZES.get(kind, {}))
    return problem, placeopt.solve(problem, METHODS.get(kind, "auto"), evaluations=300, seed=1)


@pytest.fixture(scope="module")
def temporal() -> tuple[Problem, Front]:
    return answered("temporal")


@pytest.mark.parametrize("kind", specs())
def test_every_problem_has_a_report(kind: str) -> None:
    """Well-formed, self-contained, accessible: language, title, captions, alternative texts."""
    problem, front = answered(kind)
    text = report.html(front, problem=problem)
    page = Outline(text)
    names = [tag for tag, _ in page.tags]
    assert (
        ("html", {"lang": "en"}) in page.tags
        and names[: names.index("body")].count("title") == 1
        and names.count("h1") == 1
    )
    assert names.count("caption") == names.count("table") >= 3
    assert all(attributes.get("alt") for tag, attributes in page.tags if tag == "img")
    assert all(
        attributes.get("aria-label")
        for _, attributes in page.tags
        if attributes.get("role") in ("img", "group")
    )
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not any(
        tag == "link" or (tag == "script" and "src" in attributes) for tag, attributes in page.tags
    )
    assert "default-src 'none'" in text
    assert "Confirmed" in page.shown and "Not confirmed" not in page.shown
    assert text == report.html(front, problem=problem), "the same front gives the same page"


def test_texts_of_a_problem_name_its_objectives() -> None:
    """Every problem with a summary says what it asks and what each objective measures.

    Also of those that only some instances have.
    """
    for spec in specs().values():
        if spec.has("summary"):
            summary = spec.load("summary")
            assert summary.QUESTION.endswith("?")
            problem = problem_class(spec.kind).generate(1)
            assert set(summary.MEANINGS) >= {o.name for o in problem.objectives}


def test_hostile_names_stay_text(temporal: tuple[Problem, Front]) -> None:
    """Names of instances, requests, methods, parameters: escaped wherever they stand."""
    problem, _ = temporal
    document = problem.to_document() | {"name": HOSTILE}
    document["requests"][0]["name"] = HOSTILE
    document["offers"][0]["size"] = HOSTILE
    hostile = Temporal.from_document(document)
    answer = placeopt.solve(hostile, "greedy", seed=1)
    runs = (Run(HOSTILE, 1, 1.0, parameters={HOSTILE: HOSTILE}, versions={HOSTILE: HOSTILE}),)
    answer = replace(
        answer, runs=runs, points=tuple(replace(p, method=HOSTILE) for p in answer.points)
    )
    text = report.html(answer, problem=hostile)
    Outline(text)
    own = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert "alert(" not in re.sub(
        r"&lt;script&gt;alert\(&quot;1&quot;\)|onerror=alert\(2\)&gt;", "", own
    )
    assert (
        "<img src=x" not in text
        and '<script>alert("1")' not in text
        and "\u202e" not in own
        and "\x07" not in own
    )
    assert "ünï✓ \U0001f600" in text


def test_names_that_formatting_could_take_for_its_own(temporal: tuple[Problem, Front]) -> None:
    """Braces and percents are not fields."""
    _, front = temporal
    named = replace(
        front, instance=InstanceName("temporal", "{title} {0} %s", front.instance.sha256)
    )
    assert "{title} {0} %s" in Outline(report.html(named)).shown


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_thousands_of_points(width: int) -> None:
    """4,000 points without an instance, with bounds; one to four objectives."""
    rng = np.random.default_rng(width)
    values = rng.dirichlet(np.ones(width), size=4000) * 50
    goals = tuple(Objective(f"goal{k}", "units") for k in range(width))
    points = tuple(Point(tuple(v), {}, "heuristic", None, "nsga3", 1) for v in values.tolist())
    bounds = tuple(tuple(x * 0.9 for x in v) for v in values[:50].tolist())
    front = Front(
        InstanceName("temporal", "big", "0" * 64),
        goals,
        points,
        bounds,
        (Run("nsga3", 1, 1.0, 100),),
    )
    text = report.html(front)
    assert len(text) < 20_000_000
    assert Outline(text).shown.count("big") >= 2


def test_without_a_feasible_plan(temporal: tuple[Problem, Front]) -> None:
    """The reasons, and what the least-violating plan breaks."""
    problem, front = temporal
    rejected = Rejected({}, (1.0, 2.0, 3.0), (Violation("cpu-capacity", 0.5, "node <b> is full"),))
    empty = replace(front, points=(), bounds=(), rejected=rejected, reasons=("there is no room",))
    shown = Outline(report.html(empty, problem=problem)).shown
    assert (
        "there is no room" in shown and "node <b> is full" in shown and "No feasible plan" in shown
    )


def test_the_chosen_point_is_ringed(temporal: tuple[Problem, Front]) -> None:
    """In all figures with points, where it is not the knee."""
    problem, front = temporal
    knee = front.points.index(front.pick())
    other = (knee + 1) % len(front)
    assert '"chosen":null' in report.html(front, problem=problem, index=knee)
    text = report.html(front, problem=problem, index=other)
    assert f'"chosen":{other}' in text and f"Point {other}, chosen with --point" in text


def test_a_front_that_lies_is_found_out(temporal: tuple[Problem, Front]) -> None:
    """The referee is asked again; another version of the instance is said to be one."""
    problem, front = temporal
    liar = replace(
        front,
        points=tuple(replace(p, values=tuple(v * 0.5 for v in p.values)) for p in front.points),
    )
    assert "Not confirmed" in Outline(report.html(liar, problem=problem)).shown
    other = Temporal.from_document(problem.to_document() | {"name": "another"})
    assert "another version of this instance" in Outline(report.html(front, problem=other)).shown
    strange = Temporal.generate(9, requests=2, horizon=12)
    assert "does not fit the instance" in Outline(report.html(front, problem=strange)).shown


def test_what_is_not_there_is_refused(temporal: tuple[Problem, Front]) -> None:
    """A point that does not exist; an instance of another problem."""
    problem, front = temporal
    with pytest.raises(UsageError, match="there is no point 10000"):
        report.html(front, problem=problem, index=10000)
    with pytest.raises(UsageError, match="this one is rescheduling"):
        report.html(front, problem=problem_class("rescheduling").generate(1))


def test_costs_by_data_centre_sum_to_the_objective(temporal: tuple[Problem, Front]) -> None:
    """The tables say what the referee says."""
    problem, front = temporal
    assert isinstance(problem, Temporal)
    for point in front.points[:20]:
        for totals in sums(problem, point.plan):
            assert sum(s.cost for s in totals.values()) == pytest.approx(point.values[1], rel=1e-9)
            assert sum(s.replicas for s in totals.values()) == sum(
                r.replicas for r in problem.requests
            )


@pytest.mark.skipif(
    "multi-cluster" not in specs(), reason="this version has no multi-cluster problem"
)
def test_clusters_are_never_over_their_capacity() -> None:
    """Peaks over the trace, counted apart from the referee, of plans that the referee accepts."""
    from placeopt.multi_cluster.views import usage_over_time

    problem = problem_class("multi-cluster").generate(3, requests=40)
    for point in placeopt.solve(problem, "greedy", seed=1).points:
        share = usage_over_time(problem, point.plan).shares  # type: ignore[arg-type]
        assert 0 <= share.min() and share.max() <= 1


def test_words() -> None:
    """The knee, the extremes and the certificate of a front that can be worked out by hand."""
    goals = (
        Objective("latency_ms", "ms"),
        Objective("cost_usd", "USD"),
        Objective("disruptions", "pods"),
    )
    known = (
        ((1.0, 40.0, 0.0), "optimal"),
        ((2.0, 20.0, 0.0), "heuristic"),
        ((8.0, 10.0, 0.0), "heuristic"),
    )
    points = tuple(Point(v, {}, status) for v, status in known)
    front = Front(InstanceName("x", "x", ""), goals, points, ((1.0, 40.0, 0.0), (1.5, 9.0, 0.0)))
    assert words.trade_offs(front) == [
        "The knee, the balanced choice: latency 2 ms, cost 20 USD, disruptions 0 pods.",
        "The least latency is 1 ms, 50.0% less than the knee; "
        "the price is cost 40 USD (100.0% more).",
        "The least cost is 10 USD, 50.0% less than the knee; "
        "the price is latency 8 ms (4.0 times as much).",
        "Every plan has disruptions 0 pods.",
    ]
    told = " ".join(words.certificate(front))
    assert "1 plan is optimal: proven" in told and "2 plans are heuristic" in told
    assert "No plan can have less latency than 1 ms, which is on this front." in told
    assert "No plan can have less cost than 9 USD; the least found is 10 USD, 11.1% above." in told
    assert "not known. Solve with --certify" in " ".join(
        words.certificate(replace(front, bounds=()))
    )
    assert (
        "complete" in words.certificate(replace(front, bounds=tuple(p.values for p in points)))[2]
    )
    alone = replace(front, points=points[:1], bounds=())
    assert words.trade_offs(alone) == [
        "One plan is at once the best found in every objective: "
        "latency 1 ms, cost 40 USD, disruptions 0 pods."
    ]


def test_markup() -> None:
    """Numbers, escapes, tables that are cut."""
    assert [number(x) for x in (0, 12, 0.1 + 0.2, 98765.4, 1e20)] == [
        "0",
        "12",
        "0.3",
        "98,765",
        "1e+20",
    ]
    assert clean("a\ud800\x00<") == "a\ufffd\ufffd&lt;"
    text = table("t<", ("a", "b"), [["x", 1.5], ["y", Bar(1.2)], ["z", None]], most=2)
    assert (
        "1 more rows are not shown" in text
        and 'class="bar over"' in text
        and "120%" in text
        and "t&lt;" in text
    )


# -- in a browser ----------------------------------------------------------------------------------


@needs_chromium
def test_a_browser_draws_it(
    chromium: Page, temporal: tuple[Problem, Front], tmp_path: Path
) -> None:
    """Charts are there as SVG, the page has no errors, asks no network, and hurts no policy."""
    problem, front = temporal
    report.write(
        replace(front, instance=replace(front.instance, name=HOSTILE)),
        tmp_path / "report.html",
        problem=problem,
    )
    chromium.open(tmp_path / "report.html")
    chromium.wait("document.querySelectorAll('#charts svg').length >= 6")
    assert chromium.run("document.querySelectorAll('.drawing svg path').length") > 5
    assert "<img src=x onerror=alert(2)>" in chromium.run("document.body.innerText")
    assert chromium.errors == [] and chromium.requests == []


def test_maximised_goals_are_described_by_their_greatest_value() -> None:
    goals = (Objective("cost", "EUR"), Objective("profit", "EUR", sense="max"))
    known = ((1.0, 2.0), (2.0, 8.0), (8.0, 10.0))
    points = tuple(Point(v, {"take[0]": 1}) for v in known)
    bounds = ((1.0, 2.5), (2.0, 12.5))
    front = Front(InstanceName("model", "shop", ""), goals, points, bounds)
    assert words.trade_offs(front)[1:] == [
        "The least cost is 1 EUR, 50.0% less than the knee; "
        "the price is profit 2 EUR (75.0% less).",
        "The greatest profit is 10 EUR, 25.0% more than the knee; "
        "the price is cost 8 EUR (4.0 times as much).",
    ]
    told = words.certificate(front)
    assert told[-1] == (
        "No plan can have more profit than 12.5 EUR; the greatest found is 10 EUR, 20.0% below."
    )
    assert "(up to cost 8.8, down to profit 1.2)" in " ".join(told)
    page = Outline(report.html(front)).shown
    assert "from 2 EUR to 10 EUR" in page and "grey crosses are proven bounds:" in page
    assert "take[0]" in page and "--instance" not in page
    lost = replace(front, points=tuple(Point((c, p - 20.0), {}) for c, p in known), bounds=())
    assert "greatest profit is -10 EUR, 2 more than the knee" in words.trade_offs(lost)[2]
