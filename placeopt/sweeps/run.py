"""A sweep: its cells run on workers, finished ones are taken from a run directory."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.core.budget import Budget
from placeopt.core.documents import write_parts, write_text
from placeopt.core.errors import PlaceoptError
from placeopt.core.files import AnyPath
from placeopt.core.front import Front
from placeopt.core.run_directory import RunDirectory
from placeopt.core.trace import with_plain_traces
from placeopt.core.workers import Call, Workers
from placeopt.portfolio import run_document
from placeopt.sweeps.measures import measure
from placeopt.sweeps.plan import Cell, cells, read


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found.

    Attributes
    ----------
    name : str
    rows : list of dict
        One for each cell, with its measures: see docs/sweeps.md.
    fronts : list of Front or None
        In the order of the rows; None for a cell that failed or was not reached.
    """

    name: str
    rows: list[dict[str, Any]]
    fronts: list[Front | None]

    @property
    def complete(self) -> bool:
        """Whether every cell has a front."""
        return all(front is not None for front in self.fronts)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows)

    def write(self, folder: AnyPath) -> list[Path]:
        """Write ``results.csv``, ``results.parquet`` where pyarrow is there, and ``index.html``.

        Returns
        -------
        list of Path
            The files written.
        """
        from placeopt.sweeps.page import page

        here = RunDirectory(folder).path
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(here / "results.csv", text.getvalue())
        write_text(here / "index.html", page(self.name, self.rows))
        written = [here / "results.csv", here / "index.html"]
        if importlib.util.find_spec("pyarrow") and importlib.util.find_spec("pandas"):
            table = io.BytesIO()
            self.to_pandas().to_parquet(table, index=False)
            write_parts(here / "results.parquet", (table.getvalue(),))
            written.append(here / "results.parquet")
        return written


def sweep(
    plan: AnyPath | Mapping[str, Any],
    *,
    run_dir: AnyPath | None = None,
    jobs: int = 1,
    scheduler: Any = None,
    budget: Budget | None = None,
    on_cell: Callable[[int, int], None] = lambda done, total: None,
) -> SweepResult:
    """Run instances x methods x seeds x budgets.

    Parameters
    ----------
    plan : path or mapping
        A TOML file, or what it would hold.
    run_dir : path, optional
        Keeps the front of each finished cell; the same sweep takes up what is there.
    jobs, scheduler
        As of `placeopt.solve`. The result is the same for any number of workers.
    budget : Budget, optional
        A limit for the whole sweep; what is not reached has no front.
    on_cell : callable
        Called with the number of finished cells and of all.

    Raises
    ------
    PlaceoptError
        The plan is not legal; nothing has run then.
    """
    asked = read(plan)
    folder = Path() if isinstance(plan, Mapping) else Path(plan).parent
    runs = cells(asked, folder)
    workers = Workers(jobs, scheduler, RunDirectory(run_dir) if run_dir is not None else None)
    finished = 0

    def tell(more: int) -> None:
        nonlocal finished
        finished += more
        on_cell(finished, len(runs))

    results = workers.run(
        [_call(cell, workers) for cell in runs],
        budget or Budget(evaluations=10**15),
        on_result=lambda k, result: tell(1),
        on_begin=lambda left: tell(len(runs) - left),
    )
    fronts = [result if isinstance(result, Front) else None for result in results]
    errors = [
        "" if isinstance(result, Front) else result or "not reached in time" for result in results
    ]
    return SweepResult(asked.name, measure(runs, fronts, errors), fronts)


def _call(cell: Cell, workers: Workers) -> Call:
    task = cell.task
    asked = (task["method"], task["parameters"], cell.document, task["objectives"], task["seed"])
    limits = task["evaluations"], task["seconds"]
    more = (None, workers.checkpoint(task))
    return Call(_front_or_error, (*asked, *more), *limits, key=task)


def _front_or_error(budget: Budget, *asked: Any) -> Front | str | None:
    """Run a cell; a cell that was cancelled has no front, one that fails says why."""
    try:
        front = with_plain_traces(run_document(budget, *asked))
    except PlaceoptError as error:
        return f"{type(error).__name__}: {error}"
    return None if budget.cancelled else front
