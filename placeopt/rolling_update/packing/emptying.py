"""Kernels that empty a node by exchanges, each of which fills another node further.

One or two microservices leave the node, and at most two of the other node come in return. So what
is free on many nodes, too little on each for any microservice, comes together on one. No exchange
overloads a node, breaks a latency limit, moves what rules are about or uses another node that is
paid when it is used.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.common import below
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.packing.kernels import is_unbound, opens, put

#: Microservices of one node that are looked at in an exchange, at most; the pairs of both nodes are
#: compared. Set by hand.
_MAX_LISTED = 8
#: Least weight that an exchange has to take off a node, and off one that only passes room on.
_LEAST_GAIN, _LEAST_PASSED_ON = 1e-9, 0.005
#: Nodes in a row without room before microservices come in return. Fewer of them move so.
_PLAIN = 300


@allocating_kernel
def empty_node(instance, state, n, rounds):
    """Empty node n, which is no longer open, by exchanges with open nodes; changes `state`.

    Where nothing can go from node n to a node of another cluster, a random node of the cluster of n
    gives, and takes from n in turn.

    Parameters
    ----------
    instance : PackingInstance
    state : PackingState
    n : int
    rounds : int
        Other nodes that are looked at, at most.

    Returns
    -------
    bool
        Whether the node is empty. What was exchanged until then stays if not.
    """
    nodes, fruitless, swaps = state.open_first[-1], 0, False
    lists, c, k = np.empty((3, _MAX_LISTED), np.int64), instance.cluster[n], np.int64(0)
    low, high = state.open_first[c], state.open_first[c + 1]
    if nodes > 0:
        k = below(state.random, nodes)
    for _ in range(rounds):
        if state.head[n] < 0 or fruitless == nodes:
            break
        other = state.open_nodes[k]
        k = k + 1 if k + 1 < nodes else np.int64(0)
        used = instance.paid[other] or state.head[other] >= 0  # none is put to use
        if used and _exchange(instance, state, n, other, swaps, _LEAST_GAIN, lists):
            fruitless = 0
            continue
        fruitless += 1
        if not swaps:
            if fruitless == min(nodes, _PLAIN):
                fruitless, swaps = 0, True
        elif used and instance.cluster[other] != c and low < high:
            giver = state.open_nodes[low + below(state.random, high - low)]
            if _exchange(instance, state, giver, other, True, _LEAST_PASSED_ON, lists):
                _exchange(instance, state, n, giver, True, _LEAST_GAIN, lists)
                fruitless = 0
    return state.head[n] < 0


@kernel
def _exchange(instance, state, n, other, swaps, least, lists):
    """Make the exchange between two nodes that takes most weight off node n; changes `state`.

    It takes more than `least`. Nothing comes in return without `swaps`. `lists` (3, listed) is
    scratch. Returns whether there is such an exchange.
    """
    own, theirs, best = lists[0], lists[1], lists[2]
    num_mine = _list_movable(instance, state, n, other, own)
    num_theirs = _list_movable(instance, state, other, n, theirs) if swaps else 0
    if not _find(
        instance.capacity,
        state.load,
        instance.size,
        instance.weight,
        n,
        other,
        own[:num_mine],
        theirs[:num_theirs],
        least,
        best,
    ):
        return False
    for k in range(4):
        if best[k] >= 0:
            put(instance, state, best[k], other if k < 2 else n)
    return True


@kernel
def _list_movable(instance, state, n, to, listed):
    """Write microservices of node n that may go to node `to`, to `listed`; return how many."""
    near, count, i = instance.cluster[n] == instance.cluster[to], 0, state.head[n]
    while i >= 0 and count < len(listed):
        free = instance.free[i] if near else is_unbound(instance.free, instance.peer_first, i)
        if free and opens(instance.node_set, instance.allowed, i, to):
            listed[count] = i
            count += 1
        i = state.after[i]
    return count


@kernel
def _find(capacity, load, size, weight, n, other, mine, theirs, least, best):
    """Find the exchange between two nodes that takes most weight off node n, more than `least`.

    It is written to `best`: two of `mine`, which node n hosts, and two of `theirs`, which the other
    hosts; -1 for none. Returns whether there is one.
    """
    most = least
    for a in range(len(mine)):
        for b in range(a, len(mine)):
            first, second = mine[a], mine[b] if b > a else np.int64(-1)
            value = weight[first] + (weight[second] if b > a else 0.0)
            for c in range(-1, len(theirs)):
                third = theirs[c] if c >= 0 else np.int64(-1)
                kept = value - (weight[third] if c >= 0 else 0.0)
                if kept <= most:
                    continue
                for d in range(c, len(theirs) if c >= 0 else 0):
                    fourth = theirs[d] if d > c else np.int64(-1)
                    gain = kept - (weight[fourth] if d > c else 0.0)
                    if gain > most and _has_room(
                        capacity, load, size, n, other, first, second, third, fourth
                    ):
                        most = gain
                        best[0], best[1], best[2], best[3] = first, second, third, fourth
    return most > least


@kernel
def _has_room(capacity, load, size, n, other, first, second, third, fourth):
    """Return whether an exchange overloads neither node further; -1 for no microservice.

    `first` and `second` leave node n, `third` and `fourth` the other.
    """
    for r in range(capacity.shape[1]):
        moved = size[first, r]
        if second >= 0:
            moved += size[second, r]
        if third >= 0:
            moved -= size[third, r]
        if fourth >= 0:
            moved -= size[fourth, r]
        if moved > 0 and load[other, r] + moved > capacity[other, r]:
            return False
        if moved < 0 and load[n, r] - moved > capacity[n, r]:
            return False
    return True
