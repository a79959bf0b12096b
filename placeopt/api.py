"""The library's front door: load, solve, evaluate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Unpack

import numpy as np

from placeopt import registry
from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import InfeasibleInstanceError, UsageError, shown
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.trace import Watch, with_plain_traces
from placeopt.core.fronts.values import Evaluation, Objective, Plan, Point, Run
from placeopt.core.goals import read_limits
from placeopt.core.interfaces import preferred_plan
from placeopt.core.numbers import checked_seed
from placeopt.core.problem import Problem
from placeopt.core.runs.process import one_thread_of_blas
from placeopt.core.runs.progress import watching
from placeopt.core.runs.run_directory import SHOWN_SECONDS, RunDirectory
from placeopt.core.runs.workers import Workers
from placeopt.core.task import Candidate, Task, require_fitting
from placeopt.parameters import Parameters

#: Share of a time limit that is left to the proof of bounds.
CERTIFY_SHARE = 0.4
#: The search for preferred plans of the same values: its share of a time limit, and the plans that
#: it may judge.
PREFERRED_SHARE, PREFERRED_TRIES = 0.03, 200
#: Share of a time limit that a proof leaves at least where the search goes on with it.
GOING_ON_SHARE = 0.15
#: Times that the proof took which are kept for the one that follows.
PROOF_AGAIN = 1.5


def load(path: AnyPath) -> Problem:
    """Read an instance file; its ``"problem"`` picks the class.

    Raises
    ------
    DocumentError
        Names the file, the JSON path, the value and what is legal.
    """
    return registry.read(path)


def solve(
    problem: Problem | AnyPath,
    method: str = "auto",
    *,
    objectives: Sequence[str] | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    jobs: int = 1,
    scheduler: Any = None,
    run_dir: AnyPath | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_front: Callable[[Front], None] | None = None,
    every: float = 1.0,
    budget: Budget | None = None,
    start: Front | None = None,
    certify: bool = False,
    reference: Sequence[float] | None = None,
    limits: Mapping[str, float] | Iterable[str] | None = None,
    **parameters: Unpack[Parameters],
) -> Front:
    """Answer an instance.

    Parameters
    ----------
    problem : Problem or path
    method : str
        One of ``placeopt methods``.
    objectives : sequence of str, optional
        Names of the goals, in the order wanted; all of the problem's by default.
    evaluations : int, optional
        Budget in evaluations. Without this and `seconds` it is 50,000; those of jMetalPy end at 50
        seconds as well. Methods that prove, such as ``epsilon-constraint``, count no evaluations:
        without `seconds` they have 50 seconds.
    seconds : float, optional
        Time limit in seconds for the whole run; what was found by then is returned.
    seed : int
        The same seed and evaluation budget give the same front, for any number of jobs.
    jobs : int
        Processes, for methods that consist of independent tasks.
    scheduler : str or distributed.Client, optional
        A Dask cluster instead of processes: its address, ``tcp://host:8786``, or a client.
    run_dir : path, optional
        A folder that keeps the front under a key of instance, method, parameters, seed, limits and
        version; so too each finished task of the run, and now and then what a long search has found
        so far. The same call takes up what is there.
    on_progress : callable, optional
        Called with a `placeopt.core.budget.Progress`. Without it a notebook shows a bar while the
        run takes longer than a second.
    on_front : callable, optional
        Called with the `Front` of what was found so far, when it is time for a sample of the trace
        and the last call is at least `every` seconds ago, at most 100 points. Judging them takes
        time, and changes nothing of the result. Workers in other processes show nothing.
    every : float
        Seconds.
    budget : Budget, optional
        Instead of `evaluations`, `seconds` and `on_progress`: for callers who want to cancel.
    start : Front, optional
        Plans to start from; their non-dominated points are never lost.
    certify : bool
        Add a proven lower-bound set, so that ``front.gap()`` says how far from optimal the front
        can be.
    reference : sequence of float, optional
        Reference point of the hypervolumes in the trace of the run, a value for each objective;
        ``front.reference()`` by default. Give it where the traces of several runs are compared.
    limits : mapping or iterable of str, optional
        The largest value allowed of goals among the objectives: ``{"latency_ms": 30}`` or
        ``["latency_ms<=30"]``. The search, its proofs and the front keep to what lies inside.
    **parameters
        Handed to the method.

    Returns
    -------
    Front
        Every value is the referee's. Without a feasible plan inside the limits it has no points,
        but the least-violating plan and the reasons.

    Raises
    ------
    PlaceoptError
        A subclass that says what is wrong and what to do.
    """
    if not isinstance(problem, Problem):
        problem = load(problem)
    registry.require_registered(problem)
    registry.method(method).load(problem.problem)  # refuses what does not fit, before all else
    if certify:
        registry.certifier(problem.problem)  # refuses what nothing proves, before the search
    chosen = problem.select(objectives)
    problem = problem.within(read_limits(limits, chosen))
    kept = RunDirectory(run_dir) if run_dir is not None else None
    workers = Workers(jobs, scheduler, kept)
    seed = checked_seed(seed)
    if budget is None:
        budget = registry.budget_for(method, problem, evaluations, seconds)
        budget.on_progress = on_progress
    # The limit covers judging a start.
    verdicts = {} if start is None else require_fitting(problem, start)
    corner = None if reference is None else _reference(reference, chosen)
    if on_front is not None:
        budget.watch = Watch(on_front, every)
    task = Task(problem, chosen, budget, seed, start, workers, None, corner, verdicts)
    with one_thread_of_blas(), watching(budget, chosen):
        return _kept_or_answered(task, method, dict(parameters), certify)


def _kept_or_answered(
    task: Task[Problem], method: str, parameters: dict[str, Any], certify: bool
) -> Front:
    """Return the front that the run directory keeps, if any; else answer, and keep that."""
    kept = task.workers.kept
    if kept is None:
        return _answer(task, method, parameters, certify)
    key = task.key(method, parameters) | {"certify": certify}
    if task.reference is not None:
        key |= {"reference": list(task.reference)}
    front = kept.read(key)
    kept.keep_instance(task.problem)
    if not isinstance(front, Front):
        budget = task.budget
        budget.watch = Watch(partial(kept.show, key), SHOWN_SECONDS, budget.watch)
        task = replace(task, checkpoint=kept.checkpoint(key))
        front = _answer(task, method, parameters, certify)
        if not task.budget.cancelled:
            kept.write(key, front)
    return front


def _answer(task: Task[Problem], method: str, parameters: dict[str, Any], certify: bool) -> Front:
    """Run a method in five steps: prepare, search, quick answer, certify, limits.

    One recorder sees the whole run; its trace ends with the front that is returned.
    """
    with task.recorded(method) as recorder:
        start = None if task.start is None else _projected(task.start, task)
        task = replace(task, start=start)
        spec = task.problem.spec
        preferred = spec.load("preferred")(task.problem) if spec.has("preferred") else None

        share = CERTIFY_SHARE if certify else PREFERRED_SHARE if preferred else 0.0
        front, whole = _searched(task, method, parameters, share)

        if start is not None:
            front = merge([front, start])
        if not front.points and front.rejected is None:
            quick = _quick_answer(task)
            front = replace(front, points=quick.points, rejected=quick.rejected)
        if preferred:
            front = _with_preferred(front, task, preferred)

        timed = _with_time_left(task, PREFERRED_SHARE) if preferred else task
        if certify and whole.completed:
            front = _certified(front, timed)
        elif certify:
            front, whole = _going_on(front, timed, whole, partial(_rest, method, parameters))
        if certify and preferred:  # among plans that were found since then
            front = _with_preferred(front, task, preferred)

        front = _inside(front, task) if task.problem.goal_limits else front
        front = replace(front, runs=(whole, *front.runs))
        front = recorder.traced(front, task.budget.seconds, task.budget.evaluations, task.reference)
        return with_plain_traces(front, task.reference)


def _inside(front: Front, task: Task[Problem]) -> Front:
    """Return the part of a front inside the limits; of its bounds those that plans there need.

    Bounds that all lie outside are kept: they prove that nothing lies inside.
    """
    points = tuple(p for p, ok in zip(front.points, task.inside(front.values), strict=True) if ok)
    kept = task.inside(np.array(front.bounds))
    result = replace(front, points=points)
    if kept.any():
        inside = tuple(b for b, ok in zip(front.bounds, kept, strict=True) if ok)
        return replace(result, bounds=inside)
    if len(front.bounds) and not points:
        limits = ", ".join(task.problem.goal_limits)
        return replace(
            result, reasons=(*front.reasons, f"proven: no plan keeps the limits of {limits}")
        )
    return result


def _with_preferred(
    front: Front, task: Task[Problem], others: Callable[[Plan], Iterator[Plan | None]]
) -> Front:
    """Return the front with plans of the same values that one would rather carry out."""
    points, left = list[Point](), PREFERRED_TRIES
    for point in front.points:
        values = cache(partial(task.problem.evaluate, point.plan))  # if there is another plan

        def is_as_good(plan: Plan, values: Callable[[], Evaluation] = values) -> bool:
            verdict = task.problem.evaluate(plan)
            return verdict.feasible and verdict.values == values().values

        plan, tried = preferred_plan(
            point.plan, others, is_as_good, left, lambda: task.budget.out_of_time
        )
        points, left = [*points, replace(point, plan=plan)], left - tried
    return replace(front, points=tuple(points))


def _searched(
    task: Task[Problem], method: str, parameters: dict[str, Any], left: float
) -> tuple[Front, Run]:
    """Run a method; return its front with the runs of its parts, and the facts of the whole.

    A share `left` of the time is for what follows, which takes up what was found.
    """
    from placeopt.portfolio import run_method

    try:
        if left:
            run = partial(run_method, method, _with_time_left(task, left), parameters)
            front = task.part("search").stages().do(method, run)
        else:
            front = run_method(method, task, parameters)
    except InfeasibleInstanceError as error:
        spent = task.budget.seconds, task.budget.evaluations
        facts = Run(method, task.seed, *spent, completed=True)
        name = task.problem.instance_name
        return Front(name, task.objectives, reasons=error.reasons), facts
    return replace(front, runs=front.runs[1:]), front.runs[0]


def evaluate(problem: Problem, plan: Plan | Front) -> Evaluation | list[Evaluation]:
    """Return what the referee says of a plan, or of every plan of a front in its order."""
    if not isinstance(problem, Problem):
        raise UsageError(f"problem is {shown(problem)}; give an instance: placeopt.load(path)")
    if isinstance(plan, Front):
        return [problem.evaluate(point.plan) for point in plan.points]
    return problem.evaluate(plan)


def _reference(given: Sequence[float], objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Return a reference point, checked."""
    corner = tuple(float(value) for value in given)
    if len(corner) != len(objectives) or not all(map(math.isfinite, corner)):
        names = ", ".join(o.name for o in objectives)
        raise UsageError(f"reference is {given!r}; give a finite number for each of {names}")
    return corner


