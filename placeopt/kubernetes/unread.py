"""Kinds of objects that are not read: named once, by what they could change about a plan."""

from __future__ import annotations

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
#: Kinds of Kubernetes itself that no plan depends on.
_IDLE = {
    "APIService",
    "Binding",
    "CSIDriver",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CustomResourceDefinition",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "FlowSchema",
    "Gateway",
    "GatewayClass",
    "HTTPRoute",
    "IPAddress",
    "IngressClass",
    "Lease",
    "NetworkPolicy",
    "NodeMetrics",
    "PodMetrics",
    "PodTemplate",
    "PriorityLevelConfiguration",
    "Role",
    "RoleBinding",
    "Secret",
    "ServiceAccount",
    "ServiceCIDR",
    "VolumeAttributesClass",
    "VolumeSnapshot",
    "VolumeSnapshotClass",
    "VolumeSnapshotContent",
}


def matters(kind: str) -> bool:
    """Return whether it is known what a kind could change, though it is not read."""
    return kind in _CHANGE


def note(kind: str) -> tuple[str, str]:
    """Return the topic and the text of the note about a kind that is not read.

    Examples
    --------
    >>> note("Secret")
    ('ignored', 'Secret: no plan depends on it')
    >>> note("ResourceSlice")
    ('not-expressed', 'ResourceSlice is not read: which nodes have the devices of resource claims')
    """
    if kind in _CHANGE:
        return "not-expressed", f"{kind} is not read: {_CHANGE[kind]}"
    if kind in _IDLE:
        return "ignored", f"{kind}: no plan depends on it"
    return "ignored", f"{kind}: not known, what it could change neither"
