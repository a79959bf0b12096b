"""Fronts as notebooks show them: a picture and a table; and as pandas DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import combinations
from typing import Any

import numpy as np

from placeopt.core.errors import optional
from placeopt.core.fronts.values import Objective, Point, names_of

#: Points that a notebook shows.
SHOWN = 20


def no_points(title: str, reasons: Iterable[str]) -> str:
    """Return the reasons why a front is empty, for notebooks."""
    listed = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
    return f"<p>{escape(title)}</p><ul>{listed}</ul>"


def html(
    title: str,
    objectives: Sequence[Objective],
    values: np.ndarray,
    shown: Sequence[Point],
    knee: Sequence[float],
) -> str:
    """Return a picture and a table for notebooks.

    Parameters
    ----------
    values : ndarray, shape (points, objectives)
        All points, for the picture.
    shown : sequence of Point
        The rows of the table.
    knee : sequence of float, shape (objectives,)
        It has a ring in the picture.
    """
    names = [
        o.name + (f" ({o.unit})" if o.unit else "") + (", maximised" if o.sign < 0 else "")
        for o in objectives
    ]
    rows = [
        [*(f"{value:.6g}" for value in p.values), p.status, ", ".join(p.found_by)] for p in shown
    ]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in (*names, "status", "method"))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    drawn = sample(values)
    picture = scatter(values[drawn], names, knee)
    table = f"<table><tr>{head}</tr>{body}</table>"
    left_out = len(values) - len(rows)
    more = f"<p>{left_out} more points, spread between these</p>" if left_out else ""
    if len(drawn) < len(values):
        more += f"<p>The picture has {len(drawn):,} of {len(values):,} points.</p>"
    return f"<p>{escape(title)}</p>{picture}{table}{more}"


def table(
    objectives: Sequence[Objective], points: Sequence[Point], plans: bool, problem: Any
) -> Any:
    """Return a DataFrame as `Front.to_pandas` describes it."""
    pandas = optional("pandas", "a pandas table", "plot")
    names = names_of(objectives)
    rows = [
        {
            **dict(zip(names, p.values, strict=True)),
            "status": p.status,
            "gap": p.gap,
            "method": p.method,
            "seed": p.seed,
            **({} if problem is None else problem.describe(p.plan)),
            **({"plan": p.plan} if plans else {}),
        }
        for p in points
    ]
    columns = [*names, "status", "gap", "method", "seed"]
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=columns)


#: Size of a panel, and the room for its axis labels, in pixels.
_SIDE, _ROOM = 190, 46
#: Most panels, and most points of each beside the best and worst of every goal.
_MAX_PANELS, _MAX_POINTS = 6, 2000


def sample(values: np.ndarray) -> np.ndarray:
    """Return the rows of values (points, m) to draw: all, or a spread that has all extremes."""
    if len(values) <= _MAX_POINTS:
        return np.arange(len(values))
    extremes = (values.argmin(axis=0), values.argmax(axis=0))
    spread = np.linspace(0, len(values) - 1, _MAX_POINTS).astype(int)
    return np.unique(np.concatenate((np.lexsort(values.T[::-1])[spread], *extremes)))


def scatter(values: np.ndarray, labels: Sequence[str], marked: Sequence[float]) -> str:
    """Return a scatter of every pair of columns (points, m) as SVG; `marked` (m,) has a ring."""
    chosen = list(combinations(range(len(labels)), 2))[:_MAX_PANELS]
    if not chosen:
        return ""
    low, spread = values.min(axis=0), np.ptp(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    places = (values - low) / spread
    ring = (np.array(marked) - low) / spread
    panels = "".join(
        f'<g transform="translate({k * (_SIDE + _ROOM) + _ROOM},10)">'
        + _panel(places[:, [a, b]], ring[[a, b]], (labels[a], labels[b]))
        + _ends(low[[a, b]], (low + spread)[[a, b]])
        + "</g>"
        for k, (a, b) in enumerate(chosen)
    )
    width, height = len(chosen) * (_SIDE + _ROOM) + 10, _SIDE + _ROOM + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" style="max-width:100%" font-family="sans-serif" font-size="11" '
        f'fill="currentColor" role="img" aria-label="points of the front">{panels}</svg>'
    )


def _panel(places: np.ndarray, ring: np.ndarray, names: tuple[str, str]) -> str:
    """Return the axes and points of one panel; places (points, 2) and ring (2,) in [0, 1]."""
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="#0072B2"/>'
        for x, y in _pixels(places).tolist()
    )
    ((x, y),) = _pixels(ring[None, :]).tolist()
    knee = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none" stroke="#D00000"/>'
    across, along = (escape(name) for name in names)
    return (
        f'<path d="M0 0V{_SIDE}H{_SIDE}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
        f'{dots}{knee}<text x="{_SIDE / 2}" y="{_SIDE + 30}" text-anchor="middle">{across}</text>'
        f'<text transform="translate(-20,{_SIDE / 2}) rotate(-90)" text-anchor="middle">'
        f"{along}</text>"
    )


def _pixels(places: np.ndarray) -> np.ndarray:
    """Return places in [0, 1] (n, 2) as pixels of a panel, a little inside of its axes."""
    inside = 8 + places * (_SIDE - 16)
    return np.column_stack((inside[:, 0], _SIDE - inside[:, 1]))


def _ends(low: np.ndarray, high: np.ndarray) -> str:
    """Return the least and greatest value of both axes (2,) as text."""
    (x0, y0), (x1, y1) = low.tolist(), high.tolist()
    return (
        f'<text x="0" y="{_SIDE + 15}">{x0:.4g}</text>'
        f'<text x="{_SIDE}" y="{_SIDE + 15}" text-anchor="end">{x1:.4g}</text>'
        f'<text transform="translate(-5,{_SIDE}) rotate(-90)">{y0:.4g}</text>'
        f'<text transform="translate(-5,0) rotate(-90)" text-anchor="end">{y1:.4g}</text>'
    )
