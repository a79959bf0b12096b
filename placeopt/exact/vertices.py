"""Exact vertices of linear programs, one cost after the other.

A solver's solution breaks rows by up to its tolerance. Its basis says which rows and bounds meet in
the vertex that it means, and their equations give the vertex to the last digit. So equal vertices
have equal values, however they were come by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.exact.engines import Basis
from placeopt.exact.program import Program
from placeopt.exact.solvers import Outcome, Session

#: Tolerance of the solver; and how far its solution may be from the vertex, relatively.
_TOLERANCE, _APART = 1e-9, 1e-5
#: Largest violation at a vertex, relative to the size of the terms: rounding.
_ROUNDING = 1e-10
#: Up to so many equations are solved as a dense system.
_DENSE = 400


def least_vertex(
    program: Program, costs: Sequence[np.ndarray], budget: Budget | None = None
) -> np.ndarray | None:
    """Minimise one cost, then the next among the solutions that are least in the first, and so on.

    Parameters
    ----------
    program : Program
        Linear; its own cost does not count.
    costs : sequence of ndarray, shape (columns,)
        Their sizes do not matter.

    Returns
    -------
    ndarray or None
        None where there is no solution, or no best one.
    """
    some = [cost / np.abs(cost).max() for cost in costs if cost.any()] or [program.c]
    session = Session(replace(program, c=some[0]))
    last = best = session.solve(budget=budget, tolerance=_TOLERANCE)
    for cost in some[1:]:
        if last.status != "optimal":
            break
        _keep_optimal(session, last)
        session.change(c=cost)
        last = session.solve(budget=budget, tolerance=_TOLERANCE)
        best = best if last.x is None else last
    if best.x is None or best.basis is None:
        return best.x
    return vertex(session.program, best.basis, best.x)


def _keep_optimal(session: Session, outcome: Outcome) -> None:
    """Fix what has a price in an optimal solution: the program then has its optima alone."""
    program, x = session.program, outcome.x
    assert x is not None and outcome.reduced_costs is not None and outcome.row_duals is not None
    changes: dict[str, np.ndarray] = {}
    for kind, prices, values in (
        ("col", outcome.reduced_costs, x),
        ("row", outcome.row_duals, program.A @ x),
    ):
        lower, upper = (getattr(program, f"{kind}_{end}").copy() for end in ("lower", "upper"))
        priced = np.abs(prices) > _TOLERANCE * max(1.0, np.abs(program.c).max(initial=0.0))
        is_lower = priced & (np.abs(values - lower) <= np.abs(values - upper))
        is_upper = priced & ~is_lower
        upper[is_lower] = lower[is_lower]
        lower[is_upper] = upper[is_upper]
        changes |= {f"{kind}_lower": lower, f"{kind}_upper": upper}
    session.change(**changes)


def vertex(program: Program, basis: Basis, x: np.ndarray) -> np.ndarray:
    """Return the vertex of a basis; the solver's solution `x` of it where rounding spoils it."""
    free, tight = np.flatnonzero(basis.columns), np.flatnonzero(~basis.rows)
    exact = np.where(basis.columns, 0.0, _nearest(x, program.col_lower, program.col_upper))
    if len(free) != len(tight):
        return x
    rows = program.A.tocsr()[tight]
    goal = _nearest(program.A @ x, program.row_lower, program.row_upper)[tight]
    if len(free):
        solved = _solved(rows[:, free], goal - rows @ exact)
        if solved is None:
            return x
        exact[free] = solved
    near = np.abs(exact - x).max(initial=0.0) <= _APART * (1.0 + np.abs(x).max(initial=0.0))
    return exact if near and program.broken(exact) <= _ROUNDING else x


def _nearest(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the bound that is nearest to each value; the value where there is none."""
    nearest = np.where(np.abs(values - lower) <= np.abs(values - upper), lower, upper)
    return np.where(np.isfinite(nearest), nearest, values)


def _solved(matrix: object, goal: np.ndarray) -> np.ndarray | None:
    """Solve a square system, with a correction; None where it is singular."""
    import scipy.sparse.linalg as spl

    try:
        if len(goal) <= _DENSE:
            dense = matrix.toarray()  # type: ignore[attr-defined]
            x = np.linalg.solve(dense, goal)
            rest = goal - dense.astype(np.longdouble) @ x
            x = x + np.linalg.solve(dense, rest.astype(float))
        else:
            factors = spl.splu(matrix.tocsc())  # type: ignore[attr-defined]
            x = factors.solve(goal)
            x = x + factors.solve(goal - matrix @ x)  # type: ignore[operator]
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    return x if np.isfinite(x).all() and math.isfinite(float(np.abs(x).sum())) else None
