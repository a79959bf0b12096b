"""The objects of a cluster as far as placement needs them: containers, pods, workloads, nodes.

Quantities are whole milli-CPU and bytes, requests rounded up, capacities down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from placeopt.core.errors import DocumentError
from placeopt.kubernetes import labels as known_labels
from placeopt.kubernetes.kinds import DUMP
from placeopt.kubernetes.origin import BOUND
from placeopt.kubernetes.quantities import mebibytes, millicores, whole_bytes
from placeopt.kubernetes.reading import LABEL_KEY, View

#: Pods of a node where nothing is said: the default of the kubelet.
DEFAULT_PODS = 110
#: Pods of a member cluster, which has no such limit.
MANY_PODS = 10**9
#: Milli-CPU and bytes; None where nothing is said.
Amounts = tuple[int | None, int | None]


#: What the names of rules and messages about host ports begin with.
HOST_PORT = "host port"
#: The address of a host port that is taken on all addresses of its node.
EVERY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of its node that a container takes."""

    protocol: str
    number: int
    address: str

    def meets(self, other: HostPort) -> bool:
        """Return whether one node cannot give both."""
        alike = self.address == other.address
        return self[:2] == other[:2] and (alike or EVERY_ADDRESS in (self.address, other.address))

    @property
    def label(self) -> str:
        """How messages and rules name it."""
        where = "" if self.address == EVERY_ADDRESS else f" of {self.address}"
        return f"{HOST_PORT} {self.protocol} {self.number}{where}"


#: Taints of the nodes that cluster-autoscaler and Karpenter are emptying.
GOING = {
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
}


@dataclass(slots=True)
class ContainerSpec:
    """A container: requests and limits, the environment that is given as text, host ports.

    `held` is what a running one was given, where its status says so: of a resize in place the old
    amount until it is done, or until it is told. `further` are its other resources: ephemeral
    storage and huge pages in MiB, others in units.
    """

    view: View
    name: str
    requests: Amounts
    limits: Amounts
    sidecar: bool
    environment: list[tuple[str, str]]
    host_ports: tuple[HostPort, ...]
    further: dict[str, int]
    held: Amounts = (None, None)


@dataclass
class PodSpec:
    """What a pod runs and where it may run. Read only: properties are computed once."""

    view: View
    containers: list[ContainerSpec]
    inits: list[ContainerSpec]
    own_requests: Amounts
    overhead: Amounts
    further_overhead: dict[str, int]
    node: str
    selector: dict[str, str]
    volumes: list[tuple[str, str, str]]  # (name, kind, claim)

    @cached_property
    def affinity(self) -> View:
        """The affinity of the pod, as it stands in the file."""
        return self.view["affinity"]

    @cached_property
    def about_nodes(self) -> str:
        """A text that is the same for pods with the same rules about nodes."""
        hard = "requiredDuringSchedulingIgnoredDuringExecution"
        rules = self.affinity["nodeAffinity"][hard].value, self.view["tolerations"].value
        return json.dumps([sorted(self.selector.items()), *rules], sort_keys=True)

    @cached_property
    def about_pods(self) -> str:
        """A text that is the same for pods that say the same of other pods, where labels agree."""
        keys = ("affinity", "topologySpreadConstraints", "nodeSelector")
        return json.dumps([self.view[key].value for key in keys], sort_keys=True, default=str)

    @property
    def is_gated(self) -> bool:
        """Whether the scheduler is told to wait: it has scheduling gates."""
        return bool(self.view["schedulingGates"].value)

    @cached_property
    def host_ports(self) -> frozenset[HostPort]:
        """The ports of its node that it takes: those of containers and sidecars."""
        return frozenset(port for c in self.lasting for port in c.host_ports)

    @cached_property
    def further(self) -> Mapping[str, int]:
        """What it asks for besides cpu and memory.

        That is what its containers ask for together, or an init container by itself; what its
        runtime takes besides; one of its pods.
        """
        total: dict[str, int] = {}
        for container in self.lasting:
            for key, amount in container.further.items():
                total[key] = total.get(key, 0) + amount
        for init in self.inits:
            for key, amount in init.further.items():
                total[key] = max(total.get(key, 0), amount)
        for key, amount in self.further_overhead.items():
            total[key] = total.get(key, 0) + amount
        return {key: amount for key, amount in total.items() if amount} | {"pods": 1}

    @property
    def lasting(self) -> Iterator[ContainerSpec]:
        """Its containers and sidecars: those that run as long as it does."""
        yield from self.containers
        yield from (i for i in self.inits if i.sidecar)


