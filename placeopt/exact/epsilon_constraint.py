"""``epsilon-constraint``: the exact front of a problem that has a linear Pyomo model."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError, require_known
from placeopt.core.files.arrays import Arrays
from placeopt.core.fronts.certificate import Bounds
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import Plan, Status, names_of
from placeopt.core.parameters import checked
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.exact.memory import Enumeration, Found, SearchHistory
from placeopt.exact.oracles import Oracle
from placeopt.exact.solver_registry import LIBRARIES, require_solver

if TYPE_CHECKING:
    import pyomo.environ as pyo

#: Seconds within which no model is built where Pyomo is not imported yet: the import alone takes
#: one, and a quick answer must follow.
LOADING_SECONDS = 1.5
#: Evaluations of the quick method that stands in where a search finds nothing.
_QUICK_EVALUATIONS = 200
METHOD = "epsilon-constraint"
#: Coefficients of the largest model that is built, and how many are built in a second.
MAX_COEFFICIENTS, COEFFICIENTS_PER_SECOND = 4_000_000, 200_000


def too_short_to_load(budget: Budget) -> str:
    """Say that the time left is too short to import the modelling library, if so."""
    if "pyomo.environ" in sys.modules or budget.seconds_left >= LOADING_SECONDS:
        return ""
    return (
        f"the time limit left {budget.seconds_left:.2g} s, too short to load the solver's library: "
        f"{LOADING_SECONDS:g} s are needed; these are quick plans"
    )


def with_fallback(front: Front, task: Task[Problem]) -> Front:
    """Return a front that is not empty-handed.

    Where it has no points, it gets those of the plans to start from or of the problem's quick
    method. Where these have none either, the front carries their least-violating plan.
    """
    if front.points:
        return replace(merge([front]), runs=front.runs)
    others = []
    start, quick = task.start, task.problem.spec.method(task.problem.spec.quick)
    names = names_of(task.objectives)
    if start is not None and start.points and names_of(start.objectives) == names:
        others.append(start)
    elif quick is not None:
        left = None if task.budget.seconds_limit is None else max(1e-3, task.budget.seconds_left)
        budget = Budget(_QUICK_EVALUATIONS, left, clock=task.budget.clock)
        small = replace(task, budget=budget, start=None)
        with contextlib.suppress(PlaceoptError):  # no plan can satisfy the instance
            others.append(quick.load()(small))
    return replace(merge([front, *others]), runs=front.runs)


def solve_model(
    task: Task[Problem],
    model: pyo.ConcreteModel,
    *,
    solver: str = "highs",
    grid: int | None = None,
    main: str | None = None,
    parameters: dict[str, Any] | None = None,
) -> Front:
    """Return the front of a Pyomo model that remembers its problem.

    All plans are solutions of the model, whatever constraints were added to it, or come from
    ``task.start``. Where it has no solution the front is empty and says so; see `run`.
    """
    from placeopt.exact.goals import own_goals
    from placeopt.exact.model_front import ModelSearch

    names = names_of(task.objectives)
    model_search = ModelSearch(model, own_goals(model, names), task.budget, judged=True)
    model_search.require_fit(solver)
    compiled, origin = model_search.compiled, model_search.origin
    assert origin is not None
    oracle = Oracle(compiled, task.budget, solver, task.seed, origin=origin, judged=True)
    before = _Before.of(task)
    known = oracle.known([*([p.plan for p in task.start] if task.start else ()), *before.plans])
    search = model_search.ask(
        oracle,
        main=None if main is None else names.index(main),
        grid=grid,
        known=known,
        jobs=1 if origin.cuts is not None else task.workers.jobs,  # cuts change later questions
        proofs=before.proofs,
        on_answer=before.keep,
        plan_of=lambda found: found.payload.plan,
        limits=compiled.limits_in_units(task.most),
    )
    facts = {**(parameters or {}), "solver": solver, "main": names[search.main]}
    if origin.omitted:
        facts["note"] = f"the model leaves out {origin.omitted}: these were not searched"

    def candidate(found: Found) -> Candidate:
        gap = search.gap(found.values, compiled.precision)
        status: Status = "optimal" if gap is None else "bounded"
        return Candidate(found.payload.plan, *(() if origin.omitted else (status, gap)))

    front = task.front(
        map(candidate, search.points),
        method=METHOD,
        bounds=() if origin.omitted else model_search.bounds(search).tolist(),
        solver_calls=search.solves + before.solves,
        completed=not origin.omitted and (search.complete or search.status == "grid"),
        parameters={**facts, "status": search.status},
        libraries=(LIBRARIES[solver], "pyomo"),
    )
    return (
        front if front.points else replace(front, reasons=_why_empty(front, search, origin.omitted))
    )


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
        left = task.load_checkpoint()
        if left is None:
            return cls(task)
        return cls(task, left.header["plans"], left.header["solves"], left.arrays)

    def keep(self, memory: SearchHistory, solves: int) -> None:
        """Write what is known now, now and then."""
        self.task.save_checkpoint(
            lambda: Arrays(
                {
                    "solves": self.solves + solves,
                    "plans": [point.payload.plan for point in memory.points],
                },
                memory.proofs,
            )
        )


def _why_empty(front: Front, search: Enumeration, omitted: str) -> tuple[str, ...]:
    """Say why a search in a model came back without a plan."""
    if search.points:  # the limits on goals are why
        return front.reasons
    reason = "the model has no solution" if search.complete else "no plan was found in time"
    if omitted:
        reason += f"; it leaves out {omitted}, so a plan may exist"
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
    from placeopt.exact.goals import built, require_model

    module = task.problem.spec.load("model")
    require_model(module, task.problem.problem)
    options = checked(module.build, METHOD, options)
    parameters = {**options, **({} if grid is None else {"grid": grid})}
    if reason := _reason_not_to_build(module, task, options):
        return _without_model(task, {**parameters, "solver": solver, "note": reason})
    model = built(module, task.problem, names, options)
    front = solve_model(task, model, solver=solver, grid=grid, main=main, parameters=parameters)
    return with_fallback(front, task)


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


def _reason_not_to_build(module: Any, task: Task[Problem], options: dict[str, Any]) -> str:
    """Say why the model cannot be of use, if so."""
    if reasons := task.problem.infeasibility():
        return "; ".join(reasons)
    size = module.size(task.problem, **options) if hasattr(module, "size") else 0
    affordable = min(MAX_COEFFICIENTS, COEFFICIENTS_PER_SECOND * task.budget.seconds_left / 2)
    if size > affordable:
        return (
            f"the model has about {size:,} coefficients; "
            f"at most {math.floor(affordable):,} are built in this time"
        )
    return ""
