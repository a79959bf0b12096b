"""Machines that could be bought: candidate nodes from CSV, or from NodePools of Karpenter.

CSV has a line per machine type: ``machine_type, cpu, memory`` and, if wanted, ``zone`` (several
separated by ``;``), ``region, on_demand_usd_per_hour, spot_usd_per_hour, count, labels, taints,
resources, pods, reserved_cpu, reserved_memory, architecture``. ``cpu`` and ``memory`` are what the
machine has; what is reserved for the system is taken off, and so are the DaemonSets that may run
there. The architecture is that of the machine type's name unless the column or a label says
otherwise.

A NodePool says what Karpenter may launch; sizes and prices of the machines come from ``--prices``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import CellError, TableRow, cell, rows, whole
from placeopt.kubernetes.files import LABEL, Item, read
from placeopt.kubernetes.machines import (
    AMD64,
    ARCH,
    ARM64,
    PRICES,
    Offer,
    PriceBook,
    of_machine_type,
    pods_on_eks,
)
from placeopt.kubernetes.manifests import (
    MAX_SAID,
    NODE_CLASSES,
    disruption_notes,
    flat,
    node_classes,
    shown,
)
from placeopt.kubernetes.names import DRIVERS, HOSTNAME, REGION, TYPE, ZONE, completed, of_today
from placeopt.kubernetes.objects import (
    DEFAULT_PODS,
    KUBELET,
    NAMED,
    NODE_POOL,
    KubernetesNode,
    of_table,
    pairs,
)
from placeopt.kubernetes.origin import Notes
from placeopt.kubernetes.values import (
    NOTHING,
    Allocatable,
    Amounts,
    Cpu,
    CpuRoom,
    LabelCell,
    Memory,
    MemoryRoom,
    Price,
    Requirement,
    ResourceCell,
    TaintCell,
    Word,
)

#: Nodes of a machine type, zone and price where nothing is said.
DEFAULT_COUNT = 20
_MAX_COUNT, _MAX_NODES = 10_000, 100_000
_LEASE = "karpenter.sh/capacity-type"
_LEASES = {"on-demand": PRICES["on-demand"], "spot": PRICES["spot"]}
_IMPLIED = {"kubernetes.io/os": "linux"}


@dataclass
class _Machine:
    """A machine type at one price in one zone."""

    kind: str
    cpu: int
    memory: int
    price: float
    lease: str
    zone: str = ""
    region: str = ""
    count: int = DEFAULT_COUNT
    pods: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[tuple[str, str, str]] = field(default_factory=list)
    resources: dict[str, int] = field(default_factory=dict)
    machine: Amounts = (None, None)
    pool_limits: dict[str, int] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """What the names of its nodes begin with."""
        place = f"-{self.zone}" if self.zone else ""
        spot = "-spot" if self.lease == "spot" else ""
        pool = self.labels.get("karpenter.sh/nodepool", "")
        name = f"buy-{pool + '-' if pool else ''}{self.kind}{place}{spot}"
        return name.lower().replace("_", "-")

    def nodes(self, first: int) -> list[KubernetesNode]:
        """Return the nodes that could be bought, numbered from `first`."""
        said = {TYPE: self.kind, ZONE: self.zone, REGION: self.region, _LEASE: self.lease}
        said |= {ARCH: of_machine_type(self.kind) or AMD64}
        labels = _IMPLIED | {k: v for k, v in said.items() if v} | self.labels
        pods = {} if self.pods is None else {"pods": self.pods}
        return [
            KubernetesNode(
                meta=of_table(name, {**labels, HOSTNAME: name}),
                cpu=self.cpu,
                memory=self.memory,
                price=self.price,
                taints=self.taints,
                further={**pods, **self.resources},
                candidate=True,
                machine=self.machine,
                pool_limits=self.pool_limits,
            )
            for name in (f"{self.stem}-{first + k}" for k in range(self.count))
        ]


def read_candidates(
    path: AnyPath,
    book: PriceBook | None,
    region: str | None,
    notes: Notes,
    zones: Mapping[str, Collection[str]] | None = None,
    classes: Mapping[tuple[str, str], Any] | None = None,
) -> list[KubernetesNode]:
    """Return the nodes that could be bought; see `machines.equipped` for what they have besides.

    Parameters
    ----------
    path : path
        CSV, or YAML or JSON with NodePools.
    book : PriceBook, optional
        Sizes and prices of the machines of NodePools.
    region : str, optional
        Of machines that name none.
    notes : Notes
    zones : mapping, optional
        Region -> zones in which NodePools that name none make nodes.
    classes : mapping, optional
        (kind, name) -> an EC2NodeClass or the like of the cluster; those of the file count first.

    Raises
    ------
    DocumentError
        Names the file, the line and what is legal.
    """
    if str(path).lower().endswith((".yaml", ".yml", ".json")):
        items = [one for document in read(path) for one in flat(document)]
        pools = [pool for pool in items if _is_pool(pool, notes)]
        known = {**(classes or {}), **node_classes(items)}
        machines = [
            m for p in pools for m in _pool_machines(p, book, region, zones or {}, known, notes)
        ]
        if not pools:
            raise DocumentError(
                "no NodePool",
                file=str(path),
                path="line 1",
                remedy="give objects of the kind NodePool, or CSV",
            )
    else:
        machines = [m for row in rows(path, _MachineRow) for m in row.machines(region)]
    if sum(m.count for m in machines) > _MAX_NODES:
        raise DocumentError(
            f"more than {_MAX_NODES:,} nodes to buy",
            file=str(path),
            remedy="give lower counts, or fewer machine types",
        )
    for machine in machines:
        if of_machine_type(machine.kind) is None and ARCH not in machine.labels:
            text = f"taken as {AMD64}: no provider names machine types so (column architecture)"
            notes.add("assumption", text, machine.kind)
        text = f"may be bought: at most {machine.count} at {machine.price:g} USD/h"
        where = f" in {machine.zone}" if machine.zone else ""
        notes.add("assumption", text, f"{machine.kind} {machine.lease}{where}")
    result, numbers = list[KubernetesNode](), Counter[str]()
    for machine in machines:
        result += machine.nodes(numbers[machine.stem] + 1)
        numbers[machine.stem] += machine.count
    return result


def of_machine_types(
    book: PriceBook, places: Sequence[tuple[str, str]]
) -> dict[str, list[KubernetesNode]]:
    """Return nodes of each machine type of a book that has a size and a price on demand.

    Parameters
    ----------
    book : PriceBook
    places : sequence of (region, zone)
        Where they may be.

    Returns
    -------
    dict of str to list of KubernetesNode
        With the room that is left beside what EKS reserves; as many as of a line of CSV.
    """
    results: dict[str, list[KubernetesNode]] = {}
    nothing = [KUBELET()]
    for (place, kind), offer in book.offers.items():
        if {"cpu_cores", "memory_gib", PRICES["on-demand"]} <= offer.keys():
            for zone in (zone for region, zone in places if region == place):
                machine = _machine(place, kind, offer, "on-demand", zone)
                made = _reserve(machine, nothing, Notes(), kind).nodes(1)
                results.setdefault(kind, []).extend(made)
    return results


def node_of(name: str, place: str, kind: str) -> KubernetesNode:
    """Return a node of a machine type in a region, with its labels and nothing else."""
    machine = _Machine(kind=kind, cpu=0, memory=0, price=0.0, lease="", region=place, count=1)
    node = machine.nodes(1)[0]
    return replace(node, meta=of_table(name, completed(node.meta.labels, {})))


# -- CSV -------------------------------------------------------------------------------------------


def _zones(text: str, column: str) -> tuple[str, ...]:
    zones = tuple(zone.strip() for zone in text.split(";"))
    for zone in zones:
        if not LABEL.fullmatch(zone):
            raise CellError(f"zone is {zone[:60]!a}", "legal: names, several separated by ;")
    return zones


class _MachineRow(TableRow):
    """A line of a table of machines that could be bought."""

    machine_type: Word
    cpu: CpuRoom
    memory: MemoryRoom
    zone: Annotated[tuple[str, ...], cell(_zones)] = ("",)
    region: Word | None = None
    on_demand_usd_per_hour: Price | None = None
    spot_usd_per_hour: Price | None = None
    count: Annotated[int, whole(1, _MAX_COUNT)] = DEFAULT_COUNT
    labels: LabelCell = Field(default_factory=dict)
    taints: TaintCell = ()
    resources: ResourceCell = Field(default_factory=dict)
    pods: Annotated[int, whole(1, _MAX_COUNT)] | None = None
    reserved_cpu: Cpu = 0
    reserved_memory: Memory = 0
    architecture: str | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> _MachineRow:
        said = self.architecture
        if said and (said not in (AMD64, ARM64) or self.labels.get(ARCH, said) != said):
            legal = f"legal: {AMD64}, {ARM64}; as in labels, if there"
            raise CellError(f"architecture is {said[:60]!a}", legal)
        if self.on_demand_usd_per_hour is None and self.spot_usd_per_hour is None:
            raise CellError("no price", f"fill in {' or '.join(_LEASES.values())}")
        return self

    def machines(self, region: str | None) -> Iterator[_Machine]:
        """Yield the machines of the line: for each zone and each price one."""
        own = {ARCH: self.architecture} if self.architecture else {}
        for zone in self.zone:
            for lease, column in _LEASES.items():
                if (price := getattr(self, column)) is not None:
                    yield _Machine(
                        kind=self.machine_type,
                        cpu=max(0, self.cpu - self.reserved_cpu),
                        memory=max(0, self.memory - self.reserved_memory),
                        price=float(price),
                        lease=lease,
                        zone=zone,
                        region=self.region or region or "",
                        count=self.count,
                        pods=self.pods,
                        labels=self.labels | own,
                        taints=list(self.taints),
                        resources=self.resources,
                    )


# -- NodePools -------------------------------------------------------------------------------------


def _is_pool(item: Item, notes: Notes) -> bool:
    """Return whether an object is a NodePool; note what is neither that nor about its nodes."""
    if item.kind not in (*NODE_CLASSES, "NodePool"):
        name = item.decode(NAMED).metadata.name or "?"
        notes.add("ignored", f"{item.kind[:60]}: no candidate", name)
    return item.kind == "NodePool"


def _pool_machines(
    item: Item,
    book: PriceBook | None,
    region: str | None,
    zones: Mapping[str, Collection[str]],
    classes: Mapping[tuple[str, str], Any],
    notes: Notes,
) -> list[_Machine]:
    """Return what a NodePool may launch, of the machines of a book."""
    pool = item.decode(NODE_POOL)
    name, spec = pool.metadata.name or "?", pool.spec.template.spec
    offers = (book or PriceBook()).offers
    sized = {k: o for k, o in offers.items() if {"cpu_cores", "memory_gib"} <= o.keys()}
    if not sized:
        raise item.place.fault(
            "NodePools need prices with the sizes of machines",
            "give --prices with cpu_cores and memory_gib, such as CSV with "
            "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour",
        )
    terms, own = _sorted_out(spec.requirements, notes, name)
    labels = {**pool.spec.template.metadata.labels, **own}
    limits = _limits(pool.spec.limits)
    results, kubelets = [], _kubelets(spec, classes, notes, name)
    for (place, kind), offer in sized.items():
        if region is None or place == region:
            chosen = _zones_of(terms, zones.get(place, ()), notes, name)
            for machine in _offers(name, place, kind, offer, terms, chosen):
                machine.labels = labels | machine.labels
                machine.taints = pairs(spec.taints)
                machine.pool_limits, machine.machine = limits, (machine.cpu, machine.memory)
                machine.count = min(machine.count, _most(machine))
                results.append(_reserve(machine, kubelets, notes, name))
    notes.add(
        "assumption", "NodePools: machines of the price files that its requirements allow", name
    )
    _name_unread(pool.spec, notes, name)
    if not any(m.count for m in results):
        text = "NodePools that buy nothing: requirements or limits allow no machine of --prices"
        notes.add("assumption", text, name)
    return [m for m in results if m.count > 0]


def _name_unread(spec: Any, notes: Notes, name: str) -> None:
    """Name what a NodePool says and plans do not keep: how Karpenter disrupts and chooses nodes."""
    for text, subject in disruption_notes(spec, name):
        notes.add("not-expressed", text, subject)
    for term in spec.template.spec.requirements:
        if term.min_values is not None:
            text = "minValues of NodePools: a plan names machine types one by one"
            notes.add("not-expressed", text, f"{name}: {term.key[:60]} {term.min_values}")
    if spec.template.spec.startupTaints is not None:
        text = "startupTaints of NodePools: the script waits until a node is ready without them"
        notes.add("not-expressed", text, name)
    if spec.weight is not None:
        text = "weights of NodePools: a plan weighs prices alone"
        notes.add("not-expressed", text, f"{name}: {shown(spec.weight)}")
    if spec.replicas is not None:
        text = "NodePools with replicas: Karpenter adds nodes where these are raised"
        notes.add("not-expressed", text, f"{name}: {shown(spec.replicas)}")


_AWS = "karpenter.k8s.aws/instance-"
#: Category and generation of a machine type, as Karpenter reads them of its name: inf and 1 of
#: inf1.xlarge, u and 1 of u-6tb1.metal.
_SCHEME = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.")
#: Labels of machines that price files tell of.
_TOLD = {TYPE, ZONE, REGION, _LEASE, ARCH, *_IMPLIED} | {
    f"{_AWS}{word}" for word in ("family", "size", "category", "generation", "cpu", "memory")
}
#: Domains of the labels of Kubernetes, Karpenter and providers.
_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "eks.amazonaws.com",
    "karpenter.azure.com",
    "kubernetes.azure.com",
    "karpenter.k8s.gcp",
    "cloud.google.com",
)


#: Parts of labels about devices.
_DEVICES = ("gpu", "accelerator", "nvme")


def _zones_of(
    terms: list[Requirement], known: Collection[str], notes: Notes, name: str
) -> Collection[str]:
    """Return the zones that a NodePool names, or those that are known; "" for none."""
    named = [t for t in terms if of_today(t.key) == ZONE and t.operator == "In"]
    if named:
        return [value for term in named for value in term.values]
    if known:
        text = "NodePools that list no zones: they make nodes in the zones of the cluster"
        notes.add("assumption", text, f"{name}: {', '.join(known)}"[:MAX_SAID])
    return known or [""]


def _offers(
    pool: str, place: str, kind: str, offer: Offer, terms: list[Requirement], zones: Collection[str]
) -> Iterable[_Machine]:
    """Yield the machines of an offer in zones, as the requirements of a NodePool allow."""
    for zone in zones:
        for lease, column in _LEASES.items():
            if column not in offer:
                continue
            said = {TYPE: kind, ZONE: zone, REGION: place, _LEASE: lease, **_IMPLIED}
            said[ARCH] = of_machine_type(kind) or AMD64
            said = completed(
                {k: v for k, v in (said | _described(kind, offer)).items() if v}, DRIVERS
            )
            asked = (t for t in terms if zone or of_today(t.key) != ZONE)
            if all(term.holds(said) for term in asked):
                made = _machine(place, kind, offer, lease, zone)
                yield replace(made, labels={"karpenter.sh/nodepool": pool})


def _machine(place: str, kind: str, offer: Offer, lease: str, zone: str) -> _Machine:
    """Return a machine of an offer."""
    return _Machine(
        kind=kind,
        cpu=int(offer["cpu_cores"] * 1000),
        memory=int(offer["memory_gib"] * 2**30),
        price=float(offer[_LEASES[lease]]),
        lease=lease,
        zone=zone,
        region=place,
    )


def _sorted_out(
    terms: Iterable[Requirement], notes: Notes, name: str
) -> tuple[list[Requirement], dict[str, str]]:
    """Return the requirements that price files tell of, and the labels that others give to nodes.

    A requirement on a label of one's own lets a NodePool make nodes with it, as pods ask for one of
    its values. Of others of a provider those on devices are told, as no machine is known to have
    them; the rest is taken as met.
    """
    told: list[Requirement] = []
    labels: dict[str, str] = {}
    for term in terms:
        key, values = of_today(term.key), term.values
        if key in _TOLD:
            told.append(term)
        elif any(f".{key.partition('/')[0]}".endswith(f".{d}") for d in _DOMAINS):
            if any(device in key for device in _DEVICES):
                told.append(term)
                continue
            text = "requirements of NodePools that price files do not tell of: taken as met"
            notes.add("assumption", text, f"{name}: {key}"[:MAX_SAID])
        elif term.operator == "In" and values:
            labels[key] = values[0]
            if len(values) > 1:
                text = "labels of which NodePools give one of several values: the first"
                notes.add("assumption", text, f"{name}: {key}={values[0]}"[:MAX_SAID])
    return told, labels


def _described(kind: str, offer: Offer) -> dict[str, str]:
    """Return the labels by which NodePools of AWS choose, of a machine type such as m5.large."""
    family, _, size = kind.partition(".")
    parts = _SCHEME.match(kind)
    named = {} if parts is None else {"category": parts[1], "generation": parts[2]}
    return {
        **{f"{_AWS}{word}": value for word, value in named.items()},
        f"{_AWS}family": family,
        f"{_AWS}size": size,
        f"{_AWS}cpu": str(int(offer["cpu_cores"])),
        f"{_AWS}memory": str(int(offer["memory_gib"] * 1024)),
    }


def _limits(room: Allocatable) -> dict[str, int]:
    """Return what the nodes of a NodePool may have together: milli-CPU, bytes, and others."""
    both = zip(("cpu", "memory"), room.amounts, strict=True)
    return {key: most for key, most in both if most is not None} | dict(room.further)


def _most(machine: _Machine) -> int:
    """Return how many of a machine the limits of its NodePool allow if there is nothing else."""
    size = {"cpu": machine.cpu, "memory": machine.memory, "nodes": 1}
    limits = machine.pool_limits
    return min(
        (limits[key] // max(1, size[key]) for key in size if key in limits), default=_MAX_COUNT
    )


def _kubelets(
    spec: Any, classes: Mapping[tuple[str, str], Any], notes: Notes, name: str
) -> list[Any]:
    """Return what sets up the kubelet of a NodePool's nodes; what comes first counts.

    That stands in the node class since v1 of Karpenter, and stood in the NodePool before.
    """
    about = spec.nodeClassRef
    if about is not None:
        key = about.kind or "EC2NodeClass", about.name or "?"
        if key in classes:
            return [classes[key].spec.kubelet, classes[key].spec, spec.kubelet]
        text = "node classes that the files do not have: what they set of pods per node (maxPods)"
        notes.add("not-expressed", text, f"{name}: {key[0]} {key[1]}"[:MAX_SAID])
    return [spec.kubelet]


def _reserve(machine: _Machine, kubelets: Sequence[Any], notes: Notes, name: str) -> _Machine:
    """Take off what the kubelet reserves: as its settings say, else as EKS computes it."""
    pods, each, system, kube = (
        next((value for one in kubelets if (value := getattr(one, key)) is not None), None)
        for key in ("maxPods", "podsPerCore", "systemReserved", "kubeReserved")
    )
    if each:
        most = each * max(1, machine.cpu // 1000)
        pods = min(most, pods or pods_on_eks(machine.kind) or DEFAULT_PODS)
    reserved = [(one or NOTHING).amounts for one in (system, kube)]
    cpu, memory = (sum(one[r] or 0 for one in reserved) for r in range(2))
    if kube is None:
        cpu += _eks_millicores(machine.cpu // 1000)
        most = max(pods or 0, pods_on_eks(machine.kind) or DEFAULT_PODS)
        memory += (255 + 11 * most) * 2**20
        text = "reserved for the system as EKS computes it, and 100 MiB before evictions"
        notes.add("assumption", text, name)
    cpu, memory = machine.cpu - cpu, machine.memory - memory - 100 * 2**20
    return replace(machine, cpu=max(0, cpu), memory=max(0, memory), pods=pods)


def _eks_millicores(cores: int) -> int:
    """Return 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest."""
    first, second = 60 * min(cores, 1), 10 * (cores > 1)
    return round(first + second + 5 * max(0, min(cores, 4) - 2) + 2.5 * max(0, cores - 4))
