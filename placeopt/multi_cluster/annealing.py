"""Simulated annealing over plans, by changes of one request or of two that run together.

`instance`, `state` and `change` are those of `placeopt.multi_cluster.changes`.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.kernels.annealing import most_worse
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import below, uniform
from placeopt.core.kernels.rows import copy_row, copy_rows
from placeopt.multi_cluster.changes import (
    begin,
    make_change,
    try_change,
    write_decisions,
    write_values,
)
from placeopt.multi_cluster.simulator.state import MAX_MS

#: Odds that a change of one refuses an accepted request, and that it moves some of its replicas.
_REFUSE, _SHIFT = 0.1, 0.55
#: Odds that two requests exchange the same number of replicas, where both have so many.
_SAME = 0.7
#: Share of the steps of annealing that may make a plan worse.
_HOT = 0.8


# -- plans known so far ----------------------------------------------------------------------------


@kernel
def choose_starts(known, weights, ideal, largest_too, chosen):
    """Write for each row of weights (n, m) the row of `known` (k, m) that is best under them."""
    for w in range(len(weights)):
        least = math.inf
        for row in range(len(known)):
            value = _weighted(known[row], weights[w], ideal, largest_too)
            if value < least:
                least, chosen[w] = value, row


@kernel
def count_new(values, known):
    """Return how many rows of `values` (n, m) no row of `known` (k, m) equals or dominates."""
    count = 0
    for k in range(len(values)):
        covered = False
        for row in range(len(known)):
            covered = True
            for goal in range(values.shape[1]):
                if known[row, goal] > values[k, goal]:
                    covered = False
                    break
            if covered:
                break
        if not covered:
            count += 1
    return count


# -- drawing changes -------------------------------------------------------------------------------


@kernel
def _drawn_cluster(random, split):
    """Return a random cluster on which `split` (C,) has replicas; it has some."""
    c = below(random, len(split))
    while split[c] == 0:
        c = (c + 1) % len(split)
    return c


@kernel
def _divide(random, asked, split):
    """Place all replicas on a random cluster, or on two, in `split` (C,)."""
    split[:] = 0
    first = asked if uniform(random) < 0.5 else below(random, asked + 1)
    split[below(random, len(split))] += first
    split[below(random, len(split))] += asked - first


@kernel
def _draw_one(random, placed, asked, split):
    """Draw another decision into `split` (C,); `placed` (C,) is the decision now.

    It is a refusal, a shift of replicas, or one or two clusters. Advances `random`, (1,).
    """
    clusters, accepted = len(split), placed.sum() > 0
    kind = uniform(random)
    if accepted and kind < _REFUSE + _SHIFT:
        copy_row(placed, split)
        if kind < _REFUSE:
            split[:] = 0
            return
        origin = _drawn_cluster(random, split)
        count = 1 + below(random, split[origin])
        split[origin] -= count
        split[below(random, clusters)] += count
        return
    _divide(random, asked, split)


@kernel
def _exchange(random, split):
    """Move replicas of one request from a to b, of the other from b to a, in `split` (2, C)."""
    a, b = _drawn_cluster(random, split[0]), _drawn_cluster(random, split[1])
    there = 1 + below(random, split[0, a])
    same = uniform(random) < _SAME and there <= split[1, b]
    back = there if same else 1 + below(random, split[1, b])
    split[0, a] -= there
    split[0, b] += there
    split[1, b] -= back
    split[1, a] += back


@kernel
def _eject(random, replicas, change, k):
    """Place the refused request k of the change; refuse the other one, or move some of it."""
    split, request = change.split, change.request
    _divide(random, replicas[request[k]], split[k])
    if uniform(random) < 0.5:
        split[1 - k, :] = 0
    else:
        origin = _drawn_cluster(random, split[1 - k])
        count = 1 + below(random, split[1 - k, origin])
        split[1 - k, origin] -= count
        split[1 - k, below(random, len(split[0]))] += count


@kernel
def _draw(random, state, replicas, pairs, change):
    """Draw a change of one request or of two that run together; return whether it is one.

    `pairs` are the odds of two. Advances `random`, (1,).
    """
    request, split, placed = change.request, change.split, state.placed
    t = below(random, len(placed))
    request[0], request[1] = t, -1
    beside = state.ends[t] - t - 1
    if beside <= 0 or uniform(random) >= pairs:
        _draw_one(random, placed[t], replicas[t], split[0])
        return not _same(split[0], placed[t])
    s = t + 1 + below(random, beside)
    request[1] = s
    copy_row(placed[t], split[0])
    copy_row(placed[s], split[1])
    if state.accepted[t] and state.accepted[s]:
        _exchange(random, split)
    elif state.accepted[t] or state.accepted[s]:
        _eject(random, replicas, change, 1 if state.accepted[t] else 0)
    else:
        return False
    return not (_same(split[0], placed[t]) and _same(split[1], placed[s]))


@kernel
def _same(split, placed):
    """Return whether two decisions (C,) are the same."""
    same = True
    for c in range(len(split)):
        same &= split[c] == placed[c]
    return same


# -- annealing and variation -----------------------------------------------------------------------


@kernel
def _weighted(values, weights, ideal, largest_too):
    """Return the sum of the weighted distances of goals from the ideal; `largest_too` added."""
    largest = total = 0.0
    for k in range(len(values)):
        distance = weights[k] * (values[k] - ideal[k])
        largest, total = max(largest, distance), total + distance
    return total + largest if largest_too else total


@kernel
def _allowed(random, heat, step, steps):
    """Return how much worse a step may make a plan: exponential, its mean from `heat` to 0.

    The steps after a share of `_HOT` make nothing worse. Advances `random`, (1,).
    """
    left = 1.0 - step / (_HOT * steps)
    return most_worse(heat * left * left, random) if left > 0.0 else 0.0


@kernel
def _beyond(values, most):
    """Return how far goals are above their limits."""
    beyond = 0.0
    for k in range(len(values)):
        beyond += max(0.0, values[k] - most[k])
    return beyond


@allocating_kernel
def anneal_all(
    instance,
    state,
    change,
    vectors,
    weights,
    ideal,
    worst,
    most,
    largest_too,
    pairs,
    steps,
    random,
    heat,
):
    """Improve vectors (n, T, C) in place, each by `steps` random changes under its weights (n, 4).

    Simulated annealing. Without `heat` a change that makes nothing worse stays, and no other. None
    stays that takes goals further beyond `most` (4,). Advances `random`, (1,).
    """
    requests = vectors.shape[1]
    values = np.zeros(4)
    for k in range(len(vectors)):
        timed = weights[k, 0] > 0.0 or most[0] < MAX_MS
        begin(instance, state, change, vectors[k], timed)
        write_values(state.sums, requests, worst, values)
        now, over = _weighted(values, weights[k], ideal, largest_too), _beyond(values, most)
        for step in range(steps):
            if not _draw(random, state, instance.replicas, pairs, change):
                continue
            if not try_change(instance, state, change, timed):
                continue
            write_values(change.sums, requests, worst, values)
            value = _weighted(values, weights[k], ideal, largest_too)
            beyond = _beyond(values, most)
            better = beyond < over or (beyond == over and value <= now)
            if not better and beyond == over:
                better = value <= now + _allowed(random, heat, step, steps)
            if better:
                now, over = value, beyond
                make_change(instance, state, change, timed)
        write_decisions(state, vectors[k])


@allocating_kernel
def vary_all(replicas, children, fathers, random):
    """Change plans (n, T, C) in place.

    A child takes the decisions of a random stretch of requests from its father. Then `_draw_one`
    makes another decision for one request, on average. Advances `random`, (1,).
    """
    requests = children.shape[1]
    split = np.zeros(children.shape[2], dtype=np.int64)
    for k in range(len(children)):
        one, other = below(random, requests + 1), below(random, requests + 1)
        begin, end = min(one, other), max(one, other)
        copy_rows(fathers[k, begin:end], children[k, begin:end])
        for t in range(requests):
            if below(random, requests) == 0:
                _draw_one(random, children[k, t], replicas[t], split)
                copy_row(split, children[k, t])
