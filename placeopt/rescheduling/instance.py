"""Move few replicas of a running call graph so that requests get faster.

Source: X. Bai, M. T. Islam, R. Buyya, A. N. Toosi, "REACH: Reinforcement Learning for Adaptive Microservice Rescheduling in the
Cloud-Edge Continuum"; equation numbers are that paper's. The page is ``models/rescheduling/README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

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
    latency_rows,
    require_unique,
    scaled_down,
    scaled_up,
    unit_digits,
)
from placeopt.core.spec import ProblemSpec
from placeopt.rescheduling import SPEC
from placeopt.rescheduling.latency import CallGraph, call_order, counts_of

RESOURCES = ("cpu", "memory")


class Node(Record):
    """A machine; its kind says how fast every service runs on it."""

    name: Name
    kind: Name
    cpu_cores: Amount
    memory_gib: Amount
    user_latency_ms: Amount


class Service(Record):
    """A service with its replicas, each by the node it runs on; groups of `calls` run in parallel, inside one in sequence."""

    name: Name
    cpu_cores: Amount
    memory_gib: Amount
    execution_ms: dict[str, Amount]
    replicas: tuple[Name, ...] = Field(min_length=1)
    calls: tuple[tuple[Name, ...], ...] = ()


class Move(Record):
    """A new copy of a service starts on node `to`, then one on node `from` ends."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    service: str
    source: str = Field(alias="from")
    to: str


class Plan(Record):
    """The moves, in the order in which they are made."""

    moves: list[Move]


class Arrays(NamedTuple):
    """An instance as arrays for the faces: S services, N nodes, by number in document order.

    Attributes
    ----------
    demand : int64 (S, 2); capacity, int64 (N, 2)
        Cpu and memory in whole units.
    home : int64 (S, N)
        Replicas per service and node now.
    replicas : int64 (S,)
    execution : float (S, N); user, float (N,); delay, float (N, N)
        ms.
    order : int64 (reached,)
        What the gateway reaches, callees first; the gateway is last.
    group_first : int64 (S + 1,); member_first, int64 (groups + 1,); member, int64 (calls,)
        The groups of service i are ``group_first[i]`` to ``group_first[i + 1]``; group g calls
        ``member[member_first[g]:member_first[g + 1]]``.
    """

    demand: np.ndarray
    capacity: np.ndarray
    home: np.ndarray
    replicas: np.ndarray
    execution: np.ndarray
    user: np.ndarray
    delay: np.ndarray
    order: np.ndarray
    group_first: np.ndarray
    member_first: np.ndarray
    member: np.ndarray


