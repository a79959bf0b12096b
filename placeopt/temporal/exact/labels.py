"""Kernels of the multi-objective dynamic program over bin plans.

A *state* says how many replicas of every request are placed, and, of a request that is partly placed, the latency rank of the
farthest so far. A *label* is one vector (latency of complete requests, cost, interruption) that reaches a state. A state is
extended by the columns whose lowest request is its lowest incomplete one, so that every partition is made in one order. A label
is dropped where another label of its state is no worse in all three, or where no zone is left that its completions can reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel

# Columns of the label table: the vector, the label it came from and by which bin plan, the next label in a list, a zone it can reach.
LATENCY, COST, INTERRUPTION, PARENT, COLUMN, NEXT, ZONE, WIDTH = range(8)
# Columns of the state table, and of the counters.
CODE, HEAD, LATER = range(3)
LABELS, FREE, STATES, PLACED, TRIES, KEPT = range(6)


class Model(NamedTuple):
    """The relaxed problem as arrays; columns are sorted by their lowest request, those of request p are first[p]:first[p + 1]."""

    replicas: np.ndarray
    levels: np.ndarray
    latency: np.ndarray
    rank: np.ndarray
    least: np.ndarray
    base: np.ndarray
    digit: np.ndarray
    stride: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    place: np.ndarray
    cost: np.ndarray
    interruption: np.ndarray
    weights: np.ndarray
    tables: np.ndarray


class Targets(NamedTuple):
    """Zones: local upper bounds, the greatest weighted sums within each, and which weights to test first."""

    upper: np.ndarray
    limit: np.ndarray
    tests: np.ndarray


class Scratch(NamedTuple):
    """The state being extended, unpacked, and what extending it by a column does."""

    placed: np.ndarray
    rank: np.ndarray
    move: np.ndarray
    least: np.ndarray
    bound: np.ndarray
    step: np.ndarray
    open: np.ndarray


@kernel
def sweep(
    model,
    targets,
    scratch,
    labels,
    states,
    slots,
    heads,
    counters,
    fenwick,
    unit,
    most_tries,
    most_labels,
    everything,
):
    """Extend states in the order of how many replicas they have placed, until done or after about `most_tries` looks at labels
    and columns.

    With `everything`, dominated labels are kept too: then all partitions that can end in a zone are found.
    Returns the tables, which may have grown, and 0 to go on, 1 when done, 2 when more than `most_labels` labels are needed.
    The labels of the full state, filtered, are then the list that begins at ``heads[-1]``.
    """
    total = len(heads) - 1
    stop = counters[TRIES] + most_tries
    while counters[PLACED] < total:
        state = heads[counters[PLACED]]
        if state < 0:
            counters[PLACED] += 1
            continue
        if counters[TRIES] >= stop:
            return labels, states, slots, 0
        heads[counters[PLACED]] = states[state, LATER]
        kept = settle(labels, states[state, HEAD], counters, fenwick, unit, everything)
        code = states[state, CODE]
        lowest, rest = _unpack(model, scratch, code)
        bounds = _label_bounds(model, scratch, labels, kept)
        count = _open_zones(model, targets, scratch, rest)
        for w in range(model.first[lowest], model.first[lowest + 1]):
            if count == 0:
                break
            if not _fits(model, scratch, w, lowest):
                continue
            counters[TRIES] += 1
            _move(model, scratch, w, code, rest)
            first = _first_open(
                targets, scratch, count
            )  # by the best values of the labels taken together
            if first < 0:
                continue
            if counters[LABELS] + len(kept) > len(labels):
                if counters[LABELS] + len(kept) > most_labels:
                    return labels, states, slots, 2
                labels = _longer(labels, len(kept))
            if counters[STATES] == len(states):
                states = _longer(states, 1)
            if 2 * counters[STATES] >= len(slots):
                slots = _rehashed(states, counters[STATES], 4 * len(slots))
            target = state_of(
                states, slots, heads, counters, scratch.move[0], counters[PLACED] + scratch.move[4]
            )
            _extend(
                targets, scratch, labels, kept, bounds, counters, states, target, first, count, w
            )
    return labels, states, slots, 1


@kernel
def settle(labels, head, counters, fenwick, unit, everything):
    """Drop the dominated labels of a state, unless `everything` is wanted; return the others.

    `fenwick` is a tree of prefix minima: the least cost up to an interruption.
    """
    count, at = 0, head
    while at >= 0:
        count, at = count + 1, labels[at, NEXT]
    index, key = np.empty(count, np.int64), np.empty(count, np.int64)
    span, at = np.int64(1), head
    for q in range(count):
        index[q] = at
        span = max(span, labels[at, COST] + 1)
        at = labels[at, NEXT]
    if everything:
        return index
    for q in range(count):
        key[q] = labels[index[q], LATENCY] * span + labels[index[q], COST]
    kept, keep = np.empty(count, np.int64), 0
    for q in np.argsort(key):
        label = index[q]
        level = labels[label, INTERRUPTION] // unit + 1
        least, j = np.int64(2**60), level
        while j > 0:
            least = min(least, fenwick[j])
            j -= j & -j
        if least <= labels[label, COST]:
            labels[label, NEXT] = counters[FREE]
            counters[FREE] = label
            continue
        j = level
        while j < len(fenwick):
            fenwick[j] = min(fenwick[j], labels[label, COST])
            j += j & -j
        kept[keep] = label
        keep += 1
    for q in range(keep):  # leave the tree empty
        j = labels[kept[q], INTERRUPTION] // unit + 1
        while j < len(fenwick):
            fenwick[j] = 2**60
            j += j & -j
    counters[KEPT] += keep
    return kept[:keep]


@kernel
def _unpack(model, scratch, code):
    """Write counts and ranks of a state; return its lowest incomplete request and the code of what is left to place."""
    lowest, rest = -1, 0
    for i in range(len(model.replicas)):
        d = code % model.base[i]
        code //= model.base[i]
        if d == 0:
            scratch.placed[i], scratch.rank[i] = 0, -1
        elif d == model.base[i] - 1:
            scratch.placed[i], scratch.rank[i] = model.replicas[i], -1
        else:
            scratch.placed[i], scratch.rank[i] = (
                (d - 1) // model.levels[i] + 1,
                (d - 1) % model.levels[i],
            )
        if lowest < 0 and scratch.placed[i] < model.replicas[i]:
            lowest = i
        rest += (model.replicas[i] - scratch.placed[i]) * model.stride[i]
    return lowest, rest


@kernel
def _label_bounds(model, scratch, labels, kept):
    """Return the weighted sums of the labels, (labels, K); write their least values and least weighted sums."""
    bounds = np.empty((len(kept), len(model.weights)))
    scratch.least[:] = 2**60
    scratch.bound[0] = 1e300
    for q in range(len(kept)):
        a, b, c = labels[kept[q], LATENCY], labels[kept[q], COST], labels[kept[q], INTERRUPTION]
        scratch.least[0], scratch.least[1], scratch.least[2] = (
            min(scratch.least[0], a),
            min(scratch.least[1], b),
            min(scratch.least[2], c),
        )
        for k in range(len(model.weights)):
            value = model.weights[k, 0] * a + model.weights[k, 1] * b + model.weights[k, 2] * c
            bounds[q, k] = value
            scratch.bound[0, k] = min(scratch.bound[0, k], value)
    return bounds


@kernel
def _open_zones(model, targets, scratch, rest):
    """List the zones that some completion of the state may reach; return how many."""
    partial = 0.0
    for i in range(len(model.replicas)):
        if scratch.rank[i] >= 0:
            partial += model.latency[i, scratch.rank[i]] * scratch.placed[i] / model.replicas[i]
    for k in range(len(model.weights)):
        scratch.step[k] = (
            scratch.bound[0, k] + model.weights[k, 0] * partial + model.tables[k, rest]
        )
    count = 0
    for z in range(len(targets.upper)):
        alive = True
        for t in range(targets.tests.shape[1]):
            k = targets.tests[z, t]
            if scratch.step[k] > targets.limit[z, k]:
                alive = False
                break
        if alive:
            scratch.open[count] = z
            count += 1
    return count


@kernel
def _fits(model, scratch, w, lowest):
    fits = True
    for i in range(lowest, len(model.replicas)):
        fits = fits and model.counts[w, i] <= model.replicas[i] - scratch.placed[i]
    return fits


@kernel
def _move(model, scratch, w, code, rest):
    """Write what column w does to the state: new code, added vector, replicas added, least latency still to come, bounds."""
    place, added, latency, coming, partial = model.place[w], 0, 0, 0, 0.0
    for i in range(len(model.replicas)):
        n, rank, count = model.counts[w, i], scratch.rank[i], scratch.placed[i]
        if n > 0:
            old = 0 if count == 0 else 1 + (count - 1) * model.levels[i] + rank
            rank, count = max(rank, model.rank[i, place]), count + n
            added += n
            rest -= n * model.stride[i]
            new = 1 + (count - 1) * model.levels[i] + rank
            if count == model.replicas[i]:
                latency += model.latency[i, rank]
                new, rank = model.base[i] - 1, -1
            code += (new - old) * model.digit[i]
        if rank >= 0:
            partial += model.latency[i, rank] * count / model.replicas[i]
            coming += max(model.latency[i, rank], model.least[i])
        elif count == 0:
            coming += model.least[i]
    move = scratch.move
    move[0], move[1], move[2], move[3], move[4], move[5] = (
        code,
        latency,
        model.cost[w],
        model.interruption[w],
        added,
        coming,
    )
    for k in range(len(model.weights)):
        scratch.step[k] = (
            model.weights[k, 0] * (latency + partial)
            + model.weights[k, 1] * move[2]
            + model.weights[k, 2] * move[3]
            + model.tables[k, rest]
        )


@kernel
def _reached(
    upper, limit, tests, listed, first, count, latency, interruption, bounds, row, step, zone
):
    """Return a zone in which a label may still end after the move, -1 where there is none; `zone` is tried first.

    Parameters
    ----------
    latency, interruption : int
        Least values that the label can end with.
    bounds[row], step : ndarray, shape (K,)
        Their sum bounds the weighted sums of what it ends with.
    """
    for q in range(first - 1, count):
        z = zone if q < first else listed[q]
        if z < 0 or latency >= upper[z, 0] or interruption >= upper[z, 2]:
            continue
        alive = True
        for t in range(tests.shape[1]):
            k = tests[z, t]
            if bounds[row, k] + step[k] > limit[z, k]:
                alive = False
                break
        if alive:
            return q if zone < -1 else z
    return -1


@kernel
def _first_open(targets, scratch, count):
    """Return the place in the list of the first zone that the state's best values may reach after the move, -1 for none."""
    latency, interruption = (
        scratch.least[0] + scratch.move[1] + scratch.move[5],
        scratch.least[2] + scratch.move[3],
    )
    return _reached(
        targets.upper,
        targets.limit,
        targets.tests,
        scratch.open,
        0,
        count,
        latency,
        interruption,
        scratch.bound,
        0,
        scratch.step,
        -2,
    )


