"""Rolling updates as sequences: costs are the referee's; complete episodes break nothing."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.rolling_update.instance import RollingUpdate
from placeopt.rollout import rollout


def test_what_is_refused() -> None:
    problem = RollingUpdate.generate(0, applications=2)
    with pytest.raises(UsageError, match="did you mean 'given'"):
        build_sequence(problem, order="givn")
    sequence = build_sequence(problem)
    state = sequence.reset()
    for action in (-1, sequence.num_actions, *np.flatnonzero(~sequence.mask(state))):
        with pytest.raises(UsageError, match=r"mask|the action is -?[0-9]+; legal"):
            sequence.step(state, int(action))


def test_the_first_decisions_empty_the_least_loaded_paid_node() -> None:
    problem = RollingUpdate.generate(0)
    a, sequence = problem.arrays, build_sequence(problem)
    paid = np.flatnonzero(a.price > 0)
    emptiest = paid[a.initial_load[paid, 0].argmin()]
    assert a.home[sequence.order[0]] == emptiest  # type: ignore[attr-defined]


def test_rollout_repacks() -> None:
    """Greedy decisions alone empty nodes, as leaving them pays at every step."""
    problem = RollingUpdate.generate(1)
    front = rollout.run(
        Task(problem, problem.select(["node_cost", "starts"]), Budget(evaluations=12)), gamma=0.0
    )
    assert front.points
    assert min(p.values[0] for p in front.points) <= 10 < problem.initial_cost
