"""The records that an edge-cloud instance and its plans consist of."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.problem import Amount, Name, Record, require_unique


class EdgeNode(Record):
    """A node; its costs are in cost units for each microservice that it hosts."""

    name: Name
    """Name of the node; unique."""
    layer: Name
    """Part of the continuum, such as near-edge, far-edge or cloud; for pictures and tables."""
    cpu_cores: Amount
    """Cores that microservices can use."""
    memory_gib: Amount
    """Memory in GiB that microservices can use."""
    operating_cost: Amount
    """Cost units for each microservice that the node hosts."""
    network_cost: Amount
    """Cost units for each unit of data of a microservice that the node hosts."""


class EdgeMicroservice(Record):
    """The demand of one microservice, and the amount of data that it takes in."""

    name: Name
    """Name of the microservice; unique in its application."""
    cpu_cores: Amount
    """Cores that it needs."""
    memory_gib: Amount
    """Memory in GiB that it needs."""
    data: Amount
    """Data that it takes in, in the unit that network_cost is for."""


class EdgeFlow(Record):
    """Two microservices of an application that talk, in either direction.

    `max_delay_ms` is the largest legal delay between their nodes; None allows any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    source: Name = Field(alias="from")
    """One of the two microservices."""
    target: Name = Field(alias="to")
    """The other one."""
    max_delay_ms: Amount | None = None
    """Largest legal delay between their nodes in ms. Absent or null: any."""


class EdgeApplication(Record):
    """Microservices, and the node where their data come from."""

    name: Name
    """Name of the application; unique."""
    source: Name
    """Node where the application's data come from."""
    microservices: tuple[EdgeMicroservice, ...] = Field(min_length=1)
    """What the application consists of; each runs on one node."""
    flows: tuple[EdgeFlow, ...] = ()
    """Pairs of microservices that talk. Absent: none."""

    def check(self, path: str) -> None:
        """Check that names are unique and that flows join two microservices of this application.

        Raises
        ------
        DocumentError
            Names the field below `path`.
        """
        require_unique((m.name for m in self.microservices), f"microservice of {self.name!r}:")
        names = {m.name for m in self.microservices}
        for k, flow in enumerate(self.flows):
            for key, end in (("from", flow.source), ("to", flow.target)):
                if end not in names:
                    raise DocumentError(
                        f"unknown microservice {end!r}",
                        path=f"{path}.flows[{k}].{key}",
                        remedy=did_you_mean(end, names),
                    )
            if flow.source == flow.target:
                raise DocumentError(
                    f"{flow.source!r} flows to itself",
                    path=f"{path}.flows[{k}]",
                    remedy="name two different microservices",
                )


class EdgeCloudPlan(Record):
    """Application -> microservice -> node."""

    placement: dict[str, dict[str, str]]
    """Name of an application -> name of a microservice -> name of its node."""
