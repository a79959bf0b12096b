"""What a shell completes beside commands and options: names of methods, instances, documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def method_names(incomplete: str) -> list[str]:
    """Return the methods that begin so."""
    from placeopt.registry import methods

    return _beginning(incomplete, methods())


def instance_names(incomplete: str) -> list[str]:
    """Return the shipped instances, and the files and folders here, that begin so."""
    from placeopt.core.shipped import instances

    beside = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    here = beside.iterdir() if beside.is_dir() else ()
    files = [f"{file}/" if file.is_dir() else str(file) for file in here]
    return _beginning(incomplete, [*instances(), *sorted(files)])


def document_names(incomplete: str) -> list[str]:
    """Return the documents that begin so: problems, fronts, steps."""
    from placeopt.registry import specs

    return _beginning(incomplete, [*specs(), "front", "steps"])


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
