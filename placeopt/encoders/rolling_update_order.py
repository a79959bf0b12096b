"""In which order to make the moves of a rolling update: exact search for a direct order, then hops, then stops.

A *direct* order makes every move once. A node is *safe* when it has room for all that is still to arrive and, on top, for the
largest restart still to be made in place there (and for the growth of those restarts): whatever is pending on a safe node can be
made at once without loss. So can a restart in place that fits and does not grow. What remains is searched depth first, each
connected part of the graph of moves on its own, remembering the sets of moves from which no order exists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.compiled import kernel


class Moves(NamedTuple):
    """What is to be done: P moves on N nodes."""

    capacity: np.ndarray  # (N, 2)
    usable: np.ndarray  # (N,) may take a copy on its way
    home: np.ndarray  # (P,) where each runs at first
    old: np.ndarray  # (P, 2)
    new: np.ndarray  # (P, 2)
    target: np.ndarray  # (P,)
    pinned: np.ndarray  # (P,) may not leave its node on the way
    first: np.ndarray  # (N + 1,) into members
    members: np.ndarray  # (P,) moves by target


class State(NamedTuple):
    """What has been done so far."""

    load: np.ndarray  # (N, 2)
    where: np.ndarray  # (P,) node of the running copy, -1 stopped
    size: np.ndarray  # (P, 2) of the running copy
    todo: np.ndarray  # (P,)
    arriving: np.ndarray  # (N, 2) still to arrive from elsewhere
    growth: np.ndarray  # (N, 2) what restarts in place still add
    dirty: np.ndarray  # (N,) in the queue
    queue: np.ndarray  # (N,) nodes to look at
    steps: np.ndarray  # (3 P + 1, 2) move, node
    count: np.ndarray  # (4,) steps, queued, hops, stops
    random: np.ndarray  # (1,) uint64


FOUND, NONE, UNKNOWN = 1, 0, -1
STEPS, QUEUED, HOPS, STOPS = 0, 1, 2, 3


@kernel
def _begin(moves, load, seed):
    """Return the state before the first move, every node queued."""
    count_nodes, count_moves = len(moves.capacity), len(moves.target)
    arriving, growth = np.zeros((count_nodes, 2), np.int64), np.zeros((count_nodes, 2), np.int64)
    for p in range(count_moves):
        n = moves.target[p]
        for r in range(2):
            if moves.home[p] == n:
                growth[n, r] += max(0, moves.new[p, r] - moves.old[p, r])
            else:
                arriving[n, r] += moves.new[p, r]
    counts = np.zeros(4, np.int64)
    counts[QUEUED] = count_nodes
    return State(
        load.copy(), moves.home.copy(), moves.old.copy(), np.ones(count_moves, np.bool_), arriving, growth,
        np.ones(count_nodes, np.bool_), np.arange(count_nodes), np.empty((3 * count_moves + 1, 2), np.int64), counts,
        np.full(1, np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1), np.uint64),
    )  # fmt: skip


@kernel
def _uniform(random):
    """Return the next number of a xorshift generator, in [0, 1)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _pending(moves, state, p, sign):
    """Add (1) or take away (-1) move p from what its target still waits for."""
    n = moves.target[p]
    for r in range(2):
        if state.where[p] == n:
            state.growth[n, r] += sign * max(0, moves.new[p, r] - state.size[p, r])
        else:
            state.arriving[n, r] += sign * moves.new[p, r]


@kernel
def _queue(state, n):
    if n >= 0 and not state.dirty[n]:
        state.dirty[n] = True
        state.queue[state.count[QUEUED]] = n
        state.count[QUEUED] += 1


@kernel
def _make(moves, state, p, n):
    """Make one step: start p on node n and end its old copy, or stop it (n < 0)."""
    _pending(moves, state, p, -1)
    before = state.where[p]
    for r in range(2):
        if n >= 0:
            state.load[n, r] += moves.new[p, r]
        if before >= 0:
            state.load[before, r] -= state.size[p, r]
        if n >= 0:
            state.size[p, r] = moves.new[p, r]
    state.where[p] = n
    if n == moves.target[p]:
        state.todo[p] = False
    else:
        _pending(moves, state, p, 1)
    state.steps[state.count[STEPS], 0] = p
    state.steps[state.count[STEPS], 1] = n
    state.count[STEPS] += 1
    _queue(state, before)


