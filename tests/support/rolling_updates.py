"""Every plan of a tiny rolling update, judged straight from the document, step by step.

All of it is here: replicas that are added and removed, sets of allowed nodes, rules, what comes
with nodes, closed nodes, nodes to buy, limits, and the loss of a node. It is slow on purpose, and
shares nothing with placeopt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

Document = dict[str, Any]
Values = tuple[float, ...]

#: No limit on starts and stops.
ANY = (float("inf"), float("inf"))
#: Where a replica is that was removed; None is one that is stopped, or that waits to be added.
GONE = "(gone)"


class State(NamedTuple):
    """Where each copy is, and whether it was started; nodes left for good, and nodes bought."""

    at: tuple[tuple[str | None, bool], ...]
    left: frozenset[str] = frozenset()
    visited: frozenset[str] = frozenset()


def number(value: float | None) -> Fraction:
    """Return a decimal of a document exactly."""
    return Fraction(str(value or 0))


def best(vectors: Iterable[Values]) -> list[Values]:
    """Return the vectors that no other one dominates, sorted."""
    found: list[Values] = []
    for v in sorted(set(vectors)):
        if not any(all(a <= b for a, b in zip(u, v, strict=True)) for u in found):
            found.append(v)
    return found


class Deployment:
    """The rules of the game for one document."""

    def __init__(self, document: Document):
        self.document = document
        self.nodes = {n["name"]: n for n in document["nodes"]}
        self.services = [(a, m) for a in document["applications"] for m in a["microservices"]]
        self.names = [(a["name"], m["name"]) for a, m in self.services]
        self.start = State(tuple((m["node"], False) for _, m in self.services))
        self.sets = document.get("node_sets", {})
        self.rules = [r for r in document.get("rules", ()) if not r.get("soft")]
        self.limits = document.get("limits", ())
        self.now = {m["node"] for _, m in self.services} - {None}
        extra = {r for _, m in self.services for r in m.get("resources", {})}
        self.resources = ("cpu_millicores", "memory_mib", *sorted(extra))
        self.watched = {
            n for limit in self.limits if limit.get("most") is not None for n in limit["amounts"]
        }
        self.shrinks = any(r.get("shrinks") for r in self.rules)

    # -- sizes ---------------------------------------------------------------------------------

    def size(self, k: int, new: bool, what: str) -> int:
        service = self.services[k][1]
        if what not in ("cpu_millicores", "memory_mib"):
            return service.get("resources", {}).get(what, 0)
        changed = service.get(f"new_{what}")
        return service[what] if not new or changed is None else changed

    def capacity(self, node: str, what: str) -> int:
        row = self.nodes[node]
        return row[what] if what in row else row.get("resources", {}).get(what, 0)

    def load(self, state: State, node: str, what: str) -> int:
        here = ((k, new) for k, (n, new) in enumerate(state.at) if n == node)
        return sum(self.size(k, new, what) for k, new in here)

    def has_room(self, state: State, node: str, k: int) -> bool:
        """Whether a new copy fits a node; only what it asks for counts, CPU and memory always."""
        for place, what in enumerate(self.resources):
            own = self.size(k, True, what)
            full = self.load(state, node, what) + own > self.capacity(node, what)
            if full and (place < 2 or own):
                return False
        return True

    # -- rules ---------------------------------------------------------------------------------

    def domain(self, node: str, per: str) -> str | None:
        row = self.nodes[node]
        if per == "node":
            return node
        return row["cluster"] if per == "cluster" else row.get("domains", {}).get(per)

    def groups(self, k: int) -> list[str]:
        return list(self.services[k][1].get("groups", ()))

    def count(self, where: list[tuple[int, str]], group: str, rule: Document) -> Counter[str]:
        """Copies of a group by domain; of a spread among nodes, only those on these nodes."""
        among = rule.get("among") if rule["kind"] == "spread" else None
        found: Counter[str] = Counter()
        for name, row in self.nodes.items():
            domain = self.domain(name, rule.get("per", "node"))
            if domain is None or (among is not None and name not in self.sets[among]):
                continue
            found[domain] += row.get("residents", {}).get(group, 0)
            found[domain] += sum(n == name and group in self.groups(k) for k, n in where)
        return found

    def breaks(
        self, where: list[tuple[int, str]], k: int, node: str, gone: Iterable[str] = ()
    ) -> Iterator[tuple[int, bool]]:
        """Yield the rules that copy k breaks on a node where it is counted already.

        By number, and whether it obeys the rule or is kept away by it.
        """
        mine = self.groups(k)
        for number_of, rule in enumerate(self.rules):
            toward = rule.get("toward") or rule["group"]
            domain = self.domain(node, rule.get("per", "node"))
            if rule["group"] in mine and not self.keeps(where, mine, node, rule, set(gone)):
                yield number_of, True
            if rule["kind"] == "apart" and toward != rule["group"] and toward in mine:
                others = self.count(where, rule["group"], rule)
                if domain is not None and others[domain] - (rule["group"] in mine) > 0:
                    yield number_of, False

    def keeps(
        self,
        where: list[tuple[int, str]],
        mine: list[str],
        node: str,
        rule: Document,
        gone: set[str],
    ) -> bool:
        """Whether a copy of some groups obeys a rule on a node."""
        toward = rule.get("toward") or rule["group"]
        domain = self.domain(node, rule.get("per", "node"))
        counts = self.count(where, toward, rule)
        own = toward in mine
        if rule["kind"] == "apart":
            most = rule.get("max_copies", 1) - 1 if toward == rule["group"] else 0
            return domain is None or counts[domain] - own <= most
        if rule["kind"] == "together":
            if domain is None:
                return False
            return counts[domain] - own > 0 or (own and counts.total() == 1)
        among = rule.get("among")
        if domain is None or (among is not None and node not in self.sets[among]):
            return False
        domains = set(counts)
        if rule.get("shrinks"):
            domains -= gone
        fewest = min(counts[d] for d in domains)
        if len(domains) < rule.get("min_domains", 1):
            fewest = 0
        skew = rule.get("max_skew", 1)
        return counts[domain] <= skew or counts[domain] - fewest <= skew

    def may_be_on(self, k: int, node: str) -> bool:
        name = self.services[k][1].get("allowed")
        return name is None or node in self.sets[name]

    def placed(self, state: State) -> list[tuple[int, str]]:
        return [(k, n) for k, (n, _) in enumerate(state.at) if n not in (None, GONE)]

    @cached_property
    def forgiven(self) -> set[tuple[int, int, bool]]:
        """(copy, rule, side) of what is broken at the start and need not be mended."""
        where = self.placed(self.start)
        found = {(k, r, side) for k, n in where for r, side in self.breaks(where, k, n)}
        return {x for x in found if not self.rules[x[1]].get("mend")}

    # -- steps ---------------------------------------------------------------------------------

    def step(self, state: State, k: int, to: str | None) -> State | None:
        """Return the state after a step, None where the step is not legal."""
        application, service = self.services[k]
        if not application.get("reschedulable", True):
            return None
        now, started = state.at[k]
        if to is None:
            if now in (None, GONE):
                return None
            away = (GONE, False) if service.get("removed") else (None, started)
            after = state._replace(at=(*state.at[:k], away, *state.at[k + 1 :]))
            return after if not service.get("removed") or self.are_ready(after, k) else None
        if service.get("removed") or (service.get("pinned") and to != service["node"]):
            return None
        row = self.nodes[to]
        if row.get("drain") or row.get("closed") or to in state.left:
            return None
        if not self.may_be_on(k, to) or not self.has_room(state, to, k):
            return None
        if next(self.breaks([*self.placed(state), (k, to)], k, to, state.left), None):
            return None
        visited = state.visited | ({to} & self.watched)
        at = (*state.at[:k], (to, True), *state.at[k + 1 :])
        return state._replace(at=at, visited=visited)

    def leavable(self, state: State) -> list[str]:
        """The nodes that nothing uses and that would be deleted."""
        used = {n for n, _ in state.at}
        priced = (n for n, row in self.nodes.items() if row["price"] > 0)
        return [n for n in priced if n not in used and n not in state.left]

    def are_ready(self, state: State, removed: int) -> bool:
        """Whether as many replicas of a name are left as the smaller of old and new numbers.

        One that is stopped on the way counts: its stop is a disruption.
        """
        application, service = self.services[removed]
        if not service.get("replica_of"):
            return True
        mine = [
            (m, at)
            for (a, m), at in zip(self.services, state.at, strict=True)
            if a is application and m.get("replica_of") == service["replica_of"]
        ]
        before = sum(m["node"] is not None for m, _ in mine)
        after = sum(not m.get("removed", False) for m, _ in mine)
        left = sum(node != GONE and (m["node"] is not None or new) for m, (node, new) in mine)
        return left >= min(before, after)

    # -- the end -------------------------------------------------------------------------------

    def ends_well(self, state: State) -> bool:
        """Whether a plan may end here."""
        for k, (node, started) in enumerate(state.at):
            if self.services[k][1].get("removed"):
                if node != GONE:
                    return False
            elif node is None or (self.must_start(k, node) and not started):
                return False
        for node in self.nodes:
            for what in self.resources:
                if self.load(state, node, what) > self.capacity(node, what):
                    return False
        return (
            self.is_near(state)
            and self.obeys(state)
            and self.is_within_limits(state)
            and self.survives(state)
        )

    def must_start(self, k: int, node: str) -> bool:
        application, service = self.services[k]
        sizes = ("cpu_millicores", "memory_mib")
        changed = any(self.size(k, True, what) != service[what] for what in sizes)
        movable = application.get("reschedulable", True)
        strict = self.document["semantics"] == "strict"
        return (movable and (changed or strict)) or bool(self.nodes[node].get("drain"))

    def is_near(self, state: State) -> bool:
        place = {name: at[0] for name, at in zip(self.names, state.at, strict=True)}
        rows = self.document.get("cluster_latency_ms", {})
        for application in self.document["applications"]:
            for flow in application.get("flows", ()):
                ends = [place[application["name"], flow[end]] for end in ("from", "to")]
                if GONE in ends:
                    continue
                one, other = (self.nodes[str(n)]["cluster"] for n in ends)
                ms = rows.get(one, {}).get(other, rows.get(other, {}).get(one))
                if ms is None and one == other:
                    ms = 0
                if ms is None or number(ms) > number(flow["max_latency_ms"]):
                    return False
        return True

    def obeys(self, state: State) -> bool:
        where = self.placed(state)
        gone = {n for n, row in self.nodes.items() if row["price"] > 0} - {n for _, n in where}
        for k, n in where:
            started = state.at[k][1]
            for r, side in self.breaks(where, k, n, gone):
                if started or (k, r, side) not in self.forgiven:
                    return False
            if started and not self.may_be_on(k, n):
                return False
        return True

    def is_within_limits(self, state: State) -> bool:
        end = {n for _, n in self.placed(state)}
        for limit in self.limits:
            members = {n for n, amount in limit["amounts"].items() if amount > 0}
            ever = members & (end | state.visited)
            most, held = limit.get("most"), members & end
            total = sum(limit["amounts"][n] for n in ever)
            if most is not None and ever - self.now and total > most:
                return False
            share = number(limit.get("share", 1))
            if held - self.now and len(held) > max(1, int(len(end) * share)):
                return False
        return True

    # -- the loss of a node --------------------------------------------------------------------

    @property
    def survival(self) -> Document:
        return self.document.get("survival") or {}

    def lost(self, state: State) -> float:
        """Copies that are needed and lost with the worst node."""
        worst = 0
        for node in self.nodes:
            total = 0
            for group, need in self.survival["needs"].items():
                members = [
                    state.at[k][0]
                    for k, (_, m) in enumerate(self.services)
                    if group in m.get("groups", ()) and not m.get("removed")
                ]
                total += max(0, need - sum(n != node for n in members))
            worst = max(worst, total)
        return float(worst)

    def survives(self, state: State) -> bool:
        if not self.survival.get("room"):
            return True
        where = dict(self.placed(state))
        standing = {n for n, r in self.nodes.items() if r["price"] == 0 and not r.get("drain")}
        used = [n for n in self.nodes if n in standing or n in where.values()]
        for what in self.resources:
            rooms = [self.capacity(n, what) for n in used]
            need = sum(self.size(k, True, what) for k in where)
            if need > sum(rooms) - max(rooms, default=0):
                return False
        return all(self.finds_places(where, used, node) for node in used)

    def finds_places(self, where: dict[int, str], used: list[str], lost: str) -> bool:
        """Whether what a node hosts starts elsewhere: the largest first, where most is left."""
        largest = {w: max(1, *(self.capacity(n, w) for n in self.nodes)) for w in self.resources}
        share = {
            k: max(Fraction(self.size(k, True, w), largest[w]) for w in self.resources)
            for k in where
        }
        rest = {k: n for k, n in where.items() if n != lost}
        for k in sorted((k for k in where if where[k] == lost), key=lambda k: -share[k]):
            best_left, to = Fraction(-1), None
            for n in used:
                if n == lost or self.nodes[n].get("drain") or self.nodes[n].get("closed"):
                    continue
                left = []
                for w in self.resources:
                    own, room = self.size(k, True, w), self.capacity(n, w)
                    free = room - own - sum(self.size(j, True, w) for j in rest if rest[j] == n)
                    left.append(
                        Fraction(-1) if free < 0 < own else Fraction(max(0, free), max(1, room))
                    )
                if min(left) < 0 or min(left) <= best_left or not self.may_be_on(k, n):
                    continue
                if next(self.breaks([*rest.items(), (k, n)], k, n), None) is None:
                    best_left, to = min(left), n
            if to is None:
                return False
            rest[k] = to
        return True

    # -- values --------------------------------------------------------------------------------

    def values(self, state: State, starts: float, stops: float) -> Values:
        used = {n for _, n in self.placed(state)}
        cost = float(sum(number(self.nodes[n]["price"]) for n in used))
        lost = (self.lost(state),) if self.survival.get("needs") else ()
        return (cost, float(starts), float(stops), *lost)

    def judge(self, plan: Document) -> Values | None:
        """Return the values of a plan, None where it breaks the instance."""
        steps = [
            (self.names.index((s["application"], s["microservice"])), s["to"])
            for s in plan["steps"]
        ]
        state, starts, stops = self.start, 0, 0
        for position, (k, to) in enumerate(steps):
            later = {n for _, n in steps[position:]}
            state = state._replace(
                left=state.left | {n for n in self.leavable(state) if n not in later}
            )
            after = self.step(state, k, to)
            if after is None:
                return None
            state = after
            starts += to is not None
            stops += to is None and not self.services[k][1].get("removed", False)
        return self.values(state, starts, stops) if self.ends_well(state) else None

    def attainable(self, direct: bool = False, most: tuple[float, float] = ANY) -> set[Values]:
        """Return all deployments that steps lead to, with the least starts and stops to them.

        With `direct` nothing stops and nothing starts twice; `most` limits starts and stops.
        """
        labels: dict[State, set[Values]] = {self.start: {(0.0, 0.0)}}
        waiting = [self.start]
        while waiting:
            state = waiting.pop()
            for after, more in self.successors(state):
                if direct and sum(more) > sum(s for _, s in after.at) - sum(s for _, s in state.at):
                    continue
                known = labels.get(after, set())
                added = {(a + more[0], b + more[1]) for a, b in labels[state]}
                added = {v for v in added if v[0] <= most[0] and v[1] <= most[1]}
                together = set(best(known | added))
                if together != known:
                    labels[after] = together
                    waiting.append(after)
        return {
            self.values(state, *label)
            for state, row in labels.items()
            if self.ends_well(state)
            for label in row
        }

    def successors(self, state: State) -> list[tuple[State, tuple[int, int]]]:
        """Return the states that one step leads to, or a node that is left for good."""
        if state not in self._next:
            found = []
            for k in range(len(state.at)):
                for to in (None, *self.nodes):
                    after = self.step(state, k, to)
                    if after is not None:
                        removes = self.services[k][1].get("removed", False)
                        found.append(
                            (after, (int(to is not None), int(to is None and not removes)))
                        )
            if self.shrinks:
                found += [
                    (state._replace(left=state.left | {n}), (0, 0)) for n in self.leavable(state)
                ]
            self._next[state] = found
        return self._next[state]

    @cached_property
    def _next(self) -> dict[State, list[tuple[State, tuple[int, int]]]]:
        return {}
