"""The page of an explorer, and what it asks for: the state of a source, and one plan."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.explore.source import FrontFile, FrontSource, Shown
from placeopt.plot.front_data import detail, front_data
from placeopt.plot.markup import Cell, clean, details, facts, paragraphs, section, table
from placeopt.plot.plan_page import details_html
from placeopt.plot.scene import Panel, Scene
from placeopt.plot.shell import asset, shell
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from placeopt.explore.runs import Runs

#: Runs that the table lists, and facts of a training that are drawn.
_MAX_RUNS, _MAX_FACTS = 60, 6

_STATUS = """<div class="foot">
<label id="group-label" hidden>shown <select id="group"></select></label>
<output id="said" aria-live="polite"></output></div><p id="empty" hidden></p>
<p id="gone" class="note" hidden>The server has ended, or does not answer. Start it again.</p>"""
_INSTANCE = '<div id="instance"></div>'
_SOLVE = """<form id="solve" class="foot" aria-label="Solve">
<label>method <select id="method">{methods}</select></label>
<label>seconds <input type="number" id="seconds" min="1" max="3600" value="10"></label>
<label>seed <input type="number" id="seed" min="0" value="1"></label>
<button type="submit" id="start">Solve</button>
<button type="button" id="stop" hidden>Stop</button>
<output id="run-said" aria-live="polite"></output></form>"""


def page(source: FrontSource, runs: Runs | None) -> str:
    """Return the page: it asks for its contents, and again while they change."""
    form = ""
    if runs is not None:
        options = "".join(f"<option>{clean(name)}</option>" for name in runs.methods())
        form = _SOLVE.format(methods=options)
    body = [
        section("status", "What is shown", _STATUS + form + details("The instance", _INSTANCE)),
        asset("choice.html"),
        '<section id="runs" aria-labelledby="runs-h" hidden><h2 id="runs-h">Runs</h2>'
        '<div id="runs-list"></div></section>',
    ]
    scripts = (
        asset("chart.js"),
        asset("choose.js"),
        asset("explore.js", "placeopt.explore"),
    )
    return shell(
        title=f"{source.name}: explore",
        heading=source.name,
        eyebrow="placeopt explore",
        body="\n".join(body),
        script="\n".join(scripts),
        connect="'self'",
        footer=paragraphs(
            [
                "This page is served by this machine to this machine alone, and asks nobody else.",
                "It starts runs and writes their fronts."
                if runs is not None
                else "It reads, and writes nothing.",
            ]
        ),
    )


# -- the state -------------------------------------------------------------------------------------


def state(shown: Shown, source: FrontSource) -> dict[str, Any]:
    """Return what the page shows, as JSON."""
    front = shown.front
    file = _file_of(shown, source)
    return {
        "version": shown.version,
        "name": "" if shown.instance is None else shown.instance.name,
        "groups": shown.groups,
        "group": shown.group,
        "said": _said(shown),
        "empty": "" if front is not None else _empty(shown, source),
        "front": None if front is None else front_data(front, file, _commands(shown, source, file)),
        "runs": _runs(shown, source),
        "instance": _instance(shown),
    }


def _instance(shown: Shown) -> str:
    """Return what the instance asks, and its facts."""
    problem = shown.problem
    if problem is None or not problem.spec.has("summary"):
        return ""
    summary = problem.spec.load("summary")
    return paragraphs([summary.QUESTION]) + facts(summary.instance(problem))


def _said(shown: Shown) -> str:
    running = sum(file.running for file in shown.files)
    parts = [f"{len(shown.front):,} plans"] if shown.front is not None else []
    parts += [f"{len(shown.files):,} fronts"] if len(shown.files) > 1 else []
    parts += [f"{running} running"] if running else []
    parts += [f"{shown.unread:,} files still to read"] if shown.unread else []
    return ", ".join(parts)


def _empty(shown: Shown, source: FrontSource) -> str:
    """Return what to do where there is no front yet."""
    if any(not file.front.points for file in shown.files):
        reasons = [reason for file in shown.files for reason in file.front.reasons]
        return "No feasible plan was found. " + " ".join(reasons[:4])
    if source.problem is not None:
        name = shlex.quote(source.name)
        return (
            f"There is no front of this instance yet. Start placeopt explore {name} --solve, or "
            f"run in this folder: placeopt solve {name} -o front.json. It appears here."
        )
    return "There is no front here yet. It appears as soon as a run has written one."


def _file_of(shown: Shown, source: FrontSource) -> str:
    """Return the front's file as commands name it."""
    if len(shown.files) == 1 and shown.files[0].path is not None:
        return shlex.quote(str(shown.files[0].path))
    return "FRONT"


