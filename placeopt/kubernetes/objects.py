"""The objects of a cluster as far as placement needs them, as msgspec structs.

A struct declares what is read; everything else of an object is passed over. Classes are those that
can do something; the others are forms (`form`), whose fields are called as Kubernetes calls them.
Quantities are whole milli-CPU and bytes, requests rounded up, capacities down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import msgspec

from placeopt.kubernetes import names
from placeopt.kubernetes.files import (
    NOWHERE,
    Place,
    WrongError,
    converted,
)
from placeopt.kubernetes.values import (
    NOTHING,
    Affinity,
    Allocatable,
    Amounts,
    Annotations,
    Asked,
    Count,
    Fixed,
    Labels,
    Name,
    NodeAffinity,
    NodeSelector,
    NodeTerm,
    Quantities,
    Requirement,
    Selector,
    Spread,
    Toleration,
    form,
    mapping,
)

#: Pods of a node where nothing is said: the default of the kubelet.
DEFAULT_PODS = 110
#: Pods of a member cluster, which has no such limit.
MANY_PODS = 10**9
_Large = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
#: Priorities that users may give: system classes are above.
LEAST, MOST = -(2**31), 2**31 - 1
_Priority = Annotated[int, msgspec.Meta(ge=LEAST, le=MOST)]

#: What the names of rules and messages about host ports begin with.
HOST_PORT = "host port"
#: The address of a host port that is taken on all addresses of its node.
EVERY_ADDRESS = "0.0.0.0"
#: Taints of the nodes that cluster-autoscaler and Karpenter are emptying.
GOING = {
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
}


# -- metadata --------------------------------------------------------------------------------------


_OWNERS: Any = tuple.__class_getitem__((form({"kind": str, "name": str, "controller": bool}), ...))


class ObjectMeta(msgspec.Struct, rename="camel", gc=False):
    """Name and labels of an object, where it stands, and (kind, name) of its controller."""

    name: Name = ""
    namespace: Name = ""
    labels: Labels = Labels()
    annotations: Annotations = Annotations()
    uid: str | None = None
    generate_name: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owners: _OWNERS = msgspec.field(name="ownerReferences", default=())
    owner: tuple[str, str] | None = msgspec.field(name="(owner)", default=None)
    place: Place = msgspec.field(name="(place)", default=NOWHERE)

    def __post_init__(self) -> None:
        for one in self.owners:
            if self.owner is None and (one.controller or one.kind == "Node"):
                self.owner = one.kind, one.name
        self.owners = ()

    @property
    def label(self) -> str:
        """How messages name the object."""
        return f"{self.namespace}/{self.name}"

    def labelled(self, labels: Mapping[str, str]) -> ObjectMeta:
        """Return the same with other labels."""
        return msgspec.structs.replace(self, labels=Labels(labels))


def object_of(spec: Any = None, status: Any = None, **fields: Any) -> Any:
    """Return the form of an object: its metadata, what is read of its spec and status, and more."""
    listed = {"spec": spec, "status": status, **fields}
    return form({"metadata": ObjectMeta, **{k: kind for k, kind in listed.items() if kind}})


#: What is said of a pod or a node.
_CONDITIONS = [form({"type": str, "status": str, "lastTransitionTime": str})]


def _ready(conditions: Iterable[Any]) -> bool:
    return all(c.status == "True" for c in conditions if c.type == "Ready")


# -- pods ------------------------------------------------------------------------------------------


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


_PortNumber = Annotated[int, msgspec.Meta(ge=0, le=65535)]


_PORT = {"hostPort": _PortNumber, "containerPort": _PortNumber, "protocol": str, "hostIP": str}


class Resources(Fixed, frozen=True):
    """What a container, or a pod, asks for and may use."""

    requests: Asked = NOTHING
    limits: Asked = NOTHING


class Container(msgspec.Struct, rename="camel", gc=False):
    """A container: requests and limits, the environment that is given as text, ports.

    `held` is what a running one was given, where its status says so: of a resize in place the old
    amount until it is done, or until it is told.
    """

    name: str = "?"
    image: str = ""
    resources: Resources = Resources()
    restart_policy: Any = None
    env: tuple[form({"name": str, "value": Any}), ...] = ()  # type: ignore[valid-type]
    ports: tuple[form(_PORT), ...] = ()  # type: ignore[valid-type]
    held: Amounts = msgspec.field(name="(held)", default=(None, None))

    @property
    def limits(self) -> Amounts:
        """Milli-CPU and bytes that it may use."""
        return self.resources.limits.amounts

    @property
    def requests(self) -> Amounts:
        """Milli-CPU and bytes that it asks for.

        A resource that has a limit only is asked for as much, as the API server has it.
        """
        asked = self.resources.requests.amounts
        if None not in asked:
            return asked
        cpu, memory = (b if a is None else a for a, b in zip(asked, self.limits, strict=True))
        return cpu, memory

    def asking(self, new: Amounts) -> Container:
        """Return a new copy of it with new requests; None leaves one as it is."""
        cpu, memory = (a if b is None else b for a, b in zip(self.requests, new, strict=True))
        asked = Asked((cpu, memory), self.resources.requests.further)
        own = Resources(asked, self.resources.limits)
        return msgspec.structs.replace(self, resources=own, held=(None, None))

    @property
    def further(self) -> Mapping[str, int]:
        """Its other resources."""
        return {**self.resources.limits.further, **self.resources.requests.further}

    @property
    def sidecar(self) -> bool:
        """Whether an init container runs as long as its pod."""
        return bool(self.restart_policy == "Always")

    @property
    def environment(self) -> list[tuple[str, str]]:
        """Its variables that are given as text."""
        return [(v.name, v.value) for v in self.env if isinstance(v.value, str) and v.value]

    def host_ports(self, host_network: bool) -> Iterator[HostPort]:
        """Yield the ports of its node that it takes.

        In the network of the host every port of the container is one, as the API server has it.
        """
        for port in self.ports:
            number = port.containerPort if host_network and port.hostPort is None else port.hostPort
            if number:
                yield HostPort(port.protocol or "TCP", number, port.hostIP or EVERY_ADDRESS)


_STORAGE: Any = form({"requests": Quantities})


class ClaimSpec(Fixed, frozen=True):
    """What a claim asks of its volume."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    selector: Selector | None = None
    resources: _STORAGE = _STORAGE()
    volume_mode: str = "Filesystem"


