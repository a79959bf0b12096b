"""The page of a backtest: the table, the front, money and nodes over time, who was disturbed."""

from __future__ import annotations

from typing import Any

from placeopt.backtest.study import NONE, front_of
from placeopt.plot.markup import section, shell, table
from placeopt.plot.plan_page import figure_html
from placeopt.plot.scene import Panel, Scene
from placeopt.plot.style import PALETTE

#: Columns of the table: head, figure, digits.
COLUMNS = (
    ("node hours", "node_hours", 1),
    ("moved pods", "moved", 1),
    ("of them stopped", "stopped", 1),
    ("lost pods", "lost", 1),
    ("pod hours down", "down_pod_hours", 2),
    ("pods without a node", "unplaced", 1),
    ("wait, mean, s", "wait_mean_s", 2),
    ("median", "wait_median_s", 2),
    ("99 %", "wait_99_s", 1),
)
#: Those of them that a terminal shows, in 80 columns with the names of most policies.
_FEW = (
    ("moved pods", "moved", 0),
    ("of them stopped", "stopped", 0),
    ("99 % wait s", "wait_99_s", 0),
)
_SERIES = (
    ("usd", "USD an hour"),
    ("nodes", "nodes"),
    ("cores", "cores requested on nodes"),
    ("waiting", "pods that wait"),
)
#: Points of a line over time, at most.
_POINTS = 400
#: Bands across a panel, each of which says its values to who points at it.
_BANDS = 120


def rows(results: dict[str, Any], few: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table: a row a policy, cheapest first, then the bound.

    With `few` they are those that a terminal has room for.
    """
    columns = _FEW if few else COLUMNS
    head = ["policy", "USD", "saved USD", "saved", *(name for name, _, _ in columns)]
    cells = []
    for one in sorted(results["policies"], key=lambda one: one["figures"]["usd"]):
        numbers = [f"{one['figures'][key]:,.{digits}f}" for _, key, digits in columns]
        usd = one["usd_from"] if one["policy"] == NONE else one["figures"]["usd"]
        money = [_usd(usd), _usd(one["saved_usd"]), _share(one["saved_share"])]
        cells.append([one["policy"], *money, *numbers, _share(one["over_bound"])])
    bound = ["bound", _usd(results["bound_usd"])]
    return [*head, "over bound"], [*cells, bound + ["-"] * (len(head) - 1)]


def _usd(value: float | None) -> str:
    """Return dollars; cents of less than a thousand."""
    return "-" if value is None else f"{value:,.{0 if abs(value) >= 1000 else 2}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def page(results: dict[str, Any]) -> str:
    """Return the page as HTML text; one file, no network."""
    head, cells = rows(results)
    front = front_of(results)
    knee = front.pick().plan["policy"]
    best = [[p.plan["policy"], *(f"{v:,.6g}" for v in p.values)] for p in front.points]
    sections = [
        (
            "table",
            "What each policy costs, and whom it disturbs",
            table("Policies, cheapest first", head, cells),
        ),
        (
            "front",
            "Policies that no other policy beats",
            table("Policies", ["policy", *(f"{o.name}" for o in front.objectives)], best)
            + f"<p>The knee of these is <code>{knee}</code>.</p>",
        ),
        ("time", "Over time", figure_html(_lines(results), "Hourly; seed " + _seed(results))),
        ("disturbed", "Workloads whose pods were moved most", _disturbed(results)),
    ]
    days = results["seconds"] / 86400
    return shell(
        title=f"Backtest: {results['backtest']}",
        heading=f"Backtest: {results['backtest']}",
        eyebrow="placeopt backtest",
        lead=f"{results['pods']:,} pods, {days:,.1f} days, {len(results['policies'])} policies, "
        f"means of {len(results['seeds'])} seeds. {baseline(results)} "
        "The bound is what no policy undercuts that places every pod when it comes.",
        links=[(part, name) for part, name, _ in sections],
        body="\n".join(section(*part) for part in sections),
    )


def baseline(results: dict[str, Any]) -> str:
    """Return what savings are against."""
    told = "Saved is against none, the cluster as it was recorded"
    hour = results["saved_from_hour"]
    late = f", from day {hour / 24:,.1f} on, when pods used a tenth of what they use at most"
    return f"{told}{late * (hour > 0)}."


def _seed(results: dict[str, Any]) -> str:
    return str(results["seeds"][0])


def _lines(results: dict[str, Any]) -> Scene:
    """Return four panels over hours, a line a policy."""
    sheet = Scene(1000, 0)
    policies = results["policies"]
    top = sheet.legend(
        60, 16, [("line", PALETTE[k % 8], one["policy"]) for k, one in enumerate(policies)]
    )
    for name, label in _SERIES:
        curves = [_thin(one["series"][name]) for one in policies]
        high = max((max(y, default=0.0) for _, y in curves), default=0.0) or 1.0
        across = max((x[-1] for x, _ in curves), default=0.0) or 1.0
        panel = Panel(sheet, 70, top + 20, 910, 150, (0.0, across), (0.0, 1.05 * high))
        panel.grid("hours", label)
        for k, (x, y) in enumerate(curves):
            panel.steps(x, y, stroke=PALETTE[k % 8], line_width=1.4)
        _values_to_point_at(panel, label, [one["policy"] for one in policies], curves)
        top += 240
    sheet.height = top
    return sheet


def _values_to_point_at(
    panel: Panel, label: str, names: list[str], curves: list[tuple[list[float], list[float]]]
) -> None:
    """Lay unseen bands over a panel, each of which says every policy's value at its hour."""
    hours = max((x for x, _ in curves), key=len)
    step = max(1, -(-len(hours) // _BANDS))
    for k in range(0, len(hours) - 1, step):
        end = hours[min(k + step, len(hours) - 1)]
        pairs = zip(names, curves, strict=True)
        values = [f"{name} {y[k]:,.4g}" for name, (_, y) in pairs if k < len(y)]
        (left, high), (right, low) = panel.at(hours[k], panel.y[1]), panel.at(end, panel.y[0])
        title = f"{label}, hour {hours[k]:,.0f}: {', '.join(values)}"
        unseen = {"fill": "paper", "opacity": 0.0}
        panel.scene.box(left, high, right - left, low - high, title=title, **unseen)


def _thin(values: list[float]) -> tuple[list[float], list[float]]:
    """Return the ends of equal spans of a series, in hours, and their means, at most so many."""
    span = max(1, -(-len(values) // _POINTS))
    parts = [values[k : k + span] for k in range(0, len(values), span)]
    ends = [float(min(k * span, len(values))) for k in range(len(parts) + 1)]
    return ends, [sum(p) / len(p) for p in parts]


def _disturbed(results: dict[str, Any]) -> str:
    cells = [
        [one["policy"], name, str(count)]
        for one in results["policies"]
        for name, count in list(one["disturbed"].items())[:5]
    ]
    return (
        table("Workloads", ["policy", "workload", "pods moved"], cells) if cells else "<p>None.</p>"
    )
