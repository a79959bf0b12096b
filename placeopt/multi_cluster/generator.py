"""Random multi-cluster instances by the distributions of the paper, of any size."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from placeopt.core.errors import UsageError
from placeopt.core.files.documents import Document
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords
from placeopt.multi_cluster.options import (
    MeanDuration,
    NumClusters,
    NumReplicas,
    NumRequests,
)
from placeopt.multi_cluster.paper_data import BACKGROUND, DEPLOYMENTS, INCREASE, RATE, TYPES


def generate(
    seed: int = 0,
    *,
    clusters: NumClusters = 4,
    requests: NumRequests = 100,
    rate: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="Arrivals per unit of time; 0: the paper's."),
    ] = 0.0,
    duration: MeanDuration = 1.0,
    fewest_replicas: NumReplicas = 1,
    most_replicas: NumReplicas = 7,
) -> Document:
    """Return the document of a random instance."""
    checked(generate, "multi-cluster instances", keywords(generate, locals()))
    if fewest_replicas > most_replicas:
        raise UsageError(f"fewest_replicas is {fewest_replicas}; legal: at most most_replicas")
    rng = np.random.default_rng(seed)
    names = [f"c{k}" for k in range(clusters)]
    latency = rng.integers(1, 1000, size=(clusters, clusters)).tolist()
    gaps = rng.exponential(1 / (rate or RATE), size=requests)
    times = np.cumsum(gaps).round(6).tolist()
    return {
        "problem": "multi-cluster",
        "name": f"stream-{clusters}x{requests}-{seed}",
        "clusters": [_cluster(rng, name) for name in names],
        "latency_ms": {
            a: {b: latency[i][j] for j, b in enumerate(names) if i != j}
            for i, a in enumerate(names)
        },
        "requests": [
            _request(rng, time, duration, fewest_replicas, most_replicas) for time in times
        ],
    }


def _cluster(rng: np.random.Generator, name: str) -> Document:
    sizes = TYPES[rng.integers(len(TYPES))]._asdict()
    allocated = rng.uniform(0, BACKGROUND, size=2).round(3).tolist()
    return {
        "name": name,
        "type": sizes.pop("name"),
        **sizes,
        "allocated_cpu_cores": allocated[0],
        "allocated_memory_gib": allocated[1],
    }


def _request(
    rng: np.random.Generator, time: float, duration: float, min_replicas: int, max_replicas: int
) -> Document:
    kind = DEPLOYMENTS[rng.integers(len(DEPLOYMENTS))]
    return {
        "deployment": kind.name,
        "replicas": int(rng.integers(min_replicas, max_replicas + 1)),
        "cpu_cores": kind.cpu_cores,
        "memory_gib": kind.memory_gib,
        "arrival": time,
        "duration": round(float(rng.exponential(duration)), 6),
        "latency_threshold_ms": kind.latency_threshold_ms,
        "latency_increase": round(float(rng.uniform(0, INCREASE)), 4),
    }
