"""A cluster as an import reads it: who calls whom, latencies, and what its instances share.

Calls are read from environment variables that name a Service: an edge leads from one workload to
another. A variable is read as an address where its name says so (``*_ADDR``, ``*_URL``, ...) or
where its value has a port or a scheme. What names a Service of the files becomes an edge; the rest
is noted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from placeopt.core.errors import DocumentError, Faults, UsageError, fault
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import decimal, lines
from placeopt.kubernetes.admission import PodSize
from placeopt.kubernetes.capacity import NodeCapacity, keeping
from placeopt.kubernetes.files import LABEL, NAME
from placeopt.kubernetes.machines import PriceBook, missing_price
from placeopt.kubernetes.manifests import ClusterObjects, Key
from placeopt.kubernetes.names import in_short
from placeopt.kubernetes.objects import KubernetesNode, PodSpec
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import (
    NodeOrigin,
    OriginContainer,
    OriginItem,
    OriginReplica,
    note,
    tolerated,
)
from placeopt.kubernetes.replicas import Replica, grouped

#: The labels and the spec of a workload's pods, by its key.
Workloads = dict[Key, tuple[dict[str, str], PodSpec]]

_NAMES = re.compile(
    r"(_|^)(ADDR|ADDRESS|URL|URI|HOST|HOSTNAME|SERVICE|SERVER|ENDPOINT|ENDPOINTS|UPSTREAM"
    r"|BROKER|BROKERS|BACKEND)(S)?$"
)
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]{0,30}://")
_HOST = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_MAX_VALUE = 2000


@dataclass
class Edge:
    """A call from one workload to another.

    Attributes
    ----------
    source, target : Key
    limit : float or None
        What it may take at most, in ms.
    """

    source: Key
    target: Key
    limit: float | None = None

    @property
    def label(self) -> str:
        """How notes name it."""
        return f"{self.source[1]} to {self.target[1]}"


@dataclass
class WorkloadGraph:
    """The calls between the workloads of a cluster."""

    edges: dict[tuple[Key, Key], Edge] = field(default_factory=dict)

    def callees(self) -> dict[Key, list[Key]]:
        """Return caller -> called, in the order in which the calls were found."""
        results: dict[Key, list[Key]] = defaultdict(list)
        for source, target in self.edges:
            results[source].append(target)
        return results


def graph_of(cluster: ClusterObjects, workloads: Workloads) -> WorkloadGraph:
    """Return who calls whom among `workloads` (key -> labels and spec of a pod)."""
    result = WorkloadGraph()
    targets = _service_targets(cluster, workloads)
    for key, (_, spec) in workloads.items():
        for container in (*spec.inits, *spec.containers):
            for name, value in container.environment:
                _follow(result, key, name, value, targets)
    return result


def _service_targets(
    cluster: ClusterObjects, workloads: Workloads
) -> dict[tuple[str, str], list[Key]]:
    """Return (namespace, service) -> the workloads behind it."""
    behind: dict[str, list[tuple[Key, dict[str, str]]]] = defaultdict(list)
    for key, (labels, _) in workloads.items():
        behind[key[0]].append((key, labels))
    results = {}
    for service in cluster.services:
        space, selector = service.metadata.namespace, service.spec.selector
        hits = [
            key for key, labels in behind[space] if selector and selector.items() <= labels.items()
        ]
        if not hits and selector:
            note(
                "assumption",
                "services that select no workload of the files are called by nobody",
                service.metadata.label,
            )
        results[space, service.metadata.name] = hits
    return results


def _follow(
    found: WorkloadGraph,
    key: Key,
    name: str,
    value: str,
    targets: dict[tuple[str, str], list[Key]],
) -> None:
    """Add the edges that an environment variable names."""
    addressed = (
        _NAMES.search(name.upper()[:200])
        or _SCHEME.match(value)
        or re.search(r":\d{1,5}(/|,|$)", value[:_MAX_VALUE])
    )
    if not addressed or len(value) > _MAX_VALUE:
        return
    for part in value.split(","):
        host = _host(part.strip())
        if host is None:
            continue
        service = _service(host, key[0], targets)
        if service is None:
            if host not in ("localhost", "0.0.0.0") and not host.replace(".", "").isdigit():
                where = f"{key[0]}/{key[1]} {name[:60]}={host[:80]}"
                note(
                    "assumption",
                    "addresses that name no Service of the files are outside: no call",
                    where,
                )
            continue
        for target in targets[service]:
            if target != key:
                found.edges.setdefault((key, target), Edge(key, target))


def _host(text: str) -> str | None:
    """Return the host of ``scheme://user@host:port/path?query``; None where there is none."""
    rest = _SCHEME.sub("", text)
    rest = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    host = rest.partition(":")[0].lower().rstrip(".")
    return host if host and len(host) <= 253 and _HOST.fullmatch(host) else None


