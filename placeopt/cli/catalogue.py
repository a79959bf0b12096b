"""``placeopt methods`` and ``schema``: what there is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from placeopt.cli.screen import console, emit, make_table
from placeopt.errors import UsageError, did_you_mean


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(epilog="Example: placeopt methods")(methods)
    app.command(epilog="Example: placeopt schema temporal --plan > plan.schema.json")(schema)


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods, the problems that each serves, and the extra that each needs."""
    from placeopt.problems import KINDS
    from placeopt.registry import METHODS

    if as_json:
        emit(
            json.dumps(
                [{k: v for k, v in asdict(m).items() if k != "entry"} for m in METHODS.values()],
                indent=1,
            )
        )
        return
    rows = [
        (
            m.name,
            "all" if len(m.problems) == len(KINDS) > 1 else ", ".join(m.problems),
            m.extra or "",
            m.summary,
        )
        for m in METHODS.values()
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
    from placeopt.problems import KINDS, kind_class

    if document == "front" and not plan:
        from placeopt.front_file import FrontDocument

        return FrontDocument
    if document == "steps" and not plan:
        from placeopt.kubernetes.export.steps import StepsDocument

        return StepsDocument
    if document not in KINDS:
        raise UsageError(
            f"unknown problem {document!r}; {did_you_mean(document, [*KINDS, 'front', 'steps'])}"
        )
    if not plan:
        return kind_class(document)
    import sys

    return sys.modules[kind_class(document).__module__].Plan
