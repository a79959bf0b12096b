"""Fronts: the plans that no other plan beats, with their origin and what is proven of them."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from placeopt.core.errors import DocumentError, UsageError, optional, require_known, shown
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts import dominance
from placeopt.core.fronts.dominance import (
    all_reached,
    hypervolume,
    join_bounds,
    minimal,
    nondominated,
    subset_by_contribution,
    worst,
)
from placeopt.core.fronts.values import (
    STATUSES,
    InstanceName,
    Objective,
    Point,
    Rejected,
    Run,
    names_of,
    percent,
    severity,
)
from placeopt.core.spec import load

if TYPE_CHECKING:
    from placeopt.core.fronts.file import FrontDocument


#: The gap of a front that is not complete and misses nothing within its reference point.
LEAST_GAP = 1e-12


@dataclass(frozen=True)
class Front:
    """Mutually non-dominated points of one instance, sorted by their values.

    Parameters
    ----------
    instance : InstanceName
    objectives : tuple of Objective
        `Point.values` are in this order, each in the sense of its objective.
    points : tuple of Point
        Whatever is given: dominated points and repeated values are dropped.
    bounds : tuple of tuple of float
        A proven bound set: every feasible vector is weakly dominated by one of these vectors.
        Empty: nothing is proven.
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
        if not len(self.objectives):
            raise UsageError("objectives is empty; a front has at least one")
        signs = self._signs
        bounds = _signed(self.bounds, signs)
        # A vector with an infinite value lies below no feasible vector: the others prove as much.
        bounds = minimal(bounds[~np.isposinf(bounds).any(axis=1)]) * signs + 0.0  # no negative 0
        object.__setattr__(self, "points", _best_points(tuple(self.points), signs))
        object.__setattr__(self, "bounds", tuple(map(tuple, bounds.tolist())))
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
            own = f"the {self.instance.problem} instance {self.instance.name!r}"
            text = f"this front answers {own}, or another version of it, not {instance.name!r}"
            remedy = "give the instance that the front was made for"
            raise DocumentError(text, file=file, path="instance", remedy=remedy)

    def __hash__(self) -> int:
        return hash((self.instance, self.objectives, self.points, self.bounds))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the values, for whoever asks for an array: NumPy, moocore, matplotlib."""
        return np.asarray(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @overload
    def __getitem__(self, which: int) -> Point: ...
    @overload
    def __getitem__(self, which: slice) -> Front: ...
    def __getitem__(self, which: int | slice) -> Point | Front:
        """Return a point, or a front of some points; its gap counts those that are left out."""
        if isinstance(which, slice):
            return self._part(self.points[which])
        return self.points[which]

    def __repr__(self) -> str:
        """Name, size, ranges and what is proven; no plans."""
        if not self.points:
            return f"<Front {self.instance.name}: no points>"
        ranges = ", ".join(
            f"{o.name} {low:.6g} to {high:.6g}"
            for o, low, high in zip(
                self.objectives, self.values.min(axis=0), self.values.max(axis=0), strict=True
            )
        )
        counts = Counter(p.status for p in self.points)
        statuses = ", ".join(f"{counts[s]} {s}" for s in STATUSES if s in counts)
        if len(counts) == 1:
            statuses = self.points[0].status
        gap = self.gap()
        proven = "" if gap is None else f"; gap {percent(gap)}" if gap else "; complete"
        size = f"{len(self)} point{'s' * (len(self) != 1)}"
        return f"<Front {self.instance.name}: {size}, {ranges}; {statuses}{proven}>"

    def _repr_html_(self) -> str:
        shown: str = load("placeopt.plot:below_a_cell")(self)
        return shown

    def plot(self, path: AnyPath | None = None, *, problem: Any = None) -> Any:
        """Draw the front: into a file, or as a page for a notebook.

        Parameters
        ----------
        path : path, optional
            Ends in .html (a page in which to choose a plan), .png, .pdf or .svg.
        problem : Problem, optional
            The front's instance: its summary of a plan is shown beside the point.

        Returns
        -------
        placeopt.plot.NotebookPage or None
            Without a path: the page, which a notebook shows.

        Raises
        ------
        UsageError
            The front has no points, or the path ends in something else.
        MissingExtraError
            The extra ``plot`` is not installed.
        """
        _require_instance(problem)
        if path is None:
            return load("placeopt.plot:in_notebook")(self, problem)
        load("placeopt.plot:plot_front")(self, path, problem=problem)
        return None

    def where(
        self, predicate: Callable[[Point], bool] = lambda point: True, **limits: float
    ) -> Front:
        """Return the points that a function accepts, within the worst values allowed.

        Its gap counts what is left out.

        Examples
        --------
        >>> goals = (Objective("latency_ms", "ms"), Objective("cost_usd", "USD"))
        >>> points = (Point((1.0, 9.0), {}), Point((5.0, 2.0), {}))
        >>> front = Front(InstanceName("temporal", "toy", ""), goals, points)
        >>> front.where(cost_usd=5)
        <Front toy: 1 point, latency_ms 5 to 5, cost_usd 2 to 2; heuristic>

        Raises
        ------
        UsageError
            An unknown objective.
        """
        signs, columns = self._signs, {name: self._column(name) for name in limits}
        within = (
            point
            for point in self.points
            if all(signs[c] * (point.values[c] - limits[n]) <= 0 for n, c in columns.items())
        )
        return self._part(tuple(point for point in within if predicate(point)))

    def _part(self, points: tuple[Point, ...]) -> Front:
        """Return a front of some of the points that keeps bounds and worst values."""
        box = self.worst([self.nadir.tolist(), self.box]) if self.points else self.box
        return replace(self, points=points, box=box)

    @property
    def values(self) -> np.ndarray:
        """All values, shape (points, objectives)."""
        return np.array([p.values for p in self.points], dtype=float).reshape(
            len(self.points), len(self.objectives)
        )

    @property
    def _signs(self) -> np.ndarray:
        """1 for every minimised objective, -1 for every maximised one; shape (objectives,)."""
        return np.array([o.sign for o in self.objectives])

    @property
    def ideal(self) -> np.ndarray:
        """Best value of each objective on this front, shape (objectives,)."""
        return (self._some_values() * self._signs).min(axis=0) * self._signs

    @property
    def nadir(self) -> np.ndarray:
        """Worst value of each objective on this front, shape (objectives,)."""
        return (self._some_values() * self._signs).max(axis=0) * self._signs

    def _some_values(self) -> np.ndarray:
        if not self.points:
            raise UsageError(
                "the front has no points" + "".join(f"; {reason}" for reason in self.reasons)
            )
        return self.values

    # -- measures ----------------------------------------------------------------------------------

    def reference(self, factor: float = 1.1) -> np.ndarray:
        """Return the reference point of this front's hypervolume and gap.

        It is `factor` times the nadir (1 where the nadir is 0); for a maximised objective, or one
        with negative values, the nadir made worse by a share ``factor - 1`` of the range. The nadir
        is that of points and `box`: of a part of a front that of the whole. Bounds have no say, as
        a front whose bounds are tightened would be measured by another scale.
        """
        worst = np.array(self.worst([self.nadir.tolist(), self.box]))
        return _beyond(worst, self.ideal, self._signs, factor)

    def worst(self, rows: Iterable[Sequence[float]]) -> tuple[float, ...]:
        """Return the worst value of each objective; rows without values say nothing."""
        signed = [(np.array(row) * self._signs).tolist() for row in rows if len(row)]
        return tuple((np.array(worst(signed)) * self._signs).tolist()) if signed else ()

    def hypervolume(
        self, reference: Sequence[float] | None = None, *, plain: bool = False
    ) -> float:
        """Return the volume that the points dominate within `reference`.

        Parameters
        ----------
        reference : sequence of float, optional
            One value per objective; points beyond it count nothing. `reference()` by default.
        plain : bool
            Return the share of the box from `ideal` to `reference`: `shares` of one front.
        """
        within = self.reference().tolist() if reference is None else reference
        return shares([self], within)[0] if plain else self._volume(self.values, within)

    def _volume(self, vectors: np.ndarray, reference: Sequence[float]) -> float:
        if len(reference) != len(self.objectives):
            raise UsageError(
                f"the reference point has {len(reference)} values; "
                f"this front has {len(self.objectives)} objectives"
            )
        signs = self._signs
        return hypervolume(vectors * signs, (np.array(reference) * signs).tolist())

    def igd_plus(self, best: Front) -> float:
        """Return IGD+ to another front of these objectives, a merged one, say.

        0 where this front is nowhere worse. Values are scaled so that `best` spans 0 to 1.
        """
        return dominance.igd_plus(*self._against(best))

    def epsilon(self, best: Front) -> float:
        """Return the additive epsilon indicator to another front of these objectives.

        By so much every point has to improve to reach `best`; below 0 where this front is better.
        Values are scaled so that `best` spans 0 to 1.
        """
        return dominance.epsilon(*self._against(best))

    def _against(self, best: Front) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of both fronts, minimised, scaled so that `best` spans 0 to 1."""
        if names_of(best.objectives) != names_of(self.objectives):
            raise UsageError("these fronts have different objectives; compare fronts of the same")
        signs = self._signs
        return dominance.scaled(self._some_values() * signs, best._some_values() * signs)

    def gap(self, reference: Sequence[float] | None = None) -> float | None:
        """Return the share of the hypervolume within the bounds that no point reaches, if known.

        The points miss at most this share of what any plans could reach. Volume beyond
        `reference`, by default ``reference()``, counts nothing. None without bounds. 0 only where
        the front is complete: a bound beyond the reference point leaves `LEAST_GAP`.
        """
        if not self.bounds or not self.points:
            return None
        if self.complete:
            return 0.0
        within = self.reference().tolist() if reference is None else reference
        most = self._volume(np.array(self.bounds), within)
        return max(LEAST_GAP, 1.0 - self.hypervolume(within) / most) if most > 0 else LEAST_GAP

    @property
    def complete(self) -> bool:
        """Whether a point reaches every bound, so that nothing any plan could reach is missing."""
        values, bounds = self.values * self._signs, _signed(self.bounds, self._signs)
        return all_reached(bounds, values)

    @property
    def open_beyond(self) -> bool:
        """Whether a bound beyond `reference()` is reached by no point, so that no gap counts it."""
        values, bounds = self.values * self._signs, _signed(self.bounds, self._signs)
        beyond = bounds[(bounds >= self.reference() * self._signs).any(axis=1)]
        return len(beyond) > 0 and not all_reached(beyond, values)

    def sparsity(self) -> float:
        """Return the sparsity, equation (19) of Di Cicco et al., CNSM 2024; 0 for one point."""
        if len(self.points) < 2:
            return 0.0
        return float(
            (np.diff(np.sort(self.values, axis=0), axis=0) ** 2).sum() / (len(self.points) - 1)
        )

    # -- choosing ----------------------------------------------------------------------------------

    def normalised(self) -> np.ndarray:
        """Return the values scaled to [0, 1], 0 the ideal, shape (points, objectives)."""
        spread = self.nadir - self.ideal
        return (self.values - self.ideal) / np.where(spread != 0, spread, 1.0)

    def pick(
        self,
        *,
        budget: Mapping[str, float] | None = None,
        lexicographic: Sequence[str] | None = None,
        reference: Mapping[str, float] | None = None,
        pseudo_weights: Mapping[str, float] | None = None,
        topsis: Mapping[str, float] | None = None,
    ) -> Point:
        """Return one point: the knee, which is nearest to the ideal, unless told otherwise.

        Values are scaled to the ranges of the front. Give at most one of the last four.

        Parameters
        ----------
        budget : mapping of objective name to worst value allowed, optional
            Only points within these limits are chosen from, by any rule.
        lexicographic : sequence of objective names, optional
            The point that is best in the first, then in the second, and so on.
        reference : mapping of objective name to value wanted, optional
            The point whose worst shortfall is least (Wierzbicki, 1980); of objectives left out,
            the best value is wanted.
        pseudo_weights : mapping of objective name to weight, optional
            The point whose gains over the worst values are shared most like this (Deb, 2001);
            objectives left out have weight 0.
        topsis : mapping of objective name to weight, optional
            The point nearest to the ideal and farthest from the nadir, by TOPSIS
            (Hwang and Yoon, 1981); objectives left out have weight 1.

        Raises
        ------
        UsageError
            Unknown objective, illegal weights, two rules at once, or no point within the budget;
            the message says the least value.
        """
        self._some_values()
        rules = {
            "lexicographic": lexicographic,
            "reference": reference,
            "pseudo_weights": pseudo_weights,
            "topsis": topsis,
        }
        values_in = [name for name, rule in rules.items() if rule is not None]
        if len(values_in) > 1:
            raise UsageError(f"{' and '.join(values_in)} are two rules; give one of them")
        within, scaled = self._within(budget or {}), self.normalised()
        if lexicographic is not None and len(lexicographic):
            columns = [self._column(name) for name in lexicographic]
            keys = (self.values * self._signs)[:, columns[::-1]].T
            order = np.lexsort(keys)
            return self.points[int(order[within[order]][0])]
        if reference:
            score = dominance.reference_point(scaled, self._scaled_aims(reference))
        elif pseudo_weights is not None:
            score = dominance.pseudo_weights(scaled, self._weights(pseudo_weights, 0.0))
        elif topsis is not None:
            score = dominance.topsis(scaled, self._weights(topsis, 1.0))
        else:
            score = dominance.knee(scaled)
        return self.points[int(np.where(within, score, np.inf).argmin())]

    def _within(self, budget: Mapping[str, float]) -> np.ndarray:
        """Return which points keep all limits, shape (points,); raise where none does."""
        within = np.ones(len(self.points), dtype=bool)
        for name, most in budget.items():
            at = self._column(name)
            column, sign = self.values[:, at], self._signs[at]
            if (sign * column).min() > sign * most:
                compare, best = ("<=", "least") if sign > 0 else (">=", "greatest")
                raise UsageError(
                    f"no point has {name} {compare} {most:g}; "
                    f"the {best} on this front is {self.ideal[at]:.6g}"
                )
            within &= sign * column <= sign * most
        if not within.any():
            raise UsageError("no point keeps all of these budgets at once; relax one of them")
        return within

    def _scaled_aims(self, wanted: Mapping[str, float]) -> np.ndarray:
        """Return values wanted, scaled as `normalised` scales; inf for what never varies."""
        aims = self.ideal
        for name, value in wanted.items():
            if not math.isfinite(value):
                raise UsageError(f"{name} is wanted to be {value}; give a finite number")
            aims[self._column(name)] = value
        spread = self.nadir - self.ideal
        scaled: np.ndarray = (aims - self.ideal) / np.where(spread != 0, spread, 1.0)
        return np.where(spread != 0, scaled, np.inf)

    def _weights(self, given: Mapping[str, float], missing: float) -> np.ndarray:
        """Return a weight for each objective, `missing` for those left out; shape (objectives,)."""
        weights = np.full(len(self.objectives), missing)
        for name, weight in given.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise UsageError(f"the weight of {name} is {weight}; give a number of at least 0")
            weights[self._column(name)] = weight
        if not weights.any():
            raise UsageError("all weights are 0; give one above 0")
        return weights

    def _column(self, name: str) -> int:
        names = names_of(self.objectives)
        require_known("objective", name, names)
        return names.index(name)

    def subset(self, size: int) -> Front:
        """Return at most `size` points: the extremes, and those that keep most hypervolume.

        Bounds and worst values stay, so that the gap counts what is left out.
        """
        if not size >= 1:
            raise UsageError(f"size is {shown(size)}; give a whole number of at least 1")
        if len(self.points) <= size:
            return self
        kept = subset_by_contribution(self.values * self._signs, size)
        return self._part(tuple(self.points[k] for k in kept))

    def to_pandas(self, *, plans: bool = False, problem: Any = None) -> Any:
        """Return a pandas DataFrame: a row a point; objectives, status, gap, method, seed.

        Parameters
        ----------
        plans : bool
            Add the column ``plan``: the plan of each point, a dict.
        problem : Problem, optional
            The front's instance: adds a column for each fact that it tells of a plan.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        _require_instance(problem)
        pandas = optional("pandas", "a pandas table", "plot")
        names = names_of(self.objectives)
        rows = [
            {
                **dict(zip(names, p.values, strict=True)),
                "status": p.status,
                "gap": p.gap,
                "method": p.method,
                "seed": p.seed,
                **({} if problem is None else problem.describe(p.plan)),
                **({"plan": p.plan} if plans else {}),
            }
            for p in self.points
        ]
        columns = None if rows else [*names, "status", "gap", "method", "seed"]
        return pandas.DataFrame(rows, columns=columns)

    # -- files -------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """Return the front as a JSON document, format ``placeopt/front@1``."""
        document: dict[str, Any] = {
            "format": "placeopt/front@1",
            "instance": asdict(self.instance),
            "objectives": [_without(o, sense="min") for o in self.objectives],
            "points": [_point_document(p) for p in self.points],
            "bounds": [list(b) for b in self.bounds],
            "runs": [_listed(_without(run, **_UNMEASURED)) for run in self.runs],
        }
        if self.rejected is not None:
            document["rejected"] = vars(self.rejected) | {
                "values": list(self.rejected.values),
                "violations": [asdict(v) for v in self.rejected.violations],
            }
        if self.reasons:
            document["reasons"] = list(self.reasons)
        if self.box:
            document["box"] = list(self.box)
        return document

    def to_json(self) -> str:
        """Return the front as compact JSON text, one point a line."""
        return "".join(self._json_lines())

    def _json_lines(self) -> Iterator[str]:
        """Yield the text of `to_json` in parts: all points together may be gigabytes."""
        document = self.to_document()
        points = document.pop("points")
        yield json.dumps(document, ensure_ascii=False, allow_nan=False)[:-1] + ', "points": ['
        for k, point in enumerate(points):
            line = json.dumps(point, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            yield (",\n" if k else "\n") + line
        yield "]}"

    def write(self, path: AnyPath) -> None:
        """Write the front as a compact JSON file, atomically; one point a line."""
        from placeopt.core.files.paths import write_parts

        write_parts(path, (text.encode("utf-8") for text in chain(self._json_lines(), "\n")))

    @classmethod
    def read(cls, path: AnyPath) -> Front:
        """Read a front file.

        Raises
        ------
        DocumentError
            Names the file, the JSON path, the value and what is legal.
        """
        from placeopt.core.fronts.file import read

        return cls._of(read(path))

    @classmethod
    def from_document(cls, document: Any, path: AnyPath = "front") -> Front:
        """Return the front that a JSON document describes; `path` is where it was read.

        Raises
        ------
        DocumentError
            As of `read`.
        """
        from placeopt.core.fronts.file import checked

        return cls._of(checked(document, path))

    @classmethod
    def _of(cls, document: FrontDocument) -> Front:
        """Return the front of a validated document."""
        members = {name: value for name, value in vars(document).items() if name != "format"}
        return cls(**members | {"box": document.box or ()})


def _beyond(nadir: np.ndarray, ideal: np.ndarray, signs: np.ndarray, factor: float) -> np.ndarray:
    """Return a reference point that is a little worse than the nadir, in every objective."""
    reach = np.abs(nadir - ideal)
    reach = np.where(reach > 0, reach, np.where(nadir != 0, np.abs(nadir), 1.0))
    beyond = nadir + signs * (factor - 1) * reach
    usual = np.where(nadir > 0, nadir * factor, 1.0)
    return np.where((signs > 0) & (nadir >= 0), usual, beyond)


def _require_instance(problem: Any) -> None:
    """Raise unless something is an instance, or nothing."""
    if problem is not None and not hasattr(problem, "describe"):
        raise UsageError(f"problem is {shown(problem)}; give the instance of the front")


def common_reference(fronts: Iterable[Front]) -> list[float]:
    """Return the worst of the reference points of fronts of the same objectives; [] of none."""
    some = [front for front in fronts if front.points]
    return list(some[0].worst(front.reference().tolist() for front in some)) if some else []


def shares(fronts: Iterable[Front], reference: Sequence[float] | None = None) -> list[float]:
    """Return the share of one box that each front dominates, from 0 to 1.

    The box reaches from the best values of all fronts together to `reference`, by default
    `common_reference`: so the share does not depend on senses, signs and units of objectives.

    Examples
    --------
    >>> goals = (Objective("cost", "EUR"), Objective("profit", "EUR", sense="max"))
    >>> points = (Point((-3.0, 2.0), {}), Point((-1.0, 6.0), {}))
    >>> front = Front(InstanceName("temporal", "toy", ""), goals, points)
    >>> [round(share, 4) for share in shares([front], (0.0, 0.0))]
    [0.5556]

    Raises
    ------
    UsageError
        No front has points, the fronts have different objectives, or the reference point is no
        worse than the best values, so that there is no box.
    """
    fronts = list(fronts)
    some = [front for front in fronts if front.points]
    if not some:
        raise UsageError("no front has points; there is nothing to measure")
    names = names_of(some[0].objectives)
    if any(names_of(front.objectives) != names for front in fronts):
        raise UsageError("these fronts have different objectives; compare fronts of the same")
    corner = common_reference(some) if reference is None else list(reference)
    if len(corner) != len(names):
        raise UsageError(
            f"the reference point has {len(corner)} values; "
            f"these fronts have {len(names)} objectives"
        )
    signs = some[0]._signs
    ideal = np.min([front.ideal * signs for front in some], axis=0)
    sides = np.array(corner) * signs - ideal
    if not (sides > 0).all():
        at = int(sides.argmin())
        raise UsageError(
            f"the reference point has {names[at]} {corner[at]:g}; "
            f"give a worse value than the best on these fronts, {ideal[at] * signs[at]:g}"
        )
    unit = [1.0] * len(names)
    return [min(1.0, hypervolume((f.values * signs - ideal) / sides, unit)) for f in fronts]


def merge(fronts: Iterable[Front]) -> Front:
    """Merge fronts of one instance into one; every point keeps its method, seed and status.

    Of plans with equal values the one proven best is kept, and names all methods that found such a
    plan: `Point.found_by`.

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
    for front in fronts:
        if not isinstance(front, Front):
            raise UsageError(f"{shown(front)} is no front; give a list of fronts")
    first = fronts[0]
    names = names_of(first.objectives)
    for other in fronts[1:]:
        if other.instance.sha256 != first.instance.sha256:
            instances = f"{first.instance.name!r} and {other.instance.name!r}"
            raise UsageError(
                f"these fronts answer different instances ({instances}); "
                "merge fronts of one instance"
            )
        if names_of(other.objectives) != names:
            raise UsageError(
                f"these fronts have different objectives ({', '.join(names)} and "
                f"{', '.join(o.name for o in other.objectives)})"
            )
    bounds: np.ndarray = np.empty((0, len(names)))
    for front in fronts:
        bounds = join_bounds(bounds, _signed(front.bounds, first._signs))
    bounds = bounds * first._signs
    runs = {_run_key(run): run for front in fronts for run in front.runs}
    rejected = [f.rejected for f in fronts if f.rejected is not None]
    return Front(
        first.instance,
        first.objectives,
        _naming_all_methods([p for front in fronts for p in front.points]),
        tuple(map(tuple, bounds.tolist())),
        tuple(runs[key] for key in sorted(runs)),
        min(rejected, key=lambda r: (severity(r.violations), r.values), default=None),
        tuple(dict.fromkeys(reason for f in fronts for reason in f.reasons)),
        first.worst([f.box for f in fronts]),
    )


