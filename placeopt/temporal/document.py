"""The records of temporal documents: offers, requests, and plans."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placeopt.core.errors import DocumentError
from placeopt.core.problem import Amount, Count, Name, Positive, PositiveCount, Record

PRICINGS = ("on-demand", "reserved", "spot")

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
