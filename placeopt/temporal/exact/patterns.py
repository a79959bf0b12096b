"""Patterns: which sets of replicas are worth putting on one machine together, and at what cost.

Machines of one place and one interruption frequency are interchangeable for latency and
interruption, so they form a *class*: a set costs what the cheapest of them costs. A pattern (set,
class) is kept where nothing else does the same at no greater cost: not two parts of the set, not a
class that is no worse for every member. An offer with ``max_instances`` is a class of its own that
keeps all its sets, since cutting a set in two leases one machine more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.kernels.compile import allocating_kernel
from placeopt.temporal.exact.makespan import makespans
from placeopt.temporal.exact.numbers import NEVER, Lease, Numbers
from placeopt.temporal.exact.sets import all_counts, count_sets, next_part, write_counts

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
        Code of the set, see `placeopt.temporal.exact.sets`.
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
