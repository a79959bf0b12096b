"""The loss of any one node: referee, encoder, model and methods against plain enumeration.

The oracle reads the document, takes each node away in turn and looks at what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rolling_updates import Deployment, State, best

from placeopt import api
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError
from placeopt.core.interfaces import build_sequence
from placeopt.core.task import Task
from placeopt.rolling_update.bounds import bound_vectors
from placeopt.rolling_update.decomposition import decomposition
from placeopt.rolling_update.encoder import RollingUpdateEncoder, num_unplaceable
from placeopt.rolling_update.problem import RollingUpdate

Json = dict[str, Any]
GOALS = ["node_cost", "starts", "lost_at_worst"]


def drawn(seed: int, count: int = 4) -> Json:
    """Return a random document of `count` microservices in two groups on three nodes."""
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "c",
            "cpu_millicores": int(rng.choice([6, 9])),
            "memory_mib": 100,
            "price": float(rng.choice([0.0, 1.0, 1.0, 1.5])),
            "drain": bool(rng.random() < 0.05),
        }
        for k in range(3)
    ]
    services: list[Json] = []
    for k in range(count):
        m: Json = {"name": f"m{k}", "node": None if rng.random() < 0.1 else f"n{rng.integers(3)}"}
        m |= {"cpu_millicores": int(rng.integers(1, 4)), "memory_mib": 1}
        m["groups"] = ["web" if k < 3 else "db", *(["all"] if rng.random() < 0.4 else [])]
        if rng.random() < 0.2:
            m["new_cpu_millicores"] = int(rng.integers(1, 4))
        if m["node"] and rng.random() < 0.15:
            m["pinned"] = True
        services.append(m)
    sizes = {g: sum(g in s["groups"] for s in services) for g in ("web", "db", "all")}
    needs = {g: int(rng.integers(size + 1)) for g, size in sizes.items() if size}
    return {
        "problem": "rolling-update",
        "name": "survival",
        "semantics": "stay",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "survival": {"needs": needs, "room": bool(rng.random() < 0.5)},
    }


def grows(service: Json) -> bool:
    """Whether a microservice has another size afterwards, so that it has to start anew."""
    return service.get("new_cpu_millicores", service["cpu_millicores"]) != service["cpu_millicores"]


def random_plan(rng: np.random.Generator, document: Json) -> Json:
    names = [s["name"] for s in document["applications"][0]["microservices"]]
    return {
        "steps": [
            {"application": "a", "microservice": str(rng.choice(names)), "to": f"n{n}"}
            for n in rng.integers(3, size=rng.integers(6))
        ]
    }


def test_the_referee_agrees_with_the_oracle() -> None:
    """What is lost at worst, and whether there is room, of random plans."""
    seen = set()
    for seed in range(160):
        document, rng = drawn(seed), np.random.default_rng(seed)
        problem, oracle = RollingUpdate.from_document(document), Deployment(document)
        plan = random_plan(rng, document)
        where = {s["name"]: s["node"] for _, s in oracle.services}
        where |= {step["microservice"]: step["to"] for step in plan["steps"]}
        verdict = problem.evaluate(plan)
        if None in where.values():
            continue
        ends = State(tuple((n, True) for n in where.values()))
        if document["survival"]["needs"]:
            assert verdict.values[3] == oracle.lost(ends), seed
            seen.add(verdict.values[3])
        restarted = {step["microservice"] for step in plan["steps"]}
        if all(s["name"] in restarted or not grows(s) for _, s in oracle.services):
            crowded = any(v.kind == "survival" for v in verdict.violations)
            assert crowded != oracle.survives(ends), (seed, verdict.violations)
        problem.describe(plan), problem.warnings()
    assert len(seen) > 3


def test_the_compiled_check_agrees_with_the_referee() -> None:
    """Of random deployments with rules, overloaded ones among them: how many find no place."""
    some = 0
    for seed in range(60):
        rng, document = np.random.default_rng(seed), drawn(seed, count=6)
        rules = [{"kind": "spread", "group": "web", "per": "node", "max_skew": seed % 3 + 1}]
        rules += [{"kind": "apart", "group": "db", "max_copies": seed % 2 + 1}]
        rules += [{"kind": "apart", "group": "db", "toward": "web"}] * (seed % 4 == 0)
        survival = {"room": True}
        problem = RollingUpdate.from_document(document | {"rules": rules, "survival": survival})
        a = problem.arrays
        targets = rng.integers(len(problem.nodes), size=(8, len(a.home)))
        for target, count in zip(
            targets, num_unplaceable(a, a.survival, a.packed_rules, targets).tolist(), strict=True
        ):
            homeless = problem._survival.homeless(target.tolist())
            assert count == sum(map(len, homeless.values())), (seed, target)
            some += 0 < count < len(target)
    assert some > 100


def test_room_together_is_not_a_place_for_each() -> None:
    """Three nodes of 6 cores, 4 of each in use: 12 remain for 12, but no 4 fit beside another 4."""
    nodes = [
        {"name": f"n{k}", "cluster": "c", "cpu_millicores": 6, "memory_mib": 9, "price": 1.0}
        for k in range(4)
    ]
    services = [
        {"name": f"m{k}", "node": f"n{k}", "cpu_millicores": 4, "memory_mib": 1} for k in range(3)
    ]
    document = {
        "problem": "rolling-update",
        "name": "places",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "survival": {"room": True},
    }
    problem = RollingUpdate.from_document(document)
    verdict = problem.evaluate({"steps": []})
    assert [v.message for v in verdict.violations] == [
        f"without node 'n{k}' a/m{k} finds no room" for k in range(3)
    ]
    told = problem.describe({"steps": []})["survives the loss of any one node"]
    assert told.startswith("no: without n0: a/m0 finds no room")
    for method in ("repack", "decomposition"):
        front = api.solve(problem, method, seed=1)
        assert not front.points, method
        assert front.reasons, method
    nodes[3]["price"] = 0.0  # it stands by, empty
    assert RollingUpdate.from_document(document).evaluate({"steps": []}).feasible


def test_what_is_lost_starts_where_the_largest_share_is_left() -> None:
    """The first has a sixth left on n2, a twentieth on n1; the second may be on n1 alone."""
    sizes = {"n0": 40, "n1": 20, "n2": 6}
    nodes = [
        {"name": n, "cluster": "c", "cpu_millicores": c, "memory_mib": 100, "price": 1.0}
        for n, c in sizes.items()
    ]
    pods = {"first": ("n0", 4), "second": ("n0", 3), "large": ("n1", 15), "small": ("n2", 1)}
    services: list[Json] = [
        {"name": name, "node": n, "cpu_millicores": cpu, "memory_mib": 1}
        for name, (n, cpu) in pods.items()
    ]
    services[1]["allowed"] = "near"
    document = {
        "problem": "rolling-update",
        "name": "shares",
        "semantics": "stay",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "node_sets": {"near": ["n0", "n1"]},
        "survival": {"room": True},
    }
    assert RollingUpdate.from_document(document).evaluate({"steps": []}).violations == ()
    assert Deployment(document).judge({"steps": []}) is not None


@pytest.mark.parametrize("seed", range(40))
def test_the_encoder_and_episodes_agree_with_the_referee(seed: int) -> None:
    problem, rng = RollingUpdate.from_document(drawn(seed)), np.random.default_rng(seed)
    encoder = RollingUpdateEncoder(problem, problem.objectives)
    X = encoder.sample(rng, 20)
    for genes, values, excess in zip(X, *encoder.evaluate(X), strict=True):
        verdict = problem.evaluate(encoder.decode(genes))
        assert verdict.values == tuple(values)
        assert verdict.feasible == (excess <= 0).all(), verdict.violations
    sequence = build_sequence(problem)
    state, total = sequence.reset(rng), np.zeros(len(problem.objectives))
    while not sequence.done(state):
        total += sequence.step(state, int(rng.choice(np.flatnonzero(sequence.mask(state)))))
    if sequence.remaining(state) == 0:
        assert problem.evaluate(sequence.plan(state)).values == pytest.approx(tuple(total))


@pytest.mark.parametrize("seed", range(9))
def test_the_exact_methods_against_all_plans(seed: int) -> None:
    """The decomposition has the front of the direct plans."""
    document = drawn(seed, count=3)
    problem = RollingUpdate.from_document(document)
    truth = best(v[:2] + v[3:] for v in Deployment(document).attainable(direct=True))
    if problem.infeasibility():
        assert truth == []
        return
    goals = problem.select(GOALS)
    front = decomposition(Task(problem, goals, Budget(), 0), max_hops=0)
    found = [p.values for p in front.points if problem.evaluate(p.plan).feasible]
    assert [v for v in truth if v not in found] == []
    for values in truth:
        assert any((np.array(b) <= np.array(values) + 1e-9).all() for b in front.bounds)
        assert (bound_vectors(problem, goals) <= np.array(values)).all(axis=1).any()


def fleet(room: bool = False, replicas: int = 2, spare: int = 0, **more: Any) -> RollingUpdate:
    """Return four nodes of 4 cores with three workloads of two replicas of a core, spread."""
    nodes = [
        {"name": f"n{k}", "cluster": "c", "cpu_millicores": 4000, "memory_mib": 100, "price": 1.0}
        | ({"candidate": True} if k >= 4 else {})
        for k in range(4 + spare)
    ]
    services = [
        {"name": f"w{i}-{j}", "node": f"n{(i + j) % 4}", "cpu_millicores": 1000, "memory_mib": 1}
        | {"groups": [f"w{i}"]}
        for i in range(3)
        for j in range(replicas)
    ]
    needs = {f"w{i}": 1 for i in range(3)}
    return RollingUpdate.from_document(
        {
            "problem": "rolling-update",
            "name": "fleet",
            "nodes": nodes,
            "applications": [{"name": "a", "microservices": services}],
            "survival": {"needs": needs, "room": room},
            **more,
        }
    )


def test_the_price_of_surviving_is_on_the_front() -> None:
    """Six pods of a core fit on two nodes; that all survive there takes a start more."""
    front = api.solve(fleet(), "repack", seed=1)
    cheapest = min(p.values for p in front.points)
    assert cheapest == (2.0, 2.0, 0.0, 0.0)
    crowded = fleet(nodes=[n.model_dump() | {"cpu_millicores": 6000} for n in fleet().nodes])
    front = api.solve(crowded, "repack", seed=1)
    values = {(p.values[0], p.values[3]) for p in front.points}
    assert {(1.0, 3.0), (2.0, 0.0)} <= values
    told = {p.values[0]: crowded.describe(p.plan) for p in front.points}
    text = "survives the loss of any one node"
    assert "w0 keeps 0 of 1" in told[1.0][text]
    assert told[2.0][text] == "yes"


def test_room_without_any_one_node() -> None:
    """Two nodes of 4 cores run six cores, but none of them can be lost."""
    front = api.solve(fleet(room=True), "repack", seed=1)
    assert min(p.values for p in front.points)[0] == 3.0
    problem = fleet(room=True)
    steps = [("w0-0", "n1"), ("w0-1", "n2"), ("w1-1", "n1"), ("w2-1", "n2")]
    plan = {"steps": [{"application": "a", "microservice": m, "to": n} for m, n in steps]}
    verdict = problem.evaluate(plan)
    message = "without node 'n1' the others in use have 4000 cpu; what runs needs 6000"
    assert [v.message for v in verdict.violations if v.kind == "survival"] == [message]
    assert "and 1 more find no room" in problem.describe(plan)["survives the loss of any one node"]


@pytest.mark.parametrize("method", ["karpenter", "descheduler"])
def test_baselines_say_what_their_plan_breaks(method: str) -> None:
    """They know no wishes: what is lost is counted, and the room that a loss lacks is named."""
    front = api.solve(fleet(), method, seed=1)
    assert front.objectives[3].name == "lost_at_worst"
    document = fleet(room=True, replicas=3).to_document()
    for service in document["applications"][0]["microservices"]:
        service["node"] = f"n{int(service['name'][-1]) % 3}"  # nine cores on three nodes
    problem = RollingUpdate.from_document(document)
    front = api.solve(problem, method, seed=1)
    assert front.points == () and front.rejected is not None
    assert [v.kind for v in front.rejected.violations] == ["survival"]
    assert front.reasons == (
        "without node 'n0' the others in use have 8000 cpu; what runs needs 9000",
    )


def test_room_on_nodes_that_nothing_tolerates_is_no_room() -> None:
    """The plan that breaks least is kept, with the reasons; what waits is started where it fits."""
    document = fleet(room=True).to_document()
    services = document["applications"][0]["microservices"]
    for k, service in enumerate(services):
        service |= {"node": f"n{k % 2}", "allowed": "open"}
    waiting = {"name": "late", "node": None, "cpu_millicores": 500, "memory_mib": 1}
    services.append(waiting | {"allowed": "open"})
    document["node_sets"] = {"open": ["n0", "n1"]}
    problem = RollingUpdate.from_document(document)
    for method in ("repack", "decomposition"):
        front = api.solve(problem, method, seed=1)
        assert front.points == () and front.rejected is not None, method
        assert [s["microservice"] for s in front.rejected.plan["steps"]] == ["late"], method
        [reason] = front.reasons
        assert reason == "without node 'n0' the others in use have 4000 cpu; what runs needs 6500"


def test_room_may_have_to_be_bought() -> None:
    """Sixteen cores run on four nodes: a fifth is needed, and something has to move there."""

    def full(spare: int) -> RollingUpdate:
        return fleet(room=True, replicas=5, spare=spare)

    assert "without node 'n0' all others have 12000 cpu" in "; ".join(full(0).infeasibility())
    front = api.solve(full(1), "repack", seed=1)
    best = min(front.points, key=lambda p: p.values)
    assert full(1).evaluate(best.plan).feasible
    assert best.values[0] == 5.0
    assert front.bounds[0][0] == 5.0


def test_what_cannot_move_may_lose_copies() -> None:
    """Two pinned replicas on one node are lost with it; the others are still kept apart."""
    base = fleet()
    services = [m.model_dump() for m in base.applications[0].microservices]
    for m in services:
        if m["groups"] == ("w0",):
            m |= {"node": "n0", "pinned": True}
    problem = fleet(applications=[{"name": "a", "microservices": services}])
    front = api.solve(problem, "decomposition", seed=1)
    assert {p.values[3] for p in front.points} == {1.0}
    assert all(bound[3] == 1.0 for bound in front.bounds)


@pytest.mark.parametrize(
    ("survival", "message"),
    [
        ({"needs": {"w9": 1}}, "unknown group 'w9'"),
        ({"needs": {"w0": 3}}, "3 copies are needed of a group of 2"),
        ({"needs": {"w0": -1}}, "survival.needs.w0"),
        ({"rooms": True}, "survival.rooms"),
    ],
)
def test_what_cannot_be_asked_is_named(survival: Json, message: str) -> None:
    with pytest.raises(DocumentError, match="survival") as caught:
        fleet(survival=survival)
    assert message in str(caught.value)
