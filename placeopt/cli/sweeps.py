"""``placeopt sweep``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from placeopt.cli import progress
from placeopt.cli.commands import EXPERIMENTS, add
from placeopt.cli.completion import study_names
from placeopt.cli.screen import Quiet, say
from placeopt.core.fronts.words import counted
from placeopt.core.runs.progress import Tell, Told

if TYPE_CHECKING:
    from placeopt.sweeps import SweepResult


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    add(app, sweep, "placeopt sweep study --run-dir out", group=EXPERIMENTS)


def sweep(
    plan: Annotated[
        Path,
        Argument(
            metavar="PLAN.toml",
            help="Plan of the sweep, or `study`, which comes with placeopt.",
            autocompletion=study_names,
        ),
    ],
    run_dir: Annotated[
        Path, Option(help="Folder for fronts and results. Runs that it has are not run again.")
    ] = Path("sweep"),
    jobs: Annotated[int, Option(help="Number of processes.")] = 1,
    scheduler: Annotated[
        str | None,
        Option(metavar="tcp://HOST:PORT", help="Run on a Dask cluster instead of --jobs."),
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", help="Time limit of the whole sweep.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compare methods over instances, seeds and budgets.

    The page RUN_DIR/index.html is rewritten as runs end. Beside it are tables as CSV and LaTeX.

    Ctrl-C stops the sweep. Run it again to resume.
    """
    from placeopt.cli.solving import cancelled_by_signals
    from placeopt.core.budget import Budget
    from placeopt.sweeps import sweep as run

    budget = Budget(None if time_limit else 10**15, time_limit)
    with cancelled_by_signals(budget), progress.shown() as tell:
        result = run(
            plan,
            run_dir=run_dir / "runs",
            jobs=jobs,
            scheduler=scheduler,
            budget=budget,
            on_cell=_Progress(tell),
            folder=run_dir,
        )
    say(f"wrote {run_dir / 'index.html'}, and beside it tables as CSV and LaTeX")
    _say_what_is_missing(result)


def _say_what_is_missing(found: SweepResult) -> None:
    """Say which runs have no front, and whether there are enough for a test; exit 1 if any failed.

    Raises
    ------
    Exit
        A run failed.
    """
    from placeopt.sweeps.measures import NOT_RUN, comparisons, ended, final, pairs_needed

    last = final(found.rows)
    methods = len({row["method"] for row in ended(last) if row["feasible"]})
    pairs = max((one.pairs for one in comparisons(last)), default=0)
    if methods > 1 and pairs < pairs_needed(methods):
        say(
            f"note: {methods} methods share {pairs} pairs of instance and seed; no difference can "
            f"be significant at 5 % with fewer than {pairs_needed(methods)}: add seeds or instances"
        )
    not_run = sum(row["error"] == NOT_RUN for row in found.rows)
    if not_run:
        say(f"{not_run} of {len(found.rows)} runs did not end; run the same command to resume")
    failed = sum(front is None for front in found.fronts) - not_run
    if failed:
        say(f"{counted(failed, 'run')} failed; the last column of results.csv says why")
        raise typer.Exit(1)


class _Progress:
    """Tells how many runs are finished, and how long the others will take."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self._began: tuple[float, int] | None = None  # what was finished when this command began

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = now, done
        if self._tell is None:
            return
        spent, made = now - self._began[0], done - self._began[1]
        left = (total - done) * spent / made if made else None
        self._tell(Told(done / total, f"{done} of {total} runs", left=left))
