"""The front of the relaxed problem by dynamic programming: every pattern may start when it likes.

A pass looks for points that beat the known ones by at least a slack in cost. Passes with a large
slack are quick and find points that make the next ones quick; the last pass has none and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import nondominated
from placeopt.core.kernels.common import copy_rows, mix
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.temporal.exact.tables import NEVER, Patterns, all_counts, next_part, write_counts

# -- completion ------------------------------------------------------------------------------------

#: Weights of latency and of interruption against cost, as multiples of the ratio of their ranges.
RATIOS = (0.0, 0.03, 0.08, 0.17, 0.3, 0.5, 0.8, 1.3, 2.5, 6.0)
_IMPOSSIBLE = 1e30


class Completion:
    """Completion bounds under K weight vectors.

    Attributes
    ----------
    weights : ndarray, shape (K, 3)
    tables : ndarray, shape (K, sets)
        Least weighted sum of hosting a set, latency taken as the mean.
    corners : ndarray, shape (k, 3)
        Whole-number vectors of plans that attain the tables, with the true, largest latency: points
        of the relaxed problem.
    spread : ndarray, shape (3,)
        Ranges of the objectives over the extreme points, at least 1.
    """

    def __init__(self, patterns: Patterns):
        numbers = patterns.numbers
        self.patterns, self._counts = patterns, all_counts(numbers.replicas).astype(float)
        classes = patterns.machines[: len(patterns.best)]
        per_replica = numbers.latency / numbers.replicas[:, None]
        self._latency = np.stack(
            [self._counts @ np.maximum(per_replica[:, m.place], 0) for m in classes]
        )
        frequency = np.array([m.frequency for m in classes], dtype=float)
        self._interruption = frequency[:, None] * (self._counts @ numbers.share)[None, :]
        self._possible = patterns.best < NEVER
        self._cost = np.where(self._possible, patterns.best, 0).astype(float)
        solved = [self._solve(np.array(weights)) for weights in self._lexicographic()]
        ends = np.array([corner for _, corner in solved])
        self.spread = np.maximum(ends.max(axis=0) - ends.min(axis=0), 1)
        scale = self.spread[1] / self.spread
        fan = [(scale[0] * a, 1.0, scale[2] * b) for a in RATIOS for b in RATIOS]
        self.weights = np.array([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0), *fan])
        solved = [self._solve(weights) for weights in self.weights]
        self.tables = np.stack([table for table, _ in solved])
        corners = np.concatenate([ends, [corner for _, corner in solved]])
        self.corners = np.unique(corners, axis=0).astype(np.int64)

    @property
    def cuts(self) -> np.ndarray:
        """Cuts that all plans satisfy, shape (k, 3); see `placeopt.temporal.exact.tables`."""
        linear = self.weights[:, 1] == 1
        return np.column_stack(
            (self.tables[linear, -1], self.weights[linear, 0], self.weights[linear, 2])
        )

    @property
    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Least latency and interruption there are, and greatest of interest, shapes (2,)."""
        low = np.floor(self.tables[:2, -1] * (1 + 1e-12) + 0.5).astype(np.int64)
        return low, np.maximum(self.corners[:, [0, 2]].max(axis=0), low)

    def _lexicographic(self) -> list[tuple[float, float, float]]:
        """Return weights under which one objective comes first, and others break its ties."""
        numbers = self.patterns.numbers
        singles = np.cumprod([1, *numbers.replicas[:-1] + 1])
        dearest = np.where(self._possible[:, singles], self._cost[:, singles], 0).max(axis=0)
        cost = float((dearest * numbers.replicas).sum()) + 1
        latency = cost * (float(numbers.max_latency) + 1)
        interruption = cost * (float(numbers.max_interruption) + 1)
        return [
            (latency, 1.0, cost),
            (cost, 1.0, 1 / interruption),
            (1 / latency, 1.0, interruption),
            (1 / latency, 1.0, 1 / interruption),
        ]

    def _solve(self, weights: np.ndarray) -> tuple[np.ndarray, tuple[int, int, int]]:
        """Return the table of one weight vector, and the vector of a plan that attains it."""
        numbers, machines = self.patterns.numbers, self.patterns.machines
        sums = np.where(
            self._possible,
            weights[0] * self._latency + weights[1] * self._cost + weights[2] * self._interruption,
            _IMPOSSIBLE,
        )
        host, least = sums.argmin(axis=0), sums.min(axis=0)
        table = _table(least, numbers.replicas)
        latency, cost, interruption = np.zeros(len(numbers.replicas), dtype=np.int64), 0, 0.0
        for code in _trace(least, table, numbers.replicas):
            c, members = host[code], self._counts[code] > 0
            cost += int(self.patterns.best[c, code])
            interruption += self._interruption[c, code]
            there = numbers.latency[members, machines[c].place]
            latency[members] = np.maximum(latency[members], there)
        return table, (int(latency.sum()), cost, round(interruption))


