"""One question to a method, and the only way from the plans that it proposes to a front."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError
from placeopt.core.files.arrays import Arrays
from placeopt.core.fronts.dominance import farthest
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.trace import MAX_SHOWN, Recorder, RunSnapshot, Watch
from placeopt.core.fronts.values import (
    Evaluation,
    Objective,
    Plan,
    Point,
    Rejected,
    Run,
    Status,
    names_of,
    severity,
    versions,
)
from placeopt.core.goals import BEYOND, nothing_inside, upper_limits
from placeopt.core.problem import Problem
from placeopt.core.runs.process import collector_at_rest
from placeopt.core.runs.run_directory import Checkpoint, task_key
from placeopt.core.runs.workers import Workers


@dataclass(frozen=True)
class Candidate:
    """A plan that a method proposes, and what it can prove of it."""

    plan: Plan
    status: Status = "heuristic"
    gap: float | None = None


P = TypeVar("P", bound=Problem, covariant=True)


@dataclass(frozen=True)
class Task(Generic[P]):
    """What a method is asked.

    Attributes
    ----------
    problem : Problem
    objectives : tuple of Objective
        A selection of ``problem.objectives``, the order of all values; all of them by default.
    budget : Budget
        The limit of the whole run.
    seed : int
        The same seed and evaluation budget give the same front.
    start : Front or None
        Plans to start from.
    workers : Workers
        Where a method that consists of independent tasks runs them.
    checkpoint : Checkpoint or None
        Where a long search keeps what it has found so far.
    reference : tuple of float or None
        The reference point of the trace's hypervolumes; that of the front by default.
    verdicts : dict
        Plans that were judged before the run is over, and the referee's words, by the plan's id.
    """

    problem: P
    objectives: tuple[Objective, ...] = ()
    budget: Budget = field(default_factory=Budget)
    seed: int = 1
    start: Front | None = None
    workers: Workers = field(default_factory=Workers)
    checkpoint: Checkpoint | None = None
    reference: tuple[float, ...] | None = None
    verdicts: dict[int, tuple[Plan, Evaluation]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "objectives", tuple(self.objectives or self.problem.objectives))

    @property
    def most(self) -> np.ndarray:
        """The largest value allowed of each objective, inf where there is no limit."""
        return upper_limits(self.problem.goal_limits, self.objectives)

    def inside(self, F: ArrayLike) -> np.ndarray:
        """Return which vectors of values, shape (k, objectives), keep all limits."""
        values = np.asarray(F, dtype=float).reshape(-1, len(self.objectives))
        return np.asarray((values <= self.most).all(axis=1))

    def key(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return all that the result of a method depends on, as JSON."""
        limits = self.budget.evaluations_limit, self.budget.seconds_limit
        return task_key(
            self.problem, self.objectives, method, parameters, self.seed, *limits, self.start
        )

    def load_checkpoint(self) -> Arrays | None:
        """Return what an earlier process left of this run, if any; what it spent counts.

        At least one evaluation is left to do.
        """
        left = None if self.checkpoint is None else self.checkpoint.read()
        if left is not None:
            budget = self.budget
            spent = max(0, left.header["evaluations"] - budget.evaluations)
            more = max(0.0, left.header["seconds"] - budget.seconds)
            budget.resume(int(min(spent, budget.evaluations_left - 1)), more)
        return left

    def stages(self) -> Stages:
        """Return the stages of this run; those that an earlier process ended are done."""
        return Stages(self.budget, self.checkpoint)

    def part(self, name: str) -> Task[P]:
        """Return the same task with a checkpoint of its own, for a part of the run."""
        checkpoint = None if self.checkpoint is None else self.checkpoint.of(name)
        return replace(self, checkpoint=checkpoint)

    def save_checkpoint(self, content: Callable[[], Arrays]) -> None:
        """Keep what was found so far now and then, and when the run is cancelled.

        The header of what is kept gets what was spent.
        """
        if self.checkpoint is None:
            return
        budget = self.budget

        def with_spent() -> Arrays:
            result = content()
            spent = {"evaluations": budget.evaluations, "seconds": budget.seconds}
            return Arrays({**result.header, **spent}, result.arrays)

        self.checkpoint.save(with_spent, now=budget.cancelled)

    def front(
        self,
        candidates: Iterable[Candidate],
        *,
        method: str,
        bounds: Sequence[Sequence[float]] = (),
        solver_calls: int = 0,
        completed: bool = True,
        parameters: dict[str, Any] | None = None,
        libraries: Sequence[str] = (),
    ) -> Front:
        """Return the front of the candidates that the referee finds feasible, with its values.

        Where none is feasible, the front carries the least-violating one and the reasons.

        Parameters
        ----------
        candidates : iterable of Candidate
        method : str
            The name that points and the facts of the run carry.
        bounds : sequence of vectors
            A lower-bound set that the method proves.
        completed : bool
            Whether the method ended by itself.
        parameters : dict, optional
            What the run was given, for its facts.
        libraries : sequence of str
            Distributions whose versions belong to the facts of the run.
        """
        with collector_at_rest():
            points, rejected = self._sorted_out(candidates, method)
            reasons: tuple[str, ...] = ()
            if not points:
                reasons = self.problem.infeasibility() or self._reasons(rejected)
            run = Run(
                method=method,
                seed=self.seed,
                seconds=self.budget.seconds,
                evaluations=self.budget.evaluations,
                solver_calls=solver_calls,
                completed=completed,
                parameters=parameters or {},
                versions=versions(libraries),
            )
            return Front(
                instance=self.problem.instance_name,
                objectives=self.objectives,
                points=tuple(points),
                bounds=tuple(map(tuple, bounds)),
                runs=(run,),
                rejected=rejected,
                reasons=reasons,
            )

    @contextmanager
    def recorded(self, method: str) -> Iterator[Recorder]:
        """Record the run in the block, with all its stages."""
        signs = np.array([o.sign for o in self.objectives])
        watch = self.budget.watch
        look = None if watch is None else partial(self._show, watch, method)
        judge = partial(self._judged, self.problem.columns(self.objectives))
        recorder = Recorder(names_of(self.objectives), signs, judge, look, self.most)
        self.budget.recorder = recorder
        try:
            yield recorder
        finally:
            self.budget.recorder = None

    def judge(self, plan: Plan) -> Evaluation:
        """Return the referee's verdict, which is remembered until the front is built."""
        known, verdict = self.verdicts.get(id(plan), (None, None))
        if verdict is None or known is not plan:
            verdict = self.problem.judge(plan)
            self.verdicts[id(plan)] = plan, verdict
        return verdict

    def _judged(self, columns: Sequence[int], plan: Plan) -> list[float] | None:
        """Return the values of a feasible plan, None of another."""
        verdict = self.judge(plan)
        return [verdict.values[c] for c in columns] if verdict.feasible else None

    def _show(
        self,
        watch: Watch,
        method: str,
        interim: RunSnapshot,
        numbers: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """Show a watch the front so far, at most `MAX_SHOWN` of its points, if it wants to look."""
        plan_of = interim.plan
        if plan_of is None or not len(numbers):
            return

        def build() -> Front:
            chosen = numbers[farthest(values, MAX_SHOWN)] if len(values) > MAX_SHOWN else numbers
            plans = (Candidate(plan_of(k)) for k in chosen.tolist())
            return self.front(plans, method=method, completed=False)

        watch.look(build)

    def _reasons(self, rejected: Rejected | None) -> tuple[str, ...]:
        """Say what the least-violating plan breaks; of limits that are all it breaks, at once."""
        broken = () if rejected is None else rejected.violations
        if rejected is None or any(violation.kind != BEYOND for violation in broken):
            return tuple(violation.message for violation in broken[:20])
        return (nothing_inside(self.problem.goal_limits, self.objectives, rejected.values),)

    def _sorted_out(
        self, candidates: Iterable[Candidate], method: str
    ) -> tuple[list[Point], Rejected | None]:
        """Return the feasible plans as points; where there are none, the least-violating one."""
        columns = self.problem.columns(self.objectives)
        points: list[Point] = []
        rejected: Rejected | None = None
        for candidate in candidates:
            plan, verdict = self.verdicts.get(id(candidate.plan), (None, None))
            if verdict is None or plan is not candidate.plan:
                verdict = self.problem.judge(candidate.plan)
            values = tuple(verdict.values[c] for c in columns)
            if verdict.feasible:
                status, gap = candidate.status, candidate.gap
                points.append(Point(values, candidate.plan, status, gap, method, self.seed))
            elif not points and (
                rejected is None or severity(verdict.violations) < severity(rejected.violations)
            ):
                rejected = Rejected(candidate.plan, values, verdict.violations)
        return points, rejected


def require_fitting(
    problem: Problem, front: Front, file: str | None = None
) -> dict[int, tuple[Plan, Evaluation]]:
    """Raise unless `front` answers `problem` and the referee can read its plans.

    Returns
    -------
    dict
        Each plan and the referee's word on it, by the plan's id: ``Task.verdicts``.

    Raises
    ------
    DocumentError
        Names `file`, where the front stands, and the first plan that cannot be read.
    """
    front.require(problem.instance_name, file)
    verdicts = {}
    for k, point in enumerate(front.points):
        try:
            verdicts[id(point.plan)] = point.plan, problem.judge(point.plan)
        except DocumentError as error:
            raise error.in_file(f"{file + ': ' if file else ''}points[{k}].plan") from None
    return verdicts


class Stages:
    """Stages of a run by name; a process that resumes the run repeats none that ended.

    Parameters
    ----------
    budget : Budget
        The budget of the run: what an earlier process spent counts.
    checkpoint : Checkpoint, optional
        Where the fronts are kept.
    """

    def __init__(self, budget: Budget, checkpoint: Checkpoint | None = None):
        self._budget, self._checkpoint = budget, checkpoint
        self._done: dict[str, tuple[int, Front]] = {}
        left = None if checkpoint is None else checkpoint.read()
        if left is not None:
            self._done = {
                name: (spent, Front.from_document(front))
                for name, spent, front in left.header["stages"]
            }
            budget.resume(0, max(0.0, left.header["seconds"] - budget.seconds))

    def do(self, name: str, work: Callable[[], Front]) -> Front:
        """Return the front of a stage: the kept one, or what `work` returns.

        A stage that runs out of time is not kept.
        """
        if name in self._done:
            spent, front = self._done[name]
            self._budget.spend(spent)
            return front
        before = self._budget.evaluations
        front = work()
        if self._checkpoint is not None:
            if not self._budget.out_of_time:
                self._done[name] = self._budget.evaluations - before, front
            self._checkpoint.save(self._content, now=True)
        return front

    def _content(self) -> Arrays:
        done = [[name, spent, front.to_document()] for name, (spent, front) in self._done.items()]
        return Arrays({"stages": done, "seconds": self._budget.seconds}, {})
