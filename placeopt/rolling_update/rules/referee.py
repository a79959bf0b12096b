"""The referee of rules: allowed nodes, and which microservices share domains or are spread.

It keeps which copies run in each domain, and reads the rules as they are written. The kernels of
`placeopt.rolling_update.rules.kernels` are tested against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from placeopt.rolling_update.document import UpdateNode, UpdateRule
from placeopt.rolling_update.fleet_arrays import FleetArrays

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
