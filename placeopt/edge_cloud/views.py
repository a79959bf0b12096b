"""What people see of an edge-cloud plan: nodes in layers, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.edge_cloud.arrays import node_loads
from placeopt.plot.markup import Bar, Cell, table
from placeopt.plot.scene import Panel, Scene, new_figure
from placeopt.plot.style import PALETTE, shade

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.edge_cloud.problem import EdgeCloud

# -- the drawing -----------------------------------------------------------------------------------

#: Pairs of nodes whose link is drawn, at most, and applications that a node's label names.
_MAX_LINKS, _MAX_NAMES = 400, 12


def positions(problem: EdgeCloud) -> np.ndarray:
    """Return the place of every node on the map, shape (nodes, 2).

    Each layer is a row as wide as the map; the first layer is at the bottom.
    """
    layers = np.array([node.layer for node in problem.nodes])
    places = np.empty((len(layers), 2))
    for row, layer in enumerate(problem.layers):
        own = np.flatnonzero(layers == layer)
        places[own, 0] = (np.arange(len(own)) + 0.5) / len(own)
        places[own, 1] = row
    return places


def links(problem: EdgeCloud, hosts: np.ndarray) -> list[tuple[int, int, int]]:
    """Return pairs of nodes and the number of flows between them, the largest numbers first."""
    arrays = problem.arrays
    ends = np.repeat(hosts, np.diff(arrays.flow_first))
    pairs = zip(ends.tolist(), hosts[arrays.flow_other].tolist(), strict=True)
    count = Counter((v, w) for v, w in pairs if 0 <= v < w)
    return [(v, w, flows) for (v, w), flows in count.most_common(_MAX_LINKS)]


def loads(problem: EdgeCloud, hosts: np.ndarray) -> np.ndarray:
    """Return the use of every node as shares of its capacity, shape (nodes, 2): cpu, memory."""
    return node_loads(problem.arrays, hosts) / np.maximum(problem.arrays.capacity, 1)


def _sizes(problem: EdgeCloud, hosts: np.ndarray) -> np.ndarray:
    """Return the area of every node's mark, by the number of microservices it hosts."""
    hosted = np.bincount(hosts[hosts >= 0], minlength=len(problem.nodes))
    return 12 + 300 * hosted / max(1, hosted.max())


def scene(problem: EdgeCloud, plan: Plan) -> Scene:
    """Return the map.

    The area of a mark shows the microservices that a node hosts, the colour its CPU in use.
    """
    hosts, use = problem.hosts(plan), loads(problem, problem.hosts(plan))
    rows = len(problem.layers)
    sheet = Scene(1000, 60 + 120 * rows)
    sheet.words(204, 16, "CPU in use: 0%", anchor="end")
    for k in range(10):
        sheet.box(210 + 14 * k, 6, 14, 12, fill=shade((k + 0.5) / 10))
    sheet.words(356, 16, "100%; area: microservices on the node")
    panel = Panel(sheet, 110, 30, 870, 120 * rows, (0, 1), (-0.5, rows - 0.5))
    places = [panel.at(x, y) for x, y in positions(problem).tolist()]
    drawn = links(problem, hosts)
    largest = max((flows for *_, flows in drawn), default=1)
    for v, w, flows in drawn:
        width = 0.4 + 1.6 * flows / largest
        sheet.line(places[v], places[w], stroke="soft", line_width=width, opacity=0.35)
    texts, radii = _hover(problem, hosts, use), np.sqrt(_sizes(problem, hosts)).tolist()
    for v, (x, y) in enumerate(places):
        fill = shade(float(use[v, 0]))
        sheet.disc(x, y, radii[v], fill=fill, stroke="ink", line_width=0.6, title=texts[v])
    for row, layer in enumerate(problem.layers):
        sheet.words(100, panel.at(0, row)[1] + 4, layer, anchor="end", bold=True, within=95)
    return sheet


def _hover(problem: EdgeCloud, hosts: np.ndarray, use: np.ndarray) -> list[str]:
    """Return the label of every node: its use and the applications that it hosts."""
    texts = []
    for v, node in enumerate(problem.nodes):
        hosted = problem.arrays.application_of[hosts == v].tolist()
        count = Counter(problem.applications[a].name for a in hosted)
        named = [f"{name} ({times})" for name, times in count.most_common(_MAX_NAMES)]
        lines = [
            f"{node.name}, {node.layer}",
            f"CPU {use[v, 0]:.0%}, memory {use[v, 1]:.0%}",
            ", ".join(named) or "hosts nothing",
        ]
        if len(count) > _MAX_NAMES:
            lines.append(f"and {len(count) - _MAX_NAMES} more applications")
        texts.append("\n".join(lines))
    return texts


def use_of_layers(problem: EdgeCloud, plan: Plan) -> dict[str, float]:
    """Return the use of every layer, and the parts of the cost.

    Each layer's name leads to its number of microservices, ``"<layer> cpu"`` to the share of its
    cpu in use, ``"operating cost"`` and ``"network cost"`` to the parts of the cost.
    """
    arrays, hosts = problem.arrays, problem.hosts(plan)
    placed = hosts[hosts >= 0]
    layers = np.array([node.layer for node in problem.nodes])
    load, capacity = node_loads(arrays, hosts)[:, 0], arrays.capacity[:, 0]
    results = {layer: float((layers[placed] == layer).sum()) for layer in problem.layers}
    for layer in problem.layers:
        own = layers == layer
        results[f"{layer} cpu"] = float(load[own].sum() / max(1, capacity[own].sum()))
    results["operating cost"] = float(arrays.operating[placed].sum())
    results["network cost"] = float((arrays.network[placed] * arrays.data[hosts >= 0]).sum())
    return results


def sweep_figure(problem: EdgeCloud, plans: Sequence[tuple[float, Plan]], title: str) -> Figure:
    """Return a figure of plans, each with the weight of the cost that it was made for.

    The panels are the front, the use of the layers, and the parts of the cost: Figs 3 to 5 of the
    paper.
    """
    plans = sorted(plans, key=lambda entry: entry[0])
    weights = [weight for weight, _ in plans]
    uses = [use_of_layers(problem, plan) for _, plan in plans]
    drawing = new_figure(9.0, 5.6)
    (front, layers), (parts, shares) = drawing.subplots(2, 2)
    values = np.array([problem.evaluate(plan).values for _, plan in plans])
    front.plot(*values.T, "o-", color=PALETTE[0], markersize=3)
    front.set(xlabel="cost (units)", ylabel="latency (ms)")
    panels = (
        (layers, problem.layers, "", "microservices"),
        (parts, ("operating cost", "network cost"), "", "cost (units)"),
        (shares, problem.layers, " cpu", "share of cpu in use"),
    )
    for axes, names, suffix, label in panels:
        for name, colour in zip(names, PALETTE, strict=False):
            line = [use[name + suffix] for use in uses]
            axes.plot(weights, line, "o-", color=colour, markersize=3, label=name)
        axes.set(xlabel="weight of the cost, w", ylabel=label)
        axes.legend(frameon=False, fontsize=7)
    drawing.suptitle(title, fontsize=9, x=0.01, ha="left")
    return drawing


# -- tables ----------------------------------------------------------------------------------------

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
