"""Multi-cluster decisions in tables: cluster by cluster, deployment by deployment, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.report.markup import Bar, Cell, paragraphs, table

if TYPE_CHECKING:
    from placeopt.multi_cluster.instance import MultiCluster

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
    """Return facts about the instance."""
    types = Counter(c.type or "no type" for c in problem.clusters)
    deployments = {r.deployment for r in problem.requests}
    return [
        (
            "clusters",
            f"{len(problem.clusters):,}: "
            + ", ".join(f"{n} {name}" for name, n in types.most_common(8)),
        ),
        (
            "requests",
            f"{len(problem.requests):,} of {len(deployments):,} deployments, {int(problem.arrays.replicas.sum()):,} replicas",
        ),
        ("last arrival", f"{problem.requests[-1].arrival:.4g}"),
        ("semantics", problem.semantics),
    ]


def plan(problem: MultiCluster, plan: Mapping[str, Any]) -> str:
    """Return the tables of a plan."""
    decisions = problem.decisions(plan)
    refused = sum(not any(d.values()) for d in decisions)
    spread = sum(sum(n > 0 for n in d.values()) > 1 for d in decisions)
    accepted = f"{len(decisions) - refused:,} of {len(decisions):,} requests are accepted"
    told = f"{accepted}, {spread:,} of them spread over several clusters; {refused:,} are refused."
    return paragraphs([told]) + _clusters(problem, decisions) + _deployments(problem, decisions)


def peaks(problem: MultiCluster, decisions: Sequence[Mapping[int, int]]) -> np.ndarray:
    """Return the greatest use of every cluster over the trace as shares of its capacity, shape (clusters, 2): cpu, memory.

    What arrives at the moment at which something else leaves finds it gone.
    """
    a = problem.arrays
    events = [(float(a.arrival[t]), 1, t) for t in range(len(decisions))] + [
        (float(a.departure[t]), 0, t) for t in range(len(decisions))
    ]
    load, most = a.used.copy(), a.used.copy()
    for _, arrives, t in sorted(events):
        for c, n in decisions[t].items():
            load[c] += (1 if arrives else -1) * n * a.demand[t]
        most = np.maximum(most, load)
    return most / np.maximum(a.capacity, 1)


def _clusters(problem: MultiCluster, decisions: Sequence[Mapping[int, int]]) -> str:
    share = (
        peaks(problem, decisions) if problem.semantics == "fixed" else None
    )  # the published environment forgets departures
    columns: tuple[str, ...] = ("cluster", "type", "cost of a replica", "requests", "replicas")
    columns += ("CPU at its peak", "memory at its peak") if share is not None else ()
    rows: list[list[Cell]] = []
    for c, cluster in enumerate(problem.clusters):
        counts = [d[c] for d in decisions if d.get(c)]
        row: list[Cell] = [cluster.name, cluster.type or "", cluster.cost, len(counts), sum(counts)]
        rows.append(
            row if share is None else [*row, Bar(float(share[c, 0])), Bar(float(share[c, 1]))]
        )
    return table("Every cluster under this plan", columns, rows, more="clusters")


def _deployments(problem: MultiCluster, decisions: Sequence[Mapping[int, int]]) -> str:
    asked, accepted, where = Counter[str](), Counter[str](), dict[str, Counter[str]]()
    for request, decision in zip(problem.requests, decisions, strict=True):
        asked[request.deployment] += 1
        accepted[request.deployment] += any(decision.values())
        mine = where.setdefault(request.deployment, Counter())
        mine.update({problem.clusters[c].name: n for c, n in decision.items() if n})
    rows: list[list[Cell]] = []
    for name, n in asked.most_common():
        mostly = ", ".join(f"{k} x {cluster}" for cluster, k in where[name].most_common(4))
        rows.append([name, n, Bar(accepted[name] / n), mostly])
    return table(
        "Every deployment",
        ("deployment", "requests", "accepted", "replicas mostly on"),
        rows,
        more="deployments",
    )
