"""What machines cost and have: a book of offers, from files of five kinds, adjusted by overlays.

===================  =============================================================================
file                 how it is known
===================  =============================================================================
on-demand table      JSON with ``usd_per_hour``: location -> size -> USD per hour
spot advisor         of AWS; JSON with ``spot_advisor``: savings over on-demand, classes of
                     interruption, sizes of the machines
OpenCost             CSV with ``MarketPriceHourly``
plain                CSV with ``location, size`` and any of the numbers of an offer
own                  JSON of the format ``placeopt/prices@1``, as below
===================  =============================================================================

A book as JSON::

    {"format": "placeopt/prices@1",
     "offers": [{"location": "us-east-1", "size": "m5.large", "cpu_cores": 2, "memory_gib": 8,
                 "on_demand_usd_per_hour": 0.096, "spot_usd_per_hour": 0.0384,
                 "spot_interruption": 0.05}],
     "nodes": {"rack-7": 0.21}}

Every field of an offer but ``location`` and ``size`` may be absent; ``nodes`` are prices of single
machines by name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import model_validator

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import Document, read_text
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import CellError, TableRow, decimal, number, rows
from placeopt.kubernetes.files import LABEL, STDIN, Item, read
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.names import completed, drivers_in, lease_of
from placeopt.kubernetes.objects import DEFAULT_PODS, KubernetesNode, PodSpec
from placeopt.kubernetes.origin import Notes, note
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.values import Price, Word, form

PRICES = {
    "on-demand": "on_demand_usd_per_hour",
    "reserved": "reserved_usd_per_hour",
    "spot": "spot_usd_per_hour",
}
NUMBERS = ("cpu_cores", "memory_gib", *PRICES.values(), "spot_interruption")
#: Decimals of a price.
_DIGITS = Decimal("1e-9")

Offer = dict[str, Decimal]
T = TypeVar("T")


@dataclass
class PriceBook:
    """What machines cost.

    Attributes
    ----------
    offers : dict
        (location, size) -> a mapping of `NUMBERS`.
    nodes : dict
        Name of a node -> USD per hour.
    savings : dict
        (location, size) -> saving of spot in per cent, still without a price.
    """

    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    nodes: dict[str, Decimal] = field(default_factory=dict)
    savings: dict[tuple[str, str], Decimal] = field(default_factory=dict)

    def put(self, location: str, size: str, numbers: Offer, notes: Notes) -> None:
        """Add what is known of an offer; where a later file says otherwise, it counts."""
        offer = self.offers.setdefault((location, size), {})
        for key, value in numbers.items():
            if offer.get(key, value) != value:
                notes.add(
                    "assumption",
                    f"{key} differs between the files: the later counts",
                    f"{location} {size}",
                )
            offer[key] = value

    def settle(self, notes: Notes) -> None:
        """Turn savings of spot into prices: on-demand less the saving."""
        for (location, size), saving in self.savings.items():
            offer = self.offers[location, size]
            base = offer.get("on_demand_usd_per_hour")
            if "spot_usd_per_hour" in offer:
                continue
            if base is None:
                notes.add(
                    "left-out", "spot savings without an on-demand price", f"{location} {size}"
                )
                offer.pop("spot_interruption", None)
            else:
                offer["spot_usd_per_hour"] = (
                    (base * (100 - saving) / 100).quantize(_DIGITS).normalize()
                )
        for place in list(self.offers):
            if not set(PRICES.values()) & self.offers[place].keys():
                del self.offers[place]

    def price(self, node: KubernetesNode, region: str | None) -> float | None:
        """Return what a node costs in USD per hour, None where unknown.

        Its own price counts first, then that of its machine type in its region.
        """
        if node.price is not None:
            return node.price
        if node.name in self.nodes:
            return float(self.nodes[node.name])
        place, several = self._place(node, region)
        if several:
            note("assumption", f"nodes without a region: prices of {place}", node.name)
        offer = self.offers.get((place, node.instance_type or ""), {})
        lease = lease_of(node.meta.labels)
        wanted = PRICES[lease]
        if wanted not in offer and PRICES["on-demand"] in offer:
            note("assumption", f"no {lease} price: that on demand", node.name)
            wanted = PRICES["on-demand"]
        return float(offer[wanted]) if wanted in offer else None

    def interruptions(self, node: KubernetesNode, region: str | None) -> float | None:
        """Return the share of interruptions in a month of a spot node, None where unknown."""
        place, _ = self._place(node, region)
        rate = self.offers.get((place, node.instance_type or ""), {}).get("spot_interruption")
        return None if rate is None else float(rate)

    def _place(self, node: KubernetesNode, region: str | None) -> tuple[str, bool]:
        """Return the place whose offers hold for a node, and whether others could be meant."""
        if (named := node.region or region) is not None:
            return named, False
        places = sorted({a for a, b in self.offers if b == node.instance_type})
        return (places[0] if places else ""), len(places) > 1


def missing_price(policy: str) -> float | None:
    """Return what ``--missing-prices`` gives a node without a price; None for ``error``.

    Raises
    ------
    UsageError
        It is neither ``error`` nor ``default=USD``.
    """
    if policy == "error":
        return None
    word, _, value = policy.partition("=")
    price = decimal(value)
    if word != "default" or price is None or not 0 <= price <= 10**6:
        raise UsageError(
            f"--missing-prices {policy!r}; legal: error, default=USD such as default=0.10"
        )
    return float(price)


# -- overlays --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriceOverlay:
    """A change of prices (``set``, ``percent``, ``fixed``) and the offers that it matches."""

    matches: Callable[[str, str, str], bool]
    kind: str
    amount: Decimal


_AMOUNT = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(%?)", re.ASCII)


def amount(text: str) -> tuple[str, Decimal] | None:
    """Read ``+10%``, ``-0.05`` or ``0.2``: (kind, amount); None for anything else.

    Examples
    --------
    >>> amount("-20%"), amount("+0.01"), amount("0.2")
    (('percent', Decimal('-20')), ('fixed', Decimal('0.01')), ('set', Decimal('0.2')))
    """
    form = _AMOUNT.fullmatch(text)
    value = decimal(form[1] + form[2]) if form else None
    if form is None or value is None or (form[3] and not form[1]):
        return None
    return ("percent" if form[3] else "fixed" if form[1] else "set"), value


def overlay(text: str) -> PriceOverlay:
    """Read ``SIZE=CHANGE``, ``LOCATION/SIZE=CHANGE`` or ``SIZE:PRICING=CHANGE``.

    ``*`` and ``?`` stand for any characters.

    Raises
    ------
    UsageError
        Not of this form.

    Examples
    --------
    >>> o = overlay("us-*/m5.*:spot=+10%")
    >>> o.matches("us-east-1", "m5.large", "spot"), o.matches("us-east-1", "m5.large", "on-demand")
    (True, False)
    """
    pattern, _, change = text.rpartition("=")
    place, colon, pricing = pattern.partition(":")
    location, slash, size = place.rpartition("/")
    result = amount(change.strip())
    if not size or result is None or (colon and pricing not in PRICES):
        raise UsageError(
            f"--overlay {text!r}; legal: SIZE=CHANGE, LOCATION/SIZE=CHANGE, SIZE:spot=CHANGE "
            "with CHANGE such as -20%, +0.05 or 0.2"
        )
    where = location if slash else "*"

    def matches(a: str, b: str, p: str) -> bool:
        return fnmatchcase(a, where) and fnmatchcase(b, size) and (not colon or p == pricing)

    return PriceOverlay(matches, *result)


def apply(book: PriceBook, overlays: Sequence[PriceOverlay], notes: Notes) -> None:
    """Adjust the prices of a book: prices that are set, then percentages, then fixed amounts.

    No price falls below 0.
    """
    for (location, size), offer in book.offers.items():
        for pricing, key in PRICES.items():
            own = [o for o in overlays if o.matches(location, size, pricing)]
            if not own or (key not in offer and not any(o.kind == "set" for o in own)):
                continue
            if key not in offer and pricing == "spot" and "spot_interruption" not in offer:
                continue  # how often spot is taken away is not known: no such offer
            value = next(
                (o.amount for o in reversed(own) if o.kind == "set"), offer.get(key, Decimal(0))
            )
            for o in own:
                value = value * (100 + o.amount) / 100 if o.kind == "percent" else value
            value += sum((o.amount for o in own if o.kind == "fixed"), Decimal(0))
            offer[key] = max(Decimal(0), value).quantize(_DIGITS).normalize()
            notes.add(
                "assumption",
                "prices changed by overlays: percentages first, then fixed amounts",
                f"{location} {size} {pricing}",
            )


# -- files of prices -------------------------------------------------------------------------------


_TYPE_KEYS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_MAX_OFFERS = 200_000
_REMEDY = (
    "legal: an on-demand table, the spot advisor of AWS, CSV of OpenCost or with location,size"
)


def read_prices(
    paths: Iterable[AnyPath],
    notes: Notes,
    overlays: Sequence[PriceOverlay] = (),
) -> PriceBook:
    """Return the book that files describe together, after overlays.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    book = PriceBook()
    for path in paths:
        if str(path) != STDIN and _is_table(path):
            _read_csv(path, book, notes)
            continue
        for item in read(path):
            _read_object(item, book, notes)
    book.settle(notes)
    if not book.offers and not book.nodes:
        raise DocumentError(
            "no prices", file=", ".join(map(str, paths)), path="line 1", remedy=_REMEDY
        )
    apply(book, overlays, notes)
    return book


