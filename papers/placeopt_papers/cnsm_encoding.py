"""The encoding and decoder of the CNSM 2024 paper (section V-B, Fig. 3): ``encoding=published``.

A gene per request is its start; a gene per replica is one of all types (offer x pricing). Replicas
are packed by next fit in the order of the vector: each type has one open machine, whose capacity is
never released, and a replica that does not fit opens another. Deviations: starts stay within
[0, T - d], and machines are paid for the slots in which they host something, as equation (7) says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.compile import allocating_kernel
from placeopt.temporal.arrays import PRICINGS
from placeopt.temporal.problem import Temporal


class PublishedArrays(NamedTuple):
    """The arrays that the kernels read: n requests, R replicas, Y types, O offers."""

    horizon: int
    duration: np.ndarray  # (n,)
    demand: np.ndarray  # (n, 2) vCPU and memory of a replica
    request: np.ndarray  # (R,) request of each replica
    replicas: np.ndarray  # (n,)
    legal_first: np.ndarray  # (n + 1,) where the types of each request begin in `legal`
    legal: np.ndarray  # types that the genes of a request may name
    capacity: np.ndarray  # (Y, 2) vCPU and memory of a machine
    price: np.ndarray  # (Y,) USD per slot
    reserved: np.ndarray  # (Y,) bool, whether the whole horizon is paid
    frequency: np.ndarray  # (Y,) share of interruptions
    latency: np.ndarray  # (n, Y) ms
    offer: np.ndarray  # (Y,)
    max_machines: np.ndarray  # (O,) machines of each offer, -1 for no limit


@allocating_kernel
def _pack(genes, instance, machine_of, kind, free, excess):
    """Pack one vector by next fit; return the number of machines.

    Writes the machine of each replica, `machine_of` (R,), the type of each machine, `kind` (R,),
    and what is free on it, `free` (R, 2). Adds to `excess`, (3,), what exceeds vCPU and memory.
    """
    n = len(instance.duration)
    opened = np.full(len(instance.offer), -1)
    machines = 0
    for r in range(len(instance.request)):
        i = instance.request[r]
        y = instance.legal[instance.legal_first[i] + genes[n + r]]
        b = opened[y]
        cpu, memory = instance.demand[i, 0], instance.demand[i, 1]
        if b < 0 or free[b, 0] < cpu or free[b, 1] < memory:
            b = machines
            machines += 1
            opened[y] = b
            kind[b] = y
            free[b] = instance.capacity[y]
        for resource in range(2):
            free[b, resource] -= instance.demand[i, resource]
            if free[b, resource] < 0:
                excess[resource] -= free[b, resource] / instance.capacity[y, resource]
        machine_of[r] = b
    return machines


@allocating_kernel
def _add_values(genes, instance, machine_of, kind, machines, F, excess):
    """Write (6), (7), (8) of a packed vector into F, (3,), and excess machines into `excess`."""
    n = len(instance.duration)
    active = np.zeros((machines, instance.horizon), dtype=np.bool_)
    worst_latency = np.zeros(n)
    for r in range(len(instance.request)):
        i = instance.request[r]
        y = kind[machine_of[r]]
        active[machine_of[r], genes[i] : genes[i] + instance.duration[i]] = True
        worst_latency[i] = max(worst_latency[i], instance.latency[i, y])
        F[2] += instance.frequency[y] / (instance.replicas[i] * n)
    F[0] = worst_latency.sum() / n
    leased = np.zeros(len(instance.max_machines), dtype=np.int64)
    for b in range(machines):
        y = kind[b]
        slots = instance.horizon if instance.reserved[y] else active[b].sum()
        F[1] += instance.price[y] * slots
        leased[instance.offer[y]] += 1
    for o in range(len(leased)):
        limit = instance.max_machines[o]
        if 0 <= limit < leased[o]:
            excess[2] += (leased[o] - limit) / max(1, limit)


@allocating_kernel
def _evaluate(X, instance):
    """Return F (len(X), 3) and G (len(X), 3): excess of vCPU, memory, machines."""
    replicas = len(instance.request)
    F, G = np.zeros((len(X), 3)), np.zeros((len(X), 3))
    machine_of, kind = np.empty(replicas, dtype=np.int64), np.empty(replicas, dtype=np.int64)
    free = np.empty((replicas, 2), dtype=np.int64)
    for k in range(len(X)):
        machines = _pack(X[k], instance, machine_of, kind, free, G[k])
        _add_values(X[k], instance, machine_of, kind, machines, F[k], G[k])
    return F, G


class PublishedEncoder(Encoder):
    """The paper's encoding of a temporal instance.

    Parameters
    ----------
    masked : bool
        Genes name only types in which the replica fits. Without it, as published, most vectors are
        infeasible.
    """

    problem: Temporal

    num_constraints = 3

    def __init__(self, problem: Temporal, objectives: Sequence[Objective], *, masked: bool = True):
        super().__init__(problem, objectives)
        self.types = [
            (k, pricing)
            for k, offer in enumerate(problem.offers)
            for pricing in PRICINGS
            if offer.price(pricing) is not None
        ]
        self.arrays = self._arrays(masked)
        latest = problem.horizon_slots - self.arrays.duration
        choices = np.diff(self.arrays.legal_first)
        self.upper = np.concatenate((latest, choices[self.arrays.request] - 1)).astype(np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)

    def _arrays(self, masked: bool) -> PublishedArrays:
        problem, numbers = self.problem, self.problem.arrays
        offer = np.array([k for k, _ in self.types])
        duration, replicas = numbers.durations, numbers.replicas
        latency = numbers.latencies[:, offer]
        allowed = numbers.usable[:, offer] if masked else np.isfinite(latency)
        if not allowed.any(axis=1).all() or (duration > problem.horizon_slots).any():
            raise UnsupportedError(
                "the published encoding cannot leave a request out; "
                + "; ".join(problem.infeasibility())
            )
        return PublishedArrays(
            horizon=problem.horizon_slots,
            duration=duration,
            demand=numbers.demands,
            request=np.repeat(np.arange(len(replicas)), replicas),
            replicas=replicas,
            legal_first=np.concatenate(([0], allowed.sum(axis=1).cumsum())),
            legal=np.nonzero(allowed)[1],
            capacity=numbers.capacities[offer],
            price=np.array([problem.slot_price(k, p) for k, p in self.types]),
            reserved=np.array([p == "reserved" for _, p in self.types]),
            frequency=np.array([problem.offers[k].frequency(p) for k, p in self.types]),
            latency=np.where(np.isfinite(latency), latency, 0.0),
            offer=offer,
            max_machines=numbers.max_machines,
        )

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 3): excess of vCPU, memory, machines."""
        F, G = _evaluate(self.checked(X), self.arrays)
        return F[:, self._columns], G

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector with a plan's starts and types; next fit may pack it worse."""
        with self.problem.reading(plan):
            return self._encoded(plan)

    def _encoded(self, plan: Plan) -> np.ndarray:
        first = self.problem.arrays.first
        requests = {r.name: i for i, r in enumerate(self.problem.requests)}
        offers = {(o.location, o.size): k for k, o in enumerate(self.problem.offers)}
        types = {one: y for y, one in enumerate(self.types)}
        genes = np.zeros(self.num_genes, dtype=np.int64)
        for name, start in plan["starts"].items():
            genes[requests[name]] = start
        for machine in plan["instances"]:
            y = types[offers[machine["location"], machine["size"]], machine["pricing"]]
            for name, copy in machine["replicas"]:
                i = requests[name]
                low, high = self.arrays.legal_first[i : i + 2]
                result = np.flatnonzero(self.arrays.legal[low:high] == y)
                genes[len(requests) + first[i] + copy] = result[0] if len(result) else 0
        return np.clip(genes, self.lower, self.upper)

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        replicas = len(self.arrays.request)
        machine_of, kind = np.empty(replicas, dtype=np.int64), np.empty(replicas, dtype=np.int64)
        free, excess = np.empty((replicas, 2), dtype=np.int64), np.zeros(3)
        genes = self.checked_one(genes)
        count = _pack(genes, self.arrays, machine_of, kind, free, excess)
        machines: list[dict[str, Any]] = []
        for y in kind[:count]:
            k, pricing = self.types[y]
            offer = self.problem.offers[k]
            machine = {"location": offer.location, "size": offer.size, "pricing": pricing}
            machines.append(machine | {"replicas": []})
        placed = [0] * len(self.problem.requests)
        for i, b in zip(self.arrays.request.tolist(), machine_of.tolist(), strict=True):
            machines[b]["replicas"].append([self.problem.requests[i].name, placed[i]])
            placed[i] += 1
        starts = zip(self.problem.requests, genes.tolist(), strict=False)
        return {"starts": {r.name: start for r, start in starts}, "instances": machines}
