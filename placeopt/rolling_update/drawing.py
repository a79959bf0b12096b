"""Drawings of rolling-update plans: load of the nodes after each step, peaks, nodes that empty.

A peak is the load while both copies of a microservice run.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.front import Plan
from placeopt.plot.figures import legend_below, new_figure, style_lanes
from placeopt.plot.style import PALETTE
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rolling_update.timeline import STEP_COLUMNS, Timeline, TimelineStep, timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Nodes that are drawn at most: those that empty first, then those that change most.
MAX_LANES = 60
_EMPTIES, _STOPS = "#009E73", "#D00000"


def _lanes(problem: RollingUpdate, course: Timeline) -> list[int]:
    """Return the nodes to draw, as places in ``course.nodes``.

    They are sorted by cluster; in a cluster those that empty come first.
    """
    a = problem.arrays
    change = np.abs(np.diff(course.load[:, :, 0], axis=0)).sum(axis=0)
    ranked = np.lexsort((-change, ~course.empties))[:MAX_LANES].tolist()
    return sorted(
        ranked, key=lambda k: (a.cluster[course.nodes[k]], not course.empties[k], course.nodes[k])
    )


def _share(problem: RollingUpdate, course: Timeline, amounts: np.ndarray) -> np.ndarray:
    """Return amounts as shares of the nodes' capacities, shape (steps + 1, nodes, 2)."""
    return amounts / np.maximum(problem.arrays.capacity[course.nodes], 1)


def _name(problem: RollingUpdate, course: Timeline, k: int) -> str:
    """Return the label of a node: name, price, and whether it empties or opens."""
    node = problem.nodes[course.nodes[k]]
    end = ", empties" if course.empties[k] else ", opens" if course.opens[k] else ""
    return f"{node.cluster} {node.name} ({node.price:g}{end})"


