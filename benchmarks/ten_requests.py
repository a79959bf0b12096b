"""Temporal instances of 10 requests: `auto` beside optima that CP-SAT proves, and proven fronts.

    PLACEOPT_DATA=... python benchmarks/ten_requests.py

Needs OR-Tools, which is no dependency: ``pip install ortools``. All seconds are CPU seconds. Every
cell is kept, so that a run that was stopped goes on.
"""

from __future__ import annotations

import time
from typing import Any

import cpu_clock  # noqa: F401
import numpy as np
from harness import Benchmark, section, table
from small_temporal import of_size

import placeopt
from placeopt import registry
from placeopt.core.fronts.values import names_of
from placeopt.warm_up import warm_up

#: Weights of latency, cost and interruption, each scaled to its range in the front.
WEIGHTS = ((1 / 3, 1 / 3, 1 / 3), (0.1, 0.8, 0.1), (0.8, 0.1, 0.1))
#: Least share by which sums count as different.
EQUAL = 1e-6
#: Replicas, seeds and CPU seconds of the fronts that are to be proven.
REPLICAS, PROVEN_SEEDS, PROVEN_SECONDS = 15, range(1, 4), 60.0
#: Share of a limit within which CP-SAT ended by itself: it has proven its plan then.
BY_ITSELF = 0.95
SUMS = (
    "seed | replicas | points | of them optimal | weights | placeopt | proven | CP-SAT | "
    "its CPU s | proven by CP-SAT | above CP-SAT | at or below"
)
FRONTS = "seed | points | of them optimal | open share of the hypervolume | CPU s"


def instance(seed: int) -> Any:
    """Return 10 requests of one or two replicas."""
    return registry.problem_class("temporal").generate(seed, requests=10, max_replicas=2)


def front(seed: int, seconds: float) -> dict[str, Any]:
    """Return the least weighted sums of the front of `auto`, and what is proven of them."""
    problem = instance(seed)
    result = placeopt.solve(problem, seconds=seconds, seed=seed)
    values, bounds = result.values, np.array(result.bounds)
    scales = (np.array(WEIGHTS) / np.maximum(np.ptp(values, axis=0), 1e-9)).tolist()
    return {
        "goals": names_of(result.objectives),
        "replicas": sum(request.replicas for request in problem.requests),
        "points": len(result),
        "optimal": sum(point.status == "optimal" for point in result.points),
        "scales": scales,
        "best": [float((values @ scale).min()) for scale in scales],
        "bounds": [float((bounds @ scale).min()) if len(bounds) else None for scale in scales],
    }


def peer(seed: int, scale: list[float], seconds: float) -> dict[str, Any]:
    """Return the weighted sum of the plan of CP-SAT by the referee, and its CPU seconds."""
    from peers.temporal import best

    problem, began = instance(seed), time.process_time()
    (plan,) = best(problem, np.array(scale), None, [seconds], seed)
    cpu = time.process_time() - began
    verdict = None if plan is None else problem.evaluate(plan)
    right = verdict is not None and verdict.feasible
    return {"value": float(np.dot(scale, verdict.values)) if right else None, "cpu": cpu}


def row(run: Benchmark, seed: int, at: int) -> list[Any]:
    """Return a row of the table of weighted sums."""
    key, seconds = f"seed {seed} in {run.seconds:g} s", run.seconds
    ours = run.cell(key, lambda: front(seed, seconds))
    said = ", ".join(f"{w:.2g} {goal}" for w, goal in zip(WEIGHTS[at], ours["goals"], strict=True))
    best, bound = ours["best"][at], ours["bounds"][at]
    head = [seed, ours["replicas"], ours["points"], ours["optimal"], said, f"{best:.5f}"]
    if bound is not None and bound >= best * (1 - EQUAL):
        return [*head, "yes", "", "", "", "", "yes"]
    theirs = run.cell(f"{key} weights {at}", lambda: peer(seed, ours["scales"][at], seconds))
    other, cpu = theirs["value"], theirs["cpu"]
    if other is None:
        return [*head, "no", "no plan", f"{cpu:.1f}", "no", "", "yes"]
    above, ended = best / other - 1, "yes" if cpu <= BY_ITSELF * seconds else "no"
    cells = [f"{other:.5f}", f"{cpu:.1f}", ended, f"{above:+.3%}"]
    return [*head, "no", *cells, "yes" if above <= EQUAL else "**no**"]


def proven(seed: int) -> list[Any]:
    """Return the row of a front of 10 requests with 15 replicas."""
    began = time.process_time()
    result = placeopt.solve(of_size(10, REPLICAS, seed), seconds=PROVEN_SECONDS, seed=seed)
    cpu, gap = time.process_time() - began, result.gap()
    optimal = sum(point.status == "optimal" for point in result.points)
    return [seed, len(result), optimal, "all" if gap is None else f"{gap:.2%}", f"{cpu:.1f}"]


def fronts(run: Benchmark) -> str:
    """Return which fronts of 10 requests with 15 replicas are proven in a minute."""
    rows = [run.cell(f"proven {seed}", lambda s=seed: proven(s)) for seed in PROVEN_SEEDS]
    whole = sum(cells[1] == cells[2] for cells in rows)
    return section(
        f"Fronts of 10 requests with {REPLICAS} replicas",
        f"`auto`, {PROVEN_SECONDS:g} CPU seconds. All points are proven optimal on {whole} of the "
        f"{len(rows)} seeds, and the least share is {min(c[2] / c[1] for c in rows):.0%}. Open is "
        "what lies between the front and the proven bounds.",
        table(FRONTS, rows),
    )


def main() -> None:
    """Measure what is lacking; write the page."""
    run = Benchmark(
        *(__file__, __doc__, "numpy", "highspy", "ortools"), first=101, seeds=10, seconds=20.0
    )
    warm_up(["temporal"])
    seeds = range(run.first, run.first + run.seeds)
    rows = [row(run, seed, at) for seed in seeds for at in range(len(WEIGHTS))]
    met = sum(cells[-1] == "yes" for cells in rows)
    ours = sum(cells[6] == "yes" for cells in rows)
    ended = sum(cells[9] == "yes" for cells in rows)
    run.write(
        "Temporal instances of 10 requests: optima and proven fronts",
        "Ten held-out seeds, at most 2 replicas a request. The least weighted sum of goals, each "
        f"scaled to its range in placeopt's front: `auto` has {run.seconds:g} CPU seconds for the "
        "whole front. A sum is proven where no plan can be below it by placeopt's own bounds. For "
        f"the others CP-SAT (the model of benchmarks/peers) has {run.seconds:g} CPU seconds each, "
        "with eight workers in one process; it has proven its plan where it ends by itself. The "
        "referee judges both.",
        f"**placeopt is at the optimum, or at or below CP-SAT, in {met} of {len(rows)} sums**: "
        f"{ours} are proven by its bounds; of the others CP-SAT proves {ended}.",
        table(SUMS, rows),
        fronts(run),
    )


if __name__ == "__main__":
    main()
