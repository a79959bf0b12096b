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
    head: np.ndarray  # (P,) first bin of each pool
    tail: np.ndarray  # (P,)
    arrive: np.ndarray  # (T + 1,) first request that starts at a slot
    arrive_next: np.ndarray  # (n,)
    leave: np.ndarray  # (T + 1,) first replica that ends at a slot
    leave_next: np.ndarray  # (R,)
    leased: np.ndarray  # (O,)


def _scratch(t: Tables) -> Packing:
    n, replicas, num_pools, slots = len(t.duration), int(t.first[-1]), len(t.offer), t.horizon + 1

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    by_replica = [zeros(replicas) for _ in range(6)]
    bin_of, pool, until, busy, after, leave_next = by_replica
    return Packing(
        bin_of, pool, zeros(replicas, 2), until, busy, after, zeros(num_pools), zeros(num_pools),
        zeros(slots), zeros(n), zeros(slots), leave_next, zeros(len(t.most)),
    )  # fmt: skip


@kernel
def _pack(genes, t, s):
    """Pack one vector in order of start; returns the number of bins.

    As requests come in order of start, what a bin holds after the current slot only shrinks, so that a test of the present
    load is a test of all later slots.
    """
    n = len(t.duration)
    s.head[:] = -1
    s.arrive[:] = -1
    s.leave[:] = -1
    for position in range(n - 1, -1, -1):
        i = t.rank[position]
        if t.legal_first[i + 1] > t.legal_first[i]:
            s.arrive_next[i] = s.arrive[genes[i]]
            s.arrive[genes[i]] = i
    bins = 0
    for slot in range(t.horizon):
        r = s.leave[slot]
        while r >= 0:
            b, i = s.bin_of[r], t.request[r]
            s.free[b, 0] += t.demand[i, 0]
            s.free[b, 1] += t.demand[i, 1]
            r = s.leave_next[r]
        i = s.arrive[slot]
        while i >= 0:
            bins = _place(genes, t, s, i, slot, bins)
            i = s.arrive_next[i]
    return bins


@kernel
def _place(genes, t, s, i, slot, bins):
    """Put every replica of request i into the bin of its pool with room that this makes least dearer, opening bins as needed."""
    n = len(t.duration)
    cpu, memory, end = t.demand[i, 0], t.demand[i, 1], slot + t.duration[i]
    for r in range(t.first[i], t.first[i + 1]):
        p = t.legal[t.legal_first[i] + genes[n + r]]
        b, least = -1, 1e300
        c = s.head[p]
        while c >= 0:
            if s.free[c, 0] >= cpu and s.free[c, 1] >= memory:
                longer = s.busy[c] + max(0, end - max(slot, s.until[c]))
                added = min(t.price[p, 0] * longer, t.price[p, 1]) - min(t.price[p, 0] * s.busy[c], t.price[p, 1])
                if added < least:
                    b, least = c, added
                    if added == 0.0:
                        break
            c = s.after[c]
        if b < 0:
            b = bins
            bins += 1
            s.pool[b] = p
            s.free[b, 0], s.free[b, 1] = t.capacity[p, 0], t.capacity[p, 1]
            s.until[b] = s.busy[b] = 0
            s.after[b] = -1
            if s.head[p] < 0:
                s.head[p] = b
            else:
                s.after[s.tail[p]] = b
            s.tail[p] = b
        s.free[b, 0] -= cpu
        s.free[b, 1] -= memory
        if end > s.until[b]:
            s.busy[b] += end - max(slot, s.until[b])
            s.until[b] = end
        s.bin_of[r] = b
        s.leave_next[r] = s.leave[end]
        s.leave[end] = r
    return bins


@kernel
def _judge(genes, t, s, bins, f):
    """Write (6), (7), (8) of a packed vector into f; return the machines beyond `most`, relative to it."""
    n = len(t.duration)
    latency = interruption = cost = excess = 0.0
    for i in range(n):
        if t.legal_first[i + 1] == t.legal_first[i]:
            continue
        worst = spot = 0.0
        for r in range(t.first[i], t.first[i + 1]):
            p = t.legal[t.legal_first[i] + genes[n + r]]
            worst = max(worst, t.latency[i, p])
            spot += t.frequency[p]
        latency += worst
        interruption += spot / (t.first[i + 1] - t.first[i])
    s.leased[:] = 0
    for b in range(bins):
        p = s.pool[b]
        cost += min(t.price[p, 0] * s.busy[b], t.price[p, 1])
        s.leased[t.offer[p]] += 1
    for o in range(len(t.most)):
        if 0 <= t.most[o] < s.leased[o]:
            excess += (s.leased[o] - t.most[o]) / max(1, t.most[o])
    f[0], f[1], f[2] = latency / n, cost, interruption / n
    return excess


@kernel
def _evaluate(X, t, s):
    """Return F (len(X), 3) and the excess of machines (len(X),)."""
    F = np.empty((len(X), 3))
    excess = np.empty(len(X))
    for k in range(len(X)):
        bins = _pack(X[k], t, s)
        excess[k] = _judge(X[k], t, s, bins, F[k])
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
