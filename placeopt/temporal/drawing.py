"""Plans of the temporal problem: leased machines over slots, coloured by how they are paid for.

Like Figures 2 and 3 of N. Di Cicco et al., CNSM 2024: one lane a machine, its height the machine's
vCPU, one block a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.front import Plan
from placeopt.plot.figures import legend_below, new_figure, style_lanes
from placeopt.plot.style import PRICING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.temporal.instance import Temporal


@dataclass(frozen=True)
class _Lane:
    """One leased machine.

    Attributes
    ----------
    label, pricing : str
    blocks : dict of str to ndarray
        Request -> share of the machine's vCPU in every slot, shape (horizon,).
    memory : ndarray, shape (horizon,)
        Share of the machine's memory in use.
    """

    label: str
    pricing: str
    blocks: dict[str, np.ndarray]
    memory: np.ndarray

    @cached_property
    def load(self) -> np.ndarray:
        """Share of the vCPU in use, shape (horizon,)."""
        return sum(self.blocks.values(), start=np.zeros_like(self.memory))


def _lanes(problem: Temporal, plan: Plan) -> list[_Lane]:
    """Return the machines by place, pricing, size and first use."""
    requests = {r.name: r for r in problem.requests}
    offers = {(o.location, o.size): o for o in problem.offers}
    found = []
    for instance in plan["instances"]:
        offer = offers[instance["location"], instance["size"]]
        blocks: dict[str, np.ndarray] = {}
        memory = np.zeros(problem.horizon_slots)
        for name, _ in instance["replicas"]:
            begin = plan["starts"][name]
            slots = slice(max(begin, 0), begin + requests[name].duration_slots)
            blocks.setdefault(name, np.zeros(problem.horizon_slots))[slots] += (
                requests[name].cpu_cores / offer.cpu_cores
            )
            memory[slots] += requests[name].memory_gib / offer.memory_gib
        found.append(_Lane(f"{offer.location} {offer.size}", instance["pricing"], blocks, memory))
    order = list(PRICING)
    return sorted(
        found,
        key=lambda lane: (lane.label, order.index(lane.pricing), int(np.argmax(lane.memory > 0))),
    )


def figure(problem: Temporal, plan: Plan, title: str) -> Figure:
    """Return the drawing of a plan as a matplotlib figure."""
    from matplotlib.patches import Patch

    lanes = _lanes(problem, plan)
    height = min(
        max(8.0 / max(1, len(lanes)), 0.09), 0.45
    )  # inches: a plan of up to 90 machines fits a page
    drawing = new_figure(7.2, min(1.1 + height * len(lanes), 40))
    axes = drawing.add_subplot()
    for k, lane in enumerate(lanes):
        _draw(axes, k, lane, min_label=0.09 / height)
    _name_groups(axes, lanes)
    label = f"slot ({problem.slot_hours:g} h each)"
    style_lanes(axes, len(lanes), problem.horizon_slots, label, title)
    axes.grid(True, axis="x", color="#E6E6E6", linewidth=0.5)
    axes.set_axisbelow(True)
    used = [p for p in PRICING if any(lane.pricing == p for lane in lanes)]
    handles = [Patch(color=PRICING[p], label=p) for p in used]
    if "reserved" in used:
        handles.append(Patch(color=PRICING["reserved"], alpha=0.15, label="reserved, idle"))
    legend_below(drawing, handles)
    return drawing


def _draw(axes: Any, k: int, lane: _Lane, *, min_label: float) -> None:
    """Draw one lane: the vCPU of its requests stacked.

    A request with at least a share `min_label` of the lane's vCPU is named.
    """
    colour, slots = PRICING[lane.pricing], np.arange(len(lane.memory) + 1)
    if lane.pricing == "reserved":
        axes.fill_between(slots[[0, -1]], k, k + 0.86, color=colour, alpha=0.15, linewidth=0)
    floor = np.zeros(len(lane.memory))
    for name, share in sorted(
        lane.blocks.items(), key=lambda item: (int(np.argmax(item[1] > 0)), item[0])
    ):
        top = floor + share
        begin, end = (int(x) for x in np.flatnonzero(share > 0)[[0, -1]])
        span = slice(begin, end + 1)
        low, high = np.append(floor[span], floor[end]), np.append(top[span], top[end])
        bottom, drawn = k + 0.86, slots[begin : end + 2]  # the axis points down
        axes.fill_between(
            drawn,
            bottom - 0.86 * low,
            bottom - 0.86 * high,
            step="post",
            color=colour,
            edgecolor="white",
            linewidth=0.5,
        )
        if share[begin] * 0.86 >= min_label:
            axes.text(
                begin + 0.4,
                bottom - 0.43 * (floor[begin] + top[begin]),
                name,
                fontsize=5,
                color="white",
                va="center",
                clip_on=True,
            )
        floor = top


def _groups(lanes: list[_Lane]) -> list[tuple[str, int, int]]:
    """Return (place and size, first lane, number of lanes)."""
    found, first = [], 0
    for label, lot in groupby(lanes, key=lambda lane: lane.label):
        count = len(list(lot))
        found.append((label, first, count))
        first += count
    return found


def _name_groups(axes: Any, lanes: list[_Lane]) -> None:
    """Name every place and size once, with the number of its machines."""
    groups = _groups(lanes)
    axes.set_yticks(
        [first + count / 2 - 0.07 for _, first, count in groups],
        [f"{label} ({count})" for label, _, count in groups],
        fontsize=6.5,
    )
    for _, first, _ in groups[1:]:
        axes.axhline(first - 0.07, color="#BBBBBB", linewidth=0.5, zorder=0)


def interactive(problem: Temporal, plan: Plan, title: str) -> Any:
    """Return the drawing of a plan as a plotly figure: machines x slots, darker for more vCPU.

    `title` heads the page.
    """
    import plotly.graph_objects as go

    lanes = _lanes(problem, plan)
    drawing, rows = go.Figure(), list(range(len(lanes)))
    for pricing, colour in PRICING.items():
        if not any(lane.pricing == pricing for lane in lanes):
            continue
        load = [
            [
                _shade(lane, slot) if lane.pricing == pricing else None
                for slot in range(problem.horizon_slots)
            ]
            for lane in lanes
        ]
        texts = [
            [_cell(lane, slot) for slot in range(problem.horizon_slots)]
            if lane.pricing == pricing
            else []
            for lane in lanes
        ]
        drawing.add_heatmap(
            z=load,
            x0=0.5,
            dx=1,
            y=rows,
            zmin=0,
            zmax=1,
            colorscale=[[0, _faded(colour)], [1, colour]],
            showscale=False,
            hoverongaps=False,
            text=texts,
            hoverinfo="text",
            ygap=2,
        )
        drawing.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker_symbol="square",
            marker_size=12,
            marker_color=colour,
            name=pricing,
        )
    groups = _groups(lanes)
    drawing.update_layout(
        template="plotly_white",
        height=160 + 18 * max(4, len(lanes)),
        margin={"l": 220, "r": 20, "t": 50, "b": 50},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
    )
    drawing.update_xaxes(
        title_text=f"slot ({problem.slot_hours:g} h each)", range=[0, problem.horizon_slots]
    )
    drawing.update_yaxes(
        range=[len(lanes) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        tickvals=[first + (count - 1) / 2 for _, first, count in groups],
        ticktext=[f"{escape(name)} ({count})" for name, _, count in groups],
    )
    for _, first, _ in groups[1:]:
        drawing.add_hline(first - 0.5, line_width=1, line_color="#BBBBBB")
    return drawing


def _shade(lane: _Lane, slot: int) -> float | None:
    """Share of the vCPU in use; None where the machine is neither used nor paid for."""
    if lane.memory[slot] > 0:
        return 0.25 + 0.75 * min(1.0, float(lane.load[slot]))
    return 0.0 if lane.pricing == "reserved" else None


def _cell(lane: _Lane, slot: int) -> str:
    hosted = ", ".join(escape(name) for name, share in lane.blocks.items() if share[slot] > 0)
    load, memory = lane.load[slot], lane.memory[slot]
    return (
        f"{escape(lane.label)}, {lane.pricing}<br>slot {slot}: {hosted or 'idle'}<br>"
        f"vCPU {load:.0%}, memory {memory:.0%}"
    )


def _faded(colour: str) -> str:
    """Return white with 12 % of a hex colour."""
    mixed = (round(255 - 0.12 * (255 - int(colour[k : k + 2], 16))) for k in (1, 3, 5))
    return "rgb({},{},{})".format(*mixed)
