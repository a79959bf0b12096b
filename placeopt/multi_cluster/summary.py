"""Report tables of a multi-cluster plan: by cluster, and by deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from placeopt.core.fronts.values import Plan
from placeopt.multi_cluster.usage import usage_over_time
from placeopt.plot.markup import Bar, Cell, paragraphs, table

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
