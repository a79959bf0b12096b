"""A mixed-integer linear program as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
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

    def broken(self, x: np.ndarray) -> float:
        """Return the largest violation of a row or bound, relative to the size of its terms."""
        activity, size = self.A @ x, abs(self.A) @ np.abs(x) + 1.0
        rows = np.maximum(self.row_lower - activity, activity - self.row_upper) / size
        columns = np.maximum(self.col_lower - x, x - self.col_upper) / (1.0 + np.abs(x))
        return max(0.0, rows.max(initial=0.0), columns.max(initial=0.0))
