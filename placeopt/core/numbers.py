"""Numbers: decimals as whole ones, so that sums and comparisons are exact; and those from outside,
checked once, before compiled code reads them without looking at bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


# -- rows of different lengths, one after another --------------------------------------------------


def begins(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return where each of several rows begins, and where the last one ends, shape (rows + 1,).

    Examples
    --------
    >>> begins([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def ragged(rows: Sequence[Sequence[int] | np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where each row of whole numbers begins, as of `begins`, and all of them as one."""
    every = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    return begins([len(row) for row in rows]), every.astype(np.int64)


def grouped(labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the items of each label of ``range(count)`` begin, and items by label.

    Examples
    --------
    >>> [part.tolist() for part in grouped(np.array([1, 0, 1]), 3)]
    [[0, 1, 3, 3], [1, 0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int64)
    return begins(np.bincount(labels, minlength=count)), order


# -- numbers from outside --------------------------------------------------------------------------


#: Vectors that are drawn together, at most.
_MOST_VECTORS = 10**8


def whole_numbers(
    given: Any,
    shape: tuple[int | None, ...],
    lower: Any,
    upper: Any,
    what: str,
    place: Callable[..., str],
) -> np.ndarray:
    """Return whole numbers as a contiguous array of int64.

    Parameters
    ----------
    given : array_like
        Of any numeric type.
    shape : tuple
        That is wanted; the first entry may be None, for any number of rows.
    lower, upper : int or ndarray
        Inclusive bounds.
    what : str
        What the numbers are, such as ``vectors``.
    place : callable
        From the indices of a number to its name.

    Raises
    ------
    UsageError
        Names the first number that is not legal, and its bounds; or the shape.
    """
    wanted = f"({', '.join('k' if n is None else str(n) for n in shape)}{',' * (len(shape) == 1)})"
    found = numbers(given, f"{what} of shape {wanted}")
    if shape[0] is None and found.shape == (0,):
        found = found.reshape(0, *shape[1:])
    rows = found.shape[:1] if shape[0] is None else shape[:1]
    if found.shape != (*rows, *shape[1:]):
        raise UsageError(f"these {what} have the shape {found.shape}; wanted is {wanted}")
    legal = (found >= lower) & (found <= upper)  # false for NaN
    if found.dtype.kind == "f":
        legal &= found == np.rint(found)
    if not legal.all():
        at = tuple(np.argwhere(~legal)[0].tolist())
        low, high = (np.broadcast_to(bound, found.shape)[at] for bound in (lower, upper))
        raise UsageError(
            f"{place(*at)} is {_shown(found[at])}; legal: whole numbers from {low} to {high}"
        )
    return np.ascontiguousarray(found, dtype=np.int64)


def checked_vectors(X: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return vectors, shape (k, num_genes), within bounds, shape (num_genes,); k may be 0."""
    shape = (None, len(lower))
    return whole_numbers(X, shape, lower, upper, "vectors", lambda k, n: f"vector {k}, gene {n}")


def checked_vector(genes: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return one vector within bounds, shape (num_genes,)."""
    return whole_numbers(genes, lower.shape, lower, upper, "genes", lambda n: f"gene {n}")


def checked_actions(actions: Any, num_envs: int, num_actions: int) -> np.ndarray:
    """Return the actions of environments, shape (num_envs,).

    Actions that a mask rules out pass: the environment says what they cost.
    """

    def place(number: int) -> str:
        return "the action" if num_envs == 1 else f"the action of environment {number}"

    return whole_numbers(actions, (num_envs,), 0, num_actions - 1, "actions", place)


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


def _shown(value: Any) -> str:
    """Return a value in a few characters, a whole number as such."""
    if isinstance(value, np.floating) and abs(value) < 1e16 and float(value).is_integer():
        return str(int(value))
    return str(value) if isinstance(value, np.generic) else shown(value)