@kernel
def _extend(targets, scratch, labels, kept, bounds, counters, states, target, first, count, w):
    """Add the labels that can still reach a zone after the move to the list of the target state."""
    move = scratch.move
    upper, limit, tests, listed, step = (
        targets.upper,
        targets.limit,
        targets.tests,
        scratch.open,
        scratch.step,
    )
    counters[TRIES] += len(kept)
    for q in range(len(kept)):
        label = kept[q]
        latency, interruption = (
            labels[label, LATENCY] + move[1],
            labels[label, INTERRUPTION] + move[3],
        )
        zone = _reached(
            upper,
            limit,
            tests,
            listed,
            first,
            count,
            latency + move[5],
            interruption,
            bounds,
            q,
            step,
            labels[label, ZONE],
        )
        if zone < 0:
            continue
        new = counters[FREE]
        if new >= 0:
            counters[FREE] = labels[new, NEXT]
        else:
            new = counters[LABELS]
            counters[LABELS] += 1
        labels[new, LATENCY], labels[new, COST] = latency, labels[label, COST] + move[2]
        labels[new, INTERRUPTION], labels[new, PARENT] = interruption, label
        labels[new, COLUMN], labels[new, ZONE] = w, zone
        labels[new, NEXT] = states[target, HEAD]
        states[target, HEAD] = new


@kernel
def state_of(states, slots, heads, counters, code, placed):
    """Return the state with this code, making it where it is new. `slots` is an open-addressing hash table of state + 1."""
    at = _hash(code, len(slots))
    while slots[at] > 0:
        if states[slots[at] - 1, CODE] == code:
            return slots[at] - 1
        at = (at + 1) % len(slots)
    state = counters[STATES]
    counters[STATES] += 1
    slots[at] = state + 1
    states[state, CODE], states[state, HEAD], states[state, LATER] = code, -1, heads[placed]
    heads[placed] = state
    return state


@kernel
def _hash(code, size):
    mixed = (code ^ (code >> 29)) * 0x2545F4914F6CDD1D
    return ((mixed >> 20) & 0x7FFFFFFFFF) % size


@kernel
def _rehashed(states, count, size):
    slots = np.zeros(size, np.int64)
    for state in range(count):
        at = _hash(states[state, CODE], size)
        while slots[at] > 0:
            at = (at + 1) % size
        slots[at] = state + 1
    return slots


@kernel
def _longer(table, more):
    new = np.zeros((2 * len(table) + more, table.shape[1]), np.int64)
    new[: len(table)] = table
    return new
