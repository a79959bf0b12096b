"""Volumes of pods: the nodes that reach them, and how many of them a node can attach.

As kube-scheduler asks it: VolumeBinding, VolumeZone, NodeVolumeLimits, VolumeRestrictions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.objects import ClaimSpec, KubernetesNode, PodSpec
from placeopt.kubernetes.values import selects

#: What the documents of rolling updates call the volumes of a driver that a node can attach.
RESOURCE = "volumes of "
_STATIC = "kubernetes.io/no-provisioner"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
#: Volumes in the tree of Kubernetes -> their plug-in, the driver that serves them, and the field
#: that tells them apart.
_IN_TREE = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "volumeID"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "pdName"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com", "diskName"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org", "volumeID"),
    "vsphereVolume": ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "volumePath"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com", "volumeID"),
}
_MIGRATED = {plugin: driver for plugin, driver, _ in _IN_TREE.values()}
#: Ways in which several nodes may have a volume at a time.
SHARED = frozenset(("ReadWriteMany", "ReadOnlyMany"))
#: Volumes of a pod itself that one node at a time can attach.
SINGLE = frozenset((*_IN_TREE, "fc", "iscsi", "rbd", "photonPersistentDisk", "scaleIO", "flocker"))
_ZONES = (
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
)


class Claim(NamedTuple):
    """A claim of a pod: its name, and its spec; no spec where the files do not have it."""

    name: str
    spec: ClaimSpec | None


class Attached(NamedTuple):
    """A volume that a node attaches: its driver, and what tells it from others."""

    driver: str
    handle: str


def claims_of(cluster: ClusterObjects, namespace: str, pod: str, spec: PodSpec) -> list[Claim]:
    """Return the claims of a pod; one that is made with the pod has the spec of its template."""
    results = []
    for volume in spec.volumes:
        if volume.kind == "persistentVolumeClaim":
            known = cluster.claims.get((namespace, volume.claim))
            results.append(Claim(volume.claim, known))
        elif volume.kind == "ephemeral":
            made, own = f"{pod}-{volume.name}", volume.said.volumeClaimTemplate.spec
            results.append(Claim(made, cluster.claims.get((namespace, made), own)))
    return results


# -- from where a volume is reached ----------------------------------------------------------------


def storage_class(cluster: ClusterObjects, claim: ClaimSpec) -> Any:
    """Return the class of a claim, the default class where it names none; None if not on file."""
    if claim.storage_class_name is not None:
        return cluster.classes.get(claim.storage_class_name)
    every = cluster.classes.values()
    return next((c for c in every if c.metadata.annotations.get(_DEFAULT) == "true"), None)


def is_for_one_pod(claim: Claim) -> bool:
    """Return whether one pod at a time may have the volume of a claim."""
    return claim.spec is not None and "ReadWriteOncePod" in claim.spec.access_modes


def waits_for_volume(cluster: ClusterObjects, claim: ClaimSpec) -> bool:
    """Return whether a claim has to be bound before its pod is looked at."""
    if claim.volume_name:
        return False
    if claim.storage_class_name == "":
        return True
    known = storage_class(cluster, claim)
    return known is not None and known.volumeBindingMode in ("", "Immediate")


def signature(cluster: ClusterObjects, claim: ClaimSpec) -> Hashable:
    """Return a key that is the same for claims that are reached from the same nodes."""
    if not claim.volume_name:
        return claim
    volume = cluster.volumes.get(claim.volume_name)
    if volume is None:
        return ""
    labels = (volume.metadata.labels.get(key) for pair in _ZONES for key in pair)
    return (volume.spec.nodeAffinity.required, *labels)


def why_not(cluster: ClusterObjects, claim: ClaimSpec, node: KubernetesNode) -> str:
    """Return why a node does not reach the volume of a claim, empty where it does.

    What is not on file is reached from everywhere.
    """
    if claim.volume_name:
        volume = cluster.volumes.get(claim.volume_name)
        return "" if volume is None else _why_not_bound(volume, node)
    if waits_for_volume(cluster, claim):
        return "pod has unbound immediate PersistentVolumeClaims"
    known = storage_class(cluster, claim)
    if known is None or any(_suits(v, claim, node) for v in cluster.volumes.values()):
        return ""
    if known.provisioner == _STATIC:
        return "node(s) didn't find available persistent volumes to bind"
    terms, labels = known.allowedTopologies, node.meta.labels
    if not terms or any(
        all(labels.get(e.key) in e.values for e in term.matchLabelExpressions) for term in terms
    ):
        return ""
    name = known.metadata.name
    return f"node(s) are not where StorageClass {name} makes volumes (allowedTopologies)"


def _why_not_bound(volume: Any, node: KubernetesNode) -> str:
    if not volume.spec.nodeAffinity.required.holds(node.name, node.meta.labels):
        return "node(s) had volume node affinity conflict"
    labels, own = volume.metadata.labels, node.meta.labels
    for keys in _ZONES:
        legal = [labels[key].split("__") for key in keys if key in labels]
        where = [own[key] for key in keys if key in own]
        if legal and where and where[0] not in legal[0]:
            return "node(s) had no available volume zone"
    return ""


def _suits(volume: Any, claim: ClaimSpec, node: KubernetesNode) -> bool:
    """Return whether a claim could be bound to a volume that is free, on a node."""
    spec = volume.spec
    if spec.claimRef is not None or spec.storageClassName != (claim.storage_class_name or ""):
        return False
    labels, own = node.meta.labels, volume.metadata.labels
    size = spec.capacity.get("storage", Fraction())
    need = claim.resources.requests.get("storage", Fraction())
    chosen = claim.selector is None or selects(claim.selector, own)
    alike = (spec.volumeMode or "Filesystem") == claim.volume_mode
    modes = set(claim.access_modes) <= set(spec.accessModes)
    near = spec.nodeAffinity.required.holds(node.name, labels)
    return modes and size >= need and chosen and alike and near


# -- how many a node attaches ----------------------------------------------------------------------


def attached_by(
    cluster: ClusterObjects, namespace: str, pod: str, spec: PodSpec
) -> frozenset[Attached]:
    """Return the volumes that a node attaches for a pod, of the drivers that have a limit."""
    if not cluster.volume_limits:
        return frozenset()
    existing = {driver for limits in cluster.volume_limits.values() for driver in limits}
    results = {
        attached
        for claim in claims_of(cluster, namespace, pod, spec)
        if claim.spec is not None
        for attached in _attached(cluster, namespace, claim.name, claim.spec)
    }
    for volume in spec.volumes:
        results.update(_in_tree(volume.kind, volume.said))
    return frozenset(one for one in results if one.driver in existing)


def _attached(
    cluster: ClusterObjects, namespace: str, name: str, claim: ClaimSpec
) -> Iterator[Attached]:
    if claim.volume_name:
        volume = cluster.volumes.get(claim.volume_name)
        if volume is not None:
            yield from _of_volume(volume.spec)
        return
    known = storage_class(cluster, claim)
    if known is not None and known.provisioner != _STATIC:
        yield Attached(_MIGRATED.get(known.provisioner, known.provisioner), f"{namespace}/{name}")


def _of_volume(spec: Any) -> Iterator[Attached]:
    if spec.csi is not None:
        yield Attached(spec.csi.driver, spec.csi.volumeHandle)
    for kind in _IN_TREE:
        if getattr(spec, kind) is not None:
            yield from _in_tree(kind, getattr(spec, kind))


def _in_tree(kind: str, said: Any) -> Iterator[Attached]:
    if kind in _IN_TREE:
        _, driver, key = _IN_TREE[kind]
        yield Attached(driver, getattr(said, key))


def attachments(cluster: ClusterObjects) -> Iterator[tuple[str, Attached]]:
    """Yield (node, volume) of what the files say is attached, whichever pod it is for."""
    for one in cluster.attachments:
        volume = cluster.volumes.get(one.spec.source.persistentVolumeName)
        if volume is not None:
            for attached in _of_volume(volume.spec):
                yield one.spec.nodeName, attached


def limits_of(
    cluster: ClusterObjects, nodes: Sequence[KubernetesNode]
) -> Mapping[str, dict[str, int]]:
    """Return the most volumes of each driver that nodes attach.

    Nodes that are not there yet attach as many as those of their machine type, else as the node
    with the lowest limit.
    """
    results = {node.name: cluster.volume_limits.get(node.name, {}) for node in nodes}
    if not cluster.volume_limits:
        return results
    types = {name: node.instance_type for name, node in cluster.nodes.items()}
    lowest: dict[tuple[str | None, str], int] = {}
    for name, limits in cluster.volume_limits.items():
        for driver, most in limits.items():
            for kind in (None, types.get(name)):
                lowest[kind, driver] = min(most, lowest.get((kind, driver), most))
    drivers = {driver for _, driver in lowest}
    for node in nodes:
        if node.name in cluster.candidates and node.name not in cluster.volume_limits:
            results[node.name] = {
                driver: lowest.get((node.instance_type, driver), lowest[None, driver])
                for driver in drivers
            }
    return results
