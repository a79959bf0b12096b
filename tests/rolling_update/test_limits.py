"""Limits of nodes: referee, encoder, model and methods against plain enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import tries

from placeopt import api
from placeopt.core.errors import DocumentError
from placeopt.core.fronts.dominance import minimal
from placeopt.rolling_update.encoder import RollingUpdateEncoder
from placeopt.rolling_update.order import plan_moves
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.schemes import karpenter_plan

Json = dict[str, Any]


def drawn(seed: int) -> Json:
    """Return four microservices on two nodes, three more to buy, and one or two limits."""
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "name": f"n{k}",
            "cluster": "c",
            "cpu_millicores": int(rng.choice([4, 6, 8])),
            "memory_mib": 100,
            "price": float(rng.choice([0.0, 1.0, 2.0, 3.0]) if k > 1 else rng.choice([3.0, 5.0])),
            "candidate": k > 1,
        }
        for k in range(5)
    ]
    nodes[0]["cpu_millicores"] = nodes[1]["cpu_millicores"] = 9
    services = [
        {
            "name": f"m{k}",
            "node": f"n{int(rng.integers(2))}",
            "cpu_millicores": int(rng.integers(1, 4)),
            "memory_mib": 1,
        }
        for k in range(4)
    ]
    limits: list[Json] = []
    for k in range(int(rng.integers(1, 3))):
        members = [f"n{n}" for n in range(5) if rng.random() < 0.6] or ["n2"]
        limit: Json = {"name": f"l{k}", "amounts": {n: int(rng.integers(0, 5)) for n in members}}
        if rng.random() < 0.6:
            limit["most"] = int(rng.integers(0, 8))
        else:
            limit["share"] = float(rng.choice([0.25, 0.34, 0.5, 0.67, 1.0]))
        limits.append(limit)
    return {
        "problem": "rolling-update",
        "name": "limits",
        "nodes": nodes,
        "applications": [{"name": "a", "microservices": services}],
        "limits": limits,
    }


def instance(document: Json) -> RollingUpdate:
    found = RollingUpdate.from_document(document)
    assert isinstance(found, RollingUpdate)
    return found


def oracle(document: Json, end: set[str], visited: set[str]) -> bool:
    """Return whether the limits hold, read off the document."""
    now = {m["node"] for a in document["applications"] for m in a["microservices"]}
    for limit in document["limits"]:
        members = {n for n, amount in limit["amounts"].items() if amount}
        if "most" in limit:
            used = (end | visited) & members
            if used - now and sum(limit["amounts"][n] for n in used) > limit["most"]:
                return False
        if "share" in limit and (end & members) - now:
            legal = max(1, int(limit["share"] * len(end) + 1e-9))
            if len(end & members) > legal:
                return False
    return True


def plan_to(document: Json, target: tuple[str, ...]) -> Json:
    homes = [m["node"] for m in document["applications"][0]["microservices"]]
    moves = [(f"m{k}", t) for k, (h, t) in enumerate(zip(homes, target, strict=True)) if h != t]
    return {"steps": [{"application": "a", "microservice": m, "to": t} for m, t in moves]}


#: Draws whose cheapest deployment opens two nodes in one exchange, which `repack` does not try.
NEED_TWO = (0, 14)
TARGETS = list(product([f"n{k}" for k in range(5)], repeat=4))


@pytest.mark.parametrize("seed", range(30))
def test_referee_and_encoder_agree_with_enumeration(seed: int) -> None:
    """On all 625 deployments: of the limits the referee breaks one where enumeration does."""
    document = drawn(seed)
    problem = instance(document)
    encoder = RollingUpdateEncoder(problem, problem.objectives)
    free = instance({**document, "limits": []})
    plain = RollingUpdateEncoder(free, free.objectives)
    number = {f"n{k}": k for k in range(5)}
    for target in TARGETS[:: 7 if seed else 1]:
        plan = plan_to(document, target)
        broken = [v for v in problem.evaluate(plan).violations if v.kind == "limit"]
        used = set(target)
        assert (not broken) == oracle(document, used, {s["to"] for s in plan["steps"]}), target
        x = encoder.encode_target(np.array([number[t] for t in target]))
        if set(encoder.targets(x[None])[0].tolist()) != {number[t] for t in used}:
            continue  # a node too small for a microservice is no gene of it
        more = encoder.evaluate(x[None])[1][0, 0] - plain.evaluate(x[None])[1][0, 0]
        assert (more > 1e-9) == bool(broken), target


def best(document: Json) -> list[tuple[float, ...]]:
    """Return the front of all deployments that keep the limits; there is room for every order."""
    problem = instance(document)
    verdicts = [problem.evaluate(plan_to(document, target)) for target in TARGETS]
    values = [v.values[:2] for v in verdicts if v.feasible]
    return sorted({tuple(v) for v in minimal(np.array(values)).tolist()})


@pytest.mark.parametrize("seed", range(tries(12, 30)))
def test_proven_fronts_are_those_of_enumeration(seed: int) -> None:
    document = drawn(seed)
    front = api.solve(instance(document), "decomposition", seed=1, seconds=30)
    assert front.complete
    assert sorted(p.values[:2] for p in front.points) == best(document)


@pytest.mark.parametrize("seed", range(tries(12, 30)))
def test_methods_keep_limits(seed: int) -> None:
    """What repack and Karpenter's consolidation find breaks no limit."""
    document = drawn(seed)
    problem = instance(document)
    front = api.solve(problem, "repack", seed=1)
    assert all(problem.evaluate(p.plan).feasible for p in front.points)
    cheapest = min(p.values[0] for p in front.points)
    assert cheapest == best(document)[0][0] or seed in NEED_TWO
    verdict = problem.evaluate(karpenter_plan(problem))
    sums = {limit["name"] for limit in document["limits"] if "most" in limit}
    assert not [v for v in verdict.violations if any(repr(n) in v.message for n in sums)]


