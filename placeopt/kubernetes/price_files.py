"""Files of prices, of six kinds.

===================  =============================================================================
file                 how it is known
===================  =============================================================================
on-demand table      JSON with ``usd_per_hour``: location -> size -> USD per hour
spot advisor         of AWS; JSON with ``spot_advisor``: savings over on-demand, classes of
                     interruption, sizes of the machines
OpenCost             CSV with ``MarketPriceHourly``
plain                CSV with ``location, size`` and any of the numbers of an offer
own                  JSON of the format ``placeopt/prices@1``
NodeOverlay          objects of Karpenter: the one of the largest weight counts
===================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes.notes import Notes
from placeopt.kubernetes.prices import NUMBERS, PRICES, PriceBook, PriceOverlay, amount, apply
from placeopt.kubernetes.reading import LABEL, STDIN, View, read, read_text
from placeopt.kubernetes.tables import TableRow, decimal, read_rows

_OPENCOST = ("InstanceID", "AssetClass", "MarketPriceHourly")
_OPENCOST_MORE = (
    "EndTimestamp",
    "EndTimeStamp",
    "Region",
    "InstanceIDField",
    "InstanceType",
    "Version",
)
_TYPE_KEYS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_MAX_OFFERS = 200_000
_REMEDY = (
    "legal: an on-demand table, the spot advisor of AWS, CSV of OpenCost or with location,size, "
    "or NodeOverlays"
)


def read_prices(
    paths: Iterable[AnyPath],
    notes: Notes,
    overlays: Sequence[PriceOverlay] = (),
    *,
    system: str = "Linux",
) -> PriceBook:
    """Return the book that files describe together, after their overlays and `overlays`.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    book, theirs = PriceBook(), list[tuple[float, str, PriceOverlay]]()
    for path in paths:
        if str(path) != STDIN and _is_table(path):
            _read_csv(path, book, notes)
            continue
        for view in read(path):
            _read_object(view, book, theirs, notes, system)
    book.settle(notes)
    if not book.offers and not book.nodes:
        raise DocumentError(
            "no prices", file=", ".join(map(str, paths)), path="line 1", remedy=_REMEDY
        )
    apply(book, _winning(theirs), notes)
    apply(book, overlays, notes)
    return book


def _is_table(path: AnyPath) -> bool:
    """Return whether a file is CSV: by its name, else by the look of its first line."""
    if str(path).lower().endswith((".json", ".yaml", ".yml")):
        return False
    first = read_text(path)[1].lstrip().split("\n", 1)[0]
    return "," in first and not first.startswith(("{", "[", "-", "#")) and ": " not in first


def _read_object(
    view: View,
    book: PriceBook,
    overlays: list[tuple[float, str, PriceOverlay]],
    notes: Notes,
    system: str,
) -> None:
    result = view.value if isinstance(view.value, dict) else {}
    if "usd_per_hour" in result:
        for location, sizes in _each(view["usd_per_hour"]):
            for size, price in _each(sizes):
                book.put(location, size, {PRICES["on-demand"]: _number(price)}, notes)
    elif "spot_advisor" in result:
        _read_advisor(view, book, notes, system)
    elif result.get("format") == "placeopt/prices@1":
        _read_own(view, book, notes)
    elif result.get("kind") == "NodeOverlay":
        overlays += _node_overlay(view, notes)
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


def _read_advisor(view: View, book: PriceBook, notes: Notes, system: str) -> None:
    shares = _shares(view, notes)
    sizes = {
        size: {"cpu_cores": _number(entry["cores"]), "memory_gib": _number(entry["ram_gb"])}
        for size, entry in _each(view["instance_types"])
    }
    for location, systems in _each(view["spot_advisor"]):
        for size, entry in _each(systems[system]):
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
        f"spot prices: on demand less the savings of the advisor ({system}); interruption: "
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


def _read_csv(path: AnyPath, book: PriceBook, notes: Notes) -> None:
    header = read_text(path)[1].split("\n", 1)[0]
    if "MarketPriceHourly" in header:
        read_rows(path, _OPENCOST, _OPENCOST_MORE, lambda row: _opencost(row, book, notes))
    else:
        read_rows(path, ("location", "size"), NUMBERS, lambda row: _offer(row, book, notes))


