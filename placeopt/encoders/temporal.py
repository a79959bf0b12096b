"""Temporal plans as integer vectors: a start per request, a pool per replica; bins are packed by a sweep over time.

A *pool* is an offer with either spot or firm machines; whether a firm machine is paid on demand or reserved is decided for
each machine after packing, by what is cheaper. The gene of a replica is an index into the request's *legal list*: the pools
in which it fits and that no other pool of the same offer makes pointless, ordered by latency, then price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.compiled import kernel
from placeopt.encoders import temporal_variation
from placeopt.front import Objective
from placeopt.problems.temporal import Temporal

NO_PRICE = 1e300
#: Bins of a pool that a replica looks at: the oldest first, but in pools of more bins those that last gained room first. It
#: keeps the cost of a vector linear in its replicas.
MOST_LOOKS = 32


class Pool(NamedTuple):
    """Machines of one offer that are all spot or all firm."""

    offer: int
    spot: bool


class Tables(NamedTuple):
    """The arrays that the kernels read.

    Requests n, replicas R, pools P, offers O. A request that cannot be served at all has no legal pool and is left out.
    """

    horizon: int
    duration: np.ndarray  # (n,)
    demand: np.ndarray  # (n, 2)
    first: np.ndarray  # (n + 1,) first replica of each request
    request: np.ndarray  # (R,) request of each replica
    rank: np.ndarray  # (n,) requests in the order in which equal starts are packed
    legal_first: np.ndarray  # (n + 1,) into legal
    legal: np.ndarray  # pools
    capacity: np.ndarray  # (P, 2)
    price: np.ndarray  # (P, 2) per busy slot; for the whole horizon
    frequency: np.ndarray  # (P,) 0 for firm pools
    latency: np.ndarray  # (n, P)
    offer: np.ndarray  # (P,)
    place: np.ndarray  # (P,) a number per location
    most: np.ndarray  # (O,) machines of each offer, -1 for no limit
    limited: bool  # whether any offer has a limit


def pools(problem: Temporal) -> list[Pool]:
    """Return the pools of an instance; spot is left out where on-demand is as cheap, as it would only interrupt."""
    found = []
    for k, offer in enumerate(problem.offers):
        on_demand, spot = offer.on_demand_usd_per_hour, offer.spot_usd_per_hour
        if on_demand is not None or offer.reserved_usd_per_hour is not None:
            found.append(Pool(k, False))
        if spot is not None and (on_demand is None or spot < on_demand):
            found.append(Pool(k, True))
    return found


def tables(problem: Temporal) -> Tables:
    """Return the arrays of an instance."""
    every = pools(problem)
    offer = np.array([p.offer for p in every])
    spot = np.array([p.spot for p in every])
    horizon = problem.horizon_slots
    price = np.array([_pool_prices(problem, p) for p in every])
    duration = np.array([r.duration_slots for r in problem.requests])
    replicas = np.array([r.replicas for r in problem.requests])
    latency = problem.latencies[:, offer]
    legal = []
    for k in range(len(duration)):
        fits = np.flatnonzero(problem.usable[k, offer]) if duration[k] <= horizon else np.empty(0, dtype=int)
        rate = np.minimum(price[fits, 0], price[fits, 1] / horizon)
        legal.append(fits[np.lexsort((fits, rate, latency[k, fits]))])
    share = problem.demands / problem.capacities.max(axis=0)
    return Tables(
        horizon,
        duration,
        problem.demands,
        np.concatenate(([0], replicas.cumsum())),
        np.repeat(np.arange(len(replicas)), replicas),
        np.lexsort((-share.max(axis=1), -duration)),
        np.concatenate(([0], np.cumsum([len(x) for x in legal]))),
        np.concatenate(legal).astype(np.int64),
        problem.capacities[offer],
        price,
        np.where(spot, [o.spot_interruption or 0.0 for o in (problem.offers[j] for j in offer)], 0.0),
        np.where(np.isfinite(latency), latency, 0.0),
        offer,
        np.unique([problem.offers[j].location for j in offer], return_inverse=True)[1],
        np.array([-1 if o.max_instances is None else o.max_instances for o in problem.offers]),
        any(o.max_instances is not None for o in problem.offers),
    )


def _pool_prices(problem: Temporal, pool: Pool) -> tuple[float, float]:
    if pool.spot:
        return problem.slot_price(pool.offer, "spot"), NO_PRICE
    on_demand, reserved = problem.slot_price(pool.offer, "on-demand"), problem.slot_price(pool.offer, "reserved")
    return min(on_demand, NO_PRICE), min(reserved * problem.horizon_slots, NO_PRICE)


class Packing(NamedTuple):
    """Scratch memory of the decoder: bins, and lists by slot. `capacity` bounds the number of bins by the number of replicas."""

    bin_of: np.ndarray  # (R,)
    pool: np.ndarray  # (R,) of each bin
    free: np.ndarray  # (R, 2)
    until: np.ndarray  # (R,) end of the last busy slot
    busy: np.ndarray  # (R,) busy slots
    after: np.ndarray  # (R,) next bin of the same pool
    before: np.ndarray  # (R,) the one that comes before, where it is not the first
    head: np.ndarray  # (P,) first bin of each pool
    tail: np.ndarray  # (P,)
    opened: np.ndarray  # (P,) its bins
    arrive: np.ndarray  # (T + 1,) first request that starts at a slot
    arrive_next: np.ndarray  # (n,)
    leave: np.ndarray  # (T + 1,) first replica that ends at a slot
    leave_next: np.ndarray  # (R,)
    leased: np.ndarray  # (O,)


def _scratch(t: Tables) -> Packing:
    n, replicas, num_pools, slots = len(t.duration), int(t.first[-1]), len(t.offer), t.horizon + 1

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    by_replica = [zeros(replicas) for _ in range(7)]
    bin_of, pool, until, busy, after, before, leave_next = by_replica
    return Packing(
        bin_of, pool, zeros(replicas, 2), until, busy, after, before, zeros(num_pools), zeros(num_pools), zeros(num_pools),
        zeros(slots), zeros(n), zeros(slots), leave_next, zeros(len(t.most)),
    )  # fmt: skip


@kernel
def _append(p, b, head, tail, after, before, in_front):
    """Put a new bin at the end of its pool, or in front."""
    if head[p] < 0:
        after[b] = -1
        head[p] = tail[p] = b
    elif in_front:
        after[b], before[head[p]] = head[p], b
        head[p] = b
    else:
        after[b], before[b] = -1, tail[p]
        after[tail[p]] = b
        tail[p] = b


@kernel
def _bring_to_front(p, b, head, tail, after, before):
    """Move a bin that is not the first of its pool to the front."""
    after[before[b]] = after[b]
    if after[b] >= 0:
        before[after[b]] = before[b]
    else:
        tail[p] = before[b]
    before[head[p]], after[b] = b, head[p]
    head[p] = b


@kernel
def _pack(genes, t, s):
    """Pack one vector in order of start: each replica into the bin of its pool that it makes least dearer; returns the bins.

    As requests come in order of start, what a bin holds after the current slot only shrinks, so that a test of the present
    load is a test of all later slots.
    """
    # Fields are taken out of the tuples once: reading them in the loops costs as much as the work.
    duration, demand, first, request, legal_first, legal = t.duration, t.demand, t.first, t.request, t.legal_first, t.legal
    capacity, price = t.capacity, t.price
    bin_of, pool, free, until, busy, after, before = s.bin_of, s.pool, s.free, s.until, s.busy, s.after, s.before
    head, tail, opened, arrive, arrive_next, leave, leave_next = s.head, s.tail, s.opened, s.arrive, s.arrive_next, s.leave, s.leave_next
    n = len(duration)
    head[:] = -1
    opened[:] = 0
    arrive[:] = -1
    leave[:] = -1
    for i in t.rank[::-1]:
        if legal_first[i + 1] > legal_first[i]:
            arrive_next[i] = arrive[genes[i]]
            arrive[genes[i]] = i
    bins = 0
    for slot in range(t.horizon):
        r = leave[slot]
        while r >= 0:
            b, i = bin_of[r], request[r]
            free[b, 0] += demand[i, 0]
            free[b, 1] += demand[i, 1]
            p = pool[b]
            if opened[p] > MOST_LOOKS and head[p] != b:
                _bring_to_front(p, b, head, tail, after, before)  # it has room again
            r = leave_next[r]
        i = arrive[slot]
        while i >= 0:
            cpu, memory, end = demand[i, 0], demand[i, 1], slot + duration[i]
            last_pool, last_bin = -1, -1
            for r in range(first[i], first[i + 1]):
                p = legal[legal_first[i] + genes[n + r]]
                hourly, whole = price[p, 0], price[p, 1]
                b, least = -1, 1e300
                c = head[p]
                looks = 0
                if p == last_pool and free[last_bin, 0] >= cpu and free[last_bin, 1] >= memory:
                    b, c = last_bin, -1  # where the previous replica went, this one adds nothing
                while c >= 0 and looks < MOST_LOOKS:
                    looks += 1
                    if free[c, 0] >= cpu and free[c, 1] >= memory:
                        if end <= until[c]:
                            b = c
                            break
                        longer = busy[c] + end - max(slot, until[c])
                        added = min(hourly * longer, whole) - min(hourly * busy[c], whole)
                        if added < least:
                            b, least = c, added
                    c = after[c]
                if b < 0:
                    b = bins
                    bins += 1
                    pool[b] = p
                    free[b, 0], free[b, 1] = capacity[p, 0], capacity[p, 1]
                    until[b] = busy[b] = 0
                    opened[p] += 1
                    _append(p, b, head, tail, after, before, opened[p] > MOST_LOOKS)
                free[b, 0] -= cpu
                free[b, 1] -= memory
                if end > until[b]:
                    busy[b] += end - max(slot, until[b])
                    until[b] = end
                last_pool, last_bin = p, b
                bin_of[r] = b
                leave_next[r] = leave[end]
                leave[end] = r
            i = arrive_next[i]
    return bins


@kernel
def _judge(genes, t, s, bins, f):
    """Write (6), (7), (8) of a packed vector into f; return the machines beyond `most`, relative to it."""
    first, legal_first, legal, latencies, frequency = t.first, t.legal_first, t.legal, t.latency, t.frequency
    pool, busy, price, offer, leased, most = s.pool, s.busy, t.price, t.offer, s.leased, t.most
    n = len(t.duration)
    latency = interruption = cost = excess = 0.0
    for i in range(n):
        low = legal_first[i]
        if legal_first[i + 1] == low:
            continue
        worst = spot = 0.0
        for r in range(first[i], first[i + 1]):
            p = legal[low + genes[n + r]]
            worst = max(worst, latencies[i, p])
            spot += frequency[p]
        latency += worst
        interruption += spot / (first[i + 1] - first[i])
    for b in range(bins):
        p = pool[b]
        cost += min(price[p, 0] * busy[b], price[p, 1])
    if t.limited:
        leased[:] = 0
        for b in range(bins):
            leased[offer[pool[b]]] += 1
        for o in range(len(most)):
            if 0 <= most[o] < leased[o]:
                excess += (leased[o] - most[o]) / max(1, most[o])
    f[0], f[1], f[2] = latency / n, cost, interruption / n
    return excess


@kernel
def _evaluate(X, t, s):
    """Return F (len(X), 3) and the excess of machines (len(X),)."""
    F = np.empty((len(X), 3))
    excess = np.empty(len(X))
    for k in range(len(X)):
        genes = X[k]
        excess[k] = _judge(genes, t, s, _pack(genes, t, s), F[k])
    return F, excess


class TemporalEncoder:
    """The legal-pool encoding of a temporal instance; see `placeopt.encoders.Encoder` for the contract.

    Genes are the starts of the requests in [0, T - d], then for every replica an index into its request's legal list.
    """

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        self.problem = problem
        self.objectives = tuple(objectives)
        self._columns = problem.columns(objectives)
        self.pools = pools(problem)
        self.tables = t = tables(problem)
        choices = np.diff(t.legal_first)
        self.served = choices > 0
        latest = np.where(self.served, t.horizon - t.duration, 0)
        self.upper = np.concatenate((latest, np.maximum(choices - 1, 0)[t.request])).astype(np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)
        # A vector can break something only where machines are limited or a request fits nowhere.
        self.num_constraints = 2 if (t.most >= 0).any() or not self.served.all() else 0
        self._scratch = _scratch(t)
        # What is left out of plans, because it cannot be served, is None.
        self._names = [r.name if ok else None for r, ok in zip(problem.requests, self.served, strict=True)]
        self._replica_names = [[self._names[i], int(r - t.first[i])] if self.served[i] else None for r, i in enumerate(t.request)]
        offers = [(problem.offers[p.offer], p.spot) for p in self.pools]
        self._machines = [(o.location, o.size, "spot" if spot else "on-demand") for o, spot in offers]

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 2): excess machines, and the share of requests that cannot be served; (n, 0) if neither can be."""
        F, excess = _evaluate(np.ascontiguousarray(X, dtype=np.int64), self.tables, self._scratch)
        unserved = np.full(len(F), float(1 - self.served.mean()))
        return F[:, self._columns], np.stack((excess, unserved), axis=1)[:, : self.num_constraints]

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; requests that cannot be served are left out of it."""
        t, s = self.tables, self._scratch
        genes = np.ascontiguousarray(genes, dtype=np.int64)
        bins = _pack(genes, t, s)
        hosted: list[list[list[Any]]] = [[] for _ in range(bins)]
        for name, b in zip(self._replica_names, s.bin_of.tolist(), strict=True):
            if name is not None:
                hosted[b].append(name)
        firm = (t.price[s.pool[:bins], 0] * s.busy[:bins] <= t.price[s.pool[:bins], 1]).tolist()
        machines = [
            {"location": location, "size": size, "pricing": paid if on_demand else "reserved", "replicas": replicas}
            for (location, size, paid), on_demand, replicas in zip([self._machines[p] for p in s.pool[:bins].tolist()], firm, hosted, strict=True)
        ]
        return {"starts": {name: start for name, start in zip(self._names, genes.tolist(), strict=False) if name is not None}, "instances": machines}

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the vector of a plan: its starts and pools; what the encoding cannot say becomes gene 0."""
        t, genes = self.tables, np.zeros(self.num_genes, dtype=np.int64)
        position = {(*name,): r for r, name in enumerate(self._replica_names) if name is not None}
        number = {(self.problem.offers[p.offer].location, self.problem.offers[p.offer].size, p.spot): k for k, p in enumerate(self.pools)}
        genes[: len(t.duration)] = [plan["starts"].get(r.name, 0) for r in self.problem.requests]
        for machine in plan["instances"]:
            pool = number.get((machine["location"], machine["size"], machine["pricing"] == "spot"), -1)
            for replica in machine["replicas"]:
                r = position.get((*replica,), -1)
                if r < 0:
                    continue
                i = t.request[r]
                found = np.flatnonzero(t.legal[t.legal_first[i] : t.legal_first[i + 1]] == pool)
                genes[len(t.duration) + r] = found[0] if len(found) else 0
        return np.clip(genes, self.lower, self.upper)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return vectors drawn uniformly within the bounds."""
        return rng.integers(0, self.upper + 1, size=(count, self.num_genes))

    def vary(self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray) -> np.ndarray:
        """Return children by request-level crossover and one request move."""
        return temporal_variation.vary(rng, mothers, fathers, self.tables)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X changed by one request move."""
        return temporal_variation.vary(rng, X, X, self.tables)


def build(problem: Temporal, objectives: Sequence[Objective]) -> TemporalEncoder:
    """Return the encoder of a temporal instance."""
    return TemporalEncoder(problem, objectives)
