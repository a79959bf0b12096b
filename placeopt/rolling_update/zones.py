"""Plans of the same values whose replicas stay in more zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.rolling_update.encoder import may_end
from placeopt.rolling_update.problem import RollingUpdate

Steps = list[tuple[int, int]]


def preferred(problem: RollingUpdate) -> Callable[[Plan, int], tuple[Plan, int]] | None:
    """Return what looks for plans of the same values in more zones; None where there is one zone.

    Replicas are of one workload if they are in the same groups, and in at least one.
    """
    groups = [m.groups for a in problem.applications for m in a.microservices]
    number: dict[tuple[str, ...], int] = {}
    workload = [number.setdefault(g, len(number)) if g else -1 for g in groups]
    if len({node.cluster for node in problem.nodes}) < 2 or max(Counter(groups).values()) < 2:
        return None
    return partial(_preferred, problem, workload)


def _preferred(
    problem: RollingUpdate, workload: Sequence[int], plan: Plan, tries: int
) -> tuple[Plan, int]:
    values = cache(lambda: problem.evaluate(plan).values)  # asked for where there is another plan

    def is_as_good(other: Plan) -> bool:
        verdict = problem.evaluate(other)
        return verdict.feasible and verdict.values == values()

    return in_more_zones(problem, workload, plan, is_as_good, tries)


def in_more_zones(
    problem: RollingUpdate,
    workload: Sequence[int],
    plan: Plan,
    is_as_good: Callable[[Plan], bool],
    tries: int,
) -> tuple[Plan, int]:
    """Return a plan whose replicas of one workload end in as many zones as swaps and shifts find.

    A microservice that moves goes to another node that is in use at the end, or two change places.

    Parameters
    ----------
    problem : RollingUpdate
    workload : sequence of int, length M
        The workload of every microservice; negative ones are alone.
    plan : mapping
    is_as_good : callable
        Whether a plan may stand for the one before it.
    tries : int
        Plans that may be judged.

    Returns
    -------
    plan : mapping
    tried : int
        Plans that were judged.
    """
    tried, better = 0, True
    while better:
        better, now = False, problem.steps(plan)
        for steps in _changed(problem, workload, now):
            if tried == tries:
                return plan, tried
            tried += 1
            if _zones(problem, workload, steps) <= _zones(problem, workload, now):
                continue
            if not may_end(problem.arrays, problem.arrays.final_nodes(steps)):
                continue  # the referee takes longest
            if is_as_good(other := problem.plan(steps)):
                plan, better = other, True
                break
    return plan, tried


def _end(problem: RollingUpdate, steps: Steps) -> np.ndarray:
    """Return the node of every microservice at the end, (M,), -1 for none."""
    a = problem.arrays
    end = a.final_nodes(steps)
    return np.where(end == a.waiting, -1, end)


def _covered(
    problem: RollingUpdate, workload: Sequence[int], end: np.ndarray
) -> set[tuple[int, str]]:
    """Return in which zones each workload is."""
    zone = [node.cluster for node in problem.nodes]
    ends = zip(workload, end.tolist(), strict=True)
    return {(w, zone[n]) for w, n in ends if w >= 0 and n >= 0}


def _zones(problem: RollingUpdate, workload: Sequence[int], steps: Steps) -> int:
    """Return in how many zones workloads are at the end, in all."""
    return len(_covered(problem, workload, _end(problem, steps)))


def _changed(problem: RollingUpdate, workload: Sequence[int], steps: Steps) -> Iterator[Steps]:
    """Yield the steps with another end of a replica that would bring its workload to a new zone."""
    a, end = problem.arrays, _end(problem, steps)
    zone, replicas = [node.cluster for node in problem.nodes], Counter(workload)
    covered = _covered(problem, workload, end)
    last = {m: k for k, (m, _) in enumerate(steps)}
    free = a.capacity.copy()
    for m, n in enumerate(end.tolist()):
        if n >= 0:
            free[n] -= a.new[m] if m in last else a.old[m]
    used = [n for n in np.unique(end[end >= 0]).tolist() if not a.shut[n]]
    for m in last:
        if end[m] < 0 or workload[m] < 0 or replicas[workload[m]] < 2:
            continue
        for n in used:
            if (workload[m], zone[n]) in covered or not a.may_host(m)[n]:
                continue
            if (a.new[m] <= free[n]).all():
                yield _ending(steps, last, {m: n})
            for other in last:
                gives = end[other] == n and (a.new[m] <= free[n] + a.new[other]).all()
                if gives and (a.new[other] <= free[end[m]] + a.new[m]).all():
                    yield _ending(steps, last, {m: n, other: int(end[m])})


def _ending(steps: Steps, last: dict[int, int], ends: dict[int, int]) -> Steps:
    """Return the steps with other ends of some microservices."""
    results = list(steps)
    for m, n in ends.items():
        results[last[m]] = (m, n)
    return results
