"""Small instances on which a front once claimed too much, or none came back."""

from __future__ import annotations

from typing import Any

from placeopt import registry
from placeopt.core.problem import Problem

#: Five points are on the front; each of them alone was once called complete.
FIVE_POINTS: dict[str, Any] = {
    "problem": "temporal",
    "name": "five-points",
    "horizon_slots": 4,
    "latency_ms": {"users": {"rome": 5, "paris": 20}},
    "offers": [
        {
            "location": "rome",
            "size": "m",
            "cpu_cores": 4,
            "memory_gib": 8,
            "on_demand_usd_per_hour": 0.2,
        },
        {
            "location": "paris",
            "size": "m",
            "cpu_cores": 4,
            "memory_gib": 8,
            "spot_usd_per_hour": 0.05,
            "spot_interruption": 0.1,
        },
    ],
    "requests": [
        {
            "name": "web",
            "cpu_cores": 1,
            "memory_gib": 1,
            "duration_slots": 4,
            "replicas": 3,
            "origin": "users",
        },
        {
            "name": "job",
            "cpu_cores": 3,
            "memory_gib": 1,
            "duration_slots": 2,
            "replicas": 2,
            "origin": "users",
        },
    ],
}


def rolling_update(semantics: str, nodes: list[tuple], applications: list[list[dict]]) -> dict:
    """Return a rolling-update document of nodes (cpu, price) and microservices."""
    return {
        "problem": "rolling-update",
        "name": "small",
        "semantics": semantics,
        "nodes": [
            {"name": f"n{k}", "cluster": "a", "cpu_millicores": c, "memory_mib": 10, "price": p}
            for k, (c, p) in enumerate(nodes)
        ],
        "cluster_latency_ms": {},
        "applications": [
            {
                "name": f"a{k}",
                "microservices": [
                    {"name": f"m{i}", "memory_mib": 0, **service} for i, service in enumerate(row)
                ],
                "flows": [],
            }
            for k, row in enumerate(applications)
        ],
    }


#: Every plan needs a stop.
ONE_STOP = rolling_update(
    "strict",
    [(3, 2.5), (5, 1), (4, 2.5)],
    [
        [
            {"node": "n0", "cpu_millicores": 2, "new_cpu_millicores": 3},
            {"node": "n0", "cpu_millicores": 2, "pinned": True},
        ]
    ],
)
#: A plan with a stop has fewer starts than any without.
CHEAPER_WITH_A_STOP = rolling_update(
    "stay",
    [(4, 0), (5, 2.5)],
    [
        [
            {"node": "n0", "cpu_millicores": 1, "new_cpu_millicores": 2},
            {"node": "n1", "cpu_millicores": 1},
        ],
        [
            {"node": "n0", "cpu_millicores": 2},
            {"node": "n0", "cpu_millicores": 2, "new_cpu_millicores": 3},
        ],
    ],
)
#: A microservice of 600 cores fits no node.
TOO_LARGE: dict[str, Any] = {
    "problem": "edge-cloud",
    "name": "too-large",
    "nodes": [
        {
            "name": name,
            "layer": layer,
            "cpu_cores": cpu,
            "memory_gib": 8,
            "operating_cost": cost,
            "network_cost": 0.5,
        }
        for name, layer, cpu, cost in (("near", "near-edge", 4, 7.5), ("far", "cloud", 500, 1.25))
    ],
    "delay_ms": {"near": {"far": 30}},
    "applications": [
        {
            "name": "a",
            "source": "near",
            "microservices": [
                {"name": "m0", "cpu_cores": 600, "memory_gib": 1, "data": 1},
                {"name": "m1", "cpu_cores": 1, "memory_gib": 1, "data": 1},
            ],
            "flows": [{"from": "m0", "to": "m1", "max_delay_ms": 40}],
        }
    ],
}


def temporal_without_a_place() -> dict[str, Any]:
    """Return `FIVE_POINTS` with a request that no offer is large enough for."""
    web, job = FIVE_POINTS["requests"]
    return {**FIVE_POINTS, "requests": [{**web, "cpu_cores": 8}, job]}


def problem(document: dict[str, Any]) -> Problem:
    """Return the instance of a document."""
    return registry.from_document(document)
