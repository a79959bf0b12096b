"""What every problem is: an immutable document, named objectives, and a referee."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from placeopt.core.errors import (
    DocumentError,
    UnsupportedError,
    UsageError,
    did_you_mean,
    require_known,
    shown,
)
from placeopt.core.files import documents
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.values import (
    Evaluation,
    InstanceName,
    Objective,
    Plan,
    Violation,
    names_of,
)
from placeopt.core.goals import judged
from placeopt.core.numbers import checked_seed
from placeopt.core.parameters import checked, require_options
from placeopt.core.spec import ProblemSpec

__all__ = [
    "Amount",
    "Count",
    "Evaluation",
    "Name",
    "Objective",
    "Positive",
    "PositiveCount",
    "Problem",
    "Record",
    "Violation",
]


#: A name of the user's own: any text that is not empty.
Name = Annotated[str, Field(strict=True, min_length=1, max_length=253)]
#: A finite quantity >= 0.
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
#: A finite quantity > 0.
Positive = Annotated[float, Field(strict=True, gt=0, le=1e9, allow_inf_nan=False)]
#: A whole number >= 0.
Count = Annotated[int, Field(strict=True, ge=0, le=10**6)]
#: A whole number >= 1.
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=10**6)]


class Record(BaseModel):
    """A part of a document: immutable, unknown fields are an error.

    The text below a field is its description in the JSON Schema: unit, meaning, what absent means.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


#: A class of instances.
P = TypeVar("P", bound="Problem")


class _NoSpec:
    """The spec of a class that nobody has given one."""

    def __get__(self, problem: object, kind: type) -> ProblemSpec:
        raise UnsupportedError(
            f"the class {kind.__name__} has no spec; placeopt.register(spec) gives it one"
        )


class Problem(Record):
    """An instance of one problem.

    A subclass declares its fields, its `spec`, `objectives`, `evaluate`, and where they say
    something `warnings`, `infeasibility` and `describe`.
    """

    #: What the problem's package declares.
    spec: ClassVar[ProblemSpec] = _NoSpec()  # type: ignore[assignment]

    #: What plans may cost at most, by the names of goals: of the question, not of the instance.
    _goal_limits: dict[str, float] = PrivateAttr(default_factory=dict)

    problem: str
    """Kind of the problem."""
    name: Name
    """Name of the instance, for people and in front files."""

    def __repr__(self) -> str:
        """Kind, name, and the length of every list; no contents."""
        parts = ((name, getattr(self, name)) for name in type(self).model_fields)
        sizes = [f"{len(part)} {name}" for name, part in parts if isinstance(part, (tuple, list))]
        return f"<{self.problem} instance {self.name}: {', '.join(sizes)}>"

    __str__ = __repr__

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Validate a JSON document.

        Raises
        ------
        DocumentError
            Names the JSON path, the value and what is legal.
        """
        return documents.validate(cls, document)

    @classmethod
    def read(cls, path: AnyPath) -> Self:
        """Read an instance file of this problem."""
        return documents.validate(cls, documents.read_json(path), file=str(path))

    @classmethod
    def generate(cls, seed: int = 0, **sizes: Any) -> Self:
        """Return a random instance; `sizes` are the keyword arguments of the spec's generator."""
        generator, what = cls.spec.load("generator"), f"{cls.spec.kind} instances"
        require_options(sizes, cls.sizes(), what)
        return cls.from_document(generator(checked_seed(seed), **checked(generator, what, sizes)))

    @classmethod
    def sizes(cls) -> dict[str, Any]:
        """Return the keyword arguments of `generate` besides the seed, with their defaults."""
        return keyword_defaults(cls.spec.load("generator"))

    def to_document(self) -> dict[str, Any]:
        """Return the instance as a JSON document; `from_document` gives the same instance back."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)

    def write(self, path: AnyPath) -> None:
        """Write the instance, atomically."""
        documents.write_json(path, self.to_document())

    @cached_property
    def instance_name(self) -> InstanceName:
        """How fronts refer to this instance."""
        return InstanceName(self.problem, self.name, documents.sha256(self.to_document()))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The goals, all minimised, in the order of `Evaluation.values`."""
        raise NotImplementedError

    def select(self, names: Sequence[str] | None) -> tuple[Objective, ...]:
        """Return the objectives called `names`, in that order; all of them for None.

        Raises
        ------
        UsageError
            An unknown or repeated name.
        UnsupportedError
            A goal of the problem is maximised.
        """
        require_minimised(self.objectives, self.problem)
        if names is None:
            return self.objectives
        names = self._listed(names)
        existing = {o.name: o for o in self.objectives}
        for name in names:
            require_known(f"{self.problem} objective", name, existing)
        if len(set(names)) < len(names) or not names:
            raise UsageError(
                f"objectives {', '.join(names)!r}: name each objective once, and at least one"
            )
        return tuple(existing[name] for name in names)

    def _listed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names of objectives that are given as a list, not as a text."""
        if not isinstance(names, str):
            with suppress(TypeError):
                return tuple(names)
        raise UsageError(
            f"objectives is {shown(names)}; give a list of names, such as "
            f"{names_of(self.objectives)[:1]}"
        )

    def columns(self, objectives: Sequence[Objective]) -> list[int]:
        """Return where `objectives` stand in `Evaluation.values`."""
        names = names_of(self.objectives)
        return [names.index(o.name) for o in objectives]

    def evaluate(self, plan: Plan) -> Evaluation:
        """Judge a plan: the referee.

        Raises
        ------
        DocumentError
            The plan is not of the problem's form, or names things that the instance does not have.
        """
        raise NotImplementedError

    @property
    def goal_limits(self) -> dict[str, float]:
        """What plans may cost at most, by the names of goals; see `within`."""
        return self._goal_limits

    def within(self, limits: Mapping[str, float]) -> Self:
        """Return the same instance, whose plans are to keep limits on goals.

        Its name, its document and the referee's word are those of this one. Methods keep the limits
        as they keep the instance: `judge` counts what is above as a violation.
        """
        problem = self.model_copy()
        problem._goal_limits = dict(limits)
        return problem

    def judge(self, plan: Plan) -> Evaluation:
        """Return the referee's word on a plan, with what is above the limits."""
        verdict = self.evaluate(plan)
        return judged(verdict, self._goal_limits, self.objectives) if self._goal_limits else verdict

    def read_plan(self, document: Any) -> Plan:
        """Validate a plan document and return it as plain JSON values."""
        plan = documents.validate(self.spec.load("plan"), document)
        return plan.model_dump(mode="json", by_alias=True)

    @contextmanager
    def reading(self, plan: Any) -> Iterator[None]:
        """Turn what a plan of another form raises into the field that is wrong.

        Raises
        ------
        DocumentError
            The plan cannot be read.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            self.read_plan(plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})",
                remedy=f"see `placeopt schema {self.problem}`",
            ) from None

    def warnings(self) -> tuple[str, ...]:
        """Return what is legal in this instance but looks like a mistake, a sentence each."""
        return ()

    def infeasibility(self) -> tuple[str, ...]:
        """Return why no plan can exist, a sentence each; empty where no reason is known."""
        return ()

    def describe(self, plan: Plan) -> dict[str, str]:
        """Return a short summary of a plan for people: label -> text."""
        return {}


def of_kind(kind: type[P], problem: Problem) -> P:
    """Return an instance whose problem has to be a certain one.

    Raises
    ------
    UsageError
        It is another problem's.
    """
    if not isinstance(problem, kind):
        wanted, other = (one.spec.kind for one in (kind, problem))
        raise UsageError(f"an instance of {wanted} is needed; {problem.name!r} is one of {other}")
    return problem


def require_minimised(objectives: Iterable[Objective], problem: str) -> None:
    """Raise unless all goals of a problem are minimised: methods do nothing else.

    Raises
    ------
    UnsupportedError
        Names the goal and says what to declare instead.
    """
    for objective in objectives:
        if objective.sense != "min":
            raise UnsupportedError(
                f"goal {objective.name!r} of {problem} is maximised, and goals of a problem are "
                "minimised; declare what is to be small instead: what is lacking, or the negative"
            )


def keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the keyword-only arguments of a function with their defaults."""
    return {
        name: p.default
        for name, p in inspect.signature(function).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }


