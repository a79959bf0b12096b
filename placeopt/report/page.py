"""The sections of a report, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from placeopt import registry
from placeopt.core.errors import PlaceoptError
from placeopt.core.fronts import words
from placeopt.core.fronts.dominance import farthest
from placeopt.core.fronts.values import OWN_MODEL, Plan
from placeopt.core.fronts.words import bare_name, bound_name, label, percent
from placeopt.plot import markup
from placeopt.plot.front_page import as_script, front_data
from placeopt.plot.markup import (
    Mark,
    asset,
    bullets,
    clean,
    details,
    facts,
    paragraphs,
    section,
    shell,
    table,
    tiles,
)
from placeopt.plot.plan_page import plan_html
from placeopt.version import __version__

if TYPE_CHECKING:
    from placeopt.core.door import Approved
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Point
    from placeopt.core.problem import Problem

#: Points in the table of points, runs, warnings and variables listed.
_MAX_POINTS, _MAX_RUNS, _MAX_WARNINGS = 40, 30, 20
_MAX_VARIABLES = 200
_TONES = {"optimal": "good", "bounded": "plain", "heuristic": "plain"}


class SummaryModule(Protocol):
    """The module ``summary`` of a problem: how a report tells its instances and plans.

    Attributes
    ----------
    QUESTION : str
        What the problem asks, in a sentence.
    MEANINGS : mapping
        Name of an objective -> what it measures.
    """

    QUESTION: str
    MEANINGS: Mapping[str, str]

    def instance(self, problem: Any) -> list[tuple[str, str]]:
        """Return facts about the instance: (name, text)."""

    def plan(self, problem: Any, plan: Plan) -> str:
        """Return HTML about a plan."""


def page(
    front: Front,
    problem: Problem | None,
    index: int | None,
    *,
    approved: Approved | None = None,
) -> str:
    """Return the report as HTML text."""
    summary = _summary(front.instance.problem)
    sections = [("asked", "What was asked", _asked(front, problem))]
    if front.points:
        chosen = front.points.index(front.pick()) if index is None else index
        short = _short(front, chosen, index is None)
        sections = [
            ("short", "In short", short if approved is None else tiles(approved.tiles())),
            *([] if approved is None else [("approve", "To approve", approved.html())]),
            *sections,
            ("front", "The front", _front(front, chosen)),
            ("choices", "The knee and the extremes", _choices(front, chosen)),
            ("plan", "The chosen plan", _plan(front, problem, chosen, index is None)),
            ("proof", "How sure is it?", bullets(words.certificate(front))),
        ]
    else:
        sections.insert(0, ("short", "No feasible plan", _rejected(front)))
    sections.append(("runs", "How it was made", _runs(front)))
    scripts = (asset("chart.js"), asset("report.js", "placeopt.report"))
    return shell(
        title=f"{front.instance.name}: report",
        heading=front.instance.name,
        eyebrow=f"placeopt report \u00b7 {front.instance.problem}",
        lead="" if summary is None else summary.QUESTION,
        links=[(name, head) for name, head, _ in sections],
        body="\n".join(section(*part) for part in sections),
        footer=_footer(front),
        script="\n".join(scripts) if len(front) > 1 else "",
    )


def _summary(kind: str) -> SummaryModule | None:
    """Return the summary module of a kind of problem; None where it has none, or is unknown."""
    spec = registry.specs().get(kind)
    return spec.load("summary") if spec is not None and spec.has("summary") else None


# -- in short, what was asked ----------------------------------------------------------------------


def _short(front: Front, chosen: int, knee: bool) -> str:
    point, gap = front.points[chosen], front.gap()
    entries = [("plans", f"{len(front):,}", "none beaten by another")]
    name = "the knee's" if knee else "the chosen plan's"
    for k, objective in enumerate(front.objectives):
        entries.append(
            (
                f"{name} {bare_name(objective)}",
                words.value(objective, point.values[k]),
                _range(front, k),
            )
        )
    missing = "not known" if gap is None else "nothing" if front.complete else percent(gap)
    entries.append(("missing at most", missing, "of the attainable hypervolume"))
    return tiles(entries)


def _range(front: Front, column: int) -> str:
    low, high = (
        words.value(front.objectives[column], float(ends[column]))
        for ends in (front.values.min(axis=0), front.values.max(axis=0))
    )
    if front.ideal[column] == front.nadir[column]:
        return "the same in every plan"
    return f"from {low} to {high}"


def _asked(front: Front, problem: Problem | None) -> str:
    summary = _summary(front.instance.problem)
    meanings = {} if summary is None else summary.MEANINGS
    rows = [
        (
            bare_name(o),
            o.unit or None,
            "large" if o.sign < 0 else "small",
            meanings.get(o.name),
            "real" if o.step is None else f"{o.step:.6g}",
        )
        for o in front.objectives
    ]
    goals = table(
        "Objectives",
        ("objective", "unit", "to be", "what it measures", "smallest difference"),
        rows,
    )
    if front.instance.problem == OWN_MODEL:
        return paragraphs(["A model of the user's own, by its variables."], "note") + goals
    if problem is None:
        remedy = "name it with --instance, or put it beside the front, to see it and the plan."
        note = f"The instance was not at hand when this report was written: {remedy}"
        return paragraphs([note], "note") + goals
    existing = [
        ("instance", front.instance.name),
        ("problem", front.instance.problem),
        *_instance_facts(problem),
    ]
    told = facts(existing) + goals
    if front.instance.sha256 != problem.instance_name.sha256:
        told = (
            '<p><span class="mark bad">Caution</span> The front was made for another version of '
            f"this instance, or for another instance.</p>{told}"
        )
    if warnings := problem.warnings():
        head = f"Warnings about the instance ({len(warnings)})"
        told += details(head, _capped(warnings, _MAX_WARNINGS))
    return told


def _instance_facts(problem: Problem) -> list[tuple[str, str]]:
    summary = _summary(problem.problem)
    if summary is not None:
        return summary.instance(problem)
    sizes = {field: getattr(problem, field) for field in type(problem).model_fields}
    return [
        (field.replace("_", " "), f"{len(value):,}")
        for field, value in sizes.items()
        if isinstance(value, tuple)
    ]


def _capped(sentences: tuple[str, ...], most: int) -> str:
    more = (f"and {len(sentences) - most:,} more",) if len(sentences) > most else ()
    return bullets((*sentences[:most], *more))


# -- the front -------------------------------------------------------------------------------------


def _front(front: Front, chosen: int) -> str:
    others = "s, none of them at least as good as another in everything and better in something"
    count = f"{len(front):,} plan" + ("" if len(front) == 1 else others)
    hint = (
        "Every mark is a complete plan; hover over it, or tap it, for its values. "
        "The red ring is the knee"
    )
    hint += "" if front.points[chosen] is front.pick() else ", the violet one the chosen plan"
    bounds = (
        f"; grey crosses are proven {bound_name(front)}s: no plan can be better."
        if front.bounds
        else "."
    )
    if len(front) == 1:
        hint, bounds = "It is the best found in every objective, so there is nothing to trade.", ""
    return (
        paragraphs([f"{count}.", hint + bounds])
        + charts(front, chosen)
        + details("The points as a table", _points(front))
    )


def _points(front: Front) -> str:
    chosen, caption = list(range(len(front))), "All points"
    if len(front) > _MAX_POINTS:
        chosen = farthest(front.normalised(), _MAX_POINTS)
        caption = f"{len(chosen)} of {len(front):,} points: the extremes and those farthest apart"
    rows = [_point_row(front, k) for k in chosen]
    return table(
        caption,
        ("point", *(label(o) for o in front.objectives), "status", "method"),
        rows,
        most=_MAX_POINTS,
    )


def _point_row(front: Front, index: int) -> tuple[markup.Cell, ...]:
    point = front.points[index]
    status = point.status if point.gap is None else f"{point.status}, gap {percent(point.gap)}"
    return (
        str(index),
        *point.values,
        Mark(status, _TONES.get(point.status, "plain")),
        point.method or "unknown",
    )


def _choices(front: Front, chosen: int) -> str:
    listed = [*words.extremes(front)]
    if chosen not in [k for _, k in listed]:
        listed.insert(0, ("chosen", chosen))
    rows = [(what, *_point_row(front, k)) for what, k in listed]
    columns = ("choice", "point", *(label(o) for o in front.objectives), "status", "method")
    told = (
        "The knee is the plan nearest to the best of everything at once, each objective scaled "
        "between its best and its worst value on the front."
    )
    return (
        bullets(words.trade_offs(front))
        + table("The knee and the extremes", columns, rows)
        + paragraphs([told], "note")
    )


# -- the plan --------------------------------------------------------------------------------------


def _plan(front: Front, problem: Problem | None, chosen: int, knee: bool) -> str:
    point = front.points[chosen]
    what = "the knee" if knee else "chosen with --point"
    which = f"Point {chosen}, {what}: {words.values(front, point)}."
    if front.instance.problem == OWN_MODEL:
        variables = [(name, f"{amount}") for name, amount in point.plan.items()]
        head = f"Variables that are not zero ({len(variables):,})"
        return paragraphs([which]) + details(head, facts(variables[:_MAX_VARIABLES]))
    if problem is None:
        return paragraphs([which, "Its plan can be shown where the instance is known; see above."])
    try:
        judged = _judged(front, problem, point)  # a plan that does not fit is told by nobody
        return paragraphs([which]) + judged + plan_html(problem, point.plan, which)
    except PlaceoptError as error:
        return paragraphs([which, f"The plan does not fit the instance given: {error}"])


def _judged(front: Front, problem: Problem, point: Point) -> str:
    """Say whether the referee, asked now, confirms what the file claims."""
    verdict = problem.evaluate(point.plan)
    values = dict(zip((o.name for o in problem.objectives), verdict.values, strict=True))
    wrong = [
        o for o, v in zip(front.objectives, point.values, strict=True) if values.get(o.name) != v
    ]
    if verdict.violations:
        told = "".join(f"<li>{clean(v.message)}</li>" for v in verdict.violations[:8])
        return f'<p><span class="mark bad">The plan breaks the instance</span></p><ul>{told}</ul>'
    if wrong:
        names = ", ".join(
            f"{bare_name(o)} {words.value(o, values[o.name])}" for o in wrong if o.name in values
        )
        said = clean(names or "that an objective is unknown")
        return f'<p><span class="mark bad">Not confirmed</span> the referee says {said}.</p>'
    return (
        '<p><span class="mark good">Confirmed</span> The referee, asked again for this report, '
        "gives the same values and finds no violation.</p>"
    )


def _rejected(front: Front) -> str:
    told = paragraphs(["No feasible plan was found. Why:"]) + _capped(
        front.reasons or ("no reason is on file",), _MAX_WARNINGS
    )
    if front.rejected is None:
        return told
    rows = [(v.kind, v.message, f"{v.amount:.3g}") for v in front.rejected.violations]
    return told + table(
        "What the least-violating plan breaks", ("rule", "what happens", "by (relative)"), rows
    )


# -- proof, runs -----------------------------------------------------------------------------------


def _runs(front: Front) -> str:
    if not front.runs:
        return paragraphs(["No run is on file."])
    columns = ("method", "seed", "seconds", "evaluations", "solver calls", "points here", "ended")
    kept = [(p.method, p.seed) for p in front.points]
    rows = [
        (
            r.method,
            "none" if r.seed is None else str(r.seed),
            round(r.seconds, 3),
            r.evaluations,
            r.solver_calls,
            kept.count((r.method, r.seed)),
            Mark("by itself", "good") if r.completed else Mark("stopped early", "warn"),
        )
        for r in front.runs
    ]
    listing = table("Runs", columns, rows, most=_MAX_RUNS, more="runs")
    different = dict.fromkeys(map(_run_facts, front.runs[:_MAX_RUNS]))
    return listing + details("Parameters and versions", "".join(different))


def _run_facts(run: Any) -> str:
    entries = [(k, str(v)) for k, v in run.parameters.items()]
    entries += [(f"{k} version", v) for k, v in run.versions.items()]
    told = facts(entries) if entries else paragraphs(["Nothing on file."], "note")
    return f"<h3>{clean(run.method)}</h3>{told}"


def _footer(front: Front) -> str:
    return paragraphs(
        [
            f"Made by placeopt {__version__} from a front of the "
            f"{front.instance.problem} instance with SHA-256 {front.instance.sha256}.",
            "This file loads nothing from a network; numbers are those of the front, "
            "judged by placeopt's referee.",
        ]
    )


def charts(front: Front, chosen: int) -> str:
    """Return where the charts of a front go, and their data; the point `chosen` has a ring."""
    if len(front) == 1:  # nothing to trade: a chart would be one mark on an axis
        return ""
    knee = front.points.index(front.pick())
    data = front_data(front) | {"knee": knee, "chosen": None if chosen == knee else chosen}
    return (
        '<div class="charts" id="charts"></div><noscript><p class="note">The charts need '
        "JavaScript; the table says the same.</p></noscript>" + as_script("front-data", data)
    )
