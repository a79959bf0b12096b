"""Methods that are made of methods: ``auto`` and ``ensemble``."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from placeopt import registry
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.front import Front, Run, merge
from placeopt.core.parameters import checked
from placeopt.core.problem import Problem
from placeopt.core.task import Task

#: What `ensemble` runs unless told otherwise.
ENSEMBLE = ("nsga2", "nsga3", "mspso", "moead")


def run_method(name: str, task: Task[Problem], parameters: dict[str, Any]) -> Front:
    """Run a method by its name, its parameters checked.

    Raises
    ------
    UsageError
        There is no such method or parameter, or a parameter's value is not legal.
    UnsupportedError
        The method does not support the problem.
    """
    run = registry.method(name).load(task.problem.problem)
    return run(task, **checked(run, name, parameters))


def auto(task: Task[Problem], **parameters: Any) -> Front:
    """Run the method that measurements favour for this problem; `parameters` are that method's."""
    return run_method(registry.auto(task.problem), task, parameters)


def ensemble(
    task: Task[Problem],
    *,
    methods: Annotated[
        Sequence[str] | str, Field(description="Names of the methods, or text such as nsga2,moead.")
    ] = ENSEMBLE,
    jobs: Annotated[int, Field(ge=1, description="Processes.")] = 1,
) -> Front:
    """Run several methods, each on an equal share of the budget; merge their fronts.

    Points keep the name of the method that found them.
    """
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    jobs = min(jobs, len(names))
    for name in names:
        if name in ("ensemble", "auto"):
            raise UsageError(f"the ensemble cannot contain {name!r}")
        registry.method(name).load(task.problem.problem)
    if jobs == 1:
        fronts = _one_after_another(names, task)
    else:
        fronts = _side_by_side(names, task, jobs)
    front = merge(fronts)
    whole = Run(
        method="ensemble",
        seed=task.seed,
        seconds=task.budget.seconds,
        evaluations=task.budget.evaluations,
        completed=len(fronts) == len(names)
        and all(run.completed for member in fronts for run in member.runs),
        parameters={"methods": names},
    )
    return replace(front, runs=(whole, *front.runs))


def _equal_share(names: Sequence[str], budget: Budget) -> int | None:
    """Return the evaluations of each member, None where they are not limited."""
    counted = budget.evaluations_limit is not None
    return max(1, int(budget.evaluations_left / len(names))) if counted else None


def _one_after_another(names: Sequence[str], task: Task[Problem]) -> list[Front]:
    fronts: list[Front] = []
    share = _equal_share(names, task.budget)
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        if fronts and task.budget.out_of_time:
            break  # what was found is kept; `completed` says that methods are missing
        member = replace(task, budget=task.budget.share(1 / left, share))
        fronts.append(run_method(name, member, {}))
    return fronts


def _side_by_side(names: Sequence[str], task: Task[Problem], jobs: int) -> list[Front]:
    """Run methods in processes of their own, `jobs` at a time."""
    import joblib

    budget = task.budget
    share = _equal_share(names, budget)
    rounds = -(-len(names) // jobs)
    # Deadlines, not durations: what starting a process takes comes out of its share.
    ends = [
        time.time() + budget.seconds_left * (k // jobs + 1) / rounds
        if budget.seconds_limit
        else None
        for k in range(len(names))
    ]
    given = task.problem.to_document(), [o.name for o in task.objectives]
    with _cancel_file(budget) as flag:
        runs = (
            joblib.delayed(_one_run)(
                *given, name, share, end, flag, task.seed, task.start, os.getpid()
            )
            for name, end in zip(names, ends, strict=True)
        )
        fronts: list[Front] = joblib.Parallel(n_jobs=jobs)(runs)
    budget.spend(sum(run.evaluations for front in fronts for run in front.runs))
    return fronts


def _one_run(
    document: dict[str, Any],
    objectives: list[str],
    method: str,
    evaluations: int | None,
    deadline: float | None,
    flag: str,
    seed: int,
    start: Front | None,
    parent: int,
) -> Front:
    """Run one method in a process of its own, until `deadline` (as `time.time` counts)."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        # A terminal sends Ctrl-C to all processes; the one that asked for this run decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    problem = registry.from_document(document)
    seconds = None if deadline is None else max(deadline - time.time(), 1e-3)
    budget = Budget(evaluations, seconds, stop=lambda: os.path.exists(flag))
    return run_method(method, Task(problem, problem.select(objectives), budget, seed, start), {})


def _end_with(parent: int) -> None:
    """End this process soon after its parent has ended, however that came about."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


@contextmanager
def _cancel_file(budget: Budget) -> Iterator[str]:
    """Yield the path of a file that appears soon after `budget` is cancelled, for other processes.

    Until then there is no file, so that a run that is killed leaves none.
    """
    name = f"placeopt-cancelled-{os.getpid()}-{secrets.token_hex(8)}"
    flag, done = os.path.join(tempfile.gettempdir(), name), threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if budget.cancelled:
                open(flag, "x").close()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield flag
    finally:
        done.set()
        watcher.join()
        with suppress(FileNotFoundError):
            os.unlink(flag)
