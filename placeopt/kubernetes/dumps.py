"""Dumps of ``kubectl cluster-info dump``.

It prints lists of objects behind each other, then the logs of all containers, each between two
lines of its own; ``--output-directory`` makes a folder of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath

#: Files of a folder that are read, by the end of their names, and how many there may be.
_READ, _MAX_FILES = (".json", ".yaml", ".yml"), 20_000
_START = "==== START logs for container "
_LOG = re.compile(
    rf"^{_START}(?P<which>.*) ====\n.*?==== END logs for container (?P=which) ====$",
    re.DOTALL | re.MULTILINE,
)


def without_logs(text: str) -> str:
    """Return a dump of ``kubectl cluster-info dump`` without logs; its lines keep their numbers."""
    if _START not in text:
        return text
    return _LOG.sub(lambda log: "\n" * log[0].count("\n"), text)


def with_folders(paths: Iterable[AnyPath]) -> list[AnyPath]:
    """Return paths with the JSON and YAML files of a folder, at any depth, in its place.

    Raises
    ------
    DocumentError
        A folder has no such file, or too many.
    """
    return [file for path in paths for file in _files(path)]


def _files(path: AnyPath) -> Iterator[AnyPath]:
    if not Path(path).is_dir():
        yield path
        return
    results = sorted(file for file in Path(path).rglob("*") if file.suffix.lower() in _READ)
    if not results or len(results) > _MAX_FILES:
        problem = f"{len(results):,} files" if results else "no file"
        raise DocumentError(
            f"{problem} of {', '.join(_READ)} in this folder",
            file=str(path),
            remedy=f"give the folder of a cluster-info dump; legal: 1 to {_MAX_FILES:,} files",
        )
    yield from results
