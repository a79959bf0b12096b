"""How long importing a large cluster takes, and what a plan for it saves; writes results.md.

python benchmarks/kubernetes/run.py [--nodes 1000] [--pods 15000] [--seconds 60]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402
from make_cluster import cluster, prices  # noqa: E402

from placeopt import api  # noqa: E402
from placeopt.registry import read  # noqa: E402

LIMIT_SECONDS = 10
#: placeopt, telling its largest resident set at the end.
CODE = """
import atexit, sys
from placeopt.cli import main
def tell() -> None:
    status = open("/proc/self/status").read()
    print("PEAK", status.split("VmHWM:")[1].split()[0], file=sys.stderr)
atexit.register(tell)
main(sys.argv[1:])
"""
HEAD = (
    "method",
    "wall s",
    "points",
    "USD/h now",
    "cheapest",
    "saved",
    "gap",
    "starts",
    "disruptions",
    "steps replayed",
    "violations",
)


def timed(arguments: list[str]) -> tuple[float, float, float, str]:
    """Run placeopt in a process of its own: (wall seconds, CPU seconds, peak MiB, stderr)."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        time.perf_counter() - begin,
        cpu,
        int(done.stderr.split("PEAK ")[1].split()[0]) / 1024,
        done.stderr,
    )


def imports(folder: Path, made: dict[str, Any]) -> list[list[object]]:
    """Import the cluster from JSON and from YAML; rows of the table."""
    text = json.dumps(made, indent=4)
    (folder / "cluster.json").write_text(text, encoding="utf-8")
    made = json.loads(text)  # nothing in it shared, which PyYAML would write as aliases
    with open(folder / "cluster.yaml", "w", encoding="utf-8") as stream:
        yaml.dump(
            made,
            stream,
            Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
            sort_keys=False,
            width=1000,
        )
    (folder / "prices.json").write_text(json.dumps(prices()), encoding="utf-8")
    found = []
    for name in ("cluster.yaml", "cluster.json"):
        path = folder / name
        arguments = [
            "import",
            "kubernetes",
            str(path),
            "--to",
            "rolling-update",
            "--prices",
            str(folder / "prices.json"),
        ]
        wall, cpu, peak, _ = timed([*arguments, "-o", str(folder / "instance.json")])
        found.append(
            [
                name.partition(".")[2].upper(),
                f"{path.stat().st_size / 2**20:.0f} MiB",
                f"{wall:.1f}",
                f"{cpu:.1f}",
                f"{peak:.0f}",
            ]
        )
    return found[::-1]


def solves(folder: Path, seconds: float) -> tuple[list[list[object]], list[str]]:
    """Solve the instance, replay every step of every plan; return the rows of the table."""
    problem = read(folder / "instance.json")
    rows: list[list[object]] = []
    for method in ("repack", "decomposition"):
        begin = time.perf_counter()
        front = api.solve(problem, method, seconds=seconds, seed=1)
        wall = time.perf_counter() - begin
        steps = violations = 0
        for point in front.points:
            judged = problem.evaluate(point.plan)
            steps += len(point.plan["steps"])
            violations += len(judged.violations)
            assert judged.values == point.values
        best = min(front.points, key=lambda p: p.values[0])
        gain = 1 - best.values[0] / problem.initial_cost
        bound = "-" if best.gap is None else f"{best.gap:.1%}"
        rows.append(
            [
                f"`{method}`",
                f"{wall:.0f}",
                len(front.points),
                f"{problem.initial_cost:.2f}",
                f"{best.values[0]:.2f}",
                f"{gain:.0%}",
                bound,
                f"{best.values[1]:.0f}",
                f"{best.values[2]:.0f}",
                steps,
                violations,
            ]
        )
    fixed = sum(len(a.microservices) for a in problem.applications if not a.reschedulable)
    moving = sum(len(a.microservices) for a in problem.applications if a.reschedulable)
    return rows, [
        f"{len(problem.nodes)} nodes (those of anchors included), {moving} pods that may move, "
        f"{fixed} that stay."
    ]


def main() -> None:
    """Time, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=15_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results.md")
    arguments = parser.parse_args()
    about = facts("PyYAML", "numba", "highspy")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = imports(folder, cluster(arguments.nodes, arguments.pods, 1))
        answers, words = solves(folder, arguments.seconds)
    wall, cpu = ("met" if float(str(rows[0][k])) <= LIMIT_SECONDS else "missed" for k in (2, 3))
    lines = [
        "# A large cluster, imported and repacked",
        "",
        f"{about} `python benchmarks/kubernetes/run.py`: {arguments.nodes} nodes and "
        f"{arguments.pods} pods made by `make_cluster.py`,",
        "as kubectl prints them. A fresh process each; the whole command counts: start, reading, "
        "checking, writing instance and origin file.",
        "",
        *table(("file", "size", "wall s", "CPU s", "peak MiB"), rows),
        "",
        f"The aim, JSON in at most {LIMIT_SECONDS} s: {wall} by the clock, {cpu} in CPU seconds "
        "(the load of the machine is above).",
        "",
        f"## A plan, replayed step by step ({arguments.seconds:g} s each)",
        "",
        *words,
        "",
        *table(HEAD, answers),
        "",
        "Node selectors, taints and required affinity are in the instance (by anchors), "
        "so no plan breaks them.",
    ]
    text = "\n".join(lines) + "\n"
    stamps.write(arguments.output, text, __file__, vars(arguments))
    print(text)


if __name__ == "__main__":
    main()