def _service(
    host: str, space: str, targets: dict[tuple[str, str], list[Key]]
) -> tuple[str, str] | None:
    """Return the service that a host names.

    Legal hosts: ``name``, ``name.namespace``, ``name.namespace.svc...``, and
    ``pod.name.namespace.svc...``.
    """
    parts = host.split(".")
    if len(parts) > 2 and "svc" not in parts:
        return None
    candidates = [(parts[1] if len(parts) > 1 else space, parts[0])]
    if len(parts) >= 4 and parts[3] == "svc":
        candidates.append((parts[2], parts[1]))
    return next((c for c in candidates if c in targets), None)


# -- latencies -------------------------------------------------------------------------------------


@dataclass
class Latencies:
    """Milliseconds from place to place; a place is a node, a zone or a region."""

    table: dict[str, dict[str, float]] = field(default_factory=dict)

    def between_places(self, one: str, other: str) -> float | None:
        """Return the latency between two places, either way, None where none is given."""
        forth, back = self.table.get(one, {}).get(other), self.table.get(other, {}).get(one)
        return forth if back is None else back if forth is None else max(forth, back)

    def between(self, one: KubernetesNode, other: KubernetesNode) -> float | None:
        """Return the latency between two nodes in ms, None where none is given.

        It is known by their names, else by their zones, else by their regions; 0 inside a zone.
        """
        if one.name == other.name:
            return 0.0
        for a, b in ((one.name, other.name), (one.zone, other.zone), (one.region, other.region)):
            if a is None or b is None:
                continue
            known = self.between_places(a, b)
            if known is not None:
                return known
            if a == b and a == one.zone:
                return 0.0
        return None


