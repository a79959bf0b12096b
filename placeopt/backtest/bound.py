"""The oracle's bound: no policy that places every pod when it comes pays less.

For every interval between events, a lower bound of the price of nodes that hold what is alive,
integrated over time. It is the larger of two:

* the volume bound, a linear program: fractions of machines whose CPU, memory and GPUs add up to
  what is asked for. By duality it is the largest value of the demands over the vertices of the
  prices of resources under which no machine is worth more than it costs; these are listed once.
* the cheapest machine that the most demanding pod fits on.

It is a bound, not a plan. A policy that lets pods wait can pay less: pods that wait cost nothing.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from placeopt.backtest.arrays import TraceArrays
from placeopt.backtest.room import WHOLE

#: Events that are looked at together: memory does not grow with the trace.
_TOGETHER = 20_000
#: USD an hour up to which a machine counts as one for nothing.
_NOTHING = 1e-12


def bound_usd(arrays: TraceArrays) -> float:
    """Return the bound in USD over the whole trace.

    A job counts from its creation until its work is done, other pods until they are deleted.
    """
    end = arrays.trace.seconds
    ends = np.where(np.isnan(arrays.work), arrays.deleted, arrays.created + arrays.work)
    ends = np.minimum(np.minimum(ends, arrays.deleted), end)
    need = arrays.need
    asked = np.column_stack([need.cpu, need.memory, need.gpus * need.share]).astype(float)
    changes = [(0.0, arrays.price)]
    numbers = {m.name: k for k, m in enumerate(arrays.trace.machines)}
    for change in arrays.trace.prices:
        price = changes[-1][1].copy()
        price[numbers[change.machine]] = change.usd_per_hour
        changes.append((change.at_s, price))
    sizes = np.array(
        [(m.cpu_millicores, m.memory_mib, m.gpus * WHOLE) for m in arrays.trace.machines], float
    )
    holds = _holds(arrays)
    corners, total = vertices(sizes, arrays.price), 0.0
    for k, (begin, price) in enumerate(changes):
        if k and _other_corners(corners, sizes, changes[k - 1][1], price):
            corners = vertices(sizes, price)
        until = min(changes[k + 1][0] if k + 1 < len(changes) else end, end)
        alive = np.flatnonzero((arrays.created < until) & (ends > begin))
        if until > begin and len(alive):
            cheapest = np.where(holds, price, np.inf).min(axis=1)
            single = np.where(holds.any(axis=1), cheapest, 0.0)[arrays.of_class[alive]]
            comes, goes = np.maximum(arrays.created[alive], begin), np.minimum(ends[alive], until)
            total += _span(asked[alive], single, comes, goes, corners, until)
    return total


def _span(
    asked: np.ndarray,
    single: np.ndarray,
    comes: np.ndarray,
    goes: np.ndarray,
    corners: np.ndarray,
    until: float,
) -> float:
    """Return the bound of a span of time with fixed prices.

    Parameters
    ----------
    asked : ndarray
        (pods, 3) What each pod asks for.
    single : ndarray
        (pods,) Price of the cheapest machine that holds it; 0 where none does.
    comes, goes : ndarray
        (pods,) When it comes and goes, s.
    corners : ndarray
        As `vertices` returns them.
    until : float
        End of the span, s.
    """
    times = np.concatenate([comes, goes])
    order = np.argsort(times, kind="stable")
    who = np.concatenate([np.arange(len(asked))] * 2)[order]
    sign = np.repeat([1.0, -1.0], len(asked))[order]
    spans = np.diff(np.append(times[order], until))
    dearest = _running_max(single, who, sign)
    total, before = 0.0, np.zeros(asked.shape[1])
    for begin in range(0, len(who), _TOGETHER):
        part = slice(begin, begin + _TOGETHER)
        demand = before + np.cumsum(sign[part, None] * asked[who[part]], axis=0)
        before = demand[-1]
        volume = (demand @ corners.T).max(axis=1)
        total += float(np.maximum(volume, dearest[part]) @ spans[part])
    return total / 3600


def vertices(sizes: np.ndarray, price: np.ndarray) -> np.ndarray:
    """Return prices of resources under which no machine is worth more than it costs.

    They are the faces of the convex hull of what each machine gives for a dollar: n log n for n
    machines. What rounding adds to them is taken off: the bound stays one.

    Parameters
    ----------
    sizes : ndarray
        (machines, resources)
    price : ndarray
        (machines,) USD an hour.

    Returns
    -------
    ndarray
        (vertices, resources) USD an hour for a unit of each resource.
    """
    paid = price > _NOTHING
    worth = sizes.any(axis=0) & ~sizes[~paid].any(axis=0)  # what comes for nothing is worth nothing
    rows = sizes[paid][:, worth] / price[paid, None]
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        return np.zeros((1, sizes.shape[1]))
    scale = rows.max(axis=0)
    points = _maximal(rows / scale)
    faces = _faces(points)
    faces /= np.maximum((faces @ points.T).max(axis=1), 1.0)[:, None]
    results = np.zeros((len(faces), sizes.shape[1]))
    results[:, worth] = faces / scale
    return results


def _other_corners(
    corners: np.ndarray, sizes: np.ndarray, before: np.ndarray, after: np.ndarray
) -> bool:
    """Whether vertices may differ: a machine was worth its price, or is worth more than it now."""
    changed = np.flatnonzero(before != after)
    worth = (sizes[changed] @ corners.T).max(axis=1, initial=0.0)
    return bool((worth >= np.minimum(before, after)[changed] * (1 - 1e-6)).any())


def _maximal(points: np.ndarray) -> np.ndarray:
    """Return the points that no other point exceeds or equals in all coordinates, each once.

    The others are outnumbered soon: points are compared with those of the largest sums first.
    """
    left = np.unique(points, axis=0)
    left = left[np.argsort(-left.sum(axis=1), kind="stable")]
    kept = []
    while len(left):
        kept.append(left[0])
        left = left[(left > left[0]).any(axis=1)]
    return np.array(kept)


def _faces(points: np.ndarray) -> np.ndarray:
    """Return x >= 0 with ``points @ x <= 1``, up to rounding, among them all that are largest."""
    from scipy.spatial import ConvexHull, QhullError

    size = points.shape[1]
    axes = np.eye(size) / points.max(axis=0)
    if size == 1:
        return axes
    subsets = np.array(list(product((0.0, 1.0), repeat=size)))
    below = np.unique((points[:, None, :] * subsets).reshape(-1, size), axis=0)
    try:
        equations = ConvexHull(below).equations
    except QhullError:
        return axes
    normals, offsets = equations[:, :-1], equations[:, -1]
    up = (normals >= -1e-9).all(axis=1) & (offsets < -1e-9)
    faces = np.maximum(normals[up], 0.0) / -offsets[up, None]
    return np.unique(np.vstack([axes, faces]).round(12), axis=0)


def _holds(arrays: TraceArrays) -> np.ndarray:
    """Return whether a machine holds a pod of a class, (classes, machines)."""
    first = np.unique(arrays.of_class, return_index=True)[1]
    need = [column[first][:, None] for column in arrays.need]
    machines, slot = np.unique(arrays.machine, return_index=True)
    kinds = [arrays.trace.machines[m] for m in machines]
    cpu, memory, gpus = (
        np.array([getattr(kind, name) for kind in kinds], float)
        for name in ("cpu_millicores", "memory_mib", "gpus")
    )
    holds = np.zeros((len(first), len(arrays.trace.machines)), bool)
    holds[:, machines] = (
        (cpu >= need[0])
        & (memory >= need[1])
        & (gpus >= need[2])
        & (arrays.allowed[need[4], slot] > 0)
    )
    return holds


def _running_max(values: np.ndarray, who: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return the largest value of those that are there after each event."""
    levels, level = np.unique(values, return_inverse=True)
    counts = [0] * len(levels)
    top, tops = -1, []
    for one, change in zip(level[who].tolist(), sign.tolist(), strict=True):
        counts[one] += int(change)
        top = max(top, one) if change > 0 else top
        while top >= 0 and not counts[top]:
            top -= 1
        tops.append(top)
    return np.append(levels, 0.0)[tops]
