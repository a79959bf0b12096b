"""Steps of the multi-cluster problem by the fixed rules; the outcomes of actions are known already.

The rules are in ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

from placeopt.core.kernels.compile import kernel
from placeopt.core.kernels.rows import copy_row
from placeopt.multi_cluster.simulator.outcomes import grown
from placeopt.multi_cluster.simulator.state import (
    ACCEPTED,
    CPU,
    LAST_GINI,
    LATENCY,
    MAX_MS,
    SPREADS,
)


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
