"""Interactive drawings of fronts: one HTML file with plotly inside, readable without a network."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from placeopt.plot.style import BOUND, KNEE, PALETTE, bound_name, by_method, label, pairs

if TYPE_CHECKING:
    from placeopt.core.front import Front, Point
    from placeopt.core.problem import Problem

#: Markers by status.
_SYMBOLS = {"optimal": "square", "bounded": "diamond", "heuristic": "circle"}

#: Points up to which projections are drawn as SVG: sharp in print, and a browser has only a few
#: WebGL canvases to give.
_MAX_SVG = 3000
#: Plans that a page holds, and their characters; of a larger front a spread subset.
MAX_PLANS, _MAX_CHARACTERS = 500, 4_000_000
#: No button leads to plotly's cloud: names of nodes and workloads are in the charts.
_CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["sendDataToCloud", "sendChartToCloud"],
}


def single(figure: Any, title: str, *, cdn: bool = False) -> str:
    """Return the page of one figure; `cdn` as for `page`."""
    heading = f"<h1>{escape(title)}</h1>"
    return _page(title, [plotly_script(cdn), heading, fragment(figure, "drawing")])


def fragment(figure: Any, name: str, **config: Any) -> str:
    """Return a figure as HTML, without plotly itself; `config` adds to plotly's configuration."""
    return figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=name, config=_CONFIG | config
    )


def _page(title: str, body: list[str]) -> str:
    template, style = _asset("single.html"), _asset("single.css")
    return template.format(title=escape(title), style=style, body="\n".join(body))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def plotly_script(cdn: bool) -> str:
    """Return plotly as a script of a page: whole, or the tag that loads it from the network."""
    if not cdn:
        return f"<script>{get_plotlyjs()}</script>"
    drawn = go.Figure().to_html(full_html=False, include_plotlyjs="cdn")
    (tag,) = re.findall(r"<script[^>]* src=[^>]*></script>", drawn)
    return str(tag)


def drawings(front: Front, problem: Problem | None = None) -> list[tuple[str, Any]]:
    """Return the plotly figures of a front, each with the width that it wants.

    A width is half, third or whole, of the page's.

    Hovering over a point shows its values, and the summary of its plan where `problem` is given;
    of more than `MAX_PLANS` points the values of the chart alone, so that a page stays small.
    """
    hover = None
    if len(front) <= MAX_PLANS:
        hover = [_hover(front, k, point, problem) for k, point in enumerate(front.points)]
    count = len(front.objectives)
    cells: list[tuple[str, Any]] = []
    if count >= 3:
        cells += [("half", _space(front, hover)), ("half", _parallel(front))]
    width = "whole" if count <= 2 else "third"
    cells += [(width, _plane(front, a, b, hover, tall=count <= 2)) for a, b in pairs(front)]
    if count == 1:
        cells.append(("whole", _line(front, hover)))
    return cells


def _status(point: Point) -> str:
    return point.status + ("" if point.gap is None else f" (gap {point.gap:.2%})")


def _origin(point: Point) -> str:
    return (point.method or "unknown") + ("" if point.seed is None else f", seed {point.seed}")


def _hover(front: Front, index: int, point: Point, problem: Problem | None) -> str:
    """Return the text shown on hovering over a point: values, status, method, the plan in brief."""
    lines = [f"<b>point {index}</b>"]
    lines += [
        f"{escape(o.name)}: <b>{v:.6g}</b> {escape(o.unit)}"
        for o, v in zip(front.objectives, point.values, strict=True)
    ]
    lines.append(f"{_status(point)}, {escape(_origin(point))}")
    for name, text in (problem.describe(point.plan) if problem is not None else {}).items():
        lines += [escape(line) for line in _short(name, text)]
    return "<br>".join(lines)


def _short(name: str, text: str) -> list[str]:
    """Return the lines of one fact of a plan; a long list has one item a line, at most eight."""
    items = text.split(", ")
    if len(text) <= 50 or len(items) == 1:
        return textwrap.wrap(f"{name}: {text}", 60)
    more = [f"  and {len(items) - 8} more"] if len(items) > 8 else []
    return [f"{name}:", *(f"  {item[:60]}" for item in items[:8]), *more]


# -- drawings --------------------------------------------------------------------------------------


def _space(front: Front, hover: list[str] | None) -> Any:
    figure = go.Figure()
    _marks(front, [0, 1, 2], hover, figure.add_scatter3d, 3.5, {"symbol": "x", "size": 2})
    ring(figure.add_scatter3d, front.pick().values[:3], "knee", KNEE)
    x, y, z = map(label, front.objectives[:3])
    figure.update_scenes(xaxis_title_text=x, yaxis_title_text=y, zaxis_title_text=z)
    camera = {"eye": {"x": 1.6, "y": 1.6, "z": 1.0}, "center": {"x": 0, "y": 0, "z": -0.2}}
    figure.update_layout(scene_camera=camera, meta={"columns": [0, 1, 2]}, **_layout(height=560))
    return figure


