"""Applications of microservices on near-edge, far-edge and cloud nodes.

Source: P. Soumplis et al., "Performance Optimization Across the Edge-Cloud Continuum: A Multi-agent Rollout Approach for
Cloud-Native Application Workload Placement", SN Computer Science, 2024; equation numbers are that paper's. The page is
``models/edge_cloud/README.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from placeopt.core.documents import validate
from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.problem import (
    Amount,
    Evaluation,
    Name,
    Objective,
    Problem,
    Record,
    Violation,
    decimals,
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.edge_cloud import SPEC
from placeopt.edge_cloud.arrays import Arrays, arrays

#: More decimals than these are rounded, and the objective has no `step`.
_MOST_DECIMALS = 9


class Node(Record):
    """A place with computing resources; costs are in cost units for each microservice it hosts."""

    name: Name
    layer: Name
    cpu_cores: Amount
    memory_gib: Amount
    operating_cost: Amount
    network_cost: Amount


class Microservice(Record):
    """What one microservice asks for, and the data that it takes in."""

    name: Name
    cpu_cores: Amount
    memory_gib: Amount
    data: Amount


class Flow(Record):
    """Two microservices of an application that talk, either way, and the largest delay between their nodes; None: any."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    max_delay_ms: Amount | None = None


class Application(Record):
    """Microservices and the node where their data come from."""

    name: Name
    source: Name
    microservices: tuple[Microservice, ...] = Field(min_length=1)
    flows: tuple[Flow, ...] = ()

    def check(self, path: str) -> None:
        """Raise unless names are unique and flows join two microservices of this application."""
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


class Plan(Record):
    """Application -> microservice -> node."""

    placement: dict[str, dict[str, str]]


