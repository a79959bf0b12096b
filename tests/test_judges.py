"""What the judges refuse: for each rule the plan just inside, and the one just beyond.

`benchmarks/mutants.py` puts faults into the judges; each row here is one that was not noticed once.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from placeopt.multi_cluster.referee import gini
from placeopt.registry import from_document

ROOT = Path(__file__).resolve().parents[1]
SMALLEST = ROOT / "docs" / "schemas"
#: Problem -> its smallest instance and a plan of it.
PLANS: dict[str, dict[str, Any]] = {
    "temporal": {
        "starts": {"web": 0},
        "instances": [
            {
                "location": "west",
                "size": "small",
                "pricing": "on-demand",
                "replicas": [["web", 0], ["web", 1]],
            }
        ],
    },
    "edge-cloud": {"placement": {"camera": {"detect": "edge", "store": "cloud"}}},
    "rolling-update": {"steps": [{"application": "shop", "microservice": "cart", "to": "n2"}]},
    "multi-cluster": {"decisions": [{"fog": 2}]},
    "rescheduling": {"moves": [{"service": "backend", "from": "cloud-1", "to": "edge-1"}]},
}


def at(holder: Any, path: str, value: Any) -> None:
    """Set a value by its path; ``del`` takes it away."""
    *steps, last = (int(s) if s.isdigit() else s for s in path.split("."))
    for step in steps:
        holder = holder[step]
    if value is del_:
        del holder[last]
    else:
        holder[last] = value


del_ = object()


def judged(kind: str, instance: dict[str, Any], plan: dict[str, Any]) -> dict[str, float]:
    """Return the largest excess of each kind of violation, of a changed instance and plan."""
    document = json.loads((SMALLEST / f"{kind}.json").read_text(encoding="utf-8"))
    answer = copy.deepcopy(PLANS[kind])
    for holder, changes in ((document, instance), (answer, plan)):
        for path, value in changes.items():
            at(holder, path, value)
    found: dict[str, float] = {}
    for violation in from_document(document).evaluate(answer).violations:
        found[violation.kind] = max(violation.amount, found.get(violation.kind, 0.0))
    return found


#: Problem, path in the instance or (with ``plan:``) in the plan, the last value that is legal, the
#: first that is not, and what that breaks by how much.
LIMITS: list[tuple[str, str, Any, Any, dict[str, float]]] = [
    ("temporal", "requests.0.cpu_cores", 1, 1.001, {"cpu-capacity": 0.001}),
    ("temporal", "requests.0.memory_gib", 2, 2.5, {"memory-capacity": 0.25}),
    ("temporal", "plan:starts.web", 0, -1, {"outside-horizon": 0.25}),
    ("temporal", "plan:starts.web", 2, 4, {"outside-horizon": 0.5}),
    ("temporal", "plan:starts", {"web": 0}, {}, {"not-scheduled": 1.0}),
    ("temporal", "offers.0.max_instances", 1, 0, {"max-instances": 1.0}),
    (
        "temporal",
        "plan:instances.0.replicas",
        [["web", 0], ["web", 1]],
        [["web", 0]],
        {"replica-placement": 0.5},
    ),
    ("temporal", "latency_ms.users.west", 20, del_, {"unreachable": 1.0}),
    ("edge-cloud", "applications.0.flows.0.max_delay_ms", 25, 20, {"flow-delay": 0.25}),
    ("edge-cloud", "applications.0.microservices.0.cpu_cores", 2, 3, {"cpu-capacity": 0.5}),
    ("edge-cloud", "applications.0.microservices.0.memory_gib", 4, 5, {"memory-capacity": 0.25}),
    ("edge-cloud", "plan:placement.camera.store", "cloud", del_, {"not-placed": 1.0}),
    ("rolling-update", "nodes.1.cpu_millicores", 1500, 1200, {"cpu-capacity": 0.25}),
    ("rolling-update", "nodes.1.memory_mib", 2560, 2048, {"memory-capacity": 0.25}),
    ("rolling-update", "nodes.1.drain", False, True, {"drain": 1.0}),
    ("rolling-update", "nodes.1.closed", False, True, {"closed": 1.0}),
    ("rolling-update", "plan:steps.0.to", "n2", None, {"stopped": 1.0}),
    ("multi-cluster", "clusters.0.cpu_cores", 1, 0.8, {"cpu-capacity": 0.25}),
    ("multi-cluster", "clusters.0.memory_gib", 1, 0.5, {"memory-capacity": 1.0}),
    ("multi-cluster", "plan:decisions.0", {"fog": 2}, {"fog": 1}, {"replicas": 0.5}),
    ("multi-cluster", "plan:decisions.0", {"fog": 1, "cloud": 1}, {"fog": 3}, {"replicas": 0.5}),
    ("rescheduling", "nodes.0.cpu_cores", 1, 0.8, {"cpu-capacity": 0.25}),
    ("rescheduling", "nodes.0.memory_gib", 1, 0.5, {"memory-capacity": 1.0}),
    ("rescheduling", "plan:moves.0.from", "cloud-1", "edge-1", {"not-there": 1.0}),
]


@pytest.mark.parametrize(("kind", "path", "legal", "illegal", "broken"), LIMITS)
def test_a_limit_may_be_reached_and_not_passed(
    kind: str, path: str, legal: Any, illegal: Any, broken: dict[str, float]
) -> None:
    of_plan, name = path.startswith("plan:"), path.removeprefix("plan:")
    for value, expected in ((legal, {}), (illegal, broken)):
        changes = ({}, {name: value}) if of_plan else ({name: value}, {})
        found = judged(kind, *changes)
        assert found.keys() == expected.keys(), value
        assert found == pytest.approx(expected, abs=1e-6), value


def test_further_resources_are_judged_where_they_are_asked_for() -> None:
    """A node that is overfull of what a microservice does not ask for may take it.

    CPU and memory count always.
    """
    full = {"nodes.1.resources": {"gpu": 1}, "applications.0.microservices.1.resources": {"gpu": 2}}
    assert judged("rolling-update", full, {}) == {"gpu-capacity": 1.0}  # at the end: db itself
    moved = {"steps.0.microservice": "db", "steps.0.to": "n1"}
    room = full | {"nodes.0.resources": {"gpu": 2}}
    assert judged("rolling-update", room, moved) == {}
    swap = {
        "steps": [
            {"application": "shop", "microservice": "cart", "to": "n2"},
            {"application": "shop", "microservice": "db", "to": "n1"},
        ]
    }
    assert judged("rolling-update", room, swap) == {}
    memory = {"nodes.1.memory_mib": 1024, "applications.0.microservices.0.memory_mib": 0}
    assert judged("rolling-update", memory, swap)["memory-capacity"] == pytest.approx(1.0)


def test_a_latency_may_be_reached_and_not_passed() -> None:
    apart = {"nodes.1.cluster": "c1", "cluster_latency_ms": {"c0": {"c1": 5}}}
    assert judged("rolling-update", apart, {"steps": []}) == {}
    assert judged(
        "rolling-update", apart | {"cluster_latency_ms": {"c0": {"c1": 6}}}, {"steps": []}
    ) == {"latency": pytest.approx(0.2)}


def test_the_shortfall_of_a_latency_is_a_share_of_the_limit() -> None:
    """Below one millisecond of a whole one; a distance that is not known breaks it wholly."""
    flow = {"applications.0.flows.0.max_latency_ms": 0.5, "nodes.1.cluster": "c1"}
    near = flow | {"cluster_latency_ms": {"c0": {"c1": 0.75}}}
    assert judged("rolling-update", near, {"steps": []}) == {"latency": pytest.approx(0.25)}
    far = flow | {"cluster_latency_ms": {}}
    assert judged("rolling-update", far, {"steps": []}) == {"latency": 1.0}


#: What a rolling update refuses of a step onto its first node, and of what is not moved.
FIRST_NODE: list[tuple[dict[str, Any], dict[str, float]]] = [
    ({}, {}),
    ({"nodes.0.drain": True}, {"drain": 1.0}),
    ({"nodes.0.closed": True}, {"closed": 1.0}),
    ({"applications.0.microservices.1.removed": True}, {"removed": 1.0}),
    ({"applications.0.microservices.1.pinned": True}, {"pinned": 1.0}),
    ({"applications.0.reschedulable": False}, {"not-reschedulable": 1.0}),
    ({"applications.0.microservices.0.new_cpu_millicores": 400}, {"not-restarted": 1.0}),
    ({"semantics": "strict"}, {"not-restarted": 1.0}),
    ({"applications.0.microservices.0.node": None}, {"waiting": 1.0}),
    (
        {"nodes.0.resources": {"gpu": 0}, "applications.0.microservices.1.resources": {"gpu": 1}},
        {"gpu-capacity": 1.0},
    ),
]


@pytest.mark.parametrize(("instance", "broken"), FIRST_NODE)
def test_a_step_onto_the_first_node_is_judged_like_any_other(
    instance: dict[str, Any], broken: dict[str, float]
) -> None:
    onto = {"steps.0.microservice": "db", "steps.0.to": "n1"}
    assert judged("rolling-update", instance, onto) == broken


def update(**changes: Any) -> dict[str, Any]:
    """Return three nodes with one microservice each, all of one group."""
    node = {"cluster": "c", "cpu_millicores": 9, "memory_mib": 9, "price": 1}
    size = {"cpu_millicores": 1, "memory_mib": 1, "groups": ["g"]}
    services = [{"name": f"m{k}", "node": f"n{k}"} | size for k in range(3)]
    document = {
        "problem": "rolling-update",
        "name": "three",
        "semantics": "stay",
        "nodes": [{"name": f"n{k}"} | node for k in range(3)],
        "applications": [{"name": "a", "microservices": services}],
    }
    for path, value in changes.items():
        at(document, path.replace("__", "."), value)
    return document


def broken_by(document: dict[str, Any], *steps: tuple[int, int | None]) -> list[tuple[str, float]]:
    """Return kind and amount of all that steps break: (microservice, node), None stops it."""
    plan = [
        {"application": "a", "microservice": f"m{m}", "to": None if n is None else f"n{n}"}
        for m, n in steps
    ]
    found = from_document(document).evaluate({"steps": plan}).violations
    return [(violation.kind, violation.amount) for violation in found]


def test_a_rule_is_broken_once_by_the_step_that_breaks_it() -> None:
    apart = update(rules=[{"kind": "apart", "group": "g"}])
    assert broken_by(apart) == []
    assert broken_by(apart, (0, 1), (0, 0)) == [("rule", 1.0)]
    assert {*broken_by(apart, (0, 1))} == {("rule", 1.0)}  # the step, and the end


@pytest.mark.parametrize(("price", "broken"), [(1, False), (0, True)])
def test_a_node_that_is_paid_for_goes_when_it_is_empty(price: float, broken: bool) -> None:
    """A spread that shrinks counts it no longer; one that costs nothing stays, and counts."""
    rule = {"kind": "spread", "group": "g", "max_skew": 1, "shrinks": True}
    document = update(rules=[rule], nodes__2__price=price)
    assert bool(broken_by(document, (2, 0))) == broken
    assert bool(broken_by(document, (2, 0), (1, 0))) is True  # 3 and, on the way, 2 to 0


def test_a_node_is_empty_once_nothing_comes_back() -> None:
    """What leaves for good takes its node out of a spread that shrinks; a restart there does not.

    The first case needs n2 to be gone before m1 starts anew; in the second n0 hosts m0 all along.
    """
    rule = {"kind": "spread", "group": "g", "max_skew": 1, "shrinks": True}
    assert broken_by(update(rules=[rule]), (2, 0), (1, 1)) == []
    other = update(rules=[rule], applications__0__microservices__0__groups=[])
    assert broken_by(other, (0, 0), (2, 1)) == [("rule", 1.0)] * 3  # the step; two at the end


def test_a_replica_that_is_added_counts_once() -> None:
    """However often it moves on."""
    service = "applications__0__microservices__"
    extra = update()["applications"][0]["microservices"][0] | {"name": "m3", "node": None}
    document = update()
    document["applications"][0]["microservices"].append(extra)
    changes = {f"{service}{k}__replica_of": "m" for k in range(4)}
    changes |= {f"{service}{k}__removed": True for k in range(2)} | {f"{service}2__node": None}
    for path, value in changes.items():
        at(document, path.replace("__", "."), value)
    assert broken_by(document, (2, 0), (3, 1), (0, None), (1, None)) == []
    twice = broken_by(document, (2, 0), (2, 1), (0, None), (1, None), (3, 1))
    assert twice == [("replicas", 1.0)]


def test_replicas_that_are_ready_are_counted() -> None:
    """A start on the first node is no stop; what is removed waits until what is added runs."""
    service = "applications__0__microservices__"
    named = {f"{service}{k}__replica_of": "m" for k in range(3)}
    document = update(**named, **{f"{service}1__removed": True, f"{service}2__node": None})
    assert broken_by(document, (0, 0), (2, 0), (1, None)) == []
    assert broken_by(document, (1, None), (0, 0), (2, 0)) == [("replicas", 1.0)]


def test_more_replicas_may_come_than_go() -> None:
    """No more have to be ready on the way than there were."""
    services = "applications__0__microservices"
    document = update(nodes__0__cpu_millicores=9)
    more = [document["applications"][0]["microservices"][0] | {"name": f"m{k}"} for k in (3, 4)]
    document["applications"][0]["microservices"] += [one | {"node": None} for one in more]
    for path, value in {f"{services}__{k}__replica_of": "m" for k in (0, 1, 3, 4)}.items():
        at(document, path.replace("__", "."), value)
    at(document, f"{services}__1__removed".replace("__", "."), True)
    assert broken_by(document, (3, 0), (1, None), (4, 0)) == []
    assert broken_by(document, (1, None), (3, 0), (4, 0)) == [("replicas", 1.0)]


def test_a_latency_at_its_limit_is_legal_where_another_is_not() -> None:
    names = {"from": "m0", "to": "m1", "max_latency_ms": 5}
    document = update(
        applications__0__flows=[names],
        **{f"nodes__{k}__cluster": f"c{k}" for k in range(3)},
        cluster_latency_ms={"c0": {"c1": 5, "c2": 6}, "c1": {"c2": 1}},
    )
    assert broken_by(document) == []
    assert broken_by(document, (1, 2)) == [("latency", pytest.approx(0.2))]


def test_a_restart_on_the_first_node_asks_whether_that_is_allowed() -> None:
    """At the end as on the way; what is left alone is forgiven."""
    document = update(
        node_sets={"others": ["n1", "n2"]}, applications__0__microservices__0__allowed="others"
    )
    assert broken_by(document) == []
    assert broken_by(document, (0, 0)) == [("rule", 1.0)] * 2


def test_what_is_not_on_a_node_counts_in_no_limit() -> None:
    """Where a new microservice still waits, that alone is told."""
    limit = {"name": "few", "amounts": {"n0": 1, "n1": 1, "n2": 1}, "share": 1.0}
    document = update(limits=[limit], applications__0__microservices__2__node=None)
    assert broken_by(document) == [("waiting", 1.0)]
    small = limit | {"share": 0.7}
    document = update(limits=[small], applications__0__microservices__2__node="n1")
    assert broken_by(document) == []
    assert broken_by(document, (2, 2)) == [("limit", 0.5)]  # three of three, two may be


def test_room_without_a_node_is_short_by_a_share() -> None:
    """24 of 18 are needed; where nothing runs, nothing is short."""
    size = {f"applications__0__microservices__{k}__cpu_millicores": 8 for k in range(3)}
    assert broken_by(update(survival={"room": True}, **size)) == [
        ("survival", pytest.approx(1 / 3))
    ]
    gone = {f"applications__0__microservices__{k}__removed": True for k in range(3)}
    stops = [(k, None) for k in range(3)]
    assert broken_by(update(survival={"room": True}, **gone), *stops) == []


def test_what_is_to_be_removed_starts_nowhere() -> None:
    """Not on the first node either, even if it ends in time."""
    document = update(applications__0__microservices__1__removed=True)
    assert broken_by(document, (1, 0), (1, None)) == [("removed", 1.0)]


def test_nothing_to_share_is_shared_evenly() -> None:
    assert gini([0, 0]) == 0.0 and gini([1, 0]) == 0.5


def test_the_first_node_may_be_out_of_reach() -> None:
    document = json.loads((SMALLEST / "edge-cloud.json").read_text(encoding="utf-8"))
    document["nodes"].insert(0, document["nodes"][1] | {"name": "island"})
    document["applications"][0]["flows"] = []
    there = {"camera": {"detect": "edge", "store": "island"}}
    verdict = from_document(document).evaluate({"placement": there})
    assert [(v.kind, v.amount) for v in verdict.violations] == [("unreachable", 1.0)]


def test_a_request_leaves_at_the_moment_another_comes() -> None:
    """And not before: memory is given back, too."""
    document = json.loads((SMALLEST / "multi-cluster.json").read_text(encoding="utf-8"))
    document["clusters"][0] |= {"cpu_cores": 1, "memory_gib": 1}
    first = document["requests"][0]
    plan = {"decisions": [{"fog": 2}, {"fog": 2}]}
    for arrival, feasible in ((1.1, True), (1.0, False)):
        document["requests"] = [first, first | {"arrival": arrival}]
        assert from_document(document).evaluate(plan).feasible == feasible


def test_what_a_move_leaves_is_free_again() -> None:
    """CPU and memory alike; the copy that comes runs beside the one that goes."""
    document = json.loads((SMALLEST / "rescheduling.json").read_text(encoding="utf-8"))
    for node in document["nodes"]:
        node |= {"cpu_cores": 0.5, "memory_gib": 0.5}
    document["nodes"].append(document["nodes"][1] | {"name": "cloud-2"})
    document["latency_ms"] = {
        "edge-1": {"cloud-1": 45, "cloud-2": 45},
        "cloud-1": {"cloud-2": 1},
    }

    def broken(*moves: tuple[str, str, str]) -> set[str]:
        plan = {"moves": [{"service": s, "from": a, "to": b} for s, a, b in moves]}
        return {one.kind for one in from_document(document).evaluate(plan).violations}

    away, there = ("backend", "cloud-1", "cloud-2"), ("frontend", "edge-1", "cloud-1")
    assert broken(away, there) == set()
    assert broken(there, away) == {"cpu-capacity", "memory-capacity"}


def test_a_node_without_capacity_is_overfull_by_a_whole() -> None:
    document = json.loads((SMALLEST / "rescheduling.json").read_text(encoding="utf-8"))
    document["nodes"].append(document["nodes"][1] | {"name": "none", "cpu_cores": 0})
    document["latency_ms"] = {
        "edge-1": {"cloud-1": 45, "none": 45},
        "cloud-1": {"none": 1},
    }
    move = {"service": "backend", "from": "cloud-1", "to": "none"}
    (broken,) = from_document(document).evaluate({"moves": [move]}).violations
    assert (broken.kind, broken.amount) == ("cpu-capacity", 1.0)


def test_machines_are_judged_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is spared, and nothing else: each machine's overload is its own."""
    document = json.loads((SMALLEST / "temporal.json").read_text(encoding="utf-8"))
    document["requests"].append(document["requests"][0] | {"name": "big", "cpu_cores": 1.5})
    document["offers"][0]["max_instances"] = 2
    plan = copy.deepcopy(PLANS["temporal"])
    plan["starts"]["big"] = 0
    document["offers"][0]["max_instances"] = 3
    document["requests"].append(document["requests"][0] | {"name": "last", "replicas": 1})
    plan["starts"]["last"] = 0
    plan["instances"].append(plan["instances"][0] | {"replicas": [["big", 0], ["big", 1]]})
    other = {"location": "east", "replicas": [["last", 0]]}
    plan["instances"].append(plan["instances"][0] | other)
    whole = from_document(document).evaluate(plan)
    assert [violation.kind for violation in whole.violations] == ["cpu-capacity"]
    assert "instances[1] (west" in whole.violations[0].message
    monkeypatch.setattr("placeopt.temporal.referee.LOADS_AT_ONCE", 1)
    assert from_document(document).evaluate(plan) == whole


