"""Whole episodes from vectors of actions, by the fixed rules."""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.multi_cluster.simulator.outcomes import refresh_all
from placeopt.multi_cluster.simulator.transition import step_all


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
