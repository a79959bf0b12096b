"""The schema of front files, format ``placeopt/front@1``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from placeopt.core.documents import read_json, validate, what_is
from placeopt.core.errors import DocumentError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class _Instance(_Strict):
    problem: str
    name: str
    sha256: str


class _Objective(_Strict):
    name: str
    unit: str
    step: float | None = None


class _Point(_Strict):
    values: list[float]
    plan: dict[str, Any]
    status: Literal["optimal", "bounded", "heuristic"] = "heuristic"
    gap: float | None = None
    method: str = ""
    seed: int | None = None


class _Run(_Strict):
    method: str
    seed: int | None = None
    seconds: float = 0.0
    evaluations: int = 0
    solver_calls: int = 0
    completed: bool = True
    parameters: dict[str, Any] = {}
    versions: dict[str, str] = {}


class _Violation(_Strict):
    kind: str
    amount: float
    message: str


class _Rejected(_Strict):
    plan: dict[str, Any]
    values: list[float]
    violations: list[_Violation]


class FrontDocument(_Strict):
    """A front file."""

    format: Literal["placeopt/front@1"]
    instance: _Instance
    objectives: list[_Objective] = Field(min_length=1)
    points: list[_Point]
    bounds: list[list[float]] = []
    runs: list[_Run] = []
    rejected: _Rejected | None = None
    reasons: list[str] = []
    box: list[float] | None = None


def read(path: str | os.PathLike[str]) -> FrontDocument:
    """Read and validate a front file."""
    return checked(read_json(path), path)


def checked(given: Any, path: str | os.PathLike[str]) -> FrontDocument:
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
    for where, vector in _vectors(document):
        if len(vector) != len(names):
            remedy = f"give one per objective: {len(names)}"
            raise DocumentError(f"{len(vector)} values", file=file, path=where, remedy=remedy)
    return document


def _vectors(document: FrontDocument) -> Iterator[tuple[str, list[float]]]:
    """Yield every vector of a front file with its JSON path."""
    yield from ((f"points[{k}].values", p.values) for k, p in enumerate(document.points))
    yield from ((f"bounds[{k}]", bound) for k, bound in enumerate(document.bounds))
    if document.rejected:
        yield "rejected.values", document.rejected.values
    if document.box is not None:
        yield "box", document.box
