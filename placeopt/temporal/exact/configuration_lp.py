"""A linear program over what runs at once on a machine, solved by column generation: bounds for instances of any size.

Variables: for how many slots a pattern of replicas runs on machines of a type, and how many machines are reserved. Rows: every
request gets replicas x duration replica-slots; limits on latency and interruption; a reserved machine runs for at most the
horizon, and a request for at most its duration on each (the row that makes reserving a part of a machine useless). What is
left out is that replicas run without interruption and start together, that machines paid by the slot are whole, and that a request
pays its largest latency, not the mean. ``models/temporal/bin_plans.md`` proves that the bound is valid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from placeopt.core.budget import Budget
from placeopt.exact.solvers import Program, Session
from placeopt.temporal.exact.knapsack import Knapsack
from placeopt.temporal.exact.numbers import Numbers

#: Columns are generated until bound and value differ by at most this share.
_CLOSE = 1e-3
#: Rounds of column generation for one question.
_ROUNDS = 1000


@dataclass(frozen=True)
class _Type:
    """A kind of machine; `reserved` is its place among the reserved ones, -1 if it is paid by the slot."""

    place: int
    size: int
    price: int
    frequency: int
    reserved: int
    offer: int


@dataclass(frozen=True)
class Cut:
    """Every plan costs at least ``constant - latency * its latency - interruption * its interruption``; whole-number units."""

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
    cuts : list of Cut
        What has been proven.
    solves : int
        Linear programs solved.
    used : ndarray, shape (2,)
        Latency and interruption of the last solution.
    """

    def __init__(self, numbers: Numbers):
        self.numbers, self.cuts, self.solves, self.used = numbers, list[Cut](), 0, np.zeros(2)
        self._types, self._reserved = _types(numbers)
        replicas, durations = numbers.replicas, numbers.durations
        self._knapsacks = [Knapsack(numbers.demands, replicas, size) for size in numbers.sizes]
        self._latency = numbers.latency / (replicas * durations)[:, None]
        self._interruption = numbers.share / durations
        self._limited = sorted({t.offer for t in self._types if t.offer >= 0})
        self._lay_rows()
        self._seen: set[tuple[int, bytes]] = set()
        self._session = Session(self._first_program())
        singles = []
        for k, machine in enumerate(self._types):
            for i in range(len(replicas)):
                if (most := self._most(machine)[i]) > 0:
                    counts = np.zeros(len(replicas), dtype=np.int64)
                    counts[i] = most
                    singles.append((k, counts))
        self._add(singles)

    # -- rows and columns ----------------------------------------------------------------------------------------

    def _most(self, machine: _Type) -> np.ndarray:
        """Return how many replicas of each request fit a machine alone, 0 where it cannot be reached."""
        return np.where(
            self.numbers.latency[:, machine.place] >= 0, self._knapsacks[machine.size].most, 0
        )

    def _lay_rows(self) -> None:
        """Number the rows: requests, latency, interruption, time of reserved machines, requests on these, limited offers."""
        n, count = len(self.numbers.replicas), len(self._reserved)
        self._time_row = n + 2 + np.arange(count)
        self._once_row = np.full((count, n), -1)
        fits = np.array(
            [self._most(machine) > 0 for machine in self._reserved], dtype=bool
        ).reshape(count, n)
        self._once_row[fits] = n + 2 + count + np.arange(fits.sum())
        self._limit_row = n + 2 + count + int(fits.sum()) + np.arange(len(self._limited))

    def _first_program(self) -> Program:
        """Return the program with the reserved machines, and a way to break the two limits at a price."""
        numbers, n = self.numbers, len(self.numbers.replicas)
        rows = n + 2 + len(self._reserved) + int((self._once_row >= 0).sum()) + len(self._limited)
        lower, upper = np.full(rows, -np.inf), np.zeros(rows)
        lower[:n], upper[:n] = numbers.replicas * numbers.durations, np.inf
        upper[n : n + 2] = np.inf
        upper[self._limit_row] = [
            numbers.horizon * (numbers.problem.offers[j].max_instances or 0) for j in self._limited
        ]
        matrix = sp.lil_matrix((rows, len(self._reserved) + 2))
        for q, machine in enumerate(self._reserved):
            matrix[self._time_row[q], q] = -numbers.horizon
            used = self._once_row[q] >= 0
            matrix[self._once_row[q][used], q] = -numbers.durations[used]
            if machine.offer >= 0:
                matrix[self._limit_row[self._limited.index(machine.offer)], q] = numbers.horizon
        dearest = (
            float((numbers.replicas * numbers.durations).sum()) * max(t.price for t in self._types)
            + 1.0
        )
        spans = np.maximum(
            [
                numbers.latency.max(axis=1).sum(),
                numbers.share @ numbers.replicas * max(t.frequency for t in self._types),
            ],
            1,
        )
        matrix[n, len(self._reserved)] = matrix[n + 1, len(self._reserved) + 1] = -1.0
        cost = [
            *(machine.price * numbers.horizon for machine in self._reserved),
            *(100 * dearest / spans),
        ]
        zero = np.zeros(len(cost))
        return Program(
            np.array(cost), sp.csc_matrix(matrix), lower, upper, zero, zero + np.inf, zero
        )

    def _add(self, patterns: list[tuple[int, np.ndarray]]) -> int:
        """Add patterns that are new; return how many."""
        new = [(k, counts) for k, counts in patterns if (k, counts.tobytes()) not in self._seen]
        if not new:
            return 0
        self._seen.update((k, counts.tobytes()) for k, counts in new)
        n, rows, columns, values, cost = (
            len(self.numbers.replicas),
            list[int](),
            list[int](),
            list[float](),
            list[float](),
        )
        for column, (k, counts) in enumerate(new):
            machine, used = self._types[k], np.flatnonzero(counts)
            entries = dict(zip(used.tolist(), counts[used].astype(float).tolist(), strict=True))
            entries[n] = float(counts[used] @ self._latency[used, machine.place])
            entries[n + 1] = float(counts[used] @ self._interruption[used]) * machine.frequency
            if machine.reserved >= 0:
                entries[int(self._time_row[machine.reserved])] = 1.0
                entries |= dict.fromkeys(self._once_row[machine.reserved, used].tolist(), 1.0)
            elif machine.offer >= 0:
                entries[int(self._limit_row[self._limited.index(machine.offer)])] = 1.0
            rows += entries.keys()
            values += entries.values()
            columns += [column] * len(entries)
            cost.append(0.0 if machine.reserved >= 0 else float(machine.price))
        self._session.add_columns(
            np.array(cost),
            sp.csc_matrix(
                (values, (rows, columns)), shape=(self._session.program.shape[0], len(new))
            ),
        )
        return len(new)

    # -- solving ----------------------------------------------------------------------------------------------------

    def solve(self, latency: float, interruption: float, budget: Budget) -> float | None:
        """Minimise cost under limits; the cut that proves the bound best at these limits joins `cuts`.

        Returns
        -------
        float or None
            The value of the program, at least its optimum; None where the budget ended, or the program has no solution.
        """
        n = len(self.numbers.replicas)
        upper = self._session.program.row_upper.copy()
        upper[n], upper[n + 1] = latency, interruption
        self._session.change(row_upper=upper)
        best: Cut | None = None
        value = None
        for _ in range(_ROUNDS):
            if budget.out_of_time:
                break
            outcome = self._session.solve(budget=budget)
            self.solves += 1
            if outcome.status != "optimal" or outcome.row_duals is None or outcome.x is None:
                break
            value, self.used = outcome.objective, (self._session.program.A @ outcome.x)[n : n + 2]
            cut, patterns = self._price(outcome.row_duals)
            if cut is not None and (
                best is None or cut.at(latency, interruption) > best.at(latency, interruption)
            ):
                best = cut
            close = best is not None and best.at(latency, interruption) >= value - _CLOSE * abs(
                value
            )
            if close or self._add(patterns) == 0:
                break
        if best is not None:
            self.cuts.append(best)
        return value

    def _price(self, duals: np.ndarray) -> tuple[Cut | None, list[tuple[int, np.ndarray]]]:
        """Return the cut that these duals prove once they are scaled to be feasible, and the patterns that they lack.

        Scaling all duals but those of the two limits by the worst ratio of what a pattern is worth to what it costs keeps them
        feasible for every pattern there is, since it lowers the worth of every pattern at least as much.
        """
        numbers, n = self.numbers, len(self.numbers.replicas)
        per_latency, per_interruption = max(0.0, -float(duals[n])), max(0.0, -float(duals[n + 1]))
        once, time, limit = (
            np.maximum(-duals, 0.0),
            np.maximum(-duals, 0.0),
            np.maximum(-duals, 0.0),
        )
        request = np.maximum(duals[:n], 0.0)
        toll = [
            per_latency * np.maximum(self._latency[:, t.place], 0)
            + per_interruption * t.frequency * self._interruption
            for t in self._types
        ]
        for machine, paid in zip(
            self._types, toll, strict=True
        ):  # where machines are free nobody is worth more than the toll
            if machine.price == 0:
                request = np.where(self._most(machine) > 0, np.minimum(request, paid), request)
        scale, patterns = 1.0, []
        for k, (machine, paid) in enumerate(zip(self._types, toll, strict=True)):
            if machine.price == 0:
                continue
            worth = np.where(self._most(machine) > 0, request - paid, -1.0)
            fee = (
                limit[self._limit_row[self._limited.index(machine.offer)]]
                if machine.offer >= 0
                else 0.0
            )
            q = machine.reserved
            if q < 0:
                best, counts = self._knapsacks[machine.size].best(worth, np.zeros(n))
                scale = max(scale, (best - fee) / machine.price)
                lacking = best > (machine.price + fee) * (1 + 1e-7)
            else:
                setup = np.where(self._once_row[q] >= 0, once[self._once_row[q]], 0.0)
                best, counts = self._knapsacks[machine.size].best(worth, setup)
                slot = time[self._time_row[q]]
                whole = numbers.horizon * (max(slot, best) - fee) + float(setup @ numbers.durations)
                scale = max(scale, whole / (machine.price * numbers.horizon))
                lacking = best > slot + 1e-7 * machine.price
            if lacking:
                patterns.append((k, counts))
        supply = np.array(
            [
                numbers.horizon * (numbers.problem.offers[j].max_instances or 0)
                for j in self._limited
            ]
        )
        total = float(request @ (numbers.replicas * numbers.durations)) - float(
            limit[self._limit_row] @ supply
        )
        return Cut(
            total / scale if np.isfinite(scale) else 0.0, per_latency, per_interruption
        ), patterns


def _types(numbers: Numbers) -> tuple[list[_Type], list[_Type]]:
    """Return all kinds of machines, and those that are reserved: what is cheaper reserved than by the slot, or only reserved."""
    cheapest: dict[tuple[bool, int, int, int, int], int] = {}
    for lease in numbers.leases:
        key = (
            lease.pricing == "reserved",
            lease.place,
            lease.size,
            lease.frequency,
            -1 if lease.limit is None else lease.offer,
        )
        cheapest[key] = min(cheapest.get(key, lease.price), lease.price)
    types, reserved = list[_Type](), list[_Type]()
    for (is_reserved, place, size, frequency, offer), price in sorted(cheapest.items()):
        if is_reserved and price < cheapest.get((False, place, size, 0, offer), price + 1):
            reserved.append(_Type(place, size, price, frequency, len(reserved), offer))
        elif not is_reserved:
            types.append(_Type(place, size, price, frequency, -1, offer))
    return types + reserved, reserved