@dataclass(slots=True)
class ObjectMeta:
    """Name and labels of an object; `owner` is (kind, name) of its controller."""

    view: View
    namespace: str
    name: str
    labels: dict[str, str]
    annotations: dict[str, str] = field(default_factory=dict)
    owner: tuple[str, str] | None = None

    @property
    def label(self) -> str:
        """How messages name the object."""
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str | None:
        """Its identity, None where the file does not say."""
        return self.view["metadata"]["uid"].text() or None


@dataclass(slots=True)
class Pod:
    """A pod of a cluster."""

    meta: ObjectMeta
    spec: PodSpec
    phase: str
    leaving: bool
    ready: bool = True


@dataclass(slots=True)
class Workload:
    """What makes pods: a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob, or a Pod."""

    meta: ObjectMeta
    spec: PodSpec
    replicas: int
    labels: dict[str, str]
    annotations: dict[str, str]
    deadline_seconds: int | None = None
    recreates: bool = False


@dataclass(slots=True)
class KubernetesNode:
    """A machine, or a member cluster of Karmada taken as one place."""

    meta: ObjectMeta
    cpu: int
    memory: int
    kind: str = "Node"
    further: dict[str, int] = field(default_factory=dict)
    ready: bool = True
    cordoned: bool = False
    going: bool = False  # it is being deleted, or an autoscaler is about to
    taints: list[tuple[str, str, str]] = field(default_factory=list)
    price: float | None = None
    layer: str | None = None
    user_latency_ms: float | None = None
    virtual: bool = False  # none that pods share: of Fargate, or of a virtual kubelet
    candidate: bool = False  # not there yet: it could be bought
    machine: Amounts = (None, None)  # cpu and memory of a candidate with what the system takes
    pool_limits: dict[str, int] = field(default_factory=dict)  # of its NodePool, all machines

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name

    def label(self, *keys: str) -> str | None:
        """Return the value of the first of some labels that the node has."""
        return next((self.meta.labels[key] for key in keys if self.meta.labels.get(key)), None)

    @property
    def shut(self) -> bool:
        """Whether nothing new is to go there: it is cordoned, or about to be deleted."""
        return self.cordoned or self.going

    @property
    def pods(self) -> int:
        """How many pods it takes, those that come with it among them."""
        return self.further.get("pods", DEFAULT_PODS if self.kind == "Node" else MANY_PODS)

    def _said(self, key: str) -> str | None:
        return self.label(key, *(old for old, today in known_labels.OLD.items() if today == key))

    @property
    def zone(self) -> str | None:
        """Its zone."""
        return self._said(known_labels.ZONE)

    @property
    def region(self) -> str | None:
        """Its region."""
        return self._said(known_labels.REGION)

    @property
    def place(self) -> str:
        """Its zone, or its region; ``all`` where it has neither."""
        return self.zone or self.region or "all"

    @property
    def instance_type(self) -> str | None:
        """Its machine type."""
        return self._said(known_labels.TYPE)


@dataclass(slots=True)
class KubernetesService:
    """A name under which pods are called."""

    meta: ObjectMeta
    selector: dict[str, str]
    type: str


@dataclass(slots=True)
class PodDisruptionBudget:
    """Which pods may be missing, and how many; None where the budget does not say."""

    meta: ObjectMeta
    selector: View
    min_available: Any
    max_unavailable: Any


# -- readers ---------------------------------------------------------------------------------------


