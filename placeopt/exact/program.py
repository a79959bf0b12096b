"""A mixed-integer linear program as arrays, how it grows, and convex quadratic goals.

A square ``t = s²`` becomes a column t that lies above tangents of the curve. Where a solution has
less than the square, the tangent at its s is added, and the question is asked again (J. E. Kelley,
"The cutting-plane method for solving convex programs", Journal of the SIAM 8, 1960; with whole
numbers M. Duran, I. Grossmann, Mathematical Programming 36, 1986). Tangents cut off no solution,
so that bounds stay proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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

    def implied_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of columns; those that single rows give where they are infinite."""
        lower, upper, A = self.col_lower.copy(), self.col_upper.copy(), self.A.tocoo()
        row, column, data = (part[A.data != 0] for part in (A.row, A.col, A.data))
        for a, limit in ((data, self.row_upper), (-data, -self.row_lower)):
            least = np.where(a > 0, a * lower[column], a * upper[column])
            known = np.isfinite(least)
            least = np.where(known, least, 0.0)
            others_open = np.bincount(row, ~known, len(limit))[row] - ~known
            rest = limit[row] - np.bincount(row, least, len(limit))[row] + least
            bound = np.where(others_open == 0, rest, math.inf) / a
            most, fewest = np.full_like(upper, math.inf), np.full_like(lower, -math.inf)
            np.minimum.at(most, column[a > 0], bound[a > 0])
            np.maximum.at(fewest, column[a < 0], bound[a < 0])
            upper, lower = (
                np.where(upper == math.inf, most, upper),
                np.where(lower == -math.inf, fewest, lower),
            )
        return lower, upper

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


#: Pivots and what remains, relative to the largest coefficient: rounding.
_FLAT = 1e-11
#: Tangents that are there from the beginning: at shares of a side's range, or at these values.
_SHARES, _ENDLESS = (0.0, 0.25, 0.5, 0.75, 1.0), (-1e3, -1.0, 1.0, 1e3)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``linear @ x + constant + sum of weights * (sides @ x + shifts)²``.

    Attributes
    ----------
    variables : list of pyomo variables
    linear : ndarray, shape (variables,)
    constant : float
    weights, shifts : ndarray, shape (squares,)
        Weights are positive.
    sides : ndarray, shape (squares, variables)
    """

    variables: list[Any]
    linear: np.ndarray
    constant: float
    weights: np.ndarray
    sides: np.ndarray
    shifts: np.ndarray

    @property
    def straight(self) -> Any:
        """The linear part as an expression."""
        terms = zip(self.linear.tolist(), self.variables, strict=True)
        return sum((value * x for value, x in terms if value), self.constant)


def quadratic(expression: Any) -> Quadratic | None:
    """Return an expression of degree 2 as squares; None where it is not convex.

    Squares are completed one variable after the other, as in the elimination of L. D. L. The
    linear terms of a variable go into its square.
    """
    from pyomo.repn import generate_standard_repn

    repn = generate_standard_repn(expression, quadratic=True)
    results: dict[int, Any] = {id(v): v for v in repn.linear_vars}
    results |= {id(v): v for pair in repn.quadratic_vars for v in pair}
    column = {key: k for k, key in enumerate(results)}
    c, Q = np.zeros(len(results)), np.zeros((len(results), len(results)))
    for variable, value in zip(repn.linear_vars, repn.linear_coefs, strict=True):
        c[column[id(variable)]] += value
    for (x, y), value in zip(repn.quadratic_vars, repn.quadratic_coefs, strict=True):
        i, j = column[id(x)], column[id(y)]
        Q[i, j] += value / 2
        Q[j, i] += value / 2
    if not np.isfinite(Q).all():
        return None
    constant, rounding = float(repn.constant), _FLAT * float(np.abs(Q).max())
    squares: list[tuple[float, np.ndarray, float]] = []
    while (weight := float(Q.diagonal().max(initial=0.0))) > rounding:
        k = int(Q.diagonal().argmax())
        side = Q[k] / weight
        shift = float(c[k]) / (2 * weight)
        squares.append((weight, side, shift))
        constant -= weight * shift**2
        c = c - 2 * weight * shift * side
        Q = Q - weight * np.outer(side, side)
        c[k] = Q[k] = Q[:, k] = 0.0
    if (np.abs(Q) > rounding).any():
        return None
    sides = np.array([side for _, side, _ in squares]).reshape(-1, len(results))
    weights, shifts = (np.array([square[k] for square in squares]) for k in (0, 2))
    return Quadratic(list(results.values()), c, constant, weights, sides, shifts)


@dataclass(frozen=True, eq=False)
class Square:
    """Columns of a side, which is ``coefficients @ x[columns] + shift``, and of its square."""

    side: int
    square: int
    columns: np.ndarray
    coefficients: np.ndarray
    shift: float

    def length(self, x: np.ndarray) -> float:
        """Return the side that the model's variables give."""
        return float(self.coefficients @ x[self.columns]) + self.shift


def add_squares(
    growth: Growth, goal: Quadratic, columns: Sequence[int]
) -> Iterator[tuple[Square, float]]:
    """Add the squares of a goal to a program; yield each and its weight.

    Parameters
    ----------
    columns : sequence of int
        Of the goal's variables.
    """
    for weight, side, shift in zip(goal.weights, goal.sides, goal.shifts, strict=True):
        used = np.flatnonzero(side)
        terms = {columns[k]: float(side[k]) for k in used.tolist()}
        low, high = (end + float(shift) for end in growth.range_of(terms))
        is_limited = math.isfinite(low) and math.isfinite(high)
        largest = 2 * max(low**2, high**2) + 1 if is_limited else math.inf
        s = growth.column(-math.inf, math.inf, whole=False)
        t = growth.column(0.0, largest, whole=False)
        growth.row({**terms, s: -1.0}, -float(shift), -float(shift))
        square = Square(s, t, np.array(list(terms)), side[used], float(shift))
        ends = [low + share * (high - low) for share in _SHARES] if is_limited else _ENDLESS
        for at in ends:
            growth.row(*tangent(square, at))
        yield square, float(weight)


def tangent(square: Square, at: float) -> tuple[dict[int, float], float]:
    """Return the row of a square's tangent: terms and their upper bound."""
    return {square.side: 2 * at, square.square: -1.0}, at * at


def too_low(squares: Sequence[Square], x: np.ndarray) -> np.ndarray:
    """Return by how much each square of a solution is less than it ought to be."""
    return np.array([max(0.0, one.length(x) ** 2 - x[one.square]) for one in squares])


def lifted(squares: Sequence[Square], x: np.ndarray) -> np.ndarray:
    """Return a solution with its sides and squares as they ought to be."""
    if not squares:
        return x
    x = x.copy()
    for one in squares:
        x[one.side] = one.length(x)
        x[one.square] = x[one.side] ** 2
    return x
