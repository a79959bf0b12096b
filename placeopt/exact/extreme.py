"""The extreme points of a convex front, and exact vertices of linear programs.

The front of a linear program lies between its extreme points, those that a weighted sum of the
objectives can single out. They are found from outside: the facets below the points so far are
weights, and the least weighted sum is a new point, or the facet bounds the front (A. Przybylski,
K. Klamroth, R. Lacour, "A simple and efficient dichotomic search algorithm for multi-objective
mixed integer linear programs", arXiv 1911.08937, 2019). With two objectives that is the dichotomic
search of Y. P. Aneja and K. P. K. Nair, Management Science 25, 1979.

A solver's solution breaks rows by up to its tolerance. Its basis says which rows and bounds meet in
the vertex that it means, and their equations give the vertex to the last digit. So equal vertices
have equal values, however they were come by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.exact.engines import Basis
from placeopt.exact.memory import Found
from placeopt.exact.program import Program
from placeopt.exact.solvers import Outcome, Session

#: Weights are compared by so many decimals; those below the last one are zero.
_DECIMALS = 9
#: How far below a facet a point is new, as a share of the ranges of the objectives.
_BELOW = 1e-9
#: Length of the ways on which values only get worse, in ranges of the objectives.
_FAR = 4.0


@dataclass
class ExtremePoints:
    """Extreme points and the facets between them.

    Attributes
    ----------
    points : list of Found
    facets : list of list of int
        The points of each facet that bounds the front from below.
    asked : int
        Weighted sums that were minimised.
    complete : bool
        False where the search was stopped.
    reached : float
        Where a tolerance ends the search: how much of it the largest distance between the points'
        hull and what is proven takes, at most 1.
    """

    points: list[Found] = field(default_factory=list)
    facets: list[list[int]] = field(default_factory=list)
    asked: int = 0
    complete: bool = False
    reached: float = 0.0

    @property
    def bounds(self) -> np.ndarray:
        """Every feasible vector is weakly dominated by a row; shape (facets, objectives)."""
        values = np.array([point.values for point in self.points])
        return np.array([values[facet].min(axis=0) for facet in self.facets])


def extreme_points(
    least: Callable[[np.ndarray], Found | None],
    size: int,
    enough: np.ndarray | float | None = None,
) -> ExtremePoints:
    """Find all extreme points of a front that no objective improves without end, or enough of them.

    Parameters
    ----------
    least : callable
        From weights of at least 0, shape (size,), to an efficient point of least weighted sum; None
        to stop.
    size : int
        Number of objectives.
    enough : ndarray of shape (size,), or float, optional
        Distances of each objective, or a share of their ranges: stop when no vector is better than
        the hull of the points by more. The facet that may be farthest off is asked about next.
    """
    result = ExtremePoints()
    for unit in np.eye(size):
        if (point := _ask(result, least, unit)) is None:
            return result
        _add(result, point)
    values = np.array([point.values for point in result.points])
    low, spread = values.min(axis=0), np.ptp(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    bounding = {tuple(unit) for unit in np.eye(size).tolist()}  # weights that no point lies below
    outer = Outer(low, spread, enough)
    while True:
        facets = _facets((np.array([point.values for point in result.points]) - low) / spread)
        open_ = [weights for weights in facets if weights not in bounding]
        if enough is not None:
            open_, result.reached = outer.farthest(open_, facets, result.points)
        if not open_:
            result.facets, result.complete = list(facets.values()), True
            return result
        for weights in open_:
            slope = np.array(weights) / spread
            below = min(float(slope @ result.points[k].values) for k in facets[weights]) - _BELOW
            if (point := _ask(result, least, slope)) is None:
                return result
            outer.prove(slope, float(slope @ point.values))
            if float(slope @ point.values) >= below or not _add(result, point):
                bounding.add(weights)


def corners(values: np.ndarray) -> np.ndarray:
    """Return which vectors some weighted sum singles out; others lie between these, or above.

    Parameters
    ----------
    values : ndarray, shape (points, size)
        Of equal vectors one is singled out.
    """
    from scipy.optimize import linprog

    spread = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    count, size = scaled.shape
    single = np.ones(count, dtype=bool)
    for k in range(count if count > 1 else 0):
        # Weights w and the least distance t of all others: w @ (other - own) >= t.
        others = single & (np.arange(count) != k)  # what was left out counts no more
        own = scaled[k] - scaled[others]
        answer = linprog(
            np.append(np.zeros(size), -1.0),
            A_ub=np.column_stack((own, np.ones(len(own)))),
            b_ub=np.zeros(len(own)),
            A_eq=np.append(np.ones(size), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, 1)] * size + [(None, 1)],
            options={"primal_feasibility_tolerance": _BELOW / 2},
        )
        single[k] = answer.status != 0 or -answer.fun > _BELOW
    return single


class Outer:
    """What weighted sums prove: all vectors lie above some planes.

    Parameters
    ----------
    low, spread : ndarray, shape (size,)
        Least values and ranges of the objectives.
    enough : ndarray or float or None
        As of `extreme_points`.
    """

    def __init__(self, low: np.ndarray, spread: np.ndarray, enough: np.ndarray | float | None):
        self._low, self._spread = low, spread
        share = 0.0 if enough is None else np.asarray(enough, dtype=float)
        self._enough = np.broadcast_to(share * (spread if np.ndim(share) == 0 else 1.0), low.shape)
        self._slopes: list[np.ndarray] = []
        self._least: list[float] = []

    def prove(self, slope: np.ndarray, least: float) -> None:
        """Remember the least weighted sum of a slope."""
        self._slopes.append(slope)
        self._least.append(least)

    def farthest(
        self,
        weights: Sequence[tuple[float, ...]],
        facets: Mapping[tuple[float, ...], Sequence[int]],
        points: Sequence[Found],
    ) -> tuple[list[tuple[float, ...]], float]:
        """Return the facet that a vector may lie farthest below, if that is too far, and how far.

        Distances are shares of what is enough.
        """
        far = 0.0
        chosen: list[tuple[float, ...]] = []
        for each in weights:
            slope = np.array(each) / self._spread
            facet = min(float(slope @ points[k].values) for k in facets[each])
            distance = (facet - self._below(slope)) / float(slope @ self._enough)
            if distance > far:
                far, chosen = distance, [each]
        return (chosen if far > 1 else []), far

    def _below(self, slope: np.ndarray) -> float:
        """Return the least weighted sum that the planes leave."""
        from scipy.optimize import linprog

        if not self._slopes:
            return float(slope @ self._low)
        planes = -np.array(self._slopes) * self._spread
        room = -(np.array(self._least) - np.array(self._slopes) @ self._low)
        answer = linprog(slope * self._spread, A_ub=planes, b_ub=room, bounds=(0, None))
        return float(slope @ self._low) + (float(answer.fun) if answer.status == 0 else 0.0)


def _ask(
    found: ExtremePoints, least: Callable[[np.ndarray], Found | None], weights: np.ndarray
) -> Found | None:
    point = least(weights)
    if point is not None:
        found.asked += 1
    return point


def _add(found: ExtremePoints, point: Found) -> bool:
    """Add a point that is not there yet."""
    values = np.array(point.values)
    for other in found.points:
        if (np.abs(values - other.values) <= 1e-9 * (1 + np.abs(values))).all():
            return False
    found.points.append(point)
    return True


def _facets(values: np.ndarray) -> dict[tuple[float, ...], list[int]]:
    """Return the facets of all that is no better than points: the points of each by its weights."""
    from scipy.spatial import ConvexHull

    count, size = values.shape
    if size == 1:
        return {(1.0,): [int(values.argmin())]}
    worse = [values + _FAR * unit for unit in np.eye(size)]
    hull = ConvexHull(np.concatenate([values, *worse]))
    facets: dict[tuple[float, ...], set[int]] = {}
    for equation, corners in zip(hull.equations, hull.simplices, strict=True):
        weights = np.round(-equation[:-1] / np.abs(equation[:-1]).sum(), _DECIMALS) + 0.0
        if (weights >= 0).all():
            own = {int(k) % count for k in corners}  # a worse point stands for its origin
            facets.setdefault(tuple(weights.tolist()), set()).update(own)
    return {weights: sorted(own) for weights, own in facets.items()}


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
