"""The page of a front: one HTML file in which a plan is chosen, readable without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.core.fronts.words import counted, made
from placeopt.plot.front_data import (
    Commands,
    as_script,
    detail,
    front_data,
    packed,
    plan_numbers,
)
from placeopt.plot.markup import bullets, section
from placeopt.plot.shell import asset, shell

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem


def page(
    front: Front,
    problem: Problem | None = None,
    *,
    file: str = "FRONT",
    commands: Commands = (),
    reload: int | None = None,
) -> str:
    """Return the page of a front: charts, limits and weights, one plan, or two side by side.

    With `reload` a browser reads it again after so many seconds: runs go on.
    """
    numbers = plan_numbers(front)
    data = front_data(front, file, commands) | {"packed": len(numbers)}
    plans = packed({n: detail(front.points[n], problem) for n in numbers})
    body = [
        asset("choice.html"),
        section("made", "How it was made", bullets(made(front))),
        as_script("front-data", data),
        f'<script type="text/plain" id="front-plans">{plans}</script>',
    ]
    count = f"{len(front):,} " + ("plan" if len(front) == 1 else "plans that no other beats")
    return shell(
        title=f"{front.instance.name}: {counted(len(front), 'plan')}",
        heading=f"{front.instance.name}: {count}",
        eyebrow=f"placeopt front \u00b7 {front.instance.problem}",
        lead="" if reload is None else "The run goes on: this page grows with what it finds.",
        reload=reload,
        body="\n".join(body),
        script="\n".join(map(asset, ("chart.js", "choose.js", "front.js"))),
        footer=f"<p>The instance has SHA-256 {front.instance.sha256}.</p>",
    )
