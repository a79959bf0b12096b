"""Plans of the same cost, and parts of one plan: which of them is carried out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import preferred_plan
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.origin import key
from placeopt.rolling_update.order import plan_moves
from placeopt.rolling_update.zones import in_more_zones

#: Plans that are tried to keep replicas in more zones.
_TRIED = 200
#: Orders that are tried of the moves to a deployment.
_ORDERS = 4


def preferred(base: Situation) -> Situation:
    """Return a plan of the same cost and starts whose replicas stay in more zones, if there is one.

    Nodes become empty in the order of what each saves for a pod that leaves it, if rules let them.
    """
    if base.imported.options.only in base.unremovable:  # nothing moves for what stays anyway
        return replace(base, plan={"steps": []})
    if not base.is_legal:
        return base
    return _dearest_first(_in_more_zones(base))


def limited(base: Situation, most: float = math.inf, least: float = 0.0) -> Situation:
    """Return the cluster with a part of its plan.

    Parameters
    ----------
    base : Situation
        The cluster and its cheapest plan.
    most : float
        Pods that may move.
    least : float
        What is to be saved, in the unit of costs, for each pod that moves; also by each node that
        goes.

    Returns
    -------
    Situation
        The part that saves most; the plan that moves nothing where no part keeps both limits.
    """
    if base.moved <= most and not least:
        return base
    names, idle = base.problem.arrays.node_names, set(base.idle)
    low = {names[n] for n, worth in _worth(base).items() if worth < least} - idle
    best = replace(base, plan={"steps": []})
    for plan in (*_parts(base, low), *_beginnings(base)):
        part = replace(base, plan=plan)
        keeps = part.moved <= most and part.saving >= least * part.moved
        keeps = keeps and low.isdisjoint(part.gone)
        if keeps and best.saving < part.saving and part.is_legal:
            best = part
    return _dearest_first(best)


# -- parts of a plan -------------------------------------------------------------------------------


def _worth(base: Situation) -> dict[int, float]:
    """Return what each node that goes saves for a pod that leaves it, what saves most first."""
    a, end = base.problem.arrays, base.final
    number = {name: n for n, name in enumerate(a.node_names)}
    pods = Counter(a.home[(a.home != end) & ~a.removed].tolist())
    worth = {
        number[name]: base.due(name) / max(1, pods[number[name]])
        for name in base.gone
        if name in number
    }
    return dict(sorted(worth.items(), key=lambda one: (-one[1], one[0])))


def _parts(base: Situation, without: Collection[str]) -> Iterator[Plan]:
    """Yield plans that free some of the nodes, the one that frees most last."""
    a, end = base.problem.arrays, base.final
    target = np.where(a.removed | (a.home == a.waiting), end, a.home)
    for n in _worth(base):
        if a.node_names[n] not in without:
            target = np.where(a.home == n, end, target)
            steps = plan_moves(base.problem, target, max_stops=0, tries=_ORDERS).steps
            yield base.problem.plan(steps)


def _beginnings(base: Situation) -> Iterator[Plan]:
    """Yield the first steps of the plan, up to each node that they free."""
    for steps in sorted({steps for _, steps in base.stages}):
        yield base.problem.plan(base.steps[:steps])


def _dearest_first(base: Situation) -> Situation:
    """Return the same moves with the steps of the nodes that save most for a pod first."""
    home, order = base.problem.arrays.home, list(_worth(base))
    last = len(order)
    place = {n: k for k, n in enumerate(order)}
    for others in (last, -1):  # what leaves no node that goes: it may have to make room
        steps = sorted(base.steps, key=lambda step: place.get(int(home[step[0]]), others))
        other = replace(base, plan=base.problem.plan(steps))
        if _is_as_good(other, base):
            return other
    return base


def _is_as_good(other: Situation, base: Situation) -> bool:
    """Whether a plan breaks nothing, and costs, starts and stops no more than another."""
    pairs = zip(other.verdict.values, base.verdict.values, strict=True)
    return other.is_legal and all(new <= old for new, old in pairs)


# -- zones -----------------------------------------------------------------------------------------


def _in_more_zones(base: Situation) -> Situation:
    """Return a plan of the same cost and starts whose replicas end in more zones, if any."""

    def is_as_good(plan: Plan) -> bool:
        return _is_as_good(replace(base, plan=plan), base)

    others = partial(in_more_zones, base.problem, _workloads(base))
    plan, _ = preferred_plan(base.plan, others, is_as_good, _TRIED)
    return base if plan is base.plan else replace(base, plan=plan)


def _workloads(base: Situation) -> list[int]:
    """Return a number of the workload of every microservice, (M,)."""
    items = base.imported.origin.items
    names = [items[key(name, part)] for part, name in base.problem.arrays.names]
    number: dict[tuple[str, str, str], int] = {}
    return [number.setdefault((i.namespace, i.kind, i.name), len(number)) for i in names]