def test_nodes_on_the_way_are_bought() -> None:
    """A hop to a node that is to be bought counts towards a sum, not towards a share."""
    document = drawn(0)
    document["limits"] = [{"name": "pool", "amounts": {"n2": 4, "n3": 4}, "most": 4}]
    problem = instance(document)
    hop = [("m0", "n2"), ("m0", "n3")]
    steps = [{"application": "a", "microservice": m, "to": to} for m, to in hop]
    text = "limit 'pool': 8 is used, at most 4 may be"
    assert text in [v.message for v in problem.evaluate({"steps": steps}).violations]
    assert problem.evaluate({"steps": steps[:1]}).feasible
    document["limits"] = [{"name": "pool", "amounts": {"n2": 1, "n3": 1}, "share": 0.4}]
    assert instance(document).evaluate({"steps": steps}).feasible


@pytest.mark.parametrize(("most", "bought"), [(0, -1), (1, -1), (1, 2)])
def test_hops_keep_sums(most: int, bought: int) -> None:
    """Two change places by the third node, unless a limit forbids it or it had to be bought."""
    sizes = {"cluster": "c", "cpu_millicores": 4, "memory_mib": 9, "price": 1.0}
    asked = {"cpu_millicores": 3, "memory_mib": 1}
    document = {
        **drawn(0),
        "nodes": [{"name": f"n{k}", **sizes, "candidate": k == bought} for k in range(3)],
        "applications": [
            {
                "name": "a",
                "microservices": [{"name": f"m{k}", "node": f"n{k}", **asked} for k in range(2)],
            }
        ],
        "limits": [{"name": "pool", "amounts": {"n2": 1}, "most": most}],
    }
    found = plan_moves(instance(document), np.array([1, 0]))
    assert (found.hops, found.stops) == ((1, 0) if most and bought < 0 else (0, 1))
    assert found.complete


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"name": "x", "amounts": {"n9": 1}, "most": 1}, "unknown node 'n9'"),
        ({"name": "x", "amounts": {"n2": 1}}, "a limit without a number"),
        ({"name": "x", "amounts": {"n2": -1}, "most": 1}, "amounts"),
        ({"name": "x", "amounts": {"n2": 1}, "share": 0.0}, "share"),
        ({"name": "x", "amounts": {"n2": 1}, "share": 1.5}, "share"),
        ({"name": "x", "amounts": {"n2": 1}, "most": 1.5}, "most"),
    ],
)
def test_limits_that_are_wrong(limit: Json, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        instance({**drawn(0), "limits": [limit]})


def test_names_are_unique() -> None:
    limit = {"name": "x", "amounts": {"n2": 1}, "most": 1}
    with pytest.raises(DocumentError, match="limit"):
        instance({**drawn(0), "limits": [limit, limit]})
