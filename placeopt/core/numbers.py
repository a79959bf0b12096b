"""Numbers: decimals as whole ones, so that sums and comparisons are exact; and those from outside,
checked once, before compiled code reads them without looking at bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError, shown

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


#: Vectors that are drawn together, at most.
_MOST_VECTORS = 10**8


def checked_vectors(X: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return vectors as a contiguous array of int64, shape (k, num_genes).

    Parameters
    ----------
    X : array_like, shape (k, num_genes)
        Whole numbers of any numeric type; k may be 0.
    lower, upper : ndarray of int64, shape (num_genes,)
        Inclusive bounds.

    Raises
    ------
    UsageError
        Names the first vector, gene and value that is not legal, and its bounds; or the shape.
    """
    genes = len(lower)
    result = numbers(X, f"vectors of shape (k, {genes})")
    if result.shape == (0,):
        result = result.reshape(0, genes)
    if result.shape[1:] != (genes,):
        raise UsageError(
            f"these vectors have the shape {result.shape}; the problem wants (k, {genes})"
        )
    wrong = _first_illegal(result, lower, upper)
    if wrong is not None:
        k, gene = wrong
        raise UsageError(
            f"vector {k}, gene {gene} is {_shown(result[k, gene])}; "
            f"legal: whole numbers from {lower[gene]} to {upper[gene]}"
        )
    return np.ascontiguousarray(result, dtype=np.int64)


def checked_vector(genes: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return one vector as a contiguous array of int64, shape (num_genes,).

    Errors are as of `checked_vectors`.
    """
    result = numbers(genes, f"a vector of shape {lower.shape}")
    if result.shape != lower.shape:
        raise UsageError(
            f"this vector has the shape {result.shape}; the problem wants {lower.shape}"
        )
    return checked_vectors(result[None], lower, upper)[0]


def checked_actions(actions: Any, num_envs: int, num_actions: int) -> np.ndarray:
    """Return the actions of environments as a contiguous array of int64, shape (num_envs,).

    Actions that a mask rules out pass: the environment says what they cost.

    Raises
    ------
    UsageError
        Names the first environment and action that is not one of 0 to ``num_actions - 1``; or the
        shape.
    """
    result = numbers(actions, f"actions of shape ({num_envs},)")
    if result.shape != (num_envs,):
        raise UsageError(
            f"these actions have the shape {result.shape}; {num_envs} environments want "
            f"({num_envs},)"
        )
    wrong = _first_illegal(result, 0, num_actions - 1)
    if wrong is not None:
        whose = "" if num_envs == 1 else f" of environment {wrong[0]}"
        raise UsageError(
            f"the action{whose} is {_shown(result[wrong])}; "
            f"legal: whole numbers from 0 to {num_actions - 1}"
        )
    return np.ascontiguousarray(result, dtype=np.int64)


def checked_action(action: Any, num_actions: int) -> int:
    """Return one action as an int; errors are as of `checked_actions`."""
    if isinstance(action, (int, np.integer)) and 0 <= action < num_actions:
        return int(action)
    return int(checked_actions([action], 1, num_actions)[0])


def checked_count(count: Any) -> int:
    """Return how many vectors are wanted, as an int.

    Raises
    ------
    UsageError
        It is not a whole number from 0 to `_MOST_VECTORS`.
    """
    if isinstance(count, (int, np.integer)) and 0 <= count <= _MOST_VECTORS:
        return int(count)
    raise UsageError(f"count is {shown(count)}; give a whole number from 0 to {_MOST_VECTORS}")


def checked_seed(seed: Any) -> int:
    """Return a seed as an int.

    Raises
    ------
    UsageError
        It is not a whole number from 0 to 2**63 - 1.
    """
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed < 2**63:
        return int(seed)
    raise UsageError(f"seed is {_shown(seed)}; give a whole number from 0 to 2**63 - 1")


def numbers(given: Any, wanted: str) -> np.ndarray:
    """Return an array of real numbers; `wanted` says in the error what to give."""
    try:
        result = np.asarray(given)
        if result.dtype == object and result.ndim:  # whole numbers beyond 64 bits, say
            result = result.astype(float)
    except (TypeError, ValueError, OverflowError):
        result = None
    if result is None or result.dtype.kind not in "biuf":
        raise UsageError(f"{_shown(given)} is no array of numbers; give {wanted}")
    return result


def _first_illegal(found: np.ndarray, lower: Any, upper: Any) -> tuple[int, ...] | None:
    """Return the place of the first number that is not whole or not within bounds."""
    legal = (found >= lower) & (found <= upper)  # false for NaN
    if found.dtype.kind == "f":
        legal &= found == np.rint(found)
    if legal.all():
        return None
    return tuple(np.argwhere(~legal)[0].tolist())


def _shown(value: Any) -> str:
    """Return a value in a few characters, a whole number as such."""
    if isinstance(value, np.floating) and abs(value) < 1e16 and float(value).is_integer():
        return str(int(value))
    return str(value) if isinstance(value, np.generic) else shown(value)
