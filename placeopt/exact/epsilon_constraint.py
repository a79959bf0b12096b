"""``epsilon-constraint``: the exact front of a problem that has a linear Pyomo model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError, UsageError, require_known
from placeopt.core.files.arrays import Arrays
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan, names_of
from placeopt.core.limits import in_steps
from placeopt.core.parameters import checked
from placeopt.core.problem import Problem
from placeopt.core.task import Task
from placeopt.exact.enumeration import enumerate_front
from placeopt.exact.fronts import front_of, in_units, too_short_to_load, with_fallback
from placeopt.exact.hooks import Hooks, model_of
from placeopt.exact.memory import Answer, Enumeration, Found, SearchHistory
from placeopt.exact.oracles import Oracle, Way
from placeopt.exact.solver_registry import LIBRARIES, require_fit, require_solver
from placeopt.exact.solvers import Outcome

if TYPE_CHECKING:
    import pyomo.environ as pyo

    from placeopt.exact.compiled_model import CompiledModel

METHOD = "epsilon-constraint"
#: How far a value may be from a multiple of the step that a model shows, relatively.
_OFF_STEP = 1e-6
#: Coefficients of the largest model that is built, and how many are built in a second.
MAX_COEFFICIENTS, COEFFICIENTS_PER_SECOND = 4_000_000, 200_000


@dataclass(frozen=True, eq=False)
class Solution:
    """A plan, the solver's vector of it where there is one, and whether it may be called proven."""

    plan: Plan
    x: np.ndarray | None = None
    valid: bool = True


class ModelOracle(Oracle):
    """Answers with plans of a problem, each judged by the referee."""

    def __init__(
        self,
        problem: Problem,
        compiled: CompiledModel,
        hooks: Hooks,
        budget: Budget,
        solver: str,
        seed: int,
    ):
        super().__init__(compiled, budget, solver, seed)
        self.problem, self.hooks = problem, hooks
        self._columns = problem.columns(compiled.objectives)
        values_in = [problem.objectives[column].step for column in self._columns]
        self._shown = [k for k, step in enumerate(values_in) if step is None]

    def ways(self, careful: bool) -> Sequence[Way]:
        """Return one way: the referee judges what the solver says."""
        return (Way(self.solver, careful=careful),)

    def is_certain(self, answer: Answer, objective: int, limits: Sequence[float]) -> bool:
        """Every answer is: the referee has judged it."""
        return True

    def read(self, outcome: Outcome, weights: np.ndarray, limits: Sequence[float]) -> Answer | None:
        """Return the plan of a solution and its values; None where a cut excludes it."""
        assert outcome.x is not None
        hooks, model = self.hooks, self.compiled.model
        with self.lock:
            self.compiled.load(outcome.x)
            plan = hooks.extract(model)
            cuts = () if hooks.cuts is None else hooks.cuts(model, self.problem, plan)
        if cuts:
            self.compiled.add(cuts)
            return None
        claimed = self.compiled.values(outcome.x)
        solution = Solution(plan, outcome.x, self._is_valid(plan))
        return Answer(outcome.status, outcome.bound, self._judge(plan), claimed, solution)

    def _is_valid(self, plan: Plan) -> bool:
        return self.hooks.validate is None or self.hooks.validate(self.problem, plan)

    def _judge(self, plan: Plan) -> tuple[float, ...] | None:
        """Return the referee's values of a plan in units, None where it breaks the instance."""
        verdict = self.problem.evaluate(plan)
        values = [verdict.values[c] for c in self._columns]
        if not verdict.feasible:
            return None
        self._require_steps(values)
        return in_units(values, self.compiled.objectives)

    def _require_steps(self, values: Sequence[float]) -> None:
        """Raise where a value of the referee contradicts the step that the model shows."""
        for k in self._shown:
            objective = self.compiled.objectives[k]
            if objective.step is None:
                continue
            units = values[k] / objective.step
            if abs(units - round(units)) > _OFF_STEP * max(1.0, abs(units)):
                raise UsageError(
                    f"the referee of {self.problem.problem} says {objective.name} is "
                    f"{values[k]:.12g}, but by the model it is a multiple of {objective.step:g}; "
                    "referee and model have to agree"
                )

    def known(self, plans: Iterable[Plan]) -> list[Found]:
        """Return feasible plans as points, with vectors of the model where it can express them."""
        hooks, result = self.hooks, []
        for plan in plans:
            values = self._judge(plan)
            if values is None:
                continue
            fits = hooks.assign is not None and hooks.assign(self.compiled.model, plan)
            if fits or hooks.lossless:
                x = self.compiled.read() if fits else None
                result.append(Found(values, Solution(plan, x, self._is_valid(plan))))
        return result


