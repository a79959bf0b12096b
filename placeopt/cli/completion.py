"""What a shell completes beside commands and options: names and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def words(*names: str) -> Callable[[str], list[str]]:
    """Return what completes an option that takes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return beginning(incomplete, names)

    return complete


def method_names(incomplete: str) -> list[str]:
    """Return the methods that begin so."""
    from placeopt.registry import methods

    return beginning(incomplete, methods())


def problem_names(incomplete: str) -> list[str]:
    """Return the problems that begin so."""
    from placeopt.registry import specs

    return beginning(incomplete, specs())


def instance_names(incomplete: str) -> list[str]:
    """Return the shipped instances, and the files and folders here, that begin so."""
    from placeopt.core.files.shipped import instances

    return beginning(incomplete, [*instances(), *_files(incomplete)])


def cluster_names(incomplete: str) -> list[str]:
    """Return the shipped clusters, and the files and folders here, that begin so."""
    from placeopt.core.files.shipped import clusters

    return beginning(incomplete, [*clusters(), *_files(incomplete)])


def study_names(incomplete: str) -> list[str]:
    """Return the shipped plan of a sweep, and the files and folders here, that begin so."""
    from placeopt.core.files.shipped import studies

    return beginning(incomplete, [*studies(), *_files(incomplete)])


def policy_names(incomplete: str) -> list[str]:
    """Return the shipped policies, and the files and folders here, that begin so."""
    from placeopt.rl.policy_file import bundled

    return beginning(incomplete, [*bundled(), *_files(incomplete)])


def target_names(incomplete: str) -> list[str]:
    """Return the problems and shipped instances, and the files and folders here."""
    return list(dict.fromkeys([*problem_names(incomplete), *instance_names(incomplete)]))


def _files(incomplete: str) -> list[str]:
    """Return the files and folders beside what is being typed."""
    beside = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    here = beside.iterdir() if beside.is_dir() else ()
    return sorted(f"{file}/" if file.is_dir() else str(file) for file in here)


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin so."""
    return [name for name in names if name.startswith(incomplete)]