def test_faults_are_put_into_files_that_are_there() -> None:
    """And looked for by tests that are."""
    source = (ROOT / "benchmarks" / "mutants.py").read_text(encoding="utf-8")
    (judges,) = re.findall(r"^JUDGES = (\{.*?^\})", source, re.MULTILINE | re.DOTALL)
    for name, tests in ast.literal_eval(judges).items():
        assert (ROOT / "placeopt" / f"{name}.py").exists(), name
        assert all((ROOT / "tests" / test).exists() for test in tests), name


def test_values_are_whole_steps() -> None:
    """Of the decimals that an instance has: costs 5 + 0 x 2 and 1 + 1 x 0.1, a delay of 25 ms."""
    document = json.loads((SMALLEST / "edge-cloud.json").read_text(encoding="utf-8"))
    problem = from_document(document)
    assert [goal.step for goal in problem.objectives] == [0.1, 1.0]
    assert problem.evaluate(PLANS["edge-cloud"]).values == (6.1, 25.0)
    document["delay_ms"]["edge"]["cloud"] = 25.25
    assert [goal.step for goal in from_document(document).objectives] == [0.1, 0.01]
    for digits, step in ((9, 1e-9), (10, None)):
        document["delay_ms"]["edge"]["cloud"] = 25 + 10.0**-digits
        document["nodes"][1]["operating_cost"] = 1 + 10.0**-digits
        steps = [goal.step for goal in from_document(document).objectives]
        assert steps == [None if step is None else pytest.approx(step, abs=0)] * 2


