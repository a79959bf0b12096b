"""The replicas to place, running or asked for by manifests, and which of them must stay.

Pods of a DaemonSet and static pods come with their node: they take of its capacity and do not keep
it in use. Other pods that must not move (`stays`) do keep it in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from placeopt.core.errors import UsageError, did_you_mean
from placeopt.kubernetes.edges import Key
from placeopt.kubernetes.faults import Faults
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import Notes
from placeopt.kubernetes.objects import (
    Amounts,
    ObjectMeta,
    PodDisruptionBudget,
    PodSpec,
    Workload,
    amounts,
    further,
    selects,
)
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.sizes import MissingRequests, PodSize, effective

T = TypeVar("T")

_SAFE, _LOCAL = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
)
_SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#: A duration of Go, such as 30m or 1h30m: karpenter keeps the pod for so long.
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
#: Kinds of workloads whose pods the exported steps can move.
_ADOPTING = ("Deployment",)
_MIRROR, _KEEP = "kubernetes.io/config.mirror", "karpenter.sh/do-not-disrupt"
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
#: Replicas that manifests may ask for.
MAX_REPLICAS = 50_000
#: Kinds of workloads whose pods stay, and why.
_STAYING = {
    "Pod": "pods without a controller: nothing would start them again",
    "StatefulSet": "pods of a StatefulSet: a new copy cannot start before the old one ends",
    **dict.fromkeys(("Job", "CronJob"), "pods of a Job: their work would be lost"),
}
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


@dataclass
class Unit:
    """One replica.

    `node` is None where it does not run yet; `stays` says why it must not move, empty where it may;
    `removed` whether it has no place afterwards.
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
    stays: str = ""
    ready: bool = True
    uid: str | None = None
    removed: bool = False

    @property
    def further(self) -> dict[str, int]:
        """What it asks for besides cpu and memory: pods, GPUs, ephemeral storage in MiB, ..."""
        return further(self.spec)

    @property
    def key(self) -> Key:
        """(namespace, name) of its workload."""
        return self.namespace, self.workload

    @property
    def owner(self) -> tuple[str, str, str]:
        """(namespace, kind, name) of its workload."""
        return self.namespace, self.kind, self.workload

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.namespace}/{self.name}"


@dataclass
class MovingRules:
    """What the user said on which pods may move.

    Parameters
    ----------
    policy : MissingRequests
        For missing requests.
    namespaces : sequence of str
        Only these are planned; all where it is empty.
    fixed_namespaces : sequence of str
        Their pods stay.
    move_empty_dir : bool
        Whether the contents of an emptyDir may be lost.
    pins : sequence of (kind, name)
        Workloads and pods that stay.
    adopts : bool
        Whether pods are moved one by one, by ReplicaSets that adopt the new ones.
    """

    policy: MissingRequests = field(default_factory=MissingRequests)
    namespaces: Sequence[str] = ()
    fixed_namespaces: Sequence[str] = ("kube-system",)
    move_empty_dir: bool = False
    pins: Sequence[tuple[str, str]] = ()
    adopts: bool = False

    def is_fixed(self, kind: str, name: str) -> bool:
        """Return whether ``--pin KIND/NAME`` names a workload or a pod."""
        return (kind.lower(), name) in {(k.lower(), n) for k, n in self.pins}


def units(
    cluster: ClusterObjects,
    rules: MovingRules,
    notes: Notes,
    *,
    pin: bool = True,
    faults: Faults | None = None,
) -> list[Unit]:
    """Return the replicas of a cluster, those of DaemonSets and static pods among them.

    Where the files have pods, these are what runs; else the replicas that the manifests ask for.
    `pin` False leaves out why some must stay. `faults` gather what is wrong, instead of raising it.

    Raises
    ------
    DocumentError
        Requests are missing and the policy does not fill them in.
    """
    gathered = faults or Faults()
    found = (_running if cluster.pods else _wanted)(cluster, rules, notes, gathered)
    if not gathered.found:
        _unheard_pins(found, rules)
    if pin:
        _pin(cluster, found, rules, notes, gathered)
    elif rules.namespaces:
        found = [u for u in found if u.namespace in rules.namespaces]
    if faults is None:
        gathered.check()
    return found


