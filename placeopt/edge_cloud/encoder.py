"""Edge-cloud plans as integer vectors.

The gene of a microservice is an index into the nodes that can host it, nearest to the source first.
Applications are placed in order, small ones first. A microservice whose node has no room left, or
is too far from those it talks to, goes to the nearest node to it that fits. Where none fits, the
whole application goes to the node nearest to its source that has room for all of it; where there is
none, the application stays without a place, the only way in which a vector is infeasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.common import below, copy_row, uniform
from placeopt.core.kernels.compile import allocating_kernel, inlined_kernel, kernel
from placeopt.core.numbers import begins, checked_count, ragged
from placeopt.edge_cloud.arrays import (
    EdgeCloudArrays,
    Placement,
    application_order,
    cost,
    put,
    take,
)
from placeopt.edge_cloud.problem import EdgeCloud

# -- the nearest nodes -----------------------------------------------------------------------------

#: Nodes of a group hold as many mean microservices to a factor of this.
GROUP_FACTOR = 32


class NearNodes(NamedTuple):
    """The nodes as searches see them; `small` is uint16, or int32 where that is too short."""

    group: np.ndarray  # (nodes,)
    first: np.ndarray  # (groups + 1,) where a group begins in a row of `near`
    near: np.ndarray  # (nodes, nodes) small; row v: nodes by group, then by their delay from v
    code: np.ndarray  # (nodes, nodes) small; which of `delays` is between two nodes
    delays: np.ndarray  # all delays there are, ms, rising; inf at the end where some are unknown
    last: int  # the code of the largest delay that is known
    nearest: np.ndarray  # (nodes, groups) the least code to another node of a group
    farthest: np.ndarray  # (nodes, groups) the largest code to a node of a group
    flow_limit: np.ndarray  # (2 flows,) the largest code within the limit of a flow
    least: np.ndarray  # (2,) the least demand of any microservice, each resource by itself
    too_small: np.ndarray  # (nodes,) bool: has no room for any


class OpenNodes(NamedTuple):
    """Which nodes are not full; scratch."""

    is_full: np.ndarray  # (nodes,)
    left: np.ndarray  # (groups,) open nodes
    most: np.ndarray  # (groups,) open nodes while nothing is placed
    nodes: np.ndarray  # (nodes,) nodes group by group, in each first the open ones
    place: np.ndarray  # (nodes,) where a node stands in `nodes`
    head: np.ndarray  # (nodes, groups) how many nodes of a group, nearest first, are full
    ends: np.ndarray  # (most flows of a microservice + 1, 2) a node, and the largest code from it


def near_nodes(instance: EdgeCloudArrays) -> NearNodes:
    """Return the nodes of an instance by group and delay."""
    group = _groups(instance)
    first = begins(np.bincount(group))
    near = narrow(instance.near, len(group))
    for row in near:
        row[:] = row[np.argsort(group[row], kind="stable")]
    delays = np.unique(instance.delay)
    code = narrow(np.searchsorted(delays, instance.delay), len(delays) + 1)
    last = int(np.isfinite(delays).sum()) - 1
    others = code.copy()
    np.fill_diagonal(others, len(delays))
    columns = [np.flatnonzero(group == g) for g in range(len(first) - 1)]
    least = instance.demand.min(axis=0)
    within = np.searchsorted(delays, instance.flow_limit, side="right") - 1
    return NearNodes(
        group=group,
        first=first,
        near=near,
        code=code,
        delays=delays,
        last=last,
        nearest=np.stack([others[:, c].min(axis=1) for c in columns], axis=1).astype(np.int64),
        farthest=np.stack([code[:, c].max(axis=1) for c in columns], axis=1).astype(np.int64),
        flow_limit=np.minimum(within, last),
        least=least,
        too_small=np.any(instance.capacity < least, axis=1),
    )


def narrow(numbers: np.ndarray, count: int) -> np.ndarray:
    """Return whole numbers below a count in the type of `NearNodes`."""
    return numbers.astype(np.uint16 if count <= 2**16 else np.int32)


def _groups(instance: EdgeCloudArrays) -> np.ndarray:
    """Return the group of each node, (nodes,), small nodes first; no group is empty."""
    mean = np.maximum(instance.demand.mean(axis=0), 1e-9)
    held = np.maximum((instance.capacity / mean).min(axis=1), 1.0)
    return np.unique(np.log(held) // np.log(GROUP_FACTOR), return_inverse=True)[1].ravel()


def open_nodes(instance: EdgeCloudArrays, near: NearNodes) -> OpenNodes:
    """Return scratch for `nearest_fit`; call `reopen` before the first search."""
    count, groups = len(near.group), len(near.first) - 1
    nodes = np.lexsort((near.too_small, near.group))
    return OpenNodes(
        is_full=near.too_small.copy(),
        left=np.zeros(groups, dtype=np.int64),
        most=np.bincount(near.group[~near.too_small], minlength=groups),
        nodes=nodes,
        place=np.argsort(nodes),
        head=np.zeros((count, groups), dtype=np.int64),
        ends=np.zeros((int(np.diff(instance.flow_first).max()) + 1, 2), dtype=np.int64),
    )


@kernel
def reopen(near, free):
    """Open all nodes again; changes `free`."""
    free.head[:] = 0
    for group in range(len(free.left)):
        free.left[group] = free.most[group]
    for node in range(len(free.is_full)):
        free.is_full[node] = near.too_small[node]


@inlined_kernel
def note(near, free, room, node):
    """Take a node off the open ones where it is full for good; changes `free`."""
    if free.is_full[node] or (room[node, 0] >= near.least[0] and room[node, 1] >= near.least[1]):
        return
    group = near.group[node]
    free.is_full[node] = True
    free.left[group] -= 1
    here, there = free.place[node], near.first[group] + free.left[group]
    other = free.nodes[there]
    free.nodes[here], free.nodes[there] = other, node
    free.place[other], free.place[node] = here, there


@inlined_kernel
def _holds(instance, near, placement, service, node):
    """Return whether a node that has a delay from the source can take a microservice."""
    if (
        instance.demand[service, 0] > placement.room[node, 0]
        or instance.demand[service, 1] > placement.room[node, 1]
    ):
        return False
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        end, limit = placement.hosts[instance.flow_other[flow]], near.flow_limit[flow]
        if end >= 0 and near.code[end, node] > limit:
            return False
    return True


@inlined_kernel
def _limits(instance, near, free, placement, service, group):
    """Write to `free.ends` what nodes of a group can be too far from.

    Returns how many ends there are, and the only node that is near enough to one of them: -1 where
    there may be more.
    """
    count, only = 0, -1
    source = instance.source[instance.application_of[service]]
    if near.farthest[source, group] > near.last:
        free.ends[0, 0], free.ends[0, 1], count = source, near.last, 1
    for flow in range(instance.flow_first[service], instance.flow_first[service + 1]):
        end, limit = placement.hosts[instance.flow_other[flow]], near.flow_limit[flow]
        if end >= 0 and near.farthest[end, group] > limit:
            free.ends[count, 0], free.ends[count, 1] = end, limit
            count += 1
            if near.nearest[end, group] > limit:
                only = end
    return count, only


@inlined_kernel
def _within(code, ends, count, node):
    """Return whether a node is near enough to all ends."""
    for k in range(count):  # noqa: SIM110
        if code[ends[k, 0], node] > ends[k, 1]:
            return False
    return True


@inlined_kernel
def nearest_fit(instance, near, free, placement, service, wanted):
    """Return the node nearest to the wanted one where a microservice fits, -1 for none.

    The wanted node has a delay from the source; -1 stays -1. Changes what `free` knows.
    """
    if wanted < 0 or _holds(instance, near, placement, service, wanted):
        return wanted
    room, row, far = placement.room, near.near[wanted], near.code[wanted]
    cpu, memory = instance.demand[service, 0], instance.demand[service, 1]
    best, least = np.int64(-1), np.int64(near.last + 1)
    for group in range(len(free.left)):
        if free.left[group] == 0 or near.nearest[wanted, group] > least:
            continue
        count, only = _limits(instance, near, free, placement, service, group)
        first, end, listed = near.first[group], near.first[group + 1], free.left[group]
        if only < 0 and listed * listed > end - first:
            rank = first + free.head[wanted, group]
            while free.is_full[row[rank]]:
                rank += 1
            free.head[wanted, group] = rank - first
            while rank < end:
                node = np.int64(row[rank])
                rank += 1
                if cpu <= room[node, 0] and memory <= room[node, 1]:
                    delay = np.int64(far[node])
                    if delay > least or (delay == least and node > best):
                        break
                    if _within(near.code, free.ends, count, node):
                        best, least = node, delay
                        break
            continue
        if only >= 0:
            listed = 1 if near.group[only] == group else 0
        for k in range(first, first + listed):
            node = free.nodes[k] if only < 0 else only
            if cpu <= room[node, 0] and memory <= room[node, 1]:
                delay = np.int64(far[node])
                nearer = delay < least or (delay == least and node < best)
                if nearer and _within(near.code, free.ends, count, node):
                    best, least = node, delay
    return best


# -- the encoder -----------------------------------------------------------------------------------


class EncoderTables(NamedTuple):
    """What the kernels of the encoder read."""

    instance: EdgeCloudArrays
    near: NearNodes
    order: np.ndarray  # (applications,)
    legal_first: np.ndarray  # (microservices,) into `legal`
    legal_end: np.ndarray  # (microservices,)
    legal: np.ndarray  # the nodes that can host a microservice, nearest to the source first


class Scratch(NamedTuple):
    """What decoding writes to."""

    room: np.ndarray  # (nodes, 2)
    hosts: np.ndarray  # (microservices,)
    free: OpenNodes


def _legal_nodes(instance: EdgeCloudArrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``legal_first``, ``legal_end`` and ``legal`` of `EncoderTables`.

    Microservices of one source that the same sizes of nodes can host have their nodes in common.
    """
    sizes, size_of = np.unique(instance.capacity, axis=0, return_inverse=True)
    large = np.ones((len(instance.demand), len(sizes)), dtype=bool)
    for r in range(sizes.shape[1]):
        large &= instance.demand[:, r, None] <= sizes[:, r]
    sources, size_of = instance.source[instance.application_of], size_of.ravel()
    parts: dict[tuple[int, bytes], int] = {}
    nodes: list[np.ndarray] = []
    part = np.empty(len(large), dtype=np.int64)
    for service, (source, row) in enumerate(zip(sources.tolist(), large, strict=True)):
        part[service] = parts.setdefault((source, row.tobytes()), len(parts))
        if len(nodes) < len(parts):
            near = instance.near[source]
            nodes.append(near[row[size_of[near]] & np.isfinite(instance.delay[source, near])])
    first, legal = ragged(nodes)
    return first[part], first[part + 1], narrow(legal, len(size_of))


