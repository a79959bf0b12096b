"""A running cluster as a rolling-update instance: pods are microservices, namespaces applications.

What a pod's rules say about nodes (selector, required affinity, taints) is kept exactly. Nodes that
accept the same pods form a cluster. A pod that may not go everywhere has a flow of 0 ms to an
anchor: a microservice of no size, pinned to a node of no capacity and no price. The cluster of that
node is at 0 ms from the nodes that the pod may use, and cannot be reached from all others.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from placeopt.kubernetes.edges import Edge
from placeopt.kubernetes.gathered import (
    Gathered,
    ImportedInstance,
    calls,
    flows,
    item,
    node_origins,
    node_prices,
)
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.origin import NodeOrigin, OriginItem, key
from placeopt.kubernetes.quantities import MIB, mebibytes
from placeopt.kubernetes.sites import allowed, place
from placeopt.kubernetes.units import Unit

#: More different sets of rules than these are not kept: their pods stay.
MAX_CLASSES = 24


def build(g: Gathered) -> ImportedInstance:
    """Return the instance of a cluster.

    Raises
    ------
    DocumentError
        A node has no price.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    place(g.site, g.notes)
    classes, member = _classes(g)
    clusters = _clusters(g, classes)
    prices = node_prices(g)
    nodes = [_node(g, n, clusters[n.name], prices[n.name]) for n in g.site.nodes.values()]
    applications, items = _applications(g, member)
    for number in range(len(classes)):
        nodes.append(
            {
                "name": _anchor(number),
                "cluster": _anchor(number),
                "cpu_millicores": 0,
                "memory_mib": 0,
                "price": 0.0,
            }
        )
    origins = node_origins(g.site) | {
        _anchor(k): NodeOrigin(kind="Virtual", virtual=True) for k in range(len(classes))
    }
    document = {
        "problem": "rolling-update",
        "name": g.options.name,
        "semantics": "stay",
        "nodes": nodes,
        "cluster_latency_ms": _latencies(g, clusters, classes),
        "applications": applications,
    }
    if not document["cluster_latency_ms"]:
        del document["cluster_latency_ms"]
    _note_rounding(g)
    return ImportedInstance(document, items, origins)


def _anchor(number: int) -> str:
    return f"only-{number + 1}.placeopt"


def _node(g: Gathered, node: KubernetesNode, cluster: str, price: float) -> dict[str, Any]:
    room = g.site.room[node.name]
    found = {
        "name": node.name,
        "cluster": cluster,
        "cpu_millicores": room.cpu,
        "memory_mib": mebibytes(room.memory, capacity=True),
        "price": price,
    }
    return found | ({"drain": True} if node.name in g.site.drain else {})


def _classes(g: Gathered) -> tuple[list[frozenset[str]], dict[int, int]]:
    """Return the sets of nodes to which pods are restricted.

    The second value is the number of the set of every restricted pod, by the pod's position.
    """
    everywhere = frozenset(g.site.nodes) - g.site.drain
    classes: dict[frozenset[str], int] = {}
    member: dict[int, int] = {}
    for k, (unit, where) in enumerate(
        zip(g.site.units, allowed(g.site.units, g.site.nodes), strict=True)
    ):
        if unit.stays or where >= everywhere:
            continue
        if unit.node not in where:
            _stay(g, unit, "pods on nodes that their own rules no longer allow")
        elif where not in classes and len(classes) >= MAX_CLASSES:
            _stay(g, unit, f"pods with rules about nodes, beyond {MAX_CLASSES} different ones")
        else:
            member[k] = classes.setdefault(where, len(classes))
            g.notes.add(
                "kept",
                "taints, node selectors and required node affinity, "
                "by flows to anchors (nodes named only-N.placeopt)",
                unit.label,
            )
    return list(classes), member


def _stay(g: Gathered, unit: Unit, why: str) -> None:
    unit.stays = why
    g.notes.add("pinned", why, unit.label)


def _clusters(g: Gathered, classes: list[frozenset[str]]) -> dict[str, str]:
    """Return the cluster of every node: its zone or region.

    It is split where restricted pods tell nodes apart, by a # that labels cannot have.
    """
    signatures: dict[tuple[bool, ...], int] = {}
    found = {}
    for node in g.site.nodes.values():
        signature = signatures.setdefault(tuple(node.name in c for c in classes), len(signatures))
        found[node.name] = f"{node.place}#{signature}" if signature else node.place
    return found


