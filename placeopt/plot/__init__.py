"""Drawings of fronts and plans: pages (``.html``), and ``.png``, ``.pdf`` and ``.svg`` for paper.

A problem whose plans can be drawn declares a module ``drawing`` in its `ProblemSpec`, with
``scene(problem, plan)``, which returns a `placeopt.plot.scene.Scene`.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from placeopt.core.errors import MissingExtraError, PlaceoptError, UnsupportedError, UsageError
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.words import counted

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem
    from placeopt.plot.scene import Scene

#: How the names of drawings end.
ENDINGS = (".html", ".png", ".pdf", ".svg")

#: Points that a notebook lists.
_POINTS = 20
#: Files beside a front that `find_instance` opens at most, and their largest size in bytes.
_MAX_FILES, _MAX_BYTES = 200, 20_000_000


def require(path: AnyPath) -> None:
    """Raise unless a file of this name can be drawn.

    Raises
    ------
    UsageError
        The name ends in something else.
    MissingExtraError
        matplotlib is not installed, which .png and .pdf need.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise UsageError(f"cannot draw {str(path)!r}; end the name in {', '.join(ENDINGS)}")
    if suffix not in (".html", ".svg") and importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError(f"drawing {suffix} files", "plot")


class NotebookPage:
    """A page that a notebook shows in a frame of its own.

    Attributes
    ----------
    html : str
        The whole page.
    """

    #: Height of the frame in pixels: a chart, the limits, and the chosen plan.
    HEIGHT = 900

    def __init__(self, html: str):
        self.html = html

    def _repr_html_(self) -> str:
        """Return the frame."""
        style = f"width:100%;height:{self.HEIGHT}px;border:0"
        return f'<iframe title="front" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def in_notebook(front: Front, problem: Problem | None = None) -> NotebookPage:
    """Return the page of a front, which a notebook shows.

    Raises
    ------
    UsageError
        The front has no points.
    """
    _require_points(front)
    from placeopt.plot.front_page import page

    return NotebookPage(page(front, problem))


def below_a_cell(front: Front) -> str:
    """Return what a notebook shows of a front: its drawing, and a table of some of its points."""
    from placeopt.plot import markup

    title = markup.paragraphs([repr(front)])
    if not front.points:
        return title + markup.bullets(front.reasons)
    from placeopt.core.fronts.words import label
    from placeopt.plot.front_scene import scene, spread

    drawn = spread(front)
    picture = scene([drawn]).svg(repr(front), themed=False)
    rows = [
        (*(f"{value:.6g}" for value in point.values), point.status, ", ".join(point.found_by))
        for point in front.subset(_POINTS).points
    ]
    columns = (*map(label, front.objectives), "status", "method")
    listed = markup.table("Points", columns, rows)
    more = []
    if len(rows) < len(front):
        more.append(f"{len(front) - len(rows)} more points, spread between these")
    if len(drawn) < len(front):
        more.append(f"The picture has {len(drawn):,} of {len(front):,} points.")
    paper = f'<div style="background:#fff;overflow:auto">{picture}</div>'
    return title + paper + listed + markup.paragraphs(more)


def _require_points(front: Front) -> None:
    if not front.points:
        raise UsageError(f"the front of {front.instance.name!r} has no points to draw")


def plot_front(
    front: Front,
    path: AnyPath,
    *,
    problem: Problem | None = None,
    file: str = "FRONT",
    commands: Sequence[tuple[str, str]] = (),
    reload: int | None = None,
) -> None:
    """Draw a front.

    Parameters
    ----------
    front : Front
    path : path
        Ends in one of `ENDINGS`.
    problem : Problem, optional
        The front's instance: the page tells facts of a plan.
    file : str
        What the commands on the page call the front's file.
    commands : sequence of (str, str)
        What for, and a command that the page offers, with ``{point}`` for the number of a plan.
    reload : int, optional
        Seconds after which a browser reads the page again, while runs go on.

    Raises
    ------
    UsageError
        The front has no points, or the path ends in something else.
    MissingExtraError
        The extra ``plot`` is not installed, which .png and .pdf need.
    """
    require(path)
    _require_points(front)
    if Path(path).suffix.lower() == ".html":
        from placeopt.plot.front_page import page

        _write(path, page(front, problem, file=file, commands=commands, reload=reload))
    else:
        from placeopt.plot.front_scene import scene

        _write_scene(path, scene([front]), f"{front.instance.name}: {counted(len(front), 'plan')}")


def plot_fronts(fronts: Sequence[Front], path: AnyPath, names: Sequence[str]) -> None:
    """Draw fronts over each other, each by its name.

    Raises
    ------
    UsageError
        They answer different instances or goals, one has no points, or as of `plot_front`.
    MissingExtraError
        The extra ``plot`` is not installed, which .png and .pdf need.
    """
    require(path)
    from placeopt.core.fronts.front import merge
    from placeopt.plot.front_scene import scene

    for front in fronts:
        _require_points(front)
    merge(fronts)  # refuses what does not belong together
    title = f"{fronts[0].instance.name}: {len(fronts)} fronts"
    _write_drawing(path, scene(fronts, names), title, fronts[0].instance.problem)


