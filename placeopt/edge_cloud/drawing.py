"""Edge-cloud plans on a map of the layers, and the use of the layers by the weight of the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.front import Plan
from placeopt.edge_cloud.arrays import node_loads
from placeopt.plot.figures import new_figure
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.edge_cloud.instance import EdgeCloud

#: Pairs of nodes whose link is drawn, at most, and applications that a node's label names.
_MAX_LINKS, _MAX_NAMES = 400, 12


def positions(problem: EdgeCloud) -> np.ndarray:
    """Return the place of every node on the map, shape (nodes, 2).

    Each layer is a row as wide as the map; the first layer is at the bottom.
    """
    layers = np.array([node.layer for node in problem.nodes])
    places = np.empty((len(layers), 2))
    for row, layer in enumerate(problem.layers):
        mine = np.flatnonzero(layers == layer)
        places[mine, 0] = (np.arange(len(mine)) + 0.5) / len(mine)
        places[mine, 1] = row
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


def figure(problem: EdgeCloud, plan: Plan, title: str) -> Figure:
    """Return the map as a matplotlib figure.

    The area of a mark shows the microservices that a node hosts, the colour its cpu in use.
    """
    hosts, places = problem.hosts(plan), positions(problem)
    drawing = new_figure(7.2, 1.2 + 1.2 * len(problem.layers))
    axes = drawing.add_subplot()
    drawn = links(problem, hosts)
    largest = max((flows for *_, flows in drawn), default=1)
    for v, w, flows in drawn:
        width = 0.3 + 1.2 * flows / largest
        axes.plot(*places[[v, w]].T, color="#999999", linewidth=width, alpha=0.5, zorder=1)
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


def interactive(problem: EdgeCloud, plan: Plan, title: str) -> Any:
    """Return the map as a plotly figure; hovering over a node says what it hosts."""
    import plotly.graph_objects as go

    from placeopt.plot.html import segments

    hosts, places = problem.hosts(plan), positions(problem)
    use = loads(problem, hosts)
    drawing = go.Figure()
    drawing.add_scatter(
        **segments((places[v], places[w]) for v, w, _ in links(problem, hosts)),
        mode="lines",
        line_color="#BBBBBB",
        line_width=0.7,
        hoverinfo="skip",
        name="flows",
    )
    marker = {
        "size": np.sqrt(_sizes(problem, hosts)) * 1.4,
        "line_width": 0.5,
        "color": use[:, 0],
        "cmin": 0,
        "cmax": 1,
        "colorscale": "Viridis",
        "colorbar_title_text": "cpu in use",
    }
    drawing.add_scatter(
        x=places[:, 0],
        y=places[:, 1],
        mode="markers",
        name="nodes",
        hoverinfo="text",
        hovertext=_hover(problem, hosts, use),
        marker=marker,
    )
    drawing.update_layout(title=title, showlegend=False, template="plotly_white")
    drawing.update_xaxes(visible=False)
    drawing.update_yaxes(
        tickvals=list(range(len(problem.layers))),
        ticktext=list(problem.layers),
        showgrid=False,
        zeroline=False,
    )
    return drawing


def _hover(problem: EdgeCloud, hosts: np.ndarray, use: np.ndarray) -> list[str]:
    """Return the label of every node: its use and the applications that it hosts."""
    texts = []
    for v, node in enumerate(problem.nodes):
        hosted = problem.arrays.application_of[hosts == v].tolist()
        count = Counter(problem.applications[a].name for a in hosted)
        named = [f"{escape(name)} ({times})" for name, times in count.most_common(_MAX_NAMES)]
        lines = [
            f"<b>{escape(node.name)}</b>, {escape(node.layer)}",
            f"cpu {use[v, 0]:.0%}, memory {use[v, 1]:.0%}",
            ", ".join(named) or "hosts nothing",
        ]
        if len(count) > _MAX_NAMES:
            lines.append(f"and {len(count) - _MAX_NAMES} more applications")
        texts.append("<br>".join(lines))
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
    found = {layer: float((layers[placed] == layer).sum()) for layer in problem.layers}
    for layer in problem.layers:
        mine = layers == layer
        found[f"{layer} cpu"] = float(load[mine].sum() / max(1, capacity[mine].sum()))
    found["operating cost"] = float(arrays.operating[placed].sum())
    found["network cost"] = float((arrays.network[placed] * arrays.data[hosts >= 0]).sum())
    return found


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
