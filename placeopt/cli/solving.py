"""``placeopt solve``."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.compiling import in_words
from placeopt.cli.completion import instance_names, method_names
from placeopt.cli.fronts import page_of
from placeopt.cli.screen import (
    console,
    deliver_front,
    given,
    names,
    pairs,
    say,
    show,
    warn,
    width_of,
)
from placeopt.cli.tables import table
from placeopt.core.compiling import Compiling, watched
from placeopt.core.errors import UsageError
from placeopt.core.files import require_outputs

if TYPE_CHECKING:
    from placeopt.core.budget import Budget, Progress
    from placeopt.core.front import Front, Objective

#: Points that a front file keeps unless told otherwise.
POINTS = 500
#: Points that it keeps at most, and by how much they may miss more of what is attainable than the
#: whole front, where bounds say how much that misses. Of aws-50, 500 points miss .45 % more, 2,000
#: points .1 %.
CERTIFIED_POINTS, CERTIFIED_LOSS = 2000, 0.001


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    example = (
        "placeopt solve instances/temporal/aws-50.json --method nsga3 --seed 1 -o front.json "
        "--plot front.html"
    )
    app.command(epilog=f"Example: {example}")(solve)


# The options of `solve`.
InstanceArgument = Annotated[
    Path | None,
    Argument(
        metavar="INSTANCE",
        help="Instance: a file (JSON), or a shipped one by name.",
        autocompletion=instance_names,
    ),
]
MethodOption = Annotated[
    str,
    Option(help="How to answer; see `placeopt methods`.", autocompletion=method_names),
]
ObjectivesOption = Annotated[
    str | None,
    Option(metavar="A,B", help="Objectives wanted, in this order; all by default."),
]
EvaluationsOption = Annotated[
    int | None,
    Option(
        help="Budget in evaluations; 50,000 without a time limit, and 50 s for methods that prove."
    ),
]
TimeLimitOption = Annotated[
    float | None,
    Option(metavar="SECONDS", help="Time limit of the whole run; what was found is kept."),
]
SeedOption = Annotated[int, Option(help="The same seed and evaluations give the same front.")]
JobsOption = Annotated[int, Option(help="Processes, for methods made of several tasks.")]
SchedulerOption = Annotated[
    str | None,
    Option(metavar="tcp://HOST:PORT", help="A Dask cluster instead of --jobs."),
]
RunDirOption = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="Keep what is finished, and now and then what is found; the same command takes it up.",
    ),
]
PointsOption = Annotated[
    str | None,
    Option(
        metavar="N|all",
        help="Points to keep: the extremes and those of most hypervolume; 500 by default, with "
        "--certify up to 2,000, so that they miss little more than the whole front.",
    ),
]
OutputOption = Annotated[
    Path | None, Option("-o", "--output", help="Front file to write; stdout by default.")
]
PlotOption = Annotated[Path | None, Option(help="Draw the front as well: .html, .png or .pdf.")]
ParamOption = Annotated[
    list[str] | None,
    Option(metavar="KEY=VALUE", help="Parameter of the method, such as solver=scip; repeatable."),
]
MaxMovesOption = Annotated[int | None, Option(help="rolling-update: most starts of a plan.")]
MinSavingPerMoveOption = Annotated[
    float | None,
    Option(help="rolling-update: least saving of every move, in node price."),
]
PolicyOption = Annotated[
    str | None, Option(metavar="FILE|NAME", help="--method policy: the trained policy.")
]
StartOption = Annotated[
    Path | None,
    Option(metavar="FRONT", help="Front file whose plans the search starts from."),
]
ReferenceOption = Annotated[
    str | None,
    Option(
        metavar="A,B",
        help="Reference point of the trace's hypervolumes, one for runs that are compared.",
    ),
]
CertifyOption = Annotated[
    bool, Option("--certify", help="Add a proven lower-bound set, and so a gap.")
]


def solve(
    context: typer.Context,
    instance: InstanceArgument = None,
    method: MethodOption = "auto",
    objectives: ObjectivesOption = None,
    evaluations: EvaluationsOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 1,
    jobs: JobsOption = 1,
    scheduler: SchedulerOption = None,
    run_dir: RunDirOption = None,
    points: PointsOption = None,
    output: OutputOption = None,
    plot: PlotOption = None,
    param: ParamOption = None,
    max_moves: MaxMovesOption = None,
    min_saving_per_move: MinSavingPerMoveOption = None,
    policy: PolicyOption = None,
    start: StartOption = None,
    certify: CertifyOption = False,
    reference: ReferenceOption = None,
) -> None:
    """Answer an instance with a front of plans.

    Ctrl-C stops the run and writes what was found; a second Ctrl-C aborts.
    """
    from placeopt import api, registry
    from placeopt.core.front import Front
    from placeopt.core.task import require_fitting
    from placeopt.plot import plot_front
    from placeopt.plot import require as require_plot

    if instance is None:
        raise UsageError(
            "give an instance: a file, a name that `placeopt instances` lists, "
            "or draw one: placeopt generate temporal -o mine.json"
        )
    keep = _points_to_keep(points or str(POINTS))
    parameters = _method_parameters(param) | given(
        max_moves=max_moves, min_saving_per_move=min_saving_per_move, policy=policy
    )
    corner = _corner(reference)
    require_outputs(output, plot, inputs=(instance, start, policy))
    if plot is not None:
        require_plot(plot)
    problem = api.load(instance)
    chosen = problem.select(names(objectives))
    begin = None
    if start is not None:
        begin = Front.read(start)
        require_fitting(problem, begin, str(start))
    warn(problem.warnings())
    if (jobs > 1 or scheduler) and not registry.parallel(method, problem):
        say(f"note: {method} is one task; --jobs and --scheduler serve methods made of several")
    budget = registry.budget_for(method, problem, evaluations, time_limit)
    if time_limit is not None:  # the limit covers imports and reading too
        budget.resume(0, time.perf_counter() - context.obj)
    with cancelled_by_signals(budget):
        with _progress(chosen) as budget.on_progress:
            front = api.solve(
                problem,
                method,
                objectives=[o.name for o in chosen],
                seed=seed,
                jobs=jobs,
                scheduler=scheduler,
                run_dir=run_dir,
                budget=budget,
                start=begin,
                certify=certify,
                reference=corner,
                **parameters,
            )
        kept = front if keep is None else front.subset(keep)
        if points is None and front.bounds:
            kept = worth_its_bounds(front, kept)
        deliver_front(kept, output)
    _summarise(
        front,
        kept,
        "you stopped the run" if budget.cancelled else "the time limit ended the run",
    )
    if plot is not None and kept.points:
        plot_front(kept, plot, problem=problem, **page_of(output, instance))
        say(f"wrote {plot}")
    if not front.points:
        raise typer.Exit(3)


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


def _corner(text: str | None) -> list[float] | None:
    """Read the reference point of the trace."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--reference is {text!r}; give numbers, separated by commas") from None


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
        os.write(2, b"\nstopping, and keeping what was found; once more to abort\n")

    before = {number: signal.signal(number, cancel) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(objectives: tuple[Objective, ...]) -> Iterator[Callable[[Progress], None] | None]:
    """Draw a line that moves, with the best values so far, where stderr is a terminal."""
    screen = console()
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        said = "starting"
        task = bar.add_task(said, total=None)

        def compiling(state: Compiling) -> None:
            bar.update(task, description=in_words(state) if state.kernel else said)

        def update(state: Any) -> None:
            nonlocal said
            said, known = _facts(state, objectives), state.share == state.share
            bar.update(
                task,
                total=1.0 if known else None,
                completed=state.share if known else 0,
                description=said,
                refresh=True,
            )

        with watched(compiling):
            yield update


def _facts(state: Progress, objectives: tuple[Objective, ...]) -> str:
    best = [f"{o.name} {show(v, 4)}" for o, v in zip(objectives, state.best, strict=False)]
    facts = [
        f"{state.seconds:.1f} s",
        f"{state.evaluations:,} evaluations" if state.evaluations else "",
        f"{state.points:,} points",
        state.note,
    ]
    return " | ".join(
        fact for fact in (*facts, ("best: " + ", ".join(best)) if best else "") if fact
    )


# -- when it is done -------------------------------------------------------------------------------


def _summarise(front: Front, kept: Front, ended: str) -> None:
    """Print the summary table, or why there is no feasible plan; `kept` is what was written."""
    from placeopt.core.gap import gap_in_words

    if not front.points:
        say(
            f"no feasible plan of {front.instance.name!r} was found; "
            "the least-violating one is kept in the front as `rejected`"
        )
        for reason in front.reasons:
            say(f"  {reason}")
        return
    knee = front.pick().values
    rows = [
        (o.name, o.unit, show(low), show(middle), show(high))
        for o, low, middle, high in zip(
            front.objectives, front.ideal, knee, front.nadir, strict=True
        )
    ]
    say(_headline(front) + "\n")
    columns = ("objective", "unit", "best", "knee", "worst")
    say(table(columns, rows, left=2, width=width_of(sys.stderr)) + "\n")
    share = front.hypervolume(front.reference().tolist(), plain=True)
    statuses = ", ".join(
        f"{n} {status}" for status, n in Counter(p.status for p in front.points).items()
    )
    written = f" ({len(kept)} written)" if len(kept) < len(front) else ""
    say(f"{len(front)} points{written}: {statuses}")
    say(f"hypervolume {share:.4f} of the box up to 1.1 x worst")
    if front.bounds:
        say(f"the front: {gap_in_words(front)}")
    if front.bounds and len(kept) < len(front):
        say(f"the points written: {gap_in_words(kept)}")
    notes = [run.parameters.get("note") for run in front.runs if not run.completed]
    for note in dict.fromkeys(notes):
        say(note or f"{ended}; the front is what was found by then")


def _headline(front: Front) -> str:
    run = front.runs[0]
    counts = [(run.evaluations, "evaluations"), (run.solver_calls, "solver calls")]
    facts = [f"{run.seconds:.2f} s", *(f"{n:,} {what}" for n, what in counts if n)]
    return f"{front.instance.name} by {run.method}, seed {run.seed}: {', '.join(facts)}"
