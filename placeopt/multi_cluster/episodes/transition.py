"""Episodes of the multi-cluster problem, compiled: what arrives, what steps change, whole vectors.

The outcomes of actions are known already. The rules are in ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.core.kernels.common import copy_row, uniform
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.multi_cluster.episodes.outcomes import grown, refresh_all
from placeopt.multi_cluster.episodes.state import ACCEPTED, CPU, LAST_GINI, LATENCY, MAX_MS, SPREADS

# -- arrivals --------------------------------------------------------------------------------------


@kernel
def _integer(rng, i, bound):
    """Return a random integer of [0, bound)."""
    return np.int64(uniform(rng, i) * bound)


@kernel
def _exponential(rng, i, mean):
    return -math.log(1.0 - uniform(rng, i)) * mean


@kernel
def _draw_clusters(traces, state, i, types, background):
    """Draw latencies of 1 to 999 ms, both ways apart, types, and what is allocated beforehand."""
    clusters, rng = traces.price.shape[1], state.rng
    for a in range(clusters):
        for b in range(clusters):
            state.matrix[i, a, b] = 1.0 + _integer(rng, i, 999) if a != b else 0.0
        traces.base[i, a] = state.matrix[i, a].sum() / (clusters - 1)
    for c in range(clusters):
        kind = _integer(rng, i, len(types))
        traces.price[i, c] = types[kind, 2]
        for r in range(2):
            traces.capacity[i, c, r] = types[kind, r]
            state.used[i, c, r] = _integer(rng, i, background + 1)


@kernel
def _draw_requests(traces, rng, i, deployments, flow, replicas):
    for t in range(traces.replicas.shape[1]):
        kind = _integer(rng, i, len(deployments))
        for r in range(2):
            traces.demand[i, t, r] = np.int64(deployments[kind, r])
        traces.threshold[i, t] = deployments[kind, 2]
        traces.replicas[i, t] = replicas[0] + _integer(rng, i, replicas[1] - replicas[0] + 1)
        before = traces.arrival[i, t - 1] if t else 0.0
        traces.arrival[i, t] = before + _exponential(rng, i, 1.0 / flow[0])
        traces.departure[i, t] = traces.arrival[i, t] + _exponential(rng, i, flow[1])
        traces.increase[i, t] = uniform(rng, i) * flow[2]


@kernel
def draw_all(traces, state, which, types, background, deployments, flow, replicas):
    """Draw whole episodes of the environments of `which`, in place.

    `types` (k, 3) holds cpu, memory and cost; `background` is the highest allocation beforehand;
    `deployments` (k, 3) holds cpu, memory and latency threshold; `flow` (3,) is the rate, the mean
    duration and the highest increase of the latency; `replicas` is a pair, least and greatest.
    """
    for i in which:
        _draw_clusters(traces, state, i, types, background)
        _draw_requests(traces, state.rng, i, deployments, flow, replicas)


# -- steps -----------------------------------------------------------------------------------------


@kernel
def clear(traces, state, i):
    """Stand before the first request of environment i, in place; nothing runs.

    `state.used` holds what is allocated beforehand.
    """
    state.now[i], state.active[i] = 0, 0
    for c in range(state.free.shape[1]):
        for r in range(2):
            state.free[i, c, r] = traces.capacity[i, c, r] - state.used[i, c, r]
    state.load[i, :] = 0
    state.placed[i, :, :] = 0
    state.action[i, :] = -1
    state.sums[i, :] = 0.0


@kernel
def decide(traces, state, outcomes, i, action, rewards):
    """Decide on the request at hand: write rewards, action, placement and sums; go to the next.

    Return whether the action places the request; one that does not refuses it.
    """
    t, clusters = state.now[i], state.load.shape[1]
    copy_row(outcomes.parts[i, action], rewards[i])
    state.now[i] += 1
    placed, sums = state.placed[i, t], state.sums[i]
    if not outcomes.accepts[i, action]:
        return False
    state.action[i, t] = action
    if action < clusters:
        placed[action] = traces.replicas[i, t]
    else:
        copy_row(outcomes.split[i, action - clusters], placed)
        sums[SPREADS] += 1.0
    sums[ACCEPTED] += 1.0
    for k in range(3):
        sums[LATENCY + k] += outcomes.outcome[i, action, k]
    sums[LAST_GINI] = outcomes.outcome[i, action, 2]
    return True


@kernel
def _move(load, used, free, capacity, placed, demand, sign):
    """Put replicas on clusters, or with sign -1 remove them, in place."""
    for c in range(len(load)):
        replicas = sign * placed[c]
        if replicas != 0:
            load[c] += replicas
            for r in range(2):
                used[c, r] += replicas * demand[r]
                free[c, r] = capacity[c, r] - used[c, r]


@kernel
def _depart(traces, state, i):
    """Remove what ends by the arrival of the request at hand; write the latencies of the rest."""
    time, keep = traces.arrival[i, state.now[i]], 0
    running, placed, raw = state.running[i], state.placed[i], state.raw[i]
    departure, demand = traces.departure[i], traces.demand[i]
    replicas, increase = traces.replicas[i], traces.increase[i]
    load, used, free, capacity = state.load[i], state.used[i], state.free[i], traces.capacity[i]
    copy_row(traces.base[i], raw)
    for k in range(state.active[i]):
        t = running[k]
        if departure[t] <= time:
            _move(load, used, free, capacity, placed[t], demand[t], -1)
        else:
            running[keep] = t
            keep += 1
            for c in range(len(raw)):
                if placed[t, c] > 0:
                    raw[c] = grown(raw[c], increase[t], placed[t, c], replicas[t])
    state.active[i] = keep
    for c in range(len(raw)):
        state.latency[i, c] = min(MAX_MS, raw[c])


@kernel
def _cpu_usage(used, capacity, placed, asked):
    """Return the cpu use in percent after a placement, averaged over its replicas."""
    total = 0.0
    for c in range(len(placed)):
        if placed[c] > 0:
            total += 100.0 * used[c, 0] / capacity[c, 0] * placed[c]
    return total / asked


@kernel
def begin_all(traces, state, which):
    """Begin the episodes of the environments of `which`, in place."""
    for i in which:
        clear(traces, state, i)
        _depart(traces, state, i)


@kernel
def step_all(traces, state, outcomes, actions, rewards):
    """Take an action in every environment, in place, and write the reward parts, rewards (N, 3).

    Environments whose episode is over stand still and earn 0.
    """
    steps = traces.replicas.shape[1]
    for i in range(len(actions)):
        t = state.now[i]
        rewards[i, :] = 0.0
        if t == steps:
            continue
        if decide(traces, state, outcomes, i, actions[i], rewards):
            used, capacity, placed = state.used[i], traces.capacity[i], state.placed[i, t]
            _move(state.load[i], used, state.free[i], capacity, placed, traces.demand[i, t], 1)
            state.running[i, state.active[i]] = t
            state.active[i] += 1
            state.sums[i, CPU] += _cpu_usage(used, capacity, placed, traces.replicas[i, t])
        if state.now[i] < steps:
            _depart(traces, state, i)


# -- whole episodes --------------------------------------------------------------------------------


@kernel
def placing(accepts, parts, wanted):
    """Return the action that is wanted, or where it does not place the request, the best that does.

    Best is the highest sum of reward parts (A, 3), of equals the first. The refusal, the last
    action, needs no place, and remains where no action `accepts` (A,).
    """
    refusal = len(accepts) - 1
    if wanted == refusal or accepts[wanted]:
        return wanted
    best, highest = refusal, 0.0
    for a in range(refusal):
        if accepts[a]:
            total = parts[a, 0] + parts[a, 1] + parts[a, 2]
            if best == refusal or total > highest:
                best, highest = a, total
    return best


@allocating_kernel
def play_all(traces, state, outcomes, wanted, everyone):
    """Play the vectors `wanted` (N, T) to the end of the episodes that have just begun, in place.

    `everyone` has the numbers of all environments.
    """
    actions, rewards = np.zeros(len(wanted), np.int64), np.zeros((len(wanted), 3))
    for t in range(wanted.shape[1]):
        for i in everyone:
            actions[i] = placing(outcomes.accepts[i], outcomes.parts[i], wanted[i, t])
        step_all(traces, state, outcomes, actions, rewards)
        refresh_all(traces, state, outcomes, everyone)
