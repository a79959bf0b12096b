"""What the kernels of the multi-cluster problem work on: N environments as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FIXED, PUBLISHED = 0, 1
#: Actions beyond one per cluster: three spreads and the refusal.
FFD, FFI, BF1B1, REJECT, EXTRA = 0, 1, 2, 3, 4
#: Columns of `World.sums`: sums over the accepted requests of an episode; the last Gini coefficient; accepted spreads.
ACCEPTED, LATENCY, COST, GINI, CPU, LAST_GINI, SPREADS, SUMS = 0, 1, 2, 3, 4, 5, 6, 7


class World(NamedTuple):
    """N environments of C clusters and T requests each, A = C + 4 actions.

    Attributes
    ----------
    unit : float (3,)
        Cores, GiB and time in a unit of the arrays.
    scale : float (2,)
        Least and greatest cost of a replica, for rewards.
    capacity, limit, used, free : int64 (N, C, 2)
        `limit` is what the masks fill to. `free` is what spreads believe to be free: in the published semantics a refused BF1B1
        leaves it too small.
    price, base, raw, latency : float (N, C)
        Cost of a replica; latency of the empty cluster, before the bound of 1000, and now, ms.
    matrix : float (N, C, C)
        Latencies between clusters; the published semantics changes them.
    demand : int64 (N, T, 2); replicas, int64 (N, T)
    arrival, departure, threshold, increase : float (N, T)
    now, active : int64 (N,)
        Requests decided; of these running.
    running : int64 (N, T)
        The running requests, in the order of their arrival.
    placed : int64 (N, T, C)
        The decisions: replicas per cluster.
    action : int64 (N, T)
        The action behind each, -1 for a request that was not placed.
    load : int64 (N, C)
        Replicas now running; in the published semantics, ever placed.
    split : int64 (N, 3, C)
        What the spreads would place.
    accepts : bool (N, A)
        Whether an action places the request.
    outcome, parts : float (N, A, 3)
        Latency, cost and Gini coefficient after every accepting action; the same as rewards.
    refusal : float (N,)
        Reward of a request that is not placed.
    sums : float (N, SUMS)
    rng : uint64 (N,)
    """

    unit: np.ndarray
    scale: np.ndarray
    capacity: np.ndarray
    limit: np.ndarray
    used: np.ndarray
    free: np.ndarray
    price: np.ndarray
    base: np.ndarray
    raw: np.ndarray
    latency: np.ndarray
    matrix: np.ndarray
    demand: np.ndarray
    replicas: np.ndarray
    arrival: np.ndarray
    departure: np.ndarray
    threshold: np.ndarray
    increase: np.ndarray
    now: np.ndarray
    active: np.ndarray
    running: np.ndarray
    placed: np.ndarray
    action: np.ndarray
    load: np.ndarray
    split: np.ndarray
    accepts: np.ndarray
    outcome: np.ndarray
    parts: np.ndarray
    refusal: np.ndarray
    sums: np.ndarray
    rng: np.ndarray
