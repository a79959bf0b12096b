"""What it costs to survive the loss of any one node, on generated clusters; writes survival.md.

python benchmarks/kubernetes/survival.py [--seconds 10]

Five clusters by `make_cluster.py`, with rules, their StatefulSets left out. Each is imported three
times: without a wish, with `--survive replicas`, and with `--survive room`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from make_cluster import cluster, prices  # noqa: E402

from placeopt import api  # noqa: E402
from placeopt.kubernetes.importing import import_files  # noqa: E402
from placeopt.kubernetes.options import ImportOptions  # noqa: E402
from placeopt.kubernetes.sizes import MissingRequests  # noqa: E402
from placeopt.kubernetes.units import MovingRules  # noqa: E402
from placeopt.rolling_update.bounds import lower_bound  # noqa: E402
from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH  # noqa: E402

#: Clusters: nodes, pods, seed.
CLUSTERS = ((10, 100, 1), (20, 220, 2), (40, 420, 3), (60, 640, 4), (100, 1100, 5))
WISHES = ((), ("replicas",), ("room",))
#: Fronts show so many values of what is lost.
MOST_SHOWN = 6
COST_HEAD = (
    "cluster",
    "USD a month now",
    "cheapest",
    "bound",
    "it loses",
    "has room",
    "none lost",
    "bound",
    "more",
    "room",
    "bound",
    "more",
    "CPU s",
)


def imported(folder: Path, survive: tuple[str, ...]) -> Any:
    """Import the cluster of a folder with a wish; return the instance."""
    rules = MovingRules(policy=MissingRequests.parse(["error"]))
    return import_files(
        [folder / "cluster.json"],
        "rolling-update",
        ImportOptions(name="cluster", rules=rules, survive=survive),
        prices=[folder / "prices.json"],
    ).problem


def write_cluster(folder: Path, nodes: int, pods: int, seed: int) -> None:
    """Write a cluster without StatefulSets, and its prices."""
    made = cluster(nodes, pods, seed, rules=True)
    made["items"] = [o for o in made["items"] if not _is_stateful(o)]
    for name, document in (("cluster", made), ("prices", prices())):
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


def _is_stateful(item: dict[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences", ())
    return any(owner["kind"] == "StatefulSet" for owner in owners)


def solved(problem: Any, seconds: float) -> tuple[list[Any], float, float]:
    """Return the points without disruptions, judged anew, the bound of the cost, CPU seconds."""
    begin = time.process_time()
    front = api.solve(problem, "repack", seconds=seconds, seed=1)
    points = [p for p in front.points if problem.evaluate(p.plan).feasible and p.values[2] == 0]
    return points, min(b[0] for b in front.bounds), time.process_time() - begin


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


def rows(folder: Path, name: str, seconds: float) -> tuple[list[object], list[object], str]:
    """Return the row of a cluster on costs, the one on its front, why there is no room, if so."""
    plain, replicas, room = (imported(folder, wish) for wish in WISHES)
    answers = [solved(problem, seconds) for problem in (plain, replicas, room)]
    base = cheapest(answers[0][0])
    lost = replicas.evaluate(base.plan).values[3]
    by_loss: dict[float, float] = {}
    for point in sorted(answers[1][0], key=lambda p: p.values[0]):
        by_loss.setdefault(point.values[3], point.values[0])
    none, placed = by_loss.get(0.0), cheapest(answers[2][0])
    safe = None if placed is None else placed.values[0]
    apart = replicas.surviving
    row = [
        name,
        monthly(plain.initial_cost),
        monthly(base.values[0]),
        monthly(answers[0][1]),
        f"{lost:.0f}",
        "yes" if room.evaluate(base.plan).feasible else "no",
        monthly(none),
        monthly(None if apart is None else lower_bound(apart) / apart.arrays.price_scale),
        more(none, base.values[0]),
        monthly(safe),
        monthly(answers[2][1]),
        more(safe, base.values[0]),
        f"{sum(cpu for _, _, cpu in answers):.0f}",
    ]
    shown = sorted(by_loss.items())
    kept = [shown[0], *[s for k, s in enumerate(shown[1:], 1) if s[1] < shown[k - 1][1]]]
    told = [f"{loss:.0f}: {monthly(price)}" for loss, price in kept]
    left = len(told) - MOST_SHOWN
    front = ", ".join(told[:MOST_SHOWN]) + (f" and {left} more" if left > 0 else "")
    reason = f"{name}, as it runs: {why_not(room)}." if safe is None else ""
    return row, [name, front], reason


def main() -> None:
    """Solve the clusters and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "survival.md")
    arguments = parser.parse_args()
    about = facts("numba", "numpy")
    costs, fronts, reasons = list[list[object]](), list[list[object]](), list[str]()
    for nodes, pods, seed in CLUSTERS:
        with tempfile.TemporaryDirectory() as name:
            write_cluster(Path(name), nodes, pods, seed)
            cost, front, reason = rows(Path(name), f"{nodes} nodes, {pods} pods", arguments.seconds)
        costs.append(cost)
        reasons += [reason] if reason else []
        fronts.append(front)
        print(cost, front, flush=True)
    lines = [
        "# What it costs to survive the loss of any one node",
        "",
        f"{about} `python benchmarks/kubernetes/survival.py`: five clusters made by "
        "`make_cluster.py` with rules, StatefulSets left out, imported without a wish, with "
        "`--survive replicas` and with `--survive room`.",
        "",
        f"USD a month of {HOURS_OF_A_MONTH} hours; `repack` with a limit of {arguments.seconds:g} "
        "s for each of the three; plans without disruptions only, judged by the referee.",
        "*It loses*: the copies that workloads need and lose with the worst node "
        "(`lost_at_worst`), under the cheapest plan without a wish; *has room*: whether, under "
        "that plan, each pod of any one lost node finds a place on the others in use. *None lost* "
        "and *room*: the cheapest plans found that keep the wish; *more*: above the cheapest "
        "without it. Bounds are proven: of all plans, of plans that lose none, of plans with "
        "room. That on room counts room together, which is necessary only. CPU seconds are those "
        "of all three searches.",
        "",
        *table(COST_HEAD, costs),
        "",
        "Where no plan with room was found, that is what the running deployment lacks already:",
        "",
        *[f"* {reason}" for reason in reasons],
        "",
        "## The front: copies lost with the worst node, and the least USD a month",
        "",
        *table(("cluster", "lost: USD a month"), fronts),
    ]
    settings = {"seconds": arguments.seconds}
    stamps.write(arguments.output, "\n".join(lines) + "\n", __file__, settings)


if __name__ == "__main__":
    main()
