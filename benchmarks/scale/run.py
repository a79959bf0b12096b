"""Many requests: quality, proven gap, time and memory of the search in parts, to 100,000 requests.

    python benchmarks/scale/run.py [--cells 100,200,...]

Each cell runs in a process of its own. Writes results.json and results.md beside this file; cells
that are not run keep what results.json has of them. About half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.budget import Budget  # noqa: E402
from placeopt.core.dominance import hypervolume  # noqa: E402
from placeopt.core.front import Front  # noqa: E402
from placeopt.temporal.exact import bounds  # noqa: E402
from placeopt.temporal.exact.configuration_lp import ConfigurationLP  # noqa: E402
from placeopt.temporal.exact.grid import Grid  # noqa: E402
from placeopt.temporal.exact.numbers import numbers  # noqa: E402
from placeopt.temporal.exact.staircase import staircase  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

#: Requests of the cells that compare methods, and of the one that runs the search in parts alone.
COMPARED, LARGE, SMALL = (100, 200, 500, 1000, 2000, 10_000), 100_000, 50
#: The last commit whose machines are packed the old way, before there was a search in parts.
BEFORE, OLD = "before", "0fa7e91^"
#: Cells of instances that nothing was chosen on: requests and generator seed.
HELD_OUT = ("2000-901", "2000-902", "10000-901")
CELLS = *map(str, (SMALL, *COMPARED)), *HELD_OUT, str(LARGE), BEFORE
RESULTS = HERE / "results.json"


def cpu_seconds() -> float:
    """Return CPU seconds of this process and of its workers, which are ended."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def peak_gib(jobs: int = 1) -> float:
    """Return the peak memory of this process and of `jobs` workers."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if jobs > 1 else 0
    return (own + jobs * workers) / 2**20


def timed(problem: Temporal, method: str, **options: Any) -> tuple[Front, float]:
    """Return the front of a method and the CPU seconds it took."""
    began = cpu_seconds()
    front = placeopt.solve(problem, method, seed=1, **options)
    return front, cpu_seconds() - began


def certified(problem: Temporal, front: Front) -> dict[str, Any]:
    """Return the proven gap of a front, and the CPU seconds of the bound."""
    began = cpu_seconds()
    result = bounds.certify(problem, front, Budget(seconds=600))
    return {"gap": result.gap(), "bound_s": cpu_seconds() - began, "bounds": len(result.bounds)}


def compile_kernels() -> None:
    """Compile what the cells use."""
    for method in ("greedy", "moead", "sharded"):
        front = placeopt.solve(Temporal.generate(1, requests=30), method, evaluations=500)
    bounds.certify(Temporal.generate(1, requests=30), front, Budget(seconds=1))


def compared(requests: int, seed: int = 1) -> dict[str, Any]:
    """Compare the search in parts with the search of the whole vector and with greedy."""
    problem = Temporal.generate(seed, requests=requests)
    greedy, greedy_s = timed(problem, "greedy")
    whole, whole_s = timed(problem, "moead", evaluations=50_000)
    parts, parts_s = timed(problem, "sharded")
    reference = 1.1 * np.maximum(greedy.nadir, whole.nadir)
    found = {
        "requests": requests,
        "seed": seed,
        "reference": reference.tolist(),
        "parts": parts.runs[0].parameters["parts"],
    }
    for name, front, seconds in (
        ("greedy", greedy, greedy_s),
        ("moead", whole, whole_s),
        ("sharded", parts, parts_s),
    ):
        found[name] = {
            "s": seconds,
            "hv": front.hypervolume(reference, plain=True),
            "cheapest": front.ideal[1],
            "points": len(front),
        }
    return found | {"gib": peak_gib()} | certified(problem, parts)


def large(requests: int) -> dict[str, Any]:
    """Search, judge, certify and write a front of the largest instance with two jobs."""
    began = time.perf_counter()
    problem = Temporal.generate(1, requests=requests)
    front, seconds = timed(problem, "sharded", jobs=2)
    search_wall = time.perf_counter() - began
    found = certified(problem, front)
    with tempfile.TemporaryDirectory() as folder:
        file, before = Path(folder) / "front.json", cpu_seconds()
        front.write(file)
        written = {"write_s": cpu_seconds() - before, "gb": file.stat().st_size / 1e9}
    return found | {
        "requests": requests,
        "replicas": sum(request.replicas for request in problem.requests),
        "parts": front.runs[0].parameters["parts"],
        "s": seconds,
        "wall_s": search_wall,
        "total_wall_s": time.perf_counter() - began,
        "points": len(front),
        "feasible": all(problem.evaluate(point.plan).feasible for point in front.points),
        "gib": peak_gib(jobs=2),
        **written,
    }


def before() -> dict[str, Any]:
    """Measure moead at 10,000 requests in the code of `OLD`, from a checkout of its own."""
    code = (
        "import json, os, placeopt\n"
        "from placeopt.temporal.instance import Temporal\n"
        "def solve(n, k): return placeopt.solve("
        "Temporal.generate(1, requests=n), 'moead', evaluations=k, seed=1)\n"
        "solve(30, 500); began = sum(os.times()[:4]); front = solve(10_000, 50_000)\n"
        "print(json.dumps({'s': sum(os.times()[:4]) - began, 'cheapest': front.ideal[1]}))"
    )
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", folder, OLD], check=True)
        try:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": folder},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)
    return json.loads(done.stdout.splitlines()[-1])


def small(requests: int) -> dict[str, Any]:
    """Compare the bound with that of the configuration program alone."""
    problem = Temporal.generate(1, requests=requests)
    data = numbers(problem, problem.objectives)
    low = bounds.least_values(data)[[0, 2]]
    began = cpu_seconds()
    grid = Grid(program := ConfigurationLP(data), low, Budget(seconds=600))
    grid.refine(120)
    alone = staircase(np.array(program.cuts), grid.low, grid.high, 48)
    alone = np.maximum(alone, bounds.least_values(data))
    between = cpu_seconds()
    both = bounds.lower_bounds(data, Budget(seconds=600), 120, 64)[0]
    ended = cpu_seconds()
    front = placeopt.solve(problem, "moead", evaluations=50_000, seed=1)
    reference = 1.1 * front.nadir
    volumes = [hypervolume(data.values(one), reference) for one in (alone, both)]
    reached = front.hypervolume(reference)
    return {
        "requests": requests,
        "alone_s": between - began,
        "both_s": ended - between,
        "alone_gap": 1 - reached / volumes[0],
        "both_gap": 1 - reached / volumes[1],
    }


def cell(name: str) -> dict[str, Any]:
    """Measure one cell in this process."""
    line = facts("numpy", "numba", "highspy", "moocore")
    compile_kernels()
    requests, *seed = map(int, name.split("-"))
    measure = {LARGE: large, SMALL: small}.get(requests, compared)
    return {**measure(requests, *seed), "facts": line}


def measured(name: str) -> dict[str, Any]:
    """Return what one cell measured in a process of its own."""
    if name == BEFORE:
        return {"facts": facts("numpy", "numba"), **before()}
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--one")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(cell(arguments.one)))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in filter(None, arguments.cells.split(",")):
        results[name] = measured(name)
        print(name, results[name], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    write(results)


def verdict(holds: bool) -> str:
    """Return the last cell of a target's row."""
    return "met" if holds else "MISSED"


