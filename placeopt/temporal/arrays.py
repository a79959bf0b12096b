"""A temporal instance as arrays, in whole numbers.

Sums of whole numbers do not depend on the order of their terms, so that a plan has one value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.numbers import MAX_DECIMALS, decimals, resources, unit_digits

# -- requests and offers ---------------------------------------------------------------------------

#: More decimals of USD per slot than these are rounded.
MAX_COST_DECIMALS = 12

#: Pricings of machines.
PRICINGS = ("on-demand", "reserved", "spot")


@dataclass(frozen=True)
class TemporalArrays:
    """An instance as arrays. An objective has no step (None) where its numbers are rounded.

    Attributes
    ----------
    durations, replicas : ndarray of int64, shape (requests,)
        Slots, and number of replicas.
    first : ndarray of int64, shape (requests + 1,)
        Number of the first replica of each request, and last how many there are.
    max_machines : ndarray of int64, shape (offers,)
        Machines that may be leased, -1 for no limit.
    demands : ndarray of int64, shape (requests, 2)
        vCPU and memory of one replica; compared with `capacities` alone.
    capacities : ndarray of int64, shape (offers, 2)
        vCPU and memory of one machine.
    latencies : ndarray of float, shape (requests, offers)
        From the origin of the request, in ms; inf where none is given.
    usable : ndarray of bool, shape (requests, offers)
        Whether a machine can host a replica: it fits, is reachable, and may be leased.
    whole_latencies : ndarray of int64, shape (requests, offers)
        Latency in ms times `latency_scale`; -1 where none is given.
    slot_costs : dict of (int, str) to int
        Cost of a machine per slot in USD times `cost_scale`, by offer and pricing.
    frequencies : list of int
        Share of interruptions of each offer on spot, times
        ``interruption_scale / replica_shares``.
    replica_shares : int
        A replica counts as this divided by the replicas of its request: a whole number.
    """

    durations: np.ndarray
    replicas: np.ndarray
    first: np.ndarray
    max_machines: np.ndarray
    demands: np.ndarray
    capacities: np.ndarray
    latencies: np.ndarray
    usable: np.ndarray
    whole_latencies: np.ndarray
    latency_scale: int
    latency_step: float | None
    slot_costs: dict[tuple[int, str], int]
    cost_scale: int
    cost_step: float | None
    frequencies: list[int]
    replica_shares: int
    interruption_scale: int
    interruption_step: float | None


def build_arrays(
    offers: Sequence[Any],
    requests: Sequence[Any],
    latency_ms: Mapping[str, Mapping[str, float]],
    slot_hours: float,
) -> TemporalArrays:
    """Return the arrays of an instance."""
    replicas = np.array([request.replicas for request in requests])
    limits = [offer.max_instances for offer in offers]
    demands, capacities = resources(requests, offers, int(replicas.sum()))
    values_in = [ms for row in latency_ms.values() for ms in row.values()]
    latency_digits, kept = decimals(values_in), unit_digits(values_in, len(requests))
    latency_scale = 10**kept
    by_origin = {
        origin: [row.get(offer.location, math.inf) for offer in offers]
        for origin, row in latency_ms.items()
    }
    whole = {
        origin: [-1 if math.isinf(ms) else _whole(ms, latency_scale) for ms in row]
        for origin, row in by_origin.items()
    }
    latencies = np.array([by_origin[request.origin] for request in requests])
    fits = (demands[:, None, :] <= capacities[None, :, :]).all(axis=2)
    max_machines = np.array([-1 if limit is None else limit for limit in limits])
    slot_costs, cost_digits = _slot_costs(offers, slot_hours)
    frequencies = [offer.frequency("spot") for offer in offers]
    frequency_digits = decimals(frequencies)
    frequency_scale = 10 ** min(frequency_digits, MAX_DECIMALS)
    replica_shares = math.lcm(*replicas.tolist())
    inexact = frequency_digits > MAX_DECIMALS or replica_shares > 10**9
    n = len(requests)
    return TemporalArrays(
        durations=np.array([request.duration_slots for request in requests]),
        replicas=replicas,
        first=np.cumsum([0, *replicas]),
        max_machines=max_machines,
        demands=demands,
        capacities=capacities,
        latencies=latencies,
        usable=fits & (max_machines != 0) & np.isfinite(latencies),
        whole_latencies=np.array([whole[request.origin] for request in requests]),
        latency_scale=latency_scale,
        latency_step=None if latency_digits > kept else 1 / (n * latency_scale),
        slot_costs=slot_costs,
        cost_scale=10 ** min(cost_digits, MAX_COST_DECIMALS),
        cost_step=None if cost_digits > MAX_COST_DECIMALS else 1 / 10**cost_digits,
        frequencies=[_whole(frequency, frequency_scale) for frequency in frequencies],
        replica_shares=replica_shares,
        interruption_scale=frequency_scale * replica_shares,
        interruption_step=None if inexact else 1 / (n * frequency_scale * replica_shares),
    )


def _slot_costs(offers: Sequence[Any], slot_hours: float) -> tuple[dict[tuple[int, str], int], int]:
    """Return the cost per slot by offer and pricing in whole numbers, and its decimals."""
    exact = {
        (k, pricing): Decimal(repr(price)) * Decimal(repr(float(slot_hours)))
        for k, offer in enumerate(offers)
        for pricing in PRICINGS
        if (price := offer.price(pricing)) is not None
    }
    digits = max(
        (max(0, -int(usd.normalize().as_tuple().exponent)) for usd in exact.values()), default=0
    )
    scale = 10 ** min(digits, MAX_COST_DECIMALS)
    return {key: int((usd * scale).to_integral_value()) for key, usd in exact.items()}, digits


def _whole(value: float, scale: int) -> int:
    return int((Decimal(repr(float(value))) * scale).to_integral_value())


# -- pools -----------------------------------------------------------------------------------------

#: Stands for the price of what is not offered; finite, so that 0 busy slots cost 0.
NO_PRICE = 1e300


class Pool(NamedTuple):
    """Machines of one offer that are all spot or all firm."""

    offer: int
    spot: bool


class PoolArrays(NamedTuple):
    """The arrays that the kernels read: n requests, R replicas, P pools, O offers.

    A request that cannot be served at all has no legal pool and is left out of plans.
    """

    horizon: int
    duration: np.ndarray  # (n,) slots
    demand: np.ndarray  # (n, 2) vCPU and memory of a replica
    least_demand: np.ndarray  # (2,) least vCPU and least memory of a replica
    first: np.ndarray  # (n + 1,) first replica of each request
    request: np.ndarray  # (R,) request of each replica
    rank: np.ndarray  # (n,) requests in the order in which equal starts are packed
    legal_first: np.ndarray  # (n + 1,) where the legal list of each request begins in `legal`
    legal: np.ndarray  # pools
    capacity: np.ndarray  # (P, 2) vCPU and memory of a machine
    price: np.ndarray  # (P, 2) USD per busy slot; USD for the whole horizon
    frequency: np.ndarray  # (P,) share of interruptions, 0 for firm pools
    latency: np.ndarray  # (n, P) ms
    offer: np.ndarray  # (P,)
    place: np.ndarray  # (P,) a number for each location
    max_machines: np.ndarray  # (O,) machines of each offer, -1 for no limit
    limited: bool  # whether any offer has a limit


def pools(problem: Any) -> list[Pool]:
    """Return the pools of an instance.

    Spot is left out where on-demand is as cheap, since it only adds interruptions.
    """
    results = []
    for k, offer in enumerate(problem.offers):
        on_demand, spot = offer.on_demand_usd_per_hour, offer.spot_usd_per_hour
        if on_demand is not None or offer.reserved_usd_per_hour is not None:
            results.append(Pool(k, False))
        if spot is not None and (on_demand is None or spot < on_demand):
            results.append(Pool(k, True))
    return results


def pool_arrays(problem: Any) -> PoolArrays:
    """Return the arrays of an instance."""
    numbers, every = problem.arrays, pools(problem)
    offer = np.array([pool.offer for pool in every])
    horizon = problem.horizon_slots
    price = np.array([_pool_prices(problem, pool) for pool in every])
    duration = numbers.durations
    latency = numbers.latencies[:, offer]
    legal = []
    for k in range(len(duration)):
        fits = np.flatnonzero(numbers.usable[k, offer] & (duration[k] <= horizon))
        rate = np.minimum(price[fits, 0], price[fits, 1] / horizon)
        legal.append(fits[np.lexsort((fits, rate, latency[k, fits]))])
    size = numbers.demands / numbers.capacities.max(axis=0)
    return PoolArrays(
        horizon=horizon,
        duration=duration,
        demand=numbers.demands,
        least_demand=numbers.demands.min(axis=0),
        first=numbers.first,
        request=np.repeat(np.arange(len(duration)), numbers.replicas),
        rank=np.lexsort((-size.max(axis=1), -duration)),
        legal_first=np.cumsum([0, *map(len, legal)]),
        legal=np.concatenate(legal).astype(np.int64),
        capacity=numbers.capacities[offer],
        price=price,
        frequency=np.array(
            [problem.offers[k].frequency("spot") if spot else 0.0 for k, spot in every]
        ),
        latency=np.where(np.isfinite(latency), latency, 0.0),
        offer=offer,
        place=np.unique([problem.offers[k].location for k in offer], return_inverse=True)[1],
        max_machines=numbers.max_machines,
        limited=bool((numbers.max_machines >= 0).any()),
    )


def _pool_prices(problem: Any, pool: Pool) -> tuple[float, float]:
    """Return USD per busy slot and USD for the whole horizon of a machine."""
    if pool.spot:
        return problem.slot_price(pool.offer, "spot"), NO_PRICE
    on_demand, reserved = (problem.slot_price(pool.offer, p) for p in ("on-demand", "reserved"))
    return min(on_demand, NO_PRICE), min(reserved * problem.horizon_slots, NO_PRICE)


@kernel
def served(instance, request):
    """Return whether some pool can host the replicas of a request."""
    return instance.legal_first[request + 1] > instance.legal_first[request]


@kernel
def pool_of(instance, genes, replica):
    """Return the pool that a vector, shape (n + R,), sends a replica to."""
    request = instance.request[replica]
    gene = genes[len(instance.duration) + replica]
    return instance.legal[instance.legal_first[request] + gene]


@kernel
def weighted_quality(instance, weights, request, pool, worst_latency):
    """Return the weighted latency and interruption that one more replica in a pool adds.

    `weights`, shape (3,), are per unit of mean latency, cost and mean interruption. So far the
    largest latency of the request's replicas is `worst_latency`.
    """
    n = len(instance.duration)
    count = instance.first[request + 1] - instance.first[request]
    farther = max(0.0, instance.latency[request, pool] - worst_latency)
    return weights[0] * farther / n + weights[2] * instance.frequency[pool] / (n * count)
