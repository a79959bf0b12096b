"""Requests over time on reserved, on-demand and spot instances.

Source: N. Di Cicco et al., "Multi-Objective Scheduling and Resource Allocation of Kubernetes Replicas Across the Compute
Continuum", CNSM 2024; equation numbers are that paper's. The page is ``models/temporal/README.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.documents import validate
from placeopt.core.errors import DocumentError, did_you_mean
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
    require_unique,
    scaled_down,
    scaled_up,
    unit_digits,
)
from placeopt.core.spec import ProblemSpec
from placeopt.temporal import SPEC
from placeopt.temporal.referee import Referee, Units

Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class Offer(Record):
    """A machine size that can be leased in one place; a price that is absent is not offered."""

    location: Name
    size: Name
    cpu_cores: Positive
    memory_gib: Positive
    on_demand_usd_per_hour: Amount | None = None
    reserved_usd_per_hour: Amount | None = None
    spot_usd_per_hour: Amount | None = None
    spot_interruption: Share | None = None
    max_instances: Count | None = None

    def check(self, path: str) -> None:
        """Raise unless there is a price, and the share of interruptions where there is a spot price."""
        if (
            self.on_demand_usd_per_hour is None
            and self.reserved_usd_per_hour is None
            and self.spot_usd_per_hour is None
        ):
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
        """Return the price in USD per hour under a pricing of `PRICINGS`, None where it is not offered."""
        return {
            "on-demand": self.on_demand_usd_per_hour,
            "reserved": self.reserved_usd_per_hour,
            "spot": self.spot_usd_per_hour,
        }[pricing]


class Request(Record):
    """Replicas that start together, run for a while, and are called from one origin."""

    name: Name
    cpu_cores: Positive
    memory_gib: Positive
    duration_slots: PositiveCount
    replicas: PositiveCount
    origin: Name


class Instance(Record):
    """One leased machine of a plan and the replicas that it hosts, as (request, replica index)."""

    location: Name
    size: Name
    pricing: Literal["on-demand", "reserved", "spot"]
    replicas: list[tuple[str, Annotated[int, Field(strict=True)]]]


class Plan(Record):
    """When every request starts, and which machines are leased for which replicas."""

    starts: dict[str, Annotated[int, Field(strict=True)]]
    instances: list[Instance]


class Temporal(Problem):
    """An instance of the temporal problem.

    Examples
    --------
    >>> problem = Temporal.generate(seed=1, requests=3)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'cost_usd', 'interruption']
    """

    problem: Literal["temporal"] = "temporal"
    spec: ClassVar[ProblemSpec] = SPEC
    horizon_slots: PositiveCount
    slot_hours: Positive = 1.0
    latency_ms: dict[str, dict[str, Amount]]
    offers: tuple[Offer, ...] = Field(min_length=1)
    requests: tuple[Request, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique(((o.location, o.size) for o in self.offers), "offer")
        require_unique((r.name for r in self.requests), "request")
        for k, offer in enumerate(self.offers):
            offer.check(f"offers[{k}]")
        for k, request in enumerate(self.requests):
            if request.origin not in self.latency_ms:
                raise DocumentError(
                    f"unknown origin {request.origin!r}",
                    path=f"requests[{k}].origin",
                    remedy=did_you_mean(request.origin, self.latency_ms),
                )
        return self

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @cached_property
    def resource_digits(self) -> tuple[int, int]:
        """Decimals of (cpu, memory) in this instance: resources are compared as whole numbers."""
        everything: list[Offer | Request] = [*self.offers, *self.requests]
        replicas = sum(r.replicas for r in self.requests)
        return (
            unit_digits([x.cpu_cores for x in everything], replicas),
            unit_digits([x.memory_gib for x in everything], replicas),
        )

    @cached_property
    def demands(self) -> np.ndarray:
        """Scaled (cpu, memory) of one replica, shape (requests, 2), integers."""
        cpu, memory = self.resource_digits
        return np.stack(
            [
                scaled_up([r.cpu_cores for r in self.requests], cpu),
                scaled_up([r.memory_gib for r in self.requests], memory),
            ],
            axis=1,
        )

    @cached_property
    def capacities(self) -> np.ndarray:
        """Scaled (cpu, memory) of one machine, shape (offers, 2), integers."""
        cpu, memory = self.resource_digits
        return np.stack(
            [
                scaled_down([o.cpu_cores for o in self.offers], cpu),
                scaled_down([o.memory_gib for o in self.offers], memory),
            ],
            axis=1,
        )

    @cached_property
    def latencies(self) -> np.ndarray:
        """Latency in ms from the origin of each request to each offer, shape (requests, offers); inf where none is given."""
        return np.array(
            [
                [self.latency_ms[r.origin].get(o.location, math.inf) for o in self.offers]
                for r in self.requests
            ]
        )

    @cached_property
    def usable(self) -> np.ndarray:
        """Whether an offer can host a replica of a request: fits, is reachable, may be leased; shape (requests, offers)."""
        fits = (self.demands[:, None, :] <= self.capacities[None, :, :]).all(axis=2)
        leasable = np.array([o.max_instances != 0 for o in self.offers])
        return fits & leasable & np.isfinite(self.latencies)

    def slot_price(self, offer: int, pricing: str) -> float:
        """Return what one machine costs per slot in USD, inf where the pricing is not offered."""
        price = self.offers[offer].price(pricing)
        return math.inf if price is None else price * self.slot_hours

    @cached_property
    def _units(self) -> Units:
        return Units(self)

    @cached_property
    def _referee(self) -> Referee:
        return Referee(self)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Mean largest latency (6), cost over the horizon (7), mean interruption (8)."""
        units = self._units
        return (
            Objective("latency_ms", "ms", units.latency_step),
            Objective("cost_usd", "USD", units.cost_step),
            Objective("interruption", "share", units.interruption_step),
        )

    # -- the referee ---------------------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by equations (6)-(8) and (10)-(15).

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"starts": {request: slot}, "instances": [...]}``.

        Returns
        -------
        Evaluation
            Latency in ms, cost in USD, interruption as a share; what is broken. The values of a plan with missing replicas
            count the replicas that are there.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(plan)

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json")

    # -- what is odd, what is impossible, what a plan is in words --------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name prices that cannot be real: spot or reserved above on-demand, or on-demand far below reserved."""
        found = []
        for offer in self.offers:
            on_demand = offer.on_demand_usd_per_hour
            for label, price in (
                ("spot", offer.spot_usd_per_hour),
                ("reserved", offer.reserved_usd_per_hour),
            ):
                if on_demand is not None and price is not None and price > on_demand:
                    found.append(
                        f"{offer.location} {offer.size}: the {label} price {price:g} USD/h is above on-demand {on_demand:g} USD/h"
                    )
        used = {r.origin for r in self.requests} | {o.location for o in self.offers}
        idle = sorted(
            (set(self.latency_ms) | {d for row in self.latency_ms.values() for d in row}) - used
        )
        if idle:
            found.append(f"latency_ms names places that nothing uses: {', '.join(idle)}")
        return tuple(found)

    def infeasibility(self) -> tuple[str, ...]:
        """Say for each request that cannot be served why not."""
        reasons = []
        for k, request in enumerate(self.requests):
            if request.duration_slots > self.horizon_slots:
                reasons.append(
                    f"request {request.name!r} runs for {request.duration_slots} slots, longer than the horizon of {self.horizon_slots}"
                )
            if not self.usable[k].any():
                reasons.append(self._why_unusable(k))
            elif (room := self._room(k)) < request.replicas:
                together = (
                    f"request {request.name!r} has {request.replicas} replicas that run together"
                )
                reasons.append(f"{together}; all machines that may be leased hold {room:g}")
        return tuple(reasons)

    def _room(self, k: int) -> float:
        """Return how many replicas of a request all leasable machines hold together, inf where one offer has no limit."""
        held = (self.capacities // self.demands[k]).min(axis=1)
        limits = [math.inf if o.max_instances is None else o.max_instances for o in self.offers]
        return sum(
            int(n) * limit
            for n, limit, usable in zip(held, limits, self.usable[k], strict=True)
            if usable
        )

    def _why_unusable(self, k: int) -> str:
        request = self.requests[k]
        need = f"request {request.name!r} needs {request.cpu_cores:g} vCPU and {request.memory_gib:g} GiB a replica"
        reachable = np.isfinite(self.latencies[k])
        fits = (self.demands[k] <= self.capacities).all(axis=1)
        if not fits.any():
            widest = max(self.offers, key=lambda o: (o.cpu_cores, o.memory_gib))
            return f"{need}, which fits no offer (the most vCPU has {widest.size}: {widest.cpu_cores:g} vCPU, {widest.memory_gib:g} GiB)"
        if not (fits & reachable).any():
            return f"{need}; no offer that fits is reachable: latency_ms has no latency from {request.origin!r} to its location"
        return f"{need}; every offer that fits has max_instances 0"

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: machines by place, size and price, and the share of replicas on spot."""
        counts = Counter((i["location"], i["size"], i["pricing"]) for i in plan["instances"])
        spot = sum(len(i["replicas"]) for i in plan["instances"] if i["pricing"] == "spot")
        replicas = sum(len(i["replicas"]) for i in plan["instances"])
        return {
            "machines": str(sum(counts.values())),
            "fleet": ", ".join(f"{n} x {' '.join(what)}" for what, n in counts.most_common()),
            "replicas on spot": f"{spot / max(1, replicas):.0%}",
        }
