"""Repack a running deployment on cheaper nodes, one microservice at a time, without downtime.

Source: M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime Microservice
Re-orchestration"; equation numbers are that paper's. The page is ``models/rolling_update/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

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
    require_unique,
)
from placeopt.core.spec import ProblemSpec
from placeopt.rolling_update import SPEC
from placeopt.rolling_update.arrays import RESOURCES, Arrays
from placeopt.rolling_update.referee import Referee

#: Whole milli-CPU or MiB: finer than any limit that Kubernetes enforces in practice, and exact.
Whole = Annotated[int, Field(strict=True, ge=0, le=10**9)]


class Node(Record):
    """A machine; its price is paid when it hosts something at the end. A node to drain takes nothing more and ends empty."""

    name: Name
    cluster: Name
    cpu_millicores: Whole
    memory_mib: Whole
    price: Amount
    drain: bool = Field(False, strict=True)


class Microservice(Record):
    """A running container: where it is, its size, and the size it must have at the end (absent: the same).

    A pinned one may be restarted on its node, never moved.
    """

    name: Name
    node: Name
    cpu_millicores: Whole
    memory_mib: Whole
    new_cpu_millicores: Whole | None = None
    new_memory_mib: Whole | None = None
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


class Flow(Record):
    """Two microservices of one application that talk, and the latency they tolerate at the end."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    max_latency_ms: Amount


class Application(Record):
    """Microservices that are rescheduled together or left alone together."""

    name: Name
    reschedulable: bool = Field(True, strict=True)
    microservices: tuple[Microservice, ...] = Field(min_length=1)
    flows: tuple[Flow, ...] = ()

    def check(self, path: str, nodes: set[str]) -> None:
        """Raise unless the names are there and what may not be touched keeps its size; `path` is where this application stands."""
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
                remedy = 'leave the new size out, or set "reschedulable": true'
                raise DocumentError(
                    "a new size in an application that is not reschedulable",
                    path=here,
                    remedy=remedy,
                )


class Step(Record):
    """One move: a new copy starts on node `to`, then the old copy ends; null stops the running copy."""

    application: str
    microservice: str
    to: str | None


class Plan(Record):
    """The steps, in the order in which they are made."""

    steps: list[Step]


