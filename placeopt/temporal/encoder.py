"""Temporal plans as integer vectors: a start for each request, a pool for each replica.

The decoder packs the replicas of each pool into machines by a sweep over time. The gene of a
replica is an index into its request's legal list: see `placeopt.temporal.pools`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder, Parts
from placeopt.temporal import packing, parts, variation
from placeopt.temporal.instance import Temporal
from placeopt.temporal.pools import pool_arrays, pools


class TemporalEncoder(Encoder):
    """The encoding of a temporal instance by legal pools.

    Genes are the starts of the requests in [0, T - d], then for every replica an index into its
    request's legal list.
    """

    problem: Temporal

    def __init__(self, problem: Temporal, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        self.arrays = arrays = pool_arrays(problem)
        choices = np.diff(arrays.legal_first)
        self.served = choices > 0
        self._unserved = float(1 - self.served.mean())
        latest = np.where(self.served, arrays.horizon - arrays.duration, 0)
        last_choice = np.maximum(choices - 1, 0)[arrays.request]
        self.upper = np.concatenate((latest, last_choice)).astype(np.int64)
        self.lower = np.zeros_like(self.upper)
        self.num_genes = len(self.upper)
        # Only limited machines, and requests that fit nowhere, make vectors infeasible.
        self.num_constraints = 2 if arrays.limited or not self.served.all() else 0
        self._packing = packing.new_packing(arrays)
        self._scratch, self._memory = packing.new_scratch(arrays), packing.new_memory()
        # Requests that cannot be served are left out of plans: their names are None.
        self._names = [
            request.name if served else None
            for request, served in zip(problem.requests, self.served, strict=True)
        ]
        self._machines = [
            (problem.offers[k].location, problem.offers[k].size, "spot" if spot else "on-demand")
            for k, spot in pools(problem)
        ]

    @cached_property
    def _replica_names(self) -> list[list[Any] | None]:
        """How plans name each replica; None where the request cannot be served."""
        first, request = self.arrays.first.tolist(), self.arrays.request.tolist()
        return [
            None if (name := self._names[i]) is None else [name, r - first[i]]
            for r, i in enumerate(request)
        ]

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objectives F (n, objectives) and the violations G (n, 2).

        G holds the excess machines, and the share of requests that cannot be served; its shape is
        (n, 0) where neither can occur.
        """
        X = self.checked(X)
        F, excess = packing.evaluate(X, self.arrays, self._packing, self._scratch, self._memory)
        G = self.violations(excess)
        return F if self._columns == [0, 1, 2] else F[:, self._columns], G

    def violations(self, excess: np.ndarray) -> np.ndarray:
        """Return G of vectors with so many machines too much, shape (n,)."""
        G = np.empty((len(excess), self.num_constraints))
        if self.num_constraints:
            G[:, 0], G[:, 1] = excess, self._unserved
        return G

    def parts(self, X: np.ndarray) -> Parts:
        """Return the parts of vectors: groups of locations that no request joins to others."""
        X = self.checked(X)
        costs = packing.costs_by_place(X, self.arrays, self._packing, self._scratch, self._memory)
        label, key, values = parts.find(X, costs, self.arrays)
        return Parts(label, key, values[:, :, self._columns])

    def decode(self, genes: np.ndarray) -> Plan:
        """Return the plan of one vector; requests that cannot be served are left out of it."""
        packed = self._packing
        genes = self.checked_one(genes)
        packing.pack(genes, self.arrays, packed, self._scratch)
        leased = [
            (b, pool, busy)
            for pool, (first, count, _, _) in enumerate(packed.pool.tolist())
            for b, busy in enumerate(packed.bins[first : first + count, 3].tolist(), start=first)
        ]
        return self.plan_of(genes.tolist(), packed.bin_of.tolist(), leased)

    def plan_of(
        self, starts: Sequence[int], host: Sequence[int], leased: Sequence[tuple[int, int, int]]
    ) -> Plan:
        """Return a plan; requests that cannot be served are left out of it.

        Parameters
        ----------
        starts : sequence of int
            First slots of the requests; what follows them is not read.
        host : sequence of int
            Number of the machine of each replica.
        leased : sequence of (int, int, int)
            Number, pool and busy slots of each machine.
        """
        hosted: dict[int, list[list[Any]]] = {}
        for name, number in zip(self._replica_names, host, strict=True):
            if name is not None:
                hosted.setdefault(number, []).append(name)
        prices, instances = self.arrays.price.tolist(), []
        for number, pool, busy in leased:
            (hourly, whole), (location, size, paid) = prices[pool], self._machines[pool]
            instances.append(
                {
                    "location": location,
                    "size": size,
                    "pricing": paid if hourly * busy <= whole else "reserved",
                    "replicas": hosted[number],
                }
            )
        named = zip(self._names, starts, strict=False)
        return {
            "starts": {name: start for name, start in named if name is not None},
            "instances": instances,
        }

    def bins_of(self, genes: np.ndarray) -> np.ndarray:
        """Return the number of each replica's bin in its pool, shape (R,), of one vector."""
        packing.pack(genes, self.arrays, self._packing, self._scratch)
        request, result = self.arrays.request, np.zeros(len(self.arrays.request), dtype=np.int64)
        hosted = np.flatnonzero(self.served[request])
        choice = genes[len(self.served) + hosted]
        pool = self.arrays.legal[self.arrays.legal_first[request[hosted]] + choice]
        result[hosted] = self._packing.bin_of[hosted] - self._packing.pool[pool, 0]
        return result

    @cached_property
    def _numbers(self) -> dict[tuple[Any, ...], int]:
        """The number of each replica by its name."""
        names = enumerate(self._replica_names)
        return {(*name,): r for r, name in names if name is not None}

    @cached_property
    def _pool_of(self) -> dict[tuple[str, str, bool], int]:
        """The pool of machines of a location, a size, and spot or not."""
        return {
            (location, size, paid == "spot"): k
            for k, (location, size, paid) in enumerate(self._machines)
        }

    @cached_property
    def _gene_of(self) -> np.ndarray:
        """The gene that sends a request to a pool, shape (n, P + 1).

        It is 0 for pools that are not legal, and in the last column, which stands for no pool.
        """
        first, legal = self.arrays.legal_first, self.arrays.legal
        counts = np.diff(first)
        genes = np.zeros((len(counts), len(self._machines) + 1), dtype=np.int32)
        requests = np.repeat(np.arange(len(counts)), counts)
        genes[requests, legal] = np.arange(len(legal)) - np.repeat(first[:-1], counts)
        return genes

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan; what the encoding cannot express becomes gene 0."""
        with self.problem.reading(plan):
            return self._encoded(plan)

    def _encoded(self, plan: Plan) -> np.ndarray:
        return self.with_machines(plan)[: self.num_genes]

    def with_machines(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan, and the number of each replica's machine: (n + 2 R,)."""
        starts = [plan["starts"].get(r.name, 0) for r in self.problem.requests]
        pool, numbers = ([k] * len(self.arrays.request) for k in (-1, 0))
        used = (machine for machine in plan["instances"] if machine["replicas"])
        for number, machine in enumerate(used):
            kind = machine["location"], machine["size"], machine["pricing"] == "spot"
            for replica in machine["replicas"]:
                r = self._numbers.get((*replica,), -1)
                if r >= 0:
                    pool[r], numbers[r] = self._pool_of.get(kind, -1), number
        genes = np.concatenate((starts, self._gene_of[self.arrays.request, pool]))
        last = np.minimum(numbers, len(numbers))  # a plan may name a replica twice
        return np.concatenate((np.clip(genes, self.lower, self.upper), last))

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by crossover of whole requests, some of them mutated."""
        return variation.vary(rng, *self.checked_pairs(mothers, fathers), self.arrays)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X, each with one request changed."""
        return self.vary(rng, X, X)
