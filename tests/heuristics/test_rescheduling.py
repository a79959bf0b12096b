"""Rescheduling searches: kernels against the referee, plans that can be executed, fronts against a search over all states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt.budget import Budget
from placeopt.errors import UsageError
from placeopt.heuristics import rescheduling as search
from placeopt.heuristics import rescheduling_kernels as kernels
from placeopt.problems.rescheduling import Rescheduling
from placeopt.problems.rescheduling_instances import APPLICATIONS, fail, surge

SMALL = {"cloud_a": 1, "edge_a": 1, "edge_b": 2}


def state_search(problem: Rescheduling) -> list[tuple[float, float]]:
    """The exact front: breadth first over the deployments that moves with room reach."""
    t = problem.arrays
    home = tuple(map(tuple, t.home.tolist()))
    seen, level, best, front = {home}, [home], math.inf, []
    for moves in range(1000):
        least = min(problem.graph.latency(state) for state in level) / problem.graph.parts
        if least < best:
            best = least
            front.append((least, float(moves)))
        found = []
        for state in level:
            counts = np.array(state)
            free = t.capacity - np.tensordot(counts, t.demand, axes=(0, 0))
            for i, u in np.argwhere(counts).tolist():
                for v in np.flatnonzero((free >= t.demand[i]).all(axis=1)).tolist():
                    after = counts.copy()
                    after[i, u] -= 1
                    after[i, v] += 1
                    key = tuple(map(tuple, after.tolist()))
                    if key not in seen:
                        seen.add(key)
                        found.append(key)
        if not found:
            return sorted(front)
        level = found
    raise AssertionError


def run(problem: Rescheduling, **parameters):
    return search.block_search(problem, problem.objectives, Budget(seconds=60), 0, **parameters)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([*APPLICATIONS, "random"]))
def test_kernels_agree_with_the_referee(seed: int, replicas: int, application: str) -> None:
    """Latencies of random deployments, and of every single move from them."""
    problem = Rescheduling.generate(seed, application=application, replicas=replicas, services=6, jitter=0.4)
    rng, t = np.random.default_rng(seed), problem.arrays
    found = search.Search(problem)
    counts = np.array([rng.multinomial(replicas, np.full(len(t.user), 1 / len(t.user))) for _ in t.replicas])
    kernels.load(t, found.work, counts)
    now = kernels.total(t, found.work)
    assert now == pytest.approx(problem.graph.latency(counts.tolist()) / problem.graph.parts)
    kernels._potentials(t, found.work)
    for i, u in np.argwhere(counts).tolist():
        for v in range(len(t.user)):
            after = counts.copy()
            after[i, u] -= 1
            after[i, v] += 1
            exact = problem.graph.latency(after.tolist()) / problem.graph.parts
            assert kernels._trial(t, found.work, i, u, v) == pytest.approx(exact)
            assert found.work.pot[i, v] - found.work.pot[i, u] <= exact - now + 1e-6
    assert kernels.total(t, found.work) == pytest.approx(now)


@pytest.mark.parametrize("seed", range(24))
def test_search_is_near_the_exact_front(seed: int) -> None:
    """Within a hundredth of the least latency, and of that of every number of moves on the exact front within a twentieth."""
    application = [*APPLICATIONS, "random"][seed % 4]
    problem = Rescheduling.generate(seed, application=application, replicas=1 + seed % 2 * (seed % 4 < 3), services=4, **SMALL)
    exact, front = state_search(problem), run(problem)
    assert front.values[0, 0] <= exact[0][0] / 0.99
    for latency, moves in exact:
        assert front.values[front.values[:, 1] <= moves, 0].min() <= latency / 0.95


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([*APPLICATIONS, "random"]), st.integers(1, 5))
def test_every_plan_can_be_executed(seed: int, application: str, replicas: int) -> None:
    """Archived plans have the latency that the search claims, room for every move, and start with doing nothing."""
    problem = Rescheduling.generate(seed, application=application, replicas=replicas, services=4, edge_b=4, jitter=0.2)
    found = search.Search(problem)
    assert found.blocks(Budget(seconds=60))
    plans = found.plans()
    assert plans[0][0] == pytest.approx(problem.initial_latency)
    for k, (latency, moves) in plans.items():
        verdict = problem.evaluate(problem.plan(moves.tolist()))
        assert verdict.feasible and verdict.values == (pytest.approx(latency), k)


def test_crowded_nodes_need_a_hop() -> None:
    """Two services that must change places are led around through the third node."""
    kinds = {"x": {"x": 1.0, "y": 50.0, "z": 90.0}, "y": {"x": 50.0, "y": 1.0, "z": 90.0}}
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}
    services = [
        {"name": "a", **size, "execution_ms": kinds["y"], "replicas": ["nx"], "calls": [["b"]]},
        {"name": "b", **size, "execution_ms": kinds["x"], "replicas": ["ny"], "calls": []},
    ]
    nodes = [{"name": f"n{k}", "kind": k, **size, "user_latency_ms": 1.0} for k in "xyz"]
    latency = {"nx": {"ny": 1.0, "nz": 1.0}, "ny": {"nz": 1.0}}
    document = {"problem": "rescheduling", "name": "swap", "nodes": nodes, "latency_ms": latency, "services": services, "gateway": "a"}
    problem = Rescheduling.from_document(document)
    found = search.Search(problem)
    target = np.array([[0, 1, 0], [1, 0, 0]])
    kernels.load(problem.arrays, found.work, target)
    kernels.offer(problem.arrays, found.work, problem.arrays.home, found.archive, kernels.total(problem.arrays, found.work))
    latency_ms, moves = found.plans()[3]
    assert latency_ms == 1 + 1 + 1 + 1 and problem.evaluate(problem.plan(moves.tolist())).feasible
    assert state_search(problem)[0] == (4.0, 3.0)


def test_many_services_are_searched_by_blocks() -> None:
    """Beyond five services: better than single moves, executable, within a budget, the same every time."""
    problem = Rescheduling.generate(3, application="random", services=20, replicas=3, cloud_a=3, edge_a=3, edge_b=3)
    front = run(problem)
    alone = search.greedy(problem, problem.objectives, Budget(), 0)
    assert front.values[0, 0] <= alone.values[0, 0] and front.runs[0].completed
    short, again = (search.block_search(problem, problem.objectives, Budget(evaluations=500), 0) for _ in range(2))
    assert short.points and not short.runs[0].completed and short.points == again.points


def test_moves_can_be_limited_and_must_pay() -> None:
    """`max_moves` holds; `min_gain_ms` leaves out what gains less a move."""
    problem = Rescheduling.generate(1, replicas=3)
    assert run(problem, max_moves=2).values[:, 1].max() == 2
    values = sorted(map(tuple, run(problem, min_gain_ms=8.0).values.tolist()), key=lambda v: v[1])
    for k, (latency, moves) in enumerate(values):
        assert all(other - latency >= 8 * (moves - fewer) - 1e-9 for other, fewer in values[:k])
    assert len(values) < len(run(problem))
    assert search.worthwhile({0: 100.0, 1: 99.0, 3: 80.0}, 5.0) == {0, 3}
    for wrong in ({"max_moves": -1}, {"min_gain_ms": -2.0}):
        with pytest.raises(UsageError, match="at least 0"):
            run(problem, **wrong)


@pytest.mark.parametrize("method", [search.kubernetes, search.cloud_first, search.latency_greedy, search.greedy])
@pytest.mark.parametrize("application", APPLICATIONS)
def test_baselines_are_feasible_and_no_better(method, application: str) -> None:
    """In the paper's scenarios too; search reaches what any of them does."""
    problem = Rescheduling.generate(5, application=application, replicas=3)
    for case in (problem, fail(problem, ["edge-a-1", "cloud-a-1"]), surge(problem, 5)):
        front = method(case, case.objectives, Budget(), 0)
        assert front.points and front.rejected is None
        assert run(case).values[0, 0] <= front.values[0, 0] + 1e-9


def test_cloud_first_fills_the_fastest() -> None:
    """And the user's nearest, and the emptiest: each baseline does what it says."""
    problem = Rescheduling.generate(2, replicas=1)
    for method, kinds in ((search.cloud_first, {"cloud-a"}), (search.latency_greedy, {"edge-a", "edge-b"})):
        plan = method(problem, problem.objectives, Budget(), 0).points[0].plan
        homes = problem.final_counts(plan).sum(axis=0)
        assert {problem.nodes[n].kind for n in np.flatnonzero(homes)} <= kinds
