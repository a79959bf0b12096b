"""What people see of a rescheduling plan: nodes before and after, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Cell, Mark, before_after, paragraphs, table
from placeopt.plot.scene import Scene
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from placeopt.rescheduling.problem import Rescheduling

# -- the drawing -----------------------------------------------------------------------------------

#: Services that are drawn, at most: those on the critical path first.
MAX_SERVICES = 40
_CRITICAL = PALETTE[4]
#: Width and height of the box of a service in pixels, and the nodes that it names.
_WIDTH, _HEIGHT, _NODES = 150, 70, 2


@dataclass(frozen=True)
class _View:
    """A deployment as it is drawn.

    Attributes
    ----------
    latency : float
        ms.
    title : str
        When, and the latency.
    labels : dict of int to str
        Service -> its name, mean execution, and where its replicas run.
    calls : dict of (int, int) to (float, bool)
        (caller, callee) -> mean latency in ms, and whether it is on the critical path.
    critical : set of int
    """

    latency: float
    title: str
    labels: dict[int, str]
    calls: dict[tuple[int, int], tuple[float, bool]]
    critical: set[int]


def _view(problem: Rescheduling, counts: Sequence[Sequence[int]], when: str) -> _View:
    graph = problem.graph
    critical = {hop.service for hop in graph.critical_path(counts)}
    slowest = graph.processing(counts)[1]
    labels = {}
    for i in graph.order:
        where = ", ".join(f"{problem.nodes[u].name} x {n}" for u, n in enumerate(counts[i]) if n)
        execution = graph.mean_execution(counts, i) / graph.parts
        labels[i] = f"{problem.services[i].name}\n{execution:.4g} ms\n{where}"
    calls: dict[tuple[int, int], tuple[float, bool]] = {}
    for i in graph.order:
        for g, group in enumerate(graph.groups[i]):
            for j in group:
                paid = i in critical and g == slowest[i]
                calls[i, j] = (
                    graph.mean_delay(counts, i, j) / graph.parts,
                    paid or calls.get((i, j), (0.0, False))[1],
                )
    ms = graph.latency_ms(counts)
    return _View(ms, f"{when}: {ms:.5g} ms", labels, calls, critical)


def _views(problem: Rescheduling, plan: Plan) -> tuple[_View, _View]:
    before, after = problem.arrays.home.tolist(), problem.final_counts(plan).tolist()
    return _view(problem, before, "before"), _view(problem, after, "after")


def _layout(problem: Rescheduling, views: Sequence[_View]) -> dict[int, tuple[float, float]]:
    """Return x and y of every service that is drawn.

    x is the length of the longest chain of calls to the service, y the rank among those of equal x.
    """
    graph = problem.graph
    depth = dict.fromkeys(graph.order, 0)
    for i in reversed(graph.order):
        for group in graph.groups[i]:
            for j in group:
                depth[j] = max(depth[j], depth[i] + 1)
    critical = set().union(*(view.critical for view in views))
    drawn = sorted(graph.order, key=lambda i: (i not in critical, depth[i], i))[:MAX_SERVICES]
    columns: dict[int, list[int]] = {}
    for i in drawn:
        columns.setdefault(depth[i], []).append(i)
    return {
        i: (float(x), k - (len(column) - 1) / 2)
        for x, column in columns.items()
        for k, i in enumerate(column)
    }


def scene(problem: Rescheduling, plan: Plan) -> Scene:
    """Return the drawing of a plan: the call graph before, and below it the one after."""
    views = _views(problem, plan)
    places = _layout(problem, views)
    columns = 1 + max(x for x, _ in places.values())
    low = min(y for _, y in places.values())
    rows = 1 + max(y for _, y in places.values()) - low
    tall = 40 + (_HEIGHT + 26) * rows
    sheet = Scene(max(700, 40 + (_WIDTH + 70) * columns - 70), 30 + 2 * tall)
    critical = "the critical path: what the latency consists of"
    sheet.legend(12, 16, [("line", _CRITICAL, critical), ("line", "soft", "other calls")])
    for k, view in enumerate(views):
        top = 30 + k * tall
        sheet.words(12, top + 16, view.title, bold=True)
        spots = {
            i: (20 + (_WIDTH + 70) * x, top + 34 + (_HEIGHT + 26) * (y - low))
            for i, (x, y) in places.items()
        }
        _draw_calls(sheet, view, spots)
        for i, (x, y) in spots.items():
            _draw_service(sheet, view, i, x, y)
    return sheet


def _draw_calls(sheet: Scene, view: _View, spots: Mapping[int, tuple[float, float]]) -> None:
    """Draw an arrow from the right side of each caller to the left side of what it calls."""
    for (i, j), (ms, paid) in sorted(view.calls.items(), key=lambda item: item[1][1]):
        if i not in spots or j not in spots:
            continue
        begin = spots[i][0] + _WIDTH, spots[i][1] + _HEIGHT / 2
        end = spots[j][0], spots[j][1] + _HEIGHT / 2
        colour = _CRITICAL if paid else "soft"
        sheet.line(begin, (end[0] - 6, end[1]), stroke=colour, line_width=2.5 if paid else 1)
        head = [end, (end[0] - 9, end[1] - 4.5), (end[0] - 9, end[1] + 4.5)]
        sheet.area(head, fill=colour)
        middle = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 - 4
        ink = "ink" if paid else "soft"
        sheet.words(*middle, f"{ms:.3g} ms", size=10.5, anchor="middle", colour=ink)


def _draw_service(sheet: Scene, view: _View, i: int, x: float, y: float) -> None:
    """Draw the box of a service: its name, its time, the first of its nodes."""
    critical, label = i in view.critical, view.labels[i]
    stroke, width = (_CRITICAL, 2.0) if critical else ("soft", 1.0)
    sheet.box(x, y, _WIDTH, _HEIGHT, fill="paper", stroke=stroke, line_width=width, title=label)
    name, execution, where = label.split("\n")
    nodes = where.split(", ")
    lines = [name, execution, *nodes[:_NODES]]
    if len(nodes) > _NODES:
        lines[-1] = f"{nodes[_NODES - 1]}, +{len(nodes) - _NODES} more"
    for k, line in enumerate(lines):
        style = {"size": 11.5, "bold": not k, "within": _WIDTH - 12}
        sheet.words(x + 7, y + 16 + 15 * k, line, **style)


# -- tables ----------------------------------------------------------------------------------------

#: What the problem asks, in a sentence.
QUESTION = "Which replicas of a running call graph move, so that requests get faster?"
#: What each objective measures.
MEANINGS = {
    "latency_ms": "end-to-end latency of a request along the critical path of calls",
    "moves": "replicas that move to another node",
}

#: Moves that the table lists, at most.
_MAX_MOVES = 200


def instance(problem: Rescheduling) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    kinds = sorted({n.kind for n in problem.nodes})
    return [
        ("nodes", f"{len(problem.nodes):,} of {len(kinds):,} kinds: {', '.join(kinds[:8])}"),
        ("services", f"{len(problem.services):,}, {int(problem.arrays.replicas.sum()):,} replicas"),
        ("calls", f"{len(problem.arrays.callee):,}"),
        ("gateway", problem.gateway),
        ("latency now", f"{problem.initial_latency:.5g} ms"),
    ]


def plan(problem: Rescheduling, plan: Plan) -> str:
    """Return the tables of a plan."""
    home, final = problem.arrays.home, problem.final_counts(plan)
    before, after = problem.initial_latency, problem.graph.latency_ms(final.tolist())
    change = (
        f", {abs(after / before - 1):.1%} {'less' if after < before else 'more'}"
        if before and after != before
        else ""
    )
    told = [f"The latency goes from {before:.5g} ms to {after:.5g} ms{change}."]
    told += [f"Slowest path now: {_path(problem, home)}.", f"After: {_path(problem, final)}."]
    rows: list[list[Cell]] = [
        [
            str(m["move"]),
            m["service"],
            m["from"],
            m["to"],
            round(m["latency_ms"], 3),
            f"{m['change_ms']:+.3f}",
        ]
        for m in problem.table(plan)
    ]
    columns = ("move", "service", "from", "to", "latency after it (ms)", "change (ms)")
    moves = (
        table("Moves, in order", columns, rows, most=_MAX_MOVES, more="moves")
        if rows
        else paragraphs(["Nothing moves."])
    )
    return paragraphs(told) + _nodes(problem, home, final) + moves


def _path(problem: Rescheduling, counts: np.ndarray) -> str:
    names = [
        problem.services[hop.service].name for hop in problem.graph.critical_path(counts.tolist())
    ]
    return " → ".join(dict.fromkeys(names))


def _nodes(problem: Rescheduling, home: np.ndarray, final: np.ndarray) -> str:
    a = problem.arrays
    one, two = (counts.T @ a.demand / np.maximum(a.capacity, 1) for counts in (home, final))
    count, counted = home.sum(axis=0), final.sum(axis=0)
    moved = (home != final).any(axis=0)
    order = sorted(range(len(problem.nodes)), key=lambda n: (not moved[n], n))
    return before_after(
        "Nodes before and after",
        ("node", "kind", "replicas"),
        [
            (problem.nodes[n].name, problem.nodes[n].kind, f"{count[n]} → {counted[n]}")
            for n in order
        ],
        one[order],
        two[order],
        [Mark("changes", "warn") if moved[n] else "" for n in order],
    )
