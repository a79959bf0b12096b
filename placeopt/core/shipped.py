"""Instances that come with placeopt, by name, and the best fronts known of them."""

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
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    files = sorted(folder.glob("*/*.json")) if folder is not None else []
    return {file.stem: file for file in files if not file.stem.endswith(".front")}


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
