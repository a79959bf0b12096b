"""Prices of what requests share: a convex program, by first-order steps.

Requests in parts (T, C) share clusters while they run, and pay for latency, cost and inequality.
What they share has prices. Parts go down and prices go up in turn (Chambolle and Pock, 2011;
Condat, 2013), with a step for each by the sums of rows and columns (Pock and Chambolle, 2011); now
and then both go to the mean since the last time (Applegate et al., 2021). Any prices prove a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: What rounding can add to a sum, as a share of the sum of the sizes.
ROUNDING = 1e-9
#: Rounds of steps, and steps in each.
_ROUNDS, _STEPS = 4, 50


class Shared(NamedTuple):
    """What requests share, for T requests, C clusters and P pairs of these."""

    running: np.ndarray  # (T, T) 1 where the request of a column runs after that of a row
    size: np.ndarray  # (2, T, C) cpu and memory of a request, as a share of what is free
    replicas: np.ndarray  # (T,) floats
    share: np.ndarray  # (T, C) the largest part of a request on a cluster
    most: np.ndarray  # (T,) replicas that run after a request at most
    whole: np.ndarray  # (T, 2) inequality that a refusal takes off, and the least of whole replicas
    price: np.ndarray  # (C,)
    ways: np.ndarray  # (P, C) the difference of two clusters
    linear: np.ndarray  # (T, C) of the sum of latencies
    quadratic: np.ndarray  # (C, T, T)


class State(NamedTuple):
    """Parts, and prices of what they share, for each of W weights."""

    parts: np.ndarray  # (W, T, C)
    room: np.ndarray  # (W, 2, T, C)
    differences: np.ndarray  # (W, T, P) of clusters' loads; at most `unequal` either way
    unequal: np.ndarray  # (W, T, 2) of inequality by differences, and by whole replicas
    accepted: np.ndarray  # (W, 1, 1) of a request that is accepted


def nothing(s: Shared, count: int) -> State:
    """Return states without parts, where nothing has a price."""
    shapes = s.share.shape, s.size.shape, (len(s.share), len(s.ways)), s.whole.shape, (1, 1)
    return State(*(np.zeros((count, *shape)) for shape in shapes))


def _costs(s: Shared, state: State, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what requests pay on each cluster for all but being accepted; both (W, T, C).

    And the quadratic form of latencies times parts.
    """
    latency, cost = weights[:, 0, None, None], weights[:, 1, None, None]
    apart = s.ways.shape[1] * s.most[:, None]
    paid = (s.size * (s.running.T @ state.room)).sum(axis=1)
    paid += s.replicas[:, None] * (s.running.T @ (state.differences @ s.ways / apart))
    paid += (state.unequal * s.whole).sum(axis=2)[:, :, None] + cost * s.price
    curved = (s.quadratic @ state.parts.transpose(2, 1, 0)).transpose(2, 1, 0)
    return paid + latency * (s.linear + 2 * curved), curved


def bounds_of(s: Shared, state: State, weights: np.ndarray) -> np.ndarray:
    """Return bounds on the least cost of 1, 2, ... T requests, shape (W, T).

    Each request is a question of its own where prices are paid; k of them cost what the k cheapest
    do at least. What rounding can add is taken off.
    """
    cost, curved = _costs(s, state, weights)
    order = np.argsort(cost, axis=2, kind="stable")  # cheapest clusters first
    cost = np.take_along_axis(cost, order, axis=2)
    share = np.take_along_axis(np.broadcast_to(s.share, order.shape), order, axis=2)
    filled = share.cumsum(axis=2)
    parts = np.clip(1 - (filled - share), 0.0, share)
    least = np.where(filled[:, :, -1] >= 1 - 1e-9, (parts * cost).sum(axis=2), np.inf)
    fixed = -(state.unequal[:, :, 0] @ s.whole[:, 0]) - state.room.sum(axis=(1, 2, 3))
    fixed -= weights[:, 0] * (state.parts * curved).sum(axis=(1, 2))
    size = np.where(np.isfinite(least), abs(least), 0.0).sum(axis=1) + abs(fixed)
    return np.asarray((fixed - ROUNDING * size)[:, None] + np.sort(least, axis=1).cumsum(axis=1))


