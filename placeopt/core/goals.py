"""Goals as a question has them: limits, which no plan may exceed, and weights.

A limit belongs to the question, not to the instance. `Problem.within` returns the same instance
with limits, which every part that methods are made of asks for: `Task`, searches over vectors, and
enumerations. A plan inside limits is on the front inside them exactly where it is on the whole one,
as what is better in everything lies inside as well: proofs of optimality hold for both.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import UsageError, require_known, shown
from placeopt.core.fronts.values import Evaluation, Objective, Violation, names_of

#: Kind of the violation of a plan that lies outside.
BEYOND = "limit"
_WRITTEN = re.compile(r"\s*([^<=>\s]+)\s*(<=|=)\s*(\S+)\s*")


def read_limits(
    wanted: Mapping[str, float] | Iterable[str] | None, objectives: Sequence[Objective]
) -> dict[str, float]:
    """Return limits by the names of goals, in the order of `objectives`.

    Parameters
    ----------
    wanted : mapping or iterable of str, optional
        ``{"latency_ms": 30}``, or texts such as ``latency_ms<=30``; ``rejected=0`` says the same as
        ``rejected<=0``.

    Raises
    ------
    UsageError
        Not of this form, a goal that is not among the objectives, or no finite number.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    pairs = wanted.items() if isinstance(wanted, Mapping) else map(_split, wanted or ())
    names, result = names_of(objectives), dict[str, float]()
    for name, most in pairs:
        require_known("objective to limit", name, names)
        if name in result:
            raise UsageError(f"{name} is limited twice; keep one of the two limits")
        result[name] = _number(name, most)
    return {name: result[name] for name in names if name in result}


def _split(text: object) -> tuple[str, str]:
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UsageError(f"limit {shown(text)}; write it as GOAL<=VALUE, such as latency_ms<=30")
    return match[1], match[3]


def _number(name: str, most: object) -> float:
    try:
        value = math.nan if isinstance(most, bool) else float(most)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"the limit of {name} is {shown(most)}; give a finite number")
    return value


def upper_limits(limits: Mapping[str, float], objectives: Sequence[Objective]) -> np.ndarray:
    """Return the largest value allowed of each objective, inf where there is no limit."""
    return np.array([limits.get(o.name, math.inf) for o in objectives])


def excess(values: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return how far values are above their limits, as shares of limits above 1, shape of both.

    Parameters
    ----------
    values, most : ndarray, shapes (k, objectives) and (objectives,)
    """
    beyond: np.ndarray = np.maximum(values - most, 0.0) / np.maximum(1.0, np.abs(most))
    return beyond


def judged(
    verdict: Evaluation, limits: Mapping[str, float], objectives: Sequence[Objective]
) -> Evaluation:
    """Return a verdict with a violation for every goal of the problem that is above its limit."""
    broken = [
        Violation(
            BEYOND,
            max(1e-12, (value - limits[o.name]) / max(1.0, abs(limits[o.name]))),
            f"{o.name} is {value:.6g}, above the limit of {limits[o.name]:.6g}",
        )
        for value, o in zip(verdict.values, objectives, strict=True)
        if value > limits.get(o.name, math.inf)
    ]
    return Evaluation(verdict.values, (*verdict.violations, *broken)) if broken else verdict


def fewest(wanted: int | None, most: float | None) -> int | None:
    """Return the smaller one of a parameter and of a limit that mean the same; None for neither."""
    counts = [
        n for n in (wanted, None if most is None else max(0, math.floor(most))) if n is not None
    ]
    return min(counts, default=None)


def nothing_inside(
    limits: Mapping[str, float], objectives: Sequence[Objective], nearest: Sequence[float]
) -> str:
    """Say that no plan inside limits was met, and which values the nearest one has."""
    wanted = " and ".join(f"{name} <= {most:.6g}" for name, most in limits.items())
    pairs = zip(names_of(objectives), nearest, strict=True)
    has = " and ".join(f"{name} {value:.6g}" for name, value in pairs if name in limits)
    return f"no plan within {wanted} was found; the nearest one has {has}"


def window(values: np.ndarray, most: np.ndarray) -> tuple[float, float]:
    """Return which part of a sweep over weights lies inside limits, as shares of the sweep.

    Parameters
    ----------
    values : ndarray, shape (k, objectives)
        What each weight of the sweep led to, in its order.
    most : ndarray, shape (objectives,)

    Returns
    -------
    (float, float)
        From one weight before the first plan inside to one after the last; about the nearest plan
        where none is inside.
    """
    beyond = excess(values, most).sum(axis=1)
    inside = np.flatnonzero(beyond <= beyond.min())
    last = max(1, len(values) - 1)
    return max(0, int(inside[0]) - 1) / last, min(last, int(inside[-1]) + 1) / last


#: Parts of the lattice by number of objectives, for about 200 vectors.
PARTS = {1: 1, 2: 199, 3: 20, 4: 9}


def simplex(parts: int, dimensions: int) -> np.ndarray:
    """Return all vectors of non-negative multiples of 1 / `parts` that sum to 1.

    Das and Dennis, 1998; shape (k, dimensions).

    Examples
    --------
    >>> simplex(2, 2).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    slots = parts + dimensions - 1
    cuts = np.array(list(itertools.combinations(range(slots), dimensions - 1)), dtype=np.int64)
    return (np.diff(cuts, axis=1, prepend=-1, append=slots) - 1) / parts


def lattice(dimensions: int, fineness: float = 1.0) -> np.ndarray:
    """Return about 200 weight vectors, shape (k, dimensions); more for a higher `fineness`."""
    return simplex(max(1, round(PARTS.get(dimensions, 4) * fineness)), dimensions)


def read_weights(given: Any, count: int) -> np.ndarray:
    """Return weights as float64 of shape (count,).

    Parameters
    ----------
    given : sequence of float, or text such as ``"0.5,0.5"``

    Raises
    ------
    UsageError
        Not `count` finite numbers of at least 0, or all of them 0.
    """
    try:
        row = np.array(given.split(",") if isinstance(given, str) else given, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (count,) or not (np.isfinite(row).all() and (row >= 0).all() and row.any()):
        raise UsageError(
            f"weights is {given!r}; give {count} numbers of at least 0, not all 0, such as "
            + ",".join(["1"] * count)
        )
    return row
