"""The rescheduling referee: latencies by hand and by recursion, moves, events, errors."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError, InfeasibleInstanceError, UsageError
from placeopt.rescheduling.generator import APPLICATIONS, fail, surge
from placeopt.rescheduling.problem import Rescheduling

SHAPE = {"services": 5, "cloud_a": 1, "edge_a": 2, "edge_b": 1}


def hand(calls: dict[str, list[list[str]]], homes: dict[str, list[str]]) -> Rescheduling:
    """Services take 10 ms on fast, 20 ms on slow nodes; users are 50 ms and 2 ms away."""
    size = {"cpu_cores": 1.0, "memory_gib": 1.0}
    services = [
        {
            "name": name,
            **size,
            "execution_ms": {"fast": 10.0, "slow": 20.0},
            "replicas": on,
            "calls": calls.get(name, []),
        }
        for name, on in homes.items()
    ]
    node = {"cpu_cores": 2.0, "memory_gib": 8.0}
    nodes = [
        {"name": n, "kind": k, "user_latency_ms": ms, **node}
        for n, k, ms in (("f", "fast", 50.0), ("s", "slow", 2.0), ("t", "slow", 2.0))
    ]
    latency = {"f": {"s": 50.0, "t": 50.0}, "s": {"t": 4.0}}
    gateway = next(iter(homes))
    return Rescheduling.from_document(
        {
            "problem": "rescheduling",
            "name": "hand",
            "nodes": nodes,
            "latency_ms": latency,
            "services": services,
            "gateway": gateway,
        }
    )


def latency(problem: Rescheduling, *moves: tuple[str, str, str]) -> float:
    return problem.evaluate(plan(*moves)).values[0]


def plan(*moves: tuple[str, str, str]) -> dict[str, Any]:
    return {"moves": [{"service": i, "from": u, "to": v} for i, u, v in moves]}


def test_chain_by_hand() -> None:
    """user 2 + a 20 + 50 + b 10 + 50 + c 20."""
    problem = hand({"a": [["b"]], "b": [["c"]]}, {"a": ["s"], "b": ["f"], "c": ["s"]})
    assert latency(problem) == 152
    assert latency(problem, ("b", "f", "t")) == 2 + 20 + 4 + 20 + 4 + 20


def test_sequence_and_parallel_by_hand() -> None:
    """A group sums, groups take the longest: b 50 + 10, c 4 + 20."""
    homes = {"a": ["s"], "b": ["f"], "c": ["t"]}
    assert latency(hand({"a": [["b", "c"]]}, homes)) == 2 + 20 + 60 + 24
    assert latency(hand({"a": [["b"], ["c"]]}, homes)) == 2 + 20 + 60


def test_nested_by_hand() -> None:
    """a calls (b, then c) beside d; b calls d; d is paid in both places."""
    problem = hand(
        {"a": [["b", "c"], ["d"]], "b": [["d"]]}, {"a": ["s"], "b": ["s"], "c": ["t"], "d": ["f"]}
    )
    assert latency(problem) == 2 + 20 + (0 + 20 + 50 + 10) + (4 + 20)


def test_replicas_are_averaged_by_hand() -> None:
    """Half of a on fast: user 26, execution 15; a-b pairs: f-f 0, f-t 50, s-f 50, s-t 4."""
    problem = hand({"a": [["b"]]}, {"a": ["f", "s"], "b": ["f", "t"]})
    assert latency(problem) == 26 + 15 + 104 / 4 + 15
    assert problem.objectives[0].step == pytest.approx(1 / problem.graph.parts)


def test_moves_are_replayed_with_capacity() -> None:
    """The new copy needs room while the old one runs; violations say what is broken."""
    problem = hand({}, {"a": ["s", "s"], "b": ["t", "t"], "c": ["f"]})
    assert problem.evaluate(
        plan(("a", "s", "f"), ("b", "t", "s"), ("a", "f", "t"))
    ).feasible  # a swap by way of f
    broken = problem.evaluate(plan(("a", "s", "t"), ("b", "t", "s")))
    assert [v.kind for v in broken.violations] == [
        "cpu-capacity"
    ] and "moves[0] starts 'a' on 't'" in broken.violations[0].message
    assert [v.kind for v in problem.evaluate(plan(("a", "s", "s"))).violations] == ["cpu-capacity"]
    nowhere = problem.evaluate(plan(("c", "s", "f")))
    assert [v.kind for v in nowhere.violations] == ["not-there"] and nowhere.values[1] == 1


def oracle(problem: Rescheduling, homes: dict[str, list[str]]) -> Fraction:
    """The paper's equations over single pods, in fractions, recursively."""
    services, nodes = {s.name: s for s in problem.services}, {n.name: n for n in problem.nodes}

    def delay(u: str, v: str) -> Fraction:
        table = problem.latency_ms
        ms = table.get(u, {}).get(v, table.get(v, {}).get(u, 0.0))
        return Fraction(str(ms))

    def mean(numbers: list[Fraction]) -> Fraction:
        return sum(numbers, Fraction()) / len(numbers)

    def processing(name: str) -> Fraction:
        own = mean([Fraction(str(services[name].execution_ms[nodes[u].kind])) for u in homes[name]])
        groups = [
            sum(
                mean([delay(u, v) for u in homes[name] for v in homes[other]]) + processing(other)
                for other in group
            )
            for group in services[name].calls
        ]
        return own + max(groups, default=Fraction())

    return mean(
        [Fraction(str(nodes[u].user_latency_ms)) for u in homes[problem.gateway]]
    ) + processing(problem.gateway)


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([*APPLICATIONS, "random"]),
    st.integers(0, 12),
)
def test_referee_is_the_recursion_over_pods(
    seed: int, replicas: int, application: str, count: int
) -> None:
    """On random graphs after random moves; the critical path adds up to the latency."""
    problem = Rescheduling.generate(
        seed, application=application, replicas=replicas, jitter=0.3, **SHAPE
    )
    rng, homes = np.random.default_rng(seed), {s.name: list(s.replicas) for s in problem.services}
    moves = []
    for _ in range(count):
        name = str(rng.choice(list(homes)))
        k, target = (
            int(rng.integers(replicas)),
            problem.nodes[int(rng.integers(len(problem.nodes)))].name,
        )
        moves.append((name, homes[name][k], target))
        homes[name][k] = target
    verdict = problem.evaluate(plan(*moves))
    assert verdict.values == (pytest.approx(float(oracle(problem, homes)), rel=1e-12), float(count))
    hops = problem.graph.critical_path(problem.final_counts(plan(*moves)).tolist())
    assert sum(hop.network_ms + hop.execution_ms for hop in hops) == pytest.approx(
        verdict.values[0]
    )
    assert problem.plan(problem.moves(plan(*moves))) == plan(*moves)
    if moves:
        rows = problem.table(plan(*moves))
        assert rows[-1]["latency_ms"] == verdict.values[0]
        assert problem.initial_latency + sum(row["change_ms"] for row in rows) == pytest.approx(
            verdict.values[0]
        )