@inlined_kernel
def _node_of(tables, service, gene):
    """Return the node that a gene stands for, -1 where no node can host the microservice."""
    first = tables.legal_first[service]
    return np.int64(tables.legal[first + gene]) if first < tables.legal_end[service] else -1


@inlined_kernel
def _place_together(instance, placement, application):
    """Place an application on the node nearest to its source with room for all of it.

    Changes `placement`; returns whether there is such a node.
    """
    first, last = instance.first[application], instance.first[application + 1]
    cpu, memory = instance.demand[first:last, 0].sum(), instance.demand[first:last, 1].sum()
    source = instance.source[application]
    for node in instance.near[source]:
        if instance.delay[source, node] == np.inf:
            return False
        if cpu <= placement.room[node, 0] and memory <= placement.room[node, 1]:
            for service in range(first, last):
                put(instance, placement, service, node)
            return True
    return False


@kernel
def _place(tables, genes, scratch):
    """Decode a vector, (microservices,), into `scratch`; return the applications left out."""
    instance, near, free = tables.instance, tables.near, scratch.free
    room, hosts, left_out = scratch.room, scratch.hosts, 0
    for node in range(len(room)):
        copy_row(instance.capacity[node], room[node])
    hosts[:] = -1
    reopen(near, free)
    placement = Placement(hosts, room)
    for application in tables.order:
        first, last = instance.first[application], instance.first[application + 1]
        for service in range(first, last):
            wanted = _node_of(tables, service, genes[service])
            node = nearest_fit(instance, near, free, placement, service, wanted)
            if node < 0:
                for placed in range(first, service):
                    take(instance, placement, placed)
                left_out += not _place_together(instance, placement, application)
                break
            put(instance, placement, service, node)
        for service in range(first, last):
            if hosts[service] >= 0:
                note(near, free, room, hosts[service])
    return left_out


