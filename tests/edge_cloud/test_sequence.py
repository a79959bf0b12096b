"""The edge-cloud problem as a sequence of decisions: costs of the referee, masks, features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import DecisionSequence, build_sequence
from placeopt.edge_cloud.instance import EdgeCloud


@given(st.integers(0, 10**6))
def test_costs_of_an_episode_sum_to_the_referee(seed):
    """Complete episodes cost what the referee says; dead ends come between applications only."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    sequence, rng = (
        build_sequence(problem, order=("small-first", "given")[seed % 2]),
        np.random.default_rng(seed),
    )
    state, total = sequence.reset(rng), np.zeros(2)
    while not sequence.done(state):
        total += sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))
    verdict = problem.evaluate(sequence.plan(state))
    assert total == pytest.approx(verdict.values, abs=1e-9)
    assert {v.kind for v in verdict.violations} <= {"not-placed"}
    if sequence.remaining(state):
        assert verdict.violations and not sequence.mask(state).any()
        assert sum(
            len(row) > 0 for row in sequence.plan(state)["placement"].values()
        ) == sequence.stage(state)
    else:
        assert verdict.feasible


@given(st.integers(0, 10**6))
def test_mask_is_exact_for_one_application(seed):
    """A node is legal exactly if some placement of the whole application uses it."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    document = problem.to_document()
    document["applications"] = [
        {
            **document["applications"][0],
            "microservices": document["applications"][0]["microservices"][:3],
        }
    ]
    names = {m["name"] for m in document["applications"][0]["microservices"]}
    document["applications"][0]["flows"] = [
        f for f in document["applications"][0]["flows"] if {f["from"], f["to"]} <= names
    ]
    problem = EdgeCloud.from_document(document)
    sequence = build_sequence(problem)
    count = len(problem.arrays.demand)
    legal = {
        h
        for h in itertools.product(range(sequence.num_actions), repeat=count)
        if problem.evaluate(problem.plan(np.array(h))).feasible
    }
    for prefix in {h[:k] for h in legal for k in range(count)} | {()}:
        state = sequence.reset()
        for action in prefix:
            sequence.step(state, action)
        assert set(np.flatnonzero(sequence.mask(state)).tolist()) == {
            h[len(prefix)] for h in legal if h[: len(prefix)] == prefix
        }


@given(st.integers(0, 10**6))
def test_costs_says_what_step_does(seed):
    """`costs` is what each step would cost, and infinite exactly where the mask forbids it."""
    problem = random_instance(seed, 8, 6, missing=0.1)
    sequence = build_sequence(problem, (problem.objectives[1], problem.objectives[0]))
    rng, state = np.random.default_rng(seed), sequence.reset()
    while not sequence.done(state):
        np.testing.assert_allclose(sequence.costs(state), DecisionSequence.costs(sequence, state))
        before = sequence.plan(state), state.room.copy()
        sequence.mask(state)
        assert sequence.plan(state) == before[0] and np.array_equal(state.room, before[1])
        sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))


def test_features_and_copies():
    """Features are within [-1, 1], and 0 for illegal actions; a copy steps on its own."""
    sequence = build_sequence(EdgeCloud.generate(seed=2, applications=6, load=1.0))
    rng, state, steps = np.random.default_rng(0), sequence.reset(), 0
    while not sequence.done(state):
        assert sequence.remaining(state) == sequence.decisions - steps
        table, mask = sequence.features(state), sequence.mask(state)
        assert (
            table.shape == (sequence.num_actions, sequence.num_features)
            and table.dtype == np.float32
        )
        assert np.abs(table).max() <= 1 and not table[~mask].any() and np.isfinite(table).all()
        twin, before = sequence.copy(state), sequence.plan(state)
        sequence.step(state, int(rng.choice(np.flatnonzero(mask))))
        assert sequence.plan(twin) == before
        steps += 1
    assert (
        steps == sequence.decisions
        and not sequence.features(state).any()
        and np.isinf(sequence.costs(state)).all()
    )


def test_what_is_refused():
    """Illegal nodes, steps after the end, and unknown orders are errors."""
    problem = EdgeCloud.generate(seed=3, applications=1, near=2, far=0, cloud=1)
    sequence = build_sequence(problem)
    with pytest.raises(UsageError, match="did you mean 'small-first'"):
        build_sequence(problem, order="smallfirst")
    state = sequence.reset()
    for action in (-1, sequence.num_actions):
        with pytest.raises(UsageError, match=f"the action is {action}; legal: whole numbers"):
            sequence.step(state, action)
    for action in np.flatnonzero(~sequence.mask(state)):
        with pytest.raises(UsageError, match="mask"):
            sequence.step(state, int(action))
    while not sequence.done(state):
        sequence.step(state, int(np.flatnonzero(sequence.mask(state))[-1]))
    with pytest.raises(UsageError, match="mask"):
        sequence.step(state, 0)


def test_small_first_orders_by_demand():
    """The order of decision is by the demand of whole applications."""
    problem = EdgeCloud.generate(seed=4, applications=30)
    sequence = build_sequence(problem)
    mean = problem.arrays.demand.mean(axis=0)
    sizes = [
        sum(
            (
                problem.arrays.demand[problem.arrays.first[a] : problem.arrays.first[a + 1]] / mean
            ).sum(axis=1)
        )
        for a in sequence.order.applications
    ]
    assert sizes == sorted(sizes)
    assert build_sequence(problem, order="given").order.applications.tolist() == list(range(30))
