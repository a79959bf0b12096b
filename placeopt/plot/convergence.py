"""Drawings of traces: hypervolume, bound and best values over evaluations or seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Trace
from placeopt.core.fronts.words import counted, label, up_to
from placeopt.plot.scene import Panel, Scene, roomy
from placeopt.plot.style import PALETTE

#: What the horizontal axis may count.
Over = Literal["evaluations", "seconds"]


@dataclass(frozen=True)
class _Curve:
    """One run: its name, colour and trace."""

    name: str
    colour: str
    trace: Trace


@dataclass(frozen=True)
class _Chart:
    """What is drawn: the curves, and what their axes mean."""

    curves: tuple[_Curve, ...]
    over: Over
    title: str
    #: Up to which values hypervolumes count.
    within: str
    goals: tuple[str, ...]

    def places(self, curve: _Curve) -> list[float]:
        """Return the horizontal places of a run's samples; the axis is logarithmic."""
        column: Sequence[float] = getattr(curve.trace, self.over)
        return [max(place, 1e-3) for place in column]


def _chart(fronts: Sequence[Front], names: Sequence[str], over: Over | None) -> _Chart:
    """Return what is drawn of the runs of fronts that have a trace.

    Raises
    ------
    UsageError
        The fronts answer different questions, no run has a trace, or the traces have different
        reference points.
    """
    first = fronts[0]
    if any(f.instance != first.instance or f.objectives != first.objectives for f in fronts):
        raise UsageError("these fronts answer different instances or objectives; give runs of one")
    results = [
        (f"{name}{run.method}" + ("" if run.seed is None else f", seed {run.seed}"), run.trace)
        for front, name in zip(fronts, names, strict=True)
        for run in front.runs
        if run.trace is not None
    ]
    if not results:
        raise UsageError(
            f"no run of {first.instance.name!r} has a trace; solve it again with this version"
        )
    curves = tuple(
        _Curve(name, PALETTE[k % len(PALETTE)], trace) for k, (name, trace) in enumerate(results)
    )
    counted = all(max(curve.trace.evaluations) > 0 for curve in curves)
    references = {curve.trace.reference for curve in curves}
    if len(references) > 1:
        corner = ",".join(f"{value:.6g}" for value in first.worst(references))
        raise UsageError(
            "these runs measured their hypervolumes within different reference points, so their "
            f"curves do not compare; solve each again with --reference {corner}, or draw one alone"
        )
    return _Chart(
        curves=curves,
        over=over or ("evaluations" if counted else "seconds"),
        title=first.instance.name,
        within=up_to(first.objectives, references.pop()),
        goals=tuple(f"best {label(o)}" for o in first.objectives),
    )


def scene(fronts: Sequence[Front], names: Sequence[str], over: Over | None = None) -> Scene:
    """Return the drawing of the traces of fronts; arguments as of `plot_convergence`."""
    chart = _chart(fronts, names, over)
    sheet = Scene(1000, 0)
    dashed = any(bound is not None for c in chart.curves for bound in c.trace.bound)
    entries = [("line", curve.colour, curve.name) for curve in chart.curves]
    entries += [("dash", "ink", "no plans can exceed this")] if dashed else []
    top = sheet.legend(60, 16, entries) + 20
    across = [place for curve in chart.curves for place in chart.places(curve)]
    ends = (min(across), max(across))
    tall = [
        v for c in chart.curves for v in (*c.trace.hypervolume, *c.trace.bound) if v is not None
    ]
    main = Panel(sheet, 70, top, 910, 300, ends, roomy(tall), log=True)
    main.grid(chart.over, f"hypervolume, {chart.within}")
    for curve in chart.curves:
        _draw_volumes(main, chart, curve)
    width, top = min(3, len(chart.goals)), top + 400
    for k, goal in enumerate(chart.goals):
        left, side = 70 + k % width * 910 / width, 910 / width - 80 * (width > 1)
        best = [row[k] for curve in chart.curves for row in curve.trace.ideal]
        down = top + 210 * (k // width)
        panel = Panel(sheet, left, down, side, 120, ends, roomy(best), log=True)
        panel.grid(chart.over, goal)
        for curve in chart.curves:
            values = [row[k] for row in curve.trace.ideal]
            panel.steps(chart.places(curve), values, stroke=curve.colour, line_width=1.6)
    sheet.height = top + 210 * -(-len(chart.goals) // width) - 40
    return sheet


def _draw_volumes(panel: Panel, chart: _Chart, curve: _Curve) -> None:
    """Draw the hypervolume of a run, a dot a sample, and in dashes what it cannot exceed."""
    trace, places = curve.trace, chart.places(curve)
    panel.steps(places, trace.hypervolume, stroke=curve.colour, line_width=1.6)
    for place, value, text in zip(places, trace.hypervolume, _hover(trace), strict=True):
        title = f"{curve.name}: hypervolume {value:.6g} after {text}"
        panel.scene.disc(*panel.at(place, value), 3, fill=curve.colour, title=title)
    existing = [(x, b) for x, b in zip(places, trace.bound, strict=True) if b is not None]
    if existing:
        x, bounds = zip(*existing, strict=True)
        panel.steps(x, bounds, stroke=curve.colour, dash="5 3")


def _hover(trace: Trace) -> list[str]:
    return [
        f"{seconds:.3g} s, {counted(evaluations, 'evaluation')}, {counted(points, 'point')}"
        for seconds, evaluations, points in zip(
            trace.seconds, trace.evaluations, trace.points, strict=True
        )
    ]
