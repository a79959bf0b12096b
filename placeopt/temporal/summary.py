"""Fleets in tables: data centre by data centre, and machine type by machine type."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Bar, Cell, table
from placeopt.temporal.document import PRICINGS

if TYPE_CHECKING:
    from placeopt.temporal.instance import Temporal

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
