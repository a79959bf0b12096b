"""From what an enumeration found and proved to a front: units to values, proofs to statuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.budget import Budget
from placeopt.errors import PlaceoptError
from placeopt.exact.enumeration import Enumeration, Found
from placeopt.front import Front, Objective, merge
from placeopt.problems import row
from placeopt.problems.base import Problem
from placeopt.problems.judge import Candidate, judged


def in_units(values: Sequence[float], objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Return the referee's values as multiples of the objectives' steps, whole numbers; as they are where there is no step."""
    return tuple(
        float(v) if o.step is None else float(round(v / o.step))
        for v, o in zip(values, objectives, strict=True)
    )


def in_values(units: np.ndarray, objectives: Sequence[Objective]) -> np.ndarray:
    """Return vectors in units as values; a whole number of units gives the very float that the referee gives for it."""
    values = np.array(units, dtype=float)
    for k, objective in enumerate(objectives):
        if objective.step is None:
            continue
        parts = round(1 / objective.step) if objective.step <= 1 else 0
        exact = parts and abs(1 / parts - objective.step) <= 1e-12 * objective.step
        values[:, k] = values[:, k] / parts if exact else values[:, k] * objective.step
    return values


def front_of(
    problem: Problem,
    objectives: Sequence[Objective],
    search: Enumeration,
    plan_of: Callable[[Any], dict[str, Any]],
    *,
    method: str,
    seed: int | None,
    budget: Budget,
    proven: Callable[[Any], bool] = lambda payload: True,
    bounded: bool = True,
    parameters: dict[str, Any] | None = None,
    libraries: Sequence[str] = (),
) -> Front:
    """Return the front of an enumeration, judged by the referee.

    A point is ``optimal`` where the search proves that nothing feasible dominates it, else ``bounded``, with the share of its
    main value that might still be saved as its gap.

    Parameters
    ----------
    plan_of, proven : callable
        The plan of a payload, and whether a proof may be claimed for it.
    bounded : bool
        False where the oracle does not see all plans: nothing is proven then.
    """
    searched = search.objectives or objectives
    candidates = [
        Candidate(
            plan_of(point.payload), *(_proof(search, point, searched, proven) if bounded else ())
        )
        for point in search.points
    ]
    return judged(
        problem,
        objectives,
        candidates,
        method=method,
        seed=seed,
        budget=budget,
        bounds=in_values(search.bounds, searched).tolist() if bounded else (),
        solver_calls=search.solves,
        completed=search.complete,
        parameters=parameters,
        libraries=libraries,
    )


def _proof(
    search: Enumeration,
    point: Found,
    objectives: Sequence[Objective],
    proven: Callable[[Any], bool],
) -> tuple[str, float | None]:
    """Return status and gap of a point."""
    gap = search.gap(point.values, [o.step is not None for o in objectives])
    return ("optimal", None) if gap is None and proven(point.payload) else ("bounded", gap or 0.0)


def with_fallback(
    front: Front,
    problem: Problem,
    objectives: Sequence[Objective],
    seed: int | None,
    start: Front | None = None,
) -> Front:
    """Return a front that is not empty-handed: where it has no points, with those of `start` or of the greedy heuristic.

    Where these have none either, the front carries their least-violating plan.
    """
    others = []
    if (
        not front.points
        and start is not None
        and start.points
        and [o.name for o in start.objectives] == [o.name for o in objectives]
    ):
        others.append(start)
    elif not front.points:
        try:
            greedy = row("placeopt.heuristics", problem).greedy
            others.append(greedy(problem, tuple(objectives), Budget(evaluations=10_000), seed or 0))
        except (PlaceoptError, AttributeError):
            pass  # a problem without a greedy heuristic, or one that no plan can satisfy
    return replace(merge([front, *others]), runs=front.runs)
