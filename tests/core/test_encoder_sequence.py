"""Decisions from an encoder: tests/test_contract.py has what holds of all; here what is its own."""

from __future__ import annotations

import numpy as np
import pytest

import placeopt
from placeopt.core.encoder_sequence import BASES
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_encoder, build_sequence
from placeopt.registry import problem_class

KINDS = ("temporal", "rolling-update", "rescheduling")


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_begins_with_a_plan_and_may_leave_it_as_it_is(kind: str) -> None:
    """The start breaks no more than any of some random vectors, and its own genes are legal."""
    problem = problem_class(kind).generate(1)
    encoder, sequence = build_encoder(problem), build_sequence(problem)
    start = encoder.start()
    state, own = sequence.reset(), encoder.decode(start)
    assert sequence.plan(state) == own
    if len(sequence.bases) > 1:
        sequence.step(state, 0)
    for gene in np.flatnonzero(encoder.upper > encoder.lower):
        sequence.step(state, int(start[gene] - encoder.lower[gene]))
    assert sequence.remaining(state) == 0 and sequence.plan(state) == own


@pytest.mark.parametrize("kind", KINDS)
def test_rollout_is_not_worse_than_the_plan_that_it_begins_with(kind: str) -> None:
    problem = problem_class(kind).generate(2)
    goal = problem.objectives[0].name
    front = placeopt.solve(problem, "rollout", objectives=[goal], evaluations=2)
    begun = problem.evaluate(build_sequence(problem).plan(build_sequence(problem).reset()))
    assert front.points[0].values[0] <= begun.values[0] + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_may_begin_with_any_seed_that_no_other_dominates(kind: str) -> None:
    """Rollout with weights is therefore not worse than any of these plans."""
    problem = problem_class(kind).generate(3)
    sequence = build_sequence(problem)
    values, violations = sequence.encoder.evaluate(sequence.bases)
    assert 1 < len(sequence.bases) <= BASES and not violations[1:].any()
    weights = np.array([1.0, *([1e-3] * (values.shape[1] - 1))])
    text = ",".join(map(str, weights))
    front = placeopt.solve(problem, "rollout", weights=text)
    best = (values[violations.sum(axis=1) == 0] @ weights).min()
    assert min(np.dot(point.values, weights) for point in front.points) <= best + 1e-9


def test_actions_are_checked() -> None:
    sequence = build_sequence(problem_class("rescheduling").generate(1))
    for action in (-1, sequence.num_actions):
        with pytest.raises(UsageError, match="the action is"):
            sequence.step(sequence.reset(), action)
    with pytest.raises(UsageError, match="unknown option 'order'"):
        build_sequence(sequence.problem, order="calls")