def _pin(
    cluster: ClusterObjects,
    found: Sequence[Unit],
    rules: MovingRules,
    notes: Notes,
    faults: Faults,
) -> None:
    """Say which replicas stay, and why."""
    for unit in found:
        if not unit.bound and (unit.node is not None or not cluster.pods):
            with faults.gather():
                unit.stays = _why(unit, cluster, rules)
    if rules.adopts:
        _unready(found)
    _budgets(cluster, found, notes, faults, holds=not rules.adopts)
    if not rules.adopts:
        with faults.gather():
            _apart(found)
    for unit in found:
        with faults.gather():
            _name_preferences(unit, notes)
        if unit.stays:
            notes.add("pinned", unit.stays, unit.label)


def _unheard_pins(found: Sequence[Unit], rules: MovingRules) -> None:
    """Raise if ``--pin`` names what is not there.

    Raises
    ------
    UsageError
    """
    known = {(u.kind.lower(), u.workload): f"{u.kind}/{u.workload}" for u in found if rules.pins}
    known |= {("pod", u.name): f"Pod/{u.name}" for u in found if rules.pins}
    names = list(dict.fromkeys(known.values()))[:50]
    unheard = [
        f"--pin {kind}/{name}: no such workload or pod; {did_you_mean(f'{kind}/{name}', names)}"
        for kind, name in rules.pins
        if (kind.lower(), name) not in known
    ]
    if unheard:
        raise UsageError("; and ".join(unheard))


def _running(
    cluster: ClusterObjects, rules: MovingRules, notes: Notes, faults: Faults
) -> list[Unit]:
    found = []
    for pod in cluster.pods:
        meta, label = pod.meta, pod.meta.label
        if pod.phase in ("Succeeded", "Failed"):
            notes.add("left-out", "pods that have ended", label)
        elif pod.leaving:
            notes.add("left-out", "pods that are being deleted", label)
        elif not pod.spec.node and not rules.adopts:
            notes.add("left-out", "pods that no node runs (pending)", label)
        else:
            kind, name = cluster.owner(pod)
            size = PodSize(0, 0)  # where the fault is gathered: later stages are looked at, too
            with faults.gather():
                size = effective(pod.spec, rules.policy, notes, label)
            found.append(
                Unit(
                    namespace=meta.namespace,
                    kind=kind,
                    workload=name,
                    name=meta.name,
                    pod=meta.name,
                    node=pod.spec.node or None,
                    labels=meta.labels,
                    annotations=meta.annotations,
                    spec=pod.spec,
                    size=size,
                    bound=_bound(kind, meta),
                    ready=pod.ready,
                    uid=meta.uid,
                )
            )
            if not pod.spec.node:
                notes.add(
                    "assumption", "pods that wait for a node (pending) are to be placed", label
                )
    running = {u.owner for u in found}
    new = {k: w for k, w in cluster.workloads.items() if k not in running and w.replicas}
    if rules.adopts:
        text = "workloads without a pod are to be placed beside what runs"
        wanted = _replicas(cluster, new, rules, notes, faults)
        for unit in wanted:
            notes.add("assumption", text, f"{unit.namespace}/{unit.workload}")
        return found + wanted
    for key in new:
        notes.add("left-out", "workloads without a running pod", f"{key[0]}/{key[2]}")
    return found


def _bound(kind: str, meta: ObjectMeta) -> str:
    if kind == "DaemonSet":
        return "pods of a DaemonSet"
    if kind == "Node" or _MIRROR in meta.annotations:
        return "static pods"
    return ""


