"""The page of a sweep: medians, quartiles, ranks, tests, convergence; one file, no network."""

from __future__ import annotations

import importlib.util
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from placeopt.sweeps.measures import final, mean_ranks, paired, wilcoxon_holm
from placeopt.version import __version__

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
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
<p class="note">Made by placeopt {version}. Hypervolume is the share of what all fronts of an
instance reach together; the reference point lies a tenth beyond their nadir.</p>
</body></html>
"""


def page(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the page of a sweep as HTML text; charts need matplotlib, and are left out without."""
    last = final(rows)
    parts = [_quartiles(last), _ranks(last), _budgets(rows)]
    if importlib.util.find_spec("matplotlib"):
        parts.insert(1, _boxes(last))
        parts.append(_convergence(rows))
    failed = [row for row in rows if row["error"]]
    parts.append(_failures(failed))
    return _PAGE.format(
        title=escape(f"Sweep: {name}"),
        summary=f"{len(rows)} runs, {len(rows) - len(failed)} with a front, "
        f"{sum(not row['feasible'] for row in rows) - len(failed)} without a feasible plan.",
        body="\n".join(parts),
        version=__version__,
    )


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _groups(rows: Sequence[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def _known(rows: Iterable[dict[str, Any]], key: str) -> np.ndarray:
    values = np.array([row[key] for row in rows], dtype=float)
    return values[~np.isnan(values)]


def _quartiles(rows: Sequence[dict[str, Any]]) -> str:
    """Return medians and quartiles of each method on each instance, the greatest median in bold."""
    lines = []
    for (instance,), mine in _groups(rows, "instance").items():
        medians = {
            method: float(np.median(values))
            for (method,), group in _groups(mine, "method").items()
            if len(values := _known(group, "hypervolume"))
        }
        for (method,), group in _groups(mine, "method").items():
            values = _known(group, "hypervolume")
            cells = ["", ""]
            if len(values):
                low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
                cells = [f"{middle:.4f}", f"{low:.4f} to {high:.4f}"]
                if middle >= max(medians.values()) - 1e-12:
                    cells[0] = f"<b>{cells[0]}</b>"
            others = [
                f"{np.median(known):.3g}" if len(known := _known(group, key)) else ""
                for key in ("igd_plus", "epsilon", "seconds", "points")
            ]
            feasible = f"{sum(row['feasible'] for row in group)} of {len(group)}"
            lines.append([escape(instance), escape(method), *cells, *others, feasible])
    header = ("instance", "method", "hypervolume, median", "quartiles", "IGD+", "epsilon")
    return "<h2>Medians and quartiles over seeds</h2>" + _table(
        (*header, "seconds", "points", "feasible"), lines
    )


def _ranks(rows: Sequence[dict[str, Any]]) -> str:
    """Return mean ranks, and the pairs of methods that can be told apart."""
    methods, values = paired(rows)
    if len(methods) < 2 or len(values) < 2:
        return "<p>Ranks and tests need two methods, and two instances or seeds that both have.</p>"
    order = np.argsort(mean_ranks(values), kind="stable")
    ranks = _table(
        ("method", "mean rank", "mean hypervolume"),
        (
            (escape(methods[k]), f"{mean_ranks(values)[k]:.2f}", f"{values[:, k].mean():.4f}")
            for k in order
        ),
    )
    lines = []
    for (a, b), p in sorted(wilcoxon_holm(values).items(), key=lambda item: item[1]):
        difference = float(np.median(values[:, a] - values[:, b]))
        shown = f"<b>{p:.3g}</b>" if p < 0.05 else f"{p:.3g}"
        lines.append((f"{escape(methods[a])} - {escape(methods[b])}", f"{difference:+.4f}", shown))
    tests = _table(("pair", "median difference", "p (Wilcoxon, Holm)"), lines)
    said = f"{len(values)} pairs of instance and seed; bold: told apart at 5 %."
    return f"<h2>Ranks and tests</h2><p>{said}</p>{ranks}{tests}"


def _budgets(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume of each method at each budget."""
    lines = []
    for (method, evaluations, seconds), group in _groups(
        rows, "method", "evaluations_limit", "seconds_limit"
    ).items():
        limit = (
            f"{evaluations:,} evaluations" if evaluations else f"{seconds:g} s" if seconds else ""
        )
        known, taken = _known(group, "hypervolume"), _known(group, "seconds")
        value = f"{np.median(known):.4f}" if len(known) else ""
        lines.append(
            [escape(method), limit, value, f"{np.median(taken):.2f}" if len(taken) else ""]
        )
    header = ("method", "budget", "hypervolume, median", "seconds, median")
    return "<h2>Budgets</h2>" + _table(header, lines)


def _failures(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    keys = ("instance", "method", "seed", "error")
    lines = ([escape(str(row[key])) for key in keys] for row in rows)
    return "<h2>Runs without a front</h2>" + _table(keys, lines)


def _svg(figure: Any) -> str:
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "placeopt"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return "<svg" + text.getvalue().split("<svg", 1)[1]


def _boxes(rows: Sequence[dict[str, Any]]) -> str:
    """Return box plots of the hypervolume, one panel an instance."""
    from matplotlib.figure import Figure

    groups = {
        name: known
        for (name,), mine in _groups(rows, "instance").items()
        if (known := [row for row in mine if not math.isnan(row["hypervolume"])])
    }
    if not groups:
        return ""
    figure = Figure(figsize=(10, 2.4 * math.ceil(len(groups) / 2)), layout="constrained")
    panels = figure.subplots(math.ceil(len(groups) / 2), 2, squeeze=False).ravel()
    for panel in panels[len(groups) :]:
        panel.set_visible(False)
    for panel, (name, mine) in zip(panels, groups.items(), strict=False):
        methods = _groups(mine, "method")
        panel.boxplot(
            [_known(g, "hypervolume") for g in methods.values()], orientation="horizontal"
        )
        panel.set_yticks(range(1, len(methods) + 1), [m for (m,) in methods], fontsize=7)
        panel.set_title(name, fontsize=8, loc="left")
        panel.tick_params(axis="x", labelsize=7)
    return "<h2>Hypervolume over seeds</h2>" + _svg(figure)


def _convergence(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume over evaluations and over seconds, a line a method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, key in zip(panels, ("evaluations", "seconds"), strict=True):
        for (method,), mine in _groups(rows, "method").items():
            places = []
            for group in _groups(mine, "evaluations_limit", "seconds_limit").values():
                spent, value = _known(group, key), _known(group, "hypervolume")
                if len(spent) and len(value):
                    places.append((float(np.median(spent)), float(np.median(value))))
            places.sort()
            panel.plot([x for x, _ in places], [y for _, y in places], "o-", label=method)
        panel.set_xscale("log")
        panel.set_xlabel(f"{key}, median of runs")
    panels[0].set_ylabel("hypervolume")
    panels[0].legend(fontsize=7)
    return "<h2>Convergence</h2>" + _svg(figure)
