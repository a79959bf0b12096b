"""From a partition to a plan: leases and starts, and the proven least cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.values import Plan
from placeopt.core.kernels.common import copy_row
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.temporal.exact.front import (
    Completion,
    Relaxed,
    Targets,
    build_model,
    run_pass,
    targets_of,
    upper_bounds,
)
from placeopt.temporal.exact.tables import Lease, Numbers, Patterns, build_patterns

# -- common starts ---------------------------------------------------------------------------------

#: Branchings on one path of the search, and search nodes.
MAX_DEPTH, MAX_NODES = 300, 20_000
#: No path.
_NONE = -(2**40)
#: Answers of a search.
IMPOSSIBLE, FOUND, UNKNOWN = 0, 1, -1


@allocating_kernel
def common_starts(counts, demands, durations, capacity, window, horizon):
    """Search for common starts.

    `counts`, (machines, requests), are the replicas of each request on each machine; `demands` is
    (requests, 2), `durations` (requests,), `capacity` (machines, 2). `window`, (machines,), is how
    long a machine may be busy, idle slots in between included. Returns FOUND and starts,
    (requests,); IMPOSSIBLE; or UNKNOWN where the nodes were not enough.
    """
    n = len(durations)
    path = np.full((MAX_DEPTH, n + 1, n + 1), _NONE, np.int64)
    members, option = np.zeros((MAX_DEPTH, n), np.int64), np.full(MAX_DEPTH, -1, np.int64)
    size = np.zeros(MAX_DEPTH, np.int64)
    starts = np.zeros(n, np.int64)
    if not _begin(path[0], counts, durations, window, horizon):
        return IMPOSSIBLE, starts
    depth, visited = 0, 0
    while depth >= 0:
        if option[depth] < 0:  # a new node
            visited += 1
            if visited > MAX_NODES or depth + 1 == MAX_DEPTH:
                return UNKNOWN, starts
            copy_row(path[depth, n, :n], starts)
            size[depth] = _overload(counts, demands, durations, capacity, starts, members[depth])
            if size[depth] == 0:
                return FOUND, starts
            option[depth] = 0
        if option[depth] == size[depth] * size[depth]:
            option[depth] = -1
            depth -= 1
            continue
        first = members[depth, option[depth] // size[depth]]
        second = members[depth, option[depth] % size[depth]]
        option[depth] += 1
        if first == second:
            continue
        path[depth + 1] = path[depth]
        if _require(path[depth + 1], first, second, durations[first]):
            depth += 1
            option[depth] = -1
    return IMPOSSIBLE, starts


@kernel
def _begin(path, counts, durations, window, horizon):
    """Write windows and horizon as longest paths, `path` (n + 1, n + 1); node n is slot 0.

    Returns False where they contradict each other.
    """
    n = len(durations)
    for i in range(n + 1):
        path[i, i] = 0
    for i in range(n):
        path[n, i] = 0
        path[i, n] = durations[i] - horizon
    for b in range(len(counts)):
        for i in range(n):
            for j in range(n):
                if i != j and counts[b, i] > 0 and counts[b, j] > 0:
                    path[i, j] = max(path[i, j], durations[i] - window[b])
    for k in range(n + 1):
        for i in range(n + 1):
            for j in range(n + 1):
                if path[i, k] > _NONE and path[k, j] > _NONE:
                    path[i, j] = max(path[i, j], path[i, k] + path[k, j])
    good = True
    for i in range(n + 1):
        good = good and path[i, i] <= 0
    return good


@kernel
def _require(path, i, j, gap):
    """Require start j >= start i + gap, in place in `path`; False where that is impossible.

    It is impossible where it closes a positive cycle.
    """
    n = len(path)
    if path[j, i] > _NONE and gap + path[j, i] > 0:
        return False
    if path[i, j] >= gap:
        return True
    for a in range(n):
        if path[a, i] > _NONE:
            for b in range(n):
                if path[j, b] > _NONE:
                    path[a, b] = max(path[a, b], path[a, i] + gap + path[j, b])
    return True


@allocating_kernel
def _overload(counts, demands, durations, capacity, starts, members):
    """Write a smallest set of requests that together overload a machine to `members`, (n,).

    Returns its size, 0 where there is no overload.
    """
    n, best = len(durations), 0
    chosen = np.zeros(n, np.int64)
    for b in range(len(counts)):
        for i in range(n):
            if counts[b, i] == 0:
                continue
            size, load = 0, np.zeros(2, np.int64)
            for j in range(n):
                if counts[b, j] > 0 and starts[j] <= starts[i] < starts[j] + durations[j]:
                    chosen[size] = j
                    size += 1
                    load += counts[b, j] * demands[j]
            if load[0] <= capacity[b, 0] and load[1] <= capacity[b, 1]:
                continue
            q = 0
            while q < size:  # drop requests that the overload does not need
                less = load - counts[b, chosen[q]] * demands[chosen[q]]
                if less[0] > capacity[b, 0] or less[1] > capacity[b, 1]:
                    load = less
                    copy_row(chosen[q + 1 : size], chosen[q : size - 1])
                    size -= 1
                else:
                    q += 1
            if best == 0 or size < best:
                best = size
                copy_row(chosen[:size], members)
    return best


# -- schedules -------------------------------------------------------------------------------------

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


# -- points without common starts ------------------------------------------------------------------

#: Labels that one enumeration may keep, first and at last; one that needs more is cut into its
#: boxes.
_MAX_LABELS = (250_000, 3_000_000)
#: Boxes enumerated at once.
_AT_ONCE = 32
#: How far above the relaxed points partitions are enumerated first, as shares of the cost range.
_REACH = (0.0, 0.002, 0.01)


@dataclass
class Resolved:
    """Feasible plans by their whole-number vectors, and what is proven.

    Attributes
    ----------
    plans : dict
        Vector -> schedule.
    bounds : ndarray of int64, shape (k, 3)
        Every plan is weakly dominated by one of these vectors.
    certified : int
        How many points of the relaxed front have a plan.
    """

    plans: dict[tuple[int, int, int], Schedule] = field(default_factory=dict)
    bounds: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    certified: int = 0

    @property
    def values(self) -> np.ndarray:
        """Vectors of all plans, shape (plans, 3)."""
        return np.array(list(self.plans), dtype=np.int64).reshape(-1, 3)

    def without_plan(self, points: np.ndarray) -> np.ndarray:
        """Return the points that no plan attains, shape (k, 3)."""
        return points[[tuple(point) not in self.plans for point in points.tolist()]]

    def add(
        self, partition: Sequence[int], schedule: Schedule | None, scheduler: Scheduler
    ) -> None:
        """Keep a plan, if there is one."""
        if schedule is not None:
            self.plans.setdefault(scheduler.vector(partition, schedule), schedule)


def _schedule_relaxed(
    patterns: Patterns, relaxed: Relaxed, budget: Budget
) -> tuple[Resolved, np.ndarray]:
    """Return a plan for every relaxed point whose machines can agree on starts, and the others.

    The partitions of the others are scheduled at their least cost: then there is a plan near every
    point. The other points have shape (k, 3).
    """
    resolved = Resolved()
    scheduler, exact = Scheduler(patterns), np.zeros(len(relaxed.values), dtype=bool)
    for k, partition in enumerate(relaxed.partitions):
        if budget.out_of_time:
            break
        schedule = scheduler.certify(partition)
        exact[k] = schedule is not None
        resolved.add(partition, schedule, scheduler)
    scheduler = Scheduler(patterns)
    for k in np.flatnonzero(~exact).tolist():
        if budget.out_of_time:
            break
        partition = relaxed.partitions[k]
        resolved.add(partition, scheduler.least_cost(partition, 2**60)[0], scheduler)
    return resolved, relaxed.values[~exact]


def resolve(
    patterns: Patterns,
    completion: Completion,
    relaxed: Relaxed,
    budget: Budget,
    effort: float = np.inf,
) -> Resolved:
    """Return the true front, as far as the budget allows.

    Between the feasible points, in zones that hold a relaxed point, all partitions are enumerated
    and scheduled at the least cost: first little above the relaxed points and with their patterns,
    since that finds plans which make the zones small; at last with all patterns, since a machine
    may have to be busy for longer than it need be alone. A zone that holds nothing feasible then
    drops out of the bound set.

    Parameters
    ----------
    effort : float
        Labels and patterns that the enumerations may look at.
    """
    resolved, points = _schedule_relaxed(patterns, relaxed, budget)
    if len(points) and relaxed.complete:
        search = _Enumeration(patterns, completion, resolved, budget, effort)
        points = _resolve_points(search, points)
    resolved.bounds = minimal(np.concatenate((resolved.values, points))).astype(np.int64)
    resolved.certified = len(relaxed.values) - len(resolved.without_plan(relaxed.values))
    return resolved


def _resolve_points(search: _Enumeration, points: np.ndarray) -> np.ndarray:
    """Look for plans near points that have none; return the points that are still open."""
    resolved = search.resolved
    for reach in _REACH:
        points = resolved.without_plan(points)
        search.near(points, int(reach * search.completion.spread[1]))
    points = resolved.without_plan(points)
    if len(points) == 0 or search.stopped:
        return points
    patterns = search.patterns
    closed = search.with_all_patterns().between(points)
    upper = upper_bounds(patterns, resolved.values)
    upper = upper[~_below(upper, closed + 1).any(axis=1)]
    return points[_below(points, upper).any(axis=1)]


class _Enumeration:
    """Enumerates the partitions that may lie in boxes, and schedules them at the least cost."""

    def __init__(
        self,
        patterns: Patterns,
        completion: Completion,
        resolved: Resolved,
        budget: Budget,
        effort: float,
    ):
        self.patterns, self.completion, self.resolved = patterns, completion, resolved
        self.budget, self.effort = budget, effort
        self.model, self.order = build_model(patterns, completion)
        self.scheduler = Scheduler(patterns)

    def with_all_patterns(self) -> _Enumeration:
        """Return one that goes on with all patterns."""
        patterns = build_patterns(self.patterns.numbers, everything=True)
        return _Enumeration(patterns, self.completion, self.resolved, self.budget, self.effort)

    @property
    def stopped(self) -> bool:
        """Whether time or effort is used up."""
        return self.budget.out_of_time or self.effort <= 0

    def near(self, points: np.ndarray, reach: int) -> None:
        """Enumerate the partitions of at most `reach` more cost than a point, not better plans.

        Their latency and interruption are at most those of the point. What a known plan weakly
        dominates is left out.
        """
        if len(points) and not self.stopped:
            upper = upper_bounds(self.patterns, self.resolved.values)
            boxes = points + np.array([1, reach + 1, 1])
            cut = np.minimum(boxes[:, None, :], upper[None, :, :])[_below(points, upper)]
            self._run(np.unique(cut, axis=0), points, _MAX_LABELS[:1])

    def between(self, points: np.ndarray) -> np.ndarray:
        """Enumerate the zones of the plans that hold a point, the lowest first.

        Returns the upper bounds of those that are done, shape (zones, 3).
        """
        upper = upper_bounds(self.patterns, self.resolved.values)
        return self._run(upper[_below(points, upper).any(axis=0)], points, _MAX_LABELS)

    def _run(
        self, upper: np.ndarray, points: np.ndarray, allowances: tuple[int, ...]
    ) -> np.ndarray:
        """Enumerate boxes, many at once with few labels, then those that need more.

        Returns the upper bounds of those that are done, shape (boxes, 3).
        """
        order = np.argsort(_height(upper, points), kind="stable")
        targets = targets_of(upper[order], self.completion)
        count = len(targets.upper)
        waiting = [np.arange(k, min(k + _AT_ONCE, count)) for k in range(0, count, _AT_ONCE)]
        closed = [np.empty((0, 3), dtype=np.int64)]
        for max_labels in allowances:
            queue, waiting = waiting[::-1], []
            while queue and not self.stopped:
                group = queue.pop()
                part = Targets(*(array[group] for array in targets))
                boxes = run_pass(self.model, part, self.budget, max_labels, everything=True)
                self.effort -= boxes.looks
                if not boxes.done and len(group) > 1:
                    queue += np.array_split(group, 2)[::-1]
                elif not boxes.done:
                    waiting.append(group)
                elif self._schedule(boxes.values, boxes.paths):
                    closed.append(part.upper)
        return np.concatenate(closed)

    def _schedule(self, values: np.ndarray, paths: list[list[int]]) -> bool:
        """Schedule partitions at the least cost where that may beat the known plans.

        Returns whether all answers are proven.
        """
        partitions = (tuple(sorted(int(self.order[w]) for w in path)) for path in paths)
        vectors = dict(zip(partitions, values, strict=True))
        known, proven = self.resolved.values, True
        for partition in sorted(vectors, key=lambda p: (vectors[p][1], p)):
            if self.budget.out_of_time:
                return False
            vector = vectors[partition]
            rivals = (known[:, 0] <= vector[0]) & (known[:, 2] <= vector[2])
            limit = int(known[rivals, 1].min(initial=2**60))
            if vector[1] >= limit:
                continue
            schedule, sure = self.scheduler.least_cost(partition, limit)
            proven &= sure
            if schedule is not None:
                self.resolved.add(partition, schedule, self.scheduler)
                known = self.resolved.values
        return proven


def _height(upper: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the cost between the upper bound of each zone and the cheapest point in it."""
    cost = np.where(_below(points, upper).T, points[None, :, 1], upper[:, None, 1])
    return upper[:, 1] - cost.min(axis=1)


def _below(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    """Return whether each of `these` is less in everything than each of `those`, (these, those)."""
    return np.asarray(np.all(these[:, None, :] < those[None, :, :], axis=2))
