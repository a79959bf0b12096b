"""Edge-cloud plans on a map of the layers, and how the use of the layers follows the weight of the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.plot.figures import new_figure
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.edge_cloud.instance import EdgeCloud

#: Pairs of nodes of which the links are drawn at most, those of most flows; applications named when hovering.
_MOST_LINKS, _MOST_NAMES = 400, 12


def positions(problem: EdgeCloud) -> np.ndarray:
    """Return the place of every node on the map, shape (nodes, 2): a row for each layer, the first at the bottom."""
    import networkx as nx

    graph = nx.Graph()
    for k, node in enumerate(problem.nodes):
        graph.add_node(k, row=problem.layers.index(node.layer))
    places = nx.multipartite_layout(graph, subset_key="row", align="horizontal")
    found = np.array([places[k] for k in range(len(problem.nodes))])
    for row in range(len(problem.layers)):  # each layer as wide as the map
        mine = [
            k for k, node in enumerate(problem.nodes) if problem.layers.index(node.layer) == row
        ]
        found[mine, 0] = (np.arange(len(mine)) + 0.5) / len(mine)
        found[mine, 1] = row
    return found


def links(problem: EdgeCloud, hosts: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the pairs of different nodes with flows between them and how many, most first."""
    table = problem.arrays
    ends = np.repeat(np.arange(len(hosts)), np.diff(table.flow_first))
    pairs = zip(hosts[ends].tolist(), hosts[table.flow_other].tolist(), strict=True)
    count = Counter((v, w) for v, w in pairs if 0 <= v < w)
    return [(v, w, times) for (v, w), times in count.most_common(_MOST_LINKS)]


def loads(problem: EdgeCloud, hosts: np.ndarray) -> np.ndarray:
    """Return the use of every node as shares of its capacity, shape (nodes, 2): cpu, memory."""
    table = problem.arrays
    load = np.zeros_like(table.capacity)
    np.add.at(load, hosts[hosts >= 0], table.demand[hosts >= 0])
    return load / np.maximum(table.capacity, 1)


def _sizes(problem: EdgeCloud, hosts: np.ndarray) -> np.ndarray:
    """Return the area of every node's mark: by the microservices it hosts."""
    hosted = np.bincount(hosts[hosts >= 0], minlength=len(problem.nodes))
    return 12 + 300 * hosted / max(1, hosted.max())


def figure(problem: EdgeCloud, plan: Mapping[str, Any], title: str) -> Figure:
    """Return the map as a matplotlib figure: marks as large as what the nodes host, coloured by the cpu in use."""
    hosts, places = problem.hosts(plan), positions(problem)
    drawing = new_figure(7.2, 1.2 + 1.2 * len(problem.layers))
    axes = drawing.add_subplot()
    flows = links(problem, hosts)
    most = max((times for *_, times in flows), default=1)
    for v, w, times in flows:
        axes.plot(
            *places[[v, w]].T,
            color="#999999",
            linewidth=0.3 + 1.2 * times / most,
            alpha=0.5,
            zorder=1,
        )
    use = loads(problem, hosts)[:, 0]
    marks = axes.scatter(
        places[:, 0],
        places[:, 1],
        s=_sizes(problem, hosts),
        c=use,
        cmap="viridis",
        vmin=0,
        vmax=1,
        zorder=2,
    )
    marks.set(edgecolors="black", linewidths=0.4)
    drawing.colorbar(marks, ax=axes, label="cpu in use", pad=0.01)
    axes.set_yticks(range(len(problem.layers)), problem.layers)
    axes.set_xticks([])
    axes.set_ylim(-0.5, len(problem.layers) - 0.5)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, fontsize=8, loc="left")
    return drawing


def interactive(problem: EdgeCloud, plan: Mapping[str, Any], title: str) -> Any:
    """Return the map as a plotly figure; hovering over a node says what it hosts."""
    import plotly.graph_objects as go

    hosts, places, use = (
        problem.hosts(plan),
        positions(problem),
        loads(problem, problem.hosts(plan)),
    )
    drawing = go.Figure()
    x: list[float | None] = []
    y: list[float | None] = []
    for v, w, _ in links(problem, hosts):
        x += [places[v, 0], places[w, 0], None]
        y += [places[v, 1], places[w, 1], None]
    drawing.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": "#BBBBBB", "width": 0.7},
        hoverinfo="skip",
        name="flows",
    )
    sizes = np.sqrt(_sizes(problem, hosts)) * 1.4
    colours = {
        "color": use[:, 0],
        "cmin": 0,
        "cmax": 1,
        "colorscale": "Viridis",
        "colorbar": {"title": "cpu in use"},
    }
    drawing.add_scatter(
        x=places[:, 0],
        y=places[:, 1],
        mode="markers",
        name="nodes",
        hoverinfo="text",
        hovertext=_hover(problem, hosts, use),
        marker={"size": sizes, "line": {"width": 0.5}, **colours},
    )
    drawing.update_layout(
        title=title,
        showlegend=False,
        template="plotly_white",
        xaxis={"visible": False},
        yaxis={
            "tickvals": list(range(len(problem.layers))),
            "ticktext": list(problem.layers),
            "showgrid": False,
            "zeroline": False,
        },
    )
    return drawing