@inlined_kernel
def _latency(tables, hosts, application):
    """Return the latency of what is placed of an application, ms."""
    farthest, source = np.int64(0), tables.instance.source[application]
    for service in range(
        tables.instance.first[application], tables.instance.first[application + 1]
    ):
        if hosts[service] >= 0:
            farthest = max(farthest, np.int64(tables.near.code[source, hosts[service]]))
    return tables.near.delays[farthest]


@allocating_kernel
def _evaluate(tables, X, scratch):
    """Return cost and latency, (len(X), 2), and the share of applications left out, (len(X),)."""
    instance, applications, hosts = tables.instance, len(tables.order), scratch.hosts
    F, left_out = np.zeros((len(X), 2)), np.empty(len(X))
    for k in range(len(X)):
        left_out[k] = _place(tables, X[k], scratch) / applications
        for service in range(len(hosts)):
            if hosts[service] >= 0:
                F[k, 0] += cost(instance, service, hosts[service])
        for application in range(applications):
            F[k, 1] += _latency(tables, hosts, application)
    return F, left_out


@kernel
def _write_genes(tables, hosts, genes):
    """Write the gene of each node in `hosts`, (microservices,), to `genes`, which are 0."""
    for service in range(len(hosts)):
        for k in range(tables.legal_first[service], tables.legal_end[service]):
            if tables.legal[k] == hosts[service]:
                genes[service] = k - tables.legal_first[service]
                break


