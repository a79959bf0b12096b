"""A running cluster as a rolling-update instance: pods are microservices, namespaces applications.

What waits has a first node where the default scheduler would start it; other problems ask for it,
too. Compiled rules say where: half a second of loading that is spared where nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.errors import DocumentError, InfeasibleInstanceError
from placeopt.kubernetes.capacity import is_control_plane
from placeopt.kubernetes.cluster import (
    ImportedInstance,
    ReadCluster,
    has_prices,
    node_origins,
    node_prices,
)
from placeopt.kubernetes.given import paid_shares
from placeopt.kubernetes.instance import update_document
from placeopt.kubernetes.machines import PriceBook, keep_to_known
from placeopt.kubernetes.names import POOL, SPOT, lease_of
from placeopt.kubernetes.notes import note, recorded
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import NodeOrigin
from placeopt.kubernetes.pinned import keeps_its_node
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.values import MIB

if TYPE_CHECKING:
    from placeopt.rolling_update.arrays import UpdateArrays


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
    free, placed, without = _Room(arrays), list[Replica](), list[Replica]()
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
    places = _Room(arrays, stays=True)
    without = [u for u in waiting if not places.of(numbers[id(u)]).any()]
    _require_placed(options, without, _Room(arrays), number)
    gone = {id(unit) for unit in without}
    if options.leave_out:
        left = [u for u in waiting if id(u) not in gone]
        for unit in sorted(left, key=lambda u: -u.size.cpu):
            if places.start(numbers[id(unit)]) is None:
                text = "replicas that find no place beside what stays and others that wait"
                note("left-out", text, unit.label)
                gone.add(id(unit))
    return cluster.with_replicas(tuple(u for u in here if id(u) not in gone))


class _Room:
    """What is free on nodes beside what runs, and what rules count there, as replicas start.

    With `stays` only what stays runs: more copies end nothing that keeps away. Company, and where
    others are, may change on the way; so neither is asked for then.
    """

    def __init__(self, arrays: UpdateArrays, *, stays: bool = False):
        from placeopt.rolling_update import rules

        self.a, self.stays, self.rules = arrays, stays, rules
        runs = arrays.stuck if stays else arrays.home != arrays.waiting
        load = arrays.load_of(runs, arrays.new) if stays else arrays.initial_load
        self.free = arrays.capacity - load
        self.used = arrays.hosting(runs) if stays else np.asarray(load.any(axis=1))
        self.counts = rules.counted(arrays.packed_rules, np.where(runs, arrays.home, -1))

    def of(self, m: int) -> np.ndarray:
        """Return on which nodes microservice m has room, and what stays allows it, bool (N,)."""
        a = self.a
        hosts: np.ndarray = a.may_host(m) & self.fits(m)
        if a.limits.any:
            hosts &= a.limits.open_to(self.used)
        first, last = a.rules.check_first[m : m + 2] if self.stays else (0, 0)
        for kind, c, bound, _ in a.rules.checks[first:last].tolist():
            if kind == self.rules.APART:
                domain, begin = a.rules.domain[c], a.rules.first[c]
                hosts &= (domain < 0) | (self.counts[begin + np.maximum(domain, 0)] <= bound)
        return hosts

    def fits(self, m: int) -> np.ndarray:
        """Return on which nodes there is room for microservice m, bool (N,)."""
        fits: np.ndarray = ((self.free >= self.a.new[m]) | (self.a.new[m] == 0)).all(axis=1)
        return fits

    def start(self, m: int) -> int | None:
        """Start microservice m; return its node, None for none.

        It is the node least in use afterwards; beside what stays it is the fullest one.
        """
        a, choice = self.a, np.flatnonzero(self.of(m))
        own = 0 if self.stays else a.new[m, :2]
        scale = np.maximum(a.capacity[choice, :2], 1)
        left = ((self.free[choice, :2] - own) / scale).sum(axis=1)
        for n in choice[np.argsort(left if self.stays else -left, kind="stable")].tolist():
            if self.stays or self.rules.may_start(a.packed_rules, self.counts, m, n):
                self.free[n] -= a.new[m]
                self.used[n] = True
                self.rules.tally(a.packed_rules, self.counts, m, n, 1)
                return int(n)
        return None


def _arrays(
    cluster: ReadCluster, options: ImportOptions
) -> tuple[UpdateArrays, dict[tuple[str, str], int]]:
    """Return a cluster as arrays, and numbers of microservices by namespace and name."""
    from placeopt.rolling_update.problem import RollingUpdate

    with recorded():  # what this document says is said again later
        document, _ = update_document(cluster, options, dict.fromkeys(cluster.site.nodes, 1.0))
    arrays = RollingUpdate.from_document(document).arrays
    number = {
        (application.removesuffix(" (stays)"), name): m
        for m, (application, name) in enumerate(arrays.names)
    }
    return arrays, number


def _require_placed(
    options: ImportOptions, without: list[Replica], free: _Room, number: dict[tuple[str, str], int]
) -> None:
    """Note that replicas without a node are left out, or raise where that is not asked for."""
    if without and not options.leave_out:
        raise InfeasibleInstanceError(_reasons(without, free, number))
    for unit in without:
        note("left-out", "replicas that no node has room for", unit.label)


def _reasons(without: list[Replica], free: _Room, number: dict[tuple[str, str], int]) -> list[str]:
    """Return why replicas have no node, each by its name."""
    a, result = free.a, []
    for unit in without[:_NAMED]:
        m = number[unit.namespace, unit.name]
        amounts = ", ".join(f"{x} {r}" for r, x in zip(a.resources, a.new[m].tolist(), strict=True))
        legal = free.rules.is_allowed
        allowed = [n for n in range(len(a.price)) if legal(a.packed_rules, m, n) and not a.drain[n]]
        why = "has the labels and tolerated taints that suit"
        if allowed:
            fits = free.fits(m)[allowed]
            why = "has room for"
            if fits.any():
                legal_to_buy = not a.limits.any or a.limits.open_to(free.used)[allowed][fits].any()
                whose = "its rules about other pods" if legal_to_buy else "limits of nodes to buy"
                why = f"has, by {whose}, a place for"
        result.append(f"no node {why} {unit.label} ({amounts})")
    if len(without) > _NAMED:
        result.append(f"and {len(without) - _NAMED} more (--unplaceable leave-out leaves them out)")
    return result


# -- the instance ----------------------------------------------------------------------------------


def rolling_update(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance of a cluster.

    Raises
    ------
    DocumentError
        A node has no price, or there is nothing to place.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    prices = node_prices(cluster, options)
    cluster = _with_places(cluster, options)
    if not cluster.site.units:
        raise DocumentError(
            "nothing to place: no node takes any of the pods",
            file=", ".join(cluster.objects.files),
            path="line 1",
            remedy="see what is left out, and the nodes that take part (--cordoned)",
        )
    paid = paid_shares(options.commitments, cluster.site, prices, options.region)
    paid |= _paid_anyway(cluster)
    due = {name: round(price * (1 - paid.get(name, 0.0)), 9) for name, price in prices.items()}
    document, items = update_document(cluster, options, due)
    keep_to_known(
        document,
        cluster.site.units,
        cluster.site.nodes,
        cluster.objects,
        anywhere=options.any_architecture,
    )
    _note_rounding(cluster)
    return ImportedInstance(document, items, _priced_origins(cluster, options, prices, paid))


def _paid_anyway(cluster: ReadCluster) -> dict[str, float]:
    """Return the whole share of each node that no plan can remove.

    Those of the control plane, and those that host nothing and are annotated to be left alone.
    """
    results, hosting = {}, {unit.node for unit in cluster.site.units}
    for name, node in cluster.site.nodes.items():
        if is_control_plane(node):
            results[name] = 1.0
            note("assumption", "nodes of the control plane: freeing one saves nothing", name)
        elif keeps_its_node(node) and name not in hosting:
            results[name] = 1.0
    return results


def _priced_origins(
    cluster: ReadCluster, options: ImportOptions, prices: dict[str, float], paid: dict[str, float]
) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster, and what they cost."""
    book, wanted = cluster.prices or PriceBook(), _pools_asked(cluster.site.units)
    priced = has_prices(cluster, options)
    return {
        name: known.model_copy(
            update={
                "price": prices[name] if priced else None,
                "paid": paid.get(name, 0.0),
                "pool_asked": known.labels.get(POOL, "") in wanted,
                "interruptions": book.interruptions(cluster.site.nodes[name], options.region)
                if lease_of(known.labels) == SPOT
                else None,
            }
        )
        for name, known in node_origins(cluster).items()
    }


def _with_places(cluster: ReadCluster, options: ImportOptions) -> ReadCluster:
    """Place the replicas of manifests; of those that wait beside a cluster, see that a node may."""
    if all(unit.node is not None for unit in cluster.site.units):
        return cluster
    return (leave_out_unplaceable if cluster.objects.pods else place)(cluster, options)


def _note_rounding(cluster: ReadCluster) -> None:
    for unit in cluster.site.units:
        if unit.size.memory % MIB:
            note(
                "assumption",
                "memory requests are rounded up to whole MiB, capacities down",
                unit.label,
            )


def _pools_asked(units: Iterable[Replica]) -> set[str]:
    """Return the names of NodePools that some replicas ask for.

    A new NodePool of another name would make nodes on which they may not run.
    """
    result = set[str]()
    for unit in units:
        if POOL in unit.spec.selector:
            result.add(unit.spec.selector[POOL])
        for term in unit.spec.affinity.nodes.required.requirements:
            if term.key == POOL and term.operator == "In":
                result.update(term.values)
    return result
