"""What a shell completes beside commands and options: names, words, and keys before a value."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from placeopt.core.errors import PlaceoptError


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


def drawn_names(incomplete: str) -> list[str]:
    """Return what can be drawn that begins so: problems, traces."""
    from placeopt.doors import doors
    from placeopt.registry import specs

    return beginning(incomplete, [*specs(), *(word for d in doors() for word in d.generators)])


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


def document_names(incomplete: str) -> list[str]:
    """Return the documents that begin so: problems, fronts, steps."""
    from placeopt.doors import doors
    from placeopt.registry import specs

    schemas = (word for door in doors() for word in door.schemas)
    return beginning(incomplete, [*specs(), "front", *schemas])


def objective_names(incomplete: str) -> list[str]:
    """Return a list of objectives, its last one completed: of the instance, or of the front."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",") if comma else []
    names = (name for name in _objectives() if name not in taken)
    return [f"{before}{comma}{name}" for name in beginning(last, names)]


def objective_keys(incomplete: str) -> list[str]:
    """Return the objectives that begin so, each before its value."""
    return beginning(incomplete, (f"{name}=" for name in _objectives()))


def size_keys(incomplete: str) -> list[str]:
    """Return the sizes of random instances of the problem, each before its value."""
    from placeopt.core.problem import keyword_defaults
    from placeopt.core.spec import load
    from placeopt.doors import doors
    from placeopt.registry import problem_class, specs

    generators = {word: entry for door in doors() for word, entry in door.generators.items()}
    kind = next((word for word in _typed() if word in specs() or word in generators), None)
    if kind in generators:
        sizes = keyword_defaults(load(generators[kind]))
    else:
        sizes = {} if kind is None else problem_class(kind).sizes()
    return beginning(incomplete, (f"{name}=" for name in sizes))


def parameter_keys(incomplete: str) -> list[str]:
    """Return the parameters of the method, each before its value."""
    from placeopt import registry
    from placeopt.core.parameters import parameters

    typed = _typed()
    name = typed[typed.index("--method") + 1] if "--method" in typed[:-1] else "auto"
    results: dict[str, None] = {}
    with suppress(PlaceoptError):
        entry = registry.method(name)
        for kind in entry.problems:
            results |= {f"{one.name}=": None for one in parameters(entry.load(kind))}
    return beginning(incomplete, results)


def _objectives() -> list[str]:
    """Return the objectives of the first front or instance that was typed."""
    from placeopt import registry
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import names_of

    for word in _typed()[2:]:
        for read in (Front.read, registry.read):
            with suppress(PlaceoptError):
                return names_of(read(word).objectives)
    return []


def _typed() -> list[str]:
    """Return the words before the one that is being completed.

    The shell says them: a command whose last option has no value yet cannot be parsed.
    """
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        result = shlex.split(line)
    except ValueError:  # a quote is still open
        result = line.split()
    place = os.environ.get("COMP_CWORD", "")
    return result[: int(place)] if place.isdecimal() else result


def _files(incomplete: str) -> list[str]:
    """Return the files and folders beside what is being typed."""
    beside = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    here = beside.iterdir() if beside.is_dir() else ()
    return sorted(f"{file}/" if file.is_dir() else str(file) for file in here)


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin so."""
    return [name for name in names if name.startswith(incomplete)]
