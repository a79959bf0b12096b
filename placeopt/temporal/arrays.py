"""A temporal instance as arrays, in whole numbers.

Sums of whole numbers do not depend on the order of their terms, so that a plan has one value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from placeopt.core.numbers import MAX_DECIMALS, begins, decimals, resources, unit_digits

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
        first=begins(replicas),
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