@kernel
def _random_gene(tables, service, random):
    """Return a random gene of a microservice, of a near node more often; advances `random`."""
    choices = tables.legal_end[service] - tables.legal_first[service]
    return int(uniform(random) ** 2 * choices)


@kernel
def _mutate(tables, genes, random):
    """Change one application, in place: one gene, all genes, or all to the node of one of them."""
    instance = tables.instance
    application = below(random, len(instance.source))
    first, last = instance.first[application], instance.first[application + 1]
    chosen, kind = first + below(random, last - first), uniform(random)
    if kind < 0.7:
        genes[chosen] = _random_gene(tables, chosen, random)
    if kind < 0.4:
        return
    wanted = _node_of(tables, chosen, genes[chosen])
    for service in range(first, last):
        if kind >= 0.85:
            genes[service] = _random_gene(tables, service, random)
            continue
        for k in range(tables.legal_first[service], tables.legal_end[service]):
            if tables.legal[k] == wanted:
                genes[service] = k - tables.legal_first[service]
                break


@kernel
def _vary(tables, mothers, fathers, children, random):
    """Write children: each application from either parent, then one or two of them mutated."""
    instance = tables.instance
    for k in range(len(mothers)):
        share = uniform(random)
        for application in range(len(instance.source)):
            parent = mothers[k] if uniform(random) < share else fathers[k]
            for service in range(instance.first[application], instance.first[application + 1]):
                children[k, service] = parent[service]
        for _ in range(1 + below(random, 2)):
            _mutate(tables, children[k], random)


class EdgeCloudEncoder(Encoder):
    """The nearest-first encoding of an edge-cloud instance."""

    problem: EdgeCloud

    def __init__(self, problem: EdgeCloud, objectives: Sequence[Objective]):
        super().__init__(problem, objectives)
        instance = problem.arrays
        first, end, legal = _legal_nodes(instance)
        self.tables = EncoderTables(
            instance=instance,
            near=near_nodes(instance),
            order=application_order(instance, "small-first"),
            legal_first=first,
            legal_end=end,
            legal=legal,
        )
        self.upper = np.maximum(end - first - 1, 0)
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), 1
        self._scratch = Scratch(
            instance.capacity.copy(),
            np.full(self.num_genes, -1),
            open_nodes(instance, self.tables.near),
        )

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1): the share of applications without a place."""
        F, left_out = _evaluate(self.tables, self.checked(X), self._scratch)
        return F[:, self._columns], left_out[:, None]

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        _place(self.tables, self.checked_one(genes), self._scratch)
        return self.problem.plan(self._scratch.hosts)

    def encode(self, plan: Plan) -> np.ndarray:
        """Return the vector of a plan; `decode` gives a feasible plan back as it was."""
        with self.problem.reading(plan):
            return self.vector(self.problem.hosts(plan))

    def vector(self, hosts: np.ndarray) -> np.ndarray:
        """Return the vector of nodes, (microservices,); gene 0 where a node cannot host."""
        genes = np.zeros(self.num_genes, dtype=np.int64)
        _write_genes(self.tables, np.asarray(hosts, dtype=np.int64), genes)
        return genes

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random vectors, near nodes more often."""
        shape = checked_count(count), self.num_genes
        return (rng.random(shape) ** 2 * (self.upper + 1)).astype(np.int64)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by crossover of whole applications, one or two of them mutated."""
        parents = self.checked_pairs(mothers, fathers)
        children = np.empty_like(parents[0])
        random = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        _vary(self.tables, *parents, children, random)
        return children

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X with one or two applications mutated."""
        return self.vary(rng, X, X)
