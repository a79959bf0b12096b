"""The replicas to place, running or asked for by manifests, and the volumes that hold them.

Pods of a DaemonSet, static pods and pods that are ending are bound to their node: they take of its
capacity and do not keep it in use. Other pods that must not move (`stays`) do keep it in use. Of
volumes it is asked as kube-scheduler does: VolumeBinding, VolumeZone, NodeVolumeLimits,
VolumeRestrictions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from placeopt.kubernetes.admission import (
    Admission,
    Changing,
    PodSize,
    as_scheduled,
    effective,
    under_way,
)
from placeopt.kubernetes.manifests import ENDED, ClusterObjects, Key
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.names import is_served
from placeopt.kubernetes.objects import ClaimSpec, KubernetesNode, Pod, PodSpec, Workload
from placeopt.kubernetes.origin import note, tolerated
from placeopt.kubernetes.values import Amounts, selects

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


# -- the replicas to place, running or asked for by manifests --------------------------------------


T = TypeVar("T")
U = TypeVar("U")

_MIRROR = "kubernetes.io/config.mirror"
#: Replicas that manifests may ask for.
MAX_REPLICAS = 50_000


@dataclass(frozen=True)
class Replica:
    """One replica.

    `node` is None where it does not run yet; `bound` says why it comes with its node, empty where
    that is not so; `pins` are all reasons why it must not move, `stays` is the first; `ending`
    whether it is being deleted; `attached` are its volumes of drivers with limits, `resized` the
    containers that ask for another amount than their template, `over_limits` whether one asks for
    more than the limits of its template, `named` the node that its template names.
    """

    namespace: str
    kind: str
    workload: str
    name: str
    pod: str | None
    node: str | None
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: PodSpec
    size: PodSize
    bound: str = ""
    pins: tuple[str, ...] = ()
    ready: bool = True
    uid: str | None = None
    ending: bool = False
    attached: frozenset[Attached] = frozenset()
    resized: frozenset[str] = frozenset()
    over_limits: bool = False
    named: str = ""

    @property
    def stays(self) -> str:
        """Why it must not move, the first reason; empty where it may."""
        return self.pins[0] if self.pins else ""

    @property
    def further(self) -> Mapping[str, int]:
        """What it asks for besides cpu and memory: pods, GPUs, ephemeral storage in MiB, ..."""
        return self.spec.further

    @property
    def key(self) -> Key:
        """(namespace, name) of its workload."""
        return self.namespace, self.workload

    @property
    def owner(self) -> tuple[str, str, str]:
        """(namespace, kind, name) of its workload."""
        return self.namespace, self.kind, self.workload

    @property
    def is_static(self) -> bool:
        """Whether the kubelet of its node runs it by itself."""
        return self.kind == "Node" or _MIRROR in self.annotations

    @property
    def is_served(self) -> bool:
        """Whether it gets a machine of its own, which no plan knows."""
        return is_served(self.spec.scheduler_name, self.labels)

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.namespace}/{self.name}"


def units(cluster: ClusterObjects, rules: MovingRules) -> list[Replica]:
    """Return the replicas of a cluster, those that are bound to their node among them.

    Where the files have pods, these are what runs; else the replicas that the manifests ask for.

    Raises
    ------
    DocumentError
        Requests are missing and the policy does not fill them in; or it is gathered.
    """
    return (_running if cluster.pods else _wanted)(cluster, rules)


def _running(cluster: ClusterObjects, rules: MovingRules) -> list[Replica]:
    result, changing, taken = [], under_way(cluster), _taken(cluster)
    for pod in cluster.pods:
        kind, name = cluster.owner(pod)
        waits = not pod.spec.node and not _nominated(pod)
        change = changing.get((pod.meta.namespace, kind, name))
        why = _why_left_out(cluster, pod, rules, taken, change)
        if why:
            note("left-out", why, pod.meta.label)
            continue
        size = PodSize(0, 0)  # where the fault is gathered: later stages are looked at, too
        with tolerated():
            size = effective(pod.spec, rules.policy, pod.meta.label)
        result.append(unit_of(cluster, pod, rules, size))
        if waits:
            text = "pods that wait for a node (pending) are to be placed"
            note("assumption", text, pod.meta.label)
    pods = {(p.meta.namespace, *cluster.owner(p)) for p in cluster.pods if p.phase not in ENDED}
    new = {
        k: w
        for k, w in cluster.workloads.items()
        if k not in pods and w.replicas and k[1] != "DaemonSet" and rules.plans(k[0])
    }
    if rules.adopts:
        return result + _beside(cluster, new, rules)
    for key in new:
        note("left-out", "workloads without a running pod", f"{key[0]}/{key[2]}")
    return result


def _taken(cluster: ClusterObjects) -> set[tuple[str, str]]:
    """Return the claims that pods with a node use."""
    results = set()
    for pod in cluster.pods:
        if pod.spec.node and pod.phase not in ENDED:
            space = pod.meta.namespace
            results |= {(space, c.name) for c in claims_of(cluster, space, pod.meta.name, pod.spec)}
    return results


def _nominated(pod: Pod) -> str:
    """Return the node on which the scheduler makes room for a pod that waits; empty for none."""
    return str(pod.told.nominatedNodeName)


def _why_left_out(
    cluster: ClusterObjects,
    pod: Pod,
    rules: MovingRules,
    taken: set[tuple[str, str]],
    change: Changing | None,
) -> str:
    """Return why a pod is not looked at, empty where it is."""
    if pod.phase in ENDED:
        return "pods that have ended"
    if pod.spec.node or (rules.adopts and _nominated(pod)):
        return ""
    if pod.leaving:
        return "pods that are being deleted and have no node"
    if not rules.adopts:
        return "pods that no node runs (pending)"
    if is_served(pod.spec.scheduler_name, pod.meta.labels):
        return "pods that wait for a machine of their own (Fargate)"
    if pod.spec.scheduling_gates:
        return "pods with scheduling gates: the scheduler is told not to start them yet"
    if is_expendable(cluster, pod.spec, rules.expendable):
        return "pods that wait and are expendable (--expendable)"
    if change is not None and not change.wanted:
        return f"pods that wait, {change.text}"
    if pod.meta.namespace in cluster.leaving:
        return "pods that wait, in a namespace that is being deleted"
    claims = claims_of(cluster, pod.meta.namespace, pod.meta.name, pod.spec)
    if any((pod.meta.namespace, c.name) in cluster.lost_claims for c in claims):
        return "pods that wait for a volume claim that is lost or being deleted"
    if any((pod.meta.namespace, c.name) in taken and is_for_one_pod(c) for c in claims):
        return "pods that wait for a volume that another pod has (ReadWriteOncePod)"
    if any(c.spec is not None and waits_for_volume(cluster, c.spec) for c in claims):
        return "pods that wait for a volume: their claim has to be bound first"
    return ""


def unit_of(
    cluster: ClusterObjects, pod: Pod, rules: MovingRules, size: PodSize | None = None
) -> Replica:
    """Return a pod as a replica; without a size it has that which the scheduler counts."""
    meta, spec = pod.meta, pod.spec
    kind, name = cluster.owner(pod)
    where = spec.node or (_nominated(pod) if rules.adopts else "")
    node = cluster.nodes.get(where)
    resized, over = _resized(cluster, pod)
    return Replica(
        namespace=meta.namespace,
        kind=kind,
        workload=name,
        name=meta.name,
        pod=meta.name,
        node=where or None,
        labels=meta.labels,
        annotations=meta.annotations,
        spec=spec,
        size=as_scheduled(spec) if size is None else size,
        bound=_bound(kind, pod) or _why_expendable(cluster, spec, rules),
        ready=pod.ready and (node is None or node.ready),
        uid=meta.uid,
        ending=pod.leaving,
        attached=attached_by(cluster, meta.namespace, meta.name, spec),
        resized=resized,
        over_limits=over,
        named=cluster.named_node(pod),
    )


def _resized(cluster: ClusterObjects, pod: Pod) -> tuple[frozenset[str], bool]:
    """Return the containers that ask for another amount than their template.

    And whether one asks for more than the limit that its template gives to copies.
    """
    result, over = set(), False
    template = cluster.template_of(pod)
    for c in (c for c in pod.spec.lasting if c.name in template):
        made = template[c.name]
        for now, wanted, limit in zip(c.requests, made.requests, made.limits, strict=True):
            if wanted is not None and now != wanted:
                result.add(c.name)
                over |= limit is not None and (now or 0) > limit
    return frozenset(result), over


def _why_expendable(cluster: ClusterObjects, spec: PodSpec, rules: MovingRules) -> str:
    """Return that a pod is expendable, empty where it is not."""
    if is_expendable(cluster, spec, rules.expendable):
        return f"pods of a lower priority than {rules.expendable} (--expendable)"
    return ""


def comes_with_node(kind: str, pod: Pod) -> str:
    """Return what a pod is that comes with its node, whose controller is of a kind; else empty."""
    if kind == "DaemonSet":
        return "pods of a DaemonSet"
    return "static pods" if kind == "Node" or _MIRROR in pod.meta.annotations else ""


def _bound(kind: str, pod: Pod) -> str:
    if text := comes_with_node(kind, pod):
        return text
    if not pod.spec.node and _nominated(pod):
        return "pods that wait for room that the scheduler makes on their node (nominated)"
    return "pods that are ending: they hold their room until they are gone" if pod.leaving else ""


def _beside(
    cluster: ClusterObjects,
    new: Mapping[tuple[str, str, str], Workload],
    rules: MovingRules,
) -> list[Replica]:
    """Return the replicas of workloads without a pod, as far as they may be made."""
    admission, result = Admission(cluster), []
    for unit in _replicas(cluster, new, rules):
        label = f"{unit.namespace}/{unit.workload}"
        if why := admission.why_no_copy(unit.namespace, unit.spec):
            note("left-out", why, label)
            continue
        admission.take(unit.namespace, unit.spec)
        result.append(unit)
        text = "workloads without a pod are to be placed beside what runs"
        note("assumption", text, label)
    return result


def _wanted(cluster: ClusterObjects, rules: MovingRules) -> list[Replica]:
    return _replicas(cluster, cluster.workloads, rules)


def _replicas(
    cluster: ClusterObjects,
    workloads: Mapping[tuple[str, str, str], Workload],
    rules: MovingRules,
) -> list[Replica]:
    """Return the replicas that workloads ask for."""
    results: list[Replica] = []
    for (space, kind, name), workload in workloads.items():
        label = f"{space}/{name}"
        if not rules.plans(space) and kind != "DaemonSet":
            continue
        if kind == "CronJob":
            note("left-out", "CronJobs: they run at times only", label)
            continue
        if workload.replicas == 0:
            note("left-out", "workloads of no replicas", label)
            continue
        if workload.spec.scheduling_gates:
            text = "pods with scheduling gates: the scheduler is told not to start them yet"
            note("left-out", text, label)
            continue
        if kind != "DaemonSet" and is_expendable(cluster, workload.spec, rules.expendable):
            note("left-out", "workloads whose pods are expendable (--expendable)", label)
            continue
        size = PodSize(0, 0)
        with tolerated():
            policy = rules.policy.after(default_requests(cluster, space))
            size = effective(workload.spec, policy, label)
        count = 1 if kind == "DaemonSet" else workload.replicas
        if len(results) + count > MAX_REPLICAS:
            raise workload.meta.place.fault(
                f"more than {MAX_REPLICAS:,} replicas in all", "plan fewer at once: --namespace"
            )
        for k in range(count):
            own = name if count == 1 else f"{name}-{k + 1}"
            results.append(unit_of_template(cluster, (space, kind, name), workload, own, size))
    return results


def unit_of_template(
    cluster: ClusterObjects,
    owner: tuple[str, str, str],
    workload: Workload,
    name: str,
    size: PodSize,
) -> Replica:
    """Return a replica of the template of a workload."""
    space, kind, above = owner
    return Replica(
        namespace=space,
        kind=kind,
        workload=above,
        name=name,
        pod=None,
        node=None,
        labels=workload.labels,
        annotations=workload.annotations,
        spec=workload.spec,
        size=size,
        bound="pods of a DaemonSet" if kind == "DaemonSet" else "",
        attached=attached_by(cluster, space, name, workload.spec),
        named=workload.spec.node,
    )


def default_requests(cluster: ClusterObjects, namespace: str) -> Amounts:
    """Return the requests that LimitRanges of a namespace give to containers without any.

    Where they say none it is their limit, the largest one, or the smallest request.
    """
    cpu = memory = None
    for limit in cluster.limits_of_containers(namespace):
        for default in (limit.defaultRequest, limit.default, limit.max, limit.min):
            one, other = default.amounts
            cpu, memory = one if cpu is None else cpu, other if memory is None else memory
    return cpu, memory


def article(word: str) -> str:
    """Return a word with its indefinite article."""
    return f"{'an' if word[:1] in 'AEIOU' else 'a'} {word}"


def grouped(units: Iterable[U], of: Callable[[U], T]) -> dict[T, list[U]]:
    """Return replicas, or nodes, by the group that `of` names, in their order."""
    results: dict[T, list[U]] = {}
    for unit in units:
        results.setdefault(of(unit), []).append(unit)
    return results


def priority_of(cluster: ClusterObjects, spec: PodSpec) -> int:
    """Return the priority of a pod: its own, that of its class, of the default class, 0."""
    if spec.priority is not None:
        return spec.priority
    known = cluster.priorities
    if name := spec.priority_class_name:
        return (known[name].value or 0) if name in known else 0
    return max((one.value or 0 for one in known.values() if one.globalDefault), default=0)


def is_expendable(cluster: ClusterObjects, spec: PodSpec, below: int | None) -> bool:
    """Return whether a pod's priority is lower than `below`; None lets no pod be expendable."""
    return below is not None and priority_of(cluster, spec) < below
