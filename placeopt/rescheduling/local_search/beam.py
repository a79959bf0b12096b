"""Beam search over the services of a call graph, callers first: whole services stay, or go to one of two zones.

Every deployment is built from empty nodes, so that what is placed first, the callers, does not find its room taken by what could be
elsewhere. What is not placed yet counts as if each call went to the zone where it takes least, which nothing but room prevents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.rescheduling.instance import Arrays
from placeopt.rescheduling.local_search.state import Work

#: ms that every move counts in the comparison of deployments: of equals the one with fewer moves.
_MOVE = 1e-4


class Beam(NamedTuple):
    """W deployments under construction, and room for as many more."""

    counts: np.ndarray  # int64 (2 W, S, N)
    free: np.ndarray  # int64 (2 W, N, 2)
    te: np.ndarray  # (2 W, S) mean execution
    cost: (
        np.ndarray
    )  # (2 W, calls) mean latency of a call; with the processing time of what is not placed yet
    moves: np.ndarray  # (2 W,)
    value: np.ndarray  # (2 W,)
    placed: np.ndarray  # bool (S,)
    took: np.ndarray  # (S,) scratch
    rows: np.ndarray  # int64 (3 W, N) what may become of the next service
    values: np.ndarray  # (3 W,)
    near: np.ndarray  # (2, N) mean latency from a node to a zone
    rest: np.ndarray  # (S, 2) processing time of a service with all that it reaches, by zone


def prepare(t: Arrays, zone_of: np.ndarray, score: np.ndarray, width: int) -> Beam:
    """Return an empty beam with the estimates: services at the mean of a zone's nodes, weighted by their cpu."""
    services, nodes = t.home.shape
    share = np.array([(zone_of == z) * (t.capacity[:, 0] + 1e-9) for z in range(2)])
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
    near = share @ t.delay.T
    between = share @ near.T  # from zone to zone
    rest = np.zeros((services, 2))
    for i in t.order:
        groups = [0.0 * rest[i]]
        for g in range(t.group_first[i], t.group_first[i + 1]):
            members = t.member[t.member_first[g] : t.member_first[g + 1]]
            groups.append(
                np.sum([(between + rest[j]).min(axis=1) for j in members], axis=0)
                if len(members)
                else 0.0 * rest[i]
            )
        rest[i] = share @ score[i] + np.max(groups, axis=0)
    rest[:, share.sum(axis=1) == 0] = np.inf  # a zone without nodes
    zeros, whole, calls = np.zeros, (2 * width, services, nodes), t.member.size
    return Beam(
        zeros(whole, dtype=np.int64),
        np.repeat(t.capacity[None], 2 * width, axis=0),
        zeros((2 * width, services)),
        zeros((2 * width, calls)),
        zeros(2 * width),
        np.full(2 * width, np.inf),
        zeros(services, dtype=bool),
        zeros(services),
        zeros((3 * width, nodes), dtype=np.int64),
        zeros(3 * width),
        near,
        rest,
    )


@kernel
def _fill(demand, free, home, count, zone_of, zone, score, row):
    """Write a place for every replica of a service into `row`, in a zone while there is room, or at home (2); return whether all have one."""
    row[:] = 0
    left = count
    for u in range(row.size if zone == 2 else 0):
        for _ in range(home[u]):
            if free[u, 0] >= demand[0] * (row[u] + 1) and free[u, 1] >= demand[1] * (row[u] + 1):
                row[u] += 1
                left -= 1
    while left:
        best, value = -1, np.inf
        for v in range(row.size):
            if free[v, 0] >= demand[0] * (row[v] + 1) and free[v, 1] >= demand[1] * (row[v] + 1):
                here = (
                    score[v]
                    + (0.0 if zone == 2 or zone_of[v] == zone else 1e9)
                    - (1e-6 if row[v] < home[v] else 0.0)
                )
                if here < value:
                    best, value = v, here
        if best < 0:
            return False
        row[best] += 1
        left -= 1
    return True


