"""Cuts on cost from whole replicas on whole machines: rows of work for each kind of machine.

The configuration program cuts replicas and machines into parts. Its duals say for each kind of
machine how much of it replicas need at least: *rows* ``amount >= sum of rate_i * replicas_i``, the
amount being slots that are paid or machines that are reserved. Here replicas and amounts are whole,
a request pays its largest latency, and HiGHS bounds the cost at exchange rates of the other two
goals. More rows come from covering the work of its solutions. Any rows give a bound.
``models/temporal/bin_plans.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import SolverError
from placeopt.core.weights import simplex
from placeopt.exact.program import Growth, Program
from placeopt.exact.solvers import Session, solve
from placeopt.temporal.exact.configuration_lp import ConfigurationLP, CostCut
from placeopt.temporal.exact.staircase import least_cost
from placeopt.temporal.knapsack import Knapsack

#: Rates below the first are left out, as HiGHS does not see them; others are rounded down.
_LEAST_RATE, _SAFETY = 1e-7, 1 - 1e-9
#: Solutions of one cut that rows are sought for, and the least share by which one is violated.
_ROUNDS, _VIOLATED = 6, 1e-4
#: How close HiGHS comes to its optimum, and nodes of its tree at most: no clock ends it.
_CLOSE, _TREE_NODES = 2e-3, 300
#: A value of HiGHS may be off by this share.
_TOLERANCE = 1e-6
#: Rounds of column generation for the rates of one load; all work has this much of it.
_MAX_ROUNDS, _LITTLE = 50, 1e-4
#: Parts of the lattices of weights.
_PARTS = (3, 6, 12, 24)


class _WorkCover:
    """The least amount of machines of one size, by the slot or reserved, that does some work."""

    def __init__(self, knapsack: Knapsack, durations: np.ndarray, horizon: int | None):
        import scipy.sparse as sp

        n = len(durations)
        self._knapsack, self._durations, self._horizon = knapsack, durations, horizon
        self._once = np.flatnonzero(knapsack.limits > 0)
        alone = np.diag(knapsack.limits)[self._once]
        rows = n if horizon is None else n + 1 + len(self._once)
        free = np.full(rows, np.inf)
        upper = np.concatenate((np.full(n, np.inf), np.zeros(rows - n)))
        first = sp.csc_matrix((rows, 0))
        if horizon is not None:
            column = np.concatenate((np.zeros(n), [-horizon], -durations[self._once]))
            first = sp.csc_matrix(column[:, None])
        zero = np.zeros(first.shape[1])
        program = Program(zero + 1, first, -free, upper, zero, zero + np.inf, zero)
        self._session = Session(program)
        self._add(alone)

    def _add(self, counts: np.ndarray) -> None:
        """Add patterns, shape (k, requests)."""
        import scipy.sparse as sp

        parts = [counts.T]
        if self._horizon is not None:
            parts += [np.ones((1, len(counts))), counts.T[self._once] > 0]
        cost = np.ones(len(counts)) if self._horizon is None else np.zeros(len(counts))
        self._session.add_columns(cost, sp.csc_matrix(np.vstack(parts).astype(float)))

    def rates(self, replicas: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the rates that say most of `replicas`, shape (requests,); zeros without time."""
        n, best, kept = len(replicas), 0.0, np.zeros(len(replicas))
        lower = np.full(self._session.program.shape[0], -np.inf)
        lower[:n] = np.where(self._knapsack.limits > 0, (replicas + _LITTLE) * self._durations, 0.0)
        self._session.change(row_lower=lower)
        for _ in range(_MAX_ROUNDS):
            outcome = self._session.solve(budget=budget)
            if outcome.status != "optimal" or outcome.row_duals is None:
                break
            rates, counts, lacking = self._legal(outcome.row_duals)
            if rates @ replicas > best:
                best, kept = float(rates @ replicas), rates
            if not lacking or best >= outcome.objective * (1 - 1e-3):
                break
            self._add(counts[None])
        return kept

    def _legal(self, duals: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rates that hold for all patterns, and the pattern that the program lacks."""
        n = len(self._durations)
        worth = np.where(self._knapsack.limits > 0, np.maximum(duals[:n], 0.0), -1.0)
        setup = np.zeros(n)
        if self._horizon is None:
            slot = 1.0
        else:
            slot = max(-float(duals[n]), 0.0)
            setup[self._once] = np.maximum(-duals[n + 1 :], 0.0)
        most, counts = self._knapsack.best(worth, setup)
        amount = most if self._horizon is None else self._horizon * most + setup @ self._durations
        rates = np.maximum(worth, 0.0) * self._durations / max(amount, 1e-12)
        rates[rates < _LEAST_RATE] = 0.0
        return rates, counts, most > slot * (1 + 1e-7)


class WholeMachines:
    """Whole replicas on whole machines of each kind.

    Parameters
    ----------
    program : ConfigurationLP
        Solved at some limits: its cuts are those that can be raised.
    """

    def __init__(self, program: ConfigurationLP):
        self._source, self._numbers = program, program.numbers
        self._covers: dict[tuple[int, bool], _WorkCover] = {}
        self._rows: list[tuple[int, np.ndarray]] = []
        self._lay_columns()

    def _lay_columns(self) -> None:
        """Lay the columns of replicas, amounts and latencies, and the rows that always hold."""
        import scipy.sparse as sp

        numbers, types = self._numbers, self._source.types
        n, count = len(numbers.replicas), len(types)
        self._able = np.array([self._source.most_alone(t) > 0 for t in types]).reshape(count, n).T
        self._x = np.full((n, count), -1)
        self._x[self._able] = np.arange(self._able.sum())
        ends = [*np.repeat(numbers.replicas, self._able.sum(axis=1)), *[np.inf] * count]
        self._amount = np.arange(count) + int(self._able.sum())
        zero, none = np.zeros(len(ends)), np.zeros(0)
        matrix = sp.csc_matrix((0, len(ends)))
        growth = Growth(Program(zero, matrix, none, none, zero, np.array(ends), zero + 1))
        for i, replicas in enumerate(numbers.replicas.tolist()):
            growth.row(dict.fromkeys(self._x[i, self._able[i]].tolist(), 1.0), lower=replicas)
        self._steps: dict[int, int] = {}
        for i in np.flatnonzero(numbers.replicas > 1).tolist():
            self._add_levels(growth, i)
        self._add_limits(growth)
        self._program = growth.program()

    def _add_levels(self, growth: Growth, i: int) -> None:
        """Add for each latency of a request whether it has replicas so far away or farther."""
        latency, places = self._numbers.latency[i], [t.place for t in self._source.types]
        levels = np.unique(latency[latency >= 0])
        for level, step in zip(levels.tolist(), np.diff(levels, prepend=0).tolist(), strict=True):
            far = self._x[i, self._able[i] & (latency[places] >= level)].tolist()
            if far:
                reached = growth.column(0.0, 1.0, whole=True)
                self._steps[reached] = step
                most = float(self._numbers.replicas[i])
                growth.row({**dict.fromkeys(far, 1.0), reached: -most}, upper=0.0)

    def _add_limits(self, growth: Growth) -> None:
        """Add that offers with a limit have so many machines: a slot is a part of one."""
        for offer, slots in self._source.limits.items():
            own = [q for q, t in enumerate(self._source.types) if t.offer == offer]
            horizon = float(self._numbers.horizon)
            terms = {
                int(self._amount[q]): 1.0 if self._source.types[q].reserved < 0 else horizon
                for q in own
            }
            growth.row(terms, upper=float(slots))

    def cut(self, linear: CostCut, rows: np.ndarray, budget: Budget) -> CostCut:
        """Return a cut at the exchange rates of `linear`, with a constant that is no lower.

        Parameters
        ----------
        linear : CostCut
            The cut that the configuration program proves.
        rows : ndarray, shape (types, requests)
            Its rates: what a replica needs of each type. Rates of earlier cuts are used too.
        """
        scale = max(linear.constant, 1.0)
        costs = self._costs(linear) / scale
        rows = np.where(rows < _LEAST_RATE, 0.0, rows)
        own = [(q, rates) for q, rates in enumerate(rows) if rates.any()]
        best = linear.constant
        for _ in range(_ROUNDS):
            try:
                outcome = solve(
                    self._with_rows(costs, own + self._rows),
                    budget=budget,
                    relative_gap=_CLOSE,
                    options={"mip_max_nodes": _TREE_NODES},
                )
            except SolverError:  # what is proven stays
                break
            self._source.solves += 1
            best = max(best, outcome.bound * scale * (1 - _TOLERANCE))
            if outcome.x is None or not self._learn(outcome.x, budget):
                break
        return linear._replace(constant=best)

    def _costs(self, rates: CostCut) -> np.ndarray:
        """Return the costs of columns at exchange rates."""
        numbers, types = self._numbers, self._source.types
        costs = np.zeros(self._program.shape[1])
        for q, machine in enumerate(types):
            able = self._able[:, q]
            far = np.where(numbers.replicas == 1, numbers.latency[:, machine.place], 0)
            toll = rates.latency * far + rates.interruption * machine.frequency * numbers.share
            costs[self._x[able, q]] = toll[able]
            slots = numbers.horizon if machine.reserved >= 0 else 1
            costs[self._amount[q]] = machine.price * slots
        for column, step in self._steps.items():
            costs[column] = rates.latency * step
        return costs

    def _with_rows(self, costs: np.ndarray, rows: list[tuple[int, np.ndarray]]) -> Program:
        """Return the program with rows of work."""
        growth = Growth(replace(self._program, c=costs))
        for q, rates in rows:
            used = self._able[:, q] & (rates > 0)
            terms = dict(
                zip(self._x[used, q].tolist(), (rates[used] * _SAFETY).tolist(), strict=True)
            )
            growth.row({**terms, int(self._amount[q]): -1.0}, upper=0.0)
        return growth.program()

    def _learn(self, x: np.ndarray, budget: Budget) -> bool:
        """Add rows that a solution breaks; return whether there are any."""
        before = len(self._rows)
        for q, machine in enumerate(self._source.types):
            replicas = np.where(self._able[:, q], x[self._x[:, q]], 0.0)
            if machine.price == 0 or not replicas.any():
                continue
            amount = x[self._amount[q]] * (1 + _VIOLATED)
            key = machine.size, machine.reserved >= 0
            rates = self._cover(*key).rates(replicas, budget)
            if rates @ replicas > amount:
                self._rows.append((q, rates))
        return len(self._rows) > before

    def _cover(self, size: int, reserved: bool) -> _WorkCover:
        """Return what covers work by machines of a size."""
        if (size, reserved) not in self._covers:
            horizon = self._numbers.horizon if reserved else None
            self._covers[size, reserved] = _WorkCover(
                self._source.knapsacks[size], self._numbers.durations, horizon
            )
        return self._covers[size, reserved]


def raised(
    program: ConfigurationLP, cuts: np.ndarray, ends: np.ndarray, budget: Budget
) -> np.ndarray:
    """Return cuts and more of them, by whole replicas and machines, until the budget ends.

    Their exchange rates are spread over the trade-off, from coarse lattices to fine ones.

    Parameters
    ----------
    program : ConfigurationLP
        Its `solves` counts what is solved here.
    cuts : ndarray, shape (k, 3)
        Those that are proven.
    ends : ndarray, shape (2, 2)
        Least and greatest latency and interruption.
    """
    whole, more = WholeMachines(program), list[CostCut]()
    for rates in _spread(cuts, ends):
        if budget.out_of_time:
            break
        budget.report(note=f"bound: whole machines, cut {len(more) + 1}")
        if program.solve_at(*rates, budget) is None:
            break
        linear = CostCut(program.cuts[-1].constant, *rates)
        more += [program.cuts[-1], whole.cut(linear, program.rates[-1], budget)]
    return np.concatenate((cuts, np.array(more).reshape(-1, 3)))


def _spread(cuts: np.ndarray, ends: np.ndarray) -> Iterator[tuple[float, float]]:
    """Yield exchange rates, from coarse lattices of weights to fine ones."""
    wide = np.maximum(np.diff(ends, axis=0).ravel().astype(float), 0.0)
    corners = np.array(np.meshgrid(*ends.T)).reshape(2, -1)
    costs = least_cost(cuts, *corners)
    per_range = np.divide(np.ptp(costs), wide, out=np.zeros(2), where=wide > 0)
    seen = set[tuple[float, float]]()
    for parts in _PARTS:
        for weights in simplex(parts, 3):
            if weights[1] == 0:
                continue
            rates = tuple((weights[[0, 2]] / weights[1] * per_range).tolist())
            if rates not in seen:
                seen.add(rates)
                yield rates
