"""Two workers against one: parts of a large instance, and a sweep; on processes and on Dask.

    python benchmarks/workers.py [--share 1]

`--share` is the part of the evaluations that is made: less is faster, and says less. Every worker
is one thread, and is warm before the clock runs: it has loaded what the tasks need.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from harness import Benchmark, shown, table, verdict

import placeopt
from placeopt.core.budget import Budget
from placeopt.core.runs.workers import Call, Workers
from placeopt.temporal.instance import Temporal

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


def warm(work: Callable[..., list[Any]], workers: Workers, share: float) -> tuple[float, str]:
    """Return the seconds of a workload on warm workers, and a fingerprint of its points."""
    work(workers, share)
    began = time.perf_counter()
    found = work(workers, share)
    seconds = time.perf_counter() - began
    return seconds, hashlib.sha256(repr(found).encode()).hexdigest()


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "distributed", "joblib", "numba", share=1.0)
    searched, swept = int(run.share * EVALUATIONS), int(run.share * CELL_EVALUATIONS)
    workloads: dict[str, Callable[..., list[Any]]] = {
        f"{PARTS} parts of {REQUESTS} requests, nsga3, {searched:,} evaluations each": parts,
        f"a sweep of 24 cells: 2 instances, 3 methods, 4 seeds, {swept:,} evaluations": cells,
    }
    rows, same, speeds = [], [], []
    for name, work in workloads.items():
        marks = set()
        for engine in (processes, dask):
            seconds = []
            for count in (1, 2):
                with engine(count) as workers:
                    spent, mark = warm(work, workers, run.share)
                seconds.append(spent)
                marks.add(mark)
            speed = seconds[0] / seconds[1]
            speeds += [speed] if engine is dask else []
            met = verdict(speed >= AIM) if engine is dask else ""
            cell = (f"{s:.1f}" for s in seconds)
            rows.append(shown([name, engine.__name__, *cell, f"{speed:.2f}", met]))
        told = "the same points" if len(marks) == 1 else "DIFFERENT POINTS"
        same.append(f"* {name}: all four runs gave {told}.")
    run.write(
        "Two workers against one",
        same,
        table(f"tasks | workers | one: s | two: s | speed-up | aim {AIM} on Dask", rows),
        "Wall-clock seconds of the second of two runs: in the first each worker loads the library "
        "and its kernels. On a machine with two processors that does nothing else, two is the "
        f"most that can be had; the aim on Dask is {AIM}: {verdict(min(speeds) >= AIM)}.",
    )


if __name__ == "__main__":
    main()
