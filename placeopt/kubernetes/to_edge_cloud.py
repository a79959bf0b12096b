"""Workloads on nodes of several layers as an edge-cloud instance.

A member cluster of Karmada is one node.

Replicas that run and must stay take of the capacity of their node; all others are placed anew.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from placeopt.core.files.documents import Document
from placeopt.kubernetes.capacity import NodeCapacity, allowed, require_node
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.manifests import ClusterObjects
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
    cluster = replace(cluster, site=site)
    note("assumption", "operating_cost of a node is its price, for each replica that it hosts")
    costs = (
        f"network_cost is {options.network_cost:g} for every node (--network-cost), "
        "data 1 for every replica"
    )
    note("assumption", costs)
    applications, items = _applications(cluster, options, units)
    document = {
        "problem": "edge-cloud",
        "name": options.name,
        "nodes": [_node(cluster, options, n, prices[n.name]) for n in site.nodes.values()],
        "delay_ms": _delays(cluster),
        "applications": applications,
    }
    return ImportedInstance(document, items, node_origins(cluster))


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


def _delays(cluster: ReadCluster) -> dict[str, dict[str, float]]:
    """Return the delays between nodes."""
    nodes = list(cluster.site.nodes.values())
    results: dict[str, dict[str, float]] = {}
    for one, other in combinations(nodes, 2):
        ms = cluster.latencies.between(one, other)
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
            "give --latency, by node, zone or region",
        )
    return results


def _applications(
    cluster: ReadCluster,
    options: ImportOptions,
    units: list[Replica],
) -> tuple[list[Document], dict[str, OriginItem]]:
    source = options.source or next(iter(cluster.site.nodes))
    require_node("--source", source, cluster.site.nodes)
    if options.source is None:
        note("assumption", f"data come from the first node, {source} (--source)")
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    for name, own in grouped(units, lambda unit: unit.namespace).items():
        services = [{"name": u.name, **cores_and_gib(u.size), "data": 1.0} for u in own]
        application: Document = {"name": name, "source": source, "microservices": services}
        if talking := flows(own, calls(cluster, options), "max_delay_ms", "calls"):
            application["flows"] = talking
        applications.append(application)
        items |= {key(u.name, name): item(u) for u in own}
    return applications, items
