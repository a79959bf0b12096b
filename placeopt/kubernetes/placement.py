"""Where the default scheduler would start replicas that do not run yet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.core.errors import InfeasibleInstanceError
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.instance import update_document
from placeopt.kubernetes.notes import note, recorded
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.replicas import Replica
from placeopt.rolling_update import rules
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.rules import APART

#: Replicas without room that a message names.
_NAMED = 20


def place(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Return a cluster whose replicas all have a node, as the default scheduler would start them.

    That is the node where cpu and memory are least in use afterwards, of those that room, taints
    and the rules between pods allow. ``--unplaceable leave-out`` leaves out those without one.

    Raises
    ------
    InfeasibleInstanceError
        Names the replicas that have no room.
    """
    here = cluster.site.units
    if all(unit.node is not None for unit in here):
        return cluster
    if not cluster.site.nodes:
        raise InfeasibleInstanceError(["there are no nodes to place on"])
    arrays, number = _arrays(cluster, options)
    free, placed, without = _Free(arrays), list[Replica](), list[Replica]()
    for unit in here:
        n = None if unit.node is not None else free.start(number[unit.namespace, unit.name])
        if n is not None:
            placed.append(replace(unit, node=arrays.node_names[n]))
        else:
            (without if unit.node is None else placed).append(unit)
    _require_placed(options, without, free, number)
    text = (
        "replicas of manifests run where the default scheduler would start them: "
        "on the node least in use"
    )
    count = sum(unit.node is None for unit in here) - len(without)
    note("assumption", text, f"{count} replicas")
    return cluster.with_replicas(tuple(placed))


