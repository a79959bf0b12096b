"""A stream of deployment requests over Kubernetes clusters.

A plan says where the replicas of each request go, or that it is refused.

Source: J. Santos, M. Zaccarini, F. Poltronieri et al., "HephaestusForge: Optimal microservice
deployment across the Compute Continuum via Reinforcement Learning", Future Generation Computer
Systems, 2025. The rules are in ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import validate
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import (
    Amount,
    Evaluation,
    Name,
    Objective,
    Problem,
    Record,
    latency_rows,
    require_name,
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.multi_cluster import SPEC
from placeopt.multi_cluster.arrays import MultiClusterArrays, build
from placeopt.multi_cluster.referee import MultiClusterReferee

# -- documents -------------------------------------------------------------------------------------

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


# -- the problem -----------------------------------------------------------------------------------


class MultiCluster(Problem):
    """An instance of the multi-cluster problem: clusters, and a trace of requests.

    To refuse every request is always a feasible plan.

    Examples
    --------
    >>> problem = MultiCluster.generate(seed=1, requests=10)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'cost', 'inequality', 'rejected']
    """

    problem: Literal["multi-cluster"] = "multi-cluster"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    semantics: Literal["fixed"] = "fixed"
    """The rules of the replay: departures are real, latencies do not drift. There are no others."""
    clusters: tuple[FederatedCluster, ...] = Field(min_length=2)
    """Where replicas can run."""
    latency_ms: dict[str, dict[str, Amount]]
    """Latency between two clusters in ms; one direction stands for both where the other is not
    given.
    """
    requests: tuple[DeploymentRequest, ...] = Field(min_length=1)
    """Trace of requests in the order of arrival."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((c.name for c in self.clusters), "cluster")
        for k, (before, after) in enumerate(pairwise(self.requests), start=1):
            if after.arrival < before.arrival:
                raise DocumentError(
                    f"arrives at {after.arrival:g}, before the request ahead of it",
                    path=f"requests[{k}].arrival",
                    remedy="give requests in the order of their arrival",
                )
        for c, r in np.argwhere(self.arrays.used > self.arrays.capacity).tolist():
            field = ("allocated_cpu_cores", "allocated_memory_gib")[r]
            cluster = self.clusters[c]
            raise DocumentError(
                f"{cluster.name!r} has {getattr(cluster, field):g} allocated, "
                "more than its capacity",
                path=f"clusters[{c}].{field}",
                remedy="what is allocated fits",
            )
        return self

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Means over the accepted requests of latency (9), cost (8) and Gini coefficient (10).

        The last objective is the share of the other requests.
        """
        return (
            Objective("latency_ms", "ms"),
            Objective("cost", "units"),
            Objective("inequality", "Gini"),
            Objective("rejected", "share", 1 / len(self.requests)),
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of every cluster by its name."""
        return {cluster.name: c for c, cluster in enumerate(self.clusters)}

    @cached_property
    def arrays(self) -> MultiClusterArrays:
        """The instance as arrays; what is given as latency of a cluster to itself is ignored."""
        latency = np.array(latency_rows(list(self.numbers), self.latency_ms))
        np.fill_diagonal(latency, 0.0)
        return build(self.clusters, self.requests, latency)

    def warnings(self) -> tuple[str, ...]:
        """Name requests that fit nowhere, and places in `latency_ms` that are no clusters."""
        arrays = self.arrays
        free = (arrays.capacity - arrays.used)[None]
        room = (free // arrays.demand[:, None]).min(axis=2).sum(axis=1)
        results = [
            f"requests[{k}] asks for {self.requests[k].replicas} replicas; "
            f"the empty clusters hold {room[k]}: it can only be refused"
            for k in np.flatnonzero(room < arrays.replicas).tolist()
        ]
        places = set(self.latency_ms).union(*self.latency_ms.values())
        results += [
            f"latency_ms mentions {name!r}, which is no cluster"
            for name in sorted(places - self.numbers.keys())
        ]
        return tuple(results)

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan by a replay of the trace.

        Parameters
        ----------
        plan : mapping
            As in `MultiClusterPlan`: ``{"decisions": [{"c0": 3}, {"c0": 1, "c2": 2}, {}]}``, one
            decision per request.

        Returns
        -------
        Evaluation
            Means of latency, cost and Gini coefficient over the accepted requests, their worst
            values where there are none; the share of rejected requests; the violations.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self.referee.judge(self.decisions(plan))

    @cached_property
    def referee(self) -> MultiClusterReferee:
        """What replays decisions."""
        return MultiClusterReferee(self.arrays, list(self.numbers))

    def decisions(self, plan: Plan) -> list[dict[int, int]]:
        """Return a plan's decisions, replicas by the number of the cluster; inverts `plan`."""
        document = dict(plan) if isinstance(plan, Mapping) else plan
        value = validate(MultiClusterPlan, document).decisions
        if len(value) != len(self.requests):
            raise DocumentError(
                f"there are {len(value)} decisions and {len(self.requests)} requests",
                path="decisions",
                remedy="give one decision per request, {} to refuse it",
            )
        for k, decision in enumerate(value):
            for name in decision:
                require_name("cluster", name, self.numbers, f"decisions[{k}]")
        return [{self.numbers[name]: n for name, n in decision.items()} for decision in value]

    def plan(self, placed: Sequence[Mapping[int, int]]) -> Plan:
        """Return the plan of decisions given as replicas by the number of the cluster."""
        return {
            "decisions": [
                {self.clusters[c].name: int(n) for c, n in decision.items()} for decision in placed
            ]
        }

    def describe(self, plan: Plan) -> dict[str, str]:
        """Return a short summary of a plan for people: label -> text."""
        decisions = self.decisions(plan)
        spread = sum(sum(n > 0 for n in d.values()) > 1 for d in decisions)
        accepted = sum(bool(d) for d in decisions)
        replicas = (
            f"{name} {sum(d.get(c, 0) for d in decisions)}" for name, c in self.numbers.items()
        )
        return {
            "accepted": f"{accepted} of {len(decisions)}, {spread} of them spread",
            "replicas": ", ".join(replicas),
        }
