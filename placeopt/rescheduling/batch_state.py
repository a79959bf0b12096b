"""The records of compiled rescheduling episodes: rules, state, scratch.

K applications, M environments, N nodes; S services, C calls and R replicas of a service at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import LatencyScratch


class EpisodeRules(NamedTuple):
    """What no step changes."""

    applications: ReschedulingArrays  # every array with an axis (K,) before it, padded with 0
    sizes: np.ndarray  # int64 (K, 3) services, those that the gateway reaches, calls
    by_size: np.ndarray  # int64 (K, S) services, the largest first
    max_times: np.ndarray  # (K, 3) largest execution, latency to users, and delay
    max_demand: np.ndarray  # int64 (K, 2)
    together: np.ndarray  # (K, N) latency if every replica ran on one node
    min_replicas: int  # of a service; 0: as the application has it
    slots: int  # R
    background: float  # share of a node that others use, at most
    given: bool  # episodes begin at home
    max_moves: int  # of an episode
    penalty: float  # ms that a move costs
    invalid: float  # reward of an illegal action


class EpisodeState(NamedTuple):
    """Where the environments are."""

    random: np.ndarray  # uint64 (M,)
    application: np.ndarray  # int64 (M,)
    node_of: np.ndarray  # int64 (M, S * R) the node of a replica, -1 where there is none
    replicas: np.ndarray  # int64 (M, S)
    counts: np.ndarray  # int64 (M, S, N), this and the next three as in `Deployment`
    free: np.ndarray  # int64 (M, N, 2)
    own: np.ndarray  # (M, S)
    network: np.ndarray  # (M, C)
    latency: np.ndarray  # (M, 2) ms at the start, now
    num_moves: np.ndarray  # int64 (M,)
    moves: np.ndarray  # int64 (M, max_moves, 3) service, from, to
    ended: np.ndarray  # bool (M,)


class EpisodeScratch(NamedTuple):
    """What describes one environment while its observation is written."""

    latency: LatencyScratch
    from_node: np.ndarray  # (C, N) mean latency of a call from a node
    to_node: np.ndarray  # (C, N) mean latency of a call to a node
    to_partners: np.ndarray  # (S, N) the sum of both over the calls of a service
    partners: np.ndarray  # int64 (S,) number of these calls
    room: np.ndarray  # bool (S, N) whether a node has room for a service
    change: np.ndarray  # (S, N, N) ms by which a move from node to node changes the latency
    service_reward: np.ndarray  # (S, N) reward per move if all of a service went to a node
    path_reward: np.ndarray  # (N,) the same for all services on the critical path
    share: np.ndarray  # (N, 2) of a node that is free
