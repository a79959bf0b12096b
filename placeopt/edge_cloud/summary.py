"""Edge-cloud placements in tables: layer by layer and node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.report.markup import Bar, Cell, table

if TYPE_CHECKING:
    from placeopt.edge_cloud.instance import EdgeCloud

#: What the problem asks, in a sentence.
QUESTION = "Which near-edge, far-edge or cloud node hosts each microservice?"
#: What each objective measures.
MEANINGS = {
    "cost": "operating and network cost of all microservices",
    "latency_ms": "sum over the applications of the largest delay from the source",
}


def instance(problem: EdgeCloud) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    layers = [
        f"{sum(n.layer == layer for n in problem.nodes):,} {layer}" for layer in problem.layers
    ]
    flows = [f for a in problem.applications for f in a.flows]
    return [
        ("nodes", f"{len(problem.nodes):,}: {', '.join(layers)}"),
        ("applications", f"{len(problem.applications):,}"),
        ("microservices", f"{sum(len(a.microservices) for a in problem.applications):,}"),
        (
            "flows",
            f"{len(flows):,}; {sum(f.max_delay_ms is not None for f in flows):,} with a limit on their delay",
        ),
    ]


def plan(problem: EdgeCloud, plan: Mapping[str, Any]) -> str:
    """Return the tables of a plan."""
    a, hosts = problem.arrays, problem.hosts(plan)
    placed = hosts >= 0
    load = np.zeros_like(a.capacity)
    np.add.at(load, hosts[placed], a.demand[placed])
    count = np.bincount(hosts[placed], minlength=len(problem.nodes))
    cost = np.zeros(len(problem.nodes))
    np.add.at(
        cost, hosts[placed], a.operating[hosts[placed]] + a.network[hosts[placed]] * a.data[placed]
    )
    layer = np.array([problem.layers.index(n.layer) for n in problem.nodes])
    columns = ("microservices", "cost", "CPU in use", "memory in use")
    layers: list[list[Cell]] = []
    for k, name in enumerate(problem.layers):
        mine = layer == k
        share = load[mine].sum(axis=0) / np.maximum(a.capacity[mine].sum(axis=0), 1)
        nodes = f"{int((count[mine] > 0).sum()):,} of {int(mine.sum()):,}"
        layers.append(
            [
                name,
                nodes,
                int(count[mine].sum()),
                round(float(cost[mine].sum()), 6),
                Bar(float(share[0])),
                Bar(float(share[1])),
            ]
        )
    share = load / np.maximum(a.capacity, 1)
    order = sorted(np.flatnonzero(count).tolist(), key=lambda v: (layer[v], -count[v], v))
    nodes_rows: list[list[Cell]] = [
        [
            problem.nodes[v].name,
            problem.nodes[v].layer,
            int(count[v]),
            round(float(cost[v]), 6),
            Bar(float(share[v, 0])),
            Bar(float(share[v, 1])),
        ]
        for v in order
    ]
    by_layer = table("Every layer under this plan", ("layer", "nodes in use", *columns), layers)
    return by_layer + table(
        "Every node in use", ("node", "layer", *columns), nodes_rows, more="nodes in use"
    )
