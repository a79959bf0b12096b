"""The page of a sweep: medians, quartiles, ranks, tests, convergence; one file, no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.plot.markup import Cell, Strong, paragraphs, section, shell, table
from placeopt.plot.plan_page import figure_html
from placeopt.plot.scene import Panel, Scene, ticks
from placeopt.plot.style import PALETTE
from placeopt.sweeps import measures
from placeopt.sweeps.measures import (
    LEVEL,
    by_method,
    comparisons,
    ended,
    final,
    frame,
    mean_ranks,
    pairs_needed,
    shown,
)

if TYPE_CHECKING:
    from pandas import DataFrame

#: Pixels of the lane of one method.
_LANE = 26


def boxes(rows: Sequence[dict[str, Any]]) -> Scene | None:
    """Return a panel for each instance, and in it a box for each method; None without fronts.

    A box reaches from the lower to the upper quartile, its line is the median; lines beyond it
    reach to the least and greatest value, dots are single runs.
    """
    fronts = frame(rows).dropna(subset="hypervolume")
    if fronts.empty:
        return None
    sheet, top = Scene(1000, 0), 30.0
    for name, own in fronts.groupby("instance", sort=False):
        methods = own.groupby("method", sort=False)["hypervolume"]
        values = own["hypervolume"].to_numpy()
        room = 0.05 * float(np.ptp(values)) or 0.01
        ends = (float(values.min()) - room, float(values.max()) + room)
        panel = Panel(sheet, 230, top, 740, _LANE * len(methods), ends, (0, len(methods)))
        sheet.words(8, top - 10, name, bold=True)
        _across(panel, "hypervolume")
        for k, (method, group) in enumerate(methods):
            y = len(methods) - k - 0.5
            label = f"{method} (n = {len(group)})"
            sheet.words(222, panel.at(ends[0], y)[1] + 4, label, anchor="end", within=215)
            _box(panel, y, f"{method} on {name}", group.to_numpy(), PALETTE[k % 8])
        top += panel.height + 80
    sheet.height = top - 30
    return sheet


def _across(panel: Panel, name: str) -> None:
    """Draw the horizontal scale alone."""
    sheet, bottom = panel.scene, panel.top + panel.height
    for value in ticks(*panel.x, 6):
        x, _ = panel.at(value, 0)
        sheet.line((x, panel.top), (x, bottom), stroke="line")
        sheet.words(x, bottom + 16, f"{value:,.10g}", anchor="middle", colour="soft")
    sheet.words(panel.left + panel.width / 2, bottom + 34, name, anchor="middle")


def _box(panel: Panel, y: float, title: str, values: np.ndarray, colour: str) -> None:
    low, first, middle, third, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    sheet, half = panel.scene, 0.3
    said = f"{title}: median {middle:.4f}, quartiles {first:.4f} to {third:.4f}"
    for a, b in ((low, first), (third, high)):
        sheet.line(panel.at(a, y), panel.at(b, y), stroke="soft")
    (x, top), (right, bottom) = panel.at(first, y + half), panel.at(third, y - half)
    style = {"fill": colour, "opacity": 0.45, "title": said}
    sheet.box(x, top, max(1.0, right - x), bottom - top, **style)
    sheet.line(panel.at(middle, y + half), panel.at(middle, y - half), line_width=2)
    for value in values.tolist():
        sheet.disc(*panel.at(value, y), 2.5, fill=colour, title=f"{title}: {value:.4f}")


def convergence(curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Scene:
    """Return the drawing of curves: ``"evaluations"`` or ``"seconds"`` -> method -> places."""
    methods = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    colours = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(methods)}
    sheet = Scene(1000, 0)
    top = sheet.legend(60, 16, [("line", colours[name], name) for name in methods]) + 20
    heights = [y for lines in curves.values() for places in lines.values() for _, y in places]
    room = 0.05 * (max(heights) - min(heights)) or 0.01
    up = (min(heights) - room, max(heights) + room)
    for k, (key, lines) in enumerate(curves.items()):
        across = [max(x, 1e-3) for places in lines.values() for x, _ in places]
        ends = (min(across), max(across))
        if ends[0] == ends[1]:
            ends = (ends[0] / 2, ends[1] * 2)
        panel = Panel(sheet, 70 + 490 * k, top, 410, 220, ends, up, log=True)
        panel.grid(f"{key}, median of runs", "hypervolume")
        for name, places in lines.items():
            spots = [(panel.at(max(x, 1e-3), y), x, y) for x, y in sorted(places)]
            sheet.line(*(spot for spot, _, _ in spots), stroke=colours[name], line_width=1.8)
            for spot, x, y in spots:
                title = f"{name}: {y:.4f} after {shown(x, ',.4g')} {key}"
                sheet.disc(*spot, 4, fill=colours[name], title=title)
    sheet.height = top + 270
    return sheet


#: What hypervolume means here.
HYPERVOLUME = "Hypervolume is relative to the union of all fronts here; adding a method changes it."
#: Seconds after which a browser reads again the page of a sweep that runs.
_RELOAD_SECONDS = 20


def page(name: str, rows: Sequence[dict[str, Any]], *, running: bool = False) -> str:
    """Return the page of a sweep as HTML text.

    Runs that have not ended are counted and left out. With `running` a browser reads the page again
    and again.
    """
    told = ended(rows)
    failed = [row for row in told if row["error"]]
    sections = [
        ("medians", f"Medians and quartiles over seeds{_at(rows)}", _medians(rows)),
        ("boxes", "Hypervolume over seeds", _boxes(final(rows))),
        ("tests", f"Ranks and tests{_at(rows)}", _ranks(rows)),
        ("budgets", "Budgets", _budgets(rows)),
        ("convergence", "Convergence", _convergence(rows)),
        ("failures", "Runs that failed", _failures(failed)),
    ]
    sections = [part for part in sections if part[2]]
    return shell(
        title=f"Sweep: {name}",
        heading=f"Sweep: {name}",
        eyebrow="placeopt sweep",
        lead=_summary(rows, told, failed, running),
        links=[(part, head) for part, head, _ in sections],
        body="\n".join(section(*part) for part in sections),
        reload=_RELOAD_SECONDS if running else None,
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


def _at(rows: Sequence[dict[str, Any]]) -> str:
    budget = measures.budget_of(rows)
    return f" at {budget}" if budget else ""


def _medians(rows: Sequence[dict[str, Any]]) -> str:
    """Return medians and quartiles of each method on each instance, the greatest median in bold."""
    lines: list[list[Cell]] = []
    for line in measures.lines(rows).itertuples():
        cells: list[Cell] = [*measures.cells(line)]
        if line.best:
            cells[3] = Strong(measures.cells(line)[3])
        lines.append(cells)
    if not lines:
        return paragraphs(["No run with this budget has ended yet."])
    bold = "Bold: the greatest median, where all methods have the same seeds."
    links = (
        '<p class="note">This table as <a href="table.csv">CSV</a> and '
        '<a href="table.tex">LaTeX</a>; every run in <a href="results.csv">results.csv</a>.</p>'
    )
    told = table("Each method on each instance", measures.header(), lines, most=len(lines))
    return told + paragraphs([f"{HYPERVOLUME} {bold}"], "note") + links + _references(rows)


def _references(rows: Sequence[dict[str, Any]]) -> str:
    """Return the reference point of each instance, in the units of its objectives."""
    points = {row["instance"]: row["reference"] for row in rows if row["reference"]}
    said = "The reference point lies a tenth of the range of the union's values beyond the worst."
    told = table(
        "Reference points", ("instance", "reference point"), [*points.items()], most=len(points)
    )
    return told + paragraphs([said], "note")


def _ranks(rows: Sequence[dict[str, Any]]) -> str:
    """Return mean ranks, and the methods that differ significantly, of what both have."""
    wide, told = by_method(final(rows)), comparisons(final(rows))
    methods, values = list(wide.columns), wide.dropna().to_numpy()
    if not told:
        return paragraphs(["They need two methods with an instance and seed that both have."])
    lines: list[list[Cell]] = [
        [
            f"{c.first} - {c.second}",
            c.pairs,
            f"{c.difference:+.4f}",
            Strong(f"{c.p:.3g}") if c.p < LEVEL else f"{c.p:.3g}",
        ]
        for c in told
    ]
    tests = table(
        "Pairs of methods",
        ("methods", "n", "median difference", "p (Wilcoxon, Holm)"),
        lines,
        most=len(lines),
    )
    needed = pairs_needed(len(methods))
    said = "n: instances and seeds that both methods have. Bold: significant at 5 %."
    if max(c.pairs for c in told) < needed:
        said += f" So few cannot be significant: {len(methods)} methods need n of {needed} or more."
    if not len(values):
        return paragraphs([said]) + tests
    order = np.argsort(mean_ranks(values), kind="stable").tolist()
    ranks = table(
        "Mean ranks",
        ("method", "mean rank", "mean hypervolume"),
        [[methods[k], f"{mean_ranks(values)[k]:.2f}", f"{values[:, k].mean():.4f}"] for k in order],
        most=len(order),
    )
    over = f"Ranks are over the {len(values)} instances and seeds that all methods have."
    return paragraphs([over]) + ranks + paragraphs([said]) + tests


def _runs(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], DataFrame]:
    """Return the runs with a front, of each instance and seed, by method and budget in words."""
    limits = [(row["evaluations_limit"], row["seconds_limit"]) for row in ended(rows)]
    runs = frame(rows).assign(budget=[measures.in_words(*limit) for limit in limits])
    fronts = runs.dropna(subset="hypervolume")
    groups = fronts.set_index(["instance", "seed"]).groupby(["method", "budget"], sort=False)
    return {(str(method), str(budget)): own for (method, budget), own in groups}


def _shared(runs: Iterable[DataFrame]) -> Any:
    """Return the instances and seeds that all have."""
    return reduce(lambda both, more: both.intersection(more), (own.index for own in runs))


def _budgets(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume of each method at each budget, of what all methods have."""
    runs = _runs(rows)
    lines: list[list[Cell]] = []
    for (method, budget), own in runs.items():
        both = own.loc[_shared(other for key, other in runs.items() if key[1] == budget)]
        value, taken = both["hypervolume"].median(), both["seconds"].median()
        lines.append([method, budget, len(both), shown(value, ".4f"), shown(taken, ".2f")])
    header = ("method", "budget", "n", "hypervolume, median", "seconds, median")
    said = "n: instances and seeds that all methods have at this budget; only these count here."
    told = table("Each method at each budget", header, lines, most=len(lines))
    return told + paragraphs([said], "note")


