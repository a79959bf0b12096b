"""Completion bounds against all partitions of all sets."""

from __future__ import annotations

import pytest
from hands import Hand
from temporal_instances import tiny

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UnsupportedError
from placeopt.core.runs.compiling import Clock
from placeopt.temporal.exact.front import Completion, relaxed_front
from placeopt.temporal.exact.tables import (
    Patterns,
    build_patterns,
    numbers,
)
from placeopt.temporal.problem import Temporal


def patterns_of(seed: int) -> Patterns:
    problem = tiny(seed)
    return build_patterns(numbers(problem, problem.objectives))


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


def test_tables_too_large_for_the_time_limit_are_refused() -> None:
    """Tables are not begun that would take 20 minutes; the message names another way."""
    problem = Temporal.generate(1, requests=10)
    budget = Budget(seconds=1, clock=Clock(Hand(tick=0.001)))
    with pytest.raises(UnsupportedError, match="give more time, or use 'bound'"):
        placeopt.solve(problem, "bin-plans", budget=budget)
