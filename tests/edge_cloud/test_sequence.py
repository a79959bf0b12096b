"""The edge-cloud problem as a sequence of decisions: costs of the referee, masks, features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import UsageError
from placeopt.core.interfaces import build_sequence
from placeopt.edge_cloud.problem import EdgeCloud


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