def quantity(view: View, convert: Callable[..., int], *, capacity: bool = False) -> int | None:
    """Return a quantity as a whole number; None where nothing is said.

    Raises
    ------
    DocumentError
        Names the file and the line.
    """
    if view.value is None:
        return None
    try:
        return convert(view.value, capacity=capacity)
    except DocumentError as error:
        raise view.fault(error.problem, error.remedy or "") from None


def amounts(view: View, *, capacity: bool = False) -> Amounts:
    """Return (milli-CPU, bytes) of a list of resources."""
    if view.value is None:
        return None, None
    cpu = quantity(view["cpu"], millicores, capacity=capacity)
    return cpu, quantity(view["memory"], whole_bytes, capacity=capacity)


def meta(view: View, *, namespaced: bool = True) -> ObjectMeta:
    """Read the metadata of an object.

    Raises
    ------
    DocumentError
        It has no name, or one that Kubernetes does not allow.
    """
    about = view["metadata"]
    name = about["name"].name()
    if not name:
        generated = about["generateName"].text()
        raise (about or view).fault(
            "an object without a name",
            "give metadata.name" + (", not generateName" if generated else ""),
        )
    owners = [
        (o["kind"].text(), o["name"].text())
        for o in about["ownerReferences"].items()
        if o["controller"].flag() or o["kind"].value == "Node"
    ]
    namespace = (about["namespace"].name() or "default") if namespaced else ""
    return ObjectMeta(
        view,
        namespace,
        name,
        about["labels"].labels(),
        about["annotations"].mapping(),
        owners[0] if owners else None,
    )


def container(view: View, *, host_network: bool = False) -> ContainerSpec:
    """Read a container."""
    resources = view["resources"]
    requests, limits = resources["requests"], resources["limits"]
    allowed = amounts(limits)
    environment = []
    for entry in view["env"].items():
        value = entry["value"].value
        if isinstance(value, str) and value:
            environment.append((entry["name"].text(), value))
    return ContainerSpec(
        view=view,
        name=view["name"].text("?"),
        requests=_defaulted(amounts(requests), allowed),
        limits=allowed,
        sidecar=view["restartPolicy"].value == "Always",
        environment=environment,
        host_ports=tuple(_host_ports(view["ports"], host_network)),
        further=other_amounts(limits) | other_amounts(requests),
    )


def _host_ports(ports: View, host_network: bool) -> Iterator[HostPort]:
    """Yield the ports of its node that a container takes.

    In the network of the host every port of the container is one, as the API server has it.
    """
    for port in ports.items():
        value = port["hostPort"] or (port["containerPort"] if host_network else port["hostPort"])
        if number := value.whole(0, maximum=65535):
            yield HostPort(
                port["protocol"].text() or "TCP", number, port["hostIP"].text() or EVERY_ADDRESS
            )


def _defaulted(requests: Amounts, limits: Amounts) -> Amounts:
    """Return requests; a resource that has a limit only asks for it, as the API server has it."""
    cpu, memory = (b if a is None else a for a, b in zip(requests, limits, strict=True))
    return cpu, memory