def test_a_delay_that_is_not_known_is_no_delay() -> None:
    """A microservice where the source does not reach counts nothing, and is named."""
    document = json.loads((SMALLEST / "edge-cloud.json").read_text(encoding="utf-8"))
    document["applications"][0]["flows"] = []
    document["nodes"].append(document["nodes"][1] | {"name": "island"})
    there = {"camera": {"detect": "edge", "store": "island"}}
    verdict = from_document(document).evaluate({"placement": there})
    assert verdict.values[1] == 0.0
    assert [(v.kind, v.amount) for v in verdict.violations] == [("unreachable", 1.0)]
    document["applications"][0]["flows"] = [{"from": "detect", "to": "store", "max_delay_ms": 9}]
    kinds = {
        v.kind: v.amount for v in from_document(document).evaluate({"placement": there}).violations
    }
    assert kinds == {"unreachable": 1.0, "flow-delay": 1.0}
    late = from_document(document).evaluate({"placement": there}).violations[-1]
    assert "no delay is known" in late.message
    nowhere = from_document(document).evaluate({"placement": {"camera": {}}})
    assert nowhere.values == (0.0, 0.0) and len(nowhere.violations) == 2


def test_a_request_without_a_start_and_one_far_out_are_told_apart() -> None:
    found = judged("temporal", {}, {"starts.web": 3})
    assert found == {"outside-horizon": pytest.approx(0.25)}
    lost = judged("temporal", {"requests.0.replicas": 3}, {})
    assert lost == {"replica-placement": pytest.approx(1 / 3)}
    document = json.loads((SMALLEST / "temporal.json").read_text(encoding="utf-8"))
    document["requests"].append(document["requests"][0] | {"name": "one", "replicas": 1})
    plan = copy.deepcopy(PLANS["temporal"]) | {"starts": {"web": 0, "one": 2}}
    (lacking,) = from_document(document).evaluate(plan).violations
    assert (lacking.kind, lacking.amount) == (
        "replica-placement",
        1.0,
    ) and "'one'" in lacking.message
