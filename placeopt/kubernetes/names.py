"""Names of Kubernetes: kinds of objects, and labels of nodes that several tools give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

# -- kinds -----------------------------------------------------------------------------------------

#: Annotation of a copy that a script made: the node to which its affinity binds it. Its template
#: is not bound.
BOUND = "placeopt-bound"
#: Kinds that make pods, and the groups of their API.
WORKLOADS = {
    "Deployment": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "DaemonSet": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "Job": ("batch",),
    "CronJob": ("batch",),
}
#: Kinds that are read, and the groups of their API.
KINDS = {
    **WORKLOADS,
    "Pod": ("",),
    "Node": ("",),
    "Service": ("",),
    "PodDisruptionBudget": ("policy",),
    "PersistentVolumeClaim": ("",),
    "PersistentVolume": ("",),
    "Namespace": ("",),
    "LimitRange": ("",),
    "ResourceQuota": ("",),
    "StorageClass": ("storage.k8s.io",),
    "CSINode": ("storage.k8s.io",),
    "VolumeAttachment": ("storage.k8s.io",),
    "RuntimeClass": ("node.k8s.io",),
    "PriorityClass": ("scheduling.k8s.io",),
    "Ingress": ("networking.k8s.io", "extensions"),
    "HorizontalPodAutoscaler": ("autoscaling",),
    "VerticalPodAutoscaler": ("autoscaling.k8s.io",),
    "Cluster": ("cluster.karmada.io",),
    "PropagationPolicy": ("policy.karmada.io",),
    "ClusterPropagationPolicy": ("policy.karmada.io",),
}
#: What to ask a cluster for: all kinds that are read and that every cluster has.
RESOURCES = (
    "nodes,pods,deployments,replicasets,replicationcontrollers,statefulsets,daemonsets,jobs,"
    "cronjobs,services,ingresses,poddisruptionbudgets,horizontalpodautoscalers,"
    "persistentvolumeclaims,persistentvolumes,storageclasses,csinodes,volumeattachments,"
    "runtimeclasses,priorityclasses,resourcequotas,limitranges,namespaces"
)
#: The command whose output has all that an import reads.
DUMP = f"kubectl get {RESOURCES} -A -o json"
#: Kinds that a plan knows nothing of where the files hold none, and that it may depend on; and
#: those of pods with claims of volumes.
_EXPECTED = (
    "PodDisruptionBudget",
    "ResourceQuota",
    "LimitRange",
    "Deployment",
    "ReplicaSet",
    "DaemonSet",
    "HorizontalPodAutoscaler",
    "Namespace",
)
_OF_VOLUMES = (
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "VolumeAttachment",
)
#: What a note says of them.
ABSENT = "not in the files, counted as not in the cluster"
#: Kinds that are in no namespace.
UNSPACED = {
    "Node",
    "Cluster",
    "PersistentVolume",
    "Namespace",
    "StorageClass",
    "PriorityClass",
    "CSINode",
    "VolumeAttachment",
    "RuntimeClass",
}
#: What could change about a plan -> the kinds that say it.
_MATTER = {
    "a webhook may change or refuse the copies of a plan": (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "an autoscaler may add nodes, remove them or move pods meanwhile": (
        "NodePool",
        "NodeClaim",
        "NodeClass",
        "EC2NodeClass",
        "AKSNodeClass",
        "Machine",
        "MachineSet",
        "MachineDeployment",
        "MachinePool",
        "ProvisioningRequest",
        "DeschedulerPolicy",
    ),
    "an autoscaler may change the number of replicas meanwhile": ("ScaledObject", "ScaledJob"),
    "which nodes have the devices of resource claims": (
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "DeviceClass",
    ),
    "the room of a storage for volumes that are not made yet": ("CSIStorageCapacity",),
    "pods that are started together, or are let in by a queue": (
        "PodGroup",
        "Workload",
        "ClusterQueue",
        "LocalQueue",
        "Queue",
    ),
}
_CHANGE = {kind: change for change, kinds in _MATTER.items() for kind in kinds}


def absent(held: Collection[str], *, volumes: bool = False) -> list[str]:
    """Return the kinds that a plan may depend on and that files, which hold some kinds, do not.

    `volumes` says whether pods have claims of volumes.

    Examples
    --------
    >>> absent({"Pod", "Node", "Deployment", "ReplicaSet", "ResourceQuota"})[:2]
    ['PodDisruptionBudget', 'LimitRange']
    """
    expected = (*_EXPECTED, *(_OF_VOLUMES if volumes else ()))
    return [kind for kind in expected if kind not in held]


def matters(kind: str) -> bool:
    """Return whether it is known what a kind could change, though it is not read."""
    return kind in _CHANGE


def note_of(kind: str) -> tuple[str, str]:
    """Return the topic and the text of the note about a kind that is not read.

    Examples
    --------
    >>> note_of("Secret")
    ('ignored', 'Secret is not read')
    >>> note_of("ResourceSlice")
    ('not-expressed', 'ResourceSlice is not read: which nodes have the devices of resource claims')
    """
    if kind in _CHANGE:
        return "not-expressed", f"{kind} is not read: {_CHANGE[kind]}"
    return "ignored", f"{kind} is not read"


# -- labels ----------------------------------------------------------------------------------------
#
# One fact has several keys: the one of today, the one of Kubernetes before 1.17, and those that the
# drivers of volumes give once a node has registered. Pods ask by any of them.

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
TYPE, ARCH, OS = "node.kubernetes.io/instance-type", "kubernetes.io/arch", "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
#: Label of the nodes that a NodePool makes; its value is the name of the NodePool.
POOL = "karpenter.sh/nodepool"
#: Keys from before Kubernetes 1.17 -> those of today; clouds and Karpenter give both.
OLD = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/instance-type": TYPE,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
}
#: Keys that drivers of volumes give to the nodes on which they run -> what they say again.
DRIVERS = {
    "topology.ebs.csi.aws.com/zone": ZONE,
    "topology.gke.io/zone": ZONE,
    "topology.disk.csi.azure.com/zone": ZONE,
    "topology.cinder.csi.openstack.org/zone": ZONE,
    "topology.csi.vmware.com/zone": ZONE,
    "topology.csi.vmware.com/region": REGION,
    "topology.diskplugin.csi.alibabacloud.com/zone": ZONE,
    "topology.csi.scaleway.com/zone": ZONE,
    "topology.linode.com/region": REGION,
    "csi.hetzner.cloud/location": REGION,
}
_FARGATE = "eks.amazonaws.com/compute-type"
#: (label, value) of nodes that stand for a service which runs pods, each in a machine of its own.
_VIRTUAL = {
    (_FARGATE, "fargate"),
    ("type", "virtual-kubelet"),
    ("liqo.io/type", "virtual-node"),
}
#: What the taints of such nodes begin with, as `key=value`, or a label of theirs.
_VIRTUAL_TAINTS = (f"{_FARGATE}=fargate", "virtual-kubelet.io/", "virtual-node.liqo.io/")
#: The scheduler of the pods of Fargate, and the label that a pod gets with it.
_FARGATE_PODS = "fargate-scheduler", "eks.amazonaws.com/fargate-profile"


def of_today(key: str) -> str:
    """Return the key by which Kubernetes has a label today.

    Examples
    --------
    >>> of_today("failure-domain.beta.kubernetes.io/zone"), of_today("team")
    ('topology.kubernetes.io/zone', 'team')
    """
    return OLD.get(key) or DRIVERS.get(key) or key


def drivers_in(nodes: Iterable[Mapping[str, str]], asked: Iterable[str]) -> dict[str, str]:
    """Return the keys of drivers that a cluster has -> what each says again.

    Parameters
    ----------
    nodes : iterable of mapping
        The labels of the nodes that are there: one on which a key says something else speaks
        against it.
    asked : iterable of str
        Keys that volumes and their classes ask for.
    """
    known, others = set(asked) & DRIVERS.keys(), set[str]()
    for labels in nodes:
        for key in DRIVERS.keys() & labels.keys():
            same = labels.get(DRIVERS[key], labels[key]) == labels[key]
            (known if same else others).add(key)
    return {key: today for key, today in DRIVERS.items() if key in known - others}


def completed(labels: Mapping[str, str], drivers: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a node that is not there yet with every key for what they say.

    Examples
    --------
    >>> completed({"beta.kubernetes.io/os": "linux"}, {})["kubernetes.io/os"]
    'linux'
    """
    results, again = dict(labels), {**OLD, **drivers}
    for key, today in again.items():
        if results.get(key):
            results.setdefault(today, results[key])
    for key, today in again.items():
        if results.get(today):
            results.setdefault(key, results[today])
    return results