def targets(results: dict[str, Any]) -> list[str]:
    """Return the table of targets, from the cells that are there."""
    rows: list[tuple[str, str, str]] = []
    for requests, volume in ((10_000, 0.865), (2000, 0.862)):
        if r := results.get(str(requests)):
            value = r["sharded"]["hv"]
            rows.append(
                (
                    f"{requests:,} requests: hypervolume >= {volume}",
                    f"{value:.4f}",
                    verdict(value >= volume),
                )
            )
    if r := results.get("10000"):
        one, other = r["sharded"], r["moead"]
        rows.append(
            (
                "10,000: no more CPU seconds than moead",
                f"{one['s']:.0f} v {other['s']:.0f}",
                verdict(one["s"] <= other["s"]),
            )
        )
        saved = 1 - one["cheapest"] / other["cheapest"]
        rows.append(("10,000: cheapest point below that of moead", f"{saved:.1%}", "no target"))
        if old := results.get(BEFORE):
            saved = 1 - one["cheapest"] / old["cheapest"]
            words = f"10,000: cheapest point 12 % below moead of {OLD}"
            words += f" ({old['cheapest']:.0f} USD)"
            rows.append((words, f"{saved:.1%}", verdict(saved >= 0.12)))
        rows.append(
            ("10,000: bound in 20 CPU s", f"{r['bound_s']:.1f} s", verdict(r["bound_s"] <= 20))
        )
    for requests in (2000, 10_000, LARGE):
        if r := results.get(str(requests)):
            rows.append(
                (f"{requests:,}: proven gap <= 4 %", f"{r['gap']:.2%}", verdict(r["gap"] <= 0.04))
            )
    if r := results.get(str(SMALL)):
        rows.append(
            (
                "50: bound no weaker than the configuration program's",
                f"gap {r['both_gap']:.2%} v {r['alone_gap']:.2%}",
                verdict(r["both_gap"] <= r["alone_gap"] + 1e-4),
            )
        )
    if r := results.get(str(LARGE)):
        minutes = (r["s"] + r["bound_s"] + r["write_s"]) / 60
        words = f"{minutes:.1f} CPU min of all processes; {r['total_wall_s'] / 60:.1f} by the clock"
        rows.append(("100,000: within 20 minutes", words, verdict(minutes <= 20)))
        rows.append(("100,000: within 8 GiB", f"{r['gib']:.1f} GiB", verdict(r["gib"] <= 8)))
        good = r["points"] >= 100 and r["feasible"]
        rows.append(("100,000: 100 points, all feasible", f"{r['points']} points", verdict(good)))
    return table(("target", "measured", ""), rows)