def other_amounts(view: View, *, capacity: bool = False) -> dict[str, int]:
    """Return the resources of a list besides cpu and memory."""
    results = {}
    for key in view.mapping():
        if key in ("cpu", "memory") or not LABEL_KEY.fullmatch(key):
            continue
        if key == "ephemeral-storage" or key.startswith("hugepages-"):
            amount = quantity(view[key], whole_bytes, capacity=capacity)
            results[key] = min(10**9, mebibytes(amount or 0, capacity=capacity))
        else:
            milli = quantity(view[key], millicores, capacity=capacity) or 0
            results[key] = min(10**9, milli // 1000 if capacity else -(-milli // 1000))
    return results


def pod_spec(view: View) -> PodSpec:
    """Read the spec of a pod."""
    net = view["hostNetwork"].flag()
    containers = [container(c, host_network=net) for c in view["containers"].items()]
    if not containers:
        raise view.fault("a pod without containers", "give spec.containers")
    return PodSpec(
        view=view,
        containers=containers,
        inits=[container(c, host_network=net) for c in view["initContainers"].items()],
        own_requests=amounts(view["resources"]["requests"]),
        overhead=amounts(view["overhead"]),
        further_overhead=other_amounts(view["overhead"]),
        node=view["nodeName"].name(),
        selector=view["nodeSelector"].labels(),
        volumes=[_volume(v) for v in view["volumes"].items()],
    )


def _volume(view: View) -> tuple[str, str, str]:
    kind = next(
        (key for key, value in view.mapping().items() if key != "name" and value is not None),
        "emptyDir",
    )
    claim = view[kind]["claimName"].text() if kind == "persistentVolumeClaim" else ""
    return view["name"].text("?"), kind, claim


def pod(view: View, about: ObjectMeta) -> Pod:
    """Read a pod."""
    phase = view["status"]["phase"].text("Running" if view["spec"]["nodeName"] else "Pending")
    leaving = bool(about.view["metadata"]["deletionTimestamp"])
    spec = view["spec"]
    if BOUND in about.annotations:
        spec = _unbound(spec)
    status = view["status"]
    return Pod(about, held(pod_spec(spec), status), phase, leaving, _ready(status))


def held(spec: PodSpec, status: View) -> PodSpec:
    """Return a spec whose containers hold what their status says that they were given."""
    held: dict[str, list[View]] = {}
    for key in ("containerStatuses", "initContainerStatuses"):
        for told in status[key].items():
            listed = (told["allocatedResources"], told["resources"]["requests"])
            held[told["name"].text()] = [view for view in listed if view]
    for c in (*spec.containers, *spec.inits):
        for view in held.get(c.name, ()):
            cpu, memory = (
                old if new is None else max(new, old or 0)
                for old, new in zip(c.held, amounts(view), strict=True)
            )
            c.held = cpu, memory
    return spec


def _unbound(spec: View) -> View:
    """Return the spec of a copy that a script of ours made, without what binds it to its node."""
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    kept = [
        {key: value for key, value in term.mapping().items() if key != "matchFields"}
        for term in terms.items()
    ]
    required = {"nodeSelectorTerms": [term for term in kept if term]}
    affinity = dict(spec["affinity"].mapping())
    nodes = dict(spec["affinity"]["nodeAffinity"].mapping())
    nodes["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if not required["nodeSelectorTerms"]:
        del nodes["requiredDuringSchedulingIgnoredDuringExecution"]
    value = {**spec.mapping(), "affinity": {**affinity, "nodeAffinity": nodes}}
    return View(value, spec.source, spec.document, spec.parent, spec.key)


def workload(view: View, about: ObjectMeta) -> Workload:
    """Read an object that makes pods."""
    kind, spec = view["kind"].text(), view["spec"]
    if kind == "Pod":
        return Workload(about, pod_spec(spec), 1, about.labels, about.annotations)
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    is_job = kind in ("Job", "CronJob")
    replicas = spec["parallelism" if is_job else "replicas"].whole(1)
    deadline = spec["activeDeadlineSeconds"].whole(0, maximum=10**9) if is_job else 0
    template = spec["template"]
    if not template:
        raise spec.fault("no template of pods", "give spec.template")
    return Workload(
        meta=about,
        spec=pod_spec(template["spec"]),
        replicas=replicas,
        labels=template["metadata"]["labels"].labels(),
        annotations=template["metadata"]["annotations"].mapping(),
        deadline_seconds=deadline or None,
        recreates=spec["strategy"]["type"].value == "Recreate",
    )


def node(view: View, about: ObjectMeta) -> KubernetesNode:
    """Read a node; what it can give to pods is its allocatable."""
    status, spec = view["status"], view["spec"]
    taints = taints_of(spec)
    cpu, memory = amounts(status["allocatable"], capacity=True)
    if cpu is None or memory is None:
        raise (status or view).fault(
            "a node without allocatable cpu and memory",
            f"give the output of {DUMP}",
        )
    return KubernetesNode(
        meta=about,
        cpu=cpu,
        memory=memory,
        further=other_amounts(status["allocatable"], capacity=True),
        ready=_ready(status),
        cordoned=spec["unschedulable"].flag(),
        going=bool(view["metadata"]["deletionTimestamp"]) or any(k in GOING for k, *_ in taints),
        taints=taints,
        virtual=known_labels.is_virtual(
            about.labels,
            taints,
            f"{spec['providerID'].value} {status['nodeInfo']['kubeletVersion'].value}",
        ),
    )


def _ready(status: View) -> bool:
    return all(
        condition["status"].text() == "True"
        for condition in status["conditions"].items()
        if condition["type"].value == "Ready"
    )


def taints_of(spec: View) -> list[tuple[str, str, str]]:
    """Return (key, value, effect) of each taint."""
    return [
        (t["key"].text(), t["value"].text(), t["effect"].text()) for t in spec["taints"].items()
    ]


def member(view: View, about: ObjectMeta) -> KubernetesNode:
    """Read a member cluster of Karmada as one node: what it has left.

    That is what it can allocate less what is allocated, to pods with a node and to those without.
    """
    summary, spec = view["status"]["resourceSummary"], view["spec"]
    cpu, memory = amounts(summary["allocatable"], capacity=True)
    if cpu is None or memory is None:
        raise view.fault(
            "a cluster without status.resourceSummary.allocatable",
            "give the output of kubectl get clusters -o json of Karmada",
        )
    held = amounts(summary["allocated"]), amounts(summary["allocating"])
    used = [sum(amount or 0 for amount in both) for both in zip(*held, strict=True)]
    for key, text in (
        ("topology.kubernetes.io/region", spec["region"].text()),
        ("topology.kubernetes.io/zone", spec["zone"].text()),
    ):
        if text:
            about.labels = {**about.labels, key: text}
    return KubernetesNode(
        kind="Cluster",
        meta=about,
        cpu=max(0, cpu - used[0]),
        memory=max(0, memory - used[1]),
        ready=_ready(view["status"]),
        going=bool(view["metadata"]["deletionTimestamp"]),
        taints=taints_of(spec),
    )


def service(view: View, about: ObjectMeta) -> KubernetesService:
    """Read a service."""
    spec = view["spec"]
    return KubernetesService(about, spec["selector"].labels(), spec["type"].text("ClusterIP"))


def budget(view: View, about: ObjectMeta) -> PodDisruptionBudget:
    """Read a PodDisruptionBudget."""
    spec = view["spec"]
    return PodDisruptionBudget(
        about, spec["selector"], spec["minAvailable"].value, spec["maxUnavailable"].value
    )


def selects(selector: View, labels: dict[str, str]) -> bool:
    """Return whether a selector (matchLabels, matchExpressions) holds for `labels`.

    An absent selector holds for none.
    """
    if selector.value is None:
        return False
    return selector["matchLabels"].mapping().items() <= labels.items() and all(
        holds(term, labels) for term in selector["matchExpressions"].items()
    )


_INTEGER = re.compile(r"-?[0-9]{1,20}")


def holds(term: View, labels: dict[str, str]) -> bool:
    """Return whether a requirement (key, operator, values) holds.

    Raises
    ------
    DocumentError
        An unknown operator.
    """
    key, operator = term["key"].text(), term["operator"].text()
    value = labels.get(key)
    values = [v.text() for v in term["values"].items()]
    if operator in ("In", "NotIn"):
        return (value is not None and value in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt") and len(values) == 1:
        if value is None or not all(map(_INTEGER.fullmatch, (value, values[0]))):
            return False
        return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    raise term.fault(
        f"the operator {operator[:40]!r} of {key[:60]!r} is not legal",
        "legal: In, NotIn, Exists, DoesNotExist, Gt, Lt",
    )


def term_holds(term: View, node: KubernetesNode, *, anywhere: bool = False) -> bool:
    """Return whether a node selector term holds; `anywhere` passes over its fields."""
    expressions, fields = list(term["matchExpressions"].items()), list(term["matchFields"].items())
    if not expressions and not fields:
        return False
    return all(holds(e, node.meta.labels) for e in expressions) and all(
        anywhere or holds(f, {"metadata.name": node.name}) for f in fields
    )
