"""The decoder of temporal vectors, compiled: a sweep over time packs replicas into bins.

A bin is a machine that may be leased. What is packed into a pool depends on no other pool, so that
the cost of a pool is a function of the starts and replicas that are sent there. Children share most
of their pools with a parent; a memory of the costs of pools spares most of the packing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import mix
from placeopt.core.kernels.compile import kernel
from placeopt.temporal.pools import PoolArrays

#: Bins of a pool that are tried for a replica, of those with room for some replica: in pools of
#: more such bins those that last gained room. So the time of a vector is linear in its replicas.
MAX_TRIED = 128
#: Bins of a pool up to which full ones stay among those that are tried, the oldest first.
FEW_BINS = 32
#: Pools whose cost is remembered, a power of two.
REMEMBERED = 1 << 16
#: Added to what is hashed. `mix` doubles with its argument once in 64 times: two replicas that
#: start at 5 would have the hash of one that starts at 10.
APART = np.uint64(0x632BE59BD9B4E019)
#: What `evaluate` is given where nobody asks for the costs of locations.
_NO_COSTS = np.zeros((0, 0))


class Packing(NamedTuple):
    """The vector at hand, packed: n requests, R replicas, P pools.

    The bins of a pool have consecutive numbers, as many as the pool gets replicas. A *run* is
    consecutive replicas of a request in one pool.
    """

    runs: np.ndarray  # (n + 1,) first run of each request
    run: np.ndarray  # (R, 3) pool, first replica, number of replicas
    sent: np.ndarray  # (P,) uint64, hash of the starts and replicas that each pool gets
    held: np.ndarray  # (P,) replicas that each pool gets
    wanted: np.ndarray  # (P,) bool, whether to pack the pool
    bin_of: np.ndarray  # (R,) bin of each replica
    bins: np.ndarray  # (R, 5) free vCPU and memory, end of the last busy slot, busy slots, position
    order: np.ndarray  # (R,) bins of each pool: the open ones as they are tried, then the full ones
    pool: np.ndarray  # (P, 4) first bin, bins, where the next bin with room is moved to, open bins
    cost: np.ndarray  # (P,) USD
    machines: np.ndarray  # (P,) number of bins


class PackingScratch(NamedTuple):
    """Arrays that a sweep borrows. An *exit* is what one run gives back to one bin when it ends."""

    arrive: np.ndarray  # (T + 1,) first request that starts at a slot
    arrive_next: np.ndarray  # (n,) next request that starts at the same slot
    leave: np.ndarray  # (T + 1,) first exit of a slot
    exits: np.ndarray  # (R, 5) pool, bin, vCPU, memory, next exit
    candidate: np.ndarray  # (MAX_TRIED,) bins that would cost more
    added: np.ndarray  # (MAX_TRIED,) by how much, USD
    leased: np.ndarray  # (O,) machines of each offer


class PoolMemory(NamedTuple):
    """What pools cost, by `Packing.sent`; a new entry replaces the one in its place.

    Two different pools have the same hash of 64 bits about once in 10^18 look-ups. That would
    mislead a search, but not a front: its values are the referee's.
    """

    key: np.ndarray  # (size,) uint64; the size is a power of two
    cost: np.ndarray  # (size,) USD
    machines: np.ndarray  # (size,) number of bins


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


def new_packing(instance: PoolArrays) -> Packing:
    """Return a packing to be filled."""
    n, replicas, num_pools = len(instance.duration), len(instance.request), len(instance.offer)
    return Packing(
        runs=_zeros(n + 1),
        run=_zeros(replicas, 3),
        sent=np.zeros(num_pools, dtype=np.uint64),
        held=_zeros(num_pools),
        wanted=np.ones(num_pools, dtype=np.bool_),
        bin_of=_zeros(replicas),
        bins=_zeros(replicas, 5),
        order=_zeros(replicas),
        pool=_zeros(num_pools, 4),
        cost=np.zeros(num_pools),
        machines=_zeros(num_pools),
    )


def new_scratch(instance: PoolArrays) -> PackingScratch:
    """Return scratch arrays for the sweeps of an instance."""
    slots, replicas = instance.horizon + 1, len(instance.request)
    return PackingScratch(
        arrive=_zeros(slots),
        arrive_next=_zeros(len(instance.duration)),
        leave=_zeros(slots),
        exits=_zeros(replicas, 5),
        candidate=_zeros(MAX_TRIED),
        added=np.zeros(MAX_TRIED),
        leased=_zeros(len(instance.max_machines)),
    )


def new_memory(size: int = REMEMBERED) -> PoolMemory:
    """Return an empty memory."""
    return PoolMemory(np.zeros(size, dtype=np.uint64), np.zeros(size), _zeros(size))


@kernel
def _exchange(b, at, bins, order):
    """Exchange bin b with the one at a place of `order`; `bins` and `order` change in place."""
    other, place = order[at], bins[b, 4]
    order[at], order[place] = b, other
    bins[b, 4], bins[other, 4] = at, place


@kernel
def _bring_forward(p, b, pool, bins, order):
    """Exchange bin b of pool p with one of the bins tried first, with each of them in turn.

    Changes `pool`, `bins` and `order` of a `Packing` in place.
    """
    at = pool[p, 0] + pool[p, 2]
    pool[p, 2] = (pool[p, 2] + 1) % MAX_TRIED
    _exchange(b, at, bins, order)


@kernel
def _open(p, b, pool, bins, order):
    """Count bin b of pool p among those with room, in place in `pool`, `bins` and `order`."""
    if bins[b, 4] >= pool[p, 0] + pool[p, 3]:
        _exchange(b, pool[p, 0] + pool[p, 3], bins, order)
        pool[p, 3] += 1
    if bins[b, 4] >= pool[p, 0] + MAX_TRIED:
        _bring_forward(p, b, pool, bins, order)


@kernel
def _close(p, b, pool, bins, order):
    """Count bin b of pool p among the full ones, in place in `pool`, `bins` and `order`."""
    pool[p, 3] -= 1
    _exchange(b, pool[p, 0] + pool[p, 3], bins, order)


@kernel
def _pop_min(added, found):
    """Return the position of the smallest of the first `found` numbers; set it to inf, in place."""
    best = 0
    for k in range(1, found):
        if added[k] < added[best]:
            best = k
    added[best] = np.inf
    return best


@kernel
def _sort_arrivals(genes, instance, packing, scratch):
    """Write into `scratch` which requests start at each slot, those that a wanted pool gets."""
    scratch.arrive[:] = -1
    for k in range(len(instance.rank) - 1, -1, -1):
        i = instance.rank[k]
        for q in range(packing.runs[i], packing.runs[i + 1]):
            if packing.wanted[packing.run[q, 0]]:
                scratch.arrive_next[i] = scratch.arrive[genes[i]]
                scratch.arrive[genes[i]] = i
                break


@kernel
def _pack(genes, instance, packing, scratch):
    """Pack the wanted pools by start: each replica into the bin that it makes dearer by the least.

    Requests come in order of start, so that the load of a bin only falls after the current slot;
    what fits into the present load fits later too. Writes `bin_of`, `bins`, `order` and `pool` of
    the packing. One long function on purpose: split into helpers it takes four times as long,
    since each call hands on all arrays.
    """
    duration, demand, least = instance.duration, instance.demand, instance.least_demand
    capacity, price = instance.capacity, instance.price
    runs, run, bin_of, bins = packing.runs, packing.run, packing.bin_of, packing.bins
    order, pool, wanted = packing.order, packing.pool, packing.wanted
    arrive, arrive_next, leave = scratch.arrive, scratch.arrive_next, scratch.leave
    exits, candidate, added = scratch.exits, scratch.candidate, scratch.added
    _sort_arrivals(genes, instance, packing, scratch)
    leave[:] = -1
    for slot in range(instance.horizon):
        e = leave[slot]
        while e >= 0:
            p, b = exits[e, 0], exits[e, 1]
            bins[b, 0] += exits[e, 2]
            bins[b, 1] += exits[e, 3]
            if bins[b, 4] >= pool[p, 0] + min(pool[p, 3], MAX_TRIED):
                _open(p, b, pool, bins, order)
            e = exits[e, 4]
        i = arrive[slot]
        while i >= 0:
            cpu, memory, end = demand[i, 0], demand[i, 1], slot + duration[i]
            for q in range(runs[i], runs[i + 1]):
                p, r = run[q, 0], run[q, 1]
                if not wanted[p]:
                    continue
                last = r + run[q, 2]
                hourly, whole = price[p, 0], price[p, 1]
                next_tried, result, taken = pool[p, 0], 0, 0
                tried_end = next_tried + min(pool[p, 3], MAX_TRIED)
                while r < last:
                    b = -1
                    while b < 0 and next_tried < tried_end:
                        c = order[next_tried]
                        next_tried += 1
                        if bins[c, 0] >= cpu and bins[c, 1] >= memory:
                            if end <= bins[c, 2]:
                                b = c  # busy anyway: it costs nothing more
                            else:
                                busy = bins[c, 3]
                                longer = busy + end - max(slot, bins[c, 2])
                                candidate[result] = c
                                added[result] = min(hourly * longer, whole)
                                added[result] -= min(hourly * busy, whole)
                                result += 1
                    if b < 0 and taken < result:
                        b = candidate[_pop_min(added, result)]
                        taken += 1
                    if b < 0:
                        b = pool[p, 0] + pool[p, 1]
                        pool[p, 1] += 1
                        bins[b, 0], bins[b, 1] = capacity[p, 0], capacity[p, 1]
                        bins[b, 2], bins[b, 3], bins[b, 4] = 0, 0, b
                        order[b] = b
                        _open(p, b, pool, bins, order)
                    begin = r
                    room_cpu, room_memory = bins[b, 0], bins[b, 1]
                    while r < last and room_cpu >= cpu and room_memory >= memory:
                        room_cpu -= cpu
                        room_memory -= memory
                        bin_of[r] = b
                        r += 1
                    bins[b, 0], bins[b, 1] = room_cpu, room_memory
                    if pool[p, 3] > FEW_BINS and (room_cpu < least[0] or room_memory < least[1]):
                        _close(p, b, pool, bins, order)
                    if end > bins[b, 2]:
                        bins[b, 3] += end - max(slot, bins[b, 2])
                        bins[b, 2] = end
                    exits[begin, 0], exits[begin, 1], exits[begin, 4] = p, b, leave[end]
                    exits[begin, 2], exits[begin, 3] = (r - begin) * cpu, (r - begin) * memory
                    leave[end] = begin
            i = arrive_next[i]


@kernel
def _send(genes, instance, packing, values):
    """Write `runs`, `run`, `sent` and `held` of a vector; write (6) and (8) into `values`, (3,)."""
    first, legal_first, legal = instance.first, instance.legal_first, instance.legal
    latencies, frequency = instance.latency, instance.frequency
    runs, run, sent, held = packing.runs, packing.run, packing.sent, packing.held
    n = len(instance.duration)
    sent[:] = 0
    held[:] = 0
    count = 0
    latency = interruption = 0.0
    for i in range(n):
        runs[i] = count
        low, last = legal_first[i], first[i + 1]
        if legal_first[i + 1] == low:
            continue
        largest = spot = 0.0
        start = np.uint64(i * instance.horizon + genes[i] + 1)
        mark = mix(start * np.uint64(0x9E3779B97F4A7C15) + APART)
        r = first[i]
        while r < last:
            gene, q = genes[n + r], r + 1
            while q < last and genes[n + q] == gene:
                q += 1
            p, size = legal[low + gene], q - r
            run[count, 0], run[count, 1], run[count, 2] = p, r, size
            count += 1
            sent[p] += mark * np.uint64(size)
            held[p] += size
            largest = max(largest, latencies[i, p])
            spot += frequency[p] * size
            r = q
        latency += largest
        interruption += spot / (last - first[i])
    runs[n] = count
    values[0], values[2] = latency / n, interruption / n


@kernel
def _recall(packing, memory):
    """Take the cost of pools from the memory; return how many pools it lacks.

    Writes `cost`, `machines` and `wanted` of the packing, and finishes the hashes in `sent`.
    """
    sent, held, wanted = packing.sent, packing.held, packing.wanted
    cost, machines = packing.cost, packing.machines
    missing = 0
    for p in range(len(held)):
        wanted[p] = False
        cost[p], machines[p] = 0.0, 0
        if held[p] > 0:
            sent[p] = mix(sent[p] + np.uint64(p))
            k = np.int64(sent[p] & np.uint64(len(memory.key) - 1))
            if memory.key[k] == sent[p]:
                cost[p], machines[p] = memory.cost[k], memory.machines[k]
            else:
                wanted[p] = True
                missing += 1
    return missing


@kernel
def _number_bins(pool, held):
    """Give each pool as many bin numbers as it gets replicas, in place in `pool`, shape (P, 3)."""
    count = 0
    for p in range(len(held)):
        pool[p, 0], pool[p, 1], pool[p, 2], pool[p, 3] = count, 0, 0, 0
        count += held[p]


@kernel
def _remember(instance, packing, memory):
    """Write the cost and the machines of the wanted pools into packing and memory."""
    pool, bins, sent = packing.pool, packing.bins, packing.sent
    for p in range(len(packing.wanted)):
        if packing.wanted[p]:
            total, hourly, whole = 0.0, instance.price[p, 0], instance.price[p, 1]
            for b in range(pool[p, 0], pool[p, 0] + pool[p, 1]):
                total += min(hourly * bins[b, 3], whole)
            k = np.int64(sent[p] & np.uint64(len(memory.key) - 1))
            memory.key[k], memory.cost[k], memory.machines[k] = sent[p], total, pool[p, 1]
            packing.cost[p], packing.machines[p] = total, pool[p, 1]


@kernel
def _excess(instance, leased, machines):
    """Return the machines beyond what may be leased, relative to it; overwrites `leased`, (O,)."""
    offer, limits = instance.offer, instance.max_machines
    leased[:] = 0
    for p in range(len(machines)):
        leased[offer[p]] += machines[p]
    excess = 0.0
    for o in range(len(limits)):
        if 0 <= limits[o] < leased[o]:
            excess += (leased[o] - limits[o]) / max(1, limits[o])
    return excess


@kernel
def _value(genes, instance, packing, scratch, memory, values):
    """Write (6), (7), (8) of a vector into `values`, (3,), and what its pools cost into packing."""
    _send(genes, instance, packing, values)
    if _recall(packing, memory) > 0:
        _number_bins(packing.pool, packing.held)
        _pack(genes, instance, packing, scratch)
        _remember(instance, packing, memory)
    values[1] = 0.0
    for p in range(len(packing.cost)):
        values[1] += packing.cost[p]


@kernel
def _evaluate(X, instance, packing, scratch, memory, F, excess, costs):
    """Write (6), (7), (8) of vectors into F, (len(X), 3), and their excess machines, (len(X),).

    Adds what each location costs in each to `costs`, (len(X), places), or (0, 0) for none.
    """
    for k in range(len(X)):
        _value(X[k], instance, packing, scratch, memory, F[k])
        if instance.limited:
            excess[k] = _excess(instance, scratch.leased, packing.machines)
        for p in range(len(instance.place) if len(costs) > 0 else 0):
            costs[k, instance.place[p]] += packing.cost[p]


def evaluate(
    X: np.ndarray,
    instance: PoolArrays,
    packing: Packing,
    scratch: PackingScratch,
    memory: PoolMemory,
    costs: np.ndarray = _NO_COSTS,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (6), (7), (8) of vectors, shape (len(X), 3), and their excess machines, (len(X),).

    What each location costs in USD is added to `costs`, shape (len(X), places), if it is given.
    """
    F, excess = np.empty((len(X), 3)), np.zeros(len(X))
    _evaluate(X, instance, packing, scratch, memory, F, excess, costs)
    return F, excess


def costs_by_place(
    X: np.ndarray,
    instance: PoolArrays,
    packing: Packing,
    scratch: PackingScratch,
    memory: PoolMemory,
) -> np.ndarray:
    """Return what each location costs in each vector in USD, shape (len(X), places)."""
    costs = np.zeros((len(X), int(instance.place.max()) + 1))
    evaluate(X, instance, packing, scratch, memory, costs)
    return costs


def pack(
    genes: np.ndarray, instance: PoolArrays, packing: Packing, scratch: PackingScratch
) -> None:
    """Pack all pools of one vector, in place in `packing`."""
    evaluate(genes[None], instance, packing, scratch, new_memory(1))
