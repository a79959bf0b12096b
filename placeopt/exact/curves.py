"""Convex quadratic goals: linear terms and weighted squares, whose tangents solvers see.

A square ``t = s²`` becomes a column t that lies above tangents of the curve. Where a solution has
less than the square, the tangent at its s is added, and the question is asked again (J. E. Kelley,
"The cutting-plane method for solving convex programs", Journal of the SIAM 8, 1960; with whole
numbers M. Duran, I. Grossmann, Mathematical Programming 36, 1986). Tangents cut off no solution,
so that bounds stay proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyomo.repn import generate_standard_repn

from placeopt.exact.program import Growth

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
