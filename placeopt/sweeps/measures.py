"""Measures of a sweep's fronts, and what can be told from them of its methods.

At most as many points of each front are measured as the plan says, so that archives of different
sizes compare. The fronts of one instance are measured against the union of what is measured of them
all: values are scaled between the ideal and the nadir of the union, the reference point is 1.1 in
every scaled objective.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.errors import optional
from placeopt.core.fronts import dominance
from placeopt.core.fronts.dominance import hypervolume, minimal
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.words import counted
from placeopt.sweeps.plan import POINTS, Cell
from placeopt.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

#: Scaled values of the reference point.
REFERENCE = 1.1
#: What a difference must be less likely than, where there is none, to be called significant.
LEVEL = 0.05
#: Why a run has no front where nothing went wrong with it.
NOT_RUN = "not run: the sweep ended before this run did"


def measure(
    cells: Sequence[Cell],
    fronts: Sequence[Front | None],
    errors: Sequence[str],
    points: int = POINTS,
) -> list[dict[str, Any]]:
    """Return a row for each cell.

    ``hypervolume`` is the share of the union's; ``igd_plus`` and ``epsilon`` are the distance IGD+
    and the additive epsilon indicator to the union, in scaled values. They are nan without a front.
    """
    measured = [None if front is None else front.subset(points) for front in fronts]
    union: dict[str, list[np.ndarray]] = defaultdict(list)
    for cell, front in zip(cells, measured, strict=True):
        if front is not None and front.points:
            union[cell.instance].append(front.values)
    best = {name: minimal(np.concatenate(values)) for name, values in union.items()}
    return [
        _row(cell, front, part, error, best.get(cell.instance))
        for cell, front, part, error in zip(cells, fronts, measured, errors, strict=True)
    ]


def _row(
    cell: Cell, front: Front | None, part: Front | None, error: str, best: np.ndarray | None
) -> dict[str, Any]:
    run = front.runs[0] if front is not None and front.runs else None
    results = (math.nan, math.nan, math.nan)
    if part is not None and part.points and best is not None:
        results = _indicators(part.values, best)
    gap = front.gap() if front is not None else None
    return {
        "problem": cell.document["problem"],
        "instance": cell.instance,
        "method": cell.method,
        "seed": cell.task["seed"],
        "evaluations_limit": cell.task["evaluations"],
        "seconds_limit": cell.task["seconds"],
        "hypervolume": results[0] if front is None or front.points else 0.0,
        "igd_plus": results[1],
        "epsilon": results[2],
        "points": math.nan if part is None else len(part),
        "points_found": math.nan if front is None else len(front),
        "feasible": bool(front is not None and front.points),
        "gap": math.nan if gap is None else gap,
        "seconds": run.seconds if run else math.nan,
        "cpu_seconds": math.nan if run is None or run.cpu_seconds is None else run.cpu_seconds,
        "evaluations": run.evaluations if run else math.nan,
        "completed": bool(run and run.completed),
        "reference": "" if best is None else _reference(cell.task["objectives"], best),
        "error": error,
    }


def _reference(names: Sequence[str], best: np.ndarray) -> str:
    """Return the reference point in the units of the objectives, as text."""
    spread = np.ptp(best, axis=0)
    corner = best.min(axis=0) + REFERENCE * np.where(spread > 0, spread, 1.0)
    return ", ".join(f"{name}={x:.9g}" for name, x in zip(names, corner.tolist(), strict=True))


def _indicators(values: np.ndarray, best: np.ndarray) -> tuple[float, float, float]:
    """Return the share of the hypervolume, IGD+ and the additive epsilon, all against `best`."""
    own, theirs = dominance.scaled(values, best)
    reference = [REFERENCE] * best.shape[1]
    share = hypervolume(own, reference) / hypervolume(theirs, reference)
    return share, dominance.igd_plus(own, theirs), dominance.epsilon(own, theirs)


def ended(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of runs that ended, with a front or with an error."""
    return [row for row in rows if row["error"] != NOT_RUN]


