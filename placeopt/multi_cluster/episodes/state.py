"""What the kernels of the multi-cluster problem work on: N environments as arrays.

C clusters, T requests and A = C + 4 actions: one per cluster, three spreads, and the refusal.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

#: Numbers of the spreads, and of the refusal: the action C + REFUSAL.
FFD, FFI, BF1B1, REFUSAL = range(4)
#: Actions beyond one per cluster.
EXTRA = 4
#: Columns of `EnvironmentState.sums`.
ACCEPTED, LATENCY, COST, GINI, CPU, LAST_GINI, SPREADS, SUMS = range(8)
#: Highest latency, ms.
MAX_MS = 1000.0


class EpisodeData(NamedTuple):
    """What is given: clusters and requests; names are those of `MultiClusterArrays`."""

    unit: np.ndarray  # (3,)
    scale: np.ndarray  # (2,)
    capacity: np.ndarray  # (N, C, 2) int64
    price: np.ndarray  # (N, C)
    base: np.ndarray  # (N, C)
    demand: np.ndarray  # (N, T, 2) int64
    replicas: np.ndarray  # (N, T) int64
    arrival: np.ndarray  # (N, T)
    departure: np.ndarray  # (N, T)
    threshold: np.ndarray  # (N, T)
    increase: np.ndarray  # (N, T)


class EnvironmentState(NamedTuple):
    """What a step changes."""

    used: np.ndarray  # (N, C, 2) int64
    free: np.ndarray  # (N, C, 2) int64
    raw: np.ndarray  # (N, C) latency before the bound of 1000 ms
    latency: np.ndarray  # (N, C) ms
    matrix: np.ndarray  # (N, C, C) latencies between clusters, ms
    now: np.ndarray  # (N,) int64, requests decided
    active: np.ndarray  # (N,) int64, requests running
    running: np.ndarray  # (N, T) int64, the running requests in the order of their arrival
    placed: np.ndarray  # (N, T, C) int64, the decisions: replicas per cluster
    action: np.ndarray  # (N, T) int64, the action behind each decision, -1 where nothing is placed
    load: np.ndarray  # (N, C) int64, replicas running
    sums: np.ndarray  # (N, SUMS) over accepted requests; the last Gini coefficient; spreads
    rng: np.ndarray  # (N,) uint64


class ActionOutcomes(NamedTuple):
    """What every action would lead to, for the request at hand."""

    split: np.ndarray  # (N, 3, C) int64, replicas per cluster of each spread
    accepts: np.ndarray  # (N, A) bool, whether the action places the request
    masks: np.ndarray  # (N, A) bool, whether the action is legal
    outcome: np.ndarray  # (N, A, 3) latency, cost and Gini coefficient of accepting actions
    parts: np.ndarray  # (N, A, 3) the reward parts
    refusal: np.ndarray  # (N,) reward of a request that is not placed


def allocate(
    n: int, clusters: int, steps: int
) -> tuple[EpisodeData, EnvironmentState, ActionOutcomes]:
    """Return the arrays of `n` environments, filled with zeros; `unit` and `scale` with ones."""
    actions = clusters + EXTRA

    def zeros(*shape: int, dtype: Any = np.float64) -> np.ndarray:
        return np.zeros((n, *shape), dtype=dtype)

    whole = partial(zeros, dtype=np.int64)
    traces = EpisodeData(
        unit=np.ones(3),
        scale=np.ones(2),
        capacity=whole(clusters, 2),
        price=zeros(clusters),
        base=zeros(clusters),
        demand=whole(steps, 2),
        replicas=whole(steps),
        arrival=zeros(steps),
        departure=zeros(steps),
        threshold=zeros(steps),
        increase=zeros(steps),
    )
    state = EnvironmentState(
        used=whole(clusters, 2),
        free=whole(clusters, 2),
        raw=zeros(clusters),
        latency=zeros(clusters),
        matrix=zeros(clusters, clusters),
        now=whole(),
        active=whole(),
        running=whole(steps),
        placed=whole(steps, clusters),
        action=whole(steps),
        load=whole(clusters),
        sums=zeros(SUMS),
        rng=zeros(dtype=np.uint64),
    )
    outcomes = ActionOutcomes(
        split=whole(3, clusters),
        accepts=zeros(actions, dtype=np.bool_),
        masks=zeros(actions, dtype=np.bool_),
        outcome=zeros(actions, 3),
        parts=zeros(actions, 3),
        refusal=zeros(),
    )
    return traces, state, outcomes
