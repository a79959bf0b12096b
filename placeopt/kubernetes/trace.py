"""A trace of what came and went on a cluster, from dumps taken at intervals.

Pods and nodes come when their creationTimestamp says. A pod ends when its containers finished, when
it was evicted, or by its deletionTimestamp; where none is known, and for nodes, in the middle
between the last dump that has it alive and the next one, and before another of its name comes. What
came and went between two dumps is not seen.

Pods of DaemonSets and static pods come with nodes: their requests are taken off the room of each
node. Taints, node selectors, required node affinity and places of volumes become machine types;
host ports, required rules about other pods, budgets and strategies of rollouts are kept as such.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import Document
from placeopt.kubernetes import manifests
from placeopt.kubernetes.admission import MissingRequests, effective
from placeopt.kubernetes.capacity import allowed
from placeopt.kubernetes.files import with_folders
from placeopt.kubernetes.importing import no_collection
from placeopt.kubernetes.manifests import ENDED, ClusterObjects, Moment, moments, seconds_of
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.names import HOSTNAME, ZONE
from placeopt.kubernetes.objects import KubernetesNode, ObjectMeta, Pod, Workload
from placeopt.kubernetes.pinned import budgets_of, copied, evictable, share_of
from placeopt.kubernetes.replicas import Replica, comes_with_node, unit_of
from placeopt.kubernetes.rules import affinity_terms, in_words, selector_of, spaces_of
from placeopt.kubernetes.values import Selector, selects

# -- rules of a trace ------------------------------------------------------------------------------
#
# Required affinity and anti-affinity to other pods and required topology spread, per hostname and
# per zone; other topology keys, minDomains and what is preferred are left out.

_PER = {HOSTNAME: "node", ZONE: "zone"}
#: What a rule asks, the namespaces that it is about, and the selector of the pods that it counts.
_Term = tuple[tuple[tuple[str, Any], ...], tuple[str, ...], Selector | None]


def rules_between(
    units: Sequence[Replica], namespaces: Mapping[str, Mapping[str, str]]
) -> tuple[list[Document], list[list[str]], list[list[str]]]:
    """Return the rules of pods, and for each pod those that it keeps and those that count it.

    Parameters
    ----------
    units : sequence of Replica
    namespaces : mapping
        The labels of namespaces that are known.
    """
    spaces = {unit.namespace: {**namespaces.get(unit.namespace, {})} for unit in units}
    terms: dict[_Term, None] = {}
    keeps = []
    by_signature: dict[Hashable, list[_Term]] = {}
    for unit in units:
        said = unit.namespace, frozenset(unit.labels.items()), unit.spec.about_pods
        if said not in by_signature:
            by_signature[said] = list(dict.fromkeys(_terms(unit, spaces)))
            terms |= dict.fromkeys(by_signature[said])
        keeps.append(by_signature[said])
    names = {term: _name(term, k) for k, term in enumerate(terms)}
    counted: dict[tuple[Any, ...], list[str]] = {}
    counts = []
    for unit in units:
        who = (unit.namespace, *sorted(unit.labels.items()))
        if who not in counted:
            counted[who] = [
                name
                for term, name in names.items()
                if unit.namespace in term[1] and selects(term[2], unit.labels)
            ]
        counts.append(counted[who])
    rules = [{"name": name, **dict(rule)} for (rule, _, _), name in names.items()]
    return rules, [[names[term] for term in own] for own in keeps], counts


def _terms(unit: Replica, spaces: Mapping[str, Mapping[str, str]]) -> Iterator[_Term]:
    """Yield what a pod asks of others, as far as a trace can say it."""
    for kind, soft, terms in affinity_terms(unit):
        for term in () if soft else terms:
            if per := _PER.get(term.topology_key):
                about = spaces_of(unit, term, spaces)
                selector = selector_of(unit, term, adopted=True)
                yield (("kind", kind), ("per", per)), about, selector
    for spread in unit.spec.spread:
        if spread.is_required and (per := _PER.get(spread.topology_key)):
            rule = ("kind", "spread"), ("per", per), ("max_skew", spread.max_skew)
            yield rule, (unit.namespace,), selector_of(unit, spread, adopted=True)


def _name(term: _Term, number: int) -> str:
    rule, spaces, selector = term
    return f"{number + 1} {dict(rule)['kind']} {'+'.join(spaces)[:80]}/{in_words(selector)}"[:200]


def strategy_of(workload: Workload) -> dict[str, int]:
    """Return how a Deployment replaces its pods: 25 % each where it does not say."""
    if workload.recreates:
        return {"max_unavailable": max(1, workload.replicas), "max_surge": 0}
    rolling = workload.strategy.rollingUpdate
    surge, missing = (
        "25%" if said is None else said for said in (rolling.maxSurge, rolling.maxUnavailable)
    )
    count = workload.replicas
    result = {
        "max_surge": share_of(surge, count),
        "max_unavailable": share_of(missing, count, up=False),
    }
    return result if any(result.values()) else {"max_surge": 0, "max_unavailable": 1}


T = TypeVar("T")

#: What kube-scheduler takes a container for that requests nothing.
_RULES = MovingRules(MissingRequests.parse(["default=100m,200Mi"]))
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_MODEL = "nvidia.com/gpu.product"
#: Taints that come and go with the state of a node.
_PASSING = re.compile(
    r"node(\.cloudprovider)?\.kubernetes\.io/|karpenter\.sh/(unregistered|disrupt)|ToBeDeleted"
)


@dataclass
class _Life(Generic[T]):
    """What was seen first of a pod or a node; `begins`, `ends` in s since 1970, None: not yet."""

    what: T
    begins: float
    ends: float | None = None


@dataclass
class _SeenPod:
    unit: Replica
    revision: str | None
    alone: bool
    work_s: float | None = None


@dataclass
class _SeenNode:
    node: KubernetesNode
    agents: dict[str, Replica] = field(default_factory=dict)


class _Lives(Generic[T]):
    """Who was there when, by identity."""

    def __init__(self) -> None:
        self.of: dict[str, _Life[T]] = {}
        self._there: dict[str, float | None] = {}  # those of the last moment: when they end at last
        self.last = 0.0

    def seen(self, at: float, there: Mapping[str, float | None]) -> None:
        """Let what is there no more have ended; `there` says by when something is to be gone."""
        for key, until in self._there.items():
            if key not in there and self.of[key].ends is None:
                told = until is not None and self.last <= until <= at
                self.of[key].ends = until if told else (self.last + at) / 2
        self._there, self.last = dict(there), at


def trace_of(folder: Path) -> ClusterTrace | None:
    """Read the dumps of a folder; None where it holds no objects of Kubernetes.

    Raises
    ------
    DocumentError
        One of them cannot be read, or their times are not known; names the file and the line.
    """
    if not _has_objects(folder):
        return None
    record = _Record()
    with no_collection():
        for moment in moments(folder):
            record.add(moment)
    return built(record.document(folder), str(folder))


def _has_objects(folder: Path) -> bool:
    try:
        first = next(iter(with_folders([folder]))) if folder.is_dir() else None
    except DocumentError:
        return False
    if first is None:
        return False
    with open(first, encoding="utf-8", errors="replace") as stream:
        return "apiVersion" in stream.read(2000)


class _Record:
    """What moments showed, one after another."""

    def __init__(self) -> None:
        self.pods, self.nodes = _Lives[_SeenPod](), _Lives[_SeenNode]()
        self.budgets: dict[str, int] = {}
        self.strategies: dict[str, dict[str, int]] = {}
        self.known = ClusterObjects()  # volumes, claims and their classes, of all moments
        self.begin = self.end = 0.0

    def add(self, moment: Moment) -> None:
        """Take up what a moment shows; one without pods or without nodes says nothing of them."""
        cluster = manifests.objects_of(moment.files)
        self.begin, self.end = self.begin or moment.at, moment.at
        for name in ("claims", "volumes", "classes", "namespaces"):
            getattr(self.known, name).update(getattr(cluster, name))
        for (space, kind, name), workload in cluster.workloads.items():
            if kind == "Deployment":
                self.strategies[f"{space}/{name}"] = strategy_of(workload)
        if cluster.nodes:
            self.nodes.seen(moment.at, {self._node(n, moment.at): None for n in _own(cluster)})
        if cluster.pods:
            self._add_pods(cluster, moment.at)

    def _node(self, node: KubernetesNode, at: float) -> str:
        key = f"{node.name}/{node.meta.uid or ''}"
        if key not in self.nodes.of:
            lasting = [taint for taint in node.taints if not _PASSING.match(taint[0])]
            seen = _SeenNode(replace(node, taints=lasting))
            self.nodes.of[key] = _Life(seen, _created(node.meta, at))
        return key

    def _add_pods(self, cluster: ClusterObjects, at: float) -> None:
        there: dict[str, float | None] = {}
        units = []
        by_name = {life.what.node.name: life.what for life in self.nodes.of.values()}
        for pod in cluster.pods:
            unit = unit_of(cluster, pod, _RULES, effective(pod.spec, _RULES.policy, pod.meta.label))
            if comes_with_node(unit.kind, pod):
                # Pods of a DaemonSet follow one another on a node; static pods stand side by side.
                one = unit.workload if unit.kind == "DaemonSet" else pod.meta.name
                if pod.spec.node in by_name:
                    by_name[pod.spec.node].agents[f"{unit.namespace}/{one}"] = unit
                continue
            key = pod.meta.uid or pod.meta.label
            life = self.pods.of.get(key)
            if life is None:
                kind, name = pod.meta.owner or ("", "")
                revision = name if kind == "ReplicaSet" else None
                seen = _SeenPod(unit, revision, not copied(unit, cluster))
                life = self.pods.of[key] = _Life(seen, _created(pod.meta, at))
            elif life.what.unit.node is None and unit.node is not None:
                life.what.unit = replace(life.what.unit, node=unit.node)
            if pod.phase in ENDED:
                if life.ends is None:
                    _finish(life, pod, self.pods.last, at)
            else:
                there[key] = _time(
                    pod.meta, pod.meta.deletion_timestamp, "metadata", "deletionTimestamp"
                )
                units.append(unit)
        self.pods.seen(at, there)
        counts: dict[tuple[str, str, str], int] = {}
        for unit in units:
            counts[unit.owner] = counts.get(unit.owner, 0) + 1
        for owner, kept in budgets_of(cluster, units).items():
            self.budgets[f"{owner[0]}/{owner[2]}"] = max(0, counts[owner] - kept)

    # -- what came of it ---------------------------------------------------------------------------

    def document(self, folder: Path) -> dict[str, Any]:
        """Return the document of the trace."""
        nodes = self._named_nodes()
        seen = [life for life in self.pods.of.values() if (life.ends or self.end) > self.begin]
        machines, may = self._machines(nodes, [life.what.unit for life in seen])
        placed = [self._span(nodes[n]) | {"name": n, "machine": machines[n]["name"]} for n in nodes]
        rules, keeps, counts = rules_between(
            [life.what.unit for life in seen], self.known.namespaces
        )
        pods = [
            self._pod(life, who) | {"keeps": keeps[k], "counts": counts[k]}
            for k, (life, who) in enumerate(zip(seen, may, strict=True))
            if who is not None
        ]
        workloads = {pod["workload"] for pod in pods}
        return {
            "name": folder.resolve().name,
            "seconds": self.end - self.begin,
            "machines": list({m["name"]: m for m in machines.values()}.values()),
            "nodes": placed,
            "pods": _one_after_another(pods),
            "rules": rules,
            "rollouts": {name: s for name, s in self.strategies.items() if name in workloads},
            "budgets": {name: n for name, n in self.budgets.items() if name in workloads},
        }

    def _named_nodes(self) -> dict[str, _Life[_SeenNode]]:
        """Return nodes by a name of their own: one that came again has a number."""
        results: dict[str, _Life[_SeenNode]] = {}
        before: dict[str, _Life[_SeenNode]] = {}
        for life in sorted(self.nodes.of.values(), key=lambda life: life.begins):
            name = life.what.node.name
            if name in before:  # what has its name now is another machine
                before[name].ends = min(before[name].ends or life.begins, life.begins)
            before[name] = life
        for life in self.nodes.of.values():
            name, k = life.what.node.name, 1
            while name in results:
                k += 1
                name = f"{life.what.node.name}-{k}"
            if (life.ends or self.end) > self.begin:
                results[name] = life
        return results

    def _span(self, life: _Life[Any]) -> dict[str, float]:
        begins = max(0.0, life.begins - self.begin)
        if life.ends is None:
            return {"from_s": begins}
        return {"from_s": begins, "to_s": max(begins, life.ends - self.begin)}

    def _pod(self, life: _Life[_SeenPod], who: tuple[list[str], bool]) -> dict[str, Any]:
        unit, (machines, fixed) = life.what.unit, who
        further = unit.further
        pod = self._span(life) | {
            "name": unit.label,
            "workload": f"{unit.namespace}/{unit.workload}",
            "cpu_millicores": unit.size.cpu,
            "memory_mib": -(-unit.size.memory // 2**20),
            "gpus": sum(further.get(name, 0) for name in _GPUS),
            "machines": machines,
            "ports": sorted({f"{port.protocol}/{port.number}" for port in unit.spec.host_ports}),
            "revision": life.what.revision,
            "alone": life.what.alone,
            "fixed": fixed or not evictable(unit),
        }
        if life.what.work_s is not None:
            del pod["to_s"]
            pod["work_s"] = life.what.work_s
        if not (pod["cpu_millicores"] or pod["memory_mib"] or pod["gpus"]):
            pod["cpu_millicores"] = 1  # it says that it requests nothing
        return pod

    def _machines(
        self, nodes: Mapping[str, _Life[_SeenNode]], units: list[Replica]
    ) -> tuple[dict[str, dict[str, Any]], list[tuple[list[str], bool] | None]]:
        """Return the machine type of each node; for each pod those that it may be on.

        And whether it may be on one node of them alone. Nodes are of one type where their kind and
        zone are the same and every pod may be on all of them or on none. None stands for a pod that
        may be nowhere.
        """
        known = {name: life.what.node for name, life in nodes.items()}
        kinds = {name: _kind(node) for name, node in known.items()}
        sets = allowed(units, self.known, known)
        single = {one for one in sets if len(one) == 1 and len(_like(kinds, *one)) > 1}
        told = [one for one in dict.fromkeys(sets) if one not in single and len(one) < len(known)]
        names: dict[tuple[Any, ...], str] = {}
        machines: dict[str, dict[str, Any]] = {}
        of_node: dict[str, dict[str, Any]] = {}
        for name, life in nodes.items():
            key = (kinds[name], *(name in one for one in told))
            if key not in names:
                alike = sum(k[0] == kinds[name] for k in names)
                names[key] = kinds[name] + (f"#{alike + 1}" if alike else "")
            of_node[name] = _least(machines, names[key], life.what)
        shown = {
            one: sorted({of_node[n]["name"] for n in one}) if len(one) < len(known) else []
            for one in dict.fromkeys(sets)
        }
        return of_node, [(shown[one], one in single) if one else None for one in sets]


def _own(cluster: ClusterObjects) -> Iterable[KubernetesNode]:
    return (node for node in cluster.nodes.values() if node.kind == "Node")


def _kind(node: KubernetesNode) -> str:
    """Return the machine type and the zone of a node."""
    kind = node.instance_type or f"{node.cpu}m-{node.memory >> 20}Mi"
    return f"{kind}/{node.zone}" if node.zone else kind


def _like(kinds: Mapping[str, str], name: str) -> list[str]:
    return [other for other, kind in kinds.items() if kind == kinds[name]]


def _least(machines: dict[str, dict[str, Any]], name: str, seen: _SeenNode) -> dict[str, Any]:
    """Return the machine type of a name; it has what each of its nodes leaves to pods."""
    node, agents = seen.node, seen.agents.values()
    room = {
        "cpu_millicores": node.cpu - sum(unit.size.cpu for unit in agents),
        "memory_mib": (node.memory - sum(unit.size.memory for unit in agents)) >> 20,
        "gpus": sum(node.further.get(key, 0) for key in _GPUS),
        "pods": node.pods - len(agents),
    }
    machine = machines.setdefault(
        name,
        room
        | {
            "name": name,
            "zone": node.zone,
            "gpu_model": node.label(_MODEL),
            "usd_per_hour": 0.0,
        },
    )
    for key, amount in room.items():
        machine[key] = max(key == "cpu_millicores", min(machine[key], amount))
    return machine


def _one_after_another(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pods sorted by time; of one name, each ends before the next one comes."""
    pods.sort(key=lambda pod: pod["from_s"])
    last: dict[str, dict[str, Any]] = {}
    for pod in pods:
        before = last.get(pod["name"])
        if before is not None:
            before["to_s"] = min(before.get("to_s", pod["from_s"]), pod["from_s"])
        last[pod["name"]] = pod
    return pods


