"""Plans of the same values whose replicas stay in more zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.rolling_update.encoder import may_end
from placeopt.rolling_update.problem import RollingUpdate

Steps = list[tuple[int, int]]


def preferred(problem: RollingUpdate) -> Callable[[Plan], Iterator[Plan | None]] | None:
    """Return what yields plans in more zones than a plan: see `in_more_zones`.

    Microservices with the same groups are replicas of one workload; one without a group is alone.
    None: there is one zone only, or no workload has two replicas.
    """
    groups = [m.groups for a in problem.applications for m in a.microservices]
    number: dict[tuple[str, ...], int] = {}
    workload = [number.setdefault(g, len(number)) if g else -1 for g in groups]
    replicas = Counter(w for w in workload if w >= 0)
    zones = {node.cluster for node in problem.nodes}
    if len(zones) < 2 or max(replicas.values(), default=0) < 2:
        return None
    return partial(in_more_zones, problem, workload)


def in_more_zones(
    problem: RollingUpdate, workload: Sequence[int], plan: Plan
) -> Iterator[Plan | None]:
    """Yield plans whose replicas end in more zones; None for each that may not end so.

    A microservice that moves goes to another node that is in use at the end, or two change places.

    Parameters
    ----------
    problem : RollingUpdate
    workload : sequence of int, length M
        The workload of every microservice; negative ones are alone.
    plan : mapping
    """
    a, now = problem.arrays, problem.steps(plan)
    zones = _zones(problem, workload, now)
    for steps in _changed(problem, workload, now):
        better = _zones(problem, workload, steps) > zones
        legal = better and may_end(a, a.final_nodes(steps))  # the referee takes longest
        yield problem.plan(steps) if legal else None


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
    movers = np.array([m for m in last if end[m] >= 0], dtype=np.int64)
    for m in movers.tolist():
        if workload[m] < 0 or replicas[workload[m]] < 2:
            continue
        home, host = int(end[m]), a.may_host(m)
        swaps = (a.new[movers] <= free[home] + a.new[m]).all(axis=1)
        swaps &= (a.new[m] <= free[end[movers]] + a.new[movers]).all(axis=1)
        for n in used:
            if (workload[m], zone[n]) in covered or not host[n]:
                continue
            if (a.new[m] <= free[n]).all():
                yield _ending(steps, last, {m: n})
            for other in movers[swaps & (end[movers] == n)].tolist():
                yield _ending(steps, last, {m: n, other: home})


def _ending(steps: Steps, last: dict[int, int], ends: dict[int, int]) -> Steps:
    """Return the steps with other ends of some microservices."""
    results = list(steps)
    for m, n in ends.items():
        results[last[m]] = (m, n)
    return results
