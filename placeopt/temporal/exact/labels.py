"""Kernels of the multi-objective dynamic program over patterns.

A *state* says how many replicas of every request are placed, and, of a request that is partly
placed, the latency rank of the farthest so far. A *label* is one vector (latency of complete
requests, cost, interruption) that reaches a state. A state is extended by the patterns whose lowest
request is its lowest incomplete one, so that every partition is made in one order. A label is
dropped where another label of its state is no worse in all three, or where its completions can
reach no zone any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import mix
from placeopt.core.kernels.rows import copy_rows

#: Columns of the label table: the vector, the label that was extended and by which pattern, the
#: next label in a list, a zone that it can reach.
LATENCY, COST, INTERRUPTION, PARENT, PATTERN, NEXT, ZONE, LABEL_WIDTH = range(8)
#: Columns of the state table: its code, its first label, the next state of as many replicas.
CODE, HEAD, LATER = range(3)
#: Counters of a search: labels and states made, first label to be used again, replicas placed in
#: the states at hand, labels and patterns looked at.
LABELS, STATES, FREE, PLACED, LOOKS, NUM_COUNTERS = range(6)
#: Entries of `Extension.step`: code of the new state, added latency, cost and interruption, added
#: replicas, least latency still to come.
NEW_CODE, ADD_LATENCY, ADD_COST, ADD_INTERRUPTION, ADD_REPLICAS, LATENCY_TO_COME = range(6)
#: Answers of `sweep`.
GO_ON, DONE, OUT_OF_MEMORY = range(3)

_INFINITE = 2**60


class Model(NamedTuple):
    """The relaxed problem: n requests, L latency levels at most, P places, W patterns, K weights.

    Patterns are sorted by their lowest request.
    """

    replicas: np.ndarray  # (n,)
    levels: np.ndarray  # (n,) different latencies of each request
    latency: np.ndarray  # (n, L) by rank
    rank: np.ndarray  # (n, P) of the latency from each place
    least: np.ndarray  # (n,) smallest latency
    base: np.ndarray  # (n,) values that the digit of a request in the code of a state has
    digit: np.ndarray  # (n,) place value of that digit
    stride: np.ndarray  # (n,) place value in the code of a set
    first: np.ndarray  # (n + 1,) first pattern with this lowest request
    counts: np.ndarray  # (W, n)
    place: np.ndarray  # (W,)
    cost: np.ndarray  # (W,)
    interruption: np.ndarray  # (W,)
    weights: np.ndarray  # (K, 3)
    tables: np.ndarray  # (K, sets) completion bounds


class Targets(NamedTuple):
    """The Z zones that labels should reach."""

    upper: np.ndarray  # (Z, 3) local upper bounds
    limit: np.ndarray  # (Z, K) greatest weighted sum within a zone
    tests: np.ndarray  # (Z, T) weights to test, the most promising ones


class Search(NamedTuple):
    """What a search has found so far; tables that are full are replaced by longer ones."""

    labels: np.ndarray  # (labels, LABEL_WIDTH)
    states: np.ndarray  # (states, 3)
    slots: np.ndarray  # (slots,) hash table of states by code: state + 1, 0 for none
    heads: np.ndarray  # (R + 1,) first state with so many replicas placed, -1 for none
    counters: np.ndarray  # (NUM_COUNTERS,)


class Extension(NamedTuple):
    """Scratch: the state being extended, unpacked, and what extending it by a pattern does."""

    placed: np.ndarray  # (n,) replicas of each request
    rank: np.ndarray  # (n,) latency rank of a request that is partly placed, else -1
    least: np.ndarray  # (3,) smallest values of the labels
    bound: np.ndarray  # (1, K) smallest weighted sums of the labels
    step: np.ndarray  # (6,) see NEW_CODE
    step_bound: np.ndarray  # (K,) weighted sums of the step and of what remains after it
    open: np.ndarray  # (Z,) zones that completions of the state may reach
    fenwick: np.ndarray  # (F,) prefix minima: the least cost up to an interruption


@allocating_kernel
def sweep(model, targets, extension, search, unit, max_looks, max_labels, everything):
    """Extend states by the number of replicas that they have placed, for a while.

    Stops after about `max_looks` looks at labels and patterns. `unit` divides all interruptions.
    With `everything`, dominated labels are kept too: then all partitions that can end in a zone are
    found. Changes `extension` and `search` in place; returns the search, whose tables may be new,
    and GO_ON, DONE, or OUT_OF_MEMORY where more than `max_labels` labels are needed. When done, the
    labels of the full state are the list that begins at ``heads[-1]``.
    """
    labels, states, slots, heads, counters = search
    stop = counters[LOOKS] + max_looks
    while counters[PLACED] < len(heads) - 1:
        state = heads[counters[PLACED]]
        if state < 0:
            counters[PLACED] += 1
            continue
        if counters[LOOKS] >= stop:
            return Search(labels, states, slots, heads, counters), GO_ON
        heads[counters[PLACED]] = states[state, LATER]
        kept = filter_dominated(
            labels, states[state, HEAD], counters, extension.fenwick, unit, everything
        )
        code = states[state, CODE]
        lowest, rest = _unpack(model, extension, code)
        bounds = _label_bounds(model, extension, labels, kept)
        count = _open_zones(model, targets, extension, rest)
        for w in range(model.first[lowest], model.first[lowest + 1]):
            if count == 0:
                break
            if not _fits(model, extension, w, lowest):
                continue
            counters[LOOKS] += 1
            _prepare_step(model, extension, w, code, rest)
            first = _first_reached(targets, extension, count)
            if first < 0:
                continue
            if counters[LABELS] + len(kept) > len(labels):
                if counters[LABELS] + len(kept) > max_labels:
                    return Search(labels, states, slots, heads, counters), OUT_OF_MEMORY
                labels = _longer(labels, len(kept))
            if counters[STATES] == len(states):
                states = _longer(states, 1)
            if 2 * counters[STATES] >= len(slots):
                slots = _rehashed(states, counters[STATES], 4 * len(slots))
            placed = counters[PLACED] + extension.step[ADD_REPLICAS]
            search = Search(labels, states, slots, heads, counters)
            target = state_of(search, extension.step[NEW_CODE], placed)
            _extend(targets, extension, search, kept, bounds, target, first, count, w)
    return Search(labels, states, slots, heads, counters), DONE


@allocating_kernel
def filter_dominated(labels, head, counters, fenwick, unit, everything):
    """Return the labels of a list that no other dominates; all of them with `everything`.

    `head` is the first label. The others are freed, in place in `labels` and `counters`. `fenwick`
    is empty before and after.
    """
    index, order = _listed(labels, head)
    if everything:
        return index
    kept, count = np.empty(len(index), np.int64), 0
    for q in order:
        label = index[q]
        level, least = labels[label, INTERRUPTION] // unit + 1, np.int64(_INFINITE)
        j = level
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
        kept[count] = label
        count += 1
    for q in range(count):
        j = labels[kept[q], INTERRUPTION] // unit + 1
        while j < len(fenwick):
            fenwick[j] = _INFINITE
            j += j & -j
    return kept[:count]


@allocating_kernel
def _listed(labels, head):
    """Return the labels of a list, shape (q,), and their order by latency, then cost, (q,)."""
    count, label, span = 0, head, np.int64(1)
    while label >= 0:
        span = max(span, labels[label, COST] + 1)
        count, label = count + 1, labels[label, NEXT]
    index, key = np.empty(count, np.int64), np.empty(count, np.int64)
    label = head
    for q in range(count):
        index[q] = label
        key[q] = labels[label, LATENCY] * span + labels[label, COST]
        label = labels[label, NEXT]
    return index, np.argsort(key)


@kernel
def _unpack(model, extension, code):
    """Write `placed` and `rank` of a state.

    Returns its lowest incomplete request, and the code of the set that is left to place.
    """
    lowest, rest = -1, 0
    for i in range(len(model.replicas)):
        digit = code % model.base[i]
        code //= model.base[i]
        extension.placed[i], extension.rank[i] = 0, -1
        if digit == model.base[i] - 1:
            extension.placed[i] = model.replicas[i]
        elif digit > 0:
            extension.placed[i] = (digit - 1) // model.levels[i] + 1
            extension.rank[i] = (digit - 1) % model.levels[i]
        if lowest < 0 and extension.placed[i] < model.replicas[i]:
            lowest = i
        rest += (model.replicas[i] - extension.placed[i]) * model.stride[i]
    return lowest, rest


@allocating_kernel
def _label_bounds(model, extension, labels, kept):
    """Return the weighted sums of labels, (labels, K); write their minima, `least` and `bound`."""
    bounds = np.empty((len(kept), len(model.weights)))
    least, bound = extension.least, extension.bound
    least[:] = _INFINITE
    bound[0] = 1e300
    for q in range(len(kept)):
        a, b, c = labels[kept[q], LATENCY], labels[kept[q], COST], labels[kept[q], INTERRUPTION]
        least[0], least[1], least[2] = min(least[0], a), min(least[1], b), min(least[2], c)
        for k in range(len(model.weights)):
            value = model.weights[k, 0] * a + model.weights[k, 1] * b + model.weights[k, 2] * c
            bounds[q, k] = value
            bound[0, k] = min(bound[0, k], value)
    return bounds


@kernel
def _open_zones(model, targets, extension, rest):
    """Write the zones that some completion of the state may reach to `open`; return how many.

    Overwrites `step_bound`.
    """
    partial = 0.0
    for i in range(len(model.replicas)):
        if extension.rank[i] >= 0:
            partial += model.latency[i, extension.rank[i]] * extension.placed[i] / model.replicas[i]
    for k in range(len(model.weights)):
        extension.step_bound[k] = (
            extension.bound[0, k] + model.weights[k, 0] * partial + model.tables[k, rest]
        )
    count = 0
    for zone in range(len(targets.upper)):
        alive = True
        for t in range(targets.tests.shape[1]):
            k = targets.tests[zone, t]
            if extension.step_bound[k] > targets.limit[zone, k]:
                alive = False
                break
        if alive:
            extension.open[count] = zone
            count += 1
    return count


@kernel
def _fits(model, extension, w, lowest):
    """Return whether the replicas of pattern w are still to be placed."""
    fits = True
    for i in range(lowest, len(model.replicas)):
        fits = fits and model.counts[w, i] <= model.replicas[i] - extension.placed[i]
    return fits


@kernel
def _prepare_step(model, extension, w, code, rest):
    """Write what pattern w does to the state, `step` and `step_bound`.

    `code` is that of the state, `rest` the code of the set that is left to place.
    """
    place, added, latency, coming, partial = model.place[w], 0, 0, 0, 0.0
    for i in range(len(model.replicas)):
        n, rank, count = model.counts[w, i], extension.rank[i], extension.placed[i]
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
    step = extension.step
    step[NEW_CODE], step[ADD_LATENCY], step[ADD_COST] = code, latency, model.cost[w]
    step[ADD_INTERRUPTION], step[ADD_REPLICAS] = model.interruption[w], added
    step[LATENCY_TO_COME] = coming
    for k in range(len(model.weights)):
        extension.step_bound[k] = (
            model.weights[k, 0] * (latency + partial)
            + model.weights[k, 1] * step[ADD_COST]
            + model.weights[k, 2] * step[ADD_INTERRUPTION]
            + model.tables[k, rest]
        )


@kernel
def _reaches(targets, zone, latency, interruption, bounds, label, step_bound):
    """Return whether a label may end in a zone after the step.

    `latency` and `interruption` are the smallest that it can end with; ``bounds[label]`` plus
    `step_bound`, both (K,), bound its weighted sums.
    """
    if latency >= targets.upper[zone, 0] or interruption >= targets.upper[zone, 2]:
        return False
    for t in range(targets.tests.shape[1]):
        k = targets.tests[zone, t]
        if bounds[label, k] + step_bound[k] > targets.limit[zone, k]:
            return False
    return True


@kernel
def _first_reached(targets, extension, count):
    """Return where in `open` the first zone stands that the smallest values may reach, or -1.

    The smallest values of all labels of the state are taken together.
    """
    latency = extension.least[0] + extension.step[ADD_LATENCY] + extension.step[LATENCY_TO_COME]
    interruption = extension.least[2] + extension.step[ADD_INTERRUPTION]
    for q in range(count):
        if _reaches(
            targets,
            extension.open[q],
            latency,
            interruption,
            extension.bound,
            0,
            extension.step_bound,
        ):
            return q
    return -1


@kernel
def _extend(targets, extension, search, kept, bounds, target, first, count, w):
    """Add labels to a target state by pattern w, in place in `search`.

    Only labels are extended that can still reach a zone: the one that they could reach before, or
    ``open[first:count]``.
    """
    labels, states, counters = search.labels, search.states, search.counters
    step, step_bound, listed = extension.step, extension.step_bound, extension.open
    counters[LOOKS] += len(kept)
    for q in range(len(kept)):
        label = kept[q]
        latency = labels[label, LATENCY] + step[ADD_LATENCY]
        interruption = labels[label, INTERRUPTION] + step[ADD_INTERRUPTION]
        end = latency + step[LATENCY_TO_COME]
        zone = labels[label, ZONE]
        if not _reaches(targets, zone, end, interruption, bounds, q, step_bound):
            zone = -1
            for k in range(first, count):
                if _reaches(targets, listed[k], end, interruption, bounds, q, step_bound):
                    zone = listed[k]
                    break
            if zone < 0:
                continue
        new = counters[FREE]
        if new >= 0:
            counters[FREE] = labels[new, NEXT]
        else:
            new = counters[LABELS]
            counters[LABELS] += 1
        labels[new, LATENCY], labels[new, COST] = latency, labels[label, COST] + step[ADD_COST]
        labels[new, INTERRUPTION], labels[new, PARENT] = interruption, label
        labels[new, PATTERN], labels[new, ZONE] = w, zone
        labels[new, NEXT] = states[target, HEAD]
        states[target, HEAD] = new


@kernel
def state_of(search, code, placed):
    """Return the state with a code; a new one is added, in place in `search`, to ``heads[placed]``.

    The hash table is one of open addressing.
    """
    states, slots = search.states, search.slots
    at = _hash(code, len(slots))
    while slots[at] > 0:
        if states[slots[at] - 1, CODE] == code:
            return slots[at] - 1
        at = (at + 1) % len(slots)
    state = search.counters[STATES]
    search.counters[STATES] += 1
    slots[at] = state + 1
    states[state, CODE], states[state, HEAD] = code, -1
    states[state, LATER], search.heads[placed] = search.heads[placed], state
    return state


@kernel
def _hash(code, size):
    return np.int64(mix(np.uint64(code)) % np.uint64(size))


@allocating_kernel
def _rehashed(states, count, size):
    """Return a hash table of `size` slots for the first `count` states."""
    slots = np.zeros(size, np.int64)
    for state in range(count):
        at = _hash(states[state, CODE], size)
        while slots[at] > 0:
            at = (at + 1) % size
        slots[at] = state + 1
    return slots


@allocating_kernel
def _longer(table, more):
    """Return a copy of a table with more than twice as many rows."""
    new = np.zeros((2 * len(table) + more, table.shape[1]), np.int64)
    copy_rows(table, new)
    return new
