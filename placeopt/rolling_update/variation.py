"""Variation of rolling-update vectors by whole applications and whole nodes, compiled.

A deployment gets cheaper when a node empties, which no change of one gene can do. Children inherit
the microservices of whole nodes or whole applications. Mutation empties nodes, relieves overloaded
ones, swaps microservices, and sends them home.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import below, mix, next_bits
from placeopt.rolling_update.packing.loads import fits, overloaded

#: Random nodes that are tried before a microservice goes anywhere.
_MAX_TRIES = 12


class GeneTables(NamedTuple):
    """Q microservices with a gene each, N nodes ranked by cluster and price."""

    legal_first: np.ndarray  # (Q + 1,) where each microservice begins in legal
    legal: np.ndarray  # (choices,) ranks of nodes, ascending
    size: np.ndarray  # (Q, R)
    application: np.ndarray  # (Q,)
    home: np.ndarray  # (Q,) gene of the node now, -1 where that is not legal
    base: np.ndarray  # (N, R) load of what has no gene, by rank
    capacity: np.ndarray  # (N, R) by rank


@allocating_kernel
def _gene(tables, i, rank):
    """Return the gene that puts microservice i on the node of a rank, -1 where it may not be."""
    first, end = tables.legal_first[i], tables.legal_first[i + 1]
    at = first + np.searchsorted(tables.legal[first:end], rank)
    return at - first if at < end and tables.legal[at] == rank else -1


@kernel
def _rank(tables, genes, i):
    """Return the rank of the node of microservice i; genes (Q,)."""
    return tables.legal[tables.legal_first[i] + genes[i]]


@kernel
def _put(child, load, tables, i, gene):
    """Change gene i; changes `child` (Q,) and `load` (N, R)."""
    was = _rank(tables, child, i)
    child[i] = gene
    now = _rank(tables, child, i)
    for r in range(load.shape[1]):
        load[was, r] -= tables.size[i, r]
        load[now, r] += tables.size[i, r]


@kernel
def _send_away(child, load, tables, i, random):
    """Move microservice i beside a random other one where it fits, else to any of its nodes."""
    here = _rank(tables, child, i)
    for _ in range(_MAX_TRIES):
        rank = _rank(tables, child, below(random, len(child)))
        gene = _gene(tables, i, rank)
        if rank != here and gene >= 0 and fits(tables.capacity, load, tables.size, i, rank):
            _put(child, load, tables, i, gene)
            return
    choices = tables.legal_first[i + 1] - tables.legal_first[i]
    _put(child, load, tables, i, below(random, choices))


@kernel
def _swap(child, load, tables, random):
    """Swap the nodes of two random microservices where both are legal."""
    i, j = below(random, len(child)), below(random, len(child))
    one = _gene(tables, i, _rank(tables, child, j))
    other = _gene(tables, j, _rank(tables, child, i))
    if one >= 0 and other >= 0 and i != j:
        _put(child, load, tables, i, one)
        _put(child, load, tables, j, other)


@kernel
def _mutate(child, load, tables, random):
    """Make one change of `child` (Q,) and of its `load` (N, R)."""
    kind, i = below(random, 8), below(random, len(child))
    if kind <= 1:
        _swap(child, load, tables, random)
    elif kind == 2:
        if tables.home[i] >= 0:
            _put(child, load, tables, i, tables.home[i])
    elif kind == 3:
        _send_away(child, load, tables, i, random)
    elif kind == 4:  # empty a node
        here = _rank(tables, child, i)
        for j in range(len(child)):
            if _rank(tables, child, j) == here:
                _send_away(child, load, tables, j, random)
    else:  # relieve overloaded nodes
        for _ in range(len(child)):
            if overloaded(tables.capacity, load, _rank(tables, child, i)):
                _send_away(child, load, tables, i, random)
            i = (i + 1) % len(child)


@kernel
def _cross(child, father, tables, random):
    """Copy the genes of random applications, or of random nodes, from `father` to `child`."""
    by_node, salt = below(random, 2) == 0, next_bits(random)
    for i in range(len(child)):
        kind = np.uint64(_rank(tables, father, i) if by_node else tables.application[i])
        if mix(kind + salt) >> np.uint64(63):
            child[i] = father[i]


@allocating_kernel
def _vary(children, fathers, tables, seed):
    """Vary `children` in place, shape (n, Q)."""
    random = np.full(1, seed, np.uint64)
    for k in range(len(children)):
        child = children[k]
        if below(random, 4) > 0:
            _cross(child, fathers[k], tables, random)
        load = tables.base.copy()
        for i in range(len(child)):
            for r in range(load.shape[1]):
                load[_rank(tables, child, i), r] += tables.size[i, r]
        for _ in range(1 + below(random, 3)):
            _mutate(child, load, tables, random)


def vary(
    rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray, tables: GeneTables
) -> np.ndarray:
    """Return one child of each pair of rows, shape (n, Q)."""
    children = np.array(mothers, dtype=np.int64, order="C")
    fathers = np.ascontiguousarray(fathers, dtype=np.int64)
    _vary(children, fathers, tables, np.uint64(rng.integers(2**63)))
    return children
