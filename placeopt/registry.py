"""Which problems and methods there are: ours by name, others' through entry points.

A distribution adds a problem by the entry point group ``placeopt.problems``, each naming a
`ProblemSpec`, and a method for all problems by ``placeopt.methods``, each naming a `Method`.
Nothing is imported until it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from placeopt.core.budget import DEFAULT_EVALUATIONS, Budget
from placeopt.core.compiling import Expected
from placeopt.core.documents import read_json, what_is
from placeopt.core.errors import (
    DocumentError,
    UnsupportedError,
    did_you_mean,
    require_known,
)
from placeopt.core.files import AnyPath
from placeopt.core.front import Front, InstanceName
from placeopt.core.problem import Problem
from placeopt.core.shipped import find, instances
from placeopt.core.spec import DEFAULT_SECONDS, Method, ProblemSpec, Role, load

#: Our problem packages.
PACKAGES = ("temporal", "edge_cloud", "rolling_update", "multi_cluster", "rescheduling")

#: Methods that serve every problem with what they need.
GENERIC = (
    Method(
        "auto",
        "placeopt.portfolio:auto",
        "the best methods for the problem and its size, one after another",
        "instance",
        kept="methods that have ended; of the present one what it keeps",
    ),
    Method(
        "ensemble",
        "placeopt.portfolio:ensemble",
        "several methods on equal shares of the budget, their fronts merged",
        "encoder",
        parallel=True,
        kept="methods that have ended; of the others what they keep",
    ),
    Method(
        "epsilon-constraint",
        "placeopt.exact.epsilon_constraint:run",
        "exact front of the Pyomo model (small instances)",
        "model",
        role="exact",
        parallel=True,
        seconds=DEFAULT_SECONDS,
        kept="points, and all that was proven",
    ),
    *(
        Method(
            f"jmetal-{name}",
            f"placeopt.evolve.jmetal_methods:{name}",
            f"{title} of jMetalPy with the operators of the CNSM 2024 paper, without seeds",
            "encoder",
            role="published",
            seconds=DEFAULT_SECONDS,
            evaluations=DEFAULT_EVALUATIONS,
            kept="the archive",
        )
        for name, title in (("nsga2", "NSGA-II"), ("nsga3", "NSGA-III"), ("smpso", "SMPSO"))
    ),
    Method(
        "moead",
        "placeopt.evolve.moead:run",
        "MOEA/D with Tchebycheff weights, seeds, an archive and recombination of parts",
        "encoder",
        kept="the archive",
    ),
    Method(
        "mspso",
        "placeopt.evolve.mspso:run",
        "the multi-swarm PSO of the CNSM 2024 paper",
        "encoder",
        role="published",
        kept="the archive",
    ),
    Method(
        "nsga2",
        "placeopt.evolve.nsga:nsga2",
        "NSGA-II on pymoo with compiled operators, seeds and an archive",
        "encoder",
        kept="the archive",
    ),
    Method(
        "nsga3",
        "placeopt.evolve.nsga:nsga3",
        "NSGA-III on pymoo with compiled operators, seeds and an archive",
        "encoder",
        kept="the archive",
    ),
    Method(
        "policy",
        "placeopt.rl.play:run",
        "a trained policy decides request after request; needs no torch",
        "sequence",
    ),
    Method(
        "rollout",
        "placeopt.rollout.rollout:run",
        "tries each option for the next decision, lets a simple policy finish, keeps the best",
        "sequence",
        seconds=DEFAULT_SECONDS,
    ),
    Method(
        "sharded",
        "placeopt.evolve.sharded:run",
        "splits an instance of thousands of requests, searches the parts, combines them",
        "division",
        parallel=True,
        kept="parts that have ended",
    ),
)

#: What `auto` runs on a problem that does not say: the first of these that serves it.
FALLBACKS = ("moead", "rollout", "epsilon-constraint")


@cache
def specs() -> dict[str, ProblemSpec]:
    """Return every problem by its kind: ours first, then those of other distributions."""
    found = [load(f"placeopt.{name}:SPEC") for name in PACKAGES]
    found += [point.load() for point in entry_points(group="placeopt.problems")]
    kinds: dict[str, ProblemSpec] = {}
    for spec in found:  # of two problems of one kind the first stands: ours
        kinds.setdefault(spec.kind, spec)
    return kinds


@dataclass(frozen=True)
class MethodEntry:
    """A method under one name, for all the problems that have one of that name.

    Attributes
    ----------
    name, summary : str
    of : dict
        Kind of problem -> the method that serves it.
    """

    name: str
    summary: str
    of: dict[str, Method] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """What the method is for: one of `placeopt.core.spec.ROLES`."""
        return next(iter(self.of.values())).role

    @property
    def problems(self) -> tuple[str, ...]:
        """Kinds of problems that the method serves."""
        return tuple(self.of)

    @property
    def extra(self) -> str | None:
        """Optional packages that the method needs."""
        return next((method.extra for method in self.of.values()), None)

    @property
    def kept(self) -> str | None:
        """What of a run that was killed is not done again, in words; None for nothing."""
        kept = {kind: method.kept for kind, method in self.of.items() if method.kept}
        if len(set(kept.values())) <= 1:
            return next(iter(kept.values()), None)
        return "; ".join(f"{kind}: {what}" for kind, what in kept.items())

    def load(self, kind: str) -> Callable[..., Front]:
        """Return the function that answers a kind of problem: `MethodFunction` of interfaces.

        Raises
        ------
        UnsupportedError
            The method does not support the problem, or an extra is missing.
        """
        if kind not in self.of:
            others = [entry.name for entry in methods().values() if kind in entry.of]
            raise UnsupportedError(
                f"method {self.name!r} does not support {kind}; methods that do: "
                + ", ".join(others)
            )
        return self.of[kind].load()


@cache
def methods() -> dict[str, MethodEntry]:
    """Return every method by its name, in alphabetical order."""
    generic = [*GENERIC, *(point.load() for point in entry_points(group="placeopt.methods"))]
    found: dict[str, MethodEntry] = {}
    for kind, spec in specs().items():
        served = [m for m in generic if m.needs is None or spec.has(m.needs)]
        for method in (*served, *spec.methods):
            entry = found.setdefault(method.name, MethodEntry(method.name, method.summary))
            entry.of[kind] = method
    return dict(sorted(found.items()))


def spec_of(kind: str) -> ProblemSpec:
    """Return what the problem called `kind` declares.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    require_known("problem", kind, specs())
    return specs()[kind]


