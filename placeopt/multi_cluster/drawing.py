"""Drawings of multi-cluster plans: the use of every cluster over time, and refused requests."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.front import Plan
from placeopt.multi_cluster.usage import UsageOverTime, usage_over_time
from placeopt.plot.figures import legend_below, new_figure
from placeopt.plot.style import KNEE, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.multi_cluster.instance import MultiCluster

#: Only so many clusters are drawn, the busiest ones.
MAX_CLUSTERS = 16
_CPU, _MEMORY = PALETTE[:2]


def _drawn(usage: UsageOverTime) -> list[int]:
    """Return the clusters to draw, in their own order."""
    busy = usage.shares.max(axis=(0, 2)) + usage.replicas.max(axis=0)
    return sorted(np.argsort(-busy, kind="stable")[:MAX_CLUSTERS].tolist())


def _title(problem: MultiCluster, c: int) -> str:
    cluster = problem.clusters[c]
    kind = f" ({cluster.type})" if cluster.type else ""
    sizes = f"{cluster.cpu_cores:g} cores, {cluster.memory_gib:g} GiB, cost {cluster.cost:g}"
    return f"{cluster.name}{kind}: {sizes}"


def figure(problem: MultiCluster, plan: Plan, title: str) -> Figure:
    """Return a matplotlib figure of a plan: a panel per cluster, with ticks at refused requests."""
    usage = usage_over_time(problem, plan)
    drawn = _drawn(usage)
    drawing = new_figure(7.2, 1.0 + 1.05 * len(drawn))
    panels = np.atleast_1d(drawing.subplots(len(drawn), 1, sharex=True))
    gone = [problem.requests[k].arrival for k in usage.refused]
    for axes, c in zip(panels, drawn, strict=True):
        cpu, memory = usage.shares[:, c].T
        axes.fill_between(
            usage.times, cpu, step="post", color=_CPU, alpha=0.35, linewidth=0, label="cpu"
        )
        axes.step(usage.times, memory, where="post", color=_MEMORY, linewidth=1.0, label="memory")
        axes.vlines(gone, -0.08, 0.0, color=KNEE, linewidth=0.6, label="refused")
        axes.set_ylim(-0.08, 1.05)
        axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"], fontsize=6)
        axes.tick_params(axis="x", labelsize=6)
        axes.set_title(_title(problem, c), fontsize=6.5, loc="left", pad=2)
        axes.grid(True, color="#E6E6E6", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time", fontsize=7)
    legend_below(drawing, panels[0].get_legend_handles_labels()[0], fontsize=7)
    drawing.suptitle(title, fontsize=8, x=0.01, ha="left")
    return drawing


def interactive(problem: MultiCluster, plan: Plan, title: str) -> Any:
    """Return a plotly figure of a plan; hovering shows what runs; `title` heads the page."""
    from plotly.subplots import make_subplots

    usage = usage_over_time(problem, plan)
    drawn = _drawn(usage)
    names = [escape(_title(problem, c)) for c in drawn]
    drawing = make_subplots(
        len(drawn),
        1,
        shared_xaxes=True,
        subplot_titles=names,
        vertical_spacing=min(0.05, 0.3 / len(drawn)),
    )
    gone = [problem.requests[k].arrival for k in usage.refused]
    texts = [
        f"{escape(problem.requests[k].deployment)} x {problem.requests[k].replicas} refused"
        for k in usage.refused
    ]
    for row, c in enumerate(drawn, start=1):
        hover = [f"{n} replicas" for n in usage.replicas[:, c].tolist()]
        shown = {"showlegend": row == 1, "row": row, "col": 1}
        for r, (name, color, fill) in enumerate(
            (("cpu", _CPU, "tozeroy"), ("memory", _MEMORY, None))
        ):
            drawing.add_scatter(
                x=usage.times,
                y=usage.shares[:, c, r],
                text=hover,
                name=name,
                legendgroup=name,
                line_shape="hv",
                line_color=color,
                fill=fill,
                **shown,
            )
        drawing.add_scatter(
            x=gone,
            y=[0.0] * len(gone),
            text=texts,
            hoverinfo="x+text",
            mode="markers",
            marker_symbol="line-ns-open",
            marker_color=KNEE,
            marker_size=7,
            name="refused",
            legendgroup="refused",
            **shown,
        )
    drawing.update_yaxes(range=[-0.05, 1.05], tickformat=".0%")
    drawing.update_xaxes(title_text="time", row=len(drawn), col=1)
    drawing.update_annotations(font_size=11)
    drawing.update_layout(
        template="plotly_white",
        height=160 + 130 * len(drawn),
        margin={"l": 50, "r": 20, "t": 60, "b": 40},
    )
    return drawing