@allocating_kernel
def _table(least, replicas):
    """Return the least sum of `least` over all partitions of every set, shape (sets,).

    `least`, (sets,), is the sum of a set that stays whole.
    """
    table = np.full(len(least), 1e30)
    table[0] = 0.0
    counts = np.zeros(len(replicas), np.int64)
    for code in range(1, len(least)):
        table[code] = _best_part(code, least, table, replicas, counts)[0]
    return table


@allocating_kernel
def _best_part(code, least, table, replicas, counts):
    """Return the least sum for a set, and the code of the part with its lowest request.

    One part is cut off at a time, the part of the lowest request first. Overwrites `counts`,
    (requests,).
    """
    write_counts(code, replicas, counts)
    low, stride = 0, 1
    while counts[low] == 0:
        stride *= replicas[low] + 1
        low += 1
    part = np.zeros(len(replicas), np.int64)
    best, choice = 1e30, -1
    for count in range(1, counts[low] + 1):
        part[:] = 0
        piece = count * stride
        while piece >= 0:
            value = least[piece] + table[code - piece]
            if value < best:
                best, choice = value, piece
            piece = next_part(part, piece, counts, replicas, low + 1, stride * (replicas[low] + 1))
    return best, choice


@allocating_kernel
def _trace(least, table, replicas):
    """Return the codes of the parts of a best partition of the full set, shape (parts,)."""
    counts = np.zeros(len(replicas), np.int64)
    parts, code = [np.int64(0)], len(least) - 1
    while code > 0:
        part = _best_part(code, least, table, replicas, counts)[1]
        parts.append(np.int64(part))
        code -= part
    return np.array(parts)[1:]


# -- labels ----------------------------------------------------------------------------------------

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


# -- the relaxed front -----------------------------------------------------------------------------

#: Slack of the passes, as shares of the cost range.
PASSES = (0.3, 0.1, 0.03, 0.0)
#: A pass that finds less than this share of what was known is followed by the last one: what is
#: known is good, and a pass between takes a quarter of its time.
_FEW = 0.05
#: Weight vectors that are tested per zone, the most promising ones.
_TESTS = 16
#: Looks at labels and patterns between looks at the clock.
_LOOKS = 500_000
#: Labels in memory at once, 64 bytes each.
_MAX_LABELS = 40_000_000


@dataclass
class Relaxed:
    """Points of the relaxed problem, and the partitions that attain them.

    Attributes
    ----------
    values : ndarray of int64, shape (points, 3)
        Whole-number vectors, sorted; mutually non-dominated.
    partitions : list of tuple of int
        For each point the patterns used, with repeats.
    complete : bool
        Whether this is the whole front: then every plan is weakly dominated by one of the points.
    """

    values: np.ndarray
    partitions: list[tuple[int, ...]]
    complete: bool = False


def relaxed_front(
    patterns: Patterns,
    completion: Completion,
    budget: Budget,
    known: np.ndarray | None = None,
    passes: tuple[float, ...] = PASSES,
) -> Relaxed:
    """Return the front of the relaxed problem, or what was found of it when the budget ended.

    Parameters
    ----------
    known : ndarray of int64, shape (points, 3), optional
        Vectors that some plan attains: they save work.
    """
    model, order = build_model(patterns, completion)
    met = completion.corners if known is None else np.concatenate((completion.corners, known))
    # A vector without a partition must be found again: it closes only what costs more.
    met = met + np.array([0, 1, 0])
    front = Relaxed(np.empty((0, 3), dtype=np.int64), [])
    few = False
    for slack in passes:
        if few and slack > 0:
            continue
        upper = upper_bounds(patterns, np.concatenate((front.values, met)))
        result = run_pass(model, targets_of(upper, completion, slack), budget)
        partitions = [tuple(int(order[w]) for w in path) for path in result.paths]
        front = _merged(front, result.values, partitions)
        few = slack < passes[0] and len(result.values) < _FEW * len(met)
        budget.report(f"bin plans: {len(front.values)} relaxed points")
        if not result.done:
            return front
    front.complete = True
    return front


