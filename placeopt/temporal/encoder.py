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
        G = np.empty((len(F), self.num_constraints))
        if self.num_constraints:
            G[:, 0], G[:, 1] = excess, self._unserved
        return F if self._columns == [0, 1, 2] else F[:, self._columns], G

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
        hosted: dict[int, list[list[Any]]] = {}
        for name, b in zip(self._replica_names, packed.bin_of.tolist(), strict=True):
            if name is not None:
                hosted.setdefault(b, []).append(name)
        machines = []
        for (first, count, _, _), (hourly, whole), (location, size, paid) in zip(
            packed.pool.tolist(), self.arrays.price.tolist(), self._machines, strict=True
        ):
            for b, busy in enumerate(packed.bins[first : first + count, 3].tolist(), start=first):
                pricing = paid if hourly * busy <= whole else "reserved"
                machines.append(
                    {"location": location, "size": size, "pricing": pricing, "replicas": hosted[b]}
                )
        starts = zip(self._names, genes.tolist(), strict=False)
        return {
            "starts": {name: start for name, start in starts if name is not None},
            "instances": machines,
        }

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
        starts = [plan["starts"].get(r.name, 0) for r in self.problem.requests]
        pool = [-1] * len(self.arrays.request)
        for machine in plan["instances"]:
            kind = machine["location"], machine["size"], machine["pricing"] == "spot"
            number = self._pool_of.get(kind, -1)
            for replica in machine["replicas"]:
                r = self._numbers.get((*replica,), -1)
                if r >= 0:
                    pool[r] = number
        genes = np.concatenate((starts, self._gene_of[self.arrays.request, pool]))
        return np.clip(genes, self.lower, self.upper)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by crossover of whole requests, some of them mutated."""
        return variation.vary(rng, *self.checked_pairs(mothers, fathers), self.arrays)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X, each with one request changed."""
        return self.vary(rng, X, X)
