"""Changes of the objects of a cluster: each takes an object and returns it, or a changed copy.

They say what the dump would say if somebody had annotated, removed or raised something, so that the
cluster can be imported and solved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

Object = dict[str, Any]
#: An object in, the same or a changed copy out.
Change = Callable[[Object], Object]
#: Changes a pod or a template in place: it has metadata, spec and perhaps a status.
PodChange = Callable[[Object], None]

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_HASH = "pod-template-hash"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def nothing(item: Object) -> Object:
    """Return the object as it is."""
    return item


def both(one: Change, other: Change) -> Change:
    """Return a change after another."""
    return lambda item: other(one(item))


# -- of pods ---------------------------------------------------------------------------------------


def without_annotations(*keys: str) -> PodChange:
    """Remove annotations; of a node, too."""

    def change(pod: Object) -> None:
        for key in keys:
            (pod["metadata"].get("annotations") or {}).pop(key, None)

    return change


def safe_to_evict(pod: Object) -> None:
    """Annotate that what is on the disk of its node may be lost."""
    meta = pod.setdefault("metadata", {})
    meta["annotations"] = {**(meta.get("annotations") or {}), SAFE_TO_EVICT: "true"}


def of_deployment(name: str) -> PodChange:
    """Make pods those of the one ReplicaSet of a Deployment."""

    def change(pod: Object) -> None:
        if "status" not in pod and "name" not in pod["metadata"]:
            return  # a template
        labels = pod["metadata"].get("labels") or {}
        pod["metadata"]["labels"] = {**labels, _HASH: labels.get(_HASH) or "placeopt"}
        owner = f"{name}-{pod['metadata']['labels'][_HASH]}"
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}
        ]

    return change


def ended(pod: Object) -> None:
    """Let a pod have done its work."""
    if "status" in pod:
        pod["status"] = {**(pod["status"] or {}), "phase": "Succeeded"}


def without_fields(*keys: str) -> PodChange:
    """Remove fields of the spec."""

    def change(pod: Object) -> None:
        for key in keys:
            pod["spec"].pop(key, None)

    return change


def without_volumes(kinds: Collection[str]) -> PodChange:
    """Remove volumes of some kinds."""

    def change(pod: Object) -> None:
        volumes = pod["spec"].get("volumes") or []
        pod["spec"]["volumes"] = [v for v in volumes if not set(kinds) & v.keys()]

    return change


def without_ports(pod: Object) -> None:
    """Remove what takes ports of the node."""
    pod["spec"].pop("hostNetwork", None)
    for key in ("containers", "initContainers"):
        for container in pod["spec"].get(key) or ():
            for port in container.get("ports") or ():
                port.pop("hostPort", None)


def without_affinity(kind: str, topology: str = "") -> PodChange:
    """Remove required terms of an affinity, of one topology key or all; node selectors with them.

    `kind` is ``nodeAffinity``, ``podAffinity`` or ``podAntiAffinity``.
    """

    def change(pod: Object) -> None:
        if kind == "nodeAffinity":
            pod["spec"].pop("nodeSelector", None)
        own = (pod["spec"].get("affinity") or {}).get(kind) or {}
        terms = own.pop(_REQUIRED, None)
        if topology and terms:
            own[_REQUIRED] = [t for t in terms if t.get("topologyKey") != topology]

    return change


def without_spread(topology: str) -> PodChange:
    """Prefer the spread over a topology key instead of requiring it."""

    def change(pod: Object) -> None:
        for term in pod["spec"].get("topologySpreadConstraints") or ():
            if term.get("topologyKey") == topology:
                term["whenUnsatisfiable"] = "ScheduleAnyway"

    return change


# -- of other objects ------------------------------------------------------------------------------


def rolling(item: Object) -> None:
    """Let a Deployment start a pod before it ends another; its rollout is told as ended."""
    item["spec"]["strategy"] = {"type": "RollingUpdate"}