class RollingUpdate(Problem):
    """An instance of the rolling-update problem.

    Under the semantics ``stay`` a microservice whose size does not change may be left alone; under ``strict``, the paper's (6), every
    reschedulable microservice is restarted.

    Examples
    --------
    >>> problem = RollingUpdate.generate(seed=1, applications=2)
    >>> [objective.name for objective in problem.objectives]
    ['node_cost', 'starts', 'disruptions']
    """

    problem: Literal["rolling-update"] = "rolling-update"
    spec: ClassVar[ProblemSpec] = SPEC
    semantics: Literal["stay", "strict"] = "stay"
    nodes: tuple[Node, ...] = Field(min_length=1)
    cluster_latency_ms: dict[str, dict[str, Amount]] = Field(default_factory=dict)
    applications: tuple[Application, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((a.name for a in self.applications), "application")
        nodes = {n.name for n in self.nodes}
        for a, application in enumerate(self.applications):
            application.check(f"applications[{a}]", nodes)
        return self

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @cached_property
    def arrays(self) -> Arrays:
        """The instance as arrays: microservices and nodes by number, in document order."""
        return Arrays(self)

    @cached_property
    def _referee(self) -> Referee:
        return Referee(self)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Price of the nodes in use at the end (2), copies started, microservices stopped on the way."""
        return (
            Objective("node_cost", "price", self.arrays.cost_step),
            Objective("starts", "pods", 1.0),
            Objective("disruptions", "pods", 1.0),
        )

    # -- the referee ---------------------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by making its steps one after another.

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"steps": [{"application": ..., "microservice": ..., "to": node or None}]}``.

        Returns
        -------
        Evaluation
            Node cost, starts, disruptions; what is broken.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(plan)

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json")

    def plan(self, steps: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the plan of steps given as (microservice number, node number), a negative node for a stop."""
        names, nodes = self.arrays.names, self.nodes
        return {
            "steps": [
                {
                    "application": names[m][0],
                    "microservice": names[m][1],
                    "to": None if n < 0 else nodes[n].name,
                }
                for m, n in steps
            ],
        }

    def steps(self, plan: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Return a plan's steps as (microservice number, node number), -1 for a stop: the inverse of `plan`."""
        return [self._referee.step(step, position) for position, step in enumerate(plan["steps"])]

    # -- what is odd, what is impossible, what a plan is in words --------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name overloaded nodes and broken flows of the running deployment, and latencies that nothing uses."""
        a = self.arrays
        found = [
            f"node {self.nodes[n].name!r} starts overloaded: {a.initial_load[n, r]} {RESOURCES[r]} of {a.capacity[n, r]}"
            for n, r in np.argwhere(a.initial_load > a.capacity)
        ]
        found += [
            f"at the start, {text}" for text, _ in self._referee.broken_flows(a.home.tolist())
        ]
        named = set(self.cluster_latency_ms) | {
            c for row in self.cluster_latency_ms.values() for c in row
        }
        idle = sorted(named - set(a.clusters))
        if idle:
            found.append(f"cluster_latency_ms names clusters without nodes: {', '.join(idle)}")
        return tuple(found)

    def infeasibility(self) -> tuple[str, ...]:
        """Say what cannot be put right: fixed load over capacity, nodes that cannot be emptied, fixed flows, no room."""
        return (*self._why_fixed(), *self._why_no_room())

    def _why_fixed(self) -> list[str]:
        a, reasons = self.arrays, []
        stuck = ~a.movable | a.pinned
        for m in np.flatnonzero(stuck & a.drain[a.home]).tolist():
            why = "is pinned there" if a.movable[m] else "is not reschedulable"
            reasons.append(
                f"node {self.nodes[a.home[m]].name!r} must end empty, but {a.label(m)} {why}"
            )
        load = np.zeros_like(a.capacity)
        np.add.at(load, a.home[stuck], a.new[stuck])
        for n, r in np.argwhere(load > a.capacity):
            reasons.append(
                f"node {self.nodes[n].name!r}: what cannot leave needs {load[n, r]} {RESOURCES[r]} of {a.capacity[n, r]}"
            )
        places = np.where(stuck, a.home, -1).tolist()
        reasons += [
            f"{text}, and neither can move" for text, _ in self._referee.broken_flows(places)
        ]
        return reasons

    def _why_no_room(self) -> list[str]:
        a = self.arrays
        room, reasons = a.capacity[~a.drain], []
        sizes = np.unique(room, axis=0)
        for m in np.flatnonzero(a.movable & ~a.pinned).tolist():
            if not (sizes >= a.new[m]).all(axis=1).any():
                reasons.append(
                    f"{a.label(m)} needs {a.new[m, 0]} milli-CPU and {a.new[m, 1]} MiB at its new size, which no node has"
                )
        for r in range(2):
            need, have = int(a.new[:, r].sum()), int(room[:, r].sum())
            if need > have:
                reasons.append(
                    f"all microservices together need {need} {RESOURCES[r]} at the end; the nodes have {have}"
                )
        return reasons

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: cost before and after, nodes that empty, moves, restarts in place, extra starts, stops."""
        a, final = self.arrays, self._referee.final_nodes(plan)
        steps = self.steps(plan)
        starts = Counter(m for m, n in steps if n >= 0)
        left = set(a.home.tolist()) - set(final)
        emptied = [n.name for k, n in enumerate(self.nodes) if k in left]
        moved = sum(final[m] != a.home[m] for m in starts)
        return {
            "node cost": f"{self.initial_cost:g} -> {self.evaluate(plan).values[0]:g}",
            "nodes that empty": ", ".join(emptied) or "none",
            "moved to another node": str(moved),
            "restarted in place": str(len(starts) - moved),
            "extra starts": str(sum(starts.values()) - len(starts)),
            "stopped on the way": str(sum(n < 0 for _, n in steps)),
            "latency limits broken": f"{len(self._referee.broken_flows(final))} of {len(a.tight_flows)} that can break",
        }

    def table(self, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a row for every step: number, microservice, action, nodes, load of the target at its peak, whether a node empties."""
        from placeopt.rolling_update.timeline import timeline

        return [vars(move) for move in timeline(self, plan).moves]

    @cached_property
    def initial_cost(self) -> float:
        """Price of the nodes that host something now: what doing nothing costs."""
        a = self.arrays
        return int(a.price[np.unique(a.home)].sum()) / a.price_scale

    def quality_of_service(self, plan: Mapping[str, Any]) -> float:
        """Return the share of the locality constraints that are broken at the end: the paper's QoS violation probability."""
        return len(self._referee.broken_flows(self._referee.final_nodes(plan))) / max(
            1, len(self.arrays.tight_flows)
        )
