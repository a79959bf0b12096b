"""Rescheduling searches: kernels against the referee, executable plans, exact fronts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from effort import tries
from hypothesis import given
from hypothesis import strategies as st
from rescheduling_states import state_search

from placeopt import api
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.task import Task
from placeopt.rescheduling import search
from placeopt.rescheduling.encoder import latencies, latency_after
from placeopt.rescheduling.generator import APPLICATIONS, fail, surge
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rescheduling.search import blocks as beam
from placeopt.rescheduling.search import blocks as pruning
from placeopt.rescheduling.search import descent
from placeopt.rescheduling.search import descent as eject
from placeopt.rescheduling.search.blocks import BlockSearch, PlanPruning
from placeopt.rescheduling.search.descent import zones

SMALL = {"cloud_a": 1, "edge_a": 1, "edge_b": 2}


def run(problem: Rescheduling, **parameters):
    return search.block_search(
        Task(problem, problem.objectives, Budget(seconds=60), 0), **parameters
    )


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([*APPLICATIONS, "random"]))
def test_kernels_agree_with_the_referee(seed: int, replicas: int, application: str) -> None:
    """Latencies of random deployments, and of every single move from them."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=6, jitter=0.4
    )
    rng, t = np.random.default_rng(seed), problem.arrays
    state = BlockSearch(problem, Budget()).state
    counts = np.array(
        [rng.multinomial(replicas, np.full(len(t.user), 1 / len(t.user))) for _ in t.replicas]
    )
    descent.load(t, state, counts)
    now = descent.state_latency(t, state)
    assert now == pytest.approx(problem.graph.latency_ms(counts.tolist()))
    assert latencies(t, np.stack((t.home, counts))) == pytest.approx([problem.initial_latency, now])
    descent.update_potentials(t, state)
    for i, u in np.argwhere(counts).tolist():
        for v in range(len(t.user)):
            after = counts.copy()
            after[i, u] -= 1
            after[i, v] += 1
            exact = problem.graph.latency_ms(after.tolist())
            trial = latency_after(t, state.deployment, state.scratch, i, u, v)
            assert trial == pytest.approx(exact)
            assert state.potential[i, v] - state.potential[i, u] <= exact - now + 1e-6
    assert descent.state_latency(t, state) == pytest.approx(now)


def crowded(problem: Rescheduling, seed: int) -> Rescheduling:
    """The same with room for at most one replica more on any node."""
    document, rng = problem.to_document(), np.random.default_rng(seed)
    for node in document["nodes"]:
        used = sum(
            s["cpu_cores"] * list(s["replicas"]).count(node["name"]) for s in document["services"]
        )
        node["cpu_cores"] = used + float(rng.choice([0.0, 0.5, 1.0]))
    return Rescheduling.from_document(document)


def test_search_meets_the_exact_front() -> None:
    """Instances of 4 pods: 98 % of the points are met, the least latency within 1 %."""
    met = points = 0
    for seed in range(tries(20, 60)):
        sizes = SMALL if seed % 2 else {**SMALL, "jitter": 0.3}
        problem = Rescheduling.generate(
            seed, application=[*APPLICATIONS, "random"][seed % 4], replicas=1, services=4, **sizes
        )
        if seed % 3 == 0:
            problem = crowded(problem, seed)
        exact, front = state_search(problem), run(problem)
        assert front.values[0, 0] <= exact[0][0] / 0.99
        found = [tuple(values) for values in front.values.tolist()]
        points += len(exact)
        met += sum(
            any(point == pytest.approx(other, rel=1e-12) for other in found) for point in exact
        )
    assert met >= 0.98 * points and points > tries(50, 150)


@pytest.mark.parametrize("seed", range(6))
def test_search_is_near_the_exact_front_of_eight_pods(seed: int) -> None:
    """Within a hundredth of the least latency of every number of moves."""
    sizes = {"cloud_a": 1, "edge_a": 1, "edge_b": 1, "jitter": 0.2}
    problem = Rescheduling.generate(
        seed, application=[*APPLICATIONS][seed % 3], replicas=2, **sizes
    )
    front = run(problem)
    for latency, moves in state_search(problem):
        assert front.values[front.values[:, 1] <= moves, 0].min() <= latency / 0.99


