"""Many requests: quality, proven gap, time and memory of the search in parts, to 100,000 requests.

    python benchmarks/scale.py [--sizes 100 200 500 1000 2000 10000] [--large 100000]

Each cell runs in a process of its own; cells are kept in scale_cells.json, and taken from there.
About half an hour.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Benchmark, apart, plain_share, section, table, verdict
from machine import facts

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.registry import certifier
from placeopt.temporal.problem import Temporal

#: Instances that nothing was chosen on: requests and generator seed.
HELD_OUT = ((2000, 901), (2000, 902), (10_000, 901))
CELLS = Path(__file__).with_name("scale_cells.json")
COLUMNS = (
    "requests | seed | parts | HV greedy | HV moead | HV sharded | cheapest moead (USD) | "
    "cheapest sharded | CPU s moead | CPU s sharded | points moead | points sharded | proven gap | "
    "CPU s bound | peak GiB"
)
WORDS = """Instances: `Temporal.generate(seed, requests=...)`; what is chosen was chosen on seed 1.
HV is the hypervolume in the plain form, reference 1.1 times the worst of moead (50,000
evaluations) and greedy. CPU seconds with one job, judging included. `auto` picks
`sharded` from 500 requests: see the rows.
The gap is `front.gap()` of the sharded front after `certify`. Where other programs share
the processors the clock says little: nothing waits, and a machine that does nothing else takes at
most the CPU time."""


def cpu_seconds() -> float:
    """Return CPU seconds of this process and of its workers, which are ended."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)
    return sum(os.times()[:4])


