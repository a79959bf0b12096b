"""Prices of machines: a book of offers, read from files of five kinds, adjusted by overlays.

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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import model_validator

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import read_text
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.tables import CellError, TableRow, decimal, number, rows
from placeopt.kubernetes.files import LABEL, STDIN, Item, read
from placeopt.kubernetes.names import lease_of
from placeopt.kubernetes.notes import Notes, note
from placeopt.kubernetes.objects import KubernetesNode
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
