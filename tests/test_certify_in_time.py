"""A time limit covers the proof of bounds as well."""

from __future__ import annotations

import time

import pytest
from effort import tries
from hands import Hand

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs.compiling import Clock


@pytest.mark.parametrize("name", ["aws-50", "corner-5", "repack-10x5"][: tries(2, 3)])
def test_the_proof_ends_within_the_limit(name: str) -> None:
    """In seconds of this process, in one of the first runs: those before compile."""
    problem = placeopt.load(name)
    for _ in range(5):
        began = time.process_time()
        front = placeopt.solve(problem, seconds=2.0, certify=True)
        took = time.process_time() - began
        assert front.points and front.bounds and front.gap() is not None
        if took < 2.0 * 1.1 + 2.0:
            return
    pytest.fail(f"the last took {took:.1f} s")


def test_bounds_are_there_where_no_time_is_left() -> None:
    front = placeopt.solve("aws-10", "greedy", seconds=1e-3, certify=True)
    assert front.points and front.bounds


def test_the_search_keeps_its_evaluations() -> None:
    """Half of the time is the proof's, none of the evaluations."""
    front = placeopt.solve("toy", "moead", evaluations=300, seconds=60, certify=True)
    assert front.runs[0].evaluations == 300


def test_the_search_goes_on_with_what_the_proof_leaves() -> None:
    """The proof takes milliseconds here: two fifths of the limit would be left."""
    problem = placeopt.load("chain-12")
    placeopt.solve(problem, "moead", evaluations=300, certify=True)  # compiles
    hand = Hand(tick=0.001)
    budget = Budget(seconds=1.0, clock=Clock(hand))
    front = placeopt.solve(problem, "moead", budget=budget, certify=True)
    assert [run.method for run in front.runs] == ["moead", "certify"]
    assert front.runs[0].seconds > 0.8
    assert all(point.status in ("optimal", "bounded") for point in front.points)
    assert hand.now < 1.1


def test_what_has_ended_does_not_begin_again() -> None:
    front = placeopt.solve("chain-12", "greedy", seconds=1.0, certify=True)
    assert [run.method for run in front.runs].count("greedy") == 1
