"""The table of a sweep: medians and quartiles of each method on each instance, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placeopt.core.fronts.words import counted
from placeopt.sweeps.measures import final, frame
from placeopt.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

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
