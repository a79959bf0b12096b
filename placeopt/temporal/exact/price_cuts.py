"""Cuts on cost from prices of demands: bounds whose work does not grow with the requests.

`placeopt.temporal.prices` has the bound for one pair of exchange rates. The prices of demands are
duals of a small program for each size of machine: cover a load of replica-slots by patterns that
fit it. Its patterns come from a knapsack, by column generation.
"""

from __future__ import annotations

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.goals import simplex
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.temporal.exact.numbers import Numbers
from placeopt.temporal.pools import pool_arrays
from placeopt.temporal.prices import DemandPrices

#: Parts of the lattice of exchange rates for one and for two other objectives: about 500 cuts.
PARTS = {1: 1, 2: 500, 3: 30}
#: Exchange rates at which prices are learnt, and rounds of play there and elsewhere.
LESSONS, LESSON_ROUNDS, ROUNDS = 12, 30, 12
#: Patterns are generated until prices are legal but for this share.
CLOSE = 1e-3
#: Rounds of column generation for one load.
MAX_ROUNDS = 100


class CoveringProgram:
    """Cover a load by patterns of one size of machine, at least cost; its duals are prices."""

    def __init__(self, prices: DemandPrices, size: int):
        import scipy.sparse as sp

        self._prices, self._size = prices, size
        knapsack = prices.sizes[size]
        self._used = np.flatnonzero((knapsack.limits > 0) & prices.demands.any(axis=1))
        alone = sp.diags(knapsack.limits[self._used].astype(float)).tocsc()
        count = len(self._used)
        zero, one = np.zeros(count), np.ones(count)
        self._session = Session(Program(one, alone, zero, zero + np.inf, zero, zero + np.inf, zero))
        self.solves = 0

    def learn(self, load: np.ndarray, budget: Budget) -> None:
        """Add the best prices for a load of replica-slots, shape (D,)."""
        import scipy.sparse as sp

        load = load[self._used]
        if not load.any():
            return
        # A little of everything: the prices of what is not there are to be right as well.
        self._session.change(row_lower=load / load.max() + 1e-6)
        prices = np.zeros(len(self._prices.demands))
        for _ in range(MAX_ROUNDS):
            outcome = self._session.solve(budget=budget)
            self.solves += 1
            if outcome.status != "optimal" or outcome.row_duals is None:
                return
            prices[self._used] = np.maximum(outcome.row_duals, 0.0)
            worth, counts = self._prices.sizes[self._size].best(
                np.where(prices > 0, prices, -1.0), np.zeros(len(prices))
            )
            if worth <= 1 + CLOSE:
                break
            self._session.add_columns(np.ones(1), sp.csc_matrix(counts[self._used][:, None]))
        self._prices.add(self._size, prices)


def price_cuts(numbers: Numbers, budget: Budget) -> tuple[np.ndarray, np.ndarray, int]:
    """Return cuts on cost from prices of demands.

    Returns
    -------
    cuts : ndarray, shape (k, 3)
        As of `placeopt.temporal.exact.staircase`, in whole-number units.
    high : ndarray of int64, shape (2,)
        Latency and interruption at the least cost: beyond them no cut rises.
    solves : int
        Linear programs solved.
    """
    prices = DemandPrices(pool_arrays(numbers.problem))
    counted = [0 in numbers.columns, 2 in numbers.columns]
    rates = [(float(a), float(b)) for a, b in exchange_rates(prices, counted)]
    cuts_usd, solves = _learn(prices, rates[:LESSONS], budget)
    for k, rate in enumerate(rates[LESSONS:], LESSONS):
        if budget.out_of_time:
            break
        budget.report(note=f"bound: prices {k + 1} of {len(rates)}")
        cuts_usd.append(_cut(prices, rate, ROUNDS))
    latency, cost, interruption = numbers.units
    cuts = np.array(cuts_usd) * np.array([1.0, 1 / latency, 1 / interruption]) * cost
    use = np.array(prices.use(prices.solve(0.0, 0.0, ROUNDS)))
    high = np.ceil(use * np.array([latency, interruption])).astype(np.int64)
    return cuts, high, solves


def _learn(
    prices: DemandPrices, rates: list[tuple[float, float]], budget: Budget
) -> tuple[list[list[float]], int]:
    """Add prices that are learnt at some exchange rates; return cuts and the number of solves."""
    sizes = range(0 if budget.out_of_time else len(prices.sizes))
    programs = [CoveringProgram(prices, size) for size in sizes]
    cuts: list[list[float]] = []
    for k, rate in enumerate(rates):
        if k and budget.out_of_time:
            break
        budget.report(note=f"bound: lesson {k + 1} of {len(rates)}")
        load = prices.solve(*rate, LESSON_ROUNDS).load
        for size, program in enumerate(programs):
            own = load[prices.size_of == size]
            program.learn(own.sum(axis=0), budget)
            program.learn(own[own.sum(axis=1).argmax()], budget)
        cuts.append(_cut(prices, rate, LESSON_ROUNDS))
    return cuts, sum(program.solves for program in programs)


def _cut(prices: DemandPrices, rate: tuple[float, float], rounds: int) -> list[float]:
    """Return the cut at exchange rates: the bound in USD, and the rates."""
    return [float(prices.solve(*rate, rounds).bound), *rate]


def exchange_rates(prices: DemandPrices, counted: list[bool]) -> np.ndarray:
    """Return what a ms of latency and a unit of interruption are worth in USD, shape (k, 2).

    The rates spread over the trade-off between cost and the others, those far from each other
    first; `counted` says which of the two are objectives.
    """
    cheap = prices.solve(0.0, 0.0, ROUNDS)
    least = np.array(prices.use(cheap))
    dear = 1e6 * max(cheap.bound, 1e-9) / np.maximum(least, 1e-9)
    best = prices.solve(dear[0], dear[1], ROUNDS)
    range_ = np.maximum(least - np.array(prices.use(best)), 0.0)
    spread = float((best.load.sum(axis=1) * prices.rate).sum()) + cheap.bound
    used = [0, *(1 + k for k in range(2) if counted[k])]
    lattice = simplex(PARTS[len(used)], len(used))
    weights = np.zeros((len(lattice), 3))
    weights[:, used] = lattice**2
    weights[:, 0] = np.maximum(weights[:, 0], 1e-6)
    per_range = spread / np.where(range_ > 0, range_, np.inf)
    rates = weights[:, 1:] / weights[:, :1] * per_range
    order = np.random.default_rng(0).permutation(len(rates))
    return np.concatenate((np.zeros((1, 2)), rates[order]))
