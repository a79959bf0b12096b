"""Member clusters of Karmada: their room is that of their nodes, not that of one node.

``status.resourceSummary.allocatableModelings`` counts the nodes of a cluster by grade, and
``spec.resourceModels`` says between which amounts what a node of a grade has free. See
karmada.io/docs/userguide/scheduling/cluster-resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placeopt.kubernetes.capacity import NodeCapacity
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode, quantity
from placeopt.kubernetes.quantities import millicores, whole_bytes
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.sizes import PodSize

#: Nodes of member clusters that are told apart, all clusters together.
MAX_PARTS = 300
_CONVERT = {"cpu": millicores, "memory": whole_bytes}


@dataclass(frozen=True)
class _Grade:
    """Nodes of one grade: how many, and the least and the most of cpu and memory that one has."""

    count: int
    least: tuple[int, int]
    most: tuple[int, int]


def tell_apart(
    site: NodeCapacity, units: Sequence[Replica]
) -> tuple[NodeCapacity, dict[str, KubernetesNode]]:
    """Return a site with nodes instead of member clusters, and name of a node -> its cluster.

    Clusters that do not say what their nodes have free stay as they are, and so do all where there
    are too many nodes. Then pods that are too large for the largest node of one are named.

    Parameters
    ----------
    site : NodeCapacity
    units : sequence of Replica
        What is to be placed.
    """
    existing = {
        name: _grades(n, site.room[name]) for name, n in site.nodes.items() if _is_member(n)
    }
    for name, grades in existing.items():
        if not grades:
            text = "member clusters that do not say what their nodes have free: taken as one node"
            note("assumption", f"{text} (allocatableModelings)", name)
    results: dict[str, KubernetesNode] = {}
    if sum(g.count for grades in existing.values() for g in grades) > MAX_PARTS:
        text = f"member clusters of more than {MAX_PARTS} nodes together: each is taken as one node"
        note("not-expressed", text)
        _name_large(existing, units)
        return site, results
    nodes: dict[str, KubernetesNode] = {}
    room: dict[str, PodSize] = {}
    for name, node in site.nodes.items():
        if not existing.get(name):
            nodes[name], room[name] = node, site.room[name]
            continue
        for k, size in enumerate(_sizes(existing[name], site.room[name]), start=1):
            part = f"{name}/node-{k}"
            nodes[part] = replace(node, meta=replace(node.meta, name=part))
            room[part], results[part] = size, node
        text = "a node of a member cluster is taken to have what its grade and the room left allow"
        note("assumption", text, name)
    return replace(site, nodes=nodes, room=room), results


def largest_nodes(site: NodeCapacity) -> dict[str, PodSize]:
    """Return what the largest node of each member cluster has free, where that is said."""
    results = {}
    for name, node in site.nodes.items():
        if _is_member(node) and (grades := _grades(node, site.room[name])):
            results[name] = PodSize(*(max(g.most[r] for g in grades) for r in range(2)))
    return results


def _is_member(node: KubernetesNode) -> bool:
    return node.kind == "Cluster"


def _grades(node: KubernetesNode, room: PodSize) -> list[_Grade]:
    """Return the grades of the nodes of a cluster, the smallest first; none where it says none."""
    view = node.meta.view
    ranges = {
        model["grade"].whole(0): {r["name"].text(): r for r in model["ranges"].items()}
        for model in view["spec"]["resourceModels"].items()
    }
    results = []
    for one in view["status"]["resourceSummary"]["allocatableModelings"].items():
        grade, count = one["grade"].whole(0), one["count"].whole(0)
        if count and grade in ranges:
            ends = [_ends(ranges[grade].get(key), key, total) for key, total in _totals(room)]
            least, most = zip(*ends, strict=True)
            results.append(_Grade(count, (least[0], least[1]), (most[0], most[1])))
    return sorted(results, key=lambda grade: grade.most)


def _totals(room: PodSize) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("cpu", room.cpu), ("memory", room.memory)


def _ends(span: View | None, key: str, total: int) -> tuple[int, int]:
    """Return the least and the most that a node of a grade has free, of all that is left."""
    if span is None:
        return 0, total
    least = quantity(span["min"], _CONVERT[key], capacity=True) or 0
    most = quantity(span["max"], _CONVERT[key], capacity=True)
    most = total if most is None else min(most, total)
    return min(least, most), most


def _sizes(grades: Sequence[_Grade], room: PodSize) -> list[PodSize]:
    """Return what each node has free: together the room of the cluster, if their grades allow it.

    Of what is between the ends of its grade every node has the same share.
    """
    parts = []
    for r, (_, total) in enumerate(_totals(room)):
        least = sum(g.count * g.least[r] for g in grades)
        span = sum(g.count * (g.most[r] - g.least[r]) for g in grades)
        share = min(1.0, max(0.0, (total - least) / span)) if span else 0.0
        parts.append([g.least[r] + int(share * (g.most[r] - g.least[r])) for g in grades])
    return [
        PodSize(cpu, memory)
        for cpu, memory, grade in zip(*parts, grades, strict=True)
        for _ in range(grade.count)
    ]


def _name_large(known: dict[str, list[_Grade]], units: Sequence[Replica]) -> None:
    """Name the pods that are larger than the largest node of a cluster."""
    for name, grades in known.items():
        if not grades:
            continue
        cpu, memory = (max(g.most[r] for g in grades) for r in range(2))
        for unit in units:
            if unit.size.cpu > cpu or unit.size.memory > memory:
                text = f"pods that no node of {name} has room for, though the cluster has"
                note("not-expressed", text, unit.label)
