"""From the plans that a method proposes to a front: the referee sees every one of them."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from placeopt.budget import Budget
from placeopt.front import Front, Objective, Point, Rejected, Run, severity
from placeopt.problems.base import Problem


@dataclass(frozen=True)
class Candidate:
    """A plan that a method proposes, and what it can prove of it."""

    plan: dict[str, Any]
    status: str = "heuristic"
    gap: float | None = None


def judged(
    problem: Problem,
    objectives: Sequence[Objective],
    candidates: Iterable[Candidate],
    *,
    method: str,
    seed: int | None,
    budget: Budget,
    bounds: Sequence[Sequence[float]] = (),
    solver_calls: int = 0,
    completed: bool = True,
    parameters: dict[str, Any] | None = None,
    libraries: Sequence[str] = (),
) -> Front:
    """Return the front of the candidates that the referee finds feasible, with its values.

    Where none is, the front carries the least-violating one and the reasons.

    Parameters
    ----------
    objectives : sequence of Objective
        A selection of ``problem.objectives``; the order of the values.
    libraries : sequence of str
        Distributions whose versions belong to the facts of the run.
    """
    with _collector_at_rest():
        points, rejected = _sorted_out(problem, objectives, candidates, method, seed)
        reasons: tuple[str, ...] = ()
        if not points:
            reasons = problem.infeasibility() or tuple(
                v.message for v in (rejected.violations[:20] if rejected else ())
            )
        run = Run(
            method,
            seed,
            budget.seconds,
            budget.evaluations,
            solver_calls,
            completed,
            parameters or {},
            versions(libraries),
        )
        return Front(
            problem.instance_name,
            tuple(objectives),
            tuple(points),
            tuple(map(tuple, bounds)),
            (run,),
            rejected,
            reasons,
        )


def _sorted_out(
    problem: Problem,
    objectives: Sequence[Objective],
    candidates: Iterable[Candidate],
    method: str,
    seed: int | None,
) -> tuple[list[Point], Rejected | None]:
    """Return the feasible plans as points, and the least-violating one where there are none."""
    columns = problem.columns(objectives)
    points: list[Point] = []
    rejected: Rejected | None = None
    for candidate in candidates:
        verdict = problem.evaluate(candidate.plan)
        values = tuple(verdict.values[c] for c in columns)
        if verdict.feasible:
            points.append(
                Point(values, candidate.plan, candidate.status, candidate.gap, method, seed)
            )
        elif not points and (
            rejected is None or severity(verdict.violations) < severity(rejected.violations)
        ):
            rejected = Rejected(candidate.plan, values, verdict.violations)
    return points, rejected


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector at rest.

    Thousands of plans are millions of small live objects without cycles; walking them again and again takes a fifth of a run.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Return the installed version of each distribution, and of placeopt."""
    found = {}
    for name in ("placeopt", *libraries):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
