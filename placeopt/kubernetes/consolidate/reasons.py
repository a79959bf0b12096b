"""Why a node that stays is still there: pods that may not move, rules, room, or what is not proven.

A node gets the first reason that applies: something keeps it whatever runs there; its pods are
pinned, by cause and owner; a plan without some rule would free it; its pods have no room on the
other nodes. Where none applies, the reason is the largest saving that better plans could add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.core.fronts.words import number
from placeopt.kubernetes.consolidate.answer import NodeRecord, ReasonRecord
from placeopt.kubernetes.consolidate.lifts import Lifted, causes, subject_of
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.consolidate.wishes import TYPES


def why_nodes_stay(base: Situation, lifts: Sequence[Lifted]) -> list[NodeRecord]:
    """Return each node that stays, with its reasons; the dearest first."""
    holding = [one for one in lifts if one.lift.cause != TYPES]  # some type is always better
    known, room = (_pinned(base, lifts), _ruled(holding)), _Room(base)
    half = _half(base, holding)
    pods = Counter(base.problem.arrays.node_names[n] for n in base.final[base.final >= 0].tolist())
    results = []
    for name in base.staying:
        node = base.imported.cluster.objects.nodes[name]
        if name in base.unremovable:
            reasons = [ReasonRecord(text=base.unremovable[name])]
        elif base.due(name) == 0:
            reasons = [ReasonRecord(text="paid for already: nothing is saved without it")]
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
    count: Counter[tuple[str, str, str, float | None]] = Counter()
    for unit in base.imported.cluster.site.units:
        pod = (unit.namespace, unit.name)
        for cause in why.get(pod, ()):
            one = lift.get((cause, pod))
            saves = None if one is None else one.saving
            count[unit.node or "", cause, subject_of(unit), saves] += 1
    results: dict[str, list[ReasonRecord]] = {}
    for (node, text, subject, saves), pods in count.most_common():
        results.setdefault(node, []).append(_reason(text, subject, pods, saves))
    return results


def _reason(
    text: str, subject: str = "", pods: int = 0, saves: float | None = None
) -> ReasonRecord:
    saved = None if saves is None else round(saves, 2)
    return ReasonRecord(text=text, subject=subject, pods=pods, lifting_saves=saved)


def _ruled(lifts: Sequence[Lifted]) -> dict[str, list[ReasonRecord]]:
    """Return the reasons of nodes that a plan frees once a rule is lifted."""
    results: dict[str, list[ReasonRecord]] = {}
    for one in sorted(lifts, key=lambda one: -(one.saving or 0.0)):
        for name in one.frees:
            reason = _reason(one.lift.reason, one.lift.subject, 0, one.saving)
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
                reason = _reason(text, one.lift.subject, pods, one.saving)
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
            return _reason("no cheaper set of nodes has room for all pods: that is proven")
        saved = self.base.in_words(self.base.at_most)
        return _reason(f"no plan without it was found; better plans save at most {saved} in all")


def _amount(resource: str, amount: float) -> str:
    """Return an amount of a resource, in words."""
    if resource == "cpu":
        return f"{number(amount / 1000)} cpu"
    if resource == "memory":
        return f"{number(round(amount / 1024, 2))} GiB"
    return f"{number(amount)} {resource}"
