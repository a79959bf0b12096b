"""What the compiled rescheduling search knows of a deployment, and the plans that it keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.rescheduling.instance import Arrays


class Work(NamedTuple):
    """A deployment and what is known of it.

    Attributes
    ----------
    counts : int64 (S, N)
    free : int64 (N, 2)
    ds, crit, saved : float (calls,)
        Mean latency of every call; how often it is paid on the critical path; a place to keep the first meanwhile.
    te, took, weight, kept : float (S,)
        Mean execution (with the users' latency, for the gateway), processing time, times on the critical path; a place to keep the
        second meanwhile.
    dirty : bool (S,)
        What has to be computed anew.
    pot : float (S, N)
        What a replica adds to the critical path.
    owner : int64 (calls,)
        The caller of every call.
    touch_first : int64 (S + 1,); touch, int64 (2 calls,)
        Calls that a service makes or is called by.
    linear : bool
        No service has two groups: there is one path only, and potentials say it all.
    """

    counts: np.ndarray
    free: np.ndarray
    ds: np.ndarray
    crit: np.ndarray
    saved: np.ndarray
    te: np.ndarray
    took: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    dirty: np.ndarray
    pot: np.ndarray
    owner: np.ndarray
    touch_first: np.ndarray
    touch: np.ndarray
    linear: bool


class Archive(NamedTuple):
    """The best plan of every number of moves.

    Attributes
    ----------
    latency : float (K + 1,)
    moves : int32 (K + 1, K, 3)
        (service, from, to) in order.
    tries : int64 (1,)
        Deployments looked at.
    """

    latency: np.ndarray
    moves: np.ndarray
    tries: np.ndarray


def work(t: Arrays) -> Work:
    """Return room for a deployment; `load` takes one up."""
    services, nodes = t.home.shape
    calls, zeros = t.member.size, np.zeros
    owner = np.repeat(
        np.repeat(np.arange(services), np.diff(t.group_first)), np.diff(t.member_first)
    ).astype(np.int64)
    ends = np.concatenate((owner, t.member))
    return Work(
        np.zeros_like(t.home),
        t.capacity.copy(),
        zeros(calls),
        zeros(calls),
        zeros(calls),
        zeros(services),
        zeros(services),
        zeros(services),
        zeros(services),
        np.ones(services, dtype=bool),
        zeros((services, nodes)),
        owner,
        np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=services)))).astype(np.int64),
        (np.argsort(ends, kind="stable") % max(1, calls)).astype(np.int64),
        bool(np.diff(t.group_first).max() <= 1),
    )


def archive(most: int) -> Archive:
    """Return room for the plans of up to `most` moves."""
    return Archive(
        np.full(most + 1, np.inf),
        np.zeros((most + 1, most, 3), dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )


def zones(t: Arrays) -> np.ndarray:
    """Return the zone of every node, 0 or 1: nearer to one or to the other of the two nodes that are farthest apart."""
    if len(t.user) < 2:
        return np.zeros(len(t.user), dtype=np.int64)
    between = t.delay + t.delay.T
    one, other = np.unravel_index(int(between.argmax()), between.shape)
    nearer = between[other] < between[one]
    nearer[other] = True  # with no delays at all, the zones still differ
    return nearer.astype(np.int64)