def _lowered(
    share: np.ndarray, parts: np.ndarray, step: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """Return parts moved down their cost, to the nearest ones that sum to 1 at most; all (k, C).

    Where the sum is above 1, one shift is added to all costs. The sum falls with the shift, in
    straight pieces; it bends where a part comes to 0, or falls below its largest value.
    """
    wanted = parts - step * cost
    result = np.clip(wanted, 0.0, share)
    full = np.flatnonzero(result.sum(axis=1) > 1)
    wanted, step, share = wanted[full], step[full], share[full]
    points = np.hstack((np.zeros((len(full), 1)), wanted / step, (wanted - share) / step))
    points = np.sort(np.maximum(points, 0.0), axis=1)
    totals = np.clip(wanted[:, None] - step[:, None] * points[:, :, None], 0.0, share[:, None]).sum(
        axis=2
    )
    rows, above = np.arange(len(full)), np.minimum((totals > 1).sum(axis=1), points.shape[1] - 1)
    low, high = points[rows, above - 1], points[rows, above]
    before, after = totals[rows, above - 1], totals[rows, above]
    shift = low + (high - low) * (before - 1) / np.maximum(before - after, 1e-12)
    result[full] = np.clip(wanted - step * np.minimum(shift, high)[:, None], 0.0, share)
    return result


def legal(
    differences: np.ndarray, unequal: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest legal prices of inequality (W, T, P) and (W, T, 2).

    A request has a price by differences and one by whole replicas; their sum is at most the weight
    (W,). No difference of clusters is larger than the first price: large ones raise it.
    """
    largest = np.sort(abs(differences), axis=2)[:, :, ::-1]
    lifted = np.concatenate((unequal[:, :, :1], largest), axis=2).cumsum(axis=2)
    level = np.maximum(0.0, (lifted / np.arange(1, lifted.shape[2] + 1)).max(axis=2))
    whole = np.maximum(0.0, unequal[:, :, 1])
    excess = np.maximum(0.0, level + whole - weight[:, None])
    off = np.maximum(np.minimum(whole, excess / 2), excess - level)
    level, whole = np.maximum(0.0, level - (excess - off)), np.maximum(0.0, whole - off)
    limits = level[:, :, None]
    return np.clip(differences, -limits, limits), np.stack((level, whole), axis=2)


def _raised(
    s: Shared, state: State, parts: np.ndarray, weights: np.ndarray, accepted: int, step: State
) -> State:
    """Return the state with prices moved up by what parts lack."""
    placed = parts.sum(axis=2)[:, :, None]
    room = state.room + step.room * (s.running @ (s.size * parts[:, None]) - 1)
    loads = s.running @ (s.replicas[:, None] * parts) / (parts.shape[2] * s.most[:, None])
    lacks = s.whole * (placed - np.array([1.0, 0.0]))
    prices = legal(
        state.differences + step.differences * (loads @ s.ways.T),
        state.unequal + step.unequal * lacks,
        weights[:, 2],
    )
    more = state.accepted + step.accepted * (accepted - placed.sum(axis=1, keepdims=True))
    return State(state.parts, np.maximum(0.0, room), *prices, np.maximum(0.0, more))


def _steps(s: Shared, weights: np.ndarray, ratio: float) -> State:
    """Return the step of each part and price."""
    T, C = s.share.shape
    shared = s.replicas * (C - 1) / C * (s.running.T @ (1 / s.most)) + s.whole.sum(axis=1)
    down = 1 + s.running.sum(axis=0)[:, None] * s.size.sum(axis=0)
    down = down + (weights[:, 2, None, None] > 0) * shared[:, None]
    bend = 2 * weights[:, 0, None, None] * abs(s.quadratic).sum(axis=2).T
    loads = 2 * (s.running @ s.replicas) / (C * s.most)
    # One step for all prices of inequality, as they are made legal together.
    one = ratio / (1e-9 + np.maximum(loads, C * s.whole.max(axis=1)))[:, None]
    room = ratio / (1e-9 + s.running @ s.size)
    return State(1 / (bend + ratio * down), room, one, one, np.full(1, ratio / (T * C)))


def _better(mask: np.ndarray, one: State, other: State) -> State:
    """Return the first state for the weights of a mask, else the second."""
    pairs = zip(one, other, strict=True)
    return State(*(np.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


def improve(
    s: Shared, state: State, weights: np.ndarray, accepted: int, ratio: float
) -> tuple[State, np.ndarray]:
    """Return the state of the best bound on so many requests after rounds of steps, and the bounds.

    `ratio` is how large steps of prices are beside those of parts.
    """
    step, best, at = _steps(s, weights, ratio), state, accepted - 1
    flat, clusters = state.parts.shape, s.share.shape[1]
    share = np.broadcast_to(s.share, flat).reshape(-1, clusters)
    down, value = step.parts.reshape(-1, clusters), bounds_of(s, state, weights)
    for _ in range(_ROUNDS):
        mean = state
        for k in range(_STEPS):
            cost = (_costs(s, state, weights)[0] - state.accepted).reshape(-1, clusters)
            parts = _lowered(share, state.parts.reshape(-1, clusters), down, cost).reshape(flat)
            ahead = 2 * parts - state.parts
            state = _raised(s, state, ahead, weights, accepted, step)._replace(parts=parts)
            mean = State(*(a + (b - a) / (k + 1) for a, b in zip(mean, state, strict=True)))
        here, there = (bounds_of(s, one, weights) for one in (state, mean))
        nearer = there[:, at] > here[:, at]
        state, here = _better(nearer, mean, state), np.where(nearer[:, None], there, here)
        more = here[:, at] > value[:, at]
        best, value = _better(more, state, best), np.where(more[:, None], here, value)
    return best, value
