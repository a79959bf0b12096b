"""The set of replicas that pays most on one machine: a branch and bound over sets.

A set is worth the sum over its replicas; it costs a slot's price for every slot in which the
machine is busy, at least the least makespan g of the set, or a fixed number of slots if the machine
is reserved. Here prices are 1: worth is counted in slots. The bounds on g are weights of dual
feasible functions: in every slot the weights of what runs at once sum to at most 1. So g is at
least the sum of weight x length, by each function, and for multipliers mu >= 0 of the functions

    worth - slots  <=  sum of (worth - mu weight length)  -  (1 - sum of mu) x slots,

where slots lie between a lower and an upper bound. That is a sum over requests, each of which takes
its best number of replicas: a bound for every branch. Replicas of a request on one machine start
together and are one item, so that worth and weights may depend on their number in any way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.temporal.exact.makespan import span_above

#: Dual feasible functions of one resource with a limit of their own, at most.
MAX_LIMITS = 8
#: Steps that improve multipliers at each branch of the root.
STEPS = 30
#: Nodes in search of a makespan.
SPAN_NODES = 2_000
#: Sets that a search returns, at most.
KEPT = 12
#: Less than this is rounding.
EPSILON = 1e-7


class Options(NamedTuple):
    """How many replicas of a request a machine of one size may take: O options in all."""

    first: np.ndarray  # (n + 1,) first option of each request; option first[i] + q takes q + 1
    items: np.ndarray  # (O, 3) vCPU and memory of all replicas taken, slots
    work: np.ndarray  # (O, functions) weight x length
    capacity: np.ndarray  # (2,)


class PayingSets(NamedTuple):
    """The K sets that gain most of those that were looked at."""

    counts: np.ndarray  # (K, n)
    span: np.ndarray  # (K,) lower bounds on makespans
    gain: np.ndarray  # (K,) worth less cost in slots, 0 where there is no set
    totals: np.ndarray  # (2,) largest gain, largest worth / cost


class _State(NamedTuple):
    """What a search holds at each depth; depth q decides on the q-th request of the branch."""

    order: np.ndarray  # (m,) requests
    worth: np.ndarray  # (n,) of a replica
    limits: np.ndarray  # (2,) least and most slots that are paid
    price: np.ndarray  # (functions,) multipliers
    slope: np.ndarray  # (functions,) of the bound
    rate: np.ndarray  # (O,) worth less priced work
    ahead: np.ndarray  # (m + 1,) the most that the requests from here on add
    value: np.ndarray  # (m + 1,) worth so far
    reduced: np.ndarray  # (m + 1,) sum of `rate` so far
    slots: np.ndarray  # (m + 1,) lower bound on what is paid
    used: np.ndarray  # (m + 1, functions) work so far
    choice: np.ndarray  # (m + 1,) next number of replicas to try
    items: np.ndarray  # (m + 1, 3) items of the set


def options_of(
    demands: np.ndarray, durations: np.ndarray, limits: np.ndarray, capacity: np.ndarray
) -> Options:
    """Return the options of a machine size; `limits` are the most replicas that fit, (n,)."""
    first = np.concatenate(([0], np.cumsum(limits)))
    request = np.repeat(np.arange(len(limits)), limits)
    taken = np.arange(len(request)) - first[request] + 1
    sizes = taken[:, None] * demands[request]
    weights = np.array([w for r in range(2) for w in _weights(sizes[:, r], int(capacity[r]))])
    weights = np.unique(weights, axis=0)
    kept = [
        k
        for k, row in enumerate(weights)
        if not any((other >= row).all() for q, other in enumerate(weights) if q != k)
    ]
    items = np.column_stack((sizes, durations[request]))
    return Options(
        first.astype(np.int64),
        np.ascontiguousarray(items, dtype=np.int64),
        np.ascontiguousarray((weights[kept] * durations[request]).T),
        np.asarray(capacity, dtype=np.int64),
    )


def _weights(sizes: np.ndarray, capacity: int) -> list[np.ndarray]:
    """Return dual feasible functions of sizes in one resource (Fekete and Schepers, 2001)."""
    capacity = max(capacity, 1)
    plain = sizes / capacity
    found = [plain]
    for k in range(1, 5):
        whole = (k + 1) * sizes
        found.append(np.where(whole % capacity == 0, plain, whole // capacity / k))
    small = np.unique(sizes[(sizes > 1) & (2 * sizes <= capacity)])
    spread = np.unique(np.linspace(0, max(len(small) - 1, 0), MAX_LIMITS).astype(int))
    for limit in small[spread[: len(small)]]:
        rest = np.where(sizes >= limit, plain, 0.0)
        found.append(np.where(sizes > capacity - limit, 1.0, rest))
    return found


def best_sets(
    options: Options, worth: np.ndarray, least: float, most: float, nodes: int
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Return sets that are worth more than they cost.

    Parameters
    ----------
    worth : ndarray, shape (n,)
        Of a replica of each request, in slots; what is not positive is not taken.
    least, most : float
        Slots that are paid at least and at most.
    nodes : int
        Sets that are looked at, at most.

    Returns
    -------
    counts : ndarray, shape (k, n)
        Among them one that gains most, if the search was complete.
    spans : ndarray, shape (k,)
        Lower bounds on their makespans.
    ratio : float
        No set has a larger ratio of worth to cost; at least 1.
    complete : bool
    """
    n = len(worth)
    lengths = np.zeros(n, dtype=np.int64)
    fits = np.diff(options.first) > 0
    lengths[fits] = options.items[options.first[:-1][fits], 2]
    wanted = np.flatnonzero(fits & (worth > 0) & (lengths <= most))
    found = PayingSets(
        np.zeros((KEPT, n), np.int64),
        np.zeros(KEPT, np.int64),
        np.zeros(KEPT),
        np.array([0.0, 1.0]),
    )
    if not len(wanted):
        return found.counts[:0], found.span[:0], 1.0, True
    # The longest first fixes what is paid at least; of reserved machines the largest fixes most.
    size = lengths if least < most else _largest_work(options, fits)
    order = wanted[np.argsort(-size[wanted], kind="stable")]
    complete = _search_all(options, order, worth, np.array([least, most]), nodes, found)
    rows = np.flatnonzero(found.gain > 0)
    return found.counts[rows], found.span[rows], float(found.totals[1]), bool(complete)


