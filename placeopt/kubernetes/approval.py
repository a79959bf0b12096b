"""A rolling update for those who approve it: money, nodes, pods, downtime, and what it rests on.

The names are those of the cluster, where the origin of the instance is at hand: namespaces and
workloads, not pods. What an importer made up is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.errors import UnsupportedError, UsageError
from placeopt.core.front import Plan
from placeopt.kubernetes.notes import escape
from placeopt.kubernetes.origin import key
from placeopt.report.markup import Bar, Cell, Mark, bullets, details, number, paragraphs, table
from placeopt.rolling_update.fleet_change import by_machine, fleet_change
from placeopt.rolling_update.instance import NO_UNIT

if TYPE_CHECKING:
    from placeopt.core.front import Front
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin, OriginNote
    from placeopt.rolling_update.instance import RollingUpdate

_TOPICS = {
    "assumption": "Assumed",
    "pinned": "Stays where it is",
    "left-out": "Left out",
    "not-expressed": "Not in the model",
}
_MAX_LISTED, _MAX_STEPS = 12, 200
_REQUESTS = ("workload", "container", "cpu now", "cpu after", "memory now", "memory after")


@dataclass(frozen=True)
class WorkloadPlaces:
    """Where the replicas of a workload are: per node and per zone, the most first."""

    name: str
    replicas: int
    nodes_before: list[int]
    nodes: list[int]
    zones: list[int]


class Approval:
    """What a plan of a rolling update does, in figures.

    Parameters
    ----------
    problem : RollingUpdate
    plan : mapping
    front : Front
        Its bounds say how much cheaper a plan could be.
    origin : Origin, optional
        What the names are in the cluster.
    """

    def __init__(
        self,
        problem: RollingUpdate,
        plan: Plan,
        front: Front,
        origin: Origin | None = None,
    ):
        self.problem, self.front, self.origin = problem, front, origin
        self.steps = problem.steps(plan)
        self.verdict = problem.evaluate(plan)
        a = problem.arrays
        self.home, self.final = (
            np.where(where == a.waiting, -1, where) if a.waiting >= 0 else where
            for where in (a.home, a.final_nodes(self.steps))
        )
        self.before, self.after = problem.initial_cost, self.verdict.values[0]
        self.change = fleet_change(problem, plan)
        known = None if origin is None else origin.price_unit
        self.unit = known or ("" if self.change.unit == NO_UNIT else self.change.unit)

    @cached_property
    def owners(self) -> list[tuple[str, str]]:
        """The kind and the name (namespace/workload) of every microservice."""
        found = []
        for application, name in self.problem.arrays.names:
            item = None if self.origin is None else self.origin.items.get(key(name, application))
            label = f"{application}/{name}" if item is None else f"{item.namespace}/{item.name}"
            found.append(("" if item is None else item.kind, label))
        return found

    def node_name(self, n: int) -> str:
        """Return the name of a node."""
        return self.problem.arrays.node_names[n]

    def _real(self, n: int) -> bool:
        known = None if self.origin is None else self.origin.nodes.get(self.node_name(n))
        return n >= 0 and not (known is not None and known.virtual)

    def _used(self, where: np.ndarray) -> set[int]:
        return {n for n in where.tolist() if self._real(n)}

    @cached_property
    def freed(self) -> list[str]:
        """Nodes that host something now and nothing at the end."""
        return [self.node_name(n) for n in sorted(self._used(self.home) - self._used(self.final))]

    @cached_property
    def opened(self) -> list[str]:
        """Nodes that host nothing now and something at the end."""
        return [self.node_name(n) for n in sorted(self._used(self.final) - self._used(self.home))]

    @property
    def nodes(self) -> tuple[int, int, int]:
        """Nodes in all, in use now, in use at the end."""
        count = sum(self._real(n) for n in range(len(self.problem.nodes)))
        return count, len(self._used(self.home)), len(self._used(self.final))

    @cached_property
    def moved(self) -> list[int]:
        """The microservices that run elsewhere at the end."""
        leave = [m for m in range(len(self.home)) if 0 <= self.home[m] != self.final[m]]
        return [m for m in leave if not self.problem.arrays.removed[m]]

    @property
    def restarted(self) -> int:
        """Pods that are made anew on their node."""
        return len({m for m, _ in self.steps} - set(self.moved)) - self.started - self.removed

    @property
    def started(self) -> int:
        """Pods that wait now and run at the end."""
        return int(((self.home < 0) & (self.final >= 0)).sum())

    @property
    def removed(self) -> int:
        """Pods that run now and have no place at the end."""
        return int((self.problem.arrays.removed & (self.final < 0)).sum())

    @cached_property
    def downtime(self) -> list[str]:
        """Workloads with a replica that is down for a while, each with how many of how many."""
        count = Counter(self.owners[m] for m, n in self.steps if n < 0)
        count.update(
            self.owners[m]
            for m, n in self.steps
            if n >= 0 and self.owners[m][0] == "StatefulSet" and not self.problem.arrays.removed[m]
        )
        replicas = Counter(self.owners)
        return [
            f"{owner[1]} ({times} of {replicas[owner]} for a while)"
            for owner, times in count.items()
        ]

    @cached_property
    def leaving(self) -> list[tuple[str, int, str]]:
        """For each node that pods leave: its name, how many, and which workloads."""
        found: dict[int, Counter[str]] = {}
        for m in self.moved:
            found.setdefault(int(self.home[m]), Counter())[self.owners[m][1]] += 1
        return [
            (self.node_name(n), sum(count.values()), _listed(_times(count)))
            for n, count in sorted(found.items(), key=lambda e: (-sum(e[1].values()), e[0]))
        ]

    @cached_property
    def workloads(self) -> list[WorkloadPlaces]:
        """Where replicas are of every workload with several, the most crowded at the end first."""
        members: dict[str, list[int]] = {}
        for m, (kind, label) in enumerate(self.owners):
            if kind != "Virtual":
                members.setdefault(label, []).append(m)
        zone = [n.cluster for n in self.problem.nodes]
        found = []
        for name, mine in members.items():
            ends = [int(n) for n in self.final[mine] if n >= 0]
            if len(ends) > 1:
                starts = [int(n) for n in self.home[mine] if n >= 0]
                zones = _counts([zone[n] for n in ends])
                found.append(WorkloadPlaces(name, len(ends), _counts(starts), _counts(ends), zones))
        return sorted(found, key=lambda w: (-w.nodes[0] / w.replicas, -w.replicas, w.name))

    @cached_property
    def headroom(self) -> list[tuple[str, float, float]]:
        """For each resource, the share in use of the nodes in use: now, and at the end."""
        a = self.problem.arrays
        started = np.zeros(len(self.home), dtype=bool)
        started[[m for m, n in self.steps if n >= 0]] = True
        sizes = (a.old, np.where(started[:, None], a.new, a.old))
        shares = []
        for where, size in zip((self.home, self.final), sizes, strict=True):
            used = sorted(self._used(where))
            there = np.isin(where, used)
            room = a.capacity[used].sum(axis=0)
            shares.append(size[there].sum(axis=0) / np.maximum(room, 1))
        names = [name.replace("_", " ") for name in a.resources]
        return [(n, float(b), float(c)) for n, b, c in zip(names, *shares, strict=True)]

    @cached_property
    def new_requests(self) -> list[tuple[str, str, str, str, str, str]]:
        """Containers that ask for something else afterwards: cpu and memory, now and then."""
        found: dict[tuple[str, ...], None] = {}
        started = {m for m, n in self.steps if n >= 0}
        for m, (application, name) in enumerate(self.problem.arrays.names):
            item = None if self.origin is None else self.origin.items.get(key(name, application))
            for c in item.containers if item is not None and m in started else ():
                new = (c.new_cpu_millicores, c.new_memory_bytes)
                if new != (None, None):
                    now = (c.cpu_millicores, c.memory_bytes)
                    found[(self.owners[m][1], c.name, *_requests(now, new))] = None
        return list(found)  # type: ignore[arg-type]

    @property
    def survival(self) -> str:
        """Whether the loss of any one node is survived at the end, in words; empty if not asked."""
        told = self.problem.describe(self.problem.plan(self.steps))
        return told.get("survives the loss of any one node", "")

    def journeys(self) -> Iterator[tuple[str, str, str, str | None, str | None]]:
        """Yield what each step does: workload, action, its tone, from node, to node."""
        where = self.home.copy()
        for m, node in self.steps:
            kind, label = self.owners[m]
            removes = bool(self.problem.arrays.removed[m])
            node = -1 if removes else node
            source, target = (None if n < 0 else self.node_name(n) for n in (int(where[m]), node))
            action = "stop" if target is None else "start" if source is None else "move"
            if source == target:
                action = "restart"
            action = "remove" if removes else action
            interrupts = action == "stop" or (kind == "StatefulSet" and source is not None)
            yield label, action, "bad" if interrupts else "plain", source, target
            where[m] = node

    @property
    def notes(self) -> Sequence[OriginNote]:
        """What the import assumed, pinned, left out and could not say."""
        listed = () if self.origin is None else self.origin.notes
        return [note for note in listed if note.topic in _TOPICS]

    # -- in words ----------------------------------------------------------------------------------

    @property
    def saving(self) -> float:
        """What the plan saves, in the unit of the prices."""
        return self.before - self.after

    def tiles(self) -> list[tuple[str, str, str]]:
        """Return large figures: money first."""
        share = f"{self.saving / self.before:+.0%}".replace("+", "-", 1) if self.before else ""
        share = share if self.saving > 0 else "no saving" if self.saving == 0 else "dearer"
        unit = f" {self.unit}" if self.unit else ""
        money = f"{number(self.before)} → {number(self.after)}{unit}"
        month = self.month
        total, before, after = self.nodes
        found = [("cost of nodes in use", money, f"{share}{month}")]
        found.append(("nodes freed", f"{len(self.freed)}", f"{before} → {after} of {total} in use"))
        more = [f"{self.restarted} made anew in place"] if self.restarted else []
        more += [f"{self.started} started that wait now"] if self.started else []
        more += [f"{self.removed} removed"] if self.removed else []
        found.append(("pods that move", f"{len(self.moved)}", ", ".join(more) or "no other"))
        count = len(self.downtime)
        down = f"{count} workload{'' if count == 1 else 's'}" if count else "none"
        hint = "every copy runs before the old one ends"
        found.append(("downtime", down, _listed(self.downtime) or hint))
        return found

    @property
    def month(self) -> str:
        """What the plan saves in a month, in words; empty where prices have no unit."""
        if not self.unit.endswith("/h") or self.saving == 0:
            return ""
        saved = number(round(self.change.saved_a_month))
        return f", {saved} {self.unit.removesuffix('/h')} a month"

    @property
    def buy(self) -> str:
        """What to buy, in words; empty where nothing is."""
        groups = by_machine(self.problem, self.change.buy)
        return ", ".join(f"{count} x {kind} in {place}" for kind, place, _, count in groups)

    def gap(self) -> str:
        """Return how much cheaper a plan could be, in a sentence."""
        if not self.front.bounds:
            return "How much cheaper a plan could be is not known."
        least = min(bound[0] for bound in self.front.bounds)
        unit = f" {self.unit}" if self.unit else ""
        if self.after <= least:
            return "No plan is cheaper: that is proven."
        return (
            f"No plan costs less than {number(least)}{unit}: this one is at most "
            f"{number(self.after - least)}{unit} above what is possible."
        )


def approve(
    front: Front, problem: Problem, index: int | None = None, origin: Origin | None = None
) -> Approval:
    """Return what a plan of a rolling update does, for those who approve it.

    Parameters
    ----------
    front : Front
    problem : Problem
    index : int, optional
        The point; the knee by default.
    origin : Origin, optional

    Raises
    ------
    UnsupportedError
        The problem is not rolling-update.
    UsageError
        The front has no points.
    """
    from placeopt.rolling_update.instance import RollingUpdate

    if not isinstance(problem, RollingUpdate):
        raise UnsupportedError("approvals are of rolling-update plans only; leave --format out")
    if not front.points:
        raise UsageError("the front has no points: there is nothing to approve")
    chosen = front.pick() if index is None else front.points[index]
    return Approval(problem, chosen.plan, front, origin)


def _requests(now: Sequence[int | None], new: Sequence[int | None]) -> tuple[str, str, str, str]:
    """Return cpu now and then, memory now and then, in words."""
    found = []
    for k, show in enumerate((_millicores, _mebibytes)):
        then = now[k] if new[k] is None else new[k]
        found += ["none" if amount is None else show(amount) for amount in (now[k], then)]
    return found[0], found[1], found[2], found[3]


def _millicores(amount: int) -> str:
    return f"{amount}m"


def _mebibytes(amount: int) -> str:
    return f"{number(amount / 2**20)} MiB"


def _times(count: Counter[str]) -> list[str]:
    return [f"{name} x {n}" if n > 1 else name for name, n in count.most_common()]


def _counts(places: Sequence[Any]) -> list[int]:
    return sorted(Counter(places).values(), reverse=True)


def _listed(texts: Sequence[str], most: int = _MAX_LISTED) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _rests_on(approval: Approval) -> list[tuple[str, list[str]]]:
    """Return what the plan rests on: (heading, sentences)."""
    found = []
    for topic, heading in _TOPICS.items():
        told = [
            f"{note.text}: {note.count} ({_listed(list(note.subjects), 4)})"
            if note.subjects
            else note.text
            for note in approval.notes
            if note.topic == topic
        ]
        if told:
            found.append((heading, told))
    return found


def approval_html(approval: Approval) -> str:
    """Return what an approver reads, as HTML."""
    told = [f"Buy first: {approval.buy}."] if approval.buy else []
    told += [f"Freed: {_listed(approval.freed)}."] if approval.freed else []
    told += [f"Newly used: {_listed(approval.opened)}."] if approval.opened else []
    html = paragraphs([*told, approval.gap()])
    rows = [(name, count, what) for name, count, what in approval.leaving]
    if rows:
        html += table("What leaves which node", ("node", "pods out", "workloads"), rows)
    places = [
        (
            w.name,
            w.replicas,
            " + ".join(map(str, w.nodes_before[:8])),
            " + ".join(map(str, w.nodes[:8])),
            " + ".join(map(str, w.zones[:8])),
            Mark("one node", "warn") if len(w.nodes) == 1 else "",
        )
        for w in approval.workloads
    ]
    if places:
        columns = ("workload", "replicas", "per node now", "per node after", "per zone after", "")
        html += table("Replicas per node and zone", columns, places, more="workloads")
    if approval.new_requests:
        html += table("New requests of containers", _REQUESTS, approval.new_requests)
    html += details(f"Steps, in order ({len(approval.steps):,})", _steps_table(approval))
    loads = [(name, Bar(before), Bar(after)) for name, before, after in approval.headroom]
    html += table("In use, of the nodes in use", ("resource", "now", "after"), loads)
    if rests := _rests_on(approval):
        html += "<h3>What the plan rests on</h3>"
        for heading, sentences in rests:
            html += paragraphs([f"{heading}:"]) + bullets(sentences)
    return html


def _steps_table(approval: Approval) -> str:
    """Return the steps by workloads; those who make them find the pods in the script."""
    rows: list[tuple[Cell, ...]] = [
        (str(k + 1), what, Mark(action, tone), source, target)
        for k, (what, action, tone, source, target) in enumerate(approval.journeys())
    ]
    columns = ("step", "workload", "what", "from", "to")
    return table("Steps by workload", columns, rows, most=_MAX_STEPS, more="steps")


def markdown(approval: Approval, title: str) -> str:
    """Return what an approver reads, as markdown for a pull request."""
    lines = [f"## {_plain(title)}", ""]
    lines += [
        f"* **{_plain(name)}: {_plain(figure)}**" + (f" ({_plain(hint)})" if hint else "")
        for name, figure, hint in approval.tiles()
    ]
    lines += [f"* {_plain(approval.gap())}"]
    if approval.survival:
        lines += [f"* Survives the loss of any one node: {_plain(approval.survival)}"]
    for violation in approval.verdict.violations[:8]:
        lines.append(f"* **The plan breaks the instance:** {_plain(violation.message)}")
    lines += [f"* Buy first: {_plain(approval.buy)}"] if approval.buy else []
    lines += [f"* Freed: {_plain(_listed(approval.freed))}"] if approval.freed else []
    lines += [f"* Newly used: {_plain(_listed(approval.opened))}"] if approval.opened else []
    if approval.leaving:
        lines += ["", "| node | pods out | workloads |", "|---|---|---|"]
        lines += [f"| {_plain(n)} | {c} | {_plain(what)} |" for n, c, what in approval.leaving[:40]]
    crowded = [w for w in approval.workloads if len(w.nodes) < len(w.nodes_before)]
    if crowded:
        lines += ["", "| workload | replicas | per node now | after | per zone after |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {_plain(w.name)} | {w.replicas} | "
            + " | ".join(" + ".join(map(str, p[:8])) for p in (w.nodes_before, w.nodes, w.zones))
            + " |"
            for w in crowded[:40]
        ]
    if rows := approval.new_requests[:40]:
        lines += ["", f"| {' | '.join(_REQUESTS)} |", "|---|---|---|---|---|---|"]
        lines += [f"| {' | '.join(map(_plain, row))} |" for row in rows]
    shares = [f"{n} {b:.0%} → {c:.0%}" for n, b, c in approval.headroom]
    lines += ["", f"In use, of the nodes in use: {', '.join(map(_plain, shares))}."]
    for heading, sentences in _rests_on(approval):
        lines += ["", f"<details><summary>{heading}</summary>", ""]
        lines += [f"* {_plain(text)}" for text in sentences]
        lines += ["", "</details>"]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return text that markdown shows as it is, on one line."""
    shown = escape(text)
    return "".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in shown)
