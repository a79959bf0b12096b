"""Local upper bounds: where points that no known point dominates can still lie.

A zone is an open box below a local upper bound u: {y : y < u}. The zones of a set of points cover
exactly what none of them weakly dominates (K. Dächert, K. Klamroth, R. Lacour, D. Vanderpooten,
"Efficient computation of the search region in multi-objective optimization", EJOR 260, 2017).
"""

from __future__ import annotations

import numpy as np


def local_upper_bounds(points: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return the maximal local upper bounds of points, shape (zones, m).

    Parameters
    ----------
    points : ndarray of int64, shape (points, m)
    limit : ndarray of int64, shape (m,)
        Greater than every value of interest: no bound exceeds it.

    Examples
    --------
    >>> sorted(local_upper_bounds(np.array([[1, 2], [2, 1]]), np.array([9, 9])).tolist())
    [[1, 9], [2, 2], [9, 1]]
    """
    upper = np.array([limit], dtype=np.int64)
    for point in points:
        inside = (point < upper).all(axis=1)
        if not inside.any():
            continue
        rest, cut = upper[~inside], np.repeat(upper[inside], upper.shape[1], axis=0)
        column = np.tile(np.arange(upper.shape[1]), int(inside.sum()))
        cut[np.arange(len(cut)), column] = point[column]
        cut = np.unique(cut, axis=0)
        upper = np.concatenate((rest, cut[_maximal(cut, rest)]))
    return upper


def _maximal(cut: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return which rows of `cut`, all different, lie below no other row of `cut` or `rest`."""
    below = np.all(cut[:, None, :] <= cut[None, :, :], axis=2)
    below &= ~np.eye(len(cut), dtype=bool)
    under_rest = np.all(cut[:, None, :] <= rest[None, :, :], axis=2)
    return np.asarray(~(below.any(axis=1) | under_rest.any(axis=1)))