def leave_out_unplaceable(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Return a cluster without the waiting replicas that no node could run.

    That is even beside what stays alone. With ``--unplaceable leave-out`` those are left out, too,
    that find no place beside what stays and the other ones that wait, the largest first.

    Raises
    ------
    InfeasibleInstanceError
        There are some, and ``--unplaceable leave-out`` is not given.
    """
    here = cluster.site.units
    waiting = [u for u in here if u.node is None]
    if not waiting:
        return cluster
    arrays, number = _arrays(cluster, options)
    numbers = {id(u): number[u.namespace, u.name] for u in waiting}
    places = _Places(arrays)
    without = [u for u in waiting if not places.of(numbers[id(u)]).any()]
    _require_placed(options, without, _Free(arrays), number)
    gone = {id(unit) for unit in without}
    if options.leave_out:
        left = [u for u in waiting if id(u) not in gone]
        for unit in sorted(left, key=lambda u: -u.size.cpu):
            if not places.take(numbers[id(unit)]):
                text = "replicas that find no place beside what stays and others that wait"
                note("left-out", text, unit.label)
                gone.add(id(unit))
    return cluster.with_replicas(tuple(u for u in here if id(u) not in gone))


class _Places:
    """Where replicas could start if only what stays ran: more copies end nothing that keeps away.

    Company, and where others are, may change on the way; so neither is asked for.
    """

    def __init__(self, arrays: UpdateArrays):
        self.a = a = arrays
        self.free = a.capacity - a.load_of(a.stuck, a.new)
        self.used = a.hosting(a.stuck)
        self.counts = rules.counted(a.packed_rules, np.where(a.stuck, a.home, -1))

    def of(self, m: int) -> np.ndarray:
        """Return on which nodes microservice m has room, and nothing keeps it away, bool (N,)."""
        a = self.a
        hosts: np.ndarray = a.may_host(m) & ((self.free >= a.new[m]) | (a.new[m] == 0)).all(axis=1)
        if a.limits.any:
            hosts &= a.limits.open_to(self.used)
        first, last = a.rules.check_first[m : m + 2]
        for kind, c, bound, _ in a.rules.checks[first:last].tolist():
            if kind == APART:
                domain, begin = a.rules.domain[c], a.rules.first[c]
                hosts &= (domain < 0) | (self.counts[begin + np.maximum(domain, 0)] <= bound)
        return hosts

    def take(self, m: int) -> bool:
        """Let microservice m start where least is left; return whether there is a place."""
        choice = np.flatnonzero(self.of(m))
        if len(choice) == 0:
            return False
        scale = np.maximum(self.a.capacity[choice, :2], 1)
        n = int(choice[(self.free[choice, :2] / scale).sum(axis=1).argmin()])
        self.free[n] -= self.a.new[m]
        self.used[n] = True
        rules.tally(self.a.packed_rules, self.counts, m, n, 1)
        return True


def _arrays(
    cluster: ReadCluster, options: ImportOptions
) -> tuple[UpdateArrays, dict[tuple[str, str], int]]:
    """Return a cluster as arrays, and numbers of microservices by namespace and name."""
    with recorded():  # what this document says is said again later
        document, _ = update_document(cluster, options, dict.fromkeys(cluster.site.nodes, 1.0))
    arrays = RollingUpdate.from_document(document).arrays
    number = {
        (application.removesuffix(" (stays)"), name): m
        for m, (application, name) in enumerate(arrays.names)
    }
    return arrays, number


def _require_placed(
    options: ImportOptions, without: list[Replica], free: _Free, number: dict[tuple[str, str], int]
) -> None:
    """Note that replicas without a node are left out, or raise where that is not asked for."""
    if without and not options.leave_out:
        raise InfeasibleInstanceError(_reasons(without, free, number))
    for unit in without:
        note("left-out", "replicas that no node has room for", unit.label)


class _Free:
    """What is free on the nodes, and what the rules count, as replicas start."""

    def __init__(self, arrays: UpdateArrays):
        self.a = arrays
        where = np.where(arrays.home == arrays.waiting, -1, arrays.home)
        self.counts = rules.counted(arrays.packed_rules, where)
        self.free = arrays.capacity - arrays.initial_load
        self.used = np.asarray(arrays.initial_load.any(axis=1))
        self.scale = np.maximum(arrays.capacity[:, :2], 1)

    def start(self, m: int) -> int | None:
        """Start microservice m on the node least in use afterwards; return it, None for none."""
        a = self.a
        room = a.may_host(m) & ((self.free >= a.new[m]) | (a.new[m] == 0)).all(axis=1)
        if a.limits.any:
            room &= a.limits.open_to(self.used)
        choice = np.flatnonzero(room)
        left = ((self.free[choice, :2] - a.new[m, :2]) / self.scale[choice]).sum(axis=1)
        for n in choice[np.argsort(-left, kind="stable")].tolist():
            if rules.may_start(a.packed_rules, self.counts, m, n):
                self.free[n] -= a.new[m]
                self.used[n] = True
                rules.tally(a.packed_rules, self.counts, m, n, 1)
                return int(n)
        return None


def _reasons(without: list[Replica], free: _Free, number: dict[tuple[str, str], int]) -> list[str]:
    """Return why replicas have no node, each by its name."""
    a, result = free.a, []
    for unit in without[:_NAMED]:
        m = number[unit.namespace, unit.name]
        amounts = ", ".join(f"{x} {r}" for r, x in zip(a.resources, a.new[m].tolist(), strict=True))
        legal = rules.is_allowed
        allowed = [n for n in range(len(a.price)) if legal(a.packed_rules, m, n) and not a.drain[n]]
        why = "has the labels and tolerated taints that suit"
        if allowed:
            fits = ((free.free[allowed] >= a.new[m]) | (a.new[m] == 0)).all(axis=1)
            why = "has room for"
            if fits.any():
                legal_to_buy = not a.limits.any or a.limits.open_to(free.used)[allowed][fits].any()
                whose = "its rules about other pods" if legal_to_buy else "limits of nodes to buy"
                why = f"has, by {whose}, a place for"
        result.append(f"no node {why} {unit.label} ({amounts})")
    if len(without) > _NAMED:
        result.append(f"and {len(without) - _NAMED} more (--unplaceable leave-out leaves them out)")
    return result