#: Kinds of volumes of which something is read.
VOLUMES: dict[str, Any] = {
    "persistentVolumeClaim": form({"claimName": str}),
    "emptyDir": form({"medium": str}),
    "ephemeral": form({"volumeClaimTemplate": {"spec": ClaimSpec}}),
    "awsElasticBlockStore": form({"volumeID": str}),
    "gcePersistentDisk": form({"pdName": str}),
    "azureDisk": form({"diskName": str}),
    "cinder": form({"volumeID": str}),
    "vsphereVolume": form({"volumePath": str}),
    "portworxVolume": form({"volumeID": str}),
}


class Volume:
    """A volume of a pod: its name, its kind, and what is read of the kind, if anything."""

    __slots__ = ("kind", "name", "said")

    def __init__(self, name: str, kind: str, said: Any = None):
        self.name, self.kind, self.said = name, kind, said

    def __eq__(self, other: object) -> bool:
        own = self.name, self.kind, self.said
        return isinstance(other, Volume) and own == (other.name, other.kind, other.said)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def read(cls, value: object) -> Volume:
        """Return the volume of plain values."""
        listed = mapping(value)
        name = str(listed.pop("name", "?"))
        kind, own = next(iter(listed.items()), ("emptyDir", {}))
        if kind not in VOLUMES:
            return cls(name, kind)
        try:
            return cls(name, kind, converted(own, VOLUMES[kind]))
        except WrongError as wrong:
            raise WrongError(wrong.problem, wrong.remedy, kind, *wrong.steps) from None

    @property
    def claim(self) -> str:
        """The name of its claim."""
        return self.said.claimName if self.kind == "persistentVolumeClaim" else ""


