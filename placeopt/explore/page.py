"""The page of an explorer, and what it asks for: the state of a source, and one plan."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from placeopt.explore.source import FrontFile, FrontSource, Shown
from placeopt.plot.front_data import detail, front_data
from placeopt.plot.markup import Cell, clean, details, facts, paragraphs, section, table
from placeopt.plot.plan_page import details_html, figure_html
from placeopt.plot.scene import Panel, Scene
from placeopt.plot.shell import asset, shell
from placeopt.plot.style import PALETTE

if TYPE_CHECKING:
    from placeopt.explore.runs import Runs
    from placeopt.rl.rounds import TrainingRounds

#: Runs that the table lists, and facts of a training that are drawn.
_MAX_RUNS, _MAX_FACTS = 60, 6
#: Fronts that a command names.
_MAX_MERGED = 6

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
        "front": None if front is None else front_data(front, file, _commands(shown, source)),
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


def _commands(shown: Shown, source: FrontSource) -> list[tuple[str, str]]:
    """Return commands about a plan; of a few fronts first the one that merges them."""
    if source.advise is None:
        return []
    paths = [file.path for file in shown.files if file.path is not None and not file.running]
    commands = source.advise(paths[0] if len(paths) == 1 else None, shown.problem_file)
    if 1 < len(paths) <= _MAX_MERGED:
        names = " ".join(shlex.quote(str(path)) for path in paths)
        commands = [("First, one front of all", f"placeopt merge {names} -o FRONT"), *commands]
    return commands


# -- runs and trainings ----------------------------------------------------------------------------


def _runs(shown: Shown, source: FrontSource) -> str:
    """Return the runs of a folder as a table, and the course of its trainings."""
    if source.is_front:
        return ""
    rows = [_row(file) for file in shown.files[:_MAX_RUNS]]
    columns = ("method", "seed", "seconds", "evaluations", "plans", "state", "file")
    told = table("Fronts", columns, rows, most=_MAX_RUNS, more="fronts") if rows else ""
    return told + "".join(map(_training, shown.trainings))


def _row(file: FrontFile) -> list[Cell]:
    run = file.front.runs[0] if file.front.runs else None
    state = "running" if file.running else "ended" if run and run.completed else "stopped early"
    name = "this page" if file.path is None else file.path.name
    if run is None:
        return ["unknown", None, None, None, len(file.front), state, name]
    seed = None if run.seed is None else str(run.seed)
    return [
        run.method,
        seed,
        round(run.seconds, 2),
        run.evaluations,
        len(file.front),
        state,
        name,
    ]


def _training(training: TrainingRounds) -> str:
    """Return the course of a training: what its episodes came to, over steps."""
    rounds = training.rounds
    if not rounds:
        return ""
    last = rounds[-1]
    said = (
        f"Training for {training.problem}, seed {training.seed}: {last.steps:,} steps, "
        f"{last.share:.0%} of the training. Means of the latest episodes."
    )
    columns = {
        name: [(row.steps, row.facts[name]) for row in rounds if name in row.facts]
        for name in dict.fromkeys(name for row in rounds for name in row.facts)
    }
    varying = {n: c for n, c in columns.items() if len({value for _, value in c}) > 1}
    if not varying:
        return paragraphs([said])
    shown = [*varying.items()][:_MAX_FACTS]
    sheet = Scene(1000, 20 + 210 * -(-len(shown) // 3))
    for k, (name, places) in enumerate(shown):
        values = [value for _, value in places]
        room = 0.05 * (max(values) - min(values))
        box = (70 + k % 3 * 320, 40 + k // 3 * 210, 240, 120)
        ends = (min(values) - room, max(values) + room)
        panel = Panel(sheet, *box, (0.0, float(last.steps)), ends)
        panel.grid("steps", name.replace("_", " "))
        spots = [panel.at(float(x), y) for x, y in places]
        sheet.line(*spots, stroke=PALETTE[0], line_width=1.8)
        for (x, y), spot in zip(places, spots, strict=True):
            title = f"{name} {y:.4g} after {x:,} steps"
            sheet.disc(*spot, 2.5, fill=PALETTE[0], title=title)
    return figure_html(sheet, said)


# -- one plan --------------------------------------------------------------------------------------


def plan_of(shown: Shown, number: int) -> dict[str, Any]:
    """Return the facts of a plan, the plan, and its drawing and tables as HTML."""
    assert shown.front is not None
    point, problem = shown.front.points[number], shown.problem
    html = "" if problem is None else details_html(problem, point.plan, f"Plan {number}.")
    return detail(point, problem) | {"html": html}
