"""Completion bounds against all partitions of all sets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hands import Hand
from temporal_instances import tiny

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError
from placeopt.core.runs.compiling import Clock
from placeopt.temporal.exact.front import Completion, relaxed_front
from placeopt.temporal.exact.tables import (
    NEVER,
    Patterns,
    all_counts,
    build_patterns,
    count_sets,
    numbers,
    strides,
)
from placeopt.temporal.problem import Temporal


def patterns_of(seed: int) -> Patterns:
    problem = tiny(seed)
    return build_patterns(numbers(problem, problem.objectives))


def brute_force(patterns: Patterns, weights: np.ndarray) -> list[float]:
    """Return the least weighted sum of hosting every set, a request paying its mean latency."""
    data = patterns.numbers
    counts, step = all_counts(data.replicas).astype(int), strides(data.replicas)[:-1]

    def alone(code: int) -> float:
        n, least = counts[code], np.inf
        for c in range(len(patterns.best)):
            machine = patterns.machines[c]
            if patterns.best[c, code] < NEVER:
                mean = sum(
                    n[i] * data.latency[i, machine.place] / data.replicas[i] for i in n.nonzero()[0]
                )
                spot = machine.frequency * (n @ data.share)
                least = min(least, weights @ (mean, patterns.best[c, code], spot))
        return least

    @cache
    def best(code: int) -> float:
        if code == 0:
            return 0.0
        parts = [int(part @ step) for part in counts if part.any() and (part <= counts[code]).all()]
        return min(alone(part) + best(code - part) for part in parts)

    return [best(code) for code in range(count_sets(data.replicas))]


@pytest.mark.parametrize("seed", range(6))
def test_tables_are_the_least_sums(seed: int) -> None:
    """For every set, under a few of the weights."""
    patterns = patterns_of(seed)
    completion = Completion(patterns)
    for k in (0, 1, 2, 30, 77, len(completion.weights) - 1):
        expected = brute_force(patterns, completion.weights[k])
        np.testing.assert_allclose(completion.tables[k], expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_cuts_and_corners_enclose_the_relaxed_front(seed: int) -> None:
    """No point of the relaxed front violates a cut; every corner is weakly dominated by a point."""
    patterns = patterns_of(seed)
    completion = Completion(patterns)
    front = relaxed_front(patterns, completion, Budget()).values
    for constant, per_latency, per_interruption in completion.cuts:
        sums = front[:, 1] + per_latency * front[:, 0] + per_interruption * front[:, 2]
        assert (sums >= constant * (1 - 1e-12)).all()
    for corner in completion.corners:
        assert (front <= corner).all(axis=1).any()
    assert {tuple(front[front[:, k].argmin()][[k]]) for k in range(3)} <= {
        tuple(completion.corners[:, k].min()[None]) for k in range(3)
    }
    low, high = completion.ranges
    assert (low <= front[:, [0, 2]].min(axis=0)).all() and (low <= high).all()


def test_sets_count_up_in_mixed_radix() -> None:
    """Codes and counts belong to each other."""
    replicas = np.array([2, 1, 3])
    counts = all_counts(replicas)
    assert len(counts) == count_sets(replicas) == 24
    assert (counts @ strides(replicas)[:-1]).tolist() == list(range(24))
    assert counts.max(axis=0).tolist() == [2, 1, 3]


def test_tables_too_large_for_the_time_limit_are_refused() -> None:
    """Tables are not begun that would take 20 minutes; the message names another way."""
    problem = Temporal.generate(1, requests=10)
    budget = Budget(seconds=1, clock=Clock(Hand(tick=0.001)))
    with pytest.raises(UnsupportedError, match="give more time, or use 'bound'"):
        placeopt.solve(problem, "bin-plans", budget=budget)
