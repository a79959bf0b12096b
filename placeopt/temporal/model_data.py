"""What the temporal model is built from: lots of replicas, machines that may be leased, and their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from placeopt.temporal.instance import Temporal
from placeopt.temporal.document import PRICINGS


@dataclass(frozen=True)
class Lot:
    """Replicas of one request that the model does not tell apart.

    Attributes
    ----------
    request : str
    replica : int or None
        The one replica of this lot (the paper's r), or None for all replicas of the request.
    size : int
        How many replicas.
    """

    request: str
    replica: int | None
    size: int

    def __str__(self) -> str:
        return self.request if self.replica is None else f"{self.request} {self.replica}"


@dataclass(frozen=True)
class Machine:
    """One instance that may be leased: the paper's j in data centre k.

    Attributes
    ----------
    offer : int
        Index of the offer in the instance.
    location, size, pricing : str
    copy : int
        Number among the machines of this offer and pricing.
    """

    offer: int
    location: str
    size: str
    pricing: str
    copy: int

    def __str__(self) -> str:
        return f"{self.location} {self.size} {self.pricing} {self.copy}"


class Data:
    """The numbers of an instance by the names that the model's indices use."""

    def __init__(self, problem: Temporal, copies: int | None, replicas: str, ordered: bool):
        self.problem = problem
        self.index = {request.name: k for k, request in enumerate(problem.requests)}
        self.slots = range(problem.horizon_slots)
        self.duration = {request.name: request.duration_slots for request in problem.requests}
        self.lots = list(_lots(problem, replicas))
        self.lots_of: dict[str, list[Lot]] = {request.name: [] for request in problem.requests}
        for lot in self.lots:
            self.lots_of[lot.request].append(lot)
        self.machines = list(_machines(problem, copies))
        usable = problem.arrays.usable.tolist()
        self.hosts_of: dict[Lot, list[Machine]] = {}
        self.hosted_by: dict[Machine, list[Lot]] = {machine: [] for machine in self.machines}
        last = -1
        for lot in self.lots:
            # Equal machines are numbered by the first replica that they host: then replica p is on one of the first p + 1.
            last += lot.size
            able = usable[self.index[lot.request]]
            self.hosts_of[lot] = [
                machine
                for machine in self.machines
                if able[machine.offer] and (machine.copy <= last or not ordered)
            ]
            for machine in self.hosts_of[lot]:
                self.hosted_by[machine].append(lot)
        # Whole numbers without a common factor: small coefficients, exact capacities.
        factor = [
            math.gcd(
                *problem.arrays.demands[:, r].tolist(), *problem.arrays.capacities[:, r].tolist()
            )
            or 1
            for r in range(2)
        ]
        self.demand = {
            r.name: [int(d) // f for d, f in zip(problem.arrays.demands[k], factor, strict=True)]
            for k, r in enumerate(problem.requests)
        }
        self.capacity = [
            [int(c) // f for c, f in zip(row, factor, strict=True)]
            for row in problem.arrays.capacities
        ]

    def starts(self, request: str) -> range:
        """Return the slots in which a request can start."""
        return range(len(self.slots) - self.duration[request] + 1)

    def window(self, request: str, slot: int) -> range:
        """Return the starts from which a request still runs in `slot`: the paper's D_t."""
        return range(
            max(0, slot - self.duration[request] + 1),
            min(slot, len(self.slots) - self.duration[request]) + 1,
        )

    def latency(self, request: str, location: str) -> float:
        """Return the latency in ms from the origin of a request to a place."""
        return self.problem.latency_ms[self.problem.requests[self.index[request]].origin][location]

    def most(self, lot: Lot, machine: Machine) -> int:
        """Return how many replicas of a lot fit into a machine at once."""
        return min(
            lot.size,
            *(
                c // d
                for c, d in zip(self.capacity[machine.offer], self.demand[lot.request], strict=True)
                if d
            ),
        )

    def limited(self, offer: int) -> bool:
        """Return whether ``max_instances`` of an offer is below the number of its machines."""
        most = self.problem.offers[offer].max_instances
        return most is not None and most < sum(machine.offer == offer for machine in self.machines)


def _lots(problem: Temporal, replicas: str) -> Iterator[Lot]:
    for request in problem.requests:
        if replicas == "together":
            yield Lot(request.name, None, request.replicas)
        else:
            yield from (Lot(request.name, r, 1) for r in range(request.replicas))


def _machines(problem: Temporal, copies: int | None) -> Iterator[Machine]:
    for j, offer in enumerate(problem.offers):
        for pricing in PRICINGS:
            if offer.price(pricing) is None:
                continue
            count = enough_copies(problem, j) if copies is None else copies
            if offer.max_instances is not None:
                count = min(count, offer.max_instances)
            yield from (Machine(j, offer.location, offer.size, pricing, c) for c in range(count))


def enough_copies(problem: Temporal, offer: int) -> int:
    """Return how many machines of one offer and pricing no point of the front needs more of.

    Two machines of the same offer and pricing whose replicas fit into one of them at all times can be merged: no value of the
    plan grows. So some best plan has no such pair; then all its machines but one hold replicas that fill, taken together, more
    than half of a machine's vCPU or memory, and there are fewer than 1 + 2W of them, W being the load of everything that the
    offer can host, in machines. Nor are there more than replicas.
    """
    able = problem.arrays.usable[:, offer]
    replicas = [r.replicas for r, can in zip(problem.requests, able, strict=True) if can]
    capacity = [int(c) for c in problem.arrays.capacities[offer]]
    load = [
        sum(n * int(d) for n, d in zip(replicas, problem.arrays.demands[able, r], strict=True))
        for r in range(2)
    ]
    # ceil(2 W) in whole numbers, W = load/capacity of vCPU plus that of memory
    halves = 2 * (load[0] * capacity[1] + load[1] * capacity[0])
    whole = capacity[0] * capacity[1]
    return min(sum(replicas), -(-halves // whole) if whole else 0)
