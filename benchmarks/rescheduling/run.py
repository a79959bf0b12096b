"""What block search reaches on rescheduling instances: quality against exact fronts, time, and the schedulers beside it.

    python benchmarks/rescheduling/run.py

Writes ``results.md`` beside this file; about two minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from placeopt.budget import Budget
from placeopt.exact import epsilon_constraint
from placeopt.heuristics import rescheduling as search
from placeopt.problems.rescheduling import Rescheduling
from placeopt.problems.rescheduling_instances import APPLICATIONS, fail, surge

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from machine import facts, table

METHODS = {
    "kubernetes": search.kubernetes,
    "cloud-first": search.cloud_first,
    "latency-greedy": search.latency_greedy,
    "greedy": search.greedy,
    "block-search": search.block_search,
}
SEEDS = range(5)
UNLIMITED = 10**9


def reached(problem: Rescheduling, method: str) -> tuple[float, float]:
    """Return the least latency that a method reaches, and the moves it takes."""
    front = METHODS[method](problem, problem.objectives, Budget(evaluations=UNLIMITED), 0)
    return tuple(front.values[front.values[:, 0].argmin()])


def quality() -> Iterator[tuple[object, ...]]:
    """Exact least latency over that of block search, and the share of the exact front that it meets."""
    for replicas, seeds, seconds in ((1, SEEDS, 20), (2, range(2), 15)):
        for application in APPLICATIONS:
            ratios, met, points, proven = [], 0, 0, 0
            for seed in seeds:
                problem = Rescheduling.generate(seed, application=application, replicas=replicas)
                exact = epsilon_constraint.run(problem, problem.objectives, Budget(seconds=seconds))
                found = search.block_search(problem, problem.objectives, Budget(evaluations=UNLIMITED), 0)
                if exact.runs[0].completed:
                    proven += 1
                    ratios.append(exact.values[:, 0].min() / found.values[:, 0].min())
                    points += len(exact)
                    met += len({p.values for p in exact.points} & {p.values for p in found.points})
            worst = f"{min(ratios):.4f}" if ratios else "-"
            yield 4 * replicas, application, f"{proven} of {len(seeds)}", worst, f"{met} of {points}"


def times() -> Iterator[tuple[object, ...]]:
    """Milliseconds of one search, median of seven after compiling, the worst of the seeds."""
    shapes = [(a, {"application": a, "replicas": 5}) for a in APPLICATIONS]
    shapes += [(a, {"application": a, "replicas": 9, "cloud_a": 6, "edge_a": 6, "edge_b": 6}) for a in APPLICATIONS]
    for application, sizes in shapes:
        medians = []
        for seed in SEEDS:
            problem = Rescheduling.generate(seed, **sizes)
            search.Search(problem).blocks(Budget(evaluations=UNLIMITED))
            took = [timed(problem) for _ in range(7)]
            medians.append(1000 * float(np.median(took)))
        yield application, 4 * sizes["replicas"], len(problem.nodes), f"{np.median(medians):.1f}", f"{max(medians):.1f}"


def timed(problem: Rescheduling) -> float:
    """Seconds of one search."""
    begin = time.perf_counter()
    search.Search(problem).blocks(Budget(evaluations=UNLIMITED))
    return time.perf_counter() - begin


def large() -> Iterator[tuple[object, ...]]:
    """200 services, 1,000 replicas, 100 nodes."""
    sizes = {"application": "random", "services": 200, "replicas": 5, "cloud_a": 40, "edge_a": 30, "edge_b": 30}
    problem = Rescheduling.generate(1, **sizes)
    for method in METHODS:
        begin = time.perf_counter()
        front = METHODS[method](problem, problem.objectives, Budget(seconds=60), 0)
        took = time.perf_counter() - begin
        latency, moves = front.values[front.values[:, 0].argmin()]
        done = "yes" if front.runs[0].completed else "no"
        yield method, f"{problem.initial_latency:.0f}", f"{latency:.0f}", f"{moves:.0f}", f"{took:.1f}", done


def schedulers() -> Iterator[tuple[object, ...]]:
    """Mean latency (moves) over the seeds: pods x applications, and the paper's two events."""
    for application in APPLICATIONS:
        for replicas in (1, 3, 5):
            problems = [Rescheduling.generate(seed, application=application, replicas=replicas) for seed in SEEDS]
            yield row(f"{application}, {4 * replicas} pods", problems)
        start = [Rescheduling.generate(seed, application=application, replicas=3) for seed in SEEDS]
        yield row(f"{application}, 12 pods, an Edge-A and a Cloud-A fail", [fail(p, ["edge-a-1", "cloud-a-1"]) for p in start])
        yield row(f"{application}, surge from 12 to 20 pods", [surge(p, 5) for p in start])


def row(what: str, problems: list[Rescheduling]) -> tuple[object, ...]:
    """One line of the table."""
    cells = []
    for method in METHODS:
        latency, moves = np.mean([reached(problem, method) for problem in problems], axis=0)
        cells.append(f"{latency:.1f} ({moves:.1f})")
    return (what, f"{np.mean([p.initial_latency for p in problems]):.1f}", *cells)


NOTES = """
Execution times and pod sizes are ours (the paper prints none), and so are the random starts; latencies are computed, not measured.
The paper's milliseconds, its learned policies (Figures 6 and 7, and REACH and RSDQL in Figures 8 to 11) and its request rates are
therefore not compared.
"""


def main() -> None:
    """Run everything and write the tables."""
    lines = ["# Rescheduling: what block search reaches", "", facts("placeopt", "numba", "numpy", "highspy"), NOTES]
    quality_head = ("pods", "application", "exact front proven", "worst exact / found latency", "points of exact fronts met")
    sections = (
        ("Quality on the testbed of six nodes, against epsilon-constraint (20 s at 4 pods, 15 s at 8)", quality_head, quality),
        ("Time of one search (its whole front), ms", ("application", "pods", "nodes", "median", "worst seed"), times),
        ("200 services, 1,000 pods, 100 nodes (at most 60 s)", ("method", "start, ms", "latency, ms", "moves", "s", "completed"), large),
        ("Mean latency in ms (moves) on the testbed, five random starts", ("case", "start", *METHODS), schedulers),
    )
    for title, head, rows in sections:
        lines += [f"## {title}", "", *table(head, rows()), ""]
    (Path(__file__).parent / "results.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
