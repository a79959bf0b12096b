"""Runs that the page of an explorer starts: one at a time, in a thread of this process."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

from placeopt import api, registry
from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import PlaceoptError, UsageError, require_known
from placeopt.core.fronts.front import Front
from placeopt.explore.source import FrontSource

#: Longest run that a page may ask for, in seconds.
MAX_SECONDS = 3600.0


class Runs:
    """Starts runs, and shows their fronts while they grow.

    Parameters
    ----------
    source : FrontSource
        Shows the fronts. The front of a run that ended is written into its folder, or, of an
        instance, into the present one.
    """

    def __init__(self, source: FrontSource):
        self._source = source
        self._folder = (source.path if source.path.is_dir() else Path.cwd()).resolve()
        self._budget: Budget | None = None
        self._thread: threading.Thread | None = None
        self._said, self._share = "", 0.0

    def methods(self) -> list[str]:
        """Return the methods for the instance that is shown, those for it alone last."""
        problem = self._source.look().problem
        if problem is None:
            return []
        return [m.name for m in registry.methods().values() if problem.problem in m.problems]

    def told(self) -> dict[str, Any]:
        """Return what a page says of the run."""
        running = self._thread is not None and self._thread.is_alive()
        return {"running": running, "said": self._said, "share": self._share}

    def start(self, wanted: dict[str, Any]) -> None:
        """Start a run: ``method``, ``seconds`` and ``seed`` as a page sends them.

        Raises
        ------
        UsageError
            A run is on its way, the instance is not at hand, or something is not legal.
        """
        if self._thread is not None and self._thread.is_alive():
            raise UsageError("a run is on its way; stop it first")
        problem = self._source.look().problem
        if problem is None:
            raise UsageError("the instance is not at hand; give it by --instance")
        method, seconds = wanted.get("method", "auto"), wanted.get("seconds", 10)
        require_known("method", method, self.methods())
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise UsageError(f"seconds is {seconds!r}; give a number")
        if not 0 < seconds <= MAX_SECONDS:
            raise UsageError(f"seconds is {seconds}; give more than 0, at most {MAX_SECONDS:.0f}")
        seed = wanted.get("seed", 1)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise UsageError(f"seed is {seed!r}; give a whole number of at least 0")
        self._budget = Budget(seconds=float(seconds), on_progress=self._tell)
        self._said, self._share = "starting", 0.0
        work = threading.Thread(target=self._run, args=(problem, method, seed), daemon=True)
        self._thread = work
        work.start()

    def stop(self) -> None:
        """End the run; what it found is kept."""
        if self._budget is not None:
            self._budget.cancel()
        if self._thread is not None:
            self._thread.join(10)

    def _tell(self, progress: Progress) -> None:
        self._share = progress.share if progress.share == progress.share else 0.0
        self._said = (
            f"{progress.seconds:.0f} s, {progress.evaluations:,} evaluations, "
            f"{progress.points:,} plans"
        )

    def _run(self, problem: Any, method: str, seed: int) -> None:
        name = f"{method}, seed {seed}"

        def show(front: Front) -> None:
            if front.points:
                self._source.add(name, front)

        try:
            front = api.solve(
                problem, method, seed=seed, budget=self._budget, on_front=show, every=1.0
            )
            file = self._free(f"{problem.name}.{method}-{seed}")
            front.write(file)
            self._source.add(name, front, file.resolve())
            result = f"{len(front):,} plans" if front.points else "no feasible plan"
            self._said = f"{result}; written to {file.name}"
        except PlaceoptError as error:
            self._said = str(error)

    def _free(self, stem: str) -> Path:
        """Return the name of a front file that is not there yet."""
        plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in stem)
        numbers = itertools.chain([""], (f"-{k}" for k in itertools.count(2)))
        files = (self._folder / f"{plain}{number}.front.json" for number in numbers)
        return next(file for file in files if not file.exists())
