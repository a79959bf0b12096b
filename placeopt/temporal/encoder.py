"""Temporal plans as integer vectors: a start per request, a pool per replica; bins are packed by a sweep over time.

A *pool* is an offer with either spot or firm machines; whether a firm machine is paid on demand or reserved is decided for
each machine after packing, by what is cheaper. The gene of a replica is an index into the request's *legal list*: the pools
in which it fits and that no other pool of the same offer makes pointless, ordered by latency, then price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder, Parts
from placeopt.temporal import packing as temporal_packing
from placeopt.temporal import parts as temporal_parts
from placeopt.temporal import variation as temporal_variation
from placeopt.temporal.instance import Temporal

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
        fits = (
            np.flatnonzero(problem.usable[k, offer])
            if duration[k] <= horizon
            else np.empty(0, dtype=int)
        )
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
        np.where(
            spot, [o.spot_interruption or 0.0 for o in (problem.offers[j] for j in offer)], 0.0
        ),
        np.where(np.isfinite(latency), latency, 0.0),
        offer,
        np.unique([problem.offers[j].location for j in offer], return_inverse=True)[1],
        np.array([-1 if o.max_instances is None else o.max_instances for o in problem.offers]),
        any(o.max_instances is not None for o in problem.offers),
    )


def _pool_prices(problem: Temporal, pool: Pool) -> tuple[float, float]:
    if pool.spot:
        return problem.slot_price(pool.offer, "spot"), NO_PRICE
    on_demand, reserved = (
        problem.slot_price(pool.offer, "on-demand"),
        problem.slot_price(pool.offer, "reserved"),
    )
    return min(on_demand, NO_PRICE), min(reserved * problem.horizon_slots, NO_PRICE)


class TemporalEncoder(Encoder):
    """The legal-pool encoding of a temporal instance; see `placeopt.encoders.Encoder` for the contract.

    Genes are the starts of the requests in [0, T - d], then for every replica an index into its request's legal list.
    """

    problem: Temporal

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        self.problem = problem
        self.objectives = tuple(objectives)
        self._columns = problem.columns(objectives)
        self.pools = pools(problem)
        self.tables = t = tables(problem)
        choices = np.diff(t.legal_first)
        self.served = choices > 0
        self._unserved = float(1 - self.served.mean())
        latest = np.where(self.served, t.horizon - t.duration, 0)
        self.upper = np.concatenate((latest, np.maximum(choices - 1, 0)[t.request])).astype(
            np.int64
        )
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)
        # A vector can break something only where machines are limited or a request fits nowhere.
        self.num_constraints = 2 if (t.most >= 0).any() or not self.served.all() else 0
        self._scratch, self._memory = (
            temporal_packing.new_scratch(t),
            temporal_packing.new_memory(t),
        )
        # What is left out of plans, because it cannot be served, is None.
        self._names = [
            r.name if ok else None for r, ok in zip(problem.requests, self.served, strict=True)
        ]
        self._replica_names = [
            [self._names[i], int(r - t.first[i])] if self.served[i] else None
            for r, i in enumerate(t.request)
        ]
        offers = [(problem.offers[p.offer], p.spot) for p in self.pools]
        self._machines = [
            (o.location, o.size, "spot" if spot else "on-demand") for o, spot in offers
        ]

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 2): excess machines, and the share of requests that cannot be served; (n, 0) if neither can be."""
        F, excess = temporal_packing.evaluate(
            np.ascontiguousarray(X, dtype=np.int64), self.tables, self._scratch, self._memory
        )
        G = np.empty((len(F), self.num_constraints))
        if self.num_constraints:
            G[:, 0], G[:, 1] = excess, self._unserved
        return F if self._columns == [0, 1, 2] else F[:, self._columns], G

    def parts(self, X: np.ndarray) -> Parts:
        """Return the parts of vectors: requests that locations serve which no request joins to others."""
        X = np.ascontiguousarray(X, dtype=np.int64)
        costs = temporal_packing.costs_by_place(X, self.tables, self._scratch, self._memory)
        label, key, values = temporal_parts.find(X, costs, self.tables)
        return Parts(label, key, values[:, :, self._columns])

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector; requests that cannot be served are left out of it."""
        t, s = self.tables, self._scratch
        genes = np.ascontiguousarray(genes, dtype=np.int64)
        temporal_packing.pack(genes, t, s, self._memory)
        hosted: dict[int, list[list[Any]]] = {}
        for name, b in zip(self._replica_names, s.bin_of.tolist(), strict=True):
            if name is not None:
                hosted.setdefault(b, []).append(name)
        machines = []
        for (first, count, _), (hourly, whole), (location, size, paid) in zip(
            s.pool.tolist(), t.price.tolist(), self._machines, strict=True
        ):
            for b, slots in enumerate(s.bins[first : first + count, 3].tolist(), start=first):
                pricing = paid if hourly * slots <= whole else "reserved"
                machines.append(
                    {"location": location, "size": size, "pricing": pricing, "replicas": hosted[b]}
                )
        return {
            "starts": {
                name: start
                for name, start in zip(self._names, genes.tolist(), strict=False)
                if name is not None
            },
            "instances": machines,
        }

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the vector of a plan: its starts and pools; what the encoding cannot say becomes gene 0."""
        t, genes = self.tables, np.zeros(self.num_genes, dtype=np.int64)
        position = {(*name,): r for r, name in enumerate(self._replica_names) if name is not None}
        number = {
            (self.problem.offers[p.offer].location, self.problem.offers[p.offer].size, p.spot): k
            for k, p in enumerate(self.pools)
        }
        genes[: len(t.duration)] = [plan["starts"].get(r.name, 0) for r in self.problem.requests]
        for machine in plan["instances"]:
            pool = number.get(
                (machine["location"], machine["size"], machine["pricing"] == "spot"), -1
            )
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

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by request-level crossover and one request move."""
        return temporal_variation.vary(rng, mothers, fathers, self.tables)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X changed by one request move."""
        return temporal_variation.vary(rng, X, X, self.tables)


def build(problem: Temporal, objectives: Sequence[Objective]) -> TemporalEncoder:
    """Return the encoder of a temporal instance."""
    return TemporalEncoder(problem, objectives)
