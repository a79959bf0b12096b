"""Kinds of objects: those that are read, what to ask a cluster for, what others could change."""

from __future__ import annotations

from collections.abc import Collection

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
