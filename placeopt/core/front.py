"""Fronts: the plans that no other plan beats, with their origin and what is proven of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.dominance import farthest, hypervolume, join_bounds, minimal, nondominated, worst
from placeopt.core.errors import DocumentError, UsageError, did_you_mean

if TYPE_CHECKING:
    from placeopt.core.front_file import FrontDocument

__all__ = [
    "STATUSES",
    "Evaluation",
    "Front",
    "InstanceName",
    "Objective",
    "Point",
    "Rejected",
    "Run",
    "Violation",
    "farthest",
    "merge",
    "minimal",
    "nondominated",
    "severity",
]

#: Statuses, best first.
STATUSES = ("optimal", "bounded", "heuristic")


@dataclass(frozen=True)
class Objective:
    """One goal, minimised.

    Attributes
    ----------
    name, unit : str
    step : float or None
        The smallest difference that two values can have on this instance; None where values are
        real.
    """

    name: str
    unit: str
    step: float | None = None


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


@dataclass(frozen=True)
class Point:
    """One answer on a front; `values` are the referee's, in the order of the front's objectives."""

    values: tuple[float, ...]
    plan: dict[str, Any]
    status: str = "heuristic"
    gap: float | None = None
    method: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class Run:
    """The facts of one run."""

    method: str
    seed: int | None
    seconds: float
    evaluations: int = 0
    solver_calls: int = 0
    completed: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class InstanceName:
    """Which instance a front answers."""

    problem: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Rejected:
    """The least-violating plan, kept where no plan is feasible."""

    plan: dict[str, Any]
    values: tuple[float, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class Front:
    """Mutually non-dominated points of one instance, sorted by their values.

    Parameters
    ----------
    instance : InstanceName
    objectives : tuple of Objective
        All minimised; `Point.values` are in this order.
    points : tuple of Point
        Whatever is given: dominated points and repeated values are dropped.
    bounds : tuple of tuple of float
        A proven lower-bound set: every feasible vector is weakly dominated by one of these
        vectors. Empty: nothing is proven.
    runs : tuple of Run
    rejected : Rejected, optional
        The least-violating plan; only where there is no point.
    reasons : tuple of str
        Why there is no point.
    box : tuple of float
        Worst values of the larger front that this one is a subset of; empty: none is known.
    """

    instance: InstanceName
    objectives: tuple[Objective, ...]
    points: tuple[Point, ...] = ()
    bounds: tuple[tuple[float, ...], ...] = ()
    runs: tuple[Run, ...] = ()
    rejected: Rejected | None = None
    reasons: tuple[str, ...] = ()
    box: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _best_points(self.points))
        # A vector with an infinite value lies below no feasible vector: the others prove as much.
        finite = [bound for bound in self.bounds if math.inf not in bound]
        object.__setattr__(self, "bounds", tuple(map(tuple, minimal(finite).tolist())))
        if self.points:
            object.__setattr__(self, "rejected", None)
            object.__setattr__(self, "reasons", ())

    def require(self, instance: InstanceName, file: str | None = None) -> None:
        """Raise unless this front answers `instance`; `file` is where the front stands.

        Raises
        ------
        DocumentError
            It answers another instance, or another version of it.
        """
        if self.instance.sha256 != instance.sha256 or self.instance.problem != instance.problem:
            mine = f"the {self.instance.problem} instance {self.instance.name!r}"
            text = f"this front answers {mine}, or another version of it, not {instance.name!r}"
            remedy = "give the instance that the front was made for"
            raise DocumentError(text, file=file, path="instance", remedy=remedy)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def values(self) -> np.ndarray:
        """All values, shape (points, objectives)."""
        return np.array([p.values for p in self.points], dtype=float).reshape(
            len(self.points), len(self.objectives)
        )

    @property
    def ideal(self) -> np.ndarray:
        """Least value of each objective on this front, shape (objectives,)."""
        return self._some_values().min(axis=0)

    @property
    def nadir(self) -> np.ndarray:
        """Greatest value of each objective on this front, shape (objectives,)."""
        return self._some_values().max(axis=0)

    def _some_values(self) -> np.ndarray:
        if not self.points:
            raise UsageError(
                "the front has no points" + "".join(f"; {reason}" for reason in self.reasons)
            )
        return self.values

    # -- measures ----------------------------------------------------------------------------------

    def reference(self, factor: float = 1.1, *, bounds: bool = False) -> np.ndarray:
        """Return the usual reference point: `factor` times the nadir (1 where the nadir is 0).

        With `bounds`, the nadir of points, bounds and `box` together: points alone would shrink it.
        """
        rows = [self.nadir.tolist(), *((*self.bounds, self.box) if bounds else ())]
        nadir = np.array(worst(rows)) * factor
        return np.where(nadir > 0, nadir, 1.0)

    def hypervolume(self, reference: Sequence[float], *, plain: bool = False) -> float:
        """Return the volume that the points dominate within `reference`.

        Parameters
        ----------
        reference : sequence of float
            One value per objective; points beyond it count nothing.
        plain : bool
            Divide by the product of `reference`: the share of the box from the origin.
        """
        return hypervolume(self.values, reference, plain)

    def gap(self, reference: Sequence[float] | None = None) -> float | None:
        """Return the share of the hypervolume within the bounds that no point reaches, if known.

        The points miss at most this share of what any plans could reach. Volume beyond
        `reference`, by default ``reference(bounds=True)``, counts nothing. None without bounds.
        """
        if not self.bounds or not self.points:
            return None
        within = self.reference(bounds=True).tolist() if reference is None else reference
        most = hypervolume(np.array(self.bounds), within, False)
        if self.complete or most <= 0:
            return 0.0
        return max(0.0, 1.0 - self.hypervolume(within) / most)

    @property
    def complete(self) -> bool:
        """Whether a point reaches every bound, so that nothing any plan could reach is missing."""
        return bool(self.bounds) and all(
            bool((self.values <= bound).all(axis=1).any()) for bound in self.bounds
        )

    def sparsity(self) -> float:
        """Return the sparsity, equation (19) of Di Cicco et al., CNSM 2024; 0 for one point."""
        if len(self.points) < 2:
            return 0.0
        return float(
            (np.diff(np.sort(self.values, axis=0), axis=0) ** 2).sum() / (len(self.points) - 1)
        )

    # -- choosing ----------------------------------------------------------------------------------

    def normalised(self) -> np.ndarray:
        """Return the values scaled to [0, 1] from ideal to nadir, shape (points, objectives)."""
        spread = self.nadir - self.ideal
        return (self.values - self.ideal) / np.where(spread > 0, spread, 1.0)

    def pick(
        self,
        *,
        budget: Mapping[str, float] | None = None,
        lexicographic: Sequence[str] | None = None,
    ) -> Point:
        """Return one point: the knee, unless told otherwise.

        Parameters
        ----------
        budget : mapping of objective name to largest value, optional
            The knee of the points within these limits.
        lexicographic : sequence of objective names, optional
            The point that is least in the first, then in the second, and so on.

        Raises
        ------
        UsageError
            Unknown objective, or no point within the budget; the message says the least value.
        """
        self._some_values()
        if lexicographic:
            columns = [self._column(name) for name in lexicographic]
            return min(self.points, key=lambda p: [p.values[c] for c in columns])
        within = np.ones(len(self.points), dtype=bool)
        for name, most in (budget or {}).items():
            column = self.values[:, self._column(name)]
            if column.min() > most:
                raise UsageError(
                    f"no point has {name} <= {most:g}; "
                    f"the least on this front is {column.min():.6g}"
                )
            within &= column <= most
        if not within.any():
            raise UsageError("no point keeps all of these budgets at once; relax one of them")
        # The knee is the point nearest to the ideal, scaled. Unlike the point of least sum, it is
        # never an end of a concave front.
        score = np.where(within, (self.normalised() ** 2).sum(axis=1), np.inf)
        return self.points[int(score.argmin())]

    def _column(self, name: str) -> int:
        names = [o.name for o in self.objectives]
        if name not in names:
            raise UsageError(f"unknown objective {name!r}; {did_you_mean(name, names)}")
        return names.index(name)

    def subset(self, size: int) -> Front:
        """Return at most `size` points: the extremes, then the point farthest from those chosen.

        Bounds and worst values stay, so that the gap counts what is left out.
        """
        if len(self.points) <= size:
            return self
        chosen = tuple(self.points[k] for k in farthest(self.values, size))
        return replace(self, points=chosen, box=worst([self.nadir.tolist(), self.box]))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: a row a point; objectives, status, gap, method, seed."""
        import pandas

        names = [o.name for o in self.objectives]
        rows = [
            {
                **dict(zip(names, p.values, strict=True)),
                "status": p.status,
                "gap": p.gap,
                "method": p.method,
                "seed": p.seed,
            }
            for p in self.points
        ]
        return pandas.DataFrame(rows)

    # -- files -------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """Return the front as a JSON document, format ``placeopt/front@1``."""
        document: dict[str, Any] = {
            "format": "placeopt/front@1",
            "instance": asdict(self.instance),
            "objectives": [asdict(o) for o in self.objectives],
            "points": [vars(p) for p in self.points],
            "bounds": [list(b) for b in self.bounds],
            "runs": [asdict(r) for r in self.runs],
        }
        if self.rejected is not None:
            document["rejected"] = asdict(self.rejected)
        if self.reasons:
            document["reasons"] = list(self.reasons)
        if self.box:
            document["box"] = list(self.box)
        return document

    def to_json(self) -> str:
        """Return the front as compact JSON text, one point a line."""
        document = self.to_document()
        points = document.pop("points")
        head = json.dumps(document, ensure_ascii=False, allow_nan=False)[:-1]
        lines = [
            json.dumps(p, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            for p in points
        ]
        return head + ', "points": [' + ("\n" if lines else "") + ",\n".join(lines) + "]}"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the front as a compact JSON file, atomically; one point a line."""
        from placeopt.core.documents import write_text

        write_text(path, self.to_json() + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Front:
        """Read a front file.

        Raises
        ------
        DocumentError
            Names the file, the JSON path, the value and what is legal.
        """
        from placeopt.core.front_file import read

        return cls._of(read(path))

    @classmethod
    def from_document(cls, document: Any, path: str | os.PathLike[str] = "front") -> Front:
        """Return the front that a JSON document describes; `path` is where it was read.

        Raises
        ------
        DocumentError
            As of `read`.
        """
        from placeopt.core.front_file import checked

        return cls._of(checked(document, path))

    @classmethod
    def _of(cls, document: FrontDocument) -> Front:
        """Return the front of a validated document."""
        rejected = document.rejected
        return cls(
            instance=InstanceName(**document.instance.model_dump()),
            objectives=tuple(Objective(**o.model_dump()) for o in document.objectives),
            points=tuple(Point(**vars(p) | {"values": tuple(p.values)}) for p in document.points),
            bounds=tuple(map(tuple, document.bounds)),
            runs=tuple(Run(**r.model_dump()) for r in document.runs),
            rejected=None
            if rejected is None
            else Rejected(
                rejected.plan,
                tuple(rejected.values),
                tuple(Violation(**v.model_dump()) for v in rejected.violations),
            ),
            reasons=tuple(document.reasons),
            box=tuple(document.box or ()),
        )


def merge(fronts: Iterable[Front]) -> Front:
    """Merge fronts of one instance into one; every point keeps its method, seed and status.

    Merging is idempotent and does not depend on the order of `fronts`. Bound sets are combined to
    the tightest set that all of them prove.

    Raises
    ------
    UsageError
        Nothing to merge, or the fronts answer different instances or objectives.
    """
    fronts = list(fronts)
    if not fronts:
        raise UsageError("there is nothing to merge; give at least one front")
    first = fronts[0]
    names = [o.name for o in first.objectives]
    for other in fronts[1:]:
        if other.instance.sha256 != first.instance.sha256:
            names_of = f"{first.instance.name!r} and {other.instance.name!r}"
            raise UsageError(
                f"these fronts answer different instances ({names_of}); "
                "merge fronts of one instance"
            )
        if [o.name for o in other.objectives] != names:
            raise UsageError(
                f"these fronts have different objectives ({', '.join(names)} and "
                f"{', '.join(o.name for o in other.objectives)})"
            )
    bounds: np.ndarray = np.empty((0, len(names)))
    for front in fronts:
        bounds = join_bounds(bounds, np.array(front.bounds).reshape(-1, len(names)))
    runs = {json.dumps(asdict(run), sort_keys=True): run for front in fronts for run in front.runs}
    rejected = [f.rejected for f in fronts if f.rejected is not None]
    return Front(
        first.instance,
        first.objectives,
        tuple(p for front in fronts for p in front.points),
        tuple(map(tuple, bounds.tolist())),
        tuple(runs[key] for key in sorted(runs)),
        min(rejected, key=lambda r: (severity(r.violations), r.values), default=None),
        tuple(dict.fromkeys(reason for f in fronts for reason in f.reasons)),
        worst([f.box for f in fronts]),
    )


def severity(violations: Iterable[Violation]) -> float:
    """Return the total amount by which a plan breaks the instance."""
    return math.fsum(v.amount for v in violations)


def _best_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the non-dominated points; of equal values the one proven best."""
    if not points:
        return ()
    ordered = sorted(
        points,
        key=lambda p: (
            p.values,
            STATUSES.index(p.status),
            p.gap or 0.0,
            p.method,
            -1 if p.seed is None else p.seed,
        ),
    )
    values = np.array([p.values for p in ordered], dtype=float)
    ties = (values[1:] == values[:-1]).all(axis=1)
    first = np.concatenate(([True], ~ties))
    unique = [p for p, keep in zip(ordered, first, strict=True) if keep]
    return tuple(p for p, keep in zip(unique, nondominated(values[first]), strict=True) if keep)
