"""Crossover and mutation of temporal vectors by whole requests, compiled.

Operators on single genes tear the replicas of a request apart. These act on whole requests; the
crossover mostly exchanges all requests that are served from one location.

No table records how the odds below were chosen. ``benchmarks/heldout.md`` tests the
search that uses them on instances that nothing was tuned on.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import below
from placeopt.temporal.pools import PoolArrays, pool_of, served

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