@given(st.integers(0, 10**6), st.sampled_from([*APPLICATIONS, "random"]), st.integers(1, 5))
def test_every_plan_can_be_executed(seed: int, application: str, replicas: int) -> None:
    """Archived plans have the latency that the search claims, and room for every move."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=4, edge_b=4, jitter=0.2
    )
    found = BlockSearch(problem, Budget(seconds=60))
    assert found.run()
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
    document = {
        "problem": "rescheduling",
        "name": "swap",
        "nodes": nodes,
        "latency_ms": latency,
        "services": services,
        "gateway": "a",
    }
    problem = Rescheduling.from_document(document)
    found = BlockSearch(problem, Budget())
    descent.load(problem.arrays, found.state, np.array([[0, 1, 0], [1, 0, 0]]))
    now = descent.state_latency(problem.arrays, found.state)
    descent.offer(problem.arrays, found.state, found.archive, now)
    latency_ms, moves = found.plans()[3]
    assert latency_ms == 1 + 1 + 1 + 1 and problem.evaluate(problem.plan(moves.tolist())).feasible
    assert state_search(problem)[0] == (4.0, 3.0)


@pytest.mark.parametrize("services", [6, 20, 60])
def test_many_services_are_searched_by_a_beam(services: int) -> None:
    """Beyond five services: better than single moves, within a budget, the same every time."""
    problem = Rescheduling.generate(
        3,
        application="random",
        services=services,
        replicas=3,
        cloud_a=6,
        edge_a=6,
        edge_b=6,
        jitter=0.1,
    )
    front = run(problem)
    alone = search.greedy(Task(problem, problem.objectives, Budget(), 0))
    assert (
        front.values[0, 0] < alone.values[0, 0]
        and front.runs[0].completed
        and front.rejected is None
    )
    short, again = (
        search.block_search(Task(problem, problem.objectives, Budget(evaluations=50), 0))
        for _ in range(2)
    )
    assert short.points and not short.runs[0].completed and short.points == again.points


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 3), st.integers(1, 6))
def test_a_beam_builds_deployments_that_fit(
    seed: int, services: int, replicas: int, width: int
) -> None:
    """All replicas, within capacity, sorted by the latency of the referee; unreached ones stay."""
    problem = Rescheduling.generate(
        seed, application="random", services=services, replicas=replicas, jitter=0.3
    )
    if services > 2:
        problem = Rescheduling.from_document(
            {**problem.to_document(), "gateway": problem.services[1].name}
        )
    t = problem.arrays
    deployments = beam.deployments(t, zones(t), width)
    assert 1 <= len(deployments) <= width
    unreached = sorted(set(range(services)) - set(t.order.tolist()))
    for counts in deployments:
        assert (counts.sum(axis=1) == t.replicas).all() and (
            counts.T @ t.demand <= t.capacity
        ).all()
        assert (counts[unreached] == t.home[unreached]).all()
    latency = [
        problem.graph.latency(c.tolist()) / problem.graph.parts
        + 1e-4 * np.maximum(c - t.home, 0).sum()
        for c in deployments
    ]
    assert latency == pytest.approx(sorted(latency))


def test_room_is_made_for_what_gains_more() -> None:
    """The fast node is full of a service off the critical path, which leaves for the slow one."""
    times = {"fast": 10.0, "slow": 100.0}
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}
    services = [
        {"name": "a", **size, "execution_ms": times, "replicas": ["s"], "calls": [["b"], ["c"]]},
        {
            "name": "b",
            **size,
            "execution_ms": {"fast": 500.0, "slow": 500.0},
            "replicas": ["s"],
            "calls": [],
        },
        {
            "name": "c",
            **size,
            "execution_ms": {"fast": 1.0, "slow": 1.0},
            "replicas": ["f", "f"],
            "calls": [],
        },
    ]
    nodes = [
        {"name": n[0], "kind": n, "cpu_cores": c, "memory_gib": c, "user_latency_ms": 0.0}
        for n, c in (("fast", 2.0), ("slow", 4.0))
    ]
    document = {
        "problem": "rescheduling",
        "name": "full",
        "nodes": nodes,
        "latency_ms": {"f": {"s": 1.0}},
        "services": services,
        "gateway": "a",
    }
    problem = Rescheduling.from_document(document)
    found = BlockSearch(problem, Budget())
    assert found.improve() and found.archive.latency.min() == problem.initial_latency == 600
    assert eject.improve(problem.arrays, found.state, found.archive) == 511
    assert run(problem).values.tolist() == [[510.0, 4.0], [511.0, 2.0], [600.0, 0.0]]


def test_moves_can_be_limited_and_must_pay() -> None:
    """`max_moves` holds; `min_gain_ms` leaves out what gains less a move."""
    problem = Rescheduling.generate(1, replicas=3)
    assert run(problem, max_moves=2).values[:, 1].max() == 2
    values = sorted(map(tuple, run(problem, min_gain_ms=8.0).values.tolist()), key=lambda v: v[1])
    for k, (latency, moves) in enumerate(values):
        assert all(other - latency >= 8 * (moves - fewer) - 1e-9 for other, fewer in values[:k])
    assert len(values) < len(run(problem))
    assert search.worthwhile({0: 100.0, 1: 99.0, 3: 80.0}, 5.0) == {0, 3}
    assert len(run(problem, max_moves=10**6)) == len(run(problem))


@pytest.mark.parametrize("name", ["max_moves", "min_gain_ms"])
@pytest.mark.parametrize("wrong", [-1, "abc", float("nan"), 1e12])
def test_parameters_outside_their_range_are_refused(name: str, wrong: object) -> None:
    problem = Rescheduling.generate(1, replicas=1)
    with pytest.raises(UsageError, match=f"{name} of block-search is .* legal: at least 0"):
        api.solve(problem, "block-search", **{name: wrong})


def cheapest_rest(problem: Rescheduling, moves: list, gain: float) -> float:
    """Return the least latency plus `gain` per move over the subsets of moves, in their order."""
    costs = []
    for chosen in itertools.product([False, True], repeat=len(moves)):
        verdict = problem.evaluate({"moves": list(itertools.compress(moves, chosen))})
        if verdict.feasible:
            costs.append(verdict.values[0] + gain * verdict.values[1])
    return min(costs)


@given(
    st.integers(0, 10**6),
    st.sampled_from([*APPLICATIONS, "random"]),
    st.integers(1, 3),
    st.floats(0.2, 25),
    st.booleans(),
)
def test_no_subset_of_the_moves_can_be_left_out_cheaply(
    seed: int, application: str, replicas: int, gain: float, full: bool
) -> None:
    """Of every plan of a front, by all subsets; and of what is left of random plans."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, services=4, jitter=0.3, edge_b=1, edge_a=1
    )
    if full:
        problem = crowded(problem, seed)
    for point in run(problem, min_gain_ms=gain).points:
        moves = point.plan["moves"]
        if len(moves) <= 8:
            assert (
                point.values[0] + gain * point.values[1]
                <= cheapest_rest(problem, moves, gain) + 1e-9
            )
    plan, proven = PlanPruning(problem, gain).reduce(arbitrary(problem, seed))
    verdict = problem.evaluate(problem.plan(plan))
    assert proven and verdict.feasible
    assert (
        verdict.values[0] + gain * verdict.values[1]
        <= cheapest_rest(problem, problem.plan(plan)["moves"], gain) + 1e-9
    )


