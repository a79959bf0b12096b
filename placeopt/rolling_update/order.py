"""The order of the moves of a rolling update, compiled.

A *direct* order makes every move once. It is searched exactly; where there is none, a move takes a
*hop* (it first starts on another node) or a *stop* (its old copy ends before its new one starts).

A node is *safe* when it has room for all copies that are still to arrive and, on top, for the
largest restart in place that is still to be made there and the growth of all of these. Every
pending move to a safe node can be made at once without loss. So can a restart in place that fits
and does not grow. Moves that rules are about wait: when a copy starts or leaves, others may have
become illegal. The remaining moves form a graph between nodes, and rules connect those that they
count; each of its connected parts is searched depth first, and dead ends are remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import join, mix, root, uniform
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.packing.loads import excess, fits, share
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.rules import (
    counted,
    counters_of,
    is_ruled,
    leave,
    may_go,
    may_start,
    num_counters,
    shrinks,
    tally,
)

# -- orders ----------------------------------------------------------------------------------------

#: Answers of a search for a direct order: it was found, it does not exist, the search gave up.
FOUND, NONE, UNKNOWN = 1, 0, -1
#: Entries of `OrderState.tally`.
STEPS, QUEUED, HOPS, STOPS = 0, 1, 2, 3
#: Moves that are compared before one is made, where no direct order was found.
_MAX_COMPARED = 64
#: Largest part in which a direct order is searched; sorting what fits would dominate beyond.
_MAX_SEARCHED = 1000


class Moves(NamedTuple):
    """P moves to be made on N nodes, with R resources."""

    number: np.ndarray  # (P,) as the rules number them
    free: np.ndarray  # (P,) no rule is about it
    rules: np.ndarray  # packed, as in `placeopt.rolling_update.rules`
    waiting: int  # the node of what runs nowhere, yet or any more; -1 where there is none
    capacity: np.ndarray  # (N, R)
    usable: np.ndarray  # (N,) may host a hop
    home: np.ndarray  # (P,) node at first
    old: np.ndarray  # (P, R) size of the running copy
    new: np.ndarray  # (P, R) size of the new copy
    target: np.ndarray  # (P,) node at the end
    pinned: np.ndarray  # (P,) may not hop
    first: np.ndarray  # (N + 1,) where each node begins in members
    members: np.ndarray  # (P,) moves sorted by target
    leaves: np.ndarray  # (N,) is no domain of some rule any more once it is emptied for good
    settled: np.ndarray  # (N,) how many copies stay on a node


class OrderState(NamedTuple):
    """The steps made so far, and what they change."""

    load: np.ndarray  # (N, R)
    counts: np.ndarray  # of the rules
    where: np.ndarray  # (P,) node of the running copy, -1 stopped
    size: np.ndarray  # (P, R) of the running copy
    todo: np.ndarray  # (P,)
    claims: np.ndarray  # (N,) copies that run on a node, and moves to it that are still to be made
    waiting: np.ndarray  # (N, R) sizes still to arrive, and growth by restarts in place
    dirty: np.ndarray  # (N,) whether a node is in the queue
    queue: np.ndarray  # (N,) nodes whose moves have to be checked
    steps: np.ndarray  # (3 P + 1, 3) move, node, the node before; a negative one is none
    tally: np.ndarray  # (4,) numbers of steps, queued nodes, hops, stops
    random: np.ndarray  # (1,) uint64


@allocating_kernel
def grouped(number, free, rules, waiting, capacity, usable, home, old, new, target, pinned, hosts):
    """Return the `Moves` of arrays with the shapes given there; on each node run `hosts`."""
    leaves, settled = np.zeros(len(capacity), np.bool_), hosts.copy()
    for n in range(len(capacity)):
        leaves[n] = may_go(rules, n)
    for n in home:
        settled[n] -= 1
    first, members = np.zeros(len(capacity) + 1, np.int64), np.empty(len(target), np.int64)
    for n in target:
        first[n + 1] += 1
    for n in range(len(capacity)):
        first[n + 1] += first[n]
    at = first.copy()
    for p in range(len(target)):
        members[at[target[p]]] = p
        at[target[p]] += 1
    return Moves(
        number,
        free,
        rules,
        waiting,
        capacity,
        usable,
        home,
        old,
        new,
        target,
        pinned,
        first,
        members,
        leaves,
        settled,
    )


@allocating_kernel
def _begin(moves, load, count, seed):
    """Return the state before the first move, every node queued; load (N, R), counts are copied."""
    nodes, total = moves.capacity.shape[0], len(moves.target)
    state = OrderState(
        load=load.copy(),
        counts=count.copy(),
        where=moves.home.copy(),
        size=moves.old.copy(),
        todo=np.ones(total, np.bool_),
        claims=moves.settled.copy(),
        waiting=np.zeros(moves.capacity.shape, np.int64),
        dirty=np.ones(nodes, np.bool_),
        queue=np.arange(nodes),
        steps=np.empty((3 * total + 1, 3), np.int64),
        tally=np.zeros(4, np.int64),
        random=np.full(1, np.uint64(seed), np.uint64),
    )
    state.tally[QUEUED] = nodes
    for p in range(total):
        _wait(state.waiting, moves.new, state.size, state.where, p, moves.target[p], np.int64(1))
        state.claims[moves.home[p]] += 1
        state.claims[moves.target[p]] += 1
    for n in range(nodes):  # what nothing uses is gone before the first step
        if moves.leaves[n] and state.claims[n] == 0:
            leave(moves.rules, state.counts, n, 1)
    return state


@kernel
def _wait(waiting, new, size, where, p, n, sign):
    """Add move p to what its target n waits for (sign 1), or remove it (-1); changes `waiting`."""
    for r in range(waiting.shape[1]):
        waiting[n, r] += sign * (max(0, new[p, r] - size[p, r]) if where[p] == n else new[p, r])


@kernel
def _make(moves, state, p, n):
    """Start move p on node n and end its old copy, or stop it (n < 0); changes `state`."""
    before = state.where[p]
    _wait(state.waiting, moves.new, state.size, state.where, p, moves.target[p], np.int64(-1))
    for r in range(state.load.shape[1]):
        if before >= 0:
            state.load[before, r] -= state.size[p, r]
        if n >= 0:
            state.load[n, r] += moves.new[p, r]
            state.size[p, r] = moves.new[p, r]
    if before >= 0 and not moves.free[p]:
        tally(moves.rules, state.counts, moves.number[p], before, -1)
    if n >= 0 and not moves.free[p]:
        tally(moves.rules, state.counts, moves.number[p], n, 1)
    state.where[p] = n
    state.todo[p] = n != moves.target[p]
    if n >= 0:
        state.claims[n] += 1 if state.todo[p] else 0  # else it was claimed
    if before >= 0:
        state.claims[before] -= 1
        if state.claims[before] == 0 and moves.leaves[before]:
            leave(moves.rules, state.counts, before, 1)
    if state.todo[p]:
        _wait(state.waiting, moves.new, state.size, state.where, p, moves.target[p], np.int64(1))
    step = state.tally[STEPS]
    state.steps[step, 0], state.steps[step, 1], state.steps[step, 2] = p, n, before
    state.tally[STEPS] += 1
    if before >= 0 and not state.dirty[before]:
        state.dirty[before] = True
        state.queue[state.tally[QUEUED]] = before
        state.tally[QUEUED] += 1


@kernel
def _undo(moves, state, down_to):
    """Take back direct moves until `down_to` steps remain; changes `state`."""
    while state.tally[STEPS] > down_to:
        state.tally[STEPS] -= 1
        p = state.steps[state.tally[STEPS], 0]
        n, home = moves.target[p], moves.home[p]
        for r in range(state.load.shape[1]):
            state.load[n, r] -= moves.new[p, r]
            state.load[home, r] += moves.old[p, r]
            state.size[p, r] = moves.old[p, r]
        if not moves.free[p]:
            tally(moves.rules, state.counts, moves.number[p], n, -1)
            tally(moves.rules, state.counts, moves.number[p], home, 1)
        if state.claims[home] == 0 and moves.leaves[home]:
            leave(moves.rules, state.counts, home, -1)
        state.claims[home] += 1
        state.where[p], state.todo[p] = home, True
        _wait(state.waiting, moves.new, state.size, state.where, p, n, np.int64(1))


@kernel
def _lacking(moves, state, n, leaving):
    """Return by what share of its capacity node n falls short of being safe.

    Move `leaving` is taken as having left the node; -1 for none.
    """
    cpu = memory = 0
    for k in range(moves.first[n], moves.first[n + 1]):
        q = moves.members[k]
        if state.todo[q] and state.where[q] == n and q != leaving:
            cpu, memory = max(cpu, moves.new[q, 0]), max(memory, moves.new[q, 1])
    cpu += state.load[n, 0] + state.waiting[n, 0]
    memory += state.load[n, 1] + state.waiting[n, 1]
    if leaving >= 0:
        cpu -= state.size[leaving, 0]
        memory -= state.size[leaving, 1]
    total = excess(moves.capacity, n, 0, cpu) + excess(moves.capacity, n, 1, memory)
    for r in range(2, state.load.shape[1]):
        largest = 0
        for k in range(moves.first[n], moves.first[n + 1]):
            q = moves.members[k]
            if state.todo[q] and state.where[q] == n and q != leaving:
                largest = max(largest, moves.new[q, r])
        amount = state.load[n, r] + state.waiting[n, r] + largest
        if leaving >= 0:
            amount -= state.size[leaving, r]
        total += excess(moves.capacity, n, r, amount)
    return total


@kernel
def _grows(new, size, p):
    """Return whether the new copy of move p takes more of some resource than the running one."""
    grows = False
    for r in range(new.shape[1]):
        grows = grows or new[p, r] > size[p, r]
    return grows


@kernel
def _close(moves, state):
    """Make every move that can be made without loss, from the queued nodes on; changes `state`."""
    while state.tally[QUEUED] > 0:
        state.tally[QUEUED] -= 1
        n = state.queue[state.tally[QUEUED]]
        state.dirty[n] = False
        if moves.first[n] == moves.first[n + 1]:
            continue
        safe = _lacking(moves, state, n, np.int64(-1)) == 0.0
        # On a safe node arrivals come first: the room was counted for all of them.
        for in_place in range(1 - safe, 2):
            for k in range(moves.first[n], moves.first[n + 1]):
                p = moves.members[k]
                if (
                    state.todo[p]
                    and (state.where[p] == n) == (in_place == 1)
                    and (moves.free[p] or not is_ruled(moves.rules, moves.number[p]))
                    and (
                        safe
                        or (
                            fits(moves.capacity, state.load, moves.new, p, n)
                            and not _grows(moves.new, state.size, p)
                        )
                    )
                ):
                    _make(moves, state, p, n)


@kernel
def _score(moves, state, p):
    """Return how promising move p is now.

    The score falls with the share of the free room that the move takes on its target, and rises
    with what it brings its source nearer to being safe.
    """
    n, source, score = moves.target[p], state.where[p], 0.0
    for r in range(state.load.shape[1]):
        if moves.new[p, r] > 0:
            score = min(score, -moves.new[p, r] / (moves.capacity[n, r] - state.load[n, r]))
    if source >= 0 and source != n:
        after = _lacking(moves, state, source, p)
        score += 2.0 * (_lacking(moves, state, source, np.int64(-1)) - after)
        if after == 0.0:
            score += 1.0
    return score


@kernel
def _noise(state, noise):
    """Return a random term for a score."""
    return noise * uniform(state.random) if noise > 0 else 0.0


@kernel
def _candidates(moves, state, part, noise, chosen, scores, at):
    """Write the moves of a part that fit now, and their scores, to ``chosen[at:]``, best first.

    Return where they end, or -1 where there is no space.
    """
    capacity, load, new = moves.capacity, state.load, moves.new
    free, target, todo = moves.free, moves.target, state.todo
    end = at
    for p in part:
        if (
            todo[p]
            and fits(capacity, load, new, p, target[p])
            and (free[p] or may_start(moves.rules, state.counts, moves.number[p], target[p]))
        ):
            if end >= len(chosen):
                return -1
            score, j = _score(moves, state, p) + _noise(state, noise), end
            while j > at and scores[j - 1] < score:
                scores[j], chosen[j] = scores[j - 1], chosen[j - 1]
                j -= 1
            scores[j], chosen[j] = score, p
            end += 1
    return end


@kernel
def _key(todo, part):
    """Return the pending moves of a part: as a set of bits up to 64 moves, as a hash beyond."""
    bits, mixed = np.uint64(0), np.uint64(0)
    for k in range(len(part)):
        if k & 63 == 0:
            mixed, bits = mix(mixed ^ bits), np.uint64(0)
        if todo[part[k]]:
            bits |= np.uint64(1) << np.uint64(k & 63)
    return bits if len(part) <= 64 else mixed ^ bits


@allocating_kernel
def _search(moves, state, part, limit, noise):
    """Search a direct order of a part depth first, visiting `limit` states at most.

    Returns FOUND, with the steps made in `state`; NONE, which is a proof; or UNKNOWN.
    """
    base, total = state.tally[STEPS], len(part)
    chosen, scores = np.empty(64 * total + 4096, np.int64), np.empty(64 * total + 4096)
    # Of each depth: the steps before it, the next candidate, and where its candidates end.
    mark, cursor = np.zeros(total + 2, np.int64), np.zeros(total + 2, np.int64)
    end = np.zeros(total + 2, np.int64)
    dead, states, depth, proven = {np.uint64(0)}, 0, 0, True
    mark[0] = base
    end[0] = _candidates(moves, state, part, noise, chosen, scores, 0)
    while state.tally[STEPS] - base < total:
        if end[depth] < 0 or states > limit:
            _undo(moves, state, base)
            return UNKNOWN
        if cursor[depth] == end[depth]:  # a dead end
            if depth == 0:
                return NONE if proven else UNKNOWN
            dead.add(_key(state.todo, part))
            depth -= 1
            _undo(moves, state, mark[depth])
            continue
        p = chosen[cursor[depth]]
        cursor[depth] += 1
        _make(moves, state, p, moves.target[p])
        _close(moves, state)
        states += 1
        if len(dead) > 1 and state.tally[STEPS] - base < total and _key(state.todo, part) in dead:
            proven = proven and total <= 64  # hashes of larger sets may agree by chance
            _undo(moves, state, mark[depth])
            continue
        depth += 1
        mark[depth], cursor[depth] = state.tally[STEPS], end[depth - 1]
        end[depth] = _candidates(moves, state, part, noise, chosen, scores, cursor[depth])
    return FOUND


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


@kernel
def _hop_score(moves, state, p, n, level):
    """Return the score of a hop of move p to node n: `level`, less what the node then lacks.

    It is minus infinity where the move does not fit, and on a node that was emptied for good.
    """
    gone = moves.leaves[n] and state.claims[n] == 0
    if not moves.usable[n] or gone or not fits(moves.capacity, state.load, moves.new, p, n):
        return -np.inf
    score = level
    for r in range(moves.capacity.shape[1]):
        capacity = moves.capacity[n, r]
        short = state.waiting[n, r] + state.load[n, r] + moves.new[p, r] - capacity
        score -= short / max(1, capacity) * (10 if short > 0 else 0.01)
    return score


@allocating_kernel
def _hop(moves, state, part, enables):
    """Make a hop of the move that unblocks most, to the node with most room; changes `state`.

    Returns whether there was such a move. `enables` are those of `_enables`, for every place in the
    part.
    """
    brings, least = np.full(len(part), -1.0), min(1.0, enables.max())
    for k in range(len(part)):
        p, here = part[k], state.where[part[k]]
        may = state.todo[p] and here >= 0 and here == moves.home[p] and here != moves.waiting
        if may and not moves.pinned[p]:
            brings[k] = enables[k]
    best, best_p, best_n = -np.inf, part[0], part[0]
    for k in np.argsort(-brings, kind="mergesort")[:_MAX_COMPARED]:
        p = part[k]
        if brings[k] < least:
            break
        for n in range(len(moves.capacity)):
            if n == state.where[p]:
                continue
            score = _hop_score(moves, state, p, n, brings[k])
            if score > best and may_start(moves.rules, state.counts, moves.number[p], n):
                best, best_p, best_n = score, p, n
    if best == -np.inf:
        return False
    state.tally[HOPS] += 1
    _make(moves, state, best_p, best_n)
    return True


@kernel
def _hop_ahead(moves, state, ahead, max_hops):
    """Make a hop of each move in `ahead`, (P,), before all other moves; changes `state`.

    Rules may refuse a pod on every node later on, when most nodes are gone; now another node still
    takes it. The kernel prefers nodes that the plan keeps, and of these the emptiest at its end.
    """
    load, new = state.load, moves.new
    for p in range(len(ahead)):
        here, best = state.where[p], -np.inf
        best_n: int = -1
        may = ahead[p] and not moves.pinned[p] and here >= 0 and here != moves.waiting
        if not may or state.tally[HOPS] >= max_hops:
            continue
        for n in range(len(moves.capacity)):
            gone = moves.leaves[n] and state.claims[n] == 0
            other = n != here and n != moves.target[p]
            if moves.usable[n] and other and not gone and fits(moves.capacity, load, new, p, n):
                stays = moves.settled[n] > 0 or moves.first[n] < moves.first[n + 1]
                score = 100.0 if stays else 0.0
                for r in range(load.shape[1]):
                    amount = state.waiting[n, r] + load[n, r] + new[p, r]
                    score -= min(10.0, amount / max(1, moves.capacity[n, r]))
                if score > best and may_start(moves.rules, state.counts, moves.number[p], n):
                    best, best_n = score, n
        if best_n >= 0:
            state.tally[HOPS] += 1
            _make(moves, state, p, best_n)


@kernel
def _stop(moves, state, part, enables):
    """Stop the running copy that unblocks most, of equals the largest; changes `state`.

    Returns whether there was one.
    """
    best, best_p = -1.0, np.int64(-1)
    for k in range(len(part)):
        p, here = part[k], state.where[part[k]]
        if not state.todo[p] or here < 0 or moves.waiting in (here, moves.target[p]):
            continue
        brings = 2.0 * enables[k] + min(1.0, share(moves.capacity, here, state.size[p]))
        if brings > best:
            best, best_p = brings, p
    if best_p < 0:
        return False
    state.tally[STOPS] += 1
    _make(moves, state, best_p, np.int64(-1))
    return True


@kernel
def _best_fitting(moves, state, part, start, noise):
    """Return the best of the moves that fit, from a place in the part on, and where to go on.

    The move is -1 where none fits.
    """
    best, best_p, compared = -np.inf, np.int64(-1), 0
    for lap in range(2 if start else 1):
        for k in range(0 if lap else start, start if lap else len(part)):
            p = part[k]
            n = moves.target[p]
            if (
                state.todo[p]
                and fits(moves.capacity, state.load, moves.new, p, n)
                and (moves.free[p] or may_start(moves.rules, state.counts, moves.number[p], n))
            ):
                score, compared = _score(moves, state, p) + _noise(state, noise), compared + 1
                if score > best:
                    best, best_p = score, p
                if compared == _MAX_COMPARED:
                    return best_p, k + 1
    return best_p, start


@kernel
def _pending(state, part):
    """Move the pending moves of a part to its front, return how many they are; changes `part`."""
    left = 0
    for p in part:
        if state.todo[p]:
            part[left] = p
            left += 1
    return left


@allocating_kernel
def _force(moves, state, part, max_hops, max_stops, noise):
    """Finish a part move by move: the best that fits, else a hop, else a stop; changes `state`.

    Returns whether all moves are made.
    """
    at, made, length, enables = 0, state.tally[STEPS], len(part), np.empty(len(part))
    left = _pending(state, part)
    while left > 0:
        if 2 * (state.tally[STEPS] - made) > length:
            at, made, length = 0, state.tally[STEPS], left
        part = part[:left]
        best_p, at = _best_fitting(moves, state, part, at, noise)
        if best_p >= 0:
            _make(moves, state, best_p, moves.target[best_p])
        else:
            for k in range(left):
                enables[k] = _enables(moves, state, part[k])
            hopped = state.tally[HOPS] < max_hops and _hop(moves, state, part, enables[:left])
            if not hopped and (
                state.tally[STOPS] >= max_stops or not _stop(moves, state, part, enables)
            ):
                break
        _close(moves, state)
        left = _pending(state, part)
    return left == 0


@kernel
def _join_leaving(moves, state, parent, known):
    """Join the nodes that moves empty with those of rules that shrink by them; changes `parent`.

    `known` has a node of each counter, -1 for none.
    """
    one: int = -1
    for c in range(len(known)):
        if known[c] >= 0 and shrinks(moves.rules, c):
            if one >= 0:
                join(parent, one, known[c])
            one = known[c]
    if one >= 0:
        for n in range(len(parent)):
            empties = moves.settled[n] == 0 and moves.first[n] == moves.first[n + 1]
            if empties and moves.leaves[n]:
                join(parent, one, n)


@allocating_kernel
def _parts(moves, state):
    """Return the pending moves, part by part, and where the part of each root node begins and ends.

    Shapes (pending,) and (N + 1,). The nodes of a part are connected by its moves, and by rules.
    """
    parent, todo = np.arange(len(moves.capacity)), np.flatnonzero(state.todo)
    known = np.full(num_counters(moves.rules), -1)
    for p in todo:
        n, m = moves.target[p], moves.number[p]
        join(parent, moves.home[p], n)
        if not moves.free[p]:
            for c in counters_of(moves.rules, m):
                if known[c] >= 0:
                    join(parent, known[c], n)
                known[c] = n
    _join_leaving(moves, state, parent, known)
    count, members = np.zeros(len(parent) + 1, np.int64), np.empty(len(todo), np.int64)
    for p in todo:
        count[root(parent, moves.target[p]) + 1] += 1
    cuts = np.cumsum(count)
    at = cuts.copy()
    for p in todo:
        n = root(parent, moves.target[p])
        members[at[n]] = p
        at[n] += 1
    return members, cuts


@allocating_kernel
def order(moves, load, count, limit, max_hops, max_stops, noise, seed, ahead):
    """Order all moves: each part directly if the search finds how, else with hops and stops.

    Parameters
    ----------
    moves : Moves
    load : int array (N, R)
        Before the first move.
    count : int array
        Counts of the rules before the first move.
    limit : int
        States of the search in each part; 0 for the first order that comes.
    max_hops, max_stops : int
    noise : float
        Size of the random term in the scores of moves.
    seed : int
    ahead : bool array (P,)
        Moves that begin with a hop, only where `limit` is 0.

    Returns
    -------
    state : OrderState
        With the steps.
    direct : int
        FOUND, NONE or UNKNOWN.
    complete : bool
        Whether all moves are made.
    """
    state = _begin(moves, load, count, seed)
    if limit == 0:
        _hop_ahead(moves, state, ahead, max_hops)
    _close(moves, state)
    todo, cuts = _parts(moves, state)
    direct, complete, late = FOUND, True, np.zeros(len(cuts), np.bool_)
    for k in range(len(cuts) - 1):
        if cuts[k] < cuts[k + 1]:
            part, result = todo[cuts[k] : cuts[k + 1]], UNKNOWN
            if len(part) <= min(limit, _MAX_SEARCHED):
                result = _search(moves, state, part, limit, noise)
            if result != FOUND:
                late[k] = True
            direct = NONE if NONE in (result, direct) else min(direct, result)
    for k in range(len(cuts) - 1):
        if late[k]:
            part = todo[cuts[k] : cuts[k + 1]]
            complete = _force(moves, state, part, max_hops, max_stops, noise) and complete
    if complete and state.tally[HOPS] + state.tally[STOPS] == 0:
        direct = FOUND
    elif direct == FOUND:
        direct = UNKNOWN  # after hops ahead
    return state, direct, complete


@allocating_kernel
def count_all(targets, every, mandatory, load, count):
    """Return starts, stops and moves not made of the first order that comes, shape (K, 3).

    Parameters
    ----------
    targets : int array (K, M)
        The node of every microservice, in K deployments.
    every : Moves
        Of all M microservices; their targets do not count.
    mandatory : bool array (M,)
        Must start anew.
    load : int array (N, R)
    count : int array
        Loads, and counts of the rules, before the first move.
    """
    counts, hosts = np.zeros((len(targets), 3)), np.zeros(len(every.capacity), np.int64)
    for n in every.home:
        hosts[n] += 1
    for k in range(len(targets)):
        p = np.flatnonzero(mandatory | (targets[k] != every.home))
        moves = grouped(
            p,
            every.free[p],
            every.rules,
            every.waiting,
            every.capacity,
            every.usable,
            every.home[p],
            every.old[p],
            every.new[p],
            targets[k][p],
            every.pinned[p],
            hosts,
        )
        none = np.zeros(len(p), np.bool_)
        state, _, _ = order(moves, load, count, 0, 2**62, 2**62, 0.0, 0, none)
        counts[k, 0], counts[k, 1] = len(p) + state.tally[HOPS], state.tally[STOPS]
        counts[k, 2] = state.todo.sum()
    return counts


# -- deployments -----------------------------------------------------------------------------------

#: States that the search for a direct order may visit in each connected part of the moves.
STATES = 20_000
_UNLIMITED = 2**62
_DIRECT = {FOUND: True, NONE: False, UNKNOWN: None}


class Reach(NamedTuple):
    """How a target is reached.

    Attributes
    ----------
    steps : list of (microservice, node)
        A negative node is a stop.
    direct : bool or None
        Whether an order exists that makes every move once, without a stop: False is a proof, None
        unknown.
    hops, stops : int
    complete : bool
        Whether all moves were made.
    price : int
        That of the nodes in use after the steps, in units of ``1 / price_scale``.
    """

    steps: list[tuple[int, int]]
    direct: bool | None
    hops: int
    stops: int
    complete: bool
    price: int

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The better of two has the lower rank."""
        return not self.complete, self.price, self.stops, self.hops


