"""The CSV files in which the CNSM 2024 paper publishes its instance, as a temporal document.

requests
    Columns ``cpu, ram, duration, location, replicas`` and, if wanted, ``name`` (else r1, r2, ...).
prices
    Columns ``DataCenter, Instance, On-Demand, Reserved, Spot, vCPU, RAM, InterruptFrequency``.
    Prices are USD per hour, an empty one is not offered; frequencies are per cent.
latency
    ``DataCenter`` and one column per destination, one line per origin; ms.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.files.documents import Document, read_text
from placeopt.core.files.paths import AnyPath

REQUEST_COLUMNS = ("cpu", "ram", "duration", "location", "replicas")
PRICE_COLUMNS = (
    "DataCenter",
    "Instance",
    "On-Demand",
    "Reserved",
    "Spot",
    "vCPU",
    "RAM",
    "InterruptFrequency",
)


def read(
    requests: AnyPath,
    prices: AnyPath,
    latency: AnyPath,
    *,
    name: str = "cnsm",
    horizon_slots: int = 100,
    slot_hours: float = 1.0,
) -> Document:
    """Return the instance document that three CSV files describe.

    Raises
    ------
    DocumentError
        Names the file and the line, the value and what is legal.
    """
    latencies = _latencies(latency)
    places = dict.fromkeys(d for row in latencies.values() for d in row)
    return {
        "problem": "temporal",
        "name": name,
        "horizon_slots": horizon_slots,
        "slot_hours": slot_hours,
        "latency_ms": latencies,
        "offers": _offers(prices, places),
        "requests": _requests(requests, latencies),
    }


@dataclass(frozen=True)
class _Row:
    """One line of a CSV file, by column."""

    file: str
    line: int
    cells: dict[str, str]

    def fault(self, problem: str, remedy: str) -> DocumentError:
        return DocumentError(problem, file=self.file, path=f"line {self.line}", remedy=remedy)

    def text(self, column: str) -> str:
        if not self.cells[column]:
            raise self.fault(f"{column} is empty", "fill it in")
        return self.cells[column]

    def place(self, column: str, known: Iterable[str]) -> str:
        place = self.text(column)
        if place not in known:
            raise self.fault(
                f"unknown location {place!r}",
                "the latency file names the locations; " + did_you_mean(place, known),
            )
        return place

    def number(self, column: str, *, high: float = math.inf) -> float:
        value = self._parsed(column, float, "a number")
        if not 0 <= value <= high or math.isinf(value):
            limit = "0 or more" if high == math.inf else f"0 to {high:g}"
            raise self.fault(f"{column} is {self.cells[column]}", f"legal: a number, {limit}")
        return value

    def positive(self, column: str) -> float:
        value = self.number(column)
        if value == 0:
            raise self.fault(f"{column} is {self.cells[column]}", "legal: a number above 0")
        return value

    def count(self, column: str) -> int:
        value = self._parsed(column, int, "a whole number")
        if value < 1:
            raise self.fault(f"{column} is {value}", "legal: a whole number, 1 or more")
        return value

    def _parsed(self, column: str, kind: Callable[[str], Any], what: str) -> Any:
        try:
            return kind(self.text(column))
        except ValueError:
            raise self.fault(f"{column} is {self.cells[column][:60]!r}", f"legal: {what}") from None


def _rows(path: AnyPath, columns: Iterable[str], optional: Iterable[str] | None = ()) -> list[_Row]:
    """Read a CSV file with a header; `optional` None lets it have any other columns."""
    file, text = str(path), read_text(path, "CSV")
    try:
        lines = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise DocumentError(
            f"not CSV: {error}",
            file=file,
            remedy="separate cells by commas, quote those that contain one",
        ) from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    _check_header(_Row(file, 1, {}), header, list(columns), optional)
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise _Row(file, number, {}).fault(
                f"{len(cells)} cells", f"give {len(header)}, one per column of the header"
            )
        rows.append(
            _Row(file, number, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        )
    if not rows:
        raise DocumentError("no rows below the header", file=file, remedy="give at least one")
    return rows


def _check_header(
    row: _Row, header: list[str], columns: list[str], optional: Iterable[str] | None
) -> None:
    for column in columns:
        if column not in header:
            raise row.fault(
                f"no column {column!r}",
                f"the header has: {', '.join(header)[:200] or 'nothing'}",
            )
    for column in header:
        if header.count(column) > 1:
            raise row.fault(f"column {column!r} stands twice", "keep one of the two")
        if optional is not None and column not in (*columns, *optional):
            raise row.fault(
                f"unknown column {column!r}", did_you_mean(column, (*columns, *optional))
            )


def _unique(rows: Iterable[tuple[Any, _Row]], what: str) -> None:
    """Raise where a key stands on two lines."""
    seen: dict[Any, int] = {}
    for key, row in rows:
        if key in seen:
            shown = key if isinstance(key, str) else " ".join(key)
            raise row.fault(
                f"{what} {shown!r} stands on line {seen[key]} already", "keep one of the two"
            )
        seen[key] = row.line


def _latencies(path: AnyPath) -> dict[str, dict[str, float]]:
    rows = _rows(path, ("DataCenter",), optional=None)
    _unique(((row.text("DataCenter"), row) for row in rows), "origin")
    return {
        row.text("DataCenter"): {
            place: row.number(place) for place in row.cells if place != "DataCenter"
        }
        for row in rows
    }


def _offers(path: AnyPath, places: Iterable[str]) -> list[Document]:
    rows = _rows(path, PRICE_COLUMNS)
    _unique((((row.text("DataCenter"), row.text("Instance")), row) for row in rows), "offer")
    return [_offer(row, places) for row in rows]


def _offer(row: _Row, places: Iterable[str]) -> Document:
    offer: Document = {
        "location": row.place("DataCenter", places),
        "size": row.text("Instance"),
        "cpu_cores": row.positive("vCPU"),
        "memory_gib": row.positive("RAM"),
    }
    for field, column in (("on_demand", "On-Demand"), ("reserved", "Reserved"), ("spot", "Spot")):
        if row.cells[column]:
            offer[f"{field}_usd_per_hour"] = row.number(column)
    if not {"on_demand_usd_per_hour", "reserved_usd_per_hour", "spot_usd_per_hour"} & offer.keys():
        raise row.fault("the offer has no price", "fill in On-Demand, Reserved or Spot")
    if row.cells["Spot"] or row.cells["InterruptFrequency"]:
        row.number("InterruptFrequency", high=100)
        # 15 % becomes 0.15 exactly.
        offer["spot_interruption"] = float(Decimal(row.cells["InterruptFrequency"]) / 100)
    return offer


def _requests(path: AnyPath, origins: Iterable[str]) -> list[Document]:
    rows = _rows(path, REQUEST_COLUMNS, optional=("name",))
    requests = [
        {
            "name": row.text("name") if "name" in row.cells else f"r{k}",
            "cpu_cores": row.positive("cpu"),
            "memory_gib": row.positive("ram"),
            "duration_slots": row.count("duration"),
            "replicas": row.count("replicas"),
            "origin": row.place("location", origins),
        }
        for k, row in enumerate(rows, start=1)
    ]
    _unique(zip((r["name"] for r in requests), rows, strict=True), "request")
    return requests
