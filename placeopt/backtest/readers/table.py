"""A trace in CSV files: machines.csv, nodes.csv, pods.csv; if there are, prices.csv, losses.csv,
rules.csv.

Heads are the fields of the document, such as ``name,cpu_millicores,memory_mib,usd_per_hour``; an
empty cell is a field that is absent; cells of lists hold words with bars between.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import (
    ClusterTrace,
    Loss,
    MachineType,
    PodRule,
    PriceChange,
    TraceNode,
    TracePod,
    built,
)
from placeopt.core.errors import DocumentError, did_you_mean

_FILES: dict[str, Any] = {
    "machines": MachineType,
    "nodes": TraceNode,
    "pods": TracePod,
    "prices": PriceChange,
    "losses": Loss,
    "rules": PodRule,
}
_LISTS = ("machines", "gpu_models", "zones", "ports", "keeps", "counts")
_WORDS = ("name", "machine", "node", "workload", "gpu_model", "zone", "kind", "per")
_FLAGS = {"apart", "fixed", "alone"}


def reads(folder: Path) -> bool:
    """Whether a folder holds what this reads."""
    return (folder / "pods.csv").is_file() and (folder / "machines.csv").is_file()


def read(folder: Path) -> ClusterTrace:
    """Read the folder; the trace ends with the last event."""
    document: dict[str, Any] = {"name": folder.resolve().name}
    last = 0.0
    for part, kind in _FILES.items():
        path = folder / f"{part}.csv"
        if not path.is_file():
            continue
        document[part] = [_record(row, kind, path, line) for line, row in rows(path)]
        for one in document[part]:
            times = [one[key] for key in ("from_s", "to_s", "at_s") if key in one]
            last = max([last, *times])
    document["seconds"] = last or 1.0
    return built(document, str(folder))


def rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the cells of each row of a CSV file with a head.

    Raises
    ------
    DocumentError
        It cannot be read.
    """
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            for row in reader:
                yield reader.line_num, {k: v for k, v in row.items() if k is not None and v}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DocumentError(
            f"cannot be read: {error}", file=str(path), remedy="give a CSV file with a head"
        ) from None


def number(row: dict[str, str], key: str, path: Path, line: int) -> float:
    """Return the number in a cell.

    Raises
    ------
    DocumentError
        There is none.
    """
    try:
        return float(row[key])
    except (KeyError, ValueError):
        raise DocumentError(
            f"{key} is {row.get(key, '')!r}",
            file=str(path),
            path=f"line {line}",
            remedy="give a number",
        ) from None


def _record(row: dict[str, str], kind: Any, path: Path, line: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, text in row.items():
        if key not in kind.model_fields:
            raise DocumentError(
                f"unknown column {key!r}",
                file=str(path),
                path="line 1",
                remedy=did_you_mean(key, kind.model_fields),
            )
        if key in _WORDS:
            result[key] = text
        elif key in _LISTS:
            result[key] = text.split("|")
        elif key in _FLAGS:
            result[key] = text.lower() in ("1", "true", "yes")
        else:
            value = number(row, key, path, line)
            result[key] = int(value) if value == int(value) else value
    return result
