"""Rescheduling in tables: latency and nodes before and after, and the moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Bar, Cell, Mark, paragraphs, table

if TYPE_CHECKING:
    from placeopt.rescheduling.instance import Rescheduling

#: What the problem asks, in a sentence.
QUESTION = "Which replicas of a running call graph move, so that requests get faster?"
#: What each objective measures.
MEANINGS = {
    "latency_ms": "end-to-end latency of a request along the critical path of calls",
    "moves": "replicas that move to another node",
}

#: Moves that the table lists, at most.
_MAX_MOVES = 200


def instance(problem: Rescheduling) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    kinds = sorted({n.kind for n in problem.nodes})
    return [
        ("nodes", f"{len(problem.nodes):,} of {len(kinds):,} kinds: {', '.join(kinds[:8])}"),
        ("services", f"{len(problem.services):,}, {int(problem.arrays.replicas.sum()):,} replicas"),
        ("calls", f"{len(problem.arrays.callee):,}"),
        ("gateway", problem.gateway),
        ("latency now", f"{problem.initial_latency:.5g} ms"),
    ]


def plan(problem: Rescheduling, plan: Plan) -> str:
    """Return the tables of a plan."""
    home, final = problem.arrays.home, problem.final_counts(plan)
    before, after = problem.initial_latency, problem.graph.latency_ms(final.tolist())
    change = (
        f", {abs(after / before - 1):.1%} {'less' if after < before else 'more'}"
        if before and after != before
        else ""
    )
    told = [f"The latency goes from {before:.5g} ms to {after:.5g} ms{change}."]
    told += [f"Slowest path now: {_path(problem, home)}.", f"After: {_path(problem, final)}."]
    rows: list[list[Cell]] = [
        [
            str(m["move"]),
            m["service"],
            m["from"],
            m["to"],
            round(m["latency_ms"], 3),
            f"{m['change_ms']:+.3f}",
        ]
        for m in problem.table(plan)
    ]
    columns = ("move", "service", "from", "to", "latency after it (ms)", "change (ms)")
    moves = (
        table("Moves, in order", columns, rows, most=_MAX_MOVES, more="moves")
        if rows
        else paragraphs(["Nothing moves."])
    )
    return paragraphs(told) + _nodes(problem, home, final) + moves


def _path(problem: Rescheduling, counts: np.ndarray) -> str:
    names = [
        problem.services[hop.service].name for hop in problem.graph.critical_path(counts.tolist())
    ]
    return " → ".join(dict.fromkeys(names))


def _nodes(problem: Rescheduling, home: np.ndarray, final: np.ndarray) -> str:
    a = problem.arrays
    one, two = (counts.T @ a.demand / np.maximum(a.capacity, 1) for counts in (home, final))
    count, counted = home.sum(axis=0), final.sum(axis=0)
    moved = (home != final).any(axis=0)
    order = sorted(range(len(problem.nodes)), key=lambda n: (not moved[n], n))
    columns = (
        "node",
        "kind",
        "replicas",
        "CPU before",
        "CPU after",
        "memory before",
        "memory after",
        "",
    )
    rows: list[list[Cell]] = [
        [
            problem.nodes[n].name,
            problem.nodes[n].kind,
            f"{count[n]} → {counted[n]}",
            *(Bar(float(share[n, r])) for r in range(2) for share in (one, two)),
            Mark("changes", "warn") if moved[n] else "",
        ]
        for n in order
    ]
    return table("Nodes before and after", columns, rows, more="nodes")
