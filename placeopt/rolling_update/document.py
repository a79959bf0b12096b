"""The records of rolling-update documents: nodes, microservices, flows, rules, steps of a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from placeopt.core.errors import DocumentError
from placeopt.core.problem import Amount, Name, Record, require_name, require_unique

#: Milli-CPU or MiB. Whole numbers are exact, and finer than any limit that Kubernetes enforces.
WholeAmount = Annotated[int, Field(strict=True, ge=0, le=10**9)]


class UpdateNode(Record):
    """A machine. Its price is paid when it hosts something at the end.

    A node to drain takes no new copy and ends empty. A closed one takes none, and what runs there
    may stay. A candidate is not there yet: a plan that uses it buys it. `resources` are further
    ones by name, such as pods or GPUs: a node has none of what it does not name. `domains` say
    where it stands: zone, rack, or what else rules are about. `residents` come with the node, such
    as agents that run on every node: rules count them. They never move, take none of the capacity
    that is given here, and do not keep the node in use.
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
    closed: bool = Field(False, strict=True)
    """Whether the node takes no new copy; what runs there may stay."""
    candidate: bool = Field(False, strict=True)
    """Whether the node is not there yet and would have to be bought: nothing runs on it now."""
    machine_type: Name | None = None
    """Machine type of the node: what to buy, or to free. Absent or null: unknown."""
    resources: dict[Name, WholeAmount] = Field(default_factory=dict)
    """Capacity of further resources by name, such as pods or GPUs. Absent: none of any."""
    domains: dict[Name, Name] = Field(default_factory=dict)
    """Where it stands, by the names that rules give as per, such as a zone. Absent: nowhere."""
    residents: dict[Name, WholeAmount] = Field(default_factory=dict)
    """Copies that come with the node and that rules count: group -> number. Absent: none."""


class UpdateMicroservice(Record):
    """A running container: its node, its size, and its size at the end (the same where absent).

    A pinned one may be restarted on its node, never moved. One without a node waits: it runs
    nowhere yet and has to be started, as a replica that is added. A removed one ends on the way.
    Of the replicas of one name as many stay ready as the smaller of their numbers now and at the
    end. `resources` are further ones by name, of either copy.
    `allowed` names a node set: new copies start on its nodes only. `groups` are what rules are
    about.
    """

    name: Name
    """Name of the microservice; unique in its application."""
    node: Name | None
    """Node on which it runs now; null where it runs nowhere yet and waits for one."""
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
    resources: dict[Name, WholeAmount] = Field(default_factory=dict)
    """Further resources that either copy takes, by name. Absent: none."""
    allowed: Name | None = None
    """Node set on whose nodes new copies may start. Absent or null: all nodes."""
    groups: tuple[Name, ...] = ()
    """Groups that rules are about. Absent: none."""
    removed: bool = Field(False, strict=True)
    """Whether it ends on the way and has no place afterwards: a replica that is removed."""
    replica_of: Name | None = None
    """Name of what it is one of the replicas of, in its application. Absent or null: of itself."""

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


#: The names of nodes that microservices may be restricted to.
NodeSet = tuple[Name, ...]


