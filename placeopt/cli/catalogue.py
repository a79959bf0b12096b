"""``placeopt methods`` and ``schema``: what there is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.completion import document_names, method_names
from placeopt.cli.screen import AsJson, emit_json, emit_table, say
from placeopt.core.errors import require_known

if TYPE_CHECKING:
    from placeopt.core.parameters import Parameter
    from placeopt.registry import MethodEntry


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(epilog="Example: placeopt methods nsga2")(methods)
    app.command(epilog="Example: placeopt schema temporal --plan > plan.schema.json")(schema)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show the parameters of this method.",
            autocompletion=method_names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods, the problems that each serves, and the extra that each needs.

    With a name, list the method's parameters for --param, their defaults and their legal values.
    """
    from placeopt import registry

    found = registry.methods() if name is None else {name: registry.method(name)}
    if as_json:
        documents = [
            {
                "name": m.name,
                "problems": m.problems,
                "summary": m.summary,
                "extra": m.extra,
                "kept": m.kept,
                "parameters": [
                    {"problems": kinds, **asdict(parameter)}
                    for parameter, kinds in parameters_of(m)
                ],
            }
            for m in found.values()
        ]
        emit_json(documents if name is None else documents[0])
        return
    rows: list[tuple[str, ...]]
    if name is None:
        columns: tuple[str, ...] = ("method", "problems", "extra", "what it does")
        rows = [(m.name, _kinds(m.problems), m.extra or "", m.summary) for m in found.values()]
    else:
        say(f"{name}: {found[name].summary}")
        say(f"with --run-dir, a run that was killed keeps: {found[name].kept or 'nothing'}")
        columns = ("parameter", "problems", "default", "legal", "what it does")
        rows = [
            (p.name, _kinds(kinds), shown(p.default), p.legal or p.type, p.help)
            for p, kinds in parameters_of(found[name])
        ]
        if not rows:
            say("it has no parameters")
            return
    emit_table(columns, rows, left=len(columns))


def parameters_of(method: MethodEntry) -> list[tuple[Parameter, list[str]]]:
    """Return the parameters of a method, each with the problems for which it has them.

    Methods whose extra is not installed list none.
    """
    from placeopt.core.errors import MissingExtraError
    from placeopt.core.parameters import parameters

    found: dict[str, tuple[Parameter, list[str]]] = {}
    for kind in method.problems:
        with suppress(MissingExtraError):
            for one in parameters(method.load(kind)):
                found.setdefault(repr(one), (one, []))[1].append(kind)
    return list(found.values())


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
            help="A problem, such as temporal; front or steps, for such files.",
            autocompletion=document_names,
        ),
    ],
    plan: Annotated[
        bool, typer.Option("--plan", help="The problem's plans instead of its instances.")
    ] = False,
) -> None:
    """Print the JSON Schema of an instance, of a plan, of a front file, or of exported steps."""
    described: dict[str, Any] = class_of(document, plan).model_json_schema(by_alias=True)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    emit_json(dialect | described)


def class_of(document: str, plan: bool) -> Any:
    from placeopt.registry import spec_of, specs

    if document == "front" and not plan:
        from placeopt.core.front_file import FrontDocument

        return FrontDocument
    if document == "steps" and not plan:
        from placeopt.kubernetes.export.steps_document import StepsDocument

        return StepsDocument
    require_known("problem", document, [*specs(), "front", "steps"])
    return spec_of(document).load("plan" if plan else "instance")
