"""Weight vectors spread evenly over the simplex."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError

#: Parts of the lattice by number of objectives, for about 200 vectors.
PARTS = {1: 1, 2: 199, 3: 20, 4: 9}


def simplex(parts: int, dimensions: int) -> np.ndarray:
    """Return all vectors of non-negative multiples of 1 / `parts` that sum to 1.

    Das and Dennis, 1998; shape (k, dimensions).

    Examples
    --------
    >>> simplex(2, 2).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    slots = parts + dimensions - 1
    cuts = np.array(list(itertools.combinations(range(slots), dimensions - 1)), dtype=np.int64)
    return (np.diff(cuts, axis=1, prepend=-1, append=slots) - 1) / parts


def lattice(dimensions: int, fineness: float = 1.0) -> np.ndarray:
    """Return about 200 weight vectors, shape (k, dimensions); more for a higher `fineness`."""
    return simplex(max(1, round(PARTS.get(dimensions, 4) * fineness)), dimensions)


def read_weights(given: Any, count: int) -> np.ndarray:
    """Return weights as float64 of shape (count,).

    Parameters
    ----------
    given : sequence of float, or text such as ``"0.5,0.5"``

    Raises
    ------
    UsageError
        Not `count` finite numbers of at least 0, or all of them 0.
    """
    try:
        row = np.array(given.split(",") if isinstance(given, str) else given, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (count,) or not (np.isfinite(row).all() and (row >= 0).all() and row.any()):
        raise UsageError(
            f"weights is {given!r}; give {count} numbers of at least 0, not all 0, such as "
            + ",".join(["1"] * count)
        )
    return row
