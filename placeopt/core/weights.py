"""Weight vectors spread evenly over the simplex."""

from __future__ import annotations

import itertools

import numpy as np

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
