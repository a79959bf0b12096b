"""What people see of a rolling update: its steps over time, nodes before and after, and tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.core.fronts.words import counted
from placeopt.plot.markup import Bar, Cell, Mark, before_after, paragraphs, table
from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PALETTE
from placeopt.rolling_update.arrays import STEP_COLUMNS, Timeline, timeline
from placeopt.rolling_update.problem import NO_UNIT, RollingUpdate

# -- the drawing -----------------------------------------------------------------------------------

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
    less = "changes less and is not" if hidden == 1 else "change less and are not"
    more = [f"{counted(hidden, 'more node')} {less} drawn"] * (hidden > 0)
    more += [f"{counted(same, 'node')} without a step"] * (same > 0)
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


# -- fleets ----------------------------------------------------------------------------------------

#: Hours of a month, as clouds count them.
HOURS_OF_A_MONTH = 730


@dataclass(frozen=True)
class FleetChange:
    """The nodes that a plan buys, the nodes that it frees, and the price before and after.

    Attributes
    ----------
    buy : tuple of str
        Names of the candidates that host a replica at the end.
    free : tuple of str
        Names of the nodes that host a replica now and none at the end.
    before : float
        Price of the nodes that host a replica now, in `unit`.
    after : float
        Price of the nodes that host a replica at the end, in `unit`.
    unit : str
        The unit of prices, as the instance says it, such as ``USD/h``.
    """

    buy: tuple[str, ...]
    free: tuple[str, ...]
    before: float
    after: float
    unit: str

    @property
    def is_hourly(self) -> bool:
        """Whether prices are per hour, so that months can be told."""
        return self.unit.endswith("/h")

    @property
    def saved_a_month(self) -> float:
        """The price that the plan saves in a month, without ``/h`` in its unit."""
        return (self.before - self.after) * HOURS_OF_A_MONTH


def fleet_change(problem: RollingUpdate, plan: Plan) -> FleetChange:
    """Return what a plan buys and frees.

    Parameters
    ----------
    problem : RollingUpdate
    plan : mapping
        A plan of this problem.
    """
    a = problem.arrays
    now = set(a.home.tolist()) - {a.waiting}
    final = set(a.final_nodes(problem.steps(plan)).tolist()) - {-1, a.waiting}
    return FleetChange(
        buy=tuple(a.node_names[n] for n in sorted(final) if problem.nodes[n].candidate),
        free=tuple(a.node_names[n] for n in sorted(now - final)),
        before=problem.initial_cost,
        after=problem.evaluate(plan).values[0],
        unit=problem.price_unit,
    )


def by_machine(problem: RollingUpdate, names: tuple[str, ...]) -> list[tuple[str, str, float, int]]:
    """Return (machine type, cluster, price of one, number) of nodes, by name of type."""
    existing = {n.name: n for n in problem.nodes}
    nodes = [existing[name] for name in names]
    count = Counter((n.machine_type or "unknown type", n.cluster, n.price) for n in nodes)
    return [(*key, number) for key, number in sorted(count.items())]


# -- tables ----------------------------------------------------------------------------------------

#: What the problem asks, in a sentence.
QUESTION = "How does a running deployment move to fewer, cheaper nodes, step by step?"
#: What each objective measures.
MEANINGS = {
    "node_cost": "sum of the prices of the nodes that host something at the end",
    "starts": "copies that are started on the way",
    "disruptions": "times that a microservice is stopped before its new copy runs",
    "lost_at_worst": "copies that workloads need and do not have when the worst node is lost",
}

_MAX_STEPS = 200
_TONES = {"stop": "bad", "hop": "warn", "start": "warn"}


def instance(problem: RollingUpdate) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    a = problem.arrays
    word = problem.cluster_word
    clusters = f"{len(a.clusters):,} {word}" + ("" if len(a.clusters) == 1 else "s")
    used = len(np.unique(a.home[a.home != a.waiting]))
    unit = "" if problem.price_unit == NO_UNIT else problem.price_unit
    waiting, removed = int((a.home == a.waiting).sum()), int(a.removed.sum())
    return [
        ("nodes", f"{len(problem.nodes):,} in {clusters}; {used:,} in use"),
        ("price of the nodes in use", f"{problem.initial_cost:g} {unit}".rstrip()),
        ("applications", f"{len(problem.applications):,}"),
        (
            "microservices",
            f"{len(a.home):,}; {int(a.fixed.sum()):,} may not be touched, "
            f"{int(a.pinned.sum()):,} pinned to their node"
            + (f", {waiting:,} waiting for a node" if waiting else "")
            + (f", {removed:,} to be removed" if removed else ""),
        ),
        ("nodes to drain", f"{sum(n.drain for n in problem.nodes):,}"),
        ("semantics", problem.semantics),
    ]


def plan(problem: RollingUpdate, plan: Plan) -> str:
    """Return the tables of a plan."""
    steps = problem.table(plan)
    count = Counter(step["action"] for step in steps)
    stops, hops = count["stop"], count["hop"]
    sentences = [
        f"{len(steps):,} steps: each starts the new copy first, then ends the old one, "
        "so that both run for a while."
    ]
    if removed := count["remove"]:
        sentences.append(f"{removed:,} of them end a replica that has no place afterwards.")
    if hops:
        sentences.append(
            f"{hops:,} of them are hops: to a node that the microservice leaves again, "
            "to make room."
        )
    stopped = f"{stops:,} of them stop a microservice before its new copy starts: a disruption."
    sentences.append(stopped if stops else "Nothing is stopped on the way: no disruption.")
    rows: list[list[Cell]] = [
        [
            str(s["number"]),
            s["application"],
            s["microservice"],
            Mark(s["action"], _TONES.get(s["action"], "plain")),
            s["source"],
            s["target"],
            Bar(s["peak"]) if s["target"] else None,
            Mark("empties a node", "good") if s["empties"] else "",
        ]
        for s in steps
    ]
    return (
        _fleet(problem, plan)
        + _nodes(problem, plan)
        + paragraphs(sentences)
        + table("Steps, in order", (*STEP_COLUMNS, ""), rows, most=_MAX_STEPS, more="steps")
    )


def _fleet(problem: RollingUpdate, plan: Plan) -> str:
    """Return the table of what to buy and what to free; nothing where nothing can be bought."""
    change = fleet_change(problem, plan)
    if not any(node.candidate for node in problem.nodes):
        return ""
    rows: list[list[Cell]] = []
    for mark, names in ((Mark("buy", "warn"), change.buy), (Mark("free", "good"), change.free)):
        for kind, cluster, price, number in by_machine(problem, names):
            month = f"{price * number * HOURS_OF_A_MONTH:,.2f}" if change.is_hourly else ""
            rows.append([mark, f"{number} x {kind}", cluster, f"{price:g}", month])
    unit = change.unit.removesuffix("/h")
    word = problem.cluster_word
    columns = ("", "machines", word, f"{change.unit} each", f"{unit} a month, all")
    months = [f"A month has {HOURS_OF_A_MONTH} hours."] if change.is_hourly else []
    return table("What to buy and what to free", columns, rows) + paragraphs(months, "note")


def _nodes(problem: RollingUpdate, plan: Plan) -> str:
    """Return the table of every node that changes, before and after; those that empty first."""
    a = problem.arrays
    course = timeline(a, problem.steps(plan))
    scale = np.maximum(a.capacity[course.nodes], 1)
    before, after = course.load[0] / scale, course.load[-1] / scale
    count, counted = course.hosted[0], course.hosted[-1]
    changed = (course.load[0] != course.load[-1]).any(axis=1) | (count != counted)
    ranks = np.select([course.empties, course.opens], [0, 1], 2)
    change = np.abs(after - before).sum(axis=1)
    order = [k for k in np.lexsort((-change, ranks)).tolist() if changed[k]]
    nodes = [problem.nodes[course.nodes[k]] for k in order]
    heads = [
        [node.name, node.cluster, node.price, f"{count[k]} → {counted[k]}"]
        for k, node in zip(order, nodes, strict=True)
    ]
    told = before_after(
        "Nodes that change, before and after",
        ("node", problem.cluster_word, "price", "microservices"),
        heads,
        before[order],
        after[order],
        [(Mark("empties", "good"), Mark("opens", "warn"), "")[ranks[k]] for k in order],
        more="nodes that change",
    )
    same = len(problem.nodes) - len(order)
    return told + paragraphs([f"{same:,} more nodes stay as they are."] if same else [], "note")
