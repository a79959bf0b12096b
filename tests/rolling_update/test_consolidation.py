"""Consolidation and its bound: against all deployments of tiny instances, and on the paper's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import placeopt
from placeopt.core.budget import Budget
from placeopt.rolling_update import bounds as bounds_module
from placeopt.rolling_update.bounds import bound_vectors, lower_bound
from placeopt.rolling_update.order import plan_moves
from placeopt.rolling_update.packing import consolidation
from placeopt.rolling_update.packing.consolidation import Consolidation, TargetDeployment
from placeopt.rolling_update.problem import RollingUpdate


def tiny(seed: int) -> RollingUpdate:
    """Return at most 5 microservices on 4 nodes of two sizes and several prices.

    Memory binds in half of the instances.
    """
    rng = np.random.default_rng(seed)
    clusters = ["c0", "c1"][: int(rng.integers(1, 3))]
    memory = 10 if rng.random() < 0.5 else 100
    nodes = [
        {
            "name": f"n{k}",
            "cluster": str(rng.choice(clusters)),
            "cpu_millicores": int(rng.choice([8, 12])),
            "memory_mib": memory,
        }
        | {"price": float(rng.choice([0.0, 1.0, 1.0, 1.5])), "drain": bool(rng.random() < 0.1)}
        for k in range(4)
    ]
    applications: list[dict[str, Any]] = []
    for a in range(2):
        free = bool(rng.random() < 0.8)
        services = [
            {
                "name": f"m{k}",
                "node": f"n{rng.integers(4)}",
                "cpu_millicores": int(rng.integers(1, 6)),
                "memory_mib": int(rng.integers(1, 6)),
            }
            | (
                {"new_cpu_millicores": int(rng.integers(1, 6)), "pinned": bool(rng.random() < 0.1)}
                if free and rng.random() < 0.4
                else {}
            )
            for k in range(int(rng.integers(2, 4 - a)) + a)
        ]
        flows = [{"from": "m0", "to": "m1", "max_latency_ms": float(rng.choice([10, 90]))}]
        applications.append(
            {"name": f"a{a}", "reschedulable": free, "microservices": services[:3], "flows": flows}
        )
    document = {
        "problem": "rolling-update",
        "name": "tiny",
        "nodes": nodes,
        "applications": applications,
    }
    return RollingUpdate.from_document(
        document
        | {
            "cluster_latency_ms": {"c0": {"c1": 50.0}},
            "semantics": str(rng.choice(["stay", "strict"])),
        }
    )


def feasible(problem: RollingUpdate, target: np.ndarray) -> bool:
    """Whether a deployment is within capacities and limits, however it is reached.

    The plan stops everything, then starts it there.
    """
    a = problem.arrays
    todo = np.flatnonzero(a.mandatory | (target != a.home)).tolist()
    plan = problem.plan([(m, -1) for m in todo] + [(m, int(target[m])) for m in todo])
    return problem.evaluate(plan).feasible


def deployments(problem: RollingUpdate) -> list[TargetDeployment]:
    """All deployments that can be reached somehow, with their prices."""
    a = problem.arrays
    choices = [
        range(len(a.price)) if movable else [home]
        for movable, home in zip(a.movable, a.home.tolist(), strict=True)
    ]
    every = np.array(list(itertools.product(*choices)))
    least = np.minimum(a.old, a.new)  # the referee need not be asked where this is too much
    for n, room in enumerate(a.capacity):
        every = every[((every == n) @ least <= room).all(axis=1)]
    return [
        TargetDeployment(int(a.price[np.unique(x)].sum()), x) for x in every if feasible(problem, x)
    ]


@pytest.mark.parametrize("exchanges_first", [False, True])
def test_bound_and_packing_against_all_deployments(
    exchanges_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if exchanges_first:
        monkeypatch.setattr(consolidation, "_MAX_REPAIRED_NODES", 0)
    hits = solved = steps = 0
    for seed in range(20):
        problem = tiny(seed)
        every = deployments(problem)
        found = list(Consolidation(problem, seed).targets(Budget()))
        if not every:
            assert not found
            continue
        assert all(feasible(problem, t.node) for t in found), seed
        best = min(t.price for t in every)
        assert lower_bound(problem) <= best, seed
        bounds = bound_vectors(problem, problem.select(["node_cost", "starts"]))
        for target in every:
            starts = problem.arrays.starts_of(target.node).sum()
            values = target.price / problem.arrays.price_scale, starts
            assert (bounds <= values).all(axis=1).any(), (seed, values)
        steps += len(bounds) > 1
        solved += 1
        hits += bool(found) and found[-1].price == best
        assert [t.price for t in found] == sorted((t.price for t in found), reverse=True)
    assert solved > 10
    assert hits >= 0.9 * solved, (hits, solved)
    assert steps >= 5, steps


@pytest.mark.parametrize("steps", [1, 3])
def test_fewer_prices_bound_the_starts_less(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = RollingUpdate.generate(3, microservices=20, nodes=20)
    goals = problem.select(["node_cost", "starts"])
    every = bound_vectors(problem, goals)
    monkeypatch.setattr(bounds_module, "_MAX_STEPS", steps)
    fewer = bound_vectors(problem, goals)
    assert len(fewer) <= steps + 1 < len(every)
    assert fewer[0][0] == every[0][0] and fewer[-1][1] == every[-1][1]
    for vector in every:
        assert (fewer <= vector).all(axis=1).any()


def test_large_fronts_are_proven_without_a_solver() -> None:
    """Of 400 microservices every plan of the front starts no more than what has to start."""
    problem = RollingUpdate.generate(0, microservices=40, nodes=20)
    front = placeopt.solve(problem, "decomposition", max_coefficients=0)
    assert len(front.points) == 6
    assert all(point.status == "optimal" for point in front.points)
    assert front.gap() == 0


def test_what_has_no_room_was_repaired_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same deployments are found where every repair is tried."""
    monkeypatch.setattr(Consolidation, "_close_by_exchanges", lambda *_: False)
    found = [[t.node.tolist() for t in Consolidation(tiny(k)).targets(Budget())] for k in range(8)]
    monkeypatch.setattr(Consolidation, "_has_room", lambda *_: True)
    tried = [[t.node.tolist() for t in Consolidation(tiny(k)).targets(Budget())] for k in range(8)]
    assert tried == found and sum(map(len, found)) > 8


