"""The decoder of temporal vectors, compiled: bins are packed by a sweep over time, pool by pool independent of each other.

As what is packed into a pool depends on no other pool, its cost is a function of the starts and numbers of replicas that are sent
there. Children share most of their pools with a parent, so that a memory of what pools cost spares most of the packing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel

#: Bins of a pool that a replica looks at: the oldest first, but in pools of more bins those that last gained room first. It
#: keeps the cost of a vector linear in its replicas.
MOST_LOOKS = 32
#: Pools of which the cost is remembered, a power of two.
REMEMBERED = 1 << 16


class Packing(NamedTuple):
    """Scratch memory of the decoder. The bins of a pool have consecutive numbers, as many as it gets replicas at most.

    A *run* is a request's consecutive replicas in one pool, an *exit* what one run takes back from one bin when it ends.
    """

    runs: np.ndarray  # (n + 1,) first run of each request
    run: np.ndarray  # (R, 3) pool, first replica, number of replicas
    bin_of: np.ndarray  # (R,) of each replica
    bins: (
        np.ndarray
    )  # (R, 5) free cpu and memory, end of the last busy slot, busy slots, position in the order
    order: np.ndarray  # (R,) bins of each pool in the order in which they are looked at
    pool: np.ndarray  # (P, 3) first bin, number of bins, position in the order at which the next bin with room is put
    wanted: np.ndarray  # (P,) whether to pack it
    arrive: np.ndarray  # (T + 1,) first request that starts at a slot
    arrive_next: np.ndarray  # (n,)
    leave: np.ndarray  # (T + 1,) first exit of a slot
    exits: np.ndarray  # (R, 5) pool, bin, cpu, memory, next exit
    candidate: np.ndarray  # (MOST_LOOKS,) bins that would become dearer
    added: np.ndarray  # (MOST_LOOKS,) by how much
    leased: np.ndarray  # (O,)


class Memory(NamedTuple):
    """What pools cost, by a hash of what is sent there; a new entry takes the place of the one in its way.

    The hash has 64 bits: two different pools are confused about once in 10^18 look-ups. That would mislead a search, not a front: what is
    reported is the referee's.
    """

    key: np.ndarray  # (K,) uint64
    cost: np.ndarray  # (K,)
    bins: np.ndarray  # (K,)
    sent: np.ndarray  # (P,) uint64, the hash of each pool of the vector at hand
    held: np.ndarray  # (P,) its replicas
    price: np.ndarray  # (P,) what it costs
    machines: np.ndarray  # (P,) its bins


def new_scratch(t: Any) -> Packing:
    """Return scratch memory for an instance's tables."""
    n, replicas, num_pools, slots = len(t.duration), int(t.first[-1]), len(t.offer), t.horizon + 1

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    return Packing(
        zeros(n + 1),
        zeros(replicas, 3),
        zeros(replicas),
        zeros(replicas, 5),
        zeros(replicas),
        zeros(num_pools, 3),
        np.ones(num_pools, dtype=np.bool_),
        zeros(slots),
        zeros(n),
        zeros(slots),
        zeros(replicas, 5),
        zeros(MOST_LOOKS),
        np.zeros(MOST_LOOKS),
        zeros(len(t.most)),
    )


def new_memory(t: Any) -> Memory:
    """Return an empty memory for an instance's tables."""
    num_pools = len(t.offer)
    return Memory(
        np.zeros(REMEMBERED, dtype=np.uint64),
        np.zeros(REMEMBERED),
        np.zeros(REMEMBERED, dtype=np.int64),
        np.zeros(num_pools, dtype=np.uint64),
        np.zeros(num_pools, dtype=np.int64),
        np.zeros(num_pools),
        np.zeros(num_pools, dtype=np.int64),
    )


