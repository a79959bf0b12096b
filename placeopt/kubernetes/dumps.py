"""Dumps of other tools: ``kubectl cluster-info dump`` and exports of kube-scheduler-simulator.

``kubectl cluster-info dump`` prints lists of objects behind each other, then the logs of all
containers, each between two lines of its own; ``--output-directory`` makes a folder of files. The
simulator exports one object, whose fields are lists of objects that do not say their kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath

#: Files of a folder that are read, by the end of their names, and how many there may be.
_READ, _MAX_FILES = (".json", ".yaml", ".yml"), 20_000
#: Field of an export of kube-scheduler-simulator -> kind of the objects in its list.
_EXPORTED = {
    "pods": "Pod",
    "nodes": "Node",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "priorityClasses": "PriorityClass",
    "namespaces": "Namespace",
}
#: Other fields of an export: what the scheduler is told, not what there is.
_PASSED_OVER = {"schedulerConfig"}
_START = "==== START logs for container "
_LOG = re.compile(
    rf"^{_START}(?P<which>.*) ====\n.*?==== END logs for container (?P=which) ====$",
    re.DOTALL | re.MULTILINE,
)


def exported(value: Any) -> dict[str, str]:
    """Return field -> kind of the lists of an export of kube-scheduler-simulator.

    It is empty for anything else.

    Examples
    --------
    >>> exported({"pods": [], "nodes": [], "schedulerConfig": {}})
    {'pods': 'Pod', 'nodes': 'Node'}
    >>> exported({"kind": "List", "items": []})
    {}
    """
    if not isinstance(value, dict) or "kind" in value or not {"pods", "nodes"} & value.keys():
        return {}
    known = all(
        key in _PASSED_OVER or (key in _EXPORTED and (part is None or isinstance(part, list)))
        for key, part in value.items()
    )
    return {key: kind for key, kind in _EXPORTED.items() if key in value} if known else {}


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
