"""The instance in whole numbers, as the exact methods need it.

Latencies, prices and interruptions are in the referee's own units, so that nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.core.fronts.dominance import minimal
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.kernels.compile import allocating_kernel, kernel
from placeopt.core.problem import Problem
from placeopt.temporal.arrays import PRICINGS
from placeopt.temporal.problem import Temporal

# -- sets ------------------------------------------------------------------------------------------

#: Tables hold the best split of every set of replicas in two, for each weight vector: seconds of
#: all tables for a split, measured on an instance of 10 requests and 31 replicas.
_SECONDS_A_SPLIT = 3e-7


def seconds_of_tables(replicas: Iterable[int]) -> float:
    """Return about how many seconds the tables of all splits of sets take."""
    return _SECONDS_A_SPLIT * math.prod((n + 1.0) * (n + 2.0) / 2 for n in map(int, replicas))


def strides(replicas: np.ndarray) -> np.ndarray:
    """Return the stride of each request, and last the number of sets, shape (requests + 1,).

    These are Python's whole numbers, which do not overflow.
    """
    return np.concatenate(([1], np.cumprod(replicas.astype(object) + 1))).astype(object)


def count_sets(replicas: np.ndarray) -> int:
    """Return how many sets there are."""
    return int(strides(replicas)[-1])


def all_counts(replicas: np.ndarray) -> np.ndarray:
    """Return the counts of every set, shape (sets, requests)."""
    digits = np.unravel_index(np.arange(count_sets(replicas)), tuple(replicas[::-1] + 1))
    return np.stack(digits[::-1], axis=1).astype(np.int16)


@kernel
def write_counts(code, replicas, counts):
    """Write the counts of a set into `counts`, shape (requests,)."""
    for i in range(len(replicas)):
        counts[i] = code % (replicas[i] + 1)
        code //= replicas[i] + 1


@kernel
def next_part(part, code, counts, replicas, first, stride):
    """Count a part of a set up, in place in `part`, shape (requests,); return its new code.

    Requests before `first`, whose stride is `stride`, stay as they are. `code` is that of the part,
    `counts` are those of the set. Returns -1 after the last part.
    """
    i = first
    while i < len(replicas) and part[i] == counts[i]:
        code -= part[i] * stride
        part[i] = 0
        stride *= replicas[i] + 1
        i += 1
    if i == len(replicas):
        return -1
    part[i] += 1
    return code + stride


# -- staircases ------------------------------------------------------------------------------------

#: Points of the fine grid on which lines are chosen, at least and for each line.
_FINE, _FINE_A_LINE = 240, 2.5


def least_cost(cuts: np.ndarray, latency: np.ndarray, interruption: np.ndarray) -> np.ndarray:
    """Return the greatest lower bound on cost by `cuts`, shape (k, 3), at least 0.

    `latency` and `interruption` are limits, broadcast together.
    """
    bound = np.zeros(np.broadcast(latency, interruption).shape)
    for constant, per_latency, per_interruption in cuts:
        bound = np.maximum(
            bound, constant - per_latency * latency - per_interruption * interruption
        )
    return bound


def staircase(cuts: np.ndarray, low: np.ndarray, high: np.ndarray, lines: int) -> np.ndarray:
    """Return a lower-bound set in whole numbers, shape (k, 3): about ``lines ** 2`` vectors.

    Parameters
    ----------
    cuts : ndarray, shape (k, 3)
    low, high : ndarray of int, shape (2,)
        Ranges of latency and of interruption. No plan has less than `low`; a last cell covers all
        plans with more than `high`.
    """
    fine = max(_FINE, int(_FINE_A_LINE * lines))
    axes = [
        np.unique(np.linspace(low[a], max(high[a], low[a]), fine).astype(np.int64))
        for a in range(2)
    ]
    surface = least_cost(cuts, axes[0][:, None], axes[1][None, :])
    if len(axes[0]) == 1 or len(axes[1]) == 1:
        lines *= 4  # one direction only: more lines cost little
    ends = [
        np.append(_lines(axes[a], surface if a == 0 else surface.T, lines), 2**52) for a in range(2)
    ]
    # The first cell is the first line itself.
    begin = [np.concatenate((end[:1], end[:-1] + 1)) for end in ends]
    cost = np.ceil(least_cost(cuts, ends[0][:, None], ends[1][None, :]) * (1 - 1e-9) - 1e-6)
    corners = np.stack(np.broadcast_arrays(begin[0][:, None], cost, begin[1][None, :]), axis=-1)
    return minimal(corners.reshape(-1, 3)).astype(np.int64)


def _lines(axis: np.ndarray, surface: np.ndarray, count: int) -> np.ndarray:
    """Return at most `count` values of an axis, the first and the last among them.

    A cell loses its width times the fall of cost across it. The sum is least where lines are as
    dense as the root of the slope of `surface`, shape (len(axis), other axis).
    """
    if len(axis) <= count:
        return axis
    slope = np.sqrt(np.abs(np.diff(surface, axis=0)).mean(axis=1) / np.diff(axis)) * np.diff(axis)
    reached = np.concatenate(([0.0], np.cumsum(slope + 0.02 * slope.mean() + 1e-12)))
    chosen = np.searchsorted(reached, np.linspace(0, reached[-1], count))
    return axis[np.unique(np.clip(chosen, 0, len(axis) - 1))]


# -- whole numbers ---------------------------------------------------------------------------------

#: Greater than every cost: "impossible".
NEVER = np.int64(2**60)


@dataclass(frozen=True)
class Lease:
    """One way to lease a machine: an offer under one of its prices.

    Attributes
    ----------
    offer : int
    pricing : str
    place : int
        Index into `Numbers.places`.
    size : int
        Row of `Numbers.sizes`.
    price : int
        Per slot.
    frequency : int
        Of interruptions.
    limit : int or None
        Machines of the offer that may be leased.
    """

    offer: int
    pricing: str
    place: int
    size: int
    price: int
    frequency: int
    limit: int | None

    @property
    def reserved(self) -> bool:
        """Whether the whole horizon is paid."""
        return self.pricing == "reserved"


@dataclass(frozen=True)
class Numbers:
    """An instance in whole numbers; an objective that was not asked for is 0 everywhere.

    Attributes
    ----------
    replicas, durations : ndarray, shape (requests,)
    demands : ndarray, shape (requests, 2)
        vCPU and memory of one replica.
    horizon : int
    sizes : ndarray, shape (sizes, 2)
        The different capacities (vCPU, memory) of machines.
    places : tuple of str
    latency : ndarray, shape (requests, places)
        -1 where a place cannot be reached.
    share : ndarray, shape (requests,)
        What one replica on a machine of frequency 1 adds to the interruption.
    leases : tuple of Lease
    units : tuple of int
        Divide (latency, cost, interruption) by these to get ms, USD and the share.
    """

    problem: Temporal
    objectives: tuple[Objective, ...]
    replicas: np.ndarray
    durations: np.ndarray
    demands: np.ndarray
    horizon: int
    sizes: np.ndarray
    places: tuple[str, ...]
    latency: np.ndarray
    share: np.ndarray
    leases: tuple[Lease, ...]
    units: tuple[int, int, int]

    @property
    def columns(self) -> list[int]:
        """Where the objectives asked for stand in (latency, cost, interruption)."""
        return self.problem.columns(self.objectives)

    @property
    def limited(self) -> bool:
        """Whether an offer limits how many machines may be leased."""
        return any(lease.limit is not None for lease in self.leases)

    @property
    def max_frequency(self) -> int:
        """The largest interruption frequency of a lease."""
        return max(lease.frequency for lease in self.leases)

    @property
    def max_latency(self) -> int:
        """An upper bound on the latency of every plan: each request pays its farthest place."""
        return int(self.latency.max(axis=1).sum())

    @property
    def max_interruption(self) -> int:
        """An upper bound on the interruption of every plan."""
        return int(self.share @ self.replicas) * self.max_frequency

    def values(self, whole: np.ndarray) -> np.ndarray:
        """Return the objectives asked for of whole-number vectors, shape (..., 3).

        Values are divided as the referee divides them.
        """
        values = np.asarray(whole, dtype=np.int64) / np.array(self.units, dtype=float)
        return values[..., self.columns]

    def whole(self, plan: Plan) -> np.ndarray:
        """Return the whole-number vector of a plan by the referee, shape (3,).

        It is 0 for objectives that were not asked for.
        """
        values = np.array(self.problem.evaluate(plan).values) * np.array(self.units, dtype=float)
        vector = np.zeros(3, dtype=np.int64)
        vector[self.columns] = np.round(values)[self.columns]
        return vector

    def all_whole(self, plans: Iterable[Plan]) -> np.ndarray:
        """Return the whole-number vectors of plans, shape (plans, 3)."""
        return np.array([self.whole(plan) for plan in plans], dtype=np.int64).reshape(-1, 3)


def numbers(problem: Problem, objectives: Sequence[Objective]) -> Numbers:
    """Return the instance in whole numbers.

    Raises
    ------
    UnsupportedError
        Another problem, or numbers so large that sums would not be exact.
    InfeasibleInstanceError
        A request that nothing can serve.
    """
    if not isinstance(problem, Temporal):
        raise UnsupportedError(
            f"bin plans and their bounds are for temporal instances, not {problem.problem}"
        )
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    wanted = {o.name for o in objectives}
    arrays, n = problem.arrays, len(problem.requests)
    locations = [offer.location for offer in problem.offers]
    places = tuple(dict.fromkeys(locations))
    sizes, size_of = np.unique(arrays.capacities, axis=0, return_inverse=True)
    latency = arrays.whole_latencies[:, [locations.index(place) for place in places]]
    latency = latency if "latency_ms" in wanted else np.minimum(latency, 0)
    leases = tuple(
        Lease(
            offer=k,
            pricing=pricing,
            place=places.index(offer.location),
            size=int(size_of.ravel()[k]),
            price=arrays.slot_costs[k, pricing] if "cost_usd" in wanted else 0,
            frequency=arrays.frequencies[k]
            if pricing == "spot" and "interruption" in wanted
            else 0,
            limit=offer.max_instances,
        )
        for k, offer in enumerate(problem.offers)
        for pricing in PRICINGS
        if offer.price(pricing) is not None and offer.max_instances != 0
    )
    _check_sums(problem, latency, leases)
    shares = arrays.replica_shares if any(lease.frequency for lease in leases) else 0
    return Numbers(
        problem=problem,
        objectives=tuple(objectives),
        replicas=arrays.replicas,
        durations=arrays.durations,
        demands=arrays.demands,
        horizon=problem.horizon_slots,
        sizes=sizes,
        places=places,
        latency=latency,
        share=np.array([shares // r.replicas for r in problem.requests], np.int64),
        leases=leases,
        units=(n * arrays.latency_scale, arrays.cost_scale, n * arrays.interruption_scale),
    )


def _check_sums(problem: Temporal, latency: np.ndarray, leases: Sequence[Lease]) -> None:
    """Raise unless all sums fit into 52 bits; then they are exact as floats too."""
    arrays = problem.arrays
    slots = problem.horizon_slots * int(arrays.first[-1])
    largest = max(
        int(latency.max(axis=1).astype(object).sum()),
        slots * max(lease.price for lease in leases),
        len(problem.requests) * arrays.replica_shares * max(lease.frequency for lease in leases),
        slots * int(arrays.demands.max()),
        problem.horizon_slots * int(arrays.capacities.max()),
    )
    if largest >= 2**52:
        raise UnsupportedError(
            "the numbers of this instance are too wide for exact sums; write it with fewer decimals"
        )


# -- makespans -------------------------------------------------------------------------------------

#: Search nodes per set; a set that needs more keeps low < high.
MAX_NODES = 200_000


@allocating_kernel
def makespans(replicas, demands, durations, capacity, horizon):
    """Return least makespans of all sets on one machine size, as proven intervals [low, high].

    Sets are taken by growing code: a set is cut in two in all ways first, then searched for
    something shorter. Both parts of a cut may have replicas of one request, which then do not start
    together: that is the busy time of two machines, and a lower bound of the makespan on one.
    `replicas` and `durations` have shape (requests,), `demands` (requests, 2),
    `capacity` (2,). Returns `low` and `high`, (sets,): ``horizon + 1`` where the set does not fit,
    or is not done within the horizon.
    """
    k = len(replicas)
    sets = 1
    for i in range(k):
        sets *= replicas[i] + 1
    low, high = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    counts, items = np.zeros(k, np.int64), np.zeros((k, 3), np.int64)
    for code in range(1, sets):
        write_counts(code, replicas, counts)
        count, fits = 0, True
        for i in range(k):
            if counts[i] > 0:
                items[count, 0] = counts[i] * demands[i, 0]
                items[count, 1] = counts[i] * demands[i, 1]
                items[count, 2] = durations[i]
                fits = fits and items[count, 0] <= capacity[0] and items[count, 1] <= capacity[1]
                fits = fits and durations[i] <= horizon
                count += 1
        floor = _floor(items[:count], capacity) if fits else horizon + 1
        if floor > horizon:
            low[code] = high[code] = horizon + 1
            continue
        target = min(_split(code, replicas, counts, high), horizon + 1)
        if floor >= target:  # floor <= makespan <= target: the parts one after the other are best
            low[code] = high[code] = target
            continue
        proven, best = _search(items[:count], capacity, floor, target, MAX_NODES)
        high[code] = best
        low[code] = best if proven else floor
    return low, high


@allocating_kernel
def _split(code, replicas, counts, high):
    """Return the least sum of makespans, `high`, over all ways to cut a set in two."""
    part = np.zeros(len(replicas), np.int64)
    best = np.int64(2**40)
    piece = next_part(part, 0, counts, replicas, 0, 1)
    while piece >= 0:
        if 2 * piece <= code:
            best = min(best, high[piece] + high[code - piece])
        piece = next_part(part, piece, counts, replicas, 0, 1)
    return best


@kernel
def _floor(items, capacity):
    """Return a lower bound on the makespan of items, shape (k, 3): vCPU, memory, length.

    It is the largest of: the longest item, the work over the capacity, the work with weights by
    dual feasible functions, and the total length of items that pairwise exclude each other.
    """
    bound = 0
    for i in range(len(items)):
        bound = max(bound, items[i, 2], _chain(items, i, capacity))
    for resource in range(2):
        bound = max(bound, _work(items, resource, 0, capacity[resource]))
        for j in range(len(items)):
            if 2 * items[j, resource] <= capacity[resource]:
                bound = max(bound, _work(items, resource, items[j, resource], capacity[resource]))
    return bound


@kernel
def _work(items, resource, limit, capacity):
    """Return a lower bound on the makespan by the work on one resource.

    Items above ``capacity - limit`` exclude all that are not below `limit`: they count as if they
    took the whole capacity, and items below `limit` count nothing.
    """
    work = 0
    for i in range(len(items)):
        demand = items[i, resource]
        if demand > capacity - limit:
            work += capacity * items[i, 2]
        elif demand >= limit:
            work += demand * items[i, 2]
    return -(-work // capacity)


@allocating_kernel
def _chain(items, first, capacity):
    """Return the total length of items that exclude each other in pairs.

    They are gathered greedily around item `first`, the longest first.
    """
    taken = np.zeros(len(items), np.int64)
    taken[0], count, length = first, 1, items[first, 2]
    for i in np.argsort(-items[:, 2]):
        joins = i != first
        for t in range(count):
            a = taken[t]
            cpu, memory = items[a, 0] + items[i, 0], items[a, 1] + items[i, 1]
            if cpu <= capacity[0] and memory <= capacity[1]:
                joins = False
        if joins:
            taken[count] = i
            count += 1
            length += items[i, 2]
    return length


@allocating_kernel
def _search(items, capacity, floor, target, nodes):
    """Search for a makespan below `target`: in every order, each item starts as early as it can.

    Left-shifted schedules suffice: keep the order of the starts, and move every item to the first
    slot, not before its predecessor's start, where it fits beside the items before it. No item
    moves right. Returns whether the search was complete within so many nodes, and the least
    makespan, at most `target`.
    """
    k = len(items)
    start, chosen = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    option = np.zeros(k + 1, np.int64)
    used = np.zeros(k, np.bool_)
    finish = np.zeros(k, np.int64)
    best, depth, visited = target, 0, 0
    while depth >= 0:
        if option[depth] == 0 and visited >= nodes:
            return False, best
        j = option[depth]
        if j == k:  # all options of this depth are tried: step back
            depth -= 1
            if depth >= 0:
                used[chosen[depth]] = False
            continue
        option[depth] += 1
        if used[j]:
            continue
        visited += 1
        begin = _earliest(items, capacity, used, finish, start[depth], j)
        if depth > 0 and begin == start[depth] and j < chosen[depth - 1]:
            continue  # items that start together stand in their order
        if begin + items[j, 2] >= best:
            continue
        used[j], chosen[depth], finish[j] = True, j, begin + items[j, 2]
        if depth == k - 1:
            best = 0
            for i in range(k):
                best = max(best, finish[i])
            if best == floor:
                return True, best
            used[j] = False
        elif _can_beat(items, capacity, used, finish, begin, best):
            depth += 1
            start[depth], option[depth] = begin, 0
        else:
            used[j] = False
    return True, best


@kernel
def _earliest(items, capacity, used, finish, after, j):
    """Return the first slot, not before `after`, at which item j fits.

    No used item starts after `after`, so that the load only falls from then on.
    """
    time = after
    while True:
        cpu, memory, free = items[j, 0], items[j, 1], np.int64(2**40)
        for i in range(len(items)):
            if used[i] and finish[i] > time:
                cpu += items[i, 0]
                memory += items[i, 1]
                free = min(free, finish[i])
        if cpu <= capacity[0] and memory <= capacity[1]:
            return time
        time = free


@kernel
def _can_beat(items, capacity, used, finish, now, best):
    """Return whether the work that is left may be done before `best`.

    Nothing more starts before `now`.
    """
    cpu, memory, room = 0, 0, best - 1 - now
    for i in range(len(items)):
        left = items[i, 2] if not used[i] else max(0, finish[i] - now)
        if left > room:
            return False
        cpu += left * items[i, 0]
        memory += left * items[i, 1]
    return cpu <= capacity[0] * room and memory <= capacity[1] * room


# -- patterns --------------------------------------------------------------------------------------

#: Sets of replicas beyond which makespan tables are not made.
MAX_SETS = 2_000_000


@dataclass(frozen=True)
class MachineClass:
    """Leases of one place and one frequency; of one offer alone where it is limited."""

    place: int
    frequency: int
    leases: tuple[Lease, ...]
    offer: int | None = None

    @property
    def limit(self) -> int | None:
        """How many machines of the offer may be leased, None where unlimited."""
        return self.leases[0].limit


@dataclass(frozen=True)
class Patterns:
    """Sets of replicas that machines host.

    Attributes
    ----------
    numbers : Numbers
    codes : ndarray, shape (patterns,)
        Code of the set, see `placeopt.temporal.exact.tables`.
    counts : ndarray, shape (patterns, requests)
    classes : ndarray, shape (patterns,)
        Index into `machines`.
    cost : ndarray, shape (patterns,)
    interruption : ndarray, shape (patterns,)
    machines : tuple of MachineClass
    best : ndarray, shape (classes, sets)
        Least cost of hosting a set in an unlimited class, on any number of machines; `NEVER` where
        it cannot.
    spans : tuple of ndarray, one per size, shape (sets,)
        Least makespans.
    proven : bool
        Whether all makespans are exact; where not, costs are lower bounds.
    """

    numbers: Numbers
    codes: np.ndarray
    counts: np.ndarray
    classes: np.ndarray
    cost: np.ndarray
    interruption: np.ndarray
    machines: tuple[MachineClass, ...]
    best: np.ndarray
    spans: tuple[np.ndarray, ...]
    proven: bool

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def places(self) -> np.ndarray:
        """Place of each pattern, shape (patterns,)."""
        return np.array([m.place for m in self.machines], dtype=np.int64)[self.classes]


def build_patterns(numbers: Numbers, *, everything: bool = False) -> Patterns:
    """Return all patterns that the front of the relaxed problem can need.

    With `everything`, return those that no front needs too.

    Raises
    ------
    UnsupportedError
        There are more sets of replicas than `MAX_SETS`.
    """
    if (sets := count_sets(numbers.replicas)) > MAX_SETS:
        raise UnsupportedError(
            f"there are {sets:.2g} sets of replicas, bin plans tabulate at most {MAX_SETS:,}; "
            "use method 'bound' and a search"
        )
    counts = all_counts(numbers.replicas)
    spans = [
        makespans(numbers.replicas, numbers.demands, numbers.durations, size, numbers.horizon)
        for size in numbers.sizes
    ]
    lows = tuple(low for low, _ in spans)
    machines = _classes(numbers)
    cost = np.stack([_hosting_cost(numbers, machine, counts, lows) for machine in machines])
    free = sum(machine.limit is None for machine in machines)  # the unlimited classes come first
    previous = np.array(
        [c - 1 if c and _stands_in(machines[c - 1], machines[c]) else -1 for c in range(free)],
        dtype=np.int64,
    )
    best, kept = cost.copy(), cost < NEVER
    _cut(numbers.replicas, previous, best[:free], kept[:free])
    if everything:
        kept = cost < NEVER
    else:
        _drop_beaten(numbers, machines, counts > 0, best, cost, kept)
    where, codes = np.nonzero(kept)
    frequency = np.array([m.frequency for m in machines], dtype=np.int64)[where]
    return Patterns(
        numbers=numbers,
        codes=codes,
        counts=counts[codes].astype(np.int64),
        classes=where,
        cost=cost[where, codes],
        interruption=(counts[codes] * numbers.share).sum(axis=1) * frequency,
        machines=machines,
        best=best[:free],
        spans=lows,
        proven=all((low == high).all() for low, high in spans),
    )


def _classes(numbers: Numbers) -> tuple[MachineClass, ...]:
    """Return the machine classes: unlimited ones by place and frequency, then limited offers."""
    groups: dict[tuple[int, int, int], list[Lease]] = {}
    for lease in numbers.leases:
        offer = -1 if lease.limit is None else lease.offer
        groups.setdefault((offer, lease.place, lease.frequency), []).append(lease)
    return tuple(
        MachineClass(place, frequency, tuple(leases), None if offer < 0 else offer)
        for (offer, place, frequency), leases in sorted(groups.items(), key=lambda group: group[0])
    )


def _stands_in(one: MachineClass, other: MachineClass) -> bool:
    """Return whether a class may replace another one: same place, lower frequency."""
    return one.place == other.place and one.frequency < other.frequency


def _hosting_cost(
    numbers: Numbers, machine: MachineClass, counts: np.ndarray, spans: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Return the cost of every set on one machine of a class, shape (sets,).

    It is `NEVER` where the machine cannot host the set.
    """
    unreachable = (counts[:, numbers.latency[:, machine.place] < 0] > 0).any(axis=1)
    cost = np.full(len(counts), NEVER)
    for lease in machine.leases:
        slots = spans[lease.size]
        paid = lease.price * (numbers.horizon if lease.reserved else slots)
        cost = np.minimum(cost, np.where(slots > numbers.horizon, NEVER, paid))
    cost[unreachable] = NEVER
    cost[0] = NEVER  # the empty set leases no machine
    return cost


