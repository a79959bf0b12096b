"""Rolling updates in tables: every node before and after, and the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.report.markup import Bar, Cell, Mark, paragraphs, table

if TYPE_CHECKING:
    from placeopt.rolling_update.instance import RollingUpdate

#: What the problem asks, in a sentence.
QUESTION = "How does a running deployment move to fewer, cheaper nodes, step by step?"
#: What each objective measures.
MEANINGS = {
    "node_cost": "sum of the prices of the nodes that host something at the end",
    "starts": "copies that are started on the way",
    "disruptions": "times that a microservice is stopped before its new copy runs",
}

_MOST_STEPS = 200
_TONES = {"stop": "bad", "hop": "warn", "start": "warn"}


def instance(problem: RollingUpdate) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    a = problem.arrays
    used = len(np.unique(a.home))
    services = len(a.home)
    fixed = int((~a.movable).sum())
    return [
        (
            "nodes",
            f"{len(problem.nodes):,} in {len(a.clusters):,} cluster"
            + ("" if len(a.clusters) == 1 else "s")
            + f"; {used:,} in use",
        ),
        ("price of the nodes in use", f"{problem.initial_cost:g}"),
        ("applications", f"{len(problem.applications):,}"),
        (
            "microservices",
            f"{services:,}; {fixed:,} may not be touched, {int(a.pinned.sum()):,} pinned to their node",
        ),
        ("nodes to drain", f"{int(a.drain.sum()):,}"),
        ("semantics", problem.semantics),
    ]


def plan(problem: RollingUpdate, plan: Mapping[str, Any]) -> str:
    """Return the tables of a plan."""
    steps = problem.table(plan)
    stops = sum(step["action"] == "stop" for step in steps)
    hops = sum(step["action"] == "hop" for step in steps)
    told = [
        f"{len(steps):,} steps: each starts the new copy first, then ends the old one, so that both run for a while."
    ]
    if hops:
        told.append(
            f"{hops:,} of them are hops: to a node that the microservice leaves again, to make room."
        )
    stopped = f"{stops:,} of them stop a microservice before its new copy starts: a disruption."
    told.append(stopped if stops else "Nothing is stopped on the way: no disruption.")
    columns = (
        "step",
        "application",
        "microservice",
        "action",
        "from",
        "to",
        "target at its peak",
        "",
    )
    rows: list[list[Cell]] = [
        [
            str(s["number"]),
            s["application"],
            s["microservice"],
            Mark(s["action"], _TONES.get(s["action"], "plain")),
            s["source"],
            s["target"],
            Bar(s["peak"]) if s["target"] else None,
            Mark("empties a node", "good") if s["empties"] else "",
        ]
        for s in steps
    ]
    return (
        _nodes(problem, plan)
        + paragraphs(told)
        + table("Steps, in order", columns, rows, most=_MOST_STEPS, more="steps")
    )


def _nodes(problem: RollingUpdate, plan: Mapping[str, Any]) -> str:
    """Every node that changes, before and after: those that empty first."""
    a = problem.arrays
    final, steps = a.home.copy(), problem.steps(plan)
    size = a.old.copy()
    for m, n in steps:
        final[m] = n
        size[m] = a.new[m] if n >= 0 else size[m]
    running = final >= 0
    after = np.zeros_like(a.capacity)
    np.add.at(after, final[running], size[running])
    count, counted = (
        np.bincount(a.home, minlength=len(a.price)),
        np.bincount(final[running], minlength=len(a.price)),
    )
    room = np.maximum(a.capacity, 1)
    one, two = a.initial_load / room, after / room
    changed = (a.initial_load != after).any(axis=1) | (count != counted)
    order = sorted(
        np.flatnonzero(changed).tolist(),
        key=lambda n: (
            _rank(int(count[n]), int(counted[n])),
            -float(np.abs(two[n] - one[n]).sum()),
            n,
        ),
    )
    columns = (
        "node",
        "cluster",
        "price",
        "microservices",
        "CPU before",
        "CPU after",
        "memory before",
        "memory after",
        "",
    )
    rows: list[list[Cell]] = [
        [
            problem.nodes[n].name,
            problem.nodes[n].cluster,
            problem.nodes[n].price,
            f"{count[n]} → {counted[n]}",
            *(Bar(float(share[n, r])) for r in range(2) for share in (one, two)),
            _fate(int(count[n]), int(counted[n])),
        ]
        for n in order
    ]
    same = len(a.price) - len(order)
    note = [f"{same:,} more nodes stay as they are."] if same else []
    return table(
        "Nodes that change, before and after", columns, rows, more="nodes that change"
    ) + paragraphs(note, "note")


def _rank(before: int, after: int) -> int:
    return 0 if before and not after else 1 if after and not before else 2


def _fate(before: int, after: int) -> Cell:
    return (Mark("empties", "good"), Mark("opens", "warn"), "")[_rank(before, after)]
