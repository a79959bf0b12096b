"""The schema of front files, format ``placeopt/front@1``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import Document, read_json, validate, what_is
from placeopt.core.files.paths import AnyPath


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, strict=True, use_attribute_docstrings=True
    )


class _Instance(_Strict):
    problem: str
    """Kind of the problem."""
    name: str
    """Name of the instance."""
    sha256: str
    """SHA-256 of the instance's document with sorted keys: which instance it was."""


class _Objective(_Strict):
    name: str
    """Name of the goal, such as latency_ms."""
    unit: str
    """Unit of its values."""
    step: float | None = None
    """Smallest difference of two values. Absent or null: values are real numbers."""
    sense: Literal["min", "max"] = "min"
    """Whether less or more is better; the goals of placeopt's problems are all minimised."""


class _Point(_Strict):
    values: list[float]
    """Value of each goal, in the order of objectives; the referee's."""
    plan: Document
    """What to do: a plan of the problem."""
    status: Literal["optimal", "bounded", "heuristic"] = "heuristic"
    """optimal: proven that no plan beats it. bounded: beaten by at most gap. heuristic: not
    proven.
    """
    gap: float | None = None
    """Largest share by which a plan could beat the point. Absent or null: unknown."""
    method: str = ""
    """Method that found it."""
    seed: int | None = None
    """Seed of the run that found it. Absent or null: unknown, or none."""
    also_by: list[str] = []
    """Other methods that found a plan with these values. Absent: none is known."""


class _Trace(_Strict):
    reference: list[float]
    """Reference point of all hypervolumes: a value for each goal."""
    seconds: list[float]
    """When each sample was taken: wall-clock seconds since the run began."""
    evaluations: list[int]
    """Plans that were evaluated until each sample."""
    points: list[int]
    """Points of each sample that no other beats."""
    ideal: list[list[float]]
    """Best value of each goal, sample by sample."""
    hypervolume: list[float]
    """Hypervolume of each sample within the reference point."""
    bound: list[float | None]
    """Hypervolume that no plans can exceed, as proven until each sample. null: nothing proven."""


class _Run(_Strict):
    method: str
    """Method that ran."""
    seed: int | None = None
    """Its seed. Absent or null: it has none."""
    seconds: float = 0.0
    """Wall-clock seconds that the run took, without those of compiling."""
    evaluations: int = 0
    """Plans that it evaluated."""
    solver_calls: int = 0
    """Mathematical programs that it solved."""
    completed: bool = True
    """Whether it ended by itself, not by a limit of time or by hand."""
    parameters: Document = {}
    """Parameters of the method, and what it says of the run."""
    versions: dict[str, str] = {}
    """Versions of placeopt and of the libraries that computed."""
    trace: _Trace | None = None
    """What the run had found when, in at most about 100 samples; the last is the front. Absent or
    null: it was not kept.
    """
    cpu_seconds: float | None = None
    """CPU seconds of the process that ran it, all its threads; of workers in other processes none.
    Without those of compiling. Absent or null: not measured.
    """
    compile_seconds: float = 0.0
    """Wall-clock seconds that the run waited for kernels to be compiled, here or by its workers."""


class _Violation(_Strict):
    kind: str
    """Which rule is broken, in a word."""
    amount: float
    """By how much, in the rule's own unit."""
    message: str
    """The same as a sentence."""


class _Rejected(_Strict):
    plan: Document
    """The plan that breaks least."""
    values: list[float]
    """Value of each goal, in the order of objectives."""
    violations: list[_Violation]
    """What it breaks."""


class FrontDocument(_Strict):
    """A front file."""

    format: Literal["placeopt/front@1"]
    """Format and version of the file."""
    instance: _Instance
    """Which instance was answered."""
    objectives: list[_Objective] = Field(min_length=1)
    """Goals, in the order of all vectors of the file."""
    points: list[_Point]
    """Plans that no other plan of the file beats, in the order of their values."""
    bounds: list[list[float]] = []
    """Vectors that no plan can beat: every plan is at least as large as one of them in all goals.
    Absent: nothing is proven.
    """
    runs: list[_Run] = []
    """Facts of the runs that made the front."""
    rejected: _Rejected | None = None
    """The least-violating plan where no plan is feasible. Absent or null: there are points, or
    nothing was found.
    """
    reasons: list[str] = []
    """Why no plan is feasible, a sentence each."""
    box: list[float] | None = None
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


def _vectors(document: FrontDocument) -> Iterator[tuple[str, list[float]]]:
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
