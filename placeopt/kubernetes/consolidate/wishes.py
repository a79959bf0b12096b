"""Lifts that are about no pod's place: what pods ask for, and what may be bought.

The requests that a VerticalPodAutoscaler of the files recommends, a NodePool without its limits,
and one more machine type of the price files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from placeopt.core.errors import DocumentError
from placeopt.kubernetes.candidates import DEFAULT_COUNT, of_machine_types
from placeopt.kubernetes.consolidate.lifts import Lift, lifts_of_places, subject_of
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.given import NewRequests, recommended
from placeopt.kubernetes.importing import Imported, with_objects
from placeopt.kubernetes.machines import AMD64, ARCH, equipped
from placeopt.kubernetes.names import HOSTNAME, POOL
from placeopt.kubernetes.objects import KubernetesNode, of_table
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.replicas import grouped

#: Why pods ask for more than they need.
REQUESTS = "requests other than its VerticalPodAutoscaler recommends"
#: Why a lift that is about machines holds no node by itself: there is always a type that is better.
TYPES = "not among the machine types that may be bought"
#: Machine types that are tried, the cheapest for what all pods ask for.
_TRIED = 2


def lifts_of(base: Situation) -> list[Lift]:
    """Return what may be lifted of a cluster: where pods may be, what they ask for, what to buy."""
    places = [*lifts_of_places(base), *_requests(base)]
    return places if base.imported.options.only else [*places, *_limits(base), *_types(base)]


def _requests(base: Situation) -> Iterator[Lift]:
    """Yield for each workload that a VerticalPodAutoscaler speaks of that it takes its advice."""
    options, units = base.imported.options, base.imported.cluster.site.units
    try:
        advice = recommended(base.imported.cluster.objects)
    except DocumentError:  # none that can be taken
        return
    for owner, targets in advice.containers.items():
        own = [unit for unit in units if unit.owner == owner and unit.node is not None]
        asked = options.new_requests
        if targets and own and owner not in asked.containers and own[0].key not in asked.pods:
            new = NewRequests({**asked.containers, owner: targets}, asked.pods)
            name, pods = subject_of(own[0]), frozenset((u.namespace, u.name) for u in own)
            change = partial(_asking, options=replace(options, new_requests=new))
            words = f"take the recommended requests of {name}"
            yield Lift(REQUESTS, name, words, "size", pods, change, pods)


def _asking(imported: Imported, options: ImportOptions) -> Imported:
    return imported.changed(imported.cluster, options)


def _limits(base: Situation) -> Iterator[Lift]:
    """Yield for each NodePool with limits that it has none."""
    limited = (n.meta.labels.get(POOL, "") for n in _bought(base) if n.pool_limits)
    for pool in dict.fromkeys(limited):
        cause, words = "limits of its machines together", f"raise the limits of NodePool {pool}"
        yield _of_machines(base, cause, f"NodePool {pool}", words, partial(_unlimited, pool=pool))


def _types(base: Situation) -> Iterator[Lift]:
    """Yield the machine types that nobody may buy and that are cheapest for all that pods ask."""
    book, there = base.imported.cluster.prices, _bought(base)
    if book is None or not there:
        return
    a = base.problem.arrays
    need = a.new[base.final >= 0].sum(axis=0)
    allowed = {node.instance_type for node in there}
    built = {_architecture(base.imported.cluster.objects.nodes[name]) for name in base.there}
    zones = {(n.region or "", n.zone or "") for n in base.imported.cluster.objects.nodes.values()}
    rows = []
    for kind, made in of_machine_types(book, sorted(zones)).items():
        runs = base.imported.options.any_architecture or _architecture(made[0]) in built
        if kind not in allowed and runs and made[0].price and made[0].cpu and made[0].memory:
            share = max(need[0] / made[0].cpu, need[1] * 2**20 / made[0].memory)
            rows.append((share * made[0].price, kind, made))
    for _, kind, made in sorted(rows, key=lambda row: row[:2])[:_TRIED]:
        words = f"let machines of the type {kind} be bought"
        yield _of_machines(base, TYPES, kind, words, partial(_with, more=made))


def _of_machines(
    base: Situation,
    cause: str,
    subject: str,
    words: str,
    change: Callable[[Imported], Imported],
) -> Lift:
    every = frozenset(base.owners)
    return Lift(cause, subject, words, "machines", every, change, every)


def _architecture(node: KubernetesNode) -> str:
    return node.meta.labels.get(ARCH, AMD64)


def _bought(base: Situation) -> list[KubernetesNode]:
    """Return the nodes that may be bought."""
    return [node for node in base.imported.cluster.objects.nodes.values() if node.candidate]


def _buying(imported: Imported, nodes: Iterable[KubernetesNode]) -> Imported:
    """Return an import in which these nodes may be bought besides those that are there."""
    objects = imported.cluster.objects
    kept = {name: node for name, node in objects.nodes.items() if not node.candidate}
    made = {node.name: node for node in nodes}
    changed = replace(objects, nodes={**made, **kept}, candidates=made.keys() - kept.keys())
    return imported.changed(with_objects(imported.cluster, changed, imported.options))


def _with(imported: Imported, more: list[KubernetesNode]) -> Imported:
    objects = imported.cluster.objects
    there = [node for node in objects.nodes.values() if node.candidate]
    return _buying(imported, [*there, *equipped(objects, more)])


def _unlimited(imported: Imported, pool: str) -> Imported:
    """Return an import without the limits of a NodePool, and with more of its machines."""
    there = [n for n in imported.cluster.objects.nodes.values() if n.candidate]
    nodes = [n for n in there if n.meta.labels.get(POOL) != pool]
    kinds = grouped(
        (n for n in there if n.meta.labels.get(POOL) == pool),
        lambda n: n.name.rpartition("-")[0],
    )
    for stem, own in kinds.items():
        node = own[0]
        for k in range(max(len(own), DEFAULT_COUNT)):
            name = f"{stem}-{k + 1}"
            meta = of_table(name, {**node.meta.labels, HOSTNAME: name})
            nodes.append(replace(node, meta=meta, pool_limits={}))
    return _buying(imported, nodes)
