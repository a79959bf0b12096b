"""Columns: which sets of replicas are worth putting on one machine together, and what that costs.

Machines of one place and one interruption frequency are interchangeable for latency and interruption, so they form a *class*: a set
costs what the cheapest of them costs. A column (set, class) is kept where nothing else does the same for no more: not two
parts of the set, not a class that is no worse for every member. An offer with ``max_instances`` is a class of its own that keeps
all its sets, since cutting a set in two leases one machine more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import UnsupportedError
from placeopt.core.kernels.compile import kernel
from placeopt.temporal.exact.makespan import makespans, strides
from placeopt.temporal.exact.numbers import NEVER, Lease, Numbers

#: Sets of replicas beyond which makespan tables are not made.
MOST_SETS = 2_000_000


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
class Columns:
    """Bin plans.

    Attributes
    ----------
    codes : ndarray, shape (columns,)
        Code of the set, see `placeopt.temporal.exact.makespan`.
    counts : ndarray, shape (columns, requests)
    classes : ndarray, shape (columns,)
        Index into `machines`.
    cost : ndarray, shape (columns,)
    interruption : ndarray, shape (columns,)
    lease : ndarray, shape (columns,)
        The lease that costs this, index into ``numbers.leases``.
    machines : tuple of MachineClass
    best : ndarray, shape (classes, sets)
        Least cost of hosting a set in a class, on any number of machines; `NEVER` where it cannot.
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
    lease: np.ndarray
    machines: tuple[MachineClass, ...]
    best: np.ndarray
    spans: tuple[np.ndarray, ...]
    proven: bool

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def places(self) -> np.ndarray:
        """Place of each column."""
        return np.array([m.place for m in self.machines], dtype=np.int64)[self.classes]

    def take(self, keep: np.ndarray) -> Columns:
        """Return the columns of a mask or of indices."""
        return Columns(
            self.numbers,
            self.codes[keep],
            self.counts[keep],
            self.classes[keep],
            self.cost[keep],
            self.interruption[keep],
            self.lease[keep],
            self.machines,
            self.best,
            self.spans,
            self.proven,
        )


def count_sets(numbers: Numbers) -> int:
    """Return how many sets of replicas there are."""
    return int(strides(numbers.replicas)[-1])


def bin_columns(numbers: Numbers, *, everything: bool = False) -> Columns:
    """Return all bin plans that the front of the relaxed problem can need; with `everything`, those that no front needs too.

    Raises
    ------
    UnsupportedError
        There are more sets of replicas than `MOST_SETS`.
    """
    if (sets := count_sets(numbers)) > MOST_SETS:
        raise UnsupportedError(
            f"there are {sets:.2g} sets of replicas, bin plans tabulate at most {MOST_SETS:,}; use method 'bound' and a search"
        )
    counts = all_counts(numbers)
    span = [
        makespans(numbers.replicas, numbers.demands, numbers.durations, size, numbers.horizon)
        for size in numbers.sizes
    ]
    machines = _classes(numbers)
    host = [_hosting_cost(numbers, machine, counts, span) for machine in machines]
    cost, lease = np.stack([c for c, _ in host]), np.stack([x for _, x in host])
    free = sum(machine.limit is None for machine in machines)  # the unlimited classes come first
    previous = np.array(
        [
            c - 1 if c and _cheaper_neighbour(machines[c - 1], machines[c]) else -1
            for c in range(free)
        ],
        dtype=np.int64,
    )
    best, kept = cost.copy(), cost < NEVER
    _close(numbers.replicas, previous, best[:free], kept[:free])
    if everything:
        kept = cost < NEVER
    members = counts > 0
    for c in range(len(machines)):
        for other in range(len(machines)):
            if not everything and other != c and machines[other].frequency <= machines[c].frequency:
                kept[c] &= ~_beaten(numbers, machines, members, best[other], cost[c], other, c)
    where, codes = np.nonzero(kept)
    frequency = np.array([m.frequency for m in machines], dtype=np.int64)[where]
    return Columns(
        numbers,
        codes,
        counts[codes].astype(np.int64),
        where,
        cost[where, codes],
        (counts[codes] * numbers.share).sum(axis=1) * frequency,
        lease[where, codes],
        machines,
        best[:free],
        tuple(low for low, _ in span),
        all((low == high).all() for low, high in span),
    )


