"""What a problem package declares of itself, as strings: nothing is imported until it is used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from placeopt.core.errors import MissingExtraError, UnsupportedError, UsageError

#: What a method is for: a search or an exact method answers best; a bound proves; a baseline is a
#: simple rule that others are compared with; a published method is a paper's own, kept as printed.
Role = Literal["search", "exact", "bound", "baseline", "published"]
ROLES: tuple[Role, ...] = get_args(Role)
#: Roles of methods that others are compared with.
COMPARED: tuple[Role, ...] = ("baseline", "published")

#: Time limit in seconds of methods that may take long, where none is given: they end in a minute.
DEFAULT_SECONDS = 50.0


#: ``"module:name"``, or the object itself where it stands in a notebook.
Entry: TypeAlias = Any

_R = TypeVar("_R")


def load(entry: Entry) -> Any:
    """Return what ``"module:name"`` stands for; ``"module"`` alone is the module.

    What is no text is returned as it is.
    """
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.partition(":")
    result = importlib.import_module(module)
    return getattr(result, name) if name else result


@cache
def offered(group: str, prefix: str = "") -> dict[str, Callable[[], Any]]:
    """Return what installed distributions offer: name without its prefix -> what loads it.

    It raises a `UsageError` that names the entry point, where that cannot be loaded.
    """
    return {
        point.name.removeprefix(prefix): partial(_loaded, point)
        for point in entry_points(group=group)
        if point.name.startswith(prefix)
    }


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever a module of somebody else raises
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"{_place(point)}, cannot be loaded: {told}") from error


def _place(point: EntryPoint) -> str:
    return f"entry point {point.name!r} of {point.group}, {point.value}"


@cache
def records(group: str, kind: type[_R]) -> list[_R]:
    """Return the records of a kind that installed distributions offer.

    Raises
    ------
    UsageError
        Names the entry point that cannot be loaded, or is of another kind.
    """
    results = []
    for point in entry_points(group=group):
        entry = _loaded(point)
        if not isinstance(entry, kind):
            raise UsageError(f"{_place(point)}, is {entry!r:.60}; it has to be a {kind.__name__}")
        results.append(entry)
    return results


@dataclass(frozen=True)
class Method:
    """One way of answering.

    Attributes
    ----------
    name : str
    entry : str
        ``"module:function"``; the function is a `placeopt.core.interfaces.MethodFunction`.
    summary : str
        One line for ``placeopt methods``.
    role : str
        One of `ROLES`. Baselines and published methods are listed apart.
    needs : str or None
        The member of `ProblemSpec` that a problem must declare to be served: ``"encoder"``, say.
        None for the method of one problem.
    problems : tuple of str
        Kinds of problems that a method of a distribution serves; empty for all that declare what it
        needs.
    extra : str or None
        Optional packages that the method needs, as in ``placeopt[extra]``.
    modules : tuple of str
        Modules that the extra provides.
    seconds : float or None
        Time limit of a run that is given no limit at all, for methods that may take long: what is
        not proven by then is said to be so. None for the default number of evaluations alone.
    evaluations : int or None
        Evaluations of such a run, where it ends by whichever comes first.
    parallel : bool
        Whether it consists of independent tasks, which run on ``task.workers``.
    kept : str or None
        What of a run that was killed is not done again: "descents", say. None for a method that
        starts again: it is quick, or makes a single plan.
    """

    name: str
    entry: str
    summary: str
    needs: str | None = None
    problems: tuple[str, ...] = ()
    role: Role = "search"
    extra: str | None = None
    modules: tuple[str, ...] = ()
    seconds: float | None = None
    evaluations: int | None = None
    parallel: bool = False
    kept: str | None = None

    def serves(self, spec: ProblemSpec) -> bool:
        """Return whether the method answers a problem."""
        named = not self.problems or spec.kind in self.problems
        return named and (self.needs is None or spec.has(self.needs))

    @property
    def installed(self) -> bool:
        """Whether the modules of its extra are there."""
        return all(importlib.util.find_spec(module) for module in self.modules)

    def load(self) -> Any:
        """Return the function.

        Raises
        ------
        MissingExtraError
            A module that the method needs is not installed.
        """
        if self.extra and not self.installed:
            raise MissingExtraError(f"method {self.name!r}", self.extra)
        return load(self.entry)


@dataclass(frozen=True, kw_only=True)
class ProblemSpec:
    """A problem package in one record.

    Its members are texts, ``"module:name"``, so that nothing is imported early, or the objects
    themselves: see `placeopt.register`.

    Attributes
    ----------
    kind : str
        ``"problem"`` of its documents, such as ``"edge-cloud"``.
    instance : str
        The subclass of `placeopt.core.problem.Problem`.
    generator : str
        ``function(seed, **sizes)``: the document of a random instance.
    plan : str or None
        The pydantic class of a plan: what ``placeopt schema`` prints.
    encoder : str or None
        ``function(problem, objectives) -> Encoder``: serves every search over vectors.
    encodings : str or None
        A mapping, name -> ``function(problem, objectives) -> Encoder``: further encoders. The
        parameter ``encoding`` of searches may choose one instead of ``own``. A distribution adds
        one to a problem of placeopt by the entry point group ``placeopt.encodings``: its name is
        the kind, a dot and the name of the encoding.
    seeds : str or None
        ``function(encoder, rng, seconds)``: vectors to start a search from, shape (k, num_genes).
    vectors_at : str or None
        ``function(encoder, weights)``: vectors that are good for weighted sums, (k, num_genes).
    sequence : str or None
        ``function(problem, objectives, **options) -> Sequence``: serves rollout and learning.
        Without one, problems with an encoder have `placeopt.core.encoder_sequence`.
    episodes : str or None
        A `placeopt.core.interfaces.CompiledEpisodes`.
    model : str or None
        The module of the Pyomo model: see `placeopt.core.interfaces.ModelModule`.
    drawing, summary : str or None
        The modules that draw a plan and that tell an instance and a plan in words.
    bounds : str or None
        ``function(problem, front, budget)``: yields ever better lower-bound sets, the quick ones
        first, as `placeopt.core.fronts.certificate.Bounds`.
    gap_of : str or None
        The objective of which certified points tell the gap; None keeps their own.
    preferred : str or None
        ``function(problem)``: None, or ``others`` of `placeopt.core.interfaces.preferred_plan`,
        which `placeopt.solve` asks for plans of the same values that one would rather carry out.
    auto : str, tuple of (str, float) or None
        What ``auto`` runs: a method, or several in turn, each with its share of the budget that is
        left and from the points of those before; or ``"module:function"``: ``function(problem)``
        is one of these.
    auto_alone : str or None
        The method that ``auto`` runs where a single objective is asked for, if another.
    quick : str
        The method that finds a plan soonest.
    methods : tuple of Method
        Methods of this problem alone.
    """

    kind: str
    instance: Entry
    generator: Entry
    plan: Entry | None = None
    encoder: Entry | None = None
    encodings: Entry | None = None
    seeds: Entry | None = None
    vectors_at: Entry | None = None
    sequence: Entry | None = None
    episodes: Entry | None = None
    model: Entry | None = None
    drawing: Entry | None = None
    summary: Entry | None = None
    bounds: Entry | None = None
    gap_of: str | None = None
    preferred: Entry | None = None
    auto: str | tuple[tuple[str, float], ...] | None = None
    auto_alone: str | None = None
    quick: str = "greedy"
    methods: tuple[Method, ...] = ()

    def has(self, member: str) -> bool:
        """Return whether the problem declares a member."""
        return self._entry(member) is not None

    def load(self, member: str) -> Any:
        """Return what a member stands for.

        Raises
        ------
        UnsupportedError
            The problem declares no such member.
        """
        entry = self._entry(member)
        if entry is None:
            raise UnsupportedError(f"{self.kind} has no {member}, which this needs")
        return load(entry)

    def method(self, name: str) -> Method | None:
        """Return the problem's own method of this name, None where there is none."""
        return next((method for method in self.methods if method.name == name), None)

    def encoding(self, name: str) -> Any:
        """Return the function that builds the encoder called `name`; ``own`` is the problem's own.

        Raises
        ------
        UnsupportedError
            The problem has no encoder, or none of this name.
        """
        if name == "own":
            return self.load("encoder")
        declared = self.load("encodings") if self.has("encodings") else {}
        others = offered("placeopt.encodings", f"{self.kind}.")
        if name in declared:
            return load(declared[name])
        if name in others:
            return others[name]()
        legal = ", ".join(dict.fromkeys(["own", *declared, *others]))
        raise UnsupportedError(f"{self.kind} has no encoding {name!r}; it has {legal}")

    @property
    def class_name(self) -> str:
        """Name of the class of instances."""
        if isinstance(self.instance, str):
            return self.instance.rpartition(":")[2]
        return str(self.instance.__name__)

    def _entry(self, member: str) -> Entry | None:
        entry = vars(self).get(member)
        return _GENE_BY_GENE if entry is None and member == "sequence" and self.encoder else entry


_GENE_BY_GENE = "placeopt.core.encoder_sequence:EncoderSequence"
#: Problems that this program has added to those installed, by kind. Tasks carry them to workers.
ADDED: dict[str, ProblemSpec] = {}
