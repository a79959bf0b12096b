"""Cluster types, the Cloud2Edge deployments, and the reward strategies of the paper.

Source: J. Santos, M. Zaccarini, F. Poltronieri et al., "HephaestusForge: Optimal microservice
deployment across the Compute Continuum via Reinforcement Learning", Future Generation Computer
Systems, 2025: Tables 4 and 6, Figure 4.
"""

from __future__ import annotations

from typing import NamedTuple

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
