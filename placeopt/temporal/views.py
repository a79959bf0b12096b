"""What people see of a temporal plan: machines over time, and tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Bar, Cell, table
from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PRICING
from placeopt.temporal.arrays import PRICINGS

if TYPE_CHECKING:
    from placeopt.temporal.problem import Temporal

# -- the drawing -----------------------------------------------------------------------------------

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


# -- tables ----------------------------------------------------------------------------------------

#: What the problem asks, in a sentence.
QUESTION = (
    "When does each request start, and on which leased machines, reserved, on demand or "
    "spot, do its replicas run?"
)
#: What each objective measures.
MEANINGS = {
    "latency_ms": "mean over the requests of the largest latency from the origin to a replica",
    "cost_usd": "what all leased machines cost over the horizon",
    "interruption": "mean over the requests of the share of replicas that lose a spot machine",
}


@dataclass
class _Sum:
    """What the machines of one kind come to."""

    machines: Counter[str] = field(default_factory=Counter)
    replicas: int = 0
    cost: float = 0.0
    used: float = 0.0
    room: float = 0.0

    def add(self, pricing: str, replicas: int, cost: float, used: float, room: float) -> None:
        """Count one machine; `used` and `room` are vCPU slots."""
        self.machines[pricing] += 1
        self.replicas += replicas
        self.cost += cost
        self.used += used
        self.room += room


def instance(problem: Temporal) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    places = sorted({o.location for o in problem.offers})
    replicas = sum(r.replicas for r in problem.requests)
    return [
        ("requests", f"{len(problem.requests):,}, {replicas:,} replicas"),
        (
            "vCPU asked for at once, at most",
            f"{sum(r.replicas * r.cpu_cores for r in problem.requests):,.6g}",
        ),
        ("horizon", f"{problem.horizon_slots:,} slots of {problem.slot_hours:g} h"),
        ("offers", f"{len(problem.offers):,} machine types in {len(places):,} data centres"),
        (
            "data centres",
            ", ".join(places[:12]) + (f" and {len(places) - 12} more" if len(places) > 12 else ""),
        ),
    ]


def sums(problem: Temporal, plan: Plan) -> tuple[dict[str, _Sum], dict[tuple[str, str], _Sum]]:
    """Return what a plan leases, by data centre, and by data centre and machine type."""
    requests = {r.name: r for r in problem.requests}
    offers = {(o.location, o.size): k for k, o in enumerate(problem.offers)}
    places: dict[str, _Sum] = defaultdict(_Sum)
    types: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for machine in plan["instances"]:
        key = machine["location"], machine["size"]
        offer, pricing = problem.offers[offers[key]], machine["pricing"]
        load = np.zeros(problem.horizon_slots)
        for name, _ in machine["replicas"]:
            begin = max(plan["starts"][name], 0)
            load[begin : plan["starts"][name] + requests[name].duration_slots] += requests[
                name
            ].cpu_cores
        slots = problem.horizon_slots if pricing == "reserved" else int((load > 0).sum())
        facts = (
            pricing,
            len(machine["replicas"]),
            slots * problem.slot_price(offers[key], pricing),
            float(load.sum()),
            slots * offer.cpu_cores,
        )
        places[key[0]].add(*facts)
        types[key].add(*facts)
    return places, types


def plan(problem: Temporal, plan: Plan) -> str:
    """Return the tables of a plan."""
    places, types = sums(problem, plan)
    columns = ("machines", *PRICINGS, "replicas", "cost (USD)", "vCPU in use while paid")
    centres = [[name, *_cells(s)] for name, s in sorted(places.items())]
    by_place = table(
        "Leased in every data centre", ("data centre", *columns), centres, more="data centres"
    )
    ranked = sorted(types.items(), key=lambda item: -item[1].cost)
    fleet = [[size, place, *_cells(s)] for (place, size), s in ranked]
    by_type = table(
        "The fleet", ("machine type", "data centre", *columns), fleet, more="machine types"
    )
    return by_place + by_type + _requests(problem, plan)


def _cells(total: _Sum) -> list[Cell]:
    counts = [total.machines[p] for p in PRICINGS]
    return [
        sum(counts),
        *counts,
        total.replicas,
        round(total.cost, 4),
        Bar(total.used / total.room if total.room else 0.0),
    ]


def _requests(problem: Temporal, plan: Plan) -> str:
    where: dict[str, Counter[str]] = defaultdict(Counter)
    for machine in plan["instances"]:
        for name, _ in machine["replicas"]:
            where[name][f"{machine['location']} {machine['pricing']}"] += 1
    rows: list[list[Cell]] = [
        [
            r.name,
            r.origin,
            r.replicas,
            f"{start} to {start + r.duration_slots}"
            if (start := plan["starts"].get(r.name)) is not None
            else "–",
            ", ".join(f"{n} x {place}" for place, n in where[r.name].most_common()),
        ]
        for r in problem.requests
    ]
    return table(
        "Requests", ("request", "origin", "replicas", "slots", "runs on"), rows, more="requests"
    )
