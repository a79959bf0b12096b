"""The charts of a sweep: hypervolume over seeds, and over evaluations and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PALETTE
from placeopt.sweeps.tables import groups, known, shown

#: Pixels of the lane of one method.
_LANE = 26


def boxes(rows: Sequence[dict[str, Any]]) -> Scene | None:
    """Return a panel for each instance, and in it a box for each method; None without fronts.

    A box reaches from the lower to the upper quartile, its line is the median; lines beyond it
    reach to the least and greatest value, dots are single runs.
    """
    fronts = [row for row in rows if not math.isnan(row["hypervolume"])]
    if not fronts:
        return None
    sheet, top = Scene(1000, 0), 30.0
    for (name,), own in groups(fronts, "instance").items():
        methods = groups(own, "method")
        values = known(own, "hypervolume")
        room = 0.05 * float(np.ptp(values)) or 0.01
        ends = (float(values.min()) - room, float(values.max()) + room)
        panel = Panel(sheet, 230, top, 740, _LANE * len(methods), ends, (0, len(methods)))
        sheet.words(8, top - 10, name, bold=True)
        _across(panel, "hypervolume")
        for k, ((method,), group) in enumerate(methods.items()):
            y = len(methods) - k - 0.5
            label = f"{method} (n = {len(group)})"
            sheet.words(222, panel.at(ends[0], y)[1] + 4, label, anchor="end", within=215)
            _box(panel, y, f"{method} on {name}", known(group, "hypervolume"), PALETTE[k % 8])
        top += panel.height + 80
    sheet.height = top - 30
    return sheet


def _across(panel: Panel, name: str) -> None:
    """Draw the horizontal scale alone."""
    sheet, bottom = panel.scene, panel.top + panel.height
    for value in ticks(*panel.x, 6):
        x, _ = panel.at(value, 0)
        sheet.line((x, panel.top), (x, bottom), stroke="line")
        sheet.words(x, bottom + 16, f"{value:,.10g}", anchor="middle", colour="soft")
    sheet.words(panel.left + panel.width / 2, bottom + 34, name, anchor="middle")


def _box(panel: Panel, y: float, title: str, values: np.ndarray, colour: str) -> None:
    low, first, middle, third, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    sheet, half = panel.scene, 0.3
    said = f"{title}: median {middle:.4f}, quartiles {first:.4f} to {third:.4f}"
    for a, b in ((low, first), (third, high)):
        sheet.line(panel.at(a, y), panel.at(b, y), stroke="soft")
    (x, top), (right, bottom) = panel.at(first, y + half), panel.at(third, y - half)
    style = {"fill": colour, "opacity": 0.45, "title": said}
    sheet.box(x, top, max(1.0, right - x), bottom - top, **style)
    sheet.line(panel.at(middle, y + half), panel.at(middle, y - half), line_width=2)
    for value in values.tolist():
        sheet.disc(*panel.at(value, y), 2.5, fill=colour, title=f"{title}: {value:.4f}")


def convergence(curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Scene:
    """Return the drawing of curves: ``"evaluations"`` or ``"seconds"`` -> method -> places."""
    methods = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    colours = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(methods)}
    sheet = Scene(1000, 0)
    top = sheet.legend(60, 16, [("line", colours[name], name) for name in methods]) + 20
    heights = [y for lines in curves.values() for places in lines.values() for _, y in places]
    room = 0.05 * (max(heights) - min(heights)) or 0.01
    up = (min(heights) - room, max(heights) + room)
    for k, (key, lines) in enumerate(curves.items()):
        across = [max(x, 1e-3) for places in lines.values() for x, _ in places]
        ends = (min(across), max(across))
        if ends[0] == ends[1]:
            ends = (ends[0] / 2, ends[1] * 2)
        panel = Panel(sheet, 70 + 490 * k, top, 410, 220, ends, up, log=True)
        panel.grid(f"{key}, median of runs", "hypervolume")
        for name, places in lines.items():
            spots = [(panel.at(max(x, 1e-3), y), x, y) for x, y in sorted(places)]
            sheet.line(*(spot for spot, _, _ in spots), stroke=colours[name], line_width=1.8)
            for spot, x, y in spots:
                title = f"{name}: {y:.4f} after {shown(x, ',.4g')} {key}"
                sheet.disc(*spot, 4, fill=colours[name], title=title)
    sheet.height = top + 270
    return sheet
