"""The front of the relaxed problem by dynamic programming: every pattern may start when it likes.

A pass looks for points that beat the known ones by at least a slack in cost. Passes with a large
slack are quick and find points that make the next ones quick; the last pass has none and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import nondominated
from placeopt.temporal.exact.completion import Completion
from placeopt.temporal.exact.labels import (
    COST,
    DONE,
    FREE,
    GO_ON,
    HEAD,
    INTERRUPTION,
    LABEL_WIDTH,
    LABELS,
    LATENCY,
    LOOKS,
    NEXT,
    NUM_COUNTERS,
    PARENT,
    PATTERN,
    PLACED,
    Extension,
    Model,
    Search,
    Targets,
    filter_dominated,
    state_of,
    sweep,
)
from placeopt.temporal.exact.patterns import Patterns

#: Slack of the passes, as shares of the cost range.
PASSES = (0.3, 0.1, 0.03, 0.0)
#: A pass that finds less than this share of what was known is followed by the last one: what is
#: known is good, and a pass between takes a quarter of its time.
_FEW = 0.05
#: Weight vectors that are tested per zone, the most promising ones.
_TESTS = 16
#: Looks at labels and patterns between looks at the clock.
_LOOKS = 500_000
#: Labels in memory at once, 64 bytes each.
_MAX_LABELS = 40_000_000


@dataclass
class Relaxed:
    """Points of the relaxed problem, and the partitions that attain them.

    Attributes
    ----------
    values : ndarray of int64, shape (points, 3)
        Whole-number vectors, sorted; mutually non-dominated.
    partitions : list of tuple of int
        For each point the patterns used, with repeats.
    complete : bool
        Whether this is the whole front: then every plan is weakly dominated by one of the points.
    """

    values: np.ndarray
    partitions: list[tuple[int, ...]]
    complete: bool = False


def relaxed_front(
    patterns: Patterns,
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
    model, order = build_model(patterns, completion)
    met = completion.corners if known is None else np.concatenate((completion.corners, known))
    # A vector without a partition must be found again: it closes only what costs more.
    met = met + np.array([0, 1, 0])
    front = Relaxed(np.empty((0, 3), dtype=np.int64), [])
    few = False
    for slack in passes:
        if few and slack > 0:
            continue
        upper = upper_bounds(patterns, np.concatenate((front.values, met)))
        result = run_pass(model, targets_of(upper, completion, slack), budget)
        partitions = [tuple(int(order[w]) for w in path) for path in result.paths]
        front = _merged(front, result.values, partitions)
        few = slack < passes[0] and len(result.values) < _FEW * len(met)
        budget.report(f"bin plans: {len(front.values)} relaxed points")
        if not result.done:
            return front
    front.complete = True
    return front


def build_model(patterns: Patterns, completion: Completion) -> tuple[Model, np.ndarray]:
    """Return the arrays of the program, and which pattern each of its patterns is, shape (W,)."""
    numbers = patterns.numbers
    reachable = [np.unique(row[row >= 0]) for row in numbers.latency]
    levels = np.array([len(values) for values in reachable], dtype=np.int64)
    latency = np.zeros((len(levels), levels.max()), dtype=np.int64)
    rank = np.zeros(numbers.latency.shape, dtype=np.int64)
    for i, values in enumerate(reachable):
        latency[i, : len(values)], rank[i] = values, np.searchsorted(values, numbers.latency[i])
    base = _base(numbers.replicas, levels)
    lowest = (patterns.counts > 0).argmax(axis=1)
    order = np.argsort(lowest, kind="stable")
    return Model(
        replicas=numbers.replicas,
        levels=levels,
        latency=latency,
        rank=rank,
        least=latency[:, 0].copy(),
        base=base,
        digit=np.cumprod([1, *base[:-1]]),
        stride=np.cumprod([1, *numbers.replicas[:-1] + 1]),
        first=np.searchsorted(lowest[order], np.arange(len(levels) + 1)),
        counts=patterns.counts[order],
        place=patterns.places[order],
        cost=patterns.cost[order],
        interruption=patterns.interruption[order],
        weights=completion.weights,
        tables=completion.tables,
    ), order


def _base(replicas: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return how many values the digit of each request has in the code of a state.

    None is placed, all are, or some are and the farthest has one of the latency levels.
    """
    return 2 + (replicas - 1) * levels


