"""Rolling-update encoder: what it says of every vector is what the referee says of its plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placeopt.core.interfaces import build_encoder
from placeopt.rolling_update.instance import RollingUpdate


def mutilated(seed: int) -> RollingUpdate:
    """Return a small instance with what generated ones lack.

    These are drained nodes, pins, memory that binds, growth and fixed applications.
    """
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(1, 4))
    drawn = RollingUpdate.generate(
        seed,
        applications=4,
        microservices=3,
        clusters=clusters,
        nodes=6,
        reschedulable=3,
        occupancy=0.5,
    )
    document: dict[str, Any] = drawn.to_document()
    document["semantics"] = str(rng.choice(["stay", "strict"]))
    for node in document["nodes"]:
        node |= {"price": float(rng.choice([0.0, 0.5, 1.0])), "drain": bool(rng.random() < 0.1)}
        node["memory_mib"] = int(rng.choice([600, 1200, 3000]))
        node["cpu_millicores"] = int(rng.choice([4000, 8000, 12000]))
    for application in document["applications"]:
        for m in application["microservices"]:
            if application["reschedulable"]:
                m |= {
                    "pinned": bool(rng.random() < 0.1),
                    "new_memory_mib": int(m["memory_mib"] * rng.choice([1, 1, 0.5, 1.5])),
                }
    if rng.random() < 0.2:
        document["cluster_latency_ms"].pop("c0", None)
    return RollingUpdate.from_document(document)


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_agrees_with_the_referee(seed: int) -> None:
    """Values, and whether the plan is feasible, on samples, children and mutants."""
    problem = mutilated(seed)
    encoder = build_encoder(problem)
    rng = np.random.default_rng(seed)
    X = encoder.sample(rng, 8)
    X = np.concatenate((X, encoder.vary(rng, X, X[::-1]), encoder.mutate(rng, X)))
    assert (X >= encoder.lower).all() and (X <= encoder.upper).all()
    F, G = encoder.evaluate(X)
    for genes, values, excess in zip(X, F, G, strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert verdict.values == tuple(values)
        assert verdict.feasible == (excess <= 0).all(), verdict.violations


def test_children_find_feasible_deployments_by_themselves() -> None:
    """Variation alone, survivors chosen by excess, mends random vectors."""
    problem = RollingUpdate.generate(1)
    encoder = build_encoder(problem)
    rng = np.random.default_rng(0)
    X = encoder.sample(rng, 60)
    for _ in range(60):
        X = np.concatenate((X, encoder.vary(rng, X, X[rng.permutation(len(X))])))
        F, G = encoder.evaluate(X)
        X = X[np.lexsort((F[:, 0], G.sum(axis=1)))[:60]]
    F, G = encoder.evaluate(X)
    assert (G == 0).all()
    assert F[:, 0].min() <= 11


def test_a_column_per_objective_in_the_order_asked_for() -> None:
    problem = RollingUpdate.generate(3)
    X = build_encoder(problem).sample(np.random.default_rng(1), 5)
    every = build_encoder(problem).evaluate(X)[0]
    np.testing.assert_array_equal(
        build_encoder(problem, problem.select(["starts", "node_cost"])).evaluate(X)[0],
        every[:, [1, 0]],
    )
    np.testing.assert_array_equal(
        build_encoder(problem, problem.select(["node_cost"])).evaluate(X)[0], every[:, [0]]
    )


def test_a_plan_survives_encoding() -> None:
    problem = mutilated(5)
    encoder = build_encoder(problem)
    X = encoder.sample(np.random.default_rng(1), 20)
    np.testing.assert_array_equal(X, [encoder.encode(encoder.decode(x)) for x in X])


def test_nothing_to_move_is_one_vector() -> None:
    problem = RollingUpdate.generate(0, applications=2, reschedulable=0, downscaled=0.0)
    encoder = build_encoder(problem)
    F, G = encoder.evaluate(
        encoder.mutate(np.random.default_rng(0), encoder.sample(np.random.default_rng(0), 3))
    )
    assert (F[:, 1:] == 0).all() and (G == 0).all()
    assert encoder.decode(np.zeros(1, dtype=int)) == {"steps": []}
