"""A rolling update for those who approve it: money, nodes, pods, downtime, and what it rests on.

The names are those of the cluster, where the origin of the instance is at hand: namespaces and
workloads, not pods. What an importer made up is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.errors import DocumentError, UnsupportedError, UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan
from placeopt.core.fronts.words import number
from placeopt.core.problem import Problem
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.names import SPOT, lease_of
from placeopt.kubernetes.origin import NodeOrigin, key
from placeopt.plot.blocks import Block, Bullets, Figures, Folded, Sentence, Table, html
from placeopt.plot.blocks import markdown as in_markdown
from placeopt.plot.markup import Bar, Cell, Mark
from placeopt.rolling_update.problem import NO_UNIT
from placeopt.rolling_update.views import HOURS_OF_A_MONTH, by_machine, fleet_change

if TYPE_CHECKING:
    from placeopt.kubernetes.origin import Origin, OriginNote
    from placeopt.rolling_update.problem import RollingUpdate


# -- money -----------------------------------------------------------------------------------------
#
# A node's price is shared by the pods on it: half by their cpu, half by their memory, what is idle
# with them. So the namespaces together pay what the nodes in use cost.

#: The row that takes off what commitments pay.
COVERED = "paid for already (commitments)"


@dataclass(frozen=True)
class SpotUse:
    """Nodes in use, now or at the end, and those of them that are spot.

    Attributes
    ----------
    nodes, spot : int
    interruptions : float or None
        How many spot nodes are taken away in a month, as expected; None where no rate is known.
    unknown : int
        Spot nodes without a rate.
    """

    nodes: int
    spot: int
    interruptions: float | None
    unknown: int

    @property
    def share(self) -> float:
        """The share of spot nodes."""
        return self.spot / self.nodes if self.nodes else 0.0


def spot_use(used: Sequence[str], nodes: Mapping[str, NodeOrigin]) -> SpotUse:
    """Return how many of the nodes in use are spot."""
    spot = [nodes[n] for n in used if n in nodes and lease_of(nodes[n].labels) == SPOT]
    rates = [node.interruptions for node in spot if node.interruptions is not None]
    expected = float(sum(rates)) if rates or not spot else None
    return SpotUse(len(used), len(spot), expected, len(spot) - len(rates))


@dataclass(frozen=True)
class NamespaceCost:
    """What a namespace costs in a month, now and at the end."""

    name: str
    now: float
    after: float

    @property
    def change(self) -> float:
        """How much more it costs at the end; below 0 it costs less."""
        return self.after - self.now


@dataclass(frozen=True)
class Deployed:
    """Where the pods of a rolling update are at one time.

    Attributes
    ----------
    where : array of int, shape (M,)
        Node of each pod, -1 for none.
    size : array, shape (M, >= 2)
        What each pod asks for: cpu and memory first.
    """

    where: np.ndarray
    size: np.ndarray

    def costs(self, prices: np.ndarray, owner: Sequence[str]) -> dict[str, float]:
        """Return owner -> its part of the prices of the nodes in use, shape (N,).

        `owner` says for each pod who pays.
        """
        there = self.where >= 0
        at, parts = self.where[there], np.zeros(int(there.sum()))
        count = np.bincount(at, minlength=len(prices))[at]
        for amount in self.size[there, :2].astype(float).T:
            total = np.bincount(at, amount, minlength=len(prices))[at]
            parts += np.where(total > 0, amount / np.maximum(total, 1e-9), 1 / count) / 2
        results: dict[str, float] = {}
        for m, n, part in zip(np.flatnonzero(there).tolist(), at, parts, strict=True):
            results[owner[m]] = results.get(owner[m], 0.0) + float(part * prices[n])
        return results


def namespace_costs(
    now: Deployed, after: Deployed, owner: Sequence[str], prices: np.ndarray, paid: np.ndarray
) -> list[NamespaceCost]:
    """Return the costs by namespace, the dearest first; the last row is what commitments pay.

    Parameters
    ----------
    now, after : Deployed
    owner : sequence of str
        Namespace of each pod.
    prices, paid : arrays, shape (N,)
        Price of each whole node an hour, and the share of it that a commitment covers.
    """
    sides = [one.costs(prices, owner) for one in (now, after)]
    covered = []
    for one in (now, after):
        used = np.unique(one.where[one.where >= 0])
        covered.append(-float((prices * paid)[used].sum()))
    rows = [
        NamespaceCost(name, *(side.get(name, 0.0) * HOURS_OF_A_MONTH for side in sides))
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    rows.sort(key=lambda row: (-max(row.now, row.after), row.name))
    if any(covered):
        rows.append(NamespaceCost(COVERED, *(part * HOURS_OF_A_MONTH for part in covered)))
    return rows


#: Topics of the notes that approvers read -> heading.
TOPICS_OF_APPROVERS = {
    "assumption": "Assumed",
    "pinned": "Stays where it is",
    "left-out": "Left out",
    "not-expressed": "Not in the model",
}
_MAX_LISTED = 12


@dataclass(frozen=True)
class WorkloadPlaces:
    """Where the replicas of a workload are: per node, the most first, and by zone.

    Attributes
    ----------
    name : str
    replicas : int
        At the end.
    nodes_before, nodes : list of int
    zones_before, zones : dict of str to int
        Zone -> replicas, the most first.
    """

    name: str
    replicas: int
    nodes_before: list[int]
    nodes: list[int]
    zones_before: dict[str, int]
    zones: dict[str, int]

    @property
    def is_changed(self) -> bool:
        """Whether it is spread otherwise at the end."""
        return (self.nodes_before, self.zones_before) != (self.nodes, self.zones)

    @property
    def falls(self) -> str:
        """How redundancy falls, in words; empty where it does not.

        It falls where replicas end in fewer zones or on fewer nodes, or the worst zone or node has
        a larger share of them.
        """
        places = (
            ("zone", list(self.zones_before.values()), list(self.zones.values())),
            ("node", self.nodes_before, self.nodes),
        )
        for what, before, after in places:
            if before and len(after) < len(before):
                few = f"{len(after)} of {len(before)} {what}s"
                return f"one {what}" if len(after) == 1 else few
        for what, before, after in places:
            if before and after and max(after) * sum(before) > max(before) * sum(after):
                return f"{max(after)} of {sum(after)} in one {what}"
        return ""


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
        results = []
        for application, name in self.problem.arrays.names:
            item = None if self.origin is None else self.origin.items.get(key(name, application))
            label = f"{application}/{name}" if item is None else f"{item.namespace}/{item.name}"
            results.append(("" if item is None else item.kind, label))
        return results

    def node_name(self, n: int) -> str:
        """Return the name of a node."""
        return self.problem.arrays.node_names[n]

    def _real(self, n: int) -> bool:
        known = self._node_origin(n) if n >= 0 else None
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
        results: dict[int, Counter[str]] = {}
        for m in self.moved:
            results.setdefault(int(self.home[m]), Counter())[self.owners[m][1]] += 1
        return [
            (self.node_name(n), sum(count.values()), listed(_times(count)))
            for n, count in sorted(results.items(), key=lambda e: (-sum(e[1].values()), e[0]))
        ]

    @cached_property
    def workloads(self) -> list[WorkloadPlaces]:
        """Where replicas are of every workload with several, those first whose redundancy falls."""
        members: dict[str, list[int]] = {}
        for m, (kind, label) in enumerate(self.owners):
            if kind != "Virtual":
                members.setdefault(label, []).append(m)
        zone = [n.cluster for n in self.problem.nodes]
        results = []
        for name, own in members.items():
            ends = [int(n) for n in self.final[own] if n >= 0]
            if len(ends) > 1:
                starts = [int(n) for n in self.home[own] if n >= 0]
                zones = [dict(Counter(zone[n] for n in at).most_common()) for at in (starts, ends)]
                nodes = _counts(starts), _counts(ends)
                results.append(WorkloadPlaces(name, len(ends), *nodes, *zones))
        return sorted(
            results, key=lambda w: (not w.falls, -w.nodes[0] / w.replicas, -w.replicas, w.name)
        )

    @cached_property
    def deployed(self) -> tuple[Deployed, Deployed]:
        """Where the pods are and what they ask for: now, and at the end."""
        a = self.problem.arrays
        started = np.zeros(len(self.home), dtype=bool)
        started[[m for m, n in self.steps if n >= 0]] = True
        real = np.array([self._real(n) for n in range(len(self.problem.nodes))] + [False])
        return (
            Deployed(np.where(real[self.home], self.home, -1), a.old),
            Deployed(
                np.where(real[self.final], self.final, -1),
                np.where(started[:, None], a.new, a.old),
            ),
        )

    @cached_property
    def headroom(self) -> list[tuple[str, float, float]]:
        """For each resource, the share in use of the nodes in use: now, and at the end."""
        a = self.problem.arrays
        shares = []
        for one in self.deployed:
            used, there = np.unique(one.where[one.where >= 0]), one.where >= 0
            room = a.capacity[used].sum(axis=0)
            shares.append(one.size[there].sum(axis=0) / np.maximum(room, 1))
        names = [name.replace("_", " ") for name in a.resources]
        return [(n, float(b), float(c)) for n, b, c in zip(names, *shares, strict=True)]

    @cached_property
    def new_requests(self) -> list[tuple[str, str, str, str, str, str]]:
        """Containers that ask for something else afterwards: cpu and memory, now and then."""
        results: dict[tuple[str, str, str, str, str, str], None] = {}
        started = {m for m, n in self.steps if n >= 0}
        for m, (application, name) in enumerate(self.problem.arrays.names):
            item = None if self.origin is None else self.origin.items.get(key(name, application))
            for c in item.containers if item is not None and m in started else ():
                new = (c.new_cpu_millicores, c.new_memory_bytes)
                if new != (None, None):
                    now = (c.cpu_millicores, c.memory_bytes)
                    results[(self.owners[m][1], c.name, *_requests(now, new))] = None
        return list(results)

    @cached_property
    def broken_budgets(self) -> list[str]:
        """A sentence for each stop that leaves a PodDisruptionBudget too few pods."""
        from placeopt.kubernetes.export.steps import broken_by, steps

        plan = self.problem.plan(self.steps)
        return broken_by(steps(self.problem, plan, self.origin, partly=True), self.origin)

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
        return [note for note in listed if note.topic in TOPICS_OF_APPROVERS]

    # -- money -------------------------------------------------------------------------------------

    @property
    def is_hourly(self) -> bool:
        """Whether prices are in a currency an hour, so that months can be told."""
        return self.unit.endswith("/h")

    @cached_property
    def namespaces(self) -> list[NamespaceCost]:
        """What each namespace costs in a month, now and at the end; none without prices."""
        return self.costs()

    def costs(self, label: str = "") -> list[NamespaceCost]:
        """Return what each namespace costs in a month, or the pods of each value of a label."""
        if not self.is_hourly:
            return []
        nodes = self.problem.nodes
        existing = [self._node_origin(n) for n in range(len(nodes))]
        prices = [
            n.price if k is None or k.price is None else k.price
            for n, k in zip(nodes, existing, strict=True)
        ]
        paid = [0.0 if k is None else k.paid for k in existing]
        names = self.problem.arrays.names
        spaces = [
            owner.partition("/")[0] if kind else application
            for (kind, owner), (application, _) in zip(self.owners, names, strict=True)
        ]
        if label:
            items = {} if self.origin is None else self.origin.items
            known = (items.get(key(name, application)) for application, name in names)
            spaces = [
                f"without {label}" if item is None else item.labels.get(label, f"without {label}")
                for item in known
            ]
        return namespace_costs(*self.deployed, spaces, np.array(prices), np.array(paid))

    @cached_property
    def spot(self) -> tuple[SpotUse, SpotUse]:
        """How many of the nodes in use are spot, now and at the end."""
        nodes = {} if self.origin is None else self.origin.nodes
        before, after = (
            spot_use([self.node_name(n) for n in sorted(self._used(where))], nodes)
            for where in (self.home, self.final)
        )
        return before, after

    def _node_origin(self, n: int) -> NodeOrigin | None:
        return None if self.origin is None else self.origin.nodes.get(self.node_name(n))

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
        results = [("cost of nodes in use", money, f"{share}{month}")]
        results.append(
            ("nodes freed", f"{len(self.freed)}", f"{before} → {after} of {total} in use")
        )
        more = [f"{self.restarted} made anew in place"] if self.restarted else []
        more += [f"{self.started} started that wait now"] if self.started else []
        more += [f"{self.removed} removed"] if self.removed else []
        results.append(("pods that move", f"{len(self.moved)}", ", ".join(more) or "no other"))
        count = len(self.downtime)
        down = f"{count} workload{'' if count == 1 else 's'}" if count else "none"
        hint = "every copy runs before the old one ends"
        results.append(("downtime", down, listed(self.downtime) or hint))
        return results

    @property
    def month(self) -> str:
        """What the plan saves in a month, in words; empty where prices have no unit."""
        if not self.is_hourly or self.saving == 0:
            return ""
        saved = number(round(self.change.saved_a_month))
        return f", {saved} {self.currency} a month"

    @property
    def currency(self) -> str:
        """The unit of prices without the hour, such as USD."""
        return self.unit.removesuffix("/h")

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
    from placeopt.rolling_update.problem import RollingUpdate

    if not isinstance(problem, RollingUpdate):
        raise UnsupportedError("approvals are of rolling-update plans only; leave --format out")
    if not front.points:
        raise UsageError("the front has no points: there is nothing to approve")
    chosen = front.pick() if index is None else front.points[index]
    return Approval(problem, chosen.plan, front, origin)


def _requests(now: Sequence[int | None], new: Sequence[int | None]) -> tuple[str, str, str, str]:
    """Return cpu now and then, memory now and then, in words."""
    then = [a if b is None else b for a, b in zip(now, new, strict=True)]
    cpu, memory = (
        ["none" if amount is None else show(amount) for amount in (now[k], then[k])]
        for k, show in enumerate((_millicores, _mebibytes))
    )
    return cpu[0], cpu[1], memory[0], memory[1]


def _millicores(amount: int) -> str:
    return f"{amount}m"


def _mebibytes(amount: int) -> str:
    return f"{number(amount / 2**20)} MiB"


def _times(count: Counter[str]) -> list[str]:
    return [f"{name} x {n}" if n > 1 else name for name, n in count.most_common()]


def _counts(places: Sequence[Any]) -> list[int]:
    return sorted(Counter(places).values(), reverse=True)


def listed(texts: Sequence[str], most: int = _MAX_LISTED) -> str:
    """Return texts in a row, at most `most` of them, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


