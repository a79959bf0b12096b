"""The answer of ``placeopt consolidate`` as a document, format ``placeopt/consolidation@1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from placeopt.core.problem import Record
from placeopt.kubernetes.approval import Approval
from placeopt.kubernetes.consolidate.lifts import Lifted
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.origin import OriginNote

FORMAT: Literal["placeopt/consolidation@1"] = "placeopt/consolidation@1"
#: Less than this is no saving: prices have nine decimals.
_LEAST = 1e-6


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


class ConsolidationAnswer(Record):
    """What a cluster costs now, the cheapest plan, why the nodes that stay are still there."""

    format: Literal["placeopt/consolidation@1"] = FORMAT
    unit: str
    """Unit of all costs and savings: USD a month, or nodes where no price is known."""
    cost_now: float
    cost_after: float
    at_most: float
    """Largest saving that a better plan could add: a proven bound."""
    nodes_now: int
    nodes_after: int
    pods: int
    """Pods that may be planned."""
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


def answer(
    base: Situation,
    nodes: Sequence[NodeRecord],
    lifts: Sequence[Lifted],
    stopping: Situation | None = None,
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
    """
    broken = [violation.message for violation in base.verdict.violations]
    return ConsolidationAnswer(
        unit=base.unit,
        cost_now=_cents(base.cost_now),
        cost_after=_cents(base.cost),
        at_most=_cents(base.at_most),
        nodes_now=len(base.there),
        nodes_after=len(base.staying) + len(base.bought),
        pods=len(base.final),
        moves=len(_approval(base).moved),
        starts=int(base.verdict.values[1]),
        stops=_stops(base),
        breaks=(*broken, *_approval(base).broken_budgets),
        gone=tuple(base.gone),
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
        frees=tuple(one.frees),
    )


def _stopping(base: Situation, other: Situation) -> StoppingRecord | None:
    saved = base.cost - other.cost
    if saved < _LEAST:
        return None
    broken = tuple(_approval(other).broken_budgets)
    return StoppingRecord(saves=_cents(saved), stops=_stops(other), breaks=broken)


def _stops(one: Situation) -> int:
    return int(one.verdict.values[2])


def _approval(one: Situation) -> Approval:
    return Approval(one.problem, one.plan, one.front, one.imported.origin)