def in_short(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without those that say again, by another key, what one of today says."""
    return {k: v for k, v in labels.items() if of_today(k) == k or labels.get(of_today(k)) != v}


def is_virtual(
    labels: Mapping[str, str], taints: Iterable[tuple[str, str, str]], told: str = ""
) -> bool:
    """Return whether a node is none that pods share: of Fargate, or of a virtual kubelet.

    Parameters
    ----------
    labels : mapping
    taints : iterable of (key, value, effect)
    told : str
        Its provider ID and the version of its kubelet.

    Examples
    --------
    >>> is_virtual({"eks.amazonaws.com/compute-type": "fargate"}, ())
    True
    """
    texts = (*(f"{key}={value}" for key, value, _ in taints), *labels)
    return (
        not _VIRTUAL.isdisjoint(labels.items())
        or any(text.startswith(_VIRTUAL_TAINTS) for text in texts)
        or any(word in told for word in ("virtual-kubelet", "-vk-"))
    )


def is_served(scheduler: str, labels: Mapping[str, str]) -> bool:
    """Return whether a pod gets a machine of its own: the scheduler of Fargate makes it."""
    name, label = _FARGATE_PODS
    return scheduler == name or label in labels


# -- how a node is paid for ------------------------------------------------------------------------


ON_DEMAND, SPOT, RESERVED = "on-demand", "spot", "reserved"
#: Stands for any value of a label, and for none.
_ANY = "*"
_IF_TRUE = {"true": SPOT}
#: Label -> value in lower case -> lease. The first label that says something counts.
_LABELS: dict[str, Mapping[str, str]] = {
    # Karpenter, on AWS, Azure and others: karpenter.sh/docs/concepts/scheduling
    "karpenter.sh/capacity-type": {s: s for s in (SPOT, ON_DEMAND, RESERVED)},
    # EKS managed node groups: docs.aws.amazon.com/eks, "managed node group capacity types"
    "eks.amazonaws.com/capacitytype": {
        "spot": SPOT,
        "on_demand": ON_DEMAND,
        "capacity_block": RESERVED,
    },
    # GKE: cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
    "cloud.google.com/gke-spot": _IF_TRUE,
    "cloud.google.com/gke-preemptible": _IF_TRUE,
    "cloud.google.com/gke-provisioning": {
        "spot": SPOT,
        "preemptible": SPOT,
        "standard": ON_DEMAND,
        "reservation": RESERVED,
    },
    # AKS: learn.microsoft.com/azure/aks/spot-node-pool
    "kubernetes.azure.com/scalesetpriority": {"spot": SPOT, "regular": ON_DEMAND},
    # OKE: docs.oracle.com, "using preemptible capacity for node pools"
    "oci.oraclecloud.com/oke-is-preemptible": _IF_TRUE,
    # ACK: the spot strategy of a node pool, as OpenCost reads it
    "node.alibabacloud.com/spot-strategy": {
        "spotwithpricelimit": SPOT,
        "spotaspricego": SPOT,
        "nospot": ON_DEMAND,
    },
    # Ocean of Spot, CAST AI: their labels for node selectors
    "spotinst.io/node-lifecycle": {"spot": SPOT, "od": ON_DEMAND},
    "scheduling.cast.ai/spot": _IF_TRUE,
    # Cluster API and OpenShift mark interruptible machines; the value is empty
    "cluster.x-k8s.io/interruptible": {_ANY: SPOT},
    "machine.openshift.io/interruptible-instance": {_ANY: SPOT},
    # kOps and the spot rescheduler mark spot workers by a role
    "node-role.kubernetes.io/spot-worker": {_ANY: SPOT},
    # what bootstrap scripts for EC2 set: eksctl, the AWS CDK (Ec2Spot), terraform-aws-eks
    "node.kubernetes.io/lifecycle": {"spot": SPOT, "normal": ON_DEMAND, "on-demand": ON_DEMAND},
    "kubernetes.io/lifecycle": {"spot": SPOT, "normal": ON_DEMAND},
    "lifecycle": {"ec2spot": SPOT, "spot": SPOT, "ondemand": ON_DEMAND},
}


def lease_of(labels: Mapping[str, str]) -> str:
    """Return how a node with these labels is paid for; on demand where they say nothing.

    Examples
    --------
    >>> lease_of({"cloud.google.com/gke-spot": "true"}), lease_of({"pool": "spot"})
    ('spot', 'on-demand')
    """
    said = {key.lower(): value.lower() for key, value in labels.items()}
    for key, leases in _LABELS.items():
        if key in said and (result := leases.get(said[key]) or leases.get(_ANY)):
            return result
    return ON_DEMAND
