"""The whole front of the relaxed problem by dynamic programming: every bin plan may start when it likes.

A pass looks for points that beat the known ones by at least a slack in cost. Passes with a large slack are cheap and find the
points that make the next ones cheap; the last pass has none and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.front import nondominated
from placeopt.temporal.exact import labels as kernels
from placeopt.temporal.exact.columns import Columns
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.labels import (
    COLUMN,
    COST,
    HEAD,
    INTERRUPTION,
    LATENCY,
    NEXT,
    PARENT,
    Model,
    Scratch,
    Targets,
)
from placeopt.temporal.exact.zones import zones

#: Slack of the passes, as shares of the cost range.
PASSES = (0.3, 0.1, 0.03, 0.0)
#: Weight vectors that are tested per zone, the most promising ones.
_TESTS = 16
#: Looks at labels and columns between looks at the clock.
_TRIES = 500_000
#: Labels in memory at once, 56 bytes each.
_MOST_LABELS = 40_000_000


@dataclass
class Relaxed:
    """Points of the relaxed problem, and the partitions that attain them.

    Attributes
    ----------
    values : ndarray of int64, shape (points, 3)
        Whole-number vectors, sorted; mutually non-dominated.
    partitions : list of tuple of int
        For each point the columns used, with repeats.
    complete : bool
        Whether this is the whole front: then every plan is weakly dominated by one of the points.
    """

    values: np.ndarray
    partitions: list[tuple[int, ...]]
    complete: bool = False


def relaxed_front(
    columns: Columns,
    completion: Completion,
    budget: Budget,
    known: np.ndarray | None = None,
    passes: tuple[float, ...] = PASSES,
) -> Relaxed:
    """Return the front of the relaxed problem, or what was found of it when the budget ended.

    Parameters
    ----------
    known : ndarray of int64, shape (points, 3), optional
        Vectors that some plan attains: they save work.
    """
    model, order = program(columns, completion)
    # A vector met without a partition must be met again: it closes only what costs more.
    met = (
        completion.corners if known is None else np.concatenate((completion.corners, known))
    ) + np.array([0, 1, 0])
    front = Relaxed(np.empty((0, 3), dtype=np.int64), [])
    for slack in passes:
        values, paths, done, _ = run_pass(
            model,
            targets_of(
                zones_below(columns, np.concatenate((front.values, met))), completion, slack
            ),
            budget,
        )
        front = _merged(front, values, [tuple(int(order[w]) for w in path) for path in paths])
        budget.report(points=len(front.values), note="bin plans")
        if not done:
            return front
    front.complete = True
    return front


def program(columns: Columns, completion: Completion) -> tuple[Model, np.ndarray]:
    """Return the arrays of the program, and which column each of its columns is."""
    numbers = columns.numbers
    n = len(numbers.replicas)
    reachable = [np.unique(row[row >= 0]) for row in numbers.latency]
    levels = np.array([len(values) for values in reachable], dtype=np.int64)
    latency, rank = (
        np.zeros((n, levels.max()), dtype=np.int64),
        np.zeros(numbers.latency.shape, dtype=np.int64),
    )
    for i, values in enumerate(reachable):
        latency[i, : len(values)], rank[i] = values, np.searchsorted(values, numbers.latency[i])
    base = 2 + (numbers.replicas - 1) * levels
    lowest = (columns.counts > 0).argmax(axis=1)
    order = np.argsort(lowest, kind="stable")
    return Model(
        numbers.replicas,
        levels,
        latency,
        rank,
        latency[:, 0].copy(),
        base,
        _products(base),
        _products(numbers.replicas + 1),
        np.searchsorted(lowest[order], np.arange(n + 1)),
        columns.counts[order],
        columns.places[order],
        columns.cost[order],
        columns.interruption[order],
        completion.weights,
        completion.tables,
    ), order


def _products(base: np.ndarray) -> np.ndarray:
    return np.concatenate(([1], np.cumprod(base)[:-1])).astype(np.int64)


def states_fit(columns: Columns) -> bool:
    """Whether states and sorting keys fit the whole numbers that the kernels compute with."""
    numbers = columns.numbers
    levels = np.array([len(np.unique(row[row >= 0])) for row in numbers.latency])
    states = float(np.prod((2 + (numbers.replicas - 1) * levels).astype(float)))
    latency, cost = (
        float(numbers.latency.max(axis=1).sum()),
        float((numbers.replicas * columns.cost.max(initial=1)).sum()),
    )
    return states < 2.0**60 and latency * cost < 2.0**60 and _steps(columns)[1] < 4_000_000


def _steps(columns: Columns) -> tuple[int, int]:
    """Return the greatest common divisor of all interruptions, and how many multiples of it there are up to the greatest sum."""
    unit = max(1, int(np.gcd.reduce(columns.interruption, initial=0)))
    numbers = columns.numbers
    most = int((numbers.share * numbers.replicas).sum()) * max(
        m.frequency for m in columns.machines
    )
    return unit, most // unit + 2


def zones_below(columns: Columns, points: np.ndarray) -> np.ndarray:
    """Return the zones that `points` leave, by their upper bounds."""
    numbers = columns.numbers
    most = np.array(
        [
            numbers.latency.max(axis=1).sum() + 1,
            (numbers.replicas * columns.cost.max(initial=1)).sum() + 1,
            (numbers.share * numbers.replicas).sum() * max(m.frequency for m in columns.machines)
            + 1,
        ]
    )
    return zones(np.unique(points, axis=0), most)


def targets_of(upper: np.ndarray, completion: Completion, slack: float = 0.0) -> Targets:
    """Return those of the zones below `upper` that can hold a point which is better by the slack, ready to be tested."""
    limit = (upper - 1.0) @ completion.weights.T
    limit += 1e-9 * np.abs(limit) + 1e-6
    limit -= slack * completion.spread[1] * completion.weights[:, 1]
    over = completion.tables[:, -1] - limit
    alive = (over <= 0).all(axis=1)
    tests = np.argsort(-over[:, 2:], axis=1, kind="stable")[:, :_TESTS] + 2
    return Targets(
        upper[alive], np.ascontiguousarray(limit[alive]), np.ascontiguousarray(tests[alive])
    )


class _Tables:
    """Labels, states and the queue of one pass."""

    def __init__(self, model: Model, targets: Targets):
        n, k, total = len(model.replicas), len(model.weights), int(model.replicas.sum())
        self.labels = np.zeros((1 << 16, kernels.WIDTH), dtype=np.int64)
        self.states, self.slots = (
            np.zeros((1 << 12, 3), dtype=np.int64),
            np.zeros(1 << 14, dtype=np.int64),
        )
        self.heads, self.counters = (
            np.full(total + 1, -1, dtype=np.int64),
            np.zeros(6, dtype=np.int64),
        )
        self.unit = max(1, int(np.gcd.reduce(model.interruption, initial=0)))
        self.fenwick = np.full(
            int(targets.upper[:, 2].max()) // self.unit + 3, 2**60, dtype=np.int64
        )
        self.scratch = Scratch(
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(6, np.int64),
            np.zeros(3, np.int64),
            np.zeros((1, k)),
            np.zeros(k),
            np.zeros(len(targets.upper), np.int64),
        )
        self.labels[0, NEXT] = self.labels[0, PARENT] = self.counters[kernels.FREE] = -1
        self.counters[kernels.LABELS] = 1
        self.states[
            kernels.state_of(self.states, self.slots, self.heads, self.counters, 0, 0), HEAD
        ] = 0

    def advance(self, model: Model, targets: Targets, most_labels: int, everything: bool) -> int:
        """Work for a while; return 0 to go on, 1 when done, 2 when out of memory."""
        self.labels, self.states, self.slots, status = kernels.sweep(
            model,
            targets,
            self.scratch,
            self.labels,
            self.states,
            self.slots,
            self.heads,
            self.counters,
            self.fenwick,
            self.unit,
            _TRIES,
            most_labels,
            everything,
        )
        return int(status)

    def answers(self, everything: bool) -> tuple[np.ndarray, list[list[int]]]:
        """Return the vectors that place everything, and their columns."""
        if self.heads[-1] < 0:
            return np.empty((0, 3), dtype=np.int64), []
        last = kernels.settle(
            self.labels,
            self.states[self.heads[-1], HEAD],
            self.counters,
            self.fenwick,
            self.unit,
            everything,
        )
        return self.labels[last][:, [LATENCY, COST, INTERRUPTION]], [
            self._path(int(label)) for label in last
        ]

    def _path(self, label: int) -> list[int]:
        used = []
        while label > 0:
            used.append(int(self.labels[label, COLUMN]))
            label = int(self.labels[label, PARENT])
        return used


def run_pass(
    model: Model,
    targets: Targets,
    budget: Budget,
    most_labels: int = _MOST_LABELS,
    everything: bool = False,
) -> tuple[np.ndarray, list[list[int]], bool, int]:
    """Run one pass; return vectors, partitions, whether the pass was completed, and how many labels and columns it looked at.

    With `everything`, all partitions that end in a zone are returned, not one for each vector that no other dominates.
    """
    if len(targets.upper) == 0:
        return np.empty((0, 3), dtype=np.int64), [], True, 0
    tables, status = _Tables(model, targets), 0
    while status == 0 and not budget.out_of_time:
        status = tables.advance(model, targets, most_labels, everything)
        budget.report(
            note=f"bin plans: {tables.counters[kernels.PLACED]} of {len(tables.heads) - 1} replicas placed"
        )
    if status != 1:
        return np.empty((0, 3), dtype=np.int64), [], False, int(tables.counters[kernels.TRIES])
    return *tables.answers(everything), True, int(tables.counters[kernels.TRIES])


def _merged(front: Relaxed, values: np.ndarray, partitions: list[tuple[int, ...]]) -> Relaxed:
    """Return the non-dominated points of a front and new ones."""
    both = np.concatenate((front.values, values))
    order = np.lexsort(both.T[::-1])
    keep = order[nondominated(both[order].astype(float))]
    everything = front.partitions + partitions
    return Relaxed(both[keep], [everything[k] for k in keep])
