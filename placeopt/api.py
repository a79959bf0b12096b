"""The library's front door: load, solve, evaluate; the ensemble and certificates are wired here."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from placeopt import problems, registry
from placeopt.budget import Budget, Progress
from placeopt.errors import InfeasibleInstanceError, UsageError
from placeopt.front import Evaluation, Front, Objective, Run, merge
from placeopt.problems.base import Problem

#: What `ensemble` runs unless told otherwise.
ENSEMBLE = ("nsga2", "nsga3", "mspso", "moead")


def load(path: str | os.PathLike[str]) -> Problem:
    """Read an instance file; its ``"problem"`` picks the class.

    Raises
    ------
    DocumentError
        Names the file, the JSON path, the value and what is legal.
    """
    return problems.read(path)


def solve(
    problem: Problem | str | os.PathLike[str],
    method: str = "auto",
    *,
    objectives: Sequence[str] | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    jobs: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
    start: Front | None = None,
    certify: bool = False,
    **parameters: Any,
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
        Budget in evaluations, 50,000 unless `seconds` is given.
    seconds : float, optional
        Time limit in seconds for the whole run; what was found by then is returned.
    seed : int
        The same seed and evaluation budget give the same front, for any number of jobs.
    jobs : int
        Processes, for methods that consist of several runs.
    on_progress : callable, optional
        Called with a `placeopt.budget.Progress`.
    budget : Budget, optional
        Instead of `evaluations`, `seconds` and `on_progress`: for callers who want to cancel.
    start : Front, optional
        Plans to start from; their non-dominated points are never lost.
    certify : bool
        Add a proven lower-bound set, so that ``front.gap()`` says how far from optimal the front can be.
    **parameters
        Handed to the method.

    Returns
    -------
    Front
        Every value is the referee's. Without a feasible plan it has no points but the least-violating plan and the reasons.

    Raises
    ------
    PlaceoptError
        A subclass that says what is wrong and what to do.
    """
    if not isinstance(problem, Problem):
        problem = load(problem)
    chosen = problem.select(objectives)
    run = registry.method(method).load(problem.problem)
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}; give a whole number of at least 1")
    if seed < 0:
        raise UsageError(f"seed is {seed}; give a whole number of at least 0")
    budget = budget or Budget(evaluations, seconds, on_progress)
    if method == "ensemble":
        parameters["jobs"] = jobs
    try:
        front = _call(run, method, problem, chosen, budget, seed, start, parameters)
    except InfeasibleInstanceError as error:
        facts = Run(method, seed, budget.seconds, budget.evaluations, completed=True)
        front = Front(problem.instance_name, chosen, runs=(facts,), reasons=error.reasons)
    if start is not None:
        front = merge([front, _projected(start, problem, chosen)])
    if not front.points and front.rejected is None:
        front = replace(front, rejected=_least_violating(problem, chosen, seed))
    return _certified(problem, front, budget) if certify else front


def evaluate(problem: Problem, plan: Mapping[str, Any] | Front) -> Evaluation | list[Evaluation]:
    """Return what the referee says of a plan, or of every plan of a front in its order."""
    if isinstance(plan, Front):
        return [problem.evaluate(point.plan) for point in plan.points]
    return problem.evaluate(plan)


def _call(
    run: Callable[..., Front],
    method: str,
    problem: Problem,
    objectives: tuple[Objective, ...],
    budget: Budget,
    seed: int,
    start: Front | None,
    parameters: dict[str, Any],
) -> Front:
    import inspect

    declared = inspect.signature(run).parameters.values()
    legal = [p.name for p in declared if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)][5:]
    passes_on = any(p.kind is p.VAR_KEYWORD for p in declared)
    for name in parameters:
        if name not in legal and not passes_on:
            raise UsageError(
                f"method {method!r} has no parameter {name!r}; legal: {', '.join(legal) or 'none'}"
            )
    return run(problem, objectives, budget, seed, start, **parameters)


def _projected(start: Front, problem: Problem, objectives: tuple[Objective, ...]) -> Front:
    """Re-judge the plans of a start front for this instance and these objectives."""
    from placeopt.problems.judge import Candidate, judged

    front = judged(
        problem,
        objectives,
        [Candidate(p.plan) for p in start.points],
        method="start",
        seed=None,
        budget=Budget(evaluations=1),
    )
    points = {p.values: p for p in start.points}
    kept = tuple(
        replace(p, method=points[p.values].method, seed=points[p.values].seed)
        if p.values in points
        else p
        for p in front.points
    )
    return replace(front, points=kept, runs=start.runs, rejected=None, reasons=())


def _least_violating(problem: Problem, objectives: tuple[Objective, ...], seed: int) -> Any:
    greedy = registry.method("greedy")
    if problem.problem not in greedy.problems:
        return None
    return greedy.load(problem.problem)(
        problem, objectives, Budget(evaluations=1000), seed, None
    ).rejected


