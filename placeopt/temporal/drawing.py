"""Plans of the temporal problem: leased machines over slots, coloured by how they are paid for.

Like Figures 2 and 3 of N. Di Cicco et al., CNSM 2024: one lane a machine, its height the machine's
vCPU, one block a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PRICING

if TYPE_CHECKING:
    from placeopt.temporal.instance import Temporal

#: Machines that are drawn, at most.
MAX_LANES = 100
#: A reserved machine that nobody uses.
_FADED = "#a6d9c8"


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
    results = []
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
        results.append(_Lane(f"{offer.location} {offer.size}", instance["pricing"], blocks, memory))
    order = list(PRICING)
    return sorted(
        results,
        key=lambda lane: (lane.label, order.index(lane.pricing), int(np.argmax(lane.memory > 0))),
    )


def scene(problem: Temporal, plan: Plan) -> Scene:
    """Return the drawing of a plan."""
    lanes = _lanes(problem, plan)
    shown = lanes[:MAX_LANES]
    height = min(max(720 / max(1, len(shown)), 14), 44)
    groups = _groups(shown)
    left = 24 + 7 * max((len(f"{name} ({count})") for name, _, count in groups), default=0)
    end = problem.horizon_slots
    sheet = Scene(1000, 80 + height * max(1, len(shown)))
    used = [p for p in PRICING if any(lane.pricing == p for lane in shown)]
    entries = [("area", PRICING[p], p) for p in used]
    if "reserved" in used:
        entries.append(("area", _FADED, "reserved, idle"))
    top = sheet.legend(left, 16, entries) - 4
    panel = Panel(
        sheet, left, top, 980 - left, height * max(1, len(shown)), (0, end), (len(shown), 0)
    )
    for slot in ticks(0, end, 10):
        x, _ = panel.at(slot, 0)
        sheet.line((x, top), (x, top + panel.height), stroke="line")
        text = f"{slot:g}"
        sheet.words(x, top + panel.height + 16, text, anchor="middle", colour="soft")
    for k, lane in enumerate(shown):
        _draw(panel, k, lane)
    for name, first, count in groups:
        _, y = panel.at(0, first + count / 2)
        sheet.words(left - 8, y + 4, f"{name} ({count})", anchor="end")
        sheet.line(panel.at(0, first), panel.at(end, first), stroke="soft", line_width=0.6)
    hidden = len(lanes) - len(shown)
    more = f"; {hidden:,} more machines are not drawn" if hidden else ""
    label = f"slot ({problem.slot_hours:g} h each){more}"
    middle = left + panel.width / 2
    sheet.words(middle, top + panel.height + 34, label, anchor="middle")
    sheet.height = top + panel.height + 44
    return sheet


def _draw(panel: Panel, k: int, lane: _Lane) -> None:
    """Draw one lane: the vCPU of its requests stacked, each with its name where it has room."""
    colour, sheet = PRICING[lane.pricing], panel.scene
    bottom, tall = k + 0.93, 0.86
    if lane.pricing == "reserved":
        corners = [(0, k + 0.07), (len(lane.memory), k + 0.07), (len(lane.memory), bottom)]
        sheet.area([panel.at(*corner) for corner in [*corners, (0, bottom)]], fill=_FADED)
    floor = np.zeros(len(lane.memory))
    order = sorted(lane.blocks.items(), key=lambda item: (int(np.argmax(item[1] > 0)), item[0]))
    for name, share in order:
        begin, end = (int(x) for x in np.flatnonzero(share > 0)[[0, -1]] + (0, 1))
        slots, low = range(begin, end + 1), floor[begin:end]
        high = low + share[begin:end]
        over = panel.staircase(slots, bottom - tall * high)
        under = panel.staircase(slots, bottom - tall * low)
        title = (
            f"{name} on {lane.label}, {lane.pricing}: slots {begin} to {end - 1}; "
            f"{share[begin]:.0%} of the machine's vCPU, its memory is {lane.memory[begin]:.0%} full"
        )
        places = [*over, *reversed(under)]
        sheet.area(places, fill=colour, stroke="paper", line_width=0.7, title=title)
        (x, y), (right, _) = panel.at(begin, bottom - tall * low[0]), panel.at(end, 0)
        if tall * share[begin] * panel.height / panel.y[0] >= 11 and right - x > 24:
            room = right - x - 4
            sheet.words(x + 4, y - 3, name, size=9, colour="#ffffff", within=room)
        floor[begin:end] = high


def _groups(lanes: list[_Lane]) -> list[tuple[str, int, int]]:
    """Return (place and size, first lane, number of lanes)."""
    result, first = [], 0
    for label, lot in groupby(lanes, key=lambda lane: lane.label):
        count = len(list(lot))
        result.append((label, first, count))
        first += count
    return result
