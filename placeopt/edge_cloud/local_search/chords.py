"""Which weighted sums to ask for next: those that weigh both goals alike, then those of chords.

A chord joins two neighbours on the lower convex hull of the plans. In the sum whose weights are
those of the line through them, both are worth the same: the best plan of that sum lies between
them, or there is none (Y. Aneja and K. Nair, Management Science 25, 1979).
"""

from __future__ import annotations

import numpy as np

from placeopt.core.fronts.dominance import nondominated

#: Shares of the cost in balanced sums, scaled to the ranges of a front, and in sums of chords.
_BALANCED, _MIDDLE = (0.5, 0.3, 0.7), (0.25, 0.75)


def weight_of(share: float, ranges: np.ndarray) -> float:
    """Return the weight of the cost by which it has a share of a sum of scaled goals.

    Parameters
    ----------
    ranges : ndarray, shape (2,)
        Of cost and latency, above 0.
    """
    cost, latency = share / ranges[0], (1 - share) / ranges[1]
    return float(cost / (cost + latency))


def balanced(values: np.ndarray) -> list[float]:
    """Return weights of the cost by which both goals count about alike; none without a range.

    Parameters
    ----------
    values : ndarray, shape (plans, 2)
        Cost and latency of plans, whose ranges goals are scaled to.
    """
    ranges = _ranges(values)
    return [weight_of(share, ranges) for share in _BALANCED] if (ranges > 0).all() else []


def longest_chord(values: np.ndarray, tried: set[float]) -> float | None:
    """Return the weight of the cost of a chord, None where none is left.

    It is the longest one, by the area of its box, of those in the middle whose weights were not
    `tried`.
    """
    ranges = _ranges(values)
    if not (ranges > 0).all():
        return None
    dx, dy = np.abs(np.diff(_hull(values / ranges), axis=0)).T
    shares = dy / (dx + dy)
    best, longest = None, 0.0
    for share, area in zip(shares.tolist(), (dx * dy).tolist(), strict=True):
        weight = round(weight_of(share, ranges), 9)
        if _MIDDLE[0] <= share <= _MIDDLE[1] and area > longest and weight not in tried:
            best, longest = weight, area
    return best


def _ranges(values: np.ndarray) -> np.ndarray:
    """Return the ranges of the plans that no other dominates."""
    ranges: np.ndarray = np.ptp(values[nondominated(values)], axis=0)
    return ranges


def _hull(values: np.ndarray) -> np.ndarray:
    """Return the corners of the lower convex hull of a front, by the first goal."""
    corners: list[np.ndarray] = []
    for point in np.unique(values[nondominated(values)], axis=0):
        while len(corners) > 1 and _turns_up(corners[-2], corners[-1], point) <= 1e-12:
            corners.pop()
        corners.append(point)
    return np.array(corners)


def _turns_up(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> float:
    """Return a number above 0 where the way from one point by another to a third turns left."""
    (x, y), (u, v) = other - one, third - one
    return float(x * v - y * u)
