"""Traces from other formats: CSV here, others in modules that read one each.

A reader is a module with ``reads(folder) -> bool`` and ``read(folder) -> ClusterTrace``. A
distribution adds one by the entry point group ``placeopt.trace_readers``; a door has `traces`.

Tables are machines.csv, nodes.csv and pods.csv; if there are, prices.csv, losses.csv and rules.csv.
Heads are the fields of the document, such as ``name,cpu_millicores,memory_mib,usd_per_hour``; an
empty cell is a field that is absent; cells of lists hold words with bars between. Amounts may be
quantities of Kubernetes (``500m``, ``2Gi``). Times may be those of a clock
(``2026-01-05T10:00:00Z``): the first of them is second 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import create_model

from placeopt.backtest.readers import prometheus
from placeopt.backtest.trace import (
    LONGEST_S,
    ClusterTrace,
    Loss,
    MachineType,
    Place,
    PodRule,
    PriceChange,
    TraceNode,
    TracePod,
    built,
)
from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.files.tables import CellError, TableRow, cell, decimal, rows
from placeopt.core.spec import offered
from placeopt.doors import doors


def read(folder: Path, prices: Path | None = None) -> ClusterTrace:
    """Read a folder by the first reader that knows what is in it.

    Raises
    ------
    DocumentError
        No reader knows it, or what is in it is wrong.
    """
    for reader in _readers():
        if (result := reader(folder)) is not None:
            return result if prices is None else priced(result, prices)
    raise DocumentError(
        "is nothing that a reader knows",
        file=str(folder),
        remedy="give machines.csv and pods.csv, Prometheus' *.json, or dumps of kubectl get "
        "-o json taken at intervals",
    )


def _readers() -> Iterator[Callable[[Path], ClusterTrace | None]]:
    """Yield functions that return a trace, or None where they do not know what is there."""
    yield from_tables
    yield partial(_read_by, prometheus)
    for read in offered("placeopt.trace_readers").values():
        yield partial(_read_by, read())
    yield from (door.load("traces") for door in doors() if door.traces)


def _read_by(module: Any, folder: Path) -> ClusterTrace | None:
    return module.read(folder) if module.reads(folder) else None


# -- cells -----------------------------------------------------------------------------------------

_LISTS = ("machines", "gpu_models", "zones", "ports", "keeps", "counts")
_WORDS = ("name", "machine", "node", "workload", "revision", "gpu_model", "zone", "kind", "per")
_FLAGS = ("apart", "fixed", "alone")
_TIMES = ("from_s", "to_s", "at_s")
#: Units of memory, in MiB.
_MEMORY = {"Mi": 1, "Gi": 1024, "Ti": 1024**2}
_YES_NO = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class _Moment(float):
    """A time of a clock, in seconds since 1970."""


def _value(text: str, column: str) -> Any:
    """Return what a cell says, as the document has it."""
    if column in _WORDS:
        return text
    if column in _LISTS:
        return text.split("|")
    if column in _FLAGS:
        if text.lower() not in _YES_NO:
            raise CellError(f"{column} is {text!r}", "legal: yes or no")
        return _YES_NO[text.lower()]
    if column in _TIMES and "-" in text[1:]:
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            remedy = "give seconds, or a time such as 2026-01-05T10:00:00Z"
            raise CellError(f"{column} is {text!r}", remedy) from None
        return _Moment(told.replace(tzinfo=told.tzinfo or UTC).timestamp())
    return _number(text, column)


def _number(text: str, column: str) -> float:
    """Return a number, or an amount with its unit."""
    plain, times = text, 1
    if column.endswith("_millicores"):
        plain = text.removesuffix("m")
    elif column.endswith("_mib") and text[-2:] in _MEMORY:
        plain, times = text[:-2], _MEMORY[text[-2:]]
    if (amount := decimal(plain)) is None:
        raise CellError(f"{column} is {text!r}", "give a number")
    value = float(amount) * times
    return int(value) if value == int(value) else value


# -- tables ----------------------------------------------------------------------------------------


def _table(kind: Any) -> type[TableRow]:
    """Return the row whose columns are the fields of a record."""
    columns: dict[str, Any] = dict.fromkeys(kind.model_fields, (Annotated[Any, cell(_value)], None))
    return create_model(kind.__name__, __base__=TableRow, **columns)


_TABLES = {
    part: _table(kind)
    for part, kind in {
        "machines": MachineType,
        "nodes": TraceNode,
        "pods": TracePod,
        "prices": PriceChange,
        "losses": Loss,
        "rules": PodRule,
    }.items()
}
#: Lines of a table.
_MOST = 10**7


def from_tables(folder: Path) -> ClusterTrace | None:
    """Read a folder of tables, None where it is none; the trace ends with the last event.

    Raises
    ------
    DocumentError
        Names the file, the line, what is wrong and what is legal.
    """
    if not ((folder / "pods.csv").is_file() and (folder / "machines.csv").is_file()):
        return None
    document: dict[str, Any] = {"name": folder.resolve().name}
    places: dict[str, list[Place]] = {}
    for part, kind in _TABLES.items():
        path = folder / f"{part}.csv"
        if path.is_file():
            found = rows(path, kind, most=_MOST)
            if part in ("machines", "pods") and not found:
                raise DocumentError("has no rows", file=str(path), remedy="give at least one")
            document[part] = [row.model_dump(exclude_none=True) for row in found]
            places[part] = [row.where for row in found]
    records = [one for part in places for one in document[part]]
    _begin_at_zero(records, folder)
    ends = [one[key] for one in records for key in _TIMES if key in one]
    document["seconds"] = min(max(ends, default=0), LONGEST_S) or 1.0  # a line says what is longer
    return built(document, str(folder), places)


def _begin_at_zero(records: list[dict[str, Any]], folder: Path) -> None:
    """Count times of a clock from the first of them."""
    times = [(one, key) for one in records for key in _TIMES if key in one]
    told = [one[key] for one, key in times if isinstance(one[key], _Moment)]
    if not told:
        return
    if len(told) < len(times):
        raise DocumentError(
            "some times are those of a clock, others are seconds",
            file=str(folder),
            remedy="write all of them in one way: 2026-01-05T10:00:00Z, or seconds from the first",
        )
    for one, key in times:
        one[key] = one[key] - min(told)


class _Price(TableRow):
    """A line of prices."""

    machine: str
    usd_per_hour: Annotated[float, cell(_number)]


def priced(trace: ClusterTrace, path: Path) -> ClusterTrace:
    """Return a trace with the prices of a CSV file: machine, usd_per_hour.

    A price of ``m5.large`` is that of ``m5.large/zone``, too, where that has none of its own.

    Raises
    ------
    DocumentError
        The file cannot be read, or names a machine that the trace does not have.
    """
    names = {name for m in trace.machines for name in (m.name, _kind(m.name))}

    def use(row: _Price) -> None:
        if row.machine not in names:
            problem = f"machine {row.machine!r} is not in the trace"
            raise row.fault(problem, did_you_mean(row.machine, names))

    prices = {row.machine: row.usd_per_hour for row in rows(path, _Price, use)}
    machines = []
    for m in trace.machines:
        usd = prices.get(m.name, prices.get(_kind(m.name), m.usd_per_hour))
        machines.append({**m.model_dump(), "usd_per_hour": usd})
    document = {**trace.model_dump(exclude_defaults=True), "machines": machines}
    return built(document, str(path))


def _kind(name: str) -> str:
    return name.partition("/")[0]


def unpriced(trace: ClusterTrace) -> list[str]:
    """Return the machines without a price."""
    return [m.name for m in trace.machines if m.usd_per_hour == 0]
