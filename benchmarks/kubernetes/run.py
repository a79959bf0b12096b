"""A large cluster: imported, repacked, every step judged, exported, reported.

    python benchmarks/kubernetes/run.py [--nodes 1000] [--pods 15000] [--seconds 50]

Two clusters by `make_cluster.py`, with rules and without. Commands run in processes of their own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from harness import ROOT, Benchmark, section, table, verdict
from harness import timed as clocked
from make_cluster import RULES, cluster, prices

from placeopt import report
from placeopt.core.files.documents import parse_json, read_json, validate
from placeopt.core.fronts.front import Front
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import (
    StepsDocument,
    document,
    replay,
)
from placeopt.kubernetes.verify import verify_files
from placeopt.registry import read

#: What an import and a plan may take, from start to the file that is written.
LIMIT_SECONDS, PLAN_SECONDS, LIMIT_MIB = 10, 60, 3 * 1024
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
    "cluster | method | wall s | CPU s | peak MiB | points | USD/h now | cheapest | bound | above "
    "it | starts | disruptions | steps replayed | violations"
)
NAMES = {"plain": "without rules", "ruled": "with rules"}


def timed(arguments: list[str]) -> tuple[float, float, float, subprocess.CompletedProcess[str]]:
    """Run placeopt in a process of its own: (wall seconds, CPU seconds, peak MiB, the process)."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command, environment = [sys.executable, "-c", CODE, *arguments], {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | environment, cwd=ROOT
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int((done.stderr.split("PEAK ")[1:] or ["0"])[0].split()[0]) / 1024
    return time.perf_counter() - begin, cpu, peak, done


def write_clusters(folder: Path, nodes: int, pods: int) -> None:
    """Write the clusters as kubectl prints them, one as YAML too, and their prices."""
    for name in NAMES:
        made = cluster(nodes, pods, 1, rules=name == "ruled")
        (folder / f"{name}.json").write_text(json.dumps(made, indent=4), encoding="utf-8")
    made = json.loads((folder / "plain.json").read_text())  # no part shared: no aliases in YAML
    with open(folder / "plain.yaml", "w", encoding="utf-8") as stream:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        yaml.dump(made, stream, Dumper=dumper, sort_keys=False, width=1000)
    (folder / "prices.json").write_text(json.dumps(prices()), encoding="utf-8")


def imported(folder: Path, file: str) -> list[object]:
    """Import a cluster; return the row of the table, the instance is beside the file."""
    stem, _, kind = file.partition(".")
    arguments = ["import", "kubernetes", str(folder / file), "--to", "rolling-update"]
    arguments += ["--prices", str(folder / "prices.json")]
    wall, cpu, peak, _ = timed([*arguments, "-o", str(folder / f"{stem}.instance.json")])
    size = f"{(folder / file).stat().st_size / 2**20:.0f} MiB"
    return [NAMES[stem], kind.upper(), size, f"{wall:.1f}", f"{cpu:.1f}", f"{peak:.0f}"]


def solved(folder: Path, name: str, method: str, seconds: float) -> list[object]:
    """Solve an instance, replay every step of every plan; return the row of the table."""
    instance, output = folder / f"{name}.instance.json", folder / f"{name}.{method}.json"
    arguments = ["solve", str(instance), "--method", method, "--seed", "1"]
    wall, cpu, peak, _ = timed([*arguments, "--time-limit", str(seconds), "-o", str(output)])
    problem: Any = read(instance)
    front = Front.from_document(read_json(output), output)
    steps = violations = 0
    for point in front.points:
        judged = problem.evaluate(point.plan)
        steps += len(point.plan["steps"])
        violations += len(judged.violations)
        assert judged.values == point.values
    best = min((p.values for p in front.points), key=lambda v: (v[0], v[2]))
    bound = min(b[0] for b in front.bounds)
    took = (f"{x:.0f}" for x in (wall, cpu, peak))
    cost = (f"{x:.2f}" for x in (problem.initial_cost, best[0], bound))
    above = f"{best[0] / bound - 1:.1%}", f"{best[1]:.0f}", f"{best[2]:.0f}", steps, violations
    return [NAMES[name], f"`{method}`", *took, len(front.points), *cost, *above]


def verified(folder: Path) -> str:
    """Ask kube-scheduler's filters at every step of the cheapest plan with rules; in words."""
    problem: Any = read(folder / "ruled.instance.json")
    front = Front.from_document(read_json(folder / "ruled.repack.json"), "front")
    point = min(front.points, key=lambda p: (p.values[2], p.values[0]))
    origin = origins.read(folder / "ruled.instance.origin.json")
    steps = validate(StepsDocument, document(problem, point.plan, origin))
    refused, seconds = clocked(lambda: verify_files(steps, [folder / "ruled.json"]))
    return (
        "`placeopt verify`, which counts pods of the cluster's own objects by kube-scheduler's "
        f"filters, refuses {len(refused)} of the {len(steps.steps):,} steps of the cheapest plan "
        f"with rules and without disruptions ({seconds:.0f} CPU s)."
    )


