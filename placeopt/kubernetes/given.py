"""Tables that no cluster knows: new requests, execution times, commitments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import model_validator

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import CellError, TableRow, decimal, number, rows
from placeopt.kubernetes.admission import MissingRequests, PodSize, effective, resized
from placeopt.kubernetes.capacity import NodeCapacity
from placeopt.kubernetes.manifests import ClusterObjects, Key, load
from placeopt.kubernetes.names import ON_DEMAND, lease_of
from placeopt.kubernetes.objects import Container, KubernetesNode
from placeopt.kubernetes.origin import note, recorded
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.values import Amounts, Cpu, Memory, Price, Word

# -- new requests and execution times --------------------------------------------------------------
#
# New requests hold for the container that they name; other containers keep theirs. They come as
# manifests of the same workloads, as VerticalPodAutoscalers (the target of each container), or as
# CSV: ``workload, cpu, memory`` and, if wanted, ``namespace, container``. A line of CSV without a
# container is the request of the whole pod, shared among its containers as they share it now.

#: (namespace, kind, name) of a workload; CSV says no kind.
_Owner = tuple[str, str, str]
_RESOURCES = ("cpu", "memory")


@dataclass
class NewRequests:
    """What the containers of workloads, or whole pods, shall ask for.

    Attributes
    ----------
    containers : dict
        (namespace, kind, name) of a workload -> container -> its request; a resource that is None
        stays as it is. The kind is empty where a table says none.
    pods : dict
        (namespace, name) of a workload -> the request of its whole pods.
    silent : list of str
        VerticalPodAutoscalers without a recommendation.
    """

    containers: dict[_Owner, dict[str, Amounts]] = field(default_factory=dict)
    pods: dict[Key, PodSize] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.containers or self.pods)

    def of(self, unit: Replica, policy: MissingRequests) -> NewSize | None:
        """Return what a replica shall ask for; None where it keeps its requests.

        Parameters
        ----------
        unit : Replica
        policy : MissingRequests
            What is assumed of containers that have no request, now and afterwards.
        notes : Notes
            Told what a replica cannot take up.
        """
        if (whole := self.pods.get(unit.key)) is not None:
            return NewSize(whole, {})
        targets = self._targets(unit)
        if not targets:
            return None
        running = [*unit.spec.containers, *(c for c in unit.spec.inits if c.sidecar)]
        results: dict[str, Amounts] = {}
        for c in running:
            if c.name in targets and (new := _changed(c, targets[c.name], unit.label)):
                results[c.name] = new
        _note_others(unit, targets)
        if not results:
            return None
        with recorded():  # what is assumed was said of the pod as it is
            size = effective(resized(unit.spec, results), policy, unit.label)
        return NewSize(size, results)

    def _targets(self, unit: Replica) -> Mapping[str, Amounts]:
        space, kind, name = unit.owner
        return self.containers.get((space, kind, name)) or self.containers.get(
            (space, "", name), {}
        )

    def note_unused(self, units: Iterable[Replica]) -> None:
        """Name the new requests that no replica takes up, and autoscalers that say nothing yet."""
        existing = {unit.owner for unit in units}
        loose = {(space, name) for space, _, name in existing}
        for space, kind, name in self.containers:
            if (space, kind, name) not in existing and (kind or (space, name) not in loose):
                label = " ".join(filter(None, (kind[:60], f"{space}/{name}")))
                note("ignored", "new requests of workloads without a replica here", label)
        for space, name in self.pods.keys() - loose:
            text = "new requests of workloads without a replica here"
            note("ignored", text, f"{space}/{name}")
        for label in self.silent:
            note("ignored", "VerticalPodAutoscalers without a recommendation", label)


def _note_others(unit: Replica, targets: Mapping[str, Amounts]) -> None:
    """Name the new requests of containers that do not run, or do not run for long."""
    running = {c.name for c in unit.spec.containers}
    for c in unit.spec.inits:
        if not c.sidecar and targets.get(c.name, (None, None)) not in ((None, None), c.requests):
            text = "new requests of init containers that end before the pod serves"
            note("not-expressed", text, f"{unit.namespace}/{unit.workload} {c.name[:63]}")
    for name in sorted(targets.keys() - running - {c.name for c in unit.spec.inits}):
        text = "new requests of containers that the pods do not have"
        note("ignored", text, f"{unit.namespace}/{unit.workload} {name[:63]}")


@dataclass(frozen=True)
class NewSize:
    """The request of a pod after the update, and those of its containers that change."""

    pod: PodSize
    containers: dict[str, Amounts]


def _changed(c: Container, target: Amounts, label: str) -> Amounts | None:
    """Return the new request of a container, at most its limits; None where it is as before."""
    results: list[int | None] = []
    for what, now, wanted, limit in zip(_RESOURCES, c.requests, target, c.limits, strict=True):
        if wanted is not None and limit is not None and wanted > limit:
            text = f"a new {what} request above the limit of its container: the limit, which stays"
            note("assumption", text, f"{label} {c.name[:63]}")
            wanted = limit
        results.append(None if wanted is None or wanted == now else wanted)
    return None if results == [None, None] else (results[0], results[1])


def read_new_requests(path: AnyPath) -> NewRequests:
    """Return what a file says that workloads shall ask for.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    result = NewRequests()
    if str(path).lower().endswith(".csv"):
        _read_csv(path, result)
        return result
    cluster = load([path])
    for owner, workload in cluster.workloads.items():
        containers = (*workload.spec.containers, *workload.spec.inits)
        result.containers[owner] = {c.name: c.requests for c in containers}
    result.containers |= (advice := recommended(cluster)).containers
    result.silent = advice.silent
    if not result.containers:
        remedy = "give manifests, VerticalPodAutoscalers that have a recommendation, or CSV"
        raise DocumentError(
            "neither workloads nor recommendations", file=str(path), path="line 1", remedy=remedy
        )
    return result


