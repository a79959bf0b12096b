"""``placeopt solve``."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli import progress
from placeopt.cli.commands import SOLVE, add
from placeopt.cli.completion import (
    instance_names,
    method_names,
    policy_names,
)
from placeopt.cli.front_view import about_plan, page_of
from placeopt.cli.reports import LOOK_SECONDS, RELOAD_SECONDS
from placeopt.cli.screen import (
    AsJson,
    Quiet,
    corner_of,
    deliver_front,
    drop_none,
    for_people,
    is_quiet,
    names,
    pairs,
    same_command,
    say,
)
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.runs.progress import of_run

if TYPE_CHECKING:
    from placeopt.core.budget import Budget
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem

#: Points that a front file keeps unless told otherwise.
POINTS = 500
#: Points that it keeps at most, and by how much they may miss more of what is attainable than the
#: whole front, where bounds say how much that misses. Of aws-50, 500 points miss .45 % more, 2,000
#: points .1 %.
CERTIFIED_POINTS, CERTIFIED_LOSS = 2000, 0.001


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    add(
        app,
        solve,
        "placeopt solve toy -o front.json --plot front.html",
        "placeopt solve toy --limit 'latency_ms<=30' --limit cost_usd=12 -o front.json",
        "placeopt solve aws-50 --method nsga3 --time-limit 20 --certify -o aws-50.json",
        group=SOLVE,
    )


PlotOption = Annotated[
    Path | None, Option(help="Also draw the front: a file name in .html, .png, .pdf or .svg.")
]


def solve(
    context: typer.Context,
    instance: Annotated[
        Path | None,
        Argument(
            metavar="INSTANCE",
            help="Instance: a JSON file, or the name of one that `placeopt instances` lists.",
            autocompletion=instance_names,
        ),
    ] = None,
    method: Annotated[
        str,
        Option(help="How to solve it: see `placeopt methods`.", autocompletion=method_names),
    ] = "auto",
    objectives: Annotated[
        str | None,
        Option(
            metavar="A,B",
            help="Objectives to consider, in this order (default: all).",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        Option(
            metavar="GOAL<=VALUE",
            help="Largest value allowed of an objective, such as latency_ms<=30: only plans inside "
            "are searched, bounded and kept. Repeatable.",
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        Option(help="Maximum plans to evaluate. Default: 50,000 (exact methods: 50 s)."),
    ] = None,
    time_limit: Annotated[
        float | None,
        Option(
            metavar="SECONDS", help="Time limit of the whole run. What was found by then is kept."
        ),
    ] = None,
    seed: Annotated[
        int, Option(help="Random seed: the same seed and --evaluations give the same front.")
    ] = 1,
    jobs: Annotated[int, Option(help="Number of processes, for methods that can use several.")] = 1,
    scheduler: Annotated[
        str | None,
        Option(metavar="tcp://HOST:PORT", help="Run on a Dask cluster instead of --jobs."),
    ] = None,
    run_dir: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Checkpoint folder. Run the same command again to resume.",
        ),
    ] = None,
    points: Annotated[
        str | None,
        Option(
            metavar="N|all",
            help="Maximum points to write (default 500; 2,000 with --certify).",
        ),
    ] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", help="Front file to write (default: stdout).")
    ] = None,
    plot: PlotOption = None,
    param: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="Parameter of the method: see `placeopt methods NAME`. Repeatable.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        Option(
            metavar="FILE|NAME",
            help="--method policy: the trained policy.",
            autocompletion=policy_names,
        ),
    ] = None,
    start: Annotated[
        Path | None,
        Option(metavar="FRONT", help="Start the search from the plans of this front."),
    ] = None,
    certify: Annotated[
        bool, Option("--certify", help="Prove how far from optimal the front can be.")
    ] = False,
    reference: Annotated[
        str | None,
        Option(
            metavar="A,B",
            help="Fixed reference point for the convergence trace; use the same one for runs you "
            "will compare.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the best trade-off plans for an instance.

    Ctrl-C stops the run and keeps what was found; a second Ctrl-C aborts.
    """
    from placeopt import api, registry
    from placeopt.core.fronts.front import Front
    from placeopt.core.task import require_fitting
    from placeopt.plot import plot_front
    from placeopt.plot import require as require_plot

    if instance is None:
        raise UsageError(
            "give an instance: a file, a name that `placeopt instances` lists, "
            "or make one: placeopt generate temporal -o mine.json"
        )
    keep = _points_to_keep(points or str(POINTS))
    parameters = _method_parameters(param) | drop_none(policy=policy)
    corner = corner_of(reference)
    require_outputs(output, plot, inputs=(instance, start, policy))
    if plot is not None:
        require_plot(plot)
    problem = api.load(instance)
    chosen = problem.select(names(objectives))
    begin = None
    if start is not None:
        begin = Front.read(start)
        require_fitting(problem, begin, str(start))
    if (jobs > 1 or scheduler) and not registry.parallel(method, problem):
        say(f"note: {method} runs in one process; --jobs and --scheduler change nothing")
    budget = registry.budget_for(method, problem, evaluations, time_limit)
    if time_limit is not None:  # the limit covers imports and reading too
        budget.resume(0, budget.clock.seconds - context.obj)
    with cancelled_by_signals(budget):
        with progress.shown() as tell:
            if tell is not None:
                budget.on_progress = lambda s: tell(of_run(s, budget, chosen))
            front = api.solve(
                problem,
                method,
                objectives=[o.name for o in chosen],
                seed=seed,
                jobs=jobs,
                scheduler=scheduler,
                run_dir=run_dir,
                on_front=_page_that_grows(plot, problem, output, instance),
                every=LOOK_SECONDS,
                budget=budget,
                start=begin,
                certify=certify,
                reference=corner,
                limits=limit,
                **parameters,
            )
        kept = front if keep is None else front.subset(keep)
        if points is None and front.bounds:
            kept = worth_its_bounds(front, kept)
        if not (front.points and for_people(as_json, output)):
            deliver_front(kept, output)
    if plot is not None and kept.points:
        plot_front(kept, plot, problem=problem, **page_of(output, instance))
        say(f"wrote {plot}")
    _tell(front, kept, problem, instance, output, as_json)
    if front.points:
        _say_what_ended(front, budget)
        _say_doubts(problem, instance)
    else:
        raise typer.Exit(3)