def build_model(patterns: Patterns, completion: Completion) -> tuple[Model, np.ndarray]:
    """Return the arrays of the program, and which pattern each of its patterns is, shape (W,)."""
    numbers = patterns.numbers
    reachable = [np.unique(row[row >= 0]) for row in numbers.latency]
    levels = np.array([len(values) for values in reachable], dtype=np.int64)
    latency = np.zeros((len(levels), levels.max()), dtype=np.int64)
    rank = np.zeros(numbers.latency.shape, dtype=np.int64)
    for i, values in enumerate(reachable):
        latency[i, : len(values)], rank[i] = values, np.searchsorted(values, numbers.latency[i])
    base = _base(numbers.replicas, levels)
    lowest = (patterns.counts > 0).argmax(axis=1)
    order = np.argsort(lowest, kind="stable")
    return Model(
        replicas=numbers.replicas,
        levels=levels,
        latency=latency,
        rank=rank,
        least=latency[:, 0].copy(),
        base=base,
        digit=np.cumprod([1, *base[:-1]]),
        stride=np.cumprod([1, *numbers.replicas[:-1] + 1]),
        first=np.searchsorted(lowest[order], np.arange(len(levels) + 1)),
        counts=patterns.counts[order],
        place=patterns.places[order],
        cost=patterns.cost[order],
        interruption=patterns.interruption[order],
        weights=completion.weights,
        tables=completion.tables,
    ), order