def plot_convergence(
    fronts: Sequence[Front],
    path: AnyPath,
    *,
    names: Sequence[str] | None = None,
    over: Literal["evaluations", "seconds"] | None = None,
) -> None:
    """Draw the traces of the runs of one or several fronts: how hypervolume and bound converged.

    Parameters
    ----------
    fronts : sequence of Front
        Of one instance; their runs have one reference point, see the argument `reference` of
        `placeopt.solve`.
    path : path
        Ends in one of `ENDINGS`.
    names : sequence of str, optional
        What tells the runs of each front apart, before the name of the method.
    over : {"evaluations", "seconds"}, optional
        The horizontal axis; evaluations by default, where all runs count them.

    Raises
    ------
    UsageError
        No run has a trace, the fronts answer different instances, their runs have different
        reference points, the path ends in something else.
    MissingExtraError
        The extra ``plot`` is not installed, which .png and .pdf need.
    """
    require(path)
    from placeopt.plot.convergence import scene

    titles = [""] * len(fronts) if names is None else [f"{name}: " for name in names]
    drawn, title = scene(fronts, titles, over), f"{fronts[0].instance.name}: convergence"
    _write_drawing(path, drawn, title, fronts[0].instance.problem)


def plot_plan(front: Front, index: int, path: AnyPath, *, problem: Problem | None) -> None:
    """Draw the plan of ``front.points[index]``; a page tells its facts and tables as well.

    Raises
    ------
    UsageError
        The instance is not known: a front file has its name only.
    UnsupportedError
        Plans of this problem have no drawing.
    MissingExtraError
        The extra ``plot`` is not installed, which .png and .pdf need.
    """
    require(path)
    if problem is None:
        raise UsageError(
            f"drawing a plan needs the instance {front.instance.name!r}; "
            "name its file with --instance, or put it beside the front"
        )
    if problem.problem != front.instance.problem:
        raise UsageError(
            f"the front answers a {front.instance.problem} instance; this one is {problem.problem}"
        )
    from placeopt.plot import plan_page

    drawn = plan_page.scene_of(problem, front.points[index].plan)
    if drawn is None:
        raise UnsupportedError(
            f"plans of {problem.problem} have no drawing; draw the front, without --point"
        )
    if Path(path).suffix.lower() == ".html":
        _write(path, plan_page.page(front, index, problem))
    else:
        _write_scene(path, drawn, plan_page.title_of(front, index))


def _write_drawing(path: AnyPath, drawn: Scene, title: str, problem: str) -> None:
    """Write a drawing, as a page of its own where a page is wanted."""
    if Path(path).suffix.lower() == ".html":
        from placeopt.plot.plan_page import drawing_page

        _write(path, drawing_page(drawn, title, problem))
    else:
        _write_scene(path, drawn, title)


def _write_scene(path: AnyPath, drawn: Scene, title: str) -> None:
    """Write a drawing as SVG, or by matplotlib."""
    if Path(path).suffix.lower() == ".svg":
        _write(path, drawn.svg(title, themed=False))
    else:
        _write(path, drawn.figure(title))


def find_instance(front: Front, path: AnyPath) -> Problem | None:
    """Return the instance of a front file, None where `instance_file` finds none."""
    from placeopt import registry

    file = instance_file(front, path)
    return None if file is None else registry.read(file)


def instance_file(front: Front, path: AnyPath) -> Path | None:
    """Return the file of the instance of a front file: in the same folder, or with placeopt.

    It is known by its SHA-256. None where it is in neither place.
    """
    from placeopt import registry
    from placeopt.core.files.documents import read_json

    for file in sorted(Path(path).parent.glob("*.json"))[:_MAX_FILES]:
        if file.is_file() and file.stat().st_size <= _MAX_BYTES:
            try:
                document = read_json(file)
                if not isinstance(document, dict) or document.get("name") != front.instance.name:
                    continue  # only what may be the instance is validated
                problem = registry.from_document(document)
            except PlaceoptError:
                continue
            if problem.instance_name == front.instance:
                return file
    return registry.shipped(front.instance)


def _write(path: AnyPath, drawing: Any) -> None:
    """Write HTML text or a matplotlib figure, atomically."""
    from placeopt.core.files.paths import write_parts

    if isinstance(drawing, str):
        write_parts(path, (drawing.encode("utf-8"),))
        return
    buffer = io.BytesIO()
    suffix = Path(path).suffix.lower()
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(
        suffix, {}
    )  # the same front gives the same file
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "placeopt"}):
        drawing.savefig(buffer, format=suffix[1:], metadata=undated)
    write_parts(path, (buffer.getvalue(),))
