"""What a front is made of: goals, values, points, runs, and what a plan breaks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Strict

from placeopt.core.errors import UsageError, shown

#: How a front file is read into what stands here: lists become tuples, and nothing else is changed.
CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
Number = Annotated[float, Strict()]
Count = Annotated[int, Strict()]
Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
Vector = tuple[Number, ...]
Sense = Literal["min", "max"]
Status = Literal["optimal", "bounded", "heuristic"]

#: What to do: names and values that the problem's page explains.
Plan = Mapping[str, Any]
#: Statuses, best first.
STATUSES: tuple[Status, ...] = get_args(Status)
#: The name of the run that proves.
CERTIFY = "certify"


def percent(gap: float) -> str:
    """Return a gap above 0 in per cent, rounded up: wherever one is shown, none is understated.

    Examples
    --------
    >>> percent(0.1), percent(1e-9), percent(0.99999)
    ('10.00%', '0.01%', '100.00%')
    """
    return f"{max(1, math.ceil(gap * 1e4 - 1e-9)) / 1e4:.2%}"


#: The kind of instance of a front whose plans are values of a user's own variables.
OWN_MODEL = "model"


@dataclass(frozen=True)
class Objective:
    """One goal."""

    __pydantic_config__ = CONFIG

    name: Text
    """Name of the goal, such as latency_ms."""
    unit: Text
    """Unit of its values."""
    step: Number | None = None
    """Smallest difference of two values. Absent or null: values are real numbers."""
    sense: Sense = "min"
    """Whether less or more is better; the goals of placeopt's problems are all minimised."""

    @property
    def sign(self) -> float:
        """1 where small values are good, -1 where large ones are."""
        return -1.0 if self.sense == "max" else 1.0


def names_of(objectives: Iterable[Objective]) -> list[str]:
    """Return the names of objectives, in their order."""
    return [o.name for o in objectives]


@dataclass(frozen=True)
class Violation:
    """One way in which a plan breaks the instance."""

    __pydantic_config__ = CONFIG

    kind: Text
    """The broken rule in a word, such as cpu-capacity."""
    amount: Number
    """By how much, relative to what is allowed; larger is worse."""
    message: Text
    """The same as a sentence, in the user's own names."""


