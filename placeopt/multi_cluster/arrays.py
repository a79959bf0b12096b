"""A multi-cluster instance as arrays, with resources and times in whole units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placeopt.core.numbers import scaled_down, scaled_up, unit_digits
from placeopt.multi_cluster.generator import TYPES


class MultiClusterArrays(NamedTuple):
    """An instance of C clusters and T requests."""

    unit: np.ndarray  # (3,) cores, GiB and time in a whole unit
    scale: np.ndarray  # (2,) least and greatest cost for rewards: 1, 16 unless a cluster is beyond
    capacity: np.ndarray  # (C, 2) int64, cpu and memory
    used: np.ndarray  # (C, 2) int64, what is allocated before the trace
    price: np.ndarray  # (C,) cost of a replica
    base: np.ndarray  # (C,) latency of the empty cluster, ms
    matrix: np.ndarray  # (C, C) latencies between clusters, ms
    demand: np.ndarray  # (T, 2) int64, cpu and memory of a replica
    replicas: np.ndarray  # (T,) int64
    arrival: np.ndarray  # (T,) whole numbers as floats
    departure: np.ndarray  # (T,) whole numbers as floats
    threshold: np.ndarray  # (T,) highest latency that the request asks for, ms
    increase: np.ndarray  # (T,) share by which the request raises the latency of its clusters


def build(
    clusters: Sequence[Any],
    requests: Sequence[Any],
    matrix: np.ndarray,
) -> MultiClusterArrays:
    """Return the arrays of clusters and requests; `matrix` has latencies in ms, its diagonal 0."""
    resources = [_resource(clusters, requests, name) for name in ("cpu_cores", "memory_gib")]
    units, capacity, used, demand = (
        np.stack(both, axis=-1) for both in zip(*resources, strict=True)
    )
    times = [time for r in requests for time in (r.arrival, r.duration)]
    digits = unit_digits(times)
    moments = scaled_up(times, digits).reshape(-1, 2)
    costs = [c.cost for c in clusters]
    legal_costs = [*costs, *(kind.cost for kind in TYPES)]
    return MultiClusterArrays(
        unit=np.append(units, 10.0**-digits),
        scale=np.array([min(legal_costs), max(legal_costs)]),
        capacity=capacity,
        used=used,
        price=np.array(costs, dtype=float),
        base=matrix.sum(axis=1) / (len(matrix) - 1),
        matrix=matrix,
        demand=demand,
        replicas=np.array([r.replicas for r in requests], dtype=np.int64),
        arrival=moments[:, 0].astype(float),
        departure=moments.sum(axis=1).astype(float),
        threshold=np.array([r.latency_threshold_ms for r in requests], dtype=float),
        increase=np.array([r.latency_increase for r in requests], dtype=float),
    )


def _resource(
    clusters: Sequence[Any], requests: Sequence[Any], name: str
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the unit of a resource; in it, capacities and allocations (C,) and demands (T,)."""
    capacity = [getattr(c, name) for c in clusters]
    used = [getattr(c, f"allocated_{name}") for c in clusters]
    demand = [getattr(r, name) for r in requests]
    copies = sum(r.replicas for r in requests)
    digits = unit_digits([*capacity, *used, *demand], copies)
    return (
        10.0**-digits,
        scaled_down(capacity, digits),
        scaled_up(used, digits),
        scaled_up(demand, digits),
    )
