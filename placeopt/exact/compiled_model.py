"""A Pyomo model as arrays, compiled once; its objectives as rows in units.

Objectives and rows of large coefficients are written in parts (`placeopt.exact.whole_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from placeopt.core.fronts.values import Objective, names_of
from placeopt.exact.memory import Precision
from placeopt.exact.program import Growth, Program, lifted, tangent, too_low
from placeopt.exact.pyomo_rows import MAX_UNITS, read_rows, unit_rows
from placeopt.exact.solvers import solve
from placeopt.exact.whole_rows import Chain, WholeRows, add_chain, fill_carries, needs_parts

#: The share of an objective's largest term that a solver resolves.
_RESOLVED = 1e-9
#: To what a quadratic objective is as its tangents have it: in units, and relative to its value.
_RESOLVED_SQUARES = 1e-8
#: Tangents are added of squares that are too low by this share of the lowest one.
_SHARE_OF_LOWEST = 1e-3
#: The largest violation of rows with real columns, relative to the size of their terms.
_BROKEN = 1e-9
#: Coefficients of whole columns above which a solver's own tolerance hides differences.
_DELICATE = 1e5
#: So little below a whole number of units, absolutely or relatively, a limit is that number.
_NEAR = (1e-9, 1e-12)


@dataclass(frozen=True)
class Cut:
    """A linear row over variables of a model: ``sum of coefficient * variable <= upper``.

    `terms` maps variables to coefficients; variables do not hash, so it is a
    ``pyomo.environ.ComponentMap``.
    """

    terms: Mapping[Any, float]
    upper: float


class CompiledModel:
    """Arrays of a Pyomo model with objectives that are linear, or convex and quadratic.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Its own Objectives, and epsilon bounds that are infinite, are put aside.
    objectives : sequence of Objective
        All minimised. Those without a step get the one that their coefficients show, if their
        variables are all whole numbers.
    expressions : sequence, optional
        One for each objective; by default the named Expressions ``model.<name>``.
    rounded : collection of int
    most_units : float
        See `placeopt.exact.pyomo_rows.unit_rows`.

    Attributes
    ----------
    columns : list of pyomo variables
        The first columns of the program.
    objectives : tuple of Objective
        As given, but without a step where that is too fine for a solver.
    units : ndarray, shape (objectives,)
        The step of an objective, or what its real values are measured in.
    rounding : ndarray, shape (objectives,)
        By how many units values are off at most that are rounded to a step; 0 of most objectives.
    floors : list of float
        Lower bounds of the objectives that the variables' bounds alone give, in units.
    constants : list of float
        Of the expressions: what is to be added to values, which exclude them.
    squares : list of Square
        Of quadratic objectives.
    precision : Precision
        What values in units can be told apart.

    Raises
    ------
    UnsupportedError
        A constraint is not linear, or an objective neither that nor convex and quadratic.
    UsageError
        A coefficient is not a number.
    InfeasibleInstanceError
        A constraint without variables does not hold.
    """

    def __init__(
        self,
        model: pyo.ConcreteModel,
        objectives: Sequence[Objective],
        expressions: Sequence[Any] | None = None,
        *,
        rounded: Collection[int] = (),
        most_units: float = MAX_UNITS,
    ):
        self.model = model
        if expressions is None:
            expressions = [getattr(model, o.name) for o in objectives]
        rows = read_rows(model, expressions, names_of(objectives))
        self.columns = rows.columns
        self._column = {id(variable): k for k, variable in enumerate(self.columns)}
        program = rows.program
        self.constants = rows.constants
        goals = unit_rows(objectives, rows.costs, program, rounded, most_units)
        self.objectives = tuple(goal.objective for goal in goals)
        self.units = np.array([goal.unit for goal in goals])
        self.rounding = np.array([goal.rounding for goal in goals])
        self._own_costs = rows.costs
        self.squares = rows.squares
        self._whole_rows = WholeRows.of(program)
        self._set_program(program, [goal.cost for goal in goals])
        self._real = np.flatnonzero(~self.program.integrality)
        self._other_rows = self._whole_rows.others(self._base)
        self._largest = float(np.abs(self._base.A.data).max(initial=0.0))
        self.floors = [
            _floor(cost, self.program.col_lower, self.program.col_upper) for cost in self.costs
        ]
        self.precision = self._precision()

    def _set_program(self, program: Program, costs: Sequence[sp.csr_matrix]) -> None:
        """Join the model's rows and a free row, or rows, for every objective."""
        self._base = self._whole_rows.with_exact_limits(program).with_visible_rows()
        program, self._chains = self._whole_rows.in_parts(self._base)
        growth = Growth(program)
        #: The row of every objective, or its chain.
        self._goals: list[int | Chain] = []
        for cost, objective in zip(costs, self.objectives, strict=True):
            terms = dict(zip(cost.indices.tolist(), cost.data.tolist(), strict=True))
            large = cost.data[program.integrality[cost.indices]]
            whole = objective.step is not None
            if needs_parts(large, whole=whole):
                chain = add_chain(growth, terms, program.integrality, whole=whole)
                self._goals.append(chain)
                self._chains.append(chain)
            else:
                self._goals.append(growth.row(terms))
        self.program = growth.program()
        self.costs = [np.zeros(self.program.shape[1]) for _ in costs]
        for dense, cost in zip(self.costs, costs, strict=True):
            dense[cost.indices] = cost.data

    @property
    def own_columns(self) -> int:
        """How many columns stand for the model; those behind carry between parts of rows."""
        return self._base.shape[1]

    @property
    def integrality(self) -> np.ndarray:
        """Which columns of the program are whole numbers."""
        return self.program.integrality

    @cached_property
    def curved(self) -> np.ndarray:
        """Which objectives are quadratic."""
        columns = [square.square for square in self.squares]
        return np.array([bool(cost[columns].any()) for cost in self.costs], dtype=bool)

    def _precision(self) -> Precision:
        whole = np.array([o.step is not None for o in self.objectives])
        absolute, relative = np.zeros(len(whole)), np.full(len(whole), 1e-15)
        curved = self.curved
        for k in np.flatnonzero(~whole).tolist():
            if curved[k]:
                weights = [self.costs[k][square.square] for square in self.squares]
                absolute[k] = _RESOLVED_SQUARES * max(weights)
                relative[k] = _RESOLVED_SQUARES
                continue
            goal = self._goals[k]
            row = self.program.A[goal if isinstance(goal, int) else goal.rows[0]]
            terms = self._terms(row.toarray().ravel())
            absolute[k] = _RESOLVED * max(1.0, terms[np.isfinite(terms)].max(initial=0.0))
            if not np.isfinite(terms).all():
                relative[k] = _RESOLVED
        return Precision(whole, absolute, relative)

    def _terms(self, cost: np.ndarray) -> np.ndarray:
        """Return how large each term of a cost can be; inf where its variable has no bound."""
        used = np.flatnonzero(cost)
        ends = np.abs((self.program.col_lower[used], self.program.col_upper[used]))
        return np.abs(cost[used]) * ends.max(axis=0, initial=0.0)

    def largest_terms(self, objective: int) -> tuple[float, float]:
        """Return how large the terms of real and of whole columns can be, as values."""
        cost, unit = self.costs[objective], float(self.units[objective])
        if self.curved[objective]:
            return math.inf, 0.0
        whole = self.integrality
        real, others = (self._terms(cost * chosen) for chosen in (~whole, whole))
        return float(real.max(initial=0.0)) * unit, float(others.max(initial=0.0)) * unit

    # -- questions ---------------------------------------------------------------------------------

    def levels(self, objective: int) -> int:
        """Return how many programs it takes to minimise an objective, one after the other."""
        goal = self._goals[objective]
        return 1 if isinstance(goal, int) else len(goal.rows)

    def within(
        self, objective: int, limits: Sequence[float], leading: Sequence[float] = ()
    ) -> Program:
        """Return the program that minimises one objective within limits on all, in units.

        Parameters
        ----------
        leading : sequence of float
            Of an objective of several `levels`: the optima of the programs before this one.
        """
        goal, upper = self._goals[objective], self._limited(limits)
        if isinstance(goal, int):
            return replace(self.program, c=self.costs[objective], row_upper=upper)
        row, uppers = goal.stage(leading)
        upper[list(goal.rows)] = uppers
        cost = self.program.A[row].toarray().ravel()
        return replace(self.program, c=cost, row_upper=upper)

    def is_whole(self, objective: int, leading: Sequence[float] = ()) -> bool:
        """Whether the optimum of `within` is a whole number."""
        return (
            self.objectives[objective].step is not None or len(leading) < self.levels(objective) - 1
        )

    def bound(self, objective: int, leading: Sequence[float], bound: float) -> float:
        """Return the bound of an objective that the bound of its program proves."""
        goal = self._goals[objective]
        return bound if isinstance(goal, int) else goal.value(leading, bound)

    def scale(self, weights: np.ndarray) -> float:
        """Return by what a weighted sum is divided: a solver's tolerances are absolute."""
        largest = float(np.abs(weights @ np.array(self.costs)).max(initial=0.0))
        return float(2.0 ** max(0, math.ceil(math.log2(max(1.0, largest / _DELICATE)))))

    def within_sum(self, weights: np.ndarray, limits: Sequence[float], scale: float) -> Program:
        """Return the program that minimises a weighted sum of the objectives within limits."""
        cost = weights @ np.array(self.costs) / scale
        return replace(self.program, c=cost, row_upper=self._limited(limits))

    def _limited(self, limits: Sequence[float]) -> np.ndarray:
        """Return the upper bounds of all rows, those of the objectives at their limits."""
        upper = self.program.row_upper.copy()
        slack = self._slack(np.array(limits))
        for k, (limit, goal) in enumerate(zip(limits, self._goals, strict=True)):
            more = limit + slack[k]
            if isinstance(goal, int):
                # Half a unit more is the same to whole numbers, and no rounding cuts a point off.
                upper[goal] = more + 0.5 * self.precision.whole[k]
            else:
                upper[list(goal.rows)] = goal.uppers(more)
        return upper

    def _slack(self, limits: np.ndarray) -> np.ndarray:
        """Return what limits have more, so that rounding cuts no point off.

        Tangents leave room by themselves, and little more of a square may be much of another goal.
        """
        return np.where(self.curved, 0.0, self.precision.asked * self.precision.of(limits))

    def start(self, program: Program, x: np.ndarray) -> np.ndarray:
        """Return a solution as one of a program of this model, which may have other limits."""
        return fill_carries(self._chains, program, x) if self._chains else x

    def gaps(self, objective: int) -> tuple[float, float]:
        """Return at what absolute and relative gap a real-valued objective counts as least."""
        precision = self.precision
        absolute, relative = (
            float(np.broadcast_to(share, precision.whole.shape)[objective]) / 2
            for share in (precision.absolute, precision.relative)
        )
        return absolute, relative

    @property
    def is_delicate(self) -> bool:
        """Whether a solver's own tolerance may hide a difference."""
        largest = max(float(np.abs(cost).max(initial=0.0)) for cost in self.costs)
        return self.has_real_columns or self._largest > _DELICATE or largest > _DELICATE

    # -- real columns ------------------------------------------------------------------------------

    @property
    def has_real_columns(self) -> bool:
        """Whether some columns are no whole numbers."""
        return len(self._real) > 0

    @property
    def has_real_terms(self) -> bool:
        """Whether an objective depends on a column that is no whole number."""
        return any((cost[self._real] != 0).any() for cost in self.costs)

    @property
    def real_costs(self) -> np.ndarray:
        """The objectives' costs of the real columns, shape (objectives, real columns)."""
        return np.array(self.costs)[:, self._real]

    def with_whole_fixed(self, x: np.ndarray, limits: Sequence[float], *, exact: bool) -> Program:
        """Return the linear program over the real columns where the whole ones are those of `x`.

        Parameters
        ----------
        exact : bool
            Limits have no slack.
        """
        real, base = self._real, self._base
        rows = base.A[:, real].tocsr()
        which = np.flatnonzero(np.diff(rows.indptr))
        fixed = np.where(self.program.integrality, x, 0.0)
        shift = (base.A @ fixed[: base.shape[1]])[which]
        upper = np.array(limits, dtype=float)
        slack = np.zeros(len(upper)) if exact else self._slack(upper)
        room = upper + slack - np.array(self.costs) @ fixed
        return Program(
            np.zeros(len(real)),
            sp.vstack([rows[which], sp.csr_matrix(self.real_costs)], format="csc"),
            np.concatenate((base.row_lower[which] - shift, np.full(len(room), -math.inf))),
            np.concatenate((base.row_upper[which] - shift, room + 0.5 * self.precision.whole)),
            base.col_lower[real],
            base.col_upper[real],
            np.zeros(len(real), dtype=bool),
        )

    def with_real(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return a solution with other values of the real columns."""
        x = x.copy()
        x[self._real] = values
        return x

    # -- solutions ---------------------------------------------------------------------------------

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        """Return the objectives of a solution as the model sees them, in units."""
        return tuple(float(cost @ x) for cost in self.costs)

    def in_units(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return values of the objectives, constants included, in units; not yet whole numbers."""
        units: np.ndarray = (np.asarray(values) - self.constants) / self.units
        return units

    def limits_in_units(self, most: np.ndarray) -> np.ndarray:
        """Return the largest values of the objectives in units, whole numbers of a step."""
        units = self.in_units(most)
        absolute, relative = _NEAR
        whole = np.floor(units + np.maximum(absolute, relative * np.abs(units))) + self.rounding
        return np.where(self.precision.whole & np.isfinite(units), whole, units)

    def true_value(self, objective: int, x: np.ndarray) -> float:
        """Return the value of an objective at a solution, neither rounded nor in units."""
        row = self._own_costs[objective]
        return math.fsum((row.data * x[row.indices]).tolist())

    def keeps_rows(self, x: np.ndarray) -> bool:
        """Whether a solution keeps the model's rows, but for the rounding of real terms."""
        base = self._base
        x = x[: base.shape[1]]
        return self._whole_rows.kept(x) and self._other_rows.broken(x) <= _BROKEN

    def completed(self, values: np.ndarray) -> np.ndarray | None:
        """Return the solution that has these values of the model's variables.

        None where they break a row.
        """
        count, base = len(values), self._base
        x = np.zeros(self.program.shape[1])
        x[:count] = values
        if base.shape[1] > count:  # the others follow from these
            lower, upper = base.col_lower.copy(), base.col_upper.copy()
            lower[:count] = upper[:count] = values
            outcome = solve(replace(base, col_lower=lower, col_upper=upper))
            if outcome.x is None:
                return None
            x[: base.shape[1]] = outcome.x
        x = lifted(self.squares, x)
        return x if self.keeps_rows(x) else None

    def load(self, x: np.ndarray) -> None:
        """Give the model's variables the values of a solution."""
        for variable, value in zip(self.columns, x.tolist(), strict=False):
            variable.set_value(value, skip_validation=True)

    def read(self) -> np.ndarray:
        """Return the values of the model's variables as a solution."""
        x = np.zeros(self.program.shape[1])
        x[: len(self.columns)] = [variable.value or 0.0 for variable in self.columns]
        return x

    def add(self, cuts: Sequence[Cut]) -> None:
        """Add rows that every plan of interest satisfies."""
        self.add_rows(
            ({self._column[id(v)]: value for v, value in cut.terms.items()}, cut.upper)
            for cut in cuts
        )

    def add_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows; each has arguments of `Growth.row`."""
        rows = list(rows)
        for name in ("program", "_base"):
            growth = Growth(getattr(self, name))
            for row in rows:
                growth.row(*row)
            setattr(self, name, growth.program())

    def grow(self, fill: Callable[[Growth], None]) -> None:
        """Add rows and whole columns to all questions; solutions are not checked against them."""
        growth = Growth(self.program)
        fill(growth)
        self.program = growth.program()
        more = self.program.shape[1] - len(self.costs[0])
        self.costs = [np.pad(cost, (0, more)) for cost in self.costs]

    def add_tangents(self, x: np.ndarray) -> bool:
        """Add tangents of the squares that a solution has too low; False where none matters."""
        low = too_low(self.squares, x)
        columns = [square.square for square in self.squares]
        missed = np.array([cost[columns] @ low for cost in self.costs])
        if (missed <= self.precision.of(np.array(self.values(x)))).all():
            return False
        used = np.flatnonzero(low > low.max() * _SHARE_OF_LOWEST).tolist()
        self.add_rows([tangent(self.squares[k], self.squares[k].length(x)) for k in used])
        return True


def _floor(cost: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    used = cost != 0
    ends = np.where(cost[used] > 0, lower[used], upper[used])
    return float(cost[used] @ ends) if used.any() else 0.0
