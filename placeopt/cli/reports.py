"""``placeopt report``: a page for people who did not run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.commands import LOOK, add
from placeopt.cli.completion import instance_names, words
from placeopt.cli.fronts import OneFront, front_and_instance, index_of
from placeopt.cli.screen import deliver, emit, say
from placeopt.core.errors import UsageError
from placeopt.core.files import require_outputs


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    add(app, report, "placeopt report front.json --point knee -o report.html", group=LOOK)


def report(
    front: OneFront,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write (default: beside the front)."),
    ] = None,
    instance: Annotated[
        Path | None,
        typer.Option(
            help="Instance of the front (default: found beside it, or among the shipped ones).",
            autocompletion=instance_names,
        ),
    ] = None,
    point: Annotated[
        str,
        typer.Option(
            metavar="K|knee", help="Plan to show: its number.", autocompletion=words("knee")
        ),
    ] = "knee",
    origin: Annotated[
        Path | None,
        typer.Option(
            help="File that maps names to cluster objects (default: INSTANCE.origin.json)."
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="html|markdown",
            help="markdown: a short text for a pull request, printed without -o.",
            autocompletion=words("html", "markdown"),
        ),
    ] = "html",
    min_saving: Annotated[
        float | None,
        typer.Option(
            help="Minimum saving, in the unit of the prices; exit code 3 if the plan saves less or "
            "breaks the instance."
        ),
    ] = None,
) -> None:
    """Write a page about a front and one of its plans.

    The page is one HTML file: instance, front, plan, what is proven, and how it was made.

    For an imported rolling update, savings and risks come first.
    """
    from placeopt import report as reporting
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes.approval import approve
    from placeopt.kubernetes.approval_page import markdown

    if form not in ("html", "markdown"):
        raise UsageError(f"--format {form!r}; legal: html, markdown")
    target = output or (front.with_suffix(".report.html") if form == "html" else None)
    whole, problem, file = front_and_instance(front, instance)
    beside = origins.beside(file) if file is not None and origin is None else origin
    require_outputs(target, inputs=(front, file, beside))
    index = None if point == "knee" else index_of(whole, point)
    known = origins.read(beside) if beside and (origin or beside.exists()) else None
    if known is not None and problem is not None:
        known.check(problem, str(beside))
    if form == "html" and target is not None:
        reporting.write(whole, target, problem=problem, index=index, origin=known)
        emit(str(target))
    if form == "html" and min_saving is None:
        return
    if problem is None:
        raise UsageError("--format markdown and --min-saving need the instance: give --instance")
    approval = approve(whole, problem, index, known)
    if form == "markdown":
        deliver(markdown(approval, f"Plan for {problem.name}"), target)
    if min_saving is not None and (approval.verdict.violations or approval.saving < min_saving):
        why = (
            "it breaks the instance"
            if approval.verdict.violations
            else (f"it saves {approval.saving:g}, less than {min_saving:g}")
        )
        say(f"not worth it: {why}")
        raise typer.Exit(3)
