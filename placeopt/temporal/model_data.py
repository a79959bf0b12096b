"""What the temporal model is built from: requests, machines, and their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.temporal.document import PRICINGS
from placeopt.temporal.instance import Temporal


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


class ModelData:
    """The numbers of an instance by the names that the model's indices use."""

    def __init__(self, problem: Temporal, copies: int | None):
        self.problem = problem
        self.index = {request.name: k for k, request in enumerate(problem.requests)}
        self.slots = range(problem.horizon_slots)
        self.duration = {request.name: request.duration_slots for request in problem.requests}
        self.replicas = {request.name: request.replicas for request in problem.requests}
        self.machines = list(_machines(problem, copies))
        self.hosts_of: dict[str, list[Machine]] = {}
        self.hosted_by: dict[Machine, list[str]] = {machine: [] for machine in self.machines}
        before = 0
        for k, request in enumerate(problem.requests):
            # Equal machines are numbered by the first replica that they host: then replica p is on
            # one of the first p + 1.
            before += request.replicas
            usable = problem.arrays.usable[k]
            self.hosts_of[request.name] = [
                m for m in self.machines if usable[m.offer] and m.copy < before
            ]
            for machine in self.hosts_of[request.name]:
                self.hosted_by[machine].append(request.name)
        # Without their common factor, coefficients are small and capacities exact.
        demands, capacities = problem.arrays.demands, problem.arrays.capacities
        factor = np.maximum(np.gcd.reduce(np.concatenate((demands, capacities))), 1)
        self.demand = dict(zip(self.index, (demands // factor).tolist(), strict=True))
        self.capacity = (capacities // factor).tolist()

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

    def max_hosted(self, request: str, machine: Machine) -> int:
        """Return how many replicas of a request fit into a machine at once."""
        resources = zip(self.capacity[machine.offer], self.demand[request], strict=True)
        return min(
            self.replicas[request],
            *(capacity // demand for capacity, demand in resources if demand),
        )

    def limited(self, offer: int) -> bool:
        """Return whether ``max_instances`` of an offer is below the number of its machines."""
        limit = self.problem.offers[offer].max_instances
        return limit is not None and limit < sum(m.offer == offer for m in self.machines)


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
    """Return a number of machines of one offer and pricing that is enough for every point.

    Two machines of the same offer and pricing whose replicas fit into one of them at all times can
    be merged: no value of the plan grows. So some best plan has no such pair. Then all its machines
    but one hold replicas that together fill more than half of a machine's vCPU or memory. With W
    the load of everything that the offer can host, in machines, there are fewer than 1 + 2W of
    them. Nor are there more machines than replicas.
    """
    arrays = problem.arrays
    able = arrays.usable[:, offer]
    replicas = [r.replicas for r, can in zip(problem.requests, able, strict=True) if can]
    capacity = arrays.capacities[offer].tolist()
    demands = arrays.demands[able].tolist()
    cpu, memory = (
        sum(count * demand[resource] for count, demand in zip(replicas, demands, strict=True))
        for resource in range(2)
    )
    # ceil(2 W) in whole numbers: W is cpu / capacity[0] + memory / capacity[1].
    halves = 2 * (cpu * capacity[1] + memory * capacity[0])
    whole = capacity[0] * capacity[1]
    return min(sum(replicas), -(-halves // whole) if whole else 0)
