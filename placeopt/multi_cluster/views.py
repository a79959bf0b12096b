"""What people see of a multi-cluster plan: the use of every cluster over time, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Bar, Cell, paragraphs, table
from placeopt.plot.scene import Panel, Scene
from placeopt.plot.style import KNEE, PALETTE

if TYPE_CHECKING:
    from placeopt.multi_cluster.problem import MultiCluster

# -- use over time ---------------------------------------------------------------------------------


class UsageOverTime(NamedTuple):
    """What is in use at every moment at which something changes.

    Attributes
    ----------
    times : float (E,)
        The moments; the values below hold until the next.
    shares : float (E, C, 2)
        Cpu and memory in use, as shares of the capacity.
    replicas : int (E, C)
        Replicas that run on every cluster.
    refused : list of int
        Numbers of the refused requests.
    """

    times: np.ndarray
    shares: np.ndarray
    replicas: np.ndarray
    refused: list[int]


def usage_over_time(problem: MultiCluster, plan: Plan) -> UsageOverTime:
    """Return the usage of clusters by a plan."""
    arrays, decisions = problem.arrays, problem.decisions(plan)
    arrivals, departures = arrays.arrival * arrays.unit[2], arrays.departure * arrays.unit[2]
    clusters = len(arrays.capacity)
    placed = np.array([[decision.get(c, 0) for c in range(clusters)] for decision in decisions])
    moments = np.concatenate((departures, arrivals))  # a departure comes before an arrival
    order = np.argsort(moments, kind="stable")
    times = moments[order]
    last = np.append(np.diff(times) > 0, True)  # of the changes at one moment
    change = np.concatenate((-placed, placed))
    need = change[:, :, None] * np.concatenate((arrays.demand, arrays.demand))[:, None, :]
    used = arrays.used + need[order].cumsum(axis=0)[last]
    refused = [k for k, decision in enumerate(decisions) if not any(decision.values())]
    return UsageOverTime(
        times=np.concatenate(([0.0], times[last])),
        shares=np.concatenate((arrays.used[None], used)) / np.maximum(arrays.capacity, 1),
        replicas=np.concatenate((np.zeros((1, clusters), int), change[order].cumsum(axis=0)[last])),
        refused=refused,
    )


# -- the drawing -----------------------------------------------------------------------------------

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


# -- tables ----------------------------------------------------------------------------------------

#: What the problem asks, in a sentence.
QUESTION = "Which clusters take how many replicas of each request that arrives?"
#: What each objective measures.
MEANINGS = {
    "latency_ms": "mean latency of the replicas of accepted requests",
    "cost": "mean cost of the clusters that host accepted requests",
    "inequality": "mean Gini coefficient of the clusters' loads after each placement",
    "rejected": "share of requests that are turned away",
}


def instance(problem: MultiCluster) -> list[tuple[str, str]]:
    """Return facts about the instance as pairs of label and text."""
    types = Counter(c.type or "no type" for c in problem.clusters)
    clusters = ", ".join(f"{n} {name}" for name, n in types.most_common(8))
    deployments = len({r.deployment for r in problem.requests})
    replicas = int(problem.arrays.replicas.sum())
    requests = f"{len(problem.requests):,} of {deployments:,} deployments, {replicas:,} replicas"
    return [
        ("clusters", f"{len(problem.clusters):,}: {clusters}"),
        ("requests", requests),
        ("last arrival", f"{problem.requests[-1].arrival:.4g}"),
    ]


def plan(problem: MultiCluster, plan: Plan) -> str:
    """Return the tables of a plan as HTML."""
    decisions = problem.decisions(plan)
    refused = sum(not any(d.values()) for d in decisions)
    spread = sum(sum(n > 0 for n in d.values()) > 1 for d in decisions)
    accepted = f"{len(decisions) - refused:,} of {len(decisions):,} requests are accepted"
    text = f"{accepted}, {spread:,} of them spread over several clusters; {refused:,} are refused."
    return paragraphs([text]) + _clusters(problem, plan) + _deployments(problem, decisions)


def _clusters(problem: MultiCluster, plan: Plan) -> str:
    decisions = problem.decisions(plan)
    peaks = usage_over_time(problem, plan).shares.max(axis=0).tolist()
    columns = ["cluster", "type", "cost of a replica", "requests", "replicas"]
    columns += ["CPU at its peak", "memory at its peak"]
    rows: list[list[Cell]] = []
    for c, cluster in enumerate(problem.clusters):
        counts = [d[c] for d in decisions if d.get(c)]
        row: list[Cell] = [cluster.name, cluster.type or "", cluster.cost, len(counts), sum(counts)]
        rows.append(row + [Bar(peak) for peak in peaks[c]])
    return table("Every cluster under this plan", columns, rows, more="clusters")


def _deployments(problem: MultiCluster, decisions: Sequence[Mapping[int, int]]) -> str:
    wanted, accepted, where = Counter[str](), Counter[str](), dict[str, Counter[str]]()
    for request, decision in zip(problem.requests, decisions, strict=True):
        wanted[request.deployment] += 1
        accepted[request.deployment] += any(decision.values())
        own = where.setdefault(request.deployment, Counter())
        own.update({problem.clusters[c].name: n for c, n in decision.items() if n})
    rows: list[list[Cell]] = []
    for name, n in wanted.most_common():
        hosts = ", ".join(f"{k} x {cluster}" for cluster, k in where[name].most_common(4))
        rows.append([name, n, Bar(accepted[name] / n), hosts])
    return table(
        "Every deployment",
        ("deployment", "requests", "accepted", "replicas mostly on"),
        rows,
        more="deployments",
    )
