"""Temporal: machines named by their first replica, each leased for one stretch of time.

A machine that is idle in between counts as two: on-demand and spot machines are paid by the slot,
so that this costs the same. It holds where the machines of an offer are not limited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from peers.cp import solved, weighted


def best(instance: Any, weights: Any, refused_cap: float | None, limits: Any, seed: int) -> Any:
    """Return plans of least ``weights @ (latency_ms, cost_usd, interruption)``, one a limit."""
    peer = _Model(instance)
    peer.model.minimize(weighted(weights, peer.latency(), peer.cost(), peer.interruption()))
    return solved(peer.model, limits, seed, peer.plan)


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
            if j and self.request[j] == self.request[j - 1]:
                # Replicas of a request are alike: their machines come in order.
                model.add(self._machine(j - 1) <= self._machine(j))
        latest = self.instance.horizon_slots - self.a.durations
        self.start = [model.new_int_var(0, int(t), "") for t in latest]
        self._add_leases(replicas)
        self._add_loads(replicas)
        self._add_slots(replicas)

    def _machine(self, j: int) -> Any:
        """Return the number of the machine of a replica."""
        return sum(b * self.on[j, b] for b in range(j + 1))

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

    def _add_slots(self, replicas: Sequence[int]) -> None:
        """Add the slots for which a machine is paid: of reserved ones all.

        What a machine hosts takes no more of it than it has in these slots, nor does what all
        machines of an offer and pricing host.
        """
        model, horizon = self.model, self.instance.horizon_slots
        self.slots = {key: model.new_int_var(0, horizon, "") for key in self.lease}
        for (b, q), count in self.slots.items():
            if q[1] == "reserved":
                model.add(count == horizon * self.lease[b, q])
            else:
                model.add(count <= horizon * self.lease[b, q])
        for b in replicas:
            self._add_stretch(b, replicas[b:])
        for q in self.leases:
            for r in range(2):
                work = sum(self._work(j, r) * v for (j, p), v in self.host.items() if p == q)
                paid = sum(self.slots[b, q] for b in replicas)
                model.add(work <= int(self.a.capacities[q[0], r]) * paid)

    def _work(self, j: int, r: int) -> int:
        """Return what a replica takes of a resource, times its slots."""
        i = self.request[j]
        return int(self.a.durations[i] * self.a.demands[i, r])

    def _add_stretch(self, b: int, replicas: Sequence[int]) -> None:
        """A machine is paid from the first start to the last end of what it hosts."""
        model, a, horizon = self.model, self.a, self.instance.horizon_slots
        opens, closes = model.new_int_var(0, horizon, ""), model.new_int_var(0, horizon, "")
        paid = sum(self.slots[b, q] for q in self.leases)
        model.add(paid >= closes - opens)
        for j in replicas:
            start, length = self.start[self.request[j]], int(a.durations[self.request[j]])
            model.add(opens <= start).only_enforce_if(self.on[j, b])
            model.add(closes >= start + length).only_enforce_if(self.on[j, b])
            model.add(paid >= length * self.on[j, b])
        for r in range(2):
            work = sum(self._work(j, r) * self.on[j, b] for j in replicas)
            rooms = (int(a.capacities[q[0], r]) * self.slots[b, q] for q in self.leases)
            model.add(work <= sum(rooms))

    def cost(self) -> Any:
        """Return the price of the slots of all machines."""
        prices = (int(self.a.slot_costs[q]) * count for (_, q), count in self.slots.items())
        return sum(prices) * (1 / self.a.cost_scale)

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
