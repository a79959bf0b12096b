"""``placeopt report`` and ``placeopt explore``: a page for people who did not run it, and the page
of a front, or of what the runs of a folder have found so far.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from placeopt.cli.commands import LOOK, add
from placeopt.cli.completion import instance_names, words
from placeopt.cli.front_view import page_of
from placeopt.cli.fronts import OneFront, front_and_instance
from placeopt.cli.plans import index_of
from placeopt.cli.screen import Quiet, deliver, emit, say
from placeopt.core.errors import DocumentError, PlaceoptError, UnsupportedError, UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.doors import doors

if TYPE_CHECKING:
    from placeopt.core.door import Approved, Door
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    add(app, explore, "placeopt explore front.json", "placeopt explore runs", group=LOOK)
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
            try:
                approved: Approved = door.load("approval")(front, problem, index, file)
                return approved
            except (UnsupportedError, UsageError) as error:
                refused.append(error)
    if strict:
        raise refused[0] if refused else UnsupportedError("no door approves plans")
    return None


#: Seconds between two looks at a folder, those between two readings of its page by a browser, and
#: those after which a run that has shown nothing more counts as ended.
LOOK_SECONDS, RELOAD_SECONDS, _STALE_SECONDS = 2.0, 5, 20.0
#: Largest file that is looked at, and the bytes in which a front says what it is.
_MAX_BYTES, _HEAD = 2**26, 200


def explore(
    what: Annotated[
        Path, Argument(metavar="FRONT|RUN-DIR", help="A front, or the folder of --run-dir.")
    ],
    instance: Annotated[
        Path | None,
        Option(
            help="Instance of the fronts (default: found beside them, or among the shipped ones).",
            autocompletion=instance_names,
        ),
    ] = None,
) -> None:
    """Choose a plan in the browser.

    The page of a folder has the fronts of its latest instance. While runs work there it is written
    anew, and a browser reads it again: Ctrl-C ends that.
    """
    target = what / "front.html" if what.is_dir() else what.with_suffix(".html")
    require_outputs(target, inputs=(what, instance))
    shown = False
    while True:
        running = _write(what, target, instance)
        if not shown:
            emit(target.resolve().as_uri() if sys.stdout.isatty() else str(target))
            shown = True
            if sys.stdout.isatty():
                import webbrowser

                webbrowser.open(target.resolve().as_uri())
        if not running:
            return
        time.sleep(LOOK_SECONDS)


def _write(what: Path, target: Path, instance: Path | None) -> bool:
    """Write the page of a front or a folder; return whether runs go on in it."""
    from placeopt.cli.fronts import front_and_instance
    from placeopt.core.fronts.front import merge
    from placeopt.plot import find_instance, plot_front

    if not what.is_dir():
        front, problem, file = front_and_instance(what, instance)
        plot_front(front, target, problem=problem, **page_of(what, instance or file))
        return False
    files, running = fronts_in(what)
    latest = next(iter(files))
    wanted = _about(files[latest])
    own = {path: front for path, front in files.items() if _about(front) == wanted}
    others = len({_about(front) for front in files.values()}) - 1
    front = merge(list(own.values()))
    if instance is not None:
        problem = front_and_instance(latest, instance)[1]
    else:
        problem = find_instance(front, latest)
    file = latest if len(own) == 1 else None
    reload = RELOAD_SECONDS if running else None
    plot_front(front, target, problem=problem, reload=reload, **page_of(file, instance))
    if others and not running:
        also = "another question has" if others == 1 else f"{others} other questions have"
        say(f"{also} fronts in {what}; give one of its files")
    return running


def fronts_in(folder: Path) -> tuple[dict[Path, Front], bool]:
    """Return the fronts with points below a folder, the latest first, and whether runs go on.

    Raises
    ------
    DocumentError
        There is none.
    """
    from placeopt.core.fronts.front import Front
    from placeopt.core.runs.run_directory import INTERIM

    found, running = {}, False
    for path in folder.rglob("*.json"):
        try:
            about = path.stat()
            with path.open("rb") as stream:
                if about.st_size > _MAX_BYTES or b"placeopt/front@" not in stream.read(_HEAD):
                    continue
            front = Front.read(path)
        except (OSError, PlaceoptError):
            continue  # it is none, or is being replaced
        if front.points:
            found[path] = (about.st_mtime_ns, front)
            fresh = time.time() - about.st_mtime < _STALE_SECONDS
            running |= fresh and path.name.endswith(INTERIM)
    if not found:
        raise DocumentError(
            "has no front with a plan",
            file=str(folder),
            remedy="give a front, or a folder of --run-dir in which a run has found something",
        )
    latest = sorted(found, key=lambda path: found[path][0], reverse=True)
    return {path: found[path][1] for path in latest}, running


def _about(front: Front) -> tuple[str, ...]:
    """Return what fronts that can be merged have in common."""
    return (front.instance.sha256, *(objective.name for objective in front.objectives))