@pytest.mark.parametrize("clusters", [2, 4])
def test_the_papers_instances_are_packed_to_the_bound(clusters: int) -> None:
    for seed in range(8):
        problem = RollingUpdate.generate(seed, clusters=clusters)
        search = Consolidation(problem, seed)
        last = list(search.targets(Budget()))[-1]
        assert last.price == search.lowest == 8
        found = plan_moves(problem, last.node)
        verdict = problem.evaluate(problem.plan(found.steps))
        assert verdict.feasible
        assert verdict.values[0] == 8


def test_exchanges_alone_bring_many_nodes_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Consolidation, "_close_by_repair", lambda *_: False)
    for seed in range(4):
        problem = RollingUpdate.generate(seed, applications=60, clusters=4)
        a, search = problem.arrays, Consolidation(problem, seed)
        targets = list(search.targets(Budget()))
        assert targets[-1].price <= search.lowest + a.price_scale
        for target in targets[::10]:
            load = [np.bincount(target.node, a.new[:, r], len(a.price)) for r in range(2)]
            assert (np.column_stack(load) <= a.capacity).all()
            where = a.cluster[target.node]
            assert all(a.latency[where[x], where[y]] <= limit for x, y, limit in a.flows)


def test_the_same_seed_packs_the_same() -> None:
    problem = RollingUpdate.generate(3, applications=30, clusters=3)
    one, other = (list(Consolidation(problem, 5).targets(Budget())) for _ in range(2))
    assert len(one) == len(other)
    assert all((a.node == b.node).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", [0, 1])
def test_nodes_are_closed_with_few_starts(seed):
    problem = RollingUpdate.generate(seed, applications=12)
    a, bounds = problem.arrays, {}
    for price, starts in bound_vectors(problem, problem.select(["node_cost", "starts"])):
        bounds[price] = starts
    packed = list(Consolidation(problem, seed, by_starts=True).targets(Budget()))
    search = Consolidation(problem, seed, by_starts=True)
    targets = list(search.targets_of_few_starts(Budget(), 100))
    least = [
        min(int(a.starts_of(t.node).sum()) for t in some if t.price <= packed[-2].price)
        for some in (packed, targets)
    ]
    assert least[1] < least[0]
    for target in targets:
        assert a.cost(target.node) * a.price_scale == target.price
        assert a.starts_of(target.node).sum() >= bounds[target.price / a.price_scale]
        load = np.zeros_like(a.capacity)
        np.add.at(load, target.node, a.new)
        assert (load <= a.capacity).all()
        assert plan_moves(problem, target.node, tries=4).complete


def test_few_starts_of_few_nodes_are_few_at_the_least_price(monkeypatch):
    problem = RollingUpdate.generate(1, applications=12)
    search = Consolidation(problem, 1, by_starts=True)
    last = list(search.targets_of_few_starts(Budget(), 3))[-1]
    monkeypatch.setattr(consolidation, "_MOST_EFFORT", 1)
    hasty = Consolidation(problem, 1, by_starts=True)
    assert last.price <= list(hasty.targets_of_few_starts(Budget(), 3))[-1].price
