"""Edge-cloud documents, the referee against a restatement, reasons, generated instances."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt import cli, registry
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import write_json
from placeopt.edge_cloud.arrays import possible_nodes
from placeopt.edge_cloud.generator import TOPOLOGIES
from placeopt.edge_cloud.problem import EdgeCloud

DOCUMENT = {
    "problem": "edge-cloud",
    "name": "two",
    "nodes": [
        {
            "name": "n",
            "layer": "near-edge",
            "cpu_cores": 1.0,
            "memory_gib": 2.0,
            "operating_cost": 8.0,
            "network_cost": 0.5,
        },
        {
            "name": "c",
            "layer": "cloud",
            "cpu_cores": 100.0,
            "memory_gib": 100.0,
            "operating_cost": 1.0,
            "network_cost": 1.5,
        },
    ],
    "delay_ms": {"n": {"c": 30.0}},
    "applications": [
        {
            "name": "a",
            "source": "n",
            "microservices": [
                {"name": "x", "cpu_cores": 0.6, "memory_gib": 1.0, "data": 1.0},
                {"name": "y", "cpu_cores": 0.6, "memory_gib": 1.0, "data": 2.0},
            ],
            "flows": [{"from": "x", "to": "y", "max_delay_ms": 20.0}],
        }
    ],
}


def changed(path: tuple, value: object) -> dict:
    """DOCUMENT with one value replaced."""
    document = copy.deepcopy(DOCUMENT)
    spot = document
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = value
    return document


def place(x: str, y: str) -> dict:
    """A plan of DOCUMENT."""
    return {"placement": {"a": {"x": x, "y": y}}}


def test_values_of_a_known_plan():
    """Cost is operating plus network times data; latency the farthest node."""
    problem = EdgeCloud.from_document(DOCUMENT)
    assert problem.evaluate(place("c", "c")) == problem.evaluate(
        {"placement": {"a": {"y": "c", "x": "c"}}}
    )
    verdict = problem.evaluate(place("c", "c"))
    assert verdict.feasible and verdict.values == (1 + 1.5 + 1 + 3.0, 30.0)
    assert [(o.name, o.step) for o in problem.objectives] == [("cost", 0.1), ("latency_ms", 1.0)]


def test_what_a_plan_can_break():
    """Violations name capacities, delays of flows, and microservices left out."""
    problem = EdgeCloud.from_document(DOCUMENT)
    assert [v.kind for v in problem.evaluate(place("n", "n")).violations] == ["cpu-capacity"]
    (flow,) = problem.evaluate(place("n", "c")).violations
    assert (flow.kind, flow.amount) == (
        "flow-delay",
        0.5,
    ) and "x on n to y on c: 30 ms" in flow.message
    missing = problem.evaluate({"placement": {"a": {"x": "c"}}})
    assert [v.kind for v in missing.violations] == ["not-placed"] and missing.values == (2.5, 30.0)
    assert len(problem.evaluate({"placement": {}}).violations) == 2
    alone = EdgeCloud.from_document(changed(("delay_ms",), {}))
    assert {v.kind for v in alone.evaluate(place("n", "c")).violations} == {
        "unreachable",
        "flow-delay",
    }


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({}, "placement"),
        ([], "legal"),
        ({"placement": {"b": {}}}, "unknown application 'b'"),
        ({"placement": {"a": {"z": "n"}}}, "unknown microservice 'z'"),
        ({"placement": {"a": {"x": "moon"}}}, "unknown node 'moon'"),
        ({"placement": {"a": {"x": ["n"]}}}, "placement.a.x"),
        ({"placement": {"a": 3}}, "placement.a"),
    ],
)
def test_plans_that_cannot_be_read(plan, words):
    """A plan of the wrong form is a document error that says where."""
    with pytest.raises(DocumentError, match=words.replace("[", r"\[")):
        EdgeCloud.from_document(DOCUMENT).evaluate(plan)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("applications", 0, "source"), "m", r"applications\[0\]\.source: unknown node 'm'"),
        (
            ("applications", 0, "flows", 0, "to"),
            "q",
            r"applications\[0\]\.flows\[0\]\.to: unknown microservice",
        ),
        (("applications", 0, "flows", 0, "to"), "x", r"flows to itself"),
        (
            ("applications", 0, "flows", 0, "max_delay_ms"),
            -1.0,
            r"applications\[0\]\.flows\[0\]\.max_delay_ms",
        ),
        (("applications", 0, "microservices"), [], r"applications\[0\]\.microservices"),
        (("applications", 0, "microservices", 1, "name"), "x", r"stands twice"),
        (("nodes", 1, "name"), "n", r"stands twice"),
        (("nodes", 1, "cpu_cores"), math.nan, r"nodes\[1\]\.cpu_cores"),
        (("nodes", 1, "layers"), "edge", r"did you mean 'layer'"),
        (("nodes",), [], r"nodes"),
        (("delay_ms",), {"n": {"c": 30.0}, "c": {"n": 31.0}}, r"symmetric"),
        (("delay_ms",), {"n": {"c": "30"}}, r"delay_ms\.n\.c"),
    ],
)
def test_documents_that_are_refused(path, value, words):
    """Bad documents name the path, the value and what is legal."""
    with pytest.raises(DocumentError, match=words):
        registry.from_document(changed(path, value))


def test_unused_delays_are_a_warning():
    """Delays of places that are not nodes are legal."""
    assert (
        "moon" in EdgeCloud.from_document(changed(("delay_ms", "moon"), {"n": 1.0})).warnings()[0]
    )
    assert EdgeCloud.from_document(DOCUMENT).warnings() == ()


def test_reasons_of_infeasibility():
    """Large microservices, impossible flows, and too much demand in all are told apart."""
    assert EdgeCloud.from_document(DOCUMENT).infeasibility() == ()
    (large,) = EdgeCloud.from_document(
        changed(("applications", 0, "microservices", 0, "cpu_cores"), 100.5)
    ).infeasibility()[:1]
    assert "'x' of 'a' needs 100.5 cores" in large and "no node is large enough" in large
    far = changed(("delay_ms",), {})
    far["applications"][0]["microservices"][0]["cpu_cores"] = 2.0
    assert any(
        "no node that is large enough has a delay from the source" in r
        for r in EdgeCloud.from_document(far).infeasibility()
    )
    tight = changed(("nodes", 1, "cpu_cores"), 1.0)
    reasons = EdgeCloud.from_document(tight).infeasibility()
    assert reasons == ("no two nodes can host 'x' and 'y' of 'a' within 20 ms of each other",)
    small = changed(("nodes", 1, "memory_gib"), 0.0)
    assert "all microservices together need 100.0% of the memory" not in " ".join(
        EdgeCloud.from_document(small).infeasibility()
    )
    small["nodes"][0]["memory_gib"] = 1.9
    assert any("105.3% of the memory" in r for r in EdgeCloud.from_document(small).infeasibility())


def restated(problem: EdgeCloud, placement: dict) -> tuple[float, float, bool]:
    """Equations (2)-(7) once more, in floating point."""
    node = {n.name: n for n in problem.nodes}

    def delay(v: str, w: str) -> float:
        known = problem.delay_ms.get(v, {}).get(w, problem.delay_ms.get(w, {}).get(v))
        return (0.0 if v == w else math.inf) if known is None else known

    placed = [
        (node[placement[a.name][m.name]], m) for a in problem.applications for m in a.microservices
    ]
    cost = sum(v.operating_cost + v.network_cost * m.data for v, m in placed)
    latency = sum(
        max(delay(a.source, v) for v in placement[a.name].values()) for a in problem.applications
    )
    legal = all(
        delay(placement[a.name][f.source], placement[a.name][f.target])
        <= (math.inf if f.max_delay_ms is None else f.max_delay_ms)
        for a in problem.applications
        for f in a.flows
    )
    for v in node.values():
        hosted = [m for where, m in placed if where is v]
        legal &= (
            sum(m.cpu_cores for m in hosted) <= v.cpu_cores + 1e-9
            and sum(m.memory_gib for m in hosted) <= v.memory_gib + 1e-9
        )
    return cost, latency, legal


@given(st.integers(0, 10**6))
def test_referee_agrees_with_the_equations(seed):
    """Values and feasibility of random plans are those of a plain restatement."""
    rng = np.random.default_rng(seed)
    sizes = {
        "applications": int(rng.integers(1, 9)),
        "near": int(rng.integers(1, 5)),
        "far": 1,
        "cloud": 1,
    }
    problem = EdgeCloud.generate(seed, load=float(rng.choice([0.4, 1.0])), **sizes)
    for _ in range(10):
        allowed = possible_nodes(problem.arrays)
        hosts = np.array(
            [rng.choice(np.flatnonzero(row)[: int(rng.integers(1, 7))]) for row in allowed]
        )
        plan = problem.plan(hosts)
        assert np.array_equal(problem.hosts(plan), hosts)
        verdict = problem.evaluate(plan)
        cost, latency, legal = restated(problem, plan["placement"])
        assert verdict.values == pytest.approx((cost, latency), abs=1e-9)
        assert verdict.feasible == legal


def test_generated_instances():
    """Generation repeats by seed, keeps to its ranges, survives JSON, and refuses absurd sizes."""
    problem = EdgeCloud.generate(seed=3, applications=40, **TOPOLOGIES["extended"])
    assert problem == EdgeCloud.generate(seed=3, applications=40, **TOPOLOGIES["extended"])
    assert problem == EdgeCloud.from_document(problem.to_document())
    assert problem != EdgeCloud.generate(seed=4, applications=40, **TOPOLOGIES["extended"])
    assert problem.layers == ("near-edge", "far-edge", "cloud") and len(problem.nodes) == 187
    assert problem.infeasibility() == () and problem.warnings() == ()
    delay = problem.arrays.delay
    assert (
        np.array_equal(delay, delay.T) and np.isfinite(delay).all() and not delay.diagonal().any()
    )
    assert all(
        2 <= len(a.microservices) <= 5 and len(a.flows) == len(a.microservices) - 1
        for a in problem.applications
    )
    names = {"applications", "near", "far", "cloud", "load", "demand", "profile"}
    assert set(EdgeCloud.sizes()) == names
    for sizes in ({"applications": 0}, {"near": 0}, {"load": 0.0}, {"load": math.nan}):
        with pytest.raises(UsageError):
            EdgeCloud.generate(**sizes)


def test_summary_of_a_plan():
    """The summary counts microservices by layer."""
    assert EdgeCloud.from_document(DOCUMENT).describe(place("c", "c")) == {
        "microservices": "2 on cloud",
        "nodes in use": "1 of 2",
    }


def test_check_says_why_there_is_no_plan(tmp_path, capfd):
    """``placeopt check`` ends with 3 and a line for each reason."""
    document = EdgeCloud.generate(1, applications=4, near=2, far=1, cloud=1).to_document()
    first, second = document["applications"][:2]
    first["microservices"][0]["cpu_cores"] = 9999.0
    second["flows"] = [{"from": "m1", "to": "m2", "max_delay_ms": 0.0}]
    largest = max(node["cpu_cores"] for node in document["nodes"])
    second["microservices"][0]["cpu_cores"], second["microservices"][1]["cpu_cores"] = largest, 1.0
    path = tmp_path / "crowded.json"
    write_json(path, document)
    with pytest.raises(SystemExit) as end:
        cli.main(["check", str(path)])
    out = capfd.readouterr().out
    assert end.value.code == 3 and "no plan can exist" in out
    for words in (
        "'m1' of 'a1' needs 9999 cores",
        "no two nodes can host 'm1' and 'm2' of 'a2' within 0 ms",
        "of the cpu of all nodes",
    ):
        assert words in out
