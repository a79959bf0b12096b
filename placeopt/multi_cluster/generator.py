"""Random multi-cluster instances: the distributions of the HephaestusForge paper, with any number of clusters and requests."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.multi_cluster.paper_data import (
    BACKGROUND,
    DEPLOYMENTS,
    INCREASE,
    RATES,
    SEMANTICS,
    TYPES,
)


def generate(
    seed: int = 0,
    *,
    clusters: int = 4,
    requests: int = 100,
    semantics: str = "fixed",
    rate: float = 0.0,
    duration: float = 1.0,
    fewest_replicas: int = 1,
    most_replicas: int = 7,
) -> dict[str, Any]:
    """Return the document of a random instance.

    Parameters
    ----------
    clusters, requests : int
    semantics : {"fixed", "published"}
    rate : float
        Arrivals per unit of time; 0 for 20 in the fixed semantics and 100 in the published.
    duration : float
        Mean duration of a request.
    fewest_replicas, most_replicas : int
    """
    _check(clusters, requests, rate, duration, fewest_replicas, most_replicas)
    if semantics not in SEMANTICS:
        raise UsageError(f"semantics is {semantics!r}; {did_you_mean(semantics, SEMANTICS)}")
    rng = np.random.default_rng(seed)
    names = [f"c{k}" for k in range(clusters)]
    latency = rng.integers(1, 1000, size=(clusters, clusters)).tolist()
    times = (
        np.cumsum(rng.exponential(1 / (rate or RATES[semantics]), size=requests)).round(6).tolist()
    )
    return {
        "problem": "multi-cluster",
        "name": f"stream-{clusters}x{requests}-{seed}",
        "semantics": semantics,
        "clusters": [_cluster(rng, name) for name in names],
        "latency_ms": {
            a: {b: latency[i][j] for j, b in enumerate(names) if i != j}
            for i, a in enumerate(names)
        },
        "requests": [
            _request(rng, time, duration, fewest_replicas, most_replicas) for time in times
        ],
    }


def _check(
    clusters: int, requests: int, rate: float, duration: float, fewest: int, most: int
) -> None:
    for name, value, legal, words in (
        ("clusters", clusters, clusters >= 2, "at least 2"),
        ("requests", requests, requests >= 1, "at least 1"),
        ("rate", rate, 0 <= rate < np.inf, "at least 0"),
        ("duration", duration, 0 < duration < np.inf, "above 0"),
        ("fewest_replicas", fewest, 1 <= fewest <= most, "1 to most_replicas"),
        ("most_replicas", most, most <= 1000, "at most 1000"),
    ):
        if not legal:
            raise UsageError(f"{name} is {value}; legal: {words}")


def _cluster(rng: np.random.Generator, name: str) -> dict[str, Any]:
    kind = TYPES[rng.integers(len(TYPES))]
    taken = rng.uniform(0, BACKGROUND, size=2).round(3).tolist()
    sizes = {"cpu_cores": kind.cpu_cores, "memory_gib": kind.memory_gib, "cost": kind.cost}
    return {
        "name": name,
        "type": kind.name,
        **sizes,
        "allocated_cpu_cores": taken[0],
        "allocated_memory_gib": taken[1],
    }


def _request(
    rng: np.random.Generator, time: float, duration: float, fewest: int, most: int
) -> dict[str, Any]:
    kind = DEPLOYMENTS[rng.integers(len(DEPLOYMENTS))]
    return {
        "deployment": kind.name,
        "replicas": int(rng.integers(fewest, most + 1)),
        "cpu_cores": kind.cpu_cores,
        "memory_gib": kind.memory_gib,
        "arrival": time,
        "duration": round(float(rng.exponential(duration)), 6),
        "latency_threshold_ms": kind.latency_threshold_ms,
        "latency_increase": round(float(rng.uniform(0, INCREASE)), 4),
    }
