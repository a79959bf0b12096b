"""Move few replicas of a running call graph so that requests get faster.

Source: X. Bai, M. T. Islam, R. Buyya, A. N. Toosi, "REACH: Reinforcement Learning for Adaptive
Microservice Rescheduling in the Cloud-Edge Continuum"; equation numbers are that paper's. The page
is ``models/rescheduling/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.fronts.values import Plan
from placeopt.core.numbers import resources
from placeopt.core.problem import (
    Amount,
    Evaluation,
    Name,
    Objective,
    Problem,
    Record,
    latency_rows,
    require_name,
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.rescheduling import SPEC
from placeopt.rescheduling.arrays import CallGraph, ReschedulingArrays, build
from placeopt.rescheduling.referee import ReschedulingReferee

#: Fields of nodes and services with the two resources.
RESOURCE_FIELDS: tuple[Literal["cpu_cores"], Literal["memory_gib"]] = ("cpu_cores", "memory_gib")


class ContinuumNode(Record):
    """A machine; its kind says how fast every service runs on it."""

    name: Name
    """Name of the node; unique."""
    kind: Name
    """Kind of machine: services have an execution time for each kind."""
    cpu_cores: Amount
    """Capacity in cores."""
    memory_gib: Amount
    """Capacity in GiB."""
    user_latency_ms: Amount
    """Latency in ms between the users and this node."""


class RunningService(Record):
    """A service with its replicas, each by the node it runs on.

    Groups of `calls` run in parallel, the calls of a group in sequence.
    """

    name: Name
    """Name of the service; unique."""
    cpu_cores: Amount
    """Cores that each replica needs."""
    memory_gib: Amount
    """Memory in GiB that each replica needs."""
    execution_ms: dict[str, Amount]
    """Kind of node -> time in ms that the service takes for a request there; for every kind of
    node.
    """
    replicas: tuple[Name, ...] = Field(min_length=1)
    """Node of each replica now; a node with two replicas stands twice."""
    calls: tuple[tuple[Name, ...], ...] = ()
    """Groups of services that it calls: groups in parallel, the calls of a group in sequence.
    Absent: it calls none.
    """


class ReplicaMove(Record):
    """A new copy of a service starts on node `to`, then one on node `from` ends."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    service: str
    """Name of the service."""
    source: str = Field(alias="from")
    """Node on which a copy ends."""
    to: str
    """Node on which a copy starts before that."""


class ReschedulingPlan(Record):
    """The moves, in the order in which they are made."""

    moves: list[ReplicaMove]
    """Moves in the order in which they are made."""


