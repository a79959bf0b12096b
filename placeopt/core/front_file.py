"""The schema of front files, format ``placeopt/front@1``; `placeopt.core.front.Front.read` uses it."""

from __future__ import annotations

import os
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from placeopt.core.documents import read_json, validate, what_is
from placeopt.core.errors import DocumentError
from placeopt.core.front import Front, InstanceName, Objective, Point, Rejected, Run, Violation


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


def read(path: str | os.PathLike[str]) -> Front:
    """Read and validate a front file."""
    return from_document(read_json(path), path)


def from_document(given: Any, path: str | os.PathLike[str]) -> Front:
    """Validate the document of a front file; `path` is where it was read."""
    what = what_is(given)
    if what not in (None, "a front"):
        raise DocumentError(
            f"this is {what}, not a front",
            file=str(path),
            remedy="fronts are what `placeopt solve -o` writes",
        )
    document = validate(FrontDocument, given, file=str(path))
    width = len(document.objectives)
    names = [o.name for o in document.objectives]
    for name in names:
        if names.count(name) > 1:
            raise DocumentError(
                f"{name!r} stands twice",
                file=str(path),
                path="objectives",
                remedy="name each objective once",
            )
    vectors = [(f"points[{k}].values", p.values) for k, p in enumerate(document.points)]
    vectors += [(f"bounds[{k}]", bound) for k, bound in enumerate(document.bounds)]
    vectors += [("rejected.values", document.rejected.values)] if document.rejected else []
    vectors += [("box", document.box)] if document.box is not None else []
    for where, vector in vectors:
        if len(vector) != width:
            raise DocumentError(
                f"{len(vector)} values",
                file=str(path),
                path=where,
                remedy=f"give one per objective: {width}",
            )
    rejected = document.rejected
    return Front(
        InstanceName(**document.instance.model_dump()),
        tuple(Objective(o.name, o.unit, o.step) for o in document.objectives),
        tuple(
            Point(tuple(p.values), p.plan, p.status, p.gap, p.method, p.seed)
            for p in document.points
        ),
        tuple(map(tuple, document.bounds)),
        tuple(Run(**r.model_dump()) for r in document.runs),
        rejected
        and Rejected(
            rejected.plan,
            tuple(rejected.values),
            tuple(Violation(**v.model_dump()) for v in rejected.violations),
        ),
        tuple(document.reasons),
        tuple(document.box or ()),
    )