# -- pages -----------------------------------------------------------------------------------------


_MAX_STEPS, _MAX_SPACES = 200, 40
_LEAVING, _MONTHS = ("node", "pods out", "workloads"), ("namespace", "now", "after", "change")
_REQUESTS = ("workload", "container", "cpu now", "cpu after", "memory now", "memory after")


class ApprovalPage:
    """An approval as pages and commands take it: a `placeopt.core.spec.Approved`."""

    def __init__(self, approval: Approval):
        self.approval = approval
        self.saving, self.breaks = approval.saving, bool(approval.verdict.violations)

    def tiles(self) -> list[tuple[str, str, str]]:
        """Return large figures: money first."""
        return self.approval.tiles()

    def blocks(self) -> list[Block]:
        """Return what an approver reads below the figures."""
        return blocks(self.approval)

    def html(self) -> str:
        """Return what an approver reads, as HTML."""
        return html(self.blocks())

    def markdown(self, title: str) -> str:
        """Return what an approver reads, as markdown for a pull request."""
        return markdown(self.approval, title)


def approved(
    front: Front, problem: Problem, index: int | None = None, beside: AnyPath | None = None
) -> ApprovalPage:
    """Return what approvers want to know of a plan of a rolling update.

    Parameters
    ----------
    front : Front
    problem : Problem
    index : int, optional
        The point; the knee by default.
    beside : path, optional
        The origin file of the instance.

    Raises
    ------
    UnsupportedError
        The problem is not rolling-update, or the plan does not fit the instance.
    UsageError
        The front has no points.
    DocumentError
        The file is no origin, or that of another instance.
    """
    origin = None if beside is None else origins.read(beside)
    if origin is not None:
        origin.check(problem, str(beside))
    try:
        return ApprovalPage(approve(front, problem, index, origin))
    except DocumentError as error:
        raise UnsupportedError(f"the plan does not fit the instance: {error}") from None


