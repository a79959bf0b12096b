"""``placeopt methods`` and ``schema``: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from placeopt.cli.screen import console, emit, make_table
from placeopt.core.errors import UsageError, did_you_mean


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(epilog="Example: placeopt methods")(methods)
    app.command(epilog="Example: placeopt schema temporal --plan > plan.schema.json")(schema)


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods, the problems that each serves, and the extra that each needs."""
    from placeopt import registry

    found = registry.methods().values()
    if as_json:
        keys = ("name", "problems", "summary", "extra")
        emit(json.dumps([{key: getattr(m, key) for key in keys} for m in found], indent=1))
        return
    rows = [
        (
            m.name,
            "all" if len(m.problems) == len(registry.specs()) > 1 else ", ".join(m.problems),
            m.extra or "",
            m.summary,
        )
        for m in found
    ]
    console(stderr=False).print(
        make_table(("method", "problems", "extra", "what it does"), rows, left=4)
    )


def schema(
    document: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM|front|steps",
            help="A problem, such as temporal; front or steps, for such files.",
        ),
    ],
    plan: Annotated[
        bool, typer.Option("--plan", help="The problem's plans instead of its instances.")
    ] = False,
) -> None:
    """Print the JSON Schema of an instance, of a plan, of a front file, or of exported steps."""
    described: dict[str, Any] = _class_of(document, plan).model_json_schema(by_alias=True)
    emit(
        json.dumps(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}, indent=1
        )
    )


def _class_of(document: str, plan: bool) -> Any:
    from placeopt.registry import spec_of, specs

    if document == "front" and not plan:
        from placeopt.core.front_file import FrontDocument

        return FrontDocument
    if document == "steps" and not plan:
        from placeopt.kubernetes.export.steps_document import StepsDocument

        return StepsDocument
    if document not in specs():
        raise UsageError(
            f"unknown problem {document!r}; {did_you_mean(document, [*specs(), 'front', 'steps'])}"
        )
    return spec_of(document).load("plan" if plan else "instance")
