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
    type: Name | None = None
    cpu_cores: Quantity
    memory_gib: Quantity
    cost: Amount
    allocated_cpu_cores: Moment = 0.0
    allocated_memory_gib: Moment = 0.0


class DeploymentRequest(Record):
    """Replicas of a deployment that arrive together and leave together.

    `latency_increase` is u of ``models/multi_cluster/README.md``; `cpu_cores` and `memory_gib` are
    those of one replica.
    """

    deployment: Name
    replicas: Replicas
    cpu_cores: Quantity
    memory_gib: Quantity
    arrival: Moment
    duration: Moment
    latency_threshold_ms: Amount = 1000.0
    latency_increase: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = 0.0


class MultiClusterPlan(Record):
    """For every request how many replicas run on which cluster; ``{}`` refuses it."""

    decisions: list[dict[str, Annotated[int, Field(strict=True, ge=0, le=10**6)]]]
