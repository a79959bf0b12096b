"""What happens to a running call graph: load, failures, an autoscaler, and who reacts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from placeopt.core.problem import Name, Record

Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Serving = Literal["shared", "in-turn", "at-once"]
Scheduler = Literal["kubernetes", "cloud-first", "latency-greedy"]


class Load(Record):
    """The load from some second on: clients in a closed loop, or arrivals in an open one."""

    from_s: Seconds = 0.0
    """Second from which it holds."""
    clients: int | None = Field(default=None, ge=0, le=100_000)
    """Clients, each of which sends a request when its last one is answered."""
    requests_per_s: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)
    """Mean arrivals a second, at times drawn from a Poisson process."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.clients is None) == (self.requests_per_s is None):
            raise ValueError("give clients or requests_per_s, one of the two")
        return self


class Failure(Record):
    """Nodes that are lost: requests in their pods fail, the pods start anew elsewhere."""

    at_s: Seconds
    """Second of the loss."""
    nodes: tuple[Name, ...] = Field(min_length=1)
    """Names of the nodes."""


class Autoscaler(Record):
    """The rule of Kubernetes' HorizontalPodAutoscaler, service by service."""

    target: float = Field(default=0.5, gt=0, le=1)
    """Share of its pods' time that a service should be busy."""
    period_s: Positive = 15.0
    """Seconds between two decisions."""
    most: int = Field(default=10, ge=1, le=1000)
    """Replicas of a service, at most."""
    tolerance: float = Field(default=0.1, ge=0, lt=1)
    """A ratio of use to target so near to 1 changes nothing."""
    stabilise_s: Seconds = 300.0
    """Replicas fall only to the most that was wanted in so many seconds."""


class Rescheduler(Record):
    """A method that moves pods after every event, one move after another."""

    method: Name = "block-search"
    """Method of `placeopt methods`, whose fastest plan is carried out."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Its parameters."""
    seconds: Positive | None = None
    """Time limit of the method."""
    evaluations: int | None = Field(default=None, ge=1)
    """Its budget in evaluations."""
    most_moves: int | None = Field(default=None, ge=0)
    """Moves after an event, at most; absent for all that its plan has."""
    after_s: Seconds = 1.0
    """Seconds between an event and the first move."""
    move_s: Seconds = 1.0
    """Seconds that a move takes: its new copy serves then, and the old one ends."""


class Scenario(Record):
    """What is played on an instance of `rescheduling`."""

    seconds: Positive = 300.0
    """How long."""
    load: tuple[Load, ...] = Field(default=(Load(clients=1),), min_length=1)
    """The load over time, by rising `from_s`."""
    serving: Serving = "shared"
    """How a pod serves requests: all share its time, one in turn, or all at once."""
    failures: tuple[Failure, ...] = ()
    """Losses of nodes, by rising `at_s`."""
    restart_s: Seconds = 0.0
    """Seconds until a pod that is started serves."""
    autoscaler: Autoscaler | None = None
    """Absent: replicas stay as many as they are."""
    scheduler: Scheduler = "kubernetes"
    """Who places pods that are started."""
    rescheduler: Rescheduler | None = None
    """Absent: nothing moves."""
    slo_ms: Positive = 250.0
    """A request that takes longer is a miss."""
    bucket_s: Positive = 5.0
    """Width of the series over time."""
    measured_from_s: Seconds = 0.0
    """Figures count requests that are answered from then on."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for what, times in (
            ("load", [one.from_s for one in self.load]),
            ("failures", [one.at_s for one in self.failures]),
        ):
            if times != sorted(times):
                raise ValueError(f"{what}: times must not go back; these are {times}")
        if len({one.clients is None for one in self.load}) > 1:
            raise ValueError("load: clients throughout, or requests_per_s throughout")
        if self.measured_from_s >= self.seconds:
            raise ValueError(
                f"measured_from_s is {self.measured_from_s:g}; give less than the "
                f"{self.seconds:g} seconds of the scenario"
            )
        return self
