"""The page of a front: one HTML file in which a plan is chosen, readable without a network."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.fronts.dominance import farthest
from placeopt.core.fronts.words import bare_name, bound_name, counted, finders, in_page, made
from placeopt.plot.markup import asset, bullets, section, shell
from placeopt.plot.style import by_method

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Objective, Point
    from placeopt.core.problem import Problem

#: Plans that a page holds, and their characters before they are packed; of a larger front a spread
#: subset.
MAX_PLANS, _MAX_CHARACTERS = 2000, 20_000_000

#: Commands about one plan that a page offers: (what for, command). A page fills in ``{point}``.
Commands = Sequence[tuple[str, str]]


def front_data(front: Front, file: str = "FRONT", commands: Commands = ()) -> dict[str, Any]:
    """Return the data of `chart.js` and `choose.js`; `file` is the front's in commands."""
    methods = {name: k for k, (name, _, _) in enumerate(by_method(front))}
    told = [finders(point) for point in front.points]
    origins = {text: k for k, text in enumerate(dict.fromkeys(told))}
    return {
        "file": file,
        "commands": [list(pair) for pair in commands],
        "goals": [
            _goal(*each)
            for each in zip(
                front.objectives, front.ideal.tolist(), front.nadir.tolist(), strict=True
            )
        ],
        "values": front.values.tolist(),
        "statuses": [point.status for point in front.points],
        "gaps": [point.gap for point in front.points],
        "methods": list(methods),
        "method_of": [methods[point.method or "unknown"] for point in front.points],
        "origins": list(origins),
        "origin_of": [origins[text] for text in told],
        "bounds": [list(bound) for bound in front.bounds],
        "bound_name": bound_name(front),
    }


def _goal(objective: Objective, best: float, worst: float) -> dict[str, Any]:
    factor, unit = in_page(objective)
    suffix = unit if unit == "%" else f" {unit}".rstrip()
    brackets = f" ({unit})" if unit else ""
    return {
        "name": objective.name,
        "short": bare_name(objective),
        "label": bare_name(objective) + brackets + (", maximised" if objective.sign < 0 else ""),
        "factor": factor,
        "suffix": suffix,
        "sign": objective.sign,
        "best": best,
        "worst": worst,
    }


def plan_numbers(front: Front) -> list[int]:
    """Return the points whose plans a page holds: all, or a spread subset where they are large."""
    some = [front.points[k].plan for k in range(0, len(front), 1 + len(front) // 20)]
    size = max(len(json.dumps(plan)) for plan in some)
    count = max(1, min(MAX_PLANS, _MAX_CHARACTERS // size))
    if len(front) <= count:
        return list(range(len(front)))
    return farthest(front.values * [o.sign for o in front.objectives], count)


def detail(point: Point, problem: Problem | None) -> dict[str, Any]:
    """Return the facts of one plan and the plan itself."""
    facts = {} if problem is None else problem.describe(point.plan)
    return {"facts": [list(fact) for fact in facts.items()], "plan": point.plan}


def packed(details: dict[int, dict[str, Any]]) -> str:
    """Return details by point as JSON, deflated, in base64."""
    text = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def as_script(name: str, data: Any) -> str:
    """Return data as a script element that a page reads; nothing in a name can end it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


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
