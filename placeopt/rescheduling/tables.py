"""Sums of tables by rows and by moves: what the bounds of rescheduling are made of, compiled.

A table has a row for every way to place a service. It has a column for every number of moves from 0
on, and a last one for any number.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.kernels.compile import allocating_kernel


@allocating_kernel
def entered(network, table):
    """Return the least of ``network[r, s] + table[s, m]`` over s, shape (rows, columns).

    Parameters
    ----------
    network : (rows, rows of the callee)
    table : (rows of the callee, columns)
    """
    rows, columns = network.shape[0], table.shape[1]
    result = np.full((rows, columns), np.inf)
    for r in range(rows):
        for s in range(table.shape[0]):
            way = network[r, s]
            if way < np.inf:
                for m in range(columns):
                    result[r, m] = min(result[r, m], way + table[s, m])
    return result


@allocating_kernel
def shared(one, other, parallel):
    """Return two tables as one for the best way to share moves, shape of both.

    Their times are added; in `parallel` the larger one counts.
    """
    result = np.maximum(one, other) if parallel else one + other
    for r in range(one.shape[0]):
        for m in range(one.shape[1] - 1):
            least = np.inf
            for k in range(m + 1):
                here, there = one[r, k], other[r, m - k]
                least = min(least, max(here, there) if parallel else here + there)
            result[r, m] = least
    return result
