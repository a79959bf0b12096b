"""Rows of whole numbers: their steps, their exact limits, and large coefficients in parts.

A solver accepts a row that is broken by a millionth. Where all columns of a row are whole numbers,
its values are multiples of a step, and its limits can be exact.

A solver also counts a number as whole where it is off by a millionth. With coefficients of a
billion that hides differences of a thousand. So such a function is written by digits:
``function = part 0 + base * (part 1 + base * (part 2 + ...))``, and whole columns carry from part
to part. Limits hold digit by digit. To minimise the function means to minimise the last part, then
the one before it within that value, and so on. The coefficients of each part are at most the base.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from placeopt.exact.program import Growth, Program

#: A float that is written with at most so many decimals, or digits, means that decimal number.
_MAX_DECIMALS, _MAX_DIGITS = 9, 12
#: Other floats mean a fraction with at most this denominator, up to the rounding of arithmetic.
_MAX_DENOMINATOR, _ROUNDING = 10**6, 1e-14
#: Numbers of steps have no more digits than floats have.
_MOST_STEPS = 2**53


def fraction(value: float) -> Fraction | None:
    """Return the number that a float stands for, None where it is no short decimal or fraction.

    Examples
    --------
    >>> fraction(0.1), fraction(0.1 + 0.2), fraction(1 / 3), fraction(math.pi)
    (Fraction(1, 10), Fraction(3, 10), Fraction(1, 3), None)
    """
    written = Decimal(repr(float(value)))
    _, digits, exponent = written.as_tuple()
    if len(digits) <= _MAX_DIGITS or (isinstance(exponent, int) and exponent >= -_MAX_DECIMALS):
        return Fraction(written)
    exact = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
    return exact if abs(float(exact) - value) <= _ROUNDING * abs(value) else None


def exactly(value: float) -> Fraction:
    """Return the number that a float stands for, or else is."""
    exact = fraction(value)
    return Fraction(value) if exact is None else exact


def exact_unit(step: float) -> Fraction:
    """Return the number that a step stands for, one of many equal parts of 1 among others."""
    parts = round(1 / step) if step <= 1 else 0
    is_part = parts and abs(1 / parts - step) <= 1e-12 * step
    return Fraction(1, parts) if is_part else exactly(step)


def in_values(units: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return vectors in units, shape (k, objectives), as values.

    A whole number of units gives the very float that a referee gives for it, which divides.
    """
    values = np.array(units, dtype=float) * steps
    for k, step in enumerate(map(exact_unit, steps.tolist())):
        if step.numerator == 1:
            values[:, k] = units[:, k] / step.denominator
    return values


def exact_step(coefficients: Iterable[float]) -> Fraction | None:
    """Return the largest number that all coefficients are whole multiples of, if there is one.

    1 where there are no coefficients.
    """
    numerator, denominator, largest = 0, 1, 0.0
    for value in set(map(abs, coefficients)):
        exact = fraction(value)
        if exact is None:
            return None
        numerator = math.gcd(numerator * exact.denominator, exact.numerator * denominator)
        denominator *= exact.denominator
        shared = math.gcd(numerator, denominator)
        numerator, denominator = numerator // shared, denominator // shared
        largest = max(largest, value)
        if largest > _MOST_STEPS * (numerator / denominator):
            return None
    return Fraction(numerator, denominator) if numerator else Fraction(1)


def common_step(coefficients: np.ndarray) -> float | None:
    """Return the largest number that all coefficients are whole multiples of, if there is one.

    Examples
    --------
    >>> common_step(np.array([0.5, 0.75])), common_step(np.array([6.0, -4.0]))
    (0.25, 2.0)
    """
    step = exact_step(coefficients.tolist())
    return None if step is None else float(step)


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


#: A limit so near to a multiple of the step, in steps, is that multiple: rounding of arithmetic.
_NEAR = Fraction(1, 10**9)
#: Coefficients, other than whole numbers, whose steps are looked for: more take too long.
_MOST_FRACTIONS = 200_000
#: Above, numbers of steps are not exact in floating point.
_EXACT_STEPS = 2.0**52