def _is_table(path: AnyPath) -> bool:
    """Return whether a file is CSV: by its name, else by the look of its first line."""
    if str(path).lower().endswith((".json", ".yaml", ".yml")):
        return False
    first = read_text(path, "CSV or JSON").lstrip().split("\n", 1)[0]
    return "," in first and not first.startswith(("{", "[", "-", "#")) and ": " not in first


_Usd = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=100)]
_KNOWN = form({"format": Any, "usd_per_hour": Any, "spot_advisor": Any})
_ON_DEMAND = form({"usd_per_hour": {"*": {"*": _Usd}}})
_OWN = form(
    {
        "offers": [{"location": str, "size": str, **dict.fromkeys(NUMBERS, _Usd)}],
        "nodes": {"*": _Usd},
    }
)
_ADVISOR = form(
    {
        "ranges": [{"label": str, "index": _Percent}],
        "instance_types": {"*": {"cores": _Usd, "ram_gb": _Usd}},
        "spot_advisor": {"*": {"Linux": {"*": {"r": _Percent, "s": _Share}}}},
    }
)


def _read_object(item: Item, book: PriceBook, notes: Notes) -> None:
    known = item.decode(_KNOWN) if item.begins(b"{") else _KNOWN()
    if known.usd_per_hour is not None:
        for location, sizes in _each(item, item.decode(_ON_DEMAND).usd_per_hour):
            for size, price in _each(item, sizes):
                book.put(location, size, {PRICES["on-demand"]: _number(item, price)}, notes)
    elif known.spot_advisor is not None:
        _read_advisor(item, book, notes)
    elif known.format == "placeopt/prices@1":
        _read_own(item, book, notes)
    else:
        raise item.place.fault("not a file of prices", _REMEDY)