def _plane(front: Front, a: int, b: int, hover: list[str] | None, *, tall: bool) -> Any:
    figure = go.Figure()
    scatter = figure.add_scatter if len(front) <= _MAX_SVG else figure.add_scattergl
    bound = {"symbol": "x-thin-open", "size": 5}
    _marks(front, [a, b], hover, scatter, 7 if tall else 5, bound)
    knee = front.pick().values
    ring(figure.add_scatter, (knee[a], knee[b]), "knee", KNEE)
    figure.update_xaxes(title_text=label(front.objectives[a]))
    figure.update_yaxes(title_text=label(front.objectives[b]))
    layout = _layout(height=620 if tall else 400, legend=tall)
    figure.update_layout(meta={"columns": [a, b]}, **layout)
    return figure


def _marks(
    front: Front,
    columns: list[int],
    hover: list[str] | None,
    add: Callable[..., Any],
    size: float,
    bound: dict[str, Any],
) -> None:
    """Draw the bounds, and the points by method and status, by a figure's method `add`."""
    if front.bounds:
        places = np.array(front.bounds)[:, columns]
        marker = bound | {"color": BOUND}
        add(**_at(places), mode="markers", name=bound_name(front), hoverinfo="skip", marker=marker)
    for name, colour, chosen in by_method(front):
        add(
            **_at(front.values[chosen][:, columns]),
            mode="markers",
            name=escape(name),
            customdata=chosen,
            **_told(hover, chosen, [label(front.objectives[c]) for c in columns]),
            marker_size=size,
            marker_color=colour,
            marker_symbol=[_SYMBOLS[front.points[k].status] for k in chosen],
        )


def _told(hover: list[str] | None, chosen: list[int], labels: list[str]) -> dict[str, Any]:
    """Return what hovering over the points `chosen` shows, as plotly wants it."""
    if hover is not None:
        return {"text": [hover[k] for k in chosen], "hoverinfo": "text"}
    lines = [f"{escape(name)}: %{{{x}:.6g}}" for name, x in zip(labels, "xyz", strict=False)]
    text = "<br>".join(["<b>point %{customdata}</b>", *lines])
    return {"hovertemplate": f"{text}<extra></extra>"}


def ring(add: Callable[..., Any], place: Sequence[float], name: str, colour: str) -> None:
    """Draw a ring around a place in the plane or in space, by a figure's method `add`."""
    add(
        **_at(np.array([place])),
        mode="markers",
        name=name,
        hoverinfo="skip",
        marker_symbol="circle-open",
        marker_size=14 if len(place) == 2 else 11,
        marker_color=colour,
        marker_line_width=2.5,
    )


def segments(
    ends: Iterable[tuple[Sequence[float], Sequence[float]]],
) -> dict[str, list[float | None]]:
    """Return the coordinates of separate lines as plotly wants them: None ends a line."""
    stops = [place for start, end in ends for place in (start, end, (None, None))]
    return {"x": [x for x, _ in stops], "y": [y for _, y in stops]}


def _at(places: np.ndarray) -> dict[str, list[float]]:
    """Return the coordinates of places, shape (n, 2) or (n, 3), as plotly names them."""
    return {axis: column.tolist() for axis, column in zip("xyz", places.T, strict=False)}


def _line(front: Front, hover: list[str] | None) -> Any:
    """The one point of a single objective."""
    figure = go.Figure()
    for bound in front.bounds:
        figure.add_vline(
            bound[0], line_color=BOUND, line_dash="dot", annotation_text=bound_name(front)
        )
    figure.add_scatter(
        x=front.values[:, 0],
        y=[0] * len(front),
        mode="markers",
        customdata=list(range(len(front))),
        **_told(hover, list(range(len(front))), [label(front.objectives[0])]),
        marker_size=10,
        marker_color=PALETTE[0],
    )
    figure.update_xaxes(title_text=label(front.objectives[0]))
    figure.update_yaxes(visible=False)
    figure.update_layout(**_layout(height=260, legend=False))
    return figure


def _parallel(front: Front) -> Any:
    """Parallel coordinates; drag along an axis to keep some points only.

    The best value is at the lower end of every axis.
    """
    ends = zip(front.ideal.tolist(), front.nadir.tolist(), strict=True)
    axes = [
        {
            "label": label(o),
            "values": column,
            "range": None if o.sign > 0 or low == high else [low, high],
        }
        for o, column, (low, high) in zip(front.objectives, front.values.T, ends, strict=True)
    ]
    line = {"color": front.normalised()[:, 0], "colorscale": "Viridis", "showscale": False}
    figure = go.Figure(
        go.Parcoords(dimensions=axes, line=line, labelfont={"size": 14}, tickfont={"size": 12})
    )
    figure.update_layout(
        **_layout(height=560, legend=False) | {"margin": {"l": 90, "r": 90, "t": 70, "b": 40}}
    )
    return figure


def _layout(height: int, *, legend: bool = True) -> dict[str, Any]:
    return {
        "template": "plotly_white",
        "height": height,
        "margin": {"l": 70, "r": 40, "t": 30, "b": 60},
        "modebar": {"orientation": "v"},
        "showlegend": legend,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"size": 11, "color": "#222"}},
    }
