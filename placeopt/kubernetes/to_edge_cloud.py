"""Workloads on nodes of several layers as an edge-cloud instance.

Member clusters of Karmada are nodes like any other.

Replicas that run and must stay take of the capacity of their node; all others are placed anew.
"""

from __future__ import annotations

from itertools import combinations

from placeopt.core.documents import Document
from placeopt.kubernetes.gathered import (
    Gathered,
    ImportedInstance,
    calls,
    cores_and_gib,
    flows,
    item,
    node_origins,
    node_prices,
    require_few_nodes,
)
from placeopt.kubernetes.member_clusters import tell_apart
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.origin import OriginItem, key
from placeopt.kubernetes.sites import allowed, require_node
from placeopt.kubernetes.sizes import PodSize
from placeopt.kubernetes.units import Unit, grouped

#: A node says its layer by this label, or in the column `layer` of a table of nodes.
LAYER = "placeopt/layer"


def build(g: Gathered) -> ImportedInstance:
    """Return the instance.

    Raises
    ------
    UsageError
        There are too many nodes, or an unknown source.
    DocumentError
        Latencies or a price are missing.
    """
    require_few_nodes(g, "edge-cloud", "delays")
    units = _free(g)
    prices = node_prices(g)
    members = tell_apart(g.site, units, g.notes)
    require_few_nodes(g, "edge-cloud", "delays")
    g.notes.add(
        "assumption", "operating_cost of a node is its price, for each replica that it hosts"
    )
    costs = (
        f"network_cost is {g.options.network_cost:g} for every node (--network-cost), "
        f"data {g.options.data:g} for every replica"
    )
    g.notes.add("assumption", costs)
    applications, items = _applications(g, units, members)
    document = {
        "problem": "edge-cloud",
        "name": g.options.name,
        "nodes": [
            _node(g, n, prices[members.get(name, n).name]) for name, n in g.site.nodes.items()
        ],
        "delay_ms": _delays(g, members),
        "applications": applications,
    }
    nodes = {
        name: known.model_copy(update={"member": members[name].name}) if name in members else known
        for name, known in node_origins(g).items()
    }
    return ImportedInstance(document, items, nodes)


def layer(node: KubernetesNode) -> str:
    """Return the layer of a node: what it says, its zone, its region."""
    if own := node.layer or node.label(LAYER):
        return own
    if "node-role.kubernetes.io/edge" in node.meta.labels:
        return "edge"
    return node.place


def _free(g: Gathered) -> list[Unit]:
    """Return the replicas to place, the room of those that stay taken off."""
    everywhere, found = frozenset(g.site.nodes), []
    for unit, where in zip(
        g.site.units, allowed(g.site.units, g.cluster, g.site.nodes), strict=True
    ):
        if unit.stays and unit.node is not None:
            g.site.take(unit.node, unit)
            continue
        if where != everywhere:
            g.notes.add(
                "not-expressed", "taints, node selectors and required node affinity", unit.label
            )
        found.append(unit)
    for name in sorted(g.site.drain):
        g.site.room[name] = PodSize(0, 0)
    return found


def _node(g: Gathered, node: KubernetesNode, price: float) -> Document:
    return {
        "name": node.name,
        "layer": layer(node),
        **cores_and_gib(g.site.room[node.name], capacity=True),
        "operating_cost": price,
        "network_cost": g.options.network_cost,
    }


def _delays(g: Gathered, members: dict[str, KubernetesNode]) -> dict[str, dict[str, float]]:
    """Return the delays between nodes; those of a member cluster are one place."""
    nodes = list(g.site.nodes.values())
    found: dict[str, dict[str, float]] = {}
    for one, other in combinations(nodes, 2):
        ms = g.latencies.between(members.get(one.name, one), members.get(other.name, other))
        if ms is None:
            g.notes.add(
                "not-expressed",
                "nodes between which no latency is given cannot reach each other",
                f"{layer(one)} to {layer(other)}",
            )
        else:
            found.setdefault(one.name, {})[other.name] = ms
    if len(nodes) > 1 and not found:
        raise nodes[0].meta.view.fault(
            "no latency between any two nodes",
            "give --latency, or a NetworkTopology and nodes with zones and regions",
        )
    return found


def _applications(
    g: Gathered, units: list[Unit], members: dict[str, KubernetesNode]
) -> tuple[list[Document], dict[str, OriginItem]]:
    groups = grouped(units, lambda unit: g.graph.groups.get(unit.key, unit.namespace))
    source = g.options.source or next(iter(g.site.nodes))
    first = {cluster.name: name for name, cluster in reversed(members.items())}
    require_node("--source", source, {*g.site.nodes, *first})
    source = first.get(source, source)
    if g.options.source is None:
        g.notes.add("assumption", f"data come from the first node, {source} (--source)")
    applications: list[Document] = []
    items: dict[str, OriginItem] = {}
    for name, mine in groups.items():
        services = [
            {"name": u.name, **cores_and_gib(u.size), "data": g.options.data}
            for u in _unique(mine, name)
        ]
        application: Document = {"name": name, "source": source, "microservices": services}
        if talking := flows(g, mine, calls(g), "max_delay_ms", "calls"):
            application["flows"] = talking
        applications.append(application)
        items |= {key(u.name, name): item(u) for u in mine}
    return applications, items


def _unique(units: list[Unit], group: str) -> list[Unit]:
    """Give replicas of an AppGroup over several namespaces names of their own."""
    seen: set[str] = set()
    for unit in units:
        if unit.name in seen:
            unit.name = f"{unit.namespace}.{unit.name}"[:253]
        seen.add(unit.name)
    return units
