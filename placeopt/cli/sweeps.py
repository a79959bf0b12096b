"""The command ``sweep``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.screen import say


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(epilog="Example: placeopt sweep study.toml --run-dir study --jobs 2")(sweep)


def sweep(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="Plan of the sweep.")],
    run_dir: Annotated[
        Path, typer.Option(help="Folder of fronts and results; finished runs there are kept.")
    ] = Path("sweep"),
    jobs: Annotated[int, typer.Option(help="Processes of this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="A Dask cluster instead.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End of the whole sweep.")
    ] = None,
) -> None:
    """Run instances x methods x seeds x budgets, and measure the fronts.

    The same command takes up what a run that was ended left. Ctrl-C ends the sweep.
    """
    from placeopt.cli.solving import cancelled_by_signals
    from placeopt.core.budget import Budget
    from placeopt.sweeps import sweep as run

    budget = Budget(None if time_limit else 10**15, time_limit)

    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty() or done in (0, total):
            say(f"{done} of {total} runs")

    with cancelled_by_signals(budget):
        found = run(
            plan,
            run_dir=run_dir / "runs",
            jobs=jobs,
            scheduler=scheduler,
            budget=budget,
            on_cell=tell,
        )
    for path in found.write(run_dir):
        say(f"wrote {path}")
    if not found.complete:
        missing = sum(front is None for front in found.fronts)
        say(f"{missing} runs have no front; the last column of results.csv says why")
        raise typer.Exit(1)
