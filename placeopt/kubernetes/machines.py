"""What machines that are not there yet have: as their kin in the cluster, or their provider, says.

``interfaces.csv`` has the network interfaces of machine types of AWS and the IPv4 addresses of
each: facts that Amazon publishes (`zz_generated.vpclimits.go` of aws/karpenter-provider-aws,
2026-08-06; EC2 user guide, "IP addresses per network interface per instance type"). A card beside
the default one does not count, as the VPC CNI does not use it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from placeopt.kubernetes.labels import completed, drivers_in
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import DEFAULT_PODS, KubernetesNode

_DISK = "ephemeral-storage"
_UNKNOWN = "taken to be no more than on any node there, nor than the kubelet's default"


@cache
def _pods_by_type() -> dict[str, int]:
    """Return the pods of machine types on EKS: an address for each, and two of the host's own."""
    results = {}
    with open(Path(__file__).with_name("interfaces.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            count, each = int(row["network_interfaces"]), int(row["ipv4_addresses_each"])
            for family in row["families"].split():
                for size in row["sizes"].split():
                    results[f"{family}.{size}"] = count * (each - 1) + 2
    return results


def pods_on_eks(kind: str) -> int | None:
    """Return how many pods a machine of a type of AWS takes: interfaces * (addresses - 1) + 2.

    None where the type is not known. Prefixes, custom networking and other network plug-ins change
    it, and so does ``maxPods``.

    Examples
    --------
    >>> pods_on_eks("t3.medium"), pods_on_eks("m5.large"), pods_on_eks("rack-7")
    (17, 29, None)
    """
    return _pods_by_type().get(kind)


def equipped(objects: ClusterObjects, nodes: Iterable[KubernetesNode]) -> list[KubernetesNode]:
    """Return the nodes of a table with all that they will have: labels, pods, other resources.

    What the table says counts. Else a node has what the least of its machine type in the cluster
    has. Of machine types that the cluster does not have, the disk is that of the node with the
    smallest one, and there is nothing else: where pods ask for it, that is noted.
    """
    there = [node for name, node in objects.nodes.items() if name not in objects.candidates]
    kin: dict[str, list[KubernetesNode]] = {}
    for node in there:
        if node.instance_type and node.kind == "Node":
            kin.setdefault(node.instance_type, []).append(node)
    drivers = drivers_in((node.meta.labels for node in there), objects.asked_of_volumes())
    disk = min((n.further[_DISK] for n in there if _DISK in n.further), default=None)
    wanted = {key for pod in objects.pods for key in pod.spec.further} - {"pods", _DISK}
    results = []
    for node in nodes:
        about = replace(node.meta, labels=completed(node.meta.labels, drivers))
        node = replace(node, meta=about)
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
        pods = {} if "pods" in node.further else {"pods": _pods(node, alike, there)}
        results.append(replace(node, further={**node.further, **new, **pods}))
    return results


def _pods(
    node: KubernetesNode, alike: Sequence[KubernetesNode], there: Sequence[KubernetesNode]
) -> int:
    """Return how many pods a node of a table takes that does not say; notes why.

    The least of a node of its type; else what EKS computes, unless a node there takes more than
    EKS would give it, so that the cluster has another network; else as few as any node there.
    """
    kind = node.instance_type or ""
    if alike:
        result = min(one.pods for one in alike)
        why = "the least of the nodes of their type"
    elif (known := pods_on_eks(kind)) is not None and not _has_other_network(there):
        result, why = known, "by the network interfaces of their type on EKS"
        if "karpenter.sh/nodepool" not in node.meta.labels:  # others stop at the kubelet's default
            result = min(result, DEFAULT_PODS)
    else:
        own = [one.pods for one in there if one.kind == "Node" and not one.virtual]
        result, why = min((DEFAULT_PODS, *own)), _UNKNOWN
    text = f"pods per machine (maxPods) of a table: {why}"
    note("assumption", text, f"{kind or node.name}: {result}")
    return result


def _has_other_network(there: Iterable[KubernetesNode]) -> bool:
    """Return whether a node takes more pods than its interfaces have addresses."""
    return any(
        (known := pods_on_eks(node.instance_type or "")) is not None and node.pods > known
        for node in there
    )


def _least(nodes: Iterable[KubernetesNode]) -> dict[str, int]:
    """Return what each of some nodes has at least, of each resource but pods."""
    first, *others = [node.further for node in nodes]
    return {
        key: min(amount, *(o.get(key, 0) for o in others)) if others else amount
        for key, amount in first.items()
        if key != "pods"
    }
