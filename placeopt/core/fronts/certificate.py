"""The certificate of a front: its lower-bound set, and what that proves of every point.

A problem gives the bounds, ``bounds(problem, front, budget)``: ever better sets, the quick ones
first. All else is here, so that a proof that fails costs the proof and never the front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from placeopt.core.budget import Budget
from placeopt.core.errors import InfeasibleInstanceError, PlaceoptError, shown
from placeopt.core.fronts.dominance import nondominated
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import CERTIFY, Point, Run, versions
from placeopt.core.interfaces import build_encoder
from placeopt.core.problem import Problem

#: What rounding can add to a value, as a share of it, or of 1 where it is less.
_ROUNDING = 1e-9
#: Seconds of a certificate where no time limit is given.
OWN_SECONDS = 10.0


@dataclass(frozen=True)
class Bounds:
    """A proven lower-bound set: every plan is weakly dominated by one of its vectors.

    Attributes
    ----------
    vectors : float array (k, objectives)
        In the objectives of the front. Empty: nothing is proven.
    solves : int
        Programs solved so far.
    complete : bool
        Whether the search for bounds ended by itself.
    points : iterable of Point
        Plans that were found on the way.
    libraries : sequence of str
        Packages on which the proof relies.
    facts : mapping
        What else the run is to say of itself.
    """

    vectors: np.ndarray
    solves: int = 0
    complete: bool = True
    points: Iterable[Point] = ()
    libraries: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


#: ``function(problem, front, budget)``: yields ever better sets; only the last one counts.
Bounding = Callable[[Any, Front, Budget], Iterator[Bounds]]


#: Vectors that a proof by all of them looks at, at most, and at once.
_MOST_VECTORS, _AT_ONCE = 2**22, 2**12


def by_all_vectors(problem: Problem, front: Front, budget: Budget) -> Iterator[Bounds]:
    """Yield the front of all vectors of an encoder that knows every plan, if they are few enough.

    Nothing is proven where the time ends before, and where no vector is feasible.
    """
    encoder = build_encoder(problem, front.objectives)
    counts = [int(n) for n in encoder.upper - encoder.lower + 1]
    total, best = math.prod(counts), np.empty((0, len(front.objectives)))
    for first in range(0, total if total <= _MOST_VECTORS else 0, _AT_ONCE):
        if budget.out_of_time:
            return
        numbers = np.arange(first, min(total, first + _AT_ONCE))
        X = encoder.lower + np.stack(np.unravel_index(numbers, counts), axis=1)
        values, violations = encoder.evaluate(X)
        legal = values[(violations <= 0).all(axis=1)]
        best = np.concatenate((best, legal))
        best = best[nondominated(best)]
    yield Bounds(best, complete=total <= _MOST_VECTORS)


def certified(
    problem: Problem, front: Front, budget: Budget, bounds: Bounding, goal: str | None
) -> Front:
    """Return a front with a lower-bound set, and the run that proved it behind the others.

    Where the proof cannot be computed, what was proven before that holds, and the run says why in
    its ``note``.

    Parameters
    ----------
    problem : Problem
    front : Front
    budget : Budget
        What is left of its time is the certificate's; `OWN_SECONDS` where it has no time limit.
    bounds : Bounding
    goal : str or None
        The objective of which points tell the gap; None keeps what points say of themselves, and
        the name of no objective grades them without a gap.

    Raises
    ------
    InfeasibleInstanceError
        The instance has no plan.
    """
    own = _own(budget)
    began, note, last = own.seconds, "", Bounds(np.empty((0, len(front.objectives))))
    result = front
    try:
        for proven in bounds(problem, front, own):
            last = proven
    except InfeasibleInstanceError:
        raise
    except Exception as error:  # whatever fails in a proof: what the search found is worth more
        note = _in_words(error)
    try:
        result = _joined(front, last, goal)
    except Exception as error:  # such as more pairs of vectors than memory holds
        note = _in_words(error)
    facts = {**last.facts, "note": f"the proof ended early: {note}"} if note else dict(last.facts)
    run = Run(
        CERTIFY,
        None,
        own.seconds - began,
        solver_calls=last.solves,
        completed=last.complete and not note,
        parameters=facts,
        versions=versions(last.libraries),
    )
    return replace(result, runs=(*front.runs, run))


def _own(budget: Budget) -> Budget:
    """Return the time of a certificate: what is left, or some where no limit is given."""
    if budget.out_of_time:
        return budget
    left = OWN_SECONDS if budget.seconds_limit is None else budget.seconds_left
    own = budget.beside(seconds=max(left, 1e-3))
    own.on_progress = budget.on_progress
    return own


def _joined(front: Front, proven: Bounds, goal: str | None) -> Front:
    """Return a front with bounds joined to its own; with `goal` every point is graded by them."""
    if not len(proven.vectors):
        return front
    proof = Front(
        front.instance,
        front.objectives,
        points=tuple(proven.points),
        bounds=tuple(map(tuple, proven.vectors.tolist())),
    )
    both = merge([front, proof])
    return both if goal is None else graded(both, goal)


def _in_words(error: Exception) -> str:
    """Return why a proof failed: an error's own words, and its kind where they are not ours."""
    text = str(error) if isinstance(error, PlaceoptError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split()) or shown(error)


def graded(front: Front, goal: str) -> Front:
    """Return a front with what its bounds prove of its points.

    A point is optimal, so that no plan dominates it, if no bound dominates it. A bound that
    exceeds a value by rounding alone counts as equal to it. Any other point has a gap: the largest
    share by which its value of `goal` could fall while no other objective gets worse; None where
    the front has no such objective. A point that no bound covers stays as it is.
    """
    names, bounds = [o.name for o in front.objectives], np.array(front.bounds)
    columns = np.ascontiguousarray(bounds.T)  # columns are compared faster than rows
    column = names.index(goal) if goal in names else None
    points = []
    for point in front.points:
        values = np.array(point.values)
        rounded = values + _ROUNDING * np.maximum(1.0, np.abs(values))
        within = np.logical_and.reduce(
            [row <= value for row, value in zip(columns, rounded, strict=True)]
        )
        below = bounds[within]
        if len(below) == 0:  # bounds that do not cover a plan prove nothing of it
            points.append(point)
            continue
        if not (below < values).any():
            points.append(replace(point, status="optimal", gap=None))
            continue
        gap = None
        if column is not None:
            least = below[:, column].min()
            gap = float(1 - least / values[column]) if values[column] > 0 else 0.0
        points.append(replace(point, status="bounded", gap=gap))
    return replace(front, points=tuple(points))
