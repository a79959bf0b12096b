"""Workloads on nodes of several layers as an edge-cloud instance.

Member clusters of Karmada are nodes like any other.

Replicas that run and must stay take of the capacity of their node; all others are placed anew.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from placeopt.core.files.documents import Document
from placeopt.kubernetes.capacity import NodeCapacity, allowed, require_node
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.member_clusters import tell_apart
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import OriginItem, key
from placeopt.kubernetes.parts import (
    ImportedInstance,
    calls,
    cores_and_gib,
    flows,
    item,
    node_origins,
    node_prices,
    require_few_nodes,
)
from placeopt.kubernetes.replicas import Replica, grouped
from placeopt.kubernetes.sizes import PodSize

#: A node says its layer by this label, or in the column `layer` of a table of nodes.
LAYER = "placeopt/layer"


def build(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance.

    Raises
    ------
    UsageError
        There are too many nodes, or an unknown source.
    DocumentError
        Latencies or a price are missing.
    """
    require_few_nodes(cluster, "edge-cloud", "delays")
    site, units = _free(cluster.site, cluster.objects)
    prices = node_prices(cluster, options)
    site, members = tell_apart(site, units)
    cluster = replace(cluster, site=site)
    require_few_nodes(cluster, "edge-cloud", "delays")
    note("assumption", "operating_cost of a node is its price, for each replica that it hosts")
    costs = (
        f"network_cost is {options.network_cost:g} for every node (--network-cost), "
        f"data {options.data:g} for every replica"
    )
    note("assumption", costs)
    applications, items = _applications(cluster, options, units, members)
    document = {
        "problem": "edge-cloud",
        "name": options.name,
        "nodes": [
            _node(cluster, options, n, prices[members.get(name, n).name])
            for name, n in cluster.site.nodes.items()
        ],
        "delay_ms": _delays(cluster, members),
        "applications": applications,
    }
    nodes = {
        name: known.model_copy(update={"member": members[name].name}) if name in members else known
        for name, known in node_origins(cluster).items()
    }
    return ImportedInstance(document, items, nodes)


def layer(node: KubernetesNode) -> str:
    """Return the layer of a node: what it says, its zone, its region."""
    if own := node.layer or node.label(LAYER):
        return own
    if "node-role.kubernetes.io/edge" in node.meta.labels:
        return "edge"
    return node.place


def _free(site: NodeCapacity, objects: ClusterObjects) -> tuple[NodeCapacity, list[Replica]]:
    """Return the room beside the replicas that stay, and the replicas to place."""
    everywhere = frozenset(site.nodes)
    stay = [(u, u.node) for u in site.units if u.stays and u.node is not None]
    free = [u for u in site.units if not (u.stays and u.node is not None)]
    for unit, where in zip(free, allowed(free, objects, site.nodes), strict=True):
        if where != everywhere:
            note("not-expressed", "taints, node selectors and required node affinity", unit.label)
    left = site.less(stay)
    return replace(left, room=left.room | dict.fromkeys(site.drain, PodSize(0, 0))), free


def _node(
    cluster: ReadCluster, options: ImportOptions, node: KubernetesNode, price: float
) -> Document:
    return {
        "name": node.name,
        "layer": layer(node),
        **cores_and_gib(cluster.site.room[node.name], capacity=True),
        "operating_cost": price,
        "network_cost": options.network_cost,
    }


def _delays(
    cluster: ReadCluster, members: dict[str, KubernetesNode]
) -> dict[str, dict[str, float]]:
    """Return the delays between nodes; those of a member cluster are one place."""
    nodes = list(cluster.site.nodes.values())
    results: dict[str, dict[str, float]] = {}
    for one, other in combinations(nodes, 2):
        ms = cluster.latencies.between(members.get(one.name, one), members.get(other.name, other))
        if ms is None:
            note(
                "not-expressed",
                "nodes between which no latency is given cannot reach each other",
                f"{layer(one)} to {layer(other)}",
            )
        else:
            results.setdefault(one.name, {})[other.name] = ms
    if len(nodes) > 1 and not results:
        raise nodes[0].meta.view.fault(
            "no latency between any two nodes",
            "give --latency, or a NetworkTopology and nodes with zones and regions",
        )
    return results


def _applications(
    cluster: ReadCluster,
    options: ImportOptions,
    units: list[Replica],
    members: dict[str, KubernetesNode],
) -> tuple[list[Document], dict[str, OriginItem]]:
    groups = grouped(units, lambda unit: cluster.calls.groups.get(unit.key, unit.namespace))
    nodes = cluster.site.nodes
    source = options.source or next(iter(nodes))
    first = {one.name: name for name, one in reversed(members.items())}
    require_node("--source", source, {*nodes, *first})
    source = first.get(source, source)
    if options.source is None:
        note("assumption", f"data come from the first node, {source} (--source)")
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    for name, listed in groups.items():
        own = _unique(listed)
        services = [{"name": u.name, **cores_and_gib(u.size), "data": options.data} for u in own]
        application: Document = {"name": name, "source": source, "microservices": services}
        if talking := flows(own, calls(cluster, options), "max_delay_ms", "calls"):
            application["flows"] = talking
        applications.append(application)
        items |= {key(u.name, name): item(u) for u in own}
    return applications, items


def _unique(units: list[Replica]) -> list[Replica]:
    """Return replicas of an AppGroup over several namespaces with names of their own."""
    seen: set[str] = set()
    results = []
    for unit in units:
        twice = unit.name in seen
        results.append(replace(unit, name=f"{unit.namespace}.{unit.name}"[:253]) if twice else unit)
        seen.add(results[-1].name)
    return results
