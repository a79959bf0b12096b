"""Greedy plans that choose starts too: slower than `placeopt.temporal.heuristics`.

They are better where machines are reused. Requests are taken by decreasing duration. For each,
every start that aligns with an end or a start of those already placed is tried, with the cheapest
pool and machine for each replica under the weights; the best is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.temporal.pools import PoolArrays, served, weighted_quality

#: Share of the amortised cost in the blend of costs: see `placeopt.temporal.heuristics`.
BLEND = 0.2


class _Machines(NamedTuple):
    """The machines leased so far: as many as there are replicas R, most of them unused."""

    pool: np.ndarray  # (R,)
    busy: np.ndarray  # (R,) busy slots
    used: np.ndarray  # (R, T, 3) vCPU, memory, replicas in each slot


class _Trial(NamedTuple):
    """What a request would do from one start; `room` and `fresh` are those of the machines."""

    room: np.ndarray  # (R,) replicas of the request that each machine can take
    fresh: np.ndarray  # (R,) slots in which each machine would newly be busy
    choice: np.ndarray  # (R,) index into the legal list, for each replica of the request
    machine: np.ndarray  # (R,) for each replica of the request


@kernel
def _fits(used, capacity, demand, begin, end):
    """Return how many replicas a machine can take over [begin, end), and its newly busy slots.

    `used` has shape (T, 3); `capacity` and `demand` have shape (2,).
    """
    fresh, cpu, memory = 0, capacity[0], capacity[1]
    for slot in range(begin, end):
        fresh += used[slot, 2] == 0
        cpu = min(cpu, capacity[0] - used[slot, 0])
        memory = min(memory, capacity[1] - used[slot, 1])
        if cpu < demand[0] or memory < demand[1]:
            return 0, 0
    return min(cpu // demand[0], memory // demand[1]), fresh


@kernel
def _added_cost(price, busy, fresh):
    """Return what `fresh` more busy slots cost on a machine with `busy`; `price` is (2,)."""
    return min(price[0] * (busy + fresh), price[1]) - min(price[0] * busy, price[1])


@kernel
def _cheapest_machine(instance, machines, trial, leased, pool, duration):
    """Return what one more replica in a pool costs, and the machine; `leased` is a new machine."""
    price = instance.price[pool]
    cost, machine = _added_cost(price, 0, duration), leased
    for b in range(leased):
        if machines.pool[b] == pool and trial.room[b] > 0:
            added = _added_cost(price, machines.busy[b], trial.fresh[b])
            if added < cost:
                cost, machine = added, b
    return cost, machine


@kernel
def _lease(instance, machines, trial, b, pool, demand, duration):
    """Make machine b an empty one of a pool, in place in `machines` and `trial`."""
    capacity = instance.capacity[pool]
    machines.pool[b], machines.busy[b], trial.fresh[b] = pool, 0, duration
    trial.room[b] = min(capacity[0] // demand[0], capacity[1] // demand[1])


@kernel
def _try(request, begin, weights, instance, leased, machines, trial):
    """Choose pool and machine for each replica of a request that starts at `begin`.

    Writes `trial`, and `pool` and `busy` of the machines from number `leased` on. Returns the
    weighted sum of what the request adds.
    """
    duration, demand = instance.duration[request], instance.demand[request]
    low, high = instance.legal_first[request], instance.legal_first[request + 1]
    for b in range(leased):
        capacity = instance.capacity[machines.pool[b]]
        trial.room[b], trial.fresh[b] = _fits(
            machines.used[b], capacity, demand, begin, begin + duration
        )
    total = worst_latency = 0.0
    for r in range(instance.first[request + 1] - instance.first[request]):
        best, trial.choice[r], trial.machine[r] = np.inf, 0, leased
        for index in range(high - low):
            pool = instance.legal[low + index]
            score = weighted_quality(instance, weights, request, pool, worst_latency)
            if score >= best:
                continue
            capacity, price = instance.capacity[pool], instance.price[pool]
            share = max(demand[0] / capacity[0], demand[1] / capacity[1])
            amortised = share * duration * min(price[0], price[1] / instance.horizon)
            added, machine = _cheapest_machine(instance, machines, trial, leased, pool, duration)
            score += weights[1] * (BLEND * amortised + (1 - BLEND) * added)
            if score < best:
                best, trial.choice[r], trial.machine[r] = score, index, machine
        pool = instance.legal[low + trial.choice[r]]
        worst_latency = max(worst_latency, instance.latency[request, pool])
        total += best
        if trial.machine[r] == leased:
            _lease(instance, machines, trial, leased, pool, demand, duration)
            leased += 1
        trial.room[trial.machine[r]] -= 1
    return total


@kernel
def _mark_starts(request, placed, genes, instance, mark):
    """Mark the starts of a request that are worth a look, in place in `mark`, bool (T,)."""
    duration = instance.duration[request]
    latest = instance.horizon - duration
    mark[:] = False
    mark[0] = mark[latest] = True
    for other in range(len(placed)):
        if placed[other]:
            end = genes[other] + instance.duration[other]
            if end <= latest:
                mark[end] = True
            if genes[other] >= duration:
                mark[genes[other] - duration] = True


@kernel
def _place(request, genes, instance, leased, machines, trial):
    """Place a request as `trial` says, in place in `genes` and `machines`; return `leased`."""
    first, end = instance.first[request], genes[request] + instance.duration[request]
    for r in range(instance.first[request + 1] - first):
        genes[len(instance.duration) + first + r] = trial.choice[r]
        b = trial.machine[r]
        leased = max(leased, b + 1)
        for slot in range(genes[request], end):
            machines.busy[b] += machines.used[b, slot, 2] == 0
            machines.used[b, slot, 0] += instance.demand[request, 0]
            machines.used[b, slot, 1] += instance.demand[request, 1]
            machines.used[b, slot, 2] += 1
    return leased


@kernel
def _build(weights, instance, machines, trial, placed, mark, genes):
    """Write the genes of one plan, shape (n + R,), in place; the others are scratch."""
    machines.busy[:], machines.used[:], placed[:], genes[:] = 0, 0, False, 0
    leased = 0
    for request in instance.rank:
        if not served(instance, request):
            continue
        _mark_starts(request, placed, genes, instance, mark)
        best = np.inf
        for begin in range(len(mark)):
            if mark[begin]:
                total = _try(request, begin, weights, instance, leased, machines, trial)
                if total < best - 1e-12:
                    best, genes[request] = total, begin
        _try(request, genes[request], weights, instance, leased, machines, trial)
        placed[request] = True
        leased = _place(request, genes, instance, leased, machines, trial)


def timed_vectors(weights: np.ndarray, instance: PoolArrays) -> np.ndarray:
    """Return one vector per weight vector, shape (len(weights), n + R).

    Weights, shape (k, 3), are per ms, USD and share.
    """
    n, replicas, slots = len(instance.duration), len(instance.request), instance.horizon
    shapes = replicas, replicas, (replicas, slots, 3)
    machines = _Machines(*(np.zeros(shape, dtype=np.int64) for shape in shapes))
    trial = _Trial(*(np.zeros(replicas, dtype=np.int64) for _ in _Trial._fields))
    placed, mark = np.zeros(n, dtype=np.bool_), np.zeros(slots, dtype=np.bool_)
    X = np.zeros((len(weights), n + replicas), dtype=np.int64)
    for row, genes in zip(weights, X, strict=True):
        _build(row, instance, machines, trial, placed, mark, genes)
    return X
