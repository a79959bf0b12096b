"""Decimals as whole numbers, so that sums and comparisons are exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

#: More decimals are rounded, and the objective has no `step`.
MAX_DECIMALS = 9


def decimals(values: Iterable[float]) -> int:
    """Return the number of decimals that write all `values` exactly as they were read.

    Examples
    --------
    >>> decimals([1.0, 0.25, 12])
    2
    """
    return max(
        (max(0, -int(Decimal(repr(float(v))).normalize().as_tuple().exponent)) for v in values),
        default=0,
    )


def unit_digits(values: Sequence[float], copies: int = 1) -> int:
    """Return the decimals to keep of `values`: all, but at most `MAX_DECIMALS`.

    They are fewer where the sum of `copies` of the greatest value would not fit 62 bits.

    Examples
    --------
    >>> unit_digits([0.25, 0.1 + 0.2]), unit_digits([1e9, 0.25]), unit_digits([1e9, 0.25], 10**9)
    (9, 2, 0)
    """
    digits = min(MAX_DECIMALS, decimals(values))
    largest = int(max(values, default=0)) + 1
    while digits and largest * copies * 10**digits >= 2**62:
        digits -= 1
    return digits


def scaled_up(values: Sequence[float], digits: int) -> np.ndarray:
    """Return ``values * 10**digits`` as integers, rounded up: for demands."""
    return _integers(values, digits, ROUND_CEILING)


def scaled_down(values: Sequence[float], digits: int) -> np.ndarray:
    """Return ``values * 10**digits`` as integers, rounded down: for capacities."""
    return _integers(values, digits, ROUND_FLOOR)


def resources(
    consumers: Sequence[Any], hosts: Sequence[Any], copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return cpu and memory in whole-number units: demands are rounded up, capacities down.

    Parameters
    ----------
    consumers, hosts : sequence
        What asks for ``cpu_cores`` and ``memory_gib``, and what has them.
    copies : int
        Amounts that are summed, at most; a sum of as many fits 62 bits.

    Returns
    -------
    ndarray, shape (consumers, 2)
    ndarray, shape (hosts, 2)
    """
    demands, capacities = [], []
    for name in ("cpu_cores", "memory_gib"):
        wanted = [getattr(one, name) for one in consumers]
        values_in = [getattr(one, name) for one in hosts]
        digits = unit_digits([*wanted, *values_in], copies)
        demands.append(scaled_up(wanted, digits))
        capacities.append(scaled_down(values_in, digits))
    return np.stack(demands, axis=1), np.stack(capacities, axis=1)


def _integers(values: Sequence[float], digits: int, rounding: str) -> np.ndarray:
    return np.array(
        [int(Decimal(repr(float(v))).scaleb(digits).to_integral_value(rounding)) for v in values],
        dtype=np.int64,
    )