def latencies(path: AnyPath | None) -> Latencies:
    """Read a table of latencies.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    result = Latencies()
    if path is not None:
        _read_table(path, result)
    for one, row in result.table.items():
        if any(result.table.get(other, {}).get(one, ms) != ms for other, ms in row.items()):
            note("assumption", "latencies that differ by direction: the larger counts", one)
    return result


def _read_table(path: AnyPath, found: Latencies) -> None:
    listed, faults = list(lines(path)), Faults()
    for k, (file, line, cells) in enumerate(listed):
        with faults.gather():
            (_, origin), *row = cells().items()
            for name in (origin, *(place for place, _ in row)) if k == 0 else (origin,):
                if not name or not (NAME.fullmatch(name) or LABEL.fullmatch(name)):
                    what = f"{name[:60]!a} is no place"
                    raise fault(file, line, what, "name nodes, zones or regions")
            for place, text in row:
                ms = decimal(text) if text else None
                if text and (ms is None or not 0 <= ms <= 10**9):
                    remedy = "legal: a number, 0 to 1e9"
                    raise fault(file, line, f"{place} is {text[:60]!a}", remedy)
                if ms is not None:
                    found.table.setdefault(origin, {})[place] = float(ms)
    faults.check()
    if not listed:
        raise DocumentError(
            "no rows below the header",
            file=str(path),
            path="line 1",
            remedy="row = origin, column = destination, cells in ms",
        )


# -- a cluster -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadCluster:
    """Nodes and replicas, who calls whom, prices and latencies.

    Attributes
    ----------
    objects : ClusterObjects
    units : tuple of Replica
        All replicas.
    site : NodeCapacity
        The nodes that take part, and the replicas to place on them.
    calls : WorkloadGraph
    latencies : Latencies
    prices : PriceBook, optional
    """

    objects: ClusterObjects
    units: tuple[Replica, ...]
    site: NodeCapacity
    calls: WorkloadGraph
    latencies: Latencies
    prices: PriceBook | None = None

    def mapped(self, change: Callable[[Replica], Replica | None]) -> ReadCluster:
        """Return the cluster with changed replicas; those of which `change` makes None are gone."""
        made = {id(u): change(u) for u in self.units}
        units, here = (
            tuple(u for u in (made.get(id(old), old) for old in some) if u is not None)
            for some in (self.units, self.site.units)
        )
        listed = ((made.get(id(u), u), name) for u, name in self.site.residents)
        residents = tuple((u, name) for u, name in listed if u is not None)
        site = replace(self.site, units=here, residents=residents)
        return replace(self, units=units, site=site)

    def holding(self, why: Mapping[int, str]) -> ReadCluster:
        """Return the cluster with some replicas held where they are: id of a replica -> why."""
        if not why:
            return self
        return self.mapped(lambda u: replace(u, pins=(*u.pins, why[id(u)])) if id(u) in why else u)

    def with_replicas(self, here: tuple[Replica, ...]) -> ReadCluster:
        """Return the cluster with other replicas to place: those of now, moved or left out."""
        kept = {(u.namespace, u.name): u for u in here}
        gone = {id(u) for u in self.site.units}
        units = (kept.get((u.namespace, u.name)) if id(u) in gone else u for u in self.units)
        listed = tuple(u for u in units if u is not None)
        return replace(self, units=listed, site=replace(self.site, units=here))


# -- what instances share --------------------------------------------------------------------------

#: Nodes of an instance with latencies between all pairs of nodes; flows of an application.
MAX_NODES, MAX_FLOWS = 3000, 200_000
#: No machine costs so much in an hour; and what is noted of one that does.
_MOST_USD = 100.0
DEAR = "Nodes that cost over 100 USD an hour: are these prices of a month?"


@dataclass
class ImportedInstance:
    """An instance document, and what its names are in the cluster."""

    document: dict[str, Any]
    items: dict[str, OriginItem]
    nodes: dict[str, NodeOrigin] = field(default_factory=dict)


def node_prices(cluster: ReadCluster, options: ImportOptions) -> dict[str, float]:
    """Return the price of every node: 1 each where no price at all is given.

    Where some nodes have a price, one has none, and the policy is ``error``, that is a fault.
    """
    nodes = cluster.site.nodes.values()
    default = missing_price(options.missing_prices)
    if not has_prices(cluster, options):
        note("assumption", "no prices are given: every node costs 1")
        return {n.name: 1.0 for n in nodes}
    result = dict.fromkeys((node.name for node in nodes), 0.0)
    for node in nodes:
        price = (cluster.prices or PriceBook()).price(node, options.region)
        with tolerated():
            result[node.name] = _missing_price(options, node, default) if price is None else price
        if result[node.name] > _MOST_USD:
            note("assumption", DEAR, node.name)
    return result


def has_prices(cluster: ReadCluster, options: ImportOptions) -> bool:
    """Return whether prices are in USD an hour: of files, of nodes, or one for all."""
    return (
        cluster.prices is not None
        or options.missing_prices != "error"
        or any(n.price is not None for n in cluster.site.nodes.values())
    )


def _missing_price(options: ImportOptions, node: KubernetesNode, default: float | None) -> float:
    if default is None:
        what = (
            f"machine type {node.instance_type!r} in "
            f"{node.region or options.region or 'any region'}"
            if node.instance_type
            else "no label node.kubernetes.io/instance-type"
        )
        raise node.meta.place.fault(
            f"no price for node {node.name!r}: {what}",
            "give a table that has it, or --missing-prices default=0.10",
        )
    text = f"nodes without a price cost {default:g} USD/h (--missing-prices)"
    note("assumption", text, node.name)
    return default


def item(unit: Replica, replicas: Iterable[Replica] = ()) -> OriginItem:
    """Return what a replica is in the cluster; with `replicas`, what their workload is."""
    listed = tuple(OriginReplica(pod=u.pod, node=u.node if u.pod else None) for u in replicas)
    containers = tuple(
        OriginContainer(
            name=c.name,
            cpu_millicores=c.requests[0],
            memory_bytes=c.requests[1],
            sidecar=c.sidecar,
            resized=c.name in unit.resized,
        )
        for c in unit.spec.lasting
    )
    own: dict[str, Any] = {}
    if not listed:
        own = {"pod": unit.pod, "node": unit.node if unit.pod else None, "uid": unit.uid}
    return OriginItem(
        namespace=unit.namespace,
        kind=unit.kind,
        name=unit.workload,
        containers=containers,
        labels=unit.labels,
        replicas=listed,
        **own,
    )


def node_origins(cluster: ReadCluster) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster: those of a table beside others are absent."""
    listed = cluster.objects.candidates
    absent = listed if len(listed) < len(cluster.objects.nodes) else set()
    return {
        n.name: NodeOrigin(
            kind=n.kind,
            labels=in_short(n.meta.labels) if n.name in absent else n.meta.labels,
            uid=n.meta.uid,
            taints=_taints(n),
            absent=n.name in absent,
        )
        for n in cluster.site.nodes.values()
    }


