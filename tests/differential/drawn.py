"""Tiny instances, drawn at random: documents of each problem, some without any plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Document = dict[str, Any]


def _pick(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def temporal(rng: np.random.Generator, size: int) -> Document:
    """Two offers, one to three replicas and `size` more."""
    horizon = _pick(rng, 2, 3)
    offers = []
    for place in ("rome", "paris")[: _pick(rng, 1, 2, 2)]:
        prices = {
            "on_demand_usd_per_hour": _pick(rng, 0.5, 1, 2),
            "reserved_usd_per_hour": _pick(rng, None, 0.3),
            "spot_usd_per_hour": _pick(rng, None, 0.1, 0.2),
        }
        offers.append(
            {
                "location": place,
                "size": "m",
                "cpu_cores": _pick(rng, 2, 3),
                "memory_gib": _pick(rng, 4, 6.5),
                **{key: price for key, price in prices.items() if price is not None},
                "max_instances": _pick(rng, None, None, 1, 2),
                "spot_interruption": _pick(rng, 0.1, 0.25),
            }
        )
    replicas = 2 + size
    first = int(rng.integers(1, replicas + 1))
    requests = [
        {
            "name": f"r{k}",
            "cpu_cores": _pick(rng, 1, 1.5, 2),
            "memory_gib": _pick(rng, 1, 3),
            "duration_slots": int(rng.integers(1, horizon + 1)),
            "replicas": count,
            "origin": "users",
        }
        for k, count in enumerate((first, replicas - first))
        if count
    ]
    if rng.random() < 0.1:
        requests[0]["cpu_cores"] = 9
    return {
        "problem": "temporal",
        "name": "drawn",
        "horizon_slots": horizon,
        "slot_hours": _pick(rng, 1, 0.5),
        "latency_ms": {"users": {"rome": _pick(rng, 5, 7.5), "paris": 20}},
        "offers": offers,
        "requests": requests,
    }


def edge_cloud(rng: np.random.Generator, size: int) -> Document:
    """Three nodes, three microservices and `size` more in two applications."""
    nodes = [
        {
            "name": f"n{k}",
            "layer": layer,
            "cpu_cores": _pick(rng, 1, 2, 3) + 2 * k,
            "memory_gib": _pick(rng, 2, 4),
            "operating_cost": _pick(rng, 1, 2.5, 8),
            "network_cost": _pick(rng, 0.1, 0.5),
        }
        for k, layer in enumerate(("near-edge", "far-edge", "cloud"))
    ]
    delays = {"n0": {"n1": _pick(rng, 2, 5.5), "n2": 30}, "n1": {"n2": _pick(rng, 10, 25)}}
    if rng.random() < 0.2:
        del delays["n0"]["n2"]
    applications = []
    for a, count in enumerate((2, 1 + size)):
        services = [
            {
                "name": f"m{i}",
                "cpu_cores": _pick(rng, 0.5, 1, 1.5),
                "memory_gib": _pick(rng, 0.5, 1),
                "data": _pick(rng, 0, 1, 2.5),
            }
            for i in range(count)
        ]
        flows = [
            {"from": f"m{i}", "to": f"m{i + 1}", "max_delay_ms": _pick(rng, 0, 6, 20, None)}
            for i in range(count - 1)
        ]
        row = {"name": f"a{a}", "source": _pick(rng, "n0", "n1")}
        applications.append({**row, "microservices": services, "flows": flows})
    if rng.random() < 0.1:
        applications[0]["microservices"][0]["cpu_cores"] = 600
    return {
        "problem": "edge-cloud",
        "name": "drawn",
        "nodes": nodes,
        "delay_ms": delays,
        "applications": applications,
    }


def rolling_update(rng: np.random.Generator, size: int) -> Document:
    """Three nodes in two clusters, two microservices and `size` more; overloads happen."""
    nodes = [
        {
            "name": f"n{k}",
            "cluster": _pick(rng, "a", "b"),
            "cpu_millicores": int(rng.integers(3, 7)),
            "memory_mib": 10,
            "price": _pick(rng, 0, 1, 2.5),
            "drain": bool(rng.random() < 0.1),
        }
        for k in range(3)
    ]
    applications = []
    for a, count in enumerate((2, size)):
        services = []
        for i in range(count):
            service = {
                "name": f"m{i}",
                "node": f"n{rng.integers(3)}",
                "cpu_millicores": int(rng.integers(1, 4)),
                "memory_mib": int(rng.integers(0, 5)),
                "pinned": bool(rng.random() < 0.15),
            }
            if rng.random() < 0.4 and a == 0:
                service["new_cpu_millicores"] = int(rng.integers(1, 4))
            services.append(service)
        flow = {"from": "m0", "to": "m1", "max_latency_ms": _pick(rng, 0, 5, 20)}
        applications.append(
            {
                "name": f"a{a}",
                "reschedulable": a == 0 or bool(rng.random() < 0.7),
                "microservices": services,
                "flows": [flow] if count > 1 and rng.random() < 0.5 else [],
            }
        )
    return {
        "problem": "rolling-update",
        "name": "drawn",
        "semantics": _pick(rng, "stay", "strict"),
        "nodes": nodes,
        "cluster_latency_ms": {"a": {"b": _pick(rng, 5, 20)}},
        "applications": [a for a in applications if a["microservices"]],
    }


def scaled(rng: np.random.Generator, size: int) -> Document:
    """A rolling update in which replicas are added and removed on the way, of one name or two."""
    document = rolling_update(rng, size)
    first = document["applications"][0]
    first["flows"] = [f for f in first["flows"] if rng.random() < 0.7]
    name = {"replica_of": "m"} if rng.random() < 0.7 else {}
    for k, service in enumerate(first["microservices"]):
        service |= name
        if k == 0 or rng.random() < 0.3:
            service.pop("new_cpu_millicores", None)
            service["removed"] = True
    for k in range(int(rng.integers(1, 3))):
        size_of = {"cpu_millicores": int(rng.integers(1, 4)), "memory_mib": 1}
        first["microservices"].append({"name": f"new{k}", "node": None, **size_of, **name})
    return document


def ruled(rng: np.random.Generator, size: int) -> Document:
    """A rolling update with all that there is: every second one of replicas that come and go.

    Node selectors, host ports, what waits, what comes with nodes, closed nodes and nodes to buy,
    rules of every kind, limits of nodes, and what the loss of a node is to leave.
    """
    document = (scaled if rng.random() < 0.5 else rolling_update)(rng, size)
    names = [node["name"] for node in document["nodes"]]
    services = [m for a in document["applications"] for m in a["microservices"]]
    groups = ["g", "h"][: _pick(rng, 1, 2)]
    for node in document["nodes"]:
        node["domains"] = {"zone": _pick(rng, "z1", "z2")} if rng.random() < 0.85 else {}
        node["resources"] = {"pods": _pick(rng, 2, 3, 9), "port": _pick(rng, 1, 1, 2)}
        if rng.random() < 0.2:
            node["residents"] = {_pick(rng, *groups): _pick(rng, 1, 2)}
        if rng.random() < 0.1:
            node["closed"] = True
        if node["name"] not in {m["node"] for m in services} and rng.random() < 0.6:
            node["candidate"] = True
    document["node_sets"] = {
        "some": [name for name in names if rng.random() < 0.7],
        "one": [_pick(rng, *names)],
    }
    for service in services:
        service["groups"] = [group for group in groups if rng.random() < 0.6]
        service["resources"] = {"pods": 1} | ({"port": 1} if rng.random() < 0.25 else {})
        if rng.random() < 0.3:
            service["allowed"] = _pick(rng, "some", "some", "one")
    used = {g for m in services for g in m["groups"]}
    used |= {g for node in document["nodes"] for g in node.get("residents", {})}
    document["rules"] = [_rule(rng, sorted(used)) for _ in range(_pick(rng, 1, 1, 2, 3)) if used]
    if rng.random() < 0.2:
        few = {name: _pick(rng, 0, 1, 2) for name in names}
        document["limits"] = [{"name": "l", "amounts": few, "most": _pick(rng, 0, 1, 2, 3)}]
        if rng.random() < 0.4:
            document["limits"][0] |= {"share": 0.5}
    if rng.random() < 0.2:
        left = [g for m in services if not m.get("removed") for g in m["groups"]]
        needs = {g: int(rng.integers(0, left.count(g) + 1)) for g in sorted(set(left))}
        document["survival"] = {"needs": needs, "room": bool(rng.random() < 0.2)}
    return document


def _rule(rng: np.random.Generator, groups: list[str]) -> Document:
    """One rule of any kind."""
    kind = _pick(rng, "apart", "together", "spread", "spread")
    rule = {
        "kind": kind,
        "group": _pick(rng, *groups),
        "per": _pick(rng, "node", "zone", "cluster"),
    }
    if rng.random() < 0.3:
        rule["toward"] = _pick(rng, *groups)
    if rng.random() < 0.25:
        rule["mend"] = True
    if rng.random() < 0.1:
        rule["soft"] = True
    if kind == "apart" and rule.get("toward") in (None, rule["group"]):
        rule["max_copies"] = _pick(rng, 1, 1, 2)
    if kind == "spread":
        rule["max_skew"] = _pick(rng, 1, 1, 2)
        if rule["per"] == "node" and rng.random() < 0.5:
            return rule | {"shrinks": True}
        rule |= {"min_domains": _pick(rng, 1, 1, 2, 3)}
        if rng.random() < 0.3:
            rule["among"] = "some"
    return rule


def multi_cluster(rng: np.random.Generator, size: int) -> Document:
    """Two clusters or three, two requests and `size` more; refusing all is always a plan."""
    names = ["c0", "c1", "c2"][: _pick(rng, 2, 3)]
    clusters = [
        {
            "name": name,
            "cpu_cores": _pick(rng, 1, 2, 3),
            "memory_gib": _pick(rng, 2, 4),
            "cost": _pick(rng, 1, 4, 16),
            "allocated_cpu_cores": _pick(rng, 0, 0.2),
        }
        for name in names
    ]
    requests = [
        {
            "deployment": "d",
            "replicas": _pick(rng, 1, 2),
            "cpu_cores": _pick(rng, 0.4, 1),
            "memory_gib": _pick(rng, 0.5, 1),
            "arrival": float(k),
            "duration": _pick(rng, 0.5, 1, 2.5),
            "latency_increase": _pick(rng, 0, 0.1, 0.25),
        }
        for k in range(2 + size)
    ]
    return {
        "problem": "multi-cluster",
        "name": "drawn",
        "semantics": "fixed",
        "clusters": clusters,
        "latency_ms": {
            a: {b: _pick(rng, 10, 50, 200) for b in names[k + 1 :]}
            for k, a in enumerate(names[:-1])
        },
        "requests": requests,
    }


def rescheduling(rng: np.random.Generator, size: int) -> Document:
    """Three nodes, two services and `size` more; moving nothing is always a plan."""
    names = [f"s{k}" for k in range(2 + size)]
    nodes = [
        {
            "name": f"n{k}",
            "kind": kind,
            "cpu_cores": _pick(rng, 3, 4, 8) if kind == "edge" else 8,
            "memory_gib": 8,
            "user_latency_ms": ms,
        }
        for k, (kind, ms) in enumerate((("edge", 5), ("edge", 7.5), ("cloud", 50)))
    ]
    services = []
    for k, name in enumerate(names):
        later = names[k + 1 :]
        calls = [later] if rng.random() < 0.5 else [[other] for other in later]
        services.append(
            {
                "name": name,
                "cpu_cores": _pick(rng, 0.5, 1),
                "memory_gib": 0.5,
                "execution_ms": {"edge": _pick(rng, 4, 22.5), "cloud": _pick(rng, 3, 15)},
                "replicas": [f"n{rng.integers(3)}" for _ in range(_pick(rng, 1, 1, 2))],
                "calls": [group for group in calls if group],
            }
        )
    for node in nodes:  # nothing is overloaded at the start
        load = sum(s["cpu_cores"] * s["replicas"].count(node["name"]) for s in services)
        node["cpu_cores"] = max(node["cpu_cores"], load)
    return {
        "problem": "rescheduling",
        "name": "drawn",
        "nodes": nodes,
        "latency_ms": {
            "n0": {"n1": _pick(rng, 1, 10), "n2": 40},
            "n1": {"n2": _pick(rng, 20, 50)},
        },
        "services": services,
        "gateway": "s0",
    }


DRAW: dict[str, Callable[[np.random.Generator, int], Document]] = {
    "temporal": temporal,
    "edge-cloud": edge_cloud,
    "rolling-update": rolling_update,
    "multi-cluster": multi_cluster,
    "rescheduling": rescheduling,
}


def draw(kind: str, seed: int, size: int = 1) -> Document:
    """Return the document of a seed; `size` 0, 1, 2 has more to decide."""
    rng = np.random.default_rng([seed, list(DRAW).index(kind)])
    return DRAW[kind](rng, size)
