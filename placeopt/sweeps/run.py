"""A sweep: its cells run on workers, finished ones are taken from a run directory."""

from __future__ import annotations

import importlib.util
import io
import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt import registry
from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError, optional
from placeopt.core.files.documents import write_parts, write_text
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import with_plain_traces
from placeopt.core.runs.progress import Told, notebook_bar
from placeopt.core.runs.run_directory import RunDirectory
from placeopt.core.runs.workers import Call, Workers
from placeopt.portfolio import run_document
from placeopt.sweeps.measures import NOT_RUN, as_csv, as_latex, frame, measure
from placeopt.sweeps.plan import Cell, SweepPlan, cells, read

#: Least seconds between two times that results are written while a sweep runs, and the largest
#: share of the time that this takes.
WRITE_SECONDS, WRITE_SHARE = 10.0, 0.05


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found.

    Attributes
    ----------
    name : str
    rows : list of dict
        One for each cell, with its measures: see docs/sweeps.md. Files and DataFrames have the
        cells whose run ended.
    fronts : list of Front or None
        In the order of the rows, with all their points; None for a cell that failed or did not end.
    """

    name: str
    rows: list[dict[str, Any]]
    fronts: list[Front | None]

    @property
    def complete(self) -> bool:
        """Whether every cell has a front."""
        return all(front is not None for front in self.fronts)

    def to_pandas(self) -> Any:
        """Return the rows of runs that ended as a pandas DataFrame.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        return frame(self.rows)

    def write(self, folder: AnyPath, *, running: bool = False) -> list[Path]:
        """Write the results: of every run that ended, and of them all a table and a page.

        These are ``results.csv``, and ``results.parquet`` where pyarrow is there; ``table.csv`` and
        ``table.tex``; ``index.html``.

        Parameters
        ----------
        folder : path
            Made if it does not exist.
        running : bool
            The page says that it is not finished, and a browser reads it again and again.

        Returns
        -------
        list of Path
            The files written.
        """
        from placeopt.sweeps.page import HYPERVOLUME, page

        here = RunDirectory(folder).path
        texts = {
            "results.csv": self.to_pandas().to_csv(index=False, lineterminator="\n"),
            "table.csv": as_csv(self.rows),
            "table.tex": as_latex(self.rows, HYPERVOLUME),
            "index.html": page(self.name, self.rows, running=running),
        }
        for name, content in texts.items():
            write_text(here / name, content)
        written = [here / name for name in texts]
        if importlib.util.find_spec("pyarrow"):
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
    on_cell: Callable[[int, int], None] | None = None,
    folder: AnyPath | None = None,
) -> SweepResult:
    """Run instances x methods x seeds x budgets.

    All instances and methods of the first seed run first, so that a sweep that ends early compares
    methods on the same seeds.

    Parameters
    ----------
    plan : path or mapping
        A TOML file, or what it would hold.
    run_dir : path, optional
        Keeps the front of each finished cell; run the same sweep again to resume.
    jobs, scheduler
        As of `placeopt.solve`. The result is the same for any number of workers.
    budget : Budget, optional
        A limit for the whole sweep; what is not reached has no front.
    on_cell : callable, optional
        Called with the number of finished cells and of all. Without it a notebook shows a bar.
    folder : path, optional
        Where the results are written as runs end: see `SweepResult.write`.

    Raises
    ------
    PlaceoptError
        The plan is not legal, or pandas is not installed; nothing has run then.
    """
    if folder is not None:
        optional("pandas", "the table of a sweep", "plot")
    wanted = read(plan)
    runs = cells(wanted, Path() if isinstance(plan, Mapping) else Path(plan).parent)
    order = sorted(range(len(runs)), key=lambda k: wanted.seeds.index(runs[k].task["seed"]))
    workers = Workers(jobs, scheduler, RunDirectory(run_dir) if run_dir is not None else None)
    if workers.kept is not None:
        for document in {cell.task["instance"]: cell.document for cell in runs}.values():
            workers.kept.keep_instance(registry.from_document(document))
    present = _Present(wanted, runs, folder)

    def ran(position: int, result: Any) -> None:
        kept({position: result})

    def kept(results: Mapping[int, Any]) -> None:
        for position, result in results.items():
            present.add(order[position], result)
        present.write_now_and_then()
        if on_cell is not None:
            on_cell(present.ended, len(runs))
        elif tell is not None:
            share = present.ended / len(runs)
            tell(Told(share, f"{present.ended} of {len(runs)} runs"))

    with nullcontext() if on_cell is not None else notebook_bar() as tell:
        workers.run(
            [_call(runs[k], workers) for k in order],
            budget or Budget(evaluations=10**15),
            on_result=ran,
            on_begin=kept,
        )
    result = present.result()
    if folder is not None:
        result.write(folder)
    return result


class _Present:
    """What a sweep has so far; written now and then."""

    def __init__(self, plan: SweepPlan, runs: list[Cell], folder: AnyPath | None):
        self._plan, self._runs, self._folder = plan, runs, folder
        self._fronts: list[Front | None] = [None] * len(runs)
        self._errors = [NOT_RUN] * len(runs)
        self._next = -math.inf
        self.ended = 0

    def add(self, k: int, result: Front | str | None) -> None:
        """Take the front of a run, or why it failed; None of one that was cancelled."""
        if result is None:
            return
        self.ended += 1
        if isinstance(result, Front):
            self._fronts[k], self._errors[k] = result, ""
        else:
            self._errors[k] = result

    def write_now_and_then(self) -> None:
        """Write the results, unless there are none, or all, or it was done a moment ago."""
        began = time.perf_counter()
        unfinished = 0 < self.ended < len(self._runs)
        if self._folder is not None and unfinished and began >= self._next:
            self.result().write(self._folder, running=True)
            now = time.perf_counter()
            self._next = now + max(WRITE_SECONDS, (now - began) / WRITE_SHARE)

    def result(self) -> SweepResult:
        """Return what there is, measured."""
        rows = measure(self._runs, self._fronts, self._errors, self._plan.points)
        return SweepResult(self._plan.name, rows, list(self._fronts))


def _call(cell: Cell, workers: Workers) -> Call:
    task = cell.task
    wanted = (task["method"], task["parameters"], cell.document, task["objectives"], task["seed"])
    limits = task["evaluations"], task["seconds"]
    more = (None, workers.checkpoint(task), None, task.get("limits"))
    return Call(_front_or_error, (*wanted, *more), *limits, key=task)


def _front_or_error(budget: Budget, *asked: Any) -> Front | str | None:
    """Run a cell; a cell that was cancelled has no front, one that fails says why."""
    try:
        front = with_plain_traces(run_document(budget, *asked))
    except PlaceoptError as error:
        return f"{type(error).__name__}: {error}"
    return None if budget.cancelled else front