class EdgeCloud(Problem):
    """An instance of the edge-cloud problem.

    Examples
    --------
    >>> problem = EdgeCloud.generate(seed=1, applications=3)
    >>> [objective.name for objective in problem.objectives]
    ['cost', 'latency_ms']
    """

    problem: Literal["edge-cloud"] = "edge-cloud"
    spec: ClassVar[ProblemSpec] = SPEC
    nodes: tuple[Node, ...] = Field(min_length=1)
    delay_ms: dict[str, dict[str, Amount]]
    applications: tuple[Application, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((a.name for a in self.applications), "application")
        for k, application in enumerate(self.applications):
            application.check(f"applications[{k}]")
            if application.source not in self.node_number:
                remedy = did_you_mean(application.source, self.node_number)
                raise DocumentError(
                    f"unknown node {application.source!r}",
                    path=f"applications[{k}].source",
                    remedy=remedy,
                )
        for one, row in self.delay_ms.items():
            for other, delay in row.items():
                back = self.delay_ms.get(other, {}).get(one, delay)
                if back != delay:
                    remedy = f"delays are symmetric; {other} to {one} is {back:g} ms: give one direction, or the same value twice"
                    raise DocumentError(
                        f"{delay:g} ms is not legal", path=f"delay_ms.{one}.{other}", remedy=remedy
                    )
        return self

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @cached_property
    def node_number(self) -> dict[str, int]:
        """Position of every node by its name."""
        return {node.name: k for k, node in enumerate(self.nodes)}

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the order in which the nodes name them."""
        return tuple(dict.fromkeys(n.layer for n in self.nodes))

    @cached_property
    def arrays(self) -> Arrays:
        """The instance as plain arrays, for models and kernels."""
        return arrays(self)

    @cached_property
    def _referee(self) -> _Referee:
        return _Referee(self)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Total cost (6) and total latency (7)."""
        referee = self._referee
        return Objective("cost", "units", referee.cost_step), Objective(
            "latency_ms", "ms", referee.latency_step
        )

    # -- the referee ---------------------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by equations (2)-(7).

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"placement": {application: {microservice: node}}}``.

        Returns
        -------
        Evaluation
            Cost and latency, summed over the applications; what is broken. The values of a plan with missing microservices
            count those that are placed.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(plan)

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json")

    def plan(self, hosts: np.ndarray) -> dict[str, Any]:
        """Return the plan that puts microservice k, counted through all applications, on node ``hosts[k]``; -1: nowhere."""
        names = [node.name for node in self.nodes]
        chosen = iter(hosts.tolist())
        placement = {
            a.name: {m.name: names[v] for m in a.microservices if (v := next(chosen)) >= 0}
            for a in self.applications
        }
        return {"placement": placement}

    def hosts(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the node of every microservice of a plan, shape (microservices,); -1 where it has none."""
        placed = plan["placement"]
        return np.array(
            [
                self.node_number.get(placed.get(a.name, {}).get(m.name), -1)
                for a in self.applications
                for m in a.microservices
            ]
        )

    # -- what is odd, what is impossible, what a plan is in words --------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name what looks like a mistake: delays of places that are not nodes."""
        idle = sorted(
            (set(self.delay_ms) | {other for row in self.delay_ms.values() for other in row})
            - set(self.node_number)
        )
        return (f"delay_ms names places that are not nodes: {', '.join(idle)}",) if idle else ()

    def infeasibility(self) -> tuple[str, ...]:
        """Say which microservices fit no node, which flows no pair of nodes satisfies, whether the total demand is too large."""
        from placeopt.edge_cloud.arrays import reasons

        return reasons(self)

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: microservices by layer, and how many nodes work."""
        chosen = [node for row in plan["placement"].values() for node in row.values()]
        count = Counter(self.nodes[self.node_number[name]].layer for name in chosen)
        return {
            "microservices": ", ".join(
                f"{count[layer]} on {layer}" for layer in self.layers if count[layer]
            ),
            "nodes in use": f"{len(set(chosen))} of {len(self.nodes)}",
        }


class _Referee:
    """Judges plans of one instance, written straight from the equations, in whole numbers."""

    def __init__(self, problem: EdgeCloud):
        self.problem, self.number = problem, problem.node_number
        nodes, services = problem.nodes, [m for a in problem.applications for m in a.microservices]
        delays = [x for row in problem.delay_ms.values() for x in row.values()]
        cost_digits = max(
            decimals(n.operating_cost for n in nodes),
            decimals(n.network_cost for n in nodes) + decimals(m.data for m in services),
        )
        delay_digits = decimals(delays)
        self.cost_step = 10.0**-cost_digits if cost_digits <= _MOST_DECIMALS else None
        self.latency_step = 10.0**-delay_digits if delay_digits <= _MOST_DECIMALS else None
        self.cost_scale, self.delay_scale = (
            10 ** min(cost_digits, 12),
            10 ** min(delay_digits, _MOST_DECIMALS),
        )
        self.operating = [Decimal(repr(n.operating_cost)) * self.cost_scale for n in nodes]
        self.network = [Decimal(repr(n.network_cost)) * self.cost_scale for n in nodes]
        self.arrays, self.delay = problem.arrays, problem.arrays.delay.tolist()
        self.services = {
            a.name: {m.name: i for i, m in enumerate(a.microservices)} for a in problem.applications
        }
        self.applications = [
            (
                a.name,
                [m.data for m in a.microservices],
                problem.node_number[a.source],
                [
                    (number[f.source], number[f.target], f.max_delay_ms)
                    for f in a.flows
                    if f.max_delay_ms is not None
                ],
            )
            for a, number in zip(problem.applications, self.services.values(), strict=True)
        ]
        self.cost: dict[tuple[int, float], int] = {}

    def judge(self, plan: Mapping[str, Any]) -> Evaluation:
        """Return values and violations of a plan."""
        try:
            return self._judge(plan["placement"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.problem.read_plan(plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})", remedy="see `placeopt schema edge-cloud`"
            ) from None

    def _judge(self, placement: Mapping[str, Mapping[str, str]]) -> Evaluation:
        violations: list[Violation] = []
        known, cost, latency = self.cost, 0, 0
        hosts: list[int] = []
        for name in placement.keys() - self.services.keys():
            raise DocumentError(
                f"unknown application {name!r}",
                path="placement",
                remedy="name applications of the instance",
            )
        for name, data, source, flows in self.applications:
            mine = self._nodes(name, placement.get(name, {}), violations)
            hosts += mine
            for v, amount in zip(mine, data, strict=True):
                cost += known[v, amount] if (v, amount) in known else self._cost(v, amount)  # (6)
            latency += round(
                self._latency(name, source, mine, violations) * self.delay_scale
            )  # (7)
            for i, j, limit in flows:
                if mine[i] >= 0 and mine[j] >= 0 and self.delay[mine[i]][mine[j]] > limit:
                    violations.append(self._late(name, i, j, mine, limit))
        self._check_loads(np.array(hosts), violations)
        return Evaluation((cost / self.cost_scale, latency / self.delay_scale), tuple(violations))

    def _nodes(
        self, application: str, row: Mapping[str, str], violations: list[Violation]
    ) -> list[int]:
        """Equation (2): every microservice on one node."""
        number, known = self.number, self.services[application]
        found = [-1] * len(known)
        for service, name in row.items():
            if service not in known:
                raise DocumentError(
                    f"unknown microservice {service!r}",
                    path=f"placement.{application}",
                    remedy=did_you_mean(service, known),
                )
            if name not in number:
                path = f"placement.{application}.{service}"
                raise DocumentError(
                    f"unknown node {str(name)[:60]!r}",
                    path=path,
                    remedy=did_you_mean(str(name)[:60], number),
                )
            found[known[service]] = number[name]
        if -1 in found:
            for service, k in known.items():
                if found[k] < 0:
                    violations.append(
                        Violation(
                            "not-placed",
                            1.0,
                            f"microservice {service!r} of {application!r} is on no node",
                        )
                    )
        return found

    def _latency(
        self, application: str, source: int, hosts: list[int], violations: list[Violation]
    ) -> float:
        """Equation (7): the largest delay from the source."""
        distance = self.delay[source]
        worst = max([distance[v] for v in hosts if v >= 0], default=0.0)
        if worst < math.inf:
            return worst
        names = self.problem.nodes
        for v in sorted({v for v in hosts if v >= 0 and distance[v] == math.inf}):
            message = f"application {application!r} uses {names[v].name}, to which {names[source].name} has no delay"
            violations.append(Violation("unreachable", 1.0, message))
        return max((distance[v] for v in hosts if v >= 0 and distance[v] < math.inf), default=0.0)

    def _cost(self, node: int, data: float) -> int:
        exact = (
            self.operating[node] + self.network[node] * Decimal(repr(data))
            if node >= 0
            else Decimal(0)
        )
        self.cost[node, data] = int(exact.to_integral_value())
        return self.cost[node, data]

    def _late(self, application: str, i: int, j: int, hosts: list[int], limit: float) -> Violation:
        """Equation (3): the delay of a flow is above its limit."""
        delay, services, nodes = (
            self.delay[hosts[i]][hosts[j]],
            list(self.services[application]),
            self.problem.nodes,
        )
        ends = f"{application!r}: {services[i]} on {nodes[hosts[i]].name} to {services[j]} on {nodes[hosts[j]].name}"
        over = min(1e6, (delay - limit) / max(limit, 1e-9)) if delay < math.inf else 1.0
        shown = f"{delay:g} ms" if delay < math.inf else "no delay is known"
        return Violation("flow-delay", over, f"{ends}: {shown}; legal: at most {limit:g} ms")

    def _check_loads(self, hosts: np.ndarray, violations: list[Violation]) -> None:
        """Equations (4), (5): loads within capacity."""
        load = np.zeros_like(self.arrays.capacity)
        np.add.at(load, hosts[hosts >= 0], self.arrays.demand[hosts >= 0])
        for v, resource in np.argwhere(load > self.arrays.capacity):
            share = float(load[v, resource] / max(self.arrays.capacity[v, resource], 1))
            kind = ("cpu", "memory")[resource]
            message = f"node {self.problem.nodes[v].name} is at {share:.1%} of its {kind}"
            violations.append(Violation(f"{kind}-capacity", max(share - 1, 1e-9), message))