class UpdateRule(Record):
    """Which microservices may not share a domain, must share one, or are spread over domains.

    The copies of `group` obey the rule, counted are those of `toward`: the group itself by default.

    ``apart``: a copy has none of the others in its domain; of a group apart from itself, each
    domain has at most `max_copies`. ``together``: a copy has one of the others in its domain,
    unless there is none anywhere and it is one of them. ``spread``: a domain with a copy has at
    most `max_skew` more of those that count than the domain with fewest. The domains are those of
    the nodes `among`; the fewest are 0 where there are less than `min_domains`.

    A spread that `shrinks` counts per node: a node with a price is no domain any more once it hosts
    nothing and never will, as if it were deleted then, or never bought.

    A domain is a node, a cluster, or what nodes with the same entry `per` in their domains are. A
    rule holds when a copy starts, beside all that runs then, and at the end. What is not started
    may go on breaking it, unless it is to be mended. A soft rule may be broken: it is counted.
    """

    kind: Literal["apart", "together", "spread"]
    """What the rule asks of the copies: not to share a domain, to share one, to be spread."""
    group: Name
    """Group whose copies obey the rule."""
    toward: Name | None = None
    """Group whose copies count. Absent or null: the group itself."""
    per: Name = "node"
    """What a domain is: node, cluster, or a key of the domains of nodes."""
    max_copies: int = Field(1, strict=True, ge=1, le=10**9)
    """Largest number of copies in a domain, of a group that is kept apart from itself."""
    max_skew: int = Field(1, strict=True, ge=1, le=10**9)
    """Largest number of copies that a domain may have more than the one with fewest."""
    min_domains: int = Field(1, strict=True, ge=1, le=10**9)
    """Number of domains below which the fewest copies count as 0."""
    among: Name | None = None
    """Node set over whose nodes a spread counts. Absent or null: all nodes."""
    shrinks: bool = Field(False, strict=True)
    """Whether nodes that are emptied for good are no domains any more, of a spread per node."""
    soft: bool = Field(False, strict=True)
    """Whether it may be broken: that is counted, not forbidden."""
    mend: bool = Field(False, strict=True)
    """Whether what breaks it at the start has to obey it at the end, too."""

    def check(self, path: str, groups: Collection[str], node_sets: Collection[str]) -> None:
        """Raise unless the rule is about groups and node sets that exist.

        Raises
        ------
        DocumentError
        """
        require_name("group", self.group, groups, f"{path}.group")
        if self.toward is not None:
            require_name("group", self.toward, groups, f"{path}.toward")
        if self.among is not None:
            require_name("node set", self.among, node_sets, f"{path}.among")
        if self.shrinks and (self.kind, self.per, self.min_domains) != ("spread", "node", 1):
            raise DocumentError(
                f"shrinks of a rule {self.kind!r} per {self.per!r}, min_domains {self.min_domains}",
                path=f"{path}.shrinks",
                remedy="legal: of a spread per node, without min_domains",
            )
        if self.max_copies > 1 and self.toward not in (None, self.group):
            raise DocumentError(
                f"max_copies {self.max_copies} between two groups",
                path=f"{path}.max_copies",
                remedy="legal: max_copies of a group apart from itself; leave toward out",
            )


