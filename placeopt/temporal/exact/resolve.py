"""From the relaxed front to the true one: which points can start together, and what lies between those that cannot and the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import nondominated
from placeopt.temporal.exact.certificate import Schedule, Scheduler
from placeopt.temporal.exact.columns import Columns, bin_columns
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.dp import Relaxed, program, run_pass, targets_of, zones_below
from placeopt.temporal.exact.labels import Targets

#: Labels that one enumeration may keep, first and at last; one that needs more is cut into its boxes.
_MOST_LABELS = (250_000, 3_000_000)
#: Boxes enumerated at once.
_AT_ONCE = 32
#: How far above the relaxed points partitions are enumerated first, as shares of the cost range.
_REACH = (0.0, 0.002, 0.01)


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

    def add(
        self, partition: Sequence[int], schedule: Schedule | None, scheduler: Scheduler
    ) -> None:
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


def resolve(
    columns: Columns,
    completion: Completion,
    relaxed: Relaxed,
    budget: Budget,
    effort: float = np.inf,
) -> Resolved:
    """Return the true front, as far as the budget allows.

    Between the feasible points, in zones that hold a relaxed point, all partitions are enumerated and scheduled at the least cost:
    first little above the relaxed points and with their bin plans, since that finds plans which make the zones small; at last
    with all bin plans, since a machine may have to be busy for longer than it need be alone. A zone that holds nothing feasible
    then drops out of the bound set.

    Parameters
    ----------
    effort : float
        Labels and columns that the enumerations may look at.
    """
    resolved, exact = _certified(columns, relaxed)
    _repair(columns, relaxed, resolved, exact)
    points = relaxed.values[~exact]
    if len(points) and relaxed.complete:
        points = _resolve_points(columns, completion, resolved, points, budget, effort)
    resolved.bounds = _minimal(np.concatenate((resolved.values, points)))
    resolved.certified = sum(tuple(p) in resolved.plans for p in relaxed.values.tolist())
    return resolved


def _resolve_points(
    columns: Columns,
    completion: Completion,
    resolved: Resolved,
    points: np.ndarray,
    budget: Budget,
    effort: float,
) -> np.ndarray:
    """Look for plans near points that have none; return the points that may yet have plans in reach."""
    search = _Enumeration(columns, completion, resolved, budget, effort)
    for reach in _REACH:
        points = points[[tuple(p) not in resolved.plans for p in points.tolist()]]
        search.near(points, int(reach * completion.spread[1]))
    points = points[[tuple(p) not in resolved.plans for p in points.tolist()]]
    if len(points) == 0 or search.stopped:
        return points
    search = _Enumeration(
        bin_columns(columns.numbers, everything=True), completion, resolved, budget, search.effort
    )
    return _still_open(resolved.values, points, search.between(points), columns)


def _repair(columns: Columns, relaxed: Relaxed, resolved: Resolved, exact: np.ndarray) -> None:
    """Schedule the partitions that cannot start together as cheaply as they can, so that there is a plan near every point."""
    scheduler = Scheduler(columns)
    for k in np.flatnonzero(~exact):
        resolved.add(
            relaxed.partitions[k], scheduler.least_cost(relaxed.partitions[k], 2**60)[0], scheduler
        )


class _Enumeration:
    """Enumerates the partitions that may lie in boxes, and schedules them at the least cost."""

    def __init__(
        self,
        columns: Columns,
        completion: Completion,
        resolved: Resolved,
        budget: Budget,
        effort: float,
    ):
        self.columns, self.completion, self.resolved, self.budget, self.effort = (
            columns,
            completion,
            resolved,
            budget,
            effort,
        )
        self.model, self.order = program(columns, completion)
        self.scheduler = Scheduler(columns)

    @property
    def stopped(self) -> bool:
        """Whether time or effort is used up."""
        return self.budget.out_of_time or self.effort <= 0

    def near(self, points: np.ndarray, reach: int) -> None:
        """Look at vectors with no more latency and interruption than a point and at most `reach` more cost, where no plan is as good."""
        if len(points) and not self.stopped:
            upper, boxes = (
                zones_below(self.columns, self.resolved.values),
                points + np.array([1, reach + 1, 1]),
            )
            self._run(
                np.unique(
                    np.minimum(boxes[:, None, :], upper[None, :, :])[_below(points, upper)], axis=0
                ),
                points,
                _MOST_LABELS[:1],
            )

    def between(self, points: np.ndarray) -> np.ndarray:
        """Look at the zones of the plans that hold a point, the lowest first; return those that are done, by their upper bounds."""
        upper = zones_below(self.columns, self.resolved.values)
        return self._run(upper[_below(points, upper).any(axis=0)], points, _MOST_LABELS)

    def _run(
        self, upper: np.ndarray, points: np.ndarray, allowances: tuple[int, ...]
    ) -> np.ndarray:
        """Enumerate boxes, many at once with few labels, then those that need more; return the upper bounds of those that are done."""
        targets = targets_of(
            upper[np.argsort(_height(upper, points), kind="stable")], self.completion
        )
        waiting = [
            np.arange(k, min(k + _AT_ONCE, len(targets.upper)))
            for k in range(0, len(targets.upper), _AT_ONCE)
        ]
        closed = [np.empty((0, 3), dtype=np.int64)]
        for most_labels in allowances:
            queue, waiting = waiting[::-1], []
            while queue and not self.stopped:
                group = queue.pop()
                part = Targets(targets.upper[group], targets.limit[group], targets.tests[group])
                values, paths, done, looks = run_pass(
                    self.model, part, self.budget, most_labels, everything=True
                )
                self.effort -= looks
                if not done and len(group) > 1:
                    queue += np.array_split(group, 2)[::-1]
                elif not done:
                    waiting.append(group)
                elif self._schedule(values, paths):
                    closed.append(part.upper)
        return np.concatenate(closed)

    def _schedule(self, values: np.ndarray, paths: list[list[int]]) -> bool:
        """Schedule partitions at the least cost where that may beat the known plans; return whether all answers are proven."""
        vectors = dict(
            zip(
                (tuple(sorted(int(self.order[w]) for w in path)) for path in paths),
                values,
                strict=True,
            )
        )
        known, proven = self.resolved.values, True
        for partition in sorted(vectors, key=lambda p: (vectors[p][1], p)):
            if self.budget.out_of_time:
                return False
            vector = vectors[partition]
            rivals = (known[:, 0] <= vector[0]) & (known[:, 2] <= vector[2])
            limit = int(known[rivals, 1].min(initial=2**60))
            if vector[1] >= limit:
                continue
            schedule, sure = self.scheduler.least_cost(partition, limit)
            proven &= sure
            if schedule is not None:
                self.resolved.add(partition, schedule, self.scheduler)
                known = self.resolved.values
        return proven


def _height(upper: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return how much of the cost lies between the upper bound of a zone and the cheapest point in it."""
    return upper[:, 1] - np.where(
        _below(points, upper).T, points[None, :, 1], upper[:, None, 1]
    ).min(axis=1)


def _still_open(
    values: np.ndarray, points: np.ndarray, closed: np.ndarray, columns: Columns
) -> np.ndarray:
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
