"""The page of a sweep: medians, quartiles, ranks, tests, convergence; one file, no network."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from placeopt.sweeps import tables
from placeopt.sweeps.measures import (
    LEVEL,
    comparisons,
    ended,
    final,
    mean_ranks,
    paired,
    pairs_needed,
    shared,
)
from placeopt.sweeps.tables import groups, known, median, shown
from placeopt.version import __version__

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{reload}
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 24px auto;
  padding: 0 16px; color: #1c2430; }}
table {{ border-collapse: collapse; margin: 12px 0; display: block; overflow-x: auto; }}
td, th {{ padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid #ddd; }}
td:first-child, th:first-child {{ text-align: left; }} b {{ color: #0b5fa5; }}
svg {{ max-width: 100%; height: auto; }} .note {{ color: #566171; }}
</style></head><body><h1>{title}</h1>
<p>{summary}</p>
{body}
<p class="note">Made by placeopt {version}.</p>
</body></html>
"""
#: What hypervolume means here.
HYPERVOLUME = "Hypervolume is relative to the union of all fronts here; adding a method changes it."
#: Seconds after which a browser reads again the page of a sweep that runs.
_RELOAD_SECONDS = 20


def page(name: str, rows: Sequence[dict[str, Any]], *, running: bool = False) -> str:
    """Return the page of a sweep as HTML text; charts need matplotlib, and are left out without.

    Runs that have not ended are counted and left out. With `running` a browser reads the page again
    and again.
    """
    told = ended(rows)
    failed = [row for row in told if row["error"]]
    parts = [_medians(rows), _ranks(rows), _budgets(told)]
    if importlib.util.find_spec("matplotlib"):
        parts.insert(1, _boxes(ended(final(rows))))
        parts.append(_convergence(told))
    return _PAGE.format(
        title=escape(f"Sweep: {name}"),
        reload=f'<meta http-equiv="refresh" content="{_RELOAD_SECONDS}">' if running else "",
        summary=_summary(rows, told, failed, running),
        body="\n".join([*parts, _failures(failed)]),
        version=__version__,
    )


def _summary(
    rows: Sequence[Any], told: Sequence[dict[str, Any]], failed: Sequence[Any], running: bool
) -> str:
    without = sum(not row["feasible"] for row in told) - len(failed)
    facts = f"{len(told)} of {len(rows)} runs ended: {len(told) - len(failed)} with a front"
    facts += f", {without} of these without a feasible plan" if without else ""
    facts += f", {len(failed)} failed" if failed else ""
    if running:
        return f"{facts}. The sweep is running: this page is rewritten as runs end."
    if len(told) < len(rows):
        return f"{facts}. The other {len(rows) - len(told)} are left out of everything below."
    return f"{facts}."


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; cells are HTML already."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _at(rows: Sequence[dict[str, Any]]) -> str:
    budget = tables.budget_of(rows)
    return f" at {budget}" if budget else ""


def _medians(rows: Sequence[dict[str, Any]]) -> str:
    """Return medians and quartiles of each method on each instance, the greatest median in bold."""
    lines = []
    for line in tables.lines(rows):
        cells = [escape(cell) for cell in tables.cells(line)]
        if line.best:
            cells[3] = f"<b>{cells[3]}</b>"
        lines.append(cells)
    title = f"<h2>Medians and quartiles over seeds{_at(rows)}</h2>"
    if not lines:
        return f"{title}<p>No run with this budget has ended yet.</p>"
    bold = "Bold: the greatest median, where all methods have the same seeds."
    links = (
        '<p class="note">This table as <a href="table.csv">CSV</a> and '
        '<a href="table.tex">LaTeX</a>; every run in <a href="results.csv">results.csv</a>.</p>'
    )
    table = _table(tables.header(), lines)
    return title + table + _note(f"{HYPERVOLUME} {bold}") + links + _references(rows)


def _references(rows: Sequence[dict[str, Any]]) -> str:
    """Return the reference point of each instance, in the units of its objectives."""
    points = {row["instance"]: row["reference"] for row in rows if row["reference"]}
    table = _table(("instance", "reference point"), (map(escape, item) for item in points.items()))
    said = "The reference point lies a tenth of the range of the union's values beyond the worst."
    return table + _note(said)


def _ranks(rows: Sequence[dict[str, Any]]) -> str:
    """Return mean ranks, and the methods that differ significantly, of what both have."""
    last = ended(final(rows))
    methods, values = paired(last)
    told = comparisons(last)
    title = f"<h2>Ranks and tests{_at(rows)}</h2>"
    if not told:
        return f"{title}<p>They need two methods with an instance and seed that both have.</p>"
    tests = _table(
        ("methods", "n", "median difference", "p (Wilcoxon, Holm)"),
        (
            (
                f"{escape(c.first)} - {escape(c.second)}",
                str(c.pairs),
                f"{c.difference:+.4f}",
                f"<b>{c.p:.3g}</b>" if c.p < LEVEL else f"{c.p:.3g}",
            )
            for c in told
        ),
    )
    needed = pairs_needed(len(methods))
    said = "n: instances and seeds that both methods have. Bold: significant at 5 %."
    if max(c.pairs for c in told) < needed:
        said += f" So few cannot be significant: {len(methods)} methods need n of {needed} or more."
    if not len(values):
        return f"{title}<p>{said}</p>{tests}"
    order = np.argsort(mean_ranks(values), kind="stable")
    ranks = _table(
        ("method", "mean rank", "mean hypervolume"),
        (
            (escape(methods[k]), f"{mean_ranks(values)[k]:.2f}", f"{values[:, k].mean():.4f}")
            for k in order
        ),
    )
    over = f"Ranks are over the {len(values)} instances and seeds that all methods have."
    return f"{title}<p>{over}</p>{ranks}<p>{said}</p>{tests}"


