"""Methods that are made of methods: ``auto`` and ``ensemble``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from placeopt import registry
from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError, UnsupportedError, UsageError
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import Run, names_of
from placeopt.core.parameters import checked
from placeopt.core.parameters import parameters as known_parameters
from placeopt.core.problem import Problem
from placeopt.core.runs.process import one_thread_of_blas
from placeopt.core.runs.run_directory import Checkpoint, task_key
from placeopt.core.runs.workers import Call, Workers
from placeopt.core.task import Task

#: What `ensemble` runs unless told otherwise.
ENSEMBLE = ("nsga2", "nsga3", "mspso", "moead")
#: Evaluations that call every kernel of a search, and the share of a time limit that they may take.
FIRST_EVALUATIONS, FIRST_SHARE = 300, 0.02


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
    arguments = checked(run, name, parameters)
    task = replace(task, budget=_ended(task.budget, name, task.problem.problem))
    budget = task.budget
    began = budget.clock.cpu_seconds, budget.compile_seconds
    front: Front = run(task.part(name), **arguments)
    if not front.runs or front.runs[0].cpu_seconds is not None:
        return front
    measured = replace(
        front.runs[0],
        cpu_seconds=budget.clock.cpu_seconds - began[0],
        compile_seconds=budget.compile_seconds - began[1],
    )
    return replace(front, runs=(measured, *front.runs[1:]))


def _ended(budget: Budget, name: str, kind: str) -> Budget:
    """Return a budget that ends: methods that prove count no evaluations, and have own seconds.

    So has every run of one, within a method made of methods or a sweep as well as alone.
    """
    own = registry.method(name).of.get(kind)
    timed = budget.seconds_limit is not None
    if own is None or own.seconds is None or own.evaluations is not None or timed:
        return budget
    return budget.share(evaluations=budget.evaluations_left, seconds=own.seconds)


def auto(task: Task[Problem], **parameters: Any) -> Front:
    """Run the methods that measurements favour for this problem, or for a single objective of it.

    Each gets a share of the budget that is left and starts from what those before have found; none
    follows one that has proven its front complete.
    `parameters` are the last one's. Points keep the name of the method that found them. Where only
    an earlier method knows the parameters, it runs alone: they may limit plans.
    """
    seconds = None if task.budget.seconds_limit is None else task.budget.seconds_left
    every = registry.auto(task.problem, len(task.objectives), seconds)
    stages = _serving(every, task.problem, parameters)
    names = [name for name, _ in stages]
    if len(stages) == 1:
        return run_or_fall_back(names[0], task, parameters)
    start = [] if task.start is None else [task.start]
    fronts: list[Front] = []
    kept = task.stages()

    def stage(name: str, share: float, place: Task[Problem]) -> Front:
        known = merge(start + fronts) if start + fronts else None
        part = replace(place, budget=task.budget.share(share), start=known)
        front = run_method(name, part, parameters if name == names[-1] else {})
        recorder = part.budget.recorder
        if recorder is None:
            return front
        spent = part.budget.seconds, part.budget.evaluations
        return recorder.traced(front, *spent, task.reference, part.budget.began_after)

    ran: list[str] = []
    for position, (name, share) in enumerate(stages):
        if fronts and task.budget.exhausted:
            break
        again = name in [
            n for n, _ in stages[:position]
        ]  # it has a place of its own in a run directory
        key, place = (f"{name} again", task.part("again")) if again else (name, task)
        try:
            fronts.append(kept.do(key, partial(stage, name, share, place)))
        except UnsupportedError:  # in this time: the last one serves
            if position + 1 == len(stages) and not fronts:
                raise
            names.remove(name)
            continue
        ran.append(name)
        if _is_complete(fronts[-1]):
            names = ran
            break
    return _joined("auto", names, fronts, task)


def run_or_fall_back(name: str, task: Task[Problem], parameters: dict[str, Any]) -> Front:
    """Run the only method that ``auto`` chose, or a search where that cannot serve the instance.

    Raises
    ------
    UnsupportedError
        Neither can, or the parameters are of the method alone.
    """
    try:
        return run_method(name, task, parameters)
    except UnsupportedError:
        other = registry.fallback(task.problem, name)
        if other is None or parameters:
            raise
        return run_method(other, task, {})


def _is_complete(front: Front) -> bool:
    """Whether a run has proven that its front is the whole one."""
    run = front.runs[0]
    return run.completed and run.parameters.get("status") == "complete"


def _serving(
    stages: Sequence[tuple[str, float]], problem: Problem, given: dict[str, Any]
) -> Sequence[tuple[str, float]]:
    """Return all stages, or only the one that knows the given parameters if the last does not."""
    for name, _ in reversed(stages if given else ()):
        existing = {p.name for p in known_parameters(registry.method(name).load(problem.problem))}
        if given.keys() <= existing:
            return stages if name == stages[-1][0] else ((name, 1.0),)
    return stages


def ensemble(
    task: Task[Problem],
    *,
    methods: Annotated[
        Sequence[str] | str, Field(description="Names of the methods, or text such as nsga2,moead.")
    ] = ENSEMBLE,
) -> Front:
    """Run several methods, each on an equal share of the budget; merge their fronts.

    Points keep the name of the method that found them.
    """
    names = methods.split(",") if isinstance(methods, str) else list(methods)
    for name in names:
        if name in ("ensemble", "auto"):
            raise UsageError(f"the ensemble cannot contain {name!r}")
        registry.method(name).load(task.problem.problem)
    fronts = [front for front in _members(names, task) if front is not None]
    if not fronts:  # cancelled before the first began
        return task.front((), method="ensemble", completed=False, parameters={"methods": names})
    return _joined("ensemble", names, fronts, task)


def _joined(
    method: str, names: Sequence[str], fronts: Sequence[Front], task: Task[Problem]
) -> Front:
    """Return the fronts of several methods as one, with the facts of the whole run first."""
    front = merge(fronts)
    whole = Run(
        method=method,
        seed=task.seed,
        seconds=task.budget.seconds,
        evaluations=task.budget.evaluations,
        completed=len(fronts) == len(names)
        and all(run.completed for member in fronts for run in member.runs),
        parameters={"methods": list(names)},
    )
    return replace(front, runs=(whole, *front.runs))


def _members(names: Sequence[str], task: Task[Problem]) -> list[Front | None]:
    """Run each method on its share of the budget; None for one that there was no time for."""
    budget, workers = task.budget, task.workers
    if budget.seconds_limit is not None and workers.width(len(names)) > 1:
        _compile_first(names, task)
    evaluations, seconds = None, workers.seconds_each(len(names), budget)
    if budget.evaluations_limit is not None:
        evaluations = max(1, int(budget.evaluations_left / len(names)))
    fronts: list[Front | None] = workers.run(
        [method_call(name, {}, task, workers, evaluations, seconds) for name in names], budget
    )
    budget.spend(sum(run.evaluations for front in fronts if front for run in front.runs))
    return fronts


def _compile_first(names: Sequence[str], task: Task[Problem]) -> None:
    """Let methods answer a small instance: kernels are compiled here, and kept, before others need
    them in their time.
    """
    small = list(registry.small_instances(task.problem.problem))[-1]
    for name in names:
        limit = task.budget.beside(FIRST_EVALUATIONS, FIRST_SHARE * task.budget.seconds_left + 1e-9)
        with suppress(PlaceoptError):  # not for this instance: its own run says so
            run_method(name, Task(small, small.select(names_of(task.objectives)), limit), {})


def method_call(
    method: str,
    parameters: dict[str, Any],
    task: Task[Problem],
    workers: Workers,
    evaluations: int | None,
    seconds: float | None,
) -> Call:
    """Return the call that answers a task by a method, within limits of its own."""
    goals = names_of(task.objectives)
    # What is left of a time limit differs from run to run; the limit itself does not.
    limit = None if seconds is None else task.budget.seconds_limit
    key = task_key(
        task.problem, task.objectives, method, parameters, task.seed, evaluations, limit, task.start
    )
    if task.reference is not None:
        key |= {"reference": list(task.reference)}
    wanted = (method, parameters, task.problem.to_document(), goals, task.seed, task.start)
    arguments = (*wanted, workers.checkpoint(key), task.reference, task.problem.goal_limits)
    return Call(run_document, arguments, evaluations, seconds, key)


def run_document(
    budget: Budget,
    method: str,
    parameters: dict[str, Any],
    document: dict[str, Any],
    objectives: Sequence[str] | None,
    seed: int,
    start: Front | None = None,
    checkpoint: Checkpoint | None = None,
    reference: tuple[float, ...] | None = None,
    limits: Mapping[str, float] | None = None,
) -> Front:
    """Run a method on the document of an instance: what a worker is asked."""
    problem = registry.from_document(document).within(limits or {})
    task = Task(
        problem,
        problem.select(objectives),
        budget,
        seed,
        start,
        checkpoint=checkpoint,
        reference=reference,
    )
    with one_thread_of_blas(), task.recorded(method) as recorder:
        front = run_method(method, task, parameters)
        return recorder.traced(front, budget.seconds, budget.evaluations, reference)
