"""Methods that are made of methods: ``auto`` and ``ensemble``."""

from __future__ import annotations

from collections.abc import Sequence
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
from placeopt.core.workers import Call, Workers

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
    jobs: Annotated[int, Field(ge=1, description="Processes of this machine.")] = 1,
    scheduler: Annotated[Any, Field(description="A Dask cluster: tcp://host:port.")] = None,
) -> Front:
    """Run several methods, each on an equal share of the budget; merge their fronts.

    Points keep the name of the method that found them.
    """
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    Workers(jobs, scheduler)  # refuses what is not legal
    jobs = min(jobs, len(names))
    for name in names:
        if name in ("ensemble", "auto"):
            raise UsageError(f"the ensemble cannot contain {name!r}")
        registry.method(name).load(task.problem.problem)
    fronts = [front for front in _members(names, task, jobs, scheduler) if front is not None]
    if not fronts:  # cancelled before the first began
        return task.front((), method="ensemble", completed=False, parameters={"methods": names})
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


def _members(
    names: Sequence[str], task: Task[Problem], jobs: int, scheduler: Any
) -> list[Front | None]:
    """Run each method on its share of the budget; None for one that there was no time for."""
    budget, share = task.budget, _equal_share(names, task.budget)
    if jobs == 1 and scheduler is None:
        return _one_after_another(names, task, share)
    goals = [o.name for o in task.objectives]
    asked = task.problem.to_document(), goals, task.seed, task.start
    rounds = -(-len(names) // jobs) if scheduler is None else 1
    seconds = budget.seconds_left / rounds if budget.seconds_limit else None
    calls = [Call(run_document, (name, {}, *asked), share, seconds) for name in names]
    fronts: list[Front | None] = Workers(jobs, scheduler).run(calls, budget)
    budget.spend(sum(run.evaluations for front in fronts if front for run in front.runs))
    return fronts


def _one_after_another(
    names: Sequence[str], task: Task[Problem], share: int | None
) -> list[Front | None]:
    fronts: list[Front | None] = []
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        if fronts and task.budget.out_of_time:
            break  # what was found is kept; `completed` says that methods are missing
        member = replace(task, budget=task.budget.share(1 / left, share))
        fronts.append(run_method(name, member, {}))
    return fronts


def run_document(
    budget: Budget,
    method: str,
    parameters: dict[str, Any],
    document: dict[str, Any],
    objectives: Sequence[str] | None,
    seed: int,
    start: Front | None = None,
) -> Front:
    """Run a method on the document of an instance: what a worker is asked."""
    problem = registry.from_document(document)
    task = Task(problem, problem.select(objectives), budget, seed, start)
    return run_method(method, task, parameters)
