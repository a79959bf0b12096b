"""Finished plans and their changes: the kernels beside the referee, and ``retime``."""

from __future__ import annotations

import numpy as np
import pytest
from hands import within
from temporal_instances import mutilated

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.task import Task
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import retime
from placeopt.temporal.search.retime import MachineEncoder


def random_state(seed: int) -> np.ndarray:
    return np.array([seed], dtype=np.uint64)


def test_where_no_machine_is_large_enough_it_says_so() -> None:
    document = Temporal.generate(1, requests=2).to_document()
    for request in document["requests"]:
        request["cpu_cores"] = 1000.0
    front = placeopt.solve(Temporal.from_document(document), "retime", evaluations=50)
    assert not front.points and front.reasons


@pytest.mark.parametrize("seed", range(30))
def test_the_kernels_agree_with_the_referee(seed: int) -> None:
    """Of random vectors, of packed ones, and after changes; latency and interruption stay."""
    problem = mutilated(seed)
    encoder = MachineEncoder(problem, problem.objectives)
    rng = np.random.default_rng(seed)
    anything = rng.integers(encoder.lower, encoder.upper + 1, size=(5, encoder.num_genes))
    X = np.concatenate((encoder.placed(encoder.packed.sample(rng, 10)), anything))
    better = encoder.improve(X, 20, random_state(seed))
    for vectors in (X, better):
        F, G = encoder.evaluate(vectors)
        for genes, values, excess in zip(vectors, F, G, strict=True):
            verdict = problem.evaluate(encoder.decode(genes))
            np.testing.assert_allclose(verdict.values, values, rtol=1e-9, atol=1e-12)
            assert verdict.feasible == (excess <= 0).all()
            again = encoder.evaluate(encoder.encode(encoder.decode(genes))[None])[0][0]
            np.testing.assert_allclose(again, values, rtol=1e-9, atol=1e-12)
    before, after = encoder.evaluate(X), encoder.evaluate(better)
    np.testing.assert_allclose(after[0][:, [0, 2]], before[0][:, [0, 2]], rtol=1e-12)
    assert (after[0][:, 1] <= before[0][:, 1] * (1 + 1e-9)).all()
    assert (after[1] <= before[1] + 1e-12).all()


def test_packed_vectors_keep_their_values() -> None:
    problem = Temporal.generate(5, requests=30)
    encoder = MachineEncoder(problem, problem.objectives)
    X = encoder.packed.sample(np.random.default_rng(1), 20)
    np.testing.assert_allclose(
        encoder.evaluate(encoder.placed(X))[0], encoder.packed.evaluate(X)[0]
    )


def cheapest(problem: Temporal) -> float:
    """Return the least cost of two requests on one machine or two, by all starts."""
    latest = [problem.horizon_slots - request.duration_slots for request in problem.requests]
    costs = []
    for a in range(latest[0] + 1):
        for b in range(latest[1] + 1):
            for together in (True, False):
                machines = [{"location": "near", "size": "m", "pricing": "on-demand"}] * 2
                hosted = [[["a", 0], ["b", 0]], []] if together else [[["a", 0]], [["b", 0]]]
                plan = {
                    "starts": {"a": a, "b": b},
                    "instances": [
                        machine | {"replicas": replicas}
                        for machine, replicas in zip(machines, hosted, strict=True)
                        if replicas
                    ],
                }
                verdict = problem.evaluate(plan)
                if verdict.feasible:
                    costs.append(verdict.values[1])
    return min(costs)


@pytest.mark.parametrize("cores", [2.0, 4.0])
def test_two_requests_reach_the_least_cost_of_all_plans(cores: float) -> None:
    document = Temporal.generate(1, requests=2, horizon=12, places=1, max_replicas=1).to_document()
    offer = document["offers"][0] | {"location": "near", "size": "m", "memory_gib": 64.0}
    offer |= {"cpu_cores": cores, "on_demand_usd_per_hour": 1.0, "max_instances": None}
    offer |= {"reserved_usd_per_hour": None, "spot_usd_per_hour": None}
    requests = [
        request | {"name": name, "cpu_cores": 2.0, "memory_gib": 1.0, "duration_slots": slots}
        for request, name, slots in zip(document["requests"], "ab", (5, 3), strict=True)
    ]
    origins = {request["origin"]: {"near": 1.0} for request in requests}
    document |= {"offers": [offer], "requests": requests, "latency_ms": origins}
    problem = Temporal.from_document(document)
    apart = {
        "starts": {"a": 0, "b": 7},
        "instances": [
            {"location": "near", "size": "m", "pricing": "on-demand", "replicas": [[name, 0]]}
            for name in "ab"
        ],
    }
    encoder = MachineEncoder(problem, problem.objectives)
    better = encoder.improve(encoder.encode(apart)[None], 50, random_state(1))
    assert encoder.evaluate(better)[0][0, 1] == pytest.approx(cheapest(problem))
    assert cheapest(problem) == (5.0 if cores == 4 else 8.0) * document["slot_hours"]


def test_plans_of_a_front_become_cheaper_and_none_is_lost() -> None:
    problem = Temporal.generate(3, requests=20, max_replicas=2)
    start = placeopt.solve(problem, "moead", evaluations=3000)
    front = placeopt.solve(problem, "retime", start=start, evaluations=20_000)
    assert front.runs[0].evaluations <= 20_000
    for point in start.values:
        assert (front.values <= point + 1e-9).all(axis=1).any()
    assert front.hypervolume(start.reference()) > start.hypervolume(start.reference())
    again = placeopt.solve(problem, "retime", start=start, evaluations=20_000)
    assert again.values.tolist() == front.values.tolist()


def test_it_needs_no_start_and_knows_limits() -> None:
    problem = Temporal.generate(3, requests=10)
    front = placeopt.solve(problem, "retime", evaluations=2000)
    assert len(front) > 3
    most = float(np.median(front.values[:, 0]))
    narrow = placeopt.solve(problem, "retime", evaluations=2000, limits={"latency_ms": most})
    assert len(narrow) > 0 and (narrow.values[:, 0] <= most).all()
    assert placeopt.solve(problem, "retime", evaluations=1).points
    assert placeopt.solve(problem, "retime", objectives=["latency_ms"], evaluations=500).points


@pytest.mark.parametrize("requests", [10, 300])
def test_a_time_limit_is_kept(requests: int) -> None:
    problem = Temporal.generate(1, requests=requests)
    placeopt.solve(Temporal.generate(1, requests=5), "retime", evaluations=200)  # compiles
    budget = Budget(seconds=1.0)
    with within(1.0, 2.0):
        assert retime.run(Task(problem, budget=budget)).points
