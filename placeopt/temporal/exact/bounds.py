"""The methods `bound` and `certify`: proven lower-bound sets for instances of any size."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.certificate import Bounds, graded
from placeopt.core.fronts.front import Front
from placeopt.core.goals import simplex
from placeopt.core.task import Task
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.temporal.arrays import PRICINGS
from placeopt.temporal.exact.front import Completion, relaxed_front, states_fit
from placeopt.temporal.exact.tables import Numbers, build_patterns, count_sets, numbers, staircase
from placeopt.temporal.pools import pool_arrays
from placeopt.temporal.problem import Temporal
from placeopt.temporal.search import plans_at, until_time
from placeopt.temporal.search.prices import DemandPrices, Knapsack

# -- the program of configurations -----------------------------------------------------------------

#: Patterns are generated until bound and value differ by at most this share.
_CLOSE = 1e-3
#: Rounds of column generation at one pair of limits.
_MAX_ROUNDS = 1000


@dataclass(frozen=True)
class _MachineType:
    """Machines of one size, place, price and frequency.

    `reserved` is the number among the reserved types, -1 if it is paid by the slot; `offer` is -1
    where it is not limited.
    """

    place: int
    size: int
    price: int
    frequency: int
    reserved: int
    offer: int


class CostCut(NamedTuple):
    """Every plan costs at least ``constant - latency * x - interruption * y``.

    x and y are its latency and interruption; all are in whole-number units.
    """

    constant: float
    latency: float
    interruption: float

    def at(self, latency: float, interruption: float) -> float:
        """Return the bound under limits."""
        return self.constant - self.latency * latency - self.interruption * interruption


class ConfigurationLP:
    """The program with the patterns generated so far.

    Attributes
    ----------
    cuts : list of CostCut
        What has been proven.
    solves : int
        Linear programs solved.
    used : ndarray, shape (2,)
        Latency and interruption of the last solution.
    """

    def __init__(self, numbers: Numbers):
        self.numbers, self.cuts = numbers, list[CostCut]()
        self.solves, self.used = 0, np.zeros(2)
        self.types, self._reserved = _types(numbers)
        replicas, durations = numbers.replicas, numbers.durations
        self._work = replicas * durations
        self.knapsacks = [Knapsack(numbers.demands, replicas, size) for size in numbers.sizes]
        self._latency = numbers.latency / self._work[:, None]
        self._interruption = numbers.share / durations
        self._limited = sorted({t.offer for t in self.types if t.offer >= 0})
        limits = [numbers.problem.offers[k].max_instances or 0 for k in self._limited]
        self._supply = numbers.horizon * np.array(limits, dtype=np.int64)
        self.limits = dict(zip(self._limited, self._supply.tolist(), strict=True))
        self._lay_rows()
        self._seen: set[tuple[int, bytes]] = set()
        self._session = Session(self._first_program())
        self._add(
            [
                (k, counts)
                for k, machine in enumerate(self.types)
                for counts in np.diag(self.most_alone(machine))
                if counts.any()
            ]
        )

    def most_alone(self, machine: _MachineType) -> np.ndarray:
        """Return how many replicas of each request fit a machine alone, shape (requests,).

        It is 0 where the machine cannot be reached.
        """
        return np.where(
            self.numbers.latency[:, machine.place] >= 0, self.knapsacks[machine.size].limits, 0
        )

    def _lay_rows(self) -> None:
        """Number the constraints.

        These are: requests, latency, interruption, time of reserved machines, requests on these,
        limited offers.
        """
        n, count = len(self.numbers.replicas), len(self._reserved)
        self._time_row = n + 2 + np.arange(count)
        self._once_row = np.full((count, n), -1)
        fits = np.array(
            [self.most_alone(machine) > 0 for machine in self._reserved], dtype=bool
        ).reshape(count, n)
        self._once_row[fits] = n + 2 + count + np.arange(fits.sum())
        first = n + 2 + count + int(fits.sum())
        self._limit_row = {offer: first + k for k, offer in enumerate(self._limited)}
        self._limit_rows = slice(first, first + len(self._limited))

    def _first_program(self) -> Program:
        """Return the program with the reserved machines alone.

        Two more variables exceed the limits on latency and interruption at a high price.
        """
        import scipy.sparse as sp

        numbers, n = self.numbers, len(self.numbers.replicas)
        rows = self._limit_rows.stop
        lower, upper = np.full(rows, -np.inf), np.zeros(rows)
        lower[:n], upper[:n] = self._work, np.inf
        upper[n : n + 2] = np.inf
        upper[self._limit_rows] = self._supply
        matrix = sp.lil_matrix((rows, len(self._reserved) + 2))
        for q, machine in enumerate(self._reserved):
            matrix[self._time_row[q], q] = -numbers.horizon
            used = self._once_row[q] >= 0
            matrix[self._once_row[q][used], q] = -numbers.durations[used]
            if machine.offer >= 0:
                matrix[self._limit_row[machine.offer], q] = numbers.horizon
        max_cost = float(self._work.sum()) * max(t.price for t in self.types) + 1.0
        spans = np.maximum([numbers.max_latency, numbers.max_interruption], 1)
        matrix[n, len(self._reserved)] = matrix[n + 1, len(self._reserved) + 1] = -1.0
        cost = [
            *(machine.price * numbers.horizon for machine in self._reserved),
            *(100 * max_cost / spans),
        ]
        zero = np.zeros(len(cost))
        return Program(
            np.array(cost), sp.csc_matrix(matrix), lower, upper, zero, zero + np.inf, zero
        )

    def _add(self, patterns: list[tuple[int, np.ndarray]]) -> int:
        """Add patterns that are new; return how many."""
        import scipy.sparse as sp

        new = [(k, counts) for k, counts in patterns if (k, counts.tobytes()) not in self._seen]
        if not new:
            return 0
        self._seen.update((k, counts.tobytes()) for k, counts in new)
        n = len(self.numbers.replicas)
        rows, columns = list[int](), list[int]()
        values, cost = list[float](), list[float]()
        for column, (k, counts) in enumerate(new):
            machine, used = self.types[k], np.flatnonzero(counts)
            entries = dict(zip(used.tolist(), counts[used].astype(float).tolist(), strict=True))
            entries[n] = float(counts[used] @ self._latency[used, machine.place])
            entries[n + 1] = float(counts[used] @ self._interruption[used]) * machine.frequency
            if machine.reserved >= 0:
                entries[int(self._time_row[machine.reserved])] = 1.0
                entries |= dict.fromkeys(self._once_row[machine.reserved, used].tolist(), 1.0)
            elif machine.offer >= 0:
                entries[self._limit_row[machine.offer]] = 1.0
            rows += entries.keys()
            values += entries.values()
            columns += [column] * len(entries)
            cost.append(0.0 if machine.reserved >= 0 else float(machine.price))
        shape = (self._session.program.shape[0], len(new))
        self._session.add_columns(
            np.array(cost), sp.csc_matrix((values, (rows, columns)), shape=shape)
        )
        return len(new)

    def solve(self, latency: float, interruption: float, budget: Budget) -> float | None:
        """Minimise cost under limits; the best cut at these limits joins `cuts`.

        Returns
        -------
        float or None
            The value of the program, at least its optimum; None where the budget ended, or the
            program has no solution.
        """
        n = len(self.numbers.replicas)
        upper = self._session.program.row_upper.copy()
        upper[n], upper[n + 1] = latency, interruption
        self._session.change(row_upper=upper)
        best: CostCut | None = None
        value = None
        for _ in range(_MAX_ROUNDS):
            if budget.out_of_time:
                break
            outcome = self._session.solve(budget=budget)
            self.solves += 1
            if outcome.status != "optimal" or outcome.row_duals is None or outcome.x is None:
                break
            value, self.used = outcome.objective, (self._session.program.A @ outcome.x)[n : n + 2]
            cut, patterns = self._price(outcome.row_duals)
            proven = cut.at(latency, interruption)
            if best is None or proven > best.at(latency, interruption):
                best = cut
            close = best.at(latency, interruption) >= value - _CLOSE * abs(value)
            if close or self._add(patterns) == 0:
                break
        if best is not None:
            self.cuts.append(best)
        return value

    def _price(self, duals: np.ndarray) -> tuple[CostCut, list[tuple[int, np.ndarray]]]:
        """Return the cut that duals prove once they are scaled, and lacking patterns.

        Duals are feasible if no pattern is worth more than it costs. Scaling all of them but those
        of the two limits by the largest ratio of worth to cost makes them feasible for every
        pattern there is, since it lowers the worth of every pattern at least as much.
        """
        n = len(self.numbers.replicas)
        per_latency, per_interruption = (max(0.0, -float(dual)) for dual in duals[n : n + 2])
        tolls = [
            per_latency * np.maximum(self._latency[:, t.place], 0)
            + per_interruption * t.frequency * self._interruption
            for t in self.types
        ]
        request = np.maximum(duals[:n], 0.0)
        for machine, toll in zip(self.types, tolls, strict=True):
            if machine.price == 0:  # what costs nothing is worth no more than its toll
                alone = self.most_alone(machine) > 0
                request = np.where(alone, np.minimum(request, toll), request)
        scale, patterns = 1.0, []
        for k, (machine, toll) in enumerate(zip(self.types, tolls, strict=True)):
            if machine.price == 0:
                continue
            worth = np.where(self.most_alone(machine) > 0, request - toll, -1.0)
            ratio, lacking, counts = self._best_pattern(machine, worth, np.maximum(-duals, 0.0))
            scale = max(scale, ratio)
            if lacking:
                patterns.append((k, counts))
        total = float(request @ self._work)
        total -= float(np.maximum(-duals[self._limit_rows], 0.0) @ self._supply)
        constant = total / scale if np.isfinite(scale) else 0.0
        return CostCut(constant, per_latency, per_interruption), patterns

    def _best_pattern(
        self, machine: _MachineType, worth: np.ndarray, dual: np.ndarray
    ) -> tuple[float, bool, np.ndarray]:
        """Return the best pattern of a type: worth over cost, whether it pays, its counts.

        Parameters
        ----------
        worth : ndarray, shape (requests,)
            Of a replica in a slot.
        dual : ndarray, shape (constraints,)
            Prices of the constraints with an upper bound.
        """
        knapsack, horizon, q = self.knapsacks[machine.size], self.numbers.horizon, machine.reserved
        fee = dual[self._limit_row[machine.offer]] if machine.offer >= 0 else 0.0
        if q < 0:
            best, counts = knapsack.best(worth, np.zeros(len(worth)))
            pays = best > (machine.price + fee) * (1 + 1e-7)
            return (best - fee) / machine.price, pays, counts
        setup = np.where(self._once_row[q] >= 0, dual[self._once_row[q]], 0.0)
        best, counts = knapsack.best(worth, setup)
        slot = dual[self._time_row[q]]
        setups = float(setup @ self.numbers.durations)
        whole = horizon * (max(slot, best) - fee) + setups
        pays = best > slot + 1e-7 * machine.price
        return whole / (machine.price * horizon), pays, counts


def _types(numbers: Numbers) -> tuple[list[_MachineType], list[_MachineType]]:
    """Return all machine types, and those of them that are reserved.

    A type is reserved where that is cheaper than by the slot, or the only way.
    """
    cheapest: dict[tuple[bool, int, int, int, int], int] = {}
    for lease in numbers.leases:
        offer = -1 if lease.limit is None else lease.offer
        key = (lease.reserved, lease.place, lease.size, lease.frequency, offer)
        cheapest[key] = min(cheapest.get(key, lease.price), lease.price)
    types, reserved = list[_MachineType](), list[_MachineType]()
    for (is_reserved, place, size, frequency, offer), price in sorted(cheapest.items()):
        if not is_reserved:
            types.append(_MachineType(place, size, price, frequency, -1, offer))
        elif price < cheapest.get((False, place, size, 0, offer), price + 1):
            number = len(reserved)
            reserved.append(_MachineType(place, size, price, frequency, number, offer))
    return types + reserved, reserved


# -- grids -----------------------------------------------------------------------------------------

#: Refinement ends where no rectangle can miss more than this share of the volume below the bound.
_FINE = 2e-4


class Grid:
    """Rectangles of limits, split where the program may be far above what is proven.

    The value of the program is convex in the limits. Over a rectangle it lies between the cuts and
    the mean of its corners. So the difference of these in the middle, times the area, says how much
    volume the bound may miss.

    Parameters
    ----------
    program : ConfigurationLP
    low : ndarray, shape (2,)
        Least latency and interruption.
    budget : Budget

    Attributes
    ----------
    low, high : ndarray of int64, shape (2,)
        Range of the limits.
    """

    def __init__(self, program: ConfigurationLP, low: np.ndarray, budget: Budget):
        self._program, self._budget = program, budget
        self._value: dict[tuple[int, int], float] = {}
        numbers = program.numbers
        self.low = np.asarray(low, dtype=np.int64)
        self.high = np.maximum((numbers.max_latency, numbers.max_interruption), self.low)
        self._heap: list[tuple[float, tuple[int, int, int, int]]] = []
        if self._solve(*self.high) is not None:
            # Beyond what the cheapest solution needs nothing changes.
            self.high = np.clip(np.ceil(program.used), self.low, self.high).astype(np.int64)
            self._push(self.low[0], self.high[0], self.low[1], self.high[1])

    def refine(self, cells: int) -> None:
        """Solve the program at no more than about `cells` more limits."""
        limit = len(self._value) + cells
        while self._heap and len(self._value) < limit and not self._budget.out_of_time:
            score, (a, b, c, d) = heapq.heappop(self._heap)
            stake = self._stake(a, b, c, d)
            if stake <= 0:  # by rounding: nothing can be missed here, and asking would not end
                continue
            if stake < -0.7 * score:  # cuts that were found meanwhile hold here
                heapq.heappush(self._heap, (-stake, (a, b, c, d)))
                continue
            if stake <= _FINE * self._volume():
                return
            self._budget.report(f"bound: {len(self._value)} limits")
            across = self._bend((a, c), (b, c), (a, d), (b, d)) if b - a > 1 else -math.inf
            along = self._bend((a, c), (a, d), (b, c), (b, d)) if d - c > 1 else -math.inf
            middle = ((a + b) // 2, (c + d) // 2)
            halves = (
                ((a, middle[0], c, d), (middle[0], b, c, d))
                if across >= along
                else ((a, b, c, middle[1]), (a, b, middle[1], d))
            )
            for half in halves:
                self._push(*half)

    def _volume(self) -> float:
        return float(np.prod(np.maximum(self.high - self.low, 1).astype(float))) * max(
            *self._value.values(), 1.0
        )

    def _solve(self, latency: int, interruption: int) -> float | None:
        """Return the value of the program, None where it has none."""
        key = (int(latency), int(interruption))
        if key not in self._value:
            value = self._program.solve(*key, self._budget)
            if value is None:
                return None
            self._value[key] = value
        return self._value[key]

    def _push(self, a: int, b: int, c: int, d: int) -> None:
        """Keep a rectangle [a, b] x [c, d] that can be split and whose corners have values."""
        corners = [self._solve(x, y) for x in (a, b) for y in (c, d)]
        if None not in corners and (b - a > 1 or d - c > 1):
            heapq.heappush(self._heap, (-self._stake(a, b, c, d), (int(a), int(b), int(c), int(d))))

    def _proven(self, latency: float, interruption: float) -> float:
        return max((cut.at(latency, interruption) for cut in self._program.cuts), default=0.0)

    def _stake(self, a: int, b: int, c: int, d: int) -> float:
        """Return the volume that the bound may miss in a rectangle."""
        mean = sum(self._value[x, y] for x in (a, b) for y in (c, d)) / 4
        return (mean - self._proven((a + b) / 2, (c + d) / 2)) * max(b - a, 1) * max(d - c, 1)

    def _bend(self, *ends: tuple[int, int]) -> float:
        """Return how far the cuts lie below the middles of two edges, given by their ends."""
        total = 0.0
        for (a, c), (b, d) in (ends[:2], ends[2:]):
            total += (self._value[a, c] + self._value[b, d]) / 2 - self._proven(
                (a + b) / 2, (c + d) / 2
            )
        return total


# -- cuts by prices --------------------------------------------------------------------------------

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
        As of `placeopt.temporal.exact.tables`, in whole-number units.
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


# -- bounds ----------------------------------------------------------------------------------------

#: Sets of replicas up to which a certificate tries the relaxed front before the linear program.
_MAX_SETS = 3_000
#: Share of a certificate's seconds for the bounds; then points are compared with them.
_BOUND_SHARE = 0.75
#: Limits where no clock ends the work, lines of a certificate and of a bound alone, and the share
#: of the latter's seconds before plans are built.
_CELLS, _LINES, _MORE_LINES, _PLANS_AFTER = 120, 96, 200, 0.9
#: Requests up to which the configuration program is solved too; it grows with them.
_MAX_PROGRAM = 100

Lines = Annotated[
    int,
    Field(
        ge=2,
        le=1000,
        description="Lines of the bound set in latency and in interruption; it has about "
        "lines ** 2 vectors.",
    ),
]


def lower_bounds(
    numbers: Numbers,
    budget: Budget,
    cells: int | None = None,
    lines: int = _LINES,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a lower-bound set in whole numbers, shape (k, 3).

    It comes from prices of demands and, for few requests, from the configuration program, which
    prices every request apart. The cuts, shape (c, 3), and the number of linear programs solved are
    returned too. There are none where cost is no objective. Without `cells` the program is solved
    at 120 limits, or for as long as there is time.
    """
    if cells is None:
        cells = _CELLS if budget.seconds_limit is None else sys.maxsize
    low = least_values(numbers)
    if all(lease.price == 0 for lease in numbers.leases):
        return low[None, :], np.empty((0, 3)), 0
    cuts, high, solves = price_cuts(numbers, budget)
    if len(numbers.replicas) <= _MAX_PROGRAM:
        program = ConfigurationLP(numbers)
        grid = Grid(program, low[[0, 2]], budget)
        grid.refine(cells)
        cuts = np.concatenate((cuts, np.array(program.cuts).reshape(-1, 3)))
        high = np.maximum(high, grid.high)
        solves += program.solves
    bounds = staircase(cuts, low[[0, 2]], np.maximum(high, low[[0, 2]]), lines)
    return np.maximum(bounds, low), cuts, solves


