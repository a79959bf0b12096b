"""``epsilon-constraint``: the exact front of any problem that has a Pyomo model with linear objectives.

A model's module may help with functions of these names: ``size(problem, **options)``, about how many coefficients the model has;
``lossless(problem, **options)``, whether it sees all plans that matter; ``assign(model, plan)``, to start from plans;
``validate(problem, plan)``, whether a solution of the model is a plan that may be called proven; ``cuts(model, problem, plan)``,
rows that exclude a solution which is none.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError, did_you_mean
from placeopt.core.front import Front, Objective
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.exact.engines import ENGINES
from placeopt.exact.enumeration import TOLERANCE, Answer, Enumeration, Found, enumerate_front
from placeopt.exact.fronts import front_of, in_units, with_fallback
from placeopt.exact.solvers import Outcome, solve

if TYPE_CHECKING:
    import pyomo.environ as pyo

    from placeopt.exact.compiled_model import CompiledModel, Cut

#: Coefficients of the largest model that is built, and how many are built in a second.
MOST_COEFFICIENTS, COEFFICIENTS_PER_SECOND = 4_000_000, 200_000
_LIBRARY = {"highs": "highspy", "scip": "pyscipopt"}


@dataclass(frozen=True)
class Hooks:
    """What a problem adds to the search in its model; see the module's help.

    Attributes
    ----------
    extract : callable
        ``extract(model) -> plan``.
    assign, validate, cuts : callable, optional
    lossless : bool
        Whether the model sees all plans that matter, so that its proofs hold for the problem.
    omitted : str
        In words, the plans that a model which is not lossless leaves out.
    """

    extract: Callable[[Any], dict[str, Any]]
    assign: Callable[[Any, dict[str, Any]], bool] | None = None
    validate: Callable[[Problem, dict[str, Any]], bool] | None = None
    cuts: Callable[[Any, Problem, dict[str, Any]], Sequence[Cut]] | None = None
    lossless: bool = True
    omitted: str = "some plans"


@dataclass(frozen=True, eq=False)
class Solution:
    """A plan of the model, the solver's vector of it where there is one, and whether it may be called proven."""

    plan: dict[str, Any]
    x: np.ndarray | None = None
    valid: bool = True


class ModelOracle:
    """Answers from a compiled Pyomo model, by a solver; every plan is judged by the referee."""

    def __init__(
        self,
        problem: Problem,
        compiled: CompiledModel,
        hooks: Hooks,
        budget: Budget,
        solver: str,
        seed: int,
    ):
        self.problem, self.compiled, self.hooks = problem, compiled, hooks
        self.budget, self.solver, self.seed = budget, solver, seed
        self.floors: Sequence[float] = compiled.floors
        self._columns = problem.columns(compiled.objectives)

    def minimise(
        self,
        objective: int,
        limits: Sequence[float],
        *,
        seconds: float,
        start: Solution | None,
        careful: bool,
    ) -> Answer:
        """Minimise one objective within limits on the others, in units."""
        deadline = time.perf_counter() + seconds
        first = None if start is None else start.x
        while True:
            outcome = self._solve(objective, limits, deadline - time.perf_counter(), first, careful)
            if outcome.x is None:
                return Answer(outcome.status, outcome.bound)
            self.compiled.load(outcome.x)
            plan = self.hooks.extract(self.compiled.model)
            cuts = (
                self.hooks.cuts(self.compiled.model, self.problem, plan)
                if self.hooks.cuts is not None
                else ()
            )
            if not cuts:
                return self._judge(outcome, plan)
            self.compiled.add(cuts)
            first = None
            if self.budget.out_of_time or time.perf_counter() >= deadline:
                return Answer("unknown", outcome.bound)

    def _solve(
        self,
        objective: int,
        limits: Sequence[float],
        seconds: float,
        start: np.ndarray | None,
        careful: bool,
    ) -> Outcome:
        whole = self.compiled.objectives[objective].step is not None
        return solve(
            self.compiled.within(objective, limits),
            self.solver,
            seconds=seconds,
            budget=self.budget,
            start=start,
            relative_gap=0.0 if whole else TOLERANCE / 2,
            absolute_gap=0.9 if whole else 0.0,
            seed=self.seed,
            careful=careful,
        )

    def _judge(self, outcome: Outcome, plan: dict[str, Any]) -> Answer:
        assert outcome.x is not None
        verdict = self.problem.evaluate(plan)
        values = (
            in_units([verdict.values[c] for c in self._columns], self.compiled.objectives)
            if verdict.feasible
            else None
        )
        valid = self.hooks.validate is None or self.hooks.validate(self.problem, plan)
        claimed = self.compiled.values(outcome.x)
        return Answer(
            outcome.status, outcome.bound, values, claimed, Solution(plan, outcome.x, valid)
        )

    def known(self, start: Front) -> list[Found]:
        """Return the points of a front, as vectors of the model where it can express them."""
        found = []
        for point in start.points:
            verdict = self.problem.evaluate(point.plan)
            if verdict.feasible:
                values = in_units(
                    [verdict.values[c] for c in self._columns], self.compiled.objectives
                )
                fits = self.hooks.assign is not None and self.hooks.assign(
                    self.compiled.model, point.plan
                )
                if fits or self.hooks.lossless:
                    found.append(
                        Found(values, Solution(point.plan, self.compiled.read() if fits else None))
                    )
        return found


