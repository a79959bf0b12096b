"""Drawings of traces: hypervolume, bound and best values over evaluations or seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Trace
from placeopt.core.fronts.words import counted, label, up_to
from placeopt.plot.scene import Panel, Scene, roomy
from placeopt.plot.style import PALETTE

#: What the horizontal axis may count.
Over = Literal["evaluations", "seconds"]


#: One run: its name, colour and trace.
_Curve = tuple[str, str, Trace]


def _curves(fronts: Sequence[Front], names: Sequence[str]) -> list[_Curve]:
    """Return the runs of fronts that have a trace.

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
    references = {trace.reference for _, trace in results}
    if len(references) > 1:
        corner = ",".join(f"{value:.6g}" for value in first.worst(references))
        raise UsageError(
            "these runs measured their hypervolumes within different reference points, so their "
            f"curves do not compare; solve each again with --reference {corner}, or draw one alone"
        )
    return [(name, PALETTE[k % len(PALETTE)], trace) for k, (name, trace) in enumerate(results)]


def _places(trace: Trace, over: Over) -> list[float]:
    """Return the horizontal places of a run's samples; the axis is logarithmic."""
    return [max(place, 1e-3) for place in getattr(trace, over)]


def scene(fronts: Sequence[Front], names: Sequence[str], over: Over | None = None) -> Scene:
    """Return the drawing of the traces of fronts; arguments as of `plot_convergence`."""
    curves = _curves(fronts, names)
    traces = [trace for _, _, trace in curves]
    over = over or ("evaluations" if all(max(t.evaluations) > 0 for t in traces) else "seconds")
    sheet = Scene(1000, 0)
    entries = [("line", colour, name) for name, colour, _ in curves]
    if any(bound is not None for trace in traces for bound in trace.bound):
        entries.append(("dash", "ink", "no plans can exceed this"))
    top = sheet.legend(60, 16, entries) + 20
    across = [place for trace in traces for place in _places(trace, over)]
    ends = (min(across), max(across))
    tall = [v for t in traces for v in (*t.hypervolume, *t.bound) if v is not None]
    main = Panel(sheet, 70, top, 910, 300, ends, roomy(tall), log=True)
    goals = fronts[0].objectives
    main.grid(over, f"hypervolume, {up_to(goals, traces[0].reference)}")
    for curve in curves:
        _draw_volumes(main, curve, over)
    width, top = min(3, len(goals)), top + 400
    for k, goal in enumerate(goals):
        left, side = 70 + k % width * 910 / width, 910 / width - 80 * (width > 1)
        best = [row[k] for trace in traces for row in trace.ideal]
        down = top + 210 * (k // width)
        panel = Panel(sheet, left, down, side, 120, ends, roomy(best), log=True)
        panel.grid(over, f"best {label(goal)}")
        for _, colour, trace in curves:
            values = [row[k] for row in trace.ideal]
            panel.steps(_places(trace, over), values, stroke=colour, line_width=1.6)
    sheet.height = top + 210 * -(-len(goals) // width) - 40
    return sheet


def _draw_volumes(panel: Panel, curve: _Curve, over: Over) -> None:
    """Draw the hypervolume of a run, a dot a sample, and in dashes what it cannot exceed."""
    name, colour, trace = curve
    places = _places(trace, over)
    panel.steps(places, trace.hypervolume, stroke=colour, line_width=1.6)
    for place, value, text in zip(places, trace.hypervolume, _hover(trace), strict=True):
        title = f"{name}: hypervolume {value:.6g} after {text}"
        panel.scene.disc(*panel.at(place, value), 3, fill=colour, title=title)
    existing = [(x, b) for x, b in zip(places, trace.bound, strict=True) if b is not None]
    if existing:
        x, bounds = zip(*existing, strict=True)
        panel.steps(x, bounds, stroke=colour, dash="5 3")


def _hover(trace: Trace) -> list[str]:
    return [
        f"{seconds:.3g} s, {counted(evaluations, 'evaluation')}, {counted(points, 'point')}"
        for seconds, evaluations, points in zip(
            trace.seconds, trace.evaluations, trace.points, strict=True
        )
    ]
