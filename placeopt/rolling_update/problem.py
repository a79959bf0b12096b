"""Repack a running deployment on cheaper nodes, one microservice at a time, without downtime.

Source: M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration"; equation numbers are that paper's. The page is
``models/rolling_update/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Amount, Evaluation, Name, Objective, Problem, require_unique
from placeopt.core.spec import ProblemSpec
from placeopt.rolling_update import SPEC
from placeopt.rolling_update.arrays import UpdateArrays, timeline
from placeopt.rolling_update.document import (
    NodeLimit,
    NodeSet,
    UpdateApplication,
    UpdateNode,
    UpdateRule,
    UpdateSurvival,
    check_node_sets,
)
from placeopt.rolling_update.referee import (
    LimitReferee,
    RuleReferee,
    SurvivalReferee,
    UpdateReferee,
)

#: The unit of prices where an instance says none.
NO_UNIT = "price"


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
    node_sets: dict[Name, NodeSet] = Field(default_factory=dict)
    """Sets of nodes by name, which microservices and rules refer to. Absent: none."""
    rules: tuple[UpdateRule, ...] = ()
    """Which microservices are kept apart, together, or spread. Absent: none."""
    survival: UpdateSurvival | None = None
    """What the loss of any one node is to leave. Absent or null: nothing is asked."""
    cluster_word: Name = "cluster"
    """What reports call a cluster, such as zone."""
    limits: tuple[NodeLimit, ...] = ()
    """How much of some nodes a plan may use together. Absent: no limits."""
    price_unit: Name = NO_UNIT
    """Unit of the prices. Of one that ends in /h, such as USD/h, reports add up months."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique((n.name for n in self.nodes), "node")
        require_unique((a.name for a in self.applications), "application")
        nodes = {n.name for n in self.nodes}
        candidates = {n.name for n in self.nodes if n.candidate}
        for a, application in enumerate(self.applications):
            application.check(f"applications[{a}]", nodes, self.node_sets, candidates)
        check_node_sets(self.node_sets, nodes)
        groups = Counter(g for a in self.applications for m in a.microservices for g in m.groups)
        groups.update({g: 0 for n in self.nodes for g in n.residents})
        for k, rule in enumerate(self.rules):
            rule.check(f"rules[{k}]", groups, self.node_sets)
        require_unique((limit.name for limit in self.limits), "limit")
        for k, limit in enumerate(self.limits):
            limit.check(f"limits[{k}]", nodes)
        if self.survival is not None:
            every = [m for a in self.applications for m in a.microservices if not m.removed]
            left = Counter(g for m in every for g in m.groups)
            self.survival.check({group: left[group] for group in groups})
        return self

    @cached_property
    def arrays(self) -> UpdateArrays:
        """The instance as arrays: microservices and nodes by number, in document order."""
        return UpdateArrays(
            self.nodes,
            self.applications,
            self.cluster_latency_ms,
            self.semantics == "strict",
            self.rules,
            self.node_sets,
            self.survival,
            self.limits,
        )

    @cached_property
    def _referee(self) -> UpdateReferee:
        now = (m.node for a in self.applications for m in a.microservices)
        names = [n.name for n in self.nodes]
        limits = LimitReferee(self.limits, names, {names.index(n) for n in set(now) if n})
        return UpdateReferee(self.arrays, self._survival.rules, self._survival, limits)

    @cached_property
    def rule_referee(self) -> RuleReferee:
        """The referee of the rules that must be kept."""
        return self._rules(soft=False)

    @cached_property
    def _wishes(self) -> RuleReferee:
        return self._rules(soft=True)

    def _rules(self, *, soft: bool) -> RuleReferee:
        return RuleReferee(
            self.arrays,
            self.nodes,
            self._groups,
            [m.allowed for a in self.applications for m in a.microservices],
            [rule for rule in self.rules if rule.soft == soft],
            self.node_sets,
        )

    @property
    def _groups(self) -> list[tuple[str, ...]]:
        """The groups of every microservice."""
        return [m.groups for a in self.applications for m in a.microservices]

    @cached_property
    def _survival(self) -> SurvivalReferee:
        wanted = self.survival or UpdateSurvival()
        members = zip(self._groups, self.arrays.removed, strict=True)
        left = [() if removed else groups for groups, removed in members]
        arrays = self.arrays
        return SurvivalReferee(arrays, arrays.survival, left, wanted, self.rule_referee)

    def has_places(self, where: Sequence[int]) -> bool:
        """Return whether what any one node hosts finds a place on the others, if that is asked for.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice.
        """
        return not self._survival.crowded(where)

    @cached_property
    def surviving(self) -> RollingUpdate | None:
        """The instance with rules that lose no copy that is needed; None where none is asked for.

        Groups are kept apart so far as what cannot move lets them.
        """
        rules = self.arrays.survival.rules(self.arrays.home, self.arrays.stuck)
        if not rules:
            return None
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return RollingUpdate(**(fields | {"rules": (*self.rules, *rules)}))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Price of the nodes in use at the end (2), copies started, microservices stopped.

        Where copies are needed after the loss of a node, those that are lost at worst.
        """
        always = (
            Objective("node_cost", self.price_unit, self.arrays.cost_step),
            Objective("starts", "pods", 1.0),
            Objective("disruptions", "pods", 1.0),
        )
        lost = Objective("lost_at_worst", "pods", 1.0)
        return (*always, lost) if self.arrays.survival.asked else always

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan by making its steps one after another.

        Parameters
        ----------
        plan : mapping
            ``{"steps": [{"application": ..., "microservice": ..., "to": node or None}]}``.

        Returns
        -------
        Evaluation
            Node cost, starts, disruptions, what is lost at worst; what is broken.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(plan)

    def plan(self, steps: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the plan of steps (microservice number, node number); a negative node stops.

        The node of what runs nowhere removes.
        """
        names, nodes, nowhere = self.arrays.names, self.arrays.node_names, self.arrays.waiting
        return {
            "steps": [
                {
                    "application": names[m][0],
                    "microservice": names[m][1],
                    "to": None if n < 0 or n == nowhere else nodes[n],
                }
                for m, n in steps
            ],
        }

    def steps(self, plan: Plan) -> list[tuple[int, int]]:
        """Return the steps of a plan by number: the inverse of `plan`.

        -1 is a stop, and the node of what runs nowhere a removal.
        """
        with self.reading(plan):
            return self._referee.steps(plan)

    def warnings(self) -> tuple[str, ...]:
        """Name overloaded nodes and broken flows of the start, and latencies that are not used."""
        a = self.arrays
        results = [
            f"node {a.node_names[n]!r} starts overloaded: "
            f"{a.initial_load[n, r]} {a.resources[r]} of {a.capacity[n, r]}"
            for n, r in np.argwhere(a.initial_load > a.capacity)
        ]
        now = np.where(a.home == a.waiting, -1, a.home).tolist()
        results += [f"at the start, {text}" for text, _ in self._referee.broken_flows(now)]
        if broken := len(self._referee.rules.broken(now)):
            results.append(f"at the start, rules are broken {broken:,} times")
        named = set(self.cluster_latency_ms).union(*self.cluster_latency_ms.values())
        if idle := sorted(named - set(a.clusters)):
            results.append(f"cluster_latency_ms names clusters without nodes: {', '.join(idle)}")
        return tuple(results)

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
        for m in np.flatnonzero(a.stuck & a.mandatory & a.shut[a.home] & ~a.drain[a.home]).tolist():
            node = a.node_names[a.home[m]]
            reasons.append(f"{a.label(m)} must be restarted on node {node!r}, which is closed")
        load = a.load_of(a.stuck, a.new)
        for n, r in np.argwhere(load > a.capacity):
            reasons.append(
                f"node {a.node_names[n]!r}: what cannot leave needs "
                f"{load[n, r]} {a.resources[r]} of {a.capacity[n, r]}"
            )
        nodes = np.where(a.stuck, a.home, -1).tolist()
        broken = self._referee.broken_flows(nodes)
        return reasons + [f"{text}, and neither can move" for text, _ in broken]

    def _why_no_room(self) -> list[str]:
        a, reasons = self.arrays, []
        for m in np.flatnonzero(a.movable & ~a.pinned & ~a.have_room()).tolist():
            if not self._may_rest(m):
                amounts = ", ".join(f"{x} {r}" for r, x in zip(a.resources, a.new[m], strict=True))
                where = " that it may be on" if a.rules.node_set[m] >= 0 else ""
                reasons.append(
                    f"{a.label(m)} needs {amounts} at its new size, which no node{where} has"
                )
        room = a.room[~a.drain]
        for name, need, have in zip(a.resources, a.new.sum(axis=0), room.sum(axis=0), strict=True):
            if need > have:
                reasons.append(
                    f"all microservices together need {need} {name} at the end; "
                    f"the nodes have {have}"
                )
        return reasons + self._survival.why_not(a.new.sum(axis=0).tolist())

    def _may_rest(self, m: int) -> bool:
        """Return whether microservice m may be left where it is, even if it cannot start there."""
        a = self.arrays
        alone = (a.new[m] <= a.capacity[a.home[m]]).all()
        return bool(alone and not a.mandatory[m] and not a.drain[a.home[m]])

    def describe(self, plan: Plan) -> dict[str, str]:
        """Summarise a plan: cost before and after, nodes that empty, moves, restarts, stops."""
        a, steps = self.arrays, self.steps(plan)
        final = a.final_nodes(steps)
        starts = Counter(m for m, n in steps if n >= 0 and not a.removed[m])
        left = set(a.home.tolist()) - set(final.tolist()) - {a.waiting}
        emptied = [a.node_names[n] for n in sorted(left)]
        waited = sum(a.home[m] == a.waiting for m in starts)
        moved = sum(final[m] != a.home[m] for m in starts) - waited
        final = np.where(a.removed & (final == a.waiting), -1, final)
        broken = len(self._referee.broken_flows(final.tolist()))
        results = {
            "node cost": f"{self.initial_cost:g} -> {self.evaluate(plan).values[0]:g}",
            "nodes that empty": ", ".join(emptied) or "none",
            "moved to another node": str(moved),
            "restarted in place": str(len(starts) - moved - waited),
            "extra starts": str(sum(starts.values()) - len(starts)),
            "stopped on the way": str(sum(n < 0 for _, n in steps)),
        }
        if waited:
            results["started, after waiting"] = str(waited)
        if removed := int((a.removed & (final < 0)).sum()):
            results["removed"] = str(removed)
        if a.tight_flows:
            results["latency limits broken"] = f"{broken} of {len(a.tight_flows)} that can break"
        if any(rule.soft for rule in self.rules):
            before, after = (
                len(self._wishes.broken(where)) for where in (a.home.tolist(), final.tolist())
            )
            results["soft rules broken, replica by replica"] = f"{before} -> {after}"
        if self.survival is not None:
            results["survives the loss of any one node"] = self._survival.in_words(final.tolist())
        return results

    def table(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the fields of `placeopt.rolling_update.arrays.TimelineStep` for every step."""
        return [vars(step) for step in timeline(self.arrays, self.steps(plan)).steps]

    @cached_property
    def initial_cost(self) -> float:
        """Price of the nodes that host something now: the cost of an empty plan."""
        return self.arrays.cost(self.arrays.home)

    def quality_of_service(self, plan: Plan) -> float:
        """Return the share of the locality constraints that are broken at the end.

        The paper calls it the QoS violation probability.
        """
        final = self.arrays.final_nodes(self.steps(plan)).tolist()
        return len(self._referee.broken_flows(final)) / max(1, len(self.arrays.tight_flows))
