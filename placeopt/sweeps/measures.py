"""Measures of a sweep's fronts, and what can be told from them of its methods.

The fronts of one instance are measured against the union of them all: values are scaled between the
ideal and the nadir of the union, the reference point is 1.1 in every scaled objective.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.core import indicators
from placeopt.core.dominance import hypervolume, minimal
from placeopt.core.front import Front
from placeopt.sweeps.plan import Cell

#: Scaled values of the reference point.
REFERENCE = 1.1


def measure(
    cells: Sequence[Cell], fronts: Sequence[Front | None], errors: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a row for each cell.

    ``hypervolume`` is the share of the union's; ``igd_plus`` and ``epsilon`` are the distance IGD+
    and the additive epsilon indicator to the union, in scaled values. They are nan without a front.
    """
    union: dict[str, list[np.ndarray]] = defaultdict(list)
    for cell, front in zip(cells, fronts, strict=True):
        if front is not None and front.points:
            union[cell.instance].append(front.values)
    best = {name: minimal(np.concatenate(values)) for name, values in union.items()}
    return [
        _row(cell, front, error, best.get(cell.instance))
        for cell, front, error in zip(cells, fronts, errors, strict=True)
    ]


def _row(cell: Cell, front: Front | None, error: str, best: np.ndarray | None) -> dict[str, Any]:
    run = front.runs[0] if front is not None and front.runs else None
    indicators = (math.nan, math.nan, math.nan)
    if front is not None and front.points and best is not None:
        indicators = _indicators(front.values, best)
    gap = front.gap() if front is not None else None
    return {
        "problem": cell.document["problem"],
        "instance": cell.instance,
        "method": cell.method,
        "seed": cell.task["seed"],
        "evaluations_limit": cell.task["evaluations"],
        "seconds_limit": cell.task["seconds"],
        "hypervolume": indicators[0] if front is None or front.points else 0.0,
        "igd_plus": indicators[1],
        "epsilon": indicators[2],
        "points": len(front) if front is not None else 0,
        "feasible": bool(front is not None and front.points),
        "gap": math.nan if gap is None else gap,
        "seconds": run.seconds if run else math.nan,
        "cpu_seconds": math.nan if run is None or run.cpu_seconds is None else run.cpu_seconds,
        "evaluations": run.evaluations if run else 0,
        "completed": bool(run and run.completed),
        "error": error,
    }


def _indicators(values: np.ndarray, best: np.ndarray) -> tuple[float, float, float]:
    """Return the share of the hypervolume, IGD+ and the additive epsilon, all against `best`."""
    mine, theirs = indicators.scaled(values, best)
    reference = [REFERENCE] * best.shape[1]
    share = hypervolume(mine, reference) / hypervolume(theirs, reference)
    return share, indicators.igd_plus(mine, theirs), indicators.epsilon(mine, theirs)


def final(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the largest budget of each kind."""
    largest = {
        key: max((row[key] for row in rows if row[key] is not None), default=None)
        for key in ("evaluations_limit", "seconds_limit")
    }
    return [row for row in rows if all(row[key] == largest[key] for key in largest)] or list(rows)


def paired(rows: Sequence[dict[str, Any]]) -> tuple[list[str], np.ndarray]:
    """Return the methods with fronts, and their hypervolume on each instance and seed all have.

    Returns
    -------
    methods : list of str
    values : ndarray, shape (pairs, methods)
    """
    rows = [row for row in rows if not math.isnan(row["hypervolume"])]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        found[row["instance"], row["seed"]][row["method"]] = row["hypervolume"]
    whole = [[of[m] for m in methods] for of in found.values() if len(of) == len(methods)]
    return methods, np.array(whole).reshape(-1, len(methods))


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Return the mean rank of each method, 1 for the greatest hypervolume; ties share a rank."""
    from scipy.stats import rankdata

    return rankdata(-values.round(12), axis=1).mean(axis=0)


def wilcoxon_holm(values: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the p-value of each pair of methods: Wilcoxon's signed-rank test, Holm's correction.

    Pairs whose values are all the same have 1.
    """
    from scipy.stats import wilcoxon

    pairs = list(itertools.combinations(range(values.shape[1]), 2))
    raw = []
    for a, b in pairs:
        difference = (values[:, a] - values[:, b]).round(12)
        raw.append(float(wilcoxon(difference).pvalue) if difference.any() else 1.0)
    adjusted, largest = {}, 0.0
    for position, k in enumerate(np.argsort(raw, kind="stable")):
        largest = max(largest, min(1.0, raw[k] * (len(raw) - position)))
        adjusted[pairs[k]] = largest
    return adjusted
