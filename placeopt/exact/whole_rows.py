"""Rows of whole numbers: their exact limits, and whether a solution keeps them exactly.

A solver accepts a row that is broken by a millionth. Where all columns of a row are whole numbers,
its values are multiples of a step, and its limits can be exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from placeopt.exact.parts import Chain, add_chain, needs_parts
from placeopt.exact.program import Growth, Program
from placeopt.exact.steps import exact_step, exactly

#: A limit so near to a multiple of the step, in steps, is that multiple: rounding of arithmetic.
_NEAR = Fraction(1, 10**9)
#: Coefficients, other than whole numbers, whose steps are looked for: more take too long.
_MOST_FRACTIONS = 200_000
#: Above, numbers of steps are not exact in floating point.
_MOST_STEPS = 2.0**52


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
    return {row: s for row, s in sorted(steps.items()) if largest[row] < _MOST_STEPS * s}


def _within(limit: float, step: Fraction) -> float:
    """Return the largest number of steps that is at most a limit."""
    if not math.isfinite(limit):
        return limit
    return float(math.floor(exactly(limit) / step + _NEAR))
