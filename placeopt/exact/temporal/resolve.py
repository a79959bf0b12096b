"""From the relaxed front to the true one: which points can start together, and what lies between those that cannot and the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.budget import Budget
from placeopt.exact.temporal.certificate import Schedule, Scheduler
from placeopt.exact.temporal.columns import Columns, bin_columns
from placeopt.exact.temporal.completion import Completion
from placeopt.exact.temporal.dp import Relaxed, program, run_pass, targets_of, zones_below
from placeopt.exact.temporal.labels import Targets
from placeopt.front import nondominated

#: Labels that one enumeration may keep; an enumeration that needs more is cut into its zones.
_MOST_LABELS = 3_000_000
#: Zones enumerated at once.
_AT_ONCE = 64
#: How far above the relaxed points partitions are enumerated first, as shares of the cost range.
_REACH = (0.0, 0.001, 0.004, 0.015)


@dataclass
class Resolved:
    """Feasible plans by their whole-number vectors, and what is proven.

    Attributes
    ----------
    plans : dict
        Vector -> schedule.
    bounds : ndarray of int64, shape (k, 3)
        Every plan is weakly dominated by one of these vectors.
    certified : int
        How many points of the relaxed front have a plan.
    """

    plans: dict[tuple[int, int, int], Schedule] = field(default_factory=dict)
    bounds: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    certified: int = 0

    @property
    def values(self) -> np.ndarray:
        """Vectors of all plans, shape (plans, 3)."""
        return np.array(list(self.plans), dtype=np.int64).reshape(-1, 3)

    def add(self, partition: Sequence[int], schedule: Schedule | None, scheduler: Scheduler) -> None:
        """Keep a plan, if there is one."""
        if schedule is not None:
            self.plans.setdefault(scheduler.vector(partition, schedule), schedule)


def _certified(columns: Columns, relaxed: Relaxed) -> tuple[Resolved, np.ndarray]:
    """Return a plan for every point of the relaxed front whose machines can agree on starts, and which points these are."""
    scheduler, resolved = Scheduler(columns), Resolved(bounds=relaxed.values)
    exact = np.zeros(len(relaxed.values), dtype=bool)
    for k, partition in enumerate(relaxed.partitions):
        schedule = scheduler.certify(partition)
        exact[k] = schedule is not None
        resolved.add(partition, schedule, scheduler)
    return resolved, exact


def resolve(columns: Columns, completion: Completion, relaxed: Relaxed, budget: Budget) -> Resolved:
    """Return the true front, as far as the budget allows.

    Between the feasible points, in zones that hold a relaxed point, all partitions are enumerated and scheduled at the least cost:
    first little above the relaxed points and with their bin plans, since that finds plans which make the zones small; at last
    with all bin plans, since a machine may have to be busy for longer than it need be alone. A zone that holds nothing feasible
    then drops out of the bound set.
    """
    resolved, exact = _certified(columns, relaxed)
    _repair(columns, relaxed, resolved, exact)
    points = relaxed.values[~exact]
    stages = [(columns, reach) for reach in _REACH if relaxed.complete]
    if len(points) and relaxed.complete:
        stages.append((bin_columns(columns.numbers, everything=True), np.inf))
    for plans, reach in stages:
        points = points[[tuple(p) not in resolved.plans for p in points.tolist()]]
        if len(points) and not budget.out_of_time:
            closed = _enumerate(plans, completion, resolved, points, reach * completion.spread[1], budget)
            if plans is not columns:
                points = _still_open(resolved.values, points, closed, plans)
    resolved.bounds = _minimal(np.concatenate((resolved.values, points)))
    resolved.certified = sum(tuple(p) in resolved.plans for p in relaxed.values.tolist())
    return resolved


def _repair(columns: Columns, relaxed: Relaxed, resolved: Resolved, exact: np.ndarray) -> None:
    """Schedule the partitions that cannot start together as cheaply as they can, so that there is a plan near every point."""
    scheduler = Scheduler(columns)
    for k in np.flatnonzero(~exact):
        resolved.add(relaxed.partitions[k], scheduler.least_cost(relaxed.partitions[k], 2**60)[0], scheduler)


def _enumerate(columns: Columns, completion: Completion, resolved: Resolved, points: np.ndarray, reach: float, budget: Budget) -> np.ndarray:
    """Enumerate and schedule all partitions that cost at most `reach` more than a point, in the zones that hold one of `points`.

    Returns
    -------
    ndarray, shape (k, 3)
        Upper bounds of the zones that are done.
    """
    model, order = program(columns, completion)
    scheduler = Scheduler(columns)
    targets = targets_of(_boxes(zones_below(columns, resolved.values), points, reach), completion)
    waiting = [np.arange(k, min(k + _AT_ONCE, len(targets.upper))) for k in range(0, len(targets.upper), _AT_ONCE)][::-1]
    closed = [np.empty((0, 3), dtype=np.int64)]
    while waiting and not budget.out_of_time:
        group = waiting.pop()
        part = Targets(targets.upper[group], targets.limit[group], targets.tests[group])
        values, paths, done = run_pass(model, part, budget, _MOST_LABELS, everything=True)
        if not done:
            waiting += [half for half in np.array_split(group, 2)[::-1] if len(group) > 1]
            continue
        cost = dict(zip((tuple(sorted(int(order[w]) for w in path)) for path in paths), values, strict=True))
        if _schedule_all(scheduler, resolved, sorted(cost, key=lambda partition: (cost[partition][1], partition)), cost, budget):
            closed.append(part.upper)
    return np.concatenate(closed)


def _boxes(upper: np.ndarray, points: np.ndarray, reach: float) -> np.ndarray:
    """Return upper bounds of where to look, smallest first.

    With a finite `reach`: the vectors that have no more latency and interruption than a point and cost at most `reach` more, as far
    as no plan is known to be as good. Otherwise: the zones that hold a point.
    """
    if reach < np.inf:
        boxes = points + np.array([1, int(reach) + 1, 1])
        boxes = np.minimum(boxes[:, None, :], upper[None, :, :])[_below(points, upper)]
        return np.unique(boxes, axis=0)
    holds = _below(points, upper).T
    height = (upper[:, 1] - np.where(holds, points[None, :, 1], 2**60).min(axis=1))[holds.any(axis=1)]
    return upper[holds.any(axis=1)][np.argsort(height, kind="stable")]


def _schedule_all(
    scheduler: Scheduler, resolved: Resolved, partitions: list[tuple[int, ...]], vectors: dict[tuple[int, ...], np.ndarray], budget: Budget
) -> bool:
    """Schedule partitions at the least cost where that may beat the known plans; return whether all answers are proven."""
    known, proven = resolved.values, True
    for partition in partitions:
        if budget.out_of_time:
            return False
        vector = vectors[partition]
        rivals = (known[:, 0] <= vector[0]) & (known[:, 2] <= vector[2])
        limit = int(known[rivals, 1].min(initial=2**60))
        if vector[1] >= limit:
            continue
        schedule, sure = scheduler.least_cost(partition, limit)
        proven &= sure
        if schedule is not None:
            resolved.add(partition, schedule, scheduler)
            known = resolved.values
    return proven


def _still_open(values: np.ndarray, points: np.ndarray, closed: np.ndarray, columns: Columns) -> np.ndarray:
    """Return the points that lie in a zone of the plans which is not done."""
    upper = zones_below(columns, values)
    upper = upper[~_below(upper, closed + 1).any(axis=1)]
    return points[_below(points, upper).any(axis=1)]


def _below(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    """Return whether each of `these` is less in everything than each of `those`, shape (these, those)."""
    return np.asarray(np.all(these[:, None, :] < those[None, :, :], axis=2))


def _minimal(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors that no other dominates."""
    unique = np.unique(vectors, axis=0)
    return unique[nondominated(unique.astype(float))]
