"""Which replicas must stay where they are, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.kubernetes.admission import Admission
from placeopt.kubernetes.budgets import hold_by_budgets
from placeopt.kubernetes.faults import tolerated
from placeopt.kubernetes.manifests import ENDED, ClusterObjects
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode, selects
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.replicas import Replica, article
from placeopt.kubernetes.rollouts import under_way
from placeopt.kubernetes.volumes import SHARED, SINGLE

_SAFE, _LOCAL = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
)
_SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_KEEP = "karpenter.sh/do-not-disrupt"
#: A duration of Go, such as 30m or 1h30m: karpenter keeps the pod for so long.
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
#: Reasons that others ask for by name.
OTHER_NAMESPACES = "pods of other namespaces"
NOT_READY = "pods of workloads with a pod that is not ready"
#: Kinds of workloads whose pods the exported steps can move.
_ADOPTING = ("Deployment",)
#: Kinds of workloads whose pods stay, and why.
_STAYING = {
    "Pod": "pods without a controller: nothing would start them again",
    "StatefulSet": "pods of a StatefulSet: a new copy cannot start before the old one ends",
    **dict.fromkeys(("Job", "CronJob"), "pods of a Job: their work would be lost"),
}


def held(cluster: ClusterObjects, found: Sequence[Replica], rules: MovingRules) -> list[Replica]:
    """Return replicas that say why they must stay, where they must: all reasons of each."""
    why: list[list[str]] = [[] for _ in found]
    changing = under_way(cluster) if rules.adopts else {}
    for k, unit in enumerate(found):
        if not unit.bound and (unit.node is not None or not cluster.pods):
            with tolerated():
                why[k] += _why(unit, cluster, rules)
            if unit.owner in changing:
                why[k].append(f"pods {changing[unit.owner].text}")
    if rules.adopts:
        _hold_unready(cluster, found, why)
        _hold_without_copy(cluster, found, why)
    hold_by_budgets(cluster, found, why, holds=not rules.adopts)
    if not rules.adopts:
        with tolerated():
            _hold_by_rules(found, why)
    result = [replace(u, pins=tuple(dict.fromkeys(own))) for u, own in zip(found, why, strict=True)]
    for unit in result:
        with tolerated():
            name_preferences(unit)
        for text in unit.pins:
            note("pinned", text, unit.label)
    return result


def require_pins(found: Sequence[Replica], rules: MovingRules) -> None:
    """Raise if ``--pin`` names what is not there.

    Raises
    ------
    UsageError
    """
    existing = {(u.kind.lower(), u.workload): f"{u.kind}/{u.workload}" for u in found if rules.pins}
    existing |= {("pod", u.name): f"Pod/{u.name}" for u in found if rules.pins}
    names = list(dict.fromkeys(existing.values()))[:50]
    unheard = [
        f"--pin {kind}/{name}: no such workload or pod; {did_you_mean(f'{kind}/{name}', names)}"
        for kind, name in rules.pins
        if (kind.lower(), name) not in existing
    ]
    if unheard:
        raise UsageError("; and ".join(unheard))


def _why(unit: Replica, cluster: ClusterObjects, rules: MovingRules) -> Iterator[str]:
    """Yield why a pod must stay, as far as it says so itself."""
    if not rules.plans(unit.namespace):
        yield OTHER_NAMESPACES
    if unit.namespace in rules.fixed_namespaces:
        yield f"pods of {unit.namespace} (--pin-namespace)"
    if unit.annotations.get(_SAFE) == "false":
        yield 'annotated safe-to-evict: "false"'
    if _protects(unit.annotations):
        yield "annotated do-not-disrupt"
    node = cluster.nodes.get(unit.node or "")
    if node is not None and keeps_its_node(node):
        yield "pods on nodes annotated do-not-disrupt or scale-down-disabled"
    if rules.is_fixed(unit.kind, unit.workload) or rules.is_fixed("Pod", unit.name):
        yield "named by --pin"
    if unit.named:
        yield "pods whose template names their node (nodeName): every copy starts there"
    workload = cluster.workloads.get(unit.owner)
    if unit.kind in _STAYING:
        yield _STAYING[unit.kind]
    elif rules.adopts and unit.kind not in _ADOPTING:
        yield f"pods of {article(unit.kind)}, which steps cannot move pod by pod"
    if workload and workload.recreates:
        yield "pods of a Deployment that recreates: two copies must not run side by side"
    if unit.spec.view["resourceClaims"]:
        yield "pods with resource claims (dynamic resource allocation)"
    if rules.adopts and unit.over_limits:
        yield "pods that ask for more than the limits of their template: no copy could"
    yield from _why_volumes(unit, cluster, rules)
    yield from _why_ports(unit)


def _why_volumes(unit: Replica, cluster: ClusterObjects, rules: MovingRules) -> Iterator[str]:
    safe, local = unit.annotations.get(_SAFE) == "true", unit.annotations.get(_LOCAL)
    spared = [part.strip() for part in local.split(",")] if isinstance(local, str) else []
    for name, kind, claim in unit.spec.volumes:
        if kind == "hostPath" and not safe and name not in spared:
            yield "pods with a hostPath volume"
        if kind == "local":
            yield "pods with a local volume"
        if kind in SINGLE:
            yield "pods with a volume that one node at a time attaches"
        if kind in ("emptyDir", "ephemeral") and not (
            safe or rules.move_empty_dir or name in spared or _in_memory(unit, name)
        ):
            yield f"pods with an {kind} volume on disk (--empty-dir move lets them move)"
        if (unit.namespace, claim) in cluster.lost_claims:
            yield "pods whose claim of a volume is lost or being deleted: no copy could start"
        elif kind == "persistentVolumeClaim" and not _is_shared(cluster, unit.namespace, claim):
            yield (
                "pods with a volume claim that is not known to be shared between nodes "
                "(ReadWriteMany)"
            )


def _is_shared(cluster: ClusterObjects, namespace: str, claim: str) -> bool:
    """Return whether several nodes may have the volume of a claim at a time."""
    spec = cluster.claims.get((namespace, claim))
    modes = () if spec is None else spec["accessModes"].items()
    return any(mode.text() in SHARED for mode in modes)


def _in_memory(unit: Replica, name: str) -> bool:
    own = (v["emptyDir"] for v in unit.spec.view["volumes"].items() if v["name"].value == name)
    return any(directory.value and directory["medium"].value == "Memory" for directory in own)


def _why_ports(unit: Replica) -> Iterator[str]:
    every = (*unit.spec.containers, *unit.spec.inits)
    if any(c.host_ports for c in every) or unit.spec.view["hostNetwork"].flag():
        yield "pods with a port of their node (hostPort, hostNetwork)"


def evictable(unit: Replica) -> bool:
    """Return whether autoscalers may evict a pod: it has a controller, and says nothing against."""
    told = unit.annotations.get(_SAFE) == "false" or _protects(unit.annotations)
    return unit.kind != "Pod" and not told


def copied(unit: Replica, cluster: ClusterObjects) -> bool:
    """Return whether a second copy of a pod may run beside it, on another node."""
    workload = cluster.workloads.get(unit.owner)
    if unit.kind in _STAYING or (workload is not None and workload.recreates):
        return False
    return not any(
        kind == "local"
        or kind in SINGLE
        or (kind == "persistentVolumeClaim" and not _is_shared(cluster, unit.namespace, claim))
        for _, kind, claim in unit.spec.volumes
    )


def keeps_its_node(node: KubernetesNode) -> bool:
    """Return whether a node is annotated to be left alone."""
    annotations = node.meta.annotations
    return _protects(annotations) or annotations.get(_SCALE_DOWN) == "true"


def without_protection(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of a node without those that keep it."""
    return {key: value for key, value in annotations.items() if key not in (_KEEP, _SCALE_DOWN)}


