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
    size: Name
    cpu_cores: Positive
    memory_gib: Positive
    on_demand_usd_per_hour: Amount | None = None
    reserved_usd_per_hour: Amount | None = None
    spot_usd_per_hour: Amount | None = None
    spot_interruption: Share | None = None
    max_instances: Count | None = None

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
    cpu_cores: Positive
    memory_gib: Positive
    duration_slots: PositiveCount
    replicas: PositiveCount
    origin: Name


class LeasedMachine(Record):
    """A leased machine of a plan and the replicas that it hosts, as (request, replica index)."""

    location: Name
    size: Name
    pricing: Literal["on-demand", "reserved", "spot"]
    replicas: list[tuple[str, Annotated[int, Field(strict=True)]]]


class TemporalPlan(Record):
    """When every request starts, and which machines are leased for which replicas."""

    starts: dict[str, Annotated[int, Field(strict=True)]]
    instances: list[LeasedMachine]
