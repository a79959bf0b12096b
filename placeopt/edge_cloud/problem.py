"""An edge-cloud instance: applications of microservices on near-edge, far-edge and cloud nodes.

Source: P. Soumplis et al., "Performance Optimization Across the Edge-Cloud Continuum: A Multi-agent
Rollout Approach for Cloud-Native Application Workload Placement", SN Computer Science, 2024;
equation numbers are that paper's. The page is ``models/edge_cloud/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import (
    Amount,
    Evaluation,
    Name,
    Objective,
    Problem,
    Record,
    require_name,
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.edge_cloud import SPEC
from placeopt.edge_cloud.arrays import EdgeCloudArrays, build_arrays, limited_flows, possible_nodes
from placeopt.edge_cloud.referee import EdgeCloudReferee

# -- documents -------------------------------------------------------------------------------------


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
                require_name("microservice", end, names, f"{path}.flows[{k}].{key}")
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


# -- the problem -----------------------------------------------------------------------------------


class EdgeCloud(Problem):
    """An instance of the edge-cloud problem.

    Examples
    --------
    >>> problem = EdgeCloud.generate(seed=1, applications=3)
    >>> [objective.name for objective in problem.objectives]
    ['cost', 'latency_ms']
    """

    problem: Literal["edge-cloud"] = "edge-cloud"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    nodes: tuple[EdgeNode, ...] = Field(min_length=1)
    """Where microservices can run."""
    delay_ms: dict[str, dict[str, Amount]]
    """Delay between two nodes in ms, the same both ways; 0 from a node to itself. Two nodes
    without one cannot be used together.
    """
    applications: tuple[EdgeApplication, ...] = Field(min_length=1)
    """What has to be placed."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((a.name for a in self.applications), "application")
        for k, application in enumerate(self.applications):
            application.check(f"applications[{k}]")
            path = f"applications[{k}].source"
            require_name("node", application.source, self.node_number, path)
        for one, row in self.delay_ms.items():
            for other, delay in row.items():
                back = self.delay_ms.get(other, {}).get(one, delay)
                if back != delay:
                    raise DocumentError(
                        f"{delay:g} ms is not legal",
                        path=f"delay_ms.{one}.{other}",
                        remedy=f"delays are symmetric; {other} to {one} is {back:g} ms: "
                        "give one direction, or the same value twice",
                    )
        return self

    @cached_property
    def node_number(self) -> dict[str, int]:
        """The number of every node by its name."""
        return {node.name: k for k, node in enumerate(self.nodes)}

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the order in which the nodes name them."""
        return tuple(dict.fromkeys(n.layer for n in self.nodes))

    @cached_property
    def arrays(self) -> EdgeCloudArrays:
        """The instance as arrays."""
        return build_arrays(self.nodes, self.delay_ms, self.applications)

    @cached_property
    def _referee(self) -> EdgeCloudReferee:
        return EdgeCloudReferee(self.nodes, self.delay_ms, self.applications, self.arrays)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Total cost (6) and total latency (7)."""
        cost_step, latency_step = self._referee.cost_step, self._referee.latency_step
        return Objective("cost", "units", cost_step), Objective("latency_ms", "ms", latency_step)

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan by equations (2)-(7).

        Parameters
        ----------
        plan : mapping
            As in `EdgeCloudPlan`: ``{"placement": {application: {microservice: node}}}``.

        Returns
        -------
        Evaluation
            Cost and latency, summed over the applications, and the violations. The values count
            only the microservices that are placed.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names something that the instance does not have.
        """
        with self.reading(plan):
            return self._referee.judge(plan["placement"])

    def plan(self, hosts: np.ndarray) -> dict[str, Any]:
        """Return the plan of nodes, shape (microservices,); node -1 leaves one out."""
        names = [node.name for node in self.nodes]
        chosen = iter(hosts.tolist())
        placement = {
            a.name: {m.name: names[v] for m in a.microservices if (v := next(chosen)) >= 0}
            for a in self.applications
        }
        return {"placement": placement}

    def hosts(self, plan: Plan) -> np.ndarray:
        """Return the node of every microservice of a plan, shape (microservices,); -1 for none."""
        placed = plan["placement"]
        return np.array(
            [
                self.node_number.get(placed.get(a.name, {}).get(m.name), -1)
                for a in self.applications
                for m in a.microservices
            ]
        )

    def warnings(self) -> tuple[str, ...]:
        """Return a warning about delays of places that are not nodes."""
        unknown = sorted(set(self.delay_ms).union(*self.delay_ms.values()) - set(self.node_number))
        if not unknown:
            return ()
        return (f"delay_ms names places that are not nodes: {', '.join(unknown)}",)

    def infeasibility(self) -> tuple[str, ...]:
        """Return why no plan can exist: microservices, flows, or the demand as a whole."""
        return tuple(reasons(self.applications, self.arrays))

    def describe(self, plan: Plan) -> dict[str, str]:
        """Return the microservices of a plan by layer, and the number of nodes in use."""
        with self.reading(plan):
            chosen = [node for row in plan["placement"].values() for node in row.values()]
            count = Counter(self.nodes[self.node_number[name]].layer for name in chosen)
        return {
            "microservices": ", ".join(
                f"{count[layer]} on {layer}" for layer in self.layers if count[layer]
            ),
            "nodes in use": f"{len(set(chosen))} of {len(self.nodes)}",
        }


def reasons(applications: Sequence[EdgeApplication], instance: EdgeCloudArrays) -> Iterator[str]:
    """Yield the reasons why no plan can exist, a sentence each; nothing where none is known."""
    services = [(a.name, m) for a in applications for m in a.microservices]
    possible = possible_nodes(instance)
    has_node: np.ndarray = np.any(possible, axis=1)
    for i in np.flatnonzero(~has_node).tolist():
        application, service = services[i]
        why = "no node is large enough"
        if np.all(instance.demand[i] <= instance.capacity, axis=1).any():
            why = "no node that is large enough has a delay from the source"
        yield (
            f"microservice {service.name!r} of {application!r} needs {service.cpu_cores:g} cores "
            f"and {service.memory_gib:g} GiB; {why}"
        )
    for i, j, limit in limited_flows(instance):
        if has_node[i] and has_node[j] and not _pair_exists(instance, possible, i, j, limit):
            ends = f"{services[i][1].name!r} and {services[j][1].name!r} of {services[i][0]!r}"
            yield f"no two nodes can host {ends} within {limit:g} ms of each other"
    demand, capacity = instance.demand.sum(axis=0), instance.capacity.sum(axis=0)
    for kind, need, have in zip(("cpu", "memory"), demand.tolist(), capacity.tolist(), strict=True):
        if need > have:
            share = f"{need / max(have, 1):.1%} of the {kind} of all nodes"
            yield f"all microservices together need {share}"


def _pair_exists(
    instance: EdgeCloudArrays, possible: np.ndarray, i: int, j: int, limit: float
) -> bool:
    """Return whether one node or two can host microservices i and j within a delay."""
    together = (instance.demand[i] + instance.demand[j] <= instance.capacity).all(axis=1)
    if (possible[i] & possible[j] & together & (instance.delay.diagonal() <= limit)).any():
        return True
    one, other = np.flatnonzero(possible[i]), np.flatnonzero(possible[j])
    near = instance.delay[np.ix_(one, other)] <= limit
    return bool((near & (one[:, None] != other)).any())
