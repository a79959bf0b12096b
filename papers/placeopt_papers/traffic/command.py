"""``placeopt traffic``: requests that visit a call graph, and what a rescheduler changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import EXPERIMENTS, add
from placeopt.cli.screen import (
    AsJson,
    InstanceFile,
    Output,
    Quiet,
    deliver,
    emit_json,
    emit_table,
    for_people,
    say,
)
from placeopt.core.errors import UsageError

if TYPE_CHECKING:
    from placeopt_papers.traffic.play import Played
    from placeopt_papers.traffic.scenario import Scenario

    from placeopt.rescheduling.problem import Rescheduling

#: The word for no rescheduler.
NONE = "none"


def register(app: typer.Typer, _imports: typer.Typer, _exports: typer.Typer) -> None:
    """Add the command to `app`."""
    add(
        app,
        traffic,
        "placeopt traffic chain-12 surge --method none --method block-search --seeds 5",
        group=EXPERIMENTS,
    )


def traffic(
    instance: InstanceFile,
    scenario: Annotated[
        Path,
        Argument(
            metavar="SCENARIO",
            help="A JSON file (see `placeopt schema traffic`), or a shipped one: surge.",
        ),
    ],
    method: Annotated[
        list[str] | None,
        Option(
            "--method",
            help="Method that moves pods, in place of the scenario's; none for nobody. Repeatable.",
        ),
    ] = None,
    seeds: Annotated[int, Option(min=1, max=1000, help="Runs of each, with seeds from 1.")] = 3,
    jobs: Annotated[int, Option(min=1, max=256, help="Processes.")] = 1,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let requests go through a call graph, second by second.

    Pods queue, nodes fail, an autoscaler adds pods, a rescheduler moves them.

    The table has latencies, misses and requests a second, mean and half a 95 % interval over seeds.
    """
    from placeopt_papers.traffic.figures import document
    from placeopt_papers.traffic.scenario import Scenario

    from placeopt import api
    from placeopt.core.files.documents import layout, read_json, validate

    problem: Any = api.load(instance)
    if problem.problem != "rescheduling":
        raise UsageError(
            f"{instance} is an instance of {problem.problem}; give one of rescheduling, whose "
            "services call each other"
        )
    shipped = {file.stem: file for file in Path(__file__).parent.glob("*.json")}
    file = scenario if scenario.exists() else shipped.get(str(scenario), scenario)
    story = validate(Scenario, read_json(file), file=str(file))
    named = _variants(story, method)
    runs = _runs(problem, list(named.values()), seeds, jobs)
    results = {
        name: document(runs[k], one, problem.name) for k, (name, one) in enumerate(named.items())
    }
    if output is not None:
        deliver(layout(results) + "\n", output)
        return
    if for_people(as_json):
        _show(results)
    else:
        emit_json(results)


def _variants(story: Scenario, methods: list[str] | None) -> dict[str, Scenario]:
    """Return the scenarios that are played, by the name of the rescheduler."""
    from placeopt_papers.traffic.scenario import Rescheduler

    from placeopt import registry

    if not methods:
        return {NONE if story.rescheduler is None else story.rescheduler.method: story}
    result = {}
    for name in methods:
        changed: Rescheduler | None = None
        if name != NONE:
            registry.method(name).load("rescheduling")
            changed = (story.rescheduler or Rescheduler()).model_copy(update={"method": name})
        result[name] = story.model_copy(update={"rescheduler": changed})
    return result


def _runs(
    problem: Rescheduling, stories: list[Scenario], seeds: int, jobs: int
) -> list[list[Played]]:
    """Return the runs of each scenario, the same for any number of jobs."""
    from joblib import Parallel, delayed
    from placeopt_papers.traffic.play import play

    say(f"{len(stories) * seeds} runs of {stories[0].seconds:g} s")
    every = [(story, seed) for story in stories for seed in range(1, seeds + 1)]
    played = Parallel(n_jobs=jobs)(delayed(play)(problem, story, seed) for story, seed in every)
    return [played[k : k + seeds] for k in range(0, len(played), seeds)]


def _show(results: dict[str, Any]) -> None:
    from placeopt_papers.traffic.figures import NAMES

    columns = ["figure", *results, "unit"]
    rows = []
    for name, unit in NAMES.items():
        cells = [result["figures"][name] for result in results.values()]
        rows.append([name, *map(_told, cells), unit])
    emit_table(columns, rows, text={len(columns) - 1})


def _told(cell: dict[str, Any]) -> str:
    if cell["mean"] is None:
        return "-"
    half = f" +- {cell['half_width']:.3g}" if cell["half_width"] else ""
    return f"{cell['mean']:.4g}{half}"