def arbitrary(problem: Rescheduling, seed: int) -> list[tuple[int, int, int]]:
    """Up to eight random moves with room."""
    t, rng, moves = problem.arrays, np.random.default_rng(seed), []
    counts = t.home.copy()
    for _ in range(8):
        free = t.capacity - counts.T @ t.demand
        legal = [
            (i, u, v)
            for i, u in np.argwhere(counts).tolist()
            for v in np.flatnonzero((free >= t.demand[i]).all(axis=1)).tolist()
            if v != u
        ]
        if legal:
            i, u, v = legal[int(rng.integers(len(legal)))]
            counts[i, u] -= 1
            counts[i, v] += 1
            moves.append((i, u, v))
    return moves


def test_long_plans_are_reduced_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where combinations are too many: no single move and no service can be left out cheaply."""
    monkeypatch.setattr(pruning, "EXHAUSTIVE", 1)
    for seed in range(12):
        problem = Rescheduling.generate(
            seed,
            application=[*APPLICATIONS, "random"][seed % 4],
            replicas=2,
            services=4,
            jitter=0.3,
        )
        plan, proven = PlanPruning(problem, 4.0).reduce(arbitrary(problem, seed))
        moves = problem.plan(plan)["moves"]
        verdict = problem.evaluate({"moves": moves})
        assert not proven and verdict.feasible
        services = {m["service"] for m in moves}
        rests = [[m for k, m in enumerate(moves) if k != left] for left in range(len(moves))]
        rests += [[m for m in moves if m["service"] != name] for name in services]
        for rest in rests:
            other = problem.evaluate({"moves": rest})
            assert (
                not other.feasible
                or other.values[0] - verdict.values[0]
                >= 4 * (verdict.values[1] - other.values[1]) - 1e-9
            )


@pytest.mark.parametrize(
    "method", [search.kubernetes, search.cloud_first, search.latency_greedy, search.greedy]
)
@pytest.mark.parametrize("application", APPLICATIONS)
def test_baselines_are_feasible_and_no_better(method, application: str) -> None:
    """In the paper's scenarios too; search reaches what any of them does."""
    problem = Rescheduling.generate(5, application=application, replicas=3)
    for case in (problem, fail(problem, ["edge-a-1", "cloud-a-1"]), surge(problem, 5)):
        front = method(Task(case, seed=0))
        assert front.points and front.rejected is None
        assert run(case).values[0, 0] <= front.values[0, 0] + 1e-9


