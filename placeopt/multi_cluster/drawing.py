"""Drawings of multi-cluster plans: the use of every cluster over time, and refused requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.multi_cluster.usage import UsageOverTime, usage_over_time
from placeopt.plot.scene import Panel, Scene
from placeopt.plot.style import KNEE, PALETTE

if TYPE_CHECKING:
    from placeopt.multi_cluster.instance import MultiCluster

#: Only so many clusters are drawn, the busiest ones.
MAX_CLUSTERS = 16
#: Times that are drawn, at most.
MAX_TIMES = 900
_CPU, _MEMORY = PALETTE[:2]


def _drawn(usage: UsageOverTime) -> list[int]:
    """Return the clusters to draw, in their own order."""
    busy = usage.shares.max(axis=(0, 2)) + usage.replicas.max(axis=0)
    return sorted(np.argsort(-busy, kind="stable")[:MAX_CLUSTERS].tolist())


def _title(problem: MultiCluster, c: int) -> str:
    cluster = problem.clusters[c]
    kind = f" ({cluster.type})" if cluster.type else ""
    sizes = f"{cluster.cpu_cores:g} cores, {cluster.memory_gib:g} GiB, cost {cluster.cost:g}"
    return f"{cluster.name}{kind}: {sizes}"


def scene(problem: MultiCluster, plan: Plan) -> Scene:
    """Return the drawing of a plan: a panel a cluster, ticks where requests are refused."""
    usage = usage_over_time(problem, plan)
    drawn = _drawn(usage)
    times, shares = _peaks(usage.times, usage.shares)
    sheet = Scene(1000, 70 + 124 * len(drawn))
    entries = [("area", _CPU, "CPU in use"), ("line", _MEMORY, "memory in use")]
    entries += [("line", KNEE, "refused requests")] if usage.refused else []
    top = sheet.legend(60, 16, entries) + 14
    end = (float(usage.times[0]), float(usage.times[-1]))
    for row, c in enumerate(drawn):
        panel = Panel(sheet, 60, top + 124 * row, 920, 70, end, (0, 1))
        last = row == len(drawn) - 1
        panel.grid("time" if last else "", _title(problem, c), y_format=".0%")
        title = (
            f"{_title(problem, c)}: at most {usage.shares[:, c, 0].max():.0%} of the CPU, "
            f"{usage.shares[:, c, 1].max():.0%} of the memory, "
            f"{usage.replicas[:, c].max():,} replicas"
        )
        line = panel.staircase(times, shares[:, c, 0])
        floor = [panel.at(end[1], 0), panel.at(end[0], 0)]
        sheet.area([*line, *floor], fill=_CPU, opacity=0.45, title=title)
        panel.steps(times, shares[:, c, 1], stroke=_MEMORY, line_width=1.4)
        _draw_refused(problem, usage, panel)
    return sheet


def _peaks(times: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the times (t,) and shares (t, clusters, 2), at most so many: the peaks of each part.

    A page shows no more than its pixels.
    """
    if len(times) <= MAX_TIMES:
        return times, shares
    first = np.unique(np.searchsorted(times, np.linspace(times[0], times[-1], MAX_TIMES)))
    first = first[first < len(times)]
    return times[first], np.maximum.reduceat(shares, first, axis=0)


def _draw_refused(problem: MultiCluster, usage: UsageOverTime, panel: Panel) -> None:
    """Draw a tick where requests are refused; those of one pixel are one tick."""
    results: dict[int, list[int]] = {}
    for k in usage.refused:
        results.setdefault(round(panel.at(problem.requests[k].arrival, 0)[0]), []).append(k)
    for x, refused in results.items():
        names = [
            f"{problem.requests[k].deployment} x {problem.requests[k].replicas}"
            for k in refused[:8]
        ]
        more = f" and {len(refused) - 8} more" if len(refused) > 8 else ""
        title = f"refused: {', '.join(names)}{more}"
        bottom = panel.top + panel.height
        panel.scene.line((x, bottom), (x, bottom - 9), stroke=KNEE, line_width=1.2, title=title)
