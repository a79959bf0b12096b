"""Requests over time on reserved, on-demand and spot machines.

Source: N. Di Cicco et al., "Multi-Objective Scheduling and Resource Allocation of Kubernetes
Replicas Across the Compute Continuum", CNSM 2024; equation numbers are that paper's. The page is
``models/temporal/README.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import (
    Amount,
    Count,
    Evaluation,
    Name,
    Objective,
    Positive,
    PositiveCount,
    Problem,
    Record,
    require_name,
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.temporal import SPEC
from placeopt.temporal.arrays import PRICINGS, TemporalArrays, build_arrays
from placeopt.temporal.referee import TemporalReferee

# -- documents -------------------------------------------------------------------------------------

Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class Offer(Record):
    """A machine size that can be leased in one place; a price that is absent is not offered."""

    location: Name
    """Data centre of the machines: a name used in latency_ms."""
    size: Name
    """Machine type, such as t4g.2xlarge; once for each location."""
    cpu_cores: Positive
    """vCPU of one machine."""
    memory_gib: Positive
    """Memory of one machine in GiB."""
    on_demand_usd_per_hour: Amount | None = None
    """Price of a machine in USD per hour, paid for the slots in which it hosts something. Absent
    or null: not offered on demand.
    """
    reserved_usd_per_hour: Amount | None = None
    """Price of a machine in USD per hour, paid for the whole horizon once it is used. Absent or
    null: not offered reserved.
    """
    spot_usd_per_hour: Amount | None = None
    """Price of a machine in USD per hour, paid for busy slots; it can be interrupted. Absent or
    null: not offered as spot.
    """
    spot_interruption: Share | None = None
    """Share of spot machines that are interrupted, 0 to 1; needed beside a spot price. Absent or
    null: there is no spot price.
    """
    max_instances: Count | None = None
    """Number of machines of this offer that can be leased, all prices together. Absent or null:
    unlimited.
    """

    def check(self, path: str) -> None:
        """Raise unless there is a price, and with a spot price the share of interruptions."""
        if all(self.price(pricing) is None for pricing in PRICINGS):
            raise DocumentError(
                "the offer has no price",
                path=path,
                remedy="give on_demand_, reserved_ or spot_usd_per_hour",
            )
        if self.spot_usd_per_hour is not None and self.spot_interruption is None:
            raise DocumentError(
                "a spot price without spot_interruption",
                path=path,
                remedy="give the share of interruptions, 0 to 1",
            )

    def price(self, pricing: str) -> float | None:
        """Return the price in USD per hour under one of `PRICINGS`, None where it is absent."""
        return {
            "on-demand": self.on_demand_usd_per_hour,
            "reserved": self.reserved_usd_per_hour,
            "spot": self.spot_usd_per_hour,
        }[pricing]

    def frequency(self, pricing: str) -> float:
        """Return the share of interruptions under one of `PRICINGS`, 0 unless it is spot."""
        return (self.spot_interruption or 0.0) if pricing == "spot" else 0.0


class TemporalRequest(Record):
    """Replicas that start together, run for a while, and are called from one origin."""

    name: Name
    """Name of the request; unique."""
    cpu_cores: Positive
    """vCPU that each replica needs."""
    memory_gib: Positive
    """Memory in GiB that each replica needs."""
    duration_slots: PositiveCount
    """Number of slots for which all replicas run."""
    replicas: PositiveCount
    """Number of replicas; they start together."""
    origin: Name
    """Place whose users call the request: a row of latency_ms."""


class LeasedMachine(Record):
    """A leased machine of a plan and the replicas that it hosts, as (request, replica index)."""

    location: Name
    """Data centre of the offer."""
    size: Name
    """Machine type of the offer."""
    pricing: Literal["on-demand", "reserved", "spot"]
    """Which price is paid for the machine."""
    replicas: list[tuple[str, Annotated[int, Field(strict=True)]]]
    """Replicas on this machine: pairs of the request's name and the replica's number, from 0."""


class TemporalPlan(Record):
    """When every request starts, and which machines are leased for which replicas."""

    starts: dict[str, Annotated[int, Field(strict=True)]]
    """Name of a request -> the slot in which its replicas start, from 0."""
    instances: list[LeasedMachine]
    """Leased machines; one that stands twice is two machines."""


# -- the problem -----------------------------------------------------------------------------------


class Temporal(Problem):
    """An instance of the temporal problem.

    Examples
    --------
    >>> problem = Temporal.generate(seed=1, requests=3)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'cost_usd', 'interruption']
    """

    problem: Literal["temporal"] = "temporal"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    horizon_slots: PositiveCount
    """Number of time slots; every request ends within them."""
    slot_hours: Positive = 1.0
    """Length of a slot in hours."""
    latency_ms: dict[str, dict[str, Amount]]
    """Latency in ms from an origin (outer name) to a data centre (inner name). A data centre
    without one cannot serve that origin.
    """
    offers: tuple[Offer, ...] = Field(min_length=1)
    """Machine sizes that can be leased."""
    requests: tuple[TemporalRequest, ...] = Field(min_length=1)
    """What has to run."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique(((o.location, o.size) for o in self.offers), "offer")
        require_unique((r.name for r in self.requests), "request")
        for k, offer in enumerate(self.offers):
            offer.check(f"offers[{k}]")
        for k, request in enumerate(self.requests):
            require_name("origin", request.origin, self.latency_ms, f"requests[{k}].origin")
        return self

    @cached_property
    def arrays(self) -> TemporalArrays:
        """The instance as arrays, in whole numbers."""
        return build_arrays(self.offers, self.requests, self.latency_ms, self.slot_hours)

    def slot_price(self, offer: int, pricing: str) -> float:
        """Return what one machine costs per slot in USD, inf where the pricing is not offered."""
        price = self.offers[offer].price(pricing)
        return math.inf if price is None else price * self.slot_hours

    @cached_property
    def _referee(self) -> TemporalReferee:
        return TemporalReferee(self.offers, self.requests, self.horizon_slots, self.arrays)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Mean largest latency (6), cost over the horizon (7), mean interruption (8)."""
        return (
            Objective("latency_ms", "ms", self.arrays.latency_step),
            Objective("cost_usd", "USD", self.arrays.cost_step),
            Objective("interruption", "share", self.arrays.interruption_step),
        )

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan by equations (6)-(8) and (10)-(15).

        Parameters
        ----------
        plan : mapping
            As in `TemporalPlan`: ``{"starts": {request: slot}, "instances": [...]}``.

        Returns
        -------
        Evaluation
            Latency in ms, cost in USD, interruption as a share; and the violations. Replicas that
            are missing from the plan count nothing.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        with self.reading(plan):
            return self._referee.judge(plan["starts"], plan["instances"])

    def warnings(self) -> tuple[str, ...]:
        """Name spot and reserved prices above on-demand, and places that nothing uses."""
        results = []
        for offer in self.offers:
            on_demand = offer.on_demand_usd_per_hour
            for pricing in ("spot", "reserved"):
                price = offer.price(pricing)
                if on_demand is not None and price is not None and price > on_demand:
                    results.append(
                        f"{offer.location} {offer.size}: the {pricing} price {price:g} USD/h is "
                        f"above on-demand {on_demand:g} USD/h"
                    )
        named = set(self.latency_ms).union(*self.latency_ms.values())
        used = {r.origin for r in self.requests} | {o.location for o in self.offers}
        idle = sorted(named - used)
        if idle:
            results.append(f"latency_ms names places that nothing uses: {', '.join(idle)}")
        return tuple(results)

    def infeasibility(self) -> tuple[str, ...]:
        """Say for each request that cannot be served why not."""
        reasons = []
        for k, request in enumerate(self.requests):
            if request.duration_slots > self.horizon_slots:
                reasons.append(
                    f"request {request.name!r} runs for {request.duration_slots} slots, longer "
                    f"than the horizon of {self.horizon_slots}"
                )
            if not self.arrays.usable[k].any():
                reasons.append(self._why_unusable(k))
            elif (room := self._room(k)) < request.replicas:
                reasons.append(
                    f"request {request.name!r} has {request.replicas} replicas that run together; "
                    f"all machines that may be leased hold {room:g}"
                )
        return tuple(reasons)

    def _room(self, k: int) -> float:
        """Return how many replicas of a request all leasable machines hold; inf if unlimited."""
        arrays, usable = self.arrays, self.arrays.usable[k]
        held = (arrays.capacities // arrays.demands[k]).min(axis=1)
        limits = np.where(arrays.max_machines < 0, math.inf, arrays.max_machines)
        return float(held[usable] @ limits[usable])

    def _why_unusable(self, k: int) -> str:
        request = self.requests[k]
        need = (
            f"request {request.name!r} needs {request.cpu_cores:g} vCPU and "
            f"{request.memory_gib:g} GiB a replica"
        )
        reachable = np.isfinite(self.arrays.latencies[k])
        fits = (self.arrays.demands[k] <= self.arrays.capacities).all(axis=1)
        if not fits.any():
            widest = max(self.offers, key=lambda o: (o.cpu_cores, o.memory_gib))
            return (
                f"{need}, which fits no offer (the most vCPU has {widest.size}: "
                f"{widest.cpu_cores:g} vCPU, {widest.memory_gib:g} GiB)"
            )
        if not (fits & reachable).any():
            return (
                f"{need}; no offer that fits is reachable: latency_ms has no latency from "
                f"{request.origin!r} to its location"
            )
        return f"{need}; every offer that fits has max_instances 0"

    def describe(self, plan: Plan) -> dict[str, str]:
        """Summarise a plan: machines by place, size and pricing; the share of replicas on spot."""
        with self.reading(plan):
            counts = Counter((i["location"], i["size"], i["pricing"]) for i in plan["instances"])
            spot = sum(len(i["replicas"]) for i in plan["instances"] if i["pricing"] == "spot")
            replicas = sum(len(i["replicas"]) for i in plan["instances"])
        return {
            "machines": str(sum(counts.values())),
            "fleet": ", ".join(f"{n} x {' '.join(what)}" for what, n in counts.most_common()),
            "replicas on spot": f"{spot / max(1, replicas):.0%}",
        }