def _wanted(
    cluster: ClusterObjects, rules: MovingRules, notes: Notes, faults: Faults
) -> list[Unit]:
    return _replicas(cluster, cluster.workloads, rules, notes, faults)


def _replicas(
    cluster: ClusterObjects,
    workloads: Mapping[tuple[str, str, str], Workload],
    rules: MovingRules,
    notes: Notes,
    faults: Faults,
) -> list[Unit]:
    """Return the replicas that workloads ask for."""
    found: list[Unit] = []
    for (space, kind, name), workload in workloads.items():
        label = f"{space}/{name}"
        if rules.namespaces and space not in rules.namespaces:
            continue
        if kind == "CronJob":
            notes.add("left-out", "CronJobs: they run at times only", label)
            continue
        if workload.replicas == 0:
            notes.add("left-out", "workloads of no replicas", label)
            continue
        size = PodSize(0, 0)
        with faults.gather():
            policy = rules.policy.after(default_requests(cluster, space))
            size = effective(workload.spec, policy, notes, label)
        count = 1 if kind == "DaemonSet" else workload.replicas
        if len(found) + count > MAX_REPLICAS:
            raise workload.meta.view.fault(
                f"more than {MAX_REPLICAS:,} replicas in all", "plan fewer at once: --namespace"
            )
        for k in range(count):
            found.append(
                Unit(
                    namespace=space,
                    kind=kind,
                    workload=name,
                    name=name if count == 1 else f"{name}-{k + 1}",
                    pod=None,
                    node=None,
                    labels=workload.labels,
                    annotations=workload.annotations,
                    spec=workload.spec,
                    size=size,
                    bound="pods of a DaemonSet" if kind == "DaemonSet" else "",
                )
            )
    return found


def default_requests(cluster: ClusterObjects, namespace: str) -> Amounts:
    """Return the requests that LimitRanges of a namespace give to containers without any.

    Where they say none it is their limit, the largest one, or the smallest request.
    """
    cpu = memory = None
    for limit in cluster.limit_ranges.get(namespace, ()):
        for default in (limit["defaultRequest"], limit["default"], limit["max"], limit["min"]):
            one, other = amounts(default)
            cpu, memory = one if cpu is None else cpu, other if memory is None else memory
    return cpu, memory


def _why(unit: Unit, cluster: ClusterObjects, rules: MovingRules) -> str:
    """Return why a pod must stay, as far as it says so itself."""
    if rules.namespaces and unit.namespace not in rules.namespaces:
        return "pods of other namespaces"
    if unit.namespace in rules.fixed_namespaces:
        return f"pods of {unit.namespace} (--pin-namespace)"
    if unit.annotations.get(_SAFE) == "false":
        return 'annotated safe-to-evict: "false"'
    if _protects(unit.annotations):
        return "annotated do-not-disrupt"
    node = cluster.nodes.get(unit.node or "")
    if node is not None and (
        _protects(node.meta.annotations) or node.meta.annotations.get(_SCALE_DOWN) == "true"
    ):
        return "pods on nodes annotated do-not-disrupt or scale-down-disabled"
    if rules.is_fixed(unit.kind, unit.workload) or rules.is_fixed("Pod", unit.name):
        return "named by --pin"
    if unit.kind in _STAYING:
        return _STAYING[unit.kind]
    workload = cluster.workloads.get(unit.owner)
    if workload and workload.recreates:
        return "pods of a Deployment that recreates: two copies must not run side by side"
    if unit.spec.view["resourceClaims"]:
        return "pods with resource claims (dynamic resource allocation)"
    if rules.adopts and unit.kind not in _ADOPTING:
        return f"pods of {article(unit.kind)}, which steps cannot move pod by pod"
    return _why_volumes(unit, cluster, rules) or _why_ports(unit)


