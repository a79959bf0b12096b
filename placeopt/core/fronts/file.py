"""The schema of front files, format ``placeopt/front@1``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json, validate, what_is
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.values import (
    CONFIG,
    InstanceName,
    Objective,
    Point,
    Rejected,
    Run,
    Text,
    Vector,
)


@dataclass(frozen=True)
class FrontDocument:
    """A front file."""

    __pydantic_config__ = CONFIG

    format: Literal["placeopt/front@1"]
    """Format and version of the file."""
    instance: InstanceName
    """Which instance was answered."""
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1)]
    """Goals, in the order of all vectors of the file."""
    points: tuple[Point, ...]
    """Plans that no other plan of the file beats, in the order of their values."""
    bounds: tuple[Vector, ...] = ()
    """Vectors that no plan can beat: every plan is at least as large as one of them in all goals.
    Absent: nothing is proven.
    """
    runs: tuple[Run, ...] = ()
    """Facts of the runs that made the front."""
    rejected: Rejected | None = None
    """The least-violating plan where no plan is feasible. Absent or null: there are points, or
    nothing was found.
    """
    reasons: tuple[Text, ...] = ()
    """Why no plan is feasible, a sentence each."""
    box: Vector | None = None
    """Worst values of points that were left out of the file, for the gap. Absent or null: none
    was.
    """


def read(path: AnyPath) -> FrontDocument:
    """Read and validate a front file."""
    return checked(read_json(path), path)


def checked(given: Any, path: AnyPath) -> FrontDocument:
    """Validate the document of a front file; `path` is where it was read.

    Raises
    ------
    DocumentError
        Names the file, the JSON path, the value and what is legal.
    """
    file = str(path)
    what = what_is(given)
    if what not in (None, "a front"):
        remedy = "fronts are what `placeopt solve -o` writes"
        raise DocumentError(f"this is {what}, not a front", file=file, remedy=remedy)
    document: FrontDocument = validate(FrontDocument, given, file=file)
    names = [o.name for o in document.objectives]
    for name in names:
        if names.count(name) > 1:
            remedy = "name each objective once"
            raise DocumentError(
                f"{name!r} stands twice", file=file, path="objectives", remedy=remedy
            )
    _check_traces(document, file)
    for where, vector in _vectors(document):
        if len(vector) != len(names):
            remedy = f"give one per objective: {len(names)}"
            raise DocumentError(f"{len(vector)} values", file=file, path=where, remedy=remedy)
    return document


def _check_traces(document: FrontDocument, file: str) -> None:
    """Refuse a trace whose columns differ in length, or that has no sample."""
    for k, run in enumerate(document.runs):
        if run.trace is None:
            continue
        count = len(run.trace.seconds)
        for name in ("seconds", "evaluations", "points", "ideal", "hypervolume", "bound"):
            result = len(getattr(run.trace, name))
            if result != count or not count:
                remedy = "every column of a trace has one entry a sample, at least one"
                raise DocumentError(
                    f"{result} entries beside {count} of seconds",
                    file=file,
                    path=f"runs[{k}].trace.{name}",
                    remedy=remedy,
                )


def _vectors(document: FrontDocument) -> Iterator[tuple[str, Vector]]:
    """Yield every vector of a front file with its JSON path."""
    yield from ((f"points[{k}].values", p.values) for k, p in enumerate(document.points))
    yield from ((f"bounds[{k}]", bound) for k, bound in enumerate(document.bounds))
    for k, trace in enumerate(run.trace for run in document.runs):
        if trace is not None:
            yield f"runs[{k}].trace.reference", trace.reference
            yield from ((f"runs[{k}].trace.ideal[{i}]", row) for i, row in enumerate(trace.ideal))
    if document.rejected:
        yield "rejected.values", document.rejected.values
    if document.box is not None:
        yield "box", document.box
