"""What the compiled rescheduling episodes are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Rules(NamedTuple):
    """What does not change: K applications on N nodes, S services at most, padded with 0; arrays as in `rescheduling.Arrays`."""

    demand: np.ndarray  # int64 (K, S, 2)
    capacity: np.ndarray  # int64 (K, N, 2)
    home: np.ndarray  # int64 (K, S, N)
    execution: np.ndarray  # (K, S, N)
    user: np.ndarray  # (K, N)
    delay: np.ndarray  # (K, N, N)
    services: np.ndarray  # int64 (K,)
    reached: np.ndarray  # int64 (K,) how much of `order` counts
    order: np.ndarray  # int64 (K, S) callees first
    group_first: np.ndarray  # int64 (K, S + 1)
    member_first: np.ndarray  # int64 (K, groups + 1)
    member: np.ndarray  # int64 (K, calls)
    owner: np.ndarray  # int64 (K, calls)
    calls: np.ndarray  # int64 (K,)
    size: np.ndarray  # int64 (K, S) services, the largest first
    most: np.ndarray  # (K, 3) largest execution and user latency, and delay
    largest: np.ndarray  # int64 (K, 2) largest demand
    together: np.ndarray  # (K, N) latency if every replica ran on one node
    fewest: int  # replicas of a service; 0: as the application has it
    slots: int  # replicas of a service that there is room for in an observation
    background: float  # largest share of a node that others use
    given: bool  # episodes begin at `home`
    steps: int  # of an episode at most
    penalty: float  # ms that a move costs
    invalid: float  # reward of an illegal action


class State(NamedTuple):
    """Where M environments are."""

    random: np.ndarray  # uint64 (M,)
    app: np.ndarray  # int64 (M,)
    place: np.ndarray  # int64 (M, S * slots) node of a replica, -1: there is none
    counts: np.ndarray  # int64 (M, S, N)
    replicas: np.ndarray  # int64 (M, S)
    free: np.ndarray  # int64 (M, N, 2)
    latency: np.ndarray  # (M, 2) at the start, now
    taken: np.ndarray  # int64 (M,) moves made
    made: np.ndarray  # int64 (M, steps, 3) service, from, to
    ended: np.ndarray  # bool (M,)
    te: np.ndarray  # (M, S) mean execution, with the users' latency for the gateway
    ds: np.ndarray  # (M, calls) mean latency of every call
    took: np.ndarray  # (S,) scratch
    weight: np.ndarray  # (S,) scratch: times on the critical path
    crit: np.ndarray  # (calls,) scratch: the same of calls
    saved: np.ndarray  # (calls,) scratch
    ahead: np.ndarray  # (calls, N) scratch: mean latency of a call from a node
    back: np.ndarray  # (calls, N) scratch: mean latency of a call to a node
    reach: np.ndarray  # (S, N) scratch: the sum of both over a service's calls
    partners: np.ndarray  # int64 (S,) scratch: those calls
    room: np.ndarray  # bool (S, N) scratch: whether a node has room for a service
    whole: np.ndarray  # (S, N) scratch: see `_blocks`
    every: np.ndarray  # (N,) scratch
    share: np.ndarray  # (N, 2) scratch: what nodes have free
    change: np.ndarray  # (S, N, N) scratch: what a move does to the latency
