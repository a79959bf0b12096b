"""Edge-cloud plans as integer vectors: for every microservice an index into the nodes that can host it, nearest to the source first.

Applications are placed in order, small ones first. A microservice whose node has no room left, or lies too far from those it talks to,
goes to the nearest node to it that will do; where none will, the whole application goes to the node nearest to its source that has
room for all of it. So a vector breaks something only where an application finds no such node, and is then left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.front import Objective
from placeopt.core.interfaces import Encoder
from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import Arrays, fits, order_of
from placeopt.edge_cloud.instance import EdgeCloud


class Tables(NamedTuple):
    """The arrays that the kernels read."""

    table: Arrays
    near: np.ndarray  # (nodes, nodes) nodes by their delay from each node
    order: np.ndarray  # (applications,)
    legal_first: np.ndarray  # (microservices + 1,) into legal
    legal: np.ndarray  # nodes


@kernel
def _will_do(t, room, hosts, i, source, node):
    table = t.table
    if (
        table.demand[i, 0] > room[node, 0]
        or table.demand[i, 1] > room[node, 1]
        or table.delay[source, node] == np.inf
    ):
        return False
    for e in range(table.flow_first[i], table.flow_first[i + 1]):
        other = hosts[table.flow_other[e]]
        if other >= 0 and table.delay[other, node] > table.flow_limit[e]:
            return False
    return True


@kernel
def _put(t, room, hosts, i, node, sign):
    hosts[i] = node if sign > 0 else -1
    room[node, 0] -= sign * t.table.demand[i, 0]
    room[node, 1] -= sign * t.table.demand[i, 1]


@kernel
def _together(t, room, hosts, application):
    """Put a whole application on the node nearest to its source with room for it; whether there is one."""
    table, source = t.table, t.table.source[application]
    first, last = table.first[application], table.first[application + 1]
    cpu, memory = table.demand[first:last, 0].sum(), table.demand[first:last, 1].sum()
    for node in t.near[source]:
        if table.delay[source, node] == np.inf:
            return False
        if cpu <= room[node, 0] and memory <= room[node, 1]:
            for i in range(first, last):
                _put(t, room, hosts, i, node, 1)
            return True
    return False


@kernel
def _place(t, genes, room, hosts):
    """Place all applications as the genes say, or near to it; returns how many found no place."""
    table, missing = t.table, 0
    room[:] = table.capacity
    hosts[:] = -1
    for a in t.order:
        source, placed = table.source[a], table.first[a]
        for i in range(table.first[a], table.first[a + 1]):
            found = -1
            if t.legal_first[i] < t.legal_first[i + 1]:
                wanted = t.legal[t.legal_first[i] + genes[i]]
                for node in t.near[wanted]:
                    if table.delay[wanted, node] == np.inf:
                        break
                    if _will_do(t, room, hosts, i, source, node):
                        found = node
                        break
            if found < 0:
                break
            _put(t, room, hosts, i, found, 1)
            placed += 1
        if placed < table.first[a + 1]:
            for i in range(table.first[a], placed):
                _put(t, room, hosts, i, hosts[i], -1)
            missing += not _together(t, room, hosts, a)
    return missing


@kernel
def _evaluate(t, X, room, hosts):
    """Return cost and latency (len(X), 2), and the share of applications without a place (len(X),)."""
    table = t.table
    F, excess = np.zeros((len(X), 2)), np.empty(len(X))
    for k in range(len(X)):
        excess[k] = _place(t, X[k], room, hosts) / len(table.source)
        for a in range(len(table.source)):
            farthest = 0.0
            for i in range(table.first[a], table.first[a + 1]):
                if hosts[i] >= 0:
                    F[k, 0] += table.operating[hosts[i]] + table.network[hosts[i]] * table.data[i]
                    farthest = max(farthest, table.delay[table.source[a], hosts[i]])
            F[k, 1] += farthest
    return F, excess


@kernel
def _uniform(random):
    """xorshift64*: uniform in [0, 1)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _choice(t, i, random):
    """A gene of a microservice, near nodes more often."""
    return int(_uniform(random) ** 2 * (t.legal_first[i + 1] - t.legal_first[i]))


