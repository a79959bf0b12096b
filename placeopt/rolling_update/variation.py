"""Variation of rolling-update vectors by whole applications and whole nodes, compiled.

A deployment gets cheaper when a node empties, which no change of one gene can do: children take over what a parent has on some
nodes or of some applications, and mutation empties nodes, relieves overloaded ones, swaps, and sends microservices home.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel


class Tables(NamedTuple):
    """Q microservices with a gene each, N nodes ranked by cluster and price."""

    legal_first: np.ndarray  # (Q + 1,) into legal
    legal: np.ndarray  # ranks of nodes, ascending
    size: np.ndarray  # (Q, 2)
    application: np.ndarray  # (Q,)
    home: np.ndarray  # (Q,) gene of the first node, -1 where that is not legal
    base: np.ndarray  # (N, 2) load of what has no gene, by rank
    capacity: np.ndarray  # (N, 2) by rank


@kernel
def _random(state):
    """Return the next 64 random bits: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _below(state, bound):
    """Return a random integer in [0, bound)."""
    return np.int64((_random(state) >> np.uint64(11)) % np.uint64(bound))


@kernel
def _gene(t, i, rank):
    """Return the gene that puts microservice i on the node of a rank, -1 where it may not go there."""
    low, high = t.legal_first[i], t.legal_first[i + 1]
    while low < high:
        middle = (low + high) // 2
        if t.legal[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low - t.legal_first[i] if low < t.legal_first[i + 1] and t.legal[low] == rank else -1


@kernel
def _put(child, load, t, i, gene):
    """Change one gene and the loads with it."""
    was, now = t.legal[t.legal_first[i] + child[i]], t.legal[t.legal_first[i] + gene]
    for r in range(2):
        load[was, r] -= t.size[i, r]
        load[now, r] += t.size[i, r]
    child[i] = gene


@kernel
def _rank(child, t, i):
    return t.legal[t.legal_first[i] + child[i]]


@kernel
def _away(child, load, t, i, state):
    """Move microservice i to a node with room beside a random other one, or as a last resort to any."""
    here = _rank(child, t, i)
    for _ in range(12):
        rank = _rank(child, t, _below(state, len(child)))
        gene = _gene(t, i, rank)
        fits = (
            load[rank, 0] + t.size[i, 0] <= t.capacity[rank, 0]
            and load[rank, 1] + t.size[i, 1] <= t.capacity[rank, 1]
        )
        if rank != here and gene >= 0 and fits:
            _put(child, load, t, i, gene)
            return
    _put(child, load, t, i, _below(state, t.legal_first[i + 1] - t.legal_first[i]))


@kernel
def _swap(child, load, t, state):
    i, j = _below(state, len(child)), _below(state, len(child))
    one, other = _gene(t, i, _rank(child, t, j)), _gene(t, j, _rank(child, t, i))
    if one >= 0 and other >= 0 and i != j:
        _put(child, load, t, i, one)
        _put(child, load, t, j, other)


@kernel
def _mutate(child, load, t, state):
    """Make one change."""
    how, i = _below(state, 8), _below(state, len(child))
    if how <= 1:
        _swap(child, load, t, state)
    elif how == 2:
        if t.home[i] >= 0:
            _put(child, load, t, i, t.home[i])
    elif how == 3:
        _away(child, load, t, i, state)
    elif how == 4:  # empty a node
        here = _rank(child, t, i)
        for j in range(len(child)):
            if _rank(child, t, j) == here:
                _away(child, load, t, j, state)
    else:  # relieve overloaded nodes
        for _ in range(len(child)):
            here = _rank(child, t, i)
            if load[here, 0] > t.capacity[here, 0] or load[here, 1] > t.capacity[here, 1]:
                _away(child, load, t, i, state)
            i = (i + 1) % len(child)


@kernel
def _cross(child, father, t, state):
    """Copy from the father some applications, or what stands on some nodes."""
    by_node, salt = _below(state, 2) == 0, np.uint64(_random(state))
    for i in range(len(child)):
        what = np.uint64(_rank(father, t, i) if by_node else t.application[i])
        mixed = (what + salt) * np.uint64(0x9E3779B97F4A7C15)
        if (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(63):
            child[i] = father[i]


@kernel
def _vary(children, fathers, t, seed):
    state = np.full(1, seed, np.uint64)
    for k in range(len(children)):
        child = children[k]
        if _below(state, 4) > 0:
            _cross(child, fathers[k], t, state)
        load = t.base.copy()
        for i in range(len(child)):
            for r in range(2):
                load[_rank(child, t, i), r] += t.size[i, r]
        for _ in range(1 + _below(state, 3)):
            _mutate(child, load, t, state)


def vary(
    rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray, tables: Tables
) -> np.ndarray:
    """Return one child of each pair of rows."""
    children = np.array(mothers, dtype=np.int64, order="C")
    _vary(
        children,
        np.ascontiguousarray(fathers, dtype=np.int64),
        tables,
        np.uint64(rng.integers(2**63)),
    )
    return children
