"""Heuristics of rolling updates on instances that are small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from effort import tries

import placeopt
from placeopt import api
from placeopt.core.budget import Budget
from placeopt.core.errors import UsageError
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import build_encoder, preferred_plan, seeds
from placeopt.core.task import Task
from placeopt.rolling_update import schemes as baselines
from placeopt.rolling_update import zones
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.repack import further_plans, repack
from placeopt.rolling_update.schemes import recreate, rolling_update
from placeopt.rolling_update.zones import preferred


def instance(
    nodes: list[Any], apps: dict[str, Any], flows: dict[str, Any] | None = None, **more: Any
) -> RollingUpdate:
    """Return an instance from tuples.

    Nodes are (name, cluster, cpu, memory, price). Applications are lists of (name, node, cpu,
    memory, new cpu).
    """
    document = {
        "problem": "rolling-update",
        "name": "t",
        "nodes": [
            dict(
                zip(
                    ("name", "cluster", "cpu_millicores", "memory_mib", "price"), n[:5], strict=True
                )
            )
            | dict(*n[5:])
            for n in nodes
        ],
        "applications": [
            {
                "name": a,
                "microservices": [
                    dict(
                        zip(
                            ("name", "node", "cpu_millicores", "memory_mib", "new_cpu_millicores"),
                            m[:5],
                            strict=False,
                        )
                    )
                    | dict(*m[5:])
                    for m in ms
                ],
                "flows": [
                    {"from": x, "to": y, "max_latency_ms": ms}
                    for x, y, ms in (flows or {}).get(a, [])
                ],
            }
            for a, ms in apps.items()
        ],
        "cluster_latency_ms": {"c0": {"c1": 50.0}},
    }
    return RollingUpdate.from_document(document | more)


def values(front: Front) -> list[tuple[float, ...]]:
    return [p.values for p in front.points]


def run(problem: RollingUpdate, **parameters: Any) -> Front:
    return repack(Task(problem, problem.objectives, Budget(), 1), **parameters)


def test_memory_that_binds_keeps_nodes_open() -> None:
    """Four microservices of hardly any CPU: two fit a node by memory."""
    problem = instance(
        [(f"n{k}", "c0", 100, 10, 1.0) for k in range(4)],
        {"a": [(f"m{k}", f"n{k}", 1, 5, 1) for k in range(4)]},
    )
    assert values(run(problem)) == [(2.0, 2.0, 0.0), (3.0, 1.0, 0.0), (4.0, 0.0, 0.0)]


def test_nodes_of_different_size_and_price() -> None:
    """The large node is cheaper than the two that it replaces; the free one is filled first."""
    nodes = [
        ("big", "c0", 20, 20, 1.5),
        ("s1", "c0", 10, 10, 1.0),
        ("s2", "c0", 10, 10, 1.0),
        ("own", "c1", 6, 6, 0.0),
    ]
    problem = instance(
        nodes, {"a": [("x", "s1", 8, 8, 8), ("y", "s2", 8, 8, 8)], "b": [("z", "s1", 2, 2, 2)]}
    )
    front = run(problem)
    assert front.points[0].values == (1.5, 2.0 + 1.0, 0.0)
    assert front.points[-1].values == (2.0, 0.0, 0.0)


def test_an_overloaded_start_only_gets_better() -> None:
    problem = instance(
        [("n0", "c0", 10, 10, 1.0), ("n1", "c0", 10, 10, 1.0)],
        {"a": [("x", "n0", 8, 1, 8), ("y", "n0", 6, 1, 6)]},
    )
    assert values(run(problem)) == [(2.0, 1.0, 0.0)]


def test_what_fits_only_after_a_hop_or_a_stop() -> None:
    """Both grow in memory on full nodes and must swap: by a hop to the spare node, or by a stop."""
    apps = {
        "a": [("m", "n0", 6, 2, 6, {"new_memory_mib": 9})],
        "b": [("m", "n1", 6, 9, 6, {"new_memory_mib": 2})],
    }
    two = [("n0", "c0", 10, 8, 1.0), ("n1", "c0", 10, 10, 1.0)]
    assert values(run(instance(two, apps))) == [(2.0, 2.0, 1.0)]
    spare = [*two, ("n2", "c0", 10, 5, 5.0)]
    assert values(run(instance(spare, apps))) == [(2.0, 2.0, 1.0), (2.0, 3.0, 0.0), (6.0, 2.0, 0.0)]
    assert values(run(instance(spare, apps), max_hops=0)) == [(2.0, 2.0, 1.0), (6.0, 2.0, 0.0)]


def test_what_cannot_move_keeps_its_node() -> None:
    apps = {"a": [("x", "n0", 2, 1, 2)], "b": [("y", "n1", 2, 1, 2)]}
    document = instance([("n0", "c0", 10, 10, 1.0), ("n1", "c0", 10, 10, 1.0)], apps).to_document()
    document["applications"][1] = document["applications"][1] | {"reschedulable": False}
    assert values(run(RollingUpdate.from_document(document))) == [(1.0, 1.0, 0.0), (2.0, 0.0, 0.0)]
    document["applications"][0]["reschedulable"] = False
    assert values(run(RollingUpdate.from_document(document))) == [(2.0, 0.0, 0.0)]
    apps["a"][0] = ("x", "n0", 2, 1, 1, {"pinned": True})  # type: ignore[assignment]
    pinned = run(instance([("n0", "c0", 10, 10, 1.0), ("n1", "c0", 10, 10, 1.0)], apps))
    assert values(pinned) == [(1.0, 2.0, 0.0), (2.0, 1.0, 0.0)]
    assert all(s["to"] == "n0" for s in pinned.points[0].plan["steps"])


def test_a_node_to_drain_ends_empty_or_says_why_not() -> None:
    nodes = [("n0", "c0", 10, 10, 1.0, {"drain": True}), ("n1", "c0", 10, 10, 1.0)]
    front = run(instance(nodes, {"a": [("x", "n0", 2, 1, 2)], "b": [("y", "n1", 2, 1, 2)]}))
    assert values(front) == [(1.0, 1.0, 0.0)]
    assert front.bounds == ((1.0, 1.0, 0.0),)
    stuck = run(instance(nodes, {"a": [("x", "n0", 2, 1, 2, {"pinned": True})]}))
    assert not stuck.points
    assert "must end empty" in stuck.reasons[0]
    assert stuck.rejected is not None


def test_groups_that_must_share_a_cluster_move_together() -> None:
    """Emptying the dear cluster needs both ends of the tight flow to leave at once."""
    nodes = [("own", "c0", 10, 10, 0.0), ("rented", "c1", 10, 10, 1.0)]
    problem = instance(
        nodes,
        {"a": [("x", "rented", 4, 4, 4), ("y", "rented", 4, 4, 4)]},
        {"a": [("x", "y", 20.0)]},
    )
    assert values(run(problem)) == [(0.0, 2.0, 0.0), (1.0, 0.0, 0.0)]


def test_moves_that_do_not_pay_are_left_out() -> None:
    """On the whole front every move saves something; a higher saving leaves the steep part."""
    problem = RollingUpdate.generate(1)
    every = values(run(problem))
    assert len(every) > 3
    for least in (0.3, 0.5, 1.0):
        kept = values(run(problem, min_saving_per_move=least))
        assert kept == [
            v
            for v in every
            if all(w[0] - v[0] >= least * (v[1] - w[1]) for w in every if w[1] < v[1])
        ]
    assert max(v[1] for v in values(run(problem, max_moves=13))) <= 13
    nothing = run(problem, max_moves=3)
    assert not nothing.points


@pytest.mark.parametrize("method", ["repack", "decomposition"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_moves", -1),
        ("max_moves", "abc"),
        ("max_moves", 1.5),
        ("max_hops", 1e12),
        ("restarts", 0),
        ("restarts", 10**9),
        ("min_saving_per_move", -2),
        ("min_saving_per_move", float("nan")),
        ("min_saving_per_move", float("inf")),
    ],
)
def test_parameters_out_of_range_are_refused(method: str, name: str, value: Any) -> None:
    problem = RollingUpdate.generate(0, applications=2)
    with pytest.raises(UsageError, match=f"{name} of {method} is .*; legal: "):
        placeopt.solve(problem, method, **{name: value})


@pytest.mark.parametrize("clusters", [2, 4])
def test_repack_on_the_papers_instances(clusters: int) -> None:
    for seed in range(tries(1, 4)):
        problem = RollingUpdate.generate(seed, clusters=clusters)
        front = run(problem)
        assert (front.bounds[0][0], *front.bounds[-1][1:]) == (8.0, 10.0, 0.0)
        assert front.points[0].values[0] == 8.0
        assert min(v[2] for v in values(front) if v[0] == 8.0) == 0
        assert values(front) == values(run(problem))


def test_a_budget_ends_the_search_and_leaves_what_it_has() -> None:
    problem = RollingUpdate.generate(1)
    front = repack(Task(problem, problem.objectives, Budget(evaluations=3), 1))
    assert front.points
    assert front.runs[0].evaluations <= 4
    assert repack(Task(problem, problem.select(["node_cost"]), Budget(seconds=1e-3), 1)).runs


# -- the schemes of the paper -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_schemes_on_the_papers_instances(seed: int) -> None:
    """Rolling updates stop nothing, recreating stops everything."""
    problem = RollingUpdate.generate(seed, clusters=4)
    of = {
        "rolling-update": baselines.rolling_update_plan(problem),
        "recreate": baselines.recreate_plan(problem),
    }
    verdicts = {name: problem.evaluate(plan) for name, plan in of.items()}
    assert verdicts["rolling-update"].values[1:] == (50.0, 0.0)
    assert verdicts["recreate"].values[1:] == (50.0, 50.0)
    assert {
        v.kind for v in (*verdicts["recreate"].violations, *verdicts["rolling-update"].violations)
    } <= {"latency"}
    assert all(8 <= v.values[0] <= 12 for v in verdicts.values())


def test_the_schemes_as_methods() -> None:
    problem = RollingUpdate.generate(0)
    for method in (rolling_update, recreate):
        front = method(Task(problem, problem.objectives, Budget(), 0))
        assert front.runs[0].evaluations == 1
        assert front.points or front.rejected is not None


def test_searches_start_from_packed_deployments() -> None:
    problem = RollingUpdate.generate(1)
    encoder = build_encoder(problem)
    F, G = encoder.evaluate(seeds(encoder, np.random.default_rng(0)))
    assert len(F) > 5
    assert (G == 0).all()
    assert F[:, 0].min() == 8


def test_further_plans_are_feasible_and_end_with_the_budget() -> None:
    problem = RollingUpdate.generate(3, applications=5)
    budget = Budget(evaluations=6)
    plans = list(further_plans(problem, budget, seed=1))
    assert 1 <= len(plans) <= 6 and budget.exhausted
    assert all(problem.evaluate(plan).feasible for plan in plans)
    again = list(further_plans(problem, Budget(evaluations=6), seed=1))
    assert again == plans
    assert list(further_plans(problem, Budget(seconds=1e-9), seed=1)) == []


def test_descents_that_meet_nothing_new_end_the_search_for_further_plans() -> None:
    """Without any limit, too: a small instance has few deployments."""
    plans = list(further_plans(RollingUpdate.generate(1, applications=4), Budget(), seed=1))
    assert plans and len({str(plan) for plan in plans}) == len(plans)


@pytest.mark.parametrize("method", ["auto", "repack", "nsga2"])
def test_replicas_of_a_group_stay_in_more_zones_where_that_costs_nothing(method: str) -> None:
    """A node that hosts one replica goes; where it goes instead is the same to every goal."""

    def service(name: str, node: str, *groups: str) -> dict[str, Any]:
        size = {"cpu_millicores": 1000, "memory_mib": 1}
        return {"name": name, "node": node, **size, "groups": list(groups)}

    def node(name: str, zone: str, cores: int) -> dict[str, Any]:
        size = {"cpu_millicores": 1000 * cores, "memory_mib": 9}
        return {"name": name, "cluster": zone, **size, "price": 1}

    services = [service("w1", "n0", "web"), service("w2", "n1", "web")]
    services += [service("d", "n1"), service("e", "n2"), service("f", "n2")]
    problem = RollingUpdate(
        name="zones",
        nodes=[node("n0", "a", 1), node("n1", "a", 3), node("n2", "b", 3)],
        applications=[{"name": "shop", "microservices": services}],
    )
    certified = placeopt.solve(problem, method, evaluations=500, seconds=9, certify=True)
    for front in (placeopt.solve(problem, method, evaluations=500), certified):
        for point in front.points:
            assert problem.evaluate(point.plan).values == point.values
            if point.values[:2] == (2.0, 1.0):
                (step,) = point.plan["steps"]
                assert (step["microservice"], step["to"]) == ("w1", "n2")
        assert (2.0, 1.0, 0.0) in [point.values for point in front.points]


def test_plans_that_a_proof_finds_are_looked_at_for_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that the search found."""
    problem = RollingUpdate.generate(seed=1, applications=2)
    later = placeopt.solve(problem, "repack").points
    seen = list[Plan]()

    def others(plan: Plan) -> Iterator[Plan | None]:
        seen.append(plan)
        return iter(())

    monkeypatch.setattr(zones, "preferred", lambda _: others)
    monkeypatch.setattr(api, "_certified", lambda front, _: replace(front, points=later))
    front = placeopt.solve(problem, "recreate", certify=True)
    assert front.points == later
    assert all(point.plan in seen for point in later)
    assert later


@pytest.mark.parametrize(
    ("tries", "looks", "found", "tried"), [(9, 9, 3, 6), (1, 9, 0, 1), (0, 9, 0, 0), (9, 2, 0, 1)]
)
def test_the_preferred_plan_is_sought_as_long_as_there_are_tries_and_time(
    tries: int, looks: int, found: int, tried: int
) -> None:
    """Plans 1, 2 and 3 are each better than the one before, which a try in vain comes before."""
    left = iter([False] * looks + [True] * 99)

    def others(plan: Plan) -> Iterator[Plan | None]:
        if plan["n"] < 3:
            yield None
            yield {"n": plan["n"] + 1}

    best, count = preferred_plan({"n": 0}, others, lambda _: True, tries, lambda: next(left))
    assert (best["n"], count) == (found, tried)


def test_instances_without_groups_have_no_preferred_plans() -> None:
    assert preferred(RollingUpdate.generate(seed=1, applications=2)) is None
