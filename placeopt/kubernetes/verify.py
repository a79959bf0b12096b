"""Would kube-scheduler run the copies of a plan? Its filters, asked at every step of a steps file.

They are those by which an instance is made: what pods say of each other is read as rules of a
rolling update (`placeopt.kubernetes.rules`), which the referee of rules judges; what they say of
nodes and volumes by the functions that make sets of allowed nodes. Asked are NodeUnschedulable,
TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeZone, VolumeBinding,
NodeVolumeLimits, PodTopologySpread, InterPodAffinity and scheduling gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.admission import NOTHING_ASKED, Admission, as_scheduled, resized, under_way
from placeopt.kubernetes.capacity import reasons_against, site, to_come
from placeopt.kubernetes.cluster import Latencies, ReadCluster, WorkloadGraph
from placeopt.kubernetes.export.script import NodeToBuy, StepRecord, StepsDocument
from placeopt.kubernetes.instance import rules_document
from placeopt.kubernetes.manifests import ENDED, ClusterObjects, load
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.names import completed, drivers_in
from placeopt.kubernetes.objects import HOST_PORT, MANY_PODS, KubernetesNode, PodSpec, of_table
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.pinned import Interruption, broken_budgets, budgets_by_pod
from placeopt.kubernetes.replicas import (
    Attached,
    Replica,
    attached_by,
    attachments,
    limits_of,
    unit_of,
    unit_of_template,
    units,
)
from placeopt.kubernetes.rules import pod_rules
from placeopt.kubernetes.values import MIB, millicores, whole_bytes
from placeopt.rolling_update.document import UpdateRule
from placeopt.rolling_update.problem import RollingUpdate

#: Kind of a rule -> what kube-scheduler says of a node that it forbids.
_SAID = {
    "apart": "node(s) didn't match pod anti-affinity rules",
    "together": "node(s) didn't match pod affinity rules",
    "spread": "node(s) didn't match pod topology spread constraints",
}
_RULES = MovingRules(policy=NOTHING_ASKED, adopts=True)


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
    budgets = budgets_by_pod(cluster, units(cluster, _RULES))
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
    there = cluster.nodes
    drivers = drivers_in((n.meta.labels for n in there.values()), cluster.asked_of_volumes())
    bought = {node.name: _bought(node, drivers) for node in steps.buy}
    cluster = replace(cluster, nodes=bought | cluster.nodes)
    made = [record for record in steps.steps if record.workload is not None]
    course, result = _Course(cluster, made, bought.keys() - there), list[Refusal]()
    course.referee.gone |= set(steps.idle if steps.deletes_idle else ())
    for record in made:
        if reasons := course.make(record):
            who = f"{_space(record)}/{record.new_pod}"
            result.append(Refusal(record.number, who, str(record.to), tuple(reasons)))
        if record.deletes_node:
            course.referee.gone.add(str(record.source))
    return result


def _space(record: StepRecord) -> str:
    """Return the namespace of what a step is about."""
    assert record.workload is not None
    return record.workload.namespace


def _replica(record: StepRecord) -> tuple[str, str, str | None]:
    """Return what stands for the replica of a step: namespace, workload, microservice."""
    assert record.workload is not None
    return record.workload.namespace, record.workload.name, record.microservice


def _bought(node: NodeToBuy, drivers: Mapping[str, str]) -> KubernetesNode:
    """Return a node that is to be bought, with the room that the plan gives it."""
    pairs = (taint.rpartition(":") for taint in node.taints)
    return KubernetesNode(
        meta=of_table(node.name, completed(node.labels, drivers)),
        cpu=node.cpu_millicores,
        memory=node.memory_mib * MIB,
        further={"pods": MANY_PODS, **node.resources},
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


class _Course:
    """The pods of a cluster as the steps of a plan are made.

    Parameters
    ----------
    cluster : ClusterObjects
    made : sequence of StepRecord
        Those that a command makes.
    bought : collection of str
        Nodes whose room is that beside what comes with them.
    """

    def __init__(
        self, cluster: ClusterObjects, made: Sequence[StepRecord], bought: Collection[str]
    ):
        self.objects, self.nodes = cluster, cluster.nodes
        running = units(cluster, _RULES)
        self.pods: dict[tuple[str, str | None], int] = {
            (u.namespace, u.pod): k for k, u in enumerate(running) if u.pod
        }
        self.units = [*running, *_fresh(cluster, made, self.pods)]
        self.replicas: dict[tuple[str, str, str | None], int] = {
            (u.namespace, u.workload, u.name): k for k, u in enumerate(self.units) if not u.node
        }
        self.where = [u.node if u.node in self.nodes else None for u in self.units]
        self.amounts = [_amounts(u.spec) for u in self.units]
        self.used = {name: Counter[str]() for name in self.nodes}
        self.attached: dict[str, Counter[Attached]] = {n: Counter() for n in self.nodes}
        for k, node in enumerate(self.where):
            if node is not None:
                self._take(k, node, 1)
        there = {n: node for n, node in self.nodes.items() if n not in bought}
        for unit, name in to_come(cluster, self.units, there, NOTHING_ASKED):
            self.used[name].update(_amounts(unit.spec))
        self.admission, self.changing = Admission(cluster), under_way(cluster)
        self.charged = {k: unit.spec for k, unit in enumerate(self.units) if unit.pod}
        self._read_rules()

    def _read_rules(self) -> None:
        """Read what pods say of each other, as rules between those of the instance."""
        everywhere = site(self.objects, self.units, take_all=True)
        calls, latencies = WorkloadGraph(), Latencies()
        cluster = ReadCluster(self.objects, tuple(self.units), everywhere, calls, latencies)
        rules = pod_rules(cluster, ImportOptions())
        self.ruled = {id(u): m for m, u in enumerate(everywhere.units)}
        self.nowhere = rules.nowhere
        problem = RollingUpdate.from_document(rules_document(cluster, rules))
        self.number = {name: n for n, name in enumerate(problem.arrays.node_names)}
        self.referee = problem.rule_referee
        self.copies = self.referee.running(problem.arrays.home.tolist())

    def _take(self, k: int, node: str, sign: int) -> None:
        """Let a replica take of a node, or give it back."""
        unit = self.units[k]
        for key, amount in self.amounts[k].items():
            self.used[node][key] += sign * amount
        for one in attached_by(self.objects, unit.namespace, unit.name, unit.spec):
            self.attached[node][one] += sign

    def make(self, record: StepRecord) -> list[str]:
        """Make a step; return why kube-scheduler would not start its copy."""
        space = _space(record)
        k = self.pods.pop((space, record.pod), None)
        if k is None:
            k = self.replicas.get(_replica(record))
        if k is None:
            raise _unknown(f"pod {space}/{record.pod}")
        self.replicas[_replica(record)] = k
        if record.to is None:
            self._end(k)
            return []
        if record.to not in self.nodes:
            raise _unknown(f"node {record.to}")
        recreated = record.workload is not None and record.workload.kind == "StatefulSet"
        if recreated:
            self._end(k)
        old, spec = self.where[k], resized(self.units[k].spec, _asked(record))
        if old is None:  # one that waits is asked for anew
            self._uncharge(k)
        reasons = list(self._refusals(k, spec, record.to))
        if old is not None:
            self._end(k)
        self.admission.take(space, spec)
        self.charged[k] = spec
        self.amounts[k], self.where[k] = _amounts(spec), record.to
        self._take(k, record.to, 1)
        self.pods[space, record.new_pod] = k
        return reasons

    def _end(self, k: int) -> None:
        node = self.where[k]
        if node is None:
            return
        self._take(k, node, -1)
        self._uncharge(k)
        self.where[k] = None
        if (m := self.ruled.get(id(self.units[k]))) is not None:
            self.referee.end(self.copies, m, self.number[node])

    def _uncharge(self, k: int) -> None:
        """Let admission no longer count a replica as it was."""
        if (spec := self.charged.pop(k, None)) is not None:
            self.admission.take(self.units[k].namespace, spec, -1)

    def _refusals(self, k: int, spec: PodSpec, name: str) -> Iterator[str]:
        """Yield why a copy would not be bound to a node; it counts there from now on."""
        unit, node = self.units[k], self.nodes[name]
        yield from self.admission.forbidding(unit.namespace, spec)
        change = self.changing.get(unit.owner)
        if change is not None and self.where[k] is not None:
            yield f"it is a pod {change.text}: the controller may end the copy instead"
        if spec.scheduling_gates:
            yield "the pod has scheduling gates"
        yield from reasons_against(self.objects, unit, node)
        yield from self._lacking(_amounts(spec), node)
        yield from self._too_many_volumes(unit, node)
        m = self.ruled.get(id(unit))
        if m is None:  # it comes with its node: no rule is about it
            return
        if m in self.nowhere:
            yield f"{_SAID['together']}: {self.nowhere[m]}"
        for rule, text in self.referee.counted(self.copies, m, self.number[name]):
            yield f"{_phrase(rule)}: it {text}"

    def _lacking(self, amounts: dict[str, int], node: KubernetesNode) -> Iterator[str]:
        room = {"cpu": node.cpu, "memory": node.memory, "pods": node.pods, **node.further}
        for key, amount in amounts.items():
            if amount and self.used[node.name][key] + amount > room.get(key, 0):
                yield "Too many pods" if key == "pods" else f"Insufficient {key}"

    def _too_many_volumes(self, unit: Replica, node: KubernetesNode) -> Iterator[str]:
        limits = limits_of(self.objects, [node])[node.name]
        own = attached_by(self.objects, unit.namespace, unit.name, unit.spec) if limits else ()
        here = {one for one, count in self.attached[node.name].items() if count > 0}
        here |= {one for name, one in attachments(self.objects) if name == node.name and limits}
        for driver in sorted({one.driver for one in set(own) - here} & limits.keys()):
            count = sum(one.driver == driver for one in here.union(own))
            if count > limits[driver]:
                yield f"Too many volumes: at most {limits[driver]} of {driver} on {node.name}"


def _fresh(
    cluster: ClusterObjects,
    made: Sequence[StepRecord],
    pods: dict[tuple[str, str | None], int],
) -> Iterator[Replica]:
    """Yield the replicas that steps start and that are not among those that run or wait.

    One that waits and is left out, or one of the template of its workload, or like its siblings.
    """
    existing = {(pod.meta.namespace, pod.meta.name): pod for pod in cluster.pods}
    made_up = set(pods) | {(_space(r), r.new_pod) for r in made}
    seen = set[tuple[str, str, str | None]]()
    for record in made:
        who, pod = _replica(record), (_space(record), record.pod or "")
        if who in seen or pod in made_up or record.to is None:
            seen.add(who)
            continue
        seen.add(who)
        if pod in existing and existing[pod].phase not in ENDED:
            yield replace(unit_of(cluster, existing[pod], _RULES), workload=who[1], node=None)
        else:
            yield _like_workload(cluster, record)


def _like_workload(cluster: ClusterObjects, record: StepRecord) -> Replica:
    """Return a replica of the template of a workload, or like one of its pods."""
    space, name, replica = _replica(record)
    for (namespace, kind, workload), known in cluster.workloads.items():
        if (namespace, workload) == (space, name):
            owner, size = (namespace, kind, workload), as_scheduled(known.spec)
            return unit_of_template(cluster, owner, known, str(replica), size)
    for pod in cluster.pods:
        if pod.meta.namespace == space and cluster.owner(pod)[1] == name:
            like = unit_of(cluster, pod, _RULES)
            return replace(like, name=str(replica), pod=None, node=None, bound="", ending=False)
    raise _unknown(f"pod {space}/{record.pod or name}")


def _phrase(rule: UpdateRule) -> str:
    if rule.group.startswith(HOST_PORT):
        return f"node(s) didn't have free ports for the requested pod ports ({rule.group})"
    return _SAID[rule.kind]


def _asked(record: StepRecord) -> dict[str, tuple[int | None, int | None]]:
    """Return the new requests of the containers of a step's copy."""
    return {
        name: (
            millicores(new["cpu"]) if "cpu" in new else None,
            whole_bytes(new["memory"]) if "memory" in new else None,
        )
        for name, new in record.requests.items()
    }


def _amounts(spec: PodSpec) -> dict[str, int]:
    """Return what a pod asks for: milli-CPU, bytes, and the rest by name."""
    size = as_scheduled(spec)
    return {"cpu": size.cpu, "memory": size.memory, **spec.further}
