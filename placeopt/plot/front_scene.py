"""Fronts as drawings: a plane for each pair of goals, of one front or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.words import bound_name, label, values
from placeopt.plot.scene import Panel, Scene, roomy
from placeopt.plot.style import BOUND, KNEE, PALETTE, by_method, shade

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front

#: Marks by status, and what a legend calls those that say more than that a plan was found.
_MARKS = {"heuristic": "dot", "optimal": "square", "bounded": "diamond"}
#: Most pairs of goals that are drawn, and most points for a notebook.
_MAX_PLANES, MAX_POINTS = 6, 2000


def scene(fronts: Sequence[Front], names: Sequence[str] = ()) -> Scene:
    """Return the drawing of fronts with the same goals.

    Colours are methods of one front, or the fronts of several, by their names. Of one front with
    three goals or more, a first plane is coloured by the third. Goals that are the same in all
    plans are left out: there is nothing to choose.
    """
    goals = fronts[0].objectives
    ends = np.array([edge for f in fronts for edge in (f.values.min(axis=0), f.values.max(axis=0))])
    varying = [k for k in range(len(goals)) if np.ptp(ends[:, k]) > 0] or [0]
    planes = list(combinations(varying, 2))[:_MAX_PLANES] or [(varying[0], varying[0])]
    shaded = varying[2] if len(fronts) == 1 and len(varying) > 2 else None
    sheet = Scene(1000, 0)
    top = sheet.legend(60, 16, _entries(fronts, names, shaded)) + 24
    wide = len(planes) == 1 or shaded is not None
    for k, (a, b) in enumerate(planes):
        large = wide and k == 0
        place = k + (1 if wide and k else 0)
        left, down = 70 + 490 * (place % 2), top + (0 if large else 330 * (place // 2) + 130 * wide)
        size = (910, 370) if large else (420, 240)
        x, y = (roomy([f.values[:, c] for f in fronts] + _bounds(fronts, c)) for c in (a, b))
        panel = Panel(sheet, left, down, *size, x, y)
        panel.grid(label(goals[a]), label(goals[b]) if a != b else "")
        for n, front in enumerate(fronts):
            # What two fronts have in common shows both colours: the later mark is the smaller one.
            radius = 3.0 if len(fronts) == 1 else max(2.0, 4.6 - 0.9 * n)
            colour = PALETTE[n % len(PALETTE)] if len(fronts) > 1 else ""
            _draw(panel, front, (a, b), radius, colour)
            if large and shaded is not None:
                _shade(panel, front, (a, b), shaded)
        sheet.height = max(sheet.height, down + size[1] + 50)
    return sheet


def spread(front: Front) -> Front:
    """Return a front of at most some thousand points that has the best and worst of every goal."""
    values = front.values
    if len(values) <= MAX_POINTS:
        return front
    even = np.linspace(0, len(values) - 1, MAX_POINTS).astype(int)
    chosen = {*even.tolist(), *values.argmin(axis=0).tolist(), *values.argmax(axis=0).tolist()}
    return replace(front, points=tuple(front.points[k] for k in sorted(chosen)))


def _bounds(fronts: Sequence[Front], column: int) -> list[np.ndarray]:
    return [np.array(f.bounds)[:, column] for f in fronts if f.bounds]


def _entries(
    fronts: Sequence[Front], names: Sequence[str], shaded: int | None
) -> list[tuple[str, str, str]]:
    """Return the legend; its marks are those of the drawing."""
    front = fronts[0]
    if len(fronts) > 1:
        listed = enumerate(names)
        entries = [("dot", PALETTE[k % len(PALETTE)], name) for k, name in listed]
    else:
        entries = [("dot", colour, name) for name, colour, _ in by_method(front)]
    statuses = {point.status for each in fronts for point in each.points}
    known = [status for status in ("optimal", "bounded") if status in statuses]
    entries += [(_MARKS[status], "soft", status) for status in known]
    if any(each.bounds for each in fronts):
        entries.append(("cross", BOUND, bound_name(front)))
    entries.append(("ring", KNEE, "knee"))
    if shaded is not None:
        best, worst = front.ideal[shaded], front.nadir[shaded]
        told = f"{label(front.objectives[shaded])} in the first plane:"
        middle = (best + worst) / 2
        shades = zip((0, 0.5, 1), (best, middle, worst), strict=True)
        words = [f"{told} {best:.4g}", f"{middle:.4g}", f"{worst:.4g}"]
        entries += [
            ("area", shade(share), text) for (share, _), text in zip(shades, words, strict=True)
        ]
    return entries


def _draw(panel: Panel, front: Front, plane: tuple[int, int], radius: float, colour: str) -> None:
    """Draw bounds, plans and the knee; `colour` is that of the front among several."""
    a, b = plane
    for bound in front.bounds:
        panel.scene.mark("cross", *panel.at(bound[a], bound[b]), 3, colour or BOUND)
    for _, own, chosen in by_method(front):
        for k in chosen:
            point = front.points[k]
            place, said = panel.at(point.values[a], point.values[b]), f"{k}: {values(front, point)}"
            panel.scene.mark(_MARKS[point.status], *place, radius, colour or own, said)
    knee = front.pick().values
    panel.scene.mark("ring", *panel.at(knee[a], knee[b]), 7, KNEE)


def _shade(panel: Panel, front: Front, plane: tuple[int, int], column: int) -> None:
    """Draw the plans again in the colour of their value of a goal."""
    best, worst = front.ideal[column], front.nadir[column]
    for point in front.points:
        share = (point.values[column] - best) / (worst - best)
        place = panel.at(*(point.values[k] for k in plane))
        panel.scene.mark(_MARKS[point.status], *place, 3.5, shade(share))
    knee = front.pick().values
    panel.scene.mark("ring", *panel.at(*(knee[k] for k in plane)), 7, KNEE)
