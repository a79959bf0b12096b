"""The best replicas to run at once on one machine.

This is a knapsack in two dimensions with bounded items and set-up costs.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel

#: Cells of capacity beyond which sizes are rounded down to coarser units; that admits more.
MAX_CELLS = 6_000


class Knapsack:
    """Packs one machine size.

    Parameters
    ----------
    demands : ndarray of int, shape (items, 2)
    limits : ndarray of int, shape (items,)
        Greatest number of each item.
    capacity : ndarray of int, shape (2,)

    Attributes
    ----------
    limits : ndarray
        Greatest number of each item that fits alone; 0 for an item that does not fit.
    exact : bool
        Whether sizes are kept as they are; where not, more than what fits may be packed.
    """

    def __init__(self, demands: np.ndarray, limits: np.ndarray, capacity: np.ndarray):
        fits = np.where(demands > 0, capacity // np.maximum(demands, 1), limits[:, None]).min(
            axis=1
        )
        self.limits = np.minimum(limits, fits)
        used = self.limits > 0
        unit = [max(1, int(np.gcd.reduce(np.append(demands[used, r], 0)))) for r in range(2)]
        shape = [int(capacity[r]) // unit[r] + 1 for r in range(2)]
        while shape[0] * shape[1] > MAX_CELLS:
            largest = 0 if shape[0] >= shape[1] else 1
            unit[largest] *= 2
            shape[largest] = int(capacity[largest]) // unit[largest] + 1
        self.exact = all((demands[used, r] % unit[r] == 0).all() for r in range(2))
        self._sizes = np.ascontiguousarray(demands // np.array(unit)).astype(np.int64)
        self._room = np.array(shape, dtype=np.int64) - 1

    def best(self, value: np.ndarray, setup: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the greatest sum of ``value * count - setup`` over the items packed, and counts.

        The sum is at least 0; all arrays have shape (items,).
        """
        return _pack(value, setup, self._sizes, self.limits, self._room)


@allocating_kernel
def _pack(value, setup, sizes, limits, room):
    """Fill the table of best sums by capacity, item by item; return the best sum and its counts."""
    n = len(value)
    best = np.zeros((room[0] + 1, room[1] + 1))
    taken = np.zeros((n, room[0] + 1, room[1] + 1), np.int32)
    for i in range(n):
        if limits[i] == 0 or limits[i] * value[i] - setup[i] <= 0.0:
            continue
        cpu, memory = sizes[i, 0], sizes[i, 1]
        for a in range(room[0], cpu - 1, -1):  # downwards: an item is not taken on top of itself
            for b in range(room[1], memory - 1, -1):
                top, count = best[a, b], 0
                for q in range(1, limits[i] + 1):
                    if q * cpu > a or q * memory > b:
                        break
                    gain = best[a - q * cpu, b - q * memory] + q * value[i] - setup[i]
                    if gain > top:
                        top, count = gain, q
                best[a, b] = top
                taken[i, a, b] = count
    counts = np.zeros(n, np.int64)
    a, b = room[0], room[1]
    for i in range(n - 1, -1, -1):
        q = taken[i, a, b]
        counts[i] = q
        a -= q * sizes[i, 0]
        b -= q * sizes[i, 1]
    return best[room[0], room[1]], counts
