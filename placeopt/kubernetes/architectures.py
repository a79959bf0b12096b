"""Processor architectures: of machines by their names, and of what runs on them.

The files say nothing of an image itself. It is known to run where a ready pod runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from placeopt.core.files.documents import Document
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode, PodSpec
from placeopt.kubernetes.replicas import Replica

AMD64, ARM64 = "amd64", "arm64"
ARCH = "kubernetes.io/arch"
_KEYS = (ARCH, "beta.kubernetes.io/arch")
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"
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
    return [c.view["image"].text() for c in (*spec.containers, *spec.inits)]


def _chooses(spec: PodSpec) -> bool:
    """Return whether a pod says itself on which architectures it runs."""
    terms = spec.affinity["nodeAffinity"][_HARD]["nodeSelectorTerms"].items()
    keys = [e["key"].text() for t in terms for e in t["matchExpressions"].items()]
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
