"""Plans of the temporal problem: leased machines over slots, coloured by how they are paid for.

Like Figures 2 and 3 of N. Di Cicco et al., CNSM 2024: one lane a machine, its height the machine's vCPU, one block a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.plot.figures import new_figure
from placeopt.plot.style import PRICING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from placeopt.problems.temporal import Temporal

#: Blocks are labelled with their request up to this many machines.
_MOST_LABELLED = 40


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

    @property
    def load(self) -> np.ndarray:
        """Share of the vCPU in use, shape (horizon,)."""
        return np.sum(list(self.blocks.values()), axis=0) if self.blocks else np.zeros_like(self.memory)


def _lanes(problem: Temporal, plan: Mapping[str, Any]) -> list[_Lane]:
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
            blocks.setdefault(name, np.zeros(problem.horizon_slots))[slots] += requests[name].cpu_cores / offer.cpu_cores
            memory[slots] += requests[name].memory_gib / offer.memory_gib
        found.append(_Lane(f"{offer.location} {offer.size}", instance["pricing"], blocks, memory))
    order = list(PRICING)
    return sorted(found, key=lambda lane: (lane.label, order.index(lane.pricing), int(np.argmax(lane.memory > 0))))


def figure(problem: Temporal, plan: Mapping[str, Any], title: str) -> Figure:
    """Return the drawing of a plan as a matplotlib figure."""
    lanes = _lanes(problem, plan)
    height = min(max(0.28, 2.4 / max(1, len(lanes))), 0.6)
    drawing = new_figure(7.2, min(1.3 + height * len(lanes), 40))
    axes = drawing.add_subplot()
    for k, lane in enumerate(lanes):
        _draw(axes, k, lane, labelled=len(lanes) <= _MOST_LABELLED)
    _name_lanes(axes, lanes, problem)
    axes.set_title(title, fontsize=8, loc="left")
    from matplotlib.patches import Patch

    used = [p for p in PRICING if any(lane.pricing == p for lane in lanes)]
    handles = [Patch(color=PRICING[p], label=p) for p in used] + [Patch(color="#009E73", alpha=0.15, label="reserved, idle")] * ("reserved" in used)
    drawing.legend(handles=handles, loc="outside lower center", ncols=max(1, len(handles)), frameon=False, fontsize=8)
    return drawing


def _draw(axes: Any, k: int, lane: _Lane, *, labelled: bool) -> None:
    """Draw one lane: the vCPU of its requests stacked, from the bottom of the lane up."""
    colour, slots = PRICING[lane.pricing], np.arange(len(lane.memory) + 1)
    if lane.pricing == "reserved":
        axes.fill_between(slots[[0, -1]], k, k + 0.86, color=colour, alpha=0.15, linewidth=0)
    floor = np.zeros(len(lane.memory))
    for name, share in sorted(lane.blocks.items(), key=lambda item: (int(np.argmax(item[1] > 0)), item[0])):
        top = floor + share
        begin, end = (int(x) for x in np.flatnonzero(share > 0)[[0, -1]])
        span = slice(begin, end + 1)
        low, high = np.append(floor[span], floor[end]), np.append(top[span], top[end])
        axes.fill_between(slots[begin : end + 2], k + 0.86 * low, k + 0.86 * high, step="post", color=colour, edgecolor="white", linewidth=0.5)
        if labelled and share[begin] * 0.86 >= 0.2:
            axes.text(begin + 0.4, k + 0.86 * (floor[begin] + top[begin]) / 2, name, fontsize=5, color="white", va="center", clip_on=True)
        floor = top


def _name_lanes(axes: Any, lanes: list[_Lane], problem: Temporal) -> None:
    axes.set_yticks(np.arange(len(lanes)) + 0.43, [lane.label for lane in lanes], fontsize=6)
    axes.set_ylim(len(lanes), -0.14)
    axes.set_ylim(-0.14, len(lanes))
    axes.set_xlim(0, problem.horizon_slots)
    axes.set_xlabel(f"slot ({problem.slot_hours:g} h each)", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="#E6E6E6", linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def interactive(problem: Temporal, plan: Mapping[str, Any], title: str) -> Any:
    """Return the drawing of a plan as a plotly figure: machines x slots, darker where more vCPU is used; `title` heads the page."""
    import plotly.graph_objects as go

    lanes = _lanes(problem, plan)
    rows = [f"{k + 1}. {lane.label} {lane.pricing}" for k, lane in enumerate(lanes)]
    drawing = go.Figure()
    for pricing, colour in PRICING.items():
        mine = [k for k, lane in enumerate(lanes) if lane.pricing == pricing]
        if mine:
            load = np.array([np.where(lanes[k].memory > 0, lanes[k].load, np.nan) for k in mine])
            if pricing == "reserved":
                load = np.nan_to_num(load)
            scale = [[0, _faded(colour, 0.15)], [1e-9, _faded(colour, 0.4)], [1, colour]]
            texts = [[_cell(lanes[k], slot) for slot in range(problem.horizon_slots)] for k in mine]
            cells = {"z": load, "y": [rows[k] for k in mine], "zmin": 0, "zmax": 1, "colorscale": scale, "showscale": False}
            drawing.add_heatmap(**cells, x=np.arange(problem.horizon_slots) + 0.5, text=texts, hoverinfo="text", ygap=2, name=pricing)
            drawing.add_scatter(x=[None], y=[None], mode="markers", marker={"symbol": "square", "size": 12, "color": colour}, name=pricing)
    height, margin = 160 + 22 * max(4, len(lanes)), {"l": 220, "r": 20, "t": 40, "b": 50}
    drawing.update_layout(template="plotly_white", height=height, margin=margin, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"})
    drawing.update_xaxes(title_text=f"slot ({problem.slot_hours:g} h each)", range=[0, problem.horizon_slots])
    drawing.update_yaxes(categoryorder="array", categoryarray=rows[::-1], tickfont={"size": 10})
    return drawing


def _cell(lane: _Lane, slot: int) -> str:
    from html import escape

    hosted = ", ".join(escape(name) for name, share in lane.blocks.items() if share[slot] > 0)
    load, memory = lane.load[slot], lane.memory[slot]
    return f"{escape(lane.label)}, {lane.pricing}<br>slot {slot}: {hosted or 'idle'}<br>vCPU {load:.0%}, memory {memory:.0%}"


def _faded(colour: str, share: float) -> str:
    """Return a hex colour mixed with white."""
    mixed = (round(255 - share * (255 - int(colour[k : k + 2], 16))) for k in (1, 3, 5))
    return "rgb({},{},{})".format(*mixed)
