"""Limits of nodes that plans keep: those of NodePools, and the share of one kind of spot node."""

from __future__ import annotations

from collections.abc import Iterator

from placeopt.core.files.documents import Document
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.labels import POOL, SPOT, lease_of
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode, amounts
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.quantities import MIB

#: What an amount of a resource is said in, where it is not said in units.
_UNITS = {"cpu": "m", "memory": " MiB", "ephemeral-storage": " MiB"}


def limits_of_nodes(cluster: ReadCluster, options: ImportOptions) -> list[Document]:
    """Return the limits of nodes that a plan keeps."""
    return [*_of_pools(cluster), *_of_spot(cluster, options.max_spot_share)]


def _of_pools(cluster: ReadCluster) -> Iterator[Document]:
    """Yield for each NodePool and resource what may still be bought of it.

    Karpenter counts every node of the NodePool as long as it is there, empty or not; so a plan may
    buy what is left beside them, as it frees nodes after it bought others.
    """
    there: dict[str, list[KubernetesNode]] = {}
    bought: dict[str, list[KubernetesNode]] = {}
    for node in cluster.objects.nodes.values():
        side = bought if node.candidate else there
        side.setdefault(node.meta.labels.get(POOL, ""), []).append(node)
    for pool, nodes in bought.items():
        for key, most in nodes[0].pool_limits.items():
            held = sum(_amount(node, key) for node in there.get(pool, ()))
            amounts = {node.name: _amount(node, key) for node in nodes}
            left = max(0, _whole(most, key, up=False) - held)
            unit = _UNITS.get(key, "")
            text = "limits of NodePools, of all their machine types together and of nodes of now"
            note("kept", text, f"{pool}: {left:,}{unit} of {key} may be bought")
            yield {"name": f"NodePool {pool}: {key}", "amounts": amounts, "most": left}


def _amount(node: KubernetesNode, key: str) -> int:
    """Return how much of a resource a node counts with what the system takes."""
    if key not in ("cpu", "memory"):
        return 1 if key == "nodes" else node.further.get(key, 0)
    told = amounts(node.meta.view["status"]["capacity"], capacity=True)
    machine, value = (node.machine if node.candidate else told), (node.cpu, node.memory)
    cpu, memory = (b if a is None else a for a, b in zip(machine, value, strict=True))
    return cpu if key == "cpu" else _whole(memory, key)


def _whole(amount: int, key: str, *, up: bool = True) -> int:
    """Return an amount as limits have it: memory in MiB, of nodes rounded up."""
    return amount if key != "memory" else -(-amount // MIB) if up else amount // MIB


def _of_spot(cluster: ReadCluster, share: float) -> Iterator[Document]:
    """Yield for each machine type the largest share that spot nodes of it may be."""
    if share == 1:
        return
    kinds: dict[str, list[str]] = {}
    for name, node in cluster.site.nodes.items():
        if lease_of(node.meta.labels) == SPOT:
            kinds.setdefault(node.instance_type or "of no machine type", []).append(name)
    for kind, names in kinds.items():
        note("kept", f"spot nodes of a machine type: at most {share:g} of the nodes in use", kind)
        yield {"name": f"spot {kind}", "amounts": dict.fromkeys(names, 1), "share": share}