_SYSTEM: Any = form({"name": str})


class PodSpec(msgspec.Struct, rename="camel", dict=True):
    """What a pod runs and where it may run. Read only: properties are computed once."""

    containers: tuple[Container, ...] = ()
    inits: tuple[Container, ...] = msgspec.field(name="initContainers", default=())
    resources: Resources = Resources()
    overhead: Asked | None = None
    node: Name = msgspec.field(name="nodeName", default="")
    selector: Labels = msgspec.field(name="nodeSelector", default=Labels())
    volumes: tuple[Volume, ...] = ()
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[Spread, ...] = msgspec.field(name="topologySpreadConstraints", default=())
    scheduling_gates: tuple[Any, ...] = ()
    resource_claims: Any = None
    host_network: bool = False
    runtime_class_name: str = ""
    scheduler_name: str = ""
    priority: _Priority | None = None
    priority_class_name: str = ""
    os: _SYSTEM = _SYSTEM()
    active_deadline_seconds: int | None = None
    place: Place = msgspec.field(name="(place)", default=NOWHERE)

    def __post_init__(self) -> None:
        if not self.containers:
            raise WrongError("a pod without containers", "give spec.containers")

    @property
    def about_nodes(self) -> tuple[Any, ...]:
        """A key that is the same for pods with the same rules about nodes."""
        return self.selector, self.affinity.nodes.required, self.tolerations

    @property
    def about_pods(self) -> tuple[Any, ...]:
        """A key that is the same for pods that say the same of other pods, where labels agree."""
        affinity = self.affinity
        nodes = affinity.nodes.required, self.selector
        return nodes, affinity.pods, affinity.anti, self.spread

    @cached_property
    def host_ports(self) -> frozenset[HostPort]:
        """The ports of its node that it takes: those of containers and sidecars."""
        return frozenset(p for c in self.lasting for p in c.host_ports(self.host_network))

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
        for key, amount in (self.overhead or NOTHING).further.items():
            total[key] = total.get(key, 0) + amount
        return {key: amount for key, amount in total.items() if amount} | {"pods": 1}

    @property
    def every(self) -> tuple[Container, ...]:
        """Its containers and init containers."""
        return (*self.containers, *self.inits)

    @property
    def lasting(self) -> Iterator[Container]:
        """Its containers and sidecars: those that run as long as it does."""
        yield from self.containers
        yield from (i for i in self.inits if i.sidecar)

    def changed(self, **fields: Any) -> PodSpec:
        """Return a spec that says something else in some of its fields."""
        return msgspec.structs.replace(self, **fields)

    def unbound(self) -> PodSpec:
        """Return the spec of a copy that a script made, without what binds it to its node."""
        nodes = self.affinity.nodes
        terms = (NodeTerm(term.match_expressions) for term in nodes.required.terms)
        required = NodeSelector(tuple(term for term in terms if term.match_expressions))
        own = NodeAffinity(required, nodes.preferred)
        return self.changed(affinity=msgspec.structs.replace(self.affinity, nodes=own))


_CONTAINER_STATUS = form(
    {
        "name": str,
        "allocatedResources": Asked,
        "resources": Resources,
        "state": {"terminated": {"startedAt": str, "finishedAt": str}},
    }
)
_POD_STATUS = form(
    {
        "phase": str,
        "conditions": _CONDITIONS,
        "containerStatuses": [_CONTAINER_STATUS],
        "initContainerStatuses": [_CONTAINER_STATUS],
        "nominatedNodeName": Name,
    }
)


