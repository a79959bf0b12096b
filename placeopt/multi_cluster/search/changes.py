"""Changes of one decision of a plan or of two, by the fixed rules: what each does to the goals.

A change of request t touches the requests that arrive while t runs, and no others. The work of a
change is theirs; nothing is replayed. The rules are in ``models/multi_cluster/README.md``.

`instance` is a `MultiClusterArrays`, `state` a `PlanState`, `change` a `Change`, throughout. Where
latency has no weight, `timed` is false, and latencies are neither computed nor kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import kernel
from placeopt.multi_cluster.arrays import MultiClusterArrays
from placeopt.multi_cluster.episodes.outcomes import grown
from placeopt.multi_cluster.episodes.state import MAX_MS


class PlanState(NamedTuple):
    """A plan of T requests on C clusters, and what each request finds and gets."""

    ends: np.ndarray  # int64 (T,) first request that arrives when t is over
    placed: np.ndarray  # int64 (T, C) replicas, the decisions; all 0 for a refusal
    accepted: np.ndarray  # bool (T,)
    use: np.ndarray  # int64 (T, C, 3) cpu, memory and replicas in use after the decision on t
    ms: np.ndarray  # (T, C) latency then, before it is cut at `MAX_MS`
    growth: np.ndarray  # (T, C) by which t raises it
    outcome: np.ndarray  # (T, 3) latency, cost and Gini coefficient of accepted requests
    sums: np.ndarray  # (4,) sums of outcomes, and the number of accepted requests


class Change(NamedTuple):
    """Other decisions for one request or two, and what follows from them."""

    request: np.ndarray  # int64 (2,) the requests, the earlier first; -1 for no second one
    split: np.ndarray  # int64 (2, C) replicas
    more: np.ndarray  # int64 (2, C, 3) cpu, memory and replicas beyond those now
    growth: np.ndarray  # (2, C) by which the requests raise the latency
    ratio: np.ndarray  # (2, C) by how much more
    outcome: np.ndarray  # (T, 3) of the requests that it touches
    sums: np.ndarray  # (4,)
    step: np.ndarray  # int64 (C, 3) scratch: `more` of the requests that run
    grows: np.ndarray  # (C,) scratch: `ratio` of the requests that run
    load: np.ndarray  # int64 (C,) scratch: replicas that run


def empty_state(instance: MultiClusterArrays) -> tuple[PlanState, Change]:
    """Return a state without a plan, and room for a change."""
    requests, clusters = len(instance.replicas), len(instance.price)
    state = PlanState(
        ends=np.maximum(
            np.searchsorted(instance.arrival, instance.departure), np.arange(1, requests + 1)
        ),
        placed=np.zeros((requests, clusters), dtype=np.int64),
        accepted=np.zeros(requests, dtype=np.bool_),
        use=np.zeros((requests, clusters, 3), dtype=np.int64),
        ms=np.ones((requests, clusters)),
        growth=np.ones((requests, clusters)),
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
    )
    change = Change(
        request=np.array([0, -1]),
        split=np.zeros((2, clusters), dtype=np.int64),
        more=np.zeros((2, clusters, 3), dtype=np.int64),
        growth=np.ones((2, clusters)),
        ratio=np.ones((2, clusters)),
        outcome=np.zeros((requests, 3)),
        sums=np.zeros(4),
        step=np.zeros((clusters, 3), dtype=np.int64),
        grows=np.ones(clusters),
        load=np.zeros(clusters, dtype=np.int64),
    )
    return state, change


# -- one change ------------------------------------------------------------------------------------


@kernel
def _compare(instance, state, change, k, timed):
    """Write how split k of the change differs from the decision now, and the sums of cost."""
    t, split, more, sums = change.request[k], change.split, change.more, change.sums
    growth, ratio, now, before = change.growth, change.ratio, state.placed, state.growth
    price, wanted, demand = instance.price, instance.replicas[t], instance.demand
    cost, count = 0.0, 0
    for c in range(len(price)):
        n = split[k, c] - now[t, c]
        more[k, c, 0], more[k, c, 1], more[k, c, 2] = n * demand[t, 0], n * demand[t, 1], n
        count += split[k, c]
        cost += price[c] * split[k, c]
        if timed:
            growth[k, c] = grown(1.0, instance.increase[t], split[k, c], wanted)
            ratio[k, c] = growth[k, c] / before[t, c]
    change.outcome[t, 1] = cost / wanted
    if state.accepted[t]:
        sums[1] -= state.outcome[t, 1]
        sums[3] -= 1.0
    if count > 0:
        sums[1] += cost / wanted
        sums[3] += 1.0
    return count > 0


@kernel
def _write_step(change, one, two, timed):
    """Write what the requests of the change that run have more; return whether that is anything."""
    step, grows, more, ratio = change.step, change.grows, change.more, change.ratio
    some = timed
    for c in range(len(step)):
        for r in range(3):
            step[c, r] = (more[0, c, r] if one else 0) + (more[1, c, r] if two else 0)
            some |= step[c, r] != 0
        if timed:
            grows[c] = (ratio[0, c] if one else 1.0) * (ratio[1, c] if two else 1.0)
    return some


@kernel
def _loads(capacity, use, step, load, u):
    """Write the loads after request u; return their sum, -1 where what is in use does not fit."""
    total = 0
    for c in range(len(load)):
        cpu, memory = step[c, 0], step[c, 1]
        if cpu > 0 and use[u, c, 0] + cpu > capacity[c, 0]:
            return -1
        if memory > 0 and use[u, c, 1] + memory > capacity[c, 1]:
            return -1
        load[c] = use[u, c, 2] + step[c, 2]
        total += load[c]
    return total


@kernel
def _apart(load):
    """Return the sum of the differences of loads (C,), each pair once."""
    apart = 0
    for a in range(len(load)):
        for b in range(a):
            apart += abs(load[a] - load[b])
    return apart


@kernel
def _try_own(instance, state, change, k, stays, timed):
    """Write what follows for request k of the change itself; return whether it fits."""
    u, new, step, split = change.request[k], change.outcome, change.step, change.split
    if state.accepted[u]:
        change.sums[0] -= state.outcome[u, 0]
        change.sums[2] -= state.outcome[u, 2]
    if not stays:
        return True
    total = _loads(instance.capacity, state.use, step, change.load, u)
    if total < 0:
        return False
    new[u, 2] = _apart(change.load) / (len(step) * total)
    change.sums[2] += new[u, 2]
    if timed:
        latency = 0.0
        for c in range(len(step)):
            latency += min(MAX_MS, state.ms[u, c] * change.grows[c]) * split[k, c]
        new[u, 0] = latency / instance.replicas[u]
        change.sums[0] += new[u, 0]
    return True


@kernel
def _try_between(instance, state, change, begin, end, timed):
    """Write what follows for the requests from `begin` to `end`; return whether all fits.

    What is in use is most after requests that are accepted: no others are looked at.
    """
    new, load, step, grows = change.outcome, change.load, change.step, change.grows
    accepted, outcome, placed = state.accepted, state.outcome, state.placed
    use, ms = state.use, state.ms
    capacity, replicas = instance.capacity, instance.replicas
    slower, wider = 0.0, 0.0
    for u in range(begin, end):
        if not accepted[u]:
            continue
        total = _loads(capacity, use, step, load, u)
        if total < 0:
            return False
        gini = _apart(load) / (len(load) * total)
        wider += gini - outcome[u, 2]
        new[u, 2] = gini
        if timed:
            latency = 0.0
            for c in range(len(load)):
                if placed[u, c] > 0:
                    latency += min(MAX_MS, ms[u, c] * grows[c]) * placed[u, c]
            latency /= replicas[u]
            slower += latency - outcome[u, 0]
            new[u, 0] = latency
    change.sums[0] += slower
    change.sums[2] += wider
    return True


@kernel
def _keep_between(state, change, begin, end):
    """Write that nothing changes for the requests from `begin` to `end`."""
    for u in range(begin, end):
        change.outcome[u, 0], change.outcome[u, 2] = state.outcome[u, 0], state.outcome[u, 2]


@kernel
def try_change(instance, state, change, timed):
    """Write what follows from the splits of ``change.request``; return whether all fits.

    A second request arrives while the first one runs. Without `timed` latencies are not written.
    """
    first, second, ends = change.request[0], change.request[1], state.ends
    copy_row(state.sums, change.sums)
    stays = _compare(instance, state, change, 0, timed)
    _write_step(change, True, False, timed)
    if not _try_own(instance, state, change, 0, stays, timed):
        return False
    if second < 0:
        return _try_between(instance, state, change, first + 1, ends[first], timed)
    stays = _compare(instance, state, change, 1, timed)
    if not _try_between(instance, state, change, first + 1, second, timed):
        return False
    both, last = min(ends[first], ends[second]), max(ends[first], ends[second])
    some = _write_step(change, True, True, timed)
    if not _try_own(instance, state, change, 1, stays, timed):
        return False
    if not some:
        _keep_between(state, change, second + 1, both)
    elif not _try_between(instance, state, change, second + 1, both, timed):
        return False
    _write_step(change, ends[first] > both, ends[second] > both, timed)
    return _try_between(instance, state, change, both, last, timed)


@kernel
def make_change(instance, state, change, timed):
    """Make a change, in place; `try_change` has just said that all fits."""
    use, ms, more, ratio = state.use, state.ms, change.more, change.ratio
    last = 0
    for k in range(2):
        t = change.request[k]
        if t < 0:
            continue
        last = max(last, state.ends[t])
        for u in range(t, state.ends[t]):
            for c in range(len(instance.price)):
                for r in range(3):
                    use[u, c, r] += more[k, c, r]
                if timed:
                    ms[u, c] *= ratio[k, c]
        copy_row(change.split[k], state.placed[t])
        state.accepted[t] = change.split[k].sum() > 0
        state.outcome[t, 1] = change.outcome[t, 1]
        if timed:
            copy_row(change.growth[k], state.growth[t])
    for u in range(change.request[0], last):
        if state.accepted[u]:
            state.outcome[u, 2] = change.outcome[u, 2]
            if timed:
                state.outcome[u, 0] = change.outcome[u, 0]
    copy_row(change.sums, state.sums)


# -- whole plans -----------------------------------------------------------------------------------


@kernel
def begin(instance, state, change, vector, timed):
    """Place the requests as in `vector` (T, C), in place; refuse those whose split does not fit.

    A split that is not of all replicas is refused too.
    """
    state.placed[:], state.outcome[:], state.sums[:] = 0, 0.0, 0.0
    state.accepted[:], state.growth[:], state.use[:] = False, 1.0, 0
    change.request[1] = -1
    for t in range(len(vector)):
        copy_row(instance.base, state.ms[t])
        for c in range(len(instance.used)):
            copy_row(instance.used[c], state.use[t, c])
    for t in range(len(vector)):
        if vector[t].sum() == instance.replicas[t]:
            change.request[0] = t
            copy_row(vector[t], change.split[0])
            if try_change(instance, state, change, timed):
                make_change(instance, state, change, timed)


@kernel
def write_decisions(state, vector):
    """Write the decisions into `vector` (T, C)."""
    for t in range(len(vector)):
        copy_row(state.placed[t], vector[t])


@kernel
def write_values(sums, requests, worst, values):
    """Write the four goals of sums (4,) over a number of requests; `worst` where none is in."""
    for k in range(3):
        values[k] = sums[k] / sums[3] if sums[3] > 0 else worst[k]
    values[3] = (requests - sums[3]) / requests


@kernel
def judge_all(instance, state, change, vectors, worst, values):
    """Write the goals (n, 4) of vectors (n, T, C), and into these what `begin` makes of them."""
    for k in range(len(vectors)):
        begin(instance, state, change, vectors[k], True)
        write_decisions(state, vectors[k])
        write_values(state.sums, vectors.shape[1], worst, values[k])
