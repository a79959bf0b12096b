"""Rescheduling as a sequence: an episode costs what the referee says; rollout serves it."""

from __future__ import annotations

import pytest

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.instance import Rescheduling
from placeopt.rollout import rollout


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
