"""The dynamic program over patterns against all partitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from temporal_instances import tiny

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import minimal
from placeopt.temporal.exact.front import (
    COST,
    FREE,
    INTERRUPTION,
    LABEL_WIDTH,
    LATENCY,
    NEXT,
    NUM_COUNTERS,
    STATES,
    Completion,
    Search,
    build_model,
    filter_dominated,
    relaxed_front,
    run_pass,
    state_of,
    targets_of,
    upper_bounds,
)
from placeopt.temporal.exact.tables import Patterns, build_patterns, numbers

SEEDS = range(8)


def patterns_of(seed: int) -> Patterns:
    problem = tiny(seed)
    return build_patterns(numbers(problem, problem.objectives))


def all_partitions(patterns: Patterns) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """Return the vector of every multiset of patterns that places all replicas once."""
    found = {}
    latency = patterns.numbers.latency

    def extend(first: int, left: np.ndarray, used: tuple[int, ...]) -> None:
        if not left.any():
            worst = [
                max(latency[i, patterns.places[w]] for w in used if patterns.counts[w, i])
                for i in range(len(left))
            ]
            cost = sum(int(patterns.cost[w]) for w in used)
            found[used] = (sum(worst), cost, sum(int(patterns.interruption[w]) for w in used))
            return
        for w in range(first, len(patterns)):
            if (patterns.counts[w] <= left).all():
                extend(w, left - patterns.counts[w], (*used, w))

    extend(0, patterns.numbers.replicas, ())
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_every_partition_is_made_once(seed: int) -> None:
    """With `everything`, one zone that holds all vectors yields all partitions."""
    patterns = patterns_of(seed)
    completion = Completion(patterns)
    model, order = build_model(patterns, completion)
    zone = targets_of(upper_bounds(patterns, np.empty((0, 3), dtype=np.int64)), completion)
    found = run_pass(model, zone, Budget(), everything=True)
    made = Counter(tuple(sorted(int(order[w]) for w in path)) for path in found.paths)
    every = all_partitions(patterns)
    assert found.done and made.keys() == every.keys()
    for path, values in zip(found.paths, found.values.tolist(), strict=True):
        assert tuple(values) == every[tuple(sorted(int(order[w]) for w in path))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_front_is_that_of_all_partitions(seed: int) -> None:
    """Its partitions attain its vectors."""
    patterns = patterns_of(seed)
    every = all_partitions(patterns)
    front = relaxed_front(patterns, Completion(patterns), Budget())
    assert front.complete
    assert np.array_equal(minimal(front.values), minimal(list(every.values())))
    for partition, values in zip(front.partitions, front.values.tolist(), strict=True):
        assert every[tuple(sorted(partition))] == tuple(values)


@pytest.mark.parametrize("seed", range(5))
def test_settle_keeps_the_nondominated_labels(seed: int) -> None:
    """It frees the others, and leaves the tree of prefix minima empty."""
    rng = np.random.default_rng(seed)
    vectors = np.unique(rng.integers(0, 6, size=(40, 3)), axis=0)
    rng.shuffle(vectors)
    unit = 3
    labels = np.zeros((len(vectors), LABEL_WIDTH), dtype=np.int64)
    labels[:, [LATENCY, COST]] = vectors[:, :2]
    labels[:, INTERRUPTION] = unit * vectors[:, 2]
    labels[:, NEXT] = [*range(1, len(vectors)), -1]
    counters = np.zeros(NUM_COUNTERS, dtype=np.int64)
    counters[FREE] = -1
    fenwick = np.full(9, 2**60, dtype=np.int64)
    kept = filter_dominated(labels, 0, counters, fenwick, unit, False)
    assert np.array_equal(np.unique(vectors[kept], axis=0), minimal(vectors))
    freed, label = [], counters[FREE]
    while label >= 0:
        freed.append(int(label))
        label = labels[label, NEXT]
    assert sorted([*freed, *kept.tolist()]) == list(range(len(vectors)))
    assert (fenwick == 2**60).all()


def test_a_code_has_one_state_even_where_slots_collide() -> None:
    """Seven codes in eight slots; states of as many replicas are a list."""
    search = Search(
        labels=np.zeros((1, LABEL_WIDTH), dtype=np.int64),
        states=np.zeros((8, 3), dtype=np.int64),
        slots=np.zeros(8, dtype=np.int64),
        heads=np.full(3, -1, dtype=np.int64),
        counters=np.zeros(NUM_COUNTERS, dtype=np.int64),
    )
    codes = [0, 1, 7, 2**40, 2**40 + 1, 99, 12345]
    made = [state_of(search, code, 2) for code in codes]
    assert made == list(range(7)) == [state_of(search, code, 2) for code in codes]
    assert search.counters[STATES] == 7 and search.heads.tolist() == [-1, -1, 6]
