"""Drawings of rolling-update plans: nodes before and after, their load after each step, peaks.

A peak is the load while both copies of a microservice run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PALETTE
from placeopt.rolling_update.timeline import Timeline, timeline

if TYPE_CHECKING:
    from placeopt.rolling_update.instance import RollingUpdate

#: Nodes that are drawn at most: those that empty first, then those that change most.
MAX_LANES = 60
#: Nodes whose microservices are drawn, before and after.
MAX_BOXES = 16
_EMPTIES, _STOPS = "#009E73", "#D00000"
#: Microservices by whether they end where they began; dark words are read on both.
_STAYS, _MOVES = PALETTE[5], PALETTE[1]
_ENTRIES = [
    ("area", PALETTE[0], "CPU in use"),
    ("area", PALETTE[1], "more while both copies run"),
    ("line", "ink", "memory in use"),
    ("dot", _EMPTIES, "empty from here"),
]


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


def scene(problem: RollingUpdate, plan: Plan) -> Scene:
    """Return the drawing of a plan: nodes before and after, and a lane a node over the steps."""
    steps = problem.steps(plan)
    course = timeline(problem.arrays, steps)
    lanes = _lanes(problem, course)
    names = [_name(problem, course, k) for k in lanes]
    left = 20 + 6.8 * min(60, max(map(len, names), default=0))
    sheet = Scene(1000, 0)
    top = _draw_boxes(sheet, problem, course, lanes, left, steps) if lanes else 0.0
    if steps:
        top = _draw_course(sheet, problem, course, lanes, left, top)
    else:
        sheet.words(left, top + 18, "The plan has no step: the nodes stay as they are.")
        top += 34
    sheet.height = top
    return sheet


def _draw_boxes(
    sheet: Scene,
    problem: RollingUpdate,
    course: Timeline,
    lanes: list[int],
    left: float,
    steps: list[tuple[int, int]],
) -> float:
    """Draw what nodes host before and after, a block a microservice as wide as its share of CPU.

    Returns where the next drawing begins.
    """
    a, shown = problem.arrays, lanes[:MAX_BOXES]
    end = a.final_nodes(steps)
    size = a.old[:, 0].copy()
    started = [m for m, n in steps if n >= 0]
    size[started] = a.new[started, 0]
    width = (984 - left) / 2 - 14
    for title, x, where, sizes in (
        ("before", left, a.home, a.old[:, 0]),
        ("after", left + width + 28, end, size),
    ):
        sheet.words(x, 18, f"{title} all steps", bold=True)
        for row, k in enumerate(shown):
            node, y, at = course.nodes[k], 28 + 26 * row, x
            sheet.box(x, y, width, 20, fill="paper", stroke="soft", line_width=0.8)
            for m in np.flatnonzero(where == node).tolist():
                wide = width * float(sizes[m]) / max(1, a.capacity[node, 0])
                said = f"{a.label(m)}: {sizes[m]:,} millicores"
                fill = _STAYS if a.home[m] == end[m] else _MOVES
                style = {"fill": fill, "stroke": "paper", "line_width": 0.8, "title": said}
                sheet.box(at, y, wide, 20, **style)
                if wide > 50:
                    within = {"size": 10, "colour": "#1c2430", "within": wide - 8}
                    sheet.words(at + 4, y + 14, a.names[m][1], **within)
                at += wide
    for row, k in enumerate(shown):
        colour = _EMPTIES if course.empties[k] else "ink"
        name = _name(problem, course, k)
        sheet.words(left - 8, 42 + 26 * row, name, anchor="end", colour=colour, within=left - 10)
    bottom = 28 + 26 * len(shown) + 18
    hidden = len(lanes) - len(shown)
    more = [("line", "paper", f"{hidden} more nodes: below")] if hidden else []
    entries = [("area", _STAYS, "a microservice that stays"), ("area", _MOVES, "one that moves")]
    entries += [("line", "paper", "as wide as its share of the node's CPU"), *more]
    return sheet.legend(left, bottom, entries) + 6


def _draw_course(
    sheet: Scene,
    problem: RollingUpdate,
    course: Timeline,
    lanes: list[int],
    left: float,
    begin: float,
) -> float:
    """Draw a lane a node over the steps, as high as its capacity; return where it ends."""
    height = min(max(720 / max(1, len(lanes)), 18), 48)
    names = [_name(problem, course, k) for k in lanes]
    stops = [step.number for step in course.steps if step.action == "stop"]
    top = sheet.legend(8, begin + 16, _ENTRIES + ([("dash", _STOPS, "a stop")] if stops else []))
    count = len(course.steps)
    span = (-0.5, count + 1.5)  # a column a step, its number in the middle; before and after too
    panel = Panel(sheet, left, top, 984 - left, height * max(2, len(lanes)), span, (0, 1))
    for value in sorted({1.0, *ticks(1, count, 10)}):
        if value == int(value):
            x, _ = panel.at(value, 0)
            sheet.line((x, top), (x, top + panel.height), stroke="line")
            below = top + panel.height + 16
            sheet.words(x, below, int(value), anchor="middle", colour="soft")
    load, peak = _share(problem, course, course.load), _share(problem, course, course.peak)
    for row, (k, name) in enumerate(zip(lanes, names, strict=True)):
        colour = _EMPTIES if course.empties[k] else "ink"
        y = top + height * (row + 0.5) + 4
        sheet.words(left - 8, y, name, anchor="end", colour=colour, within=left - 10)
        lane = Panel(sheet, left, top + height * row + 2, panel.width, height - 4, span, (0, 1.15))
        _draw_lane(lane, problem, course, k, load[:, k], peak[:, k])
    for number in stops:
        x, _ = panel.at(number, 0)
        sheet.line((x, top), (x, top + panel.height), stroke=_STOPS, dash="3 3")
    hidden, same = len(course.nodes) - len(lanes), len(problem.nodes) - len(course.nodes)
    more = [f"{hidden} more nodes change less and are not drawn"] * (hidden > 0)
    more += [f"{same} more nodes have no step"] * (same > 0)
    label = f"step, between the states before and after all{'; ' * bool(more)}{'; '.join(more)}"
    middle = left + panel.width / 2
    sheet.words(middle, top + panel.height + 34, label, anchor="middle")
    return top + panel.height + 44


def _draw_lane(
    lane: Panel,
    problem: RollingUpdate,
    course: Timeline,
    k: int,
    load: np.ndarray,
    peak: np.ndarray,
) -> None:
    """Draw the lane of node k from its loads and peaks, shares of its capacity (steps + 1, 2).

    CPU is filled, memory is a line; a mark shows from where on the node is empty for good.
    """
    load, peak = np.minimum(load, 1.15), np.minimum(peak, 1.15)
    begin, end = lane.x
    after, during = np.concatenate((load, load[-1:])), np.concatenate((peak, load[-1:]))
    steps, sheet = np.arange(len(load) + 2) - 0.5, lane.scene
    floor = [lane.at(end, 0), lane.at(begin, 0)]
    full = [lane.at(begin, 1), lane.at(end, 1)]
    over = lane.staircase(steps, np.maximum(after[:, 0], during[:, 0]))
    sheet.area([*over, *floor], fill=PALETTE[1])
    sheet.area([*lane.staircase(steps, after[:, 0]), *floor], fill=PALETTE[0])
    lane.steps(steps, after[:, 1], stroke="ink", line_width=1)
    sheet.line(*full, stroke="soft", line_width=0.6)
    if course.empties[k]:
        since = int(np.flatnonzero(course.hosted[:, k])[-1]) + 1.5
        corners = [lane.at(since, 0), lane.at(since, 1), lane.at(end, 1), lane.at(end, 0)]
        sheet.area(corners, fill=_EMPTIES, opacity=0.25)
        sheet.disc(*lane.at(since, 0.5), 3.5, fill=_EMPTIES)
    changes = (np.diff(course.load[:, k], axis=0) != 0).any(axis=1)
    changes |= (course.peak[1:, k] != course.load[1:, k]).any(axis=1)
    for step in [0, *(np.flatnonzero(changes) + 1).tolist()]:
        x, y = lane.at(step - 0.5, 1.15)
        title = _cell(problem, course, k, step, load[step].max(), peak[step].max())
        width = max(4.0, lane.at(step + 0.5, 0)[0] - x)
        sheet.box(x, y, width, lane.height, fill="paper", opacity=0, title=title)


def _cell(
    problem: RollingUpdate, course: Timeline, k: int, step: int, load: float, peak: float
) -> str:
    """Return the text of one node at one step: the step, microservices, load and peak."""
    node = problem.nodes[course.nodes[k]].name
    what = "before the first step"
    if step:
        made = course.steps[step - 1]
        what = f"step {step}: {made.action} {made.application} {made.microservice}"
    return (
        f"{node}, {what}\n{course.hosted[step, k]} microservices, load {load:.0%}, peak {peak:.0%}"
    )
