"""Two workers against one: parts of a large instance, and a sweep; on processes and on Dask.

    python benchmarks/scale/workers.py [--share 1]     # writes workers.md; about three minutes

`--share` is the part of the evaluations that is made: less is faster, and says less.

Every worker is one thread, and is warm before the clock runs: it has loaded what the tasks need.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

import placeopt  # noqa: E402
from placeopt.core.budget import Budget  # noqa: E402
from placeopt.core.workers import Call, Workers  # noqa: E402
from placeopt.temporal.instance import Temporal  # noqa: E402

PARTS, REQUESTS, EVALUATIONS, CELL_EVALUATIONS = 24, 100, 3000, 5000
PLAN: dict[str, Any] = {
    "instances": [
        {"problem": "temporal", "seed": 1, "requests": 30},
        {"problem": "edge-cloud", "seed": 1, "applications": 20},
    ],
    "methods": ["moead", "nsga3", "mspso"],
    "seeds": [1, 2, 3, 4],
}
AIM = 1.7


def part(budget: Budget, seed: int) -> np.ndarray:
    """Search one part of a large instance; only values go back."""
    problem = Temporal.generate(seed, requests=REQUESTS)
    return placeopt.solve(problem, "nsga3", budget=budget, seed=seed, points=50).values


def parts(workers: Workers, share: float) -> list[Any]:
    """Search the parts that a large instance falls into; each is a task."""
    evaluations = int(share * EVALUATIONS)
    calls = [Call(part, (seed,), evaluations) for seed in range(1, PARTS + 1)]
    return [values.tolist() for values in workers.run(calls, Budget(10**15))]


def cells(workers: Workers, share: float) -> list[Any]:
    """Run the sweep."""
    plan = PLAN | {"evaluations": [int(share * CELL_EVALUATIONS)]}
    found = placeopt.sweep(plan, jobs=workers.jobs, scheduler=workers.scheduler).fronts
    return [[(p.values, p.plan) for p in front] for front in found if front is not None]


def workloads(share: float) -> dict[str, Callable[[Workers], list[Any]]]:
    """Return what is measured, by what it is."""
    searched, swept = int(share * EVALUATIONS), int(share * CELL_EVALUATIONS)
    return {
        f"{PARTS} parts of {REQUESTS} requests, nsga3, {searched:,} evaluations each": partial(
            parts, share=share
        ),
        f"a sweep of 24 cells: 2 instances, 3 methods, 4 seeds, {swept:,} evaluations": partial(
            cells, share=share
        ),
    }


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """Yield processes of this machine; one is this process."""
    yield Workers(count)


@contextmanager
def dask(count: int) -> Iterator[Workers]:
    """Yield a Dask cluster of this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield Workers(scheduler=client)


def timed(work: Callable[[Workers], list[Any]], workers: Workers) -> tuple[float, str]:
    """Return the seconds of a workload on warm workers, and a fingerprint of its points."""
    work(workers)
    began = time.perf_counter()
    found = work(workers)
    seconds = time.perf_counter() - began
    return seconds, hashlib.sha256(repr(found).encode()).hexdigest()


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    share = parser.parse_args().share
    text = ["# Two workers against one", "", facts("distributed", "joblib", "numba"), ""]
    rows, speeds = [], []
    for name, work in workloads(share).items():
        marks = set()
        for engine in (processes, dask):
            seconds = []
            for count in (1, 2):
                with engine(count) as workers:
                    spent, mark = timed(work, workers)
                seconds.append(spent)
                marks.add(mark)
            speed = seconds[0] / seconds[1]
            speeds += [speed] if engine is dask else []
            verdict = "" if engine is processes else "met" if speed >= AIM else "missed"
            row = (name, engine.__name__, *(f"{s:.1f}" for s in seconds), f"{speed:.2f}", verdict)
            rows.append(row)
            print(row, flush=True)
        same = "the same points" if len(marks) == 1 else "DIFFERENT POINTS"
        text.append(f"* {name}: all four runs gave {same}.")
    head = ("tasks", "workers", "one: s", "two: s", "speed-up", f"aim {AIM} on Dask")
    text += ["", *table(head, rows), ""]
    text += [
        "Wall-clock seconds of the second of two runs: in the first each worker loads the library",
        "and its kernels. On a machine with two processors that does nothing else, two is the most",
        f"that can be had; the aim on Dask is {AIM}: {'met' if min(speeds) >= AIM else 'missed'}.",
    ]
    stamps.write(HERE / "workers.md", "\n".join(text), __file__, {"share": share})


if __name__ == "__main__":
    main()
