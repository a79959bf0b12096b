"""Rollout by agents that run apart: they choose what one process does."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placeopt_papers.agents import Rule, _processes, best_of, play_apart, ranked

import placeopt
from placeopt.core.errors import PlaceoptError
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.rollout import rollout
from placeopt.temporal.problem import Temporal

INSTANCES: dict[str, Any] = {
    "temporal": lambda seed: Temporal.generate(seed, requests=4),
    "edge-cloud": lambda seed: EdgeCloud.generate(seed, applications=4),
    "multi-cluster": lambda seed: MultiCluster.generate(seed, requests=6),
}


@given(
    kind=st.sampled_from(sorted(INSTANCES)),
    seed=st.integers(0, 10**6),
    agents=st.integers(1, 5),
    beta=st.sampled_from([0.3, 1.0]),
    horizon=st.sampled_from([0, 1, math.inf]),
)
def test_shares_together_choose_what_one_process_does(
    kind: str, seed: int, agents: int, beta: float, horizon: float
) -> None:
    """In every state of an episode."""
    problem = INSTANCES[kind](seed)
    sequence = build_sequence(problem, problem.objectives)
    weights = np.random.default_rng(seed).random(len(problem.objectives)) + 1e-3
    rule, state = Rule(beta=beta, horizon=horizon), sequence.reset()
    for _ in range(12):
        if not (sequence.remaining(state) and sequence.mask(state).any()):
            break
        shares = [slice(k, None, agents) for k in range(agents)]
        value, place = min(best_of(sequence, state, weights, rule, own) for own in shares)
        actions, _ = ranked(sequence, state, weights, rule)
        action = rollout.choose(sequence, state, weights, beta=beta, horizon=horizon)
        assert action == actions[place if value < math.inf else 0]
        sequence.step(state, action)


def test_the_front_is_that_of_one_process_and_messages_are_counted() -> None:
    """Two messages an agent for every decision."""
    problem = EdgeCloud.generate(3, applications=4)
    front = placeopt.solve(problem, "rollout", weights="1,1")
    task: Task[Any] = Task(problem)
    for agents in (1, 3):
        told = play_apart(task, np.ones(2), agents, Rule(horizon=0))
        assert told.messages == 2 * agents * told.decisions and told.decisions > 4
        assert told.plan in [point.plan for point in front.points]


def test_an_agent_that_dies_is_told() -> None:
    """And nothing hangs."""
    problem = EdgeCloud.generate(3, applications=4)
    whole = EdgeCloud, problem.to_document(), problem.objectives, np.ones(2), Rule(), {}
    others = set(multiprocessing.active_children())  # of tests before this one
    with (
        pytest.raises(PlaceoptError, match="an agent died"),
        _processes([(k, 2, *whole) for k in range(2)]) as ask,
    ):
        ask(-1)
        agent = next(p for p in multiprocessing.active_children() if p not in others)
        os.kill(agent.pid or 0, signal.SIGKILL)
        for _ in range(3):
            ask(-1)