def least_values(numbers: Numbers) -> np.ndarray:
    """Return lower bounds on each objective alone, shape (3,).

    Latency and interruption are the sums of the least values of each request; cost is 0.
    """
    usable = numbers.problem.arrays.usable
    places = np.array([numbers.places.index(offer.location) for offer in numbers.problem.offers])
    latency = np.where(usable, numbers.latency[:, places], 2**60).min(axis=1).sum()
    frequency = np.full(usable.shape, 2**60)
    for lease in numbers.leases:
        frequency[:, lease.offer] = np.minimum(frequency[:, lease.offer], lease.frequency)
    interruption = (
        np.where(usable, frequency, 2**60).min(axis=1) * numbers.share * numbers.replicas
    ).sum()
    return np.array([latency, 0, interruption], dtype=np.int64)


def least_alone(problem: Temporal) -> np.ndarray:
    """Return lower bounds on latency, cost and interruption alone, shape (3,), of any numbers.

    Each request pays its nearest place and its safest price. What a replica takes of a machine for
    a slot costs at least the same share of its price, where that is least.
    """
    a, leases = problem.arrays, list[tuple[int, float, float]]()
    for k, offer in enumerate(problem.offers):
        for pricing in PRICINGS:
            if offer.price(pricing) is not None and offer.max_instances != 0:
                lost = a.frequencies[k] if pricing == "spot" else 0
                leases.append((k, a.slot_costs[k, pricing] / a.cost_scale, float(lost)))
    own = np.array([lease[0] for lease in leases])
    price, rates = np.array([lease[1:] for lease in leases]).T
    usable = a.usable[:, own]
    taken = (a.demands[:, None] / np.maximum(1, a.capacities[own])).max(axis=2)
    cost = np.where(usable, taken * price, np.inf).min(axis=1) * a.replicas * a.durations
    latency = np.where(a.usable, a.latencies, np.inf).min(axis=1)
    rate = np.where(usable, rates, np.inf).min(axis=1)
    rate /= a.interruption_scale // a.replica_shares
    return np.array([latency.mean(), cost.sum(), rate.mean()]) * (1 - 1e-9)


