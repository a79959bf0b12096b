"""How the temporal search scales.

Time per evaluation, hypervolume over greedy, memory, from 50 to 10,000 requests.

    python benchmarks/temporal_search/scaling.py [--evaluations 50000] [--sizes 50,200,...]

Each size runs in a process of its own, so that its memory is its own. Writes scaling.md and
scaling.png beside this file.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.interfaces import build_encoder  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

SIZES = (50, 200, 500, 1000, 2000, 5000, 10000)


def one(requests: int, evaluations: int) -> dict[str, Any]:
    """Measure one size in this process."""
    for method in ("greedy", "moead"):
        placeopt.solve(Temporal.generate(1, requests=5), method, evaluations=500)  # compile
    problem = Temporal.generate(1, requests=requests)
    began = time.process_time()
    greedy = placeopt.solve(problem, "greedy")
    greedy_seconds = time.process_time() - began
    encoder = build_encoder(problem)
    X = encoder.sample(np.random.default_rng(1), max(3, 20000 // requests))
    began = time.process_time()
    encoder.evaluate(X)
    each = (time.process_time() - began) / len(X)
    began = time.process_time()
    front = placeopt.solve(problem, "moead", evaluations=evaluations, seed=1)
    seconds = time.process_time() - began
    reference = 1.1 * np.maximum(greedy.nadir, front.nadir)
    return {
        "requests": requests,
        "replicas": encoder.num_genes - requests,
        "us": each * 1e6,
        "greedy_s": greedy_seconds,
        "greedy_hv": greedy.hypervolume(reference, plain=True),
        "search_s": seconds,
        "search_hv": front.hypervolume(reference, plain=True),
        "points": len(front),
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def draw(results: list[dict[str, Any]]) -> None:
    """Draw time per replica and memory against the number of requests."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [r["requests"] for r in results]
    left.loglog(sizes, [r["us"] for r in results], "o-")
    left.set(xlabel="requests", ylabel="microseconds per evaluation (CPU)")
    right.semilogx(sizes, [r["gib"] for r in results], "o-")
    right.set(xlabel="requests", ylabel="peak memory (GiB)", ylim=(0, None))
    figure.savefig(HERE / "scaling.png", dpi=110)


def main() -> None:
    """Run every size and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=50_000)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--one", type=int)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.one, arguments.evaluations)))
        return
    head = facts("numpy", "numba", "moocore")
    results: list[dict[str, Any]] = []
    for size in map(int, arguments.sizes.split(",")):
        command = [
            sys.executable,
            __file__,
            "--one",
            str(size),
            "--evaluations",
            str(arguments.evaluations),
        ]
        results.append(
            json.loads(
                subprocess.run(
                    command, capture_output=True, text=True, check=True
                ).stdout.splitlines()[-1]
            )
        )
        print(results[-1], flush=True)
        results.sort(key=lambda r: r["requests"])
        write(head, results, arguments.evaluations)


def write(head: str, results: list[dict[str, Any]], evaluations: int) -> None:
    """Write the table and the plot of what is measured so far."""
    rows = [
        (
            r["requests"],
            r["replicas"],
            f"{r['us']:.0f}",
            f"{r['us'] * 1000 / r['replicas']:.0f}",
            f"{r['greedy_s']:.2f}",
            f"{r['greedy_hv']:.4f}",
            f"{r['search_s']:.1f}",
            f"{r['search_hv']:.4f}",
            r["points"],
            f"{r['gib']:.2f}",
        )
        for r in results
    ]
    columns = (
        "requests",
        "replicas",
        "us per evaluation",
        "ns per replica",
        "greedy s",
        "greedy HV",
        "moead s",
        "moead HV",
        "points",
        "peak GiB",
    )
    text = ["# Scaling of the temporal search", "", head, "", *table(columns, rows), ""]
    text += [
        f"CPU seconds; moead with {evaluations:,} evaluations, seed 1, judging included. An",
        "evaluation is one of random vectors, of which nothing is remembered. Hypervolume in the",
        "plain form, reference 1.1 times the worst of both fronts. Instances:",
        "`Temporal.generate(1, requests=...)`. Fronts of large instances are thinned: a plan of",
        "10,000 requests takes megabytes, so that about a hundred points are kept.",
    ]
    draw(results)
    settings = {"evaluations": evaluations, "sizes": [r["requests"] for r in results]}
    stamps.write(HERE / "scaling.md", "\n".join(text), __file__, settings)


if __name__ == "__main__":
    main()
