"""A bound on the applications that run wholly at their source: each source is a knapsack.

An application is at home if all of its microservices run at its source. Prices of capacity do not
see that a source has room for one application but not for two: they let the second be at home by
half. So an application pays a charge for being at home. Each source returns the largest charge of a
set of its applications that fit there together. The sum remains a lower bound (Lagrangian
decomposition; M. Guignard and S. Kim, 1987).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.edge_cloud.arrays import EdgeCloudArrays

#: Sets of a source's applications that fit there, beyond which nothing is charged: where so many
#: fit, one application more or less matters little.
MOST = 4096
#: Bits of a set, with its sign.
_BITS = 64


class Homes(NamedTuple):
    """Which applications may be at home together, for each source where not all of them may."""

    first: np.ndarray  # (sources + 1,) into `member`
    member: np.ndarray  # applications
    set_first: np.ndarray  # (sources + 1,) into `sets`
    sets: np.ndarray  # int64; bit k of a set is the k-th member; no set is within another
    free: np.ndarray  # applications that are no members: they are not charged


def homes(instance: EdgeCloudArrays, most: int = MOST) -> Homes:
    """Return the homes of an instance; sources where more than `most` sets fit are left out."""
    demand = np.add.reduceat(instance.demand, instance.first[:-1])
    members: list[np.ndarray] = []
    sets: list[np.ndarray] = []
    for source in np.unique(instance.source):
        member = np.flatnonzero(instance.source == source)
        largest = _largest_sets(demand[member], instance.capacity[source], most)
        if len(largest) > 1:  # else all applications that fit at all fit together
            members.append(member)
            sets.append(largest)
    first, member = _ragged(members)
    return Homes(first, member, *_ragged(sets), np.setdiff1d(np.arange(len(demand)), member))


def no_homes() -> Homes:
    """Return that nobody is charged."""
    return Homes(*_ragged([]), *_ragged([]), np.zeros(0, dtype=np.int64))


def _largest_sets(demand: np.ndarray, capacity: np.ndarray, most: int) -> np.ndarray:
    """Return the sets of rows of `demand` that fit, as bits, but for those within another.

    Returns none where more than `most` fit, or rows are more than bits.
    """
    sets, load = np.zeros(1, dtype=np.int64), np.zeros((1, 2))
    if len(demand) >= _BITS:
        return sets[:0]
    capacity = capacity * (1 + 1e-9)  # the order of a sum must not decide
    for k, more in enumerate(demand):
        fits = (load + more <= capacity).all(axis=1)
        sets = np.concatenate((sets, sets[fits] | 1 << k))
        load = np.concatenate((load, load[fits] + more))
        if len(sets) > most:
            return sets[:0]
    absent = sets[:, None] >> np.arange(len(demand)) & 1 == 0
    grows = absent & (load[:, None] + demand <= capacity).all(axis=2)
    return sets[~grows.any(axis=1)]


def _ragged(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first index of each row and their concatenation."""
    first = np.cumsum([0, *map(len, rows)])
    return first, np.concatenate([np.zeros(0, dtype=np.int64), *rows])


@kernel
def max_source_revenue(known, charge, slope):
    """Return the most that applications which may be at home together pay, over all sources.

    `known` are `Homes`; `charge` is (applications, 1). Takes 1 from the `slope`, (applications, 1),
    of each that is at home then; that of applications which are not charged becomes 0.
    """
    total = 0.0
    for application in known.free:
        slope[application, 0] = 0.0
    for source in range(len(known.first) - 1):
        low, high = known.first[source], known.first[source + 1]
        best, most = 0, -1.0
        for k in range(known.set_first[source], known.set_first[source + 1]):
            paid = 0.0
            for j in range(high - low):
                if known.sets[k] >> j & 1:
                    paid += charge[known.member[low + j], 0]
            if paid > most:
                best, most = known.sets[k], paid
        total += most
        for j in range(high - low):
            if best >> j & 1:
                slope[known.member[low + j], 0] -= 1
    return total
