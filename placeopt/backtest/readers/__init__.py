"""Traces from other formats; each module reads one.

A reader is a module with ``reads(folder) -> bool`` and ``read(folder) -> ClusterTrace``. A
distribution adds one by the entry point group ``placeopt.trace_readers``; a door has `traces`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import ClusterTrace, built
from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.spec import load
from placeopt.doors import doors

#: Our readers, in the order in which they are tried.
OWN = ("table", "prometheus")


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
    modules: list[Any] = [load(f"placeopt.backtest.readers.{name}") for name in OWN]
    modules += [point.load() for point in entry_points(group="placeopt.trace_readers")]
    for module in modules:
        yield partial(_read_by, module)
    yield from (door.load("traces") for door in doors() if door.traces)


def _read_by(module: Any, folder: Path) -> ClusterTrace | None:
    return module.read(folder) if module.reads(folder) else None


def priced(trace: ClusterTrace, path: Path) -> ClusterTrace:
    """Return a trace with the prices of a CSV file: machine, usd_per_hour.

    A price of ``m5.large`` is that of ``m5.large/zone``, too, where that has none of its own.

    Raises
    ------
    DocumentError
        The file cannot be read, or names a machine that the trace does not have.
    """
    from placeopt.backtest.readers.table import number, rows

    names = {name for m in trace.machines for name in (m.name, _kind(m.name))}
    prices = {}
    for line, row in rows(path):
        name = row.get("machine", "")
        if name not in names:
            raise DocumentError(
                f"machine {name!r} is not in the trace",
                file=str(path),
                path=f"line {line}",
                remedy=did_you_mean(name, names),
            )
        prices[name] = number(row, "usd_per_hour", path, line)
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
