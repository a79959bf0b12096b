"""``placeopt enumerate``: the front of a model in a file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli import progress
from placeopt.cli.commands import SOLVE, add
from placeopt.cli.screen import (
    AsJson,
    Output,
    Quiet,
    deliver_front,
    for_people,
    numbers_of,
    same_command,
    say,
)
from placeopt.cli.solving import PlotOption, cancelled_by_signals
from placeopt.core.errors import UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.runs.progress import of_run

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front

#: Variables that are named where a person reads, at most.
_SHOWN = 30


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    examples = (
        "placeopt enumerate shop.lp --goal profit --goal min:co2",
        "placeopt enumerate knapsack.mof.json --time-limit 60 -o front.json",
    )
    add(app, enumerate_file, *examples, group=SOLVE, name="enumerate")


def enumerate_file(
    context: typer.Context,
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A model: .lp, .mps or .mof.json; also .gz."),
    ],
    goal: Annotated[
        list[str] | None,
        Option(
            "--goal",
            metavar="[min:|max:]NAME",
            help="A goal, by the name of an objective or of a row; repeatable; all by default.",
        ),
    ] = None,
    solver: Annotated[
        str | None,
        Option(help="highs, scip, cp-sat, cbc, ...; by default what serves the model best."),
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", help="Time limit; what was found is kept.")
    ] = None,
    jobs: Annotated[int, Option(help="Questions that are solved at the same time.")] = 1,
    gap: Annotated[
        list[str] | None,
        Option(
            metavar="[GOAL=]NUMBER",
            help="For continuous goals: how much better than all points a plan may be; repeatable.",
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        Option(
            metavar="GOAL=NUMBER", help="Smallest difference of two values of a goal; repeatable."
        ),
    ] = None,
    max_points: Annotated[int | None, Option(help="Stop at so many points.")] = None,
    output: Output = None,
    plot: PlotOption = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find all efficient points of a linear model.

    The model is a file. Every point is proven.

    Goals are the file's objectives and its rows without a limit; --goal names them, or other rows.
    Ctrl-C stops the run and keeps what was found; a second Ctrl-C aborts.
    """
    require_outputs(output, plot, inputs=(file,))
    if plot is not None:
        from placeopt.plot import require

        require(plot)
    tolerance, steps = _gap(gap), numbers_of(step, "--step") or None
    from placeopt.core.budget import Budget
    from placeopt.core.fronts.values import Objective
    from placeopt.exact.files import read_model
    from placeopt.exact.model_front import enumerate as enumerate_model

    budget = Budget(None, time_limit)
    budget.evaluations_limit = None
    budget.resume(0, time.perf_counter() - context.obj)  # the limit covers imports and reading too
    model = read_model(file, goal)
    goals = [Objective(name, "") for name in model.goal]
    with cancelled_by_signals(budget), progress.shown() as tell:
        if tell is not None:
            budget.on_progress = lambda state: tell(of_run(state, budget, goals))
        front = enumerate_model(
            model,
            solver=solver,
            jobs=jobs,
            gap=tolerance,
            steps=steps,
            max_points=max_points,
            budget=budget,
        )
    front = _with_names(front, {v.name: str(name) for name, v in model.x.items()})
    if not (front.points and for_people(as_json, output)):
        deliver_front(front, output)
    if plot is not None and front.points:
        front.plot(plot)
        say(f"wrote {plot}")
    _tell(front, output, as_json)
    if not front.points:
        raise typer.Exit(3)


def _gap(arguments: list[str] | None) -> float | dict[str, float] | None:
    if arguments is None or len(arguments) != 1 or "=" in arguments[0]:
        return numbers_of(arguments, "--gap") or None
    try:
        return float(arguments[0])
    except ValueError:
        raise UsageError(
            f"--gap is {arguments[0]!r}; give a number, or one for a goal: --gap cost=0.5"
        ) from None


def _with_names(front: Front, names: Mapping[str, str]) -> Front:
    """Return the front with the file's own names of variables in its plans."""
    points = (
        replace(point, plan={names.get(key, key): value for key, value in point.plan.items()})
        for point in front.points
    )
    return replace(front, points=tuple(points))


def _tell(front: Front, output: Path | None, as_json: bool) -> None:
    """Say what was found and how the search ended: to a person whole, else in short."""
    from placeopt.cli import front_view

    facts = front.runs[0].parameters
    ended = f"{facts['status']}: {facts['reason']}; asked {facts['solver']}"
    if not front.points:
        say(f"no solution of {front.instance.name!r} was found: {ended}")
    elif not for_people(as_json, output):
        front_view.summarise(front, front, [f"The search: {ended}."])
    else:
        variables: Any = _Variables()
        commands = [("keep the front", same_command("-o front.json"))]
        front_view.show_front(front, front, variables, commands, [f"The search: {ended}."])


class _Variables:
    """Stands for a problem where a plan is told of."""

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables that are not zero."""
        parts = [f"{name} = {value:g}" for name, value in list(plan.items())[:_SHOWN]]
        more = f", and {len(plan) - _SHOWN} more" if len(plan) > _SHOWN else ""
        return {"variables": (", ".join(parts) or "all are 0") + more}
