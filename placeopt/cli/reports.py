"""``placeopt report``: a page for people who did not run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.fronts import Cdn, OneFront, front_and_instance, index_of
from placeopt.cli.screen import emit
from placeopt.core.files import require_outputs


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(
        epilog="Example: placeopt report front.json --instance instances/temporal/aws-50.json "
        "--point knee -o report.html"
    )(report)


def report(
    front: OneFront,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="HTML file to write; beside the front by default."),
    ] = None,
    instance: Annotated[
        Path | None,
        typer.Option(help="The front's instance file; looked for beside the front by default."),
    ] = None,
    point: Annotated[str, typer.Option(metavar="K|knee", help="The plan to show.")] = "knee",
    cdn: Cdn = False,
) -> None:
    """Write one self-contained HTML page about a front.

    It says what was asked, shows the front and one plan, what is proven, and how it was made.
    """
    from placeopt import report as reporting

    target = output or front.with_suffix(".report.html")
    require_outputs(target, inputs=(front, instance))
    reporting.require()
    whole, problem = front_and_instance(front, instance)
    index = None if point == "knee" else index_of(whole, point)
    reporting.write(whole, target, problem=problem, index=index, cdn=cdn)
    emit(str(target))