def _projected(start: Front, task: Task[Problem]) -> Front:
    """Judge the plans of a start front again, for this instance and these objectives."""
    again = replace(task, budget=Budget(evaluations=1, clock=task.budget.clock), start=None)
    front = again.front([Candidate(p.plan) for p in start.points], method="start")
    existing = {p.values: p for p in start.points}
    points = tuple(
        replace(existing[p.values], plan=p.plan, status=p.status, gap=p.gap)
        if p.values in existing
        else replace(p, seed=None)
        for p in front.points
    )
    return replace(front, points=points, runs=start.runs, rejected=None, reasons=())


def _quick_answer(task: Task[Problem]) -> Front:
    """Return the front of the problem's quickest method, so that every answer has a plan."""
    quick = registry.method(registry.quick(task.problem)).load(task.problem.problem)
    budget = Budget(evaluations=1000, clock=task.budget.clock)
    return quick(replace(task, budget=budget, start=None))


def _with_time_left(task: Task[Problem], share: float) -> Task[Problem]:
    """Return the task without a share of its seconds, so that the limit covers what follows."""
    if task.budget.seconds_limit is None:
        return task
    left = task.budget.evaluations_left
    evaluations = None if math.isinf(left) else int(left)
    return replace(task, budget=task.budget.share(1 - share, evaluations))