def solve_model(
    task: Task[Problem],
    model: pyo.ConcreteModel,
    hooks: Hooks,
    *,
    solver: str = "highs",
    grid: int | None = None,
    main: str | None = None,
    parameters: dict[str, Any] | None = None,
) -> Front:
    """Return the front of a Pyomo model that has an Expression for every objective.

    All plans are solutions of the model, whatever constraints were added to it, or come from
    ``task.start``. Where it has no solution the front is empty and says so; see `run`.
    """
    from placeopt.exact.compiled_model import CompiledModel

    compiled = CompiledModel(model, task.objectives)
    require_fit(solver, compiled.program, [v.name for v in compiled.columns])
    oracle = ModelOracle(task.problem, compiled, hooks, task.budget, solver, task.seed)
    before = _Before.of(task)
    known = oracle.known([*([p.plan for p in task.start] if task.start else ()), *before.plans])
    names = names_of(task.objectives)
    search = enumerate_front(
        oracle,
        compiled.objectives,
        task.budget,
        main=None if main is None else names.index(main),
        grid=grid,
        known=known,
        jobs=1 if hooks.cuts is not None else task.workers.jobs,  # cuts change later questions
        proofs=before.proofs,
        on_answer=before.keep,
        plan_of=lambda found: found.payload.plan,
        limits=in_steps(task.problem.goal_limits, compiled.objectives),
    )
    search.solves += before.solves
    facts = {**(parameters or {}), "solver": solver, "main": names[search.main]}
    if not hooks.lossless:
        facts["note"] = f"the model leaves out {hooks.omitted}: these were not searched"
    front = front_of(
        task,
        search,
        lambda solution: solution.plan,
        method=METHOD,
        proven=lambda solution: solution.valid,
        lossless=hooks.lossless,
        parameters=facts,
        libraries=(LIBRARIES[solver], "pyomo"),
    )
    return front if front.points else replace(front, reasons=_why_empty(front, search, hooks))


@dataclass(frozen=True)
class _Before:
    """What a search of an earlier process found and proved."""

    task: Task[Problem]
    plans: Sequence[Plan] = ()
    solves: int = 0
    proofs: Mapping[str, np.ndarray] | None = None

    @classmethod
    def of(cls, task: Task[Problem]) -> _Before:
        """Read what is there."""
        left = task.take_up()
        if left is None:
            return cls(task)
        return cls(task, left.header["plans"], left.header["solves"], left.arrays)

    def keep(self, memory: SearchHistory, solves: int) -> None:
        """Write what is known now, now and then."""
        self.task.keep(
            lambda: Arrays(
                {
                    "solves": self.solves + solves,
                    "plans": [point.payload.plan for point in memory.points],
                },
                memory.proofs,
            )
        )


def _why_empty(front: Front, search: Enumeration, hooks: Hooks) -> tuple[str, ...]:
    """Say why a search in a model came back without a plan."""
    if search.points:  # the limits on goals are why
        return front.reasons
    reason = "the model has no solution" if search.complete else "no plan was found in time"
    if not hooks.lossless:
        reason += f"; it leaves out {hooks.omitted}, so a plan may exist"
    return (*front.reasons, reason)