class UpdateSurvival(Record):
    """What the loss of any one node is to leave, of the deployment at the end.

    `needs` make an objective, ``lost_at_worst``. Of a group of R copies that needs k, R - k may be
    missing. A node counts the copies that it hosts beyond these, of all groups together; the
    objective is the largest count. `room` is a constraint: whichever node is lost, each of its
    microservices finds a place on the others in use, by room and rules. They are tried as a
    scheduler might do it: the largest first, each where most is left of the scarcest resource.
    Nodes without a price are taken as in use.
    """

    needs: dict[Name, WholeAmount] = Field(default_factory=dict)
    """Copies of a group that have to be left. Absent: none of any, and no objective."""
    room: Annotated[bool, Field(strict=True)] = False
    """Whether what any one node hosts must find places on the others in use."""

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise unless groups exist and have as many copies as they need.

        Parameters
        ----------
        sizes : mapping
            Group -> number of its copies.

        Raises
        ------
        DocumentError
        """
        for group, need in self.needs.items():
            path = f"survival.needs.{group}"
            require_name("group", group, sizes, path)
            if need > sizes[group]:
                raise DocumentError(
                    f"{need} copies are needed of a group of {sizes[group]}",
                    path=path,
                    remedy=f"legal: 0 to {sizes[group]}",
                )


class NodeLimit(Record):
    """How much of some nodes a plan may use, all of them together.

    Counted are the nodes of `amounts` that host something: for `most` at the end or on the way, as
    a node on which a copy starts has to be bought; for `share` at the end. A limit binds only plans
    that newly use one of its nodes: what is in use may stay, whatever it adds up to.
    """

    name: Name
    """Name of the limit, for messages; unique."""
    amounts: dict[Name, WholeAmount]
    """Node -> what it counts, such as its cores; of other nodes nothing counts."""
    most: WholeAmount | None = None
    """Largest sum of the amounts. Absent or null: no limit of the sum."""
    share: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    """Largest share that these nodes may be of all nodes in use at the end; one node is always
    legal. Absent or null: no limit of the share.
    """

    def check(self, path: str, nodes: Collection[str]) -> None:
        """Raise unless the limit is about nodes that exist, and says something.

        Raises
        ------
        DocumentError
        """
        for name in self.amounts:
            require_name("node", name, nodes, f"{path}.amounts")
        if self.most is None and self.share is None:
            raise DocumentError("a limit without a number", path=path, remedy="give most or share")


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

    def check(
        self,
        path: str,
        nodes: Collection[str],
        node_sets: Collection[str],
        candidates: Collection[str] = (),
    ) -> None:
        """Raise unless all names are known and fixed microservices keep their sizes.

        Parameters
        ----------
        path : str
            The JSON path of this application.
        nodes, node_sets : collection of str
            The names of all nodes and node sets.
        candidates : collection of str
            The names of nodes on which nothing can run yet.

        Raises
        ------
        DocumentError
        """
        names = [m.name for m in self.microservices]
        require_unique(names, f"microservice of {self.name!r}:", f"{path}.microservices")
        for k, flow in enumerate(self.flows):
            for end, name in (("from", flow.source), ("to", flow.target)):
                require_name("microservice", name, names, f"{path}.flows[{k}].{end}")
        for k, m in enumerate(self.microservices):
            here = f"{path}.microservices[{k}]"
            if m.node is not None:
                require_name("node", m.node, nodes, f"{here}.node")
            if m.allowed is not None:
                require_name("node set", m.allowed, node_sets, f"{here}.allowed")
            if m.node in candidates:
                raise DocumentError(
                    f"it runs on node {m.node!r}, which is a candidate: not there yet",
                    path=f"{here}.node",
                    remedy="give the node where it runs, or null where it waits for one",
                )
            if m.node is None and (m.pinned or not self.reschedulable):
                raise DocumentError(
                    "it runs nowhere and may not be started",
                    path=f"{here}.node",
                    remedy="give its node; or let it be moved: not pinned, reschedulable",
                )
            if m.removed:
                _check_removed(m, self.reschedulable, here)
            if not self.reschedulable and m.new_size != m.old_size:
                raise DocumentError(
                    "a new size in an application that is not reschedulable",
                    path=here,
                    remedy='leave the new size out, or set "reschedulable": true',
                )


def _check_removed(m: UpdateMicroservice, reschedulable: bool, path: str) -> None:
    """Raise unless what is to be removed runs, may be touched, and gets no new size."""
    if m.node is None:
        what, remedy = "it runs nowhere", "leave it out, or give the node where it runs"
    elif not reschedulable:
        what = "its application may not be touched"
        remedy = 'leave removed out, or set "reschedulable": true'
    elif m.new_size != m.old_size:
        what, remedy = "it has a new size", "leave the new size out: no new copy of it starts"
    else:
        return
    raise DocumentError(f"it is to be removed, but {what}", path=f"{path}.removed", remedy=remedy)


def check_node_sets(node_sets: Mapping[str, Collection[str]], nodes: Collection[str]) -> None:
    """Raise unless node sets hold nodes that exist.

    Raises
    ------
    DocumentError
    """
    for name, members in node_sets.items():
        for k, member in enumerate(members):
            require_name("node", member, nodes, f"node_sets.{name}[{k}]")


class UpdateStep(Record):
    """One move: a new copy starts on node `to`, then the old copy ends.

    Null stops the running copy; one that is to be removed ends for good.
    """

    application: str
    """Name of the application."""
    microservice: str
    """Name of the microservice that the step is about."""
    to: str | None
    """Node on which a new copy starts before the old one ends; null stops the running copy, or
    removes it.
    """


class UpdatePlan(Record):
    """The steps, in the order in which they are made."""

    steps: list[UpdateStep]
    """Steps in the order in which they are made."""
