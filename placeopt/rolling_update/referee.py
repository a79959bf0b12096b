"""The referee of rolling updates: it makes the steps of a plan one by one and names what is broken.

Equation numbers are those of the re-orchestration paper (`placeopt.rolling_update.instance`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import validate
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Evaluation, Violation
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.document import UpdatePlan
from placeopt.rolling_update.limits.referee import LimitReferee
from placeopt.rolling_update.rules.referee import RuleReferee
from placeopt.rolling_update.survival.referee import SurvivalReferee


class UpdateReferee:
    """Judges plans with whole numbers, in milli-CPU, MiB and further resources.

    Python lists serve it better than arrays, as it reads single numbers.
    """

    def __init__(
        self,
        arrays: UpdateArrays,
        rules: RuleReferee,
        survival: SurvivalReferee,
        limits: LimitReferee,
    ):
        self.arrays, self.rules, self.survival = arrays, rules, survival
        self.limits = limits
        a = arrays
        self.microservices = {name: m for m, name in enumerate(a.names)}
        self.nodes = {name: n for n, name in enumerate(a.node_names)}
        self.old, self.new = [tuple(x) for x in a.old.tolist()], [tuple(x) for x in a.new.tolist()]
        self.capacity, self.price, self.home = (
            a.capacity.tolist(),
            a.price.tolist(),
            a.home.tolist(),
        )
        self.load, self.latency = a.initial_load.tolist(), a.latency.tolist()
        self.cluster, self.drain = a.cluster.tolist(), a.drain.tolist()
        self.shut = a.shut.tolist()
        self.fixed, self.pinned = a.fixed.tolist(), a.pinned.tolist()
        self.mandatory, self.removed = a.mandatory.tolist(), a.removed.tolist()
        self.sets = {m: one for one in a.sets for m in (*one.added, *one.removed)}

    def steps(self, plan: Plan) -> list[tuple[int, int]]:
        """Return (microservice, node) of every step by number.

        The node is -1 for a stop, that of what runs nowhere for a removal.

        Raises
        ------
        DocumentError
            The plan names what the instance does not have.
        """
        return [self._step(step, position) for position, step in enumerate(plan["steps"])]

    def _step(self, step: Mapping[str, Any], position: int) -> tuple[int, int]:
        name = (step["application"], step["microservice"])
        m = self.microservices.get(name)
        if m is None:
            raise DocumentError(
                f"unknown microservice {' '.join(map(str, name))!r}",
                path=f"steps[{position}]",
                remedy="name one of the instance",
            )
        if step["to"] is None:
            return m, self.arrays.waiting if self.removed[m] else -1
        if step["to"] not in self.nodes:
            raise DocumentError(
                f"unknown node {step['to']!r}",
                path=f"steps[{position}].to",
                remedy="name a node of the instance, or null",
            )
        return m, self.nodes[step["to"]]

    def judge(self, plan: Plan) -> Evaluation:
        """Return node cost, starts, disruptions and losses of a plan, and its violations.

        Raises
        ------
        DocumentError
            The plan is not of the form of `UpdatePlan`, or names what the instance does not have.
        """
        try:
            steps = self.steps(plan)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            validate(UpdatePlan, plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})", remedy="see `placeopt schema rolling-update`"
            ) from None
        return self._simulate(steps)

    def _simulate(self, steps: Sequence[tuple[int, int]]) -> Evaluation:
        broken: list[Violation] = []
        load, size, where = [list(x) for x in self.load], list(self.old), list(self.home)
        started = [False] * len(where)
        copies = self.rules.running(where)
        ready = {id(one): one.num_before for one in self.arrays.sets}
        leaving = self._emptied_by(steps)
        self.rules.gone = self.rules.emptied([*where, *(n for _, n in steps)])
        for position, (m, step) in enumerate(steps):
            n = -1 if step == self.arrays.waiting else step
            self._check_step(position, m, n, where[m], broken)
            self._check_ready(position, m, n, started[m], ready, broken)
            if n >= 0:  # the new copy starts while the old one still runs: equation (5)
                load[n] = [x + y for x, y in zip(load[n], self.new[m], strict=True)]
                when = f"steps[{position}] starts {self.arrays.label(m)} there"
                self._check_load(n, load[n], self.new[m], when, broken)
                for text in self.rules.start(copies, m, n):
                    broken.append(Violation("rule", 1.0, f"steps[{position}]: {text}"))
            if where[m] >= 0:
                old = load[where[m]]
                load[where[m]] = [x - y for x, y in zip(old, size[m], strict=True)]
                self.rules.end(copies, m, where[m])
                if leaving[where[m]] == position:
                    self.rules.gone.add(self.arrays.node_names[where[m]])
            where[m] = n
            if n >= 0:
                size[m], started[m] = self.new[m], True
        self.rules.gone = set()
        for n, amounts in enumerate(load):  # equation (3)
            self._check_load(n, amounts, amounts, "at the end", broken)
        self._check_end(where, started, broken)
        for text, excess in self.survival.crowded(where):
            broken.append(Violation("survival", excess, text))
        for text, excess in self.limits.broken(where, (n for _, n in steps)):
            broken.append(Violation("limit", excess, text))
        starts = sum(0 <= n != self.arrays.waiting for _, n in steps)
        stops = sum(n < 0 for _, n in steps)
        cost = sum(self.price[n] for n in set(where) if n >= 0) / self.arrays.price_scale
        values = (cost, float(starts), float(stops), *self.survival.values(where))
        return Evaluation(values, tuple(broken))

    def _emptied_by(self, steps: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Return node -> the step after which it hosts nothing for good, -1 where it is kept."""
        where, count = list(self.home), Counter(self.home)
        last: dict[int, int] = {}
        for position, (m, step) in enumerate(steps):
            n = -1 if step == self.arrays.waiting else step
            count[where[m]] -= 1
            count[n] += 1
            last[where[m]] = position
            where[m] = n
        kept = (n for n in last if count[n] or self.price[n] == 0)
        return last | dict.fromkeys(kept, -1)

    def _check_step(self, position: int, m: int, n: int, now: int, broken: list[Violation]) -> None:
        """Add to `broken` what forbids a step wherever there is room; `now` is the node of m."""
        label, step = self.arrays.label(m), f"steps[{position}]"

        def forbid(kind: str, message: str) -> None:
            broken.append(Violation(kind, 1.0, f"{step} {message}"))

        if self.fixed[m]:
            forbid("not-reschedulable", f"touches {label}, whose application is not reschedulable")
        elif self.pinned[m] and n >= 0 and n != self.home[m]:
            forbid("pinned", f"moves {label}, which is pinned to {self._node(self.home[m])}")
        if n >= 0 and self.shut[n]:
            kind, why = ("drain", "to be drained") if self.drain[n] else ("closed", "closed")
            forbid(kind, f"starts {label} on node {self._node(n)}, which is {why}")
        if n < 0 and now in (-1, self.arrays.waiting):
            forbid("not-running", f"stops {label}, which is not running")
        if n >= 0 and self.removed[m]:
            forbid("removed", f"starts {label}, which is to be removed")

    def _check_ready(
        self,
        position: int,
        m: int,
        n: int,
        started: bool,
        ready: dict[int, int],
        broken: list[Violation],
    ) -> None:
        """Add to `broken` a removal that leaves too few replicas; `ready` counts them, in place.

        A replica that is stopped on the way counts as ready: its stop is a disruption.
        """
        one = self.sets.get(m)
        if one is None:
            return
        if m in one.added:
            ready[id(one)] += n >= 0 and not started
            return
        ready[id(one)] -= n < 0
        need = min(one.num_before, one.num_after)
        if n < 0 and ready[id(one)] < need:
            message = f"removes {self.arrays.label(m)}: {ready[id(one)]} of {one.label} are left"
            text = f"steps[{position}] {message}; legal: {need}"
            broken.append(Violation("replicas", 1.0, text))

    def _check_load(
        self,
        n: int,
        amounts: Sequence[int],
        asked: Sequence[int],
        when: str,
        broken: list[Violation],
    ) -> None:
        """Add to `broken` the resources of node n that are overloaded, of those that are asked for.

        CPU and memory always count.
        """
        names, capacities = self.arrays.resources, self.capacity[n]
        for r, (resource, amount, capacity) in enumerate(
            zip(names, amounts, capacities, strict=True)
        ):
            if amount > capacity and (r < 2 or asked[r]):
                excess = amount / capacity - 1 if capacity else 1.0
                message = f"node {self._node(n)} has {amount} {resource} of {capacity}: {when}"
                broken.append(Violation(f"{resource}-capacity", excess, message))

    def _check_end(
        self, where: Sequence[int], started: Sequence[bool], broken: list[Violation]
    ) -> None:
        """Add to `broken` what the end breaks: equations (4) and (6), and nodes to drain."""
        for m, n in enumerate(where):
            label = self.arrays.label(m)
            if self.removed[m]:
                if n >= 0:
                    message = f"{label} still runs on node {self._node(n)}, and is to be removed"
                    broken.append(Violation("removed", 1.0, message))
                continue
            if n < 0:
                message = f"{label} is stopped and never started again"
                broken.append(Violation("stopped", 1.0, message))
            elif self.mandatory[m] and not started[m]:
                what = (
                    "still has its old size"
                    if self.old[m] != self.new[m]
                    else "was never restarted, which strict semantics ask for"
                )
                broken.append(Violation("not-restarted", 1.0, f"{label} {what}"))
            if n >= 0 and n == self.arrays.waiting:
                broken.append(Violation("waiting", 1.0, f"{label} still waits for a node"))
            elif n >= 0 and self.drain[n] and not started[m]:
                message = f"{label} is still on node {self._node(n)}, which is to be drained"
                broken.append(Violation("drain", 1.0, message))
        for text, excess in self.broken_flows(where):
            broken.append(Violation("latency", excess, text))
        for text in self.rules.broken(where, started):
            broken.append(Violation("rule", 1.0, f"at the end, {text}"))

    def broken_flows(self, where: Sequence[int]) -> list[tuple[str, float]]:
        """Return (sentence, relative excess) of each flow over its latency.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice; flows of those without a node (-1) are skipped.
        """
        broken = []
        for m, peer, limit in self.arrays.tight_flows:
            if where[m] < 0 or where[peer] < 0:
                continue
            ms = self.latency[self.cluster[where[m]]][self.cluster[where[peer]]]
            if ms > limit:
                excess = min(1.0, (ms - limit) / max(limit, 1.0)) if math.isfinite(ms) else 1.0
                label, name = self.arrays.label(m), self.arrays.names[peer][1]
                broken.append((f"{label} reaches {name!r} in {ms:g} ms; legal: {limit:g}", excess))
        return broken

    def _node(self, n: int) -> str:
        return repr(self.arrays.node_names[n])