class Pod(msgspec.Struct, gc=False):
    """A pod of a cluster."""

    spec: PodSpec
    meta: ObjectMeta = msgspec.field(name="metadata", default_factory=ObjectMeta)
    status: _POD_STATUS | None = None  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        if names.BOUND in self.meta.annotations:
            self.spec = self.spec.unbound()
        status, told = self.told, dict[str, tuple[Amounts, Amounts]]()
        for one in (*status.containerStatuses, *status.initContainerStatuses):
            told[one.name] = one.allocatedResources.amounts, one.resources.requests.amounts
        for c in self.spec.every if told else ():
            for amounts in told.get(c.name, ()):
                cpu, memory = (
                    old if new is None else max(new, old or 0)
                    for old, new in zip(c.held, amounts, strict=True)
                )
                c.held = cpu, memory

    @property
    def told(self) -> Any:
        """Its status."""
        return self.status or _POD_STATUS()

    @property
    def phase(self) -> str:
        """Whether it waits, runs, or has ended."""
        return self.told.phase or ("Running" if self.spec.node else "Pending")

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.meta.deletion_timestamp)

    @property
    def ready(self) -> bool:
        """Whether it serves."""
        return _ready(self.told.conditions)


# -- workloads -------------------------------------------------------------------------------------

_RUNS = {
    "replicas": Count,
    "parallelism": Count,
    "activeDeadlineSeconds": _Large,
    "strategy": {"type": str, "rollingUpdate": {"maxSurge": Any, "maxUnavailable": Any}},
    "template": {
        "metadata": {"labels": Labels, "annotations": Annotations},
        "spec": PodSpec | None,
    },
}
#: A Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob as it stands in a file.
CONTROLLER = object_of({**_RUNS, "jobTemplate": {"spec": _RUNS}}, {"observedGeneration": int})


@dataclass(slots=True)
class Workload:
    """What makes pods: a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob, or a Pod."""

    meta: ObjectMeta
    spec: PodSpec
    replicas: int
    labels: dict[str, str]
    annotations: dict[str, str]
    deadline_seconds: int | None = None
    strategy: Any = None
    is_seen: bool = True  # by its controller, as it asks now

    @property
    def recreates(self) -> bool:
        """Whether its old pods end before new ones begin."""
        return self.strategy is not None and self.strategy.type == "Recreate"


def workload(kind: str, made: Any) -> Workload:
    """Return what makes pods, of a controller.

    Raises
    ------
    DocumentError
        It has no template of them.
    """
    meta, spec, inside = made.metadata, made.spec, ["spec"]
    if kind == "CronJob":
        spec, inside = spec.jobTemplate.spec, ["spec", "jobTemplate", "spec"]
    pods = spec.template.spec
    if pods is None:
        raise meta.place.fault("no template of pods", "give spec.template", *inside)
    pods.place = meta.place.at(*inside, "template", "spec")
    is_job = kind in ("Job", "CronJob")
    wanted = spec.parallelism if is_job else spec.replicas
    return Workload(
        meta=meta,
        spec=pods,
        replicas=1 if wanted is None else wanted,
        labels=spec.template.metadata.labels,
        annotations=spec.template.metadata.annotations,
        deadline_seconds=(spec.activeDeadlineSeconds if is_job else None) or None,
        strategy=spec.strategy,
        is_seen=not 0 < (made.status.observedGeneration or 0) < meta.generation,
    )


# -- nodes -----------------------------------------------------------------------------------------

_TAINT = form({"key": str, "value": str, "effect": str})
_NODE_SPEC = {
    "taints": [_TAINT],
    "unschedulable": bool,
    "providerID": str,
    "region": str,
    "zone": str,
}
NODE = object_of(
    _NODE_SPEC,
    {
        "allocatable": Allocatable,
        "capacity": Allocatable,
        "conditions": _CONDITIONS,
        "nodeInfo": {"kubeletVersion": str},
    },
)
MEMBER = object_of(
    _NODE_SPEC,
    {
        "conditions": _CONDITIONS,
        "resourceSummary": {"allocatable": Allocatable, "allocated": Asked, "allocating": Asked},
    },
)


