"""How long `placeopt consolidate` takes, and how good its plan is; writes consolidate.md.

python benchmarks/kubernetes/consolidate.py [--front-seconds 60]

Two clusters by `make_cluster.py`, with rules. Of the smaller one the whole front is searched, too,
by `repack` and `decomposition`: no plan of it that stops nothing should be cheaper.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from make_cluster import cluster, prices  # noqa: E402
from run import timed  # noqa: E402

from placeopt.core.files.documents import read_json  # noqa: E402
from placeopt.core.fronts.front import Front  # noqa: E402

#: Nodes, pods, and the CPU seconds that the command may take.
CLUSTERS = ((120, 1000, 20), (1000, 15_000, 90))
#: The share by which the plan may be dearer than the best one of the whole front.
SHARE = 0.01
HEAD = (
    "cluster",
    "CPU s",
    "at most",
    "peak MiB",
    "USD a month now",
    "after",
    "still possible, at most",
    "nodes",
    "after",
    "pods move",
    "stop",
    "changes computed",
    "of",
    "nodes without a reason",
)


def measured(folder: Path, nodes: int, pods: int, limit: int) -> tuple[list[object], bool]:
    """Run the command on a cluster; return the row of the table, and whether it was in time."""
    file, table_of_prices = folder / f"{nodes}.json", folder / "prices.json"
    file.write_text(json.dumps(cluster(nodes, pods, 1, rules=True)), encoding="utf-8")
    table_of_prices.write_text(json.dumps(prices()), encoding="utf-8")
    arguments = ["consolidate", str(file), "--prices", str(table_of_prices), "--format", "json"]
    _, cpu, peak, done = timed([*arguments, "-o", str(folder / f"out-{nodes}")])
    found = json.loads(done.stdout)
    lifts = found["lifts"]
    row = [
        f"{nodes:,} nodes, {pods:,} pods",
        f"{cpu:.1f}",
        limit,
        f"{peak:.0f}",
        *(f"{found[key]:,.0f}" for key in ("cost_now", "cost_after", "at_most")),
        found["nodes_now"],
        found["nodes_after"],
        f"{found['moves']:,}",
        found["stops"],
        sum(lift["saves"] is not None for lift in lifts),
        len(lifts),
        sum(not node["reasons"] for node in found["nodes"]),
    ]
    return row, cpu <= limit


def fronts(folder: Path, nodes: int, seconds: float) -> tuple[list[list[object]], bool]:
    """Search the whole front of a cluster; return rows, and whether the plan is as good."""
    instance = folder / f"out-{nodes}" / "instance.json"
    answer = Front.from_document(read_json(folder / f"out-{nodes}" / "front.json"))
    mine, rows, good = answer.points[0].values[0], [], True
    for method in ("repack", "decomposition"):
        output = folder / f"{method}.json"
        arguments = ["solve", str(instance), "--method", method, "--seed", "1"]
        arguments += ["--time-limit", str(seconds), "-o", str(output)]
        _, cpu, _, _ = timed(arguments)
        points = Front.from_document(read_json(output)).points
        best = min(point.values[0] for point in points if point.values[2] == 0)
        good = good and mine <= (1 + SHARE) * best
        rows.append([method, f"{cpu:.1f}", f"{best:g}", f"{mine:g}", f"{mine / best - 1:+.2%}"])
    return rows, good


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--front-seconds", type=float, default=60.0)
    seconds = parser.parse_args().front_seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm = ["consolidate", "shop", "--prices", "shop", "--format", "json"]
        timed(warm)  # compiles
        rows, in_time = zip(*(measured(folder, *one) for one in CLUSTERS), strict=True)
        compared, good = fronts(folder, CLUSTERS[0][0], seconds)
    lines = [
        "# From a dump to an answer",
        "",
        f"{facts('numba', 'scipy')} `python benchmarks/kubernetes/consolidate.py`: clusters made "
        "by `make_cluster.py` with rules; kernels compiled before. CPU seconds of the whole "
        "command, with import, plan, reasons, changes and all files of `-o`.",
        "",
        *table(HEAD, rows),
        "",
        f"In time: {sum(in_time)} of {len(in_time)}. A change that is computed is a cluster that "
        "is imported and solved anew; those of nodes that cost most come first.",
        "",
        f"The plan of the first cluster against the cheapest one without stops of a whole front "
        f"({seconds:g} s each), USD/h:",
        "",
        *table(("method", "CPU s", "its best", "consolidate", "difference"), compared),
        "",
        f"At most {SHARE:.0%} dearer: {'yes' if good else 'no'}.",
    ]
    settings = {"front_seconds": seconds}
    stamps.write(HERE / "consolidate.md", "\n".join(lines), __file__, settings)


if __name__ == "__main__":
    main()
