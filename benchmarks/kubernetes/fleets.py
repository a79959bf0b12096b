"""What to buy and what to free, beside greedy consolidation.

    python benchmarks/kubernetes/fleets.py [--seconds 60]

Five clusters by `make_cluster.py`, half of their workloads with rules, their StatefulSets left out;
six machine types that could be bought, in three zones. Karpenter's consolidation and the
descheduler's HighNodeUtilization answer the same instance as placeopt does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark, shown, table, timed
from make_cluster import cluster, prices

import placeopt
from placeopt.kubernetes.admission import MissingRequests
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.moving import MovingRules
from placeopt.kubernetes.options import ImportOptions
from placeopt.rolling_update.views import (
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
COLUMNS = (
    "fleet | now | Karpenter | descheduler | `repack` | bound | above it | USD a month saved | "
    "buys | frees | starts | disruptions | Karpenter's | CPU s"
)


Machine = tuple[str, int, str, float, float | None, int]


def many_machines() -> list[Machine]:
    """Return 130 machine types: 13 families, ten sizes of each, a core for less where it is old."""
    # Family, USD/h a core, GiB a core.
    families = (
        *(("m5", 0.048, 4), ("m5a", 0.043, 4), ("m6i", 0.048, 4), ("m6g", 0.0385, 4)),
        *(("c5", 0.0425, 2), ("c5a", 0.0385, 2), ("c6i", 0.0425, 2), ("c6g", 0.034, 2)),
        *(("r5", 0.063, 8), ("r5a", 0.0565, 8), ("r6i", 0.063, 8), ("r6g", 0.0504, 8)),
        ("t3", 0.0416, 4),
    )
    sizes = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
    return [
        (f"{name}.{cores}", cores, f"{gib * cores}Gi", round(price * cores, 4), None, 8)
        for name, price, gib in families
        for cores in sizes
    ]


def candidates(machines: Sequence[Machine] = MACHINES) -> str:
    """Return the table of machines, as `--candidates` reads it; general and batch pool."""
    columns = "machine_type,cpu,memory,on_demand_usd_per_hour,spot_usd_per_hour,count"
    lines = [f"{columns},zone,region,labels,taints,reserved_cpu,reserved_memory"]
    for kind, cores, memory, price, spot, count in machines:
        base = f"{kind},{cores},{memory},{price},{spot or ''},{count},{ZONES},us-east-1"
        lines.append(f"{base},pool=general,,110m,1600Mi")
        lines.append(f"{base},pool=batch,pool=batch:NoSchedule,110m,1600Mi")
    return "\n".join(lines) + "\n"


def imported(
    folder: Path,
    nodes: int,
    pods: int,
    seed: int,
    *,
    buy: bool = True,
    machines: Sequence[Machine] = MACHINES,
    **wishes: Any,
) -> Any:
    """Import a cluster without StatefulSets; return the instance, with candidates to `buy`."""
    made = cluster(nodes, pods, seed, rules=True)
    made["items"] = [item for item in made["items"] if not _is_stateful(item)]
    files = {"cluster.json": json.dumps(made), "prices.json": json.dumps(prices())}
    for name, text in (files | {"candidates.csv": candidates(machines)}).items():
        (folder / name).write_text(text, encoding="utf-8")
    rules = MovingRules(policy=MissingRequests.parse(["error"]))
    options = ImportOptions(name="fleet", rules=rules, any_architecture=buy, **wishes)
    more = {"candidates": folder / "candidates.csv"} if buy else {}
    told = {"prices": [folder / "prices.json"], **more}
    return import_files([folder / "cluster.json"], "rolling-update", options, **told).problem


def _is_stateful(item: dict[str, Any]) -> bool:
    owners = item["metadata"].get("ownerReferences", ())
    return any(owner["kind"] == "StatefulSet" for owner in owners)


def best(problem: Any, method: str, seconds: float, **parameters: Any) -> Any:
    """Return the cheapest point of a method that breaks nothing, its bound and CPU seconds."""
    front, cpu = timed(
        lambda: placeopt.solve(problem, method, seconds=seconds, seed=1, **parameters)
    )
    points = [p for p in front.points if problem.evaluate(p.plan).feasible]
    point = min(points, key=lambda p: (p.values[0], p.values[2], p.values[1]), default=None)
    return point, min((b[0] for b in front.bounds), default=None), cpu


def row(problem: Any, name: str, seconds: float) -> tuple[list[object], bool]:
    """Return the row of a fleet, and whether placeopt costs at most what the baselines do."""
    karpenter, _, _ = best(problem, "karpenter", seconds)
    others = [best(problem, "descheduler", seconds, threshold=t)[0] for t in THRESHOLDS]
    descheduler = min(p.values[0] for p in others if p is not None)
    point, bound, cpu = best(problem, "repack", seconds)
    change = fleet_change(problem, point.plan)
    greedy = [descheduler] + ([] if karpenter is None else [karpenter.values[0]])
    cost, stops = "-", "-"
    if karpenter is not None:
        cost, stops = f"{karpenter.values[0]:.3f}", f"{karpenter.values[2]:.0f}"
    bought: dict[str, int] = {}
    for kind, _, _, number in by_machine(problem, change.buy):
        bought[kind] = bought.get(kind, 0) + number
    told: list[object] = [name, f"{problem.initial_cost:.3f}", cost, f"{descheduler:.3f}"]
    told += [f"{point.values[0]:.3f}", f"{bound:.3f}", f"{point.values[0] / bound - 1:.1%}"]
    told += [f"{change.saved_a_month:,.0f}"]
    told += [", ".join(f"{n} {kind}" for kind, n in bought.items()) or "nothing"]
    told += [len(change.free), *(f"{point.values[k]:.0f}" for k in (1, 2)), stops, f"{cpu:.0f}"]
    return shown(told), point.values[0] <= min(greedy) + 1e-9


def main() -> None:
    """Solve the fleets and write the page."""
    run = Benchmark(__file__, __doc__, "numba", "scipy", seconds=60.0)
    rows, met = [], 0
    for size in FLEETS:
        with tempfile.TemporaryDirectory() as name:
            problem = imported(Path(name), *size)
        moving = sum(len(a.microservices) for a in problem.applications)
        offered = sum(n.candidate for n in problem.nodes)
        called = f"{size[0]} nodes, {moving} pods, {offered} to buy"
        found, fine = row(problem, called, run.seconds)
        rows.append(found)
        met += fine
    machines = ", ".join(
        f"{m[0]} ({m[3]} USD/h{f', spot {m[4]}' if m[4] else ''})" for m in MACHINES
    )
    run.write(
        "What to buy and what to free",
        "Five clusters made by `make_cluster.py` with rules (StatefulSets left out), and machines "
        f"to buy: {machines}, each in three zones and two pools. One instance for all methods.",
        "USD/h. `karpenter` and `descheduler` follow the published rules "
        "(`placeopt/rolling_update/schemes.py` names the documents and what is left open); "
        f"of the descheduler the best threshold of {', '.join(f'{t:g}' for t in THRESHOLDS)} per "
        f"cent counts. `repack` has a limit of {run.seconds:g} s. A month is {HOURS_OF_A_MONTH} "
        "hours. The bound is proven: no deployment, whatever it buys, costs less. Both schemes "
        "evict: a disruption each pod.",
        table(COLUMNS, rows),
        f"The aim, at most what the baselines cost: met by {met} of {len(rows)}. Every plan is "
        "replayed by the referee and breaks nothing.",
    )


if __name__ == "__main__":
    main()
