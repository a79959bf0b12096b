"""From a plan of a large cluster to steps, a script and a report; writes export.md.

    python benchmarks/kubernetes/export.py [--nodes 1000 --pods 15000]

The cluster is that of make_cluster.py. Every point of the front is exported and replayed by the
referee.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import placeopt
from placeopt import report
from placeopt.core.documents import parse_json, write_text
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.steps_document import replay
from placeopt.kubernetes.importing import import_files
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.sizes import MissingRequests
from placeopt.kubernetes.units import MovingRules

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from make_cluster import TYPES, cluster  # noqa: E402

#: Limit of the search.
SECONDS = 60


def timed(function: Any, *arguments: Any, **more: Any) -> tuple[Any, float]:
    """Return what a function returns, and the CPU seconds that it took."""
    begin = time.process_time()
    return function(*arguments, **more), time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=15_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = measure(Path(name), asked.nodes, asked.pods)
    head = f"# {asked.nodes:,} nodes, {asked.pods:,} pods: from the cluster to steps and a report"
    text = [head, "", facts("placeopt", "numpy"), "", *table(("what", "figure"), rows)]
    print("\n".join(text))
    if asked.nodes == 1000:
        stamps.write(HERE / "export.md", "\n".join(text), __file__, vars(asked))


def measure(folder: Path, nodes: int, pods: int) -> list[tuple[str, str]]:
    (folder / "cluster.json").write_text(json.dumps(cluster(nodes, pods, 1)), encoding="utf-8")
    prices = "\n".join(f"us-east-1,{size},{usd}" for size, (_, _, usd) in TYPES.items())
    (folder / "prices.csv").write_text(
        f"location,size,on_demand_usd_per_hour\n{prices}\n", encoding="utf-8"
    )
    options = ImportOptions(
        name="large", rules=MovingRules(policy=MissingRequests.parse(["default=100m,128Mi"]))
    )
    made, importing = timed(
        import_files,
        [folder / "cluster.json"],
        "rolling-update",
        options,
        prices=[folder / "prices.csv"],
    )
    problem, origin = made.problem, made.origin
    front, solving = timed(
        placeopt.solve, problem, "repack", budget=placeopt.Budget(seconds=SECONDS), seed=1
    )
    replayed, exporting, judging, most = 0, 0.0, 0.0, 0
    for point in front.points:
        text, seconds = timed(export, problem, point.plan, origin, form="json")
        exporting = max(exporting, seconds)
        plan, _ = replay(parse_json(text))
        verdict, seconds = timed(problem.evaluate, plan)
        judging = max(judging, seconds)
        replayed += verdict.feasible and verdict.values == point.values
        most = max(most, len(plan["steps"]))
    text, scripting = timed(export, problem, front.points[0].plan, origin, form="commands")
    write_text(folder / "steps.sh", text + "\n")
    legal = subprocess.run(["bash", "-n", folder / "steps.sh"]).returncode == 0
    _, reporting = timed(
        report.write, front, folder / "report.html", problem=problem, index=0, origin=origin
    )
    megabytes = (folder / "report.html").stat().st_size / 1e6
    return [
        ("import", f"{importing:.1f} CPU s"),
        (
            f"`repack`, with a limit of {SECONDS} s by the clock",
            f"{solving:.0f} CPU s, {len(front)} points, node cost {front.nadir[0]:.2f} "
            f"to {front.ideal[0]:.2f}",
        ),
        (
            "points whose exported steps the referee replays to the same values",
            f"{replayed} of {len(front)}",
        ),
        ("longest plan", f"{most:,} steps"),
        ("export as JSON with commands, the slowest point", f"{exporting:.2f} CPU s"),
        ("replay by the referee, the slowest point", f"{judging:.3f} CPU s"),
        (
            "export as a script, the cheapest point",
            f"{scripting:.2f} CPU s, {len(text) / 1e6:.1f} MB, "
            f"{'legal bash' if legal else 'NOT LEGAL'}",
        ),
        ("report of the cheapest point", f"{reporting:.1f} CPU s, {megabytes:.1f} MB"),
    ]


if __name__ == "__main__":
    main()
