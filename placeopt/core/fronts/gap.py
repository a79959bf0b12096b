"""The gap of a front in words: what may be missing, of what, and up to which values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective

_COMPLETE = "complete: every proven bound is reached by a plan, so no plan is missing"
#: What rounding can add to a value, as a share of it, or of 1 where it is less.
_ROUNDING = 1e-9


def gap_in_words(front: Front) -> str:
    """Return in a phrase how much the front may miss, empty where nothing is proven.

    Examples
    --------
    >>> from placeopt.core.fronts.values import InstanceName, Objective, Point
    >>> goals = (Objective("latency_ms", "ms"), Objective("cost_usd", "USD"))
    >>> name = InstanceName("temporal", "toy", "")
    >>> gap_in_words(Front(name, goals, (Point((5.0, 1.0), {}),), ((5.0, 1.0), (1.0, 10.0))))
    'at most 44.45% of the attainable hypervolume is missing (up to latency_ms 5.5, cost_usd 11)'
    """
    gap = front.gap()
    if gap is None:
        return ""
    if front.complete:
        return _COMPLETE
    within = up_to(front.objectives, front.reference(bounds=True).tolist())
    return f"at most {percent(gap)} of the attainable hypervolume is missing ({within})"


def graded(front: Front, goal: str) -> Front:
    """Return a front with what its bounds prove of its points.

    A point is optimal, so that no plan dominates it, if no bound dominates it. A bound that
    exceeds a value by rounding alone counts as equal to it. Any other point has a gap: the largest
    share by which its value of `goal` could fall while no other objective gets worse; None where
    the front has no such objective. A point that no bound covers stays as it is.
    """
    names, bounds = [o.name for o in front.objectives], np.array(front.bounds)
    columns = np.ascontiguousarray(bounds.T)  # columns are compared faster than rows
    column = names.index(goal) if goal in names else None
    points = []
    for point in front.points:
        values = np.array(point.values)
        rounded = values + _ROUNDING * np.maximum(1.0, np.abs(values))
        within = np.logical_and.reduce(
            [row <= value for row, value in zip(columns, rounded, strict=True)]
        )
        below = bounds[within]
        if len(below) == 0:  # bounds that do not cover a plan prove nothing of it
            points.append(point)
            continue
        if not (below < values).any():
            points.append(replace(point, status="optimal", gap=None))
            continue
        gap = None
        if column is not None:
            least = below[:, column].min()
            gap = float(1 - least / values[column]) if values[column] > 0 else 0.0
        points.append(replace(point, status="bounded", gap=gap))
    return replace(front, points=tuple(points))


def up_to(objectives: Sequence[Objective], corner: Sequence[float]) -> str:
    """Return in a phrase the part of the space of values that a reference point cuts off.

    Examples
    --------
    >>> up_to((Objective("cost", "EUR"), Objective("profit", "EUR", sense="max")), (5.5, 2.0))
    'up to cost 5.5, down to profit 2'
    """
    phrases = [f"{o.name} {x:.4g}" for o, x in zip(objectives, corner, strict=True)]
    ways = ["down to" if o.sign < 0 else "up to" for o in objectives]
    before = [None, *ways]
    told = zip(ways, before, phrases, strict=False)
    return ", ".join(text if way == last else f"{way} {text}" for way, last, text in told)


def percent(gap: float) -> str:
    """Return a gap above 0 in per cent, rounded up, so that no gap is understated.

    Examples
    --------
    >>> percent(0.1), percent(1e-9), percent(0.99999)
    ('10.00%', '0.01%', '100.00%')
    """
    return f"{max(1, math.ceil(gap * 1e4 - 1e-9)) / 1e4:.2%}"