def _largest_work(options: Options, fits: np.ndarray) -> np.ndarray:
    """Return the work of one replica of each request by its larger resource, shape (n,)."""
    work = np.zeros(len(fits))
    items = options.items[options.first[:-1][fits]].astype(float)
    work[fits] = (items[:, :2] / np.maximum(options.capacity, 1)).max(axis=1) * items[:, 2]
    return work


@allocating_kernel
def _search_all(options, order, worth, limits, nodes, found):
    """Search for sets, by the first request in them; return whether all were looked at."""
    m, functions = len(order), options.work.shape[1]
    state = _State(
        order,
        worth,
        limits,
        np.zeros(functions),
        np.zeros(functions),
        np.zeros(len(options.work)),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros(m + 1),
        np.zeros((m + 1, functions)),
        np.zeros(m + 1, np.int64),
        np.zeros((m + 1, 3), np.int64),
    )
    best_price = np.zeros(functions)
    complete = True
    for first in range(m):
        for taken in range(_most(options, order[first]), 0, -1):
            slots = _begin(options, state, first, taken)
            if slots > limits[1]:
                continue
            bound = _tune(options, state, first + 1, slots, best_price)
            if bound > 0.5 * found.totals[0] and nodes > 0:
                _price_options(options, state, first)
                if _look(options, state, first, first, found):
                    nodes = _dive(options, state, first, nodes - 1, found)
                if nodes > 0:
                    continue
            complete &= bound <= 0.5 * found.totals[0]
            found.totals[1] = max(found.totals[1], 1 + bound / slots)
    return complete