def test_generated_instances_are_the_testbed() -> None:
    """Six machines, 20 pods, the same seed the same instance; random ones round-trip."""
    problem = Rescheduling.generate(3, application="aggregator-parallel", replicas=5)
    assert [n.cpu_cores for n in problem.nodes] == [8, 8, 4, 4, 2, 2] and sum(
        len(s.replicas) for s in problem.services
    ) == 20
    assert problem == Rescheduling.generate(3, application="aggregator-parallel", replicas=5)
    assert (
        problem.evaluate({"moves": []}).values == (problem.initial_latency, 0.0)
        and problem.warnings() == ()
    )
    other = Rescheduling.generate(4, application="random", jitter=0.5)
    assert Rescheduling.from_document(json.loads(json.dumps(other.to_document()))) == other
    assert set(problem.describe({"moves": []})) == {"latency", "moves", "moved", "critical path"}
    for wrong in (
        {"application": "chains"},
        {"replicas": 0},
        {"jitter": 2.0},
        {"cloud_a": -1},
        {"replicas": 50},
    ):
        with pytest.raises(UsageError, match=r"give|did you mean"):
            Rescheduling.generate(1, **wrong)


def test_node_failure_and_surge() -> None:
    """No replica is lost, only touched ones move; too little room is an error."""
    problem = Rescheduling.generate(2, replicas=3)
    after = fail(problem, ["edge-a-1", "cloud-a-2"])
    assert len(after.nodes) == 4 and [len(s.replicas) for s in after.services] == [3] * 4
    for old, new in zip(problem.services, after.services, strict=True):
        kept = [name for name in old.replicas if name not in ("edge-a-1", "cloud-a-2")]
        assert list(new.replicas[: len(kept)]) == kept
    grown = surge(problem, 5)
    assert [len(s.replicas) for s in grown.services] == [5] * 4
    assert [s.replicas[:3] for s in grown.services] == [s.replicas for s in problem.services]
    assert [len(s.replicas) for s in surge(problem, 5, ["ml"]).services] == [3, 5, 3, 3]
    with pytest.raises(InfeasibleInstanceError, match="no node has room for another replica"):
        surge(problem, 30)
    with pytest.raises(InfeasibleInstanceError):
        fail(problem, [n.name for n in problem.nodes])
    with pytest.raises(UsageError, match="did you mean"):
        fail(problem, ["edge-a-9"])


