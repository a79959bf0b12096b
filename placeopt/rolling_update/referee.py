"""The referee of rolling updates: it makes the steps of a plan one by one and names what is broken.

Equation numbers are those of the re-orchestration paper (`placeopt.rolling_update.problem`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import validate
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Evaluation, Violation
from placeopt.rolling_update.arrays import FleetArrays, UpdateArrays
from placeopt.rolling_update.document import (
    NodeLimit,
    UpdateNode,
    UpdatePlan,
    UpdateRule,
    UpdateSurvival,
)
from placeopt.rolling_update.rules import Survival

# -- rules -----------------------------------------------------------------------------------------

#: The copies that run of each group in each domain, and for a node set, those on its nodes alone:
#: (group, per, domain, node set) -> number. The domain "" is their sum.
Copies = Counter[tuple[str, str, str, str | None]]


class RuleReferee:
    """Judges where copies start, and where they are at the end.

    Parameters
    ----------
    arrays : FleetArrays
    nodes : sequence of UpdateNode
    groups : sequence of sequence of str, length M
    allowed : sequence of str or None, length M
    rules : sequence of UpdateRule
    node_sets : mapping of str to names of nodes
    """

    def __init__(
        self,
        arrays: FleetArrays,
        nodes: Sequence[UpdateNode],
        groups: Sequence[Sequence[str]],
        allowed: Sequence[str | None],
        rules: Sequence[UpdateRule],
        node_sets: Mapping[str, Sequence[str]],
    ):
        self.arrays, self.nodes, self.groups, self.allowed = arrays, nodes, groups, allowed
        self.judges = {"apart": self._apart, "together": self._together, "spread": self._spread}
        self.sets = {name: set(members) for name, members in node_sets.items()}
        self.obeyed: dict[str, list[UpdateRule]] = {}
        self.kept_away: dict[str, list[UpdateRule]] = {}
        for rule in rules:
            self.obeyed.setdefault(rule.group, []).append(rule)
            if rule.kind == "apart" and rule.toward not in (None, rule.group):
                self.kept_away.setdefault(str(rule.toward), []).append(rule)
        self.levels = sorted({rule.per for rule in rules})
        self.places = {per: [_place(node, per) for node in nodes] for per in self.levels}
        self.views = sorted({rule.among for rule in rules if rule.kind == "spread" and rule.among})
        self.views_of = [[v for v in self.views if n.name in self.sets[v]] for n in nodes]
        over = {(r.per, r.among): r for r in rules if r.kind == "spread"}
        self.domains = {key: self._domains(rule) for key, rule in over.items()}
        #: Names of the nodes that host nothing and never will: no domains of spreads that shrink.
        self.gone: set[str] = set()
        home = arrays.home.tolist()
        running = self.running(home) if rules else Copies()
        self.from_the_start = {
            (m, id(rule), side)
            for m, n in enumerate(home)
            for rule, side, _ in self._broken_by(running, m, n)
            if not rule.mend
        }

    def domain(self, n: int, per: str) -> str | None:
        """Return the domain of node n, None where it has none."""
        if n < 0 or n == self.arrays.waiting:
            return None
        return self.places[per][n]

    def _domains(self, rule: UpdateRule) -> set[str]:
        """Return the domains over which a rule spreads."""
        results = set()
        for n, node in enumerate(self.nodes):
            where = self.domain(n, rule.per)
            if where is not None and (rule.among is None or node.name in self.sets[rule.among]):
                results.add(where)
        return results

    def running(self, where: Sequence[int]) -> Copies:
        """Return the copies that run where each microservice is on the node ``where[m]``."""
        copies: Copies = Counter()
        for n, node in enumerate(self.nodes):
            for group, number in node.residents.items():
                self._tally(copies, [group], n, number)
        for m, n in enumerate(where):
            self._tally(copies, self.groups[m], n, 1)
        return copies

    def _tally(self, copies: Copies, groups: Sequence[str], n: int, sign: int) -> None:
        """Add copies of some groups on node n to those that run; `sign` is their number."""
        if not groups:
            return
        for per in self.levels:
            if (domain := self.domain(n, per)) is not None:
                for group in groups:
                    copies[group, per, "", None] += sign
                    for view in (None, *self.views_of[n]):
                        copies[group, per, domain, view] += sign

    def start(self, copies: Copies, m: int, n: int) -> list[str]:
        """Start a copy of m on node n; return what that breaks."""
        results = [f"{self._at(m, n)} {text}" for _, text in self.counted(copies, m, n)]
        if not self._is_allowed(m, n):
            results.append(f"{self._label(m)} may not be on node {self._node(n)}")
        return results

    def counted(self, copies: Copies, m: int, n: int) -> list[tuple[UpdateRule, str]]:
        """Count a copy of m on node n; return the rules that it breaks there, and how."""
        self._tally(copies, self.groups[m], n, 1)
        return [(rule, text) for rule, _, text in self._broken_by(copies, m, n)]

    def end(self, copies: Copies, m: int, n: int) -> None:
        """End a copy of m on node n."""
        self._tally(copies, self.groups[m], n, -1)

    def broken(self, where: Sequence[int], started: Sequence[bool] | None = None) -> list[str]:
        """Return what a deployment breaks, a sentence each.

        What is not among the `started` is forgiven what it broke at the start. Without `started`
        nothing is forgiven, and allowed nodes do not count.
        """
        if not self.obeyed and not any(self.allowed):
            return []
        copies, result, before = self.running(where), [], self.gone
        self.gone = self.emptied(where)
        for m, n in enumerate(where):
            for rule, side, text in self._broken_by(copies, m, n):
                forgiven = started is not None and not started[m]
                if not (forgiven and (m, id(rule), side) in self.from_the_start):
                    result.append(f"{self._at(m, n)} {text}")
            if started is not None and started[m] and n >= 0 and not self._is_allowed(m, n):
                result.append(f"{self._label(m)} may not be on node {self._node(n)}")
        self.gone = before
        return result

    def emptied(self, where: Sequence[int]) -> set[str]:
        """Return the nodes with a price that host nothing in a deployment."""
        a = self.arrays
        left = set(np.flatnonzero(a.price > 0).tolist()) - set(where)
        return {a.node_names[n] for n in left}

    def _is_allowed(self, m: int, n: int) -> bool:
        name = self.allowed[m]
        return name is None or self.arrays.node_names[n] in self.sets[name]

    def _broken_by(self, copies: Copies, m: int, n: int) -> Iterator[tuple[UpdateRule, bool, str]]:
        """Yield the rules that m on node n breaks, counted there, and whether it obeys them."""
        if n < 0:
            return
        for group in self.groups[m]:
            for rule in self.obeyed.get(group, ()):
                text = self.judges[rule.kind](copies, m, n, rule)
                if text:
                    yield rule, True, text
            for rule in self.kept_away.get(group, ()):
                domain = self.domain(n, rule.per)
                others = copies[rule.group, rule.per, str(domain), None]
                others -= rule.group in self.groups[m]
                if domain is not None and others > 0:
                    yield rule, False, f"shares {rule.per} {domain!r} with group {rule.group!r}"

    def _apart(self, copies: Copies, m: int, n: int, rule: UpdateRule) -> str:
        domain, toward = self.domain(n, rule.per), rule.toward or rule.group
        others = copies[toward, rule.per, str(domain), None] - (toward in self.groups[m])
        most = rule.max_copies - 1 if toward == rule.group else 0
        if domain is None or others <= most:
            return ""
        return f"shares {rule.per} {domain!r} with {others} of group {toward!r}; legal: {most}"

    def _together(self, copies: Copies, m: int, n: int, rule: UpdateRule) -> str:
        domain, toward = self.domain(n, rule.per), rule.toward or rule.group
        own = toward in self.groups[m]
        if domain is not None and (
            copies[toward, rule.per, domain, None] - own > 0
            or (own and copies[toward, rule.per, "", None] == 1)
        ):
            return ""
        return f"has none of group {toward!r} in its {rule.per}"

    def _spread(self, copies: Copies, m: int, n: int, rule: UpdateRule) -> str:
        domain, toward = self.domain(n, rule.per), rule.toward or rule.group
        in_set = rule.among is None or self.arrays.node_names[n] in self.sets[rule.among]
        if domain is None or not in_set:
            return f"is in no {rule.per} over which group {rule.group!r} is spread"
        here = copies[toward, rule.per, domain, rule.among]
        domains = self.domains[rule.per, rule.among]
        if rule.shrinks:
            domains = domains - self.gone
        if here <= rule.max_skew:
            return ""
        fewest = min(copies[toward, rule.per, d, rule.among] for d in domains)
        if len(domains) < rule.min_domains:
            fewest = 0
        if here - fewest <= rule.max_skew:
            return ""
        return (
            f"gives {rule.per} {domain!r} {here - fewest} more of group {toward!r} than the "
            f"{rule.per} with fewest has; legal: {rule.max_skew}"
        )

    def _at(self, m: int, n: int) -> str:
        return f"{self._label(m)} on node {self._node(n)}"

    def _label(self, m: int) -> str:
        return self.arrays.label(m)

    def _node(self, n: int) -> str:
        return repr(self.arrays.node_names[n])


def _place(node: UpdateNode, per: str) -> str | None:
    """Return the domain of a node, None where it has none."""
    return {"node": node.name, "cluster": node.cluster}.get(per, node.domains.get(per))


# -- the loss of a node ----------------------------------------------------------------------------

#: Of each group that a node hosts too many copies of: its name, the copies left, those needed.
Short = dict[int, list[tuple[str, int, int]]]


class SurvivalReferee:
    """Judges where copies are at the end.

    Parameters
    ----------
    arrays : FleetArrays
    tables : Survival
        The standing nodes, and in which order copies look for a place.
    groups : sequence of sequence of str, length M
    survival : UpdateSurvival
    rules : RuleReferee
        Of the rules that must be kept.
    """

    def __init__(
        self,
        arrays: FleetArrays,
        tables: Survival,
        groups: Sequence[Sequence[str]],
        survival: UpdateSurvival,
        rules: RuleReferee,
    ):
        self.arrays, self.tables, self.survival, self.rules = arrays, tables, survival, rules
        self.members: dict[str, list[int]] = {group: [] for group in survival.needs}
        for m, own in enumerate(groups):
            for group in own:
                if group in self.members:
                    self.members[group].append(m)

    def short(self, where: Sequence[int]) -> Short:
        """Return the nodes whose loss leaves a group too few copies, and of which groups.

        `where` has the node of every microservice, -1 for none.
        """
        results: Short = {}
        for group, members in self.members.items():
            need = self.survival.needs[group]
            for n, count in Counter(where[m] for m in members).items():
                if 0 <= n != self.arrays.waiting and len(members) - count < need:
                    results.setdefault(n, []).append((group, len(members) - count, need))
        return results

    def values(self, where: Sequence[int]) -> tuple[float, ...]:
        """Return the copies that are needed and lost with the worst node; nothing if not asked."""
        if not self.survival.needs:
            return ()
        lost = (sum(need - left for _, left, need in x) for x in self.short(where).values())
        return (float(max(lost, default=0)),)

    def crowded(self, where: Sequence[int]) -> list[tuple[str, float]]:
        """Return (sentence, relative excess) of what some loss leaves without a place.

        Where the others have too little together that is said, else which copies are homeless.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice, at its new size; -1 for none.
        """
        if not self.survival.room:
            return []
        a = self.arrays
        here = [m for m, n in enumerate(where) if 0 <= n != a.waiting]
        need = a.new[here].sum(axis=0).tolist()
        if result := self._crowded(self._in_use(where), need, "the others in use have"):
            return result
        on_node = Counter(where)
        return [
            (f"without node {a.node_names[n]!r} {self._find_no_room(left)}", len(left) / on_node[n])
            for n, left in self.homeless(where).items()
        ]

    def _in_use(self, where: Sequence[int]) -> list[int]:
        standing = {n for n, stands in enumerate(self.tables.standing) if stands}
        return sorted(standing | set(where) - {-1, self.arrays.waiting})

    def homeless(self, where: Sequence[int]) -> dict[int, list[int]]:
        """Return the microservices that find no place when their node is lost, by that node.

        Parameters
        ----------
        where : sequence of int, length M
            The node of every microservice, at its new size; -1 for none.
        """
        a, on_node = self.arrays, dict[int, list[int]]()
        free = a.capacity.copy()
        for m in self.tables.largest_first(a.new).tolist():
            if 0 <= where[m] != a.waiting:
                on_node.setdefault(where[m], []).append(m)
                free[where[m]] -= a.new[m]
        hosts = np.array([n for n in self._in_use(where) if not a.shut[n]], dtype=np.int64)
        copies, result = self.rules.running(where), {}
        for n in sorted(on_node):
            if left := self._lose(n, on_node[n], hosts[hosts != n], free, copies):
                result[n] = left
        return result

    def _lose(
        self, n: int, lost: Sequence[int], hosts: np.ndarray, free: np.ndarray, copies: Copies
    ) -> list[int]:
        """Return what of a lost node is homeless; `free` and `copies` are as before afterwards."""
        new, left, started = self.arrays.new, [], []
        for m in lost:
            self.rules.end(copies, m, n)
        for m in lost:
            to = self._start(m, hosts, free, copies)
            if to is None:
                left.append(m)
            else:
                free[to] -= new[m]
                started.append((m, to))
        for m, to in started:
            free[to] += new[m]
            self.rules.end(copies, m, to)
        for m in lost:
            self.rules.start(copies, m, n)
        return left

    def _start(self, m: int, hosts: np.ndarray, free: np.ndarray, copies: Copies) -> int | None:
        """Count microservice m where it starts again; return the node, None for none."""
        size = self.arrays.new[m]
        after = free[hosts] - size
        share = np.maximum(0, after) / np.maximum(1, self.arrays.capacity[hosts])
        fits = ((after >= 0) | (size == 0)).all(axis=1)
        for n in hosts[fits][np.argsort(-share[fits].min(axis=1), kind="stable")].tolist():
            if not self.rules.start(copies, m, n):
                return int(n)
            self.rules.end(copies, m, n)
        return None

    def _find_no_room(self, left: Sequence[int]) -> str:
        """Return that copies find no room, the first by its name."""
        application, name = self.arrays.names[left[0]]
        more = f" and {len(left) - 1} more find" if len(left) > 1 else " finds"
        return f"{application}/{name}{more} no room"

    def in_words(self, where: Sequence[int]) -> str:
        """Return whether a deployment survives the loss of any one node, and if not, of which."""
        told, short, homeless = [], self.short(where), self.homeless(where)
        for n in sorted(short.keys() | homeless.keys()):
            why = [f"{group} keeps {left} of {need}" for group, left, need in short.get(n, ())]
            if n in homeless:
                why.append(self._find_no_room(homeless[n]))
            shown = "; ".join(why[:3]) + (f"; and {len(why) - 3} more" if len(why) > 3 else "")
            told.append(f"without {self.arrays.node_names[n]}: {shown}")
        return "no: " + ", ".join(told) if told else "yes"

    def why_not(self, need: Sequence[int]) -> list[str]:
        """Return why no deployment can have room without any one of its nodes."""
        if not self.survival.room:
            return []
        every = [n for n, shut in enumerate(self.arrays.shut) if not shut]
        return [text for text, _ in self._crowded(every, need, "all others have")]

    def _crowded(
        self, nodes: Sequence[int], need: Sequence[int], have: str
    ) -> list[tuple[str, float]]:
        result, a = [], self.arrays
        for r, (resource, wanted) in enumerate(zip(a.resources, need, strict=True)):
            rooms = {n: int(a.capacity[n, r]) for n in nodes}
            worst = max(rooms, key=lambda n: rooms[n], default=-1)
            left = sum(rooms.values()) - rooms.get(worst, 0)
            if wanted > left:
                name = repr(a.node_names[worst]) if worst >= 0 else "any"
                text = f"without node {name} {have} {left} {resource}; what runs needs {wanted}"
                result.append((text, min(1.0, wanted / max(1, left) - 1)))
        return result


# -- limits ----------------------------------------------------------------------------------------


class LimitReferee:
    """Judges which nodes a plan uses.

    Parameters
    ----------
    limits : sequence of NodeLimit
    names : sequence of str
        Names of the nodes of the document, by number.
    now : iterable of int
        Nodes that host something now.
    """

    def __init__(self, limits: Sequence[NodeLimit], names: Sequence[str], now: Iterable[int]):
        self.limits, self.names, self.now = limits, list(names), set(now)

    def broken(self, end: Iterable[int], visited: Iterable[int]) -> Iterator[tuple[str, float]]:
        """Yield (sentence, relative excess) of each limit that is broken.

        Parameters
        ----------
        end : iterable of int
            Nodes that host something at the end.
        visited : iterable of int
            Nodes on which a copy starts, at any time.
        """
        count = len(self.names)
        at_end = {n for n in end if 0 <= n < count}
        ever = at_end | {n for n in visited if 0 <= n < count}
        for limit in self.limits:
            own = self._members(limit, ever)
            if limit.most is not None and own - self.now:  # else what is there may stay
                total = sum(limit.amounts[self.names[n]] for n in own)
                if total > limit.most:
                    text = f"limit {limit.name!r}: {total:,} is used, at most {limit.most:,} may be"
                    yield text, (total - limit.most) / max(1, limit.most)
            own = self._members(limit, at_end)
            if limit.share is not None and own - self.now:
                few = max(1, int(len(at_end) * limit.share + 1e-9))
                if len(own) > few:
                    text = f"limit {limit.name!r}: {len(own)} of {len(at_end)} nodes in use"
                    yield f"{text}, at most {few} may be", (len(own) - few) / few

    def _members(self, limit: NodeLimit, nodes: Iterable[int]) -> set[int]:
        return {n for n in nodes if limit.amounts.get(self.names[n], 0) > 0}


# -- the referee -----------------------------------------------------------------------------------


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