@dataclass(frozen=True)
class Evaluation:
    """The referee's word: one value per objective of the problem, and what the plan breaks."""

    values: tuple[float, ...]
    violations: tuple[Violation, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether the plan breaks nothing."""
        return not self.violations


@dataclass(frozen=True, repr=False)
class Point:
    """One plan on a front."""

    __pydantic_config__ = CONFIG

    values: Vector
    """Value of each goal, in the order of objectives; the referee's."""
    plan: Plan
    """What to do: a plan of the problem."""
    status: Status = "heuristic"
    """optimal: proven that no plan beats it. bounded: beaten by at most gap. heuristic: not
    proven.
    """
    gap: Number | None = None
    """Largest share by which a plan could beat the point. Absent or null: unknown."""
    method: Text = ""
    """Method that found it."""
    seed: Count | None = None
    """Seed of the run that found it. Absent or null: unknown, or none."""
    also_by: tuple[Text, ...] = ()
    """Other methods that found a plan with these values. Absent: none is known."""

    def __repr__(self) -> str:
        """Values, what is proven, origin; no plan."""
        values = ", ".join(f"{value:.6g}" for value in self.values)
        gap = "" if self.gap is None else f" (gap {percent(self.gap)})"
        method = f", {self.method}" if self.method else ""
        seed = "" if self.seed is None else f" seed {self.seed}"
        return f"<Point ({values}): {self.status}{gap}{method}{seed}>"

    def __hash__(self) -> int:
        return hash((self.values, self.status, self.method, self.seed))

    def load(self, model: Any) -> None:
        """Give the variables of a Pyomo model the values that this point's plan has for them.

        Of a front of `placeopt.enumerate`. Variables that are not in the plan become 0; fixed ones
        keep their values.

        Raises
        ------
        UsageError
            The plan is of another model.
        """
        import pyomo.environ as pyo

        if not isinstance(model, pyo.ConcreteModel):
            raise UsageError(f"model is {shown(model)}; give a pyomo ConcreteModel")
        variables = list(model.component_data_objects(pyo.Var, active=True, descend_into=True))
        unknown = set(self.plan) - {variable.name for variable in variables}
        if not unknown:
            for variable in variables:
                if not variable.fixed:
                    variable.set_value(self.plan.get(variable.name, 0), skip_validation=True)
            return
        origin = vars(model).get("placeopt_origin")  # of models that placeopt built
        if origin is None or origin.assign is None or not origin.assign(model, self.plan):
            raise UsageError(
                f"the model has no variable {min(map(str, unknown))!r}, which the plan names; give "
                "the model that this front was made from"
            )

    @property
    def found_by(self) -> tuple[str, ...]:
        """All methods that found a plan with these values, that of this plan first."""
        return tuple(name for name in (self.method, *self.also_by) if name)


@dataclass(frozen=True)
class Trace:
    """What a run had found, sample after sample; the last sample is its front."""

    __pydantic_config__ = CONFIG

    reference: Vector
    """Reference point of all hypervolumes: a value for each goal."""
    seconds: Vector
    """When each sample was taken: wall-clock seconds since the run began."""
    evaluations: tuple[Count, ...]
    """Plans that were evaluated until each sample."""
    points: tuple[Count, ...]
    """Points of each sample that no other beats."""
    ideal: tuple[Vector, ...]
    """Best value of each goal, sample by sample."""
    hypervolume: Vector
    """Hypervolume of each sample within the reference point."""
    bound: tuple[Number | None, ...]
    """Hypervolume that no plans can exceed, as proven until each sample. null: nothing proven."""

    def __repr__(self) -> str:
        """How many samples, and the first and last hypervolume."""
        ends = f"{self.hypervolume[0]:.6g} to {self.hypervolume[-1]:.6g}"
        return f"<Trace: {len(self.seconds)} samples, hypervolume {ends}>"


@dataclass(frozen=True)
class Run:
    """The facts of one run."""

    __pydantic_config__ = CONFIG

    method: Text
    """Method that ran."""
    seed: Count | None = None
    """Its seed. Absent or null: it has none."""
    seconds: Number = 0.0
    """Wall-clock seconds that the run took, without those of compiling."""
    evaluations: Count = 0
    """Plans that it evaluated."""
    solver_calls: Count = 0
    """Mathematical programs that it solved."""
    completed: Flag = True
    """Whether it ended by itself, not by a limit of time or by hand."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Parameters of the method, and what it says of the run."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of placeopt and of the libraries that computed."""
    trace: Trace | None = None
    """What the run had found when, in at most about 100 samples; the last is the front. Absent or
    null: it was not kept.
    """
    cpu_seconds: Number | None = None
    """CPU seconds of the process that ran it, all its threads; of workers in other processes none.
    Without those of compiling. Absent or null: not measured.
    """
    compile_seconds: Number = 0.0
    """Wall-clock seconds that the run waited for kernels to be compiled, here or by its workers."""


@dataclass(frozen=True)
class InstanceName:
    """Which instance a front answers."""

    __pydantic_config__ = CONFIG

    problem: Text
    """Kind of the problem."""
    name: Text
    """Name of the instance."""
    sha256: Text
    """SHA-256 of the instance's document with sorted keys: which instance it was."""


@dataclass(frozen=True)
class Rejected:
    """The least-violating plan, kept where no plan is feasible."""

    __pydantic_config__ = CONFIG

    plan: Plan
    """The plan that breaks least."""
    values: Vector
    """Value of each goal, in the order of objectives."""
    violations: tuple[Violation, ...]
    """What it breaks."""


def severity(violations: Iterable[Violation]) -> float:
    """Return the total amount by which a plan breaks the instance."""
    return math.fsum(v.amount for v in violations)


def versions(libraries: Sequence[str] = ()) -> dict[str, str]:
    """Return the installed version of each distribution, and of placeopt."""
    results = {}
    for name in ("placeopt", *libraries):
        try:
            results[name] = version(name)
        except PackageNotFoundError:
            results[name] = "not installed"
    return results
