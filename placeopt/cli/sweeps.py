"""The command ``sweep``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from placeopt.cli.screen import say


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
    """Run instances x methods x seeds x budgets, and measure the fronts.

    The same command takes up what a run that was ended left. Ctrl-C ends the sweep.
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
        )
    for path in found.write(run_dir):
        say(f"wrote {path}")
    if not found.complete:
        missing = sum(front is None for front in found.fronts)
        say(f"{missing} runs have no front; the last column of results.csv says why")
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
