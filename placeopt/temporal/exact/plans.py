"""The method `bin-plans`: the exact front, by what can share a machine for how long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.temporal.exact.bounds import grade
from placeopt.temporal.exact.certificate import Scheduler
from placeopt.temporal.exact.columns import Columns, bin_columns
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.dp import relaxed_front, states_fit
from placeopt.temporal.exact.numbers import Numbers, numbers
from placeopt.temporal.exact.resolve import resolve
from placeopt.temporal.exact.staircase import staircase
from placeopt.temporal.instance import Temporal


def bin_plans(
    task: Task[Temporal],
    *,
    effort: float = 4e8,
    lines: int = 40,
) -> Front:
    """Return the exact front of a small temporal instance, with a proof for every point.

    Parameters
    ----------
    seed : int
        Not used: nothing is left to chance.
    start : Front, optional
        Plans that save work: what they beat is not looked at.
    effort : float
        Labels and columns that may be looked at to resolve points whose machines do not agree on starts; four million take about a second.
    lines : int
        Where the budget ends early, the bound set has about ``lines ** 2`` vectors.

    Returns
    -------
    Front
        Points are ``optimal`` where nothing is proven to beat them, ``bounded`` where something might: machines that are cheapest
        alone may not agree on when a request starts. `Front.bounds` is the set that all plans are proven not to beat.

    Raises
    ------
    UnsupportedError
        Not a temporal instance; too many sets of replicas; offers with ``max_instances``; numbers too wide for exact sums.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    data = numbers(task.problem, task.objectives)
    if data.limited:
        raise UnsupportedError(
            "bin plans cut machines in two where that costs nothing, so they cannot keep max_instances; use 'bound' and a search"
        )
    columns = bin_columns(data)
    if not states_fit(columns):
        raise UnsupportedError(
            "the states of this instance are too many for bin plans; use 'bound' and a search"
        )
    completion = Completion(columns)
    known = _known(data, task.start)
    relaxed = relaxed_front(columns, completion, task.budget, known if len(known) else None)
    resolved = resolve(columns, completion, relaxed, task.budget, effort)
    if not relaxed.complete:
        resolved.bounds = staircase(completion.cuts, *completion.ranges, lines)
    if not resolved.plans:
        alone = _alone(columns)
        resolved.add(alone, Scheduler(columns).least_cost(alone, 2**60)[0], Scheduler(columns))
    facts = {
        "columns": len(columns),
        "relaxed_points": len(relaxed.values),
        "certified_relaxed_points": resolved.certified,
    }
    candidates = [Candidate(schedule.plan(data)) for schedule in resolved.plans.values()]
    if task.start is not None:
        candidates += [Candidate(point.plan) for point in task.start.points]
    bounds = data.values(resolved.bounds)
    front = task.front(
        candidates,
        method="bin-plans",
        bounds=bounds.tolist(),
        completed=relaxed.complete and not task.budget.out_of_time,
        parameters=facts,
    )
    return replace(front, points=tuple(grade(front.objectives, front.points, bounds)))


def _known(data: Numbers, start: Front | None) -> np.ndarray:
    """Return the whole-number vectors of the feasible plans to start from, shape (plans, 3)."""
    plans = (
        []
        if start is None
        else [point.plan for point in start.points if data.problem.evaluate(point.plan).feasible]
    )
    return np.array([data.whole(plan) for plan in plans], dtype=np.int64).reshape(-1, 3)


def _alone(columns: Columns) -> tuple[int, ...]:
    """Return the partition in which every replica has the machine to itself that is cheapest for it."""
    single = columns.counts.sum(axis=1) == 1
    partition: list[int] = []
    for i, count in enumerate(columns.numbers.replicas):
        able = np.flatnonzero(single & (columns.counts[:, i] == 1))
        partition += [int(able[columns.cost[able].argmin()])] * int(count)
    return tuple(partition)
