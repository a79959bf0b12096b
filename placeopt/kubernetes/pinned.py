"""Which replicas must stay where they are, and why; which budgets their moves may break."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.kubernetes.admission import Admission, under_way
from placeopt.kubernetes.manifests import ENDED, ClusterObjects
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.objects import KubernetesNode, Volume
from placeopt.kubernetes.origin import OriginBudget, OriginItem, note, tolerated
from placeopt.kubernetes.replicas import SHARED, SINGLE, Replica, article, grouped
from placeopt.kubernetes.values import NodeAffinity, PodAffinity, Term, selects

# -- PodDisruptionBudgets --------------------------------------------------------------------------


def hold_by_budgets(
    cluster: ClusterObjects, found: Sequence[Replica], why: list[list[str]], *, holds: bool
) -> None:
    """Hold the pods of budgets that allow no disruption, if these are what `holds` them.

    The other budgets hold in every plan without disruptions. So do all where nothing is evicted.
    `why` gets the reason, by the place among the replicas.
    """
    spaces = grouped(found, lambda unit: unit.namespace)
    place = {id(unit): k for k, unit in enumerate(found)}
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        if not own:
            note("ignored", "PodDisruptionBudgets that select no pod", budget.metadata.label)
        elif holds and _allowed(budget, len(own)) <= 0:
            for unit in own:
                text = "pods whose PodDisruptionBudget allows no disruption"
                why[place[id(unit)]].append(text)
        else:
            text = (
                "PodDisruptionBudgets: points with 0 disruptions keep them, "
                "as every new copy runs before the old one ends"
            )
            note("kept", text, budget.metadata.label)


def _selected(spaces: Mapping[str, Sequence[Replica]], budget: Any) -> list[Replica]:
    """Return the replicas that a budget is about, of those of each namespace."""
    own = spaces.get(budget.metadata.namespace, ())
    return [unit for unit in own if selects(budget.spec.selector, unit.labels)]


def origin_budgets(
    cluster: ClusterObjects, units: Sequence[Replica], items: Mapping[str, OriginItem]
) -> tuple[OriginBudget, ...]:
    """Return the budgets as the origin of an instance has them, with the pods of its items."""
    keys = {(item.namespace, item.pod): key for key, item in items.items() if item.pod}
    spaces, result = grouped(units, lambda unit: unit.namespace), []
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        known = (keys.get((unit.namespace, unit.pod or "")) for unit in own)
        about = tuple(key for key in known if key is not None)
        if about:
            space, name = budget.metadata.namespace, budget.metadata.name
            allowed = allowed_now(budget, own)
            result.append(OriginBudget(namespace=space, name=name, allowed=allowed, items=about))
    return tuple(result)


def budgets_by_pod(
    cluster: ClusterObjects, units: Sequence[Replica]
) -> dict[tuple[str, str | None], list[KnownBudget]]:
    """Return the budgets of each pod, by its namespace and name."""
    spaces = grouped(units, lambda unit: unit.namespace)
    results: dict[tuple[str, str | None], list[KnownBudget]] = {}
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        known = KnownBudget(budget.metadata.label, allowed_now(budget, own))
        for unit in own:
            results.setdefault((unit.namespace, unit.pod), []).append(known)
    return results


def budgets_of(
    cluster: ClusterObjects, units: Sequence[Replica]
) -> dict[tuple[str, str, str], int]:
    """Return the replicas that PodDisruptionBudgets keep, of workloads that have one alone."""
    spaces, result = grouped(units, lambda unit: unit.namespace), dict[tuple[str, str, str], int]()
    for budget in cluster.budgets:
        own = _selected(spaces, budget)
        if len({u.owner for u in own}) == 1:
            kept = len(own) - _allowed(budget, len(own))
            result[own[0].owner] = max(kept, result.get(own[0].owner, 0))
    return result


def allowed_now(budget: Any, mine: Sequence[Replica]) -> int:
    """Return how many pods of a budget may be missing besides those that are missing now.

    The least of what its controller says and what its numbers say, at least 0.
    """
    there = [unit for unit in mine if not unit.ending]
    missing = sum(unit.node is None or not unit.ready for unit in there)
    told, result = budget.status.disruptionsAllowed, _allowed(budget, len(there)) - missing
    return max(0, result if told is None else min(result, told))


def _allowed(budget: Any, count: int) -> int:
    """Return how many of `count` pods may be missing."""
    minimum, maximum = budget.spec.minAvailable, budget.spec.maxUnavailable
    if maximum is not None:
        return share_of(maximum, count)
    return count - share_of(minimum, count) if minimum is not None else count


def share_of(value: object, count: int, *, up: bool = True) -> int:
    """Return a number of pods, a percentage rounded up or down; 0 for what cannot be read."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, min(value, 10**6))
    text = str(value)[:20]
    if text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit():
        share = int(text[:-1]) * count
        return -(-share // 100) if up else share // 100
    return int(text) if text.isascii() and text.isdigit() else 0


# -- what the steps of a plan break ----------------------------------------------------------------


class KnownBudget(NamedTuple):
    """A budget: its name, and how many of its pods may be missing besides those that are now."""

    label: str
    allowed: int


class Interruption(NamedTuple):
    """What a step does to a pod: it goes down, comes up again, or both.

    `who` stands for the pod and all its copies; `what` is how messages name it.
    """

    number: int
    who: Hashable
    what: str
    down: bool
    up: bool


def broken_budgets(made: Iterable[tuple[Interruption, Iterable[KnownBudget]]]) -> list[str]:
    """Return a sentence for each step that leaves a budget too few pods.

    Parameters
    ----------
    made : iterable of (Interruption, budgets)
        In the order of the steps, each with the budgets of its pod.
    """
    missing: dict[str, set[Hashable]] = {}
    results = []
    for step, budgets in made:
        for budget in budgets:
            down = missing.setdefault(budget.label, set())
            if step.down and step.who not in down:
                down.add(step.who)
                if len(down) > budget.allowed:
                    results.append(
                        f"step {step.number} stops {step.what}: PodDisruptionBudget "
                        f"{budget.label} allows {budget.allowed} of its pods to be missing, "
                        f"and {len(down)} {'is' if len(down) == 1 else 'are'}"
                    )
            if step.up:
                down.discard(step.who)
    return results


# -- reasons to stay -------------------------------------------------------------------------------

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
    result = [
        replace(unit, pins=tuple(dict.fromkeys(own))) if own else unit
        for unit, own in zip(found, why, strict=True)
    ]
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
    if unit.spec.resource_claims is not None:
        yield "pods with resource claims (dynamic resource allocation)"
    if rules.adopts and unit.over_limits:
        yield "pods that ask for more than the limits of their template: no copy could"
    yield from _why_volumes(unit, cluster, rules)
    yield from _why_ports(unit)


def _why_volumes(unit: Replica, cluster: ClusterObjects, rules: MovingRules) -> Iterator[str]:
    safe, local = unit.annotations.get(_SAFE) == "true", unit.annotations.get(_LOCAL)
    spared = [part.strip() for part in local.split(",")] if isinstance(local, str) else []
    for volume in unit.spec.volumes:
        name, kind, claim = volume.name, volume.kind, volume.claim
        if kind == "hostPath" and not safe and name not in spared:
            yield "pods with a hostPath volume"
        if kind == "local":
            yield "pods with a local volume"
        if kind in SINGLE:
            yield "pods with a volume that one node at a time attaches"
        if kind in ("emptyDir", "ephemeral") and not (
            safe or rules.move_empty_dir or name in spared or _in_memory(volume)
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
    return spec is not None and not SHARED.isdisjoint(spec.access_modes)


def _in_memory(volume: Volume) -> bool:
    return volume.kind == "emptyDir" and volume.said is not None and volume.said.medium == "Memory"


def _why_ports(unit: Replica) -> Iterator[str]:
    net = unit.spec.host_network
    if net or any(True for c in unit.spec.every for _ in c.host_ports(net)):
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
        v.kind == "local"
        or v.kind in SINGLE
        or (v.kind == "persistentVolumeClaim" and not _is_shared(cluster, unit.namespace, v.claim))
        for v in unit.spec.volumes
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
    terms: dict[tuple[str, Term], None] = {}
    for k, unit in enumerate(found):
        if unit.bound:
            continue
        affinity = unit.spec.affinity
        if affinity.pods.required:
            why[k].append("pods with required affinity to other pods")
        for term in affinity.anti.required:
            why[k].append("pods with required anti-affinity to other pods")
            terms[unit.namespace, term] = None
        if any(spread.is_required for spread in unit.spec.spread):
            why[k].append("pods with a required topology spread")
    spaces: dict[str, list[int]] = {}
    for k, unit in enumerate(found):
        if not unit.bound and not why[k]:
            spaces.setdefault(unit.namespace, []).append(k)
    for space, term in terms:
        named = set(term.namespaces) or {space}
        anywhere = term.namespace_selector is not None
        for k in (k for s in (spaces if anywhere else named) for k in spaces.get(s, ())):
            if selects(term.label_selector, found[k].labels):
                why[k].append("pods that the required anti-affinity of others keeps away")


# -- what a problem does not know ------------------------------------------------------------------


def name_preferences(unit: Replica) -> None:
    """Name what a pod says that no model knows: preferences, priorities, schedulers, claims."""
    spec = unit.spec
    if not unit.bound and unit.node is None and spec.resource_claims is not None:
        text = "resource claims of pods that wait: which nodes have the devices is not known"
        note("not-expressed", text, unit.label)
    if not unit.bound and not unit.stays:
        if spec.priority or spec.priority_class_name:
            note("not-expressed", "priorities: no pod is evicted for another", unit.label)
        if spec.scheduler_name not in ("", "default-scheduler"):
            text = "pods of other schedulers: what these ask beside kube-scheduler's filters"
            note("not-expressed", text, unit.label)
    if not unit.bound and spec.affinity.nodes.preferred:
        note("not-expressed", "preferred node affinity", unit.label)


def name_dropped_rules(found: Sequence[Replica], problem: str) -> None:
    """Name the replicas with rules and resources that a problem cannot say, and does not pin."""
    placed_anew = problem in ("temporal", "edge-cloud")
    for unit in found:
        spec = unit.spec
        affinity = spec.affinity
        says_of_pods = (affinity.pods, affinity.anti) != (PodAffinity(), PodAffinity())
        others = sorted(set(unit.further) - {"pods"})
        says = (
            (spec.spread or says_of_pods, "affinity to other pods and topology spread"),
            (others, f"further resources ({', '.join(others)[:100]})"),
            (
                problem == "temporal" and (spec.selector or affinity.nodes != NodeAffinity()),
                "node selectors and required node affinity",
            ),
        )
        for said, what in says:
            if said and not unit.bound and (placed_anew or not unit.stays):
                note("not-expressed", what, unit.label)
    if problem in ("rescheduling", "edge-cloud"):
        note("not-expressed", "the largest number of pods of a node")