def _each(item: Item, listed: Mapping[str, T]) -> Iterable[tuple[str, T]]:
    if len(listed) > _MAX_OFFERS:
        raise item.place.fault(f"more than {_MAX_OFFERS:,} entries", "give a shorter table")
    for key, value in listed.items():
        _require_word(item, key, "name of a place or a machine")
        yield key, value


def _require_word(item: Item, text: str, what: str) -> None:
    if not text or not LABEL.fullmatch(text):
        legal = "legal: letters, digits, -, _ and ., up to 63"
        raise item.place.fault(f"{text[:60]!a} is no {what}", legal)


def _number(item: Item, value: float | None, *steps: str) -> Decimal:
    if value is None:
        raise item.place.fault("no number", "give one", *steps)
    return Decimal(repr(value))


def _read_own(item: Item, book: PriceBook, notes: Notes) -> None:
    own = item.decode(_OWN)
    for offer in own.offers:
        for key, name in (("location", offer.location), ("size", offer.size)):
            _require_word(item, name, key)
        said = {key: getattr(offer, key) for key in NUMBERS}
        numbers = {key: _number(item, value) for key, value in said.items() if value is not None}
        book.put(offer.location, offer.size, numbers, notes)
    for name, price in _each(item, own.nodes):
        book.nodes[name] = _number(item, price)


