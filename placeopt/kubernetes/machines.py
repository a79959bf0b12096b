"""What machines have that no file tells of: architectures, pods a node, disks."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from placeopt.core.files.documents import Document
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.names import completed, drivers_in
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import DEFAULT_PODS, KubernetesNode, PodSpec
from placeopt.kubernetes.replicas import Replica

# -- architectures ---------------------------------------------------------------------------------
#
# The files say nothing of an image itself. It is known to run where a ready pod runs it.

AMD64, ARM64 = "amd64", "arm64"
ARCH = "kubernetes.io/arch"
_KEYS = (ARCH, "beta.kubernetes.io/arch")
#: Machine types of a provider, and those of them that are arm64; in lower case.
_PROVIDERS = (
    # Azure, "Virtual machine sizes naming conventions": p behind the number of vCPUs is ARM.
    # Accelerators of the kinds GB200 and GB300 come with an ARM processor.
    (r"(standard|basic)_.+", r"standard_[a-z]+\d+(-\d+)?[a-z]*p[a-z]*(_.*)?|.*_gb[23]00.*"),
    # AWS, "Amazon EC2 instance type naming conventions": g behind the generation is Graviton. A1
    # is Graviton, too; GB200 comes with an ARM processor; Mac2 and later are Apple silicon.
    (
        r"[a-z][a-z0-9-]*\.(\d*x?large|nano|micro|small|medium|metal)(-.*)?",
        r"(a1|[a-z]+\d+[a-z]*g[a-z]*(-.*)?|.*-gb\d+.*|mac2.*|mac-m\d.*)\..+",
    ),
    # Google Cloud, "Arm VMs on Compute": T2A is Ampere, C4A and N4A are Axion, A4X is Grace.
    (r"[a-z]\d+[a-z]*(-[a-z0-9]+)+|custom-\d.*", r"(t2a|c4a|n4a|a4x)-.*"),
    # Oracle Cloud, "Arm-Based Compute": shapes A1, A2 and A4 are Ampere.
    (r"(vm|bm)\..+", r"(vm|bm)\.standard\.a\d+\..*"),
    # Alibaba Cloud, "Overview of instance families": 6r is Ampere, 8y is Yitian.
    (r"ecs\..+", r"ecs\.[cgr](6r|8y)\..*"),
    # Hetzner Cloud, server types: CAX is Ampere.
    (r"c(x|px|ax|cx)\d+", r"cax\d+"),
)


def of_machine_type(kind: str) -> str | None:
    """Return the architecture of a machine type by its name; None where no provider names so.

    Examples
    --------
    >>> of_machine_type("m6g.xlarge"), of_machine_type("m6i.xlarge"), of_machine_type("rack-7")
    ('arm64', 'amd64', None)
    """
    name = kind.lower()
    arm = next((arm for known, arm in _PROVIDERS if re.fullmatch(known, name)), None)
    if arm is None:
        return None
    return ARM64 if re.fullmatch(arm, name) else AMD64


def of_node(node: KubernetesNode) -> str:
    """Return the architecture of a node: its label, what its machine type says, amd64."""
    kind = node.instance_type
    return node.label(*_KEYS) or (of_machine_type(kind) if kind else None) or AMD64


@dataclass
class RunsOn:
    """On which architectures the images of a cluster are known to run.

    Attributes
    ----------
    images : dict of str to set of str
        Image -> architectures of nodes on which a ready pod runs it.
    there : set of str
        Architectures of the nodes that are there.
    """

    images: dict[str, set[str]] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, cluster: ClusterObjects) -> RunsOn:
        """Return what the pods of a cluster show."""
        result = cls()
        machines = {
            name: of_node(node)
            for name, node in cluster.nodes.items()
            if name not in cluster.candidates
        }
        result.there = set(machines.values())
        for pod in cluster.pods:
            if pod.ready and pod.spec.node in machines:
                for image in _images(pod.spec):
                    result.images.setdefault(image, set()).add(machines[pod.spec.node])
        return result

    def of(self, unit: Replica, nodes: Mapping[str, KubernetesNode]) -> set[str]:
        """Return the architectures that a replica is known to run on; none where nothing is known.

        Those on which all of its images run, and that of its own node. One that runs nowhere, of
        images that nobody runs, may go where the cluster has nodes.
        """
        sets = [self.images.get(image, set()) for image in _images(unit.spec)]
        known = set.intersection(*sets) if sets else set()
        here = nodes.get(unit.node or "")
        if here is not None:
            known = known | {of_node(here)}
        return known or self.there


def _images(spec: PodSpec) -> list[str]:
    return [c.image for c in spec.every]


def _chooses(spec: PodSpec) -> bool:
    """Return whether a pod says itself on which architectures it runs."""
    keys = [one.key for one in spec.affinity.nodes.required.requirements]
    return any(key in spec.selector or key in keys for key in _KEYS)


def keep_to_known(
    document: Document,
    units: Sequence[Replica],
    nodes: Mapping[str, KubernetesNode],
    cluster: ClusterObjects,
    *,
    anywhere: bool,
) -> None:
    """Keep replicas of a rolling update on architectures that their images are known to run on.

    Parameters
    ----------
    document : dict
        The instance; changed in place.
    units : sequence of Replica
    nodes : mapping of str to KubernetesNode
    cluster : ClusterObjects
    anywhere : bool
        Names them only, and lets them go anywhere.
    """
    machines = {name: of_node(node) for name, node in nodes.items()}
    if len(set(machines.values())) < 2:
        return
    known, by_name = RunsOn.read(cluster), {(u.namespace, u.name): u for u in units}
    sets: dict[str, list[str]] = document.get("node_sets", {})
    for record, unit in _movable(document, by_name):
        legal = sets[record["allowed"]] if "allowed" in record else list(nodes)
        runs_on = known.of(unit, nodes)
        others = {machines[name] for name in legal} - runs_on
        if not runs_on or not others:
            continue
        text = f"pods whose images are not known to run on {', '.join(sorted(others))}"
        text += (
            ": a copy there may fail (--architectures any)"
            if anywhere
            else " stay off it (--architectures any lets them go there)"
        )
        note("assumption", text, f"{unit.namespace}/{unit.workload}")
        if not anywhere:
            name = f"{record.get('allowed', 'nodes')} of {', '.join(sorted(runs_on))}"
            if name not in sets:
                sets[name] = [n for n in legal if machines[n] in runs_on]
            record["allowed"] = name
    if sets:
        document["node_sets"] = sets


def _movable(
    document: Document, by_name: Mapping[tuple[str, str], Replica]
) -> Iterable[tuple[Document, Replica]]:
    """Yield the records of replicas that may move and say nothing of architectures."""
    for application in document["applications"]:
        space = application["name"].partition(" ")[0]
        for record in application["microservices"]:
            unit = by_name[space, record["name"]]
            if not (unit.stays or _chooses(unit.spec)):
                yield record, unit


# -- nodes of tables -------------------------------------------------------------------------------
#
# ``interfaces.csv`` has the network interfaces of machine types of AWS and the IPv4 addresses of
# each: facts that Amazon publishes (`zz_generated.vpclimits.go` of aws/karpenter-provider-aws,
# 2026-08-06; EC2 user guide, "IP addresses per network interface per instance type"). A card beside
# the default one does not count, as the VPC CNI does not use it.

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
        node = replace(node, meta=node.meta.labelled(completed(node.meta.labels, drivers)))
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