def _going_on(
    front: Front, task: Task[Problem], whole: Run, search: Callable[[Task[Problem]], Front]
) -> tuple[Front, Run]:
    """Return the front with a proven lower-bound set; the search has what time the proof leaves.

    `whole` are the facts of the run so far; those of all of it are returned, too. The proof is
    repeated, as the front is another then.
    """
    budget, began = task.budget, task.budget.seconds
    proven = _certified(front, task)
    if budget.seconds_limit is None or budget.exhausted:
        return proven, whole
    left = budget.seconds_left - PROOF_AGAIN * (budget.seconds - began)
    if left < GOING_ON_SHARE * budget.seconds_limit:
        return proven, whole
    more = search(replace(task, budget=budget.share(left / budget.seconds_left), start=proven))
    whole = replace(
        whole,
        seconds=whole.seconds + more.runs[0].seconds,
        evaluations=whole.evaluations + more.runs[0].evaluations,
        solver_calls=whole.solver_calls + more.runs[0].solver_calls,
    )
    result = replace(front, bounds=proven.bounds)
    return _certified(merge([result, replace(more, runs=())]), task), whole


def _rest(method: str, parameters: dict[str, Any], task: Task[Problem]) -> Front:
    """Go on with a search: of several stages with the last one."""
    from placeopt.portfolio import run_method, run_or_fall_back

    if method != "auto":
        return run_method(method, task, parameters)
    last = registry.last_stage(task.problem, len(task.objectives))
    return run_or_fall_back(last, task, parameters)


def _certified(front: Front, task: Task[Problem]) -> Front:
    """Return the front with a proven lower-bound set."""
    certify = registry.certifier(task.problem.problem)
    try:
        return certify(task.problem, front, task.budget)
    except InfeasibleInstanceError as error:  # nothing to bound: the front says why
        return replace(front, reasons=front.reasons or error.reasons)
