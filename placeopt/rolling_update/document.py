"""The records of rolling-update documents: nodes, microservices, flows, and steps of a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.problem import Amount, Name, Record, require_unique

#: Milli-CPU or MiB. Whole numbers are exact, and finer than any limit that Kubernetes enforces.
WholeAmount = Annotated[int, Field(strict=True, ge=0, le=10**9)]


class UpdateNode(Record):
    """A machine. Its price is paid when it hosts something at the end.

    A node to drain takes no new copy and ends empty.
    """

    name: Name
    """Name of the node; unique."""
    cluster: Name
    """Cluster that the node belongs to: a name used in cluster_latency_ms."""
    cpu_millicores: WholeAmount
    """Capacity in thousandths of a core."""
    memory_mib: WholeAmount
    """Capacity in MiB."""
    price: Amount
    """Price of the node if it hosts something at the end, in any one unit for all nodes."""
    drain: bool = Field(False, strict=True)
    """Whether the node takes no new copy and has to be empty at the end."""


class UpdateMicroservice(Record):
    """A running container: its node, its size, and its size at the end (the same where absent).

    A pinned one may be restarted on its node, never moved.
    """

    name: Name
    """Name of the microservice; unique in its application."""
    node: Name
    """Node on which it runs now."""
    cpu_millicores: WholeAmount
    """Size of the running copy in thousandths of a core."""
    memory_mib: WholeAmount
    """Size of the running copy in MiB."""
    new_cpu_millicores: WholeAmount | None = None
    """Size of a new copy in thousandths of a core. Absent or null: as it runs now."""
    new_memory_mib: WholeAmount | None = None
    """Size of a new copy in MiB. Absent or null: as it runs now."""
    pinned: bool = Field(False, strict=True)
    """Whether it may only be restarted on its node, never moved."""

    @property
    def old_size(self) -> tuple[int, int]:
        """(milli-CPU, MiB) of the running copy."""
        return self.cpu_millicores, self.memory_mib

    @property
    def new_size(self) -> tuple[int, int]:
        """(milli-CPU, MiB) of a new copy."""
        cpu, memory = self.new_cpu_millicores, self.new_memory_mib
        return (
            self.cpu_millicores if cpu is None else cpu,
            self.memory_mib if memory is None else memory,
        )


class UpdateFlow(Record):
    """Two microservices of one application that talk, and the latency they tolerate at the end."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    source: Name = Field(alias="from")
    """One of the two microservices."""
    target: Name = Field(alias="to")
    """The other one."""
    max_latency_ms: Amount
    """Largest latency between their clusters at the end, in ms."""


class UpdateApplication(Record):
    """Microservices that are rescheduled together or left alone together."""

    name: Name
    """Name of the application; unique."""
    reschedulable: bool = Field(True, strict=True)
    """Whether its microservices may be touched at all."""
    microservices: tuple[UpdateMicroservice, ...] = Field(min_length=1)
    """Running containers of the application."""
    flows: tuple[UpdateFlow, ...] = ()
    """Pairs of microservices that talk. Absent: none."""

    def check(self, path: str, nodes: set[str]) -> None:
        """Raise unless all names are known and fixed microservices keep their sizes.

        Parameters
        ----------
        path : str
            The JSON path of this application.
        nodes : set of str
            The names of all nodes.

        Raises
        ------
        DocumentError
        """
        names = [m.name for m in self.microservices]
        require_unique(names, f"microservice of {self.name!r}:", f"{path}.microservices")
        for k, flow in enumerate(self.flows):
            for end, name in (("from", flow.source), ("to", flow.target)):
                if name not in names:
                    raise DocumentError(
                        f"unknown microservice {name!r}",
                        path=f"{path}.flows[{k}].{end}",
                        remedy=did_you_mean(name, names),
                    )
        for k, m in enumerate(self.microservices):
            here = f"{path}.microservices[{k}]"
            if m.node not in nodes:
                raise DocumentError(
                    f"unknown node {m.node!r}",
                    path=f"{here}.node",
                    remedy=did_you_mean(m.node, sorted(nodes)[:50]),
                )
            if not self.reschedulable and m.new_size != m.old_size:
                raise DocumentError(
                    "a new size in an application that is not reschedulable",
                    path=here,
                    remedy='leave the new size out, or set "reschedulable": true',
                )


class UpdateStep(Record):
    """One move: a new copy starts on node `to`, then the old copy ends.

    Null stops the running copy.
    """

    application: str
    """Name of the application."""
    microservice: str
    """Name of the microservice that the step is about."""
    to: str | None
    """Node on which a new copy starts before the old one ends; null stops the running copy."""


class UpdatePlan(Record):
    """The steps, in the order in which they are made."""

    steps: list[UpdateStep]
    """Steps in the order in which they are made."""