def comparison(results: dict[str, Any]) -> list[str]:
    """Return the table of methods by size."""
    rows = []
    for name in (*map(str, COMPARED), *HELD_OUT):
        if r := results.get(name):
            rows.append(
                (
                    f"{r['requests']:,}",
                    r.get("seed", 1),
                    r["parts"],
                    *(f"{r[m]['hv']:.4f}" for m in ("greedy", "moead", "sharded")),
                    *(f"{r[m]['cheapest']:.0f}" for m in ("moead", "sharded")),
                    *(f"{r[m]['s']:.0f}" for m in ("moead", "sharded")),
                    r["moead"]["points"],
                    r["sharded"]["points"],
                    f"{r['gap']:.2%}",
                    f"{r['bound_s']:.1f}",
                    f"{r['gib']:.1f}",
                )
            )
    head = (
        "requests,seed,parts,HV greedy,HV moead,HV sharded,cheapest moead (USD),cheapest sharded,"
    )
    head += "CPU s moead,CPU s sharded,points moead,points sharded,proven gap,CPU s bound,peak GiB"
    return table(head.split(","), rows)


def extrapolation(r: dict[str, Any]) -> list[str]:
    """Return what a million requests would take, by proportion, with the assumptions."""
    factor, points = 1_000_000 / r["requests"], 100
    share = points / r["points"]
    hours = factor * (r["s"] + r["write_s"] * share) / 3600
    return [
        "## A million requests",
        "",
        f"Not run. By proportion to 100,000 requests: about {hours:.1f} CPU hours and a front file",
        f"of {factor * r['gb'] * share:.0f} GB for {points} points. Assumed: parts of the same",
        f"size, so {factor * r['parts']:.0f} tasks of the same time; summing, judging and writing",
        "linear in requests times points; enough workers for the parts, while plans are made and",
        "judged by one process. The bound stays at seconds, since there are no more different",
        f"demands. Memory by proportion is {factor * r['gib']:.0f} GiB, most of it plans: with a",
        "tenth of the points it is about what 100,000 requests take.",
        "",
    ]


def write(results: dict[str, Any]) -> None:
    """Write the page."""
    text = ["# Many requests: search in parts, proven gap, time and memory", ""]
    text += ["`python benchmarks/scale/run.py` writes this page. Machines of the cells:", ""]
    text += sorted({f"* {r['facts']}" for r in results.values()})
    missing = [name for name in CELLS if name not in results]
    if missing:
        text += ["", f"Not measured yet, so no target of theirs is claimed: {missing}."]
    text += ["", *targets(results), "", "## Sizes", "", *comparison(results), ""]
    text += [
        "Instances: `Temporal.generate(seed, requests=...)`; what is chosen was chosen on seed 1.",
        "HV is the hypervolume in the plain form, reference 1.1 times the worst of moead (50,000",
        "evaluations) and greedy. CPU seconds with one job, judging included. `auto` picks",
        "`sharded` from 500 requests: see the rows.",
        "The gap is `front.gap()` of the sharded front after `certify`. Where other programs share",
        "the processors (see the load above) the clock says little: nothing waits, and a machine",
        "that does nothing else takes at most the CPU time.",
        "",
    ]
    if r := results.get(str(LARGE)):
        rows = [
            ("replicas", f"{r['replicas']:,}"),
            ("parts", r["parts"]),
            ("CPU seconds of search, plans and referee, two jobs", f"{r['s']:.0f}"),
            ("wall seconds of these", f"{r['wall_s']:.0f}"),
            ("CPU seconds of the bound", f"{r['bound_s']:.1f}"),
            ("CPU seconds of writing", f"{r['write_s']:.0f}"),
            ("front file, GB", f"{r['gb']:.2f}"),
            ("points, all feasible by the referee", f"{r['points']}, {r['feasible']}"),
            ("proven gap", f"{r['gap']:.2%}"),
            ("peak GiB, process and two workers", f"{r['gib']:.1f}"),
        ]
        text += ["## 100,000 requests", "", *table(("", ""), rows), "", *extrapolation(r)]
    stamps.write(HERE / "results.md", "\n".join(text), __file__, {"cells": list(results)})


if __name__ == "__main__":
    main()
