"""`placeopt.enumerate`: the exact front of any Pyomo model with linear or quadratic goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from placeopt.core.budget import Budget, Progress
from placeopt.core.errors import InfeasibleInstanceError, UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Point
from placeopt.exact.goals import goals_of
from placeopt.exact.model_search import ModelSearch, front_without_points
from placeopt.exact.solver_registry import check_options, choose, require_solver

#: Seconds.
_NO_TIME = 1e-9


def enumerate(
    model: pyo.ConcreteModel,
    objectives: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    seconds: float | None = None,
    jobs: int = 1,
    solver: str | None = None,
    start: Front | None = None,
    steps: Mapping[str, float] | None = None,
    gap: float | Mapping[str, float] | None = None,
    max_points: int | None = None,
    options: Mapping[str, Any] | None = None,
    on_point: Callable[[Point], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
) -> Front:
    """Enumerate the non-dominated points of a Pyomo model with linear constraints.

    Goals are linear, or quadratic and convex where they are minimised.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        It is not changed, but for the values of its variables.
    objectives : mapping or sequence, optional
        The goals: ``{"cost": model.cost, "profit": (model.profit, "max")}``, or names or
        Objectives of the model. By default all Objectives of the model, each in its own sense,
        whether active or not; of a model that placeopt built, the goals of its problem and the
        Objectives added since.
    seconds : float, optional
        Time limit. What was found and proven by then is returned; with 0 nothing is asked.
    jobs : int
        Questions that are solved at the same time. The points are the same for any number.
    solver : {"highs", "scip", "cp-sat", "cbc", "cplex", "gurobi"}, optional
        CP-SAT takes whole numbers only, and comes with the extra ``cp-sat``. By default HiGHS, or
        CP-SAT where it is installed and quicker: see `docs/enumerate.md`. The last three are those
        that Pyomo finds installed.
    start : Front, optional
        To go on from, of this function for the same model: its points are kept and its bounds count
        as proven, so that only what is open is asked. Of a changed model the points are kept that
        are still feasible.
    steps : mapping of goal to number, optional
        Smallest difference that two values of a goal can have. Goals that only depend on whole
        numbers need none: their coefficients show it.
    gap : number, or mapping of goal to number, optional
        For continuous goals: every feasible vector is at most so much better than some point, in
        the goal's own unit. One continuous goal needs no gap.
    max_points : int, optional
        Stop at so many non-dominated points.
    options : mapping, optional
        The solver's own options by its names, such as ``{"mip_heuristic_effort": 0.0}``.
    on_point : callable, optional
        Called with each `Point` when it is found.
    on_progress : callable, optional
        Called with a `placeopt.core.budget.Progress`, at most ten times a second.
    budget : Budget, optional
        Instead of `seconds` and `on_progress`: for callers who want to cancel.

    Returns
    -------
    Front
        Values in the model's own senses. ``plan`` of a point holds the variables that are not zero
        by name, or the plan of the problem that placeopt built the model for; ``point.load(model)``
        gives it to the variables. ``bounds`` is valid however early the search ends.
        ``runs[0].parameters`` has ``status``, one of `placeopt.exact.memory.STATUSES`, and
        ``reason``.

    Raises
    ------
    UsageError
        No goals, unknown names, an unbounded goal, a wrong step, continuous goals without a gap.
    UnsupportedError
        A constraint is not linear, or a goal neither that nor convex and quadratic.

    Examples
    --------
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var(range(3), domain=pyo.Binary)
    >>> model.value = pyo.Objective(expr=3 * model.x[0] + 2 * model.x[1] + model.x[2], sense=-1)
    >>> model.weight = pyo.Objective(expr=2 * model.x[0] + model.x[1] + 2 * model.x[2])
    >>> [point.values for point in enumerate(model).points]
    [(0.0, 0.0), (2.0, 1.0), (3.0, 2.0), (5.0, 3.0), (6.0, 5.0)]
    """
    check_request(model, solver, options)
    _check(start, jobs, max_points)
    budget = budget or budget_of(seconds, on_progress)
    goals = goals_of(model, objectives, steps, gap)
    facts = {"solver": solver or "highs", "jobs": jobs, "options": dict(options or {})}
    try:
        search = ModelSearch(model, goals, budget)
    except InfeasibleInstanceError as error:
        return front_without_points(model, goals, budget, facts, error.reasons)
    if solver is not None:
        search.require_fit(solver)
    elif not options:
        facts["solver"] = choose(search.compiled.program)
    return search.run(facts, start, max_points, on_point)


def budget_of(
    seconds: float | None, on_progress: Callable[[Progress], None] | None = None
) -> Budget:
    """Return the budget of a time limit, which may be 0."""
    # A budget has a positive limit; the shortest one is over before the first question.
    return Budget(None, _NO_TIME if seconds == 0 else seconds, on_progress)


def check_request(model: Any, solver: str | None, options: Mapping[str, Any] | None) -> None:
    """Raise unless this is a model, its fixed variables have values, and the solver is known."""
    if not isinstance(model, pyo.ConcreteModel):
        remedy = "give a pyomo ConcreteModel; of an AbstractModel its create_instance(data)"
        raise UsageError(f"the model is of type {type(model).__name__}; {remedy}")
    for variable in model.component_data_objects(pyo.Var, active=True, descend_into=True):
        if variable.fixed and variable.value is None:
            raise UsageError(f"variable {variable.name} is fixed and has no value; fix it at one")
    if solver is not None:
        require_solver(solver)
    try:
        check_options(solver or "highs", options or {})
    except ValueError as error:
        raise UsageError(f"{error}; see the list of options of the solver") from None


def _check(start: Any, jobs: int, max_points: int | None) -> None:
    if not (start is None or isinstance(start, Front)):
        raise UsageError(f"start is {start!r}; give a Front that this function returned")
    for name, value in (("jobs", jobs), ("max_points", max_points)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise UsageError(f"{name} is {value!r}; give a whole number of at least 1")