@dataclass(slots=True)
class KubernetesNode:
    """A machine, or a member cluster of Karmada taken as one place."""

    meta: ObjectMeta
    cpu: int
    memory: int
    kind: str = "Node"
    further: Mapping[str, int] = field(default_factory=dict)
    ready: bool = True
    cordoned: bool = False
    going: bool = False  # it is being deleted, or an autoscaler is about to
    taints: list[tuple[str, str, str]] = field(default_factory=list)
    price: float | None = None
    layer: str | None = None
    user_latency_ms: float | None = None
    virtual: bool = False  # none that pods share: of Fargate, or of a virtual kubelet
    candidate: bool = False  # not there yet: it could be bought
    machine: Amounts = (None, None)  # cpu and memory with what the system takes
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
        return self.label(key, *(old for old, today in names.OLD.items() if today == key))

    @property
    def zone(self) -> str | None:
        """Its zone."""
        return self._said(names.ZONE)

    @property
    def region(self) -> str | None:
        """Its region."""
        return self._said(names.REGION)

    @property
    def place(self) -> str:
        """Its zone, or its region; ``all`` where it has neither."""
        return self.zone or self.region or "all"

    @property
    def instance_type(self) -> str | None:
        """Its machine type."""
        return self._said(names.TYPE)


def of_table(name: str, labels: Mapping[str, str]) -> ObjectMeta:
    """Return the metadata of a node that stands in no file of the cluster."""
    return ObjectMeta(name, labels=Labels(labels))


def pairs(taints: Iterable[Any]) -> list[tuple[str, str, str]]:
    """Return (key, value, effect) of each taint."""
    return [(t.key, t.value, t.effect) for t in taints]


def node(made: Any) -> KubernetesNode:
    """Return a node; what it can give to pods is its allocatable.

    Raises
    ------
    DocumentError
        It does not say what it can give.
    """
    meta, spec, status = made.metadata, made.spec, made.status
    cpu, memory = status.allocatable.amounts
    if cpu is None or memory is None:
        said = "a node without allocatable cpu and memory"
        raise meta.place.fault(said, f"give the output of {names.DUMP}", "status")
    taints = pairs(spec.taints)
    told = f"{spec.providerID} {status.nodeInfo.kubeletVersion}"
    return KubernetesNode(
        meta=meta,
        cpu=cpu,
        memory=memory,
        further=status.allocatable.further,
        ready=_ready(status.conditions),
        cordoned=spec.unschedulable,
        going=bool(meta.deletion_timestamp) or any(key in GOING for key, *_ in taints),
        taints=taints,
        virtual=names.is_virtual(meta.labels, taints, told),
        machine=status.capacity.amounts,
    )


def member(made: Any) -> KubernetesNode:
    """Return a member cluster of Karmada as one node: what it has left.

    That is what it can allocate less what is allocated, to pods with a node and to those without.

    Raises
    ------
    DocumentError
        It does not say what it can allocate.
    """
    meta, spec, summary = made.metadata, made.spec, made.status.resourceSummary
    cpu, memory = summary.allocatable.amounts
    if cpu is None or memory is None:
        raise meta.place.fault(
            "a cluster without status.resourceSummary.allocatable",
            "give the output of kubectl get clusters -o json of Karmada",
        )
    used = summary.allocated.amounts, summary.allocating.amounts
    taken = [sum(one[r] or 0 for one in used) for r in range(2)]
    said = {names.REGION: spec.region, names.ZONE: spec.zone}
    meta.labels = Labels({**meta.labels, **{key: text for key, text in said.items() if text}})
    return KubernetesNode(
        kind="Cluster",
        meta=meta,
        cpu=max(0, cpu - taken[0]),
        memory=max(0, memory - taken[1]),
        ready=_ready(made.status.conditions),
        going=bool(meta.deletion_timestamp),
        taints=pairs(spec.taints),
    )


