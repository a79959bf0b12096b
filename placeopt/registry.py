"""Which problems and methods there are: ours by name, others' by entry points or registration.

A distribution adds a problem by the entry point group ``placeopt.problems``, each naming a
`ProblemSpec`, and a method for all problems by ``placeopt.methods``, each naming a `Method`.
Nothing is imported until it is used. A program adds a problem by `placeopt.register`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.core.budget import DEFAULT_EVALUATIONS, Budget
from placeopt.core.errors import (
    DocumentError,
    UnsupportedError,
    did_you_mean,
    require_known,
)
from placeopt.core.files.documents import read_json, what_is
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.shipped import find, instances
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName
from placeopt.core.interfaces import Encoder, build_encoder, build_sequence
from placeopt.core.problem import Problem, keyword_defaults, require_minimised
from placeopt.core.spec import ADDED, DEFAULT_SECONDS, Method, ProblemSpec, Role, load, records

#: Our problem packages.
PACKAGES = ("temporal", "edge_cloud", "rolling_update", "multi_cluster", "rescheduling")

#: The exact method of problems that have a model.
EXACT = "epsilon-constraint"

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
        EXACT,
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
            extra="jmetal",
            modules=("jmetal",),
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
)

#: What `auto` runs on a problem that does not say: the first of these that serves it.
FALLBACKS = ("moead", "rollout", EXACT)
#: Where such a problem has a model too, and an instance at most 2 to this many vectors, the exact
#: method comes first, with a share of the budget: by the number of goals, fewer for more of them.
#: Up to there it takes about as long as MOEA/D on sums over zeros and ones.
SMALL_BITS, FEW_BITS, EXACT_SHARE = 24, 12, 0.5


@cache
def installed() -> dict[str, ProblemSpec]:
    """Return the problems of this and other distributions by kind, ours first."""
    results = [load(f"placeopt.{name}:SPEC") for name in PACKAGES]
    results += records("placeopt.problems", ProblemSpec)
    kinds: dict[str, ProblemSpec] = {}
    for spec in results:  # of two problems of one kind the first stands: ours
        kinds.setdefault(spec.kind, spec)
    return kinds


def specs() -> dict[str, ProblemSpec]:
    """Return every problem by its kind: ours, those of other distributions, those registered."""
    return {**installed(), **ADDED}


@dataclass(frozen=True)
class MethodEntry:
    """A method under one name, for all the problems that have one of that name.

    Attributes
    ----------
    name, summary : str
    of : dict
        Kind of problem -> the method that serves it.
    needs : str or None
        The member of `ProblemSpec` that a problem has to declare; None for problems' own methods.
    """

    name: str
    summary: str
    of: dict[str, Method] = field(default_factory=dict)
    needs: str | None = None

    @property
    def role(self) -> Role:
        """What the method is for: one of `placeopt.core.spec.ROLES`."""
        return next((method.role for method in self.of.values()), "search")

    @property
    def problems(self) -> tuple[str, ...]:
        """Kinds of problems that the method serves."""
        return tuple(self.of)

    @property
    def extra(self) -> str | None:
        """Optional packages that the method needs."""
        return next((method.extra for method in self.of.values()), None)

    @property
    def installed(self) -> bool:
        """Whether the optional packages are there."""
        return all(method.installed for method in self.of.values())

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
            raise UnsupportedError(self._refusal(kind))
        return self.of[kind].load()

    def _refusal(self, kind: str) -> str:
        """Say why the method does not serve a kind of problem."""
        if kind not in specs():
            return _unknown(kind)
        refused = f"method {self.name!r} does not support {kind}"
        members = [member.name for member in fields(ProblemSpec)]
        if self.needs is not None and self.needs not in members:
            near = did_you_mean(self.needs, members)
            return f"{refused}: it needs {self.needs!r}, which is no member of ProblemSpec; {near}"
        if self.needs is not None:
            refused += f": it needs {self.needs!r}, which the problem does not declare"
        others = [entry.name for entry in methods().values() if kind in entry.of]
        return f"{refused}; methods that do: {', '.join(others)}"


def methods() -> dict[str, MethodEntry]:
    """Return every method by its name, in alphabetical order.

    Returns
    -------
    dict of str to MethodEntry
        With its `summary`, its `role` and the `problems` that it serves.

    Examples
    --------
    >>> methods()["bin-plans"].problems
    ('temporal',)
    """
    generic = [*GENERIC, *records("placeopt.methods", Method)]
    results = {m.name: MethodEntry(m.name, m.summary, needs=m.needs) for m in generic}
    for kind, spec in specs().items():
        served = [m for m in generic if m.serves(spec)]
        for method in (*served, *spec.methods):
            entry = results.setdefault(method.name, MethodEntry(method.name, method.summary))
            entry.of[kind] = method
    return dict(sorted(results.items()))


def spec_of(kind: str) -> ProblemSpec:
    """Return what the problem called `kind` declares.

    Raises
    ------
    UsageError
        There is no such problem.
    """
    require_known("problem", kind, specs())
    return specs()[kind]


def require_registered(problem: Problem) -> None:
    """Raise unless methods know a problem.

    Raises
    ------
    UnsupportedError
        Says how it becomes known.
    """
    if problem.spec.kind not in specs():
        raise UnsupportedError(_unknown(problem.spec.kind))


def _unknown(kind: str) -> str:
    return (
        f"{kind!r} is no problem that placeopt knows; placeopt.register(spec) adds it to this "
        "program, an entry point 'placeopt.problems' to an installation"
    )


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
    if not os.path.exists(file) and not os.path.dirname(path):
        near = did_you_mean(str(path)[:100], instances())
        remedy = f"give a file, or the name of an instance that comes with placeopt; {near}"
        raise DocumentError("no such file or instance", file=str(path)[:100], remedy=remedy)
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
    problem = problem_class(kind).from_document(document)
    if kind.replace("-", "_") not in PACKAGES:
        require_minimised(problem.objectives, kind)
    return problem


def method(name: str) -> MethodEntry:
    """Return the method called `name`.

    Raises
    ------
    UsageError
        There is none; the message suggests the nearest.
    """
    known = methods()
    require_known("method", name, known)
    return known[name]


def auto(
    problem: Problem, goals: int | None = None, seconds: float | None = None
) -> tuple[tuple[str, float], ...]:
    """Return the methods that ``auto`` runs in turn, each with its share of the budget left.

    `goals` is the number of objectives asked for, all by default; `seconds`, the time left, is told
    to choosers that ask for it.
    """
    alone = problem.spec.auto_alone if goals == 1 else None
    chosen = alone or problem.spec.auto
    if callable(chosen) or (isinstance(chosen, str) and ":" in chosen):
        choose = load(chosen)
        asks = "seconds" in keyword_defaults(choose)
        chosen = choose(problem, seconds=seconds) if asks else choose(problem)
    if chosen is not None:
        return ((chosen, 1.0),) if isinstance(chosen, str) else chosen
    names = (*FALLBACKS, *(own.name for own in problem.spec.methods))
    serving = [name for name in names if problem.spec.kind in method(name).of]
    if not serving:
        raise UnsupportedError(
            f"no method serves {problem.spec.kind}; its spec has to declare 'encoder', 'sequence', "
            "'model' or methods of its own"
        )
    small = SMALL_BITS if len(problem.objectives) <= 2 else FEW_BITS
    if serving[0] != EXACT and EXACT in serving and _bits(problem) <= small:
        return ((EXACT, EXACT_SHARE), (serving[0], 1.0))
    return ((serving[0], 1.0),)


def fallback(problem: Problem, name: str) -> str | None:
    """Return the search that serves an instance for which `name`, chosen by ``auto``, cannot."""
    kind = problem.spec.kind
    others = (other for other in FALLBACKS if other not in (name, EXACT))
    return next((other for other in others if kind in method(other).of), None)


def _bits(problem: Problem) -> float:
    """Return the binary logarithm of the number of vectors, or of sequences of actions."""
    if problem.spec.has("encoder"):
        encoder = build_encoder(problem)
        return float(np.log2(encoder.upper - encoder.lower + 1.0).sum())
    sequence = build_sequence(problem)
    return sequence.decisions * math.log2(max(1, sequence.num_actions))


def last_stage(problem: Problem, goals: int) -> str:
    """Return the method that goes on where others of ``auto`` have begun."""
    return auto(problem, goals)[-1][0]


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


def small_instances(kind: str) -> Iterator[Problem]:
    """Yield the smallest instance that comes with placeopt, then one that is drawn smaller yet."""
    files = [file for file in instances().values() if file.parent.name == kind]
    for file in sorted(files, key=lambda file: file.stat().st_size)[:1]:
        yield read(file)
    cls = problem_class(kind)
    main = [name for name, default in cls.sizes().items() if type(default) is int][:1]
    yield cls.generate(0, **dict.fromkeys(main, 2))


def quick(problem: Problem) -> str:
    """Return the method that finds a plan soonest: how ``check`` looks for one."""
    chosen = problem.spec.quick
    served = chosen in methods() and problem.spec.kind in methods()[chosen].of
    return chosen if served else "auto"


def certified() -> tuple[str, ...]:
    """Return the kinds of problems whose fronts can get a proven lower-bound set."""
    return tuple(kind for kind, spec in specs().items() if _proves(spec) is not None)


def _proves(spec: ProblemSpec) -> str | None:
    """Return what proves bounds of a problem: its own, its model, or all vectors; None for none."""
    if spec.has("bounds") or spec.has("model"):
        return "bounds" if spec.has("bounds") else "placeopt.exact.epsilon_constraint:bounds"
    encoder = spec.load("encoder") if spec.has("encoder") else None
    if isinstance(encoder, type) and issubclass(encoder, Encoder) and encoder.every_plan:
        return _BY_ALL_VECTORS
    return None


_BY_ALL_VECTORS = "placeopt.core.fronts.certificate:by_all_vectors"


def certifier(kind: str) -> Callable[..., Front]:
    """Return the function that adds a lower-bound set to a front of this problem.

    By default its Pyomo model proves the bounds, or else all vectors of an encoder do that says
    `Encoder.every_plan`.

    Raises
    ------
    UnsupportedError
        No bound is known for the problem.
    """
    spec = spec_of(kind)
    entry = _proves(spec)
    if entry is None:
        raise UnsupportedError(
            f"nothing proves lower bounds for {kind}: it declares neither 'bounds' nor 'model'; "
            f"problems that do: {', '.join(certified())}"
        )
    certified_by = load("placeopt.core.fronts.certificate:certified")
    proves = spec.load("bounds") if entry == "bounds" else load(entry)
    goal = "" if spec.gap_of is None and entry == _BY_ALL_VECTORS else spec.gap_of
    return partial(certified_by, bounds=proves, goal=goal)
