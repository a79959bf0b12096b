"""One plan drawn and told: a piece of a page, and a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.core.fronts.words import values
from placeopt.core.interfaces import build_encoder
from placeopt.plot.markup import clean, facts, section, shell, some
from placeopt.plot.scene import Scene
from placeopt.plot.style import shade

if TYPE_CHECKING:
    import numpy as np

    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Plan
    from placeopt.core.interfaces import Encoder
    from placeopt.core.problem import Problem


def title_of(front: Front, index: int) -> str:
    """Return the name of a point and its values in a line."""
    return f"{front.instance.name}, point {index}: {values(front, front.points[index])}"


#: Decisions that are drawn, at most, how many stand in a row, and the side of each in pixels.
_MOST, _ROW, _SIDE = 3000, 60, 16


def scene_of(problem: Problem, plan: Plan) -> Scene | None:
    """Return the drawing of a plan: the problem's own, or else what its encoder decides.

    None where there is neither.
    """
    if problem.spec.has("drawing"):
        own: Scene = problem.spec.load("drawing").scene(problem, plan)
        return own
    encoder = build_encoder(problem) if problem.spec.has("encoder") else None
    genes = None if encoder is None else encoder.encode(plan)
    return None if encoder is None or genes is None else _decisions(encoder, genes)


def _decisions(encoder: Encoder, genes: np.ndarray) -> Scene:
    """Return a square for each decision; its colour is where its value lies among those it may."""
    shown = genes[:_MOST].tolist()
    sheet = Scene(32 + _SIDE * _ROW, 54 + _SIDE * -(-len(shown) // _ROW))
    legend = [
        ("area", shade(0), "the least value of a decision"),
        ("area", shade(1), "the largest"),
    ]
    top = sheet.legend(16, 20, legend)
    for k, value in enumerate(shown):
        low, high = int(encoder.lower[k]), int(encoder.upper[k])
        x, y = 16 + _SIDE * (k % _ROW), top + _SIDE * (k // _ROW)
        title = f"decision {k}: {value}, of {low} to {high}"
        fill = shade((value - low) / max(1, high - low))
        sheet.box(x, y, _SIDE - 2, _SIDE - 2, fill=fill, title=title)
    if len(genes) > len(shown):
        more = f"{len(genes) - len(shown):,} more decisions are not drawn"
        sheet.words(16, sheet.height - 4, more, colour="soft")
    return sheet


def plan_html(problem: Problem, plan: Plan, label: str) -> str:
    """Return a plan as HTML: its facts, its drawing, its tables; `label` says what it is."""
    told = facts((name, some(text)) for name, text in problem.describe(plan).items())
    return told + details_html(problem, plan, label)


def details_html(problem: Problem, plan: Plan, label: str) -> str:
    """Return the drawing of a plan and its tables, as far as the problem has them."""
    drawn = scene_of(problem, plan)
    text = f"Drawing of the plan. {label} The tables say the same in numbers."
    figure = "" if drawn is None else figure_html(drawn, text, caption=False)
    has_tables = problem.spec.has("summary")
    return figure + (problem.spec.load("summary").plan(problem, plan) if has_tables else "")


def figure_html(drawn: Scene, label: str, *, caption: bool = True) -> str:
    """Return a drawing as a figure; `label` is its caption, or for those who cannot see it."""
    region = 'class="drawing" tabindex="0" role="group" aria-label="Drawing"'
    below = f"<figcaption>{clean(label)}</figcaption>" if caption else ""
    return f"<figure><div {region}>{drawn.svg(label)}</div>{below}</figure>"


def drawing_page(drawn: Scene, title: str, problem: str) -> str:
    """Return the page of one drawing."""
    return shell(
        title=title,
        heading=title,
        eyebrow=f"placeopt \u00b7 {problem}",
        body=section("drawing", "The drawing", figure_html(drawn, title, caption=False)),
    )


def page(front: Front, index: int, problem: Problem) -> str:
    """Return the page of one plan."""
    title, plan = title_of(front, index), front.points[index].plan
    return shell(
        title=title,
        heading=title,
        eyebrow=f"placeopt plan \u00b7 {front.instance.problem}",
        body=section("plan", "The plan", plan_html(problem, plan, title)),
    )
