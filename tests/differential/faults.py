"""What is wrong with a front, measured by every plan of its instance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from brute_force import Document, Values, judge
from rolling_updates import best

from placeopt.core.fronts.dominance import hypervolume
from placeopt.core.fronts.front import Front

#: Methods that answer exactly when they say that they are completed.
EXACT = ("bin-plans", "epsilon-constraint")
_NEAR = 1e-9


def faults(document: Document, front: Front, attainable: set[Values]) -> Iterator[str]:
    """Yield a sentence for each claim of a front that is not true."""
    truth = np.array(best(attainable)).reshape(-1, len(front.objectives))
    yield from _points(document, front, truth)
    yield from _proofs(front, truth)
    yield from _gap(front, truth)
    if not front.points and not (front.reasons or len(truth)):
        yield "no reason is given for a front without points"


def _below(rows: np.ndarray, vector: np.ndarray) -> bool:
    """Whether a row is no worse than a vector, but for rounding."""
    return bool((rows <= vector + _NEAR * np.maximum(1, np.abs(vector))).all(axis=1).any())


def _beats(truth: np.ndarray, vector: np.ndarray) -> bool:
    """Whether a row is no worse than a vector and better somewhere, by more than rounding."""
    slack = _NEAR * np.maximum(1, np.abs(vector))
    return bool(
        ((truth <= vector + slack).all(axis=1) & (truth < vector - slack).any(axis=1)).any()
    )


def _points(document: Document, front: Front, truth: np.ndarray) -> Iterator[str]:
    for point in front.points:
        values = judge[document["problem"]](document, point.plan)
        if values is None:
            yield f"the plan of {point.values} breaks the instance"
        elif not np.allclose(values, point.values, rtol=_NEAR, atol=_NEAR):
            yield f"a plan said to have {point.values} has {values}"
        elif not _below(truth, np.array(point.values)):
            yield f"{point.values} is better than every plan there is"
        elif point.status == "optimal" and _beats(truth, np.array(point.values)):
            yield f"{point.values} is called optimal, and is beaten"


def _proofs(front: Front, truth: np.ndarray) -> Iterator[str]:
    bounds = np.array(front.bounds).reshape(-1, len(front.objectives))
    for row in truth if len(bounds) else ():
        if not _below(bounds, row):
            yield f"no bound lies below {row.tolist()}, which is feasible"
    run = front.runs[0] if front.runs else None
    exact = run is not None and run.completed and run.method in EXACT
    if front.complete or exact:
        missing = [row.tolist() for row in truth if not _below(front.values, row)]
        if missing:
            yield f"called complete, but {missing} is missing"


def _gap(front: Front, truth: np.ndarray) -> Iterator[str]:
    for answer in (front, front.subset(1) if front.points else front):
        gap = answer.gap()
        if gap is None:
            continue
        corner = answer.reference().tolist()
        missing = 1 - answer.hypervolume(corner) / hypervolume(truth, corner)
        if gap < missing - 1e-6:
            yield f"a gap of {gap:.3%} is said, {missing:.3%} is missing"
