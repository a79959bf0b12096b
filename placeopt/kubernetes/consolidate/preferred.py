"""Plans of the same cost, and parts of one plan: which of them is carried out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.origin import key
from placeopt.rolling_update.order import plan_moves

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
    """Return a plan whose replicas of one workload end in as many zones as swaps and shifts find.

    A pod that moves goes to another node that is in use at the end, or two of them change places.
    """
    tried, found = 0, True
    while found:
        found = False
        for steps in _changed(base):
            other = replace(base, plan=base.problem.plan(steps))
            tried += 1
            if tried > _TRIED:
                return base
            if _is_as_good(other, base) and _zones(other) > _zones(base):
                base, found = other, True
                break
    return base


def _workloads(base: Situation) -> list[int]:
    """Return a number of the workload of every microservice, (M,)."""
    items = base.imported.origin.items
    names = [items[key(name, part)] for part, name in base.problem.arrays.names]
    number: dict[tuple[str, str, str], int] = {}
    return [number.setdefault((i.namespace, i.kind, i.name), len(number)) for i in names]


def _zones(base: Situation) -> int:
    """Return in how many zones workloads are at the end, in all."""
    zone = [node.cluster for node in base.problem.nodes]
    ends = zip(_workloads(base), base.final.tolist(), strict=True)
    return len({(workload, zone[n]) for workload, n in ends if n >= 0})


def _changed(base: Situation) -> Iterator[list[tuple[int, int]]]:
    """Yield the steps with another end of a pod that would bring its workload into a new zone."""
    a, end, steps = base.problem.arrays, base.final, base.steps
    zone, workload = [node.cluster for node in base.problem.nodes], _workloads(base)
    replicas, covered = Counter(workload), set[tuple[int, str]]()
    for m, n in enumerate(end.tolist()):
        if n >= 0:
            covered.add((workload[m], zone[n]))
    last = {m: k for k, (m, _) in enumerate(steps)}
    free = a.capacity.copy()
    for m, n in enumerate(end.tolist()):
        if n >= 0:
            free[n] -= a.new[m] if m in last else a.old[m]
    used = [n for n in np.unique(end[end >= 0]).tolist() if not a.shut[n]]
    movers = [m for m in last if end[m] >= 0 and replicas[workload[m]] > 1]
    for m in movers:
        for n in used:
            if (workload[m], zone[n]) in covered or not a.may_host(m)[n]:
                continue
            if (a.new[m] <= free[n]).all():
                yield _ending(steps, last, {m: n})
            for other in last:
                gives = end[other] == n and (a.new[m] <= free[n] + a.new[other]).all()
                if gives and (a.new[other] <= free[end[m]] + a.new[m]).all():
                    yield _ending(steps, last, {m: n, other: int(end[m])})


def _ending(
    steps: list[tuple[int, int]], last: dict[int, int], ends: dict[int, int]
) -> list[tuple[int, int]]:
    """Return the steps with other ends of some microservices."""
    results = list(steps)
    for m, n in ends.items():
        results[last[m]] = (m, n)
    return results