#: method and budget -> instance and seed -> the row of that run.
_Runs = dict[tuple[Any, ...], dict[tuple[Any, ...], dict[str, Any]]]


def _runs(rows: Iterable[dict[str, Any]]) -> _Runs:
    """Return the runs with a front by method and budget, and by instance and seed."""
    fronts = [row for row in rows if not math.isnan(row["hypervolume"])]
    by_method = groups(fronts, "method", "evaluations_limit", "seconds_limit")
    return {
        key: {(row["instance"], row["seed"]): row for row in group}
        for key, group in by_method.items()
    }


def _budgets(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume of each method at each budget, of what all methods have."""
    runs, lines = _runs(rows), []
    for (method, evaluations, seconds), mine in runs.items():
        rivals = [other for key, other in runs.items() if key[1:] == (evaluations, seconds)]
        both = [mine[pair] for pair in shared(rivals)]
        value, taken = (median(known(both, key)) for key in ("hypervolume", "seconds"))
        budget = tables.in_words(evaluations, seconds)
        lines.append(
            [escape(method), budget, str(len(both)), shown(value, ".4f"), shown(taken, ".2f")]
        )
    header = ("method", "budget", "n", "hypervolume, median", "seconds, median")
    said = "n: instances and seeds that all methods have at this budget; only these count here."
    return f"<h2>Budgets</h2>{_table(header, lines)}{_note(said)}"


def _failures(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    keys = ("instance", "method", "seed", "error")
    lines = ([escape(str(row[key])) for key in keys] for row in rows)
    return "<h2>Runs that failed</h2>" + _table(keys, lines)


def _svg(figure: Any) -> str:
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "placeopt"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return "<svg" + text.getvalue().split("<svg", 1)[1]


def _boxes(rows: Sequence[dict[str, Any]]) -> str:
    """Return box plots of the hypervolume, one panel an instance."""
    from matplotlib.figure import Figure

    instances = {
        name: fronts
        for (name,), mine in groups(rows, "instance").items()
        if (fronts := [row for row in mine if not math.isnan(row["hypervolume"])])
    }
    if not instances:
        return ""
    height = math.ceil(len(instances) / 2)
    figure = Figure(figsize=(10, 2.4 * height), layout="constrained")
    panels = figure.subplots(height, 2, squeeze=False).ravel()
    for panel in panels[len(instances) :]:
        panel.set_visible(False)
    for panel, (name, mine) in zip(panels, instances.items(), strict=False):
        methods = groups(mine, "method")
        panel.boxplot(
            [known(group, "hypervolume") for group in methods.values()], orientation="horizontal"
        )
        names = [f"{method} (n = {len(group)})" for (method,), group in methods.items()]
        panel.set_yticks(range(1, len(methods) + 1), names, fontsize=7)
        panel.set_title(name, fontsize=8, loc="left")
        panel.set_xlabel("hypervolume", fontsize=7)
        panel.tick_params(axis="x", labelsize=7)
    return "<h2>Hypervolume over seeds</h2>" + _svg(figure)


def _convergence(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume over evaluations and over seconds, a line a method."""
    from matplotlib.figure import Figure

    runs = _runs(rows)
    both = shared(runs.values()) if runs else []
    if not both:
        return ""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, key in zip(panels, ("evaluations", "seconds"), strict=True):
        places: dict[str, list[tuple[float, float]]] = {}
        for (method, *_), mine in runs.items():
            fronts = [mine[pair] for pair in both]
            place = (median(known(fronts, key)), median(known(fronts, "hypervolume")))
            places.setdefault(method, []).append(place)
        for method, curve in places.items():
            panel.plot(*zip(*sorted(curve), strict=True), "o-", label=method)
        _logarithmic(panel)
        panel.set_xlabel(f"{key}, median of runs")
    panels[0].set_ylabel("hypervolume")
    panels[0].legend(fontsize=7)
    said = f"Over the {len(both)} instances and seeds that all methods have at every budget."
    return f"<h2>Convergence</h2>{_svg(figure)}{_note(said)}"


def _logarithmic(panel: Any) -> None:
    """Give the horizontal axis of a panel a logarithmic scale, with few labels that are numbers."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    panel.set_xscale("log")
    low, high = panel.get_xlim()
    wide = high > 5 * low
    ticks = LogLocator(subs=(1.0, 2.0, 5.0), numticks=8) if wide else MaxNLocator(4)
    panel.xaxis.set_major_locator(ticks)
    panel.xaxis.set_major_formatter("{x:,g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
