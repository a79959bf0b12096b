"""What to buy and what to free, beside greedy consolidation; writes fleets.md.

python benchmarks/kubernetes/fleets.py [--seconds 60]

Five clusters by `make_cluster.py`, half of their workloads with rules, their StatefulSets left out;
six machine types that could be bought, in three zones. Karpenter's consolidation and the
descheduler's HighNodeUtilization answer the same instance as placeopt does.
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
from placeopt.rolling_update.fleet_change import (  # noqa: E402
    HOURS_OF_A_MONTH,
    by_machine,
    fleet_change,
)

#: Fleets: nodes, pods, seed.
FLEETS = ((20, 220, 1), (40, 420, 2), (60, 640, 3), (100, 1100, 4), (150, 1600, 5))
#: Thresholds of HighNodeUtilization of which the best counts, in per cent.
THRESHOLDS = (20.0, 40.0, 60.0, 80.0)
ZONES = "us-east-1a;us-east-1b;us-east-1c"
#: Machine type, cores, memory, USD per hour on demand and spot (none: not offered), most of each.
MACHINES = (
    ("m5.xlarge", 4, "16Gi", 0.192, None, 10),
    ("m5.8xlarge", 32, "128Gi", 1.536, None, 4),
    ("c5.xlarge", 4, "8Gi", 0.17, None, 10),
    ("r5.2xlarge", 8, "64Gi", 0.504, None, 6),
    ("m6g.4xlarge", 16, "64Gi", 0.616, None, 6),
    ("c6g.8xlarge", 32, "64Gi", 1.088, 0.49, 2),
)
HEAD = (
    "fleet",
    "now",
    "Karpenter",
    "descheduler",
    "`repack`",
    "bound",
    "above it",
    "USD a month saved",
    "buys",
    "frees",
    "starts",
    "disruptions",
    "Karpenter's",
    "CPU s",
)


def candidates() -> str:
    """Return the table of machines, as `--candidates` reads it; general and batch pool."""
    columns = "machine_type,cpu,memory,on_demand_usd_per_hour,spot_usd_per_hour,count"
    lines = [f"{columns},zone,region,labels,taints,reserved_cpu,reserved_memory"]
    for kind, cores, memory, price, spot, count in MACHINES:
        base = f"{kind},{cores},{memory},{price},{spot or ''},{count},{ZONES},us-east-1"
        lines.append(f"{base},pool=general,,110m,1600Mi")
        lines.append(f"{base},pool=batch,pool=batch:NoSchedule,110m,1600Mi")
    return "\n".join(lines) + "\n"


def imported(folder: Path, nodes: int, pods: int, seed: int) -> Any:
    """Import a fleet with its candidates; return the instance."""
    made = cluster(nodes, pods, seed, rules=True)
    made["items"] = [o for o in made["items"] if not _is_stateful(o)]
    for name, text in (
        ("cluster.json", json.dumps(made)),
        ("prices.json", json.dumps(prices())),
        ("candidates.csv", candidates()),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return import_files(
        [folder / "cluster.json"],
        "rolling-update",
        ImportOptions(
            name="fleet",
            rules=MovingRules(policy=MissingRequests.parse(["error"])),
            any_architecture=True,
        ),
        prices=[folder / "prices.json"],
        candidates=folder / "candidates.csv",
    ).problem


def _is_stateful(item: dict[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences", ())
    return any(owner["kind"] == "StatefulSet" for owner in owners)


def best(problem: Any, method: str, seconds: float, **parameters: Any) -> Any:
    """Return the cheapest point of a method that breaks nothing, its bound and CPU seconds."""
    begin = time.process_time()
    front = api.solve(problem, method, seconds=seconds, seed=1, **parameters)
    points = [p for p in front.points if problem.evaluate(p.plan).feasible]
    point = min(points, key=lambda p: (p.values[0], p.values[2], p.values[1]), default=None)
    bound = min((b[0] for b in front.bounds), default=None)
    return point, bound, time.process_time() - begin


def row(problem: Any, name: str, seconds: float) -> tuple[list[object], bool]:
    """Return the row of a fleet, and whether placeopt costs at most what the baselines do."""
    karpenter, _, _ = best(problem, "karpenter", seconds)
    others = [best(problem, "descheduler", seconds, threshold=t)[0] for t in THRESHOLDS]
    descheduler = min(p.values[0] for p in others if p is not None)
    point, bound, cpu = best(problem, "repack", seconds)
    change = fleet_change(problem, point.plan)
    greedy = [descheduler] + ([] if karpenter is None else [karpenter.values[0]])
    return [
        name,
        f"{problem.initial_cost:.3f}",
        "-" if karpenter is None else f"{karpenter.values[0]:.3f}",
        f"{descheduler:.3f}",
        f"{point.values[0]:.3f}",
        f"{bound:.3f}",
        f"{point.values[0] / bound - 1:.1%}",
        f"{change.saved_a_month:,.0f}",
        ", ".join(f"{n} {kind}" for kind, n in _types(problem, change.buy)) or "nothing",
        len(change.free),
        f"{point.values[1]:.0f}",
        f"{point.values[2]:.0f}",
        "-" if karpenter is None else f"{karpenter.values[2]:.0f}",
        f"{cpu:.0f}",
    ], point.values[0] <= min(greedy) + 1e-9


def _types(problem: Any, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return machine type and number of nodes, zones and prices together."""
    found: dict[str, int] = {}
    for kind, _, _, number in by_machine(problem, names):
        found[kind] = found.get(kind, 0) + number
    return list(found.items())


def main() -> None:
    """Solve the fleets and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "fleets.md")
    arguments = parser.parse_args()
    about, rows, met = facts("numba", "scipy"), [], 0
    for nodes, pods, seed in FLEETS:
        with tempfile.TemporaryDirectory() as name:
            problem = imported(Path(name), nodes, pods, seed)
        moving = sum(len(a.microservices) for a in problem.applications)
        offered = sum(n.candidate for n in problem.nodes)
        found, fine = row(
            problem, f"{nodes} nodes, {moving} pods, {offered} to buy", arguments.seconds
        )
        rows.append(found)
        met += fine
        print(found, flush=True)
    listed = ", ".join(str(int(t)) for t in THRESHOLDS)
    lines = [
        "# What to buy and what to free",
        "",
        f"{about} `python benchmarks/kubernetes/fleets.py`: five clusters made by "
        "`make_cluster.py` with rules (StatefulSets left out), and machines to buy: "
        + ", ".join(f"{m[0]} ({m[3]} USD/h{f', spot {m[4]}' if m[4] else ''})" for m in MACHINES)
        + ", each in three zones and two pools. One instance for all methods.",
        "",
        "USD/h. `karpenter` and `descheduler` follow the published rules "
        "(`placeopt/rolling_update/consolidators.py` names the documents and what is left open); "
        f"of the descheduler the best threshold of {listed} per cent counts. `repack` has a limit "
        f"of {arguments.seconds:g} s. A month is {HOURS_OF_A_MONTH} hours. The bound is proven: no "
        "deployment, whatever it buys, costs less. Both schemes evict: a disruption each pod.",
        "",
        *table(HEAD, rows),
        "",
        f"The aim, at most what the baselines cost: met by {met} of {len(rows)}. Every plan is "
        "replayed by the referee and breaks nothing.",
    ]
    settings = {"seconds": arguments.seconds}
    stamps.write(arguments.output, "\n".join(lines), __file__, settings)


if __name__ == "__main__":
    main()