def _read_advisor(item: Item, book: PriceBook, notes: Notes) -> None:
    own = item.decode(_ADVISOR)
    shares = _shares(item, own.ranges, notes)
    sizes = {
        size: {
            name: _number(item, getattr(entry, key), "instance_types", size)
            for name, key in (("cpu_cores", "cores"), ("memory_gib", "ram_gb"))
        }
        for size, entry in _each(item, own.instance_types)
    }
    for location, systems in _each(item, own.spot_advisor):
        for size, entry in _each(item, systems.Linux):
            here = "spot_advisor", location, "Linux", size
            if entry.r not in shares:
                raise item.place.fault(
                    f"the range {entry.r} is not one of the file",
                    f"legal: {', '.join(map(str, shares))}",
                    *here,
                )
            known = {**sizes.get(size, {}), "spot_interruption": shares[entry.r]}
            book.put(location, size, known, notes)
            book.savings[location, size] = _number(item, entry.s, *here)
    notes.add(
        "assumption",
        "spot prices: on demand less the savings of the advisor (Linux); interruption: "
        "the upper end of its class",
    )


def _shares(item: Item, ranges: Sequence[Any], notes: Notes) -> dict[int, Decimal]:
    """Return class -> share of interruptions: ``5-10%`` is 0.10.

    The open class at the end is its start and 5 per cent more.
    """
    results = {}
    for k, entry in enumerate(ranges):
        label = entry.label
        value = decimal(label.strip("<>% ").rpartition("-")[2])
        if value is None or not 0 <= value <= 95:
            raise item.place.fault(
                f"the range {label[:40]!a} cannot be read",
                "legal: such as <5%, 5-10%, >20%",
                *("ranges", k),
            )
        if label.startswith(">"):
            value += 5
            notes.add(
                "assumption",
                f"the class of interruption {label} has no upper end: {value} per cent",
            )
        results[entry.index or 0] = value / 100
    return results


class _Offer(TableRow):
    """A line of a plain table: what is known of a machine type in a place."""

    location: Word
    size: Word
    cpu_cores: Price | None = None
    memory_gib: Price | None = None
    on_demand_usd_per_hour: Price | None = None
    reserved_usd_per_hour: Price | None = None
    spot_usd_per_hour: Price | None = None
    spot_interruption: Annotated[Decimal, number("1")] | None = None

    def numbers(self) -> Offer:
        """Return what the line says."""
        return {key: value for key in NUMBERS if (value := getattr(self, key)) is not None}

    @model_validator(mode="after")
    def _says_something(self) -> _Offer:
        if not self.numbers().keys() - {"spot_interruption"}:
            raise CellError("neither a price nor a size", f"fill in one of {', '.join(NUMBERS)}")
        return self


class _Cost(TableRow):
    """A line of the CSV of OpenCost."""

    InstanceID: str = ""
    AssetClass: str
    MarketPriceHourly: Price
    Region: Word = ""
    InstanceIDField: str = ""
    InstanceType: Word = ""
    EndTimestamp: str = ""
    EndTimeStamp: str = ""
    Version: str = ""


def _read_csv(path: AnyPath, book: PriceBook, notes: Notes) -> None:
    if "MarketPriceHourly" in read_text(path, "CSV").split("\n", 1)[0]:
        rows(path, _Cost, lambda row: _opencost(row, book, notes))
        return
    for row in rows(path, _Offer):
        book.put(row.location, row.size, row.numbers(), notes)