def states_fit(patterns: Patterns) -> bool:
    """Return whether states and sorting keys fit the whole numbers of the kernels."""
    numbers = patterns.numbers
    levels = np.array([len(np.unique(row[row >= 0])) for row in numbers.latency])
    states = float(np.prod(_base(numbers.replicas, levels).astype(float)))
    keys = float(numbers.max_latency) * float(_max_cost(patterns))
    levels_of_interruption = numbers.max_interruption // _unit(patterns.interruption) + 2
    return states < 2.0**60 and keys < 2.0**60 and levels_of_interruption < 4_000_000


def _unit(interruption: np.ndarray) -> int:
    """Return the greatest common divisor of interruptions, at least 1."""
    return max(1, int(np.gcd.reduce(interruption, initial=0)))


def _max_cost(patterns: Patterns) -> int:
    """Return an upper bound on the cost of a partition that may be needed."""
    return int(patterns.numbers.replicas.sum() * patterns.cost.max(initial=1))


def upper_bounds(patterns: Patterns, points: np.ndarray) -> np.ndarray:
    """Return the local upper bounds of points, shape (zones, 3)."""
    numbers = patterns.numbers
    limit = (numbers.max_latency, _max_cost(patterns), numbers.max_interruption)
    return local_upper_bounds(np.unique(points, axis=0), np.array(limit) + 1)


def targets_of(upper: np.ndarray, completion: Completion, slack: float = 0.0) -> Targets:
    """Return the zones that can hold a point which is better by the slack, ready to be tested.

    Parameters
    ----------
    upper : ndarray of int64, shape (zones, 3)
    slack : float
        As a share of the cost range.
    """
    limit = (upper - 1.0) @ completion.weights.T
    limit += 1e-9 * np.abs(limit) + 1e-6
    limit -= slack * completion.spread[1] * completion.weights[:, 1]
    over = completion.tables[:, -1] - limit
    alive = (over <= 0).all(axis=1)
    tests = np.argsort(-over[:, 2:], axis=1, kind="stable")[:, :_TESTS] + 2
    return Targets(
        upper[alive], np.ascontiguousarray(limit[alive]), np.ascontiguousarray(tests[alive])
    )


@dataclass(frozen=True)
class Pass:
    """What a pass found.

    Attributes
    ----------
    values : ndarray of int64, shape (labels, 3)
    paths : list of list of int
        The patterns of each vector, in the order of the model.
    done : bool
        Whether the pass was completed; where not, it returns no vectors.
    looks : int
        Labels and patterns looked at.
    """

    values: np.ndarray
    paths: list[list[int]]
    done: bool
    looks: int


def run_pass(
    model: Model,
    targets: Targets,
    budget: Budget,
    max_labels: int = _MAX_LABELS,
    everything: bool = False,
) -> Pass:
    """Find the vectors in the zones that no other dominates, and a partition for each.

    With `everything`, all partitions that end in a zone are found.
    """
    none = np.empty((0, 3), dtype=np.int64)
    if len(targets.upper) == 0:
        return Pass(none, [], True, 0)
    search, extension, unit = _new_search(model), *_new_extension(model, targets)
    total, status = len(search.heads) - 1, GO_ON
    while status == GO_ON and not budget.out_of_time:
        search, status = sweep(
            model, targets, extension, search, unit, _LOOKS, max_labels, everything
        )
        placed = search.counters[PLACED]
        budget.report(f"bin plans: {placed} of {total} replicas placed")
    looks = int(search.counters[LOOKS])
    if status != DONE:
        return Pass(none, [], False, looks)
    if search.heads[-1] < 0:
        return Pass(none, [], True, looks)
    labels, head = search.labels, search.states[search.heads[-1], HEAD]
    last = filter_dominated(labels, head, search.counters, extension.fenwick, unit, everything)
    values = labels[last][:, [LATENCY, COST, INTERRUPTION]]
    return Pass(values, [_path(labels, int(label)) for label in last], True, looks)


