"""The oracle's bound: no policy that places every pod when it comes pays less.

For every interval between events, a lower bound of the price of nodes that hold what is alive,
integrated over time. It is the larger of two:

* the volume bound, a linear program: fractions of machines whose CPU, memory and GPUs add up to
  what is asked for. By duality it is the largest value of the demands over the vertices of the
  prices of resources under which no machine is worth more than it costs; these are few, and are
  listed once.
* the cheapest machine that the most demanding pod fits on.

It is a bound, not a plan. A policy that lets pods wait can pay less: pods that wait cost nothing.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from placeopt.backtest.arrays import TraceArrays
from placeopt.backtest.state import WHOLE


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
    total = 0.0
    for k, (begin, price) in enumerate(changes):
        until = changes[k + 1][0] if k + 1 < len(changes) else end
        total += _span(arrays, asked, arrays.created, ends, price, begin, min(until, end))
    return total


def _span(
    arrays: TraceArrays,
    asked: np.ndarray,
    created: np.ndarray,
    ends: np.ndarray,
    price: np.ndarray,
    begin: float,
    until: float,
) -> float:
    """Return the bound of a span of time with fixed prices."""
    alive = np.flatnonzero((created < until) & (ends > begin))
    if until <= begin or not len(alive):
        return 0.0
    comes, goes = np.maximum(created[alive], begin), np.minimum(ends[alive], until)
    times = np.concatenate([comes, goes])
    single = _single(arrays, price)[arrays.of_class[alive]]
    order = np.argsort(times, kind="stable")
    who = np.concatenate([np.arange(len(alive))] * 2)[order]
    sign = np.repeat([1.0, -1.0], len(alive))[order]
    demand = np.cumsum(sign[:, None] * asked[alive][who], axis=0)
    volume = (demand @ vertices(arrays, price).T).max(axis=1)
    dearest = _running_max(single, who, sign)
    spans = np.diff(np.append(times[order], until))
    return float(np.maximum(volume, dearest) @ spans / 3600)


def vertices(arrays: TraceArrays, price: np.ndarray) -> np.ndarray:
    """Return prices of resources under which no machine is worth more than it costs.

    Returns
    -------
    ndarray
        (vertices, 3) USD an hour for a thousandth of a core, a MiB, a thousandth of a GPU.
    """
    sizes = np.array(
        [(m.cpu_millicores, m.memory_mib, m.gpus * WHOLE) for m in arrays.trace.machines], float
    )
    scale = sizes.max(axis=0)
    scale[scale == 0] = 1.0
    rows = np.vstack([sizes / scale, -np.eye(3)])
    most = np.concatenate([price, np.zeros(3)])
    results = [np.zeros(3)]
    for chosen in combinations(range(len(rows)), 3):
        part = rows[list(chosen)]
        if abs(np.linalg.det(part)) < 1e-12:
            continue
        point = np.linalg.solve(part, most[list(chosen)])
        if (rows @ point <= most + 1e-9).all():
            results.append(np.maximum(point, 0.0))
    return np.unique(np.round(results, 12), axis=0) / scale


def _single(arrays: TraceArrays, price: np.ndarray) -> np.ndarray:
    """Return the price of the cheapest machine for each class of pods; 0 where none fits."""
    classes = int(arrays.of_class.max()) + 1
    first = np.zeros(classes, np.int64)
    first[arrays.of_class] = np.arange(len(arrays.of_class))
    result = np.zeros(classes)
    one_slot = {int(m): k for k, m in enumerate(arrays.machine)}
    for c, p in enumerate(first):
        need = [int(column[p]) for column in arrays.need]
        fitting = [
            float(price[m])
            for m, slot in one_slot.items()
            if (kind := arrays.trace.machines[m]).cpu_millicores >= need[0]
            and kind.memory_mib >= need[1]
            and kind.gpus >= need[2]
            and arrays.allowed[need[4], slot]
        ]
        result[c] = min(fitting, default=0.0)
    return result


def _running_max(values: np.ndarray, who: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return the largest value of those that are there after each event."""
    levels, level = np.unique(values, return_inverse=True)
    counts = np.zeros(len(levels), np.int64)
    result = np.zeros(len(who))
    for k, (one, change) in enumerate(zip(who.tolist(), sign.tolist(), strict=True)):
        counts[level[one]] += int(change)
        there = np.flatnonzero(counts)
        result[k] = levels[there[-1]] if len(there) else 0.0
    return result
