"""Drawings of fronts for paper: matplotlib figures, without a display."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.fronts.words import bound_name, label
from placeopt.plot.style import BOUND, KNEE, by_method, pairs, shade

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.core.fronts.front import Front

#: Markers by status.
_MARKERS = {"optimal": "s", "bounded": "D", "heuristic": "o"}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that draws without a display and without global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=200, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def front_figure(front: Front) -> Figure:
    """Return the figure of a front: planes of pairs of objectives.

    With three or more the first plane is coloured by the third objective. Objectives that are the
    same in all plans are left out: there is nothing to choose.
    """
    front = _varying(front)
    count = len(front.objectives)
    if count <= 2:
        figure = new_figure(5.2, 3.9)
        _plane(figure.add_subplot(), front, 0, count - 1)
    else:
        others = pairs(front)[1:]
        rows = (len(others) + 1) // 2
        figure = new_figure(7.2, 3.9 + 2.9 * rows)
        grid = figure.add_gridspec(1 + rows, 2, height_ratios=[3.9] + [2.9] * rows)
        for k, (a, b) in enumerate(others):
            _plane(figure.add_subplot(grid[1 + k // 2, k % 2]), front, a, b)
        _coloured(figure, figure.add_subplot(grid[0, :]), front)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=min(6, len(names)),
        frameon=False,
        fontsize=8,
    )
    return figure


def _varying(front: Front) -> Front:
    """Return the front without objectives that are the same in all points."""
    kept = [k for k in range(len(front.objectives)) if front.ideal[k] != front.nadir[k]] or [0]
    points = [replace(p, values=tuple(p.values[k] for k in kept)) for p in front.points]
    bounds = tuple(tuple(bound[k] for k in kept) for bound in front.bounds)
    goals = tuple(front.objectives[k] for k in kept)
    return replace(front, objectives=goals, points=tuple(points), bounds=bounds, box=())


def _series(front: Front) -> list[tuple[np.ndarray, dict[str, Any]]]:
    """Return what is drawn: bounds, points by method and status, the knee.

    Each is its values (points, objectives) and the style of its markers.
    """
    series: list[tuple[np.ndarray, dict[str, Any]]] = []
    if front.bounds:
        cross = {"c": BOUND, "marker": "x", "s": 8, "linewidths": 0.5, "zorder": 1}
        series.append((np.array(front.bounds), cross | {"label": bound_name(front)}))
    for name, colour, chosen in by_method(front):
        for status, marker in _MARKERS.items():
            own = [k for k in chosen if front.points[k].status == status]
            if own:
                text = name if status == "heuristic" else f"{name} ({status})"
                style = {"c": colour, "marker": marker, "s": 9, "linewidths": 0, "alpha": 0.85}
                series.append((front.values[own], style | {"label": text, "zorder": 2}))
    ring = {"facecolors": "none", "edgecolors": KNEE, "marker": "o", "s": 60, "linewidths": 1.4}
    series.append((np.array([front.pick().values]), ring | {"label": "knee", "zorder": 3}))
    return series


def _plane(axes: Any, front: Front, a: int, b: int) -> None:
    for values, style in _series(front):
        axes.scatter(values[:, a], values[:, b], **style)
    _label(axes, front, a, b)


def _label(axes: Any, front: Front, a: int, b: int) -> None:
    axes.set_xlabel(label(front.objectives[a]), fontsize=9)
    axes.set_ylabel(label(front.objectives[b]) if a != b else "", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)


def _coloured(figure: Figure, axes: Any, front: Front) -> None:
    """Draw the plane of the first two objectives; colours are values of the third."""
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([shade(k / 255) for k in range(256)])
    ends = sorted((float(front.ideal[2]), float(front.nadir[2])))
    scale = colours if front.objectives[2].sign > 0 else colours.reversed()
    for status, marker in _MARKERS.items():
        own = [k for k, point in enumerate(front.points) if point.status == status]
        x, y, z = front.values[own][:, :3].T
        style = {"c": z, "cmap": scale, "vmin": ends[0], "vmax": ends[1], "marker": marker}
        drawn = axes.scatter(x, y, s=14, linewidths=0, **style)
    knee = front.pick().values
    axes.scatter(*knee[:2], facecolors="none", edgecolors=KNEE, s=70, linewidths=1.4)
    figure.colorbar(drawn, ax=axes, pad=0.01).set_label(label(front.objectives[2]), fontsize=9)
    _label(axes, front, 0, 1)
