"""How a node is paid for, by its labels: on demand, reserved, or spot, which may be taken away.

Each label is set by the provider or tool that is named beside it, and documented there.
"""

from __future__ import annotations

from collections.abc import Mapping

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
