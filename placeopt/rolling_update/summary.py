"""Rolling updates in tables: every node before and after, and the steps."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.core.fronts.values import Plan
from placeopt.plot.markup import Bar, Cell, Mark, paragraphs, table
from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH, by_machine, fleet_change
from placeopt.rolling_update.instance import NO_UNIT, RollingUpdate
from placeopt.rolling_update.timeline import STEP_COLUMNS, timeline

#: What the problem asks, in a sentence.
QUESTION = "How does a running deployment move to fewer, cheaper nodes, step by step?"
#: What each objective measures.
MEANINGS = {
    "node_cost": "sum of the prices of the nodes that host something at the end",
    "starts": "copies that are started on the way",
    "disruptions": "times that a microservice is stopped before its new copy runs",
    "lost_at_worst": "copies that workloads need and do not have when the worst node is lost",
}

_MAX_STEPS = 200
_TONES = {"stop": "bad", "hop": "warn", "start": "warn"}


def instance(problem: RollingUpdate) -> list[tuple[str, str]]:
    """Return facts about the instance."""
    a = problem.arrays
    word = problem.cluster_word
    clusters = f"{len(a.clusters):,} {word}" + ("" if len(a.clusters) == 1 else "s")
    used = len(np.unique(a.home[a.home != a.waiting]))
    unit = "" if problem.price_unit == NO_UNIT else problem.price_unit
    waiting, removed = int((a.home == a.waiting).sum()), int(a.removed.sum())
    return [
        ("nodes", f"{len(problem.nodes):,} in {clusters}; {used:,} in use"),
        ("price of the nodes in use", f"{problem.initial_cost:g} {unit}".rstrip()),
        ("applications", f"{len(problem.applications):,}"),
        (
            "microservices",
            f"{len(a.home):,}; {int(a.fixed.sum()):,} may not be touched, "
            f"{int(a.pinned.sum()):,} pinned to their node"
            + (f", {waiting:,} waiting for a node" if waiting else "")
            + (f", {removed:,} to be removed" if removed else ""),
        ),
        ("nodes to drain", f"{sum(n.drain for n in problem.nodes):,}"),
        ("semantics", problem.semantics),
    ]


def plan(problem: RollingUpdate, plan: Plan) -> str:
    """Return the tables of a plan."""
    steps = problem.table(plan)
    count = Counter(step["action"] for step in steps)
    stops, hops = count["stop"], count["hop"]
    sentences = [
        f"{len(steps):,} steps: each starts the new copy first, then ends the old one, "
        "so that both run for a while."
    ]
    if removed := count["remove"]:
        sentences.append(f"{removed:,} of them end a replica that has no place afterwards.")
    if hops:
        sentences.append(
            f"{hops:,} of them are hops: to a node that the microservice leaves again, "
            "to make room."
        )
    stopped = f"{stops:,} of them stop a microservice before its new copy starts: a disruption."
    sentences.append(stopped if stops else "Nothing is stopped on the way: no disruption.")
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
        _fleet(problem, plan)
        + _nodes(problem, plan)
        + paragraphs(sentences)
        + table("Steps, in order", (*STEP_COLUMNS, ""), rows, most=_MAX_STEPS, more="steps")
    )


def _fleet(problem: RollingUpdate, plan: Plan) -> str:
    """Return the table of what to buy and what to free; nothing where nothing can be bought."""
    change = fleet_change(problem, plan)
    if not any(node.candidate for node in problem.nodes):
        return ""
    rows: list[list[Cell]] = []
    for mark, names in ((Mark("buy", "warn"), change.buy), (Mark("free", "good"), change.free)):
        for kind, cluster, price, number in by_machine(problem, names):
            month = f"{price * number * HOURS_OF_A_MONTH:,.2f}" if change.is_hourly else ""
            rows.append([mark, f"{number} x {kind}", cluster, f"{price:g}", month])
    unit = change.unit.removesuffix("/h")
    word = problem.cluster_word
    columns = ("", "machines", word, f"{change.unit} each", f"{unit} a month, all")
    months = [f"A month has {HOURS_OF_A_MONTH} hours."] if change.is_hourly else []
    return table("What to buy and what to free", columns, rows) + paragraphs(months, "note")


def _nodes(problem: RollingUpdate, plan: Plan) -> str:
    """Return the table of every node that changes, before and after; those that empty first."""
    a = problem.arrays
    course = timeline(a, problem.steps(plan))
    scale = np.maximum(a.capacity[course.nodes], 1)
    before, after = course.load[0] / scale, course.load[-1] / scale
    count, counted = course.hosted[0], course.hosted[-1]
    changed = (course.load[0] != course.load[-1]).any(axis=1) | (count != counted)
    ranks = np.select([course.empties, course.opens], [0, 1], 2)
    change = np.abs(after - before).sum(axis=1)
    order = [k for k in np.lexsort((-change, ranks)).tolist() if changed[k]]
    columns = (
        "node",
        problem.cluster_word,
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
            a.node_names[course.nodes[k]],
            problem.nodes[course.nodes[k]].cluster,
            problem.nodes[course.nodes[k]].price,
            f"{count[k]} → {counted[k]}",
            *(Bar(float(share[k, r])) for r in range(2) for share in (before, after)),
            (Mark("empties", "good"), Mark("opens", "warn"), "")[ranks[k]],
        ]
        for k in order
    ]
    same = len(problem.nodes) - len(order)
    note = [f"{same:,} more nodes stay as they are."] if same else []
    return table(
        "Nodes that change, before and after", columns, rows, more="nodes that change"
    ) + paragraphs(note, "note")
