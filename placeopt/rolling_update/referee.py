"""The referee of rolling updates: it makes the steps of a plan, and says what is broken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import DocumentError
from placeopt.core.problem import Evaluation, Violation
from placeopt.rolling_update.arrays import RESOURCES

if TYPE_CHECKING:
    from placeopt.rolling_update.instance import RollingUpdate


class Referee:
    """Makes the steps of a plan one after another and looks at the loads, in whole milli-CPU and MiB."""

    def __init__(self, problem: RollingUpdate):
        a = problem.arrays
        self.problem, self.arrays = problem, a
        self.microservices = {name: m for m, name in enumerate(a.names)}
        self.nodes = {n.name: k for k, n in enumerate(problem.nodes)}
        self.old, self.new = [tuple(x) for x in a.old.tolist()], [tuple(x) for x in a.new.tolist()]
        self.capacity, self.price, self.home = (
            a.capacity.tolist(),
            a.price.tolist(),
            a.home.tolist(),
        )
        self.load, self.latency, self.cluster = (
            a.initial_load.tolist(),
            a.latency.tolist(),
            a.cluster.tolist(),
        )
        self.movable, self.pinned, self.drain, self.mandatory = (
            a.movable.tolist(),
            a.pinned.tolist(),
            a.drain.tolist(),
            a.mandatory.tolist(),
        )

    def step(self, step: Mapping[str, Any], position: int) -> tuple[int, int]:
        """Return (microservice, node) of a step by number, -1 for a stop."""
        name = (step["application"], step["microservice"])
        m = self.microservices.get(name)
        if m is None:
            raise DocumentError(
                f"unknown microservice {' '.join(map(str, name))!r}",
                path=f"steps[{position}]",
                remedy="name one of the instance",
            )
        if step["to"] is None:
            return m, -1
        if step["to"] not in self.nodes:
            raise DocumentError(
                f"unknown node {step['to']!r}",
                path=f"steps[{position}].to",
                remedy="name a node of the instance, or null",
            )
        return m, self.nodes[step["to"]]

    def judge(self, plan: Mapping[str, Any]) -> Evaluation:
        """Return values and violations of a plan."""
        try:
            steps = [self.step(step, position) for position, step in enumerate(plan["steps"])]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.problem.read_plan(plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})", remedy="see `placeopt schema rolling-update`"
            ) from None
        return self._simulate(steps)

    def _simulate(self, steps: Sequence[tuple[int, int]]) -> Evaluation:
        violations: list[Violation] = []
        load, size, where = [list(x) for x in self.load], list(self.old), list(self.home)
        started = [False] * len(where)
        for position, (m, n) in enumerate(steps):
            self._check_right(position, m, n, where[m], violations)
            if n >= 0:  # the new copy arrives while the old one still runs: equation (5)
                cpu, memory = self.new[m]
                load[n][0] += cpu
                load[n][1] += memory
                self._check_load(
                    n, load[n], f"steps[{position}] starts {self.arrays.label(m)} there", violations
                )
            if where[m] >= 0:
                load[where[m]][0] -= size[m][0]
                load[where[m]][1] -= size[m][1]
            where[m] = n
            if n >= 0:
                size[m], started[m] = self.new[m], True
        for n, amounts in enumerate(load):  # equation (3)
            self._check_load(n, amounts, "at the end", violations)
        self._check_end(where, started, violations)
        starts = sum(n >= 0 for _, n in steps)
        cost = sum(self.price[n] for n in set(where) if n >= 0)
        return Evaluation(
            (cost / self.arrays.price_scale, float(starts), float(len(steps) - starts)),
            tuple(violations),
        )

    def _check_right(
        self, position: int, m: int, n: int, now: int, violations: list[Violation]
    ) -> None:
        """Whether this step may be made at all, wherever there is room."""
        label = self.arrays.label(m)
        if not self.movable[m]:
            violations.append(
                Violation(
                    "not-reschedulable",
                    1.0,
                    f"steps[{position}] touches {label}, whose application is not reschedulable",
                )
            )
        elif self.pinned[m] and n >= 0 and n != self.home[m]:
            violations.append(
                Violation(
                    "pinned",
                    1.0,
                    f"steps[{position}] moves {label}, which is pinned to {self._node(self.home[m])}",
                )
            )
        if n >= 0 and self.drain[n]:
            violations.append(
                Violation(
                    "drain",
                    1.0,
                    f"steps[{position}] starts {label} on node {self._node(n)}, which is to be drained",
                )
            )
        if n < 0 and now < 0:
            violations.append(
                Violation(
                    "not-running", 1.0, f"steps[{position}] stops {label}, which is not running"
                )
            )

    def _check_load(
        self, n: int, amounts: Sequence[int], when: str, violations: list[Violation]
    ) -> None:
        for r in range(2):
            if amounts[r] > self.capacity[n][r]:
                excess = (
                    amounts[r] / max(self.capacity[n][r], 1) - 1 if self.capacity[n][r] else 1.0
                )
                message = f"node {self._node(n)} has {amounts[r]} {RESOURCES[r]} of {self.capacity[n][r]}: {when}"
                violations.append(Violation(f"{RESOURCES[r]}-capacity", excess, message))

    def _check_end(
        self, where: Sequence[int], started: Sequence[bool], violations: list[Violation]
    ) -> None:
        """Equations (4) and (6): everything runs, at its new size, near those it talks to; drained nodes are empty."""
        for m, n in enumerate(where):
            label = self.arrays.label(m)
            if n < 0:
                violations.append(
                    Violation("stopped", 1.0, f"{label} is stopped and never started again")
                )
            elif self.mandatory[m] and not started[m]:
                what = (
                    "still has its old size"
                    if self.old[m] != self.new[m]
                    else "was never restarted, which strict semantics ask for"
                )
                violations.append(Violation("not-restarted", 1.0, f"{label} {what}"))
            if n >= 0 and self.drain[n] and not started[m]:
                violations.append(
                    Violation(
                        "drain",
                        1.0,
                        f"{label} is still on node {self._node(n)}, which is to be drained",
                    )
                )
        for text, excess in self.broken_flows(where):
            violations.append(Violation("latency", excess, text))

    def broken_flows(self, where: Sequence[int]) -> list[tuple[str, float]]:
        """Return (sentence, relative excess) of each flow over its latency; flows of what has no node (-1) are passed over."""
        broken = []
        for k in self.arrays.tight_flows:
            m, peer, limit = self.arrays.flows[k]
            if where[m] < 0 or where[peer] < 0:
                continue
            ms = self.latency[self.cluster[where[m]]][self.cluster[where[peer]]]
            if ms > limit:
                excess = min(1.0, (ms - limit) / max(limit, 1.0)) if math.isfinite(ms) else 1.0
                broken.append(
                    (
                        f"{self.arrays.label(m)} reaches {self.arrays.names[peer][1]!r} in {ms:g} ms; legal: {limit:g}",
                        excess,
                    )
                )
        return broken

    def final_nodes(self, plan: Mapping[str, Any]) -> list[int]:
        """Return the node of every microservice after the plan, -1 for one left stopped."""
        where = list(self.home)
        for position, step in enumerate(plan["steps"]):
            m, n = self.step(step, position)
            where[m] = n
        return where

    def _node(self, n: int) -> str:
        return repr(self.problem.nodes[n].name)
