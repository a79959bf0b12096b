"""What commands say of a front: a table, its knee, sentences, and the commands to go on with."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.cli.screen import (
    emit,
    emit_sentence,
    plain,
    room,
    say,
    show,
    table,
    width_of,
    wrapped,
)
from placeopt.core.files.shipped import find, instances
from placeopt.core.fronts.words import run_in_words, sentences, values
from placeopt.doors import doors

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem

#: Plans that the table has, at most.
SHOWN = 10


def show_front(
    front: Front,
    kept: Front,
    problem: Problem | None,
    commands: list[tuple[str, str]],
    more: Sequence[str] = (),
) -> None:
    """Print a front for a person, on stdout: `kept` is what was written, or would be.

    `more` sentences follow.
    """
    emit(f"{headline(front)}\n\n{view(kept, problem, width_of(sys.stdout))}\n")
    for sentence in (*sentences(front, kept), *more):
        emit_sentence(sentence)
    emit("")
    emit(next_commands(commands, width_of(sys.stdout)))


def summarise(front: Front, kept: Front, more: Sequence[str] = ()) -> None:
    """Print a front in short, on stderr: where stdout has the front itself, or is no terminal.

    `more` sentences follow.
    """
    knee = kept.pick().values
    ranges = zip(kept.objectives, kept.ideal, knee, kept.nadir, strict=True)
    rows = [
        (o.name, o.unit, show(low), show(middle), show(high)) for o, low, middle, high in ranges
    ]
    columns = ("objective", "unit", "best", "knee", "worst")
    say(headline(front) + "\n")
    say(table(columns, rows, left=2, width=width_of(sys.stderr)) + "\n")
    for sentence in (*sentences(front, kept), *more):
        say(sentence)


def say_infeasible(front: Front, output: Path | None) -> None:
    """Say why there is no plan."""
    say(f"no feasible plan of {front.instance.name!r} was found")
    for reason in front.reasons:
        say(f"  {reason}")
    if output is not None:
        say(f"{output} has the plan that breaks least, as `rejected`")


def headline(front: Front) -> str:
    """Return what was run, in a line."""
    return f"{front.instance.name} by {run_in_words(front.runs[0])}"


def view(front: Front, problem: Problem | None, width: int | None) -> str:
    """Return a front as text: some of its plans, and its knee."""
    knee = front.points.index(front.pick())
    return f"{points_table(front, knee, width)}\n\n{plan_in_words(front, knee, problem, width)}"


def points_table(front: Front, knee: int, width: int | None) -> str:
    """Return a table of at most `SHOWN` plans that spread over the front, the knee among them.

    Goals that the screen has no room for are counted below it.
    """
    places = {point.values: k for k, point in enumerate(front.points)}
    spread = {places[point.values] for point in front.subset(SHOWN).points}
    if knee not in spread:
        spread = {places[point.values] for point in front.subset(SHOWN - 1).points} | {knee}
    for count in range(len(front.objectives), 0, -1):
        text = _points_table(front, sorted(spread), knee, count, width)
        if count == 1 or width is None or room(text.split("\n", 1)[0]) <= width:
            break
    hidden = len(front.objectives) - count
    between = len(front) - len(spread)
    lie, have = ("plan lies", "plans lie")[between > 1], ("goal has", "goals have")[hidden > 1]
    more = [f"{between} more {lie} between these"] * (between > 0)
    more += [f"{hidden} more {have} no room here"] * (hidden > 0)
    return "\n".join([text, *more])


def _points_table(front: Front, chosen: list[int], knee: int, count: int, width: int | None) -> str:
    """Return the table with so many goals; one with more than one may be too wide."""
    goals = front.objectives[:count]
    statuses, methods = ({getattr(p, n) for p in front.points} for n in ("status", "found_by"))
    rows = [
        (
            str(k),
            "knee" if k == knee else "",
            *(show(value, 5) for value in front.points[k].values[:count]),
            front.points[k].status if len(statuses) > 1 else "",
            ", ".join(front.points[k].found_by) if len(methods) > 1 else "",
        )
        for k in chosen
    ]
    columns = ("plan", "", *(o.name for o in goals), "status", "found by")
    return table(columns, rows, left=2, width=width if count == 1 else None)


def plan_in_words(front: Front, index: int, problem: Problem | None, width: int | None) -> str:
    """Return a plan of a front in words: its values, and what its problem tells of it."""
    point = front.points[index]
    knee = ", the knee" if point == front.pick() else ""
    title = f"Plan {index}{knee}: {values(front, point)}"
    lines = wrapped(plain(title), width) if width else [title]
    facts = {} if problem is None else problem.describe(point.plan)
    if not facts:
        return "\n".join(lines)
    names = max(map(room, facts))
    for name, fact in facts.items():
        start = f"  {plain(name)}{' ' * (names - room(name))}  "
        told = wrapped(plain(fact), max(20, width - len(start))) if width else [plain(fact)]
        lines += [start + told[0], *(" " * len(start) + part for part in told[1:])]
    return "\n".join(lines)


# -- commands to go on with ------------------------------------------------------------------------


def next_commands(commands: list[tuple[str, str]], width: int | None) -> str:
    """Return commands to go on with, and what each is for; below each other where they are long.

    >>> print(next_commands([("keep it", "placeopt solve toy -o front.json")], 80))
    Next:
      placeopt solve toy -o front.json   keep it
    """
    longest = max(len(command) for _, command in commands)
    beside = width is None or all(longest + len(what) + 5 <= width for what, _ in commands)
    lines = ["Next:"]
    for what, command in commands:
        if beside:
            lines.append(f"  {command:<{longest}}   {what}")
        else:
            lines += [f"  {what}:", f"    {command}"]
    return "\n".join(lines)


def about_plan(
    front: Front, index: int, file: Path, instance: Path | None
) -> list[tuple[str, str]]:
    """Return commands about a plan of a front in a file."""
    name, known, result = shlex.quote(str(file)), instance_option(file, instance), []
    if limit := example_limit(front):
        result.append(("another plan, within a limit", f"placeopt pick {name} --budget {limit}"))
    result.append(("a page about it", f"placeopt report {name}{known} --point {index}"))
    steps = _of_doors(f"{name}{known}", instance, str(index))
    return result + [(f"its {what}", command) for what, command in steps]


def example_limit(front: Front) -> str:
    """Return a limit that some plans of a front keep and others do not; empty where none is.

    >>> from placeopt.core.fronts.front import Front
    >>> from placeopt.core.fronts.values import InstanceName, Objective, Point
    >>> points = (Point((1.0, 9.0), {}), Point((4.0, 2.0), {}))
    >>> goals = (Objective("latency_ms", "ms"), Objective("cost", "USD"))
    >>> example_limit(Front(InstanceName("temporal", "toy", ""), goals, points))
    'latency_ms=2.5'
    """
    for objective, best, worst in zip(front.objectives, front.ideal, front.nadir, strict=True):
        middle = float(f"{(best + worst) / 2:.3g}")
        if objective.sign * best <= objective.sign * middle < objective.sign * worst:
            return f"{objective.name}={middle:g}"
    return ""


def page_of(front: Path | None, instance: Path | None) -> dict[str, Any]:
    """Return what a page says of files: the front's name, and commands about one of its plans."""
    file = "FRONT" if front is None else shlex.quote(str(front))
    known = instance_option(front, instance)
    commands = [
        ("A report to read and approve", f"placeopt report {file} --point {{point}}{known}"),
        ("A picture of this plan", f"placeopt plot {file} --point {{point}}{known}"),
    ]
    steps = _of_doors(f"{file}{known}", instance, "{point}")
    commands += [(f"The {what}", command) for what, command in steps]
    return {"file": file, "commands": commands}


def instance_option(front: Path | None, instance: Path | None) -> str:
    """Return how a command names the instance of a front; nothing where it finds it by itself."""
    file = None if instance is None else find(instance)
    if file is None or file in instances().values():
        return ""
    beside = front is not None and file.resolve().parent == front.resolve().parent
    return "" if beside else f" --instance {shlex.quote(str(instance))}"


def _of_doors(front: str, instance: Path | None, point: str) -> list[tuple[str, str]]:
    """Return what doors offer for a plan: (what, command)."""
    file = None if instance is None else find(instance)
    return [
        step
        for door in doors()
        if door.next_steps is not None
        for step in door.load("next_steps")(front, file, point)
    ]
