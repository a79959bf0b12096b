"""Rules that choose one of many vectors; all values are minimised.

Every rule takes values scaled to [0, 1], 0 the ideal, shape (points, objectives), and returns a
score for each point; the point of the least score is chosen.
"""

from __future__ import annotations

import numpy as np

#: Weight of the sum that breaks ties of a reference point, as usual (Wierzbicki, 1980).
_AUGMENTATION = 1e-4


def knee(scaled: np.ndarray) -> np.ndarray:
    """Return the squared distance from the ideal, shape (points,).

    Unlike the point of least sum, the nearest one is never an end of a concave front.
    """
    return (scaled**2).sum(axis=1)


def reference_point(scaled: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return how far each point is behind what is wanted, shape (points,).

    The augmented achievement function of Wierzbicki (1980): the worst shortfall against `wanted`
    (m,), plus a little of the sum of all values. Where `wanted` is infinite nothing is asked.
    """
    worst: np.ndarray = (scaled - wanted).max(axis=1)
    return worst + _AUGMENTATION * scaled.sum(axis=1)


def pseudo_weights(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return how far each point's pseudo-weights are from `weights` (m,), shape (points,).

    A pseudo-weight is the share of an objective in all that a point gains over the worst values
    (Deb, Multi-Objective Optimization Using Evolutionary Algorithms, 2001, equation 8.4).
    """
    gained = scaled.max(axis=0) - scaled  # an objective that never varies gains nothing
    total = gained.sum(axis=1, keepdims=True)
    even = np.full_like(gained, 1 / scaled.shape[1])
    shares = np.divide(gained, total, out=even, where=total > 0)
    return np.abs(shares - weights / weights.sum()).sum(axis=1)


def topsis(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return minus the closeness of TOPSIS (Hwang and Yoon, 1981), shape (points,).

    Closeness is the distance from the worst values, as a share of the distances from the worst and
    from the best, after every objective was multiplied by its weight (m,).
    """
    from_best = np.linalg.norm(scaled * weights, axis=1)
    from_worst = np.linalg.norm((scaled - scaled.max(axis=0)) * weights, axis=1)
    both = from_best + from_worst
    closeness: np.ndarray = np.divide(from_worst, both, out=np.ones_like(both), where=both > 0)
    return -closeness
