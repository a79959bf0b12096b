"""From a partition to a plan: leases and starts, and the proven least cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.temporal.exact.common_starts import FOUND, IMPOSSIBLE, common_starts
from placeopt.temporal.exact.numbers import Lease, Numbers
from placeopt.temporal.exact.patterns import Patterns

#: Search nodes, and choices of leases, for machines that share requests.
_MAX_NODES, _MAX_CHOICES = 300, 1000


@dataclass(frozen=True)
class Schedule:
    """A feasible plan in whole numbers.

    Attributes
    ----------
    cost : int
    starts : ndarray of int, shape (requests,)
    machines : tuple of (Lease, ndarray)
        Each machine with its replicas of each request, shape (requests,).
    """

    cost: int
    starts: np.ndarray
    machines: tuple[tuple[Lease, np.ndarray], ...]

    def plan(self, numbers: Numbers) -> Plan:
        """Return the plan document."""
        problem = numbers.problem
        placed = [0] * len(problem.requests)
        instances = []
        for lease, counts in self.machines:
            replicas: list[list[Any]] = []
            for i in np.flatnonzero(counts):
                replicas += [[problem.requests[i].name, placed[i] + q] for q in range(counts[i])]
                placed[i] += int(counts[i])
            offer = problem.offers[lease.offer]
            instances.append(
                {
                    "location": offer.location,
                    "size": offer.size,
                    "pricing": lease.pricing,
                    "replicas": replicas,
                }
            )
        starts = zip(problem.requests, self.starts, strict=True)
        return {"starts": {r.name: int(slot) for r, slot in starts}, "instances": instances}


@dataclass
class _Group:
    """Machines that share requests, and the cheapest way known to run them.

    Attributes
    ----------
    members : ndarray of int, shape (requests of the group,)
    counts : ndarray of int, shape (machines, requests of the group)
    machines : tuple of (int, int)
        The code of the set and the class of each machine.
    low : int
        Proven: they cost at least this.
    cost : int or None
        Of the best starts known.
    starts : ndarray of int or None, shape (requests of the group,)
    leases : list of Lease or None
        One per machine.
    nodes : int
        Search nodes spent.
    """

    members: np.ndarray
    counts: np.ndarray
    machines: tuple[tuple[int, int], ...]
    low: int
    cost: int | None = None
    starts: np.ndarray | None = None
    leases: list[Lease] | None = None
    nodes: int = 0

    @property
    def settled(self) -> bool:
        """Whether the cost is proven to be the least."""
        return self.cost is not None and self.cost <= self.low


class Scheduler:
    """Finds starts for partitions of one instance.

    It remembers what it found of the groups of machines that share requests.
    """

    def __init__(self, patterns: Patterns):
        self.patterns, self.numbers = patterns, patterns.numbers
        self._known: dict[tuple[tuple[int, int], ...], _Group] = {}

    def vector(self, partition: Sequence[int], schedule: Schedule) -> tuple[int, int, int]:
        """Return the whole-number vector of a plan with this partition."""
        patterns, used = self.patterns, list(partition)
        there = patterns.counts[used] > 0
        latency = np.where(there, self.numbers.latency[:, patterns.places[used]].T, 0).max(axis=0)
        return int(latency.sum()), schedule.cost, int(patterns.interruption[used].sum())

    def certify(self, partition: Sequence[int]) -> Schedule | None:
        """Return a plan that costs what the patterns say, None where none was found."""
        return self.least_cost(partition, int(self.patterns.cost[list(partition)].sum()) + 1)[0]

    def least_cost(self, partition: Sequence[int], limit: int) -> tuple[Schedule | None, bool]:
        """Search for the cheapest plan with this partition that costs less than `limit`.

        A machine that idles in between is two machines of another partition, so that windows
        without idle slots suffice.

        Returns
        -------
        (Schedule or None, bool)
            The bool says whether the answer is proven.
        """
        groups = [self._group(used) for used in self._sharing(list(partition))]
        groups.sort(key=lambda group: len(group.members))
        total, proven = sum(group.low for group in groups), True
        for group in groups:
            others = total - group.low
            if total >= limit:
                return None, proven
            self._search(group, limit - others)
            total = others + max(group.low, group.cost or 0)
            if group.cost is None or others + group.cost >= limit:
                return None, proven and others + group.low >= limit
            proven &= group.settled
        return self._assembled(groups), proven

    def _sharing(self, used: list[int]) -> list[list[int]]:
        """Return the patterns in groups that share requests.

        A pattern of a single request stands alone: it fits whenever the request starts.
        """
        groups: list[tuple[int, list[int]]] = []  # requests as bits, patterns
        for w in used:
            requests = np.flatnonzero(self.patterns.counts[w]).tolist()
            bits, own = sum(1 << i for i in requests) if len(requests) > 1 else 0, [w]
            for group in [group for group in groups if group[0] & bits]:
                groups.remove(group)
                bits, own = bits | group[0], group[1] + own
            groups.append((bits, own))
        return [sorted(own) for _, own in groups]

    def _group(self, used: list[int]) -> _Group:
        patterns = self.patterns
        key = tuple((int(patterns.codes[w]), int(patterns.classes[w])) for w in used)
        if key not in self._known:
            members = np.flatnonzero(patterns.counts[used].any(axis=0))
            self._known[key] = _Group(
                members=members,
                counts=np.ascontiguousarray(patterns.counts[used][:, members]),
                machines=key,
                low=int(patterns.cost[used].sum()),
            )
        return self._known[key]

    def _assembled(self, groups: Sequence[_Group]) -> Schedule:
        """Return the plan of groups whose starts are known."""
        starts = np.zeros(len(self.numbers.replicas), dtype=np.int64)
        machines: list[tuple[Lease, np.ndarray]] = []
        for group in groups:
            assert group.starts is not None and group.leases is not None
            if len(group.members) > 1:
                starts[group.members] = group.starts
            for lease, row in zip(group.leases, group.counts, strict=True):
                counts = np.zeros(len(starts), dtype=np.int64)
                counts[group.members] = row
                machines.append((lease, counts))
        return Schedule(sum(group.cost or 0 for group in groups), starts, tuple(machines))

    def _search(self, group: _Group, limit: int) -> None:
        """Look for the least cost of a group, below `limit`; write what is found to the group."""
        if group.settled or group.low >= limit or group.nodes >= _MAX_NODES:
            return
        best = limit if group.cost is None else min(limit, group.cost)
        complete = True
        options = [self._options(code, machine) for code, machine in group.machines]
        for leases in _choices(options, best):
            if leases is None:
                complete = False
                break
            hosting = zip(leases, group.machines, strict=True)
            low = [self._window(lease, code) for lease, (code, _) in hosting]
            best, done = self._tighten(group, best, leases, np.array(low))
            complete &= done
        if complete:
            group.low, group.nodes = best, 0

    def _window(self, lease: Lease, code: int) -> int:
        """Return for how many slots a machine that hosts a set is paid at least."""
        return (
            self.numbers.horizon if lease.reserved else int(self.patterns.spans[lease.size][code])
        )

    def _options(self, code: int, machine: int) -> list[tuple[int, Lease]]:
        """Return the leases of a class that can host a set, with their least costs, by cost."""
        leases = [
            lease
            for lease in self.patterns.machines[machine].leases
            if self.patterns.spans[lease.size][code] <= self.numbers.horizon
        ]
        costs = [lease.price * self._window(lease, code) for lease in leases]
        return sorted(zip(costs, leases, strict=True), key=lambda option: option[0])

    def _tighten(
        self, group: _Group, limit: int, leases: list[Lease], low: np.ndarray
    ) -> tuple[int, bool]:
        """Branch on how long machines may be busy, at least `low`, shape (machines,).

        Returns
        -------
        (int, bool)
            The limit, lowered to the cost that was found, and whether it is proven.
        """
        numbers = self.numbers
        price = np.array([0 if lease.reserved else lease.price for lease in leases])
        fixed = sum(lease.price * numbers.horizon for lease in leases if lease.reserved)
        stack, proven = [(low, np.full(len(low), numbers.horizon))], True
        while stack:
            low, high = stack.pop()
            slack = limit - 1 - fixed - int(price @ low)
            if slack < 0 or (low > high).any():
                continue
            if group.nodes >= _MAX_NODES:
                return limit, False
            group.nodes += 1
            high = np.minimum(high, low + slack // np.maximum(price, 1))
            status, starts = common_starts(
                group.counts,
                numbers.demands[group.members],
                numbers.durations[group.members],
                numbers.sizes[[lease.size for lease in leases]],
                np.where(price > 0, high, numbers.horizon),
                numbers.horizon,
            )
            if status != FOUND:
                proven &= status == IMPOSSIBLE
                continue
            if (cost := self._cost(group, leases, starts)) < limit:
                limit, group.cost, group.starts, group.leases = cost, cost, starts, leases
            length = self._lengths(group, starts)
            excess = price * (length - low)
            widest = int(excess.argmax())
            if excess[widest] > 0:
                here = np.arange(len(low)) == widest
                stack.append((np.where(here, length, low), high))
                stack.append((low, np.where(here, length - 1, high)))
        return limit, proven

    def _lengths(self, group: _Group, starts: np.ndarray) -> np.ndarray:
        """Return the slots from first start to last end on each machine, shape (machines,)."""
        ends = starts + self.numbers.durations[group.members]
        begin = np.where(group.counts > 0, starts, self.numbers.horizon).min(axis=1)
        return np.where(group.counts > 0, ends, 0).max(axis=1) - begin

    def _cost(self, group: _Group, leases: Sequence[Lease], starts: np.ndarray) -> int:
        """Return what the machines cost at these starts, paid for their busy slots."""
        horizon = self.numbers.horizon
        slots, begins = np.arange(horizon), starts[:, None]
        running = (begins <= slots) & (slots < begins + self.numbers.durations[group.members, None])
        busy = ((group.counts > 0) @ running).sum(axis=1).tolist()
        return sum(
            lease.price * (horizon if lease.reserved else count)
            for lease, count in zip(leases, busy, strict=True)
        )


def _choices(options: list[list[tuple[int, Lease]]], limit: int) -> Iterator[list[Lease] | None]:
    """Yield the choices of one lease a machine whose least costs sum to less than `limit`.

    Yields None at last if some were left out.
    """
    slack = limit - sum(choice[0][0] for choice in options)
    near = [
        [(cost, lease) for cost, lease in choice if cost - choice[0][0] < slack]
        for choice in options
    ]
    for count, chosen in enumerate(itertools.product(*near)):
        if count == _MAX_CHOICES:
            yield None
            return
        if sum(cost for cost, _ in chosen) < limit:
            yield [lease for _, lease in chosen]