# -- other kinds -----------------------------------------------------------------------------------

SERVICE = object_of({"selector": Labels, "type": str})
BUDGET = object_of(
    {"selector": Selector | None, "minAvailable": Any, "maxUnavailable": Any},
    {"disruptionsAllowed": Count},
)
NAMESPACE = object_of(status={"phase": str})
QUOTA = object_of(
    {
        "hard": Quantities,
        "scopes": [str],
        "scopeSelector": {
            "matchExpressions": [{"scopeName": str, "operator": str, "values": [str]}]
        },
    },
    {"used": Quantities | None},
)
LIMIT_RANGE = object_of(
    {
        "limits": [
            {
                "type": str,
                "min": Asked,
                "max": Asked,
                "default": Asked,
                "defaultRequest": Asked,
                "maxLimitRequestRatio": Quantities,
            }
        ]
    }
)
PRIORITY_CLASS = object_of(value=_Priority, globalDefault=bool)
RUNTIME_CLASS = object_of(
    scheduling={"nodeSelector": Labels, "tolerations": [Toleration]},
    overhead={"podFixed": Asked},
)
_BACKEND = {"service": {"name": str}, "serviceName": str}
INGRESS = object_of(
    {"defaultBackend": _BACKEND, "rules": [{"http": {"paths": [{"backend": _BACKEND}]}}]}
)
_TARGET = {"kind": str, "name": Name}
AUTOSCALER = object_of({"scaleTargetRef": _TARGET})
RECOMMENDER = object_of(
    {
        "targetRef": _TARGET,
        "updatePolicy": {"updateMode": str},
        "resourcePolicy": {"containerPolicies": [{"containerName": str, "mode": Any}]},
    },
    {"recommendation": {"containerRecommendations": [{"containerName": str, "target": Asked}]}},
)
CLAIM = object_of(ClaimSpec, {"phase": str})
VOLUME = object_of(
    {
        **{kind: own | None for kind, own in VOLUMES.items()},
        "nodeAffinity": {"required": NodeSelector},
        "claimRef": Any,
        "storageClassName": str,
        "accessModes": [str],
        "capacity": Quantities,
        "volumeMode": str,
        "csi": form({"driver": str, "volumeHandle": str}) | None,
    }
)
STORAGE_CLASS = object_of(
    provisioner=str,
    volumeBindingMode=str,
    allowedTopologies=[{"matchLabelExpressions": [{"key": str, "values": [str]}]}],
)
VOLUME_LIMITS = object_of({"drivers": [{"name": str, "allocatable": {"count": _Large}}]})
ATTACHMENT = object_of({"source": {"persistentVolumeName": str}, "nodeName": str})
#: Of which only the name is read.
NAMED = object_of()

# -- NodePools -------------------------------------------------------------------------------------

_KUBELET = {
    "maxPods": Annotated[int, msgspec.Meta(ge=0, le=10_000)],
    "podsPerCore": Count,
    "systemReserved": Asked | None,
    "kubeReserved": Asked | None,
}
KUBELET = form(_KUBELET)
NODE_CLASS = object_of({**_KUBELET, "kubelet": KUBELET})
NODE_POOL = object_of(
    {
        "template": {
            "metadata": {"labels": Labels},
            "spec": {
                "requirements": [Requirement],
                "taints": [_TAINT],
                "startupTaints": Any,
                "expireAfter": Any,
                "nodeClassRef": form(_TARGET) | None,
                "kubelet": KUBELET,
            },
        },
        "disruption": {
            "consolidationPolicy": Any,
            "consolidateAfter": Any,
            "expireAfter": Any,
            "budgets": [{"nodes": Any, "schedule": Any, "duration": Any, "reasons": [Any]}],
        },
        "limits": Allocatable,
        "weight": Any,
        "replicas": Any,
    }
)
