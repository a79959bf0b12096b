"""Random multi-cluster instances by the distributions of the paper, of any size.

Source: J. Santos, M. Zaccarini, F. Poltronieri et al., "HephaestusForge: Optimal microservice
deployment across the Compute Continuum via Reinforcement Learning", Future Generation Computer
Systems, 2025: Tables 4 and 6, Figure 4.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from placeopt.core.errors import UsageError
from placeopt.core.files.documents import Document
from placeopt.core.parameters import checked
from placeopt.core.problem import keywords

# -- the paper's tables ----------------------------------------------------------------------------

#: Arrivals per unit of time that are drawn by default.
RATE = 20.0
#: Highest number of cores, and of GiB, that is allocated on a cluster before the trace.
BACKGROUND = 0.2
#: Highest share by which a request raises the latency of its clusters.
INCREASE = 0.15


class ClusterType(NamedTuple):
    """A line of Table 4; the cost is that of a replica."""

    name: str
    cpu_cores: float
    memory_gib: float
    cost: float


class Deployment(NamedTuple):
    """What one replica of a Cloud2Edge microservice asks for."""

    name: str
    cpu_cores: float
    memory_gib: float
    latency_threshold_ms: float


TYPES = (
    ClusterType("edge-tier-1", 2.0, 2.0, 1.0),
    ClusterType("edge-tier-2", 2.0, 4.0, 2.0),
    ClusterType("fog-tier-1", 2.0, 8.0, 4.0),
    ClusterType("fog-tier-2", 4.0, 16.0, 8.0),
    ClusterType("cloud", 8.0, 32.0, 16.0),
)

DEPLOYMENTS = (
    Deployment("adapter-amqp", 0.2, 0.3, 350.0),
    Deployment("adapter-http", 0.2, 0.3, 350.0),
    Deployment("adapter-mqtt", 0.2, 0.3, 350.0),
    Deployment("artemis", 0.2, 0.6, 350.0),
    Deployment("dispatch-router", 0.2, 0.64, 400.0),
    Deployment("ditto-connectivity", 0.2, 0.75, 400.0),
    Deployment("ditto-gateway", 0.2, 0.5, 400.0),
    Deployment("ditto-nginx", 0.05, 0.016, 450.0),
    Deployment("ditto-policies", 0.2, 0.5, 400.0),
    Deployment("ditto-swagger-ui", 0.05, 0.016, 450.0),
    Deployment("ditto-things", 0.2, 0.5, 500.0),
    Deployment("ditto-things-search", 0.2, 0.5, 500.0),
    Deployment("ditto-mongo-db", 0.015, 0.25, 500.0),
    Deployment("service-auth", 0.2, 0.2, 600.0),
    Deployment("service-command-router", 0.015, 0.25, 600.0),
    Deployment("service-device-registry", 0.2, 0.2, 600.0),
)

#: Table 6: weights of latency, cost and inequality.
STRATEGIES: dict[str, tuple[float, float, float]] = {
    "latency": (1.0, 0.0, 0.0),
    "cost": (0.0, 1.0, 0.0),
    "inequality": (0.0, 0.0, 1.0),
    "lat-cost": (0.5, 0.5, 0.0),
    "lat-ineq": (0.5, 0.0, 0.5),
    "cost-ineq": (0.0, 0.5, 0.5),
    "balanced": (0.4, 0.3, 0.3),
    "favor-lat": (0.6, 0.2, 0.2),
}


# -- options ---------------------------------------------------------------------------------------

NumClusters = Annotated[int, Field(ge=2, le=10_000, description="Number of clusters.")]
NumRequests = Annotated[int, Field(ge=1, le=10**6, description="Number of requests.")]
NumReplicas = Annotated[int, Field(ge=1, le=1000, description="Replicas of a request.")]
Rate = Annotated[
    float, Field(gt=0, le=1e15, allow_inf_nan=False, description="Arrivals per unit of time.")
]
MeanDuration = Annotated[
    float, Field(gt=0, le=1e6, allow_inf_nan=False, description="Mean duration of a request.")
]


# -- instances -------------------------------------------------------------------------------------


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
