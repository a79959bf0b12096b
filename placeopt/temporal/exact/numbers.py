"""The instance as whole numbers: latencies, prices and interruptions in the referee's own units, so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError
from placeopt.core.front import Objective
from placeopt.core.problem import Problem
from placeopt.temporal.instance import Temporal
from placeopt.temporal.referee import PRICINGS

#: Greater than every cost: "impossible".
NEVER = np.int64(2**60)


@dataclass(frozen=True)
class Lease:
    """One way to lease a machine: an offer under one of its prices."""

    offer: int
    pricing: str
    place: int
    size: int
    price: int
    frequency: int
    limit: int | None


@dataclass(frozen=True)
class Numbers:
    """An instance in whole numbers; an objective that was not asked for is 0 everywhere.

    Attributes
    ----------
    replicas, durations : ndarray, shape (requests,)
    demands : ndarray, shape (requests, 2)
    sizes : ndarray, shape (sizes, 2)
        The different (cpu, memory) capacities.
    latency : ndarray, shape (requests, places)
        -1 where a place cannot be reached.
    share : ndarray, shape (requests,)
        What one replica on a machine of frequency 1 adds to the interruption.
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
    def exact(self) -> bool:
        """Whether every number of the instance is kept exactly."""
        return all(o.step is not None for o in self.objectives)

    def values(self, whole: np.ndarray) -> np.ndarray:
        """Return the objectives asked for of whole-number vectors (..., 3), as the referee would divide them."""
        return (np.asarray(whole, dtype=np.int64) / np.array(self.units, dtype=float))[
            ..., self.columns
        ]

    def whole(self, plan: dict) -> np.ndarray:
        """Return the whole-number vector of a plan by the referee, 0 for objectives not asked for, shape (3,)."""
        values = self.problem.evaluate(plan).values
        asked = self.columns
        return np.array(
            [
                round(v * u) if k in asked else 0
                for k, (v, u) in enumerate(zip(values, self.units, strict=True))
            ],
            dtype=np.int64,
        )

    @property
    def limited(self) -> bool:
        """Whether an offer limits how many machines may be leased."""
        return any(lease.limit is not None for lease in self.leases)


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
    asked = {o.name for o in objectives}
    units, n = problem._units, len(problem.requests)
    places = tuple(dict.fromkeys(o.location for o in problem.offers))
    sizes, size_of = np.unique(problem.capacities, axis=0, return_inverse=True)
    latency = np.full((n, len(places)), -1, dtype=np.int64)
    for k, request in enumerate(problem.requests):
        for j, offer in enumerate(problem.offers):
            ms = units.latency[request.origin][j]
            if ms is not None:
                latency[k, places.index(offer.location)] = ms if "latency_ms" in asked else 0
    leases = []
    for j, offer in enumerate(problem.offers):
        for pricing in PRICINGS:
            if offer.price(pricing) is None or offer.max_instances == 0:
                continue
            price = units.slot_cost[j, pricing] if "cost_usd" in asked else 0
            frequency = units.frequency[j] if pricing == "spot" and "interruption" in asked else 0
            leases.append(
                Lease(
                    j,
                    pricing,
                    places.index(offer.location),
                    int(size_of.ravel()[j]),
                    price,
                    frequency,
                    offer.max_instances,
                )
            )
    replicas = np.array([r.replicas for r in problem.requests], dtype=np.int64)
    share = np.array([units.share // r.replicas for r in problem.requests], dtype=object)
    _small_enough(problem, latency, leases)
    return Numbers(
        problem,
        tuple(objectives),
        replicas,
        np.array([r.duration_slots for r in problem.requests], dtype=np.int64),
        problem.demands,
        problem.horizon_slots,
        sizes,
        places,
        latency,
        share.astype(np.int64),
        tuple(leases),
        (n * units.latency_scale, units.cost_scale, n * units.interruption_scale),
    )


def _small_enough(problem: Temporal, latency: np.ndarray, leases: Sequence[Lease]) -> None:
    """Raise unless all sums fit 52 bits: then they are exact as floats too."""
    slots = problem.horizon_slots * sum(r.replicas for r in problem.requests)
    largest = max(
        int(latency.max(axis=1).astype(object).sum()),
        slots * max(lease.price for lease in leases),
        len(problem.requests) * problem._units.share * max(lease.frequency for lease in leases),
        slots * int(problem.demands.max()),
        problem.horizon_slots * int(problem.capacities.max()),
    )
    if largest >= 2**52:
        raise UnsupportedError(
            "the numbers of this instance are too wide for exact sums; write it with fewer decimals"
        )