def _drop_beaten(
    numbers: Numbers,
    machines: tuple[MachineClass, ...],
    members: np.ndarray,
    best: np.ndarray,
    cost: np.ndarray,
    kept: np.ndarray,
) -> None:
    """Drop from `kept`, in place, what another class hosts no worse.

    No worse means: latency of every member, interruption, and cost. Where two classes are equal in
    everything, the first of them stays. `members` is (sets, requests), the others (classes, sets).
    """
    for c, here in enumerate(machines):
        for k, other in enumerate(machines):
            if k == c or other.frequency > here.frequency:
                continue
            if other.limit is not None and other.offer != here.offer:
                continue
            theirs, ours = numbers.latency[:, other.place], numbers.latency[:, here.place]
            no_farther = ~(members & ((theirs < 0) | (theirs > ours))).any(axis=1)
            beaten = no_farther & (best[k] <= cost[c])
            if k > c and other.frequency == here.frequency:
                beaten &= (members & (theirs != ours)).any(axis=1) | (best[k] != cost[c])
            kept[c] &= ~beaten


@allocating_kernel
def _cut(replicas, previous, best, kept):
    """Cut every set into parts in all ways, by growing code.

    Lowers `best`, (classes, sets), to the least cost over all ways, in place, and drops from
    `kept`, (classes, sets), the sets that parts host for no more. ``previous[c]``, (classes,), is a
    class that may stand in for class c, or -1.
    """
    classes, sets = best.shape
    counts, part = np.zeros(len(replicas), np.int64), np.zeros(len(replicas), np.int64)
    split = np.zeros(classes, np.int64)
    for code in range(1, sets):
        write_counts(code, replicas, counts)
        part[:] = 0
        split[:] = 2**60
        piece = next_part(part, 0, counts, replicas, 0, 1)
        while piece >= 0:
            if 2 * piece <= code:
                for c in range(classes):
                    split[c] = min(split[c], best[c, piece] + best[c, code - piece])
            piece = next_part(part, piece, counts, replicas, 0, 1)
        for c in range(classes):
            if previous[c] >= 0:
                split[c] = min(split[c], best[previous[c], code])
            if split[c] <= best[c, code]:
                best[c, code], kept[c, code] = split[c], False
