"""Why a node that stays is still there: pods that may not move, rules, room, or what is not proven.

A node gets the first reason that applies: something keeps it whatever runs there; its pods are
pinned, by cause and owner; a plan without some rule would free it; its pods have no room on the
other nodes. Where none applies, the reason is the largest saving that better plans could add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.core.fronts.words import number
from placeopt.kubernetes.consolidate.lifts import Lifted, causes, subject_of
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.consolidate.wishes import TYPES


@dataclass(frozen=True)
class Reason:
    """One reason why a node stays.

    Attributes
    ----------
    text : str
        What holds the node.
    subject : str
        Whose pods, where that is known: a workload.
    pods : int
        How many of them are on the node; 0 where it is not about pods.
    lift : tuple of str or None
        The key of the lift that removes the reason.
    """

    text: str
    subject: str = ""
    pods: int = 0
    lift: tuple[str, str] | None = None


@dataclass(frozen=True)
class NodeWhy:
    """A node that stays.

    Attributes
    ----------
    name, machine_type, zone : str
    cost : float
        In the unit of costs.
    pods : int
        Of the instance, at the end.
    reasons : tuple of Reason
        At least one.
    """

    name: str
    machine_type: str
    zone: str
    cost: float
    pods: int
    reasons: tuple[Reason, ...]


def why_nodes_stay(base: Situation, lifts: Sequence[Lifted]) -> list[NodeWhy]:
    """Return each node that stays, with its reasons; the dearest first."""
    holding = [one for one in lifts if one.lift.cause != TYPES]  # some type is always better
    known, room = (_pinned(base, lifts), _ruled(holding)), _Room(base)
    half = _half(base, holding)
    pods = Counter(base.problem.arrays.node_names[n] for n in base.final[base.final >= 0].tolist())
    results = []
    for name in base.staying:
        node = base.imported.cluster.objects.nodes[name]
        if name in base.unremovable:
            reasons = [Reason(base.unremovable[name])]
        elif base.due(name) == 0:
            reasons = [Reason("paid for already: nothing is saved without it")]
        else:
            reasons = next((why[name] for why in known if name in why), [])
            reasons = reasons or room.lacking(name) or half.get(name, []) or [room.unproven]
        kind, zone = node.instance_type or "", node.zone or node.region or ""
        results.append(NodeWhy(name, kind, zone, base.prices[name], pods[name], tuple(reasons)))
    return sorted(results, key=lambda why: (-why.cost, why.name))


def _pinned(base: Situation, lifts: Sequence[Lifted]) -> dict[str, list[Reason]]:
    """Return the reasons of nodes with pods that may not move, those of most pods first."""
    why, keys = causes(base), {}
    for one in lifts:
        keys.update({(one.lift.cause, pod): one.lift.key for pod in one.lift.pods})
    count: Counter[tuple[str, str, str, tuple[str, str] | None]] = Counter()
    for unit in base.imported.cluster.site.units:
        pod = (unit.namespace, unit.name)
        for cause in why.get(pod, ()):
            count[unit.node or "", cause, subject_of(unit), keys.get((cause, pod))] += 1
    results: dict[str, list[Reason]] = {}
    for (node, text, subject, key), pods in count.most_common():
        results.setdefault(node, []).append(Reason(text, subject, pods, key))
    return results


def _ruled(lifts: Sequence[Lifted]) -> dict[str, list[Reason]]:
    """Return the reasons of nodes that a plan frees once a rule is lifted."""
    results: dict[str, list[Reason]] = {}
    for one in sorted(lifts, key=lambda one: -(one.saving or 0.0)):
        for name in one.frees:
            reason = Reason(one.lift.reason, one.lift.subject, 0, one.lift.key)
            results.setdefault(name, []).append(reason)
    return results


def _half(base: Situation, lifts: Sequence[Lifted]) -> dict[str, list[Reason]]:
    """Return the reasons of nodes with pods of a rule that, once lifted, frees other nodes."""
    at = {
        pod: base.problem.arrays.node_names[n]
        for pod, n in zip(base.owners, base.final.tolist(), strict=True)
        if n >= 0
    }
    results: dict[str, list[Reason]] = {}
    for one in lifts:
        if one.frees:
            count = Counter(at[pod] for pod in one.lift.pods if pod in at)
            text = f"{one.lift.reason}; without it other nodes are enough"
            for name, pods in count.items():
                results.setdefault(name, []).append(
                    Reason(text, one.lift.subject, pods, one.lift.key)
                )
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

    def lacking(self, name: str) -> list[Reason]:
        """Return why what runs on a node does not fit on the others that stay; empty if it may."""
        a = self.base.problem.arrays
        n = a.node_names.index(name)
        own, others = np.flatnonzero(self.base.final == n), np.arange(len(a.price)) != n
        need, free = a.new[own].sum(axis=0), self.free[others].sum(axis=0)
        for r in np.flatnonzero(need > free).tolist():
            asks, left = (_amount(a.resources[r], x[r]) for x in (need, free))
            return [Reason(f"no room: its pods ask for {asks}; the others have {left} free")]
        for m in own[np.argsort(-a.new[own, 0], kind="stable")].tolist():
            fits = (a.new[m] <= self.free).all(axis=1) & self.open & others
            places = fits & a.may_host(m)
            if not places.any():
                pod = "/".join(self.base.owners[m])
                some = "that it may run on " if fits.any() else ""
                asks = ", ".join(_amount(a.resources[r], a.new[m, r]) for r in range(2))
                text = f"no room in one piece: no other node {some}has {asks} free"
                return [Reason(text, pod, 1)]
        return []

    @property
    def unproven(self) -> Reason:
        """What is left to say: that it is proven, or what better plans save at most."""
        if self.base.at_most <= 0:
            return Reason("no cheaper set of nodes has room for all pods: that is proven")
        saved = self.base.in_words(self.base.at_most)
        return Reason(f"no plan without it was found; better plans save at most {saved} in all")


def _amount(resource: str, amount: float) -> str:
    """Return an amount of a resource, in words."""
    if resource == "cpu":
        return f"{number(amount / 1000)} cpu"
    if resource == "memory":
        return f"{number(round(amount / 1024, 2))} GiB"
    return f"{number(amount)} {resource}"
