"""What comes with placeopt, by name: instances, the best fronts known of them, and a cluster."""

from __future__ import annotations

import os
from pathlib import Path

from placeopt.core.files.paths import AnyPath, checked_path

#: In an installed package, and in a checkout.
_FOLDERS = tuple(Path(__file__).parents[up] / "instances" for up in (2, 3))


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
    return Path(path) if _is_path(path) else instances().get(str(path), Path(path))


def clusters() -> dict[str, Path]:
    """Return the dumps of clusters that come with placeopt, by name.

    >>> list(clusters())
    ['shop']
    """
    return {file.parent.name: file for file in _files("clusters/*/cluster.json")}


def studies() -> dict[str, Path]:
    """Return the plans of sweeps that come with placeopt, by name."""
    return {file.stem: file for file in _files("*.toml")}


def find_cluster(path: AnyPath) -> AnyPath:
    """Return the dump that a path or the name of a shipped cluster stands for, as `find` does."""
    return path if _is_path(path) else clusters().get(str(path), path)


def find_prices(path: AnyPath) -> AnyPath:
    """Return the prices that a path or the name of a shipped cluster stands for, as `find` does."""
    dump = None if _is_path(path) else clusters().get(str(path))
    return path if dump is None else dump.with_name("prices.csv")


def find_study(path: AnyPath) -> AnyPath:
    """Return the plan that a path or the name of a shipped one stands for, as `find` does."""
    return path if _is_path(path) else studies().get(str(path), path)


def _is_path(path: AnyPath) -> bool:
    text = checked_path(path)
    return os.path.exists(text) or bool(os.path.dirname(text))


def _files(pattern: str) -> list[Path]:
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return [] if folder is None else sorted(folder.glob(pattern))