@kernel
def _undo(moves, state, down_to):
    """Take back direct moves until `down_to` steps remain."""
    while state.count[STEPS] > down_to:
        state.count[STEPS] -= 1
        p = state.steps[state.count[STEPS], 0]
        n, home = moves.target[p], moves.home[p]
        for r in range(2):
            state.load[n, r] -= moves.new[p, r]
            state.load[home, r] += moves.old[p, r]
            state.size[p, r] = moves.old[p, r]
        state.where[p] = home
        state.todo[p] = True
        _pending(moves, state, p, 1)


@kernel
def _fits(moves, state, p, n):
    for r in range(2):
        if state.load[n, r] + moves.new[p, r] > moves.capacity[n, r]:
            return False
    return True


@kernel
def _lacking(moves, state, n, leaving):
    """Return by what share of its capacity node n falls short of being safe, once move `leaving` (or none, -1) has left it."""
    total = 0.0
    for r in range(2):
        largest = 0
        for k in range(moves.first[n], moves.first[n + 1]):
            q = moves.members[k]
            if state.todo[q] and state.where[q] == n and q != leaving:
                largest = max(largest, moves.new[q, r])
        need = state.load[n, r] + state.arriving[n, r] + state.growth[n, r] + largest - moves.capacity[n, r]
        if leaving >= 0:
            need -= state.size[leaving, r]
        if need > 0:
            total += need / max(1, moves.capacity[n, r])
    return total


@kernel
def _close(moves, state):
    """Make every move that can be made without loss, starting from the queued nodes."""
    while state.count[QUEUED] > 0:
        state.count[QUEUED] -= 1
        n = state.queue[state.count[QUEUED]]
        state.dirty[n] = False
        if moves.first[n] == moves.first[n + 1]:
            continue
        safe = _lacking(moves, state, n, -1) == 0.0
        for arrivals in range(2):  # in a safe node what arrives goes first: the room was counted for all of it
            for k in range(moves.first[n], moves.first[n + 1]):
                p = moves.members[k]
                if not state.todo[p] or (state.where[p] == n) == (arrivals == 0):
                    continue
                shrinks = moves.new[p, 0] <= state.size[p, 0] and moves.new[p, 1] <= state.size[p, 1]
                if safe or (state.where[p] == n and shrinks and _fits(moves, state, p, n)):
                    _make(moves, state, p, n)


@kernel
def _score(moves, state, p, noise):
    """Return how promising move p is now: what it relieves where it leaves, against the share of the room that it takes."""
    n, src = moves.target[p], state.where[p]
    taken = 0.0
    for r in range(2):
        if moves.new[p, r] > 0:
            taken = max(taken, moves.new[p, r] / (moves.capacity[n, r] - state.load[n, r]))
    score = -taken
    if src >= 0 and src != n:
        after = _lacking(moves, state, src, p)
        score += 2.0 * (_lacking(moves, state, src, -1) - after)
        if after == 0.0:
            score += 1.0
    if noise > 0:
        score += noise * _uniform(state.random)
    return score


@kernel
def _candidates(moves, state, part, noise, chosen, scores, at):
    """Write the moves of a part that fit now to chosen[at:], best first; return where they end, -1 for no space."""
    end = at
    for p in part:
        if not state.todo[p] or not _fits(moves, state, p, moves.target[p]):
            continue
        if end >= len(chosen):
            return -1
        score, j = _score(moves, state, p, noise), end
        while j > at and scores[j - 1] < score:
            scores[j], chosen[j] = scores[j - 1], chosen[j - 1]
            j -= 1
        scores[j], chosen[j] = score, p
        end += 1
    return end


