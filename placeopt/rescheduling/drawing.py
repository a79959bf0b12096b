"""Plans of rescheduling: the call graph and its critical path, before and after, and the moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from placeopt.core.front import Plan
from placeopt.plot.figures import new_figure
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.rescheduling.instance import Rescheduling

#: Services that are drawn, at most: those on the critical path first.
MAX_SERVICES = 40
#: Moves that the figure lists, at most.
MAX_MOVES = 25
_CRITICAL, _OTHER = PALETTE[4], PALETTE[6]
_COLUMNS = ("move", "service", "from", "to", "latency (ms)", "change (ms)")


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


def _rows(problem: Rescheduling, plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            str(m["move"]),
            m["service"],
            m["from"],
            m["to"],
            f"{m['latency_ms']:.2f}",
            f"{m['change_ms']:+.2f}",
        )
        for m in problem.table(plan)
    ]


def figure(problem: Rescheduling, plan: Plan, title: str) -> Figure:
    """Return a matplotlib figure of a plan: the graph before, the graph after, the moves."""
    views, rows = _views(problem, plan), _rows(problem, plan)
    places = _layout(problem, views)
    xs, ys = zip(*places.values(), strict=True)
    tall = max(2.0, 0.75 * (1 + max(ys) - min(ys)))
    listed = 0.5 + 0.19 * min(max(len(rows), 1), MAX_MOVES + 1)
    drawing = new_figure(max(7.2, 1.9 * (1 + max(xs))), 2 * tall + listed)
    panels = drawing.subplots(3, 1, height_ratios=[tall, tall, listed])
    for axes, view in zip(panels, views, strict=False):
        _draw(axes, view, places)
        axes.set_title(view.title, fontsize=8, loc="left")
    panels[2].axis("off")
    shown = rows[:MAX_MOVES] + (
        [("...", f"{len(rows) - MAX_MOVES} more", "", "", "", "")] if len(rows) > MAX_MOVES else []
    )
    cells = panels[2].table(
        cellText=shown or [("none", "", "", "", "", "")],
        colLabels=_COLUMNS,
        loc="upper center",
        cellLoc="left",
    )
    cells.auto_set_font_size(False)
    cells.set_fontsize(6.5)
    drawing.suptitle(title, fontsize=8, x=0.01, ha="left")
    return drawing


def _draw(axes: Any, view: _View, places: Mapping[int, tuple[float, float]]) -> None:
    for (i, j), (ms, paid) in view.calls.items():
        if i in places and j in places:
            colour = _CRITICAL if paid else _OTHER
            width = 1.4 if paid else 0.7
            arrow = {"arrowstyle": "->", "color": colour, "linewidth": width}
            arrow |= {"shrinkA": 22, "shrinkB": 22}
            axes.annotate("", xy=places[j], xytext=places[i], arrowprops=arrow)
            middle = [(a + b) / 2 for a, b in zip(places[i], places[j], strict=True)]
            axes.text(*middle, f"{ms:.3g} ms", fontsize=5.5, color=colour, ha="center", va="bottom")
    for i, (x, y) in places.items():
        colour = _CRITICAL if i in view.critical else _OTHER
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": colour, "linewidth": 1.2}
        name, rest = view.labels[i].split("\n", 1)
        axes.text(
            x,
            y,
            f"{name[:24]}\n{rest[:160].replace(', ', chr(10))}",
            fontsize=4.5,
            ha="center",
            va="center",
            bbox=box,
        )
    xs, ys = zip(*places.values(), strict=True)
    axes.set_xlim(-0.5, max(xs) + 0.5)
    axes.set_ylim(max(ys) + 0.6, min(ys) - 0.6)
    axes.axis("off")


def interactive(problem: Rescheduling, plan: Plan, title: str) -> Any:
    """Return a plotly figure of a plan; hovering says where replicas run.

    `title` is not drawn: it heads the page.
    """
    from plotly.subplots import make_subplots

    views, rows = _views(problem, plan), _rows(problem, plan)
    places = _layout(problem, views)
    xs, ys = zip(*places.values(), strict=True)
    names = [view.title for view in views]
    kinds = [[{"type": "xy"}, {"type": "xy"}], [{"type": "table", "colspan": 2}, None]]
    drawing = make_subplots(
        2, 2, specs=kinds, subplot_titles=names, vertical_spacing=0.05, row_heights=[0.6, 0.4]
    )
    for column, view in enumerate(views, start=1):
        for critical in (False, True):
            _add_calls(drawing, view, places, critical, column)
        colours = [_CRITICAL if i in view.critical else _OTHER for i in places]
        labels = [escape(view.labels[i]).replace("\n", "<br>") for i in places]
        short = ["<br>".join(label.split("<br>")[:2]) for label in labels]
        drawing.add_scatter(
            x=xs,
            y=ys,
            mode="markers+text",
            marker_size=16,
            marker_color=colours,
            text=short,
            hovertext=labels,
            hoverinfo="text",
            textposition="top center",
            showlegend=False,
            row=1,
            col=column,
        )
    cells = [[escape(row[c]) for row in rows] for c in range(len(_COLUMNS))]
    drawing.add_table(
        header={"values": list(_COLUMNS), "align": "left"},
        cells={"values": cells, "align": "left"},
        row=2,
        col=1,
    )
    drawing.update_xaxes(visible=False)
    drawing.update_yaxes(visible=False, autorange="reversed")
    tall = max(2.0, 1 + max(ys) - min(ys))
    drawing.update_layout(
        template="plotly_white",
        height=420 + round(60 * tall),
        margin={"l": 20, "r": 20, "t": 50, "b": 20},
    )
    return drawing


def _add_calls(
    drawing: Any,
    view: _View,
    places: Mapping[int, tuple[float, float]],
    critical: bool,
    column: int,
) -> None:
    """Draw the calls on the critical path, or the others, with their latency half way."""
    from placeopt.plot.html import segments

    calls = [
        (places[i], places[j], ms)
        for (i, j), (ms, paid) in view.calls.items()
        if paid == critical and i in places and j in places
    ]
    shown = {"hoverinfo": "skip", "showlegend": False, "row": 1, "col": column}
    line = {"color": _CRITICAL if critical else _OTHER, "width": 3 if critical else 1}
    drawing.add_scatter(**segments((a, b) for a, b, _ in calls), mode="lines", line=line, **shown)
    drawing.add_scatter(
        x=[(a[0] + b[0]) / 2 for a, b, _ in calls],
        y=[(a[1] + b[1]) / 2 for a, b, _ in calls],
        mode="text",
        text=[f"{ms:.3g} ms" for *_, ms in calls],
        **shown,
    )
