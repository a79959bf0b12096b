"""What a front is made of: goals, values, points, runs, and what a plan breaks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from placeopt.core.errors import UsageError, shown

#: What to do: names and values that the problem's page explains.
Plan = Mapping[str, Any]
#: Statuses, best first.
STATUSES = ("optimal", "bounded", "heuristic")
#: The kind of instance of a front whose plans are values of a user's own variables.
OWN_MODEL = "model"


@dataclass(frozen=True)
class Objective:
    """One goal.

    Attributes
    ----------
    name, unit : str
    step : float or None
        The smallest difference that two values can have on this instance; None where values are
        real.
    sense : {"min", "max"}
        All goals of a placeopt problem are minimised; a user's own model may maximise some.
    """

    name: str
    unit: str
    step: float | None = None
    sense: str = "min"

    @property
    def sign(self) -> float:
        """1 where small values are good, -1 where large ones are."""
        return -1.0 if self.sense == "max" else 1.0


def names_of(objectives: Iterable[Objective]) -> list[str]:
    """Return the names of objectives, in their order."""
    return [o.name for o in objectives]


@dataclass(frozen=True)
class Violation:
    """One way in which a plan breaks the instance.

    Attributes
    ----------
    kind : str
        The broken rule, such as ``cpu-capacity``.
    amount : float
        By how much, relative to what is allowed; larger is worse.
    message : str
        One sentence in the user's own names.
    """

    kind: str
    amount: float
    message: str


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
    """One plan on a front; `values` are the referee's, in the order of the front's objectives.

    `also_by` names the other methods that found a plan with these values.
    """

    values: tuple[float, ...]
    plan: Plan
    status: str = "heuristic"
    gap: float | None = None
    method: str = ""
    seed: int | None = None
    also_by: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Values, what is proven, origin; no plan."""
        values = ", ".join(f"{value:.6g}" for value in self.values)
        gap = "" if self.gap is None else f" (gap {self.gap:.2%})"
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
    """What a run had found, sample after sample; the last sample is its front.

    Attributes
    ----------
    reference : tuple of float
        The reference point of all hypervolumes.
    seconds, evaluations, points : tuple
        Since the run began; points that no other beats.
    ideal : tuple of tuple of float
        The best value of each objective.
    hypervolume : tuple of float
    bound : tuple of float or None
        The hypervolume that no plans can exceed, where that is proven.
    """

    reference: tuple[float, ...]
    seconds: tuple[float, ...]
    evaluations: tuple[int, ...]
    points: tuple[int, ...]
    ideal: tuple[tuple[float, ...], ...]
    hypervolume: tuple[float, ...]
    bound: tuple[float | None, ...]

    def __repr__(self) -> str:
        """How many samples, and the first and last hypervolume."""
        ends = f"{self.hypervolume[0]:.6g} to {self.hypervolume[-1]:.6g}"
        return f"<Trace: {len(self.seconds)} samples, hypervolume {ends}>"


@dataclass(frozen=True)
class Run:
    """The facts of one run.

    `seconds` and `cpu_seconds` are those of work, the latter of all threads of the process that
    ran it. `compile_seconds` passed beside them while kernels were compiled.
    """

    method: str
    seed: int | None
    seconds: float
    evaluations: int = 0
    solver_calls: int = 0
    completed: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    trace: Trace | None = None
    cpu_seconds: float | None = None
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class InstanceName:
    """Which instance a front answers."""

    problem: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Rejected:
    """The least-violating plan, kept where no plan is feasible."""

    plan: Plan
    values: tuple[float, ...]
    violations: tuple[Violation, ...]


def severity(violations: Iterable[Violation]) -> float:
    """Return the total amount by which a plan breaks the instance."""
    return math.fsum(v.amount for v in violations)