def _spot(approval: Approval) -> list[Sentence]:
    """Return a sentence about spot nodes; none where there are none."""
    before, after = approval.spot
    if not (before.spot or after.spot):
        return []
    return [
        Sentence(
            f"Spot nodes: {before.spot} of {before.nodes} in use now ({before.share:.0%}), "
            f"{after.spot} of {after.nodes} after ({after.share:.0%})"
            f"{_interruptions(before, after)}."
        )
    ]


def _interruptions(before: SpotUse, after: SpotUse) -> str:
    """Return how often spot nodes are expected to be taken away; empty where no rate is known."""
    if before.interruptions is None or after.interruptions is None:
        return ""
    told = (
        f"; expected interruptions a month: {number(round(before.interruptions, 3))} now, "
        f"{number(round(after.interruptions, 3))} after"
    )
    unknown = max(before.unknown, after.unknown)
    return told + (f" (no rate is known for {unknown} of them)" if unknown else "")


def _rests_on(approval: Approval) -> list[tuple[str, list[str]]]:
    """Return what the plan rests on: (heading, sentences)."""
    results = []
    for topic, heading in TOPICS_OF_APPROVERS.items():
        told = [
            f"{note.text}: {note.count} ({listed(list(note.subjects), 4)})"
            if note.subjects
            else note.text
            for note in approval.notes
            if note.topic == topic
        ]
        if told:
            results.append((heading, told))
    return results