def _failures(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    keys = ("instance", "method", "seed", "error")
    lines: list[list[Cell]] = [[str(row[key]) for key in keys] for row in rows]
    return table("Runs and their errors", keys, lines, most=len(lines))


def _boxes(rows: Sequence[dict[str, Any]]) -> str:
    """Return box plots of the hypervolume, one panel an instance."""
    drawn = boxes(rows)
    caption = (
        "A box reaches from the lower to the upper quartile; its line is the median, each dot a "
        "run. More hypervolume is better."
    )
    return "" if drawn is None else figure_html(drawn, caption)


def _convergence(rows: Sequence[dict[str, Any]]) -> str:
    """Return the median hypervolume over evaluations and over seconds, a line a method."""
    runs = _runs(rows)
    both = _shared(runs.values()) if runs else ()
    if not len(both):
        return ""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {"evaluations": {}, "seconds": {}}
    for key, lines in curves.items():
        for (method, _), own in runs.items():
            middle = own.loc[both, [key, "hypervolume"]].astype(float).median()
            lines.setdefault(method, []).append((middle[key], middle["hypervolume"]))
    caption = (
        f"Medians over the {len(both)} instances and seeds that all methods have at every budget; "
        "a dot a budget. Both scales of cost are logarithmic."
    )
    return figure_html(convergence(curves), caption)