def _commands(shown: Shown, source: FrontSource, file: str) -> list[tuple[str, str]]:
    """Return commands about a plan; of several fronts first the one that merges them."""
    commands = [
        ("A report to read and approve", f"placeopt report {file} --point {{point}}"),
        ("A picture of this plan", f"placeopt plot {file} --point {{point}}"),
    ]
    paths = [file.path for file in shown.files if file.path is not None and not file.running]
    if len(paths) > 1:
        names = " ".join(shlex.quote(str(path)) for path in paths[:20])
        commands.insert(0, ("First, one front of all", f"placeopt merge {names} -o FRONT"))
    return commands


# -- runs and trainings ----------------------------------------------------------------------------


def _runs(shown: Shown, source: FrontSource) -> str:
    """Return the runs of a folder as a table, and the course of its trainings."""
    if source.is_front:
        return ""
    rows = [_row(file) for file in shown.files[:_MAX_RUNS]]
    columns = ("front", "method", "seed", "seconds", "evaluations", "plans", "state")
    told = table("Fronts", columns, rows, most=_MAX_RUNS, more="fronts") if rows else ""
    return told + "".join(_training(path, rounds) for path, rounds in shown.trainings.items())


def _row(file: FrontFile) -> list[Cell]:
    run = file.front.runs[0] if file.front.runs else None
    state = "running" if file.running else "ended" if run and run.completed else "stopped early"
    name = "this page" if file.path is None else file.path.name
    if run is None:
        return [name, None, None, None, None, len(file.front), state]
    seed = None if run.seed is None else str(run.seed)
    facts = (round(run.seconds, 2), run.evaluations, len(file.front))
    return [name, run.method, seed, *facts, state]


def _training(path: Path, rounds: list[dict[str, Any]]) -> str:
    """Return the course of a training: what its episodes came to, over steps."""
    if not rounds:
        return ""
    last = rounds[-1]
    said = f"{path.name}: {last['steps']:,} steps, {last['share']:.0%} of the training"
    names = list(dict.fromkeys(name for row in rounds for name in row["facts"]))[:_MAX_FACTS]
    if len(rounds) < 2 or not names:
        return paragraphs([said])
    sheet = Scene(1000, 20 + 210 * -(-len(names) // 3))
    ends = (0.0, float(last["steps"]))
    for k, name in enumerate(names):
        known = [(row["steps"], row["facts"][name]) for row in rounds if name in row["facts"]]
        values = [value for _, value in known]
        room = 0.05 * (max(values) - min(values)) or 1.0
        box = (70 + k % 3 * 320, 40 + k // 3 * 210, 240, 120)
        panel = Panel(sheet, *box, ends, (min(values) - room, max(values) + room))
        panel.grid("steps", name.replace("_", " "))
        places = [panel.at(float(x), float(y)) for x, y in known]
        sheet.line(*places, stroke=PALETTE[0], line_width=1.8)
    drawn = f'<div class="drawing" tabindex="0" role="group">{sheet.svg(said)}</div>'
    return f"<figure>{drawn}<figcaption>{clean(said)}</figcaption></figure>"


# -- one plan --------------------------------------------------------------------------------------


def plan_of(shown: Shown, number: int) -> dict[str, Any]:
    """Return the facts of a plan, the plan, and its drawing and tables as HTML."""
    assert shown.front is not None
    point, problem = shown.front.points[number], shown.problem
    html = "" if problem is None else details_html(problem, point.plan, f"Plan {number}.")
    return detail(point, problem) | {"html": html}
