"""The method `bin-plans`: the exact front, by what can share a machine for how long."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.certificate import graded
from placeopt.core.fronts.front import Front
from placeopt.core.task import Candidate, Task
from placeopt.temporal.exact.bounds import Lines
from placeopt.temporal.exact.front import Completion, relaxed_front, states_fit
from placeopt.temporal.exact.schedule import Scheduler, resolve
from placeopt.temporal.exact.tables import (
    Patterns,
    build_patterns,
    numbers,
    seconds_of_tables,
    staircase,
)
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import greedy


def bin_plans(
    task: Task[Temporal],
    *,
    effort: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="Labels and patterns looked at to resolve points whose machines do not "
            "agree on starts; four million take about a second.",
        ),
    ] = 4e8,
    lines: Lines = 40,
) -> Front:
    """Return the exact front of a small temporal instance, with a proof for every point.

    Nothing is random. Plans in ``task.start``, greedy ones by default, save work: what they
    dominate is not looked at. They are on the front where time ends before better ones are found.

    Returns
    -------
    Front
        Points are ``optimal`` where no plan can dominate them, ``bounded`` where that is open:
        machines that are cheapest alone may not agree on when a request starts. Every plan is
        weakly dominated by a vector of `Front.bounds`.

    Raises
    ------
    UnsupportedError
        Not a temporal instance; too many sets of replicas, at all or for the time limit; offers
        with ``max_instances``; numbers too wide for exact sums.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    data = numbers(task.problem, task.objectives)
    if data.limited:
        raise UnsupportedError(
            "bin plans cut machines in two where that costs nothing, so they cannot keep "
            "max_instances; use 'bound' and a search"
        )
    needed = seconds_of_tables(data.replicas)
    if needed > max(1.0, task.budget.seconds_left):
        raise UnsupportedError(
            f"bin plans need about {needed:.2g} s for the splits of these sets of replicas, and "
            f"{task.budget.seconds_left:.2g} s are left; give more time, or use 'bound' and a "
            "search"
        )
    budget = task.budget
    start = task.start or greedy(task)
    values_in = [point.plan for point in start]
    patterns = build_patterns(data)
    if not states_fit(patterns):
        raise UnsupportedError(
            "the states of this instance are too many for bin plans; use 'bound' and a search"
        )
    completion = Completion(patterns)
    known = data.all_whole(plan for plan in values_in if task.problem.evaluate(plan).feasible)
    relaxed = relaxed_front(patterns, completion, budget, known)
    resolved = resolve(patterns, completion, relaxed, budget, effort)
    if not relaxed.complete:
        resolved.bounds = staircase(completion.cuts, *completion.ranges, lines)
    if not resolved.plans:
        alone, scheduler = _alone(patterns), Scheduler(patterns)
        resolved.add(alone, scheduler.least_cost(alone, 2**60)[0], scheduler)
    facts: dict[str, Any] = {
        "columns": len(patterns),
        "relaxed_points": len(relaxed.values),
        "certified_relaxed_points": resolved.certified,
    }
    if relaxed.complete and len(resolved.without_plan(resolved.bounds)) == 0:
        facts["status"] = "complete"
    candidates = [Candidate(schedule.plan(data)) for schedule in resolved.plans.values()]
    bounds = data.values(resolved.bounds)
    front = task.front(
        candidates + [Candidate(plan) for plan in values_in],
        method="bin-plans",
        bounds=bounds.tolist(),
        completed=relaxed.complete and not task.budget.out_of_time,
        parameters=facts,
    )
    return graded(front, "cost_usd")


def _alone(patterns: Patterns) -> tuple[int, ...]:
    """Return the partition in which every replica has the cheapest machine to itself."""
    single = patterns.counts.sum(axis=1) == 1
    partition: list[int] = []
    for i, count in enumerate(patterns.numbers.replicas):
        able = np.flatnonzero(single & (patterns.counts[:, i] == 1))
        partition += [int(able[patterns.cost[able].argmin()])] * int(count)
    return tuple(partition)
