"""Linear functions of large coefficients in parts that a solver resolves.

A solver counts a row as kept where it is broken by a millionth, and a number as whole where it is
off by as much. With coefficients of a billion that hides differences of a thousand. So such a
function is written by digits: ``function = part 0 + base * (part 1 + base * (part 2 + ...))``, and
whole columns carry from part to part. Limits hold digit by digit. To minimise the function means to
minimise the last part, then the one before it within that value, and so on. The coefficients of
each part are at most the base.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.exact.program import Growth, Program

#: A power of two, so that digits are exact.
BASE = 2.0**16
#: Coefficients of whole columns that a solver resolves by itself: beside others that are whole, and
#: beside real terms, of which smaller differences count.
_LARGEST, _LARGEST_BESIDE_REAL = 2.0**20, BASE


@dataclass(frozen=True)
class Chain:
    """The rows of a function in parts.

    Attributes
    ----------
    rows : tuple of int
        The lowest part first.
    carries : tuple of int
        The column between each row and the next.
    whole : bool
        Whether the function only takes whole numbers.
    """

    rows: tuple[int, ...]
    carries: tuple[int, ...]
    whole: bool

    def digits(self, limit: float) -> list[float]:
        """Return the largest value of each part for the function to be at most `limit`."""
        if not math.isfinite(limit):
            return [limit] * len(self.rows)
        digits = []
        for _ in self.carries:
            digits.append(limit % BASE)
            limit = math.floor(limit / BASE)
        return [*digits, limit]

    def uppers(self, limit: float) -> list[float]:
        """Return the upper bounds of the rows for the function to be at most `limit`.

        Half a unit more is the same to whole numbers, and no rounding cuts a solution off.
        """
        slack = [0.5 if self.whole else 0.0] + [0.5] * len(self.carries)
        return [digit + more for digit, more in zip(self.digits(limit), slack, strict=True)]

    def stage(self, leading: Sequence[float]) -> tuple[int, list[float]]:
        """Return which row to minimise next, and the upper bounds of all rows.

        Parameters
        ----------
        leading : sequence of float
            The least values of the parts that were minimised so far, the last part first.
        """
        at = len(self.carries) - len(leading)
        below = [BASE - 0.5] * at
        if at and not self.whole:
            below[0] = BASE
        return self.rows[at], [*below, math.inf, *(value + 0.5 for value in reversed(leading))]

    def value(self, leading: Sequence[float], bound: float) -> float:
        """Return the function's bound: of its last parts the least values, of the next a bound."""
        total = bound
        for distance, digit in enumerate(reversed(leading), start=1):
            total += digit * BASE**distance
        return total * BASE ** (len(self.carries) - len(leading))


def needs_parts(coefficients: np.ndarray, *, whole: bool) -> bool:
    """Whether a function of these coefficients of whole columns has to be written in parts.

    Parameters
    ----------
    coefficients : ndarray
        In units, of which the function takes a whole number, or which are its smallest term.
    whole : bool
        Whether the function only takes whole numbers.
    """
    largest = _LARGEST if whole else _LARGEST_BESIDE_REAL
    return bool(abs(coefficients).max(initial=0.0) > largest)


def add_chain(
    growth: Growth, terms: Mapping[int, float], is_whole: np.ndarray, *, whole: bool
) -> Chain:
    """Add the rows of a function, without limits.

    Parameters
    ----------
    terms : mapping of column to coefficient
    is_whole : ndarray of bool
        Which columns are whole numbers; coefficients of others stay in part 0.
    whole : bool
        Whether all columns and coefficients are whole numbers.
    """
    rows: list[int] = []
    carries: list[int] = []
    rest = dict(terms)
    while True:
        high = {
            j: float(round(value / BASE))
            for j, value in rest.items()
            if abs(value) > BASE and is_whole[j]
        }
        part = {j: value - BASE * high.get(j, 0.0) for j, value in rest.items()}
        part = {j: value for j, value in part.items() if value}
        if carries:
            part[carries[-1]] = 1.0
        if not high:
            rows.append(growth.row(part))
            return Chain(tuple(rows), tuple(carries), whole)
        low, most = growth.range_of(part)
        carries.append(
            growth.column(np.floor(low / BASE) - 2, np.ceil(most / BASE) + 2, whole=True)
        )
        rows.append(growth.row({**part, carries[-1]: -BASE}))
        rest = high


def fill_carries(chains: Sequence[Chain], program: Program, x: np.ndarray) -> np.ndarray:
    """Return a solution with the carries that the upper bounds of the rows need."""
    x, rows = x.copy(), program.A.tocsr()
    for chain in chains:
        x[list(chain.carries)] = 0.0
        for row, carry in zip(chain.rows, chain.carries, strict=False):
            own = slice(rows.indptr[row], rows.indptr[row + 1])
            part, upper = float(rows.data[own] @ x[rows.indices[own]]), program.row_upper[row]
            if math.isfinite(upper):
                x[carry] = math.ceil((part - upper) / BASE)
    return x
