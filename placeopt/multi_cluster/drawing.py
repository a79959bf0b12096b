"""Plans of the multi-cluster problem: what is in use on every cluster over time, what runs, and what was refused when."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placeopt.plot.figures import new_figure
from placeopt.plot.style import KNEE, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.multi_cluster.instance import MultiCluster

#: Clusters that are drawn at most, the busiest first.
MOST_CLUSTERS = 16
_CPU, _MEMORY = PALETTE[0], PALETTE[1]


class Course(NamedTuple):
    """What happens over time.

    Attributes
    ----------
    times : float (E,)
        Moments at which something changes; what follows holds until the next.
    shares : float (E, C, 2)
        Cpu and memory in use, of capacity.
    replicas : int (E, C)
        Running there.
    refused : list of int
        Requests.
    """

    times: np.ndarray
    shares: np.ndarray
    replicas: np.ndarray
    refused: list[int]


def course(problem: MultiCluster, plan: Mapping[str, Any]) -> Course:
    """Return what a plan does over time; in the published semantics a placement is gone at the next arrival."""
    t, decisions = problem.arrays, problem.decisions(plan)
    arrivals, departures = t.arrival * t.unit[2], t.departure * t.unit[2]
    if problem.semantics == "published":
        departures = np.append(arrivals[1:], arrivals[-1] + 1 / max(len(arrivals), 1))
    clusters = len(t.capacity)
    placed = np.array([[decision.get(c, 0) for c in range(clusters)] for decision in decisions])
    ends = np.concatenate((departures, arrivals))  # what ends at a moment ends before what begins
    order = np.argsort(ends, kind="stable")
    change = np.concatenate((-placed, placed))
    need = change[:, :, None] * np.concatenate((t.demand, t.demand))[:, None, :]
    used = t.used[None] + need[order].cumsum(axis=0)
    times, keep = ends[order], np.append(np.diff(ends[order]) > 0, True)
    refused = [
        k
        for k, decision in enumerate(decisions)
        if not decision or (problem.semantics == "fixed" and not any(decision.values()))
    ]
    first = np.concatenate(([0.0], times[keep]))
    shares = np.concatenate((t.used[None], used[keep])) / t.capacity
    return Course(
        first,
        shares,
        np.concatenate((np.zeros((1, clusters), int), change[order].cumsum(axis=0)[keep])),
        refused,
    )


def _drawn(problem: MultiCluster, told: Course) -> list[int]:
    """Return the clusters to draw, in their own order."""
    busy = told.shares.max(axis=(0, 2)) + told.replicas.max(axis=0)
    return sorted(np.argsort(-busy, kind="stable")[:MOST_CLUSTERS].tolist())


def _title(problem: MultiCluster, c: int) -> str:
    cluster = problem.clusters[c]
    kind = f" ({cluster.type})" if cluster.type else ""
    return f"{cluster.name}{kind}: {cluster.cpu_cores:g} cores, {cluster.memory_gib:g} GiB, cost {cluster.cost:g}"


def figure(problem: MultiCluster, plan: Mapping[str, Any], title: str) -> Figure:
    """Return the drawing of a plan as a matplotlib figure: a panel per cluster, ticks where requests were refused."""
    told = course(problem, plan)
    drawn = _drawn(problem, told)
    drawing = new_figure(7.2, 1.0 + 1.05 * len(drawn))
    panels = np.atleast_1d(drawing.subplots(len(drawn), 1, sharex=True))
    gone = [problem.requests[k].arrival for k in told.refused]
    for axes, c in zip(panels, drawn, strict=True):
        axes.fill_between(
            told.times,
            told.shares[:, c, 0],
            step="post",
            color=_CPU,
            alpha=0.35,
            linewidth=0,
            label="cpu",
        )
        axes.step(
            told.times,
            told.shares[:, c, 1],
            where="post",
            color=_MEMORY,
            linewidth=1.0,
            label="memory",
        )
        axes.vlines(gone, -0.08, 0.0, color=KNEE, linewidth=0.6, label="refused")
        axes.set_ylim(-0.08, 1.05)
        axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"], fontsize=6)
        axes.tick_params(axis="x", labelsize=6)
        axes.set_title(_title(problem, c), fontsize=6.5, loc="left", pad=2)
        axes.grid(True, color="#E6E6E6", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time", fontsize=7)
    handles, names = panels[0].get_legend_handles_labels()
    drawing.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    drawing.suptitle(title, fontsize=8, x=0.01, ha="left")
    return drawing


def interactive(problem: MultiCluster, plan: Mapping[str, Any], title: str) -> Any:
    """Return the drawing of a plan as a plotly figure; hovering tells what runs; `title` heads the page."""
    from plotly.subplots import make_subplots

    told = course(problem, plan)
    drawn = _drawn(problem, told)
    names = [escape(_title(problem, c)) for c in drawn]
    drawing = make_subplots(
        len(drawn),
        1,
        shared_xaxes=True,
        subplot_titles=names,
        vertical_spacing=min(0.05, 0.3 / len(drawn)),
    )
    gone = [problem.requests[k].arrival for k in told.refused]
    texts = [
        f"{escape(problem.requests[k].deployment)} x {problem.requests[k].replicas} refused"
        for k in told.refused
    ]
    for row, c in enumerate(drawn, start=1):
        hover = [f"{n} replicas" for n in told.replicas[:, c].tolist()]
        line = {"shape": "hv", "color": _CPU}
        shown = {"showlegend": row == 1, "row": row, "col": 1}
        drawing.add_scatter(
            x=told.times,
            y=told.shares[:, c, 0],
            text=hover,
            name="cpu",
            legendgroup="cpu",
            line=line,
            fill="tozeroy",
            **shown,
        )
        memory = {"shape": "hv", "color": _MEMORY}
        drawing.add_scatter(
            x=told.times,
            y=told.shares[:, c, 1],
            text=hover,
            name="memory",
            legendgroup="memory",
            line=memory,
            **shown,
        )
        marker = {"symbol": "line-ns-open", "color": KNEE, "size": 7}
        ticks = {
            "x": gone,
            "y": [0.0] * len(gone),
            "text": texts,
            "hoverinfo": "x+text",
            "mode": "markers",
            "marker": marker,
        }
        drawing.add_scatter(**ticks, name="refused", legendgroup="refused", **shown)
    drawing.update_yaxes(range=[-0.05, 1.05], tickformat=".0%")
    drawing.update_xaxes(title_text="time", row=len(drawn), col=1)
    drawing.update_annotations(font_size=11)
    drawing.update_layout(
        template="plotly_white",
        height=160 + 130 * len(drawn),
        margin={"l": 50, "r": 20, "t": 60, "b": 40},
    )
    return drawing