def test_the_fitted_profile_is_the_papers_failure_case() -> None:
    """Section VII-D, ms, of the three schedulers: in its order and within 3 %."""
    paper = {"cloud-first": 291.0, "kubernetes": 271.8, "latency-greedy": 270.5}
    found = []
    for start, ms in paper.items():
        before = Rescheduling.generate(0, replicas=3, profile="reach", start=start)
        after = fail(before, ["cloud-a-1", "edge-a-1"], start)
        found.append(after.initial_latency)
        assert after.initial_latency == pytest.approx(ms, rel=0.03)
        assert [len(s.replicas) for s in surge(before, 5, scheduler=start).services] == [5] * 4
    assert found == sorted(found, reverse=True)
    with pytest.raises(UsageError, match="unknown start 'cloud'"):
        Rescheduling.generate(0, start="cloud")
    with pytest.raises(UsageError, match="unknown scheduler 'random'"):
        fail(before, ["edge-b-1"], "random")


def document() -> dict[str, Any]:
    return json.loads(json.dumps(Rescheduling.generate(1).to_document()))


def test_graphs_that_cannot_be_are_named() -> None:
    """Circles, unknown names, overloads, missing times and latencies, each with its path."""
    cases: list[tuple[Any, str, str]] = []

    def case(path: str, message: str) -> dict[str, Any]:
        cases.append((document(), path, message))
        return cases[-1][0]

    case("services[3].calls", "in a circle: ml -> backend -> db -> ml")["services"][3]["calls"] = [
        ["ml"]
    ]
    case("services[0].calls", "in a circle: frontend -> frontend")["services"][0]["calls"] = [
        ["frontend"]
    ]
    case(
        "services[0].calls[0][0]", "'frontend' calls the unknown service 'mll'; did you mean 'ml'"
    )["services"][0]["calls"] = [["mll"]]
    case("services[1].replicas[0]", "unknown node 'cloud'")["services"][1]["replicas"] = ["cloud"]
    case("nodes[5].cpu_cores", "ask for more than its 2")["services"][1]["replicas"] = [
        "edge-b-2"
    ] * 3
    del case("services[2].execution_ms", "'backend' has no execution time on 'edge-b'")["services"][
        2
    ]["execution_ms"]["edge-b"]
    del case("latency_ms", "no latency between 'cloud-a-1' and 'edge-b-1'")["latency_ms"][
        "cloud-a-1"
    ]["edge-b-1"]
    case("gateway", "unknown service 'front'; did you mean 'frontend'")["gateway"] = "front"
    for broken, path, message in cases:
        with pytest.raises(DocumentError) as found:
            Rescheduling.from_document(broken)
        assert found.value.path == path and message in str(found.value) and found.value.remedy


def test_deep_graphs_need_no_recursion() -> None:
    """A chain of two thousand services."""
    names = [f"s{k}" for k in range(2000)]
    calls = {a: [[b]] for a, b in itertools.pairwise(names)}
    size = {"cpu_cores": 0.0, "memory_gib": 0.0}
    services = [
        {
            "name": n,
            **size,
            "execution_ms": {"fast": 1.0},
            "replicas": ["f"],
            "calls": calls.get(n, []),
        }
        for n in names
    ]
    nodes = [
        {"name": "f", "kind": "fast", "cpu_cores": 1.0, "memory_gib": 1.0, "user_latency_ms": 3.0}
    ]
    problem = Rescheduling.from_document(
        {
            "problem": "rescheduling",
            "name": "deep",
            "nodes": nodes,
            "services": services,
            "gateway": "s0",
        }
    )
    assert problem.initial_latency == 2003


def test_plans_of_another_form_are_refused() -> None:
    """With the path of the field."""
    problem = Rescheduling.generate(1)
    move = {"service": "ml", "from": problem.services[1].replicas[0], "to": "cloud-a-1"}
    for wrong, path in (
        ({"moves": [{**move, "to": "cloud"}]}, "moves[0].to"),
        ({"moves": [{**move, "service": "mll"}]}, "moves[0].service"),
        ({"moves": [{"service": "ml", "to": "cloud-a-1"}]}, "moves[0].from"),
        ({"steps": []}, "steps"),
        ({"moves": [{**move, "to": None}]}, "moves[0].to"),
    ):
        with pytest.raises(DocumentError) as found:
            problem.evaluate(wrong)
        assert found.value.path == path


def test_warnings_name_what_nothing_uses() -> None:
    """Services out of reach, latencies of no node."""
    changed = document()
    changed["gateway"] = "ml"
    changed["latency_ms"]["moon"] = {"cloud-a-1": 1300.0}
    said = Rescheduling.from_document(changed).warnings()
    assert len(said) == 2 and "'frontend' is not reached" in said[0] and "moon" in said[1]
