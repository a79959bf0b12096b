"""Rescheduling as a sequence: an episode costs what the referee says; rollout serves it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.core.task import Task
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rollout import rollout


@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.sampled_from([*APPLICATIONS, "random"]),
    st.sampled_from(["calls", "given"]),
)
def test_costs_of_an_episode_sum_to_the_referee(
    seed: int, replicas: int, application: str, order: str
) -> None:
    """Whatever is done; copies step on their own; features are scaled and empty where illegal."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=4, jitter=0.2
    )
    sequence, rng = build_sequence(problem, order=order), np.random.default_rng(seed)
    state, total, steps = sequence.reset(rng), np.zeros(2), 0
    while not sequence.done(state):
        assert sequence.remaining(state) == sequence.decisions - steps
        before, mask, twin = sequence.plan(state), sequence.mask(state), sequence.copy(state)
        if steps % 4 == 0:
            table = sequence.features(state)
            assert table.shape == (sequence.num_actions, sequence.num_features)
            assert table.dtype == np.float32
            assert np.abs(table).max() <= 1 and not table[~mask].any()
            np.testing.assert_allclose(
                sequence.costs(state),
                DecisionSequence.costs(sequence, state),
                rtol=1e-9,
                atol=1e-9,
            )
        total += sequence.step(state, int(rng.choice(np.flatnonzero(mask))))
        assert sequence.plan(twin) == before
        steps += 1
    verdict = problem.evaluate(sequence.plan(state))
    assert sequence.remaining(state) == 0
    assert verdict.feasible and total == pytest.approx(verdict.values)
    assert not sequence.features(state).any() and not sequence.mask(state).any()


def test_illegal_actions_are_refused() -> None:
    """By number, by room, after the end; an unknown order too."""
    problem = Rescheduling.generate(1, replicas=1)
    sequence = build_sequence(problem)
    state = sequence.reset()
    state.free[:] = 0
    elsewhere = next(n for n in range(sequence.num_actions) if n != sequence.replicas[0][1])
    with pytest.raises(UsageError, match="not legal here"):
        sequence.step(state, elsewhere)
    for action in (-1, sequence.num_actions):
        with pytest.raises(UsageError, match=f"the action is {action}; legal: whole numbers"):
            sequence.step(state, action)
    with pytest.raises(UsageError, match="did you mean 'calls'"):
        build_sequence(problem, order="call")


@pytest.mark.parametrize("application", APPLICATIONS)
def test_rollout_makes_requests_faster(application: str) -> None:
    """Its plans are feasible, one of them is faster than the running deployment."""
    problem = Rescheduling.generate(2, application=application, replicas=2)
    front = rollout.run(Task(problem, problem.objectives, Budget(evaluations=8), 0))
    assert front.rejected is None and front.values[:, 0].min() < problem.initial_latency
