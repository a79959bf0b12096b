"""From a partition to a plan: which machines to lease, when every request starts, and what that costs at the least."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.temporal.exact.columns import Columns
from placeopt.temporal.exact.numbers import Lease, Numbers
from placeopt.temporal.exact.sync import common_starts

#: Search nodes, and choices of leases, for machines that share requests.
_NODES, _CHOICES = 300, 1000


@dataclass(frozen=True)
class Schedule:
    """A feasible plan in whole numbers: its cost, the starts, and each machine with its replicas."""

    cost: int
    starts: np.ndarray
    machines: tuple[tuple[Lease, np.ndarray], ...]

    def plan(self, numbers: Numbers) -> dict[str, Any]:
        """Return the plan document."""
        problem = numbers.problem
        given = [0] * len(problem.requests)
        instances = []
        for lease, counts in self.machines:
            replicas: list[list[Any]] = []
            for i in np.flatnonzero(counts):
                replicas += [[problem.requests[i].name, given[i] + q] for q in range(counts[i])]
                given[i] += int(counts[i])
            offer = problem.offers[lease.offer]
            instances.append(
                {
                    "location": offer.location,
                    "size": offer.size,
                    "pricing": lease.pricing,
                    "replicas": replicas,
                }
            )
        return {
            "starts": {r.name: int(a) for r, a in zip(problem.requests, self.starts, strict=True)},
            "instances": instances,
        }


@dataclass
class _Part:
    """Machines that share requests, and the cheapest way known to run them.

    Attributes
    ----------
    low : int
        Proven: they cost at least this.
    cost : int or None
        Of the best starts known.
    """

    members: np.ndarray
    counts: np.ndarray
    codes: list[int]
    classes: list[int]
    low: int
    cost: int | None = None
    starts: np.ndarray | None = None
    leases: list[Lease] | None = None
    nodes: int = 0

    @property
    def settled(self) -> bool:
        """Whether the cost is the least there is."""
        return self.cost is not None and self.cost <= self.low


class Scheduler:
    """Finds starts for partitions of one instance; remembers what it found of the parts of a partition that share requests."""

    def __init__(self, columns: Columns):
        self.columns, self.numbers = columns, columns.numbers
        self._known: dict[tuple[tuple[int, int], ...], _Part] = {}

    def vector(self, partition: Sequence[int], schedule: Schedule) -> tuple[int, int, int]:
        """Return the whole-number vector of a plan with this partition."""
        columns, used = self.columns, list(partition)
        there = columns.counts[used] > 0
        worst = np.where(there, self.numbers.latency[:, columns.places[used]].T, 0).max(axis=0)
        return int(worst.sum()), schedule.cost, int(columns.interruption[used].sum())

    def certify(self, partition: Sequence[int]) -> Schedule | None:
        """Return a plan that costs what the bin plans say, None where there is none (or none was found within the nodes)."""
        return self.least_cost(partition, int(self.columns.cost[list(partition)].sum()) + 1)[0]

    def least_cost(self, partition: Sequence[int], limit: int) -> tuple[Schedule | None, bool]:
        """Search for the cheapest plan with this partition that costs less than `limit`.

        A machine that idles in between is two machines of another partition, so windows without idle slots suffice.

        Returns
        -------
        (Schedule or None, bool)
            The bool says whether the answer is proven.
        """
        parts = [self._part(group) for group in self._groups(list(partition))]
        parts.sort(key=lambda part: len(part.members))
        total, proven = sum(part.low for part in parts), True
        for part in parts:
            others = total - part.low
            if total >= limit:
                return None, proven
            self._search(part, limit - others)
            total = others + max(part.low, part.cost or 0)
            if part.cost is None or others + part.cost >= limit:
                return None, proven and others + part.low >= limit
            proven &= part.settled
        return self._assembled(parts), proven

    def _groups(self, used: list[int]) -> list[list[int]]:
        """Return the columns in groups that share requests; a column of a single request stands alone, whatever shares it."""
        groups: list[tuple[np.ndarray, list[int]]] = []
        for w in used:
            members = self.columns.counts[w] > 0
            mine = [w]
            if members.sum() > 1:
                for joined in [g for g in groups if g[0] is not None and (g[0] & members).any()]:
                    members, mine = members | joined[0], joined[1] + mine
                    groups = [g for g in groups if g[1] is not joined[1]]
            groups.append(
                (members if members.sum() > 1 else np.zeros(len(members), dtype=bool), mine)
            )
        return [sorted(mine) for _, mine in groups]

    def _part(self, used: list[int]) -> _Part:
        columns = self.columns
        key = tuple((int(columns.codes[w]), int(columns.classes[w])) for w in used)
        if key not in self._known:
            members = np.flatnonzero(columns.counts[used].any(axis=0))
            counts = np.ascontiguousarray(columns.counts[used][:, members])
            self._known[key] = _Part(
                members,
                counts,
                [k[0] for k in key],
                [k[1] for k in key],
                int(columns.cost[used].sum()),
            )
        return self._known[key]

    def _assembled(self, parts: Sequence[_Part]) -> Schedule:
        starts = np.zeros(len(self.numbers.replicas), dtype=np.int64)
        machines: list[tuple[Lease, np.ndarray]] = []
        for part in parts:
            assert part.starts is not None and part.leases is not None
            if len(part.members) > 1:
                starts[part.members] = part.starts
            for lease, row in zip(part.leases, part.counts, strict=True):
                counts = np.zeros(len(starts), dtype=np.int64)
                counts[part.members] = row
                machines.append((lease, counts))
        return Schedule(sum(part.cost or 0 for part in parts), starts, tuple(machines))

    def _search(self, part: _Part, limit: int) -> None:
        """Look for the least cost of a part, below `limit`; what is proven is written to the part."""
        if part.settled or part.low >= limit or part.nodes >= _NODES:
            return
        limit = limit if part.cost is None else min(limit, part.cost)
        best, complete = limit, True
        options = [
            self._options(machine, code)
            for machine, code in zip(part.classes, part.codes, strict=True)
        ]
        for leases in self._choices(options, limit):
            if leases is None:
                complete = False
                break
            low = np.array(
                [self._window(lease, code) for lease, code in zip(leases, part.codes, strict=True)]
            )
            best, done = self._tighten(part, best, leases, low)
            complete &= done
        if complete:
            part.low, part.nodes = best, 0

    def _window(self, lease: Lease, code: int) -> int:
        return (
            self.numbers.horizon
            if lease.pricing == "reserved"
            else int(self.columns.spans[lease.size][code])
        )

    def _options(self, machine: int, code: int) -> list[tuple[int, Lease]]:
        """Return the leases of a class that can host a set, with their least costs, cheapest first."""
        leases = self.columns.machines[machine].leases
        able = [
            lease
            for lease in leases
            if self.columns.spans[lease.size][code] <= self.numbers.horizon
        ]
        return sorted(
            ((lease.price * self._window(lease, code), lease) for lease in able),
            key=lambda option: option[0],
        )

    def _choices(
        self, options: list[list[tuple[int, Lease]]], limit: int
    ) -> Iterator[list[Lease] | None]:
        """Yield every choice of one lease a machine whose least costs sum to less than `limit`, then None if some were left out."""
        slack = limit - sum(choice[0][0] for choice in options)
        near = [
            [(cost, lease) for cost, lease in choice if cost - choice[0][0] < slack]
            for choice in options
        ]
        for count, chosen in enumerate(itertools.product(*near)):
            if count == _CHOICES:
                yield None
                return
            if sum(cost for cost, _ in chosen) < limit:
                yield [lease for _, lease in chosen]

    def _tighten(
        self, part: _Part, limit: int, leases: list[Lease], low: np.ndarray
    ) -> tuple[int, bool]:
        """Branch on how long machines may be busy. Returns the limit, lowered to what was found, and whether it is proven."""
        price = np.array([0 if lease.pricing == "reserved" else lease.price for lease in leases])
        fixed = sum(
            lease.price * self.numbers.horizon for lease in leases if lease.pricing == "reserved"
        )
        stack, proven = [(low, np.full(len(low), self.numbers.horizon))], True
        while stack:
            low, high = stack.pop()
            slack = limit - 1 - fixed - int(price @ low)
            if slack < 0 or (low > high).any():
                continue
            if part.nodes >= _NODES:
                return limit, False
            part.nodes += 1
            high = np.minimum(high, low + slack // np.maximum(price, 1))
            status, starts = self._starts(
                part, leases, np.where(price > 0, high, self.numbers.horizon)
            )
            if status != 1:
                proven &= status == 0
                continue
            if (cost := self._cost(part.counts, part.members, leases, starts)) < limit:
                limit, part.cost, part.starts, part.leases = cost, cost, starts, leases
            length = self._lengths(part, starts)
            excess = price * (length - low)
            widest = int(excess.argmax())
            if excess[widest] > 0:
                here = np.arange(len(low)) == widest
                stack.append((np.where(here, length, low), high))
                stack.append((low, np.where(here, length - 1, high)))
        return limit, proven

    def _starts(
        self, part: _Part, leases: Sequence[Lease], window: np.ndarray
    ) -> tuple[int, np.ndarray]:
        numbers, sizes = self.numbers, self.numbers.sizes[[lease.size for lease in leases]]
        return common_starts(
            part.counts,
            numbers.demands[part.members],
            numbers.durations[part.members],
            sizes,
            window,
            numbers.horizon,
        )

    def _lengths(self, part: _Part, starts: np.ndarray) -> np.ndarray:
        """Return from first start to last end on each machine."""
        begin = np.where(part.counts > 0, starts, self.numbers.horizon).min(axis=1)
        return (
            np.where(part.counts > 0, starts + self.numbers.durations[part.members], 0).max(axis=1)
            - begin
        )

    def _cost(
        self, counts: np.ndarray, members: np.ndarray, leases: Sequence[Lease], starts: np.ndarray
    ) -> int:
        """Return what the machines cost at these starts, paid for their busy slots."""
        cost = 0
        for row, lease in zip(counts, leases, strict=True):
            busy = np.zeros(self.numbers.horizon, dtype=bool)
            for i in np.flatnonzero(row):
                busy[starts[i] : starts[i] + self.numbers.durations[members[i]]] = True
            cost += lease.price * (
                self.numbers.horizon if lease.pricing == "reserved" else int(busy.sum())
            )
        return cost