def _new_search(model: Model) -> Search:
    """Return a search with one label, which has placed nothing."""
    search = Search(
        labels=np.zeros((1 << 16, LABEL_WIDTH), dtype=np.int64),
        states=np.zeros((1 << 12, 3), dtype=np.int64),
        slots=np.zeros(1 << 14, dtype=np.int64),
        heads=np.full(int(model.replicas.sum()) + 1, -1, dtype=np.int64),
        counters=np.zeros(NUM_COUNTERS, dtype=np.int64),
    )
    search.labels[0, NEXT] = search.labels[0, PARENT] = search.counters[FREE] = -1
    search.counters[LABELS] = 1
    search.states[state_of(search, 0, 0), HEAD] = 0
    return search


def _new_extension(model: Model, targets: Targets) -> tuple[Extension, int]:
    """Return scratch arrays of a pass, and the unit of interruptions."""
    n, k, unit = len(model.replicas), len(model.weights), _unit(model.interruption)
    levels = int(targets.upper[:, 2].max()) // unit + 3
    return Extension(
        placed=np.zeros(n, np.int64),
        rank=np.zeros(n, np.int64),
        least=np.zeros(3, np.int64),
        bound=np.zeros((1, k)),
        step=np.zeros(6, np.int64),
        step_bound=np.zeros(k),
        open=np.zeros(len(targets.upper), np.int64),
        fenwick=np.full(levels, 2**60, dtype=np.int64),
    ), unit


def _path(labels: np.ndarray, label: int) -> list[int]:
    """Return the patterns that lead to a label."""
    used = []
    while label > 0:
        used.append(int(labels[label, PATTERN]))
        label = int(labels[label, PARENT])
    return used


def _merged(front: Relaxed, values: np.ndarray, partitions: list[tuple[int, ...]]) -> Relaxed:
    """Return the non-dominated points of a front and new ones."""
    both = np.concatenate((front.values, values))
    order = np.lexsort(both.T[::-1])
    keep = order[nondominated(both[order].astype(float))]
    everything = front.partitions + partitions
    return Relaxed(both[keep], [everything[k] for k in keep])


def local_upper_bounds(points: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return the maximal local upper bounds of points, shape (zones, m).

    Parameters
    ----------
    points : ndarray of int64, shape (points, m)
    limit : ndarray of int64, shape (m,)
        Greater than every value of interest: no bound exceeds it.

    Examples
    --------
    >>> sorted(local_upper_bounds(np.array([[1, 2], [2, 1]]), np.array([9, 9])).tolist())
    [[1, 9], [2, 2], [9, 1]]
    """
    upper = np.array([limit], dtype=np.int64)
    for point in points:
        inside = (point < upper).all(axis=1)
        if not inside.any():
            continue
        rest, cut = upper[~inside], np.repeat(upper[inside], upper.shape[1], axis=0)
        column = np.tile(np.arange(upper.shape[1]), int(inside.sum()))
        cut[np.arange(len(cut)), column] = point[column]
        cut = np.unique(cut, axis=0)
        upper = np.concatenate((rest, cut[_maximal(cut, rest)]))
    return upper


def _maximal(cut: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return which rows of `cut`, all different, lie below no other row of `cut` or `rest`."""
    below = np.all(cut[:, None, :] <= cut[None, :, :], axis=2)
    below &= ~np.eye(len(cut), dtype=bool)
    under_rest = np.all(cut[:, None, :] <= rest[None, :, :], axis=2)
    return np.asarray(~(below.any(axis=1) | under_rest.any(axis=1)))
