"""Fronts and plans for people: a table, a picture of letters, and a plan in words."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from placeopt.cli.screen import show
from placeopt.cli.tables import plain, room, table, wrapped
from placeopt.core.fronts.gap import percent

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Point
    from placeopt.core.problem import Problem

#: Plans that the table has, at most.
SHOWN = 10
#: Columns and lines of the picture, at most, and the narrowest one.
_ACROSS, _ALONG, _LEAST = 56, 10, 20


def view(front: Front, problem: Problem | None, width: int | None) -> str:
    """Return a front as text: some of its plans, a picture, and its knee."""
    knee = front.points.index(front.pick())
    parts = [points_table(front, knee, width), picture(front, width)]
    parts.append(plan_in_words(front, knee, problem, width))
    return "\n\n".join(part for part in parts if part)


def points_table(front: Front, knee: int, width: int | None) -> str:
    """Return a table of at most `SHOWN` plans that spread over the front, the knee among them.

    Goals that the screen has no room for are counted below it.
    """
    places = {point.values: k for k, point in enumerate(front.points)}
    spread = {places[point.values] for point in front.subset(SHOWN).points}
    if knee not in spread:
        spread = {places[point.values] for point in front.subset(SHOWN - 1).points} | {knee}
    for count in range(len(front.objectives), 0, -1):
        text = _points_table(front, sorted(spread), knee, count, width)
        if count == 1 or width is None or room(text.split("\n", 1)[0]) <= width:
            break
    hidden = len(front.objectives) - count
    more = [f"{len(front) - len(spread)} more plans lie between these"] * (len(front) > len(spread))
    more += [f"{hidden} more goals have no room here"] * (hidden > 0)
    return "\n".join([text, *more])


def _points_table(front: Front, chosen: list[int], knee: int, count: int, width: int | None) -> str:
    """Return the table with so many goals; one with more than one may be too wide."""
    goals = front.objectives[:count]
    statuses, methods = ({getattr(p, n) for p in front.points} for n in ("status", "found_by"))
    rows = [
        (
            str(k),
            "knee" if k == knee else "",
            *(show(value, 5) for value in front.points[k].values[:count]),
            front.points[k].status if len(statuses) > 1 else "",
            ", ".join(front.points[k].found_by) if len(methods) > 1 else "",
        )
        for k in chosen
    ]
    columns = ("plan", "", *(o.name for o in goals), "status", "found by")
    return table(columns, rows, left=2, width=width if count == 1 else None)


def picture(front: Front, width: int | None) -> str:
    """Return a scatter of two goals that conflict, in letters; nothing for one goal or plan.

    A star is a plan, K the knee.
    """
    if len(front) < 2 or len(front.objectives) < 2:
        return ""
    across, along = _conflict(front.normalised())
    x, y = front.objectives[across], front.objectives[along]
    names = [show(front.ideal[along], 4), show(front.nadir[along], 4)]
    margin = max(map(len, names))
    wide = min(_ACROSS, (width or 80) - margin - 3)
    if wide < _LEAST:
        return ""
    values = front.values[:, [across, along]]
    low, spread = values.min(axis=0), np.ptp(values, axis=0)
    places = (values - low) / np.where(spread > 0, spread, 1.0) * (wide - 1, _ALONG - 1)
    canvas = [[" "] * wide for _ in range(_ALONG)]
    for column, line in places.round().astype(int):
        canvas[_ALONG - 1 - line][column] = "*"
    column, line = places[front.points.index(front.pick())].round().astype(int)
    canvas[_ALONG - 1 - line][column] = "K"
    ends = {0: show(values[:, 1].max(), 4), _ALONG - 1: show(low[1], 4)}
    lines = [
        f"{ends.get(k, ''):>{margin}} |{''.join(row).rstrip()}" for k, row in enumerate(canvas)
    ]
    left, right = show(low[0], 4), show(values[:, 0].max(), 4)
    lines += [
        f"{'':>{margin}} +{'-' * wide}",
        f"{'':>{margin}}  {left}{right:>{wide - len(left)}}",
    ]
    title = f"{plain(y.name)} (upwards) against {plain(x.name)}; K is the knee"
    return "\n".join([*wrapped(title, width or 80), *lines])


def _conflict(scaled: np.ndarray) -> tuple[int, int]:
    """Return the two goals of scaled values (points, goals) that are correlated least."""
    varying = [k for k in range(scaled.shape[1]) if np.ptp(scaled[:, k]) > 0]
    pairs = list(combinations(varying, 2)) or [(0, 1)]
    centred = scaled - scaled.mean(axis=0)
    scale = np.sqrt((centred**2).sum(axis=0))

    def together(pair: tuple[int, int]) -> float:
        a, b = pair
        return float((centred[:, a] * centred[:, b]).sum() / max(scale[a] * scale[b], 1e-300))

    return min(pairs, key=together)


def plan_in_words(front: Front, index: int, problem: Problem | None, width: int | None) -> str:
    """Return a plan of a front in words: its values, and what its problem tells of it."""
    from placeopt.report.words import values

    point = front.points[index]
    knee = ", the knee" if point == front.pick() else ""
    title = f"Plan {index}{knee}: {values(front, point)}"
    lines = wrapped(plain(title), width) if width else [title]
    facts = {} if problem is None else problem.describe(point.plan)
    if not facts:
        return "\n".join(lines)
    names = max(map(room, facts))
    for name, fact in facts.items():
        start = f"  {plain(name)}{' ' * (names - room(name))}  "
        told = wrapped(plain(fact), max(20, width - len(start))) if width else [plain(fact)]
        lines += [start + told[0], *(" " * len(start) + part for part in told[1:])]
    return "\n".join(lines)


def origin_of(point: Point) -> str:
    """Return what is proven of a plan, and which methods found it, in a sentence.

    >>> from placeopt.core.fronts.values import Point
    >>> origin_of(Point((1.0,), {}, "bounded", 0.031, "moead", 7))
    'within 3.10% of optimal; found by moead, seed 7'
    """
    status = {"optimal": "proven optimal", "heuristic": "not proven optimal"}.get(point.status)
    if status is None:
        status = "with a bound" if point.gap is None else f"within {percent(point.gap)} of optimal"
    seed = "" if point.seed is None else f", seed {point.seed}"
    finders = ", ".join(point.found_by)
    return f"{status}; found by {finders}{seed}" if finders else status


def proof_in_words(points: tuple[Point, ...]) -> str:
    """Return how many plans there are, and what is proven of them, in a sentence.

    >>> from placeopt.core.fronts.values import Point
    >>> proof_in_words((Point((1.0,), {}), Point((2.0,), {})))
    '2 plans, none proven optimal.'
    """
    counts = Counter(point.status for point in points)
    plans = f"{len(points):,} plan{'s' * (len(points) != 1)}"
    if counts["optimal"] == len(points):
        return f"{plans}, {'all ' * (len(points) > 1)}proven optimal."
    if set(counts) == {"heuristic"}:
        return f"{plans}, {'none' if len(points) > 1 else 'not'} proven optimal."
    words = {"optimal": "proven optimal", "bounded": "with a proven gap", "heuristic": "unproven"}
    parts = [f"{counts[status]:,} {told}" for status, told in words.items() if counts[status]]
    return f"{plans}: {', '.join(parts)}."