def _offer(row: TableRow, book: PriceBook, notes: Notes) -> None:
    numbers = {
        key: value
        for key in NUMBERS
        if (value := row.number(key, maximum="1" if key == "spot_interruption" else "1e6"))
        is not None
    }
    if not numbers.keys() - {"spot_interruption"}:
        raise row.fault("neither a price nor a size", f"fill in one of {', '.join(NUMBERS)}")
    book.put(row.word("location"), row.word("size"), numbers, notes)


def _opencost(row: TableRow, book: PriceBook, notes: Notes) -> None:
    price, asset = row.number("MarketPriceHourly", maximum="1e6"), row.cells["AssetClass"].lower()
    by = row.cells.get("InstanceIDField", "")
    if asset != "node":
        notes.add("ignored", f"OpenCost: prices of the class {asset[:20]!a}", f"line {row.line}")
        return
    if price is None:
        raise row.fault("MarketPriceHourly is empty", "fill it in")
    kind = row.cells.get("InstanceType") or (
        row.cells["InstanceID"] if by.removeprefix("metadata.labels.") in _TYPE_KEYS else ""
    )
    if by == "metadata.name":
        book.nodes[row.cells["InstanceID"]] = price
    elif kind:
        numbers = {PRICES["on-demand"]: price}
        book.put(row.word("Region"), row.word("InstanceType", kind), numbers, notes)
    else:
        notes.add(
            "ignored",
            "OpenCost: prices of nodes by other fields than metadata.name and the instance type",
            f"line {row.line}",
        )


# -- overlays of Karpenter -------------------------------------------------------------------------

_FIELDS: dict[str, Callable[[str, str, str], str]] = {
    "node.kubernetes.io/instance-type": lambda location, size, pricing: size,
    "topology.kubernetes.io/region": lambda location, size, pricing: location,
    "karpenter.sh/capacity-type": lambda location, size, pricing: pricing,
    "karpenter.k8s.aws/instance-family": lambda location, size, pricing: size.partition(".")[0],
    "karpenter.k8s.aws/instance-size": lambda location, size, pricing: size.partition(".")[2],
}


def _node_overlay(view: View, notes: Notes) -> list[tuple[float, str, PriceOverlay]]:
    spec, name = view["spec"], view["metadata"]["name"].name("?")
    tests: list[tuple[Callable[[str, str, str], str], str, set[str]]] = []
    for term in spec["requirements"].items():
        key, operator = term["key"].text(), term["operator"].text()
        if key not in _FIELDS or operator not in ("In", "NotIn"):
            raise term.fault(
                f"{key[:60]!a} {operator[:20]!a} is not read",
                f"legal: In or NotIn of {', '.join(_FIELDS)}",
            )
        tests.append((_FIELDS[key], operator, {v.text() for v in term["values"].items()}))
    change = spec["price"] or spec["priceAdjustment"]
    if not change:
        notes.add("ignored", "NodeOverlays that change no price", name)
        return []
    result = amount(str(change.value))
    if result is None or (result[0] == "set") != bool(spec["price"]):
        raise change.fault(
            f"{str(change.value)[:40]!a} is no change of a price",
            "legal: price 0.2, priceAdjustment +10% or -0.05",
        )

    def matches(location: str, size: str, pricing: str) -> bool:
        return all(
            (get(location, size, pricing) in values) == (operator == "In")
            for get, operator, values in tests
        )

    return [(spec["weight"].number(0.0, maximum=10_000), name, PriceOverlay(matches, *result))]


def _winning(overlays: list[tuple[float, str, PriceOverlay]]) -> list[PriceOverlay]:
    """Return overlays of which at most one matches an offer.

    It is that of the largest weight, then the first by name.
    """
    ranked = [o for _, _, o in sorted(overlays, key=lambda entry: (-entry[0], entry[1]))]

    def only(k: int) -> Callable[[str, str, str], bool]:
        return lambda *place: (
            ranked[k].matches(*place) and not any(o.matches(*place) for o in ranked[:k])
        )

    return [PriceOverlay(only(k), o.kind, o.amount) for k, o in enumerate(ranked)]