def test_cloud_first_fills_the_fastest() -> None:
    """And the user's nearest, and the emptiest: each baseline does what it says."""
    problem = Rescheduling.generate(2, replicas=1)
    for method, kinds in (
        (search.cloud_first, {"cloud-a"}),
        (search.latency_greedy, {"edge-a", "edge-b"}),
    ):
        plan = method(Task(problem)).points[0].plan
        homes = problem.final_counts(plan).sum(axis=0)
        assert {problem.nodes[n].kind for n in np.flatnonzero(homes)} <= kinds


def test_auto_goes_on_where_block_search_ends() -> None:
    """With a limit on the moves, which only block search knows, that one answers alone."""
    problem = Rescheduling.generate(953)
    blocks = api.solve(problem, "block-search")
    found = api.solve(problem)
    assert {"block-search", "moead"} == {run.method for run in found.runs} - {"auto"}
    assert found.hypervolume(found.reference()) > blocks.hypervolume(found.reference())
    few = api.solve(problem, max_moves=3)
    assert {p.method for p in few.points} == {"block-search"} and few.values[:, 1].max() <= 3
    with pytest.raises(UsageError, match="no parameter 'most_moves'"):
        api.solve(problem, most_moves=3)


def test_a_time_limit_brings_every_block_of_more_services() -> None:
    """No number of moves gets slower, and some far plan is found that a beam does not lead to."""
    better = 0
    for seed in range(4):
        problem = Rescheduling.generate(seed, application="random", services=7)
        few, all_blocks = (BlockSearch(problem, Budget(evaluations=10**9)) for _ in range(2))
        assert few.run() and all_blocks.run(in_time=True)
        least, now = few.archive.latency.copy(), all_blocks.archive.latency.copy()
        least, now = np.minimum.accumulate(least), np.minimum.accumulate(now)
        assert (now <= least + descent.ROUNDING_MS).all()
        better += int((now < least - 0.1).any())
    assert better
