"""What the files and the options of an import hold together, and the instance made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from placeopt.core.errors import UsageError
from placeopt.kubernetes.edges import CallGraph, Key
from placeopt.kubernetes.latency import Latencies
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.notes import Notes
from placeopt.kubernetes.origin import NodeOrigin, OriginContainer, OriginItem, OriginReplica
from placeopt.kubernetes.prices import PriceBook
from placeopt.kubernetes.quantities import MIB
from placeopt.kubernetes.sites import Site
from placeopt.kubernetes.sizes import PodSize
from placeopt.kubernetes.units import MovingRules, Unit


@dataclass
class ImportOptions:
    """What the user says where the files do not.

    Parameters
    ----------
    name : str
        Of the instance.
    rules : MovingRules
        What may move, and what is assumed of missing requests.
    missing_prices : str
        ``error``, or ``default=USD``.
    region : str, optional
        Of nodes and prices that name none.
    drain, drain_cordoned :
        Nodes to empty.
    max_latency_ms : float, optional
        Limit of every call for which no AppGroup has one.
    new_sizes : dict of Key to Size
        What workloads shall ask for.
    source, gateway, origin : str, optional
        A node (edge-cloud), a service (rescheduling), a place (temporal).
    network_cost, data : float
        Of edge-cloud: per unit of data, and the data of a microservice.
    execution_ms : float
        Of rescheduling: time of a service on any machine, unless `execution` says otherwise:
        (service, kind) -> ms.
    user_latency_ms : float, optional
    parallel_calls : bool
    horizon, slot_hours, duration : temporal
    """

    name: str = "cluster"
    rules: MovingRules = field(default_factory=MovingRules)
    missing_prices: str = "error"
    region: str | None = None
    drain: tuple[str, ...] = ()
    drain_cordoned: bool = False
    max_latency_ms: float | None = None
    new_sizes: dict[Key, PodSize] = field(default_factory=dict)
    source: str | None = None
    gateway: str | None = None
    origin: str | None = None
    network_cost: float = 0.0
    data: float = 1.0
    execution_ms: float = 10.0
    execution: dict[tuple[str, str], float] = field(default_factory=dict)
    user_latency_ms: float | None = None
    parallel_calls: bool = False
    horizon: int = 24
    slot_hours: float = 1.0
    duration: int | None = None


@dataclass
class Gathered:
    """A cluster, read: the replicas, who calls whom, the nodes, prices and latencies."""

    cluster: ClusterObjects
    units: list[Unit]
    graph: CallGraph
    site: Site
    book: PriceBook | None
    latencies: Latencies
    options: ImportOptions
    notes: Notes


@dataclass
class ImportedInstance:
    """An instance document, and what its names are in the cluster."""

    document: dict[str, Any]
    items: dict[str, OriginItem] = field(default_factory=dict)
    nodes: dict[str, NodeOrigin] = field(default_factory=dict)


def node_prices(g: Gathered) -> dict[str, float]:
    """Return the price of every node: 1 each where no price at all is given.

    Raises
    ------
    DocumentError
        Some nodes have a price, this one has none, and the policy is ``error``.
    """
    nodes = g.site.nodes.values()
    if g.book is None and all(n.price is None for n in nodes):
        g.notes.add("assumption", "no prices are given: every node costs 1")
        return {n.name: 1.0 for n in nodes}
    found = {}
    for node in nodes:
        price = (g.book or PriceBook()).price(node, g.options.region, g.notes)
        if price is None:
            price = _missing_price(
                g, node.name, node.instance_type, node.region or g.options.region
            )
        found[node.name] = price
    return found


def _missing_price(g: Gathered, name: str, kind: str | None, region: str | None) -> float:
    policy = g.options.missing_prices
    if policy == "error":
        node = g.site.nodes[name]
        what = (
            f"machine type {kind!r} in {region or 'any region'}"
            if kind
            else "no label node.kubernetes.io/instance-type"
        )
        raise node.meta.view.fault(
            f"no price for node {name!r}: {what}",
            "give a table that has it, or --missing-prices default=0.10",
        )
    try:
        price = float(policy.removeprefix("default="))
    except ValueError:
        price = -1.0
    if not policy.startswith("default=") or not 0 <= price <= 1e6:
        raise UsageError(
            f"--missing-prices {policy!r}; legal: error, default=USD such as default=0.10"
        )
    g.notes.add("assumption", f"nodes without a price cost {price:g} (--missing-prices)", name)
    return price


def item(unit: Unit, replicas: Iterable[Unit] = ()) -> OriginItem:
    """Return what a replica is in the cluster; with `replicas`, what their workload is."""
    listed = tuple(OriginReplica(pod=u.pod, node=u.node if u.pod else None) for u in replicas)
    containers = tuple(
        OriginContainer(name=c.name, cpu_millicores=c.requests[0], memory_bytes=c.requests[1])
        for c in (*unit.spec.containers, *(i for i in unit.spec.inits if i.sidecar))
    )
    own = {} if listed else {"pod": unit.pod, "node": unit.node if unit.pod else None}
    return OriginItem(
        namespace=unit.namespace,
        kind=unit.kind,
        name=unit.workload,
        containers=containers,
        labels=unit.labels,
        replicas=listed,
        **own,
    )


def node_origins(site: Site) -> dict[str, NodeOrigin]:
    """Return what the nodes are in the cluster."""
    return {n.name: NodeOrigin(kind=n.kind, labels=n.meta.labels) for n in site.nodes.values()}


def by_workload(units: Iterable[Unit]) -> dict[Key, list[Unit]]:
    """Return the replicas of every workload."""
    found: dict[Key, list[Unit]] = {}
    for unit in units:
        found.setdefault(unit.key, []).append(unit)
    return found


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


def capacity(size: PodSize) -> tuple[int, int]:
    """Return room as (milli-CPU, MiB), rounded down."""
    return size.cpu, size.memory // MIB


def require_nodes(g: Gathered, files: list[str]) -> None:
    """Raise unless there is a node.

    Raises
    ------
    DocumentError
        Names the first document.
    """
    from placeopt.kubernetes.manifests import nothing

    if not g.site.nodes:
        if g.cluster.nodes:
            first = next(iter(g.cluster.nodes.values()))
            raise first.meta.view.fault(
                "every node is left out (not ready, or cordoned), this one first", "see --cordoned"
            )
        raise nothing(
            g.cluster,
            files,
            "nodes",
            "give kubectl get nodes -o json as well, or --nodes nodes.csv",
        )