def _why_volumes(unit: Unit, cluster: ClusterObjects, rules: MovingRules) -> str:
    safe, local = unit.annotations.get(_SAFE) == "true", unit.annotations.get(_LOCAL)
    spared = [part.strip() for part in local.split(",")] if isinstance(local, str) else []
    for name, kind, claim in unit.spec.volumes:
        if kind == "hostPath" and not safe and name not in spared:
            return "pods with a hostPath volume"
        if kind == "local":
            return "pods with a local volume"
        if kind in ("emptyDir", "ephemeral") and not (
            safe or rules.move_empty_dir or name in spared or _in_memory(unit, name)
        ):
            return f"pods with an {kind} volume on disk (--empty-dir move lets them move)"
        if kind == "persistentVolumeClaim" and not _SHARED & set(
            cluster.claims.get((unit.namespace, claim), ())
        ):
            return (
                "pods with a volume claim that is not known to be shared between nodes "
                "(ReadWriteMany)"
            )
    return ""


def _in_memory(unit: Unit, name: str) -> bool:
    mine = (v["emptyDir"] for v in unit.spec.view["volumes"].items() if v["name"].value == name)
    return any(directory.value and directory["medium"].value == "Memory" for directory in mine)


def _why_ports(unit: Unit) -> str:
    ports = (
        any(c.host_ports for c in (*unit.spec.containers, *unit.spec.inits))
        or unit.spec.view["hostNetwork"].flag()
    )
    return "pods with a port of their node (hostPort, hostNetwork)" if ports else ""


def article(word: str) -> str:
    """Return a word with its indefinite article."""
    return f"{'an' if word[:1] in 'AEIOU' else 'a'} {word}"


def _protects(annotations: Mapping[str, object]) -> bool:
    """Return whether do-not-disrupt is set: for good, or for a time."""
    value = annotations.get(_KEEP)
    return isinstance(value, str) and (value == "true" or bool(_DURATION.fullmatch(value)))


def _unready(found: Sequence[Unit]) -> None:
    """Pin the running pods of workloads with a pod that is not ready, or waits for a node.

    Their ReplicaSet would end that pod instead of the one that a step moves.
    """
    for mine in grouped((u for u in found if not u.bound), lambda unit: unit.owner).values():
        if any(u.pod is not None and (u.node is None or not u.ready) for u in mine):
            for unit in mine:
                if unit.node is not None:
                    unit.stays = unit.stays or "pods of workloads with a pod that is not ready"


def _budgets(
    cluster: ClusterObjects, found: Sequence[Unit], notes: Notes, faults: Faults, *, holds: bool
) -> None:
    """Pin the pods of budgets that allow no disruption, if these are what `holds` them.

    The other budgets hold in every plan without disruptions. So do all where nothing is evicted.
    """
    spaces = grouped(found, lambda unit: unit.namespace)
    for budget in cluster.budgets:
        mine = None
        with faults.gather():
            mine = _selected(spaces, budget)
        if mine is None:
            continue
        if not mine:
            notes.add("ignored", "PodDisruptionBudgets that select no pod", budget.meta.label)
        elif holds and _allowed(budget.min_available, budget.max_unavailable, len(mine)) <= 0:
            for unit in mine:
                unit.stays = unit.stays or "pods whose PodDisruptionBudget allows no disruption"
        else:
            text = (
                "PodDisruptionBudgets: points with 0 disruptions keep them, "
                "as every new copy runs before the old one ends"
            )
            notes.add("kept", text, budget.meta.label)


def _selected(spaces: Mapping[str, Sequence[Unit]], budget: PodDisruptionBudget) -> list[Unit]:
    """Return the replicas that a budget is about, of those of each namespace."""
    mine = spaces.get(budget.meta.namespace, ())
    return [unit for unit in mine if selects(budget.selector, unit.labels)]


