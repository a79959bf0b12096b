"""Volumes of pods: the nodes that reach them, and how many of them a node can attach.

As kube-scheduler asks it: VolumeBinding, VolumeZone, NodeVolumeLimits, VolumeRestrictions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.objects import KubernetesNode, PodSpec, quantity, selects, term_holds
from placeopt.kubernetes.quantities import whole_bytes
from placeopt.kubernetes.reading import View

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
    spec: View | None


class Attached(NamedTuple):
    """A volume that a node attaches: its driver, and what tells it from others."""

    driver: str
    handle: str


def claims_of(cluster: ClusterObjects, namespace: str, pod: str, spec: PodSpec) -> list[Claim]:
    """Return the claims of a pod; one that is made with the pod has the spec of its template."""
    results = []
    for name, kind, claim in spec.volumes:
        if kind == "persistentVolumeClaim":
            results.append(Claim(claim, cluster.claims.get((namespace, claim))))
        elif kind == "ephemeral":
            made = f"{pod}-{name}"
            view = next(v for v in spec.view["volumes"].items() if v["name"].value == name)
            own = view["ephemeral"]["volumeClaimTemplate"]["spec"]
            results.append(Claim(made, cluster.claims.get((namespace, made), own)))
    return results


# -- from where a volume is reached ----------------------------------------------------------------


def storage_class(cluster: ClusterObjects, claim: View) -> View | None:
    """Return the class of a claim, the default class where it names none; None if not on file."""
    if claim["storageClassName"]:
        return cluster.classes.get(claim["storageClassName"].text())
    marked = (
        view
        for view in cluster.classes.values()
        if view["metadata"]["annotations"].mapping().get(_DEFAULT) == "true"
    )
    return next(marked, None)


def is_for_one_pod(claim: Claim) -> bool:
    """Return whether one pod at a time may have the volume of a claim."""
    modes = () if claim.spec is None else claim.spec["accessModes"].items()
    return any(mode.text() == "ReadWriteOncePod" for mode in modes)


def waits_for_volume(cluster: ClusterObjects, claim: View) -> bool:
    """Return whether a claim has to be bound before its pod is looked at."""
    if claim["volumeName"]:
        return False
    if claim["storageClassName"].value == "":
        return True
    known = storage_class(cluster, claim)
    return known is not None and known["volumeBindingMode"].text("Immediate") == "Immediate"


def signature(cluster: ClusterObjects, claim: View) -> str:
    """Return a text that is the same for claims that are reached from the same nodes."""
    if name := claim["volumeName"].text():
        volume = cluster.volumes.get(name)
        if volume is None:
            return ""
        terms = volume["spec"]["nodeAffinity"]["required"].value
        labels = volume["metadata"]["labels"].mapping()
        return json.dumps([terms, {k: labels.get(k) for pair in _ZONES for k in pair}])
    return json.dumps(claim.value, sort_keys=True, default=str)


def why_not(cluster: ClusterObjects, claim: View, node: KubernetesNode) -> str:
    """Return why a node does not reach the volume of a claim, empty where it does.

    What is not on file is reached from everywhere.
    """
    if claim["volumeName"]:
        volume = cluster.volumes.get(claim["volumeName"].text())
        return "" if volume is None else _why_not_bound(volume, node)
    if waits_for_volume(cluster, claim):
        return "pod has unbound immediate PersistentVolumeClaims"
    known = storage_class(cluster, claim)
    if known is None or any(_suits(v, claim, node) for v in cluster.volumes.values()):
        return ""
    if known["provisioner"].text() == _STATIC:
        return "node(s) didn't find available persistent volumes to bind"
    terms = list(known["allowedTopologies"].items())
    if not terms or any(_is_within(term, node) for term in terms):
        return ""
    name = known["metadata"]["name"].text()
    return f"node(s) are not where StorageClass {name} makes volumes (allowedTopologies)"


def _why_not_bound(volume: View, node: KubernetesNode) -> str:
    if not _is_near(volume, node):
        return "node(s) had volume node affinity conflict"
    labels, own = volume["metadata"]["labels"].mapping(), node.meta.labels
    for keys in _ZONES:
        legal = [str(labels[key]).split("__") for key in keys if key in labels]
        where = [own[key] for key in keys if key in own]
        if legal and where and where[0] not in legal[0]:
            return "node(s) had no available volume zone"
    return ""


def _is_near(volume: View, node: KubernetesNode) -> bool:
    terms = list(volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].items())
    return not terms or any(term_holds(term, node) for term in terms)


def _is_within(term: View, node: KubernetesNode) -> bool:
    """Return whether a node is where a term of allowed topologies says."""
    return all(
        node.meta.labels.get(e["key"].text()) in [v.text() for v in e["values"].items()]
        for e in term["matchLabelExpressions"].items()
    )


def _suits(volume: View, claim: View, node: KubernetesNode) -> bool:
    """Return whether a claim could be bound to a volume that is free, on a node."""
    spec = volume["spec"]
    if spec["claimRef"] or spec["storageClassName"].text() != claim["storageClassName"].text():
        return False
    modes = {mode.text() for mode in spec["accessModes"].items()}
    wanted = {mode.text() for mode in claim["accessModes"].items()}
    size = quantity(spec["capacity"]["storage"], whole_bytes, capacity=True) or 0
    need = quantity(claim["resources"]["requests"]["storage"], whole_bytes) or 0
    labels = volume["metadata"]["labels"].labels()
    chosen = claim["selector"].value is None or selects(claim["selector"], labels)
    kinds = {view["volumeMode"].text("Filesystem") for view in (spec, claim)}
    return (
        wanted <= modes and size >= need and chosen and len(kinds) == 1 and _is_near(volume, node)
    )


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
    for view in spec.view["volumes"].items():
        results.update(_in_tree(view))
    return frozenset(one for one in results if one.driver in existing)


def _attached(
    cluster: ClusterObjects, namespace: str, name: str, claim: View
) -> Iterator[Attached]:
    if claim["volumeName"]:
        volume = cluster.volumes.get(claim["volumeName"].text())
        if volume is not None:
            yield from _of_volume(volume["spec"])
        return
    known = storage_class(cluster, claim)
    if known is not None and (maker := known["provisioner"].text()) != _STATIC:
        yield Attached(_MIGRATED.get(maker, maker), f"{namespace}/{name}")


def _of_volume(spec: View) -> Iterator[Attached]:
    if spec["csi"]:
        yield Attached(spec["csi"]["driver"].text(), spec["csi"]["volumeHandle"].text())
    yield from _in_tree(spec)


def _in_tree(view: View) -> Iterator[Attached]:
    for kind, (_, driver, key) in _IN_TREE.items():
        if view[kind]:
            yield Attached(driver, view[kind][key].text())


def attachments(cluster: ClusterObjects) -> Iterator[tuple[str, Attached]]:
    """Yield (node, volume) of what the files say is attached, whichever pod it is for."""
    for spec in cluster.attachments:
        volume = cluster.volumes.get(spec["source"]["persistentVolumeName"].text())
        if volume is not None:
            for one in _of_volume(volume["spec"]):
                yield spec["nodeName"].text(), one


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
