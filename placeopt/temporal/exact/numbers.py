"""The instance in whole numbers, as the exact methods need it.

Latencies, prices and interruptions are in the referee's own units, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.core.fronts.values import Objective, Plan
from placeopt.core.problem import Problem
from placeopt.temporal.document import PRICINGS
from placeopt.temporal.instance import Temporal

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
