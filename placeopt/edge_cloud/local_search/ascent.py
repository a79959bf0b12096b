"""Prices that ascend along slopes by Adam (D. Kingma and J. Ba, 2015).

Normalised slopes with momentum need neither an estimate of the optimum nor a solver.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel

#: Decay of the mean slope and of its mean square.
_MEAN_DECAY, _SQUARE_DECAY = 0.85, 0.95


class Ascent(NamedTuple):
    """Prices that ascend, kept at 0 or above."""

    price: np.ndarray  # (nodes, 2) of a mean demand, or (applications, 1)
    mean: np.ndarray  # the same shape; of the slopes
    square: np.ndarray  # mean of their squares
    step: np.ndarray  # int64 (1,) steps so far


def new_ascent(price: np.ndarray) -> Ascent:
    """Return an ascent that begins at a price."""
    zero = np.zeros_like(price)
    return Ascent(price.copy(), zero, zero.copy(), np.zeros(1, dtype=np.int64))


@kernel
def ascend(ascent, slope, length):
    """Move each price by about `length` where its slope keeps its sign, in place."""
    ascent.step[0] += 1
    known_mean = 1 - _MEAN_DECAY ** ascent.step[0]
    known_square = 1 - _SQUARE_DECAY ** ascent.step[0]
    for node in range(len(slope)):
        for k in range(slope.shape[1]):
            mean = _MEAN_DECAY * ascent.mean[node, k] + (1 - _MEAN_DECAY) * slope[node, k]
            square = _SQUARE_DECAY * ascent.square[node, k]
            square += (1 - _SQUARE_DECAY) * slope[node, k] ** 2
            ascent.mean[node, k], ascent.square[node, k] = mean, square
            change = mean / known_mean / (np.sqrt(square / known_square) + 1e-12)
            ascent.price[node, k] = max(0.0, ascent.price[node, k] + length * change)
