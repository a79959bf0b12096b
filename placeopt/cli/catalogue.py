"""``placeopt instances``, ``methods`` and ``schema``: what there is; ``placeopt warm-up``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.commands import SOLVE, add
from placeopt.cli.completion import method_names, problem_names
from placeopt.cli.screen import AsJson, Quiet, emit_json, emit_table, say
from placeopt.core.errors import OutputError, require_known
from placeopt.core.fronts.words import counted
from placeopt.core.spec import COMPARED, ROLES

if TYPE_CHECKING:
    from placeopt.core.parameters import Parameter
    from placeopt.registry import MethodEntry


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    add(app, instances, "placeopt instances", group=SOLVE)
    add(app, methods, "placeopt methods", "placeopt methods moead", group=SOLVE)
    add(app, warm_up, "placeopt warm-up temporal", group=SOLVE, name="warm-up")
    add(app, schema, "placeopt schema temporal --plan > plan.schema.json", group=SOLVE)


def instances(as_json: AsJson = False) -> None:
    """List the instances that come with placeopt.

    Every command takes such a name instead of a file.
    """
    from placeopt.core.files.documents import read_json
    from placeopt.core.files.shipped import best_known
    from placeopt.core.files.shipped import instances as shipped

    results: list[dict[str, Any]] = []
    for name, file in shipped().items():
        known = best_known(name)
        points = None if known is None else len(read_json(known)["points"])
        kind = read_json(file)["problem"]
        results.append({"name": name, "problem": kind, "best_known": points, "file": str(file)})
    if as_json:
        emit_json(results)
        return
    rows = [
        (one["name"], one["problem"], f"{one['best_known']} points" if one["best_known"] else "-")
        for one in results
    ]
    emit_table(("instance", "problem", "best known front"), rows, left=3)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Method whose parameters to show.",
            autocompletion=method_names,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also describe baselines and published methods.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the methods and their parameters.

    With a name it lists the parameters of that method, their defaults and their legal values.

    Baselines and published methods are for comparison: --all describes them, too.
    """
    from placeopt import registry

    entries = registry.methods() if name is None else {name: registry.method(name)}
    if as_json:
        documents = [
            {
                "name": m.name,
                "role": m.role,
                "problems": m.problems,
                "summary": m.summary,
                "extra": m.extra,
                "kept": m.kept,
                "parameters": [
                    {"problems": kinds, **asdict(parameter)}
                    for parameter, kinds in parameters_of(m)
                ],
            }
            for m in entries.values()
        ]
        emit_json(documents if name is None else documents[0])
        return
    if name is None:
        _list(entries, everything)
    else:
        _describe(entries[name])


def _list(entries: dict[str, MethodEntry], everything: bool) -> None:
    """Print a table of methods: those to use first, those to compare with last."""
    shown = sorted(entries.values(), key=lambda entry: ROLES.index(entry.role))
    rows = [
        (m.name, m.role, _kinds(m.problems), m.extra or "", m.summary)
        for m in shown
        if everything or m.role not in COMPARED
    ]
    columns = ("method", "role", "problems", "extra", "what it does")
    emit_table(columns, rows, left=len(columns), text=(2, 4))
    if not everything:
        for role in COMPARED:
            say(f"{role}: {', '.join(m.name for m in shown if m.role == role)}")
        say("--all also describes these.")


def _describe(entry: MethodEntry) -> None:
    """Print the parameters of one method."""
    say(f"{entry.name}: {entry.summary} ({entry.role})")
    say(f"With --run-dir, an interrupted run keeps: {entry.kept or 'nothing'}.")
    if not entry.installed:
        say(f"It needs optional packages: pip install 'placeopt[{entry.extra}]'.")
        say("Then this command lists its parameters.")
        return
    rows = [
        (p.name, _kinds(kinds), shown(p.default), p.legal or p.type, p.help)
        for p, kinds in parameters_of(entry)
    ]
    if not rows:
        say("It has no parameters.")
        return
    columns = ("parameter", "problems", "default", "legal", "what it does")
    emit_table(columns, rows, left=len(columns), text=(1, 3, 4))


def parameters_of(method: MethodEntry) -> list[tuple[Parameter, list[str]]]:
    """Return the parameters of a method, each with the problems for which it has them.

    Methods whose extra is not installed list none.
    """
    from placeopt.core.errors import MissingExtraError
    from placeopt.core.parameters import parameters

    results: dict[str, tuple[Parameter, list[str]]] = {}
    for kind in method.problems:
        with suppress(MissingExtraError):
            for one in parameters(method.load(kind)):
                results.setdefault(repr(one), (one, []))[1].append(kind)
    return list(results.values())


def _kinds(kinds: Sequence[str]) -> str:
    from placeopt.registry import specs

    return "all" if len(kinds) == len(specs()) > 1 else ", ".join(kinds)


def shown(default: Any) -> str:
    if default is None:
        return "none"
    return ",".join(map(str, default)) if isinstance(default, (tuple, list)) else str(default)


def schema(
    document: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM|front|steps",
            help="A problem, such as temporal, or a kind of file: front, steps.",
            autocompletion=problem_names,
        ),
    ],
    plan: Annotated[
        bool, typer.Option("--plan", help="Schema of the problem's plans, not of its instances.")
    ] = False,
) -> None:
    """Print the JSON Schema of a kind of file."""
    from placeopt.core.files.documents import adapter

    described: dict[str, Any] = adapter(class_of(document, plan)).json_schema(by_alias=True)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    emit_json(dialect | described)


def class_of(document: str, plan: bool) -> Any:
    from placeopt.core.spec import load
    from placeopt.doors import doors
    from placeopt.registry import spec_of, specs

    if document == "front" and not plan:
        from placeopt.core.fronts.file import FrontDocument

        return FrontDocument
    schemas = {word: entry for door in doors() for word, entry in door.schemas.items()}
    if document in schemas and not plan:
        return load(schemas[document])
    require_known("problem", document, [*specs(), "front", *schemas])
    return spec_of(document).load("plan" if plan else "instance")


# -- warm-up ---------------------------------------------------------------------------------------


def warm_up(
    problems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROBLEM]...", help="Problems (default: all).", autocompletion=problem_names
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes.")] = 1,
    any_cpu: Annotated[
        bool,
        typer.Option(
            "--any-cpu",
            help="Compile into the installed package, for any CPU of this kind: for images that "
            "run on other machines.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compile now what the first runs would compile.

    The code is cached. It takes about half a minute a problem.

    Every method of the problems answers a small instance.
    """
    if any_cpu:
        _compile_for_any_cpu()
    from placeopt.warm_up import Warmed
    from placeopt.warm_up import warm_up as run

    def tell(_k: int, warmed: Warmed) -> None:
        say(f"{warmed.kind}: {counted(len(warmed.methods), 'method')} in {warmed.seconds:.0f} s")

    result = run(problems or (), jobs, tell)
    rows = [(one.kind, ", ".join(one.methods)) for one in result]
    emit_table(("problem", "methods that are ready"), rows, left=2, text=(1,))


def _compile_for_any_cpu() -> None:
    """Tell numba, which nobody has imported yet, and workers: they inherit the environment.

    Raises
    ------
    OutputError
        The package cannot be written to.
    """
    from placeopt import __file__ as package

    folder = Path(package).parent / "_compiled"
    try:
        folder.mkdir(exist_ok=True)
        (folder / "try").touch()
        (folder / "try").unlink()
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot write: {error.strerror}; run it as whoever installed placeopt"
        ) from None
    os.environ |= {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "PLACEOPT_FOR_ANY_CPU": "1",
    }