def bound(
    task: Task[Temporal],
    *,
    cells: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="Limits on latency and interruption at which the configuration program "
            "is solved, chosen where the bound is loose; 120 by default, with a time limit as many "
            "as there is time for.",
        ),
    ] = None,
    lines: Lines = _MORE_LINES,
) -> Front:
    """Return a proven lower-bound set, and plans built greedily at the dual prices that prove it.

    Nothing is random, and ``task.start`` is not used.

    Raises
    ------
    UnsupportedError
        Not a temporal instance, or numbers too wide for exact sums.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    data = numbers(task.problem, task.objectives)
    budget = task.budget.share(_PLANS_AFTER)
    result, cuts, solves = lower_bounds(data, budget, cells, lines)
    bounds = data.values(result)
    prices = cuts[:, 1:] * (np.array([data.units[0], data.units[2]]) / data.units[1])
    plans = plans_at(
        data.problem, task.objectives, prices[: 2 if task.budget.out_of_time else None]
    )
    front = task.front(
        until_time(plans, task.budget),
        method="bound",
        bounds=bounds.tolist(),
        solver_calls=solves,
        completed=not budget.out_of_time,
        parameters={"cells": cells, "lines": lines},
        libraries=["highspy"],
    )
    return graded(front, "cost_usd")


def bounds(problem: Temporal, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the least value of each objective alone, then bounds of their trade-offs.

    Those of a small instance are the front of the relaxed problem; those of others come from
    programs (`lower_bounds`).

    Raises
    ------
    UnsupportedError
        Numbers too wide for exact sums.
    """
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    yield Bounds(least_alone(problem)[None, problem.columns(front.objectives)])
    data = numbers(problem, front.objectives)
    if not data.limited and count_sets(data.replicas) <= _MAX_SETS:
        relaxed = _relaxed_values(data, front, budget)
        if relaxed is not None:
            yield Bounds(data.values(relaxed), facts={"bounds": "bin-plans"})
            return
    result, _, solves = lower_bounds(data, budget.share(_BOUND_SHARE))
    ended = not budget.out_of_time
    yield Bounds(data.values(result), solves, ended, (), ["highspy"], {"bounds": "bound"})


def _relaxed_values(data: Numbers, front: Front, budget: Budget) -> np.ndarray | None:
    """Return the front of the relaxed problem, None where it is out of reach."""
    patterns = build_patterns(data)
    if not states_fit(patterns):
        return None
    known = data.all_whole(point.plan for point in front.points)
    relaxed = relaxed_front(patterns, Completion(patterns), budget, known)
    return relaxed.values if relaxed.complete else None
