"""What every action leads to, by the fixed rules: spreads, latency, cost, Gini, rewards, masks.

Resources are whole units, so that capacity is exact. Inner kernels take the few arrays that they
need: to hand on whole records costs more time than they do. The rules are in
``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.multi_cluster.episodes.state import BF1B1, FFD, MAX_MS, REFUSAL

# -- spreads ---------------------------------------------------------------------------------------


@kernel
def sort_by_free_cpu(free, decreasing, order):
    """Write into `order` (C,) the clusters by their free cpu; equals keep their order."""
    for k in range(len(order)):
        cpu, at = free[k, 0], k
        while at > 0 and (
            free[order[at - 1], 0] < cpu if decreasing else free[order[at - 1], 0] > cpu
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@kernel
def _fits(free, demand, c, replicas):
    return replicas * demand[0] <= free[c, 0] and replicas * demand[1] <= free[c, 1]


@kernel
def most_at_once(free, demand, asked):
    """Return how many replicas the fullest cluster takes, within 1 and all but one."""
    threshold = asked - 1
    for c in range(len(free)):
        for r in range(2):
            if free[c, r] < threshold * demand[r]:
                threshold = free[c, r] // demand[r]
    return max(threshold, 1)


@kernel
def first_fit(free, demand, asked, order, threshold, split):
    """Write algorithm 1 of the paper, over the clusters in `order`, into `split` (C,).

    Return whether all replicas find a place, on two clusters or more.
    """
    left, before, width = asked, -1, 0
    split[:] = 0
    while left > 0 and left != before:
        before = left
        for c in order:
            whole = threshold <= left and _fits(free, demand, c, split[c] + threshold)
            take = threshold if whole else 1
            if left > 0 and (whole or _fits(free, demand, c, split[c] + 1)):
                width += split[c] == 0
                split[c] += take
                left -= take
    return left == 0 and width > 1


@kernel
def _remaining(free, capacity, demand, c, r, replicas):
    """Return the share of a resource that replicas leave free on a cluster."""
    return (free[c, r] - replicas * demand[r]) / capacity[c, r]


@kernel
def _best_fit(free, capacity, demand, asked, remaining, split):
    """Write BF1B1 into `split` (C,): each replica where the least cpu, then memory, remains.

    Return as `first_fit`; `remaining` (C,) is scratch.
    """
    width = 0
    for c in range(len(split)):
        split[c] = 0
        remaining[c] = _remaining(free, capacity, demand, c, 0, 1)
    for _ in range(asked):
        best = -1
        for c in range(len(split)):
            if _fits(free, demand, c, split[c] + 1) and (
                best < 0
                or remaining[c] < remaining[best]
                or (
                    remaining[c] == remaining[best]
                    and _remaining(free, capacity, demand, c, 1, split[c] + 1)
                    < _remaining(free, capacity, demand, best, 1, split[best] + 1)
                )
            ):
                best = c
        if best < 0:
            return False
        width += split[best] == 0
        split[best] += 1
        remaining[best] = _remaining(free, capacity, demand, best, 0, split[best] + 1)
    return width > 1


@kernel
def _spread(free, capacity, demand, asked, order, remaining, split, accepts):
    """Write the three spreads, and whether each places the request."""
    clusters = len(free)
    threshold = most_at_once(free, demand, asked)
    for s in range(2):
        sort_by_free_cpu(free, s == FFD, order)
        accepts[clusters + s] = first_fit(free, demand, asked, order, threshold, split[s])
    accepts[clusters + BF1B1] = _best_fit(free, capacity, demand, asked, remaining, split[BF1B1])


# -- latency, cost, Gini coefficient, rewards ------------------------------------------------------


@kernel
def grown(latency, increase, placed, asked):
    """Return a latency multiplied for `placed` of the `asked` replicas of a request."""
    return latency * (1.0 + increase * (placed / asked))


@kernel
def _write_latencies(raw, increase, asked, split, accepts, outcome):
    """Write the mean latency over replicas after every accepting action; outcome (A, 3)."""
    clusters = len(raw)
    for c in range(clusters):
        if accepts[c]:
            outcome[c, 0] = min(MAX_MS, grown(raw[c], increase, asked, asked))
    for s in range(3):
        if accepts[clusters + s]:
            total = 0.0
            for c in range(clusters):
                here = split[s, c]
                if here > 0:
                    total += min(MAX_MS, grown(raw[c], increase, here, asked)) * here
            outcome[clusters + s, 0] = total / asked


@kernel
def _gini_of_one(load, apart, total, c, more):
    """Return the Gini coefficient with `more` replicas on cluster c.

    Without them, `total` is the sum of the loads and `apart` that of the differences of pairs.
    """
    own = load[c]
    for b in range(len(load)):
        if b != c:
            apart += abs(own + more - load[b]) - abs(own - load[b])
    return apart / (len(load) * (total + more))


@kernel
def _gini_of_spread(load, split):
    """Return the Gini coefficient, equation (10) of the paper, of the loads with a spread."""
    total, apart = 0, 0
    for a in range(len(load)):
        total += load[a] + split[a]
        for b in range(a):
            apart += abs(load[a] + split[a] - load[b] - split[b])
    return apart / (len(load) * total) if total > 0 else 0.0


@kernel
def _write_costs_and_gini(load, price, asked, split, accepts, outcome):
    clusters, apart, total = len(load), 0, 0
    for a in range(clusters):
        total += load[a]
        for b in range(a):
            apart += abs(load[a] - load[b])
    for c in range(clusters):
        if accepts[c]:
            outcome[c, 1] = price[c]
            outcome[c, 2] = _gini_of_one(load, apart, total, c, asked)
    for s in range(3):
        if accepts[clusters + s]:
            cost = 0.0
            for c in range(clusters):
                cost += price[c] * split[s, c]
            outcome[clusters + s, 1] = cost / asked
            outcome[clusters + s, 2] = _gini_of_spread(load, split[s])


@kernel
def write_rewards(i, asked, refusal, traces, state, outcomes):
    """Write costs and Gini coefficients of accepting actions, and the reward parts of all.

    `outcomes` of environment `i` change in place: latencies, splits and what accepts stand there
    already. The parts are equations (5) to (7); an action that accepts nothing gets `refusal`.
    """
    outcomes.refusal[i] = refusal
    accepts, outcome, parts = outcomes.accepts[i], outcomes.outcome[i], outcomes.parts[i]
    scale = traces.scale
    _write_costs_and_gini(
        state.load[i], traces.price[i], asked, outcomes.split[i], accepts, outcome
    )
    for a in range(len(accepts)):
        if accepts[a]:
            parts[a, 0] = 1.0 - (outcome[a, 0] - 1.0) / 999.0
            parts[a, 1] = 1.0 - (outcome[a, 1] - scale[0]) / (scale[1] - scale[0])
            parts[a, 2] = 1.0 - outcome[a, 2]
        else:
            parts[a, :] = refusal


@allocating_kernel
def refresh_all(traces, state, outcomes, which):
    """Refresh `outcomes` of the environments of `which`, whole numbers, in place.

    After the end of an episode only the refusal is legal.
    """
    clusters = state.load.shape[1]
    order, remaining = np.zeros(clusters, np.int64), np.zeros(clusters)
    for i in which:
        t, mask = state.now[i], outcomes.masks[i]
        mask[:] = False
        mask[clusters + REFUSAL] = True
        if t == traces.replicas.shape[1]:
            continue
        demand, wanted, free = traces.demand[i, t], traces.replicas[i, t], state.free[i]
        split, accepts, outcome = outcomes.split[i], outcomes.accepts[i], outcomes.outcome[i]
        accepts[:] = False
        for c in range(clusters):
            accepts[c] = _fits(free, demand, c, wanted)
        if wanted > 1:
            _spread(free, traces.capacity[i], demand, wanted, order, remaining, split, accepts)
        refusal = 0.0
        for a in range(clusters + REFUSAL):
            if accepts[a]:
                mask[a] = True
                refusal = -1.0
        _write_latencies(state.raw[i], traces.increase[i, t], wanted, split, accepts, outcome)
        write_rewards(i, wanted, refusal, traces, state, outcomes)


# -- division --------------------------------------------------------------------------------------


@allocating_kernel
def take_by_weight(weights, asked, split):
    """Write into `split` (C,) the replicas of each cluster in proportion to whole weights (C,).

    Fractions are dropped; what is left goes one by one to the clusters of the highest weights.
    Return the cluster that gets all, C where several share, C + REFUSAL where the weights sum to
    less than is asked.
    """
    clusters, total, left = len(weights), weights.sum(), asked
    split[:] = 0
    if total < asked:
        return clusters + REFUSAL
    for c in range(clusters):
        split[c] = weights[c] * asked // total
        left -= split[c]
    for c in np.argsort(-weights, kind="mergesort"):
        if left > 0 and weights[c] > 0:
            split[c] += 1
            left -= 1
    for c in range(clusters):
        if split[c] == asked:
            return c
    return clusters


@kernel
def replicas_that_fit(room, demand):
    """Return how many replicas of `demand` (2,) fit into `room` (2,), at least 0."""
    fit = 10**6
    for r in range(2):
        if demand[r] > 0:
            fit = min(fit, max(room[r], 0) // demand[r])
    return fit


@allocating_kernel
def divide_all(traces, state, outcomes, actions):
    """Write Karmada's division into the place of FFD in `outcomes`, and its `actions` (N,).

    A refusal costs where anything places the request.
    """
    clusters = state.load.shape[1]
    weights = np.zeros(clusters, np.int64)
    for i in range(len(actions)):
        t = min(state.now[i], traces.replicas.shape[1] - 1)
        wanted, split = traces.replicas[i, t], outcomes.split[i]
        for c in range(clusters):
            weights[c] = replicas_that_fit(state.free[i, c], traces.demand[i, t])
        actions[i] = take_by_weight(weights, wanted, split[FFD])
        outcomes.accepts[i, clusters + FFD] = actions[i] == clusters + FFD
        refusal = -1.0 if outcomes.accepts[i, : clusters + REFUSAL].any() else 0.0
        _write_latencies(
            state.raw[i],
            traces.increase[i, t],
            wanted,
            split,
            outcomes.accepts[i],
            outcomes.outcome[i],
        )
        write_rewards(i, wanted, refusal, traces, state, outcomes)
