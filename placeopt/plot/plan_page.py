"""One plan drawn and told: a piece of a page, and a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.core.fronts.words import bare_name
from placeopt.plot.markup import clean, facts, section, shell, some

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Plan
    from placeopt.core.problem import Problem
    from placeopt.plot.scene import Scene


def title_of(front: Front, index: int) -> str:
    """Return the name of a point and its values in a line."""
    values = ", ".join(
        f"{bare_name(o)} {v:.5g} {o.unit}".rstrip()
        for o, v in zip(front.objectives, front.points[index].values, strict=True)
    )
    return f"{front.instance.name}, point {index}: {values}"


def scene_of(problem: Problem, plan: Plan) -> Scene | None:
    """Return the drawing of a plan; None where the problem has none."""
    if not problem.spec.has("drawing"):
        return None
    drawn: Scene = problem.spec.load("drawing").scene(problem, plan)
    return drawn


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
