"""Dumps of one cluster, taken at intervals into a folder: which files are of which moment.

The time of a dump is that in the name of its file, or of the folder that it lies in:
2026-11-01T1000Z, 20261101-100000, or seconds since 1970. Without an offset it is UTC.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from placeopt.core.errors import DocumentError
from placeopt.kubernetes import manifests
from placeopt.kubernetes.files import Item, Place, with_folders
from placeopt.kubernetes.names import DUMP

_IN_NAME = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T_. -]?(\d\d)[:_.-]?(\d\d)(?:[:_.-]?(\d\d))?(?:\.\d+)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?(?!\d)"
)
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?!\d)")
_STATED = re.compile(
    rb'(?:lastHeartbeatTime|creationTimestamp|renewTime|startedAt|finishedAt|startTime)"?: *"?'
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"
)
#: Seconds that clocks of machines may differ.
_SLACK = 60.0


class Moment(NamedTuple):
    """Dumps that were taken at one time: s since 1970, and the documents of each file."""

    at: float
    files: list[tuple[str, list[Item]]]


def moments(folder: Path) -> Iterator[Moment]:
    """Yield the moments of a folder, one after another: only one is in memory.

    Raises
    ------
    DocumentError
        There is one moment alone, a name has no time, or a dump is later than its name says.
    """
    files: dict[float, list[Path]] = defaultdict(list)
    for file in map(Path, with_folders([folder])):
        at = _named(file.relative_to(folder).parts)
        if at is None:
            raise DocumentError(
                "has no time in its name",
                file=str(file),
                remedy="name it by its time, such as 2026-11-01T10:00:00Z.json, or take it away",
            )
        files[at].append(file)
    if len(files) < 2:
        raise DocumentError(
            "has dumps of one moment only, which tell of no time",
            file=str(folder),
            remedy="take one every ten minutes, with its time as name: "
            f'{DUMP} > "$(date -u +%FT%TZ).json"',
        )
    for moment in sorted(files):
        for file in files[moment]:
            _require_earlier(file, moment)
        yield Moment(moment, manifests.read_documents(files[moment]))


def has_several(folder: Path) -> bool:
    """Whether a folder has dumps whose names say several times."""
    files = (f for f in folder.glob("*.*") if f.suffix in (".json", ".yaml", ".yml"))
    return len({_named([file.name]) for file in files} - {None}) > 1


def _named(parts: Iterable[str]) -> float | None:
    for part in reversed(list(parts)):
        if found := _IN_NAME.search(part):
            *numbers, sign, hours, minutes = found.groups(default="0")
            year, month, day, hour, minute, second = map(int, numbers)
            offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
            try:
                said = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
                return (said - offset).timestamp()
            except ValueError:
                continue
        if seconds := _EPOCH.search(part):
            return float(seconds[0])
    return None


def latest_stated(places: Iterable[Place]) -> str:
    """Return the latest time that files state, as Kubernetes writes it; empty for none."""
    sources = {id(place.source): place.source for place in places}.values()
    found = max((_latest(source.raw()) for source in sources), default="")
    return found + "Z" * bool(found)


def _latest(raw: bytes) -> str:
    return max((said[1] for said in _STATED.finditer(raw)), default=b"").decode()


def seconds_of(text: str) -> float:
    """Return a time of Kubernetes, such as 2026-11-01T10:00:00Z, in s since 1970."""
    return datetime.fromisoformat(text[:19] + "+00:00").timestamp()


def _require_earlier(file: Path, at: float) -> None:
    """Raise where a dump states a time after that of its name."""
    raw = file.read_bytes()
    latest = _latest(raw)
    if latest and seconds_of(latest) > at + _SLACK:
        line = raw.count(b"\n", 0, raw.index(latest.encode())) + 1
        raise DocumentError(
            f"states {latest}Z, after the time of its name: the clock goes back",
            file=str(file),
            path=f"line {line}",
            remedy="name dumps by their time in UTC, as date -u +%FT%TZ prints it",
        )