def final(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the largest budget: in evaluations where there are such, else seconds."""
    for key in ("evaluations_limit", "seconds_limit"):
        limits = [row[key] for row in rows if row[key] is not None]
        if limits:
            return [row for row in rows if row[key] == max(limits)]
    return list(rows)


def frame(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Return the rows of runs that ended as a pandas DataFrame.

    Raises
    ------
    MissingExtraError
        pandas is not installed.
    """
    pandas = optional("pandas", "the table of a sweep", "plot")
    table = pandas.DataFrame(ended(rows), columns=list(rows[0]))
    return table.astype({"evaluations_limit": "Int64"})


def by_method(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Return the hypervolume of each instance and seed, a row, by each method, a column.

    Methods without any front are left out; a run without one is nan.
    """
    fronts = frame(rows).dropna(subset="hypervolume")
    index = ["instance", "seed"]
    wide = fronts.pivot_table("hypervolume", index, "method", "last")
    return wide[list(fronts["method"].unique())]


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Return the mean rank of each method, 1 for the greatest hypervolume; ties share a rank."""
    from scipy.stats import rankdata

    return rankdata(-values.round(12), axis=1).mean(axis=0)


@dataclass(frozen=True)
class Comparison:
    """Two methods on the instances and seeds that both have.

    Attributes
    ----------
    first, second : str
    pairs : int
        Instances and seeds that both have.
    difference : float
        Median of the first's hypervolume less the second's.
    p : float
        p-value of Wilcoxon's signed-rank test, by Holm's correction; 1 where all values are equal.
    """

    first: str
    second: str
    pairs: int
    difference: float
    p: float


def comparisons(rows: Sequence[dict[str, Any]]) -> list[Comparison]:
    """Compare every two methods that have an instance and seed in common, least p-value first."""
    wide = by_method(rows)
    couples = [
        (one, other, (wide[one] - wide[other]).dropna().to_numpy())
        for one, other in itertools.combinations(wide.columns, 2)
    ]
    couples = [couple for couple in couples if len(couple[2])]
    values = holm([_wilcoxon(differences) for *_, differences in couples])
    told = [
        Comparison(one, other, len(differences), float(np.median(differences)), p)
        for (one, other, differences), p in zip(couples, values, strict=True)
    ]
    return sorted(told, key=lambda comparison: comparison.p)


def _wilcoxon(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; exact for few pairs."""
    from scipy.stats import wilcoxon

    rounded = differences.round(12)
    return float(wilcoxon(rounded).pvalue) if rounded.any() else 1.0


def holm(raw: Sequence[float]) -> list[float]:
    """Return p-values by Holm's correction, in the order of `raw`."""
    adjusted, largest = [1.0] * len(raw), 0.0
    for position, k in enumerate(np.argsort(raw, kind="stable")):
        largest = max(largest, min(1.0, raw[k] * (len(raw) - position)))
        adjusted[k] = largest
    return adjusted


def pairs_needed(methods: int) -> int:
    """Return the fewest pairs with which a difference of so many methods can be significant.

    The least p-value of n pairs is 2 ** (1 - n), and Holm multiplies it by the comparisons.

    >>> pairs_needed(2), pairs_needed(3), pairs_needed(4)
    (6, 7, 8)
    """
    comparisons = max(1, math.comb(methods, 2))
    return next(n for n in itertools.count(1) if comparisons * 2.0 ** (1 - n) < LEVEL)


# -- the table of a sweep --------------------------------------------------------------------------

#: What a front is measured by beside hypervolume: the median of each over seeds.
MEASURES = ("igd_plus", "epsilon", "seconds", "points")
#: Columns of the hypervolume over seeds -> the quantile.
_QUARTILES = {"hypervolume_q1": 0.25, "hypervolume_median": 0.5, "hypervolume_q3": 0.75}
#: What LaTeX reads as more than a letter -> how it is written.
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def lines(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Return the table of the runs of the largest budget that ended, a row a method on an instance.

    ``best``: no other method has a greater median there; only where methods have the same seeds.
    """
    runs = frame(final(rows))
    if runs.empty:
        return runs
    keys = ["instance", "method"]
    groups = runs.groupby(keys, sort=False)
    table = groups.agg(runs=("seed", "size"), feasible=("feasible", "sum"))
    for name, share in _QUARTILES.items():
        table[name] = groups["hypervolume"].quantile(share)
    table[list(MEASURES)] = groups[list(MEASURES)].median()
    middle = table["hypervolume_median"]
    greatest = middle.groupby("instance").transform("max")
    seeds = runs.dropna(subset="hypervolume").groupby(keys)["seed"].agg(frozenset)
    same = seeds.groupby("instance").agg(lambda own: len(own) > 1 and own.nunique() == 1)
    fair = table.index.get_level_values("instance").isin(same.index[same.astype(bool)])
    return table.assign(best=fair & (middle >= greatest - 1e-12)).reset_index()


def budget_of(rows: Sequence[dict[str, Any]]) -> str:
    """Return in words the budget that the table is about, empty where methods had their own."""
    last = final(rows)[0]
    return in_words(last["evaluations_limit"], last["seconds_limit"])


def in_words(evaluations: int | None, seconds: float | None) -> str:
    """Return a budget in words.

    >>> in_words(2000, None), in_words(None, 1.5), in_words(None, None)
    ('2,000 evaluations', '1.5 s', '')
    """
    if evaluations:
        return counted(evaluations, "evaluation")
    return f"{seconds:g} s" if seconds else ""


def shown(value: float, form: str = ".3g") -> str:
    """Return a number, nothing for nan."""
    return "" if math.isnan(value) else f"{value:{form}}"


def cells(line: Any) -> list[str]:
    """Return a row of `lines` as text, in the order of `header`."""
    low, middle, high = line.hypervolume_q1, line.hypervolume_median, line.hypervolume_q3
    quartiles = "" if math.isnan(middle) else f"{low:.4f} to {high:.4f}"
    others = [shown(value) for value in (line.igd_plus, line.epsilon, line.seconds)]
    return [
        line.instance,
        line.method,
        str(line.runs),
        shown(middle, ".4f"),
        quartiles,
        *others,
        shown(line.points, ",.4g"),
        f"{line.feasible} of {line.runs}",
    ]


def header() -> list[str]:
    """Return the names of the columns of `cells`."""
    return [
        "instance",
        "method",
        "runs",
        "hypervolume, median",
        "quartiles",
        "IGD+",
        "epsilon",
        "seconds",
        "points",
        "feasible",
    ]


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table as CSV."""
    table = lines(rows)
    table = table if table.empty else table.astype({"best": int})
    text: str = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text


def as_latex(rows: Sequence[dict[str, Any]], note: str) -> str:
    """Return the table as LaTeX, for the package booktabs; `note` stands above it as a comment."""
    names = header()[:-1]
    body = []
    for line in lines(rows).itertuples():
        own = [latex(cell) for cell in cells(line)[: len(names)]]
        if line.best:
            own[3] = rf"\textbf{{{own[3]}}}"
        body.append(" & ".join(own) + r" \\")
    top = [f"% {sentence}" for sentence in (f"placeopt {__version__}; needs booktabs.", note)]
    columns = "ll" + "r" * (len(names) - 2)
    titles = " & ".join(map(latex, names)) + r" \\"
    begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", titles, r"\midrule"]
    return "\n".join([*top, *begin, *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def latex(text: str) -> str:
    """Return text as LaTeX prints it.

    >>> latex("a_b & 5 %")
    'a\\\\_b \\\\& 5 \\\\%'
    """
    return "".join(_LATEX.get(c, c) for c in text)
