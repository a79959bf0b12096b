"""From what an enumeration found and proved to a front: units to values, proofs to statuses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import PlaceoptError
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import Objective, Plan, names_of
from placeopt.core.problem import Problem
from placeopt.core.task import Candidate, Task
from placeopt.exact.memory import Enumeration, Found, Precision

#: Seconds within which no model is built where Pyomo is not imported yet: the import alone takes
#: one, and a quick answer must follow.
LOADING_SECONDS = 1.5
#: Evaluations of the quick method that stands in where a search finds nothing.
_QUICK_EVALUATIONS = 200


def in_units(values: Sequence[float], objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Return the referee's values as multiples of the objectives' steps, whole numbers; as they are
    where there is no step.
    """
    return tuple(
        float(v) if o.step is None else float(round(v / o.step))
        for v, o in zip(values, objectives, strict=True)
    )


def in_values(units: np.ndarray, objectives: Sequence[Objective]) -> np.ndarray:
    """Return vectors in units as values; a whole number of units gives the very float that the
    referee gives for it.
    """
    values = np.array(units, dtype=float)
    for k, objective in enumerate(objectives):
        if objective.step is None:
            continue
        parts = round(1 / objective.step) if objective.step <= 1 else 0
        exact = parts and abs(1 / parts - objective.step) <= 1e-12 * objective.step
        values[:, k] = values[:, k] / parts if exact else values[:, k] * objective.step
    return values


def front_of(
    task: Task[Problem],
    search: Enumeration,
    plan_of: Callable[[Any], Plan],
    *,
    method: str,
    lossless: bool = True,
    parameters: dict[str, Any] | None = None,
    libraries: Sequence[str] = (),
) -> Front:
    """Return the front of an enumeration, judged by the referee.

    A point is ``optimal`` where the search proves that nothing feasible dominates it, else
    ``bounded``, with the share of its main value that might still be saved as its gap.

    Parameters
    ----------
    plan_of : callable
        The plan of a payload.
    lossless : bool
        False where the oracle does not see all plans: nothing is proven then, nor complete.
    """
    searched = search.objectives or task.objectives
    candidates = [
        Candidate(plan_of(point.payload), *(_proof(search, point, searched) if lossless else ()))
        for point in search.points
    ]
    return task.front(
        candidates,
        method=method,
        bounds=in_values(search.bounds, searched).tolist() if lossless else (),
        solver_calls=search.solves,
        completed=lossless and (search.complete or search.status == "grid"),
        parameters={**(parameters or {}), "status": search.status},
        libraries=libraries,
    )


def _proof(
    search: Enumeration, point: Found, objectives: Sequence[Objective]
) -> tuple[str, float | None]:
    """Return status and gap of a point."""
    precision = Precision(np.array([o.step is not None for o in objectives]))
    gap = search.gap(point.values, precision)
    return ("optimal", None) if gap is None else ("bounded", gap)


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