def peak_gib(jobs: int = 1) -> float:
    """Return the peak memory of this process and of `jobs` workers."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if jobs > 1 else 0
    return (own + jobs * workers) / 2**20


def solved(problem: Temporal, method: str, **options: Any) -> tuple[Front, float]:
    """Return the front of a method and the CPU seconds it took."""
    began = cpu_seconds()
    front = placeopt.solve(problem, method, seed=1, **options)
    return front, cpu_seconds() - began


def certified(problem: Temporal, front: Front) -> dict[str, Any]:
    """Return the proven gap of a front, and the CPU seconds of the bound."""
    began = cpu_seconds()
    result = certifier("temporal")(problem, front, Budget(seconds=600))
    return {"gap": result.gap(), "bound_s": cpu_seconds() - began, "bounds": len(result.bounds)}


def compile_kernels() -> None:
    """Compile what the cells use."""
    for method in ("greedy", "moead", "sharded"):
        front = placeopt.solve(Temporal.generate(1, requests=30), method, evaluations=500)
    certifier("temporal")(Temporal.generate(1, requests=30), front, Budget(seconds=1))


def compared(requests: int, seed: int) -> dict[str, Any]:
    """Compare the search in parts with the search of the whole vector and with greedy."""
    compile_kernels()
    problem = Temporal.generate(seed, requests=requests)
    runs = {
        "greedy": solved(problem, "greedy"),
        "moead": solved(problem, "moead", evaluations=50_000),
        "sharded": solved(problem, "sharded"),
    }
    reference = 1.1 * np.maximum(runs["greedy"][0].nadir, runs["moead"][0].nadir)
    parts = runs["sharded"][0]
    found: dict[str, Any] = {"requests": requests, "seed": seed, "gib": peak_gib()}
    found |= {"parts": parts.runs[0].parameters["parts"], "facts": facts("numpy", "numba")}
    for name, (front, seconds) in runs.items():
        volume = plain_share(front, reference)
        told = {"s": seconds, "hv": volume, "cheapest": front.ideal[1], "points": len(front)}
        found[name] = told
    return found | certified(problem, parts)


def large(requests: int) -> dict[str, Any]:
    """Search, judge, certify and write a front of the largest instance with two jobs."""
    compile_kernels()
    began = time.perf_counter()
    problem = Temporal.generate(1, requests=requests)
    front, seconds = solved(problem, "sharded", jobs=2)
    search_wall = time.perf_counter() - began
    found = certified(problem, front)
    with tempfile.TemporaryDirectory() as folder:
        file, before = Path(folder) / "front.json", cpu_seconds()
        front.write(file)
        found |= {"write_s": cpu_seconds() - before, "gb": file.stat().st_size / 1e9}
    return found | {
        "facts": facts("numpy", "numba"),
        "requests": requests,
        "replicas": sum(request.replicas for request in problem.requests),
        "parts": front.runs[0].parameters["parts"],
        "s": seconds,
        "wall_s": search_wall,
        "points": len(front),
        "feasible": all(problem.evaluate(point.plan).feasible for point in front.points),
        "gib": peak_gib(jobs=2),
    }


def cell(name: str, function: str, *arguments: int) -> dict[str, Any]:
    """Return a kept cell, or measure it in a process of its own and keep it."""
    known = json.loads(CELLS.read_text()) if CELLS.exists() else {}
    if name not in known:
        known[name] = apart(__file__, function, *arguments)
        CELLS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return known[name]


def row(r: dict[str, Any]) -> list[object]:
    """Return the row of a comparison."""
    pair = ("moead", "sharded")
    return [
        *(f"{r['requests']:,}", r.get("seed", 1), r["parts"]),
        *(f"{r[m]['hv']:.4f}" for m in ("greedy", *pair)),
        *(f"{r[m]['cheapest']:.0f}" for m in pair),
        *(f"{r[m]['s']:.0f}" for m in pair),
        *(r[m]["points"] for m in pair),
        *(f"{r['gap']:.2%}", f"{r['bound_s']:.1f}", f"{r['gib']:.1f}"),
    ]


def targets(rows: list[dict[str, Any]], most: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of targets, from the cells that are there."""
    found = []
    for r in rows:
        if r["requests"] < 2000 or r.get("seed", 1) != 1:
            continue
        name, volume = f"{r['requests']:,}", 0.862 if r["requests"] == 2000 else 0.865
        one, other = r["sharded"], r["moead"]
        found += [
            (f"{name}: hypervolume >= {volume}", f"{one['hv']:.4f}", one["hv"] >= volume),
            (f"{name}: proven gap <= 4 %", f"{r['gap']:.2%}", r["gap"] <= 0.04),
            (
                f"{name}: no more CPU seconds than moead",
                f"{one['s']:.0f} v {other['s']:.0f}",
                one["s"] <= other["s"],
            ),
        ]
    minutes = (most["s"] + most["bound_s"] + most["write_s"]) / 60
    name = f"{most['requests']:,}"
    found += [
        (f"{name}: within 20 minutes", f"{minutes:.1f} CPU min of all processes", minutes <= 20),
        (f"{name}: within 8 GiB", f"{most['gib']:.1f} GiB", most["gib"] <= 8),
        (f"{name}: proven gap <= 4 %", f"{most['gap']:.2%}", most["gap"] <= 0.04),
        (
            f"{name}: 100 points, all feasible",
            f"{most['points']} points",
            most["points"] >= 100 and most["feasible"],
        ),
    ]
    return [(what, number, verdict(holds)) for what, number, holds in found]


def facts_of(r: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what is known of the largest instance."""
    return [
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


def main() -> None:
    """Run the cells and write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numpy", "numba", "highspy", "moocore"),
        sizes=[100, 200, 500, 1000, 2000, 10_000],
        large=100_000,
    )
    instances = [*((n, 1) for n in run.sizes), *HELD_OUT]
    rows = [
        cell(str(n) if seed == 1 else f"{n}-{seed}", "compared", n, seed) for n, seed in instances
    ]
    most = cell(str(run.large), "large", run.large)
    run.write(
        "Many requests: search in parts, proven gap, time and memory",
        "Machines of the cells:",
        sorted({f"* {r['facts']}" for r in (*rows, most)}),
        table("target | measured |", targets(rows, most)),
        section("Sizes", table(COLUMNS, map(row, rows)), WORDS),
        section(f"{most['requests']:,} requests", table(" | ", facts_of(most))),
    )


if __name__ == "__main__":
    main()
