"""Temporal: machines named by their first replica, intervals, and slots in which they are busy.

It is not the best model there is: another one, with sessions of machines, ended with the optimum of
ten requests in 3 to 6 CPU seconds on seed 1; this one has not after 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved, weighted


def best(instance: Any, weights: Any, refused_cap: float | None, seconds: float, seed: int) -> Any:
    """Return the plan of least ``weights @ (latency_ms, cost_usd, interruption)``."""
    peer = _Model(instance)
    peer.model.minimize(weighted(weights, peer.latency(), peer.cost(), peer.interruption()))
    solver = solved(peer.model, seconds, seed)
    return None if solver is None else peer.plan(solver)


class _Model:
    """Variables and rows of an instance."""

    def __init__(self, instance: Any):
        self.instance, self.a, self.model = instance, instance.arrays, cp_model.CpModel()
        self.request = np.repeat(np.arange(len(self.a.replicas)), self.a.replicas).tolist()
        self.leases = sorted(self.a.slot_costs)
        replicas, model = range(len(self.request)), self.model
        self.on = {(j, b): model.new_bool_var("") for j in replicas for b in replicas if b <= j}
        for j in replicas:
            model.add_exactly_one(self.on[j, b] for b in range(j + 1))
            for b in range(j):
                model.add_implication(self.on[j, b], self.on[b, b])
        self._add_starts()
        self._add_leases(replicas)
        self._add_loads(replicas)

    def _add_starts(self) -> None:
        """Add the slot in which each request starts, and whether it runs in a slot."""
        model, last = self.model, self.instance.horizon_slots - self.a.durations
        self.begin = [[model.new_bool_var("") for _ in range(int(t) + 1)] for t in last]
        self.start = [model.new_int_var(0, int(t), "") for t in last]
        for start, begin in zip(self.start, self.begin, strict=True):
            model.add_exactly_one(begin)
            model.add(start == sum(t * literal for t, literal in enumerate(begin)))
        self.runs = [self._runs(i) for i in range(len(self.begin))]

    def _runs(self, i: int) -> list[Any]:
        """Return for each slot whether a request runs: whether it began at most so long ago."""
        begin, length = self.begin[i], int(self.a.durations[i])
        runs = [self.model.new_bool_var("") for _ in range(self.instance.horizon_slots)]
        for t, literal in enumerate(runs):
            self.model.add(sum(begin[max(0, t - length + 1) : t + 1]) == literal)
        return runs

    def _add_leases(self, replicas: Sequence[int]) -> None:
        """Add the offer and pricing of each machine, and of each replica."""
        model, usable = self.model, self.a.usable
        self.lease = {(b, q): model.new_bool_var("") for b in replicas for q in self.leases}
        self.host = {}
        for b in replicas:
            model.add(sum(self.lease[b, q] for q in self.leases) == self.on[b, b])
        for j in replicas:
            legal = [q for q in self.leases if usable[self.request[j], q[0]]]
            self.host |= {(j, q): model.new_bool_var("") for q in legal}
            model.add_exactly_one(self.host[j, q] for q in legal)
            for b in range(j + 1):
                for q in self.leases:
                    known = [self.host[j, q]] if q in legal else []
                    model.add_bool_or([*known, ~self.on[j, b], ~self.lease[b, q]])

    def _add_loads(self, replicas: Sequence[int]) -> None:
        """Add a cumulative for each machine and resource."""
        model, a = self.model, self.a
        for b in replicas:
            intervals = [
                model.new_optional_fixed_size_interval_var(
                    self.start[i], int(a.durations[i]), self.on[j, b], ""
                )
                for j, i in enumerate(self.request)
                if j >= b
            ]
            for r in range(2):
                room = sum(int(a.capacities[q[0], r]) * self.lease[b, q] for q in self.leases)
                demands = [int(a.demands[i, r]) for i in self.request[b:]]
                size = model.new_int_var(0, int(a.capacities[:, r].max()), "")
                model.add(size == room)
                model.add_cumulative(intervals, demands, size)

    def latency(self) -> Any:
        """Return the mean of the largest latencies."""
        a, model, terms = self.a, self.model, []
        for i in range(len(a.replicas)):
            row = a.whole_latencies[i]
            worst = model.new_int_var(0, int(row.max()), "")
            for j in np.flatnonzero(np.array(self.request) == i).tolist():
                hosts = ((int(row[q[0]]), v) for (k, q), v in self.host.items() if k == j)
                model.add(worst >= sum(ms * v for ms, v in hosts))
            terms.append(worst)
        return sum(terms) * (1 / (len(terms) * a.latency_scale))

    def interruption(self) -> Any:
        """Return the mean share of replicas that are interrupted."""
        a = self.a
        spot = sum(
            int(a.frequencies[q[0]])
            * int(a.replica_shares // a.replicas[self.request[j]])
            * literal
            for (j, q), literal in self.host.items()
            if q[1] == "spot"
        )
        return spot * (1 / (len(a.replicas) * a.interruption_scale))

    def cost(self) -> Any:
        """Return the price of all machines: of reserved ones for all slots.

        What a machine hosts takes no more of it than it has in the slots that are paid.
        """
        a, model, horizon, paid = self.a, self.model, self.instance.horizon_slots, []
        for b in range(len(self.request)):
            slots = {q: model.new_int_var(0, horizon, "") for q in self.leases}
            for q, count in slots.items():
                if q[1] == "reserved":
                    model.add(count == horizon * self.lease[b, q])
                else:
                    model.add(count <= horizon * self.lease[b, q])
                paid.append(int(a.slot_costs[q]) * count)
            model.add(sum(slots.values()) >= sum(self._busy(b)))
            for r in range(2):
                work = sum(
                    int(a.durations[i] * a.demands[i, r]) * self.on[j, b]
                    for j, i in enumerate(self.request)
                    if j >= b
                )
                model.add(work <= sum(int(a.capacities[q[0], r]) * n for q, n in slots.items()))
        return sum(paid) * (1 / a.cost_scale)

    def _busy(self, b: int) -> list[Any]:
        """Return for each slot whether a machine hosts something."""
        model = self.model
        slots = [model.new_bool_var("") for _ in range(self.instance.horizon_slots)]
        for j in range(b, len(self.request)):
            for slot, runs in zip(slots, self.runs[self.request[j]], strict=True):
                model.add_bool_or([slot, ~runs, ~self.on[j, b]])
        return slots

    def plan(self, solver: cp_model.CpSolver) -> dict[str, Any]:
        """Return the plan of a solution."""
        instance, machines = self.instance, []
        for b in range(len(self.request)):
            leased = [q for q in self.leases if solver.boolean_value(self.lease[b, q])]
            for offer, pricing in leased:
                hosted = [
                    (instance.requests[i].name, j - int(self.a.first[i]))
                    for j, i in enumerate(self.request)
                    if j >= b and solver.boolean_value(self.on[j, b])
                ]
                machines.append(
                    {
                        "location": instance.offers[offer].location,
                        "size": instance.offers[offer].size,
                        "pricing": pricing,
                        "replicas": hosted,
                    }
                )
        starts = {
            r.name: solver.value(s) for r, s in zip(instance.requests, self.start, strict=True)
        }
        return {"starts": starts, "instances": machines}
