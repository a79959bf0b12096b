"""Who calls whom: environment variables that name a Service.

An edge leads from one workload to another. A variable is read as an address where its name says
so (``*_ADDR``, ``*_URL``, ...) or where its value has a port or a scheme. What names a Service of
the files becomes an edge; the rest is noted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from placeopt.core.errors import DocumentError, Faults, fault
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import decimal, lines
from placeopt.kubernetes.files import LABEL, NAME
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import KubernetesNode, PodSpec

#: Namespace and name of a workload, whatever its kind.
Key = tuple[str, str]
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


def graph(cluster: ClusterObjects, workloads: Workloads) -> WorkloadGraph:
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