def keywords(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `values`, its ``locals()`` say, give for a function's keyword-only arguments."""
    return {name: values[name] for name in keyword_defaults(function)}


def require_unique(items: Iterable[Any], what: str, path: str | None = None) -> None:
    """Raise unless `items` are all different.

    `path` is the list they stand in: for the `what` "node" it is ``nodes`` if not given.
    """
    where = f"{what}s" if path is None and what.isidentifier() else path
    seen = set()
    for k, item in enumerate(items):
        if item in seen:
            shown = item if isinstance(item, str) else " ".join(map(str, item))
            raise DocumentError(
                f"{what} {shown!r} stands twice",
                path=where and f"{where}[{k}]",
                remedy="names must be unique",
            )
        seen.add(item)


def require_name(
    what: str, name: Any, known: Collection[str], path: str, said: str | None = None
) -> None:
    """Raise unless a document knows a name.

    Raises
    ------
    DocumentError
        There is no such name; `said`, or else "unknown" and `what`, goes before it.
    """
    if name not in known:
        raise DocumentError(
            f"{said or f'unknown {what}'} {str(name)[:60]!r}",
            path=path,
            remedy=did_you_mean(str(name)[:60], list(known)[:50]),
        )


def latency_rows(
    names: Sequence[str],
    given: Mapping[str, Mapping[str, float]],
    missing: float | None = None,
) -> list[list[float]]:
    """Return the latency in ms from every place to every other, shape (places, places).

    One direction stands for both where the other is not given; a place is 0 ms from itself.

    Parameters
    ----------
    missing : float, optional
        The latency of two places that have none.

    Raises
    ------
    DocumentError
        Two places have none, and `missing` is not given.
    """
    none = -1.0 if missing is None else missing
    rows = [
        [
            given.get(one, {}).get(
                other, given.get(other, {}).get(one, 0.0 if one == other else none)
            )
            for other in names
        ]
        for one in names
    ]
    for one, row in zip(names, rows, strict=True):
        for other, ms in zip(names, row, strict=True):
            if ms < 0:
                remedy = f'give latency_ms["{one}"]["{other}"]'
                raise DocumentError(
                    f"no latency between {one!r} and {other!r}", path="latency_ms", remedy=remedy
                )
    return rows