def moves_of(a: UpdateArrays, who: np.ndarray, target: np.ndarray) -> Moves:
    """Return the moves of microservices `who` (P,) to their nodes in `target` (M,).

    Hops are made by nodes that may all be used beside those of the target. No node is bought for a
    hop alone: `node_cost` would not count it.
    """
    used = np.bincount(target[target >= 0], minlength=len(a.shut)) > 0
    usable = ~a.shut & (~a.candidate | used)
    if a.limits.any:
        usable &= a.limits.opened(used, np.flatnonzero(a.limits.bought)) | ~a.limits.bought
    moves: Moves = grouped(
        who,
        a.free[who],
        a.packed_rules,
        a.waiting,
        a.ordered.capacity,
        usable,
        a.home[who],
        a.ordered.old[who],
        a.ordered.new[who],
        target[who],
        a.pinned[who] | a.removed[who],
        np.bincount(a.home, minlength=len(a.price)),
    )
    return moves


def _price(a: UpdateArrays, who: np.ndarray, where: np.ndarray) -> int:
    """Return the price of the nodes in use when microservices `who`, (P,), are at `where`, (P,)."""
    end = a.home.copy()
    end[who] = where
    return int(a.price[np.bincount(end[end >= 0], minlength=len(a.price)) > 0].sum())


