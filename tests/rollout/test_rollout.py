"""Rollout over any decision sequence: never worse than its base policy.

The compiled form equals the plain one.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hands import Hand
from hypothesis import given
from hypothesis import strategies as st

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.core.runs.compiling import Clock
from placeopt.core.task import Task
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.registry import specs
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rollout import rollout
from placeopt.temporal.problem import Temporal


class Plain:
    """A decision sequence without its compiled play, for the generic code."""

    compiled = False

    def __init__(self, sequence):
        self._sequence = sequence

    def __getattr__(self, name):
        assert name not in ("play_greedy", "play_rollout")
        return getattr(self._sequence, name)


def edge_cloud(seed: int) -> EdgeCloud:
    rng = np.random.default_rng(seed)
    sizes = {
        "applications": int(rng.integers(1, 7)),
        "near": int(rng.integers(2, 6)),
        "far": 1,
        "cloud": 1,
    }
    return EdgeCloud.generate(seed, load=float(rng.choice([0.4, 1.0, 2.0])), **sizes)


def temporal(seed: int) -> Temporal:
    return Temporal.generate(seed, requests=3, horizon=12, places=2, max_replicas=2)


def rolling_update(seed: int) -> RollingUpdate:
    return RollingUpdate.generate(
        seed,
        applications=2,
        microservices=3,
        nodes=4,
        reschedulable=2,
        occupancy=(0.5, 0.8)[seed % 2],
    )


def rescheduling(seed: int) -> Rescheduling:
    return Rescheduling.generate(
        seed, application="chain", replicas=2, cloud_a=1, edge_a=1, edge_b=1
    )


def multi_cluster(seed: int) -> MultiCluster:
    return MultiCluster.generate(seed, requests=12, clusters=3)


#: A small instance of every problem that has a decision sequence.
INSTANCES = {
    "temporal": temporal,
    "edge-cloud": edge_cloud,
    "rolling-update": rolling_update,
    "rescheduling": rescheduling,
    "multi-cluster": multi_cluster,
}


def weighted(sequence, state, weights) -> float:
    """What a finished episode costs, inf where it is a dead end."""
    if sequence.remaining(state):
        return math.inf
    return float(np.dot(sequence.problem.evaluate(sequence.plan(state)).values, weights))


def worst_first(sequence, state, weights) -> int:
    """A bad policy, but a function of the state: the legal action that costs most."""
    costs, legal = sequence.costs(state), sequence.mask(state)
    return int(np.where(legal, np.where(legal[:, None], costs, 0.0) @ weights, -np.inf).argmax())


def test_every_sequence_is_tried():
    """A problem that gets a decision sequence gets an instance here."""
    assert set(INSTANCES) == {kind for kind, spec in specs().items() if spec.has("sequence")}


@given(
    st.integers(0, 10**6),
    st.sampled_from(list(INSTANCES.values())),
    st.sampled_from([rollout.greedy, rollout.first, worst_first]),
)
def test_never_worse_than_the_base_policy(seed, make, policy):
    """With gamma 1, all actions and the full horizon, for any policy of the state alone."""
    sequence = build_sequence(make(seed))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(sequence.objectives)))
    alone = sequence.reset()
    rollout.follow(sequence, alone, weights, policy)
    state = rollout.play(sequence, weights, Budget(), policy=policy)
    own, improved = weighted(sequence, alone, weights), weighted(sequence, state, weights)
    assert improved <= own + 1e-9 * max(1.0, abs(own))


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.8, 1.0]),
    st.sampled_from([0, 1, 2, math.inf]),
)
def test_compiled_equals_plain(seed, beta, gamma, horizon):
    """The compiled rollout of the edge-cloud sequence finds the plan of the plain one."""
    sequence = build_sequence(edge_cloud(seed), order=("given", "small-first")[seed % 2])
    weights = np.array([(w := (0.01, 0.3, 0.9)[seed % 3]), 1 - w])
    budget = Budget()
    fast = rollout.play(sequence, weights, budget, beta=beta, gamma=gamma, horizon=horizon)
    if beta < 1:  # the compiled form ranks nodes that fit, the plain one those it may look ahead to
        assert sequence.remaining(fast) == 0 or not sequence.mask(fast).any()
        return
    slow = rollout.play(Plain(sequence), weights, budget, beta=beta, gamma=gamma, horizon=horizon)
    assert sequence.plan(fast) == sequence.plan(slow)


@pytest.mark.parametrize("make", INSTANCES.values(), ids=list(INSTANCES))
def test_fronts_of_every_problem(make):
    """Fronts are feasible, the same every time, and one point for given weights."""
    problem = make(1)
    one, two = (rollout.run(Task(problem, problem.objectives, Budget()), parts=4) for _ in range(2))
    assert one.points == two.points and len(one) >= 1 + (make in (edge_cloud, temporal))
    assert all(problem.evaluate(p.plan).values == p.values for p in one.points)
    single = rollout.run(
        Task(problem, problem.objectives, Budget()),
        weights=",".join(["1"] * len(problem.objectives)),
    )
    assert 1 <= len(single) <= 2
    few = rollout.run(Task(problem, problem.objectives[:1], Budget(evaluations=1)))
    assert len(few) == 1 and few.runs[0].evaluations == 2


def test_a_dead_end_is_reported():
    """Where no plan exists the front carries the least-violating one and why."""
    document = EdgeCloud.generate(seed=1, applications=3, near=2, far=0, cloud=1).to_document()
    document["nodes"][-1]["cpu_cores"] = 0.5
    for node in document["nodes"]:
        node["memory_gib"] = 0.5
    problem = EdgeCloud.from_document(document)
    front = rollout.run(Task(problem, problem.objectives, Budget()), parts=2)
    assert not front.points and front.rejected is not None and front.reasons


def test_a_time_limit_is_kept():
    """When time runs out the base policy decides the rest."""
    small = build_sequence(edge_cloud(1))
    for seconds in (None, 1e-6):  # compiles rollout, and the base policy that takes over
        rollout.play(small, np.array([0.01, 0.99]), Budget(seconds=seconds))
    problem = EdgeCloud.generate(seed=1, applications=300)
    hand = Hand(tick=0.001)
    budget = Budget(seconds=0.05, clock=Clock(hand))
    state = rollout.play(build_sequence(problem), np.array([0.01, 0.99]), budget)
    assert problem.evaluate(build_sequence(problem).plan(state)).feasible and hand.now < 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta": 0.0},
        {"beta": "nan"},
        {"gamma": 1.5},
        {"horizon": -1},
        {"horizon": 1.5},
        {"horizon": "nan"},
        {"parts": 0},
        {"base": "gredy"},
        {"order": "gredy"},
        {"weights": "1"},
        {"weights": "a,b"},
        {"weights": (0.0, 0.0)},
    ],
)
def test_parameters_out_of_range(wrong):
    """Wrong parameters say what is legal."""
    with pytest.raises(UsageError, match=r"legal|give"):
        placeopt.solve(edge_cloud(1), "rollout", **wrong)


def test_parameters_as_text():
    """The command line gives texts; an infinite horizon is legal."""
    problem = edge_cloud(1)
    one = placeopt.solve(problem, "rollout", horizon="inf", parts="4", order="given")
    two = placeopt.solve(problem, "rollout", horizon=math.inf, parts=4, order="given")
    assert one.points == two.points and one.runs[0].parameters["horizon"] == "all"
    with pytest.raises(UsageError, match="unknown option 'order' of the decisions of temporal"):
        placeopt.solve(temporal(1), "rollout", order="given")
