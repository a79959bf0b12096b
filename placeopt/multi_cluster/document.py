"""The records of multi-cluster documents: clusters, requests, plans."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from placeopt.core.problem import Amount, Name, Record

#: A resource above 0, small enough for whole numbers of 64 bits.
Quantity = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
#: A moment, a duration or an amount of at least 0.
Moment = Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]
Replicas = Annotated[int, Field(strict=True, ge=1, le=1000)]


class FederatedCluster(Record):
    """A cluster; `cost` is that of one replica; what is allocated was there before the trace."""

    name: Name
    """Name of the cluster; unique."""
    type: Name | None = None
    """Kind of cluster, such as fog-tier-1; for pictures and tables. Absent or null: unknown."""
    cpu_cores: Quantity
    """Capacity in cores."""
    memory_gib: Quantity
    """Capacity in GiB."""
    cost: Amount
    """Cost units of one replica that runs here."""
    allocated_cpu_cores: Moment = 0.0
    """Cores in use before the trace begins, and all along."""
    allocated_memory_gib: Moment = 0.0
    """Memory in GiB in use before the trace begins, and all along."""


class DeploymentRequest(Record):
    """Replicas of a deployment that arrive together and leave together.

    `latency_increase` is u of ``models/multi_cluster/README.md``; `cpu_cores` and `memory_gib` are
    those of one replica.
    """

    deployment: Name
    """Name of the deployment; several requests may have the same."""
    replicas: Replicas
    """Number of replicas; they arrive and leave together."""
    cpu_cores: Quantity
    """Cores that each replica needs."""
    memory_gib: Quantity
    """Memory in GiB that each replica needs."""
    arrival: Moment
    """When it arrives, in the unit of time of duration; not before the request above it."""
    duration: Moment
    """How long it runs, in the unit of time of arrival."""
    latency_threshold_ms: Amount = 1000.0
    """Latency in ms that it tolerates: latency-greedy refuses clusters above it."""
    latency_increase: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Share by which the request raises the latency of its clusters while it runs, such as 0.07;
    u_r of the problem's page.
    """


class MultiClusterPlan(Record):
    """For every request how many replicas run on which cluster; ``{}`` refuses it."""

    decisions: list[dict[str, Annotated[int, Field(strict=True, ge=0, le=10**6)]]]
    """One for each request, in their order: name of a cluster -> number of replicas there; {}
    refuses the request.
    """