@kernel
def _costs(t, owner, b, s, i, row):
    """Write execution and calls of a service as far as they are known once it runs as in `row`; callers are placed."""
    total = 0.0
    for u in range(row.size):
        if row[u]:
            total += row[u] * (t.execution[i, u] + (t.user[u] if i == t.order[-1] else 0.0))
    b.te[s, i] = total / t.replicas[i]
    for e in range(owner.size):
        if t.member[e] == i and b.placed[owner[e]]:
            a, total = owner[e], 0.0
            for u in range(row.size):
                if b.counts[s, a, u]:
                    for v in range(row.size):
                        total += b.counts[s, a, u] * row[v] * t.delay[u, v]
            b.cost[s, e] = total / (t.replicas[a] * t.replicas[i])
        elif owner[e] == i:
            there = np.zeros(2)
            for u in range(row.size):
                for z in range(2):
                    there[z] += row[u] * b.near[z, u] / t.replicas[i]
            b.cost[s, e] = min(there[0] + b.rest[t.member[e], 0], there[1] + b.rest[t.member[e], 1])


@kernel
def _latency(order, group_first, member_first, member, placed, te, cost, took):
    for i in order:
        took[i] = 0.0
        if placed[i]:
            longest = 0.0
            for g in range(group_first[i], group_first[i + 1]):
                group = 0.0
                for e in range(member_first[g], member_first[g + 1]):
                    group += cost[e] + took[member[e]]  # of what is not placed, the cost has all
                longest = max(longest, group)
            took[i] = te[i] + longest
    return took[order[-1]]


@kernel
def _copy(b, source, target):
    b.counts[target], b.free[target], b.te[target], b.cost[target] = (
        b.counts[source],
        b.free[source],
        b.te[source],
        b.cost[source],
    )
    b.moves[target], b.value[target] = b.moves[source], b.value[source]


@kernel
def _put(t, owner, b, s, i, row):
    """Run a service as in `row`."""
    _costs(t, owner, b, s, i, row)
    b.counts[s, i] = row
    for u in range(row.size):
        b.moves[s] += max(0, row[u] - t.home[i, u])
        for r in range(2):
            b.free[s, u, r] -= row[u] * t.demand[i, r]


@kernel
def search(t, owner, b, zone_of, score):
    """Build deployments; return how many, in the first places of `b.counts`, best first."""
    width, alive = b.value.size // 2, 1
    reached = np.zeros(t.replicas.size, np.bool_)
    for i in t.order:
        reached[i] = True
    for i in range(t.replicas.size):  # what no request reaches stays where it is
        if not reached[i]:
            _put(t, owner, b, 0, i, t.home[i])
    for k in range(t.order.size - 1, -1, -1):
        i = t.order[k]
        b.placed[i] = True
        for s in range(alive):
            _expand(t, owner, b, s, i, zone_of, score)
        b.values[3 * alive :] = np.inf
        best, kept = np.argsort(b.values, kind="mergesort"), 0
        while kept < width and b.values[best[kept]] < np.inf:
            _copy(b, best[kept] // 3, width + kept)
            _put(t, owner, b, width + kept, i, b.rows[best[kept]])
            b.value[width + kept] = b.values[best[kept]]
            kept += 1
        for s in range(kept):
            _copy(b, width + s, s)
        alive = kept
    return alive


@kernel
def _expand(t, owner, b, s, i, zone_of, score):
    """Write what may become of a service in a deployment, and the latency then."""
    kept, calls = b.te[s, i], b.cost[s].copy()
    for option in range(3):  # to stay comes first: of equals it is taken
        x = 3 * s + option
        b.values[x] = np.inf
        row = b.rows[x]
        if not _fill(
            t.demand[i], b.free[s], t.home[i], t.replicas[i], zone_of, 2 - option, score[i], row
        ):
            continue
        twice = False
        for y in range(3 * s, x):
            twice = twice or (b.values[y] < np.inf and (b.rows[y] == row).all())
        if twice:
            continue
        _costs(t, owner, b, s, i, row)
        value = _latency(
            t.order, t.group_first, t.member_first, t.member, b.placed, b.te[s], b.cost[s], b.took
        )
        b.values[x] = value + _MOVE * (b.moves[s] + np.maximum(0, row - t.home[i]).sum())
        b.te[s, i], b.cost[s] = kept, calls


def deployments(
    t: Arrays, work: Work, zone_of: np.ndarray, score: np.ndarray, width: int
) -> np.ndarray:
    """Return up to `width` deployments, shape (deployments, S, N), the fastest first."""
    beam = prepare(t, zone_of, score, width)
    found = search(t, work.owner, beam, zone_of, score)
    return beam.counts[:found].copy()
