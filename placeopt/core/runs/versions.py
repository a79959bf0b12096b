"""Installed versions, for the facts of runs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version


def versions(libraries: Sequence[str] = ()) -> dict[str, str]:
    """Return the installed version of each distribution, and of placeopt."""
    results = {}
    for name in ("placeopt", *libraries):
        try:
            results[name] = version(name)
        except PackageNotFoundError:
            results[name] = "not installed"
    return results
