"""The table of a sweep: medians and quartiles of each method on each instance, as text."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.core.fronts.words import counted
from placeopt.sweeps.measures import ended, final
from placeopt.version import __version__

#: What a front is measured by beside hypervolume: the median of each over seeds.
MEASURES = ("igd_plus", "epsilon", "seconds", "points")
#: What LaTeX reads as more than a letter -> how it is written.
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True)
class Line:
    """A method on an instance.

    Attributes
    ----------
    instance, method : str
    runs, feasible : int
        Runs that ended, and those of them with a feasible plan.
    hypervolume : tuple of float
        Lower quartile, median and upper quartile; nan where no run has a front.
    medians : dict
        Of `MEASURES`.
    best : bool
        No other method has a greater median here; only where methods have the same seeds.
    """

    instance: str
    method: str
    runs: int
    feasible: int
    hypervolume: tuple[float, float, float]
    medians: dict[str, float]
    best: bool


def groups(rows: Iterable[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    """Return the rows with equal values of these keys, by the values."""
    results: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        results[tuple(row[key] for key in keys)].append(row)
    return results


def known(rows: Iterable[dict[str, Any]], key: str) -> np.ndarray:
    """Return the values of a column that are numbers."""
    values = np.array([row[key] for row in rows], dtype=float)
    return values[~np.isnan(values)]


def median(values: np.ndarray) -> float:
    """Return the median; nan of no values."""
    return float(np.median(values)) if len(values) else math.nan


def lines(rows: Sequence[dict[str, Any]]) -> list[Line]:
    """Return the table of the runs of the largest budget that ended."""
    results = []
    for (instance,), own in groups(ended(final(rows)), "instance").items():
        methods = groups(own, "method")
        with_front = {
            method: {row["seed"] for row in group if not math.isnan(row["hypervolume"])}
            for (method,), group in methods.items()
        }
        seeds = [known_seeds for known_seeds in with_front.values() if known_seeds]
        fair = len(seeds) > 1 and all(one == seeds[0] for one in seeds)
        middles = {m: median(known(group, "hypervolume")) for (m,), group in methods.items()}
        greatest = max((v for v in middles.values() if not math.isnan(v)), default=math.nan)
        for (method,), group in methods.items():
            values = known(group, "hypervolume")
            low, high = np.quantile(values, (0.25, 0.75)) if len(values) else (math.nan, math.nan)
            results.append(
                Line(
                    instance,
                    method,
                    len(group),
                    sum(row["feasible"] for row in group),
                    (float(low), middles[method], float(high)),
                    {key: median(known(group, key)) for key in MEASURES},
                    fair and middles[method] >= greatest - 1e-12,
                )
            )
    return results


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


def cells(line: Line) -> list[str]:
    """Return a line as text, in the order of `header`."""
    low, middle, high = line.hypervolume
    quartiles = "" if math.isnan(middle) else f"{low:.4f} to {high:.4f}"
    others = [shown(line.medians[key]) for key in MEASURES[:-1]]
    return [
        line.instance,
        line.method,
        str(line.runs),
        shown(middle, ".4f"),
        quartiles,
        *others,
        shown(line.medians["points"], ",.4g"),
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("hypervolume_q1", "hypervolume_median", "hypervolume_q3", *MEASURES)
    writer.writerow(("instance", "method", "runs", "feasible", *names, "best"))
    for line in lines(rows):
        numbers = (*line.hypervolume, *line.medians.values())
        front = (line.instance, line.method, line.runs, line.feasible)
        writer.writerow((*front, *(shown(x, ".6g") for x in numbers), int(line.best)))
    return text.getvalue()


def as_latex(rows: Sequence[dict[str, Any]], note: str) -> str:
    """Return the table as LaTeX, for the package booktabs; `note` stands above it as a comment."""
    names = header()[:-1]
    body = []
    for line in lines(rows):
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
