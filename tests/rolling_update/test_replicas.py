"""Replicas that are added and removed on the way; `tests/differential` compares with all plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import placeopt
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.interfaces import build_encoder, build_sequence
from placeopt.rolling_update import views as summary
from placeopt.rolling_update.problem import RollingUpdate


def service(name: str, node: str | None, cpu: int = 3, **more: Any) -> dict[str, Any]:
    return {"name": name, "node": node, "cpu_millicores": cpu, "memory_mib": 1, **more}


def instance(*services: dict[str, Any], cpu: int = 6, **more: Any) -> RollingUpdate:
    """Three nodes of price 1, and one application."""
    nodes = [
        {"name": f"n{k}", "cluster": "c", "cpu_millicores": cpu, "memory_mib": 9, "price": 1.0}
        for k in range(3)
    ]
    application = {"name": "a", "microservices": list(services)}
    document = {"problem": "rolling-update", "name": "t", "nodes": nodes}
    return RollingUpdate.from_document(document | {"applications": [application]} | more)


def plan(*moves: tuple[str, str | None]) -> dict[str, Any]:
    return {"steps": [{"application": "a", "microservice": m, "to": n} for m, n in moves]}


#: One replica goes, another comes: the old one may go first only if nobody misses it.
SWAP = (
    service("w0", "n0", removed=True, replica_of="w"),
    service("w1", None, replica_of="w"),
    service("x", "n1"),
)


def test_enough_replicas_stay_ready() -> None:
    problem = instance(*SWAP)
    good = problem.evaluate(plan(("w1", "n1"), ("w0", None)))
    assert good.feasible and good.values == (1.0, 1.0, 0.0)
    early = problem.evaluate(plan(("w0", None), ("w1", "n1")))
    assert {v.kind for v in early.violations} == {"replicas"}
    assert "0 of the replicas of 'w' of 'a' are left; legal: 1" in early.violations[0].message
    apart = [{k: v for k, v in s.items() if k != "replica_of"} for s in SWAP]
    assert instance(*apart).evaluate(plan(("w0", None), ("w1", "n1"))).feasible


def test_room_is_taken_from_the_start_and_freed_at_the_end() -> None:
    problem = instance(service("old", "n0", 5, removed=True), service("new", None, 5), cpu=6)
    assert problem.evaluate(plan(("old", None), ("new", "n0"))).feasible
    first = problem.evaluate(plan(("new", "n0"), ("old", None)))
    assert {v.kind for v in first.violations} == {"cpu-capacity"}


@pytest.mark.parametrize(
    ("moves", "kind"),
    [
        ((), "removed"),
        ((("x", None),), "removed"),
        ((("w", "n1"),), "removed"),
        ((("w", None), ("w", None)), "not-running"),
    ],
)
def test_what_is_removed_ends_once_and_starts_nowhere(moves: Any, kind: str) -> None:
    problem = instance(service("w", "n0", removed=True), service("x", "n1"))
    assert kind in {v.kind for v in problem.evaluate(plan(*moves)).violations}
    done = problem.evaluate(plan(("w", None)))
    assert done.feasible and done.values == (1.0, 0.0, 0.0)


def test_rules_count_replicas_as_long_as_they_run() -> None:
    """Apart: a new copy waits for the removed one; spread: a removal may leave a skew behind."""
    rule = {"kind": "apart", "group": "g"}
    one, other = service("w", "n0", removed=True, groups=["g"]), service("x", None, groups=["g"])
    problem = instance(one, other, rules=[rule])
    assert problem.evaluate(plan(("w", None), ("x", "n0"))).feasible
    assert not problem.evaluate(plan(("x", "n0"), ("w", None))).feasible
    five = [service(f"s{k}", f"n{k % 3}", 1, groups=["g"]) for k in range(5)]
    five[2]["removed"] = True
    spread = instance(*five, rules=[{"kind": "spread", "group": "g", "max_skew": 1}])
    assert not spread.evaluate(plan(("s2", None))).feasible
    assert spread.evaluate(plan(("s0", "n2"), ("s2", None))).feasible
    front = placeopt.solve(spread, "decomposition", seed=1)
    assert min(p.values[1] for p in front.points) == 1


def test_flows_of_what_is_removed_end_with_it() -> None:
    nodes = [
        {"name": f"n{k}", "cluster": f"c{k}", "cpu_millicores": 6, "memory_mib": 9, "price": 1.0}
        for k in range(2)
    ]
    flow = {"from": "w", "to": "x", "max_latency_ms": 1.0}
    far = {"name": "a", "microservices": [service("w", "n0"), service("x", "n1")], "flows": [flow]}
    document = {"problem": "rolling-update", "name": "t", "nodes": nodes, "applications": [far]}
    assert not RollingUpdate.from_document(document).evaluate(plan()).feasible
    far["microservices"][0]["removed"] = True
    assert RollingUpdate.from_document(document).evaluate(plan(("w", None))).feasible


def scaled(seed: int, *, ruled: bool = True) -> RollingUpdate:
    """A generated instance that is changed at random, with rules about what comes and goes."""
    rng = np.random.default_rng(seed)
    document: dict[str, Any] = RollingUpdate.generate(
        seed,
        applications=4,
        microservices=3,
        nodes=6,
        occupancy=0.5,
        added=int(rng.integers(0, 4)),
        removed=int(rng.integers(1, 5)),
    ).to_document()
    document["semantics"] = str(rng.choice(["stay", "strict"]))
    services = [m for a in document["applications"] for m in a["microservices"]]
    if ruled:
        document["rules"] = [
            {"kind": "apart", "group": "g", "max_copies": int(rng.integers(1, 4))},
            {"kind": "spread", "group": "h", "max_skew": int(rng.integers(1, 3))},
            {"kind": "together", "group": "i"},
        ]
        for m in services:
            m["groups"] = [g for g in "ghi" if rng.random() < 0.25]
        services[0]["groups"] = ["g", "h", "i"]
        document["survival"] = {"needs": {"g": 0}, "room": bool(rng.random() < 0.5)}
    return RollingUpdate.from_document(document)


@pytest.mark.parametrize("seed", range(20))
def test_the_kernels_agree_with_the_referee(seed: int) -> None:
    problem = scaled(seed, ruled=seed % 3 > 0)
    encoder, rng = build_encoder(problem), np.random.default_rng(seed)
    X = encoder.sample(rng, 8)
    X = np.concatenate((X, encoder.vary(rng, X, X[::-1])))
    F, G = encoder.evaluate(X)
    for genes, values, excess in zip(X, F, G, strict=True):
        made = encoder.decode(genes)
        verdict = problem.evaluate(made)
        assert verdict.feasible == (excess <= 0).all(), verdict.violations
        if verdict.feasible or not problem.rules:  # else rules may leave moves undone
            assert verdict.values == tuple(values)
            np.testing.assert_array_equal(encoder.encode(made), genes)


@pytest.mark.parametrize("seed", range(12))
def test_costs_of_an_episode_sum_to_the_referee(seed: int) -> None:
    problem = scaled(seed, ruled=seed % 2 > 0)
    sequence, rng = build_sequence(problem), np.random.default_rng(seed)
    state, total = sequence.reset(rng), np.zeros(len(problem.objectives))
    while not sequence.done(state):
        assert np.abs(sequence.features(state)).max() <= 1
        total += sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))
    if sequence.remaining(state) == 0:
        verdict = problem.evaluate(sequence.plan(state))
        assert total == pytest.approx(verdict.values, abs=1e-9)
        assert verdict.feasible, verdict.violations


def test_a_generated_instance_is_repacked() -> None:
    problem = RollingUpdate.generate(2, added=5, removed=8)
    a = problem.arrays
    assert int((a.home == a.waiting).sum()) == 5 and int(a.removed.sum()) == 8
    assert problem.warnings() == problem.infeasibility() == ()
    plain = RollingUpdate.generate(2).arrays
    assert a.initial_load[:16].sum() == plain.initial_load.sum()
    front = placeopt.solve(problem, "repack", seed=1, evaluations=50)
    assert front.points and all(problem.evaluate(p.plan).feasible for p in front.points)
    told = problem.describe(front.points[0].plan)
    assert told["removed"] == "8" and told["started, after waiting"] == "5"
    actions = [row["action"] for row in problem.table(front.points[0].plan)]
    assert actions.count("remove") == 8 and actions.count("start") == 5
    assert "8 to be removed" in dict(summary.instance(problem))["microservices"]
    assert "no place afterwards" in summary.plan(problem, front.points[0].plan)
    with pytest.raises(UsageError, match="removed is 51; legal: 0 to 50"):
        RollingUpdate.generate(2, removed=51)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"node": None}, "it runs nowhere"),
        ({"new_cpu_millicores": 1}, "it has a new size"),
        ({"removed": 1}, "boolean"),
        ({"replica_of": ""}, "replica_of"),
    ],
)
def test_a_fault_is_named_with_its_path(changes: dict[str, Any], text: str) -> None:
    document = instance(service("w", "n0", removed=True), service("x", "n1")).to_document()
    document["applications"][0]["microservices"][0] |= changes
    with pytest.raises(DocumentError, match=text) as caught:
        RollingUpdate.from_document(document)
    assert str(caught.value.path).startswith("applications[0].microservices[0]")


def test_what_may_not_be_touched_is_not_removed() -> None:
    document = instance(service("w", "n0", removed=True)).to_document()
    document["applications"][0]["reschedulable"] = False
    with pytest.raises(DocumentError, match="may not be touched"):
        RollingUpdate.from_document(document)
