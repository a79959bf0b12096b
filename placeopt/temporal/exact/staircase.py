"""From linear inequalities that every plan satisfies to a lower-bound set.

A *cut* (b, p, q) says cost >= b - p * latency - q * interruption. On a grid of limits on latency
and interruption, all plans of the cell between two lines cost at least what the cuts say at its
upper corner. So they are dominated by the vector (lower latency line, that cost, lower interruption
line).
"""

from __future__ import annotations

import numpy as np

from placeopt.core.fronts.dominance import minimal

#: Points of the fine grid on which lines are chosen, at least and for each line.
_FINE, _FINE_A_LINE = 240, 2.5


def least_cost(cuts: np.ndarray, latency: np.ndarray, interruption: np.ndarray) -> np.ndarray:
    """Return the greatest lower bound on cost by `cuts`, shape (k, 3), at least 0.

    `latency` and `interruption` are limits, broadcast together.
    """
    bound = np.zeros(np.broadcast(latency, interruption).shape)
    for constant, per_latency, per_interruption in cuts:
        bound = np.maximum(
            bound, constant - per_latency * latency - per_interruption * interruption
        )
    return bound


def staircase(cuts: np.ndarray, low: np.ndarray, high: np.ndarray, lines: int) -> np.ndarray:
    """Return a lower-bound set in whole numbers, shape (k, 3): about ``lines ** 2`` vectors.

    Parameters
    ----------
    cuts : ndarray, shape (k, 3)
    low, high : ndarray of int, shape (2,)
        Ranges of latency and of interruption. No plan has less than `low`; a last cell covers all
        plans with more than `high`.
    """
    fine = max(_FINE, int(_FINE_A_LINE * lines))
    axes = [
        np.unique(np.linspace(low[a], max(high[a], low[a]), fine).astype(np.int64))
        for a in range(2)
    ]
    surface = least_cost(cuts, axes[0][:, None], axes[1][None, :])
    if len(axes[0]) == 1 or len(axes[1]) == 1:
        lines *= 4  # one direction only: more lines cost little
    ends = [
        np.append(_lines(axes[a], surface if a == 0 else surface.T, lines), 2**52) for a in range(2)
    ]
    # The first cell is the first line itself.
    begin = [np.concatenate((end[:1], end[:-1] + 1)) for end in ends]
    cost = np.ceil(least_cost(cuts, ends[0][:, None], ends[1][None, :]) * (1 - 1e-9) - 1e-6)
    corners = np.stack(np.broadcast_arrays(begin[0][:, None], cost, begin[1][None, :]), axis=-1)
    return minimal(corners.reshape(-1, 3)).astype(np.int64)


def _lines(axis: np.ndarray, surface: np.ndarray, count: int) -> np.ndarray:
    """Return at most `count` values of an axis, the first and the last among them.

    A cell loses its width times the fall of cost across it. The sum is least where lines are as
    dense as the root of the slope of `surface`, shape (len(axis), other axis).
    """
    if len(axis) <= count:
        return axis
    slope = np.sqrt(np.abs(np.diff(surface, axis=0)).mean(axis=1) / np.diff(axis)) * np.diff(axis)
    reached = np.concatenate(([0.0], np.cumsum(slope + 0.02 * slope.mean() + 1e-12)))
    chosen = np.searchsorted(reached, np.linspace(0, reached[-1], count))
    return axis[np.unique(np.clip(chosen, 0, len(axis) - 1))]
