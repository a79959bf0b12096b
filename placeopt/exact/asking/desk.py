"""What all questions share: a compiled model, its solver, and the front of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

import numpy as np
import pyomo.environ as pyo

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, SolverError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Point, Status
from placeopt.exact.goals import Goal, goals_of, require_goal
from placeopt.exact.memory import STATUSES, Answer, Found
from placeopt.exact.model_front import (
    ModelSearch,
    answer_of,
    budget_of,
    check_request,
    front_without_points,
)
from placeopt.exact.oracles import Oracle
from placeopt.exact.solver_registry import DEFAULT


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
        options = how.get("options")
        self.solver = search.solver(how.get("solver"), options)
        self.compiled, self.precision = search.compiled, search.compiled.precision
        self.oracle = Oracle(
            self.compiled, budget, self.solver, options=options, origin=search.origin
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

    def least(self, objective: int, limits: np.ndarray, start: Any = None) -> Found | None:
        """Return the least solution of a goal within limits in units, None where there is none."""
        ask = partial(self.oracle.minimise, objective, limits.tolist(), start=start, careful=False)
        return self._answer(ask)

    def least_sum(
        self,
        weights: Sequence[float],
        limits: np.ndarray | None = None,
        start: Any = None,
        *,
        apart: float | None = None,
    ) -> Found | None:
        """Return the solution of least weighted sum of the goals within limits, as `least`.

        Sums that differ by less than `apart` are one; by default what can be told.
        """
        weights = [*weights, *[0.0] * (len(self.free) - len(weights))]
        within = (self.free if limits is None else limits).tolist()
        ask = partial(self.oracle.minimise_sum, weights, within, start=start, exact=True)
        return self._answer(partial(ask, apart=apart))

    def count_call(self) -> None:
        """Count a question; raises where the time is up."""
        if self.budget.out_of_time:
            raise UnansweredError
        self.calls += 1

    def _answer(self, ask: Callable[..., Answer]) -> Found | None:
        self.count_call()
        try:
            answer = ask(seconds=self.budget.seconds_left)
        except SolverError as error:
            raise UnansweredError from error
        if answer.status == "infeasible":
            return None
        result = None if answer.values is None else Found(answer.values, answer.payload)
        if answer.status != "optimal" or result is None:
            if result is not None:
                self.keep(result, "heuristic")
            raise UnansweredError
        return result

    def efficient(self, found: Found) -> Found:
        """Return a solution that none beats, at least as good in everything."""
        limits = self.free.copy()
        limits[: self.count] = found.values[: self.count]
        return self.least_sum([1.0] * self.count, limits, found.payload) or found

    # -- the answer --------------------------------------------------------------------------------

    def keep(self, found: Found, status: Status = "optimal") -> None:
        """Add a point to the answer; `optimal` where no solution beats it for certain."""
        self.points.append(self.point(found, status))

    def point(self, found: Found, status: Status) -> Point:
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
        facts["solver"] = how.get("solver") or DEFAULT
        return front_without_points(model, goals, budget, facts, error.reasons)
    instance = (plain or desk.search).instance
    try:
        reason, status = answering(desk), "complete"
    except UnansweredError:
        status = desk.status_when_unanswered()
        reason = STATUSES[status]
    if not desk.points and status == "complete":
        status, reason = "infeasible", STATUSES["infeasible"]
    facts = {**facts, **desk.facts, "solver": desk.solver, "status": status, "reason": reason}
    shown = zip(desk.goals, desk.compiled.objectives, strict=False)
    objectives = [replace(goal.objective, step=units.step) for goal, units in shown]
    points = [replace(point, method=question) for point in desk.points]
    return answer_of(instance, objectives, budget, facts, desk.calls, points)


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
            require_goal(name, names, what)
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
