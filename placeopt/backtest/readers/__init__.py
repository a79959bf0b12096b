"""Traces from other formats; each module reads one.

A distribution adds a reader by the entry point group ``placeopt.trace_readers``: a module with
``reads(folder) -> bool`` and ``read(folder) -> ClusterTrace``.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import ClusterTrace
from placeopt.core.errors import DocumentError
from placeopt.core.spec import load

#: Our readers, in the order in which they are tried.
OWN = ("openb", "table", "prometheus")


def read(folder: Path, prices: Path | None = None) -> ClusterTrace:
    """Read a folder by the first reader that knows what is in it.

    Raises
    ------
    DocumentError
        No reader knows it, or what is in it is wrong.
    """
    modules: list[Any] = [load(f"placeopt.backtest.readers.{name}") for name in OWN]
    modules += [point.load() for point in entry_points(group="placeopt.trace_readers")]
    for module in modules:
        if module.reads(folder):
            result: ClusterTrace = module.read(folder)
            return result if prices is None else priced(result, prices)
    raise DocumentError(
        "is no folder that a reader knows",
        file=str(folder),
        remedy="give openb's two files, machines.csv and pods.csv, or Prometheus' *.json",
    )


def priced(trace: ClusterTrace, path: Path) -> ClusterTrace:
    """Return a trace with the prices of a CSV file: machine, usd_per_hour."""
    from placeopt.backtest.readers.table import number, rows

    prices = {row["machine"]: number(row, "usd_per_hour", path, k) for k, row in rows(path)}
    machines = [
        m.model_copy(update={"usd_per_hour": prices.get(m.name, m.usd_per_hour)})
        for m in trace.machines
    ]
    return trace.model_copy(update={"machines": tuple(machines)})