def _taints(node: KubernetesNode) -> tuple[str, ...]:
    return tuple(sorted(f"{key}={value}:{effect}" for key, value, effect in keeping(node)))


def by_workload(units: Iterable[Replica]) -> dict[Key, list[Replica]]:
    """Return the replicas of every workload."""
    return grouped(units, lambda unit: unit.key)


def short_names(keys: Iterable[Key]) -> dict[Key, str]:
    """Return a unique name for every workload.

    It is the workload's own name; where two workloads share it, the namespace stands before it.
    """
    listed = list(keys)
    count = Counter(name for _, name in listed)
    return {
        (space, name): name if count[name] == 1 else f"{space}.{name}" for space, name in listed
    }


def gib(amount: int, *, capacity: bool = False) -> float:
    """Return bytes as GiB with nine decimals.

    A request is rounded up, a capacity down, by about a byte at most.

    Examples
    --------
    >>> gib(2**29), gib(129_000_000), gib(129_000_000, capacity=True)
    (0.5, 0.120140613, 0.120140612)
    """
    return (amount * 10**9 // 2**30 if capacity else -(-amount * 10**9 // 2**30)) / 10**9


def cores_and_gib(size: PodSize, *, capacity: bool = False) -> dict[str, float]:
    """Return the fields ``cpu_cores`` and ``memory_gib`` of a document."""
    return {"cpu_cores": size.cpu / 1000, "memory_gib": gib(size.memory, capacity=capacity)}


def largest(units: Iterable[Replica]) -> PodSize:
    """Return the most that one of some replicas asks for, of each resource."""
    cpu, memory = zip(*(unit.size for unit in units), strict=True)
    return PodSize(max(cpu), max(memory))


def calls(cluster: ReadCluster, options: ImportOptions) -> Iterator[Edge]:
    """Yield the calls, each with the limit of the options."""
    for edge in cluster.calls.edges.values():
        yield replace(edge, limit=options.max_latency_ms)


def flows(
    units: Iterable[Replica], edges: Iterable[Edge], limit: str, what: str
) -> list[dict[str, Any]]:
    """Return a flow for every pair of replicas that talk under a limit.

    Calls without a limit become a flow between single replicas only.

    Parameters
    ----------
    units : iterable of Replica
    edges : iterable of Edge
    limit : str
        The field of a flow that holds its limit.
    what : str
        How notes name calls of which there are too many.
    """
    replicas = by_workload(units)
    results: list[dict[str, Any]] = []
    for edge in edges:
        pairs = list(product(replicas.get(edge.source, ()), replicas.get(edge.target, ())))
        if edge.limit is None and len(pairs) > 1:
            continue
        if len(results) + len(pairs) > MAX_FLOWS:
            text = f"{what} beyond {MAX_FLOWS:,} pairs of replicas"
            note("not-expressed", text, edge.label)
            continue
        limits = {} if edge.limit is None else {limit: edge.limit}
        results += [{"from": a.name, "to": b.name, **limits} for a, b in pairs]
    return results


def require_few_nodes(cluster: ReadCluster, problem: str, what: str) -> None:
    """Raise if there are too many nodes for `what`, which an instance has for all pairs of nodes.

    Raises
    ------
    UsageError
        Says how many are legal.
    """
    if len(cluster.site.nodes) > MAX_NODES:
        raise UsageError(
            f"{len(cluster.site.nodes)} nodes; legal: up to {MAX_NODES} for {problem}, "
            f"whose {what} are between all pairs"
        )
