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
    cluster: Name
    cpu_millicores: WholeAmount
    memory_mib: WholeAmount
    price: Amount
    drain: bool = Field(False, strict=True)


class UpdateMicroservice(Record):
    """A running container: its node, its size, and its size at the end (the same where absent).

    A pinned one may be restarted on its node, never moved.
    """

    name: Name
    node: Name
    cpu_millicores: WholeAmount
    memory_mib: WholeAmount
    new_cpu_millicores: WholeAmount | None = None
    new_memory_mib: WholeAmount | None = None
    pinned: bool = Field(False, strict=True)

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
    target: Name = Field(alias="to")
    max_latency_ms: Amount


class UpdateApplication(Record):
    """Microservices that are rescheduled together or left alone together."""

    name: Name
    reschedulable: bool = Field(True, strict=True)
    microservices: tuple[UpdateMicroservice, ...] = Field(min_length=1)
    flows: tuple[UpdateFlow, ...] = ()

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
    microservice: str
    to: str | None


class UpdatePlan(Record):
    """The steps, in the order in which they are made."""

    steps: list[UpdateStep]