def all_counts(numbers: Numbers) -> np.ndarray:
    """Return the counts of every set, shape (sets, requests)."""
    shape = tuple(numbers.replicas[::-1] + 1)
    return np.stack(np.unravel_index(np.arange(count_sets(numbers)), shape)[::-1], axis=1).astype(
        np.int16
    )


def _classes(numbers: Numbers) -> tuple[MachineClass, ...]:
    """Return the machine classes: unlimited ones by place and frequency, then the limited offers."""
    groups: dict[tuple[int, int, int], list[Lease]] = {}
    for lease in numbers.leases:
        groups.setdefault(
            (-1 if lease.limit is None else lease.offer, lease.place, lease.frequency), []
        ).append(lease)
    return tuple(
        MachineClass(place, frequency, tuple(leases), None if offer < 0 else offer)
        for (offer, place, frequency), leases in sorted(groups.items(), key=lambda group: group[0])
    )


def _cheaper_neighbour(one: MachineClass, other: MachineClass) -> bool:
    """Whether `one` may stand in for `other` wherever it costs less: same place, lower frequency."""
    return one.place == other.place and one.frequency < other.frequency


def _hosting_cost(
    numbers: Numbers,
    machine: MachineClass,
    counts: np.ndarray,
    span: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cost of every set on one machine of a class, and the lease that costs it; `NEVER` where it cannot be hosted."""
    unreachable = (counts[:, numbers.latency[:, machine.place] < 0] > 0).any(axis=1)
    cost, lease = np.full(len(counts), NEVER), np.full(len(counts), -1)
    for choice in machine.leases:
        slots = span[choice.size][0]
        paid = np.where(
            slots > numbers.horizon,
            NEVER,
            choice.price * (numbers.horizon if choice.pricing == "reserved" else slots),
        )
        paid[unreachable] = NEVER
        lease[paid < cost] = numbers.leases.index(choice)
        cost = np.minimum(cost, paid)
    cost[0] = NEVER  # nobody leases a machine for nothing
    return cost, lease


def _beaten(
    numbers: Numbers,
    machines: tuple[MachineClass, ...],
    members: np.ndarray,
    best: np.ndarray,
    cost: np.ndarray,
    other: int,
    c: int,
) -> np.ndarray:
    """Return the sets that class `other` hosts no worse than class `c`: latency of every member, interruption, cost.

    Where both are equal in everything, the first of them stays.
    """
    one, here = machines[other], machines[c]
    if one.limit is not None and one.offer != here.offer:
        return np.zeros(len(cost), dtype=bool)
    theirs, ours = numbers.latency[:, one.place], numbers.latency[:, here.place]
    no_farther = ~(members & ((theirs < 0) | (theirs > ours))).any(axis=1)
    equal = (
        ~(members & (theirs != ours)).any(axis=1)
        & (best == cost)
        & (one.frequency == here.frequency)
    )
    return no_farther & (best <= cost) & ~(equal & (other > c))


@kernel
def _close(replicas, previous, best, kept):
    """Make `best` the least cost over all ways to cut a set into parts, and drop from `kept` what parts do for no more."""
    k, classes, total = len(replicas), best.shape[0], best.shape[1]
    n, part = np.zeros(k, np.int64), np.zeros(k, np.int64)
    split = np.zeros(classes, np.int64)
    for code in range(1, total):
        rest = code
        for i in range(k):
            n[i] = rest % (replicas[i] + 1)
            rest //= replicas[i] + 1
        part[:] = 0
        split[:] = 2**60
        piece = 0
        while True:
            i, stride = 0, 1
            while i < k and part[i] == n[i]:
                piece -= part[i] * stride
                part[i] = 0
                stride *= replicas[i] + 1
                i += 1
            if i == k:
                break
            part[i] += 1
            piece += stride
            if 2 * piece <= code:
                for c in range(classes):
                    split[c] = min(split[c], best[c, piece] + best[c, code - piece])
        for c in range(classes):
            if previous[c] >= 0:
                split[c] = min(split[c], best[previous[c], code])
            if split[c] <= best[c, code]:
                best[c, code], kept[c, code] = split[c], False
