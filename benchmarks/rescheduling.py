"""What block search reaches on rescheduling instances, beside exact fronts and other methods.

    python benchmarks/rescheduling.py

About five minutes; a stopped run goes on where it was.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from harness import Benchmark, section, table, timed

from placeopt.core.budget import Budget
from placeopt.core.fronts.front import Front
from placeopt.core.task import Task
from placeopt.rescheduling import search
from placeopt.rescheduling.encoder import latencies
from placeopt.rescheduling.generator import APPLICATIONS
from placeopt.rescheduling.problem import Rescheduling

METHODS: dict[str, Any] = {
    "kubernetes": search.kubernetes,
    "cloud-first": search.cloud_first,
    "latency-greedy": search.latency_greedy,
    "greedy": search.greedy,
    "block-search": search.block_search,
}
SEEDS = range(5)
#: Replicas and machines of each of three kinds.
SHAPES = ((5, 2), (9, 6))
NOTES = """Execution times and pod sizes are ours (the paper prints none), and so are the random
starts; latencies are computed, not measured. papers/results has the schedulers of the paper, after
failures and surges too, and trained policies."""


def generated(seed: int, application: str, replicas: int, machines: int = 2) -> Rescheduling:
    """Return a random start on so many machines of each kind."""
    kinds = dict.fromkeys(("cloud_a", "edge_a", "edge_b"), machines)
    return Rescheduling.generate(seed, application=application, replicas=replicas, **kinds)


def searched(problem: Rescheduling) -> Front:
    """Return the front of block search without limits."""
    return search.block_search(Task(problem, budget=Budget(evaluations=10**9)))


def enumerated(problem: Rescheduling) -> list[tuple[float, int]]:
    """Return the exact front of all deployments that fit: latency and misplaced replicas.

    A plan has at least as many moves as replicas are misplaced, so that no plan beats this front.
    """
    t = problem.arrays
    nodes = range(len(t.user))
    rows = [
        np.array(
            [np.bincount(c, minlength=len(nodes)) for c in combinations_with_replacement(nodes, r)]
        )
        for r in t.replicas.tolist()
    ]
    grids = np.meshgrid(*[np.arange(len(r)) for r in rows], indexing="ij")
    index = np.stack([grid.ravel() for grid in grids], axis=1)
    best: dict[int, float] = {}
    for first in range(0, len(index), 20_000):
        counts = np.stack([r[index[first : first + 20_000, i]] for i, r in enumerate(rows)], axis=1)
        used = np.tensordot(counts, t.demand, axes=(1, 0))
        counts = counts[(used <= t.capacity).all(axis=(1, 2))]
        latency, moves = latencies(t, counts), np.maximum(0, counts - t.home).sum(axis=(1, 2))
        for k in np.unique(moves).tolist():
            best[k] = min(best.get(k, np.inf), float(latency[moves == k].min()))
    return [
        (best[k], k) for k in sorted(best) if all(best[k] < best[j] - 1e-9 for j in best if j < k)
    ]


def quality(replicas: int, application: str, jitter: float) -> list[object]:
    """Return a row: exact latency over block search's, and the exact points that are met."""
    ratios, met, points, seeds = [], 0, 0, 20 if replicas == 1 else 4
    for seed in range(seeds):
        problem = Rescheduling.generate(
            seed, application=application, replicas=replicas, jitter=jitter
        )
        exact = enumerated(problem)
        found = searched(problem).values
        points += len(exact)
        met += sum(bool((np.abs(found - one).max(axis=1) < 1e-6).any()) for one in exact)
        ratios.append(exact[-1][0] / found[:, 0].min())
    share = f"{min(ratios):.4f}", f"{met} of {points}"
    return [4 * replicas, application, f"{jitter:.1f}", seeds, *share]


def times(application: str, replicas: int, machines: int) -> list[object]:
    """Return a row: milliseconds of CPU of one search, median of seven after compiling."""
    medians = []
    for seed in SEEDS:
        problem = generated(seed, application, replicas, machines)
        took = [timed(lambda p=problem: searched(p))[1] for _ in range(8)]
        medians.append(1000 * float(np.median(took[1:])))
    ms = f"{np.median(medians):.1f}", f"{max(medians):.1f}"
    return [application, 4 * replicas, 3 * machines, *ms]


def large(method: str) -> list[object]:
    """Return a row of 200 services, 1,000 replicas, 100 nodes."""
    kinds = {"cloud_a": 40, "edge_a": 30, "edge_b": 30}
    problem = Rescheduling.generate(1, application="random", services=200, replicas=5, **kinds)
    start = f"{problem.initial_latency:.0f}"
    if method == "bound":
        return [method, start, f"{bound(problem):.0f}", "-", "-", "-"]
    search.block_search(Task(problem, budget=Budget(evaluations=1_000)))  # compiled
    front, took = timed(lambda: METHODS[method](Task(problem, budget=Budget(seconds=60))))
    latency, moves = front.values[front.values[:, 0].argmin()]
    done = "yes" if front.runs[0].completed else "no"
    return [method, start, f"{latency:.0f}", f"{moves:.0f}", f"{took:.1f}", done]


def bound(problem: Rescheduling) -> float:
    """Return the latency with every service on its fastest node and no network but to the users."""
    took: dict[int, float] = {}
    for i in problem.graph.order:
        calls = (sum(took[j] for j in group) for group in problem.graph.groups[i])
        took[i] = problem.arrays.execution[i].min() + max(calls, default=0.0)
    return float(took[problem.graph.gateway] + problem.arrays.user.min())


def main() -> None:
    """Run everything and write the tables."""
    run = Benchmark(__file__, __doc__, "numba", "numpy")

    def rows(work: Any, instances: Any) -> list[Any]:
        return [run.cell(f"{work.__name__} {one}", lambda one=one: work(*one)) for one in instances]

    shapes = [(a, *shape) for shape in SHAPES for a in APPLICATIONS]
    run.write(
        "Rescheduling: what block search reaches",
        NOTES,
        section(
            "Quality on the testbed of six nodes, against the enumeration of every deployment",
            table(
                "pods | application | spread of times | instances | worst exact / found latency | "
                "points of exact fronts met",
                rows(quality, product((1, 2), APPLICATIONS, (0.0, 0.3))),
            ),
        ),
        section(
            "CPU time of one search (its whole front), ms",
            table("application | pods | nodes | median | worst seed", rows(times, shapes)),
        ),
        section(
            "200 services, 1,000 pods, 100 nodes (at most 60 s)",
            table(
                "method | start, ms | latency, ms | moves | CPU s | completed",
                rows(large, [("bound",), *((m,) for m in METHODS)]),
            ),
        ),
    )


if __name__ == "__main__":
    main()
