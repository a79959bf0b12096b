"""A linear program over what whole machines host, solved by column generation.

Variables: how many machines of a kind host a set of replicas. Constraints: every request has all
its replicas. A machine costs what its set costs at least, by the least makespan of the set (see
``models/temporal/bin_plans.md``), and a replica pays a *toll* that depends on the kind of machine:
that is how latency and interruption count. The program is much stronger than that over patterns
that run at once (`placeopt.temporal.exact.configuration_lp`): a set is whole, and so is the time
for which a machine hosts it.

The search for sets that pay has a limit. A kind of machine for which it is not enough is priced by
patterns that run at once, for this solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.core.budget import Budget
from placeopt.exact.program import Program
from placeopt.exact.solvers import Session
from placeopt.temporal.exact.machine_sets import Options, best_sets, options_of
from placeopt.temporal.exact.numbers import Numbers
from placeopt.temporal.knapsack import Knapsack

#: Sets are generated until bound and value differ by at most this share, or until no set is worth
#: more than its cost by more than this share.
_CLOSE, _SLACK = 7e-4, 5e-4
#: Sets that a search looks at, and that it looks at where nothing else pays.
_NODES, _MORE_NODES = 4_000, 20_000
#: Known sets that are added for a kind of machine in a round.
_KNOWN = 6
#: Rounds of column generation in one solve.
_MAX_ROUNDS = 300


class MachineKind(NamedTuple):
    """Machines of one place, frequency and size; a price is inf where it is not offered."""

    place: int
    frequency: int
    size: int
    slot: float  # price of a slot
    whole: float  # price of a reserved machine for the horizon

    def cost(self, spans: np.ndarray) -> np.ndarray:
        """Return the least cost of machines that are busy for so many slots."""
        by_slot = self.slot * spans if np.isfinite(self.slot) else np.inf
        return np.minimum(by_slot, self.whole) * np.ones(len(spans))


@dataclass(frozen=True)
class ProvenSum:
    """What a solve proves.

    Attributes
    ----------
    bound : float
        Cost and tolls of every plan are at least this.
    shares : ndarray, shape (requests, places)
        Share of each request's replicas in each place, in a solution of the program.
    coarse : frozenset of int
        Kinds of machines that were priced by patterns.
    """

    bound: float
    shares: np.ndarray
    coarse: frozenset[int]


class MachineProgram:
    """The program, with the sets generated so far: they serve for all tolls.

    Attributes
    ----------
    kinds : list of MachineKind
    solves : int
        Linear programs solved.
    """

    def __init__(self, numbers: Numbers):
        self.numbers, self.kinds, self.solves = numbers, machine_kinds(numbers), 0
        n = len(numbers.replicas)
        self._knapsacks = [
            Knapsack(numbers.demands, numbers.replicas, size) for size in numbers.sizes
        ]
        self._options: list[Options] = [
            options_of(numbers.demands, numbers.durations, knapsack.limits, size)
            for knapsack, size in zip(self._knapsacks, numbers.sizes, strict=True)
        ]
        #: Sets and spans of each size that were found so far.
        self._sets = [np.zeros((0, n), dtype=np.int64) for _ in numbers.sizes]
        self._spans = [np.zeros(0, dtype=np.int64) for _ in numbers.sizes]
        self._seen: set[tuple[int, bool, bytes]] = set()
        self._counts, self._kind = np.zeros((0, n)), np.zeros(0, dtype=np.int64)
        self._cost, self._coarse = np.zeros(0), np.zeros(0, dtype=bool)
        self._session: Session | None = None
        for k, kind in enumerate(self.kinds):
            alone = np.diag(self._limits(kind))
            used = alone.any(axis=1)
            self._add(k, alone[used], numbers.durations[used])

    def _limits(self, kind: MachineKind) -> np.ndarray:
        """Return how many replicas of each request fit a machine, 0 where it is out of reach."""
        reached = self.numbers.latency[:, kind.place] >= 0
        return np.where(reached, self._knapsacks[kind.size].limits, 0)

    def hosts(self, kind: int) -> np.ndarray:
        """Return whether a kind of machine can host a replica of each request, (requests,)."""
        return self._limits(self.kinds[kind]) > 0

    def _add(self, kind: int, sets: np.ndarray, spans: np.ndarray | None) -> int:
        """Add columns that are new; `spans` is None for patterns that run at once."""
        coarse = spans is None
        rows = [q for q, row in enumerate(sets) if (kind, coarse, row.tobytes()) not in self._seen]
        if not rows:
            return 0
        self._seen.update((kind, coarse, sets[q].tobytes()) for q in rows)
        machine = self.kinds[kind]
        if spans is None:
            counts = sets[rows] / self.numbers.durations
            horizon = self.numbers.horizon
            cost = np.full(len(rows), min(machine.slot, machine.whole / horizon))
        else:
            counts, cost = sets[rows].astype(float), machine.cost(spans[rows])
        self._counts = np.concatenate((self._counts, counts))
        self._kind = np.append(self._kind, np.full(len(rows), kind))
        self._cost = np.append(self._cost, cost)
        self._coarse = np.append(self._coarse, np.full(len(rows), coarse))
        if self._session is not None:
            import scipy.sparse as sp

            self._session.add_columns(cost, sp.csc_matrix(counts.T))
        return len(rows)

    def _prepared(self, tolls: np.ndarray, coarse: set[int]) -> Session:
        """Return the program at these tolls."""
        import scipy.sparse as sp

        toll = tolls.T[self._kind]
        held = self._counts > 0
        shut = (held & ~np.isfinite(toll)).any(axis=1)
        shut |= self._coarse & ~np.isin(self._kind, sorted(coarse))
        free = np.where(np.isfinite(toll), toll, 0.0)
        cost = self._cost + (self._counts * free).sum(axis=1)
        upper = np.where(shut, 0.0, np.inf)
        if self._session is None:
            zero, replicas = np.zeros(len(cost)), self.numbers.replicas.astype(float)
            matrix = sp.csc_matrix(self._counts.T)
            self._session = Session(
                Program(cost, matrix, replicas, replicas + np.inf, zero, upper, zero)
            )
        else:
            self._session.change(c=cost, col_upper=upper)
        return self._session

    def solve(
        self, tolls: np.ndarray, budget: Budget, coarse: frozenset[int] = frozenset()
    ) -> ProvenSum:
        """Return a lower bound on cost and tolls of every plan.

        Parameters
        ----------
        tolls : ndarray, shape (requests, kinds)
            What a replica pays, inf where it must not be.
        coarse : frozenset of int
            Kinds that are priced by patterns from the start.
        """
        best, shares, rough = -np.inf, self._shares(np.zeros(0)), set(coarse)
        for _ in range(_MAX_ROUNDS):
            if budget.out_of_time:
                break
            outcome = self._prepared(tolls, rough).solve(budget=budget)
            self.solves += 1
            if outcome.status != "optimal" or outcome.row_duals is None or outcome.x is None:
                break
            shares = self._shares(outcome.x)
            prices = self._legal(np.maximum(outcome.row_duals, 0.0), tolls)
            if self._add_known(prices, tolls, rough):
                continue
            before = len(rough)
            proven, added = self._price(prices, tolls, rough)
            best = max(best, proven)
            if best >= outcome.objective - _CLOSE * abs(outcome.objective) or (
                added == 0 and len(rough) == before
            ):
                break
        return ProvenSum(best, shares, frozenset(rough))

    def _shares(self, x: np.ndarray) -> np.ndarray:
        """Return the share of each request's replicas in each place, (requests, places)."""
        shares = np.zeros((len(self.numbers.replicas), len(self.numbers.places)))
        places = np.array([kind.place for kind in self.kinds])[self._kind[: len(x)]]
        np.add.at(shares.T, places, self._counts[: len(x)] * x[:, None])
        return shares / self.numbers.replicas[:, None]

    def _legal(self, prices: np.ndarray, tolls: np.ndarray) -> np.ndarray:
        """Return prices of replicas that machines without a cost do not exceed."""
        for k, kind in enumerate(self.kinds):
            if min(kind.slot, kind.whole) == 0:
                prices = np.where(self._limits(kind) > 0, np.minimum(prices, tolls[:, k]), prices)
        return prices

    def _worth(self, k: int, prices: np.ndarray, tolls: np.ndarray) -> np.ndarray:
        """Return what a replica of each request is worth on a machine, -1 where it cannot be."""
        there = np.isfinite(tolls[:, k]) & (self._limits(self.kinds[k]) > 0)
        return np.where(there, prices - np.where(there, tolls[:, k], 0.0), -1.0)

    def _add_known(self, prices: np.ndarray, tolls: np.ndarray, coarse: set[int]) -> int:
        """Add sets that were found for any kind of machine and pay here; return how many."""
        added = 0
        for k, kind in enumerate(self.kinds):
            sets, spans = self._sets[kind.size], self._spans[kind.size]
            if k in coarse or len(sets) == 0:
                continue
            worth = self._worth(k, prices, tolls)
            gain = sets @ np.maximum(worth, 0.0) - (1 + _SLACK) * kind.cost(spans)
            best = np.argsort(-gain, kind="stable")[:_KNOWN]
            best = best[gain[best] > 1e-9 * min(kind.slot, kind.whole)]
            best = best[~((sets[best] > 0) & (worth <= 0)).any(axis=1)]
            added += self._add(k, sets[best], spans[best])
        return added

    def _price(self, prices: np.ndarray, tolls: np.ndarray, coarse: set[int]) -> tuple[float, int]:
        """Add sets that pay; return what the prices prove once they are scaled, and how many.

        A price is lowered until no kind of machine that can host the request has a set of more
        worth than cost. Where nothing pays, kinds for which the search was not enough join
        `coarse`; else prices will change, and it may be enough then.
        """
        ratios, added, unsearched = np.ones(len(self.kinds)), 0, list[int]()
        worths = [self._worth(k, prices, tolls) for k in range(len(self.kinds))]
        for k, (kind, worth) in enumerate(zip(self.kinds, worths, strict=True)):
            if min(kind.slot, kind.whole) == 0 or not (worth > 0).any():
                continue
            if k in coarse:
                ratios[k], new = self._patterns(k, worth)
            else:
                ratios[k], new, complete = self._searched(k, worth, _NODES)
                unsearched += [] if complete else [k]
            added += new
        for k in unsearched if added == 0 else ():
            ratios[k], new, complete = self._searched(k, worths[k], _MORE_NODES)
            added += new
            if not complete:
                coarse.add(k)
        scaled = prices.copy()
        for k, worth in enumerate(worths):
            if ratios[k] > 1:
                fair = tolls[:, k] + worth / ratios[k]
                scaled = np.where(worth > 0, np.minimum(scaled, fair), scaled)
        return float(scaled @ self.numbers.replicas), added

    def _patterns(self, k: int, worth: np.ndarray) -> tuple[float, int]:
        """Return the largest ratio of worth to cost by patterns; add the best pattern."""
        kind, durations = self.kinds[k], self.numbers.durations
        per_slot = np.where(worth > 0, worth / durations, -1.0)
        best, counts = self._knapsacks[kind.size].best(per_slot, np.zeros(len(worth)))
        price = min(kind.slot, kind.whole / self.numbers.horizon)
        pays = best > price * (1 + 1e-7)
        return max(1.0, best / price), self._add(k, counts[None], None) if pays else 0

    def _searched(self, k: int, worth: np.ndarray, nodes: int) -> tuple[float, int, bool]:
        """Return the largest ratio of worth to cost, sets added, and whether the search will do.

        A search that was cut short but found sets will do: with them prices are others.
        """
        kind, horizon = self.kinds[k], float(self.numbers.horizon)
        largest, added, complete = 1.0, 0, True
        options = self._sharpened(kind.size, worth)
        for price, least, most in self._ways(kind, horizon):
            sets, spans, ratio, done = best_sets(
                options, worth / (price * (1 + _SLACK)), least, most, nodes
            )
            largest = max(largest, ratio * (1 + _SLACK))
            complete = complete and (done or len(sets) > 0)
            added += self._add(k, sets, spans)
            self._sets[kind.size] = np.concatenate((self._sets[kind.size], sets))
            self._spans[kind.size] = np.append(self._spans[kind.size], spans)
        return largest, added, complete

    def _sharpened(self, size: int, worth: np.ndarray) -> Options:
        """Return the options of a size with one more weight: worth a slot, scaled to be legal.

        It knows what fits together in both resources.
        """
        options = self._options[size]
        per_slot = np.where(worth > 0, worth / self.numbers.durations, -1.0)
        best, _ = self._knapsacks[size].best(per_slot, np.zeros(len(worth)))
        if best <= 0:
            return options
        request = np.repeat(np.arange(len(worth)), np.diff(options.first))
        taken = np.arange(len(request)) - options.first[request] + 1
        work = taken * np.maximum(worth, 0.0)[request] / (best * (1 + 1e-9))
        return options._replace(work=np.column_stack((options.work, work)))

    def _ways(self, kind: MachineKind, horizon: float) -> list[tuple[float, float, float]]:
        """Return ways to pay: price of a slot, slots paid at least and at most.

        By the slot no set is worth hosting for longer than a reserved machine costs.
        """
        ways = []
        if np.isfinite(kind.slot):
            most = np.floor(min(horizon, kind.whole / kind.slot))
            ways.append((kind.slot, 0.0, most))
        if kind.whole < kind.slot * horizon:
            ways.append((kind.whole / horizon, horizon, horizon))
        return ways


def machine_kinds(numbers: Numbers) -> list[MachineKind]:
    """Return the kinds of machines; limits on their number are left out, which is a relaxation."""
    prices: dict[tuple[int, int, int], list[float]] = {}
    for lease in numbers.leases:
        found = prices.setdefault((lease.place, lease.frequency, lease.size), [np.inf, np.inf])
        cost = float(lease.price * (numbers.horizon if lease.reserved else 1))
        found[lease.reserved] = min(found[lease.reserved], cost)
    return [MachineKind(*key, *pair) for key, pair in sorted(prices.items())]