def _tell(
    front: Front,
    kept: Front,
    problem: Problem,
    instance: Path,
    output: Path | None,
    as_json: bool,
) -> None:
    """Say what was found: to a person whole, else in short."""
    from placeopt.cli import front_view

    if not front.points:
        front_view.say_infeasible(front, output)
    elif not for_people(as_json) or (output is not None and is_quiet()):
        front_view.summarise(front, kept)
    else:
        commands = [("keep the front", same_command("-o front.json"))]
        if output is not None:
            knee = kept.points.index(kept.pick())
            commands = about_plan(kept, knee, output, instance)
        front_view.show_front(front, kept, problem, commands)


def _say_what_ended(front: Front, budget: Budget) -> None:
    """Say why the run did not end by itself, if it did not."""
    ended = "you stopped the run" if budget.cancelled else "the time limit ended the run"
    notes = [run.parameters.get("note") for run in front.runs if not run.completed]
    for note in dict.fromkeys(notes):
        say(note or f"{ended}; the front is what was found by then")


def _say_doubts(problem: Problem, instance: Path) -> None:
    """Point to `check` where a user's own instance may have mistakes."""
    from placeopt.registry import shipped

    doubts = len(problem.warnings())
    if doubts and shipped(problem.instance_name) is None:
        values = "a value that looks like a mistake" if doubts == 1 else f"{doubts} doubtful values"
        say(f"note: the instance has {values}: placeopt check {shlex.quote(str(instance))}")


def _page_that_grows(
    plot: Path | None, problem: Problem, output: Path | None, instance: Path
) -> Callable[[Front], None] | None:
    """Return what writes a page of what was found so far, where a page is wanted at the end."""
    if plot is None or plot.suffix.lower() != ".html":
        return None
    from placeopt.plot import plot_front

    about = page_of(output, instance)

    def write(front: Front) -> None:
        with suppress(DocumentError):  # the run goes on where a disk is full
            plot_front(front, plot, problem=problem, reload=RELOAD_SECONDS, **about)

    return write


def _points_to_keep(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--points is {text!r}; give a whole number of at least 1, or all")
    return int(text)


def worth_its_bounds(front: Front, kept: Front) -> Front:
    """Return more points than `kept` where these miss much more than the front."""
    known = front.gap()
    while len(kept) < min(len(front), CERTIFIED_POINTS):
        gap = kept.gap()
        if gap is None or known is None or gap - known <= CERTIFIED_LOSS:
            break
        kept = front.subset(2 * len(kept))
    return kept


def _method_parameters(arguments: list[str] | None) -> dict[str, Any]:
    import inspect

    from placeopt import api

    parameters = pairs(arguments, "--param")
    for key in parameters:
        if key in inspect.signature(api.solve).parameters:
            raise UsageError(
                f"--param {key!r} is an option of its own; see `placeopt solve --help`"
            )
    return parameters


# -- while it runs ---------------------------------------------------------------------------------


@contextmanager
def cancelled_by_signals(budget: Budget) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the budget, so that the front is written; a second one kills."""

    def cancel(number: int, _frame: object) -> None:
        budget.cancel()
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(OSError):  # nobody listens
            os.write(2, b"\nstopping, and keeping what was found; once more to abort\n")

    before = {number: signal.signal(number, cancel) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