@kernel
def _begin(options, state, first, taken):
    """Write the set of some replicas of request ``order[first]``; return slots that are paid."""
    i = state.order[first]
    o = options.first[i] + taken - 1
    slots = max(state.limits[0], float(options.items[o, 2]))
    for r in range(len(state.price)):
        state.used[first + 1, r] = options.work[o, r]
        slots = max(slots, np.ceil(options.work[o, r] - EPSILON))
    state.value[first + 1], state.slots[first + 1] = taken * state.worth[i], slots
    state.choice[first] = taken - 1
    return slots


@kernel
def _tune(options, state, depth, slots, best_price):
    """Improve the multipliers for sets that hold the one begun; return the bound on their gains.

    Subgradient steps of the convex bound, towards 0; the best multipliers are left in
    ``state.price``, and the next search begins there.
    """
    best, step = np.inf, 0.3
    for k in range(STEPS):
        bound = _bound_at(options, state, depth, slots)
        if bound < best:
            best = bound
            copy_row(state.price, best_price)
        norm = 0.0
        for r in range(len(best_price)):
            if state.price[r] <= 0 and state.slope[r] > 0:
                state.slope[r] = 0.0
            norm += state.slope[r] ** 2
        if best <= 0 or norm < 1e-12:
            break
        size = step / np.sqrt(norm)
        if k > 5:
            size = min(size, bound / norm)
        for r in range(len(best_price)):
            state.price[r] = max(0.0, state.price[r] - size * state.slope[r])
        step *= 0.93
    copy_row(best_price, state.price)
    return best


@kernel
def _paid(state, slots):
    """Return what a bound subtracts: (1 - sum of multipliers) x the slots that suit it."""
    rest = 1.0
    for r in range(len(state.price)):
        rest -= state.price[r]
    return rest * (slots if rest >= 0 else state.limits[1])


@kernel
def _rate(options, state, i, o):
    """Return the worth of option o of request i, less its work at the multipliers."""
    rate = (o - options.first[i] + 1) * state.worth[i]
    for r in range(len(state.price)):
        rate -= state.price[r] * options.work[o, r]
    return rate


@kernel
def _bound_at(options, state, depth, slots):
    """Return the bound on gains of sets that hold the one begun, and write its slope."""
    total = 0.0
    for r in range(len(state.price)):
        total += state.price[r]
    at = slots if total <= 1 else state.limits[1]
    bound = state.value[depth] - (1 - total) * at
    for r in range(len(state.price)):
        state.slope[r] = at - state.used[depth, r]
        bound -= state.price[r] * state.used[depth, r]
    for k in range(depth, len(state.order)):
        i = state.order[k]
        most, taken = 0.0, -1
        for o in range(options.first[i], options.first[i + 1]):
            rate = _rate(options, state, i, o)
            if rate > most:
                most, taken = rate, o
        bound += most
        if taken >= 0:
            for r in range(len(state.price)):
                state.slope[r] -= options.work[taken, r]
    return bound


@kernel
def _price_options(options, state, first):
    """Write what each option adds to the bound, and the most that requests ahead can add.

    `reduced` of the set begun is written as well.
    """
    m = len(state.order)
    reduced = state.value[first + 1]
    for r in range(len(state.price)):
        reduced -= state.price[r] * state.used[first + 1, r]
    state.reduced[first + 1] = reduced
    state.ahead[m] = 0.0
    for k in range(m - 1, first, -1):
        i = state.order[k]
        most = 0.0
        for o in range(options.first[i], options.first[i + 1]):
            state.rate[o] = _rate(options, state, i, o)
            most = max(most, state.rate[o])
        state.ahead[k] = state.ahead[k + 1] + most


