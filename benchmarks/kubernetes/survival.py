"""What it costs to survive the loss of any one node, on generated clusters.

    python benchmarks/kubernetes/survival.py [--seconds 10]

Five clusters by `make_cluster.py`, with rules, their StatefulSets left out. Each is imported three
times: without a wish, with `--survive replicas`, and with `--survive room`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from fleets import imported
from harness import Benchmark, section, shown, table, timed

import placeopt
from placeopt.rolling_update.bounds import lower_bound
from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH

#: Clusters: nodes, pods, seed.
CLUSTERS = ((10, 100, 1), (20, 220, 2), (40, 420, 3), (60, 640, 4), (100, 1100, 5))
WISHES: tuple[tuple[str, ...], ...] = ((), ("replicas",), ("room",))
#: Fronts show so many values of what is lost.
MOST_SHOWN = 6
COSTS = (
    "cluster | USD a month now | cheapest | bound | it loses | has room | none lost | bound | more "
    "| room | bound | more | CPU s"
)


def solved(problem: Any, seconds: float) -> tuple[list[Any], float, float]:
    """Return the points without disruptions, judged anew, the bound of the cost, CPU seconds."""
    front, cpu = timed(lambda: placeopt.solve(problem, "repack", seconds=seconds, seed=1))
    points = [p for p in front.points if problem.evaluate(p.plan).feasible and p.values[2] == 0]
    return points, min(b[0] for b in front.bounds), cpu


def monthly(price: float | None) -> str:
    """Return a price per hour as USD a month."""
    return "none found" if price is None else f"{price * HOURS_OF_A_MONTH:,.0f}"


def more(price: float | None, least: float) -> str:
    """Return by how much a price is above another."""
    return "-" if price is None else f"{price / least - 1:.1%}"


def cheapest(points: list[Any]) -> Any:
    """Return the cheapest point, None where there is none."""
    return min(points, key=lambda p: p.values, default=None)


def why_not(problem: Any) -> str:
    """Return what the running deployment lacks first, in the referee's words."""
    texts = [v.message for v in problem.evaluate({"steps": []}).violations if v.kind == "survival"]
    return f"{texts[0]} (such nodes: {len(texts)})" if texts else "no reason is known"


def rows(size: tuple[int, int, int], name: str, seconds: float) -> tuple[list[object], str, str]:
    """Return the row of a cluster on costs, its front, and why there is no room, if so."""
    with tempfile.TemporaryDirectory() as folder:
        plain, replicas, room = (
            imported(Path(folder), *size, buy=False, survive=wish) for wish in WISHES
        )
    answers = [solved(problem, seconds) for problem in (plain, replicas, room)]
    base = cheapest(answers[0][0])
    by_loss: dict[float, float] = {}
    for point in sorted(answers[1][0], key=lambda p: p.values[0]):
        by_loss.setdefault(point.values[3], point.values[0])
    none, placed = by_loss.get(0.0), cheapest(answers[2][0])
    safe = None if placed is None else placed.values[0]
    apart = replicas.surviving
    least = None if apart is None else lower_bound(apart) / apart.arrays.price_scale
    row: list[object] = [name, *map(monthly, (plain.initial_cost, base.values[0], answers[0][1]))]
    row += [f"{replicas.evaluate(base.plan).values[3]:.0f}"]
    row += ["yes" if room.evaluate(base.plan).feasible else "no"]
    row += [monthly(none), monthly(least), more(none, base.values[0])]
    row += [monthly(safe), monthly(answers[2][1]), more(safe, base.values[0])]
    row += [f"{sum(cpu for _, _, cpu in answers):.0f}"]
    losses = sorted(by_loss.items())
    kept = [losses[0], *[s for k, s in enumerate(losses[1:], 1) if s[1] < losses[k - 1][1]]]
    told = [f"{loss:.0f}: {monthly(price)}" for loss, price in kept]
    left = len(told) - MOST_SHOWN
    front = ", ".join(told[:MOST_SHOWN]) + (f" and {left} more" if left > 0 else "")
    reason = f"* {name}, as it runs: {why_not(room)}." if safe is None else ""
    return shown(row), front, reason


def main() -> None:
    """Solve the clusters and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "numpy", seconds=10.0)
    names = [f"{nodes} nodes, {pods} pods" for nodes, pods, _ in CLUSTERS]
    found = [rows(size, name, run.seconds) for size, name in zip(CLUSTERS, names, strict=True)]
    run.write(
        "What it costs to survive the loss of any one node",
        "Five clusters made by `make_cluster.py` with rules, StatefulSets left out, imported "
        "without a wish, with `--survive replicas` and with `--survive room`.",
        f"USD a month of {HOURS_OF_A_MONTH} hours; `repack` with a limit of {run.seconds:g} s for "
        "each of the three; plans without disruptions only, judged by the referee. *It loses*: "
        "the copies that workloads need and lose with the worst node (`lost_at_worst`), under the "
        "cheapest plan without a wish; *has room*: whether, under that plan, each pod of any one "
        "lost node finds a place on the others in use. *None lost* and *room*: the cheapest plans "
        "found that keep the wish; *more*: above the cheapest without it. Bounds are proven: of "
        "all plans, of plans that lose none, of plans with room. That on room counts room "
        "together, which is necessary only. CPU seconds are those of all three searches.",
        table(COSTS, [row for row, _, _ in found]),
        "Where no plan with room was found, that is what the running deployment lacks already:",
        [reason for *_, reason in found if reason],
        section(
            "The front: copies lost with the worst node, and the least USD a month",
            table(
                "cluster | lost: USD a month",
                zip(names, (front for _, front, _ in found), strict=True),
            ),
        ),
    )


if __name__ == "__main__":
    main()