def _opencost(row: _Cost, book: PriceBook, notes: Notes) -> None:
    if row.AssetClass.lower() != "node":
        text = f"OpenCost: prices of the class {row.AssetClass[:20].lower()!a}"
        notes.add("ignored", text, row.label)
        return
    by_type = row.InstanceIDField.removeprefix("metadata.labels.") in _TYPE_KEYS
    if row.InstanceIDField == "metadata.name":
        book.nodes[row.InstanceID] = row.MarketPriceHourly
    elif kind := row.InstanceType or (row.InstanceID if by_type else ""):
        if not row.Region or not LABEL.fullmatch(kind):
            raise row.fault(f"Region {row.Region!a} or machine type {kind[:60]!a}", "fill both in")
        book.put(row.Region, kind, {PRICES["on-demand"]: row.MarketPriceHourly}, notes)
    else:
        text = "OpenCost: prices of nodes by other fields than metadata.name and the instance type"
        notes.add("ignored", text, row.label)


# -- architectures ---------------------------------------------------------------------------------
#
# The files say nothing of an image itself. It is known to run where a ready pod runs it.

AMD64, ARM64 = "amd64", "arm64"
ARCH = "kubernetes.io/arch"
_KEYS = (ARCH, "beta.kubernetes.io/arch")
#: Machine types of a provider, and those of them that are arm64; in lower case.
_PROVIDERS = (
    # Azure, "Virtual machine sizes naming conventions": p behind the number of vCPUs is ARM.
    # Accelerators of the kinds GB200 and GB300 come with an ARM processor.
    (r"(standard|basic)_.+", r"standard_[a-z]+\d+(-\d+)?[a-z]*p[a-z]*(_.*)?|.*_gb[23]00.*"),
    # AWS, "Amazon EC2 instance type naming conventions": g behind the generation is Graviton. A1
    # is Graviton, too; GB200 comes with an ARM processor; Mac2 and later are Apple silicon.
    (
        r"[a-z][a-z0-9-]*\.(\d*x?large|nano|micro|small|medium|metal)(-.*)?",
        r"(a1|[a-z]+\d+[a-z]*g[a-z]*(-.*)?|.*-gb\d+.*|mac2.*|mac-m\d.*)\..+",
    ),
    # Google Cloud, "Arm VMs on Compute": T2A is Ampere, C4A and N4A are Axion, A4X is Grace.
    (r"[a-z]\d+[a-z]*(-[a-z0-9]+)+|custom-\d.*", r"(t2a|c4a|n4a|a4x)-.*"),
    # Oracle Cloud, "Arm-Based Compute": shapes A1, A2 and A4 are Ampere.
    (r"(vm|bm)\..+", r"(vm|bm)\.standard\.a\d+\..*"),
    # Alibaba Cloud, "Overview of instance families": 6r is Ampere, 8y is Yitian.
    (r"ecs\..+", r"ecs\.[cgr](6r|8y)\..*"),
    # Hetzner Cloud, server types: CAX is Ampere.
    (r"c(x|px|ax|cx)\d+", r"cax\d+"),
)


def of_machine_type(kind: str) -> str | None:
    """Return the architecture of a machine type by its name; None where no provider names so.

    Examples
    --------
    >>> of_machine_type("m6g.xlarge"), of_machine_type("m6i.xlarge"), of_machine_type("rack-7")
    ('arm64', 'amd64', None)
    """
    name = kind.lower()
    arm = next((arm for known, arm in _PROVIDERS if re.fullmatch(known, name)), None)
    if arm is None:
        return None
    return ARM64 if re.fullmatch(arm, name) else AMD64


def of_node(node: KubernetesNode) -> str:
    """Return the architecture of a node: its label, what its machine type says, amd64."""
    kind = node.instance_type
    return node.label(*_KEYS) or (of_machine_type(kind) if kind else None) or AMD64