def solve_model(
    task: Task[Problem],
    model: pyo.ConcreteModel,
    hooks: Hooks,
    *,
    method: str = "epsilon-constraint",
    solver: str = "highs",
    grid: int | None = None,
    main: str | None = None,
    parameters: dict[str, Any] | None = None,
) -> Front:
    """Return the front of a Pyomo model that has an Expression for every objective.

    All plans are solutions of the model, whatever constraints were added to it, or come from
    `start`. Where it has no solution the front is empty and says so; arguments as of `run`.
    """
    from placeopt.exact.compiled_model import CompiledModel

    compiled = CompiledModel(model, task.objectives)
    oracle = ModelOracle(task.problem, compiled, hooks, task.budget, solver, task.seed)
    known = [] if task.start is None else oracle.known(task.start)
    names = [o.name for o in task.objectives]
    search = enumerate_front(
        oracle,
        compiled.objectives,
        task.budget,
        main=None if main is None else names.index(main),
        grid=grid,
        known=known,
    )
    facts = {**(parameters or {}), "solver": solver, "main": names[search.main]}
    if not hooks.lossless:
        facts["note"] = f"the model leaves out {hooks.omitted}: these were not searched"
    front = front_of(
        task,
        replace(search, complete=search.complete and hooks.lossless),
        lambda solution: solution.plan,
        method=method,
        proven=lambda solution: solution.valid,
        bounded=hooks.lossless,
        parameters=facts,
        libraries=(_LIBRARY[solver], "pyomo"),
    )
    return front if front.points else replace(front, reasons=_why_empty(front, search, hooks))


def _why_empty(front: Front, search: Enumeration, hooks: Hooks) -> tuple[str, ...]:
    """Say why a search in a model came back without a plan."""
    reason = "the model has no solution" if search.complete else "no plan was found in time"
    if not hooks.lossless:
        reason += f"; it leaves out {hooks.omitted}, so a plan may exist"
    return (*front.reasons, reason)


def run(
    task: Task[Problem],
    *,
    solver: str = "highs",
    grid: int | None = None,
    main: str | None = None,
    **options: Any,
) -> Front:
    """Return the front of a problem by minimising one objective of its Pyomo model within limits on the others.

    Exact and complete where every limited objective has a step and time suffices; with real-valued ones, points on a grid of
    limits, each with its gap. ``front.bounds`` is valid whenever the search ends. Evaluations are not counted: the search stops
    by seconds, or at the end. Where the model leaves plans out, as that of rolling-update does,
    the run is not completed, and its note says what was not searched. An instance whose model would be too large is answered by the greedy heuristic.

    Parameters
    ----------
    solver : {"highs", "scip"}
    grid : int, optional
        Limits tried per objective, instead of all.
    main : str, optional
        The objective that is minimised within limits on the others.
    **options
        Arguments of the model's ``build``, such as `copies` of the temporal model.
    """
    face: ModuleType = task.problem.spec.load("model")
    _check(face, task.objectives, solver, grid, main, options)
    parameters = {**options, **({} if grid is None else {"grid": grid})}
    if reason := _reason_not_to_build(face, task.problem, task.budget, options):
        note = {**parameters, "solver": solver, "note": reason}
        none = task.front((), method="epsilon-constraint", completed=False, parameters=note)
        return with_fallback(none, task)
    lossless = face.lossless(task.problem, **options) if hasattr(face, "lossless") else True
    hooks = Hooks(
        face.extract,
        lossless=lossless,
        omitted="" if lossless else face.OMITTED,
        **{name: getattr(face, name, None) for name in ("assign", "validate", "cuts")},
    )
    model = face.build(task.problem, **options)
    front = solve_model(
        task,
        model,
        hooks,
        solver=solver,
        grid=grid,
        main=main,
        parameters=parameters,
    )
    return with_fallback(front, task)


def _check(
    face: ModuleType,
    objectives: Sequence[Objective],
    solver: str,
    grid: int | None,
    main: str | None,
    options: dict[str, Any],
) -> None:
    if solver not in ENGINES:
        raise UsageError(f"unknown solver {solver!r}; {did_you_mean(str(solver), ENGINES)}")
    if grid is not None and (not isinstance(grid, int) or grid < 2):
        raise UsageError(f"grid is {grid!r}; give a whole number of at least 2")
    names = [o.name for o in objectives]
    if main is not None and main not in names:
        raise UsageError(f"unknown objective {main!r}; {did_you_mean(str(main), names)}")
    legal = ["solver", "grid", "main", *list(inspect.signature(face.build).parameters)[1:]]
    for name in options:
        if name not in legal:
            raise UsageError(
                f"epsilon-constraint has no parameter {name!r}; {did_you_mean(name, legal)}"
            )


def _reason_not_to_build(
    face: ModuleType, problem: Problem, budget: Budget, options: dict[str, Any]
) -> str:
    """Say why the model cannot be of use, if so."""
    if reasons := problem.infeasibility():
        return "; ".join(reasons)
    size = face.size(problem, **options) if hasattr(face, "size") else 0
    affordable = min(MOST_COEFFICIENTS, COEFFICIENTS_PER_SECOND * budget.seconds_left / 2)
    if size > affordable:
        return f"the model has about {size:,} coefficients; at most {math.floor(affordable):,} are built in this time"
    return ""
