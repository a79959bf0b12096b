"""A rescheduling instance as arrays: S services, N nodes, by number in document order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class ReschedulingArrays(NamedTuple):
    """What encoder, sequence, simulator and search read of an instance; times are in ms.

    Service i has the groups ``group_first[i]`` to ``group_first[i + 1]``. Group g has the calls
    ``call_first[g]`` to ``call_first[g + 1]``. Call c goes from ``caller[c]`` to ``callee[c]``.
    """

    demand: np.ndarray  # int64 (S, 2) cpu and memory of a replica, whole units
    capacity: np.ndarray  # int64 (N, 2)
    home: np.ndarray  # int64 (S, N) replicas per service and node now
    replicas: np.ndarray  # int64 (S,)
    execution: np.ndarray  # (S, N)
    user: np.ndarray  # (N,) latency to the users
    delay: np.ndarray  # (N, N) latency from node to node
    own: np.ndarray  # (S, N) execution, and for the gateway the latency to the users as well
    order: np.ndarray  # int64 (reached,) services that the gateway reaches, callees first
    group_first: np.ndarray  # int64 (S + 1,)
    call_first: np.ndarray  # int64 (groups + 1,)
    caller: np.ndarray  # int64 (calls,)
    callee: np.ndarray  # int64 (calls,)
    touch_first: np.ndarray  # int64 (S + 1,) service i makes or receives the calls
    touch: np.ndarray  # int64 (2 calls,) touch[touch_first[i]] to touch[touch_first[i + 1]]


def build(
    *,
    demand: np.ndarray,
    capacity: np.ndarray,
    homes: Sequence[Sequence[int]],
    execution: Sequence[Sequence[float]],
    user: Sequence[float],
    delay: Sequence[Sequence[float]],
    groups: Sequence[Sequence[Sequence[int]]],
    order: Sequence[int],
) -> ReschedulingArrays:
    """Return the arrays of an instance.

    Parameters
    ----------
    homes : sequence of sequences of int
        The node of every replica of every service.
    groups : sequence of sequences of sequences of int
        The callees of every group of every service.
    order : sequence of int
        Services that the gateway reaches, callees first; the gateway is the last.
    """
    num_services, num_nodes = len(homes), len(user)
    times, to_users = np.array(execution, dtype=float), np.array(user, dtype=float)
    own = times.copy()
    own[order[-1]] += to_users
    calls = [(i, j) for i, of_service in enumerate(groups) for group in of_service for j in group]
    caller, callee = np.array(calls, dtype=np.int64).reshape(-1, 2).T.copy()
    ends = np.concatenate((caller, callee))
    sizes = [len(group) for of_service in groups for group in of_service]
    return ReschedulingArrays(
        demand=demand,
        capacity=capacity,
        home=np.array([np.bincount(nodes, minlength=num_nodes) for nodes in homes], dtype=np.int64),
        replicas=np.array([len(nodes) for nodes in homes], dtype=np.int64),
        execution=times,
        user=to_users,
        delay=np.array(delay, dtype=float),
        own=own,
        order=np.array(order, dtype=np.int64),
        group_first=starts([len(of_service) for of_service in groups]),
        call_first=starts(sizes),
        caller=caller,
        callee=callee,
        touch_first=starts(np.bincount(ends, minlength=num_services)),
        touch=np.argsort(ends, kind="stable") % max(1, len(calls)),
    )


def starts(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return where each of several runs of the given sizes begins, and where the last ends."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
