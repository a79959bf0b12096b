"""A kernel that keeps microservices at home on given nodes: few starts at one price.

Simulated annealing trades starts against overflow, which weighs more and more. So a deployment is
reached from the running one by few changes, where one that was packed anew starts nearly all.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.common import below, copy_row, factor, most_worse, uniform
from placeopt.core.kernels.compile import kernel
from placeopt.rolling_update.packing.kernels import (
    is_open_to,
    is_swap_legal,
    member,
    put,
    rests_on,
    swap_overflow,
)
from placeopt.rolling_update.packing.loads import overflow, overflow_with, overflow_without

#: Odds that a change begins on an overloaded node, and that it leads home where that is open.
_OVERLOADED_ODDS, _HOME_ODDS = 0.5, 0.5


@kernel
def return_home(instance, state, rounds, hottest, coldest, lightest, heaviest, best):
    """Bring microservices home, or to nodes that have room; changes `state`.

    Parameters
    ----------
    instance : PackingInstance
    state : PackingState
    rounds : int
    hottest, coldest : float
        First and last temperature, in starts.
    lightest, heaviest : float
        First and last weight of an overflow of one node's capacity, in starts.
    best : int array (Q,)
        Takes the nodes of the state of fewest starts among those without overload.

    Returns
    -------
    int
        The fewest starts, -1 where every state overloads a node. It ends early where all rest whose
        home is open.
    """
    nodes, starts, floor, least = state.open_first[-1], 0, 0, -1
    if nodes == 0:
        return least
    for i in range(len(state.node)):
        starts += not rests_on(instance, i, state.node[i])
        floor += not (instance.rests[i] and state.open[instance.home[i]])
    temperature, cooling = hottest, factor(hottest, coldest, rounds)
    weight, growth = lightest, factor(lightest, heaviest, rounds)
    for _ in range(rounds):
        i = _chosen(state)
        n, h = state.open_nodes[below(state.random, nodes)], instance.home[i]
        if instance.rests[i] and state.open[h] and uniform(state.random) < _HOME_ODDS:
            n = h
        if n != state.node[i]:
            limit = most_worse(temperature, state.random)
            starts += _change(instance, state, i, n, weight, limit)
        if state.num_overloaded[0] == 0 and (least < 0 or starts < least):
            least = starts
            copy_row(state.node, best)
            if least == floor:
                break
        temperature *= cooling
        weight *= growth
    return least


@kernel
def _chosen(state):
    """Return a random microservice, of overloaded nodes more often."""
    if state.num_overloaded[0] > 0 and uniform(state.random) < _OVERLOADED_ODDS:
        i = member(state, state.overloaded[below(state.random, state.num_overloaded[0])])
        if i >= 0:
            return i
    return below(state.random, len(state.node))


@kernel
def _change(instance, state, i, n, weight, limit):
    """Shift microservice i to node n, or swap it with the best partner there.

    The change is made if starts and weighted overflow together grow by at most `limit`. Returns by
    how much the starts grow.
    """
    capacity, load, size, o = instance.capacity, state.load, instance.size, state.node[i]
    here = overflow(capacity, load, o) + overflow(capacity, load, n)
    mine = np.int64(rests_on(instance, i, o)) - np.int64(rests_on(instance, i, n))
    best, best_j, more = np.inf, np.int64(-2), np.int64(0)
    over = overflow_without(capacity, load, size, o, i)
    over += overflow_with(capacity, load, size, n, i)
    worse = weight * (over - here) + mine
    if worse <= limit and is_open_to(instance, state, i, n):
        best, best_j, more = worse, np.int64(-1), mine
    j = state.head[n]
    while j >= 0:
        theirs = np.int64(rests_on(instance, j, n)) - np.int64(rests_on(instance, j, o))
        over = swap_overflow(capacity, load, size, i, j, o, n)
        worse = weight * (over - here) + mine + theirs
        if worse < best and worse <= limit and is_swap_legal(instance, state, i, j):
            best, best_j, more = worse, j, mine + theirs
        j = state.after[j]
    if best_j == -2:
        return np.int64(0)
    put(instance, state, i, n)
    if best_j >= 0:
        put(instance, state, best_j, o)
    return more
