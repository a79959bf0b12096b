"""Changes of single decisions of a plan, by the fixed rules: what each does to the goals.

A change of request t touches the requests that arrive while t runs, and no others. The work of a
change is theirs; nothing is replayed. The rules are in ``models/multi_cluster/README.md``.

`instance` is a `MultiClusterArrays`, `state` a `PlanState`, `change` a `Change`, throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.random import below, uniform
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.simulator.outcomes import grown
from placeopt.multi_cluster.simulator.state import MAX_MS

#: Odds that a drawn change refuses an accepted request, and that it moves some of its replicas.
_REFUSE, _SHIFT = 0.1, 0.45


class PlanState(NamedTuple):
    """A plan of T requests on C clusters, and what each request finds and gets."""

    ends: np.ndarray  # int64 (T,) first request that arrives when t is over
    placed: np.ndarray  # int64 (T, C) replicas, the decisions; all 0 for a refusal
    accepted: np.ndarray  # bool (T,)
    load: np.ndarray  # int64 (T, C) replicas that run when t arrives
    used: np.ndarray  # int64 (T, C, 2) cpu and memory in use when t arrives
    factor: np.ndarray  # (T, C) by which they raise the latency
    outcome: np.ndarray  # (T, 3) latency, cost and Gini coefficient of accepted requests
    sums: np.ndarray  # (4,) sums of outcomes, and the number of accepted requests


class Change(NamedTuple):
    """Another decision for one request, and what follows from it."""

    split: np.ndarray  # int64 (C,) replicas
    more: np.ndarray  # int64 (C,) the same, less those now
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
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
    )
    change = Change(
        split=np.zeros(clusters, dtype=np.int64),
        more=np.zeros(clusters, dtype=np.int64),
        ratio=np.ones(clusters),
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
        load=np.zeros(clusters, dtype=np.int64),
        factor=np.ones(clusters),
    )
    return state, change


# -- one change ------------------------------------------------------------------------------------


@kernel
def _fits(capacity, used, demand, split):
    """Return whether a split (C,) fits beside what is used (C, 2)."""
    for c in range(len(split)):
        if split[c] > 0:
            for r in range(2):
                if used[c, r] + split[c] * demand[r] > capacity[c, r]:
                    return False
    return True


@kernel
def _fits_beside(capacity, used, demand, split, more, more_demand):
    """Return whether a split still fits where `more` (C,) replicas of another request run."""
    for c in range(len(split)):
        if more[c] > 0 and split[c] > 0:
            for r in range(2):
                if used[c, r] + more[c] * more_demand[r] + split[c] * demand[r] > capacity[c, r]:
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
def _write_outcome(base, price, increase, asked, split, load, factor, outcome):
    """Write latency, cost and Gini coefficient of a request that is placed as `split` (C,).

    `load` and `factor` (C,) are those of the requests before it; the load gets its replicas too.
    """
    latency = cost = 0.0
    for c in range(len(split)):
        load[c] += split[c]
        if split[c] > 0:
            latency += min(MAX_MS, grown(base[c] * factor[c], increase, split[c], asked)) * split[c]
            cost += price[c] * split[c]
    outcome[0], outcome[1], outcome[2] = latency / asked, cost / asked, _gini(load)


@kernel
def try_change(instance, state, change, t):
    """Write what follows if request t is placed as ``change.split``; return whether all fits."""
    capacity, demand, increase = instance.capacity, instance.demand, instance.increase
    base, price, replicas = instance.base, instance.price, instance.replicas
    placed, used, accepted, outcome = state.placed, state.used, state.accepted, state.outcome
    split, more, ratio, sums = change.split, change.more, change.ratio, change.sums
    load, factor = change.load, change.factor
    if not _fits(capacity, used[t], demand[t], split):
        return False
    for c in range(len(split)):
        more[c] = split[c] - placed[t, c]
        ratio[c] = grown(1.0, increase[t], split[c], replicas[t])
        ratio[c] /= grown(1.0, increase[t], placed[t, c], replicas[t])
    sums[:] = state.sums
    if accepted[t]:
        sums[:3] -= outcome[t]
        sums[3] -= 1.0
    if split.sum() > 0:
        load[:], factor[:] = state.load[t], state.factor[t]
        new = change.outcome[t]
        _write_outcome(base, price, increase[t], replicas[t], split, load, factor, new)
        sums[:3] += new
        sums[3] += 1.0
    for s in range(t + 1, state.ends[t]):
        if not accepted[s]:
            continue
        if not _fits_beside(capacity, used[s], demand[s], placed[s], more, demand[t]):
            return False
        for c in range(len(split)):
            load[c] = state.load[s, c] + more[c]
            factor[c] = state.factor[s, c] * ratio[c]
        new = change.outcome[s]
        _write_outcome(base, price, increase[s], replicas[s], placed[s], load, factor, new)
        for k in range(3):
            sums[k] += new[k] - outcome[s, k]
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
            state.outcome[s] = change.outcome[s]
    state.placed[t] = split
    state.accepted[t] = split.sum() > 0
    if state.accepted[t]:
        state.outcome[t] = change.outcome[t]
    state.sums[:] = change.sums


# -- whole plans -----------------------------------------------------------------------------------


@kernel
def begin(instance, state, change, vector):
    """Place the requests as in `vector` (T, C), in place; refuse those whose split does not fit.

    A split that is not of all replicas is refused too.
    """
    state.placed[:], state.load[:], state.outcome[:], state.sums[:] = 0, 0, 0.0, 0.0
    state.accepted[:] = False
    state.factor[:] = 1.0
    for t in range(len(vector)):
        state.used[t] = instance.used
    for t in range(len(vector)):
        if vector[t].sum() == instance.replicas[t]:
            change.split[:] = vector[t]
            if try_change(instance, state, change, t):
                make_change(instance, state, change, t)


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
        vectors[k] = state.placed
        write_values(state.sums, vectors.shape[1], worst, values[k])


# -- descent and variation -------------------------------------------------------------------------


@kernel
def _draw(random, placed, asked, split):
    """Draw another decision into `split` (C,); `placed` (C,) is the decision now.

    It is a refusal, a shift of replicas, or one or two clusters. Advances `random`, (1,).
    """
    clusters, accepted = len(split), placed.sum() > 0
    kind = uniform(random)
    if accepted and kind < _REFUSE + _SHIFT:
        split[:] = placed
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
def _weighted(values, weights, ideal):
    """Return the largest weighted distance of a goal from its ideal, plus the sum of all."""
    largest = total = 0.0
    for k in range(len(values)):
        distance = weights[k] * (values[k] - ideal[k])
        largest, total = max(largest, distance), total + distance
    return largest + total


@kernel
def descend_all(instance, state, change, vectors, weights, ideal, worst, steps, random):
    """Improve vectors (n, T, C) in place, each by `steps` random changes under its weights (n, 4).

    A change that makes nothing worse stays. Advances `random`, (1,).
    """
    requests = vectors.shape[1]
    values = np.zeros(4)
    for k in range(len(vectors)):
        begin(instance, state, change, vectors[k])
        write_values(state.sums, requests, worst, values)
        lowest = _weighted(values, weights[k], ideal)
        for _ in range(steps):
            t = below(random, requests)
            _draw(random, state.placed[t], instance.replicas[t], change.split)
            if (change.split == state.placed[t]).all():
                continue
            if try_change(instance, state, change, t):
                write_values(change.sums, requests, worst, values)
                value = _weighted(values, weights[k], ideal)
                if value <= lowest:
                    lowest = value
                    make_change(instance, state, change, t)
        vectors[k] = state.placed


@kernel
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
        children[k, begin:end] = fathers[k, begin:end]
        for t in range(requests):
            if below(random, requests) == 0:
                _draw(random, children[k, t], replicas[t], split)
                children[k, t] = split