def run(
    task: Task[Problem],
    *,
    solver: Annotated[
        Literal["highs", "scip", "cp-sat", "cbc", "cplex", "gurobi"],
        Field(description="The solver; all but the first two have to be installed."),
    ] = "highs",
    grid: Annotated[
        int | None,
        Field(ge=2, le=10_000, description="Limits tried per objective, instead of all."),
    ] = None,
    main: Annotated[
        str | None,
        Field(description="The objective that is minimised within limits on the others."),
    ] = None,
    **options: Any,
) -> Front:
    """Return the front by minimising one objective of the model within limits on the others.

    Exact and complete where every limited objective has a step and time suffices; with real-valued
    ones, points on a grid of limits, each with its gap. ``front.bounds`` is valid whenever the
    search ends. Where the model leaves plans out, as that of rolling-update does, the run is not
    completed, and its note says what was not searched. Evaluations are not counted: the search
    stops by seconds, or at the end. An instance whose model would be too large is answered by the
    problem's quick method.

    Parameters
    ----------
    **options
        Arguments of the model's ``build``, such as `copies` of the temporal model.
    """
    names = names_of(task.objectives)
    if main is not None:
        require_known("objective", main, names)
    require_solver(solver)
    if not options and (reason := too_short_to_load(task.budget)):
        return _without_model(task, {"solver": solver, "note": reason})
    face, hooks = model_of(task.problem.spec)
    options = checked(face.build, METHOD, options)
    parameters = {**options, **({} if grid is None else {"grid": grid})}
    if reason := _reason_not_to_build(hooks, task, options):
        return _without_model(task, {**parameters, "solver": solver, "note": reason})
    if hooks.covers is not None:
        hooks = replace(hooks, lossless=hooks.covers(task.problem, **options))
    if hooks.cuts_of is not None:
        hooks = replace(hooks, cuts=hooks.cuts_of(task.problem))
    model = face.build(task.problem, **options)
    _require_goals(model, task)
    front = solve_model(
        task, model, hooks, solver=solver, grid=grid, main=main, parameters=parameters
    )
    return with_fallback(front, task)


def _require_goals(model: Any, task: Task[Problem]) -> None:
    """Raise unless a model has every goal by its name."""
    whose = f"the model of {task.problem.problem}"
    if not hasattr(model, "component"):
        raise UnsupportedError(
            f"{whose} is of type {type(model).__name__}; build returns a pyomo ConcreteModel"
        )
    for name in names_of(task.objectives):
        if model.component(name) is None:
            raise UnsupportedError(f"{whose} has no Expression or Objective {name!r}, its goal")


def bounds(problem: Problem, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the lower-bound set that the problem's model proves, and the plans it met."""
    proof = run(Task(problem, front.objectives, budget, seed=0, start=front))
    own = proof.runs[0]
    yield Bounds(
        np.array(proof.bounds).reshape(-1, len(front.objectives)),
        own.solver_calls,
        own.completed,
        proof.points,
        facts=own.parameters,
    )


def _without_model(task: Task[Problem], facts: dict[str, Any]) -> Front:
    """Return quick plans, and why there is no model."""
    none = task.front((), method=METHOD, completed=False, parameters=facts)
    return with_fallback(none, task)


def _reason_not_to_build(hooks: Hooks, task: Task[Problem], options: dict[str, Any]) -> str:
    """Say why the model cannot be of use, if so."""
    if reasons := task.problem.infeasibility():
        return "; ".join(reasons)
    size = 0 if hooks.size is None else hooks.size(task.problem, **options)
    affordable = min(MAX_COEFFICIENTS, COEFFICIENTS_PER_SECOND * task.budget.seconds_left / 2)
    if size > affordable:
        return (
            f"the model has about {size:,} coefficients; "
            f"at most {math.floor(affordable):,} are built in this time"
        )
    return ""
