"""What the compiled rescheduling search works on: a deployment, and the plans that it keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.rescheduling.arrays import ReschedulingArrays
from placeopt.rescheduling.latency import (
    Deployment,
    LatencyScratch,
    empty_deployment,
    latency_scratch,
)


class SearchState(NamedTuple):
    """A deployment, and what the search knows of it; S services, N nodes."""

    deployment: Deployment
    scratch: LatencyScratch
    stale: np.ndarray  # bool (S,) services of which the mean times are out of date
    potential: np.ndarray  # (S, N) ms that a replica adds to the critical path
    linear: bool  # no service has two groups: potentials give changes exactly


class PlanArchive(NamedTuple):
    """The best plan of every number of moves, up to K."""

    latency: np.ndarray  # (K + 1,) ms, inf where there is none
    moves: np.ndarray  # int32 (K + 1, K, 3) service, from, to
    tries: np.ndarray  # int64 (1,) deployments that were evaluated


def search_state(instance: ReschedulingArrays) -> SearchState:
    """Return a state without replicas; `load` gives it a deployment."""
    services, nodes = instance.home.shape
    return SearchState(
        deployment=empty_deployment(instance),
        scratch=latency_scratch(services, len(instance.callee)),
        stale=np.ones(services, dtype=bool),
        potential=np.zeros((services, nodes)),
        linear=bool(np.diff(instance.group_first).max() <= 1),
    )


def plan_archive(max_moves: int) -> PlanArchive:
    """Return an empty archive for plans of at most `max_moves` moves."""
    return PlanArchive(
        latency=np.full(max_moves + 1, np.inf),
        moves=np.zeros((max_moves + 1, max_moves, 3), dtype=np.int32),
        tries=np.zeros(1, dtype=np.int64),
    )


def zones(instance: ReschedulingArrays) -> np.ndarray:
    """Return the zone of every node, 0 or 1, shape (N,).

    The two nodes that are farthest apart are the centres; a node belongs to the nearer one.
    """
    if len(instance.user) < 2:
        return np.zeros(len(instance.user), dtype=np.int64)
    between = instance.delay + instance.delay.T
    one, other = np.unravel_index(int(between.argmax()), between.shape)
    nearer = between[other] < between[one]
    nearer[other] = True  # with no delays at all, the zones still differ
    return nearer.astype(np.int64)