def _protects(annotations: Mapping[str, object]) -> bool:
    """Return whether do-not-disrupt is set: for good, or for a time."""
    value = annotations.get(_KEEP)
    return isinstance(value, str) and (value == "true" or bool(_DURATION.fullmatch(value)))


def _hold_unready(cluster: ClusterObjects, found: Sequence[Replica], why: list[list[str]]) -> None:
    """Hold the running pods of workloads with a pod that is not ready, or waits for a node.

    Their ReplicaSet would end that pod instead of the one that a step moves.
    """
    waiting = {
        (pod.meta.namespace, *cluster.owner(pod))
        for pod in cluster.pods
        if not pod.spec.node and not pod.leaving and pod.phase not in ENDED
    }
    waiting |= {u.owner for u in found if not u.bound and u.pod is not None and not u.ready}
    for k, unit in enumerate(found):
        free = unit.node is not None and not unit.bound
        if unit.owner in waiting and free:
            why[k].append(NOT_READY)


def _hold_without_copy(
    cluster: ClusterObjects, found: Sequence[Replica], why: list[list[str]]
) -> None:
    """Hold the pods beside which no copy may be made."""
    admission = Admission(cluster)
    for unit in found:
        if unit.pod is None and unit.node is None:
            admission.take(unit.namespace, unit.spec)
    for k, unit in enumerate(found if admission.asks else ()):
        if unit.node is not None and not unit.bound:
            why[k] += admission.forbidding(unit.namespace, unit.spec)


