"""The best node for a hop, without a look at each of many.

A tree over the nodes has the most free room and the least shortage of each half, quarter and so on:
parts in which a move does not fit, or that have no better node than the best so far, are skipped.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.first_above import following
from placeopt.rolling_update.packing.loads import fits

#: What a tree (2 size, R, 4) has of each resource, with entries as in
#: `placeopt.core.kernels.first_above`: the most free room, below all sizes where no hop may go; the
#: least of load and what is waited for, minus capacity; the least and the largest capacity.
FREE, SHORT, LEAST, MOST = range(4)
_NEVER = 2**62


@kernel
def _may_host(moves, state, n):
    """Return whether a hop may go to node n: not to one that has been emptied for good."""
    return moves.usable[n] and not (moves.leaves[n] and state.claims[n] == 0)


@kernel
def fill_rooms(tree, moves, state):
    """Write the whole tree; changes `tree`."""
    size = len(tree) // 2
    for r in range(tree.shape[1]):
        for i in range(size, 2 * size):
            tree[i, r, FREE], tree[i, r, SHORT] = -_NEVER, _NEVER // 2
            tree[i, r, LEAST], tree[i, r, MOST] = _NEVER, 1
        for n in range(len(moves.capacity)):
            i, capacity = size + n, moves.capacity[n, r]
            tree[i, r, LEAST] = tree[i, r, MOST] = max(1, capacity)
            tree[i, r, SHORT] = state.waiting[n, r] + state.load[n, r] - capacity
            if _may_host(moves, state, n):
                tree[i, r, FREE] = capacity - state.load[n, r]
        for i in range(size - 1, 0, -1):
            tree[i, r, FREE] = max(tree[2 * i, r, FREE], tree[2 * i + 1, r, FREE])
            tree[i, r, SHORT] = min(tree[2 * i, r, SHORT], tree[2 * i + 1, r, SHORT])
            tree[i, r, LEAST] = min(tree[2 * i, r, LEAST], tree[2 * i + 1, r, LEAST])
            tree[i, r, MOST] = max(tree[2 * i, r, MOST], tree[2 * i + 1, r, MOST])


@kernel
def put_room(tree, moves, state, n):
    """Write the room of node n as it is now; changes `tree`."""
    hosts = _may_host(moves, state, n)
    for r in range(tree.shape[1]):
        i, load = len(tree) // 2 + n, state.load[n, r]
        free = moves.capacity[n, r] - load if hosts else -_NEVER
        short = state.waiting[n, r] + load - moves.capacity[n, r]
        while tree[i, r, FREE] != free or tree[i, r, SHORT] != short:
            tree[i, r, FREE], tree[i, r, SHORT] = free, short
            if i == 1:
                break
            i >>= 1
            free = max(tree[2 * i, r, FREE], tree[2 * i + 1, r, FREE])
            short = min(tree[2 * i, r, SHORT], tree[2 * i + 1, r, SHORT])


@kernel
def _bound(tree, i, new, p, level):
    """Return the score of a hop of move p to node i of the tree, or more than any below it.

    It falls with the room that the node then lacks, or has left. It is minus infinity where the
    move does not fit.
    """
    score = float(level)
    for r in range(tree.shape[1]):
        if new[p, r] > tree[i, r, FREE] and (r < 2 or new[p, r] > 0):
            return -np.inf
        short = tree[i, r, SHORT] + new[p, r]
        score -= short / tree[i, r, MOST] * 10 if short > 0 else short / tree[i, r, LEAST] * 0.01
    return score


@kernel
def _score(moves, state, n, p, level):
    """Return what `_bound` returns at node n, without a tree."""
    if not (_may_host(moves, state, n) and fits(moves.capacity, state.load, moves.new, p, n)):
        return -np.inf
    score = float(level)
    for r in range(moves.capacity.shape[1]):
        capacity = moves.capacity[n, r]
        short = state.waiting[n, r] + state.load[n, r] + moves.new[p, r] - capacity
        score -= short / max(1, capacity) * (10 if short > 0 else 0.01)
    return score


@kernel
def next_better(tree, moves, state, p, level, after, best):
    """Return the first node after node `after` with a score above `best`, and the score.

    Parameters
    ----------
    tree : int array
        As of now; one without entries is not used.
    moves : Moves
    state : OrderState
    p : int
        The move.
    level : int
        What its score begins with.
    after : int
        -1 for all nodes.
    best : float

    Returns
    -------
    node : int
        -1 where there is none.
    score : float
    """
    size = len(tree) // 2
    if size == 0:
        for n in range(after + 1, len(moves.capacity)):
            score = _score(moves, state, n, p, level)
            if score > best:
                return n, score
        return -1, best
    i = 1 if after < 0 else following(size + after)
    while i > 0:
        score = _bound(tree, i, moves.new, p, level)
        if score <= best:
            i = following(i)
        elif i >= size:
            return i - size, score
        else:
            i *= 2
    return -1, best