class Rescheduling(Problem):
    """An instance of the rescheduling problem.

    Nothing is overloaded at the start, so that to move nothing is always a plan.

    Examples
    --------
    >>> problem = Rescheduling.generate(seed=1)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'moves']
    """

    problem: Literal["rescheduling"] = "rescheduling"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    nodes: tuple[ContinuumNode, ...] = Field(min_length=1)
    """Machines of the continuum."""
    latency_ms: dict[str, dict[str, Amount]] = Field(default_factory=dict)
    """Latency between two nodes in ms; one direction stands for both where the other is not given;
    0 from a node to itself.
    """
    services: tuple[RunningService, ...] = Field(min_length=1)
    """What runs now, and who calls whom."""
    gateway: Name
    """Service that users call."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((s.name for s in self.services), "service")
        self._check_names()
        load = self.arrays.home.T @ self.arrays.demand
        for n, r in np.argwhere(load > self.arrays.capacity).tolist():
            node, field = self.nodes[n], RESOURCE_FIELDS[r]
            capacity = getattr(node, field)
            raise DocumentError(
                f"the replicas on {node.name!r} ask for more than its {capacity:g}",
                path=f"nodes[{n}].{field}",
                remedy="equation (1): what runs on a node fits into it",
            )
        return self

    def _check_names(self) -> None:
        kinds = sorted({node.kind for node in self.nodes})
        for s, service in enumerate(self.services):
            for k, name in enumerate(service.replicas):
                require_name("node", name, self.node_numbers, f"services[{s}].replicas[{k}]")
            for kind in kinds:
                if kind not in service.execution_ms:
                    raise DocumentError(
                        f"service {service.name!r} has no execution time on {kind!r}",
                        path=f"services[{s}].execution_ms",
                        remedy=f"nodes are of the kinds {', '.join(kinds)}: give a time for each",
                    )
            for g, group in enumerate(service.calls):
                for k, name in enumerate(group):
                    path = f"services[{s}].calls[{g}][{k}]"
                    what = f"{service.name!r} calls the unknown service"
                    require_name("service", name, self.service_numbers, path, what)
        require_name("service", self.gateway, self.service_numbers, "gateway")

    # -- numbers that the referee and the methods share --------------------------------------------

    @cached_property
    def node_numbers(self) -> dict[str, int]:
        """Number of every node by its name."""
        return {node.name: k for k, node in enumerate(self.nodes)}

    @cached_property
    def service_numbers(self) -> dict[str, int]:
        """Number of every service by its name."""
        return {service.name: k for k, service in enumerate(self.services)}

    @cached_property
    def _delay(self) -> list[list[float]]:
        """Latency in ms from every node to every node."""
        return latency_rows(list(self.node_numbers), self.latency_ms)

    @cached_property
    def _execution(self) -> list[list[float]]:
        """Execution time in ms of every service on every node."""
        return [[s.execution_ms[node.kind] for node in self.nodes] for s in self.services]

    @cached_property
    def graph(self) -> CallGraph:
        """The call graph with its exact latency: equations (2) to (9)."""
        numbers = self.service_numbers
        return CallGraph(
            names=list(numbers),
            groups=[
                [[numbers[name] for name in group] for group in s.calls] for s in self.services
            ],
            gateway=numbers[self.gateway],
            replicas=[len(service.replicas) for service in self.services],
            execution=self._execution,
            user=[node.user_latency_ms for node in self.nodes],
            delay=self._delay,
        )

    @cached_property
    def arrays(self) -> ReschedulingArrays:
        """The instance as arrays."""
        copies = sum(len(s.replicas) for s in self.services) + len(self.nodes)
        demand, capacity = resources(self.services, self.nodes, copies)
        return build(
            demand=demand,
            capacity=capacity,
            homes=[[self.node_numbers[name] for name in s.replicas] for s in self.services],
            execution=self._execution,
            user=[node.user_latency_ms for node in self.nodes],
            delay=self._delay,
            groups=self.graph.groups,
            order=self.graph.order,
        )

    @cached_property
    def _referee(self) -> ReschedulingReferee:
        services, nodes = list(self.service_numbers), list(self.node_numbers)
        return ReschedulingReferee(self.arrays, self.graph, services, nodes)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """End-to-end latency (9), and moves."""
        return Objective("latency_ms", "ms", self.graph.step), Objective("moves", "moves", 1.0)

    # -- plans -------------------------------------------------------------------------------------

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan by making its moves one after another.

        Parameters
        ----------
        plan : mapping
            As in `ReschedulingPlan`: ``{"moves": [{"service": ..., "from": node, "to": node}]}``.

        Returns
        -------
        Evaluation
            Latency at the end, number of moves; what is broken.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(self.moves(plan))

    def moves(self, plan: Plan) -> list[tuple[int, int, int]]:
        """Return a plan's moves as (service, from, to) by number: the inverse of `plan`."""
        with self.reading(plan):
            return [self._move(move, position) for position, move in enumerate(plan["moves"])]

    def _move(self, move: Mapping[str, Any], position: int) -> tuple[int, int, int]:
        path, nodes, services = f"moves[{position}]", self.node_numbers, self.service_numbers
        require_name("service", move["service"], services, f"{path}.service")
        for end in ("from", "to"):
            require_name("node", move[end], nodes, f"{path}.{end}")
        return services[move["service"]], nodes[move["from"]], nodes[move["to"]]

    def plan(self, moves: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return the plan of moves given as (service, from, to) by number."""
        return {
            "moves": [
                {
                    "service": self.services[i].name,
                    "from": self.nodes[u].name,
                    "to": self.nodes[v].name,
                }
                for i, u, v in moves
            ]
        }

    def final_counts(self, plan: Plan) -> np.ndarray:
        """Return the replicas per (service, node) after a plan."""
        counts = self.arrays.home.copy()
        for i, u, v in self.moves(plan):
            counts[i, u] -= 1
            counts[i, v] += 1
        return counts

    def table(self, plan: Plan) -> list[dict[str, Any]]:
        """Return a row for every move.

        Number, service, nodes, latency after it in ms, and the change of the latency.
        """
        graph, rows = self.graph, []
        counts = self.arrays.home.tolist()
        before = graph.latency(counts)
        for number, (i, source, target) in enumerate(self.moves(plan), start=1):
            counts[i][source] -= 1
            counts[i][target] += 1
            after = graph.latency(counts)
            rows.append(
                {
                    "move": number,
                    "service": self.services[i].name,
                    "from": self.nodes[source].name,
                    "to": self.nodes[target].name,
                    "latency_ms": after / graph.parts,
                    "change_ms": (after - before) / graph.parts,
                }
            )
            before = after
        return rows

    @cached_property
    def initial_latency(self) -> float:
        """End-to-end latency in ms of the running deployment."""
        return self.graph.latency_ms(self.arrays.home.tolist())

    # -- what is odd, what a plan is in words ------------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name services that no request reaches, and places of `latency_ms` that are no nodes."""
        reached = set(self.graph.order)
        results = [
            f"service {service.name!r} is not reached from the gateway {self.gateway!r}"
            for i, service in enumerate(self.services)
            if i not in reached
        ]
        named = set(self.latency_ms).union(*self.latency_ms.values())
        if unknown := sorted(named - set(self.node_numbers)):
            results.append(f"latency_ms names places that are no nodes: {', '.join(unknown)}")
        return tuple(results)

    def describe(self, plan: Plan) -> dict[str, str]:
        """Return a plan in words: latency before and after, moves, the critical path at the end."""
        names = list(self.service_numbers)
        moves = self.moves(plan)
        moved = Counter(names[i] for i, _, _ in moves)
        path = self.graph.critical_path(self.final_counts(plan).tolist())
        return {
            "latency": f"{self.initial_latency:.6g} -> {self.evaluate(plan).values[0]:.6g} ms",
            "moves": f"{len(moves)} of {int(self.arrays.replicas.sum())} replicas",
            "moved": ", ".join(f"{name} x {n}" for name, n in moved.items()) or "none",
            "critical path": " > ".join(names[hop.service] for hop in path),
        }