@dataclass(frozen=True, eq=False)
class WholeRows:
    """The rows of a program that only take whole numbers of steps.

    Attributes
    ----------
    which : ndarray of int
        Their indices in the program.
    steps : list of Fraction
    matrix : scipy.sparse.csr_matrix
        Their coefficients, in steps.
    lower, upper : ndarray
        Their limits, in steps.
    """

    which: np.ndarray
    steps: list[Fraction]
    matrix: sp.csr_matrix
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, program: Program) -> WholeRows:
        """Find the rows of whole columns whose coefficients have a step."""
        rows = program.A.tocsr()
        steps = _steps_of(program, rows)
        which = np.array(list(steps), dtype=int)
        matrix = sp.csr_matrix(sp.diags([float(1 / s) for s in steps.values()]) @ rows[which])
        matrix.data = np.round(matrix.data)
        lower, upper = -program.row_lower[which], program.row_upper[which]
        for limits in (lower, upper):
            between = np.isfinite(limits)
            between[between] = limits[between] != np.round(limits[between])
            between |= np.array([step != 1 for step in steps.values()], dtype=bool)
            for k in np.flatnonzero(between).tolist():
                limits[k] = _within(limits[k], steps[int(which[k])])
        return cls(which, list(steps.values()), matrix, -lower, upper)

    def kept(self, x: np.ndarray) -> bool:
        """Whether a solution keeps all of these rows."""
        values = self.matrix @ x
        return bool(((values >= self.lower) & (values <= self.upper)).all())

    def others(self, program: Program) -> Program:
        """Return the program without these rows."""
        left = np.setdiff1d(np.arange(program.shape[0]), self.which)
        return replace(
            program,
            A=program.A.tocsr()[left],
            row_lower=program.row_lower[left],
            row_upper=program.row_upper[left],
        )

    def with_exact_limits(self, program: Program) -> Program:
        """Return the program with the limits that these rows can attain."""
        lower, upper = program.row_lower.copy(), program.row_upper.copy()
        steps = np.array([float(step) for step in self.steps])
        for limits, own in ((lower, self.lower), (upper, self.upper)):
            finite = np.isfinite(own)
            which, now = self.which[finite], (own * steps)[finite]
            moved = abs(now - limits[which]) > 1e-9 * abs(now)
            limits[which[moved]] = now[moved]
        return replace(program, row_lower=lower, row_upper=upper)

    def in_parts(self, program: Program) -> tuple[Program, list[Chain]]:
        """Return the program with rows of large coefficients in parts, and these."""
        large = [
            k
            for k in range(len(self.which))
            if self.lower[k] <= self.upper[k] and needs_parts(self._data(k), whole=True)
        ]
        lower, upper = program.row_lower.copy(), program.row_upper.copy()
        lower[self.which[large]], upper[self.which[large]] = -math.inf, math.inf
        growth = Growth(replace(program, row_lower=lower, row_upper=upper))
        limited = [pair for k in large for pair in self._chains(growth, k, program.integrality)]
        grown = growth.program()
        lower, upper = grown.row_lower.copy(), grown.row_upper.copy()
        for chain, limit, is_equal in limited:
            rows = list(chain.rows)
            upper[rows] = chain.uppers(limit)
            if is_equal:
                lower[rows] = upper[rows] - 1
        chains = [chain for chain, _, _ in limited]
        return replace(grown, row_lower=lower, row_upper=upper), chains

    def _data(self, k: int) -> np.ndarray:
        return self.matrix.data[self.matrix.indptr[k] : self.matrix.indptr[k + 1]]

    def _chains(
        self, growth: Growth, k: int, is_whole: np.ndarray
    ) -> list[tuple[Chain, float, bool]]:
        """Write a row in parts: a chain, its upper limit, and whether that is its lower one too."""
        columns = self.matrix.indices[self.matrix.indptr[k] : self.matrix.indptr[k + 1]].tolist()
        lower, upper = float(self.lower[k]), float(self.upper[k])
        chains = []
        for sign, limit in ((1.0, upper), (-1.0, -lower)):
            if math.isfinite(limit) and not (sign < 0 and lower == upper):
                terms = dict(zip(columns, (sign * self._data(k)).tolist(), strict=True))
                chain = add_chain(growth, terms, is_whole, whole=True)
                chains.append((chain, limit, lower == upper))
        return chains


def _steps_of(program: Program, rows: sp.csr_matrix) -> dict[int, Fraction]:
    """Return the step of every row that has one, by its index."""
    real = np.flatnonzero(~program.integrality)
    only_whole = np.diff(rows[:, real].indptr) == 0
    fractions = np.zeros(rows.shape[0], dtype=bool)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    fractions[row_of[rows.data != np.round(rows.data)]] = True
    steps = dict.fromkeys(np.flatnonzero(only_whole & ~fractions).tolist(), Fraction(1))
    budget = _MOST_FRACTIONS
    for row in np.flatnonzero(only_whole & fractions).tolist():
        data = rows.data[rows.indptr[row] : rows.indptr[row + 1]]
        budget -= len(data)
        step = exact_step(data.tolist()) if budget >= 0 else None
        if step is not None:
            steps[row] = step
    largest = abs(rows).max(axis=1).toarray().ravel() if rows.nnz else np.zeros(rows.shape[0])
    return {row: s for row, s in sorted(steps.items()) if largest[row] < _EXACT_STEPS * s}


def _within(limit: float, step: Fraction) -> float:
    """Return the largest number of steps that is at most a limit."""
    if not math.isfinite(limit):
        return limit
    return float(math.floor(exactly(limit) / step + _NEAR))
