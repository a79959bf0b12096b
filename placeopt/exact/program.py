"""A mixed-integer linear program as arrays, and how it grows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise ``c @ x + offset`` within rows and column bounds.

    ``row_lower <= A @ x <= row_upper`` and ``col_lower <= x <= col_upper``.

    Parameters
    ----------
    c : array_like, shape (columns,)
    A : scipy.sparse matrix or array, shape (rows, columns)
        Kept by columns (CSC).
    row_lower, row_upper : array_like, shape (rows,), or a number for all rows
    col_lower, col_upper : array_like, shape (columns,), or a number for all columns
    integrality : array_like of bool, shape (columns,), or one bool for all columns
        Which columns are whole numbers.
    offset : float
    """

    c: np.ndarray
    A: sp.csc_matrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    col_lower: np.ndarray
    col_upper: np.ndarray
    integrality: np.ndarray
    offset: float = 0.0

    def __post_init__(self) -> None:
        import scipy.sparse as sp  # takes a tenth of a second

        matrix = sp.csc_matrix(self.A, dtype=float)
        matrix.sum_duplicates()
        rows, columns = matrix.shape
        object.__setattr__(self, "A", matrix)
        for name, size, kind in (
            ("c", columns, float),
            ("row_lower", rows, float),
            ("row_upper", rows, float),
            ("col_lower", columns, float),
            ("col_upper", columns, float),
            ("integrality", columns, bool),
        ):
            array = np.ascontiguousarray(
                np.broadcast_to(np.asarray(getattr(self, name), dtype=kind), (size,))
            )
            if kind is float and np.isnan(array).any():
                raise ValueError(f"{name} has values that are not a number")
            object.__setattr__(self, name, array)
        if not (
            np.isfinite(matrix.data).all()
            and np.isfinite(self.c).all()
            and math.isfinite(self.offset)
        ):
            raise ValueError("coefficients must be finite")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.A.shape

    def value(self, x: np.ndarray) -> float:
        """Return the objective value of a solution."""
        return float(self.c @ x) + self.offset

    def with_visible_rows(self) -> Program:
        """Return the program with rows of small coefficients multiplied.

        Their largest is from 1 to 2 then: the tolerances of solvers are absolute.
        """
        import scipy.sparse as sp

        rows = self.A.tocsr()
        largest = abs(rows).max(axis=1).toarray().ravel() if rows.nnz else np.ones(rows.shape[0])
        small = (largest > 0) & (largest < 1)
        if not small.any():
            return self
        factors = np.ones(len(largest))
        factors[small] = 2.0 ** -np.floor(np.log2(largest[small]))
        return replace(
            self,
            A=sp.csc_matrix(sp.diags(factors) @ rows),
            row_lower=self.row_lower * factors,
            row_upper=self.row_upper * factors,
        )

    def broken(self, x: np.ndarray) -> float:
        """Return the largest violation of a row or bound, relative to the size of its terms."""
        activity, size = self.A @ x, abs(self.A) @ np.abs(x) + 1.0
        rows = np.maximum(self.row_lower - activity, activity - self.row_upper) / size
        columns = np.maximum(self.col_lower - x, x - self.col_upper) / (1.0 + np.abs(x))
        return max(0.0, rows.max(initial=0.0), columns.max(initial=0.0))


class Growth:
    """Columns and rows to add to a program, together.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> growth = Growth(Program([1.0], sp.csc_matrix((0, 1)), 0, 0, 0.0, 9.0, True))
    >>> y = growth.column(0.0, 1.0, whole=False)
    >>> growth.row({0: 1.0, y: 2.0}, 3.0)
    0
    >>> growth.program().A.toarray().tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, program: Program):
        self._program = program
        self._columns: list[tuple[float, float, bool]] = []
        self._rows: list[tuple[Mapping[int, float], float, float]] = []

    def column(self, lower: float, upper: float, *, whole: bool) -> int:
        """Add a column without costs; return its index."""
        self._columns.append((lower, upper, whole))
        return self._program.shape[1] + len(self._columns) - 1

    def row(
        self, terms: Mapping[int, float], upper: float = math.inf, lower: float = -math.inf
    ) -> int:
        """Add a row of coefficients by column; return its index."""
        self._rows.append((terms, lower, upper))
        return self._program.shape[0] + len(self._rows) - 1

    def range_of(self, terms: Mapping[int, float]) -> tuple[float, float]:
        """Return the least and the largest value of a sum of terms within the columns' bounds."""
        least = most = 0.0
        for column, value in terms.items():
            ends = [value * bound for bound in self._bounds(column)]
            least, most = least + min(ends), most + max(ends)
        return least, most

    def _bounds(self, column: int) -> tuple[float, float]:
        own = column - self._program.shape[1]
        if own >= 0:
            return self._columns[own][:2]
        return float(self._program.col_lower[column]), float(self._program.col_upper[column])

    def program(self) -> Program:
        """Return the program with all that was added."""
        import scipy.sparse as sp

        old, more = self._program, len(self._columns)
        if not more and not self._rows:
            return old
        indices = [column for terms, _, _ in self._rows for column in terms]
        data = [value for terms, _, _ in self._rows for value in terms.values()]
        ends = np.cumsum([0, *(len(terms) for terms, _, _ in self._rows)])
        shape = (len(self._rows), old.shape[1] + more)
        below = sp.csr_matrix((np.array(data, dtype=float), indices, ends), shape=shape)
        above = sp.hstack([old.A, sp.csc_matrix((old.shape[0], more))], format="csc")
        columns = np.array(self._columns, dtype=float).reshape(more, 3)
        limits = np.array([row[1:] for row in self._rows], dtype=float).reshape(-1, 2)
        return replace(
            old,
            c=np.concatenate((old.c, np.zeros(more))),
            A=sp.vstack([above, below], format="csc"),
            row_lower=np.concatenate((old.row_lower, limits[:, 0])),
            row_upper=np.concatenate((old.row_upper, limits[:, 1])),
            col_lower=np.concatenate((old.col_lower, columns[:, 0])),
            col_upper=np.concatenate((old.col_upper, columns[:, 1])),
            integrality=np.concatenate((old.integrality, columns[:, 2] > 0)),
        )
