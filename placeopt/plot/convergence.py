"""Drawings of traces: hypervolume, bound and best values over evaluations or seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from placeopt.core.errors import UsageError
from placeopt.core.front import Front, Trace
from placeopt.core.gap import up_to
from placeopt.plot.style import PALETTE, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """What both drawing packages draw: the curves, and what their axes mean."""

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
    found = [
        (f"{name}{run.method}" + ("" if run.seed is None else f", seed {run.seed}"), run.trace)
        for front, name in zip(fronts, names, strict=True)
        for run in front.runs
        if run.trace is not None
    ]
    if not found:
        raise UsageError(
            f"no run of {first.instance.name!r} has a trace; solve it again with this version"
        )
    curves = tuple(
        _Curve(name, PALETTE[k % len(PALETTE)], trace) for k, (name, trace) in enumerate(found)
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


def figure(fronts: Sequence[Front], names: Sequence[str], over: Over | None = None) -> Figure:
    """Return the matplotlib figure of the traces of fronts; arguments as of `plot_convergence`."""
    from placeopt.plot.figures import legend_below, new_figure

    chart = _chart(fronts, names, over)
    width = min(3, len(chart.goals))
    rows = -(-len(chart.goals) // width)
    drawn = new_figure(7.2, 3.2 + 1.7 * rows)
    grid = drawn.add_gridspec(1 + rows, width, height_ratios=[2] + [1] * rows)
    axes = [drawn.add_subplot(grid[0, :])]
    axes += [drawn.add_subplot(grid[1 + k // width, k % width]) for k in range(len(chart.goals))]
    handles = []
    for curve in chart.curves:
        places = chart.places(curve)
        style: dict[str, Any] = {"color": curve.colour, "drawstyle": "steps-post"}
        volumes = curve.trace.hypervolume
        handles += axes[0].plot(
            places, volumes, **style, marker="o", markersize=3, label=curve.name
        )
        bounds = [float("nan") if b is None else b for b in curve.trace.bound]
        axes[0].plot(places, bounds, **style, linestyle="--", linewidth=1)
        for k, panel in enumerate(axes[1:]):
            panel.plot(places, [row[k] for row in curve.trace.ideal], **style, linewidth=1)
    for panel, name in zip(axes, ("hypervolume", *chart.goals), strict=True):
        panel.set_xscale("log")
        panel.set_ylabel(name, fontsize=8)
        panel.set_xlabel(chart.over, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.grid(True, color="#E6E6E6", linewidth=0.6)
    axes[0].set_title(f"{chart.title}; hypervolume {chart.within}", fontsize=9, loc="left")
    legend_below(drawn, handles, columns=4)
    return drawn


def interactive(fronts: Sequence[Front], names: Sequence[str], over: Over | None = None) -> Any:
    """Return the plotly figure of the traces of fronts; arguments as of `plot_convergence`."""
    from plotly.subplots import make_subplots

    chart = _chart(fronts, names, over)
    rows = 1 + len(chart.goals)
    measure = f"hypervolume {chart.within} (dashed: no plans can exceed it)"
    titles = (measure, *chart.goals)
    drawn = make_subplots(
        rows, 1, shared_xaxes=True, subplot_titles=titles, row_heights=[3] + [1] * (rows - 1)
    )
    for curve in chart.curves:
        places = chart.places(curve)
        line = {"color": curve.colour, "shape": "hv"}
        name = escape(curve.name)
        common = {"x": places, "legendgroup": name, "name": name, "mode": "lines"}
        marked = common | {"mode": "lines+markers", "text": _hover(curve.trace)}
        drawn.add_scatter(**marked, y=curve.trace.hypervolume, line=line, row=1, col=1)
        if any(bound is not None for bound in curve.trace.bound):
            dashed = line | {"dash": "dash"}
            drawn.add_scatter(
                **common, y=curve.trace.bound, line=dashed, showlegend=False, row=1, col=1
            )
        for k in range(len(chart.goals)):
            best = [row[k] for row in curve.trace.ideal]
            drawn.add_scatter(**common, y=best, line=line, showlegend=False, row=k + 2, col=1)
    drawn.update_xaxes(type="log")
    drawn.update_xaxes(title_text=chart.over, row=rows, col=1)
    drawn.update_layout(
        template="plotly_white",
        height=420 + 170 * (rows - 1),
        legend={"orientation": "h", "y": 1.06, "yanchor": "bottom", "x": 0},
        margin={"l": 70, "r": 30, "t": 70, "b": 60},
    )
    return drawn


def _hover(trace: Trace) -> list[str]:
    return [
        f"{seconds:.3g} s, {evaluations:,} evaluations, {points:,} points"
        for seconds, evaluations, points in zip(
            trace.seconds, trace.evaluations, trace.points, strict=True
        )
    ]