def _hover(problem: EdgeCloud, hosts: np.ndarray, use: np.ndarray) -> list[str]:
    owner = np.repeat(np.arange(len(problem.applications)), np.diff(problem.arrays.first))
    texts = []
    for v, node in enumerate(problem.nodes):
        count = Counter(problem.applications[a].name for a in owner[hosts == v].tolist())
        named = [f"{escape(name)} ({times})" for name, times in count.most_common(_MOST_NAMES)]
        more = (
            f"<br>and {len(count) - _MOST_NAMES} more applications"
            if len(count) > _MOST_NAMES
            else ""
        )
        head = f"<b>{escape(node.name)}</b>, {escape(node.layer)}<br>cpu {use[v, 0]:.0%}, memory {use[v, 1]:.0%}"
        texts.append(head + (f"<br>{', '.join(named)}{more}" if named else "<br>hosts nothing"))
    return texts


# -- against the weight of the cost: the paper's Figs 3 to 5 -----------------------------------------------------------


def use_of_layers(problem: EdgeCloud, plan: Mapping[str, Any]) -> dict[str, float]:
    """Return the microservices on every layer, the share of its cpu in use, and the operating and network parts of the cost."""
    table, hosts = problem.arrays, problem.hosts(plan)
    placed = hosts >= 0
    count = Counter(problem.nodes[v].layer for v in hosts[placed].tolist())
    found = {layer: float(count[layer]) for layer in problem.layers}
    of_layer = np.array([node.layer for node in problem.nodes])
    for layer in problem.layers:
        load, capacity = (
            table.demand[placed][of_layer[hosts[placed]] == layer, 0].sum(),
            table.capacity[of_layer == layer, 0].sum(),
        )
        found[f"{layer} cpu"] = float(load / max(1, capacity))
    found["operating cost"] = float(table.operating[hosts[placed]].sum())
    found["network cost"] = float((table.network[hosts[placed]] * table.data[placed]).sum())
    return found


def sweep_figure(
    problem: EdgeCloud, plans: Sequence[tuple[float, Mapping[str, Any]]], title: str
) -> Figure:
    """Return the front, the use of the layers and the parts of the cost of plans, each with the weight of the cost it was made for."""
    rows = [
        (weight, problem.evaluate(plan).values, use_of_layers(problem, plan))
        for weight, plan in sorted(plans, key=lambda p: p[0])
    ]
    weights = [row[0] for row in rows]
    drawing = new_figure(9.0, 5.6)
    (front, layers), (parts, shares) = drawing.subplots(2, 2)
    front.plot(
        [values[0] for _, values, _ in rows],
        [values[1] for _, values, _ in rows],
        "o-",
        color=PALETTE[0],
        markersize=3,
    )
    front.set(xlabel="cost (units)", ylabel="latency (ms)")
    _lines(
        layers,
        weights,
        {layer: [use[layer] for *_, use in rows] for layer in problem.layers},
        "microservices",
    )
    costs = {part: [use[part] for *_, use in rows] for part in ("operating cost", "network cost")}
    _lines(parts, weights, costs, "cost (units)")
    _lines(
        shares,
        weights,
        {layer: [use[f"{layer} cpu"] for *_, use in rows] for layer in problem.layers},
        "share of cpu in use",
    )
    drawing.suptitle(title, fontsize=9, x=0.01, ha="left")
    return drawing


def _lines(
    axes: Any, weights: Iterable[float], lines: Mapping[str, Sequence[float]], label: str
) -> None:
    for (name, values), colour in zip(lines.items(), PALETTE, strict=False):
        axes.plot(weights, values, "o-", color=colour, markersize=3, label=name)
    axes.set(xlabel="weight of the cost, w", ylabel=label)
    axes.legend(frameon=False, fontsize=7)
