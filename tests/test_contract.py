"""What every problem keeps, ours and a stranger's: vectors, decisions and environments say what the
referee says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edge_cloud_instances import random_instance
from gymnasium.utils.env_checker import check_env
from hypothesis import given, reject
from hypothesis import strategies as st
from temporal_instances import mutilated

from placeopt import api
from placeopt.core.errors import UsageError
from placeopt.core.interfaces import DecisionSequence, build_encoder, build_sequence
from placeopt.core.problem import Problem
from placeopt.environments import make_env
from placeopt.multi_cluster.problem import MultiCluster
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rolling_update.problem import RollingUpdate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "own_problem"))
import backups


def rolling_update(seed: int) -> Problem:
    """Return an instance with drained nodes, pins, memory that binds, growth and fixed ones."""
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(1, 4))
    try:
        drawn = RollingUpdate.generate(
            seed,
            applications=int(rng.integers(2, 6)),
            microservices=int(rng.integers(1, 5)),
            clusters=clusters,
            nodes=int(rng.integers(max(4, 2 * clusters), 9)),
            occupancy=float(rng.choice([0.3, 0.5])),
        )
    except UsageError:  # too few nodes in a cluster for what was drawn
        reject()
    document: dict[str, Any] = drawn.to_document()
    document["semantics"] = str(rng.choice(["stay", "strict"]))
    for node in document["nodes"]:
        node |= {"price": float(rng.choice([0.0, 0.5, 1.0])), "drain": bool(rng.random() < 0.1)}
        node["memory_mib"] = int(rng.choice([1200, 3000, 9000]))
    for application in document["applications"]:
        if rng.random() < 0.2:
            application["reschedulable"] = False
        for m in application["microservices"]:
            if application["reschedulable"]:
                new = int(m["memory_mib"] * rng.choice([1, 1, 0.5, 1.5]))
                m |= {"pinned": bool(rng.random() < 0.1), "new_memory_mib": new}
            else:
                m.pop("new_cpu_millicores", None)
    return RollingUpdate.from_document(document)


def multi_cluster(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return MultiCluster.generate(
        seed,
        clusters=int(rng.integers(2, 5)),
        requests=12,
        most_replicas=int(rng.integers(1, 20)),
        rate=float(rng.choice([0.0, 60.0])),
    )


def rescheduling(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return Rescheduling.generate(
        seed,
        application=str(rng.choice([*APPLICATIONS, "random"])),
        replicas=int(rng.integers(1, 5)),
        services=4,
        cloud_a=int(rng.integers(1, 3)),
        jitter=0.2,
    )


MADE: dict[str, Callable[[int], Problem]] = {
    "temporal": mutilated,
    "edge-cloud": lambda seed: random_instance(seed, 8, 6, missing=0.1),
    "rolling-update": rolling_update,
    "multi-cluster": multi_cluster,
    "rescheduling": rescheduling,
    "a stranger's": lambda seed: backups.Backups.from_document(backups.generate(seed, services=8)),
}
EACH = pytest.mark.parametrize("kind", MADE)
OURS = pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "a stranger's"])


@EACH
@given(seed=st.integers(0, 10**6))
def test_a_vector_is_worth_what_its_plan_is(kind: str, seed: int) -> None:
    """Drawn, varied and mutated; within bounds; encoded plans keep their values."""
    problem, rng = MADE[kind](seed), np.random.default_rng(seed)
    encoder = build_encoder(problem)
    X = encoder.sample(rng, 6)
    before = X.copy()
    children = [encoder.vary(np.random.default_rng(seed), X, X[::-1].copy()) for _ in range(2)]
    np.testing.assert_array_equal(*children)
    np.testing.assert_array_equal(X, before)
    X = np.concatenate((X, children[0]))
    assert X.shape[1] == encoder.num_genes
    assert (X >= encoder.lower).all() and (X <= encoder.upper).all()
    F, G = encoder.evaluate(X)
    again = [encoder.encode(encoder.decode(x)) for x in X]
    if kind != "a stranger's":  # who need not encode, nor check actions
        np.testing.assert_allclose(encoder.evaluate(np.array(again))[0], F, rtol=1e-9, atol=1e-12)
    for genes, values, excess in zip(X, F, G, strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert values == pytest.approx(verdict.values, rel=1e-9, abs=1e-9)
        assert verdict.feasible == bool((excess <= 0).all()), verdict.violations
    turned = build_encoder(problem, problem.objectives[::-1])
    np.testing.assert_array_equal(turned.evaluate(X)[0], F[:, ::-1])


@EACH
@given(seed=st.integers(0, 10**6))
def test_an_episode_costs_what_its_plan_does(kind: str, seed: int) -> None:
    """Each step costs what `costs` foretells; copies go their own way; features are scaled.

    What ends early says so: its plan breaks the instance, or the instance has none.
    """
    problem, rng = MADE[kind](seed), np.random.default_rng(seed)
    sequence = build_sequence(problem)
    state, total, steps = sequence.reset(rng), np.zeros(len(problem.objectives)), 0
    while not sequence.done(state):
        before, mask, twin = sequence.plan(state), sequence.mask(state), sequence.copy(state)
        if steps % 4 == 0:
            table = sequence.features(state)
            assert table.shape == (sequence.num_actions, sequence.num_features)
            assert table.dtype == np.float32 and np.isfinite(table).all()
            assert np.abs(table).max() <= 1 and not table[~mask].any()
            foretold = DecisionSequence.costs(sequence, state)
            np.testing.assert_allclose(sequence.costs(state), foretold, rtol=1e-9, atol=1e-9)
            assert sequence.plan(state) == before
        total += sequence.step(state, int(rng.choice(np.flatnonzero(mask))))
        assert sequence.plan(twin) == before
        steps += 1
    assert not sequence.mask(state).any() and not sequence.features(state).any()
    verdict = problem.evaluate(sequence.plan(state))
    if sequence.remaining(state) == 0 and sequence.decisions:
        assert total == pytest.approx(verdict.values, rel=1e-9, abs=1e-9)
        assert verdict.feasible or problem.infeasibility()
        assert steps == sequence.decisions
    elif sequence.remaining(state):
        assert not verdict.feasible


@OURS
def test_what_is_not_legal_is_refused(kind: str) -> None:
    sequence = build_sequence(MADE[kind](3))
    state = sequence.reset()
    for action in (-1, sequence.num_actions, *np.flatnonzero(~sequence.mask(state))):
        with pytest.raises(UsageError, match=r"not legal|mask|the action is -?[0-9]+; legal"):
            sequence.step(state, int(action))


@EACH
def test_an_environment_can_be_played(kind: str) -> None:
    """By Gymnasium's own rules."""
    check_env(make_env(MADE[kind](5)).unwrapped, skip_render_check=True)


@OURS
@pytest.mark.parametrize("method", ["nsga2", "nsga3", "moead", "mspso"])
def test_searches_repeat(kind: str, method: str) -> None:
    """The same seed, the same front; the referee confirms each point."""
    problem = MADE[kind](2)
    front, again = (api.solve(problem, method, evaluations=300, seed=2) for _ in range(2))
    assert front.points == again.points
    for point in front.points:
        verdict = problem.evaluate(point.plan)
        assert verdict.feasible and verdict.values == point.values