def figure(problem: RollingUpdate, plan: Plan, title: str) -> Figure:
    """Return the matplotlib figure of a plan: a lane per node, as high as the node's capacity."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    course = timeline(problem.arrays, problem.steps(plan))
    lanes = _lanes(problem, course)
    height = min(max(9.0 / max(1, len(lanes)), 0.14), 0.45)
    drawing = new_figure(7.2, 1.3 + height * max(2, len(lanes)))
    axes = drawing.add_subplot()
    load, peak = _share(problem, course, course.load), _share(problem, course, course.peak)
    for row, k in enumerate(lanes):
        _draw_lane(axes, course, row, k, load[:, k], peak[:, k])
    for step in course.steps:
        if step.action == "stop":
            axes.axvline(step.number, color=_STOPS, linewidth=0.8, linestyle=":")
    axes.set_yticks(
        [row + 0.45 for row in range(len(lanes))],
        [_name(problem, course, k) for k in lanes],
        fontsize=6.5,
    )
    for label, k in zip(axes.get_yticklabels(), lanes, strict=True):
        label.set_color(_EMPTIES if course.empties[k] else "black")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    hidden = len(course.nodes) - len(lanes)
    more = f" ({hidden} more nodes change less and are not drawn)" if hidden else ""
    style_lanes(axes, len(lanes), len(course.steps) + 2, f"step{more}", title)
    handles: list[Any] = [
        Patch(color=PALETTE[0], label="CPU in use"),
        Patch(color=PALETTE[1], label="more while both copies run"),
        Line2D([], [], color="#444444", linewidth=0.8, label="memory"),
        Patch(color=_EMPTIES, label="empty from here"),
    ]
    if any(step.action == "stop" for step in course.steps):
        handles.append(Line2D([], [], color=_STOPS, linewidth=0.8, linestyle=":", label="a stop"))
    legend_below(drawing, handles)
    return drawing


def _draw_lane(
    axes: Any,
    course: Timeline,
    row: int,
    k: int,
    load: np.ndarray,
    peak: np.ndarray,
) -> None:
    """Draw the lane of node k at height `row`, from its load and its peaks, (steps + 1, 2).

    CPU is filled, memory is a line; a mark shows from where on the node is empty for good.
    """
    # The end state gets a step of its own.
    load, peak = np.concatenate((load, load[-1:])), np.concatenate((peak, load[-1:]))
    steps = np.arange(len(load) + 1)
    bottom = row + 0.9

    def heights(shares: np.ndarray) -> np.ndarray:
        return bottom - 0.85 * np.minimum(shares, 1.15)

    def fill(low: np.ndarray, high: np.ndarray, colour: str) -> None:
        ends = [heights(np.append(x, x[-1])) for x in (low, high)]
        axes.fill_between(steps, *ends, step="post", color=colour, linewidth=0)

    axes.axhline(bottom - 0.85, color="#BBBBBB", linewidth=0.5)
    fill(np.zeros(len(load)), load[:, 0], PALETTE[0])
    fill(load[:, 0], np.maximum(load[:, 0], peak[:, 0]), PALETTE[1])
    axes.step(
        steps,
        np.append(heights(load[:, 1]), bottom),
        where="post",
        color="#444444",
        linewidth=0.6,
    )
    if course.empties[k]:
        since = int(np.flatnonzero(course.hosted[:, k])[-1]) + 2
        axes.fill_between(
            [since, len(load)], bottom - 0.85, bottom, color=_EMPTIES, alpha=0.18, linewidth=0
        )
        axes.plot([since], [bottom - 0.42], marker="o", markersize=3, color=_EMPTIES)


def interactive(problem: RollingUpdate, plan: Plan, title: str) -> Any:
    """Return the plotly figure of a plan: nodes x steps, darker where fuller, and a table below."""
    from plotly.subplots import make_subplots

    course = timeline(problem.arrays, problem.steps(plan))
    lanes = _lanes(problem, course)
    load = _share(problem, course, course.load).max(axis=2)
    peak = _share(problem, course, course.peak).max(axis=2)
    chart, table = 60 + 20 * max(4, len(lanes)), 60 + 24 * max(2, min(len(course.steps), 40))
    drawing = make_subplots(
        2,
        1,
        specs=[[{"type": "heatmap"}], [{"type": "table"}]],
        row_heights=[chart, table],
        vertical_spacing=60 / (chart + table),
    )
    texts = [
        [_cell(problem, course, k, step, load[step, k], peak[step, k]) for step in range(len(load))]
        for k in lanes
    ]
    shades = [
        [None if course.hosted[step, k] == 0 else float(peak[step, k]) for step in range(len(load))]
        for k in lanes
    ]
    drawing.add_heatmap(
        z=shades,
        x0=0,
        dx=1,
        y=list(range(len(lanes))),
        zmin=0,
        zmax=1,
        colorscale=[[0, "#E8F1F8"], [0.85, PALETTE[0]], [1, "#06324F"]],
        hoverongaps=False,
        text=texts,
        hoverinfo="text",
        ygap=2,
        colorbar={"title": "peak load", "len": 0.4, "y": 0.8},
        row=1,
        col=1,
    )
    drawing.add_table(
        header={"values": [*STEP_COLUMNS, "empties a node"], "align": "left"},
        cells={"values": _columns(course.steps), "align": "left"},
        row=2,
        col=1,
    )
    drawing.update_layout(
        template="plotly_white",
        height=chart + table + 120,
        margin={"l": 200, "r": 20, "t": 40, "b": 20},
    )
    drawing.update_xaxes(title_text="step", row=1, col=1)
    names = [escape(_name(problem, course, k)) for k in lanes]
    drawing.update_yaxes(
        tickvals=list(range(len(lanes))),
        ticktext=names,
        autorange="reversed",
        showgrid=False,
        row=1,
        col=1,
    )
    return drawing


def _columns(steps: list[TimelineStep]) -> list[list[str]]:
    """Return the cells of the table of steps, column by column."""
    rows = [
        (
            str(step.number),
            step.application,
            step.microservice,
            step.action,
            step.source or "",
            step.target or "",
            f"{step.peak:.0%}" if step.target else "",
            "yes" if step.empties else "",
        )
        for step in steps
    ]
    return [[escape(row[c]) for row in rows] for c in range(len(STEP_COLUMNS) + 1)]


def _cell(
    problem: RollingUpdate, course: Timeline, k: int, step: int, load: float, peak: float
) -> str:
    """Return the text of one node at one step: the step, microservices, load and peak."""
    node = problem.nodes[course.nodes[k]].name
    what = "before the first step"
    if step:
        made = course.steps[step - 1]
        what = f"step {step}: {made.action} {escape(made.application)} {escape(made.microservice)}"
    return (
        f"{escape(node)}, {what}<br>{course.hosted[step, k]} microservices, "
        f"load {load:.0%}, peak {peak:.0%}"
    )