@kernel
def _mark(state, part, mask):
    """Write the set of moves of a part still to be made as bits; return its hash."""
    mask[:] = 0
    for k in range(len(part)):
        if state.todo[part[k]]:
            mask[k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for w in range(len(mask)):
        mixed = (mixed ^ mask[w]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@kernel
def _find(table, used, mask, mixed):
    """Return the slot of `mask` in an open hash table, or the free slot where it belongs."""
    slot = np.int64(mixed & np.uint64(len(used) - 1))
    while used[slot]:
        same = True
        for w in range(len(mask)):
            same = same and table[slot, w] == mask[w]
        if same:
            return slot
        slot = (slot + 1) & (len(used) - 1)
    return slot


@kernel
def _search(moves, state, part, limit, noise):
    """Search a direct order of a part depth first; FOUND leaves it made, NONE is a proof, UNKNOWN gave up."""
    base, total = state.count[STEPS], len(part)
    chosen, scores = np.empty(64 * total + 4096, np.int64), np.empty(64 * total + 4096)
    mark, cursor, end = np.zeros(total + 2, np.int64), np.zeros(total + 2, np.int64), np.zeros(total + 2, np.int64)
    mask = np.empty((total + 63) // 64, np.uint64)
    table, used = np.empty((1, len(mask)), np.uint64), np.zeros(1, np.bool_)
    states, depth = 0, 0
    mark[0] = base
    end[0] = _candidates(moves, state, part, noise, chosen, scores, 0)
    while True:
        if state.count[STEPS] - base == total:
            return FOUND
        if end[depth] < 0 or states > limit:
            _undo(moves, state, base)
            return UNKNOWN
        if cursor[depth] == end[depth]:  # a dead end: remember it, so that no other way leads here again
            if depth == 0:
                return NONE
            if len(used) == 1:
                size = 2
                while size < 4 * limit:
                    size *= 2
                table, used = np.empty((size, len(mask)), np.uint64), np.zeros(size, np.bool_)
            slot = _find(table, used, mask, _mark(state, part, mask))
            used[slot] = True
            table[slot] = mask
            depth -= 1
            _undo(moves, state, mark[depth])
            continue
        p = chosen[cursor[depth]]
        cursor[depth] += 1
        _make(moves, state, p, moves.target[p])
        _close(moves, state)
        states += 1
        if len(used) > 1 and used[_find(table, used, mask, _mark(state, part, mask))]:
            _undo(moves, state, mark[depth])
            continue
        depth += 1
        mark[depth], cursor[depth] = state.count[STEPS], end[depth - 1]
        end[depth] = _candidates(moves, state, part, noise, chosen, scores, cursor[depth])


@kernel
def _enables(moves, state, p):
    """Return how many pending moves to the node of p (p itself included) would fit if p left it."""
    n, found = state.where[p], 0
    for k in range(moves.first[n], moves.first[n + 1]):
        q = moves.members[k]
        if state.todo[q] and not _fits(moves, state, q, n):
            fits = True
            for r in range(2):
                fits = fits and state.load[n, r] - state.size[p, r] + moves.new[q, r] <= moves.capacity[n, r]
            found += fits
    return found


@kernel
def _hop(moves, state, part, hopped):
    """Start on its way, on the node with most to spare, the move that unblocks most; return whether there was one."""
    best, best_p, best_n = -np.inf, -1, -1
    enables = np.array([min(8, _enables(moves, state, p)) if state.where[p] >= 0 else 0 for p in part])
    for n in range(len(moves.capacity)):
        if not moves.usable[n]:
            continue
        for k in range(len(part)):
            p = part[k]
            if not state.todo[p] or hopped[p] or moves.pinned[p] or state.where[p] in (-1, n) or not _fits(moves, state, p, n):
                continue
            score = float(enables[k])
            for r in range(2):
                short = state.arriving[n, r] + state.growth[n, r] + state.load[n, r] + moves.new[p, r] - moves.capacity[n, r]
                score -= short / max(1, moves.capacity[n, r]) * (10 if short > 0 else 0.01)
            if score > best:
                best, best_p, best_n = score, p, n
    if best_p >= 0:
        hopped[best_p] = True
        state.count[HOPS] += 1
        _make(moves, state, best_p, best_n)
    return best_p >= 0


@kernel
def _stop(moves, state, part):
    """Stop the running copy that unblocks most, of equals the largest; return whether there was one."""
    best, best_p = -1.0, -1
    for p in part:
        if state.todo[p] and state.where[p] >= 0:
            n = state.where[p]
            share = max(state.size[p, 0] / max(1, moves.capacity[n, 0]), state.size[p, 1] / max(1, moves.capacity[n, 1]))
            score = 2.0 * _enables(moves, state, p) + min(1.0, share)
            if score > best:
                best, best_p = score, p
    if best_p >= 0:
        state.count[STOPS] += 1
        _make(moves, state, best_p, -1)
    return best_p >= 0


@kernel
def _force(moves, state, part, max_hops, max_stops, noise):
    """Finish a part move by move: the best that fits, else a hop, else a stop; return whether all is made."""
    hopped = np.zeros(len(moves.target), np.bool_)
    while True:
        best, best_p, left = -np.inf, -1, False
        for p in part:
            left = left or state.todo[p]
            if state.todo[p] and _fits(moves, state, p, moves.target[p]):
                score = _score(moves, state, p, noise)
                if score > best:
                    best, best_p = score, p
        if not left:
            return True
        if best_p >= 0:
            _make(moves, state, best_p, moves.target[best_p])
        elif not (state.count[HOPS] < max_hops and _hop(moves, state, part, hopped)) and not (state.count[STOPS] < max_stops and _stop(moves, state, part)):
            return False
        _close(moves, state)


@kernel
def _parts(moves, state):
    """Return (moves still to be made, part by part; where each part begins and the last ends)."""
    root = np.arange(len(moves.capacity))
    todo = np.flatnonzero(state.todo)
    for p in todo:
        a, b = moves.home[p], moves.target[p]
        while root[a] != a:
            root[a] = a = root[root[a]]
        while root[b] != b:
            root[b] = b = root[root[b]]
        root[a] = b
    label = np.empty(len(todo), np.int64)
    for k in range(len(todo)):
        a = moves.target[todo[k]]
        while root[a] != a:
            a = root[a]
        label[k] = a
    by = np.argsort(label, kind="mergesort")
    cuts = [0] + [k for k in range(1, len(by)) if label[by[k]] != label[by[k - 1]]] + [len(by)]
    return todo[by], np.array(cuts)


@kernel
def order(moves, load, limit, max_hops, max_stops, noise, seed):
    """Order all moves from the node loads `load`.

    Every part is searched for a direct order, at most `limit` states each; the parts that have none, or none was found, are
    finished with at most `max_hops` hops and `max_stops` stops. Returns (state, whether a direct order exists: FOUND, NONE,
    UNKNOWN; whether all moves were made).
    """
    state = _begin(moves, load, seed)
    _close(moves, state)
    todo, cuts = _parts(moves, state)
    direct, complete, late = FOUND, True, np.zeros(len(cuts), np.bool_)
    for k in range(len(cuts) - 1):
        if cuts[k] < cuts[k + 1]:
            found = _search(moves, state, todo[cuts[k] : cuts[k + 1]], limit, noise) if limit > 0 else UNKNOWN
            late[k] = found != FOUND
            direct = NONE if found == NONE else min(direct, found) if direct != NONE else NONE
    for k in range(len(cuts) - 1):
        if late[k]:
            complete = _force(moves, state, todo[cuts[k] : cuts[k + 1]], max_hops, max_stops, noise) and complete
    if complete and state.count[HOPS] + state.count[STOPS] == 0:
        direct = FOUND
    return state, direct, complete


@kernel
def grouped(capacity, usable, home, old, new, target, pinned):
    """Return the `Moves` of these arrays."""
    first = np.zeros(len(capacity) + 1, np.int64)
    for n in target:
        first[n + 1] += 1
    return Moves(capacity, usable, home, old, new, target, pinned, np.cumsum(first), np.argsort(target, kind="mergesort"))