def rules_of(folder: Path) -> str:
    """Say what rules the instance with rules has."""
    problem: Any = read(folder / "ruled.instance.json")
    kinds = Counter(("soft " if r.soft else "") + r.kind for r in problem.rules)
    ruled = sum(bool(m.groups) for a in problem.applications for m in a.microservices)
    moving = sum(len(a.microservices) for a in problem.applications if a.reschedulable)
    total = sum(len(a.microservices) for a in problem.applications)
    listed = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    return (
        f"{len(problem.nodes)} nodes, {moving:,} pods that may move, {total - moving:,} that stay. "
        f"With rules: {len(problem.rules)} rules ({listed}) about {ruled:,} pods, "
        f"{len(problem.node_sets)} sets of allowed nodes."
    )


def exported(folder: Path) -> list[tuple[str, str]]:
    """Export every point of the front without rules, replay it, report one; return the rows."""
    problem: Any = read(folder / "plain.instance.json")
    front = Front.from_document(read_json(folder / "plain.repack.json"), "front")
    origin = origins.read(folder / "plain.instance.origin.json")
    replayed, exporting, judging, most = 0, 0.0, 0.0, 0
    for point in front.points:
        text, seconds = clocked(lambda p=point: export(problem, p.plan, origin, form="json"))
        plan, _ = replay(parse_json(text))
        told, judged = clocked(lambda p=plan: problem.evaluate(p))
        exporting, judging = max(exporting, seconds), max(judging, judged)
        replayed += told.feasible and told.values == point.values
        most = max(most, len(plan["steps"]))
    script, scripting = clocked(
        lambda: export(problem, front.points[0].plan, origin, form="commands")
    )
    (folder / "steps.sh").write_text(script + "\n", encoding="utf-8")
    legal = subprocess.run(["bash", "-n", folder / "steps.sh"]).returncode == 0
    page, about = folder / "report.html", {"problem": problem, "index": 0, "origin": origin}
    _, reporting = clocked(lambda: report.write(front, page, **about))
    size, bash = f"{len(script) / 1e6:.1f} MB", "legal bash" if legal else "NOT LEGAL"
    return [
        (
            "points whose exported steps the referee replays to the same values",
            f"{replayed} of {len(front)}",
        ),
        ("longest plan", f"{most:,} steps"),
        ("export as JSON with commands, the slowest point", f"{exporting:.2f} CPU s"),
        ("replay by the referee, the slowest point", f"{judging:.3f} CPU s"),
        ("export as a script, the cheapest point", f"{scripting:.2f} CPU s, {size}, {bash}"),
        (
            "report of the cheapest point",
            f"{reporting:.1f} CPU s, {page.stat().st_size / 1e6:.1f} MB",
        ),
    ]


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "PyYAML", "numba", "highspy"), nodes=1000, pods=15_000, seconds=50.0
    )
    run.page = run.script.with_name("results.md")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_clusters(folder, run.nodes, run.pods)
        rows = [imported(folder, file) for file in ("plain.json", "ruled.json", "plain.yaml")]
        answers = [
            solved(folder, name, method, run.seconds)
            for name in NAMES
            for method in ("repack", "decomposition")
        ]
        about, asked, out = rules_of(folder), verified(folder), exported(folder)
    wall, cpu = (max(float(str(row[k])) for row in rows[:2]) for k in (3, 4))
    peak = verdict(all(float(str(row[4])) <= LIMIT_MIB for row in answers))
    ended = verdict(all(float(str(row[2])) <= PLAN_SECONDS for row in answers))
    run.write(
        "A large cluster, imported, repacked and exported",
        f"{run.nodes} nodes and {run.pods} pods made by `make_cluster.py`, as kubectl prints them. "
        "A fresh process each; the whole command counts: start, reading, checking, writing "
        "instance and origin file. With rules, every other workload asks for one of these, in "
        f"turn: {'; '.join(RULES)}. One in ten nodes is tainted in both.",
        table("cluster | file | size | wall s | CPU s | peak MiB", rows),
        f"The aim, JSON in at most {LIMIT_SECONDS} s: {verdict(wall <= LIMIT_SECONDS)} by the "
        f"clock, {verdict(cpu <= LIMIT_SECONDS)} in CPU seconds.",
        section(
            f"A plan, replayed step by step (searches of {run.seconds:g} s)",
            about,
            table(HEAD, answers),
            f"The aim, the whole command in at most {PLAN_SECONDS} s by the clock: {ended}; at "
            f"most {LIMIT_MIB / 1024:g} GiB: {peak}. A search of so many seconds by the clock "
            "finds as much as the processor gives it: compare the CPU seconds. The bound is proven "
            "without a solver and passes over all rules but those that keep replicas apart by "
            "node.",
            asked,
        ),
        section("To steps, a script and a report, without rules", table("what | figure", out)),
    )


if __name__ == "__main__":
    main()
