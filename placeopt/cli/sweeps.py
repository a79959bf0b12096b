"""``placeopt sweep``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from placeopt.cli.screen import say

if TYPE_CHECKING:
    from placeopt.sweeps import SweepResult


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(epilog="Example: placeopt sweep study.toml --run-dir study --jobs 2")(sweep)


def sweep(
    plan: Annotated[Path, Argument(metavar="PLAN.toml", help="Plan of the sweep.")],
    run_dir: Annotated[
        Path, Option(help="Folder of fronts and results; finished runs there are kept.")
    ] = Path("sweep"),
    jobs: Annotated[int, Option(help="Processes of this machine.")] = 1,
    scheduler: Annotated[
        str | None, Option(metavar="tcp://HOST:PORT", help="A Dask cluster instead.")
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", help="End of the whole sweep.")
    ] = None,
) -> None:
    """Run instances x methods x seeds x budgets, and compare the fronts.

    The page RUN_DIR/index.html is rewritten as runs end.

    Ctrl-C ends the sweep. Run it again to resume.
    """
    from placeopt.cli.solving import cancelled_by_signals
    from placeopt.core.budget import Budget
    from placeopt.sweeps import sweep as run

    budget = Budget(None if time_limit else 10**15, time_limit)
    with cancelled_by_signals(budget):
        found = run(
            plan,
            run_dir=run_dir / "runs",
            jobs=jobs,
            scheduler=scheduler,
            budget=budget,
            on_cell=_Progress(),
            folder=run_dir,
        )
    say(f"wrote {run_dir / 'index.html'}, and beside it tables as CSV and LaTeX")
    _say_what_is_missing(found)


def _say_what_is_missing(found: SweepResult) -> None:
    """Say which runs have no front, and whether there are enough for a test; exit 1 if any failed.

    Raises
    ------
    Exit
        A run failed.
    """
    from placeopt.sweeps.measures import NOT_RUN, comparisons, ended, final, pairs_needed

    last = ended(final(found.rows))
    methods = len({row["method"] for row in last if row["feasible"]})
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
        say(f"{failed} runs failed; the last column of results.csv says why")
        raise typer.Exit(1)


class _Progress:
    """Says how many runs are finished and how long the others will take, on a terminal or often."""

    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None  # what was finished when this command began
        self._said = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = now, done
        elif now - self._said < (0.2 if sys.stderr.isatty() else 30.0) and done < total:
            return
        self._said = now
        spent, made = now - self._began[0], done - self._began[1]
        left = f", about {in_words((total - done) * spent / made)} left" if made else ""
        say(f"{done} of {total} runs" + (left if done < total else ""))


def in_words(seconds: float) -> str:
    """Return a time for people.

    >>> in_words(50), in_words(200), in_words(9000)
    ('50 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