@kernel
def _mixed(z):
    """Return 64 bits that look random: the output function of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _bring_forward(p, b, pool, bins, order):
    """Exchange a bin with one of the first that are looked at, with each of them in turn."""
    at = pool[p, 0] + pool[p, 2]
    pool[p, 2] = (pool[p, 2] + 1) % MOST_LOOKS
    other, place = order[at], bins[b, 4]
    order[at], order[place] = b, other
    bins[b, 4], bins[other, 4] = at, place


@kernel
def _least(added, found):
    """Return the position of the least of `found` numbers, and raise it so that it comes no more."""
    best = 0
    for k in range(1, found):
        if added[k] < added[best]:
            best = k
    added[best] = np.inf
    return best


@kernel
def _pack(genes, t, s):
    """Pack the wanted pools in order of start: each replica into the bin of its pool that it makes least dearer.

    As requests come in order of start, what a bin holds after the current slot only shrinks, so that a test of the present
    load is a test of all later slots. One long function: handing the arrays on to helpers costs more than the work.
    """
    duration, demand, rank, capacity, price = t.duration, t.demand, t.rank, t.capacity, t.price
    runs, run, bin_of, bins, order, pool, wanted = (
        s.runs,
        s.run,
        s.bin_of,
        s.bins,
        s.order,
        s.pool,
        s.wanted,
    )
    arrive, arrive_next, leave, exits, candidate, added = (
        s.arrive,
        s.arrive_next,
        s.leave,
        s.exits,
        s.candidate,
        s.added,
    )
    arrive[:] = -1
    leave[:] = -1
    for k in range(len(rank) - 1, -1, -1):
        i = rank[k]
        for q in range(runs[i], runs[i + 1]):
            if wanted[run[q, 0]]:
                arrive_next[i] = arrive[genes[i]]
                arrive[genes[i]] = i
                break
    for slot in range(t.horizon):
        e = leave[slot]
        while e >= 0:
            p, b = exits[e, 0], exits[e, 1]
            bins[b, 0] += exits[e, 2]
            bins[b, 1] += exits[e, 3]
            if pool[p, 1] > MOST_LOOKS and bins[b, 4] >= pool[p, 0] + MOST_LOOKS:
                _bring_forward(p, b, pool, bins, order)  # it has room again
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
                look, found, taken = pool[p, 0], 0, 0
                looks_end = look + min(pool[p, 1], MOST_LOOKS)
                while r < last:
                    b = -1
                    while b < 0 and look < looks_end:
                        c = order[look]
                        look += 1
                        if bins[c, 0] >= cpu and bins[c, 1] >= memory:
                            if end <= bins[c, 2]:
                                b = c
                            else:
                                longer = bins[c, 3] + end - max(slot, bins[c, 2])
                                candidate[found] = c
                                added[found] = min(hourly * longer, whole) - min(
                                    hourly * bins[c, 3], whole
                                )
                                found += 1
                    if b < 0 and taken < found:
                        b = candidate[_least(added, found)]
                        taken += 1
                    if b < 0:
                        b = pool[p, 0] + pool[p, 1]
                        pool[p, 1] += 1
                        bins[b, 0], bins[b, 1], bins[b, 2], bins[b, 3], bins[b, 4] = (
                            capacity[p, 0],
                            capacity[p, 1],
                            0,
                            0,
                            b,
                        )
                        order[b] = b
                        if pool[p, 1] > MOST_LOOKS:
                            _bring_forward(p, b, pool, bins, order)
                    begin = r
                    room_cpu, room_memory = bins[b, 0], bins[b, 1]
                    while r < last and room_cpu >= cpu and room_memory >= memory:
                        room_cpu -= cpu
                        room_memory -= memory
                        bin_of[r] = b
                        r += 1
                    bins[b, 0], bins[b, 1] = room_cpu, room_memory
                    if end > bins[b, 2]:
                        bins[b, 3] += end - max(slot, bins[b, 2])
                        bins[b, 2] = end
                    exits[begin, 0], exits[begin, 1], exits[begin, 4] = p, b, leave[end]
                    exits[begin, 2], exits[begin, 3] = (r - begin) * cpu, (r - begin) * memory
                    leave[end] = begin
            i = arrive_next[i]


@kernel
def _send(genes, t, s, sent, held, f):
    """Write the runs of a vector, hashes of what pools get, and (6) and (8) into f."""
    first, legal_first, legal, latencies, frequency, horizon = (
        t.first,
        t.legal_first,
        t.legal,
        t.latency,
        t.frequency,
        t.horizon,
    )
    runs, run = s.runs, s.run
    n = len(t.duration)
    sent[:] = 0
    held[:] = 0
    count = 0
    latency = interruption = 0.0
    for i in range(n):
        runs[i] = count
        low, last = legal_first[i], first[i + 1]
        if legal_first[i + 1] == low:
            continue
        worst = spot = 0.0
        mark = _mixed(np.uint64(i * horizon + genes[i] + 1) * np.uint64(0x9E3779B97F4A7C15))
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
            worst = max(worst, latencies[i, p])
            spot += frequency[p] * size
            r = q
        latency += worst
        interruption += spot / (last - first[i])
    runs[n] = count
    f[0], f[2] = latency / n, interruption / n


@kernel
def _recall(m, wanted):
    """Look up the pools of the vector at hand; mark as wanted those that are not known, and return how many."""
    key, cost, bins, sent, held, price, machines = (
        m.key,
        m.cost,
        m.bins,
        m.sent,
        m.held,
        m.price,
        m.machines,
    )
    missing = 0
    for p in range(len(held)):
        wanted[p] = False
        price[p], machines[p] = 0.0, 0
        if held[p] > 0:
            sent[p] = _mixed(sent[p] + np.uint64(p))
            k = np.int64(sent[p] & np.uint64(REMEMBERED - 1))
            if key[k] == sent[p]:
                price[p], machines[p] = cost[k], bins[k]
            else:
                wanted[p] = True
                missing += 1
    return missing


@kernel
def _number_bins(s, held):
    """Give each pool as many bin numbers as it gets replicas."""
    pool = s.pool
    count = 0
    for p in range(len(held)):
        pool[p, 0], pool[p, 1], pool[p, 2] = count, 0, 0
        count += held[p]


@kernel
def _remember(t, s, m):
    """Add up what the wanted pools cost, and write it into the memory."""
    pool, bins, prices, wanted = s.pool, s.bins, t.price, s.wanted
    key, cost, count, sent, price, machines = m.key, m.cost, m.bins, m.sent, m.price, m.machines
    for p in range(len(wanted)):
        if wanted[p]:
            total, hourly, whole = 0.0, prices[p, 0], prices[p, 1]
            for b in range(pool[p, 0], pool[p, 0] + pool[p, 1]):
                total += min(hourly * bins[b, 3], whole)
            k = np.int64(sent[p] & np.uint64(REMEMBERED - 1))
            key[k], cost[k], count[k] = sent[p], total, pool[p, 1]
            price[p], machines[p] = total, pool[p, 1]


@kernel
def _excess(t, leased, machines):
    """Return the machines beyond what may be leased, relative to it."""
    offer, most = t.offer, t.most
    leased[:] = 0
    for p in range(len(machines)):
        leased[offer[p]] += machines[p]
    excess = 0.0
    for o in range(len(most)):
        if 0 <= most[o] < leased[o]:
            excess += (leased[o] - most[o]) / max(1, most[o])
    return excess


@kernel
def _value(genes, t, s, m, f):
    """Write (6), (7), (8) of a vector into f; what its pools cost is left in the memory."""
    _send(genes, t, s, m.sent, m.held, f)
    if _recall(m, s.wanted) > 0:
        _number_bins(s, m.held)
        _pack(genes, t, s)
        _remember(t, s, m)
    f[1] = m.price.sum()


@kernel
def evaluate(X, t, s, m):
    """Return (6), (7), (8) of each vector, shape (len(X), 3), and the excess of machines, shape (len(X),)."""
    F, excess = np.empty((len(X), 3)), np.zeros(len(X))
    for k in range(len(X)):
        _value(X[k], t, s, m, F[k])
        if t.limited:
            excess[k] = _excess(t, s.leased, m.machines)
    return F, excess


@kernel
def costs_by_place(X, t, s, m):
    """Return what each location costs in each vector, shape (len(X), places)."""
    costs = np.zeros((len(X), t.place.max() + 1))
    f = np.empty(3)
    for k in range(len(X)):
        _value(X[k], t, s, m, f)
        for p in range(len(t.place)):
            costs[k, t.place[p]] += m.price[p]
    return costs


@kernel
def pack(genes, t, s, m):
    """Pack all pools of one vector; the bins are in `s`."""
    _send(genes, t, s, m.sent, m.held, np.empty(3))
    s.wanted[:] = True
    _number_bins(s, m.held)
    _pack(genes, t, s)