def _latencies(
    g: Gathered, clusters: dict[str, str], classes: list[frozenset[str]]
) -> dict[str, dict[str, float]]:
    first: dict[str, KubernetesNode] = {}
    for node in g.site.nodes.values():
        first.setdefault(clusters[node.name], node)
    found: dict[str, dict[str, float]] = {}
    for (one, node), (other, peer) in combinations(first.items(), 2):
        ms = 0.0 if node.place == peer.place else g.latencies.between(node, peer)
        if ms is not None:
            found.setdefault(one, {})[other] = ms
    for number, where in enumerate(classes):
        found[_anchor(number)] = {clusters[name]: 0.0 for name in g.site.nodes if name in where}
    return found


def _applications(
    g: Gathered, member: dict[int, int]
) -> tuple[list[dict[str, Any]], dict[str, OriginItem]]:
    """Return the applications and what their microservices are in the cluster."""
    limits = _limits(g)
    talking = {end for edge in limits for end in (edge.source, edge.target)}
    grouped: dict[str, list[tuple[int, Unit]]] = {}
    for k, unit in enumerate(g.site.units):
        fixed = bool(unit.stays) and unit.key not in talking
        if unit.stays and not fixed:
            text = (
                "pods that stay and whose calls have limits: they never move, "
                "but a plan may restart them in place"
            )
            g.notes.add("not-expressed", text, unit.label)
        grouped.setdefault(f"{unit.namespace} (stays)" if fixed else unit.namespace, []).append(
            (k, unit)
        )
    applications, items = [], {}
    for name, mine in grouped.items():
        fixed = name.endswith(" (stays)")
        services = [_microservice(g, unit, fixed) for _, unit in mine]
        anchored = [
            {"from": u.name, "to": f"anchor-{member[k] + 1}", "max_latency_ms": 0.0}
            for k, u in mine
            if k in member
        ]
        for number in sorted({member[k] for k, _ in mine if k in member}):
            anchor = {
                "name": f"anchor-{number + 1}",
                "node": _anchor(number),
                "cpu_millicores": 0,
                "memory_mib": 0,
                "pinned": True,
            }
            services.append(anchor)
            items[key(f"anchor-{number + 1}", name)] = OriginItem(
                namespace="", kind="Virtual", name=_anchor(number)
            )
        items |= {key(u.name, name): item(u) for _, u in mine}
        found: dict[str, Any] = {"name": name, "microservices": services}
        if fixed:
            found["reschedulable"] = False
        else:
            units = [u for _, u in mine]
            anchored += flows(g, units, limits, "max_latency_ms", "limits of calls")
            if anchored:
                found["flows"] = anchored
        applications.append(found)
    return applications, items


def _microservice(g: Gathered, unit: Unit, fixed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": unit.name,
        "node": unit.node,
        "cpu_millicores": unit.size.cpu,
        "memory_mib": mebibytes(unit.size.memory),
    }
    new = g.options.new_sizes.get(unit.key)
    if new is not None and (new.cpu, mebibytes(new.memory)) != (
        unit.size.cpu,
        mebibytes(unit.size.memory),
    ):
        if fixed or unit.stays:
            g.notes.add(
                "not-expressed",
                "new requests of pods that stay where they are: they keep their size",
                unit.label,
            )
        else:
            found |= {"new_cpu_millicores": new.cpu, "new_memory_mib": mebibytes(new.memory)}
    return found | ({"pinned": True} if unit.stays and not fixed else {})


def _limits(g: Gathered) -> list[Edge]:
    """Return the calls with a limit, those inside one namespace."""
    found = []
    for edge in calls(g):
        if edge.limit is None:
            text = "calls without a limit may take any time (--max-latency-ms)"
            g.notes.add("assumption", text, edge.label)
        elif edge.source[0] != edge.target[0]:
            g.notes.add("not-expressed", "limits of calls between namespaces", edge.label)
        else:
            found.append(edge)
    return found


def _note_rounding(g: Gathered) -> None:
    for unit in g.site.units:
        if unit.size.memory % MIB:
            g.notes.add(
                "assumption",
                "memory requests are rounded up to whole MiB, capacities down",
                unit.label,
            )
