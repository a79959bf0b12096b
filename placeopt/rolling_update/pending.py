"""What is known of the pending moves of a part: those that fit, hop, or stop.

A few moves are looked at, all of them, whenever something is asked. Of many, only what a step
changes is looked at again: the nodes that it leaves and reaches, and the moves there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.first_above import fill, next_above, power_above, put
from placeopt.rolling_update.packing.loads import fits, share
from placeopt.rolling_update.roomiest import fill_rooms, put_room

#: Most moves of a part that are all looked at: less than are compared before one is made.
FEW = 63
#: Columns of `Pending.moves`: place in the part, -1 in no part or another one; steps that were made
#: when the move was scored last; the next and the one before of the copies that are still to leave
#: a node or restart there. Columns of `Pending.nodes`: steps that were made when the node changed
#: last, 1 at the least; one of those copies.
_PLACE, _SCORED, _AFTER, _AHEAD = range(4)
_CHANGED, _HEAD = range(2)
#: Rows of `Pending.trees`: 1 for what fits now; how many moves would fit if one left its node; what
#: a hop brings, and what a stop brings, -1 for what may not do so.
_READY, BY_LEAVING, BY_HOP, _BY_STOP = range(4)
#: Entries of `Pending.tally`: values in a tree, pending moves of the part, steps whose moves and
#: whose nodes were looked at, whether the nodes were looked at before, in this part and at all.
SIZE, _LEFT, _READ, _SEEN, _BUILT, _BEGUN = range(6)
#: No copy.
_NOBODY = -1


class Pending(NamedTuple):
    """Tables of the moves of a part; those of moves and nodes are empty where there are few."""

    moves: np.ndarray  # (P, 4)
    nodes: np.ndarray  # (N, 2)
    scores: np.ndarray  # (P,)
    trees: np.ndarray  # (4, 2 size) as in `placeopt.core.kernels.first_above`, over the part
    rooms: np.ndarray  # as in `placeopt.rolling_update.roomiest`
    tally: np.ndarray  # (6,)


@allocating_kernel
def pending_moves(moves, largest):
    """Return tables for parts of at most `largest` moves; `begin_part` fills them."""
    nodes, resources, total = len(moves.capacity), moves.capacity.shape[1], len(moves.target)
    rooms = 2 * power_above(nodes)
    if largest <= FEW:
        nodes = total = rooms = 0
    return Pending(
        np.full((total, 4), -1),
        np.ones((nodes, 2), np.int64),
        np.empty(total),
        np.empty((4, 2 * power_above(largest))),
        np.empty((rooms, resources, 4), np.int64),
        np.zeros(6, np.int64),
    )


@kernel
def are_few(pending):
    """Return whether all moves are looked at."""
    return len(pending.scores) == 0


@kernel
def begin_part(pending, moves, state, part, num_steps):
    """Write which moves of a part fit, if there are many; return how many are pending.

    Where they are few, these come first in the part; changes `pending`, `part`.
    """
    if are_few(pending):
        return _keep_pending(state, part)
    size, ready, tally = power_above(len(part)), pending.trees[_READY], pending.tally
    tally[SIZE], tally[_BUILT], tally[_READ], tally[_LEFT] = size, 0, num_steps, 0
    for k in range(size):
        ready[size + k] = 0.0
    for k in range(len(part)):
        p = part[k]
        tally[_LEFT] += state.todo[p]
        pending.moves[p, _PLACE], pending.moves[p, _SCORED] = k, 0
        if state.todo[p] and fits(moves.capacity, state.load, moves.new, p, moves.target[p]):
            ready[size + k] = 1.0
    fill(ready, size)
    return tally[_LEFT]


@kernel
def _keep_pending(state, part):
    """Move the pending moves of a part to its front, return how many they are; changes `part`."""
    left = 0
    for p in part:
        if state.todo[p]:
            part[left] = p
            left += 1
    return left


@kernel
def end_part(pending, part):
    """Forget the moves of a part; changes `pending`."""
    if not are_few(pending):
        for p in part:
            pending.moves[p, _PLACE] = -1


@kernel
def read_steps(pending, moves, state, part, num_steps):
    """Look at the moves that may fit, or not, since the steps made last; changes `pending`.

    Returns how many moves of the part are pending, as `begin_part`.
    """
    if are_few(pending):
        return _keep_pending(state, part)
    for s in range(pending.tally[_READ], num_steps):
        p, n, before = state.steps[s, 0], state.steps[s, 1], state.steps[s, 2]
        if n == moves.target[p] and pending.moves[p, _PLACE] >= 0:
            pending.tally[_LEFT] -= 1
        pending.nodes[moves.target[p], _CHANGED] = num_steps + 1
        if before >= 0:
            _read_node(pending, moves, state, before, num_steps)
        if n >= 0 and n != before:
            _read_node(pending, moves, state, n, num_steps)
    pending.tally[_READ] = num_steps
    return pending.tally[_LEFT]


@kernel
def _read_node(pending, moves, state, n, num_steps):
    """Look at the moves to node n; changes `pending`."""
    pending.nodes[n, _CHANGED] = num_steps + 1
    for k in range(moves.first[n], moves.first[n + 1]):
        q = moves.members[k]
        if pending.moves[q, _PLACE] >= 0:
            fit = state.todo[q] and fits(moves.capacity, state.load, moves.new, q, n)
            put(
                pending.trees[_READY],
                pending.tally[SIZE],
                pending.moves[q, _PLACE],
                1.0 if fit else 0.0,
            )


@kernel
def next_fitting(pending, moves, state, part, k):
    """Return the place of the first move from place k on that fits now, else -1."""
    if not are_few(pending):
        return next_above(pending.trees[_READY], pending.tally[SIZE], k, 1.0)
    for j in range(k, len(part)):
        p = part[j]
        if state.todo[p] and fits(moves.capacity, state.load, moves.new, p, moves.target[p]):
            return j
    return -1


@kernel
def is_scored(pending, state, p, n):
    """Return whether move p to node n was scored since either of its nodes changed."""
    if are_few(pending):
        return False
    at, source = pending.moves[p, _SCORED], state.where[p]
    return at >= pending.nodes[n, _CHANGED] and (
        source < 0 or at >= pending.nodes[source, _CHANGED]
    )


@kernel
def keep_score(pending, p, score, num_steps):
    """Keep the score of a move, if there are many; changes `pending`."""
    if not are_few(pending):
        pending.scores[p], pending.moves[p, _SCORED] = score, num_steps + 1


@kernel
def read_nodes(pending, moves, state, part, num_steps):
    """Look at nodes, and at the copies on them, since the last call; changes `pending`."""
    tally = pending.tally
    if are_few(pending):
        tally[SIZE], tally[_BUILT] = power_above(len(part)), 0
    elif not tally[_BEGUN]:
        _link_all(pending, state)
        fill_rooms(pending.rooms, moves, state)
        tally[_BEGUN] = 1
    else:
        for s in range(tally[_SEEN], num_steps):
            _relink(pending, moves, state.steps[s, 0], state.steps[s, 1], state.steps[s, 2])
        for s in range(tally[_SEEN], num_steps):
            _see_step(pending, moves, state, s)
    tally[_SEEN] = num_steps
    if not tally[_BUILT]:
        _weigh_all(pending, moves, state, part)
        tally[_BUILT] = 1


@kernel
def _link_all(pending, state):
    """Link all pending copies to their nodes; changes `pending`."""
    for n in range(len(pending.nodes)):
        pending.nodes[n, _HEAD] = _NOBODY
    for p in range(len(state.todo)):
        if state.todo[p] and state.where[p] >= 0:
            _link(pending, p, state.where[p])


@kernel
def _link(pending, p, n):
    """Put the copy of move p on node n; changes `pending`."""
    first = pending.nodes[n, _HEAD]
    pending.moves[p, _AFTER], pending.moves[p, _AHEAD] = first, _NOBODY
    pending.nodes[n, _HEAD] = p
    if first >= 0:
        pending.moves[first, _AHEAD] = p


@kernel
def _relink(pending, moves, p, n, before):
    """Follow a step of move p from node `before` to node n, either -1 for none."""
    if before >= 0:
        after, ahead = pending.moves[p, _AFTER], pending.moves[p, _AHEAD]
        if ahead >= 0:
            pending.moves[ahead, _AFTER] = after
        else:
            pending.nodes[before, _HEAD] = after
        if after >= 0:
            pending.moves[after, _AHEAD] = ahead
    if n >= 0 and n != moves.target[p]:
        _link(pending, p, n)


@kernel
def _see_step(pending, moves, state, s):
    """Look at what step s changed; changes `pending`."""
    p, n, before = state.steps[s, 0], state.steps[s, 1], state.steps[s, 2]
    _see(pending, moves, state, moves.target[p])
    if before >= 0:
        _see(pending, moves, state, before)
    if n >= 0 and n != moves.target[p]:
        _see(pending, moves, state, n)
    if pending.tally[_BUILT] and pending.moves[p, _PLACE] >= 0:
        _weigh(pending, moves, state, p)


@kernel
def _see(pending, moves, state, n):
    """Look at the room of node n, and at the copies that run there; changes `pending`."""
    put_room(pending.rooms, moves, state, n)
    if pending.tally[_BUILT]:
        q = pending.nodes[n, _HEAD]
        while q >= 0:
            if pending.moves[q, _PLACE] >= 0:
                _weigh(pending, moves, state, q)
            q = pending.moves[q, _AFTER]


@kernel
def _weigh(pending, moves, state, p):
    """Write what a hop or a stop of move p would bring; changes `pending`."""
    trees, size, k = pending.trees, pending.tally[SIZE], pending.moves[p, _PLACE]
    enables = _enables(moves, state, p)
    put(trees[BY_LEAVING], size, k, enables)
    put(trees[BY_HOP], size, k, _hop_brings(moves, state, p, enables))
    put(trees[_BY_STOP], size, k, _stop_brings(moves, state, p, enables))


@kernel
def _weigh_all(pending, moves, state, part):
    """Write what hops and stops of a part would bring, hops only if few; changes `pending`."""
    trees, size = pending.trees, pending.tally[SIZE]
    for k in range(size):
        i = size + k
        trees[BY_LEAVING, i], trees[BY_HOP, i], trees[_BY_STOP, i] = 0.0, -1.0, -1.0
        if k < len(part):
            enables = _enables(moves, state, part[k])
            trees[BY_LEAVING, i] = enables
            trees[BY_HOP, i] = _hop_brings(moves, state, part[k], enables)
            if not are_few(pending):
                trees[_BY_STOP, i] = _stop_brings(moves, state, part[k], enables)
    fill(trees[BY_LEAVING], size)
    fill(trees[BY_HOP], size)
    if not are_few(pending):
        fill(trees[_BY_STOP], size)


@kernel
def _hop_brings(moves, state, p, enables):
    """Return what a hop of move p would enable, -1 where it may not hop."""
    here = state.where[p]
    may = state.todo[p] and here >= 0 and here == moves.home[p] and here != moves.waiting
    return enables if may and not moves.pinned[p] else -1.0


@kernel
def _stop_brings(moves, state, p, enables):
    """Return what a stop of move p would bring, -1 where it cannot stop."""
    here = state.where[p]
    if not state.todo[p] or here < 0 or moves.waiting in (here, moves.target[p]):
        return -1.0
    return 2.0 * enables + min(1.0, share(moves.capacity, here, state.size[p]))


@kernel
def best_stop(pending, moves, state, part):
    """Return the place of the first move of which a stop brings most, -1 where none can stop."""
    size = pending.tally[SIZE]
    if not are_few(pending):
        stops = pending.trees[_BY_STOP]
        return next_above(stops, size, 0, stops[1]) if stops[1] >= 0 else -1
    best, best_k = -1.0, -1
    for k in range(len(part)):
        value = _stop_brings(moves, state, part[k], pending.trees[BY_LEAVING, size + k])
        if value > best:
            best, best_k = value, k
    return best_k


@kernel
def _enables(moves, state, p):
    """Return how many pending moves to the node of p, p included, would fit only if p left it."""
    n, result = state.where[p], 0.0
    if not state.todo[p] or n < 0:
        return result
    for k in range(moves.first[n], moves.first[n + 1]):
        q = moves.members[k]
        if state.todo[q] and not fits(moves.capacity, state.load, moves.new, q, n):
            would = True
            for r in range(state.load.shape[1]):
                amount = state.load[n, r] - state.size[p, r] + moves.new[q, r]
                would = would and amount <= moves.capacity[n, r]
            if would:
                result += 1.0
    return result
