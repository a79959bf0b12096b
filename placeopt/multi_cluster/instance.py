"""A stream of deployment requests over Kubernetes clusters: where the replicas of each go, or whether it is refused.

Source: J. Santos, M. Zaccarini, F. Poltronieri et al., "HephaestusForge: Optimal microservice deployment across the Compute Continuum
via Reinforcement Learning", Future Generation Computer Systems, 2025. The page is ``models/multi_cluster/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.documents import validate
from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.problem import (
    Amount,
    Evaluation,
    Name,
    Objective,
    Problem,
    Record,
    latency_rows,
    require_unique,
    scaled_down,
    scaled_up,
    unit_digits,
)
from placeopt.core.spec import ProblemSpec
from placeopt.multi_cluster import SPEC
from placeopt.multi_cluster.paper_data import TYPES
from placeopt.multi_cluster.referee import Referee

#: A resource or a duration above 0; small enough for whole numbers of 64 bits.
Quantity = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
#: A moment or an amount of at least 0.
Moment = Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]
Replicas = Annotated[int, Field(strict=True, ge=1, le=1000)]
#: The masks of the published semantics fill clusters up to this many percent.
PUBLISHED_FILL = 95


class Cluster(Record):
    """A cluster; `cost` is that of a replica on it; what is allocated was there before."""

    name: Name
    type: Name | None = None
    cpu_cores: Quantity
    memory_gib: Quantity
    cost: Amount
    allocated_cpu_cores: Moment = 0.0
    allocated_memory_gib: Moment = 0.0


class Request(Record):
    """Replicas of a deployment that arrive together and leave together; `latency_increase` is u of the page."""

    deployment: Name
    replicas: Replicas
    cpu_cores: Quantity
    memory_gib: Quantity
    arrival: Moment
    duration: Moment
    latency_threshold_ms: Amount = 1000.0
    latency_increase: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = 0.0


class Plan(Record):
    """For every request how many replicas run on which cluster; ``{}`` refuses it."""

    decisions: list[dict[str, Annotated[int, Field(strict=True, ge=0, le=10**6)]]]


class Arrays(NamedTuple):
    """An instance as arrays for the faces: C clusters, T requests.

    Attributes
    ----------
    unit : float (3,)
        Cores, GiB and time in a whole unit.
    scale : float (2,)
        Least and greatest cost of a replica, for rewards: 1 and 16 unless a cluster is beyond.
    capacity, limit, used : int64 (C, 2)
        Cpu and memory; what masks fill to; what is allocated beforehand.
    price, base : float (C,); matrix, float (C, C)
        Cost, latency of the empty cluster in ms, latencies in ms.
    demand : int64 (T, 2); replicas, int64 (T,)
    arrival, departure : float (T,), whole
    threshold, increase : float (T,)
    """

    unit: np.ndarray
    scale: np.ndarray
    capacity: np.ndarray
    limit: np.ndarray
    used: np.ndarray
    price: np.ndarray
    base: np.ndarray
    matrix: np.ndarray
    demand: np.ndarray
    replicas: np.ndarray
    arrival: np.ndarray
    departure: np.ndarray
    threshold: np.ndarray
    increase: np.ndarray


class MultiCluster(Problem):
    """An instance of the multi-cluster problem: clusters, and a trace of requests. To refuse everything is always a plan.

    Examples
    --------
    >>> problem = MultiCluster.generate(seed=1, requests=10)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'cost', 'inequality', 'rejected']
    """

    problem: Literal["multi-cluster"] = "multi-cluster"
    spec: ClassVar[ProblemSpec] = SPEC
    semantics: Literal["fixed", "published"] = "fixed"
    clusters: tuple[Cluster, ...] = Field(min_length=2)
    latency_ms: dict[str, dict[str, Amount]]
    requests: tuple[Request, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((c.name for c in self.clusters), "cluster")
        self.latencies()
        for k, (before, after) in enumerate(
            zip(self.requests, self.requests[1:], strict=False), start=1
        ):
            if after.arrival < before.arrival:
                text = f"arrives at {after.arrival:g}, before the request ahead of it"
                raise DocumentError(
                    text,
                    path=f"requests[{k}].arrival",
                    remedy="give requests in the order of their arrival",
                )
        for c, r in np.argwhere(self.arrays.used > self.arrays.capacity).tolist():
            what = ("allocated_cpu_cores", "allocated_memory_gib")[r]
            text = f"{self.clusters[c].name!r} has {getattr(self.clusters[c], what):g} allocated, more than its capacity"
            raise DocumentError(text, path=f"clusters[{c}].{what}", remedy="what is allocated fits")
        return self

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Means over the accepted requests of latency (9), cost (8) and Gini coefficient (10); the share of the others."""
        share = Objective("rejected", "share", 1 / len(self.requests))
        return (
            Objective("latency_ms", "ms"),
            Objective("cost", "units"),
            Objective("inequality", "Gini"),
            share,
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of every cluster by its name."""
        return {c.name: k for k, c in enumerate(self.clusters)}

    def latencies(self) -> list[list[float]]:
        """Return the latency in ms from every cluster to every other; what is given from a cluster to itself does not count."""
        rows = latency_rows([c.name for c in self.clusters], self.latency_ms)
        return [[0.0 if a == b else ms for b, ms in enumerate(row)] for a, row in enumerate(rows)]

    @cached_property
    def arrays(self) -> Arrays:
        """The instance as arrays."""
        capacity, used, demand, unit = [], [], [], []
        for what in ("cpu_cores", "memory_gib"):
            have, taken = (
                [getattr(c, what) for c in self.clusters],
                [getattr(c, f"allocated_{what}") for c in self.clusters],
            )
            need = [getattr(r, what) for r in self.requests]
            digits = unit_digits([*have, *taken, *need], sum(r.replicas for r in self.requests))
            capacity.append(scaled_down(have, digits))
            used.append(scaled_up(taken, digits))
            demand.append(scaled_up(need, digits))
            unit.append(10.0**-digits)
        times = [t for r in self.requests for t in (r.arrival, r.duration)]
        digits = unit_digits(times)
        moments = scaled_up(times, digits).reshape(-1, 2)
        costs, matrix = [c.cost for c in self.clusters], np.array(self.latencies())
        most = np.stack(capacity, axis=1)
        return Arrays(
            unit=np.array([*unit, 10.0**-digits]),
            scale=np.array(
                [min(*costs, *(t.cost for t in TYPES)), max(*costs, *(t.cost for t in TYPES))]
            ),
            capacity=most,
            limit=np.array([[x * PUBLISHED_FILL // 100 for x in row] for row in most.tolist()])
            if self.semantics == "published"
            else most,
            used=np.stack(used, axis=1),
            price=np.array(costs, dtype=float),
            base=matrix.sum(axis=1) / (len(matrix) - 1),
            matrix=matrix,
            demand=np.stack(demand, axis=1),
            replicas=np.array([r.replicas for r in self.requests], dtype=np.int64),
            arrival=moments[:, 0].astype(float),
            departure=moments.sum(axis=1).astype(float),
            threshold=np.array([r.latency_threshold_ms for r in self.requests], dtype=float),
            increase=np.array([r.latency_increase for r in self.requests], dtype=float),
        )

    def infeasibility(self) -> tuple[str, ...]:
        """Nothing: every request may be refused."""
        return ()

    def warnings(self) -> tuple[str, ...]:
        """Name requests that fit nowhere, and places in `latency_ms` that are no clusters."""
        t, found = self.arrays, []
        room = ((t.capacity - t.used)[None] // t.demand[:, None]).min(axis=2).sum(axis=1)
        for k in np.flatnonzero(room < t.replicas).tolist():
            found.append(
                f"requests[{k}] asks for {self.requests[k].replicas} replicas; the empty clusters hold {room[k]}: it can only be refused"
            )
        places = {*self.latency_ms, *(name for row in self.latency_ms.values() for name in row)}
        found += [
            f"latency_ms mentions {name!r}, which is no cluster"
            for name in sorted(places - self.numbers.keys())
        ]
        return tuple(found)

    # -- the referee and plans -----------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by living through the trace.

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"decisions": [{"c0": 3}, {"c0": 1, "c2": 2}, {}]}``, one per request.

        Returns
        -------
        Evaluation
            Mean latency, cost and Gini coefficient over the accepted requests, the worst that can be where there are none; the share
            of rejected requests; what is broken.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self.referee.judge(self.decisions(plan))

    @cached_property
    def referee(self) -> Referee:
        """Who lives through traces."""
        return Referee(self)

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json")

    def decisions(self, plan: Mapping[str, Any]) -> list[dict[int, int]]:
        """Return a plan's decisions as replicas by the number of the cluster: the inverse of `plan`."""
        given = validate(Plan, dict(plan) if isinstance(plan, Mapping) else plan).decisions
        if len(given) != len(self.requests):
            text = f"there are {len(given)} decisions and {len(self.requests)} requests"
            raise DocumentError(
                text, path="decisions", remedy="give one decision per request, {} to refuse it"
            )
        found = []
        for k, decision in enumerate(given):
            for name in decision:
                if name not in self.numbers:
                    remedy = did_you_mean(name, list(self.numbers)[:50])
                    raise DocumentError(
                        f"unknown cluster {name!r}", path=f"decisions[{k}]", remedy=remedy
                    )
            found.append({self.numbers[name]: count for name, count in decision.items()})
        return found

    def plan(self, placed: Sequence[Mapping[int, int]]) -> dict[str, Any]:
        """Return the plan of decisions given as replicas by the number of the cluster."""
        names = [c.name for c in self.clusters]
        return {
            "decisions": [{names[c]: int(n) for c, n in decision.items()} for decision in placed]
        }

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Return a short summary of a plan for people: label -> text."""
        decisions = self.decisions(plan)
        spread = sum(sum(n > 0 for n in d.values()) > 1 for d in decisions)
        load = [sum(d.get(c, 0) for d in decisions) for c in range(len(self.clusters))]
        replicas = ", ".join(f"{c.name} {n}" for c, n in zip(self.clusters, load, strict=True))
        return {
            "accepted": f"{sum(bool(d) for d in decisions)} of {len(decisions)}, {spread} of them spread",
            "replicas": replicas,
        }