def _hold_by_rules(found: Sequence[Replica], why: list[list[str]]) -> None:
    """Hold the pods with required rules towards other pods.

    Pods that required anti-affinity keeps away from them are held, too.
    """
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    terms: dict[str, tuple[str, View]] = {}
    for k, unit in enumerate(found):
        if unit.bound:
            continue
        affinity = unit.spec.affinity
        if affinity["podAffinity"][hard].value:
            why[k].append("pods with required affinity to other pods")
        for term in affinity["podAntiAffinity"][hard].items():
            why[k].append("pods with required anti-affinity to other pods")
            terms.setdefault(f"{unit.namespace} {term.value!r}", (unit.namespace, term))
        spread = [
            t["whenUnsatisfiable"].text("DoNotSchedule")
            for t in unit.spec.view["topologySpreadConstraints"].items()
        ]
        if "DoNotSchedule" in spread:
            why[k].append("pods with a required topology spread")
    spaces: dict[str, list[int]] = {}
    for k, unit in enumerate(found):
        if not unit.bound and not why[k]:
            spaces.setdefault(unit.namespace, []).append(k)
    for space, term in terms.values():
        named = {s.text() for s in term["namespaces"].items()} or {space}
        anywhere = term["namespaceSelector"].value is not None
        for k in (k for s in (spaces if anywhere else named) for k in spaces.get(s, ())):
            if selects(term["labelSelector"], found[k].labels):
                why[k].append("pods that the required anti-affinity of others keeps away")


# -- what a problem does not know ------------------------------------------------------------------


def name_preferences(unit: Replica) -> None:
    """Name what a pod says that no model knows: preferences, priorities, schedulers, claims."""
    view = unit.spec.view
    if not unit.bound and unit.node is None and view["resourceClaims"]:
        text = "resource claims of pods that wait: which nodes have the devices is not known"
        note("not-expressed", text, unit.label)
    if not unit.bound and not unit.stays:
        if view["priority"].value or view["priorityClassName"]:
            note("not-expressed", "priorities: no pod is evicted for another", unit.label)
        if view["schedulerName"].text("default-scheduler") != "default-scheduler":
            text = "pods of other schedulers: what these ask beside kube-scheduler's filters"
            note("not-expressed", text, unit.label)
    affinity = unit.spec.affinity["nodeAffinity"]
    if not unit.bound and affinity["preferredDuringSchedulingIgnoredDuringExecution"].value:
        note("not-expressed", "preferred node affinity", unit.label)


def name_dropped_rules(found: Sequence[Replica], problem: str) -> None:
    """Name the replicas with rules and resources that a problem cannot say, and does not pin."""
    placed_anew = problem in ("temporal", "edge-cloud")
    for unit in found:
        spec = unit.spec
        spread = spec.view["topologySpreadConstraints"].value
        affinity = [spec.affinity[kind].value for kind in ("podAffinity", "podAntiAffinity")]
        others = sorted(set(unit.further) - {"pods"})
        says = (
            (spread or any(affinity), "affinity to other pods and topology spread"),
            (others, f"further resources ({', '.join(others)[:100]})"),
            (
                problem == "temporal" and (spec.selector or spec.affinity["nodeAffinity"].value),
                "node selectors and required node affinity",
            ),
        )
        for said, what in says:
            if said and not unit.bound and (placed_anew or not unit.stays):
                note("not-expressed", what, unit.label)
    if problem in ("rescheduling", "edge-cloud"):
        note("not-expressed", "the largest number of pods of a node")
