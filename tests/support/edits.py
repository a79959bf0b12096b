"""Changes of the objects of a cluster: each takes an object and returns it, or a changed copy.

They say what the dump would say if somebody had annotated, removed or raised something, so that the
cluster can be imported and solved anew.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

Object = dict[str, Any]
#: An object in, the same or a changed copy out.
Change = Callable[[Object], Object]
#: Changes a pod or a template in place: it has metadata, spec and perhaps a status.
PodChange = Callable[[Object], None]

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_HASH = "pod-template-hash"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def nothing(item: Object) -> Object:
    """Return the object as it is."""
    return item


def on_pods(
    pods: Collection[tuple[str, str]], owner: tuple[str, str, str], change: PodChange
) -> Change:
    """Return the change of some pods, (namespace, name), and of the template of their owner."""

    def changed(item: Object) -> Object:
        kind, space, name = _identity(item)
        if kind == "Pod" and (space, name) in pods:
            item = copy.deepcopy(item)
            change(item)
        elif (space, kind, name) == owner and "template" in (item.get("spec") or {}):
            item = copy.deepcopy(item)
            change(item["spec"]["template"])
        return item

    return changed


def on_objects(
    kind: str, names: Collection[tuple[str, str]], change: Callable[[Object], None]
) -> Change:
    """Return the change of objects of a kind, (namespace, name); of all where no name is given."""

    def changed(item: Object) -> Object:
        own, space, name = _identity(item)
        if own == kind and (not names or (space, name) in names):
            item = copy.deepcopy(item)
            change(item)
        return item

    return changed


def both(one: Change, other: Change) -> Change:
    """Return a change after another."""
    return lambda item: other(one(item))


def _identity(item: Object) -> tuple[str, str, str]:
    """Return (kind, namespace, name); objects of no namespace are in ``default``."""
    meta = item.get("metadata") or {}
    return item.get("kind") or "", meta.get("namespace") or "default", meta.get("name") or ""


def without_waiting(running: Collection[tuple[str, str, str]]) -> Change:
    """Return the change that gives up what waits for a node.

    `running` are the (namespace, kind, name) of the workloads with pods that run.
    """

    def changed(item: Object) -> Object:
        kind, space, name = _identity(item)
        spec = item.get("spec") or {}
        if kind == "Pod" and not spec.get("nodeName"):
            return {**item, "status": {**(item.get("status") or {}), "phase": "Succeeded"}}
        if "replicas" in spec and (space, kind, name) not in running:
            return {**item, "spec": {**spec, "replicas": 0}}
        return item

    return changed


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


def of_one_revision(name: str) -> PodChange:
    """Make pods those of one revision of a Deployment: its rollout has ended."""
    move = of_deployment(name)

    def change(pod: Object) -> None:
        if "status" in pod:
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), _HASH: "placeopt"}
            move(pod)

    return change


def ended(pod: Object) -> None:
    """Let a pod have done its work."""
    if "status" in pod:
        pod["status"] = {**(pod["status"] or {}), "phase": "Succeeded"}


def ready(pod: Object) -> None:
    """Make a pod ready; what waits for a node is given up."""
    if "status" not in pod:
        return
    status = pod["status"] = {**(pod["status"] or {})}
    if not pod["spec"].get("nodeName"):
        status["phase"] = "Succeeded"
    status["conditions"] = [{"type": "Ready", "status": "True"}]


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


def settled(item: Object) -> None:
    """Let the controller of a Deployment have seen its newest template."""
    item["metadata"].pop("generation", None)


def of_none(item: Object) -> None:
    """Let a ReplicaSet want no pod."""
    item["spec"]["replicas"] = 0


def shared(item: Object) -> None:
    """Let several nodes have the volume of a claim."""
    item["spec"]["accessModes"] = ["ReadWriteMany"]


def unlimited(item: Object) -> None:
    """Let a ResourceQuota allow all."""
    item["spec"] = {**item["spec"], "hard": {}}


def without_limits(item: Object) -> None:
    """Let a LimitRange forbid nothing; what it gives to containers without requests stays."""
    for limit in item["spec"].get("limits") or ():
        for key in ("min", "max", "maxLimitRequestRatio"):
            limit.pop(key, None)


def attaching_all(item: Object) -> None:
    """Let a CSINode attach any number of volumes."""
    for driver in item["spec"].get("drivers") or ():
        driver.pop("allocatable", None)


def without_taint(key: str) -> Callable[[Object], None]:
    """Remove the taints of a key from a node."""

    def change(node: Object) -> None:
        taints = node["spec"].get("taints") or []
        node["spec"]["taints"] = [taint for taint in taints if taint.get("key") != key]

    return change
