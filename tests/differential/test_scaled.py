"""Rolling updates in which replicas are added and removed, against every plan there is."""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Document, Values, _Deployment, attainable, best, rolling_update
from drawn import scaled
from faults import faults

import placeopt
from placeopt import registry

SEEDS = range(5)
METHODS = [
    m.name
    for m in registry.methods().values()
    if "rolling-update" in m.problems and not m.name.startswith(("policy", "jmetal", "auto"))
]


@cache
def known(seed: int) -> tuple[Document, set[Values]]:
    document = scaled(np.random.default_rng(seed), 0)
    return document, attainable(document)


def walk(document: Document, chance: random.Random, length: int) -> list[dict[str, Any]]:
    """Return random steps: mostly legal ones, so that some plans are feasible."""
    deployment = _Deployment(document)
    state, found = deployment.start, []
    for _ in range(length):
        every = [(k, to) for k in range(len(state)) for to in (None, *deployment.nodes)]
        legal = [move for move in every if deployment.step(state, *move) is not None]
        k, to = chance.choice(legal if legal and chance.random() < 0.95 else every)
        application, name = deployment.names[k]
        found.append({"application": application, "microservice": name, "to": to})
        state = deployment.step(state, k, to) or state
        if deployment.ends_well(state) and chance.random() < 0.5:
            break
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_referee_agrees_with_a_slow_judge(seed: int) -> None:
    """On values, and on whether a plan breaks anything; plans come back as they were."""
    document = scaled(np.random.default_rng(seed), seed % 3)
    problem = registry.from_document(document)
    for k in range(4):
        plan = {"steps": walk(document, random.Random(seed + k), 9)}
        verdict, values = problem.evaluate(plan), rolling_update(document, plan)
        assert verdict.feasible == (values is not None), verdict.violations
        assert values is None or verdict.values == values
        assert problem.plan(problem.steps(plan)) == plan  # type: ignore[attr-defined]


def test_random_plans_are_of_both_kinds() -> None:
    """So that the test above can fail, either way."""
    feasible = 0
    for seed in range(40):
        document = scaled(np.random.default_rng(seed), 1)
        plan = {"steps": walk(document, random.Random(seed), 9)}
        feasible += rolling_update(document, plan) is not None
    assert 5 <= feasible <= 35


@pytest.mark.parametrize("method", METHODS)
def test_every_claim_of_a_method_is_true(method: str) -> None:
    answered = 0
    for seed in SEEDS:
        document, values = known(seed)
        problem = registry.from_document(document)
        front = placeopt.solve(problem, method, evaluations=40, seed=1)
        found = list(faults(document, front, values))
        assert not found, f"seed {seed}: {found}"
        answered += bool(front.points)
    assert answered


def direct(document: Document) -> set[Values]:
    """Return the values of all plans that make at most one step of each, and stop nothing."""
    deployment = _Deployment(document)
    found, states = set[Values](), {(deployment.start, frozenset[int]()): 0}
    while states:
        (state, made), starts = states.popitem()
        if deployment.ends_well(state):
            found.add((deployment.cost(state), float(starts), 0.0))
        for k in range(len(state)):
            removes = deployment.services[k][1].get("removed", False)
            for to in (None,) if removes else deployment.nodes if k not in made else ():
                after = None if k in made else deployment.step(state, k, to)
                if after is not None:
                    states[after, made | {k}] = starts + (not removes)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_has_the_front_of_direct_plans(seed: int) -> None:
    """One removal in a slot like any move; as many replicas as the smaller number stay ready."""
    document, _ = known(seed)
    goals = ["node_cost", "starts"]
    front = placeopt.solve(
        registry.from_document(document), "epsilon-constraint", objectives=goals, seconds=60
    )
    truth = best({values[:2] for values in direct(document)})
    assert sorted(p.values for p in front.points) == truth
