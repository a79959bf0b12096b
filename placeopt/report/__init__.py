"""Reports: one self-contained HTML page about a front, for people who did not run it.

A problem whose plans can be told in tables declares a module ``summary`` in its `ProblemSpec`, with
``instance(problem)``, which returns facts about the instance, and ``plan(problem, plan)``, which
returns HTML about a plan. It may hold texts: ``QUESTION``, what the problem asks, and ``MEANINGS``,
what each objective measures. The drawing of the plan is that of `placeopt.plot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.core.errors import UsageError

if TYPE_CHECKING:
    from placeopt.core.door import Approved
    from placeopt.core.files.paths import AnyPath
    from placeopt.core.fronts.front import Front
    from placeopt.core.problem import Problem


def write(
    front: Front,
    path: AnyPath,
    *,
    problem: Problem | None = None,
    index: int | None = None,
    approved: Approved | None = None,
) -> None:
    """Write the report of a front as one HTML file, atomically.

    Parameters
    ----------
    front : Front
        With or without points: of a front without, the report says why.
    path : path
    problem : Problem, optional
        The front's instance: without it the report has no facts of the instance and no plan.
    index : int, optional
        The point whose plan is shown; the knee by default.
    approved : Approved, optional
        What a door knows of the plan for those who approve it; it comes first.

    Raises
    ------
    UsageError
        `problem` is of another kind than the front, or there is no such point.
    """
    from placeopt.core.files.paths import write_parts

    text = html(front, problem=problem, index=index, approved=approved)
    write_parts(path, (text.encode("utf-8"),))


def html(
    front: Front,
    *,
    problem: Problem | None = None,
    index: int | None = None,
    approved: Approved | None = None,
) -> str:
    """Return the report of a front as HTML text; see `write`."""
    if problem is not None and problem.problem != front.instance.problem:
        raise UsageError(
            f"the front answers a {front.instance.problem} instance; this one is {problem.problem}"
        )
    if index is not None and not 0 <= index < len(front):
        raise UsageError(f"there is no point {index}; the front has {len(front)}, from 0")
    from placeopt.report.page import page

    return page(front, problem, index, approved=approved)