def _base(replicas: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return how many values the digit of each request has in the code of a state.

    None is placed, all are, or some are and the farthest has one of the latency levels.
    """
    return 2 + (replicas - 1) * levels


def states_fit(patterns: Patterns) -> bool:
    """Return whether states and sorting keys fit the whole numbers of the kernels."""
    numbers = patterns.numbers
    levels = np.array([len(np.unique(row[row >= 0])) for row in numbers.latency])
    states = float(np.prod(_base(numbers.replicas, levels).astype(float)))
    keys = float(numbers.max_latency) * float(_max_cost(patterns))
    levels_of_interruption = numbers.max_interruption // _unit(patterns.interruption) + 2
    return states < 2.0**60 and keys < 2.0**60 and levels_of_interruption < 4_000_000


def _unit(interruption: np.ndarray) -> int:
    """Return the greatest common divisor of interruptions, at least 1."""
    return max(1, int(np.gcd.reduce(interruption, initial=0)))


def _max_cost(patterns: Patterns) -> int:
    """Return an upper bound on the cost of a partition that may be needed."""
    return int(patterns.numbers.replicas.sum() * patterns.cost.max(initial=1))


def upper_bounds(patterns: Patterns, points: np.ndarray) -> np.ndarray:
    """Return the local upper bounds of points, shape (zones, 3)."""
    numbers = patterns.numbers
    limit = (numbers.max_latency, _max_cost(patterns), numbers.max_interruption)
    return local_upper_bounds(np.unique(points, axis=0), np.array(limit) + 1)


def targets_of(upper: np.ndarray, completion: Completion, slack: float = 0.0) -> Targets:
    """Return the zones that can hold a point which is better by the slack, ready to be tested.

    Parameters
    ----------
    upper : ndarray of int64, shape (zones, 3)
    slack : float
        As a share of the cost range.
    """
    limit = (upper - 1.0) @ completion.weights.T
    limit += 1e-9 * np.abs(limit) + 1e-6
    limit -= slack * completion.spread[1] * completion.weights[:, 1]
    over = completion.tables[:, -1] - limit
    alive = (over <= 0).all(axis=1)
    tests = np.argsort(-over[:, 2:], axis=1, kind="stable")[:, :_TESTS] + 2
    return Targets(
        upper[alive], np.ascontiguousarray(limit[alive]), np.ascontiguousarray(tests[alive])
    )


@dataclass(frozen=True)
class Pass:
    """What a pass found.

    Attributes
    ----------
    values : ndarray of int64, shape (labels, 3)
    paths : list of list of int
        The patterns of each vector, in the order of the model.
    done : bool
        Whether the pass was completed; where not, it returns no vectors.
    looks : int
        Labels and patterns looked at.
    """

    values: np.ndarray
    paths: list[list[int]]
    done: bool
    looks: int


def run_pass(
    model: Model,
    targets: Targets,
    budget: Budget,
    max_labels: int = _MAX_LABELS,
    everything: bool = False,
) -> Pass:
    """Find the vectors in the zones that no other dominates, and a partition for each.

    With `everything`, all partitions that end in a zone are found.
    """
    none = np.empty((0, 3), dtype=np.int64)
    if len(targets.upper) == 0:
        return Pass(none, [], True, 0)
    search, extension, unit = _new_search(model), *_new_extension(model, targets)
    total, status = len(search.heads) - 1, GO_ON
    while status == GO_ON and not budget.out_of_time:
        search, status = sweep(
            model, targets, extension, search, unit, _LOOKS, max_labels, everything
        )
        placed = search.counters[PLACED]
        budget.report(f"bin plans: {placed} of {total} replicas placed")
    looks = int(search.counters[LOOKS])
    if status != DONE:
        return Pass(none, [], False, looks)
    if search.heads[-1] < 0:
        return Pass(none, [], True, looks)
    labels, head = search.labels, search.states[search.heads[-1], HEAD]
    last = filter_dominated(labels, head, search.counters, extension.fenwick, unit, everything)
    values = labels[last][:, [LATENCY, COST, INTERRUPTION]]
    return Pass(values, [_path(labels, int(label)) for label in last], True, looks)


def _new_search(model: Model) -> Search:
    """Return a search with one label, which has placed nothing."""
    search = Search(
        labels=np.zeros((1 << 16, LABEL_WIDTH), dtype=np.int64),
        states=np.zeros((1 << 12, 3), dtype=np.int64),
        slots=np.zeros(1 << 14, dtype=np.int64),
        heads=np.full(int(model.replicas.sum()) + 1, -1, dtype=np.int64),
        counters=np.zeros(NUM_COUNTERS, dtype=np.int64),
    )
    search.labels[0, NEXT] = search.labels[0, PARENT] = search.counters[FREE] = -1
    search.counters[LABELS] = 1
    search.states[state_of(search, 0, 0), HEAD] = 0
    return search


def _new_extension(model: Model, targets: Targets) -> tuple[Extension, int]:
    """Return scratch arrays of a pass, and the unit of interruptions."""
    n, k, unit = len(model.replicas), len(model.weights), _unit(model.interruption)
    levels = int(targets.upper[:, 2].max()) // unit + 3
    return Extension(
        placed=np.zeros(n, np.int64),
        rank=np.zeros(n, np.int64),
        least=np.zeros(3, np.int64),
        bound=np.zeros((1, k)),
        step=np.zeros(6, np.int64),
        step_bound=np.zeros(k),
        open=np.zeros(len(targets.upper), np.int64),
        fenwick=np.full(levels, 2**60, dtype=np.int64),
    ), unit


def _path(labels: np.ndarray, label: int) -> list[int]:
    """Return the patterns that lead to a label."""
    used = []
    while label > 0:
        used.append(int(labels[label, PATTERN]))
        label = int(labels[label, PARENT])
    return used


def _merged(front: Relaxed, values: np.ndarray, partitions: list[tuple[int, ...]]) -> Relaxed:
    """Return the non-dominated points of a front and new ones."""
    both = np.concatenate((front.values, values))
    order = np.lexsort(both.T[::-1])
    keep = order[nondominated(both[order].astype(float))]
    everything = front.partitions + partitions
    return Relaxed(both[keep], [everything[k] for k in keep])


def local_upper_bounds(points: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return the maximal local upper bounds of points, shape (zones, m).

    Parameters
    ----------
    points : ndarray of int64, shape (points, m)
    limit : ndarray of int64, shape (m,)
        Greater than every value of interest: no bound exceeds it.

    Examples
    --------
    >>> sorted(local_upper_bounds(np.array([[1, 2], [2, 1]]), np.array([9, 9])).tolist())
    [[1, 9], [2, 2], [9, 1]]
    """
    upper = np.array([limit], dtype=np.int64)
    for point in points:
        inside = (point < upper).all(axis=1)
        if not inside.any():
            continue
        rest, cut = upper[~inside], np.repeat(upper[inside], upper.shape[1], axis=0)
        column = np.tile(np.arange(upper.shape[1]), int(inside.sum()))
        cut[np.arange(len(cut)), column] = point[column]
        cut = np.unique(cut, axis=0)
        upper = np.concatenate((rest, cut[_maximal(cut, rest)]))
    return upper


def _maximal(cut: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return which rows of `cut`, all different, lie below no other row of `cut` or `rest`."""
    below = np.all(cut[:, None, :] <= cut[None, :, :], axis=2)
    below &= ~np.eye(len(cut), dtype=bool)
    under_rest = np.all(cut[:, None, :] <= rest[None, :, :], axis=2)
    return np.asarray(~(below.any(axis=1) | under_rest.any(axis=1)))
