"""The commands to go on with: what may be done next with a front and one of its plans."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.core.files.shipped import find, instances
from placeopt.doors import doors

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front


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
