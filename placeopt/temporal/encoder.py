"""Temporal plans as integer vectors: a start for each request, a pool for each replica.

The decoder packs the replicas of each pool into machines by a sweep over time. The gene of a
replica is an index into its request's legal list: see `placeopt.temporal.arrays`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder, Parts
from placeopt.core.kernels.common import below, join, mix, root
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.temporal import packing
from placeopt.temporal.pools import PoolArrays, pool_arrays, pool_of, pools, served
from placeopt.temporal.problem import Temporal

# -- parts -----------------------------------------------------------------------------------------


@kernel
def _join_places(genes, instance, parent):
    """Make `parent`, shape (places,), the sets of locations that requests are spread over."""
    n = len(instance.duration)
    for place in range(len(parent)):
        parent[place] = place
    for request in range(n):
        begin = instance.first[request]
        last = -1
        for replica in range(begin + 1, instance.first[request + 1]):
            gene = genes[n + replica]
            if gene != genes[n + begin] and gene != last:
                last = gene
                join(
                    parent,
                    instance.place[pool_of(instance, genes, replica)],
                    instance.place[pool_of(instance, genes, begin)],
                )


@kernel
def _add(genes, instance, request, parent, label, key, values):
    """Add a request to its part, in place: its hash to `key`, its terms of (6), (8) to `values`."""
    n, begin, end = len(instance.duration), instance.first[request], instance.first[request + 1]
    part = root(parent, instance.place[pool_of(instance, genes, begin)])
    label[request] = part
    key[part] += mix(np.uint64(request + 1) * np.uint64(0x9E3779B97F4A7C15))
    latency = interruption = 0.0
    gene, pool = -1, 0
    for replica in range(begin, end):
        label[n + replica] = part
        if genes[n + replica] != gene:
            gene = genes[n + replica]
            pool = pool_of(instance, genes, replica)
            latency = max(latency, instance.latency[request, pool])
        interruption += instance.frequency[pool]
    values[part, 0] += latency / n
    values[part, 2] += interruption / ((end - begin) * n)


@allocating_kernel
def find(X, costs, instance):
    """Return the parts of k vectors X, shape (k, num_genes).

    `costs`, shape (k, places), is what each location costs. A part has the number of one of its
    locations. Returns the part of each gene, (k, num_genes), the key of each part, (k, places), and
    its values (6), (7), (8), (k, places, 3).
    """
    label = np.full(X.shape, -1, dtype=np.int16)
    key = np.zeros(costs.shape, dtype=np.uint64)
    values = np.zeros((*costs.shape, 3))
    parent = np.empty(costs.shape[1], dtype=np.int64)
    for k in range(len(X)):
        _join_places(X[k], instance, parent)
        for request in range(len(instance.duration)):
            if served(instance, request):
                _add(X[k], instance, request, parent, label[k], key[k], values[k])
        for place in range(len(parent)):
            values[k, root(parent, place), 1] += costs[k, place]
    return label, key, values


# -- children --------------------------------------------------------------------------------------

#: Tenths of pairs of parents that are crossed, and of their children that are mutated.
CROSSED, MUTATED = 9, 4
#: Tenths of crossovers up to which: the starts of one location are copied; a few requests; each
#: request with probability 1/2. The rest copy all requests of one location.
CROSS_STARTS, CROSS_FEW, CROSS_HALF = 1, 2, 5
#: 33rds of mutations up to which: a start is drawn; two requests are aligned; one replica moves to
#: a near pool; all replicas do. The rest send a request to another one's pool.
NEW_START, ALIGN, MOVE_ONE, MOVE_ALL = 3, 24, 30, 32
#: Requests that are drawn to find one that shares a pool with a given one.
MAX_COMPANIONS = 12
#: Farthest move along a legal list.
MAX_STEP = 4


@kernel
def _inherit(child, father, instance, request):
    """Copy the genes of a request from the father into the child, in place."""
    n = len(instance.duration)
    child[request] = father[request]
    for replica in range(n + instance.first[request], n + instance.first[request + 1]):
        child[replica] = father[replica]


@kernel
def _home(genes, instance, request):
    """Return the location of the first replica of a request."""
    return instance.place[pool_of(instance, genes, instance.first[request])]


@kernel
def _inherit_starts(child, father, instance, other):
    """Copy starts into the child, in place: of the requests served where the father serves one.

    These are the requests that the child serves from the location of the father's request `other`.
    """
    if served(instance, other):
        place = _home(father, instance, other)
        for request in range(len(instance.duration)):
            if served(instance, request) and _home(child, instance, request) == place:
                child[request] = father[request]


@kernel
def _inherit_location(child, father, instance, other):
    """Copy all requests that either parent serves from the location of the father's `other`.

    Packing decides about a location as a whole. `child`, still the mother, changes in place.
    """
    if served(instance, other):
        place = _home(father, instance, other)
        for request in range(len(instance.duration)):
            if served(instance, request) and (
                _home(father, instance, request) == place
                or _home(child, instance, request) == place
            ):
                _inherit(child, father, instance, request)


@kernel
def _cross(child, father, instance, random):
    """Copy some of the father's genes into the child, a copy of the mother, in place."""
    n = len(instance.duration)
    kind = below(random, 10)
    if kind < CROSS_STARTS:
        _inherit_starts(child, father, instance, below(random, n))
    elif kind < CROSS_FEW:
        for _ in range(1 + below(random, max(1, n // 4))):
            _inherit(child, father, instance, below(random, n))
    elif kind < CROSS_HALF:
        for request in range(n):
            if below(random, 2) == 0:
                _inherit(child, father, instance, request)
    else:
        _inherit_location(child, father, instance, below(random, n))


@kernel
def _random_replica(instance, request, random):
    """Return a random replica of a request."""
    first = instance.first[request]
    return first + below(random, instance.first[request + 1] - first)


@kernel
def _companion(child, instance, request, random):
    """Return a random request; if one is found in a few draws, one that shares a pool."""
    own = pool_of(instance, child, _random_replica(instance, request, random))
    other = request
    for _ in range(MAX_COMPANIONS):
        other = below(random, len(instance.duration))
        if other == request or not served(instance, other):
            continue
        if pool_of(instance, child, _random_replica(instance, other, random)) == own:
            break
    return other


@kernel
def _align(child, instance, request, other, random):
    """Let a request start or end when another one starts or ends, in place."""
    kind = below(random, 4)
    start = child[other]
    if kind == 1 or kind == 3:
        start += instance.duration[other]
    if kind >= 2:
        start -= instance.duration[request]
    child[request] = min(max(start, 0), instance.horizon - instance.duration[request])


@kernel
def _new_start(child, instance, request, random):
    """Give a request the first, the last or a random start, in place."""
    latest = instance.horizon - instance.duration[request]
    kind = below(random, 3)
    if kind == 0:
        child[request] = 0
    else:
        child[request] = latest if kind == 1 else below(random, latest + 1)


@kernel
def _join(child, instance, request, other, random):
    """Send a request to a pool of another one, where legal, and align their starts, in place."""
    n, first = len(instance.duration), instance.first
    pool = pool_of(instance, child, _random_replica(instance, other, random))
    begin = instance.legal_first[request]
    for index in range(instance.legal_first[request + 1] - begin):
        if instance.legal[begin + index] == pool:
            child[n + first[request] : n + first[request + 1]] = index
            _align(child, instance, request, other, random)
            return


@kernel
def _step(gene, choices, random):
    """Return a gene a few places along the legal list: often the same data centre or the next."""
    by = 1 + below(random, MAX_STEP)
    if below(random, 2) == 0:
        by = -by
    return min(max(gene + by, 0), choices - 1)


@kernel
def _mutate(child, instance, random):
    """Change a request in place: its start, the pool of one or all of its replicas, or both."""
    n = len(instance.duration)
    request = below(random, n)
    choices = instance.legal_first[request + 1] - instance.legal_first[request]
    if choices == 0:
        return
    one = n + _random_replica(instance, request, random)
    kind = below(random, 33)
    if kind < NEW_START:
        _new_start(child, instance, request, random)
    elif kind < ALIGN:
        other = _companion(child, instance, request, random)
        _align(child, instance, request, other, random)
    elif kind < MOVE_ONE:
        child[one] = _step(child[one], choices, random)
    elif kind < MOVE_ALL:
        low, high = n + instance.first[request], n + instance.first[request + 1]
        child[low:high] = _step(child[one], choices, random)
    else:
        other = below(random, n)
        if served(instance, other):
            _join(child, instance, request, other, random)


@kernel
def _equal(one, other):
    """Return whether two vectors are the same."""
    same = True
    for k in range(len(one)):
        same = same and one[k] == other[k]
    return same


@allocating_kernel
def _vary(mothers, fathers, instance, random, crossing):
    """Return one child of each pair of rows; generator k of `random`, shape (k,), makes child k."""
    children = mothers.copy()
    for k in range(len(children)):
        own = random[k : k + 1]
        if crossing and below(own, 10) < CROSSED:
            _cross(children[k], fathers[k], instance, own)
        # A child that equals its mother is not worth an evaluation.
        if not crossing or below(own, 10) < MUTATED or _equal(children[k], mothers[k]):
            _mutate(children[k], instance, own)
    return children


def vary(
    rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray, instance: PoolArrays
) -> np.ndarray:
    """Return one child of each pair of rows, shape of `mothers`.

    Where both are one array, all children are mutated and none is crossed.
    """
    return _vary(
        np.ascontiguousarray(mothers),
        np.ascontiguousarray(fathers),
        instance,
        rng.integers(0, 2**64, size=len(mothers), dtype=np.uint64),
        mothers is not fathers,
    )


# -- the encoder -----------------------------------------------------------------------------------


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
        label, key, values = find(X, costs, self.arrays)
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
        """Return the number of each replica's machine, shape (R,), of one vector."""
        packing.pack(genes, self.arrays, self._packing, self._scratch)
        return np.where(self.served[self.arrays.request], self._packing.bin_of, 0)

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
        return vary(rng, *self.checked_pairs(mothers, fathers), self.arrays)

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X, each with one request changed."""
        return self.vary(rng, X, X)