def _finish(life: _Life[_SeenPod], pod: Pod, last: float, at: float) -> None:
    """Let a pod have ended when its containers did; of a Job, note how long it worked.

    An evicted pod has no containers left. It ended when it was told to, or between the last moment,
    or when it came, and this one.
    """
    meta, status = pod.meta, pod.told
    states = [one.state.terminated for one in status.containerStatuses]
    where = "status", "containerStatuses"
    ends = [end for s in states if (end := _time(meta, s.finishedAt, *where)) is not None]
    begins = [begin for s in states if (begin := _time(meta, s.startedAt, *where)) is not None]
    told = [
        end
        for condition in status.conditions
        if condition.type == "DisruptionTarget"
        and (end := _time(meta, condition.lastTransitionTime, "status", "conditions")) is not None
    ]
    unseen = (max(last, life.begins) + at) / 2
    life.ends = max(life.begins, min(at, max(ends or told, default=unseen)))
    if pod.phase == "Succeeded" and ends and begins and life.what.unit.kind in ("Job", "CronJob"):
        life.what.work_s = max(0.0, max(ends) - min(begins))


def _created(meta: ObjectMeta, at: float) -> float:
    created = _time(meta, meta.creation_timestamp, "metadata", "creationTimestamp")
    return at if created is None else min(created, at)


def _time(meta: ObjectMeta, text: str, *steps: str) -> float | None:
    """Return a time in s since 1970, of a text that an object says; None where there is none.

    Raises
    ------
    DocumentError
        It is no time; names the file and the line.
    """
    if not text:
        return None
    try:
        return seconds_of(text)
    except ValueError:
        problem, legal = "no time of Kubernetes", "legal: such as 2026-11-01T10:00:00Z"
        raise meta.place.fault(problem, legal, *steps) from None