def problem_class(kind: str) -> type[Problem]:
    """Return the class of the problem called `kind`.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    return spec_of(kind).load("instance")


def read(path: AnyPath) -> Problem:
    """Read an instance: a file, or the name of one that comes with placeopt.

    The ``"problem"`` of the document picks the class.

    Raises
    ------
    DocumentError
        Names the file, the JSON path, the value and what is legal.
    """
    file = find(path)
    if not file.exists() and not os.path.dirname(path):
        remedy = f"give a file, or an instance that comes with placeopt: {', '.join(instances())}"
        raise DocumentError("no such file or instance", file=str(path), remedy=remedy)
    document = read_json(file)
    try:
        return from_document(document)
    except DocumentError as error:
        raise error.in_file(str(file)) from None


def shipped(name: InstanceName) -> Path | None:
    """Return the file of the instance if it comes with placeopt, by its SHA-256; else None."""
    file = instances().get(name.name)
    return file if file is not None and read(file).instance_name == name else None


def from_document(document: Any) -> Problem:
    """Return the problem that a JSON document describes."""
    legal = specs()
    if not isinstance(document, dict):
        raise DocumentError(
            f"an instance is a JSON object, not {type(document).__name__}",
            remedy='start with {"problem": ...}',
        )
    kind = document.get("problem")
    if kind is None and (what := what_is(document)) is not None:
        raise DocumentError(
            f"this is {what}, not an instance", remedy='an instance starts with {"problem": ...}'
        )
    if kind is None:
        raise DocumentError(
            "this field is missing", path="problem", remedy="legal: " + ", ".join(legal)
        )
    if not isinstance(kind, str) or kind not in legal:
        shown = str(kind)[:60]
        raise DocumentError(
            f"unknown problem {shown!r}", path="problem", remedy=did_you_mean(shown, legal)
        )
    return problem_class(kind).from_document(document)


def method(name: str) -> MethodEntry:
    """Return the method called `name`.

    Raises
    ------
    UsageError
        There is none; the message suggests the nearest.
    """
    require_known("method", name, methods())
    return methods()[name]


def auto(problem: Problem, goals: int | None = None) -> tuple[tuple[str, float], ...]:
    """Return the methods that ``auto`` runs in turn, each with its share of the budget left.

    `goals` is the number of objectives asked for, all by default.
    """
    alone = problem.spec.auto_alone if goals == 1 else None
    chosen = alone or problem.spec.auto
    if isinstance(chosen, str) and ":" in chosen:
        chosen = load(chosen)(problem)
    if chosen is not None:
        return ((chosen, 1.0),) if isinstance(chosen, str) else chosen
    names = (*FALLBACKS, *(own.name for own in problem.spec.methods))
    serving = [name for name in names if problem.spec.kind in method(name).of]
    if not serving:
        raise UnsupportedError(f"no method serves {problem.spec.kind}")
    return ((serving[0], 1.0),)


def last_stage(name: str, problem: Problem, goals: int) -> str:
    """Return the method that goes on where others of ``auto`` have begun; others are their own."""
    return auto(problem, goals)[-1][0] if name == "auto" else name


def parallel(name: str, problem: Problem) -> bool:
    """Return whether a method consists of tasks that run on several workers."""
    return any(entry.parallel for entry in _stages(name, problem))


def _stages(name: str, problem: Problem) -> list[Method]:
    """Return the methods that a method runs on a problem: itself, or what ``auto`` chooses."""
    names = [stage for stage, _ in auto(problem)] if name == "auto" else [name]
    entries = [method(stage).of.get(problem.spec.kind) for stage in names]
    return [entry for entry in entries if entry is not None]


def budget_for(
    name: str, problem: Problem, evaluations: int | None = None, seconds: float | None = None
) -> Budget:
    """Return the budget of a run: the limits given, or the method's own where none is given.

    Of several stages of ``auto`` the last one's: what comes before it gets a share.
    """
    if evaluations is None and seconds is None and name in methods():
        for last in _stages(name, problem)[-1:]:
            evaluations, seconds = last.evaluations, last.seconds
    return Budget(evaluations, seconds)


def first_run(kind: str, *names: str) -> Expected:
    """Return what methods compile for a problem where nothing is compiled yet; 0 if not known.

    What ``certify`` adds to a method has that name. ``benchmarks/first_runs.py`` measured them.
    """
    with resources.files("placeopt").joinpath("first_runs.json").open(encoding="utf-8") as file:
        known = json.load(file).get(kind, {})
    rows = [known.get(name, (0, 0.0)) for name in names]
    return Expected(sum(row[0] for row in rows), sum(row[1] for row in rows))


def quick(problem: Problem) -> str:
    """Return the method that finds a plan soonest: how ``check`` looks for one."""
    chosen = problem.spec.quick
    served = chosen in methods() and problem.spec.kind in methods()[chosen].of
    return chosen if served else "auto"


def certified() -> tuple[str, ...]:
    """Return the kinds of problems whose fronts can get a proven lower-bound set."""
    return tuple(kind for kind, spec in specs().items() if spec.has("certify"))


def certifier(kind: str) -> Callable[..., Front]:
    """Return the function that adds a lower-bound set to a front of this problem.

    Raises
    ------
    UnsupportedError
        No bound is known for the problem.
    """
    spec = spec_of(kind)
    if not spec.has("certify"):
        raise UnsupportedError(
            f"no lower bounds are implemented for {kind}; problems that have them: "
            + ", ".join(certified())
        )
    return spec.load("certify")
