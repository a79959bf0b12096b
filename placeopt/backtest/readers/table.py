"""A trace in CSV files: machines.csv, nodes.csv, pods.csv; if there are, prices.csv, losses.csv,
rules.csv.

Heads are the fields of the document, such as ``name,cpu_millicores,memory_mib,usd_per_hour``; an
empty cell is a field that is absent; cells of lists hold words with bars between. Amounts may be
quantities of Kubernetes (``500m``, ``2Gi``). Times may be those of a clock
(``2026-01-05T10:00:00Z``): the first of them is second 0.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from placeopt.backtest.trace import (
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

_FILES: dict[str, Any] = {
    "machines": MachineType,
    "nodes": TraceNode,
    "pods": TracePod,
    "prices": PriceChange,
    "losses": Loss,
    "rules": PodRule,
}
_LISTS = ("machines", "gpu_models", "zones", "ports", "keeps", "counts")
_WORDS = ("name", "machine", "node", "workload", "revision", "gpu_model", "zone", "kind", "per")
_FLAGS = ("apart", "fixed", "alone")
_TIMES = ("from_s", "to_s", "at_s")
#: Units of memory, in MiB.
_MEMORY = {"Mi": 1, "Gi": 1024, "Ti": 1024**2}
_YES_NO = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def reads(folder: Path) -> bool:
    """Whether a folder holds what this reads."""
    return (folder / "pods.csv").is_file() and (folder / "machines.csv").is_file()


def read(folder: Path) -> ClusterTrace:
    """Read the folder; the trace ends with the last event."""
    document: dict[str, Any] = {"name": folder.resolve().name}
    places: dict[str, list[Place]] = {}
    for part, kind in _FILES.items():
        path = folder / f"{part}.csv"
        if not path.is_file():
            continue
        document[part], places[part] = [], []
        for line, row in rows(path):
            document[part].append(_record(row, kind, path, line))
            places[part].append((str(path), line))
    records = [one for part in places for one in document[part]]
    _begin_at_zero(records, folder)
    document["seconds"] = max([one[key] for one in records for key in _TIMES if key in one] + [0])
    document["seconds"] = document["seconds"] or 1.0
    return built(document, str(folder), places)


class _Moment(float):
    """A time of a clock, in seconds since 1970."""


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
                if None in row:
                    raise DocumentError(
                        f"{len(row[None])} more cells than the head",
                        file=str(path),
                        path=f"line {reader.line_num}",
                        remedy="give a cell for each column; put text with commas in quotes",
                    )
                yield reader.line_num, {k: v for k, v in row.items() if v}
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
        value = float(row[key])
    except (KeyError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(row, key, path, line, "give a number")
    return value


def _wrong(row: dict[str, str], key: str, path: Path, line: int, remedy: str) -> DocumentError:
    problem = f"{key} is {row.get(key, '')!r}"
    return DocumentError(problem, file=str(path), path=f"line {line}", remedy=remedy)


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
            if text.lower() not in _YES_NO:
                raise _wrong(row, key, path, line, "legal: yes or no")
            result[key] = _YES_NO[text.lower()]
        else:
            value = _amount(row, key, path, line)
            result[key] = int(value) if value == int(value) and type(value) is float else value
    return result


def _amount(row: dict[str, str], key: str, path: Path, line: int) -> float:
    """Return the number, the quantity or the time in a cell."""
    text = row[key]
    if key.endswith("_millicores") and text.endswith("m"):
        return number({key: text[:-1]}, key, path, line)
    if key.endswith("_mib") and text[-2:] in _MEMORY:
        return number({key: text[:-2]}, key, path, line) * _MEMORY[text[-2:]]
    if key in _TIMES and "-" in text[1:]:
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            remedy = "give seconds, or a time such as 2026-01-05T10:00:00Z"
            raise _wrong(row, key, path, line, remedy) from None
        zone = told.tzinfo or UTC
        return _Moment(told.replace(tzinfo=zone).timestamp())
    return number(row, key, path, line)
