"""What comes with placeopt, by name: instances, the best fronts known of them, and a cluster."""

from __future__ import annotations

import os
from pathlib import Path

from placeopt.core.files import AnyPath

#: In an installed package, and in a checkout.
_FOLDERS = (Path(__file__).parents[1] / "instances", Path(__file__).parents[2] / "instances")


def instances() -> dict[str, Path]:
    """Return the instance files that come with placeopt, by name.

    >>> sorted(instances())[:2]
    ['aws-10', 'aws-50']
    """
    return {file.stem: file for file in _files("*/*.json") if "." not in file.stem}


def best_known(name: str) -> Path | None:
    """Return the file of the best front known of a shipped instance, None where there is none."""
    file = instances().get(name)
    front = file and file.with_suffix(".front.json")
    return front if front is not None and front.exists() else None


def find(path: AnyPath) -> Path:
    """Return the file that a path or the name of a shipped instance stands for.

    A file of that path comes first. What is neither is returned as it is.
    """
    if Path(path).exists() or os.path.dirname(path):
        return Path(path)
    return instances().get(str(path), Path(path))


def find_cluster(file: AnyPath) -> AnyPath:
    """Return the dump of a cluster that a name stands for, such as ``shop``; as `find` does."""
    return _beside(file, "cluster.json")


def find_prices(file: AnyPath) -> AnyPath:
    """Return the prices of a cluster that comes with placeopt, by its name; as `find` does."""
    return _beside(file, "prices.csv")


def _beside(name: AnyPath, file: str) -> AnyPath:
    if os.path.exists(name) or os.path.dirname(name):
        return name
    found = {path.parent.name: path for path in _files(f"clusters/*/{file}")}
    return found.get(str(name), name)


def _files(pattern: str) -> list[Path]:
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return [] if folder is None else sorted(folder.glob(pattern))