def plan_moves(
    problem: RollingUpdate,
    target: np.ndarray,
    *,
    states: int = STATES,
    max_hops: int | None = None,
    max_stops: int | None = None,
    tries: int = 1,
    seed: int = 0,
) -> Reach:
    """Order the moves from the running deployment to `target`.

    Parameters
    ----------
    target : int array (M,)
        Node of every microservice at the end.
    states : int
        Limit of the exact search in each connected part; 0 for the first order that comes.
    max_hops, max_stops : int, optional
        Limits of extra starts and of stops where there is no direct order; unlimited by default.
    tries : int
        Runs where there are stops or hops, all but the first with noise; the best is returned.
    seed : int
    """
    a = problem.arrays
    todo = np.flatnonzero(a.starts_of(target) | a.removed)
    moves = moves_of(a, todo, target)
    count = counted(a.packed_rules, a.home)
    hops, stops = (_UNLIMITED if x is None else x for x in (max_hops, max_stops))
    best: Reach | None = None
    undone = np.zeros(len(todo), dtype=bool)  # it begins with a hop in the second half of the runs
    for k in range(max(1, tries)):  # the first searches for a direct order
        noise, limit = (0.5, 0) if k else (0.0, states)
        ahead = undone & (2 * k >= tries)
        state, answer, complete = order(
            moves, a.ordered.load, count, limit, hops, stops, noise, seed + k, ahead
        )
        undone |= state.todo
        steps = state.steps[: state.tally[STEPS]]
        direct = _DIRECT[answer]
        if best is not None and direct is None:
            direct = best.direct
        result = Reach(
            steps=list(zip(todo[steps[:, 0]].tolist(), steps[:, 1].tolist(), strict=True)),
            direct=direct,
            hops=int(state.tally[HOPS]),
            stops=int(state.tally[STOPS]),
            complete=bool(complete),
            price=_price(a, todo, state.where),
        )
        if best is None or result.rank < best.rank:
            best = result
        one_hop = best.complete and best.stops == 0 and best.hops == 1
        if best.direct or (best.direct is False and one_hop):
            break
    assert best is not None
    return best
