"""Repack a running deployment on cheaper nodes, one microservice at a time, without downtime.

Source: M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration"; equation numbers are that paper's. The page is
``models/rolling_update/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.problem import Amount, Evaluation, Objective, Problem, require_unique
from placeopt.core.spec import ProblemSpec
from placeopt.rolling_update import SPEC
from placeopt.rolling_update.arrays import RESOURCES, UpdateArrays
from placeopt.rolling_update.document import UpdateApplication, UpdateNode
from placeopt.rolling_update.referee import UpdateReferee
from placeopt.rolling_update.timeline import timeline


class RollingUpdate(Problem):
    """An instance of the rolling-update problem.

    Under the semantics ``stay`` a microservice whose size does not change may be left alone. Under
    ``strict``, the paper's (6), every reschedulable microservice is restarted.

    Examples
    --------
    >>> problem = RollingUpdate.generate(seed=1, applications=2)
    >>> [objective.name for objective in problem.objectives]
    ['node_cost', 'starts', 'disruptions']
    """

    problem: Literal["rolling-update"] = "rolling-update"
    """Kind of the problem."""
    spec: ClassVar[ProblemSpec] = SPEC
    semantics: Literal["stay", "strict"] = "stay"
    """stay: a microservice whose size does not change may be left alone. strict: every
    reschedulable one is restarted.
    """
    nodes: tuple[UpdateNode, ...] = Field(min_length=1)
    """Machines of all clusters."""
    cluster_latency_ms: dict[str, dict[str, Amount]] = Field(default_factory=dict)
    """Latency between two clusters in ms; one direction stands for both; 0 within a cluster unless
    given. Two clusters without one cannot reach each other.
    """
    applications: tuple[UpdateApplication, ...] = Field(min_length=1)
    """What runs now."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((a.name for a in self.applications), "application")
        nodes = {n.name for n in self.nodes}
        for a, application in enumerate(self.applications):
            application.check(f"applications[{a}]", nodes)
        return self

    @cached_property
    def arrays(self) -> UpdateArrays:
        """The instance as arrays: microservices and nodes by number, in document order."""
        return UpdateArrays(
            self.nodes, self.applications, self.cluster_latency_ms, self.semantics == "strict"
        )

    @cached_property
    def _referee(self) -> UpdateReferee:
        return UpdateReferee(self.arrays)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Price of the nodes in use at the end (2), copies started, microservices stopped."""
        return (
            Objective("node_cost", "price", self.arrays.cost_step),
            Objective("starts", "pods", 1.0),
            Objective("disruptions", "pods", 1.0),
        )

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by making its steps one after another.

        Parameters
        ----------
        plan : mapping
            ``{"steps": [{"application": ..., "microservice": ..., "to": node or None}]}``.

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

    def plan(self, steps: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the plan of steps (microservice number, node number); a negative node stops."""
        names, nodes = self.arrays.names, self.arrays.node_names
        return {
            "steps": [
                {
                    "application": names[m][0],
                    "microservice": names[m][1],
                    "to": None if n < 0 else nodes[n],
                }
                for m, n in steps
            ],
        }

    def steps(self, plan: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Return the steps of a plan by number, -1 for a stop: the inverse of `plan`."""
        return self._referee.steps(plan)

    def warnings(self) -> tuple[str, ...]:
        """Name overloaded nodes and broken flows of the start, and latencies that are not used."""
        a = self.arrays
        found = [
            f"node {self.nodes[n].name!r} starts overloaded: "
            f"{a.initial_load[n, r]} {RESOURCES[r]} of {a.capacity[n, r]}"
            for n, r in np.argwhere(a.initial_load > a.capacity)
        ]
        found += [
            f"at the start, {text}" for text, _ in self._referee.broken_flows(a.home.tolist())
        ]
        named = set(self.cluster_latency_ms).union(*self.cluster_latency_ms.values())
        if idle := sorted(named - set(a.clusters)):
            found.append(f"cluster_latency_ms names clusters without nodes: {', '.join(idle)}")
        return tuple(found)

    def infeasibility(self) -> tuple[str, ...]:
        """Name what no plan can repair.

        These are nodes that what cannot leave overloads or keeps from being drained, flows between
        what cannot move, and sizes for which there is no room.
        """
        return (*self._why_stuck(), *self._why_no_room())

    def _why_stuck(self) -> list[str]:
        a, reasons = self.arrays, []
        for m in np.flatnonzero(a.stuck & a.drain[a.home]).tolist():
            why = "is pinned there" if a.movable[m] else "is not reschedulable"
            node = a.node_names[a.home[m]]
            reasons.append(f"node {node!r} must end empty, but {a.label(m)} {why}")
        load = a.load_of(a.stuck, a.new)
        for n, r in np.argwhere(load > a.capacity):
            reasons.append(
                f"node {self.nodes[n].name!r}: what cannot leave needs "
                f"{load[n, r]} {RESOURCES[r]} of {a.capacity[n, r]}"
            )
        nodes = np.where(a.stuck, a.home, -1).tolist()
        broken = self._referee.broken_flows(nodes)
        return reasons + [f"{text}, and neither can move" for text, _ in broken]

    def _why_no_room(self) -> list[str]:
        a = self.arrays
        room, reasons = a.capacity[~a.drain], []
        sizes = np.unique(room, axis=0)
        for m in np.flatnonzero(~a.stuck).tolist():
            if not (sizes >= a.new[m]).all(axis=1).any():
                reasons.append(
                    f"{a.label(m)} needs {a.new[m, 0]} milli-CPU and {a.new[m, 1]} MiB "
                    "at its new size, which no node has"
                )
        for name, need, have in zip(RESOURCES, a.new.sum(axis=0), room.sum(axis=0), strict=True):
            if need > have:
                reasons.append(
                    f"all microservices together need {need} {name} at the end; "
                    f"the nodes have {have}"
                )
        return reasons

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: cost before and after, nodes that empty, moves, restarts, stops."""
        a, steps = self.arrays, self.steps(plan)
        final = a.final_nodes(steps)
        starts = Counter(m for m, n in steps if n >= 0)
        left = set(a.home.tolist()) - set(final.tolist())
        emptied = [a.node_names[n] for n in sorted(left)]
        moved = sum(final[m] != a.home[m] for m in starts)
        broken = len(self._referee.broken_flows(final.tolist()))
        return {
            "node cost": f"{self.initial_cost:g} -> {self.evaluate(plan).values[0]:g}",
            "nodes that empty": ", ".join(emptied) or "none",
            "moved to another node": str(moved),
            "restarted in place": str(len(starts) - moved),
            "extra starts": str(sum(starts.values()) - len(starts)),
            "stopped on the way": str(sum(n < 0 for _, n in steps)),
            "latency limits broken": f"{broken} of {len(a.tight_flows)} that can break",
        }

    def table(self, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the fields of `placeopt.rolling_update.timeline.TimelineStep` for every step."""
        return [vars(step) for step in timeline(self.arrays, self.steps(plan)).steps]

    @cached_property
    def initial_cost(self) -> float:
        """Price of the nodes that host something now: the cost of an empty plan."""
        return self.arrays.cost(self.arrays.home)

    def quality_of_service(self, plan: Mapping[str, Any]) -> float:
        """Return the share of the locality constraints that are broken at the end.

        The paper calls it the QoS violation probability.
        """
        final = self.arrays.final_nodes(self.steps(plan)).tolist()
        return len(self._referee.broken_flows(final)) / max(1, len(self.arrays.tight_flows))
