"""The nodes to place on: which take part, what room they have left, which pods may go where."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from placeopt.core.errors import DocumentError, UsageError, did_you_mean
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import CellError, TableRow, cell, rows, whole
from placeopt.kubernetes.admission import NOTHING_ASKED, MissingRequests, PodSize, effective
from placeopt.kubernetes.files import NAME
from placeopt.kubernetes.machines import ARCH, of_machine_type
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.names import HOSTNAME, REGION, TYPE, ZONE
from placeopt.kubernetes.objects import ClaimSpec, KubernetesNode, PodSpec, of_table
from placeopt.kubernetes.origin import note, tolerated
from placeopt.kubernetes.replicas import (
    Replica,
    claims_of,
    default_requests,
    signature,
    unit_of_template,
    why_not,
)
from placeopt.kubernetes.values import CpuRoom, LabelCell, MemoryRoom, Price, Word

#: What a node of a table is unless its labels say otherwise.
_IMPLIED = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}
_BLOCKING = {"NoSchedule", "NoExecute"}
#: Taints that every pod of a DaemonSet tolerates, whatever its template says.
_DAEMONS = {
    f"node.kubernetes.io/{word}"
    for word in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    )
}
#: The taint of a cordon.
_CORDON = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
#: Labels of the nodes that run the control plane.
_CONTROL_PLANE = frozenset(
    f"node-role.kubernetes.io/{role}"
    for role in ("control-plane", "controlplane", "master", "etcd")
)
_MAX_NODES = 100_000


@dataclass(frozen=True)
class NodeCapacity:
    """The nodes of the instance with the room they have, and the replicas on them.

    Attributes
    ----------
    nodes : dict of str to KubernetesNode
    room : dict of str to PodSize
        Milli-CPU and bytes left beside DaemonSets and static pods.
    further : dict of str to dict
        Other resources left beside them.
    drain : frozenset of str
        Nodes to empty.
    units : tuple of Replica
        Without those that come with their node.
    closed : dict of str to KubernetesNode
        Nodes that are left out: they take nothing, and rules count what they host.
    residents : tuple of (Replica, str)
        What no plan touches and rules count, and its node: what comes with nodes, and all pods of
        closed nodes.
    """

    nodes: dict[str, KubernetesNode] = field(default_factory=dict)
    room: dict[str, PodSize] = field(default_factory=dict)
    further: dict[str, dict[str, int]] = field(default_factory=dict)
    drain: frozenset[str] = frozenset()
    units: tuple[Replica, ...] = ()
    closed: dict[str, KubernetesNode] = field(default_factory=dict)
    residents: tuple[tuple[Replica, str], ...] = ()

    def less(self, taken: Iterable[tuple[Replica, str]]) -> NodeCapacity:
        """Return the same with the sizes of some replicas taken off the room of their nodes."""
        room, further = dict(self.room), {name: dict(left) for name, left in self.further.items()}
        for unit, node in taken:
            room[node] = room[node].less(unit.size)
            left = further[node]
            for key, amount in unit.further.items():
                if key in left:
                    left[key] = max(0, left[key] - amount)
        return replace(self, room=room, further=further)

    def free(self) -> dict[str, list[int]]:
        """Return the (milli-CPU, bytes) of each node beside its replicas; negative if overdone."""
        results = {name: [room.cpu, room.memory] for name, room in self.room.items()}
        for unit in self.units:
            if unit.node is not None:
                results[unit.node][0] -= unit.size.cpu
                results[unit.node][1] -= unit.size.memory
        return results


def site(
    cluster: ClusterObjects,
    found: Sequence[Replica],
    *,
    drain: Sequence[str] = (),
    drain_cordoned: bool = False,
    take_all: bool = False,
    policy: MissingRequests = NOTHING_ASKED,
) -> NodeCapacity:
    """Return the nodes that take part and the replicas on them; all nodes with `take_all`.

    `policy` is for missing requests of DaemonSets that have no pod on a node yet.

    Raises
    ------
    UsageError
        A node to drain is unknown, or not ready.
    """
    for name in drain:
        require_node("--drain", name, cluster.nodes)
        if not cluster.nodes[name].ready:
            raise UsageError(f"--drain {name}: the node is not ready, so that its pods stay")
        if cluster.nodes[name].virtual:
            raise UsageError(f"--drain {name}: the node is virtual, so that its pods stay")
    nodes = cluster.nodes
    if not take_all:
        nodes = _taking_part(nodes, drain_cordoned, drain)
    bound = [*_bound(cluster, found), *to_come(cluster, found, nodes, policy)]
    away = [(u, u.node) for u in found if not u.bound and u.node and u.node not in nodes]
    for unit, name in away:
        known = "are left out" if name in cluster.nodes else "the files do not have"
        note("left-out", f"pods on nodes that {known}", unit.label)
    whole = NodeCapacity(
        nodes=nodes,
        room={n.name: PodSize(n.cpu, n.memory) for n in nodes.values()},
        further={n.name: {"pods": n.pods, **n.further} for n in nodes.values()},
        drain=frozenset(n.name for n in nodes.values() if n.shut or n.name in drain),
        units=tuple(u for u in found if not u.bound and (u.node is None or u.node in nodes)),
        closed={name: node for name, node in cluster.nodes.items() if name not in nodes},
        residents=(*bound, *((u, name) for u, name in away if name in cluster.nodes)),
    )
    result = whole.less((unit, name) for unit, name in bound if name in nodes)
    _note_overdone(result)
    return result


def require_node(option: str, name: str, nodes: Collection[str]) -> None:
    """Raise unless the node that an option names is one of `nodes`.

    Raises
    ------
    UsageError
        Names up to 50 of them.
    """
    if name not in nodes:
        raise UsageError(f"{option} {name!r}: no such node; {did_you_mean(name, list(nodes)[:50])}")


def _taking_part(
    nodes: dict[str, KubernetesNode],
    drain_cordoned: bool,
    drain: Collection[str],
) -> dict[str, KubernetesNode]:
    taken = {}
    for node in nodes.values():
        if not node.ready:
            note("left-out", "nodes that are not ready, with their pods", node.name)
        elif node.virtual:
            text = "virtual nodes (Fargate, virtual kubelets), with their pods"
            note("left-out", text, node.name)
        elif node.shut and not drain_cordoned and node.name not in drain:
            what = "nodes that are being deleted" if node.going else "cordoned nodes"
            text = f"{what}, with their pods (--cordoned drain empties them)"
            note("left-out", text, node.name)
        else:
            if node.shut:
                text = "cordoned nodes must end empty (--cordoned drain, --drain)"
                note("assumption", text, node.name)
            if any(effect == "PreferNoSchedule" for _, _, effect in node.taints):
                note("not-expressed", "PreferNoSchedule: pods may go there", node.name)
            taken[node.name] = node
    return taken


def _bound(cluster: ClusterObjects, found: Iterable[Replica]) -> Iterator[tuple[Replica, str]]:
    """Yield what comes with a node and has a pod, and the node."""
    for unit in (u for u in found if u.bound and u.pod is not None):
        for name in eligible(unit, cluster.nodes) if unit.node is None else [unit.node]:
            if name in cluster.nodes:
                note("capacity", unit.bound, f"{unit.label} on {name}")
                yield unit, name


# -- what comes with a node ------------------------------------------------------------------------


def to_come(
    cluster: ClusterObjects,
    found: Sequence[Replica],
    nodes: dict[str, KubernetesNode],
    policy: MissingRequests,
) -> Iterator[tuple[Replica, str]]:
    """Yield what comes with nodes and has no pod there yet, and the node.

    A DaemonSet comes with every node that its template allows: its pods do not say which, as each
    is bound to its own node. A static pod comes with a node that is not there yet where half of its
    kin have it: the nodes of its machine type, else all that are not of the control plane.
    """
    there = {(u.owner, u.node) for u in found if u.bound and u.node}
    known = _daemon_sets(cluster, found, policy)
    for unit in known.values():
        for name in eligible(unit, nodes):
            if (unit.owner, name) not in there:
                bought = name in cluster.candidates
                text = "DaemonSets on nodes of a table" if bought else unit.bound
                note("capacity", text, f"{unit.label} on {name}")
                yield unit, name
    new = {name: node for name, node in nodes.items() if name not in cluster.nodes}
    new |= {name: node for name, node in nodes.items() if name in cluster.candidates}
    lost = {u.owner: u for u in found if u.kind == "DaemonSet" and u.node and u.owner not in known}
    for unit in lost.values() if new else ():
        text = "DaemonSets that the files do not have: nodes of a table get them by their pods"
        note("assumption", text, f"{unit.namespace}/{unit.workload}")
        for name in eligible(unit, new, anywhere=True):
            note("capacity", "DaemonSets on nodes of a table", f"{unit.label} on {name}")
            yield unit, name
    yield from _static_to_come(cluster, found, new)


def _daemon_sets(
    cluster: ClusterObjects, found: Iterable[Replica], policy: MissingRequests
) -> dict[tuple[str, str, str], Replica]:
    """Return a replica of the template of each DaemonSet."""
    results = {u.owner: u for u in found if u.kind == "DaemonSet" and u.pod is None}
    for (space, kind, name), workload in cluster.workloads.items():
        if kind == "DaemonSet" and (space, kind, name) not in results:
            size, label = PodSize(0, 0), f"{space}/{name}"
            with tolerated():
                size = effective(
                    workload.spec, policy.after(default_requests(cluster, space)), label
                )
            unit = unit_of_template(cluster, (space, kind, name), workload, name, size)
            results[unit.owner] = unit
    return results


def _static_to_come(
    cluster: ClusterObjects, found: Iterable[Replica], new: Mapping[str, KubernetesNode]
) -> Iterator[tuple[Replica, str]]:
    """Yield the static pods of nodes that are not there yet, each as large as the largest of it."""
    workers = {
        name: node.instance_type
        for name, node in cluster.nodes.items()
        if name not in cluster.candidates and not (is_control_plane(node) or node.virtual)
    }
    own: dict[tuple[str, str], dict[str, Replica]] = {}
    for unit in found if new else ():
        if unit.is_static and unit.node in workers:
            name = unit.name.removesuffix(f"-{unit.node}")
            own.setdefault((unit.namespace, name), {})[unit.node] = unit
    for name, node in new.items() if own else ():
        kin = [n for n, kind in workers.items() if kind == node.instance_type] or list(workers)
        for (space, static), by_node in own.items():
            alike = [by_node[n] for n in kin if n in by_node]
            if 2 * len(alike) >= len(kin):
                note("capacity", "static pods on nodes of a table", f"{space}/{static} on {name}")
                yield max(alike, key=lambda unit: unit.size), name


def _note_overdone(result: NodeCapacity) -> None:
    for name, free in result.free().items():
        if min(free) < 0:
            note(
                "assumption",
                "nodes whose pods ask for more than they can allocate: legal, "
                "the plan must mend it",
                name,
            )


def is_control_plane(node: KubernetesNode) -> bool:
    """Return whether a node runs the control plane: it is there whatever else runs."""
    return not _CONTROL_PLANE.isdisjoint(node.meta.labels)


# -- who may go where ------------------------------------------------------------------------------


def affinity_nodes(
    spec: PodSpec, nodes: dict[str, KubernetesNode], *, anywhere: bool = False
) -> frozenset[str]:
    """Return the nodes that the selector and the required node affinity of a pod allow.

    `anywhere` passes over fields, by which a pod of a DaemonSet is bound to its own node.
    """
    required = spec.affinity.nodes.required
    return frozenset(
        name
        for name, node in nodes.items()
        if spec.selector.items() <= node.meta.labels.items()
        and required.holds(name, node.meta.labels, anywhere=anywhere)
    )


def eligible(
    unit: Replica, nodes: dict[str, KubernetesNode], *, anywhere: bool = False
) -> list[str]:
    """Return the nodes that a pod may run on, and stay on.

    Taints, the node selector, the required node affinity and the node that its template names
    decide; nothing goes to a virtual node, and a pod of Fargate nowhere.
    """
    if unit.is_served:
        return []
    if unit.named:
        return [unit.named] if unit.named in nodes else []
    legal = affinity_nodes(unit.spec, nodes, anywhere=anywhere)
    tolerations = Tolerations(unit.spec, daemon=unit.kind == "DaemonSet")
    return [
        name
        for name, node in nodes.items()
        if name in legal and not node.virtual and not any(tolerations.against(node))
    ]


class Tolerations:
    """The taints that a pod tolerates; `daemon` adds those that the pods of DaemonSets do."""

    def __init__(self, spec: PodSpec, *, daemon: bool = False):
        self.daemon, self.listed = daemon, spec.tolerations

    def tolerate(self, taint: tuple[str, str, str], *, for_good: bool = False) -> bool:
        """Return whether a taint (key, value, effect) is tolerated, and with `for_good` always.

        Of NoExecute the first toleration counts; after its seconds the pod is evicted.
        """
        if self.daemon and taint[0] in _DAEMONS:
            return True
        first = next((one for one in self.listed if one.is_about(taint)), None)
        if first is None:
            return False
        ends = taint[2] == "NoExecute" and first.toleration_seconds is not None
        return not (for_good and ends)

    def against(self, node: KubernetesNode) -> Iterator[str]:
        """Yield why taints keep the pod from a node for good; a cordon is dealt with as such."""
        for taint in keeping(node):
            said = f"{{{taint[0]}: {taint[1]}}}"
            if not self.tolerate(taint):
                yield f"node(s) had untolerated taint {said}"
            elif not self.tolerate(taint, for_good=True):
                yield f"node(s) had taint {said} that the pod tolerates for some seconds only"

    def tolerate_all(self, node: KubernetesNode) -> bool:
        """Return whether all taints of a node are tolerated, that of a cordon among them."""
        blocking = (taint for taint in node.taints if taint[2] in _BLOCKING)
        return all(self.tolerate(taint) for taint in blocking)


def keeping(node: KubernetesNode) -> list[tuple[str, str, str]]:
    """Return the taints (key, value, effect) that keep pods away, but for that of a cordon."""
    return [taint for taint in node.taints if taint[2] in _BLOCKING and taint[0] != _CORDON[0]]


def reasons_against(cluster: ClusterObjects, unit: Replica, node: KubernetesNode) -> Iterator[str]:
    """Yield why a copy of a replica may not start on a node, as kube-scheduler says it."""
    tolerations = Tolerations(unit.spec)
    if not node.ready:
        yield "node(s) were not ready"
    if node.cordoned and not tolerations.tolerate(_CORDON):
        yield "node(s) were unschedulable (cordoned)"
    if node.virtual:
        yield "node(s) are virtual: which machine a pod gets there is not known"
    if unit.is_served:
        yield "the pod gets a machine of its own (Fargate)"
    if unit.named and unit.named != node.name:
        yield f"its template names another node (nodeName {unit.named})"
    yield from tolerations.against(node)
    if node.name not in affinity_nodes(unit.spec, {node.name: node}):
        yield "node(s) didn't match Pod's node affinity/selector"
    for claim in claims_of(cluster, unit.namespace, unit.name, unit.spec):
        if claim.spec is not None and (why := why_not(cluster, claim.spec, node)):
            yield why


def allowed(
    found: Sequence[Replica],
    cluster: ClusterObjects,
    nodes: dict[str, KubernetesNode],
) -> list[frozenset[str]]:
    """Return for every replica the nodes that it may run on.

    Its own rules, its operating system and the places of its volumes decide. Where something is
    wrong in them and faults are gathered, it may run anywhere.
    """
    existing: dict[Hashable, frozenset[str]] = {}
    reached: dict[Hashable, frozenset[str]] = {}  # volumes are many, their zones few
    several, everywhere = len({_system(node) for node in nodes.values()}) > 1, frozenset(nodes)
    result = []
    for unit in found:
        claims = (
            claims_of(cluster, unit.namespace, unit.name, unit.spec) if unit.spec.volumes else []
        )
        legal = everywhere
        with tolerated():
            system = _system_of(unit, nodes) if several else ""
            specs = [claim.spec for claim in claims if claim.spec is not None]
            own = unit.spec.about_nodes, unit.named, unit.is_served, system
            rules = (*own, *(signature(cluster, spec) for spec in specs))
            if rules not in existing:
                fits = (n for n in eligible(unit, nodes) if system in ("", _system(nodes[n])))
                existing[rules] = frozenset(fits).intersection(
                    *(_reaching(cluster, spec, nodes, reached) for spec in specs)
                )
            legal = existing[rules]
        result.append(legal)
    return result


def _system(node: KubernetesNode) -> str:
    return node.label("kubernetes.io/os", "beta.kubernetes.io/os") or "linux"


def _system_of(unit: Replica, nodes: dict[str, KubernetesNode]) -> str:
    """Return the operating system of a pod: what it says, that of its node, linux."""
    said = unit.spec.os.name or unit.spec.selector.get("kubernetes.io/os")
    return said or (_system(nodes[unit.node]) if unit.node in nodes else "linux")


def _reaching(
    cluster: ClusterObjects,
    claim: ClaimSpec,
    nodes: dict[str, KubernetesNode],
    known: dict[Hashable, frozenset[str]],
) -> frozenset[str]:
    """Return the nodes that reach the volume of a claim; `known` keeps those of like claims."""
    key = signature(cluster, claim)
    if key not in known:
        known[key] = frozenset(n for n, node in nodes.items() if not why_not(cluster, claim, node))
    return known[key]


# -- nodes from CSV --------------------------------------------------------------------------------


def _name(text: str, column: str) -> str:
    if not NAME.fullmatch(text):
        legal = "legal: lower-case letters, digits, - and ."
        raise CellError(f"{text[:60]!a} is no name of a node", legal)
    return text


class _NodeRow(TableRow):
    """A line of a table of nodes; `count` makes several of it."""

    name: Annotated[str, cell(_name)]
    cpu: CpuRoom
    memory: MemoryRoom
    zone: Word | None = None
    region: Word | None = None
    layer: Word | None = None
    instance_type: Word | None = None
    price: Price | None = None
    user_latency_ms: Price | None = None
    count: Annotated[int, whole(1, 10_000)] | None = None
    labels: LabelCell = Field(default_factory=dict)
    pods: Annotated[int, whole(0, 10_000)] | None = None

    def nodes(self) -> Iterator[KubernetesNode]:
        """Yield the nodes."""
        said = {ZONE: self.zone, REGION: self.region, TYPE: self.instance_type}
        labels = _IMPLIED | {key: value for key, value in said.items() if value} | self.labels
        if ARCH not in labels and (known := of_machine_type(self.instance_type or "")):
            labels[ARCH] = known
        names = [f"{self.name}-{k + 1}" for k in range(self.count)] if self.count else [self.name]
        for name in names:
            yield KubernetesNode(
                meta=of_table(name, {HOSTNAME: name, **labels}),
                cpu=self.cpu,
                memory=self.memory,
                price=None if self.price is None else float(self.price),
                layer=self.layer,
                further={} if self.pods is None else {"pods": self.pods},
                user_latency_ms=float(self.user_latency_ms) if self.user_latency_ms else None,
            )


def read_nodes(path: AnyPath) -> list[KubernetesNode]:
    """Read nodes from CSV, a `_NodeRow` each line; labels are written ``key=value;key=value``.

    Where ``pods`` says nothing, `machines.equipped` does. The operating system is linux unless
    labels say otherwise.

    Raises
    ------
    DocumentError
        Names the file, the line and what is legal.
    """
    found = rows(path, _NodeRow)
    if sum(row.count or 1 for row in found) > _MAX_NODES:
        problem = f"more than {_MAX_NODES:,} nodes"
        raise DocumentError(problem, file=str(path), path="line 1", remedy="give fewer")
    return [node for row in found for node in row.nodes()]
