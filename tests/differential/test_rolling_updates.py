"""Rolling updates against every plan there is: replicas that come and go, all rules together."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Document, Values, attainable, rolling_update
from drawn import ruled, scaled
from faults import faults
from rolling_updates import Deployment, best

import placeopt
from placeopt import registry

SEEDS = range(5)
#: Instances of all rules together, for each method.
RULED = tries(12, 300)
Draw = Callable[[np.random.Generator, int], Document]
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
    deployment = Deployment(document)
    state, found = deployment.start, []
    for _ in range(length):
        every = [(k, to) for k in range(len(state.at)) for to in (None, *deployment.nodes)]
        legal = [move for move in every if deployment.step(state, *move) is not None]
        k, to = chance.choice(legal if legal and chance.random() < 0.95 else every)
        application, name = deployment.names[k]
        found.append({"application": application, "microservice": name, "to": to})
        state = deployment.step(state, k, to) or state
        if deployment.ends_well(state) and chance.random() < 0.5:
            break
    return found


@settings(max_examples=tries(60, 3000), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from((scaled, ruled)))
def test_the_referee_agrees_with_a_slow_judge(seed: int, draws: Draw) -> None:
    """On values, and on whether a plan breaks anything; plans come back as they were."""
    document = draws(np.random.default_rng(seed), seed % 3)
    problem = registry.from_document(document)
    for k in range(4):
        plan = {"steps": walk(document, random.Random(seed + k), 9)}
        verdict, values = problem.evaluate(plan), rolling_update(document, plan)
        assert verdict.feasible == (values is not None), verdict.violations
        assert values is None or verdict.values == values
        assert problem.plan(problem.steps(plan)) == plan  # type: ignore[attr-defined]


@pytest.mark.parametrize("draws", [scaled, ruled])
def test_random_plans_are_of_both_kinds(draws: Draw) -> None:
    """So that the test above can fail, either way."""
    feasible = 0
    for seed in range(40):
        document = draws(np.random.default_rng(seed), 1)
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


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("method", ["auto", "decomposition", "repack"])
def test_every_claim_holds_under_all_rules_together(method: str, certify: bool) -> None:
    """The limit on starts of every second front that can have one is kept, and its proofs hold."""
    answered = 0
    for seed in range(RULED):
        document = ruled(np.random.default_rng([seed, 3]), seed % 3)
        values = attainable(document)
        problem, limits = registry.from_document(document), None
        if seed % 2 and values:
            middle = sorted(values)[len(values) // 2][1]
            limits, values = {"starts": middle}, {v for v in values if v[1] <= middle}
        front = placeopt.solve(
            problem, method, evaluations=40, seed=1, certify=certify, limits=limits
        )
        found = list(faults(document, front, values))
        assert not found, f"seed {seed}: {found}"
        answered += bool(front.points)
    assert answered


def removed(rule: dict[str, Any], **changes: Any) -> Document:
    """m0 is removed from n2, and new copies of it could start on n1 alone; m1 stays beside it."""
    services = [
        {"name": "m0", "node": "n2", "groups": ["g"], "removed": True, "allowed": "some"},
        {"name": "m1", "node": "n2", "groups": ["g", "h"]},
        {"name": "m2", "node": "n1", "groups": ["h"]},
    ]
    sizes = {"cpu_millicores": 2, "memory_mib": 1}
    document = {
        "problem": "rolling-update",
        "name": "removed",
        "semantics": "stay",
        "nodes": [
            {"name": f"n{k}", "cluster": "a", "cpu_millicores": 6, "memory_mib": 10, "price": price}
            for k, price in enumerate((0, 1, 0.5))
        ],
        "applications": [{"name": "a", "microservices": [m | sizes for m in services]}],
        "node_sets": {"some": ["n1"], "none": []},
        "rules": [rule],
    }
    for path, value in changes.items():
        services_of = document["applications"][0]["microservices"]
        for m in services_of if path in ("replica_of", "allowed") else ():
            m[path] = value
        if path in document:
            document[path] = value
    return document


#: A removed replica with a node selector, and a rule of every kind about its group.
REMOVED = {
    "together": removed({"kind": "together", "group": "g"}),
    "apart": removed({"kind": "apart", "group": "g", "mend": True}),
    "apart from others": removed({"kind": "apart", "group": "g", "toward": "h"}),
    "spread": removed({"kind": "spread", "group": "h", "max_skew": 1}),
    "spread that shrinks": removed({"kind": "spread", "group": "g", "shrinks": True}),
    "spread among": removed({"kind": "spread", "group": "g", "among": "some", "mend": True}),
    "replicas of one name": removed({"kind": "together", "group": "g"}, replica_of="m"),
    "all may start nowhere": removed({"kind": "together", "group": "g"}, allowed="none"),
    "strict": removed({"kind": "together", "group": "h"}, semantics="strict"),
}


@pytest.mark.parametrize("method", ["auto", "decomposition"])
@pytest.mark.parametrize("name", REMOVED)
def test_what_is_removed_may_always_go(name: str, method: str) -> None:
    """Nowhere is on no list of allowed nodes, and no new copy starts there."""
    document, problem = REMOVED[name], registry.from_document(REMOVED[name])
    values = attainable(document)
    front = placeopt.solve(problem, method, evaluations=100, seed=1, certify=True)
    assert not list(faults(document, front, values))
    assert bool(front.points) == bool(values)
    if values:
        assert {v for v in best(values) if v[2] == 0} <= {p.values for p in front.points}


def direct(document: Document) -> set[Values]:
    """Return the values of all plans that make at most one step of each, and stop nothing."""
    deployment = Deployment(document)
    found, states = set[Values](), {(deployment.start, frozenset[int]()): 0}
    while states:
        (state, made), starts = states.popitem()
        if deployment.ends_well(state):
            found.add(deployment.values(state, starts, 0))
        for k in range(len(state.at)):
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
