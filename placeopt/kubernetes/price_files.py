"""Files of prices, of five kinds.

===================  =============================================================================
file                 how it is known
===================  =============================================================================
on-demand table      JSON with ``usd_per_hour``: location -> size -> USD per hour
spot advisor         of AWS; JSON with ``spot_advisor``: savings over on-demand, classes of
                     interruption, sizes of the machines
OpenCost             CSV with ``MarketPriceHourly``
plain                CSV with ``location, size`` and any of the numbers of an offer
own                  JSON of the format ``placeopt/prices@1``
===================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated

from pydantic import model_validator

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.notes import Notes
from placeopt.kubernetes.prices import NUMBERS, PRICES, Offer, PriceBook, PriceOverlay, apply
from placeopt.kubernetes.reading import LABEL, STDIN, View, read, read_text
from placeopt.kubernetes.tables import CellError, Price, TableRow, Word, decimal, number, rows

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
        for view in read(path):
            _read_object(view, book, notes)
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
    first = read_text(path)[1].lstrip().split("\n", 1)[0]
    return "," in first and not first.startswith(("{", "[", "-", "#")) and ": " not in first


def _read_object(view: View, book: PriceBook, notes: Notes) -> None:
    result = view.value if isinstance(view.value, dict) else {}
    if "usd_per_hour" in result:
        for location, sizes in _each(view["usd_per_hour"]):
            for size, price in _each(sizes):
                book.put(location, size, {PRICES["on-demand"]: _number(price)}, notes)
    elif "spot_advisor" in result:
        _read_advisor(view, book, notes)
    elif result.get("format") == "placeopt/prices@1":
        _read_own(view, book, notes)
    else:
        raise view.fault("not a file of prices", _REMEDY)


def _each(view: View) -> Iterable[tuple[str, View]]:
    keys = view.mapping()
    if len(keys) > _MAX_OFFERS:
        raise view.fault(f"more than {_MAX_OFFERS:,} entries", "give a shorter table")
    for key in keys:
        _require_word(view[key], key, "name of a place or a machine")
        yield key, view[key]


def _require_word(view: View, text: str, what: str) -> None:
    if not text or not LABEL.fullmatch(text):
        raise view.fault(
            f"{text[:60]!a} is no {what}", "legal: letters, digits, -, _ and ., up to 63"
        )


def _number(view: View, maximum: float = 1e6) -> Decimal:
    if view.value is None:
        raise view.fault("no number", f"give one, 0 to {maximum:g}")
    return Decimal(repr(view.number(0.0, maximum=maximum)))


def _read_own(view: View, book: PriceBook, notes: Notes) -> None:
    for offer in view["offers"].items():
        location, size = (offer[key].text() for key in ("location", "size"))
        for key, name in (("location", location), ("size", size)):
            _require_word(offer[key], name, key)
        book.put(location, size, {key: _number(offer[key]) for key in NUMBERS if offer[key]}, notes)
    for name, price in _each(view["nodes"]):
        book.nodes[name] = _number(price)


def _read_advisor(view: View, book: PriceBook, notes: Notes) -> None:
    shares = _shares(view, notes)
    sizes = {
        size: {"cpu_cores": _number(entry["cores"]), "memory_gib": _number(entry["ram_gb"])}
        for size, entry in _each(view["instance_types"])
    }
    for location, systems in _each(view["spot_advisor"]):
        for size, entry in _each(systems["Linux"]):
            kind = entry["r"].whole(0, maximum=100)
            if kind not in shares:
                raise entry["r"].fault(
                    f"the range {kind} is not one of the file",
                    f"legal: {', '.join(map(str, shares))}",
                )
            book.put(
                location, size, {**sizes.get(size, {}), "spot_interruption": shares[kind]}, notes
            )
            book.savings[location, size] = _number(entry["s"], maximum=100)
    notes.add(
        "assumption",
        "spot prices: on demand less the savings of the advisor (Linux); interruption: "
        "the upper end of its class",
    )


def _shares(view: View, notes: Notes) -> dict[int, Decimal]:
    """Return class -> share of interruptions: ``5-10%`` is 0.10.

    The open class at the end is its start and 5 per cent more.
    """
    results = {}
    for entry in view["ranges"].items():
        label, index = entry["label"].text(), entry["index"].whole(0, maximum=100)
        value = decimal(label.strip("<>% ").rpartition("-")[2])
        if value is None or not 0 <= value <= 95:
            raise entry.fault(
                f"the range {label[:40]!a} cannot be read", "legal: such as <5%, 5-10%, >20%"
            )
        if label.startswith(">"):
            value += 5
            notes.add(
                "assumption",
                f"the class of interruption {label} has no upper end: {value} per cent",
            )
        results[index] = value / 100
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
    if "MarketPriceHourly" in read_text(path)[1].split("\n", 1)[0]:
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
