"""The rolling-update instance: its referee against a simulator, its generator, its messages."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt import registry
from placeopt.core.errors import DocumentError, UsageError
from placeopt.rolling_update.problem import RollingUpdate


def node(
    name: str,
    cpu: int = 10,
    memory: int = 100,
    price: float = 1.0,
    cluster: str = "c0",
    **more: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "cluster": cluster,
        "cpu_millicores": cpu,
        "memory_mib": memory,
        "price": price,
        **more,
    }


def service(name: str, where: str, cpu: int, memory: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "node": where, "cpu_millicores": cpu, "memory_mib": memory, **more}


def application(
    name: str,
    services: list[dict[str, Any]],
    flows: tuple[tuple[str, str, float], ...] = (),
    **more: Any,
) -> dict[str, Any]:
    links = [{"from": a, "to": b, "max_latency_ms": ms} for a, b, ms in flows]
    return {"name": name, "microservices": services, "flows": links, **more}


def instance(
    nodes: list[dict[str, Any]], applications: list[dict[str, Any]], **more: Any
) -> RollingUpdate:
    return RollingUpdate.from_document(
        {
            "problem": "rolling-update",
            "name": "t",
            "nodes": nodes,
            "applications": applications,
            **more,
        }
    )


def steps(*moves: tuple[str, str, str | None]) -> dict[str, Any]:
    return {"steps": [{"application": a, "microservice": m, "to": to} for a, m, to in moves]}


def kinds(problem: RollingUpdate, plan: dict[str, Any]) -> set[str]:
    return {v.kind for v in problem.evaluate(plan).violations}


def simulate(
    document: dict[str, Any], plan: dict[str, Any]
) -> tuple[tuple[float, float, float], bool]:
    """Keep every copy as a row of a table and add up from scratch at every moment.

    Nothing is shared with the referee.
    """
    nodes = {n["name"]: n for n in document["nodes"]}
    what = {
        (a["name"], m["name"]): (a, m) for a in document["applications"] for m in a["microservices"]
    }
    copies = {
        key: [(m["node"], m["cpu_millicores"], m["memory_mib"], False)]
        for key, (_, m) in what.items()
    }

    def fits(name: str) -> bool:
        here = [c for rows in copies.values() for c in rows if c[0] == name]
        return (
            sum(c[1] for c in here) <= nodes[name]["cpu_millicores"]
            and sum(c[2] for c in here) <= nodes[name]["memory_mib"]
        )

    fine, starts, stops = True, 0, 0
    for step in plan["steps"]:
        key = step["application"], step["microservice"]
        app, m = what[key]
        fine &= app.get("reschedulable", True)
        if step["to"] is None:
            stops += 1
            fine &= bool(copies[key])
            copies[key] = []
            continue
        starts += 1
        fine &= not nodes[step["to"]].get("drain", False) and not (
            m.get("pinned") and step["to"] != m["node"]
        )
        copies[key].append(
            (
                step["to"],
                m.get("new_cpu_millicores", m["cpu_millicores"]),
                m.get("new_memory_mib", m["memory_mib"]),
                True,
            )
        )
        fine &= fits(step["to"])
        copies[key] = copies[key][-1:]
    fine &= all(fits(name) for name in nodes) and all(len(rows) == 1 for rows in copies.values())
    for key, (app, m) in what.items():
        changed = any(
            m.get(f"new_{field}", m[field]) != m[field]
            for field in ("cpu_millicores", "memory_mib")
        )
        must = app.get("reschedulable", True) and (changed or document.get("semantics") == "strict")
        fine &= all(
            (row[3] or not must) and not nodes[row[0]].get("drain", False) for row in copies[key]
        )
    latency: dict[tuple[str, str], float] = defaultdict(lambda: 1e18)
    for a, row in document.get("cluster_latency_ms", {}).items():
        for b, ms in row.items():
            latency[a, b] = latency[b, a] = ms
    for app in document["applications"]:
        for flow in app["flows"]:
            ends = [copies[app["name"], flow[end]] for end in ("from", "to")]
            if all(ends):
                a, b = (nodes[rows[0][0]]["cluster"] for rows in ends)
                fine &= a == b or latency[a, b] <= flow["max_latency_ms"]
    used = {rows[0][0] for rows in copies.values() if rows}
    return (sum(nodes[n]["price"] for n in used), float(starts), float(stops)), fine


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    whole = st.integers(0, 6)
    clusters = ["c0", "c1"]
    nodes = [
        node(
            f"n{k}",
            draw(st.integers(4, 12)),
            draw(st.integers(4, 12)),
            draw(st.sampled_from([0.0, 0.5, 1.0])),
            draw(st.sampled_from(clusters)),
        )
        | {"drain": draw(st.sampled_from([False, False, False, True]))}
        for k in range(draw(st.integers(2, 4)))
    ]
    apps = []
    for a in range(draw(st.integers(1, 2))):
        free = draw(st.sampled_from([True, True, True, False]))
        services = [
            service(f"m{k}", f"n{draw(st.integers(0, len(nodes) - 1))}", draw(whole), draw(whole))
            for k in range(draw(st.integers(1, 3)))
        ]
        for m in services:
            if free and draw(st.booleans()):
                m |= {"new_cpu_millicores": draw(whole)}
            if draw(st.integers(0, 4)) == 0:
                m |= {"pinned": True}
        flows = (
            (("m0", f"m{len(services) - 1}", float(draw(st.sampled_from([20, 60])))),)
            if len(services) > 1
            else ()
        )
        apps.append(application(f"a{a}", services, flows, reschedulable=free))
    latency = draw(st.sampled_from([{}, {"c0": {"c1": 50.0}}]))
    semantics = draw(st.sampled_from(["stay", "strict"]))
    return {
        "problem": "rolling-update",
        "name": "t",
        "semantics": semantics,
        "nodes": nodes,
        "applications": apps,
        "cluster_latency_ms": latency,
    }


@given(documents(), st.data())
def test_the_referee_agrees_with_an_independent_simulator(
    document: dict[str, Any], data: st.DataObject
) -> None:
    problem = RollingUpdate.from_document(document)
    everything = [
        (a["name"], m["name"]) for a in document["applications"] for m in a["microservices"]
    ]
    targets: list[str | None] = [n["name"] for n in document["nodes"]] * 2 + [None]
    moves = data.draw(
        st.lists(st.tuples(st.sampled_from(everything), st.sampled_from(targets)), max_size=8)
    )
    plan = steps(*((a, m, to) for (a, m), to in moves))
    verdict = problem.evaluate(plan)
    assert (verdict.values, verdict.feasible) == simulate(document, plan)
    assert problem.plan(problem.steps(plan)) == plan
    assert problem.read_plan(plan) == plan
    assert all(0 < v.amount < float("inf") for v in verdict.violations)
    assert set(problem.describe(plan)) >= {"node cost", "nodes that empty"}


@given(documents())
def test_documents_come_back_as_they_were(document: dict[str, Any]) -> None:
    problem = RollingUpdate.from_document(document)
    again = registry.from_document(json.loads(json.dumps(problem.to_document())))
    assert again == problem
    assert again.instance_name == problem.instance_name


def two_full_nodes() -> RollingUpdate:
    """Two nodes that swap: the new sizes fit only on the other node."""
    apps = [
        application("a", [service("m", "n1", 6, 2, new_memory_mib=8)]),
        application("b", [service("m", "n2", 6, 8, new_memory_mib=2)]),
    ]
    return instance([node("n1", 10, 8), node("n2", 10, 10)], apps)


def test_a_swap_of_two_full_nodes_needs_a_stop() -> None:
    problem = two_full_nodes()
    assert kinds(problem, steps(("a", "m", "n2"), ("b", "m", "n1"))) == {
        "cpu-capacity",
        "memory-capacity",
    }
    verdict = problem.evaluate(steps(("a", "m", None), ("b", "m", "n1"), ("a", "m", "n2")))
    assert verdict.feasible
    assert verdict.values == (2.0, 2.0, 1.0)


def test_an_overloaded_start_may_be_drained_but_not_filled() -> None:
    apps = [
        application("a", [service("x", "n1", 8), service("y", "n1", 8)]),
        application("b", [service("z", "n2", 1)]),
    ]
    problem = instance([node("n1"), node("n2")], apps)
    assert "starts overloaded" in problem.warnings()[0]
    assert problem.evaluate(steps(("a", "x", "n2"))).feasible
    assert kinds(problem, steps(("b", "z", "n1"), ("a", "x", "n2"))) == {"cpu-capacity"}
    assert kinds(problem, steps()) == {"cpu-capacity"}


def test_each_rule_has_its_own_violation() -> None:
    nodes = [node("n1"), node("n2", cluster="c1"), node("n3", drain=True)]
    apps = [
        application("a", [service("x", "n1", 1), service("y", "n1", 1)], (("x", "y", 20.0),)),
        application("fixed", [service("x", "n1", 1)], reschedulable=False),
        application("p", [service("x", "n1", 1, pinned=True)]),
        application("d", [service("x", "n3", 1)]),
        application("r", [service("x", "n1", 2, new_cpu_millicores=1)]),
    ]
    problem = instance(nodes, apps, cluster_latency_ms={"c0": {"c1": 50.0}})
    good = (("d", "x", "n1"), ("r", "x", "n1"))
    assert kinds(problem, steps(*good)) == set()
    assert kinds(problem, steps(("d", "x", "n1"))) == {"not-restarted"}
    assert kinds(problem, steps(("r", "x", "n1"))) == {"drain"}
    assert kinds(problem, steps(*good, ("a", "x", "n2"))) == {"latency"}
    assert kinds(problem, steps(("a", "x", "n2"), *good, ("a", "y", "n2"))) == set(), (
        "in between a limit may be broken"
    )
    assert kinds(problem, steps(*good, ("fixed", "x", "n1"))) == {"not-reschedulable"}
    assert kinds(problem, steps(*good, ("p", "x", "n2"))) == {"pinned"}
    assert kinds(problem, steps(*good, ("p", "x", "n1"))) == set()
    assert kinds(problem, steps(*good, ("a", "x", "n3"))) == {"drain"}
    assert kinds(problem, steps(*good, ("a", "x", None))) == {"stopped"}
    assert kinds(problem, steps(*good, ("a", "x", None), ("a", "x", None), ("a", "x", "n1"))) == {
        "not-running"
    }
    strict = RollingUpdate.from_document(problem.to_document() | {"semantics": "strict"})
    assert kinds(strict, steps(*good)) == {"not-restarted"}
    assert problem.quality_of_service(steps(*good, ("a", "x", "n2"))) == 1.0


def test_what_cannot_be_put_right_is_named() -> None:
    apps = [
        application(
            "fixed",
            [service("x", "n1", 11), service("y", "n2", 1)],
            (("x", "y", 20.0),),
            reschedulable=False,
        ),
        application("d", [service("x", "n3", 1, pinned=True)]),
        application("big", [service("x", "n2", 1, new_cpu_millicores=50)]),
    ]
    problem = instance([node("n1"), node("n2", cluster="c1"), node("n3", drain=True)], apps)
    reasons = "\n".join(problem.infeasibility())
    for part in (
        "'n3' must end empty",
        "what cannot leave needs 11 cpu",
        "neither can move",
        "which no node has",
        "all microservices together",
    ):
        assert part in reasons
    assert two_full_nodes().infeasibility() == ()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d["nodes"][0].update(cpu_millicores=-1), "nodes[0].cpu_millicores"),
        (lambda d: d["nodes"][0].update(price=float("nan")), "nodes[0].price"),
        (lambda d: d["nodes"][0].update(cpu_millicores=1.5), "nodes[0].cpu_millicores"),
        (lambda d: d["nodes"][0].update(cpu=1), "nodes[0].cpu"),
        (
            lambda d: d["applications"][0]["microservices"][0].update(node="n9"),
            "applications[0].microservices[0].node",
        ),
        (
            lambda d: d["applications"][0]["flows"].append(
                {"from": "m", "to": "q", "max_latency_ms": 1.0}
            ),
            "applications[0].flows[0].to",
        ),
        (
            lambda d: d["applications"][0].update(reschedulable=False),
            "applications[0].microservices[0]",
        ),
        (lambda d: d["applications"][1].update(name="a"), "applications[1]"),
        (lambda d: d["nodes"][1].update(name="n1"), "nodes[1]"),
        (lambda d: d.update(semantics="stays"), "semantics"),
        (lambda d: d.update(applications=[]), "applications"),
    ],
)
def test_a_fault_is_named_with_its_path(change: Any, path: str | None) -> None:
    document = copy.deepcopy(two_full_nodes().to_document())
    change(document)
    with pytest.raises(DocumentError) as caught:
        registry.from_document(document)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"steps": [{"application": "a"}]},
        {"steps": 3},
        {"steps": [["a", "m", "n1"]]},
        steps(("a", "q", "n1")),
        steps(("a", "m", "n9")),
    ],
)
def test_a_plan_of_another_form_is_refused(plan: Any) -> None:
    with pytest.raises(DocumentError):
        two_full_nodes().evaluate(plan)


@pytest.mark.parametrize("clusters", [2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_generated_instances_are_as_the_paper_says(seed: int, clusters: int) -> None:
    problem = RollingUpdate.generate(seed, clusters=clusters)
    a = problem.arrays
    assert len(problem.nodes) == 16
    assert (a.cluster == 0).sum() == 4
    assert a.initial_load[:, 0].sum() == pytest.approx(0.8 * a.capacity[:, 0].sum(), abs=50)
    assert (a.mandatory.sum(), a.movable.sum()) == (10, 50)
    assert problem.initial_cost == 12
    assert problem.warnings() == problem.infeasibility() == ()
    assert problem == RollingUpdate.generate(seed, clusters=clusters)
    fewer = RollingUpdate.generate(seed, clusters=clusters, reschedulable=3).arrays
    assert (fewer.mandatory.sum(), fewer.movable.sum()) == (10, 15)


def test_the_generator_refuses_what_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="nodes is 1; legal: 2"):
        RollingUpdate.generate(nodes=1)


def test_prices_give_the_step_of_the_cost() -> None:
    problem = instance(
        [node("n1", price=0.5), node("n2", price=1.5)], [application("a", [service("m", "n1", 1)])]
    )
    assert problem.objectives[0].step == 0.5
    assert problem.evaluate(steps(("a", "m", "n2"))).values == (1.5, 1.0, 0.0)
