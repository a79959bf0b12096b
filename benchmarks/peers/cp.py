"""What the models share: CP-SAT with eight workers, stopped by the CPU time of the process."""

from __future__ import annotations

import threading
import time
from typing import Any

from ortools.sat.python import cp_model

#: Workers that share the core, so that its neighbourhood and LP workers run too.
WORKERS = 8
_LOOK_SECONDS = 0.05


def solved(model: cp_model.CpModel, seconds: float, seed: int) -> cp_model.CpSolver | None:
    """Return a solver that holds the best solution of a model, None where it found none."""
    solver, over = cp_model.CpSolver(), threading.Event()
    solver.parameters.num_workers, solver.parameters.random_seed = WORKERS, seed
    ends = time.process_time() + seconds

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if time.process_time() >= ends:
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        status = solver.solve(model)
    finally:
        over.set()
        watcher.join()
    return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None


def weighted(weights: Any, *goals: Any) -> Any:
    """Return the weighted sum of goals; those of weight 0 are left out."""
    return sum(float(w) * goal for w, goal in zip(weights, goals, strict=True) if w)