def blocks(approval: Approval) -> list[Block]:
    """Return what an approver reads below the figures."""
    told = [Sentence(f"Buy first: {approval.buy}.")] if approval.buy else []
    told += [Sentence(f"Freed: {listed(approval.freed)}.")] if approval.freed else []
    told += [Sentence(f"Newly used: {listed(approval.opened)}.")] if approval.opened else []
    broken = [f"The plan breaks the instance: {v.message}" for v in approval.verdict.violations[:8]]
    told += [Sentence(text, strong=True) for text in (*broken, *approval.broken_budgets[:12])]
    told += [Sentence(approval.gap()), *_spot(approval)]
    if approval.survival:
        told.append(Sentence(f"Survives the loss of any one node: {approval.survival}."))
    result: list[Block] = [*told]
    if approval.namespaces:
        months = _months(approval)
        title = f"{approval.currency} a month by namespace"
        rows = [(name, round(a, 2), round(b, 2), round(c, 2)) for name, a, b, c in months]
        result.append(Table(title, _MONTHS, rows))
    if approval.leaving:
        result.append(Table("What leaves which node", _LEAVING, approval.leaving, "nodes"))
    result += _places_tables(approval)
    if approval.new_requests:
        result.append(Table("New requests of containers", _REQUESTS, approval.new_requests))
    result.append(Folded(f"Steps, in order ({len(approval.steps):,})", [_steps_table(approval)]))
    loads = [(name, Bar(before), Bar(after)) for name, before, after in approval.headroom]
    result.append(Table("In use, of the nodes in use", ("resource", "now", "after"), loads))
    return [*result, *(Bullets(*told) for told in _rests_on(approval))]