@dataclass
class RunsOn:
    """On which architectures the images of a cluster are known to run.

    Attributes
    ----------
    images : dict of str to set of str
        Image -> architectures of nodes on which a ready pod runs it.
    there : set of str
        Architectures of the nodes that are there.
    """

    images: dict[str, set[str]] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, cluster: ClusterObjects) -> RunsOn:
        """Return what the pods of a cluster show."""
        result = cls()
        machines = {
            name: of_node(node)
            for name, node in cluster.nodes.items()
            if name not in cluster.candidates
        }
        result.there = set(machines.values())
        for pod in cluster.pods:
            if pod.ready and pod.spec.node in machines:
                for image in _images(pod.spec):
                    result.images.setdefault(image, set()).add(machines[pod.spec.node])
        return result

    def of(self, unit: Replica, nodes: Mapping[str, KubernetesNode]) -> set[str]:
        """Return the architectures that a replica is known to run on; none where nothing is known.

        Those on which all of its images run, and that of its own node. One that runs nowhere, of
        images that nobody runs, may go where the cluster has nodes.
        """
        sets = [self.images.get(image, set()) for image in _images(unit.spec)]
        known = set.intersection(*sets) if sets else set()
        here = nodes.get(unit.node or "")
        if here is not None:
            known = known | {of_node(here)}
        return known or self.there


def _images(spec: PodSpec) -> list[str]:
    return [c.image for c in spec.every]


def _chooses(spec: PodSpec) -> bool:
    """Return whether a pod says itself on which architectures it runs."""
    keys = [one.key for one in spec.affinity.nodes.required.requirements]
    return any(key in spec.selector or key in keys for key in _KEYS)


def keep_to_known(
    document: Document,
    units: Sequence[Replica],
    nodes: Mapping[str, KubernetesNode],
    cluster: ClusterObjects,
    *,
    anywhere: bool,
) -> None:
    """Keep replicas of a rolling update on architectures that their images are known to run on.

    Parameters
    ----------
    document : dict
        The instance; changed in place.
    units : sequence of Replica
    nodes : mapping of str to KubernetesNode
    cluster : ClusterObjects
    anywhere : bool
        Names them only, and lets them go anywhere.
    """
    machines = {name: of_node(node) for name, node in nodes.items()}
    if len(set(machines.values())) < 2:
        return
    known, by_name = RunsOn.read(cluster), {(u.namespace, u.name): u for u in units}
    sets: dict[str, list[str]] = document.get("node_sets", {})
    for record, unit in _movable(document, by_name):
        legal = sets[record["allowed"]] if "allowed" in record else list(nodes)
        runs_on = known.of(unit, nodes)
        others = {machines[name] for name in legal} - runs_on
        if not runs_on or not others:
            continue
        text = f"pods whose images are not known to run on {', '.join(sorted(others))}"
        text += (
            ": a copy there may fail (--architectures any)"
            if anywhere
            else " stay off it (--architectures any lets them go there)"
        )
        note("assumption", text, f"{unit.namespace}/{unit.workload}")
        if not anywhere:
            name = f"{record.get('allowed', 'nodes')} of {', '.join(sorted(runs_on))}"
            if name not in sets:
                sets[name] = [n for n in legal if machines[n] in runs_on]
            record["allowed"] = name
    if sets:
        document["node_sets"] = sets


def _movable(
    document: Document, by_name: Mapping[tuple[str, str], Replica]
) -> Iterable[tuple[Document, Replica]]:
    """Yield the records of replicas that may move and say nothing of architectures."""
    for application in document["applications"]:
        space = application["name"].partition(" ")[0]
        for record in application["microservices"]:
            unit = by_name[space, record["name"]]
            if not (unit.stays or _chooses(unit.spec)):
                yield record, unit


# -- nodes of tables -------------------------------------------------------------------------------
#
# ``interfaces.csv`` has the network interfaces of machine types of AWS and the IPv4 addresses of
# each: facts that Amazon publishes (`zz_generated.vpclimits.go` of aws/karpenter-provider-aws,
# 2026-08-06; EC2 user guide, "IP addresses per network interface per instance type"). A card beside
# the default one does not count, as the VPC CNI does not use it.

_DISK = "ephemeral-storage"
_UNKNOWN = "taken to be no more than on any node there, nor than the kubelet's default"