def _naming_all_methods(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points; each names all methods that found a plan with its values."""
    results: dict[tuple[float, ...], set[str]] = defaultdict(set)
    for point in points:
        results[point.values].update(point.found_by)
    return tuple(
        replace(p, also_by=tuple(sorted(results[p.values] - {p.method})))
        if len(results[p.values]) > 1
        else p
        for p in points
    )


def _signed(vectors: Sequence[Sequence[float]], signs: np.ndarray) -> np.ndarray:
    """Return vectors as minimised values, shape (vectors, objectives)."""
    return np.array(vectors, dtype=float).reshape(-1, len(signs)) * signs


def _listed(value: Any) -> Any:
    """Return a value with lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _listed(one) for key, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, (list, tuple)) else value


def _point_document(point: Point) -> dict[str, Any]:
    """Return a point as it stands in a file."""
    fields = {key: value for key, value in vars(point).items() if key != "also_by" or value}
    return {k: list(value) if isinstance(value, tuple) else value for k, value in fields.items()}


def _run_key(run: Run) -> str:
    """Return what tells a run from others, as sorted text.

    CPU seconds and those of compiling stand last: they differ from run to run, and would mix the
    order of runs.
    """
    known = replace(run, cpu_seconds=None, compile_seconds=0.0)
    return json.dumps([asdict(known), run.cpu_seconds, run.compile_seconds], sort_keys=True)


#: What the document of a run leaves out.
_UNMEASURED = {"trace": None, "cpu_seconds": None, "compile_seconds": 0.0}


def _without(record: Any, **usual: Any) -> dict[str, Any]:
    """Return a record as it stands in a file; members with their usual values are left out."""
    document = asdict(record)
    for name, value in usual.items():
        if document[name] == value:
            del document[name]
    return document


def _best_points(points: Sequence[Point], signs: np.ndarray) -> tuple[Point, ...]:
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
    kept = nondominated(values[first] * signs)
    return tuple(p for p, keep in zip(unique, kept, strict=True) if keep)