def _certified(problem: Problem, front: Front, budget: Budget) -> Front:
    certify = registry.certifier(problem.problem)
    return certify(problem, front, budget)


# -- methods that are made of methods --------------------------------------------------------------------------------


def run_auto(
    problem: Problem,
    objectives: tuple[Objective, ...],
    budget: Budget,
    seed: int,
    start: Front | None = None,
    **parameters: Any,
) -> Front:
    """Run the method that measurements favour for this problem; `parameters` are that method's."""
    name = registry.auto(problem)
    return _call(
        registry.method(name).load(problem.problem),
        name,
        problem,
        objectives,
        budget,
        seed,
        start,
        parameters,
    )


def run_ensemble(
    problem: Problem,
    objectives: tuple[Objective, ...],
    budget: Budget,
    seed: int,
    start: Front | None = None,
    *,
    methods: Sequence[str] = ENSEMBLE,
    jobs: int = 1,
) -> Front:
    """Run several methods, each on an equal share of the budget, and merge their fronts with provenance."""
    methods = methods.split(",") if isinstance(methods, str) else list(methods)
    for name in methods:
        if name in ("ensemble", "auto"):
            raise UsageError(f"the ensemble cannot contain {name!r}")
        registry.method(name).load(problem.problem)
    share = (
        max(1, int(budget.evaluations_left / len(methods))) if budget.evaluations_limit else None
    )
    rounds = -(-len(methods) // jobs)
    if jobs == 1:
        fronts = []
        for left, name in zip(range(len(methods), 0, -1), methods, strict=True):
            part = _Share(
                budget, share, budget.seconds_left / left if budget.seconds_limit else None
            )
            fronts.append(
                registry.method(name).load(problem.problem)(problem, objectives, part, seed, start)
            )
            budget.spend(part.evaluations)
    else:
        import joblib

        # Deadlines, not durations: what starting a process takes comes out of its share.
        ends = [
            time.time() + budget.seconds_left * (k // jobs + 1) / rounds
            if budget.seconds_limit
            else None
            for k in range(len(methods))
        ]
        with _cancel_file(budget) as flag:
            given = problem.to_document(), [o.name for o in objectives]
            tasks = (
                joblib.delayed(_one_run)(*given, name, share, end, flag, seed, start)
                for name, end in zip(methods, ends, strict=True)
            )
            fronts = joblib.Parallel(n_jobs=jobs)(tasks)
        budget.spend(sum(run.evaluations for front in fronts for run in front.runs))
    front = merge(fronts)
    whole = Run(
        "ensemble",
        seed,
        budget.seconds,
        budget.evaluations,
        0,
        all(r.completed for f in fronts for r in f.runs),
        {"methods": methods},
    )
    return replace(front, runs=(whole, *front.runs))


class _Share(Budget):
    """A share of another budget that stops when the whole is cancelled, and reports through it."""

    def __init__(self, whole: Budget, evaluations: int | None, seconds: float | None):
        super().__init__(evaluations, seconds and max(seconds, 1e-6), whole.on_progress)
        self._whole = whole

    @property
    def cancelled(self) -> bool:
        return super().cancelled or self._whole.cancelled


def _one_run(
    document: dict[str, Any],
    objectives: list[str],
    method: str,
    evaluations: int | None,
    deadline: float | None,
    flag: str,
    seed: int,
    start: Front | None,
) -> Front:
    """Run one method in a process of its own, until `deadline` (as `time.time` counts)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # a terminal sends Ctrl-C to all processes; the one that asked for this run decides
    problem = problems.from_document(document)
    budget = _Watching(
        evaluations, None if deadline is None else max(deadline - time.time(), 1e-3), flag
    )
    return registry.method(method).load(problem.problem)(
        problem, problem.select(objectives), budget, seed, start
    )


class _Watching(Budget):
    """The budget of a process of its own, cancelled when the file `flag` appears."""

    def __init__(self, evaluations: int | None, seconds: float | None, flag: str):
        super().__init__(evaluations, seconds)
        self._flag, self._next_look = flag, 0.0

    @property
    def cancelled(self) -> bool:
        if not self._cancelled and self.seconds >= self._next_look:
            self._next_look = self.seconds + 0.05
            self._cancelled = os.path.exists(self._flag)
        return self._cancelled


@contextmanager
def _cancel_file(budget: Budget) -> Iterator[str]:
    """Yield the path of a file that appears soon after `budget` is cancelled: how other processes learn of it."""
    with tempfile.TemporaryDirectory(prefix="placeopt-") as folder:
        flag, done = os.path.join(folder, "cancelled"), threading.Event()

        def watch() -> None:
            while not done.wait(0.05):
                if budget.cancelled:
                    open(flag, "w").close()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield flag
        finally:
            done.set()
            watcher.join()
