"""The records that an edge-cloud instance and its plans consist of."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.problem import Amount, Name, Record, require_unique


class EdgeNode(Record):
    """A node; its costs are in cost units for each microservice that it hosts."""

    name: Name
    layer: Name
    cpu_cores: Amount
    memory_gib: Amount
    operating_cost: Amount
    network_cost: Amount


class EdgeMicroservice(Record):
    """The demand of one microservice, and the amount of data that it takes in."""

    name: Name
    cpu_cores: Amount
    memory_gib: Amount
    data: Amount


class EdgeFlow(Record):
    """Two microservices of an application that talk, in either direction.

    `max_delay_ms` is the largest legal delay between their nodes; None allows any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    max_delay_ms: Amount | None = None


class EdgeApplication(Record):
    """Microservices, and the node where their data come from."""

    name: Name
    source: Name
    microservices: tuple[EdgeMicroservice, ...] = Field(min_length=1)
    flows: tuple[EdgeFlow, ...] = ()

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
