"""The use of every cluster over time by a multi-cluster plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.core.fronts.values import Plan

if TYPE_CHECKING:
    from placeopt.multi_cluster.instance import MultiCluster


class UsageOverTime(NamedTuple):
    """What is in use at every moment at which something changes.

    Attributes
    ----------
    times : float (E,)
        The moments; the values below hold until the next.
    shares : float (E, C, 2)
        Cpu and memory in use, as shares of the capacity.
    replicas : int (E, C)
        Replicas that run on every cluster.
    refused : list of int
        Numbers of the refused requests.
    """

    times: np.ndarray
    shares: np.ndarray
    replicas: np.ndarray
    refused: list[int]


def usage_over_time(problem: MultiCluster, plan: Plan) -> UsageOverTime:
    """Return the usage of clusters by a plan."""
    arrays, decisions = problem.arrays, problem.decisions(plan)
    arrivals, departures = arrays.arrival * arrays.unit[2], arrays.departure * arrays.unit[2]
    clusters = len(arrays.capacity)
    placed = np.array([[decision.get(c, 0) for c in range(clusters)] for decision in decisions])
    moments = np.concatenate((departures, arrivals))  # a departure comes before an arrival
    order = np.argsort(moments, kind="stable")
    times = moments[order]
    last = np.append(np.diff(times) > 0, True)  # of the changes at one moment
    change = np.concatenate((-placed, placed))
    need = change[:, :, None] * np.concatenate((arrays.demand, arrays.demand))[:, None, :]
    used = arrays.used + need[order].cumsum(axis=0)[last]
    refused = [k for k, decision in enumerate(decisions) if not any(decision.values())]
    return UsageOverTime(
        times=np.concatenate(([0.0], times[last])),
        shares=np.concatenate((arrays.used[None], used)) / np.maximum(arrays.capacity, 1),
        replicas=np.concatenate((np.zeros((1, clusters), int), change[order].cumsum(axis=0)[last])),
        refused=refused,
    )
