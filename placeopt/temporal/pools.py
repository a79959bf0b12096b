"""What requests and replicas may be sent to, as arrays and kernels take it: pools of machines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placeopt.core.kernels.compile import kernel
from placeopt.core.numbers import ragged

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
    legal_first, every_legal = ragged(legal)
    size = numbers.demands / numbers.capacities.max(axis=0)
    return PoolArrays(
        horizon=horizon,
        duration=duration,
        demand=numbers.demands,
        least_demand=numbers.demands.min(axis=0),
        first=numbers.first,
        request=np.repeat(np.arange(len(duration)), numbers.replicas),
        rank=np.lexsort((-size.max(axis=1), -duration)),
        legal_first=legal_first,
        legal=every_legal,
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
