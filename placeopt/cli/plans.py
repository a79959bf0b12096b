"""Plans in files: points of fronts, plans alone, and documents of doors that hold one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.cli.screen import warn
from placeopt.core.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Plan
    from placeopt.core.problem import Problem


def replayed(problem: Problem, document: Any, file: Path) -> Plan | None:
    """Return the plan in a document of a door, such as exported steps; None for other documents.

    Says on stderr where it was made for another instance.
    """
    from placeopt.core.spec import load
    from placeopt.doors import doors

    form = str(document.get("format")) if isinstance(document, dict) else ""
    for door in doors():
        if form in door.plans:
            plan, made_for = load(door.plans[form])(document, file=str(file))
            if made_for != problem.instance_name.sha256:
                warn([f"{file} was made for another instance, or another version of it"])
            return dict(plan)
    return None


def plan_in(path: Path, problem: Problem, point: str | None) -> Plan:
    """Return the plan of a front, of a point or of a plan file.

    Raises
    ------
    DocumentError
        The file holds none, or its front answers another instance.
    """
    from placeopt.core.files.documents import read_json, what_is
    from placeopt.core.fronts.front import Front

    document = read_json(path)
    if isinstance(document, dict) and document.get("format") == "placeopt/front@1":
        front = Front.from_document(document, path)
        front.require(problem.instance_name, str(path))
        return front.points[index_of(front, point or "knee")].plan
    if point is not None:
        raise UsageError(f"--point chooses from a front, and {str(path)!r} is a plan; leave it out")
    if (steps := replayed(problem, document, path)) is not None:
        return steps
    plan = document.get("plan", document) if isinstance(document, dict) else document
    file = str(path)
    if not isinstance(plan, dict):
        remedy = f"a plan is a JSON object; see `placeopt schema {problem.problem} --plan`"
        raise DocumentError("not a plan", file=file, remedy=remedy)
    if (what := what_is(document)) is not None:
        remedy = "give a front, a point as `placeopt pick` prints it, a plan, or exported steps"
        raise DocumentError(f"this is {what}, not a plan", file=file, remedy=remedy)
    return plan


def index_of(front: Front, text: str) -> int:
    """Return the number of the point that ``--point`` names."""
    if text == "knee":
        return front.points.index(front.pick())
    if not text.isdecimal() or int(text) >= len(front):
        raise UsageError(f"--point is {text!r}; give knee, or a number from 0 to {len(front) - 1}")
    return int(text)