def budgets_of(cluster: ClusterObjects, units: Sequence[Unit]) -> dict[tuple[str, str, str], int]:
    """Return the replicas that PodDisruptionBudgets keep, of workloads that have one alone."""
    spaces, found = grouped(units, lambda unit: unit.namespace), dict[tuple[str, str, str], int]()
    for budget in cluster.budgets:
        mine = _selected(spaces, budget)
        if len({u.owner for u in mine}) == 1:
            kept = len(mine) - _allowed(budget.min_available, budget.max_unavailable, len(mine))
            found[mine[0].owner] = max(kept, found.get(mine[0].owner, 0))
    return found


def grouped(units: Iterable[Unit], of: Callable[[Unit], T]) -> dict[T, list[Unit]]:
    """Return the replicas by the group that `of` names, in their order."""
    found: dict[T, list[Unit]] = {}
    for unit in units:
        found.setdefault(of(unit), []).append(unit)
    return found


def _allowed(minimum: object, maximum: object, count: int) -> int:
    """Return how many of `count` pods may be missing."""
    if maximum is not None:
        return _share(maximum, count)
    return count - _share(minimum, count) if minimum is not None else count


def _share(value: object, count: int) -> int:
    """Return a number of pods, a percentage rounded up; 0 for what cannot be read."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, min(value, 10**6))
    text = str(value)[:20]
    if text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit():
        return -(-int(text[:-1]) * count // 100)
    return int(text) if text.isascii() and text.isdigit() else 0


def _name_preferences(unit: Unit, notes: Notes) -> None:
    """Name what a pod says that no model knows: preferences, priorities, schedulers, claims."""
    view = unit.spec.view
    if not unit.bound and unit.node is None and view["resourceClaims"]:
        text = "resource claims of pods that wait: which nodes have the devices is not known"
        notes.add("not-expressed", text, unit.label)
    if not unit.bound and not unit.stays:
        if view["priority"].value or view["priorityClassName"]:
            notes.add("not-expressed", "priorities: no pod is evicted for another", unit.label)
        if view["schedulerName"].text("default-scheduler") != "default-scheduler":
            text = "pods of other schedulers: what these ask beside kube-scheduler's filters"
            notes.add("not-expressed", text, unit.label)
    affinity = unit.spec.affinity["nodeAffinity"]
    if not unit.bound and affinity["preferredDuringSchedulingIgnoredDuringExecution"].value:
        notes.add("not-expressed", "preferred node affinity", unit.label)


def name_dropped_rules(found: Sequence[Unit], notes: Notes, problem: str) -> None:
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
                notes.add("not-expressed", what, unit.label)
    if problem in ("rescheduling", "edge-cloud"):
        notes.add("not-expressed", "the largest number of pods of a node")


def _apart(found: Sequence[Unit]) -> None:
    """Pin the pods with required rules towards other pods.

    Pods that required anti-affinity keeps away from them are pinned, too.
    """
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    terms: dict[str, tuple[str, View]] = {}
    for unit in found:
        if unit.bound:
            continue
        affinity = unit.spec.affinity
        if affinity["podAffinity"][hard].value:
            unit.stays = unit.stays or "pods with required affinity to other pods"
        for term in affinity["podAntiAffinity"][hard].items():
            unit.stays = unit.stays or "pods with required anti-affinity to other pods"
            terms.setdefault(f"{unit.namespace} {term.value!r}", (unit.namespace, term))
        spread = [
            t["whenUnsatisfiable"].text("DoNotSchedule")
            for t in unit.spec.view["topologySpreadConstraints"].items()
        ]
        if "DoNotSchedule" in spread:
            unit.stays = unit.stays or "pods with a required topology spread"
    movable = (u for u in found if not u.bound and not u.stays)
    members = grouped(movable, lambda unit: unit.namespace)
    for space, term in terms.values():
        spaces = {s.text() for s in term["namespaces"].items()} or {space}
        anywhere = term["namespaceSelector"].value is not None
        for unit in (u for s in (members if anywhere else spaces) for u in members.get(s, ())):
            if selects(term["labelSelector"], unit.labels):
                unit.stays = "pods that the required anti-affinity of others keeps away"
