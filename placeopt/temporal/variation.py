"""Variation of temporal vectors by whole requests, compiled.

Crossover and mutation that act on single genes tear the replicas of a request apart; acting on requests is what makes the
searches work, and exchanging all that is served from one location is what makes crossover work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.kernels.compile import kernel


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
def _inherit(child, father, t, i):
    """Copy request i of the father."""
    n = len(t.duration)
    child[i] = father[i]
    for r in range(n + t.first[i], n + t.first[i + 1]):
        child[r] = father[r]


@kernel
def _home(genes, t, i):
    """Return the location of the first replica of request i."""
    return t.place[t.legal[t.legal_first[i] + genes[len(t.duration) + t.first[i]]]]


@kernel
def _inherit_starts(child, father, t, j):
    """Copy the starts of all requests that the child serves from where the father serves request j."""
    if t.legal_first[j + 1] > t.legal_first[j]:
        place = _home(father, t, j)
        for i in range(len(t.duration)):
            if t.legal_first[i + 1] > t.legal_first[i] and _home(child, t, i) == place:
                child[i] = father[i]


@kernel
def _cross(child, father, t, state):
    """Copy requests of the father into the child, which is a copy of the mother: a few, each with probability 1/2, or a location; or starts.

    A location is what packing decides about as a whole: all requests that either parent serves from there.
    """
    n = len(t.duration)
    how = _below(state, 10)
    if how < 1:
        _inherit_starts(child, father, t, _below(state, n))
    elif how < 2:
        for _ in range(1 + _below(state, max(1, n // 4))):
            _inherit(child, father, t, _below(state, n))
    elif how < 5:
        for i in range(n):
            if _below(state, 2) == 0:
                _inherit(child, father, t, i)
    else:
        j = _below(state, n)
        if t.legal_first[j + 1] == t.legal_first[j]:
            return
        place = _home(father, t, j)
        for i in range(n):
            if t.legal_first[i + 1] > t.legal_first[i] and (
                _home(father, t, i) == place or _home(child, t, i) == place
            ):
                _inherit(child, father, t, i)


@kernel
def _companion(child, t, i, state):
    """Return a random request, if it can be found one that shares a pool with request i."""
    n = len(t.duration)
    mine = t.legal[
        t.legal_first[i] + child[n + t.first[i] + _below(state, t.first[i + 1] - t.first[i])]
    ]
    j = i
    for _ in range(12):
        j = _below(state, n)
        if j != i and t.legal_first[j + 1] > t.legal_first[j]:
            r = t.first[j] + _below(state, t.first[j + 1] - t.first[j])
            if t.legal[t.legal_first[j] + child[n + r]] == mine:
                break
    return j


@kernel
def _align(child, t, i, j, state):
    """Start request i when j starts or ends, or let it end then."""
    how = _below(state, 4)
    start = child[j]
    if how == 1 or how == 3:
        start += t.duration[j]
    if how >= 2:
        start -= t.duration[i]
    child[i] = min(max(start, 0), t.horizon - t.duration[i])


@kernel
def _new_start(child, t, i, state):
    """Give request i a random, the first or the last start."""
    latest = t.horizon - t.duration[i]
    how = _below(state, 3)
    child[i] = 0 if how == 0 else (latest if how == 1 else _below(state, latest + 1))


@kernel
def _join(child, t, i, j, state):
    """Send all replicas of request i to a pool of request j, where that is legal, and align their starts."""
    n = len(t.duration)
    r = t.first[j] + _below(state, t.first[j + 1] - t.first[j])
    pool = t.legal[t.legal_first[j] + child[n + r]]
    for index in range(t.legal_first[i + 1] - t.legal_first[i]):
        if t.legal[t.legal_first[i] + index] == pool:
            child[n + t.first[i] : n + t.first[i + 1]] = index
            _align(child, t, i, j, state)
            return


@kernel
def _step(child, r, choices, state):
    """Return a gene a few places along the legal list: the same data centre, often, or the next one."""
    by = 1 + _below(state, 4)
    if _below(state, 2) == 0:
        by = -by
    return min(max(child[r] + by, 0), choices - 1)


@kernel
def _move(child, t, state):
    """Change one request: its start, mostly, or the pool of one or of all its replicas, or both at once."""
    n = len(t.duration)
    i = _below(state, n)
    choices = t.legal_first[i + 1] - t.legal_first[i]
    if choices == 0:
        return
    low, high = n + t.first[i], n + t.first[i + 1]
    one = low + _below(state, high - low)
    how = _below(state, 33)
    if how < 3:
        _new_start(child, t, i, state)
    elif how < 24:
        _align(child, t, i, _companion(child, t, i, state), state)
    elif how < 30:
        child[one] = _step(child, one, choices, state)
    elif how < 32:
        child[low:high] = _step(child, one, choices, state)
    else:
        j = _below(state, n)
        if t.legal_first[j + 1] > t.legal_first[j]:
            _join(child, t, i, j, state)


@kernel
def _vary(mothers, fathers, t, states, crossing):
    children = mothers.copy()
    state = np.empty(1, dtype=np.uint64)
    for k in range(len(children)):
        state[0] = states[k]
        if crossing and _below(state, 10) < 9:
            _cross(children[k], fathers[k], t, state)
        # Moves tell more where the crossover is seen alone too; a child that is its mother is not worth an evaluation.
        if not crossing or _below(state, 10) < 4 or (children[k] == mothers[k]).all():
            _move(children[k], t, state)
    return children


def vary(
    rng: np.random.Generator, mothers: np.ndarray, fathers: np.ndarray, tables: Any
) -> np.ndarray:
    """Return one child a pair of rows; where both are one array, the children are only mutated, all of them."""
    states = rng.integers(0, 2**64, size=len(mothers), dtype=np.uint64)
    return _vary(
        np.ascontiguousarray(mothers),
        np.ascontiguousarray(fathers),
        tables,
        states,
        mothers is not fathers,
    )
