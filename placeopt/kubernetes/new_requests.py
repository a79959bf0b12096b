"""What workloads shall ask for, and how long services take: the two tables that no cluster knows.

New requests hold for the container that they name; other containers keep theirs. They come as
manifests of the same workloads, as VerticalPodAutoscalers (the target of each container), or as
CSV: ``workload, cpu, memory`` and, if wanted, ``namespace, container``. A line of CSV without a
container is the request of the whole pod, shared among its containers as they share it now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.calls import Key
from placeopt.kubernetes.manifests import ClusterObjects, load
from placeopt.kubernetes.notes import note, recorded
from placeopt.kubernetes.objects import Amounts, ContainerSpec, amounts
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.sizes import MissingRequests, PodSize, effective, resized
from placeopt.kubernetes.tables import Cpu, Memory, Price, TableRow, Word, decimal, rows

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


def _changed(c: ContainerSpec, target: Amounts, label: str) -> Amounts | None:
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
    for view in cluster.recommendations:
        _read_autoscaler(view, result)
    return result


def _read_autoscaler(view: View, found: NewRequests) -> None:
    space, target = view["metadata"]["namespace"].name("default"), view["spec"]["targetRef"]
    owner = (space, target["kind"].text("Deployment"), target["name"].name())
    listed = list(view["status"]["recommendation"]["containerRecommendations"].items())
    if not listed:
        found.silent.append(f"{space}/{view['metadata']['name'].name('?')}")
        return
    policies = {p["containerName"].text("*"): p for p in _policies(view)}
    targets = found.containers.setdefault(owner, {})
    for one in listed:
        name = one["containerName"].text()
        policy = policies.get(name) or policies.get("*")
        if policy is not None and policy["mode"].value == "Off":
            continue
        targets[name] = amounts(one["target"])


def _policies(view: View) -> Iterable[View]:
    return view["spec"]["resourcePolicy"]["containerPolicies"].items()


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
