"""Lifts that are about no pod's place: what pods ask for, and what may be bought.

The requests that a VerticalPodAutoscaler of the files recommends, a NodePool without its limits,
and one more machine type of the price files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.architectures import AMD64, ARCH
from placeopt.kubernetes.candidates import DEFAULT_COUNT, of_machine_types
from placeopt.kubernetes.consolidate.lifts import Lift, lifts_of_places, subject_of
from placeopt.kubernetes.consolidate.situation import Situation
from placeopt.kubernetes.importing import ReadTables
from placeopt.kubernetes.new_requests import NewRequests, recommended
from placeopt.kubernetes.node_pools import POOL
from placeopt.kubernetes.objects import KubernetesNode

#: Why a lift that is about machines holds no node by itself: there is always a type that is better.
TYPES = "not among the machine types that may be bought"
#: Machine types that are tried, the cheapest for what all pods ask for.
_TRIED = 2


def lifts_of(base: Situation) -> list[Lift]:
    """Return what may be lifted of a cluster: where pods may be, what they ask for, what to buy."""
    return [*lifts_of_places(base), *_requests(base), *_limits(base), *_types(base)]


def _requests(base: Situation) -> Iterator[Lift]:
    """Yield for each workload that a VerticalPodAutoscaler speaks of that it takes its advice."""
    options, units = base.imported.source.options, base.imported.cluster.site.units
    try:
        advice = recommended(base.imported.cluster.objects)
    except DocumentError:  # none that can be taken
        return
    for owner, targets in advice.containers.items():
        own = [unit for unit in units if unit.owner == owner and unit.node is not None]
        asked = options.new_requests
        if targets and own and owner not in asked.containers and own[0].key not in asked.pods:
            new = NewRequests({**asked.containers, owner: targets}, asked.pods)
            name = subject_of(own[0])
            yield Lift(
                "requests other than its VerticalPodAutoscaler recommends",
                name,
                f"take the recommended requests of {name}",
                frozenset((u.namespace, u.name) for u in own),
                False,
                options=replace(options, new_requests=new),
            )


def _limits(base: Situation) -> Iterator[Lift]:
    """Yield for each NodePool with limits that it has none."""
    limited = (n.meta.labels.get(POOL, "") for n in _bought(base) if n.pool_limits)
    for pool in dict.fromkeys(limited):
        cause, words = "limits of its machines together", f"raise the limits of NodePool {pool}"
        yield _of_tables(base, cause, f"NodePool {pool}", words, partial(_unlimited, pool=pool))


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
        runs = base.imported.source.options.any_architecture or _architecture(made[0]) in built
        if kind not in allowed and runs and made[0].price and made[0].cpu and made[0].memory:
            share = max(need[0] / made[0].cpu, need[1] * 2**20 / made[0].memory)
            rows.append((share * made[0].price, kind, made))
    for _, kind, made in sorted(rows, key=lambda row: row[:2])[:_TRIED]:
        words = f"let machines of the type {kind} be bought"
        yield _of_tables(base, TYPES, kind, words, partial(_with, more=made))


def _of_tables(
    base: Situation,
    cause: str,
    subject: str,
    words: str,
    tables: Callable[[ReadTables], ReadTables],
) -> Lift:
    return Lift(cause, subject, words, frozenset(base.owners), False, tables=tables)


def _architecture(node: KubernetesNode) -> str:
    return node.meta.labels.get(ARCH, AMD64)


def _bought(base: Situation) -> list[KubernetesNode]:
    """Return the nodes that may be bought."""
    return [node for _, node in base.imported.source.tables.nodes if node.candidate]


def _with(tables: ReadTables, more: list[KubernetesNode]) -> ReadTables:
    path = next(path for path, node in tables.nodes if node.candidate)
    return tables._replace(nodes=[*tables.nodes, *((path, node) for node in more)])


def _unlimited(tables: ReadTables, pool: str) -> ReadTables:
    """Return the tables without the limits of a NodePool, and with more of its machines."""
    nodes = [n for n in tables.nodes if n[1].meta.labels.get(POOL) != pool or not n[1].candidate]
    kinds: dict[str, list[tuple[AnyPath, KubernetesNode]]] = {}
    for path, node in tables.nodes:
        if node.candidate and node.meta.labels.get(POOL) == pool:
            kinds.setdefault(node.name.rpartition("-")[0], []).append((path, node))
    for stem, own in kinds.items():
        path, node = own[0]
        for k in range(max(len(own), DEFAULT_COUNT)):
            labels = {**node.meta.labels, "kubernetes.io/hostname": f"{stem}-{k + 1}"}
            meta = replace(node.meta, name=f"{stem}-{k + 1}", labels=labels)
            nodes.append((path, replace(node, meta=meta, pool_limits={})))
    return tables._replace(nodes=nodes)
