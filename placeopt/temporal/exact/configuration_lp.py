"""A linear program over patterns that run at once, solved by column generation.

It bounds instances of any size. Variables: for how many slots a pattern of replicas runs on
machines of a type, and how many machines are reserved. Constraints: every request gets replicas x
duration replica-slots; limits on latency and interruption; a reserved machine runs for at most the
horizon, and a request for at most its duration on each. The last one makes it useless to reserve a
part of a machine. Relaxed is that replicas run without interruption and start together, that
machines paid by the slot are whole, and that a request pays its largest latency, not the mean.
``models/temporal/bin_plans.md`` proves that the bound is valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.temporal.exact.numbers import Numbers
from placeopt.temporal.knapsack import Knapsack

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