def markdown(approval: Approval, title: str) -> str:
    """Return what an approver reads, as markdown for a pull request."""
    return in_markdown([Figures(approval.tiles()), *blocks(approval)], title)


def _places_tables(approval: Approval) -> list[Block]:
    """Return where replicas are, now and after; what does not change is folded away."""
    changed = [w for w in approval.workloads if w.is_changed]
    same = [w for w in approval.workloads if not w.is_changed]
    columns, results = _columns_of_places(approval), list[Block]()
    if changed:
        rows = [_places(approval, w) for w in changed]
        title = f"Replicas per node and {_zone(approval)}"
        results.append(Table(title, columns, rows, "workloads"))
    if same:
        rows = [_places(approval, w) for w in same]
        one = len(same) == 1
        count = f"{len(same):,} workload{'' if one else 's'} of several replicas"
        title = f"{count} {'stays as it is' if one else 'stay as they are'}"
        results.append(Folded(title, [Table("As now", columns, rows, "workloads")]))
    return results


def _zone(approval: Approval) -> str:
    """Return what a cluster of the instance is called: zone, where it was imported."""
    return approval.problem.cluster_word


def _columns_of_places(approval: Approval) -> tuple[str, ...]:
    zones = (f"per {_zone(approval)} now", f"per {_zone(approval)} after")
    several = len(approval.problem.arrays.clusters) > 1
    return (
        "workload",
        "replicas",
        "per node now",
        "per node after",
        *(zones * several),
        "redundancy",
    )