@kernel
def _mutate(t, genes, random):
    """Change one application: one microservice anew, all anew, or all to where one of them is."""
    table = t.table
    a = int(_uniform(random) * len(table.source))
    first, last = table.first[a], table.first[a + 1]
    chosen, kind = first + int(_uniform(random) * (last - first)), _uniform(random)
    if kind < 0.7:
        genes[chosen] = _choice(t, chosen, random)
    if kind < 0.4:
        return
    wanted = (
        t.legal[t.legal_first[chosen] + genes[chosen]]
        if t.legal_first[chosen] < t.legal_first[chosen + 1]
        else -1
    )
    for i in range(first, last):
        if kind >= 0.85:
            genes[i] = _choice(t, i, random)
            continue
        for k in range(t.legal_first[i], t.legal_first[i + 1]):
            if t.legal[k] == wanted:
                genes[i] = k - t.legal_first[i]
                break


@kernel
def _vary(t, mothers, fathers, children, random):
    """Take each application from either parent, then change one or two."""
    table = t.table
    for k in range(len(mothers)):
        share = _uniform(random)
        for a in range(len(table.source)):
            parent = mothers[k] if _uniform(random) < share else fathers[k]
            for i in range(table.first[a], table.first[a + 1]):
                children[k, i] = parent[i]
        for _ in range(1 + int(_uniform(random) * 2)):
            _mutate(t, children[k], random)


class EdgeCloudEncoder(Encoder):
    """The nearest-first encoding of an edge-cloud instance; see `placeopt.encoders.Encoder` for the contract."""

    problem: EdgeCloud

    def __init__(self, problem: EdgeCloud, objectives: Sequence[Objective]):
        self.problem, self.objectives = problem, tuple(objectives)
        self._columns = problem.columns(objectives)
        table = problem.arrays
        possible, source = fits(table), np.repeat(table.source, np.diff(table.first))
        near = np.argsort(table.delay, axis=1, kind="stable")
        legal = [near[s][possible[i, near[s]]] for i, s in enumerate(source.tolist())]
        first = np.concatenate(([0], np.cumsum([len(nodes) for nodes in legal])))
        self.tables = Tables(
            table,
            near,
            order_of(table, "small-first"),
            first,
            np.concatenate(legal).astype(np.int64),
        )
        self.upper = np.maximum(np.diff(first) - 1, 0)
        self.lower = np.zeros_like(self.upper)
        self.num_genes, self.num_constraints = len(self.upper), 1
        self._room, self._hosts = table.capacity.copy(), np.full(self.num_genes, -1)

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F (n, objectives) and G (n, 1): the share of applications that find no place."""
        F, excess = _evaluate(
            self.tables, np.ascontiguousarray(X, dtype=np.int64), self._room, self._hosts
        )
        return F[:, self._columns], excess[:, None]

    def decode(self, genes: np.ndarray) -> dict[str, Any]:
        """Return the plan of one vector."""
        _place(self.tables, np.ascontiguousarray(genes, dtype=np.int64), self._room, self._hosts)
        return self.problem.plan(self._hosts)

    def encode(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the vector of a plan; a feasible plan comes back from `decode` as it is."""
        return self.vector(self.problem.hosts(plan))

    def vector(self, hosts: np.ndarray) -> np.ndarray:
        """Return the vector of the nodes of all microservices; gene 0 where a node is none that can host."""
        first, legal = self.tables.legal_first, self.tables.legal
        number = np.repeat(np.arange(self.num_genes), np.diff(first))
        genes = np.zeros(self.num_genes, dtype=np.int64)
        found = np.flatnonzero(legal == hosts[number])
        genes[number[found]] = found - first[number[found]]
        return genes

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random vectors, near nodes more often."""
        return (rng.random((count, self.num_genes)) ** 2 * (self.upper + 1)).astype(np.int64)

    def vary(
        self, rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray
    ) -> np.ndarray:
        """Return children by crossover of whole applications, with one or two of them changed."""
        children = np.empty((len(mothers), self.num_genes), dtype=np.int64)
        parents = (np.ascontiguousarray(parents, dtype=np.int64) for parents in (mothers, fathers))
        _vary(self.tables, *parents, children, np.array([rng.integers(1, 2**63)], dtype=np.uint64))
        return children

    def mutate(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """Return copies of X with one or two applications changed."""
        return self.vary(rng, X, X)


def build(problem: EdgeCloud, objectives: Sequence[Objective]) -> EdgeCloudEncoder:
    """Return the encoder of an edge-cloud instance."""
    return EdgeCloudEncoder(problem, objectives)
