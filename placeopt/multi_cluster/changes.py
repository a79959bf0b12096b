"""Changes of single decisions of a plan, by the fixed rules: what each does to the goals.

A change of request t touches the requests that arrive while t runs, and no others. The work of a
change is theirs; nothing is replayed. The rules are in ``models/multi_cluster/README.md``.

`instance` is a `MultiClusterArrays`, `state` a `PlanState`, `change` a `Change`, throughout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.kernels.random import below, uniform
from placeopt.core.kernels.rows import copy_row, copy_rows
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.simulator.outcomes import grown
from placeopt.multi_cluster.simulator.state import MAX_MS

#: Odds that a drawn change refuses an accepted request, and that it moves some of its replicas.
_REFUSE, _SHIFT = 0.1, 0.45
#: Share of the steps of annealing that may make a plan worse.
_HOT = 0.8


class PlanState(NamedTuple):
    """A plan of T requests on C clusters, and what each request finds and gets."""

    ends: np.ndarray  # int64 (T,) first request that arrives when t is over
    placed: np.ndarray  # int64 (T, C) replicas, the decisions; all 0 for a refusal
    accepted: np.ndarray  # bool (T,)
    load: np.ndarray  # int64 (T, C) replicas that run when t arrives
    used: np.ndarray  # int64 (T, C, 2) cpu and memory in use when t arrives
    factor: np.ndarray  # (T, C) by which they raise the latency
    growth: np.ndarray  # (T, C) by which t raises it
    outcome: np.ndarray  # (T, 3) latency, cost and Gini coefficient of accepted requests
    sums: np.ndarray  # (4,) sums of outcomes, and the number of accepted requests


class Change(NamedTuple):
    """Another decision for one request, and what follows from it."""

    split: np.ndarray  # int64 (C,) replicas
    more: np.ndarray  # int64 (C,) the same, less those now
    growth: np.ndarray  # (C,) by which the request raises the latency
    ratio: np.ndarray  # (C,) by which factors of later requests grow
    outcome: np.ndarray  # (T, 3) of the requests that it touches
    sums: np.ndarray  # (4,)
    load: np.ndarray  # int64 (C,) scratch: replicas that run
    factor: np.ndarray  # (C,) scratch


def empty_state(instance: MultiClusterArrays) -> tuple[PlanState, Change]:
    """Return a state without a plan, and room for a change."""
    requests, clusters = len(instance.replicas), len(instance.price)
    state = PlanState(
        ends=np.searchsorted(instance.arrival, instance.departure).astype(np.int64),
        placed=np.zeros((requests, clusters), dtype=np.int64),
        accepted=np.zeros(requests, dtype=np.bool_),
        load=np.zeros((requests, clusters), dtype=np.int64),
        used=np.zeros((requests, clusters, 2), dtype=np.int64),
        factor=np.ones((requests, clusters)),
        growth=np.ones((requests, clusters)),
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
    )
    change = Change(
        split=np.zeros(clusters, dtype=np.int64),
        more=np.zeros(clusters, dtype=np.int64),
        growth=np.ones(clusters),
        ratio=np.ones(clusters),
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
        load=np.zeros(clusters, dtype=np.int64),
        factor=np.ones(clusters),
    )
    return state, change


# -- one change ------------------------------------------------------------------------------------


@kernel
def _fits(capacity, used, demand, t, split):
    """Return whether a split (C,) of request t fits beside what is in use (T, C, 2)."""
    for c in range(len(split)):
        if split[c] > 0:
            for r in range(2):
                if used[t, c, r] + split[c] * demand[t, r] > capacity[c, r]:
                    return False
    return True


@kernel
def _fits_beside(capacity, used, demand, placed, s, t, more):
    """Return whether request s still fits where `more` (C,) replicas of request t run."""
    for c in range(len(more)):
        if more[c] > 0 and placed[s, c] > 0:
            for r in range(2):
                taken = used[s, c, r] + more[c] * demand[t, r]
                if taken + placed[s, c] * demand[s, r] > capacity[c, r]:
                    return False
    return True


@kernel
def _gini(load):
    """Return the Gini coefficient of loads (C,), equation (10) of the paper; 0 without any."""
    total, apart = 0, 0
    for a in range(len(load)):
        total += load[a]
        for b in range(a):
            apart += abs(load[a] - load[b])
    return apart / (len(load) * total) if total > 0 else 0.0


@kernel
def try_change(instance, state, change, t):
    """Write what follows if request t is placed as ``change.split``; return whether all fits."""
    capacity, demand, replicas = instance.capacity, instance.demand, instance.replicas
    base, price, increase = instance.base, instance.price, instance.increase
    placed, used, loads, outcome = state.placed, state.used, state.load, state.outcome
    factor, growth, accepted, before = state.factor, state.growth, state.accepted, state.sums
    split, more, ratio, sums = change.split, change.more, change.ratio, change.sums
    load, new, own = change.load, change.outcome, change.growth
    if not _fits(capacity, used, demand, t, split):
        return False
    count, latency, cost, wanted = 0, 0.0, 0.0, replicas[t]
    for c in range(len(split)):
        more[c] = split[c] - placed[t, c]
        own[c] = grown(1.0, increase[t], split[c], wanted)
        ratio[c] = own[c] / growth[t, c]
        load[c] = loads[t, c] + split[c]
        if split[c] > 0:
            count += split[c]
            latency += min(MAX_MS, base[c] * factor[t, c] * own[c]) * split[c]
            cost += price[c] * split[c]
    copy_row(before, sums)
    if accepted[t]:
        for k in range(3):
            sums[k] -= outcome[t, k]
        sums[3] -= 1.0
    if count > 0:
        new[t, 0], new[t, 1], new[t, 2] = latency / wanted, cost / wanted, _gini(load)
        for k in range(3):
            sums[k] += new[t, k]
        sums[3] += 1.0
    for s in range(t + 1, state.ends[t]):
        if not accepted[s]:
            continue
        if not _fits_beside(capacity, used, demand, placed, s, t, more):
            return False
        latency = 0.0
        for c in range(len(split)):
            load[c] = loads[s, c] + more[c] + placed[s, c]
            if placed[s, c] > 0:
                ms = base[c] * (factor[s, c] * ratio[c]) * growth[s, c]
                latency += min(MAX_MS, ms) * placed[s, c]
        new[s, 0], new[s, 1], new[s, 2] = latency / replicas[s], outcome[s, 1], _gini(load)
        sums[0] += new[s, 0] - outcome[s, 0]
        sums[2] += new[s, 2] - outcome[s, 2]
    return True


@kernel
def make_change(instance, state, change, t):
    """Place request t as ``change.split``, in place; `try_change` has just said that all fits."""
    demand, more, ratio, split = instance.demand[t], change.more, change.ratio, change.split
    load, used, factor = state.load, state.used, state.factor
    for s in range(t + 1, state.ends[t]):
        for c in range(len(split)):
            if more[c] != 0:
                load[s, c] += more[c]
                factor[s, c] *= ratio[c]
                for r in range(2):
                    used[s, c, r] += more[c] * demand[r]
        if state.accepted[s]:
            copy_row(change.outcome[s], state.outcome[s])
    copy_row(split, state.placed[t])
    copy_row(change.growth, state.growth[t])
    state.accepted[t] = split.sum() > 0
    if state.accepted[t]:
        copy_row(change.outcome[t], state.outcome[t])
    copy_row(change.sums, state.sums)


# -- whole plans -----------------------------------------------------------------------------------


@kernel
def begin(instance, state, change, vector):
    """Place the requests as in `vector` (T, C), in place; refuse those whose split does not fit.

    A split that is not of all replicas is refused too.
    """
    state.placed[:], state.load[:], state.outcome[:], state.sums[:] = 0, 0, 0.0, 0.0
    state.accepted[:] = False
    state.factor[:], state.growth[:] = 1.0, 1.0
    for t in range(len(vector)):
        for c in range(len(instance.used)):
            copy_row(instance.used[c], state.used[t, c])
    for t in range(len(vector)):
        if vector[t].sum() == instance.replicas[t]:
            copy_row(vector[t], change.split)
            if try_change(instance, state, change, t):
                make_change(instance, state, change, t)


@kernel
def _write_decisions(state, vector):
    """Write the decisions into `vector` (T, C)."""
    for t in range(len(vector)):
        copy_row(state.placed[t], vector[t])


@kernel
def write_values(sums, requests, worst, values):
    """Write the four goals of sums (4,) over a number of requests; `worst` where none is in."""
    for k in range(3):
        values[k] = sums[k] / sums[3] if sums[3] > 0 else worst[k]
    values[3] = 1.0 - sums[3] / requests


@kernel
def judge_all(instance, state, change, vectors, worst, values):
    """Write the goals (n, 4) of vectors (n, T, C), and into these what `begin` makes of them."""
    for k in range(len(vectors)):
        begin(instance, state, change, vectors[k])
        _write_decisions(state, vectors[k])
        write_values(state.sums, vectors.shape[1], worst, values[k])


# -- plans known so far ----------------------------------------------------------------------------


@kernel
def choose_starts(known, weights, ideal, chosen):
    """Write for each row of weights (n, m) the row of `known` (k, m) that is best under them."""
    for w in range(len(weights)):
        least = math.inf
        for row in range(len(known)):
            value = _weighted(known[row], weights[w], ideal)
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


# -- annealing and variation -----------------------------------------------------------------------


@kernel
def _draw(random, placed, asked, split):
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
        origin = below(random, clusters)
        while split[origin] == 0:
            origin = (origin + 1) % clusters
        count = 1 + below(random, split[origin])
        split[origin] -= count
        split[below(random, clusters)] += count
        return
    split[:] = 0
    first = asked if uniform(random) < 0.5 else below(random, asked + 1)
    split[below(random, clusters)] += first
    split[below(random, clusters)] += asked - first


@kernel
def _same(split, placed):
    """Return whether two decisions (C,) are the same."""
    same = True
    for c in range(len(split)):
        same &= split[c] == placed[c]
    return same


@kernel
def _weighted(values, weights, ideal):
    """Return the largest weighted distance of a goal from its ideal, plus the sum of all."""
    largest = total = 0.0
    for k in range(len(values)):
        distance = weights[k] * (values[k] - ideal[k])
        largest, total = max(largest, distance), total + distance
    return largest + total


@kernel
def _allowed(random, heat, step, steps):
    """Return how much worse a step may make a plan: exponential, its mean from `heat` to 0.

    The steps after a share of `_HOT` make nothing worse. Advances `random`, (1,).
    """
    left = 1.0 - step / (_HOT * steps)
    return -heat * left * left * math.log(1.0 - uniform(random)) if left > 0.0 else 0.0


@allocating_kernel
def anneal_all(instance, state, change, vectors, weights, ideal, worst, steps, random, heat):
    """Improve vectors (n, T, C) in place, each by `steps` random changes under its weights (n, 4).

    Simulated annealing. Without `heat` a change that makes nothing worse stays, and no other.
    Advances `random`, (1,).
    """
    requests = vectors.shape[1]
    values = np.zeros(4)
    for k in range(len(vectors)):
        begin(instance, state, change, vectors[k])
        write_values(state.sums, requests, worst, values)
        now = _weighted(values, weights[k], ideal)
        for step in range(steps):
            t = below(random, requests)
            _draw(random, state.placed[t], instance.replicas[t], change.split)
            if _same(change.split, state.placed[t]):
                continue
            if try_change(instance, state, change, t):
                write_values(change.sums, requests, worst, values)
                value = _weighted(values, weights[k], ideal)
                if value <= now or value <= now + _allowed(random, heat, step, steps):
                    now = value
                    make_change(instance, state, change, t)
        _write_decisions(state, vectors[k])


@allocating_kernel
def vary_all(replicas, children, fathers, random):
    """Change plans (n, T, C) in place.

    A child takes the decisions of a random stretch of requests from its father. Then `_draw` makes
    another decision for one request, on average. Advances `random`, (1,).
    """
    requests = children.shape[1]
    split = np.zeros(children.shape[2], dtype=np.int64)
    for k in range(len(children)):
        one, other = below(random, requests + 1), below(random, requests + 1)
        begin, end = min(one, other), max(one, other)
        copy_rows(fathers[k, begin:end], children[k, begin:end])
        for t in range(requests):
            if below(random, requests) == 0:
                _draw(random, children[k, t], replicas[t], split)
                copy_row(split, children[k, t])
