"""What machines that are not there yet have besides cpu and memory: what their kin has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode

_DISK = "ephemeral-storage"


def with_kin(objects: ClusterObjects, nodes: Iterable[KubernetesNode]) -> list[KubernetesNode]:
    """Return nodes with the further resources of those of their machine type in the cluster.

    What a table says counts. Of machine types that the cluster does not have, the disk is that of
    the node with the smallest one, and there is nothing else: where pods ask for it, that is noted.
    """
    there = [n for name, n in objects.nodes.items() if name not in objects.candidates]
    kin: dict[str, list[KubernetesNode]] = {}
    for node in there:
        if node.instance_type:
            kin.setdefault(node.instance_type, []).append(node)
    disk = min((n.further[_DISK] for n in there if _DISK in n.further), default=None)
    wanted = {key for pod in objects.pods for key in pod.spec.further} - {"pods", _DISK}
    results = []
    for node in nodes:
        alike = kin.get(node.instance_type or "", [])
        more = _least(alike) if alike else {} if disk is None else {_DISK: disk}
        new = {key: amount for key, amount in more.items() if key not in node.further}
        kind = node.instance_type or node.name
        if new:
            whose = "of their machine type" if alike else "with the smallest disk"
            text = f"nodes of a table have the further resources of nodes {whose} (resources)"
            note("assumption", text, f"{kind}: {', '.join(sorted(new))}"[:200])
        lacking = sorted(wanted - node.further.keys() - new.keys())
        if lacking and not alike:
            text = "nodes of a table are taken to have none of what pods ask for (resources)"
            note("assumption", text, f"{kind}: {', '.join(lacking)}"[:200])
        results.append(replace(node, further={**node.further, **new}))
    return results


def _least(nodes: Iterable[KubernetesNode]) -> dict[str, int]:
    """Return what each of some nodes has at least, of each resource but pods."""
    first, *others = [node.further for node in nodes]
    return {
        key: min(amount, *(o.get(key, 0) for o in others)) if others else amount
        for key, amount in first.items()
        if key != "pods"
    }
