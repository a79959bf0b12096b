"""The rescheduling model: its front is that of a search over all deployments."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from rescheduling_states import state_search

from placeopt import models
from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.exact import epsilon_constraint
from placeopt.exact.compiled_model import CompiledModel
from placeopt.rescheduling.encoder import shortest
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling

SMALL = {"cloud_a": 1, "edge_a": 1, "edge_b": 2, "services": 4}


def instance(seed: int, replicas: int = 1) -> Rescheduling:
    """Every second one is crowded: nodes have room for at most one replica more than they host."""
    document = Rescheduling.generate(
        seed, application=[*APPLICATIONS, "random"][seed % 4], replicas=replicas, **SMALL
    ).to_document()
    if seed % 8 >= 4:
        rng = np.random.default_rng(seed)
        for node in document["nodes"]:
            used = sum(
                s["cpu_cores"] * list(s["replicas"]).count(node["name"])
                for s in document["services"]
            )
            node["cpu_cores"] = used + float(rng.choice([0.0, 0.5, 1.0]))
    return Rescheduling.from_document(document)


def exact(problem: Rescheduling, solver: str = "highs"):
    return epsilon_constraint.run(
        Task(problem, problem.objectives, Budget(seconds=60)), solver=solver
    )


@pytest.mark.parametrize("seed", range(26))
def test_front_is_that_of_all_states(seed: int) -> None:
    """Four pods: every point, proven, whatever the order of moves costs."""
    problem = instance(seed)
    front = exact(problem, "scip" if seed % 13 == 12 else "highs")
    assert [tuple(v) for v in front.values.tolist()] == state_search(problem)
    assert {p.status for p in front.points} == {"optimal"} and front.runs[0].completed


@pytest.mark.parametrize("seed", [0, 5])
def test_replicas_multiply_exactly(seed: int) -> None:
    """Two replicas of each: eight pods, bilinear latencies."""
    problem = Rescheduling.generate(
        seed, application=[*APPLICATIONS][seed % 3], replicas=2, cloud_a=1, edge_a=1, edge_b=1
    )
    np.testing.assert_allclose(exact(problem).values, state_search(problem))


def test_hops_are_charged() -> None:
    """Two services that change places need three moves, by way of a third node."""
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}
    times = {"x": {"x": 1.0, "y": 50.0, "z": 90.0}, "y": {"x": 50.0, "y": 1.0, "z": 90.0}}
    services = [
        {"name": "a", **size, "execution_ms": times["y"], "replicas": ["nx"], "calls": [["b"]]},
        {"name": "b", **size, "execution_ms": times["x"], "replicas": ["ny"]},
    ]
    for nodes, expected in (
        ("xyz", [(4.0, 3.0), (93.0, 2.0), (102.0, 0.0)]),
        ("xy", [(102.0, 0.0)]),
    ):
        listed = [{"name": f"n{k}", "kind": k, **size, "user_latency_ms": 1.0} for k in nodes]
        latency = {f"n{a}": {f"n{b}": 1.0 for b in nodes if b > a} for a in nodes}
        document = {
            "problem": "rescheduling",
            "name": "swap",
            "nodes": listed,
            "latency_ms": latency,
            "services": services,
            "gateway": "a",
        }
        problem = Rescheduling.from_document(document)
        front = exact(problem)
        assert [tuple(v) for v in front.values.tolist()] == expected == state_search(problem)
        assert {p.status for p in front.points} == {"optimal"}
    assert shortest(problem.arrays, np.array([[0, 1], [1, 0]])) == (None, True)
    assert shortest(instance(0).arrays, instance(0).arrays.home) == ([], True)


def test_size_is_known_beforehand() -> None:
    """Within a factor of two."""
    problem = Rescheduling.generate(1, replicas=2)
    compiled = CompiledModel(models.rescheduling.build(problem), problem.objectives)
    assert 0.5 < compiled.program.A.nnz / models.rescheduling.size(problem) < 2
    model = models.rescheduling.build(problem)
    assert {c.name for c in model.component_objects(pyo.Expression)} >= {
        "latency_ms",
        "moves",
        "count",
    }
