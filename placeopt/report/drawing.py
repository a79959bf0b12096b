"""Charts inside a report: those of `placeopt.plot`, with words for people who cannot see them."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placeopt.plot.style import bare_name, label, least, pairs
from placeopt.report.markup import clean

if TYPE_CHECKING:
    from placeopt.core.front import Front, Plan
    from placeopt.core.problem import Problem

#: Parts of plans, over all points, up to which hovering tells the plan; beyond, it tells values
#: alone, so that the page stays small.
_MAX_TOLD = 100_000
#: Characters of an interactive drawing of a plan; beyond, it is drawn as an image.
_MAX_DRAWN = 3_000_000
#: Parts of a plan that are drawn mark by mark.
_MAX_PARTS = 400
#: The colour of the ring around the chosen point.
CHOSEN = "#6A3D9A"
_WEBGL = {"scatter3d", "parcoords", "scattergl"}
#: What telephones cannot show: labels overlap, corners are cut.
_WIDE = {"scatter3d", "parcoords"}


def charts(front: Front, problem: Problem | None, chosen: int, *, cdn: bool) -> str:
    """Return the figures of a front as HTML, with a ring around the point `chosen`.

    Plotly itself comes before them.
    """
    from placeopt.plot.html import drawings, fragment, plotly_script

    if len(front) == 1:  # nothing to trade: a chart would be one mark on an axis
        return plotly_script(cdn)
    front = _varying(front)
    cells = drawings(
        front,
        problem if len(front) * max(_size(p.plan) for p in front.points) <= _MAX_TOLD else None,
    )
    if front.points[chosen] is not front.pick():
        _ring(front, chosen, [figure for _, figure in cells])
    told = _captions(front, [kind for kind, _ in cells])
    parts = [plotly_script(cdn)]
    for k, ((place, figure), caption) in enumerate(zip(cells, told, strict=True)):
        kinds = {trace.type for trace in figure.data}
        wide = kinds & _WIDE
        flags = (' data-webgl=""' if kinds & _WEBGL else "") + (' data-wide=""' if wide else "")
        drawn = fragment(figure, f"front-{k}", displayModeBar="hover")
        text = clean(caption)
        inside = f'<div role="img" aria-label="{text}">{drawn}</div><figcaption>{text}</figcaption>'
        parts.append(f'<figure class="chart {place}"{flags}>{inside}</figure>')
    return '<div class="charts">' + "\n".join(parts) + "</div>"


def _ring(front: Front, chosen: int, figures: list[Any]) -> None:
    """Mark a point in the figures that have points."""
    from placeopt.plot.html import ring

    values, planes = front.points[chosen].values, iter(pairs(front))
    for figure in figures:
        kinds = {trace.type for trace in figure.data}
        if "scatter3d" in kinds:
            ring(figure.add_scatter3d, values[:3], "chosen", CHOSEN)
        elif "parcoords" not in kinds and len(values) > 1:
            a, b = next(planes)
            ring(figure.add_scatter, (values[a], values[b]), "chosen", CHOSEN)


def _varying(front: Front) -> Front:
    """Return the front without constant objectives, and without bounds far from its points."""
    kept = [k for k in range(len(front.objectives)) if front.ideal[k] != front.nadir[k]] or [0]
    points = tuple(replace(p, values=tuple(p.values[k] for k in kept)) for p in front.points)
    most = front.nadir + 0.1 * (
        front.nadir - front.ideal
    )  # bounds far beyond the worst point would squash the rest
    signs = [o.sign for o in front.objectives]
    near = [b for b in front.bounds if all(signs[k] * (b[k] - most[k]) <= 0 for k in kept)]
    bounds = tuple(tuple(b[k] for k in kept) for b in near)
    return replace(
        front, objectives=tuple(front.objectives[k] for k in kept), points=points, bounds=bounds
    )


def _captions(front: Front, places: list[str]) -> list[str]:
    """Return what each figure shows, in the order of `placeopt.plot.html.drawings`."""
    names = [bare_name(o) for o in front.objectives]
    found = []
    best = "best at the lower end; " if any(o.sign < 0 for o in front.objectives) else ""
    if len(names) >= 3:
        found = [
            f"{', '.join(names[:3])} in space; drag to turn.",
            f"Every line is a plan; {best}drag along an axis to keep some of them.",
        ]
    if len(names) == 1:
        return [f"The {least(front.objectives[0])} {label(front.objectives[0])} found."]
    return [*found, *(f"{names[b]} against {names[a]}." for a, b in pairs(front))][: len(places)]


def plan_drawing(problem: Problem, plan: Plan, title: str) -> str:
    """Return the drawing of a plan: interactive where that is small, else an image.

    It is empty where the problem has none.
    """
    if not problem.spec.has("drawing"):
        return ""
    module = problem.spec.load("drawing")
    text = f"Drawing of the plan. {title} The tables below say the same in numbers."
    inside = _interactive(module, problem, plan) or _image(module, problem, plan, text)
    drawn = (
        f'<div class="drawing" tabindex="0" role="img" aria-label="{clean(text)}">{inside}</div>'
    )
    return f"<figure>{drawn}</figure>"


def _interactive(module: Any, problem: Problem, plan: Plan) -> str:
    from placeopt.plot.html import fragment

    if _size(plan) > _MAX_PARTS:
        return ""
    figure = module.interactive(problem, plan, "")
    kept = [
        trace for trace in figure.data if trace.type != "table"
    ]  # the report has the table in HTML, where it can be read aloud and printed
    if len(kept) < len(figure.data):
        figure = _without_table(figure, kept)
    drawn = fragment(figure, "plan-drawing", displayModeBar="hover")
    return drawn if len(drawn) <= _MAX_DRAWN else ""


def _size(plan: Plan) -> int:
    """Return the entries of the largest list of a plan."""
    return max((len(part) for part in plan.values() if isinstance(part, (list, dict))), default=1)


def _without_table(figure: Any, kept: list[Any]) -> Any:
    import plotly.graph_objects as go

    layout = figure.layout.to_plotly_json()
    axes = [axis for k, axis in layout.items() if k.startswith("yaxis") and axis.get("domain")]
    bottom = min((axis["domain"][0] for axis in axes), default=0.0)

    def lowered(height: float) -> float:
        return (height - bottom) / (1 - bottom)

    for axis in axes:  # what stood above the table takes its place
        axis["domain"] = [lowered(height) for height in axis["domain"]]
    for note in layout.get("annotations", []):
        if note.get("yref") == "paper":
            note["y"] = lowered(note["y"])
    if layout.get("height"):
        layout["height"] = max(320, round(layout["height"] * (1 - bottom)) + 60)
    for trace in kept:  # a colour bar is placed by the chart again
        if trace.type == "heatmap":
            trace.colorbar.update(len=1.0, y=0.5)
    return go.Figure(kept, layout)


def _image(module: Any, problem: Problem, plan: Plan, text: str) -> str:
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        return ""
    buffer = io.BytesIO()
    module.figure(problem, plan, "").savefig(
        buffer, format="png", dpi=110, metadata={"Software": None}
    )
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{clean(text)}" src="data:image/png;base64,{data}">'