def recommended(cluster: ClusterObjects) -> NewRequests:
    """Return what the VerticalPodAutoscalers of a cluster recommend.

    Raises
    ------
    DocumentError
        One of them cannot be read.
    """
    result = NewRequests()
    for made in cluster.recommendations:
        _read_autoscaler(made, result)
    return result


def _read_autoscaler(made: Any, found: NewRequests) -> None:
    space, target = made.metadata.namespace, made.spec.targetRef
    listed = made.status.recommendation.containerRecommendations
    if not listed:
        found.silent.append(made.metadata.label)
        return
    policies = {p.containerName or "*": p for p in made.spec.resourcePolicy.containerPolicies}
    targets = found.containers.setdefault((space, target.kind or "Deployment", target.name), {})
    for one in listed:
        policy = policies.get(one.containerName) or policies.get("*")
        if policy is None or policy.mode != "Off":
            targets[one.containerName] = one.target.amounts


def _read_csv(path: AnyPath, found: NewRequests) -> None:
    def use(row: _Request) -> None:
        space, name, container = row.namespace, row.workload, row.container
        targets = found.containers.get((space, "", name), {})
        if (space, name) in found.pods or container in targets or (targets and not container):
            text = f"{space}/{name} stands twice" + (
                f" with {container[:63]!a}" if container else ""
            )
            raise row.fault(text, "keep one line for the pod, or one for each of its containers")
        if container:
            found.containers.setdefault((space, "", name), {})[container] = row.cpu, row.memory
        elif row.cpu is None or row.memory is None:
            raise row.fault("cpu or memory of a whole pod is empty", "fill it in")
        else:
            found.pods[space, name] = PodSize(row.cpu, row.memory)

    rows(path, _Request, use)


class _Request(TableRow):
    """A line of new requests: of a container, or of a whole pod."""

    workload: Word
    cpu: Cpu | None = None
    memory: Memory | None = None
    namespace: Word = "default"
    container: str = ""


class _Time(TableRow):
    """A line of execution times."""

    service: Word
    ms: Price
    kind: str = ""


def execution_times(text: str) -> tuple[float, dict[tuple[str, str], float]]:
    """Return (ms of every service, (service, kind) -> ms).

    `text` is a number or the path of a CSV: ``service, kind, ms``; kind may be empty.

    Raises
    ------
    DocumentError, UsageError
        Neither a number nor a table.
    """
    number = decimal(text)
    if number is None:
        return 10.0, _times(text)
    if not 0 <= number <= 10**6:
        raise UsageError(
            f"--execution {text}; legal: ms from 0 to 1,000,000, or the path of a CSV file"
        )
    return float(number), {}


