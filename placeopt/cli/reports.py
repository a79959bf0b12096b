"""``placeopt report``: a page for people who did not run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.fronts import OneFront, front_and_instance, index_of
from placeopt.cli.screen import deliver, emit, say
from placeopt.core.errors import UsageError
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
        typer.Option(
            help="The front's instance; by default it is looked for beside the front and among "
            "those that come with placeopt."
        ),
    ] = None,
    point: Annotated[str, typer.Option(metavar="K|knee", help="The plan to show.")] = "knee",
    origin: Annotated[
        Path | None,
        typer.Option(
            help="What the names are in the cluster; INSTANCE.origin.json, if there, by default."
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="html|markdown",
            help="markdown: a rolling update in short, for a pull request; to stdout without -o.",
        ),
    ] = "html",
    min_saving: Annotated[
        float | None,
        typer.Option(
            help="Exit code 3 where the plan saves less, in the unit of the prices, or breaks the "
            "instance."
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page about a front.

    It says what was asked, shows the front and one plan, what is proven, and how it was made.

    Of an imported rolling update it says first what those who approve it want to know.
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
