"""What the models share: CP-SAT with eight workers, stopped by the CPU time of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ortools.sat.python import cp_model

#: Workers that share the core, so that its neighbourhood and LP workers run too.
WORKERS = 8
_LOOK_SECONDS = 0.05


class Solution:
    """Values of the variables of a model."""

    def __init__(self, values: Sequence[int]):
        self._values = list(values)

    def value(self, variable: Any) -> int:
        """Return the value of a variable."""
        return self._values[variable.index]

    def boolean_value(self, literal: Any) -> bool:
        """Return the value of a literal."""
        return bool(self._values[literal.index])


class _Keeper(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
    """Keeps the last solution before each limit."""

    def __init__(self, ends: Sequence[float]):
        super().__init__()
        self.ends, self.kept = ends, [None] * len(ends)

    def on_solution_callback(self) -> None:
        now, values = time.process_time(), Solution(self.response_proto.solution)
        for k, end in enumerate(self.ends):
            if now <= end:
                self.kept[k] = values


def solved(
    model: cp_model.CpModel,
    limits: Sequence[float],
    seed: int,
    plan: Callable[[Solution], Any],
) -> list[Any]:
    """Return what `plan` makes of the best solution after each limit, None where there is none.

    Limits are CPU seconds in ascending order; all are of one run.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = WORKERS, seed
    began = time.process_time()
    keeper = _Keeper([began + seconds for seconds in limits])

    stopped(limits[-1], lambda: solver.solve(model, keeper), solver.stop_search)
    return [None if one is None else plan(one) for one in keeper.kept]


def stopped(seconds: float, work: Callable[[], Any], stop: Callable[[], Any]) -> Any:
    """Return what `work` returns; tell it to stop after so many CPU seconds."""
    over, end = threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if time.process_time() >= end:
                stop()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return work()
    finally:
        over.set()
        watcher.join()


def weighted(weights: Any, *goals: Any) -> Any:
    """Return the weighted sum of goals; those of weight 0 are left out."""
    return sum(float(w) * goal for w, goal in zip(weights, goals, strict=True) if w)
