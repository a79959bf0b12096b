"""``placeopt report``: a page for people who did not run it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands import LOOK, add
from placeopt.cli.completion import instance_names, words
from placeopt.cli.fronts import OneFront, front_and_instance
from placeopt.cli.plans import index_of
from placeopt.cli.screen import Quiet, deliver, emit, say
from placeopt.core.errors import PlaceoptError, UnsupportedError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.doors import doors

if TYPE_CHECKING:
    from placeopt.core.door import ApprovalFunction, Approved, Door
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem


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
    quiet: Quiet = False,
) -> None:
    """Write a page about a front and one of its plans.

    The page is one HTML file: instance, front, plan, what is proven, and how it was made.

    For an imported rolling update, savings and risks come first.
    """
    from placeopt import report as reporting

    if form not in ("html", "markdown"):
        raise UsageError(f"--format {form!r}; legal: html, markdown")
    target = output or (front.with_suffix(".report.html") if form == "html" else None)
    whole, problem, file = front_and_instance(front, instance)
    known = _beside(file, origin)
    require_outputs(target, inputs=(front, file, *(path for _, path in known)))
    index = None if point == "knee" else index_of(whole, point)
    wanted = form == "markdown" or min_saving is not None
    if wanted and problem is None:
        raise UsageError("--format markdown and --min-saving need the instance: give --instance")
    told = None if problem is None else _approved(whole, problem, index, known)
    if form == "html" and target is not None:
        reporting.write(whole, target, problem=problem, index=index, approved=told)
        emit(str(target))
    if not wanted or problem is None:
        return
    if told is None:
        told = _approved(whole, problem, index, [(door, None) for door in doors()], strict=True)
    assert told is not None  # else it was refused
    if form == "markdown":
        deliver(told.markdown(f"Plan for {problem.name}"), target)
    if min_saving is not None and (told.breaks or told.saving < min_saving):
        why = (
            "it breaks the instance"
            if told.breaks
            else f"it saves {told.saving:g}, less than {min_saving:g}"
        )
        say(f"not worth it: {why}")
        raise typer.Exit(3)


def _beside(instance: Path | None, given: Path | None) -> list[tuple[Door, Path]]:
    """Return the doors with the files that they wrote beside an instance, or that are given."""
    results = []
    for door in doors():
        if door.beside is not None and (given or instance):
            file: Path = given or door.load("beside")(instance)
            if given or file.exists():
                results.append((door, file))
    return results


def _approved(
    front: Front,
    problem: Problem,
    index: int | None,
    known: Sequence[tuple[Door, Path | None]],
    *,
    strict: bool = False,
) -> Approved | None:
    """Return what the first door that can say knows of a plan; None where none can.

    Raises
    ------
    UnsupportedError, UsageError
        None can say, and `strict` asks for it.
    """
    refused: list[PlaceoptError] = []
    for door, file in known:
        if door.approval is not None:
            approve: ApprovalFunction = door.load("approval")
            try:
                return approve(front, problem, index, file)
            except (UnsupportedError, UsageError) as error:
                refused.append(error)
    if strict:
        raise refused[0] if refused else UnsupportedError("no door approves plans")
    return None
