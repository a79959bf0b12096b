"""The answer of ``placeopt consolidate`` as a document, format ``placeopt/consolidation@1``.

A node that stays gets the first reason that applies: something keeps it whatever runs there; its
pods are pinned, by cause and owner; a plan without some rule would free it; its pods have no room
on the other nodes. Where none applies, the reason is the largest saving that better plans could
add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from placeopt.core.fronts.words import number
from placeopt.core.problem import Record
from placeopt.kubernetes.approval import Approval
from placeopt.kubernetes.consolidate.lifts import LEAST_SAVING, Lifted, causes, subject_of
from placeopt.kubernetes.consolidate.situation import NODES, Situation
from placeopt.kubernetes.consolidate.wishes import TYPES
from placeopt.kubernetes.manifests import latest_stated
from placeopt.kubernetes.origin import OriginNote
from placeopt.rolling_update.views import HOURS_OF_A_MONTH

FORMAT: Literal["placeopt/consolidation@1"] = "placeopt/consolidation@1"
#: Why a node stays that a longer plan frees.
FEWER = "a plan without it moves more pods, or saves less for each, than the limits allow"


class LiftRecord(Record):
    """Something that may be lifted, and what it saves alone."""

    change: str
    """What to do."""
    cause: str
    """Why pods stay now."""
    subject: str
    """Whose pods: a workload, a node, a namespace, a taint."""
    pods: int
    """How many pods it holds."""
    saves: float | None
    """What it saves in a month, in the unit of the costs. Null: not computed."""
    between: tuple[float, float] | None = None
    """What the cheapest plans differ by, at least and at most. Absent or null: that is proven."""
    frees: tuple[str, ...] = ()
    """Nodes that stay as it is, and are freed after it."""


class ReasonRecord(Record):
    """A reason why a node stays."""

    text: str
    """What holds the node."""
    subject: str = ""
    """Whose pods. Empty: not about one workload."""
    pods: int = 0
    """How many of them are on the node. 0: not about pods."""
    lifting_saves: float | None = None
    """What lifting it alone saves in a month. Absent or null: cannot be lifted, or not computed."""
    lifting_between: tuple[float, float] | None = None
    """As `between` of the lift."""


class NodeRecord(Record):
    """A node that is still there at the end, and why."""

    name: str
    machine_type: str
    zone: str
    cost: float
    """What it costs in a month, in the unit of the costs."""
    pods: int
    """Pods at the end, without those that come with every node."""
    reasons: tuple[ReasonRecord, ...] = Field(min_length=1)


class StoppingRecord(Record):
    """The cheapest plan that stops pods on the way."""

    saves: float
    """What it saves in a month besides the plan that stops none."""
    stops: int
    """Pods that it stops before their new copy runs."""
    breaks: tuple[str, ...] = ()
    """Each PodDisruptionBudget that it breaks, in a sentence."""


class CostRecord(Record):
    """What is paid in a month for some pods: their parts of their nodes."""

    name: str
    now: float
    after: float


class MoveRecord(Record):
    """A pod that runs on another node at the end."""

    pod: str
    node: str
    """Where it runs now."""
    to: str


class StageRecord(Record):
    """A stage of the plan: it may end there."""

    steps: int
    """Steps that are made by then."""
    node: str
    """Node that is empty then."""
    saves: float
    """What is saved in a month once it is deleted, with those before it."""


class ConsolidationAnswer(Record):
    """What a cluster costs now, the cheapest plan, why the nodes that stay are still there."""

    format: Literal["placeopt/consolidation@1"] = FORMAT
    unit: str
    """Unit of all costs and savings: USD a month, or nodes where no price is known."""
    name: str
    """Name of the cluster."""
    taken: str = ""
    """Latest time that the files state: they were taken then or later. Empty: they state none."""
    cost_now: float
    cost_after: float
    at_most: float
    """Largest saving that a better plan could add: a proven bound."""
    nodes_now: int
    nodes_after: int
    pods: int
    """Pods that are planned: those that come with their node, as of DaemonSets, are not."""
    with_nodes: int = 0
    """Pods that come with their node."""
    by: str = "namespace"
    """What `costs` are by: namespace, or a label of pods."""
    costs: tuple[CostRecord, ...] = ()
    """What is paid for whom, the dearest first. Empty: no prices are known."""
    moves: int
    """Pods that run on another node at the end."""
    starts: int
    """New copies that start."""
    stops: int
    """Pods that end before their new copy runs."""
    breaks: tuple[str, ...] = ()
    """What the plan breaks: PodDisruptionBudgets, or rules where no plan keeps all."""
    gone: tuple[str, ...] = ()
    """Nodes to delete at the end, in the order in which they become empty."""
    days_to_pay: float | None = None
    """Days after which the plan has saved what its restarts cost. Absent or null: no cost is known,
    or the plan saves nothing."""
    removes: str = ""
    """The one node that was asked for; empty: the whole cluster was."""
    pods_move: tuple[MoveRecord, ...] = ()
    """Where the pods of that node go, and those that make room for them."""
    stages: tuple[StageRecord, ...] = ()
    """What the first steps save: a stage for each of these nodes."""
    idle: tuple[str, ...] = ()
    """Those of them that host nothing already."""
    together: tuple[str, ...] = ()
    """Workloads of which all replicas end on one node, or in one zone, and are not so now."""
    bought: tuple[str, ...] = ()
    """Nodes to buy first."""
    unpriced: tuple[str, ...] = ()
    """Nodes of which no price is known: they count nothing."""
    if_stopping: StoppingRecord | None = None
    """Absent or null: stopping pods saves nothing more."""
    nodes: tuple[NodeRecord, ...] = ()
    """The nodes that stay, the dearest first."""
    lifts: tuple[LiftRecord, ...] = ()
    """What may be lifted, what saves most first; what was not computed last."""
    notes: tuple[OriginNote, ...] = ()
    """What the import assumed, pinned, left out and could not say."""

    @property
    def saving(self) -> float:
        """What the plan saves in a month."""
        return self.cost_now - self.cost_after

    def paying(self, restart: float) -> ConsolidationAnswer:
        """Return the answer that knows what a restart costs, in USD."""
        if self.saving <= 0 or self.unit == NODES:
            return self
        days = self.starts * restart / (self.saving * 24 / HOURS_OF_A_MONTH)
        return self.model_copy(update={"days_to_pay": round(days, 2)})


def answer(
    base: Situation,
    nodes: Sequence[NodeRecord],
    lifts: Sequence[Lifted],
    stopping: Situation | None = None,
    *,
    name: str = "cluster",
    by: str = "",
) -> ConsolidationAnswer:
    """Return the answer.

    Parameters
    ----------
    base : Situation
        The cluster and its plan.
    nodes : sequence of NodeRecord
    lifts : sequence of Lifted
    stopping : Situation, optional
        The plan that may stop pods.
    name : str
        Of the cluster.
    by : str
        A label of pods by whose values costs are told; by namespace where it is empty.
    """
    cluster = base.imported.cluster
    broken = [violation.message for violation in base.verdict.violations]
    return ConsolidationAnswer(
        unit=base.unit,
        name=name,
        taken=latest_stated(place for place, _ in cluster.objects.documents),
        with_nodes=sum(unit.node is not None and bool(unit.bound) for unit in cluster.units),
        by=by or "namespace",
        costs=tuple(
            CostRecord(name=row.name, now=_cents(row.now), after=_cents(row.after))
            for row in _approval(base).costs(by)
        ),
        cost_now=_cents(base.cost_now),
        cost_after=_cents(base.cost),
        at_most=_cents(_at_most(base)),
        nodes_now=len(base.there),
        nodes_after=len(base.staying) + len(base.bought),
        pods=len(base.final),
        moves=len(_approval(base).moved),
        starts=int(base.verdict.values[1]),
        stops=_stops(base),
        breaks=(*broken, *_approval(base).broken_budgets),
        gone=tuple(base.gone),
        removes=base.imported.options.only,
        pods_move=_moves(base) if base.imported.options.only else (),
        stages=tuple(
            StageRecord(steps=steps, node=node, saves=_cents(base.saved_by(steps)))
            for node, steps in base.stages
        ),
        idle=tuple(base.idle),
        together=tuple(
            f"{one.name} ({one.falls})"
            for one in _approval(base).workloads
            if one.falls in ("one node", "one zone")
        ),
        bought=tuple(base.bought),
        unpriced=tuple(base.unpriced),
        if_stopping=None if stopping is None else _stopping(base, stopping),
        nodes=tuple(nodes),
        lifts=tuple(map(_lift, sorted(lifts, key=lambda one: -_known(one.saving)))),
        notes=base.imported.origin.notes,
    )


def _at_most(base: Situation) -> float:
    """Return the largest saving that a better plan could add.

    No plan looks at a node that is left alone: nothing is proven of it.
    """
    only = base.imported.options.only
    return base.prices[only] if only in base.unremovable else base.at_most


def _moves(base: Situation) -> tuple[MoveRecord, ...]:
    a, pods = base.problem.arrays, ["/".join(pod) for pod in base.owners]
    ends = zip(pods, a.home.tolist(), base.final.tolist(), strict=True)
    moved = [(pod, now, end) for pod, now, end in ends if now != end and a.waiting != now]
    return tuple(
        MoveRecord(pod=pod, node=a.node_names[now], to=a.node_names[end])
        for pod, now, end in moved
        if end >= 0
    )


def _cents(amount: float) -> float:
    return round(amount, 2)


def _known(saving: float | None) -> float:
    return -1.0 if saving is None else saving


def _lift(one: Lifted) -> LiftRecord:
    return LiftRecord(
        change=one.lift.words,
        cause=one.lift.cause,
        subject=one.lift.subject,
        pods=len(one.lift.pods),
        saves=None if one.saving is None else _cents(one.saving),
        between=_between(one),
        frees=tuple(one.frees),
    )


def _between(one: Lifted) -> tuple[float, float] | None:
    """Return what a saving that is not proven lies between; None where it is, or is not known."""
    if one.between is None:
        return None
    least, most = map(_cents, one.between)
    return (least, most) if least < most else None


def _stopping(base: Situation, other: Situation) -> StoppingRecord | None:
    saved = base.cost - other.cost
    if saved < LEAST_SAVING:
        return None
    broken = tuple(_approval(other).broken_budgets)
    return StoppingRecord(saves=_cents(saved), stops=_stops(other), breaks=broken)


def _stops(one: Situation) -> int:
    return int(one.verdict.values[2])


def _approval(one: Situation) -> Approval:
    return Approval(one.problem, one.plan, one.front, one.imported.origin)


# -- why nodes stay --------------------------------------------------------------------------------


def why_nodes_stay(
    base: Situation, lifts: Sequence[Lifted], part: Situation | None = None
) -> list[NodeRecord]:
    """Return each node that stays, with its reasons; the dearest first.

    `part` of the plan may be what is to be carried out: then other nodes stay, too.
    """
    part, asked = part or base, base.imported.options.only
    holding = [one for one in lifts if one.lift.cause != TYPES]  # some type is always better
    known, room = (_pinned(base, lifts), _ruled(holding)), _Room(base)
    half = _half(base, holding)
    pods = Counter(base.problem.arrays.node_names[n] for n in base.final[base.final >= 0].tolist())
    results = []
    for name in [name for name in part.staying if asked in ("", name)]:
        node = base.imported.cluster.objects.nodes[name]
        if name in base.unremovable:
            reasons = [ReasonRecord(text=base.unremovable[name])]
        elif base.due(name) == 0:
            reasons = [ReasonRecord(text="paid for already: nothing is saved without it")]
        elif name in base.gone:
            reasons = [ReasonRecord(text=FEWER)]
        else:
            reasons = next((why[name] for why in known if name in why), [])
            reasons = reasons or room.lacking(name) or half.get(name, []) or [room.unproven]
        results.append(
            NodeRecord(
                name=name,
                machine_type=node.instance_type or "",
                zone=node.zone or node.region or "",
                cost=round(base.prices[name], 2),
                pods=pods[name],
                reasons=tuple(reasons),
            )
        )
    return sorted(results, key=lambda why: (-why.cost, why.name))


def _pinned(base: Situation, lifts: Sequence[Lifted]) -> dict[str, list[ReasonRecord]]:
    """Return the reasons of nodes with pods that may not move, those of most pods first."""
    why = causes(base)
    lift = {(one.lift.cause, pod): one for one in lifts for pod in one.lift.pods}
    count: Counter[tuple[str, str, str, tuple[str, str] | None]] = Counter()
    of = {one.lift.key: one for one in lifts}
    for unit in base.imported.cluster.site.units:
        pod = (unit.namespace, unit.name)
        for cause in why.get(pod, ()):
            one = lift.get((cause, pod))
            key = None if one is None else one.lift.key
            count[unit.node or "", cause, subject_of(unit), key] += 1
    results: dict[str, list[ReasonRecord]] = {}
    for (node, text, subject, key), pods in count.most_common():
        one = None if key is None else of[key]
        results.setdefault(node, []).append(_reason(text, subject, pods, one))
    return results


def _reason(
    text: str, subject: str = "", pods: int = 0, lift: Lifted | None = None
) -> ReasonRecord:
    if lift is None or lift.saving is None:
        return ReasonRecord(text=text, subject=subject, pods=pods)
    saved, between = _cents(lift.saving), _between(lift)
    return ReasonRecord(
        text=text, subject=subject, pods=pods, lifting_saves=saved, lifting_between=between
    )


def _ruled(lifts: Sequence[Lifted]) -> dict[str, list[ReasonRecord]]:
    """Return the reasons of nodes that a plan frees once a rule is lifted."""
    results: dict[str, list[ReasonRecord]] = {}
    for one in sorted(lifts, key=lambda one: -(one.saving or 0.0)):
        for name in one.frees:
            reason = _reason(one.lift.reason, one.lift.subject, 0, one)
            results.setdefault(name, []).append(reason)
    return results


def _half(base: Situation, lifts: Sequence[Lifted]) -> dict[str, list[ReasonRecord]]:
    """Return the reasons of nodes with pods of a rule that, once lifted, frees other nodes."""
    at = {
        pod: base.problem.arrays.node_names[n]
        for pod, n in zip(base.owners, base.final.tolist(), strict=True)
        if n >= 0
    }
    results: dict[str, list[ReasonRecord]] = {}
    for one in lifts:
        if one.frees:
            count = Counter(at[pod] for pod in one.lift.pods if pod in at)
            text = f"{one.lift.reason}; without it other nodes are enough"
            for name, pods in count.items():
                reason = _reason(text, one.lift.subject, pods, one)
                results.setdefault(name, []).append(reason)
    return results


class _Room:
    """The room that is left on the nodes that stay."""

    def __init__(self, base: Situation):
        self.base, a = base, base.problem.arrays
        there = base.final >= 0
        started = np.zeros(len(there), dtype=bool)
        started[[m for m, n in base.steps if n >= 0]] = True
        self.size = np.where(started[:, None], a.new, a.old)
        load = np.zeros_like(a.capacity)
        np.add.at(load, base.final[there], self.size[there])
        used = np.bincount(base.final[there], minlength=len(load)) > 0
        self.open = used & ~a.shut
        self.free = np.where(self.open[:, None], np.maximum(0, a.capacity - load), 0)

    def lacking(self, name: str) -> list[ReasonRecord]:
        """Return why what runs on a node does not fit on the others that stay; empty if it may."""
        a = self.base.problem.arrays
        n = a.node_names.index(name)
        own, others = np.flatnonzero(self.base.final == n), np.arange(len(a.price)) != n
        need, free = a.new[own].sum(axis=0), self.free[others].sum(axis=0)
        for r in np.flatnonzero(need > free).tolist():
            asks, left = (_amount(a.resources[r], x[r]) for x in (need, free))
            return [_reason(f"no room: its pods ask for {asks}; the others have {left} free")]
        for m in own[np.argsort(-a.new[own, 0], kind="stable")].tolist():
            fits = (a.new[m] <= self.free).all(axis=1) & self.open & others
            places = fits & a.may_host(m)
            if not places.any():
                pod = "/".join(self.base.owners[m])
                some = "that it may run on " if fits.any() else ""
                asks = ", ".join(_amount(a.resources[r], a.new[m, r]) for r in range(2))
                text = f"no room in one piece: no other node {some}has {asks} free"
                return [_reason(text, pod, 1)]
        return []

    @property
    def unproven(self) -> ReasonRecord:
        """What is left to say: that it is proven, or what better plans save at most."""
        if self.base.at_most <= 0:
            kind = "" if self.base.stops else " that stops nothing"
            return _reason(f"no plan{kind} is cheaper: that is proven")
        saved = self.base.in_words(self.base.at_most)
        return _reason(f"no plan without it was found; better plans save at most {saved} in all")


def _amount(resource: str, amount: float) -> str:
    """Return an amount of a resource, in words."""
    if resource == "cpu":
        return f"{number(amount / 1000)} cpu"
    if resource == "memory":
        return f"{number(round(amount / 1024, 2))} GiB"
    return f"{number(amount)} {resource}"
