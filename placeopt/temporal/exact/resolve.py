"""From the relaxed front to the true one.

Points of the relaxed front whose machines can agree on starts are points of the true front. Around
the others, partitions are enumerated and scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import minimal
from placeopt.temporal.exact.certificate import Schedule, Scheduler
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.labels import Targets
from placeopt.temporal.exact.patterns import Patterns, build_patterns
from placeopt.temporal.exact.relaxed_front import (
    Relaxed,
    build_model,
    run_pass,
    targets_of,
    upper_bounds,
)

#: Labels that one enumeration may keep, first and at last; one that needs more is cut into its
#: boxes.
_MAX_LABELS = (250_000, 3_000_000)
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

    def without_plan(self, points: np.ndarray) -> np.ndarray:
        """Return the points that no plan attains, shape (k, 3)."""
        return points[[tuple(point) not in self.plans for point in points.tolist()]]

    def add(
        self, partition: Sequence[int], schedule: Schedule | None, scheduler: Scheduler
    ) -> None:
        """Keep a plan, if there is one."""
        if schedule is not None:
            self.plans.setdefault(scheduler.vector(partition, schedule), schedule)


def _schedule_relaxed(
    patterns: Patterns, relaxed: Relaxed, budget: Budget
) -> tuple[Resolved, np.ndarray]:
    """Return a plan for every relaxed point whose machines can agree on starts, and the others.

    The partitions of the others are scheduled at their least cost: then there is a plan near every
    point. The other points have shape (k, 3).
    """
    resolved = Resolved()
    scheduler, exact = Scheduler(patterns), np.zeros(len(relaxed.values), dtype=bool)
    for k, partition in enumerate(relaxed.partitions):
        if budget.out_of_time:
            break
        schedule = scheduler.certify(partition)
        exact[k] = schedule is not None
        resolved.add(partition, schedule, scheduler)
    scheduler = Scheduler(patterns)
    for k in np.flatnonzero(~exact).tolist():
        if budget.out_of_time:
            break
        partition = relaxed.partitions[k]
        resolved.add(partition, scheduler.least_cost(partition, 2**60)[0], scheduler)
    return resolved, relaxed.values[~exact]


def resolve(
    patterns: Patterns,
    completion: Completion,
    relaxed: Relaxed,
    budget: Budget,
    effort: float = np.inf,
) -> Resolved:
    """Return the true front, as far as the budget allows.

    Between the feasible points, in zones that hold a relaxed point, all partitions are enumerated
    and scheduled at the least cost: first little above the relaxed points and with their patterns,
    since that finds plans which make the zones small; at last with all patterns, since a machine
    may have to be busy for longer than it need be alone. A zone that holds nothing feasible then
    drops out of the bound set.

    Parameters
    ----------
    effort : float
        Labels and patterns that the enumerations may look at.
    """
    resolved, points = _schedule_relaxed(patterns, relaxed, budget)
    if len(points) and relaxed.complete:
        search = _Enumeration(patterns, completion, resolved, budget, effort)
        points = _resolve_points(search, points)
    resolved.bounds = minimal(np.concatenate((resolved.values, points))).astype(np.int64)
    resolved.certified = len(relaxed.values) - len(resolved.without_plan(relaxed.values))
    return resolved


def _resolve_points(search: _Enumeration, points: np.ndarray) -> np.ndarray:
    """Look for plans near points that have none; return the points that are still open."""
    resolved = search.resolved
    for reach in _REACH:
        points = resolved.without_plan(points)
        search.near(points, int(reach * search.completion.spread[1]))
    points = resolved.without_plan(points)
    if len(points) == 0 or search.stopped:
        return points
    patterns = search.patterns
    closed = search.with_all_patterns().between(points)
    upper = upper_bounds(patterns, resolved.values)
    upper = upper[~_below(upper, closed + 1).any(axis=1)]
    return points[_below(points, upper).any(axis=1)]


class _Enumeration:
    """Enumerates the partitions that may lie in boxes, and schedules them at the least cost."""

    def __init__(
        self,
        patterns: Patterns,
        completion: Completion,
        resolved: Resolved,
        budget: Budget,
        effort: float,
    ):
        self.patterns, self.completion, self.resolved = patterns, completion, resolved
        self.budget, self.effort = budget, effort
        self.model, self.order = build_model(patterns, completion)
        self.scheduler = Scheduler(patterns)

    def with_all_patterns(self) -> _Enumeration:
        """Return one that goes on with all patterns."""
        patterns = build_patterns(self.patterns.numbers, everything=True)
        return _Enumeration(patterns, self.completion, self.resolved, self.budget, self.effort)

    @property
    def stopped(self) -> bool:
        """Whether time or effort is used up."""
        return self.budget.out_of_time or self.effort <= 0

    def near(self, points: np.ndarray, reach: int) -> None:
        """Enumerate the partitions of at most `reach` more cost than a point, not better plans.

        Their latency and interruption are at most those of the point. What a known plan weakly
        dominates is left out.
        """
        if len(points) and not self.stopped:
            upper = upper_bounds(self.patterns, self.resolved.values)
            boxes = points + np.array([1, reach + 1, 1])
            cut = np.minimum(boxes[:, None, :], upper[None, :, :])[_below(points, upper)]
            self._run(np.unique(cut, axis=0), points, _MAX_LABELS[:1])

    def between(self, points: np.ndarray) -> np.ndarray:
        """Enumerate the zones of the plans that hold a point, the lowest first.

        Returns the upper bounds of those that are done, shape (zones, 3).
        """
        upper = upper_bounds(self.patterns, self.resolved.values)
        return self._run(upper[_below(points, upper).any(axis=0)], points, _MAX_LABELS)

    def _run(
        self, upper: np.ndarray, points: np.ndarray, allowances: tuple[int, ...]
    ) -> np.ndarray:
        """Enumerate boxes, many at once with few labels, then those that need more.

        Returns the upper bounds of those that are done, shape (boxes, 3).
        """
        order = np.argsort(_height(upper, points), kind="stable")
        targets = targets_of(upper[order], self.completion)
        count = len(targets.upper)
        waiting = [np.arange(k, min(k + _AT_ONCE, count)) for k in range(0, count, _AT_ONCE)]
        closed = [np.empty((0, 3), dtype=np.int64)]
        for max_labels in allowances:
            queue, waiting = waiting[::-1], []
            while queue and not self.stopped:
                group = queue.pop()
                part = Targets(*(array[group] for array in targets))
                boxes = run_pass(self.model, part, self.budget, max_labels, everything=True)
                self.effort -= boxes.looks
                if not boxes.done and len(group) > 1:
                    queue += np.array_split(group, 2)[::-1]
                elif not boxes.done:
                    waiting.append(group)
                elif self._schedule(boxes.values, boxes.paths):
                    closed.append(part.upper)
        return np.concatenate(closed)

    def _schedule(self, values: np.ndarray, paths: list[list[int]]) -> bool:
        """Schedule partitions at the least cost where that may beat the known plans.

        Returns whether all answers are proven.
        """
        partitions = (tuple(sorted(int(self.order[w]) for w in path)) for path in paths)
        vectors = dict(zip(partitions, values, strict=True))
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
    """Return the cost between the upper bound of each zone and the cheapest point in it."""
    cost = np.where(_below(points, upper).T, points[None, :, 1], upper[:, None, 1])
    return upper[:, 1] - cost.min(axis=1)


def _below(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    """Return whether each of `these` is less in everything than each of `those`, (these, those)."""
    return np.asarray(np.all(these[:, None, :] < those[None, :, :], axis=2))
