"""Would kube-scheduler run the copies of a plan? Its filters, asked at every step of a steps file.

This reads the objects of the cluster, not the instance, and counts pods one by one: it shares
nothing with the referee, so that a fault in one shows in the other. Asked are the filters that
kube-scheduler has on by default: NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts,
NodeResourcesFit, VolumeZone and VolumeBinding (node affinity of volumes), PodTopologySpread,
InterPodAffinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from placeopt.core.errors import DocumentError
from placeopt.core.files import AnyPath
from placeopt.kubernetes.budgets import budgets_by_pod
from placeopt.kubernetes.disruptions import Interruption, broken_budgets
from placeopt.kubernetes.export.steps_document import NodeToBuy, StepsDocument
from placeopt.kubernetes.manifests import ENDED, ClusterObjects, load
from placeopt.kubernetes.objects import KubernetesNode, ObjectMeta, PodSpec, further, selects
from placeopt.kubernetes.quantities import MIB, mebibytes, millicores, whole_bytes
from placeopt.kubernetes.reading import Source, View
from placeopt.kubernetes.sites import Tolerations, affinity_nodes, blocking_taints
from placeopt.kubernetes.sizes import NOTHING_ASKED, as_scheduled, resized
from placeopt.kubernetes.units import MovingRules, units
from placeopt.kubernetes.volumes import (
    Attached,
    attached_by,
    attachments,
    claims_of,
    limits_of,
    why_not,
)

_HARD = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
#: Room for pods of a node that does not say.
_MANY = 10**9


@dataclass(frozen=True)
class RunningPod:
    """A pod on a node.

    `amounts` are what it asks for: cpu, memory in MiB, and the rest by name.
    """

    namespace: str
    name: str
    labels: dict[str, str]
    spec: PodSpec
    node: str
    amounts: dict[str, int]
    ending: bool = False


@dataclass(frozen=True)
class Refusal:
    """A copy that kube-scheduler would not start: at which step, where, and why."""

    step: int
    pod: str
    node: str
    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        """The refusal in a sentence."""
        why = "; ".join(self.reasons)
        return f"step {self.step}: {self.pod} would not be scheduled on {self.node}: {why}"


def budgets_broken(steps: StepsDocument, cluster: ClusterObjects) -> list[str]:
    """Return a sentence for each step that breaks a PodDisruptionBudget of a cluster."""
    rules = MovingRules(policy=NOTHING_ASKED, adopts=True)
    budgets = budgets_by_pod(cluster, units(cluster, rules))
    names: dict[tuple[str, str | None], tuple[str, str]] = {}
    made = []
    for record in steps.steps:
        if record.workload is None:
            continue
        who = (str(record.application), record.microservice)
        if who not in names:
            names[who] = (record.workload.namespace, str(record.pod))
        recreated = record.workload.kind == "StatefulSet" and record.source is not None
        down = record.action == "stop" or recreated
        event = Interruption(
            record.number, who, "/".join(names[who]), down=down, up=record.to is not None
        )
        made.append((event, budgets.get(names[who], ())))
    return broken_budgets(made)


def verify_files(steps: StepsDocument, files: Sequence[AnyPath]) -> list[Refusal]:
    """Return what kube-scheduler would refuse of the steps of a plan, in the cluster of files.

    Raises
    ------
    DocumentError
        A file cannot be read, or does not hold a pod or node that a step names.
    """
    return verify(steps, load(files))


def verify(steps: StepsDocument, cluster: ClusterObjects) -> list[Refusal]:
    """Return what kube-scheduler would refuse of the steps of a plan.

    Nodes to buy are as the steps say them, unless the cluster has them.

    Raises
    ------
    DocumentError
        The cluster does not hold a pod or node that a step names.
    """
    cluster = replace(cluster, nodes={n.name: _bought(n) for n in steps.buy} | cluster.nodes)
    state = SchedulerState(cluster)
    found = []
    for record in steps.steps:
        if record.workload is None:
            continue  # nothing is moved: what the importer made up, or not in the cluster yet
        space = record.workload.namespace
        who = (space, record.workload.name, record.microservice)
        old = state.pods.get((space, record.pod or ""))
        if old is None and record.to is None:
            raise _unknown(f"pod {space}/{record.pod}")
        if record.to is None:
            assert old is not None
            state.end(old)
            state.stopped[who] = old
            continue
        template = (
            old or state.stopped.get(who) or state.waiting(space, record.workload.name, record.pod)
        )
        if record.to not in cluster.nodes:
            raise _unknown(f"node {record.to}")
        copy = state.copy_of(template, str(record.new_pod), record.to, record.requests)
        if record.workload.kind == "StatefulSet" and old is not None:
            state.end(old)
        if reasons := tuple(state.refusals(copy)):
            found.append(Refusal(record.number, f"{space}/{record.new_pod}", record.to, reasons))
        if old is not None:
            state.end(old)
        state.start(replace(copy, labels=template.labels))  # adopted: with the hash again
    return found


def _bought(node: NodeToBuy) -> KubernetesNode:
    """Return a node that is to be bought, with the room that the plan gives it."""
    nothing = View({}, Source("", "", is_json=True))
    pairs = (taint.rpartition(":") for taint in node.taints)
    return KubernetesNode(
        meta=ObjectMeta(nothing, "", node.name, node.labels),
        cpu=node.cpu_millicores,
        memory=node.memory_mib * MIB,
        further={"pods": _MANY, **node.resources},
        taints=[(*_pair(pair), effect) for pair, _, effect in pairs],
    )


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value


def _unknown(what: str) -> DocumentError:
    return DocumentError(
        f"{what} is not in the files of the cluster",
        path="steps",
        remedy="give the files that the instance was imported from",
    )


class SchedulerState:
    """The pods that run in a cluster, and the filters of kube-scheduler.

    Parameters
    ----------
    cluster : ClusterObjects
    """

    def __init__(self, cluster: ClusterObjects):
        self.cluster, self.nodes = cluster, cluster.nodes
        self.pods: dict[tuple[str, str], RunningPod] = {}
        self.by_node: dict[str, dict[tuple[str, str], RunningPod]] = {}
        self.by_space: dict[str, dict[tuple[str, str], RunningPod]] = {}
        self.keeping_away: dict[tuple[str, str], tuple[RunningPod, list[View]]] = {}
        self.pending: dict[tuple[str, str], RunningPod] = {}
        self.stopped: dict[tuple[str, str, str | None], RunningPod] = {}
        for pod in cluster.pods:
            if pod.phase in ENDED:
                continue
            about = pod.meta
            running = RunningPod(
                about.namespace,
                about.name,
                about.labels,
                pod.spec,
                pod.spec.node,
                _amounts(pod.spec),
                pod.leaving,
            )
            if pod.spec.node:
                self.start(running)
            else:
                self.pending[about.namespace, about.name] = running

    def start(self, pod: RunningPod) -> None:
        """Let a pod run."""
        key = (pod.namespace, pod.name)
        self.pods[key] = pod
        self.by_node.setdefault(pod.node, {})[key] = pod
        self.by_space.setdefault(pod.namespace, {})[key] = pod
        if terms := list(pod.spec.affinity["podAntiAffinity"][_HARD].items()):
            self.keeping_away[key] = pod, terms

    def end(self, pod: RunningPod) -> None:
        """Let a pod end; one that has ended already stays so."""
        key = (pod.namespace, pod.name)
        self.keeping_away.pop(key, None)
        for table in (self.pods, self.by_node[pod.node], self.by_space[pod.namespace]):
            table.pop(key, None)

    def waiting(self, space: str, workload: str, pod: str | None) -> RunningPod:
        """Return a pod that waits for a node, or one like the others of a workload.

        That is a pod of its template, or where the files do not have it, of one that runs.
        """
        if pod is not None and (space, pod) in self.pending:
            return self.pending[space, pod]
        for (namespace, _, name), known in self.cluster.workloads.items():
            if (namespace, name) == (space, workload):
                return RunningPod(space, name, known.labels, known.spec, "", _amounts(known.spec))
        for other in self.cluster.pods:
            if other.meta.namespace == space and self.cluster.owner(other)[1] == workload:
                like = other.spec
                return RunningPod(space, pod or "", other.meta.labels, like, "", _amounts(like))
        raise _unknown(f"pod {space}/{pod or workload}")

    def copy_of(
        self, pod: RunningPod, name: str, node: str, requests: dict[str, dict[str, str]]
    ) -> RunningPod:
        """Return the copy that a step makes: without the hash of the template, at its new size."""
        labels = {k: v for k, v in pod.labels.items() if k != "pod-template-hash"}
        new = {
            container: (
                millicores(asked["cpu"]) if "cpu" in asked else None,
                whole_bytes(asked["memory"]) if "memory" in asked else None,
            )
            for container, asked in requests.items()
        }
        spec = resized(pod.spec, new)
        return RunningPod(pod.namespace, name, labels, spec, node, _amounts(spec))

    def refusals(self, pod: RunningPod) -> Iterator[str]:
        """Yield why kube-scheduler would not bind a pod to its node now."""
        node = self.nodes[pod.node]
        if not node.ready:
            yield "node(s) were not ready"
        if node.cordoned and not Tolerations(pod.spec).tolerate(
            ("node.kubernetes.io/unschedulable", "", "NoSchedule")
        ):
            yield "node(s) were unschedulable (cordoned)"
        for key, value, _ in blocking_taints(node, pod.spec):
            yield f"node(s) had untolerated taint {{{key}: {value}}}"
        if node.name not in affinity_nodes(pod.spec, {node.name: node}):
            yield "node(s) didn't match Pod's node affinity/selector"
        yield from self._ports(pod)
        yield from self._resources(pod, node)
        yield from self._volumes(pod, node)
        yield from self._spread(pod, node)
        yield from self._affinity(pod, node)

    def _on(self, node: str) -> list[RunningPod]:
        return list(self.by_node.get(node, {}).values())

    def _ports(self, pod: RunningPod) -> Iterator[str]:
        taken = {port for p in self._on(pod.node) for port in p.spec.host_ports}
        for port in pod.spec.host_ports:
            if any(port.meets(other) for other in taken):
                yield f"node(s) didn't have free ports for the requested pod ports ({port.label})"

    def _resources(self, pod: RunningPod, node: KubernetesNode) -> Iterator[str]:
        room = {"cpu": node.cpu, "memory": node.memory // MIB, "pods": _MANY, **node.further}
        used: dict[str, int] = {}
        for other in self._on(node.name):
            for key, amount in other.amounts.items():
                used[key] = used.get(key, 0) + amount
        for key, amount in pod.amounts.items():
            if amount and used.get(key, 0) + amount > room.get(key, 0):
                yield "Too many pods" if key == "pods" else f"Insufficient {key}"

    def _volumes(self, pod: RunningPod, node: KubernetesNode) -> Iterator[str]:
        for claim in claims_of(self.cluster, pod.namespace, pod.name, pod.spec):
            if claim.spec is not None and (why := why_not(self.cluster, claim.spec, node)):
                yield why
        yield from self._attached(pod, node)

    def _attached(self, pod: RunningPod, node: KubernetesNode) -> Iterator[str]:
        limits = limits_of(self.cluster, [node])[node.name]
        if not limits:
            return
        mine, here = self._volumes_of(pod), set[Attached]()
        for other in self._on(node.name):
            here |= self._volumes_of(other)
        here |= {one for name, one in attachments(self.cluster) if name == node.name}
        for driver in sorted({one.driver for one in mine - here} & limits.keys()):
            count = sum(one.driver == driver for one in here | mine)
            if count > limits[driver]:
                yield f"Too many volumes: at most {limits[driver]} of {driver} on {node.name}"

    def _volumes_of(self, pod: RunningPod) -> frozenset[Attached]:
        return attached_by(self.cluster, pod.namespace, pod.name, pod.spec)

    def _spread(self, pod: RunningPod, node: KubernetesNode) -> Iterator[str]:
        for term in pod.spec.view["topologySpreadConstraints"].items():
            if term["whenUnsatisfiable"].text("DoNotSchedule") != "DoNotSchedule":
                continue
            key = term["topologyKey"].text()
            if _domain(node, key) is None:
                yield f"node(s) didn't match pod topology spread constraints (no label {key})"
                continue
            count = {_domain(n, key): 0 for n in self._counted(pod, term) if _domain(n, key)}
            legal = {n.name for n in self._counted(pod, term)}
            for other in self.by_space.get(pod.namespace, {}).values():
                if other.ending:
                    continue  # no spread counts it
                if other.node in legal and self._selects(pod, term, other):
                    where = _domain(self.nodes[other.node], key)
                    if where in count:
                        count[where] += 1
            fewest = min(count.values(), default=0)
            if len(count) < term["minDomains"].whole(1):
                fewest = 0
            own = self._selects(pod, term, pod)
            if count.get(_domain(node, key), 0) + own - fewest > term["maxSkew"].whole(1):
                yield "node(s) didn't match pod topology spread constraints"

    def _counted(self, pod: RunningPod, term: View) -> list[KubernetesNode]:
        """Return the nodes over which a spread counts."""
        found = list(self.nodes.values())
        if term["nodeAffinityPolicy"].text("Honor") == "Honor":
            legal = affinity_nodes(pod.spec, self.nodes)
            found = [n for n in found if n.name in legal]
        if term["nodeTaintsPolicy"].text("Ignore") == "Honor":
            tolerations = Tolerations(pod.spec)
            found = [n for n in found if tolerations.tolerate_all(n)]
        return found

    def _selects(self, pod: RunningPod, term: View, other: RunningPod) -> bool:
        """Return whether a spread constraint of a pod counts another pod."""
        if other.namespace != pod.namespace or not selects(term["labelSelector"], other.labels):
            return False
        keys = [k.text() for k in term["matchLabelKeys"].items()]
        return all(other.labels.get(k) == pod.labels[k] for k in keys if k in pod.labels)

    def _affinity(self, pod: RunningPod, node: KubernetesNode) -> Iterator[str]:
        for term in pod.spec.affinity["podAntiAffinity"][_HARD].items():
            if self._near(pod, term, node):
                yield "node(s) didn't match pod anti-affinity rules"
        for other, terms in self.keeping_away.values():
            for term in terms:
                key, there = term["topologyKey"].text(), self.nodes.get(other.node)
                here = _domain(node, key)
                if there is None or here is None or _domain(there, key) != here:
                    continue
                if self._matches(other, term, pod):
                    yield f"node(s) didn't satisfy anti-affinity rules of pod {other.name}"
        for term in pod.spec.affinity["podAffinity"][_HARD].items():
            if self._near(pod, term, node):
                continue
            anywhere = any(self._matches(pod, term, p) for p in self.pods.values())
            own = self._matches(pod, term, pod)
            if anywhere or not own or _domain(node, term["topologyKey"].text()) is None:
                yield "node(s) didn't match pod affinity rules"

    def _near(self, pod: RunningPod, term: View, node: KubernetesNode) -> bool:
        """Return whether a pod that a term of `pod` is about runs in the domain of a node."""
        key = term["topologyKey"].text()
        here = _domain(node, key)
        return here is not None and any(
            other.node in self.nodes
            and _domain(self.nodes[other.node], key) == here
            and self._matches(pod, term, other)
            for other in self.pods.values()
        )

    def _matches(self, pod: RunningPod, term: View, other: RunningPod) -> bool:
        """Return whether an affinity term of a pod is about another pod."""
        spaces = {s.text() for s in term["namespaces"].items()}
        selector = term["namespaceSelector"]
        if selector.value is not None:
            known = {
                "kubernetes.io/metadata.name": other.namespace,
                **self.cluster.namespaces.get(other.namespace, {}),
            }
            if not (other.namespace in spaces or selects(selector, known)):
                return False
        elif other.namespace not in (spaces or {pod.namespace}):
            return False
        if not selects(term["labelSelector"], other.labels):
            return False
        same = [k.text() for k in term["matchLabelKeys"].items()]
        unlike = [k.text() for k in term["mismatchLabelKeys"].items()]
        labels = pod.labels
        return all(other.labels.get(k) == labels[k] for k in same if k in labels) and all(
            other.labels.get(k) != labels[k] for k in unlike if k in labels
        )


def _domain(node: KubernetesNode, key: str) -> str | None:
    """Return the domain of a node, None where it has none; a hostname is the node's own name."""
    return node.name if key == _HOSTNAME else node.meta.labels.get(key)


def _amounts(spec: PodSpec) -> dict[str, int]:
    size = as_scheduled(spec)
    return {"cpu": size.cpu, "memory": mebibytes(size.memory), **further(spec)}