@cache
def _pods_by_type() -> dict[str, int]:
    """Return the pods of machine types on EKS: an address for each, and two of the host's own."""
    results = {}
    with open(Path(__file__).with_name("interfaces.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            count, each = int(row["network_interfaces"]), int(row["ipv4_addresses_each"])
            for family in row["families"].split():
                for size in row["sizes"].split():
                    results[f"{family}.{size}"] = count * (each - 1) + 2
    return results


def pods_on_eks(kind: str) -> int | None:
    """Return how many pods a machine of a type of AWS takes: interfaces * (addresses - 1) + 2.

    None where the type is not known. Prefixes, custom networking and other network plug-ins change
    it, and so does ``maxPods``.

    Examples
    --------
    >>> pods_on_eks("t3.medium"), pods_on_eks("m5.large"), pods_on_eks("rack-7")
    (17, 29, None)
    """
    return _pods_by_type().get(kind)


def equipped(objects: ClusterObjects, nodes: Iterable[KubernetesNode]) -> list[KubernetesNode]:
    """Return the nodes of a table with all that they will have: labels, pods, other resources.

    What the table says counts. Else a node has what the least of its machine type in the cluster
    has. Of machine types that the cluster does not have, the disk is that of the node with the
    smallest one, and there is nothing else: where pods ask for it, that is noted.
    """
    there = [node for name, node in objects.nodes.items() if name not in objects.candidates]
    kin: dict[str, list[KubernetesNode]] = {}
    for node in there:
        if node.instance_type and node.kind == "Node":
            kin.setdefault(node.instance_type, []).append(node)
    drivers = drivers_in((node.meta.labels for node in there), objects.asked_of_volumes())
    disk = min((n.further[_DISK] for n in there if _DISK in n.further), default=None)
    wanted = {key for pod in objects.pods for key in pod.spec.further} - {"pods", _DISK}
    results = []
    for node in nodes:
        node = replace(node, meta=node.meta.labelled(completed(node.meta.labels, drivers)))
        alike = kin.get(node.instance_type or "", [])
        more = _least(alike) if alike else {} if disk is None else {_DISK: disk}
        new = {key: amount for key, amount in more.items() if key not in node.further}
        kind = node.instance_type or node.name
        if new:
            whose = "of their machine type" if alike else "with the smallest disk"
            text = f"nodes of a table have the further resources of nodes {whose} (resources)"
            note("assumption", text, f"{kind}: {', '.join(sorted(new))}"[:200])
        lacking = sorted(wanted - node.further.keys() - new.keys())
        if lacking and not alike:
            text = "nodes of a table are taken to have none of what pods ask for (resources)"
            note("assumption", text, f"{kind}: {', '.join(lacking)}"[:200])
        pods = {} if "pods" in node.further else {"pods": _pods(node, alike, there)}
        results.append(replace(node, further={**node.further, **new, **pods}))
    return results


def _pods(
    node: KubernetesNode, alike: Sequence[KubernetesNode], there: Sequence[KubernetesNode]
) -> int:
    """Return how many pods a node of a table takes that does not say; notes why.

    The least of a node of its type; else what EKS computes, unless a node there takes more than
    EKS would give it, so that the cluster has another network; else as few as any node there.
    """
    kind = node.instance_type or ""
    if alike:
        result = min(one.pods for one in alike)
        why = "the least of the nodes of their type"
    elif (known := pods_on_eks(kind)) is not None and not _has_other_network(there):
        result, why = known, "by the network interfaces of their type on EKS"
        if "karpenter.sh/nodepool" not in node.meta.labels:  # others stop at the kubelet's default
            result = min(result, DEFAULT_PODS)
    else:
        own = [one.pods for one in there if one.kind == "Node" and not one.virtual]
        result, why = min((DEFAULT_PODS, *own)), _UNKNOWN
    text = f"pods per machine (maxPods) of a table: {why}"
    note("assumption", text, f"{kind or node.name}: {result}")
    return result


def _has_other_network(there: Iterable[KubernetesNode]) -> bool:
    """Return whether a node takes more pods than its interfaces have addresses."""
    return any(
        (known := pods_on_eks(node.instance_type or "")) is not None and node.pods > known
        for node in there
    )


def _least(nodes: Iterable[KubernetesNode]) -> dict[str, int]:
    """Return what each of some nodes has at least, of each resource but pods."""
    first, *others = [node.further for node in nodes]
    return {
        key: min(amount, *(o.get(key, 0) for o in others)) if others else amount
        for key, amount in first.items()
        if key != "pods"
    }
