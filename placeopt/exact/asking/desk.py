"""What all questions share: a compiled model, its solver, and the front of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import pyomo.environ as pyo

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, SolverError, UsageError, did_you_mean
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Point, Run
from placeopt.core.runs.versions import versions
from placeopt.exact.answers import STATUSES, Answer
from placeopt.exact.goals import Goal, goals_of
from placeopt.exact.memory import Found
from placeopt.exact.model_front import budget_of, check_request
from placeopt.exact.model_search import ModelSearch, front_without_points
from placeopt.exact.oracles import VariablesOracle
from placeopt.exact.solver_registry import LIBRARIES, choose

#: Costs of a sum are scaled down to this: a solver's tolerances are absolute.
_LARGEST_COST = 1e5
#: How far a real-valued sum may be from its bound, in differences that can be told: limits on real
#: values have some of them as slack.
_DOUBTFUL = 1000
#: Rounding of a solver's bound of whole numbers, absolute and relative.
_BOUND_ROUNDING = (1e-4, 1e-9)


class How(TypedDict, total=False):
    """Keywords of all questions.

    Attributes
    ----------
    objectives : mapping or sequence, optional
        The goals, as of `placeopt.enumerate`.
    seconds : float, optional
        Time limit. What was found by then is returned.
    solver : str, optional
        As of `placeopt.enumerate`.
    options : mapping, optional
        The solver's own options by its names.
    budget : Budget, optional
        Instead of `seconds`: for callers who want to cancel.
    """

    objectives: Mapping[str, Any] | Sequence[Any] | None
    seconds: float | None
    solver: str | None
    options: Mapping[str, Any] | None
    budget: Budget | None


class UnansweredError(Exception):
    """The solver did not answer a question: the time is up, or it cannot."""


@dataclass(frozen=True, eq=False)
class Least:
    """The least solution within limits, None where there is none, and a proven bound in units."""

    found: Found | None
    bound: float


class SumOracle(VariablesOracle):
    """Also minimises weighted sums of goals, as exactly as single goals."""

    def least_sum(
        self,
        weights: Sequence[float],
        limits: np.ndarray,
        seconds: float,
        start: Any,
        apart: float | None = None,
    ) -> Answer:
        """Minimise a weighted sum of all goals, in units; so is the bound of the answer.

        Parameters
        ----------
        apart : float, optional
            Difference below which two sums are one; by default what can be told.
        """
        compiled, deadline = self.compiled, self.budget.seconds + seconds
        w = np.array(weights, dtype=float)
        cost, offset = w @ np.array(compiled.costs), float(w @ compiled.offsets)
        largest = float(np.abs(cost).max(initial=0.0))
        size = 2.0 ** max(0, math.ceil(math.log2(max(1.0, largest / _LARGEST_COST))))
        is_whole = self._is_whole(w)
        apart = apart or (0.9 if is_whole else self._resolution(w))
        near = apart if is_whole else max(apart, _DOUBTFUL * self._resolution(w))
        answers: list[Answer] = []
        for way in self.ways(careful=False):
            try:
                answer = self._ask(
                    lambda: replace(
                        compiled.within_sum(w.tolist(), limits.tolist()),
                        c=cost / size,
                        offset=offset / size,
                    ),
                    w,
                    limits.tolist(),
                    way,
                    deadline,
                    start,
                    relative_gap=0.0,
                    absolute_gap=apart / size,
                )
            except SolverError:
                continue
            if answer.status == "unbounded":
                floors = [
                    k for k in np.flatnonzero(w).tolist() if not math.isfinite(self.floors[k])
                ]
                raise UsageError(self._unbounded(floors[0] if floors else 0))
            answer = replace(answer, bound=answer.bound * size)
            if answer.status == "infeasible" or _is_least(answer, w, near, is_whole):
                return answer
            answers.append(answer)
            if self._is_over(deadline):
                break
        points = [answer for answer in answers if answer.values is not None]
        return replace((points or answers or [Answer("unknown")])[0], status="unknown")

    def _is_whole(self, weights: np.ndarray) -> bool:
        """Whether a sum takes whole numbers only."""
        whole = self.compiled.precision.whole[np.flatnonzero(weights)]
        return bool(whole.all() and (weights == np.round(weights)).all())

    def _resolution(self, weights: np.ndarray) -> float:
        """Return the difference of sums that can be told."""
        used = np.flatnonzero(weights).tolist()
        return float(sum(abs(weights[k]) * self.compiled.gaps(k)[0] for k in used))


def _is_least(answer: Answer, weights: np.ndarray, near: float, is_whole: bool) -> bool:
    """Whether a sum attains its bound, but for what is near and rounding."""
    if answer.status != "optimal" or answer.values is None:
        return False
    value, (absolute, relative) = float(weights @ answer.values), _BOUND_ROUNDING
    rounding = relative * abs(value) + (absolute if is_whole else 0.0)
    return value - answer.bound <= near + rounding


class Desk:
    """A model and its goals, at which one question after the other is asked.

    Parameters
    ----------
    more : callable, optional
        From the goals to further ones, which are minimised or limited too, and not shown.
    """

    def __init__(
        self,
        model: pyo.ConcreteModel,
        goals: Sequence[Goal],
        budget: Budget,
        how: How,
        more: Sequence[Goal] = (),
    ):
        self.goals, self.budget, self.calls = goals, budget, 0
        self.count = len(goals)
        self.search = search = ModelSearch(model, [*goals, *more], budget)
        solver, options = how.get("solver"), dict(how.get("options") or {})
        if solver is not None:
            search.require_fit(solver)
        elif not options:
            solver = choose(search.compiled.program)
        self.solver = solver or "highs"
        self.compiled, self.precision = search.compiled, search.compiled.precision
        self.oracle = SumOracle(
            self.compiled, budget, self.solver, options=options, cuts=search.cuts
        )
        self.free = np.full(self.count + len(more), math.inf)
        self.points: list[Point] = []
        #: For the facts of the run, beside what was asked for.
        self.facts: dict[str, Any] = {}
        #: Variables that are no part of the user's model.
        self.hidden: set[str] = set()

    @property
    def curved(self) -> list[str]:
        """Names of the goals that are quadratic."""
        chosen = zip(self.goals, self.compiled.curved.tolist(), strict=False)
        return [goal.name for goal, is_curved in chosen if is_curved]

    # -- questions ---------------------------------------------------------------------------------

    def least(self, objective: int, limits: np.ndarray, start: Any = None) -> Least:
        """Return the least value of a goal within limits; units."""
        self.count_call()
        try:
            answer = self.oracle.minimise(
                objective,
                limits.tolist(),
                seconds=self.budget.seconds_left,
                start=start,
                careful=False,
            )
        except SolverError as error:
            raise UnansweredError from error
        return self._believed(answer)

    def least_sum(
        self,
        weights: Sequence[float],
        limits: np.ndarray | None = None,
        start: Any = None,
        *,
        apart: float | None = None,
    ) -> Least:
        """Return the least weighted sum of the goals within limits; units.

        Sums that differ by less than `apart` are one; by default what can be told.
        """
        self.count_call()
        more = [0.0] * (len(self.free) - len(weights))
        limits = self.free if limits is None else limits
        left = self.budget.seconds_left
        answer = self.oracle.least_sum([*weights, *more], limits, left, start, apart)
        return self._believed(answer)

    def count_call(self) -> None:
        """Count a question; raises where the time is up."""
        if self.budget.out_of_time:
            raise UnansweredError
        self.calls += 1

    def _believed(self, answer: Answer) -> Least:
        if answer.status == "infeasible":
            return Least(None, math.inf)
        result = None if answer.values is None else Found(answer.values, answer.payload)
        if answer.status != "optimal":
            if result is not None:
                self.keep(result, "heuristic")
            raise UnansweredError
        assert result is not None
        return Least(result, answer.bound)

    def efficient(self, found: Found) -> Found:
        """Return a solution that none beats, at least as good in everything."""
        limits = self.free.copy()
        limits[: self.count] = found.values[: self.count]
        better = self.least_sum([1.0] * self.count, limits, found.payload).found
        return found if better is None else better

    # -- the answer --------------------------------------------------------------------------------

    def keep(self, found: Found, status: str = "optimal") -> None:
        """Add a point to the answer; `optimal` where no solution beats it for certain."""
        self.points.append(self.point(found, status))

    def point(self, found: Found, status: str) -> Point:
        """Return a solution as a point with the goals alone."""
        point = self.search.point(found, status)
        plan = {name: value for name, value in point.plan.items() if name not in self.hidden}
        return replace(point, values=point.values[: self.count], plan=plan)

    def status_when_unanswered(self) -> str:
        """Return why the last question has no answer."""
        if self.budget.cancelled:
            return "cancelled"
        return "time-limit" if self.budget.out_of_time else "numerical"


#: What answers a question: adds points to the desk, and returns why all is well, in a sentence.
Answering = Callable[[Desk], str]


def answered(
    model: pyo.ConcreteModel,
    question: str,
    parameters: Mapping[str, Any],
    how: How,
    answering: Answering,
    more: Callable[[Sequence[Goal]], Sequence[Goal]] | None = None,
) -> Front:
    """Answer a question by a front.

    Parameters
    ----------
    question : str
        Its name, which the front's run tells.
    parameters : mapping
        What was asked for, for the facts of the run.
    more : callable, optional
        From the goals to further ones, as of `Desk`.
    """
    if unknown := how.keys() - How.__annotations__.keys():
        raise UsageError(
            f"unknown argument {min(unknown)!r}; legal: {', '.join(How.__annotations__)}"
        )
    check_request(model, how.get("solver"), how.get("options"))
    budget = how.get("budget") or budget_of(how.get("seconds"))
    goals = goals_of(model, how.get("objectives"), None, None)
    facts = {"question": question, **parameters, "options": dict(how.get("options") or {})}
    try:
        plain = None if more is None else ModelSearch(model, goals, budget)
        desk = Desk(model, goals, budget, how, [] if more is None else more(goals))
    except InfeasibleInstanceError as error:
        facts["solver"] = how.get("solver") or "highs"
        return front_without_points(model, goals, budget, facts, error.reasons)
    instance = (plain or desk.search).instance
    try:
        reason, status = answering(desk), "complete"
    except UnansweredError:
        status = desk.status_when_unanswered()
        reason = STATUSES[status]
    if not desk.points and status == "complete":
        status, reason = "infeasible", STATUSES["infeasible"]
    return _front(desk, instance, question, facts, status, reason)


def _front(
    desk: Desk,
    instance: InstanceName,
    question: str,
    facts: Mapping[str, Any],
    status: str,
    reason: str,
) -> Front:
    ended = {"solver": desk.solver, "status": status, "reason": reason}
    shown = zip(desk.goals, desk.compiled.objectives, strict=False)
    run = Run(
        question,
        None,
        desk.budget.seconds,
        solver_calls=desk.calls,
        completed=status in ("complete", "infeasible"),
        parameters={**facts, **desk.facts, **ended},
        versions=versions((LIBRARIES[desk.solver], "pyomo")),
    )
    objectives = tuple(replace(goal.objective, step=units.step) for goal, units in shown)
    points = tuple(replace(point, method=question) for point in desk.points)
    return Front(instance, objectives, points, (), (run,), None, (reason,))


def numbers(
    what: str, given: Mapping[str, float] | Sequence[float], names: Sequence[str]
) -> list[float]:
    """Return a finite number for each goal.

    Raises
    ------
    UsageError
        Unknown or missing names, or something else than numbers; `what` is the argument.
    """
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise UsageError(f"{what} names no goal: {name!r}; {did_you_mean(name, names)}")
        missing = [name for name in names if name not in given]
        if missing:
            raise UsageError(f"{what} has no number for goal {missing[0]!r}; give one for each")
        given = [given[name] for name in names]
    try:
        numbers = [float(value) for value in given]
    except (TypeError, ValueError):
        raise UsageError(f"{what} is {given!r}; give a number for each goal") from None
    if len(numbers) != len(names) or not all(map(math.isfinite, numbers)):
        raise UsageError(
            f"{what} is {given!r}; give a finite number for each of {len(names)} goals"
        )
    return numbers