@allocating_kernel
def _dive(options, state, first, nodes, found):
    """Look at all sets that hold the one begun and later requests; return the nodes left.

    A branch is left where its bound shows no more than half of the best gain so far: sets are
    wanted that gain much, and where nothing gains everything is looked at.
    """
    m, depth = len(state.order), first + 1
    if depth < m:
        state.choice[depth] = _most(options, state.order[depth])
    while first < depth < m and nodes > 0:
        taken = state.choice[depth]
        if taken < 0:
            depth -= 1
            continue
        state.choice[depth] -= 1
        if not _enter(options, state, depth, taken, found):
            continue
        if taken > 0:
            nodes -= 1
            if not _look(options, state, first, depth, found):
                continue
        if depth + 1 < m:
            depth += 1
            state.choice[depth] = _most(options, state.order[depth])
    return nodes


@kernel
def _most(options, request):
    """Return the greatest number of replicas of a request that a machine takes."""
    return options.first[request + 1] - options.first[request]


@kernel
def _enter(options, state, depth, taken, found):
    """Take so many replicas of a request; return whether sets from here on may gain enough."""
    i = state.order[depth]
    slots, reduced, value = state.slots[depth], state.reduced[depth], state.value[depth]
    o = options.first[i] + taken - 1
    if taken > 0:
        slots = max(slots, float(options.items[o, 2]))
        reduced += state.rate[o]
        value += taken * state.worth[i]
    bound = reduced + state.ahead[depth + 1] - _paid(state, slots)
    if bound <= 0.5 * found.totals[0]:
        found.totals[1] = max(found.totals[1], 1 + bound / slots)
        return False
    copy_row(state.used[depth], state.used[depth + 1])
    if taken > 0:
        for r in range(len(state.price)):
            state.used[depth + 1, r] += options.work[o, r]
            slots = max(slots, np.ceil(state.used[depth + 1, r] - EPSILON))
        if slots > state.limits[1]:
            return False
    state.slots[depth + 1], state.reduced[depth + 1] = slots, reduced
    state.value[depth + 1] = value
    return True


@allocating_kernel
def _look(options, state, first, depth, found):
    """Look at the set that ends here; return whether sets that hold it may gain enough.

    A short set gains little, and may have the largest ratio all the same: it is passed over only
    where another has as large a one.
    """
    enough, ratio, value = 0.5 * found.totals[0], found.totals[1], state.value[depth + 1]
    if value - state.slots[depth + 1] <= enough and value <= ratio * state.slots[depth + 1]:
        return True
    count = 0
    for k in range(first, depth + 1):
        q = state.choice[k] + 1
        if q > 0:
            copy_row(options.items[options.first[state.order[k]] + q - 1], state.items[count])
            count += 1
    most = int(state.limits[1]) + 1
    target = most
    if state.limits[0] < state.limits[1]:
        target = min(most, int(max(value - enough, value / ratio)) + 1)
    span = span_above(state.items[:count], options.capacity, target, SPAN_NODES)
    if span >= most:
        return False
    slots = max(state.slots[depth + 1], float(span))
    state.slots[depth + 1] = slots
    found.totals[1] = max(ratio, value / slots)
    gain = value - slots
    if gain > enough:
        paid_by_slot = state.limits[0] < state.limits[1]
        _keep(state, first, depth, int(slots) if paid_by_slot else int(span), gain, found)
    bound = state.reduced[depth + 1] + state.ahead[depth + 1] - _paid(state, slots)
    if bound <= 0.5 * found.totals[0]:
        found.totals[1] = max(found.totals[1], 1 + bound / slots)
        return False
    return True


@kernel
def _keep(state, first, depth, span, gain, found):
    """Write a set in place of the one that gains least."""
    row = 0
    for k in range(1, len(found.gain)):
        if found.gain[k] < found.gain[row]:
            row = k
    found.totals[0] = max(found.totals[0], gain)
    if gain <= found.gain[row]:
        return
    for i in range(found.counts.shape[1]):
        found.counts[row, i] = 0
    for k in range(first, depth + 1):
        found.counts[row, state.order[k]] = state.choice[k] + 1
    found.span[row], found.gain[row] = span, gain