def _times(path: str) -> dict[tuple[str, str], float]:
    return {(row.service, row.kind): float(row.ms) for row in rows(path, _Time)}


# -- commitments -----------------------------------------------------------------------------------
#
# Reserved instances, savings plans and committed use discounts as CSV: ``machine_type`` and either
# ``nodes``, a number, or ``share``, a share of the nodes that the cluster has now, and if wanted
# ``region``. ``*`` and ``?`` in a machine type stand for any characters. A commitment holds for
# any node on demand of its machine types, so which nodes it is counted for is a choice: those
# first that are to stay in use, then those with most on them. A node that is to be drained comes
# last.


class Commitment(TableRow):
    """A commitment for machine types: a number of nodes, or a share of those that are there."""

    machine_type: str
    region: Word | None = None
    nodes: Annotated[Decimal, number("100000")] | None = None
    share: Annotated[Decimal, number("1")] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Commitment:
        if (self.nodes is None) == (self.share is None):
            raise CellError("neither nodes nor share, or both", "fill in one of the two")
        return self

    def covers(self, node: KubernetesNode, region: str | None) -> bool:
        """Return whether the commitment holds for a node; `region` is of nodes that name none."""
        return (
            fnmatchcase(node.instance_type or "", self.machine_type)
            and self.region in (None, node.region or region)
            and lease_of(node.meta.labels) == ON_DEMAND
        )

    def amount(self, there: int) -> Decimal:
        """Return how many nodes are paid for, of `there` that the cluster has."""
        return self.nodes if self.nodes is not None else (self.share or Decimal(0)) * there


def read_commitments(path: AnyPath) -> list[Commitment]:
    """Return the commitments of a CSV file.

    Raises
    ------
    DocumentError
        Names the file, the line and what is legal.
    """
    seen = set[tuple[str, str | None]]()

    def use(row: Commitment) -> None:
        if (row.machine_type, row.region) in seen:
            raise row.fault(f"{row.machine_type[:60]} stands twice", "keep one of the two")
        seen.add((row.machine_type, row.region))

    return rows(path, Commitment, use)


def paid_shares(
    commitments: Sequence[Commitment],
    here: NodeCapacity,
    prices: Mapping[str, float],
    region: str | None,
) -> dict[str, float]:
    """Return the share of each node that is paid for already, 0 to 1; nodes with none are absent.

    Parameters
    ----------
    commitments : sequence of Commitment
    here : NodeCapacity
        The nodes and the replicas on them.
    prices : mapping of str to float
        Prices of nodes: of several machine types the dearest count first.
    region : str, optional
        Of nodes that name none.
    """
    stays = {u.node for u in here.units if u.stays and u.node}
    load: dict[str | None, float] = {}
    for unit in here.units:
        room = here.room.get(unit.node or "")
        if room is not None:
            load[unit.node] = load.get(unit.node, 0.0) + unit.size.cpu / max(1, room.cpu)
    paid: dict[str, Decimal] = {}
    for commitment in commitments:
        own = [n for n in here.nodes.values() if commitment.covers(n, region)]
        left = commitment.amount(sum(not n.candidate for n in own))
        own.sort(
            key=lambda n: (
                n.candidate,
                n.name in here.drain,
                n.name not in stays,
                -prices[n.name],
                -load.get(n.name, 0.0),
            )
        )
        counted = []
        for node in own:
            share = min(left, 1 - paid.get(node.name, Decimal(0)))
            if share > 0:
                paid[node.name] = paid.get(node.name, Decimal(0)) + share
                left -= share
                counted.append(node.name)
        _tell(commitment, counted, left)
    return {name: float(share) for name, share in paid.items()}


def _tell(commitment: Commitment, counted: Sequence[str], left: Decimal) -> None:
    kind = commitment.machine_type
    for name in counted:
        text = f"paid for already ({kind}, --commitments): freeing such a node saves nothing"
        note("assumption", text, name)
    if left > 0:
        text = f"commitments for more {kind} than there are: they are paid for and not used"
        note("assumption", text, f"{left.normalize():f} nodes")