class Rescheduling(Problem):
    """An instance of the rescheduling problem. Nothing is overloaded at the start, so that to move nothing is always a plan.

    Examples
    --------
    >>> problem = Rescheduling.generate(seed=1)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'moves']
    """

    problem: Literal["rescheduling"] = "rescheduling"
    spec: ClassVar[ProblemSpec] = SPEC
    nodes: tuple[Node, ...] = Field(min_length=1)
    latency_ms: dict[str, dict[str, Amount]] = Field(default_factory=dict)
    services: tuple[Service, ...] = Field(min_length=1)
    gateway: Name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((s.name for s in self.services), "service")
        self._check_names()
        self.delays()
        call_order(self.services, self.service_numbers, self.service_numbers[self.gateway])
        load = np.tensordot(self.arrays.home, self.arrays.demand, axes=(0, 0))
        for n, r in np.argwhere(load > self.arrays.capacity).tolist():
            node, what = self.nodes[n], ("cpu_cores", "memory_gib")[r]
            problem = f"the replicas on {node.name!r} ask for more than its {getattr(node, what):g}"
            raise DocumentError(
                problem,
                path=f"nodes[{n}].{what}",
                remedy="equation (1): what runs on a node fits into it",
            )
        return self

    def _check_names(self) -> None:
        kinds, numbers = {n.kind for n in self.nodes}, self.service_numbers
        for s, service in enumerate(self.services):
            for k, name in enumerate(service.replicas):
                if name not in self.node_numbers:
                    remedy = did_you_mean(name, list(self.node_numbers)[:50])
                    raise DocumentError(
                        f"unknown node {name!r}", path=f"services[{s}].replicas[{k}]", remedy=remedy
                    )
            for kind in sorted(kinds - service.execution_ms.keys()):
                remedy = f"nodes are of the kinds {', '.join(sorted(kinds))}: give a time for each"
                raise DocumentError(
                    f"service {service.name!r} has no execution time on {kind!r}",
                    path=f"services[{s}].execution_ms",
                    remedy=remedy,
                )
            for g, group in enumerate(service.calls):
                for k, name in enumerate(group):
                    if name not in numbers:
                        text, where = (
                            f"{service.name!r} calls the unknown service {name!r}",
                            f"services[{s}].calls[{g}][{k}]",
                        )
                        raise DocumentError(
                            text, path=where, remedy=did_you_mean(name, list(numbers)[:50])
                        )
        if self.gateway not in numbers:
            raise DocumentError(
                f"unknown service {self.gateway!r}",
                path="gateway",
                remedy=did_you_mean(self.gateway, list(numbers)[:50]),
            )

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @cached_property
    def node_numbers(self) -> dict[str, int]:
        """Number of every node by its name."""
        return {n.name: k for k, n in enumerate(self.nodes)}

    @cached_property
    def service_numbers(self) -> dict[str, int]:
        """Number of every service by its name."""
        return {s.name: k for k, s in enumerate(self.services)}

    def delays(self) -> list[list[float]]:
        """Return the latency in ms from every node to every node."""
        return latency_rows([n.name for n in self.nodes], self.latency_ms)

    @cached_property
    def graph(self) -> CallGraph:
        """Equations (2) to (9)."""
        return CallGraph(self)

    @cached_property
    def arrays(self) -> Arrays:
        """The instance as arrays."""
        resources = []
        for what in ("cpu_cores", "memory_gib"):
            need, have = (
                [getattr(s, what) for s in self.services],
                [getattr(n, what) for n in self.nodes],
            )
            copies = sum(len(s.replicas) for s in self.services) + len(self.nodes)
            digits = unit_digits([*need, *have], copies)
            resources.append((scaled_up(need, digits), scaled_down(have, digits)))
        graph = self.graph
        groups = [group for i in range(len(self.services)) for group in graph.groups[i]]
        kinds = [n.kind for n in self.nodes]
        return Arrays(
            demand=np.stack([need for need, _ in resources], axis=1),
            capacity=np.stack([have for _, have in resources], axis=1),
            home=counts_of(
                [[self.node_numbers[name] for name in s.replicas] for s in self.services],
                len(self.nodes),
            ),
            replicas=np.array(graph.replicas, dtype=np.int64),
            execution=np.array(
                [[s.execution_ms[kind] for kind in kinds] for s in self.services], dtype=float
            ),
            user=np.array([n.user_latency_ms for n in self.nodes], dtype=float),
            delay=np.array(self.delays(), dtype=float),
            order=np.array(graph.order, dtype=np.int64),
            group_first=np.cumsum([0, *(len(g) for g in graph.groups)], dtype=np.int64),
            member_first=np.cumsum([0, *(len(g) for g in groups)], dtype=np.int64),
            member=np.array([j for g in groups for j in g], dtype=np.int64),
        )

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """End-to-end latency (9), and moves."""
        return Objective("latency_ms", "ms", self.graph.step), Objective("moves", "moves", 1.0)

    # -- the referee ---------------------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by making its moves one after another.

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"moves": [{"service": ..., "from": node, "to": node}]}``.

        Returns
        -------
        Evaluation
            Latency at the end, number of moves; what is broken.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        violations: list[Violation] = []
        counts, load = self._start
        counts, load = [list(row) for row in counts], [list(row) for row in load]
        moves = self.moves(plan)
        for position, (i, source, target) in enumerate(moves):
            if counts[i][source] == 0:
                text = f"moves[{position}]: no replica of {self.services[i].name!r} runs on {self.nodes[source].name!r}"
                violations.append(Violation("not-there", 1.0, text))
                continue
            for r in range(
                2
            ):  # the new copy starts before the old one ends: equation (1) with both
                load[target][r] += self._demand[i][r]
                self._check_load(position, i, target, r, load[target][r], violations)
                load[source][r] -= self._demand[i][r]
            counts[i][target] += 1
            counts[i][source] -= 1
        return Evaluation(
            (self.graph.latency(counts) / self.graph.parts, float(len(moves))), tuple(violations)
        )

    def _check_load(
        self, position: int, i: int, n: int, r: int, amount: int, violations: list[Violation]
    ) -> None:
        most = self._capacity[n][r]
        if amount > most:
            text = f"moves[{position}] starts {self.services[i].name!r} on {self.nodes[n].name!r}, which has too little {RESOURCES[r]} free"
            violations.append(
                Violation(f"{RESOURCES[r]}-capacity", amount / most - 1 if most else 1.0, text)
            )

    @cached_property
    def _start(self) -> tuple[list[list[int]], list[list[int]]]:
        return self.arrays.home.tolist(), np.tensordot(
            self.arrays.home, self.arrays.demand, axes=(0, 0)
        ).tolist()

    @cached_property
    def _demand(self) -> list[list[int]]:
        return self.arrays.demand.tolist()

    @cached_property
    def _capacity(self) -> list[list[int]]:
        return self.arrays.capacity.tolist()

    # -- plans ---------------------------------------------------------------------------------------------------

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json", by_alias=True)

    def moves(self, plan: Mapping[str, Any]) -> list[tuple[int, int, int]]:
        """Return a plan's moves as (service, from, to) by number: the inverse of `plan`."""
        try:
            return [self._move(move, position) for position, move in enumerate(plan["moves"])]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.read_plan(plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})", remedy="see `placeopt schema rescheduling`"
            ) from None

    def _move(self, move: Mapping[str, Any], position: int) -> tuple[int, int, int]:
        found = []
        places = (("from", "node", self.node_numbers), ("to", "node", self.node_numbers))
        for field, what, numbers in (("service", "service", self.service_numbers), *places):
            name = move[field]
            if name not in numbers:
                remedy = did_you_mean(str(name), list(numbers)[:50])
                raise DocumentError(
                    f"unknown {what} {name!r}", path=f"moves[{position}].{field}", remedy=remedy
                )
            found.append(numbers[name])
        return found[0], found[1], found[2]

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

    def final_counts(self, plan: Mapping[str, Any]) -> np.ndarray:
        """Return the replicas per (service, node) after a plan."""
        counts = self.arrays.home.copy()
        for i, u, v in self.moves(plan):
            counts[i, u] -= 1
            counts[i, v] += 1
        return counts

    def table(self, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a row for every move: number, service, nodes, latency after it in ms and its change."""
        counts, rows = [list(row) for row in self._start[0]], []
        before = self.graph.latency(counts)
        for number, (i, u, v) in enumerate(self.moves(plan), start=1):
            counts[i][u] -= 1
            counts[i][v] += 1
            after = self.graph.latency(counts)
            parts, names = self.graph.parts, self.nodes
            row = {
                "move": number,
                "service": self.services[i].name,
                "from": names[u].name,
                "to": names[v].name,
            }
            rows.append({**row, "latency_ms": after / parts, "change_ms": (after - before) / parts})
            before = after
        return rows

    @cached_property
    def initial_latency(self) -> float:
        """End-to-end latency in ms of the running deployment."""
        return self.graph.latency(self._start[0]) / self.graph.parts

    # -- what is odd, what a plan is in words ----------------------------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name services that no request reaches, and places of `latency_ms` that are no nodes."""
        reached = set(self.graph.order)
        found = [
            f"service {s.name!r} is not reached from the gateway {self.gateway!r}"
            for k, s in enumerate(self.services)
            if k not in reached
        ]
        named = set(self.latency_ms) | {name for row in self.latency_ms.values() for name in row}
        if idle := sorted(named - set(self.node_numbers)):
            found.append(f"latency_ms names places that are no nodes: {', '.join(idle)}")
        return tuple(found)

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: latency before and after, moves by service, the critical path at the end."""
        moves = self.moves(plan)
        counts = self.final_counts(plan)
        touched = {i: sum(1 for m in moves if m[0] == i) for i, _, _ in moves}
        path = " > ".join(
            self.services[hop.service].name for hop in self.graph.critical_path(counts.tolist())
        )
        replicas = int(self.arrays.replicas.sum())
        return {
            "latency": f"{self.initial_latency:.6g} -> {self.evaluate(plan).values[0]:.6g} ms",
            "moves": f"{len(moves)} of {replicas} replicas",
            "moved": ", ".join(f"{self.services[i].name} x {n}" for i, n in touched.items())
            or "none",
            "critical path": path,
        }