def _places(approval: Approval, w: WorkloadPlaces) -> tuple[Cell, ...]:
    """Return the row of a workload, with a mark where its redundancy falls."""
    several = len(approval.problem.arrays.clusters) > 1
    zones = (_by_zone(w.zones_before), _by_zone(w.zones)) if several else ()
    alone = len(w.nodes) == 1
    mark: Cell = ""
    if w.falls:
        mark = Mark(f"falls: {w.falls}", "bad" if w.falls.startswith("one ") else "warn")
    elif alone:
        mark = Mark("one node", "warn")
    return w.name, w.replicas, _per_node(w.nodes_before), _per_node(w.nodes), *zones, mark


def _per_node(counts: Sequence[int]) -> str:
    return " + ".join(map(str, counts[:8])) + (" + ..." if len(counts) > 8 else "")


def _by_zone(counts: Mapping[str, int]) -> str:
    return listed([f"{zone} {count}" for zone, count in sorted(counts.items())], 4)


def _months(approval: Approval) -> list[tuple[str, float, float, float]]:
    """Return (namespace, now, after, change) a month.

    The rest of many namespaces is one row, and so are those that cost as much as now.
    """
    same = [row for row in approval.namespaces if abs(row.change) < 0.005]
    rows = [row for row in approval.namespaces if abs(row.change) >= 0.005]
    if len(same) < 2:
        rows, same = list(approval.namespaces), []
    if same:
        rows.append(_sum(f"{len(same)} namespaces that cost as much as now", same))
    if len(rows) > _MAX_SPACES:
        rest = rows[_MAX_SPACES - 1 :]
        rows[_MAX_SPACES - 1 :] = [_sum(f"{len(rest)} others", rest)]
    rows.append(_sum("together", approval.namespaces))
    return [(row.name, row.now, row.after, row.change) for row in rows]


def _sum(name: str, rows: Sequence[NamespaceCost]) -> NamespaceCost:
    return NamespaceCost(name, sum(row.now for row in rows), sum(row.after for row in rows))


def _steps_table(approval: Approval) -> Table:
    """Return the steps by workloads; those who make them find the pods in the script."""
    rows: list[tuple[Cell, ...]] = [
        (str(k + 1), what, Mark(action, tone), source, target)
        for k, (what, action, tone, source, target) in enumerate(approval.journeys())
    ]
    columns = ("step", "workload", "what", "from", "to")
    return Table("Steps by workload", columns, rows, "steps", _MAX_STEPS)
