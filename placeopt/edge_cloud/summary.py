"""Edge-cloud instances and plans in words: layer by layer and node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.edge_cloud.arrays import node_loads
from placeopt.plot.markup import Bar, Cell, table

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
    limited = sum(f.max_delay_ms is not None for f in flows)
    return [
        ("nodes", f"{len(problem.nodes):,}: {', '.join(layers)}"),
        ("applications", f"{len(problem.applications):,}"),
        ("microservices", f"{sum(len(a.microservices) for a in problem.applications):,}"),
        (
            "flows",
            f"{len(flows):,}; {limited:,} with a limit on their delay",
        ),
    ]


def plan(problem: EdgeCloud, plan: Plan) -> str:
    """Return tables of a plan: every layer, and every node in use."""
    arrays, hosts = problem.arrays, problem.hosts(plan)
    placed = hosts[hosts >= 0]
    load, capacity = node_loads(arrays, hosts), arrays.capacity
    count = np.bincount(placed, minlength=len(problem.nodes))
    cost = np.zeros(len(problem.nodes))
    data = arrays.data[hosts >= 0]
    np.add.at(cost, placed, arrays.operating[placed] + arrays.network[placed] * data)

    def cells(nodes: np.ndarray) -> list[Cell]:
        """Return microservices, cost, and use of cpu and memory of some nodes."""
        share = load[nodes].sum(axis=0) / np.maximum(capacity[nodes].sum(axis=0), 1)
        total = round(float(cost[nodes].sum()), 6)
        return [int(count[nodes].sum()), total, *(Bar(float(part)) for part in share)]

    layer = np.array([problem.layers.index(n.layer) for n in problem.nodes])
    layers: list[list[Cell]] = []
    for k, name in enumerate(problem.layers):
        own = np.flatnonzero(layer == k)
        layers.append([name, f"{int((count[own] > 0).sum()):,} of {len(own):,}", *cells(own)])
    order = sorted(np.flatnonzero(count).tolist(), key=lambda v: (layer[v], -count[v], v))
    nodes: list[list[Cell]] = [
        [problem.nodes[v].name, problem.nodes[v].layer, *cells(np.array([v]))] for v in order
    ]
    columns = ("microservices", "cost", "CPU in use", "memory in use")
    by_layer = table("Every layer under this plan", ("layer", "nodes in use", *columns), layers)
    return by_layer + table(
        "Every node in use", ("node", "layer", *columns), nodes, more="nodes in use"
    )
